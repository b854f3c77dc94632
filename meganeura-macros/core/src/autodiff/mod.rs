//! Reverse mode on the graph, through `Repeat`.
//!
//! In goes a graph and a loss; out comes the graph with one more output for each trained tensor that the loss depends
//! on. Derivatives are exact or absent: an operation without one is an error if the loss needs it. The backward pass
//! of a loop is a loop that runs the other way (`reverse`); what it needs of the forward pass is saved or computed
//! again (`primal`). Composites with a derivative use it, the others are taken apart first (`expand`).

mod activity;
mod expand;
mod primal;
mod reverse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use meganeura_shaders::schedule::Role;

use crate::ir::{Graph, Origin, Output, ROOT, StoreKind, ValueId};
use crate::prune::{needed_by, prune};

/// What the forward pass of a loop saves for the backward pass. Carried values are always saved if they are asked for,
/// views and what a kernel makes up while it reads never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Every value that a derivative asks for.
    Store,
    /// Results of contractions and of reductions over other axes than the last; what row programs can compute runs
    /// again.
    #[default]
    Contractions,
    /// Nothing else: the whole body runs again.
    Checkpoint,
}

/// A derivative that the loss needs and that does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    /// The operation.
    pub origin: Origin,
    /// Why it has none.
    pub reason: String,
}

type Cotangents = BTreeMap<ValueId, ValueId>;

/// The graph with an output for the gradient of every trained tensor that `loss` depends on, and without what no
/// output needs. The loss is an f32 value of the root block; of one with axes, the gradient is that of the sum.
pub fn differentiate(graph: &Graph, loss: ValueId, policy: Policy) -> Result<Graph, Vec<Absent>> {
    let mut graph = graph.clone();
    let loss = expand::expand(&mut graph, loss);
    let (active, needed) = (activity::active(&graph, loss), needed_by(&graph, ROOT, &[loss]));
    let nodes = graph.block(ROOT).nodes.clone();
    let around = std::mem::take(&mut graph.origin);
    graph.origin.backward = true;
    let shape = graph.shape(loss).clone();
    let mut cotangents = Cotangents::from([(loss, graph.fill(1.0, &shape))]);
    let mut reverse = reverse::Reverse::new(&mut graph, policy, active);
    reverse.nodes(&nodes, &mut cotangents);
    let absent = reverse.absent;
    if !absent.is_empty() {
        return Err(absent);
    }
    add_outputs(&mut graph, &cotangents, &needed);
    graph.origin = around;
    prune(&mut graph);
    Ok(graph)
}

/// A tensor that is read at several places has the sum; one that the loss only jumps with has zeros.
fn add_outputs(graph: &mut Graph, cotangents: &Cotangents, needed: &[bool]) {
    let mut gradients: BTreeMap<usize, Output> = BTreeMap::new();
    for (value, store) in graph.trained() {
        let store = graph.store(store).clone();
        let StoreKind::Tensor { index, .. } = store.kind else { continue };
        let known = gradients.get(&index).map(|output| output.value);
        let sum = match (known, cotangents.get(&value)) {
            (Some(sum), Some(part)) => graph.add(sum, *part),
            (Some(sum), None) => sum,
            (None, Some(part)) => *part,
            (None, None) if needed[value.index()] => graph.fill(0.0, &store.ty.shape),
            (None, None) => continue,
        };
        let (role, name) = (Role::Gradient(index), format!("grad.{}", store.name));
        gradients.insert(index, Output { role, name, value: sum, loops: store.loops });
    }
    gradients.into_values().for_each(|output| graph.output(output));
}
