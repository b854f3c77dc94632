//! What test suites share: contents for stores, the meaning of loops by unrolling, and judges of gradients.
//!
//! A gradient is right if it is the gradient of the unrolled graph and the slope of the loss, element by element.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod expander;
mod random;
mod unroll;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::{Role, Schedule};

pub use crate::interp::trace::next_random;
pub use expander::Expander;
pub use random::{random_graph, random_smooth_graph};
pub use unroll::unroll;

use crate::autodiff::{Policy, differentiate};
use crate::ir::{Graph, NodeId, Output, StoreKind, ValueId};
use crate::lower::lower;
use crate::lower::plain::plain;
use crate::prune::prune;
use crate::schedule::verify::verify;
use crate::{egraph, interp};

/// All of them.
pub const POLICIES: [Policy; 3] = [Policy::Store, Policy::Contractions, Policy::Checkpoint];

/// What integer arguments without a bound count to.
pub const BELOW: i64 = 5;

/// The next number between -1 and 1.
pub fn uniform(state: &mut u64) -> f64 {
    next_random(state) as f64 / u64::MAX as f64 * 2.0 - 1.0
}

/// The values of all symbols for those of the declared dimensions.
pub fn bind(graph: &Graph, dims: &[i64]) -> Env {
    graph.symbols.bind(dims).unwrap_or_else(|error| panic!("{error}"))
}

/// Contents for all stores: floats between ±0.8, integers below the store's bound or [`BELOW`].
pub fn contents(graph: &Graph, env: &Env, seed: u64) -> Vec<Tensor> {
    let mut state = seed;
    let tensor = |store: &crate::ir::Store| {
        let below = store.below.as_ref().map_or(BELOW, |below| below.eval(env)) as u64;
        Tensor::from_fn(&env.shape(&store.ty.shape), |_| match store.ty.dtype {
            DType::F32 => 0.8 * uniform(&mut state),
            DType::Bool => (next_random(&mut state) >> 40 & 1) as f64,
            DType::U32 | DType::I32 => ((next_random(&mut state) >> 20) % below) as f64,
        })
    };
    graph.stores.iter().map(tensor).collect()
}

/// A trained tensor by the next free number.
pub fn trained(graph: &mut Graph, name: &str, each: &[Dim], shape: &[Dim]) -> ValueId {
    graph.tensor(graph.stores.len(), name, [each, shape].concat(), each.len(), true)
}

/// A tensor that is not trained.
pub fn frozen(graph: &mut Graph, name: &str, each: &[Dim], shape: &[Dim]) -> ValueId {
    graph.tensor(graph.stores.len(), name, [each, shape].concat(), each.len(), false)
}

/// One more result.
pub fn result(graph: &mut Graph, name: &str, value: ValueId) {
    let role = Role::Result(graph.outputs.len());
    graph.output(Output { role, name: name.into(), value, loops: 0 });
}

/// The graph with gradients; both are whole.
pub fn training(graph: &Graph, loss: ValueId, policy: Policy) -> Graph {
    graph.verify().unwrap();
    let trained = differentiate(graph, loss, policy).unwrap();
    trained.verify().unwrap_or_else(|error| panic!("{error}\n{trained}"));
    trained
}

/// The outputs by name.
pub fn outputs(graph: &Graph, dims: &[i64], seed: u64) -> Vec<(String, Tensor)> {
    let env = bind(graph, dims);
    let values = interp::graph::run(graph, &env, &contents(graph, &env, seed));
    graph.outputs.iter().map(|output| output.name.clone()).zip(values).collect()
}

/// The schedule of a graph without shader texts, for replayers that need none: fused, or every operation a step of its
/// own.
pub fn bare_schedule(graph: &Graph, name: &str, fused: bool) -> Result<Schedule, String> {
    let mut graph = graph.clone();
    prune(&mut graph);
    let kernels = match fused {
        true => egraph::fuse(&graph).map_err(|limit| limit.to_string())?,
        false => plain(&graph),
    };
    let schedule = lower(&kernels, name, &mut |_, _| Ok(vec![])).map_err(|error| error.to_string())?;
    verify(&schedule).map(|()| schedule)
}

/// The same graph with the nodes of each block in another order, as an extraction might leave them.
pub fn reordered(graph: &Graph, seed: u64) -> Graph {
    let (mut other, mut state) = (graph.clone(), seed);
    for block in &mut other.blocks {
        let mut left = std::mem::take(&mut block.nodes);
        while !left.is_empty() {
            let unmade: Vec<ValueId> = left.iter().flat_map(|id| graph.node(*id).outputs.clone()).collect();
            let is_ready = |id: &&NodeId| graph.node(**id).inputs.iter().all(|v| !unmade.contains(v));
            let ready: Vec<NodeId> = left.iter().filter(is_ready).copied().collect();
            let next = ready[(next_random(&mut state) >> 20) as usize % ready.len()];
            left.retain(|id| *id != next);
            block.nodes.push(next);
        }
    }
    other.verify().unwrap();
    other
}

/// Every element within a tolerance, relative beyond 1.
pub fn assert_close(name: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{name}");
    for (k, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{name}[{k}]: {a} against {b}");
    }
}

fn with_loss_alone(graph: &Graph, loss: ValueId) -> Graph {
    let mut graph = graph.clone();
    graph.outputs = vec![Output { role: Role::Result(0), name: "loss".into(), value: loss, loops: 0 }];
    graph
}

/// Gradients of the graph are those of the unrolled graph, and not all zero. Returns them.
pub fn check_against_unrolled(
    graph: &Graph,
    loss: ValueId,
    dims: &[i64],
    seed: u64,
    policy: Policy,
) -> Vec<(String, Tensor)> {
    let is_gradient = |output: &(String, Tensor)| output.0.starts_with("grad.");
    let flat = unroll(&with_loss_alone(graph, loss), &bind(graph, dims));
    flat.verify().unwrap();
    let flat = training(&flat, flat.outputs[0].value, Policy::Store);
    let flat: Vec<_> = outputs(&flat, dims, seed).into_iter().filter(is_gradient).collect();
    let found: Vec<_> = outputs(&training(graph, loss, policy), dims, seed).into_iter().filter(is_gradient).collect();
    assert!(!found.is_empty());
    for (name, gradient) in &found {
        // What no iteration reaches has no gradient when unrolled, and zeros from a loop.
        let zeros = vec![0.0; gradient.data.len()];
        let other = flat.iter().find(|(n, _)| n == name).map_or(&zeros, |(_, gradient)| &gradient.data);
        assert_close(name, &gradient.data, other, 1e-9);
    }
    for (name, gradient) in &flat {
        let is_zero = gradient.data.iter().all(|x| *x == 0.0);
        assert!(is_zero || found.iter().any(|(n, _)| n == name), "{name} is missing");
    }
    let magnitude: f64 = found.iter().flat_map(|(_, gradient)| &gradient.data).map(|x| x.abs()).sum();
    assert!(magnitude > 1e-6, "gradients that are all zero prove nothing");
    found
}

/// And they are the slopes of the loss, element by element; at most 8 of each tensor.
pub fn check_gradients(graph: &Graph, loss: ValueId, dims: &[i64], seed: u64, policy: Policy) {
    let gradients = check_against_unrolled(graph, loss, dims, seed, policy);
    let (env, loss_alone) = (bind(graph, dims), with_loss_alone(graph, loss));
    let stores = contents(graph, &env, seed);
    for (name, gradient) in gradients {
        let is_its = |store: &crate::ir::Store| {
            matches!(store.kind, StoreKind::Tensor { trained: true, .. }) && format!("grad.{}", store.name) == name
        };
        let store = graph.stores.iter().position(is_its).unwrap();
        let stride = gradient.data.len().div_ceil(8);
        for element in (0..gradient.data.len()).step_by(stride) {
            let at = |offset: f64| {
                let mut stores = stores.clone();
                stores[store].data[element] += offset;
                interp::graph::run(&loss_alone, &env, &stores)[0].data[0]
            };
            let slope = |h: f64| (at(h) - at(-h)) / (2.0 * h);
            let slope = (4.0 * slope(1e-4) - slope(2e-4)) / 3.0;
            let found = gradient.data[element];
            assert!((found - slope).abs() <= 1e-6 * (1.0 + slope.abs()), "{name}[{element}]: {found} against {slope}");
        }
    }
}
