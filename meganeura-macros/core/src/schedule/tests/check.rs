//! What every test does with a graph: all meanings of it must agree.

use crate::interp::schedule::{Contents, run};
use crate::interp::{graph, oracle};
use crate::ir::{Graph, StoreKind};
use crate::lower::{lower, plain};
use crate::schedule::hazards::steps_mut;
use crate::schedule::verify;
use crate::testing::{assert_close, bind, contents};
use meganeura_shaders::dim::Symbols;
use meganeura_shaders::generate::{self, Texts};
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::{Member, Schedule, Step, steps};

/// What the interpreter of schedules is given for the contents of the stores.
pub(crate) fn given(graph: &Graph, stores: &[Tensor]) -> Contents {
    let mut contents = Contents::default();
    let mut arguments = std::collections::BTreeMap::new();
    for (store, tensor) in graph.stores.iter().zip(stores) {
        match store.kind {
            StoreKind::Argument(k) => {
                arguments.insert(k, tensor.clone());
            }
            StoreKind::Tensor { index, .. } => {
                contents.tensors.insert(index, (tensor.clone(), store.loops));
            }
            StoreKind::Random => contents.random = Some(tensor.clone()),
        }
    }
    contents.arguments = arguments.into_values().collect();
    contents
}

/// The schedule of a graph whose every operation is a kernel of its own.
pub(crate) fn compile(graph: &Graph) -> Schedule {
    graph.verify().unwrap();
    lowered(&plain(graph))
}

/// The schedule of a graph of kernels.
pub(crate) fn lowered(kernels: &Graph) -> Schedule {
    with_texts(kernels).0
}

/// The same with the shaders that its steps run.
pub(crate) fn with_texts(kernels: &Graph) -> (Schedule, Texts) {
    kernels.verify().unwrap_or_else(|error| panic!("{error}\n{kernels}"));
    let mut texts = Texts::default();
    let mut variants = |members: &[Member], symbols: &mut Symbols| {
        generate::variants(members, symbols, &mut texts).map_err(|unsupported| unsupported.to_string())
    };
    let schedule = lower(kernels, "test", &mut variants).unwrap_or_else(|error| panic!("{error}\n{kernels}"));
    verify(&schedule).unwrap_or_else(|error| panic!("{error}\n{kernels}{schedule}"));
    assert!(steps_of(&schedule).iter().all(|step| !step.variants.is_empty()));
    (schedule, texts)
}

pub(crate) fn steps_of(schedule: &Schedule) -> Vec<&Step> {
    steps(&schedule.plans[0].items)
}

pub(crate) fn steps_in(schedule: &mut Schedule) -> Vec<&mut Step> {
    steps_mut(&mut schedule.plans[0].items)
}

/// The schedule gives what the graph gives, in any order between barriers, and the oracle agrees.
pub(crate) fn check_schedule(graph: &Graph, dims: &[i64], seed: u64) -> Schedule {
    let (env, stores) = (bind(graph, dims), contents(graph, &bind(graph, dims), seed));
    for (output, value) in graph.outputs.iter().zip(graph::run(graph, &env, &stores)) {
        assert!(value.data.iter().any(|x| x.abs() > 1e-9), "`{}` is all zero and proves nothing", output.name);
    }
    check_meaning(graph, dims, seed)
}

/// The same for graphs some of whose results may be zeros.
pub(crate) fn check_meaning(graph: &Graph, dims: &[i64], seed: u64) -> Schedule {
    let schedule = compile(graph);
    assert_means(&schedule, graph, dims, seed, 1e-12);
    schedule
}

/// The schedule gives what the graph gives, in any order between barriers, and the oracle agrees.
pub(crate) fn assert_means(schedule: &Schedule, graph: &Graph, dims: &[i64], seed: u64, tolerance: f64) {
    let env = schedule.symbols.bind(dims).unwrap();
    let stores = contents(graph, &env, seed);
    let wanted = graph::run(graph, &env, &stores);
    oracle::judge(schedule, &schedule.plans[0], &env).unwrap_or_else(|fault| panic!("{fault}\n{schedule}"));
    for shuffle in [None, Some(seed), Some(seed + 1)] {
        let found = run(schedule, &schedule.plans[0], &env, &given(graph, &stores), shuffle);
        for (output, (found, wanted)) in graph.outputs.iter().zip(found.iter().zip(&wanted)) {
            assert_eq!(found.shape, wanted.shape, "{}", output.name);
            assert_close(&output.name, &found.data, &wanted.data, tolerance);
        }
    }
}
