//! Random graphs, with loops and their gradients, from the graph to each device and back: what the schedule computes
//! there in f32 is what the graph means in f64.
//!
//! Each graph goes the whole way through the compiler, but for parsing, and through the runtime's own session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use meganeura_core::autodiff::Policy;
use meganeura_core::egraph::Memo;
use meganeura_core::emit::Scheduled;
use meganeura_core::interp;
use meganeura_core::ir::{Graph, StoreKind};
use meganeura_core::pipeline::scheduled;
use meganeura_core::testing::{bare_schedule, bind, contents, random_smooth_graph, training};
use meganeura_core::watch::Watch;
use meganeura_runtime::__private::{AnyArgument, Entry, Model, Session, Trainer};
use meganeura_runtime::testing::devices;
use meganeura_runtime::{Device, Sgd};
use meganeura_shaders::dim::{Env, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::{Init, Model as ModelData, Role, Tensor as TensorData};

/// Graphs that are tried on the CPU.
const GRAPHS: u64 = 5_000;
/// The first of them are also tried on Vulkan; half a second each on a software device.
const ON_VULKAN: u64 = 200;

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn entry(made: &Scheduled) -> &'static Entry {
    let schedule = leak(postcard::to_allocvec(&made.schedule).unwrap());
    let texts: Vec<&'static str> = made.texts.iter().map(|text| leak(text.clone()).as_str()).collect();
    leak(Entry { name: "random", schedule, texts: leak(texts) })
}

/// The tensors that the graph reads, by their numbers.
fn model(graph: &Graph, env: &Env) -> &'static Model {
    let nothing = TensorData {
        name: "none".into(),
        shape: vec![0],
        loops: 0,
        trained: false,
        saved: true,
        init: Init::Constant(0.0),
    };
    let mut tensors = vec![];
    for store in &graph.stores {
        let StoreKind::Tensor { index, trained } = store.kind else { continue };
        tensors.resize(tensors.len().max(index + 1), nothing.clone());
        let name = format!("{index}{}", ".{}".repeat(store.loops));
        let init = Init::Constant(0.0);
        tensors[index] =
            TensorData { name, shape: env.shape(&store.ty.shape), loops: store.loops, trained, saved: true, init };
    }
    let model = ModelData { name: "random".into(), tensors, ignored: vec![] };
    leak(Model { bytes: leak(postcard::to_allocvec(&model).unwrap()) })
}

/// Values as the device has them.
fn words(tensor: &Tensor, dtype: DType) -> Vec<u8> {
    let word = |x: &f64| match dtype {
        DType::F32 => (*x as f32).to_le_bytes(),
        DType::I32 => (*x as i32).to_le_bytes(),
        DType::U32 | DType::Bool => (*x as u32).to_le_bytes(),
    };
    tensor.data.iter().flat_map(word).collect()
}

/// The sizes of a graph: mostly a row count anywhere, often one of the ends or beside the edge of a tile.
fn dims(graph: &Graph, seed: u64) -> Vec<i64> {
    let edges = [1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 70];
    let pick = |low: i64, high: i64| match seed % 3 {
        0 => edges[(seed / 3) as usize % edges.len()].clamp(low, high),
        _ => low + (seed as i64 * 7 + 3) % (high - low + 1),
    };
    graph.symbols.declared().iter().map(|b| pick(b.low, b.high) / b.step * b.step).collect()
}

/// Whether the graph of a seed could be compared.
fn check(on_cpu: &[Device], on_vulkan: &[Device], seed: u64) -> bool {
    let (graph, loss) = random_smooth_graph(seed);
    let mut graph = training(&graph, loss, Policy::Contractions);
    // No argument tells how often loops run, so its bounds do.
    let count = 1 + seed as i64 % 6;
    graph.symbols = Symbols::default();
    graph.symbols.declare("rows", 1, 70, 1);
    graph.symbols.declare("count", count, count, 1);
    let dims = dims(&graph, seed);
    let env = bind(&graph, &dims);
    // Both start from what f32 can hold.
    let mut stores = contents(&graph, &env, seed);
    stores.iter_mut().flat_map(|tensor| &mut tensor.data).for_each(|x| *x = f64::from(*x as f32));
    let expected = interp::graph::run(&graph, &env, &stores);
    // What f32 cannot hold need not agree.
    if expected.iter().flat_map(|tensor| &tensor.data).any(|x| !x.is_finite() || x.abs() > 1e30) {
        return false;
    }

    let mut arguments = vec![];
    for (store, tensor) in graph.stores.iter().zip(&stores) {
        match store.kind {
            StoreKind::Random => unreachable!("these graphs are random, their numbers are not"),
            StoreKind::Argument(k) => {
                let (shape, dtype) = (tensor.shape.iter().map(|n| *n as usize).collect::<Vec<_>>(), store.ty.dtype);
                arguments.push((k, dtype, shape, words(tensor, dtype)));
            }
            StoreKind::Tensor { .. } => {}
        }
    }
    arguments.sort_by_key(|(k, ..)| *k);
    let names = |dtype: DType| match dtype {
        DType::F32 => "f32",
        DType::U32 => "u32",
        DType::I32 => "i32",
        DType::Bool => "bool",
    };
    let arguments: Vec<AnyArgument<'_>> = arguments
        .iter()
        .map(|(_, dtype, shape, bytes)| AnyArgument::of_shape(names(*dtype), shape.clone(), bytes))
        .collect();
    let model = model(&graph, &env);
    let mut runs: Vec<(&Device, Scheduled)> = vec![];
    for fused in [true, false] {
        let schedule = bare_schedule(&graph, "random", fused).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{graph}"));
        runs.extend(on_cpu.iter().map(|device| {
            (device, Scheduled { schedule: schedule.clone(), texts: vec![], explanation: String::new() })
        }));
    }
    for device in on_vulkan {
        let made = scheduled(&graph, "random", &mut Memo::default(), &mut Watch::default());
        runs.push((device, made.unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}\n{graph}"))));
    }
    for (device, made) in &runs {
        let mut session = Session::new(device, model, 0).unwrap();
        write(&mut session, &graph, &stores);
        let mut trainer = Trainer::new(&mut session, &[entry(made)], Sgd::new(0.1).into()).unwrap();
        let found = trainer.gradients(&mut session, 0, &arguments).unwrap();
        for (output, expected) in graph.outputs.iter().zip(&expected) {
            let values: Vec<f64> = match output.role {
                Role::Result(0) => vec![f64::from(found.loss())],
                Role::Result(_) | Role::Update(_) | Role::Tap(_) => continue,
                Role::Gradient(index) => {
                    let rows = found.iter().filter(|(name, ..)| name.split('.').next() == Some(&index.to_string()));
                    rows.flat_map(|(_, _, values)| values).map(|x| f64::from(*x)).collect()
                }
            };
            assert_eq!(values.len(), expected.data.len(), "seed {seed}, {}", output.name);
            let scale = expected.data.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            for (at, (found, expected)) in values.iter().zip(&expected.data).enumerate() {
                let near = (found - expected).abs() <= 2e-4 * scale;
                assert!(
                    near,
                    "seed {seed}, {} [{at}] at {dims:?} on {device}: expected {expected}, found {found}\n{}",
                    output.name, made.schedule
                );
            }
        }
    }
    true
}

/// Sets the tensors of a model.
fn write(session: &mut Session, graph: &Graph, stores: &[Tensor]) {
    for (store, tensor) in graph.stores.iter().zip(stores) {
        let StoreKind::Tensor { index, .. } = store.kind else { continue };
        let rows: i64 = tensor.shape[..store.loops].iter().product();
        let values: Vec<f32> = tensor.data.iter().map(|x| *x as f32).collect();
        let row = values.len() / (rows as usize).max(1);
        for (k, values) in values.chunks(row.max(1)).enumerate() {
            session.write(index, k, values).unwrap();
        }
    }
}

#[test]
fn random_graphs_mean_on_devices_what_they_mean_in_f64() {
    let devices = devices();
    let (cpu, vulkan) = devices.split_at(1);
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let work = |worker: u64| {
        let seeds = (worker..GRAPHS).step_by(workers as usize);
        seeds.filter(|seed| check(cpu, if *seed < ON_VULKAN { vulkan } else { &[] }, *seed)).count() as u64
    };
    let compared: u64 = std::thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        started.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(compared > GRAPHS - GRAPHS / 100, "{compared} of {GRAPHS}");
}
