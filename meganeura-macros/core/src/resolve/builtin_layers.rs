//! The built-in layers, in the language itself: PyTorch's names, layouts and initial values.
//!
//! `rms_norm` and `layer_norm` are functions that only these bodies may call. A tensor whose name is also that of an
//! argument gets its name from an attribute.

use proc_macro2::TokenStream;
use quote::quote;

/// Layers that the language has and this version does not.
pub(super) const UNAVAILABLE: &[&str] = &[
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "GroupNorm",
    "InstanceNorm2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "Lstm",
    "Gru",
];

/// Whether a layer of that name is built in and available.
pub(super) fn is_one(name: &str) -> bool {
    let tokens: Vec<String> = text().into_iter().map(|token| token.to_string()).collect();
    tokens.windows(2).any(|pair| pair[0] == "layer" && pair[1] == name)
}

pub(super) fn text() -> TokenStream {
    quote! {
        layer Linear<in, out, bias = true, init = uniform(-1 / sqrt(in), 1 / sqrt(in))> {
            param weight: f32[out, in] = init;
            if bias {
                #[name = "bias"] param offset: f32[out] = uniform(-1 / sqrt(in), 1 / sqrt(in));
            }
            fn forward(x: f32[.., in]) -> f32[.., out] {
                if bias { x @ weight.t() + offset } else { x @ weight.t() }
            }
        }

        layer Embedding<count, dim, init = normal(1)> {
            param weight: f32[count, dim] = init;
            fn forward(ids: u32[..]) -> f32[.., dim] { weight[ids] }
        }

        layer RmsNorm<dim, eps = 1e-6> {
            param weight: f32[dim] = ones;
            fn forward(x: f32[.., dim]) -> f32[.., dim] {
                rms_norm(x, eps) * weight
            }
        }

        layer LayerNorm<dim, eps = 1e-5, bias = true> {
            param weight: f32[dim] = ones;
            if bias {
                #[name = "bias"] param offset: f32[dim] = zeros;
            }
            fn forward(x: f32[.., dim]) -> f32[.., dim] {
                if bias { layer_norm(x, eps) * weight + offset } else { layer_norm(x, eps) * weight }
            }
        }
    }
}
