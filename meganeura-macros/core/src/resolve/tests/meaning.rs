//! What a model means, by everything that gives it a meaning: the interpreter of graphs, loops written out, schedules of
//! plain and of chosen kernels with their memory plans, and slopes.

use std::collections::BTreeMap;

use meganeura_shaders::reference::Tensor;

use super::clean;
use crate::autodiff::Policy;
use crate::egraph::fuse;
use crate::interp::graph::run;
use crate::ir::Graph;
use crate::resolve::Entry;
use crate::schedule::tests::check::{assert_means, check_meaning, lowered};
use crate::testing::{assert_close, bind, check_gradients, contents, training, unroll};

const SEED: u64 = 7;

/// The contents of stores by name, and the results of an entry.
pub(super) struct Outcome {
    pub(super) stores: BTreeMap<String, Tensor>,
    pub(super) results: Vec<Tensor>,
}

impl Outcome {
    /// An element of a store.
    pub(super) fn at(&self, name: &str, index: &[i64]) -> f64 {
        let Tensor { shape, data } = &self.stores[name];
        assert_eq!(shape.len(), index.len(), "{name}");
        data[shape.iter().zip(index).fold(0, |offset, (size, k)| offset * size + k) as usize]
    }

    /// Result k is what `f` says, in shape and in every element, and not constant unless it is one number.
    pub(super) fn check(&self, k: usize, shape: &[i64], f: impl Fn(&[i64]) -> f64) {
        let expected = Tensor::from_fn(shape, f);
        assert_eq!(self.results[k].shape, shape, "result {k}");
        assert!(
            shape.iter().product::<i64>() < 2 || expected.data.iter().any(|x| *x != expected.data[0]),
            "result {k} shows nothing"
        );
        assert_close(&format!("result {k}"), &self.results[k].data, &expected.data, 1e-12);
    }
}

/// All meanings of a graph agree.
pub(super) fn agree(graph: &Graph, dims: &[i64]) -> Outcome {
    let env = bind(graph, dims);
    let given = contents(graph, &env, SEED);
    let results = run(graph, &env, &given);
    let flat = unroll(graph, &env);
    flat.verify().unwrap();
    for (k, (flat, looped)) in run(&flat, &env, &given).iter().zip(&results).enumerate() {
        assert_close(&format!("unrolled result {k}"), &flat.data, &looped.data, 1e-12);
    }
    check_meaning(graph, dims, SEED);
    assert_means(&lowered(&fuse(graph).unwrap()), graph, dims, SEED, 1e-9);
    let stores = graph.stores.iter().map(|store| store.name.clone()).zip(given).collect();
    Outcome { stores, results }
}

/// All meanings of each entry agree, and of its gradients where it is a loss; of each entry its dimensions.
pub(super) fn entries(text: &str, dims: &[i64]) -> Vec<Outcome> {
    clean(text).entries.iter().map(|entry| entry_of(entry, dims)).collect()
}

fn entry_of(entry: &Entry, dims: &[i64]) -> Outcome {
    let outcome = agree(&entry.graph, dims);
    if entry.train.is_some() {
        let loss = entry.graph.outputs[0].value;
        for policy in [Policy::Store, Policy::Contractions, Policy::Checkpoint] {
            check_gradients(&entry.graph, loss, dims, SEED, policy);
            agree_alone(&training(&entry.graph, loss, policy), dims);
        }
    }
    outcome
}

/// Schedules of a graph with gradients mean what it means.
fn agree_alone(graph: &Graph, dims: &[i64]) {
    check_meaning(graph, dims, SEED);
    assert_means(&lowered(&fuse(graph).unwrap()), graph, dims, SEED, 1e-8);
}
