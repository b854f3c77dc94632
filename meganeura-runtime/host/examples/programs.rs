//! Time of row programs, column sums and optimizer steps on one thread, in nanoseconds an element.
//!
//! `cargo run --release -p meganeura-host --example programs [NAME]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use meganeura_host::level::Level;
use meganeura_host::update::update;
use meganeura_host::{Layout, Source, Target, Task, Threads};
use meganeura_shaders::dim::Env;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};
use meganeura_shaders::update::{ADAM, SGD};

/// The best time of many runs, in nanoseconds.
fn best(mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut least = f64::INFINITY;
    while start.elapsed().as_millis() < 300 {
        let own = Instant::now();
        run();
        least = least.min(own.elapsed().as_nanos() as f64);
    }
    least
}

fn words(count: usize) -> Vec<u32> {
    (0..count as u32).map(|k| ((k.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0).to_bits()).collect()
}

/// Whether the first argument, if there is one, is this name.
fn is_wanted(name: &str) -> bool {
    std::env::args().nth(1).is_none_or(|wanted| wanted == name)
}

fn time(name: &str, kernel: &Kernel, shapes: &[&[usize]], result: &[usize], elements: usize) {
    if !is_wanted(name) {
        return;
    }
    let threads = Threads::new(1);
    let args: Vec<Layout> = shapes.iter().map(|shape| Layout::dense(shape, DType::F32)).collect();
    let write = Layout::dense(result, DType::F32);
    let memory: Vec<Vec<u32>> = args.iter().map(|arg| words(arg.elements())).collect();
    let sources: Vec<Source<'_>> = memory.iter().map(|words| Source::new(words)).collect();
    let mut written = vec![0; write.elements()];
    let task = Task::new(kernel, &args, &write, &Env::default()).unwrap();
    let mut scratch = vec![0.0; task.scratch()];
    let time = best(|| task.run(&threads, &sources, Target::new(&mut written), &mut scratch).unwrap());
    println!(
        "{name:28} {:28} {:8.3} ns an element {:9.2} us",
        format!("{shapes:?}"),
        time / elements as f64,
        time / 1e3
    );
}

fn rows(inputs: u8, code: &[Instr]) -> Kernel {
    Kernel::Rows(Prog { inputs, code: code.into() })
}

fn main() {
    println!("{}", Level::here());
    let exp = rows(1, &[Instr::In(0), Instr::Un(Un::Exp, 0)]);
    let copy = rows(1, &[Instr::In(0)]);
    let silu = rows(
        2,
        &[
            Instr::In(0),
            Instr::Un(Un::Sigmoid, 0),
            Instr::Bin(Bin::Mul, 0, 1),
            Instr::In(1),
            Instr::Bin(Bin::Mul, 2, 3),
        ],
    );
    let add = rows(2, &[Instr::In(0), Instr::In(1), Instr::Bin(Bin::Add, 0, 1)]);
    let relu = rows(2, &[Instr::In(0), Instr::In(1), Instr::Bin(Bin::Add, 0, 1), Instr::Un(Un::Relu, 2)]);
    let softmax = rows(
        1,
        &[
            Instr::In(0),
            Instr::RowMax(0),
            Instr::Bin(Bin::Sub, 0, 1),
            Instr::Un(Un::Exp, 2),
            Instr::RowSum(3),
            Instr::Un(Un::Recip, 4),
            Instr::Bin(Bin::Mul, 3, 5),
        ],
    );
    let norm = rows(
        2,
        &[
            Instr::In(0),
            Instr::Bin(Bin::Mul, 0, 0),
            Instr::RowSum(1),
            Instr::Const(Const::float(1.0 / 576.0)),
            Instr::Bin(Bin::Mul, 2, 3),
            Instr::Const(Const::float(1e-5)),
            Instr::Bin(Bin::Add, 4, 5),
            Instr::Un(Un::Rsqrt, 6),
            Instr::Bin(Bin::Mul, 0, 7),
            Instr::In(1),
            Instr::Bin(Bin::Mul, 8, 9),
        ],
    );
    for n in [8192, 1 << 20] {
        time("copy", &copy, &[&[n]], &[n], n);
        time("exp", &exp, &[&[n]], &[n], n);
        time("a + b", &add, &[&[n], &[n]], &[n], n);
        time("silu(a) b", &silu, &[&[n], &[n]], &[n], n);
    }
    let square = rows(1, &[Instr::In(0), Instr::Bin(Bin::Mul, 0, 0)]);
    let sum = rows(1, &[Instr::In(0), Instr::RowSum(0)]);
    let most = rows(1, &[Instr::In(0), Instr::RowMax(0)]);
    for [m, n] in [[512, 10], [64, 64], [14, 576], [512, 576]] {
        time("square", &square, &[&[m, n]], &[m, n], m * n);
        time("sum", &sum, &[&[m, n]], &[m, 1], m * n);
        time("max", &most, &[&[m, n]], &[m, 1], m * n);
    }
    for un in Un::ALL.iter().copied().filter(|un| *un != Un::Not) {
        time(un.name(), &rows(1, &[Instr::In(0), Instr::Un(un, 0)]), &[&[8192]], &[8192], 8192);
    }
    for bin in [Bin::Div, Bin::Max, Bin::Rem, Bin::Pow] {
        let kernel = rows(2, &[Instr::In(0), Instr::In(1), Instr::Bin(bin, 0, 1)]);
        time(bin.name(), &kernel, &[&[8192], &[8192]], &[8192], 8192);
    }
    for [m, n] in [[64, 10], [64, 128], [512, 64], [512, 576], [1, 576], [4096, 1000], [8, 49152]] {
        time("softmax", &softmax, &[&[m, n]], &[m, n], m * n);
        time("rms_norm", &norm, &[&[m, n], &[n]], &[m, n], m * n);
        time("bias", &add, &[&[m, n], &[n]], &[m, n], m * n);
        time("relu(bias)", &relu, &[&[m, n], &[n]], &[m, n], m * n);
        time("column sum", &Kernel::ColumnSum(Prog::identity()), &[&[m, n]], &[n], m * n);
    }
    for n in [8192, 101_770, 1 << 20] {
        for (name, optimizer) in [("sgd", SGD), ("adam", ADAM)] {
            if !is_wanted(name) {
                continue;
            }
            let floats = [1e-3f32, 0.01, 0.9, 0.999, 1e-8, 1.0, 1.0].map(f32::to_bits);
            let own = [&[0, n as u32], &floats[..optimizer.floats.len()]].concat();
            let gradients = words(n);
            let mut places: Vec<Vec<u32>> = (1..optimizer.buffers).map(|_| vec![0.5f32.to_bits(); n]).collect();
            let threads = Threads::new(1);
            let time = best(|| {
                let targets: Vec<Target<'_>> = places.iter_mut().map(|place| Target::new(place)).collect();
                update(&threads, &optimizer, &own, Source::new(&gradients), &targets).unwrap();
            });
            println!("{name:28} {n:<28} {:8.3} ns an element", time / n as f64);
        }
    }
}
