//! Composites: operations that are one `Call` node with a body in the op language.
//!
//! A reduction is over the last axis, which becomes 1 where the result is a row statistic; callers move and drop axes.
//! Results of a body are the result, then named inner values. Where a derivative in terms of those is shorter or safer
//! than the body's own, the composite states it; the body stays the meaning.

mod argmax;
mod cross_entropy;
mod dropout;
mod elu;
mod flip;
mod gelu;
mod hard;
mod kl_div;
mod layer_norm;
mod leaky_relu;
mod log_softmax;
mod logsumexp;
mod mean;
mod mse;
mod norm;
mod prelu;
mod prod;
mod random;
mod rms_norm;
mod silu;
mod softmax;
#[cfg(test)]
mod tests;
mod var;

use meganeura_shaders::pointwise::{Bin, Un};

pub use argmax::{argmax, largest_indices, reversed_order};
pub use cross_entropy::{Counting, cross_entropy, cross_entropy_of};
pub use dropout::dropout;
pub use elu::elu;
pub use flip::flip;
pub use gelu::{gelu, gelu_tanh};
pub use hard::{hardsigmoid, hardswish, relu6};
pub use kl_div::kl_div;
pub use layer_norm::layer_norm;
pub use leaky_relu::leaky_relu;
pub use log_softmax::log_softmax;
pub use logsumexp::logsumexp;
pub use mean::mean;
pub use mse::mse;
pub use norm::{norm, norm_of};
pub use prelu::prelu;
pub use prod::prod;
pub use random::{random_normal, random_uniform};
pub use rms_norm::rms_norm;
pub use silu::silu;
pub use softmax::softmax;
pub use var::var;

use crate::ir::{Graph, ValueId};

/// A row whose every score is at most this is masked: its softmax is 0 and so is its gradient.
pub const MASKED: f64 = -1e30;

/// A row of scores before they are normalised.
struct Exponentials {
    /// The maximum, `[.., 1]`.
    max: ValueId,
    /// `x - max`; `x` in a masked row.
    shifted: ValueId,
    /// `e^shifted`; zeros in a masked row.
    exp: ValueId,
    /// Their sum, `[.., 1]`; 1 in a masked row.
    sum: ValueId,
}

/// Exponentials that cannot overflow, and never a division by zero. Of a masked row the scores themselves are taken,
/// so that each exponential vanishes.
fn exponentials(graph: &mut Graph, x: ValueId) -> Exponentials {
    let max = graph.row_max(x);
    let alive = is_alive(graph, max);
    let (zero, one) = (graph.constant(0.0), graph.constant(1.0));
    let shift = graph.select(alive, max, zero);
    let shifted = graph.sub(x, shift);
    let exp = graph.un(Un::Exp, shifted);
    let sum = graph.row_sum(exp);
    let sum = graph.select(alive, sum, one);
    Exponentials { max, shifted, exp, sum }
}

/// Whether a row with this maximum is not masked.
fn is_alive(graph: &mut Graph, max: ValueId) -> ValueId {
    let masked = graph.constant(MASKED);
    graph.bin(Bin::Lt, masked, max)
}

/// The mean over the last axis, `[.., 1]`.
fn row_mean(graph: &mut Graph, x: ValueId) -> ValueId {
    let sum = graph.row_sum(x);
    let length = graph.shape(x).last().cloned().unwrap_or_else(|| 1.into());
    let length = graph.size(&length);
    graph.div(sum, length)
}
