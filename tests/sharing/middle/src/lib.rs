//! Hands layers of another crate on, plainly and built into its own.
#![deny(warnings)]

pub use layers::mlp::SwiGlu as Gated;
pub use layers::{attention::*, other};

engine::model! {
    use layers::{decoder::Block, twin_a::Twin as TwinA, twin_b::Twin as TwinB};
    use crate::Gated;

    layer Helper<dim> { both: TwinA<dim>, again: TwinB<dim> }

    /// Reaches `SwiGlu` in two ways.
    pub layer Stack<dim, depth> {
        blocks: [Block<dim, 2, 4 * dim>; depth],
        helper: Helper<dim>,
        last: Gated<dim, dim>,

        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            let mut x = x;
            for block in blocks { x = block(x); }
            last(x)
        }
    }

    /// A model can be a member too, so it travels as layers do.
    pub model Published<dim = 4, rows in 1..=16> {
        stack: Stack<dim, 2>,

        /// Runs the stack.
        pub fn run(x: f32[rows, dim]) -> f32[rows, dim] { stack(x) }
    }

    /// The same at another size, of this invocation.
    pub model Wider = Published<dim = 8>;
}
