//! Random graphs, with loops and their gradients, from the graph to a Vulkan device and back: what the schedule
//! computes there in f32 is what the graph means in f64.
//!
//! Each graph goes the whole way through the compiler, but for parsing, and through the runtime's own session.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use meganeura_core::autodiff::Policy;
use meganeura_core::egraph::Memo;
use meganeura_core::emit::Scheduled;
use meganeura_core::interp;
use meganeura_core::ir::{Graph, StoreKind};
use meganeura_core::pipeline::{Dumps, scheduled};
use meganeura_core::testing::{bind, contents, random_smooth_graph, training};
use meganeura_runtime::__private::{AnyArgument, Entry, Model, Session, Trainer};
use meganeura_runtime::{Device, Sgd};
use meganeura_shaders::dim::{Env, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::{Init, Model as ModelData, Role, Tensor as TensorData};

/// Graphs that are tried; half a second each on a software device.
const GRAPHS: u64 = 200;

/// A device, or none with a line that says so; CI has one.
fn device() -> Option<Device> {
    match Device::open() {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

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
    let nothing =
        TensorData { name: "none".into(), shape: vec![0], loops: 0, trained: false, init: Init::Constant(0.0) };
    let mut tensors = vec![];
    for store in &graph.stores {
        let StoreKind::Tensor { index, trained } = store.kind else { continue };
        tensors.resize(tensors.len().max(index + 1), nothing.clone());
        let name = format!("{index}{}", ".{}".repeat(store.loops));
        let init = Init::Constant(0.0);
        tensors[index] = TensorData { name, shape: env.shape(&store.ty.shape), loops: store.loops, trained, init };
    }
    let model = ModelData { name: "random".into(), tensors };
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

fn check(device: &Device, seed: u64) {
    let (graph, loss) = random_smooth_graph(seed);
    let mut graph = training(&graph, loss, Policy::Contractions);
    // No argument tells how often loops run, so its bounds do.
    let count = 1 + seed as i64 % 6;
    graph.symbols = Symbols::default();
    graph.symbols.declare("rows", 1, 70, 1);
    graph.symbols.declare("count", count, count, 1);
    let made = scheduled(&graph, "random", &mut Memo::default(), &mut Dumps::default());
    let made = made.unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}\n{graph}"));
    let bounds = graph.symbols.declared();
    let dims: Vec<i64> =
        bounds.iter().map(|b| b.low + (seed as i64 * 7 + 3) % (b.high - b.low + 1) / b.step * b.step).collect();
    let env = bind(&graph, &dims);
    // Both start from what f32 can hold.
    let mut stores = contents(&graph, &env, seed);
    stores.iter_mut().flat_map(|tensor| &mut tensor.data).for_each(|x| *x = f64::from(*x as f32));
    let expected = interp::graph::run(&graph, &env, &stores);

    let mut session = Session::new(device, model(&graph, &env), 0).unwrap();
    let mut arguments = vec![];
    for (store, tensor) in graph.stores.iter().zip(&stores) {
        match store.kind {
            StoreKind::Random => unreachable!("these graphs are random, their numbers are not"),
            StoreKind::Argument(k) => {
                let (shape, dtype) = (tensor.shape.iter().map(|n| *n as usize).collect::<Vec<_>>(), store.ty.dtype);
                arguments.push((k, dtype, shape, words(tensor, dtype)));
            }
            StoreKind::Tensor { index, .. } => {
                let rows: i64 = tensor.shape[..store.loops].iter().product();
                let values: Vec<f32> = tensor.data.iter().map(|x| *x as f32).collect();
                let row = values.len() / (rows as usize).max(1);
                for (k, values) in values.chunks(row.max(1)).enumerate() {
                    session.write(index, k, values).unwrap();
                }
            }
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
    let mut trainer = Trainer::new(&mut session, entry(&made), Sgd::new(0.1).into()).unwrap();
    let found = trainer.gradients(&mut session, &arguments).unwrap();
    for (output, expected) in graph.outputs.iter().zip(&expected) {
        let values: Vec<f64> = match output.role {
            Role::Result(0) => vec![f64::from(found.loss())],
            Role::Result(_) => continue,
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
                "seed {seed}, {} [{at}] at {dims:?}: expected {expected}, found {found}\n{}",
                output.name, made.schedule
            );
        }
    }
}

#[test]
fn random_graphs_mean_on_the_device_what_they_mean_in_f64() {
    let Some(device) = device() else { return };
    for seed in 0..GRAPHS {
        check(&device, seed);
    }
}
