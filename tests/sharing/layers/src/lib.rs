//! A library of layers, under the lints that break careless expansions, and with the facade under another name.
#![no_implicit_prelude]
#![deny(warnings, unused, missing_docs, unreachable_pub, clippy::all)]
#![forbid(unsafe_code)]

/// Imports from modules that come later in the text.
pub mod decoder {
    ::mega::model! {
        use crate::{attention::Attention, mlp::SwiGlu as FeedForward};
        use super::norm::Norm;

        /// One block of a decoder.
        pub layer Block<dim, heads, ffn> {
            norm: Norm<dim>,
            attention: Attention<dim, heads>,
            mlp: FeedForward<dim, ffn>,

            fn forward(x: f32[.., dim]) -> f32[.., dim] { x + mlp(attention(norm(x))) }
        }

        layer Unused<dim> { norm: Norm<dim> }
    }

    ::mega::model! {
        use self::Block;

        /// A layer from another `model!` of the same module.
        pub layer Pair<dim, heads> {
            first: Block<dim, heads, 4 * dim>,
            second: Block<dim, heads, 4 * dim>,

            fn forward(x: f32[.., dim]) -> f32[.., dim] { second(first(x)) }
            /// Other functions are called by their names.
            pub fn half(x: f32[.., dim]) -> f32[.., dim] { first(x) }
        }
    }
}

/// Feed-forward layers.
pub mod mlp {
    ::mega::model! {
        use crate::norm::Norm;

        layer Helper<a, b> {
            up: Linear<a, b>,
            fn forward(x: f32[.., a]) -> f32[.., b] { up(x) }
        }

        /// Gated feed-forward of a decoder.
        ///
        /// Its documentation is what rustdoc shows for the macro of this name.
        pub layer SwiGlu<dim, ffn> {
            norm: Norm<dim>,
            gate: Helper<dim, ffn>,
            down: Linear<ffn, dim, bias = false>,

            fn forward(x: f32[.., dim]) -> f32[.., dim] { down(silu(gate(norm(x)))) }
        }
    }
}

/// Has a helper named like one of `mlp`.
pub mod attention {
    ::mega::model! {
        use crate::norm::Norm;

        layer Helper<dim, head> {
            q: Linear<dim, head>,
            norm: Norm<head>,
            fn forward(x: f32[.., dim]) -> f32[.., head] { norm(q(x)) }
        }

        /// As much of attention as these tests need.
        pub layer Attention<dim, heads> {
            let head = dim / heads;
            helpers: [Helper<dim, head>; heads],
            out: Linear<head, dim>,

            fn forward(x: f32[.., dim]) -> f32[.., dim] {
                let mut y = x;
                for helper in helpers { y = y + out(helper(y)); }
                y
            }
        }
    }
}

/// Does not leave the crate.
pub mod norm {
    ::mega::model! {
        pub(crate) layer Norm<dim, eps = 1e-5> {
            inner: RmsNorm<dim, eps = eps>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] { inner(x) }
        }
    }
}

/// Has the same text as `twin_b`, on other lines.
pub mod twin_a {
    ::mega::model! {
        /// Twin.
        pub layer Twin<dim> { a: Linear<dim, dim> }
    }
}

/// Has the same text as `twin_a`, on other lines.
pub mod twin_b {
    ::mega::model! {
        /// Twin.
        pub layer Twin<dim> { a: Linear<dim, dim> }
    }

    /// A struct of the same name as a layer.
    pub struct Twin {}

    /// A function of the same name as a layer.
    #[allow(non_snake_case)]
    pub fn Twin() -> Twin {
        Twin {}
    }
}

/// The same name as `decoder::Block`, another layer.
pub mod other {
    ::mega::model! {
        /// Another block.
        pub layer Block<dim> {
            only: Linear<dim, dim>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] { only(x) }
        }
    }
}

mod hidden {
    ::mega::model! {
        /// From a private module.
        pub layer Hidden<dim> { inner: RmsNorm<dim> }
    }
}

pub use hidden::Hidden;

/// The names of the parameters of a model made of layers inside of a function, of which some are public.
pub fn local() -> ::std::vec::Vec<&'static str> {
    use ::std::iter::Iterator as _;

    ::mega::model! {
        /// Public in a function.
        pub layer Local<dim> { inner: RmsNorm<dim> }
        layer Unused<dim> { inner: RmsNorm<dim> }
    }
    ::mega::model! {
        use Local;
        use crate::decoder::Block;
        use self::mlp::SwiGlu;

        model Inner<dim = 8> { a: Local<dim>, b: Block<dim, 2, 16>, c: SwiGlu<dim, 1> }
    }
    Inner::PARAMETERS.iter().map(|parameter| parameter.name).collect()
}

::mega::model! {
    /// At the root of the crate.
    pub layer Root<dim> { inner: LayerNorm<dim> }
}

::mega::model! {
    /// A model to be an instance of, with an entry and a loss.
    pub model Regressor<inputs = 4, outputs = 2, batch in 1..=64> {
        fc: Linear<inputs, outputs>,

        /// The prediction.
        pub fn predict(x: f32[batch, inputs]) -> f32[batch, outputs] { fc(x) }

        #[train]
        pub fn loss(x: f32[batch, inputs], y: f32[batch, outputs]) -> f32 { mse(predict(x), y) }
    }
}
