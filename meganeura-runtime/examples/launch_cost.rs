//! Prints what a submission, a dispatch and a barrier cost on a GPU, or on the device whose name is given.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use meganeura_runtime::Device;
use meganeura_runtime::device::gpu::{Dispatch, Source};
use std::time::Instant;

const TEXT: &str = "struct P { add: u32 }
var<storage, read_write> b0: array<u32>;
var<uniform> p: P;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { b0[id.x] += p.add; }";

/// Microseconds of the fastest of several runs.
fn best(mut run: impl FnMut()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e6
    };
    (0..30).map(time).fold(f64::INFINITY, f64::min)
}

fn main() -> meganeura_runtime::Result<()> {
    let start = Instant::now();
    let device = match std::env::args().nth(1) {
        Some(name) => Device::named(&name)?,
        None => Device::gpu()?,
    };
    let Some(device) = device.as_gpu() else {
        println!("{device} runs no shaders");
        return Ok(());
    };
    println!("{device}, opened in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("{:?}, subgroups of {:?}", device.limits(), device.subgroup_size()?);
    let texts: Vec<String> = (0..32).map(|i| TEXT.replace("+= p.add", &format!("+= p.add + {i}u"))).collect();
    let sources: Vec<Source> = texts.iter().map(|text| Source { name: "add", text }).collect();
    let start = Instant::now();
    let pipelines: Vec<_> = device.pipelines(&sources).into_iter().collect::<Result<_, _>>()?;
    println!("32 pipelines in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);

    let buffer = device.buffer("example", 256 * 1024)?;
    device.upload(buffer.at(0), &[0; 256 * 1024])?;
    let same = [buffer.at(0)];
    let apart: Vec<_> = (0..1000).map(|i| [buffer.at(256 * i)]).collect();
    let record = |count: usize, barrier: bool| {
        let mut recorder = device.recorder().unwrap();
        let dispatch = |i: usize| Dispatch {
            pipeline: &pipelines[i % 32],
            buffers: if barrier { &same } else { &apart[i] },
            words: &[1],
            grid: [1; 3],
            barrier,
        };
        recorder.compute((0..count).map(dispatch)).unwrap();
        recorder
    };
    let run = |count, barrier| best(|| record(count, barrier).submit().unwrap().wait().unwrap());
    let one = run(1, false);
    println!("submission of one dispatch, recorded, submitted and waited for: {one:.1} µs");
    println!("dependent dispatch: {:.2} µs", (run(1000, true) - one) / 999.0);
    println!("independent dispatch: {:.2} µs", (run(1000, false) - one) / 999.0);
    println!("recording a dispatch: {:.3} µs", best(|| drop(record(1000, true))) / 1000.0);
    let mut four = [0; 4];
    println!("reading four bytes: {:.1} µs", best(|| device.download(buffer.at(0), &mut four).unwrap()));
    println!("writing four bytes: {:.1} µs", best(|| device.upload(buffer.at(0), &four).unwrap()));
    Ok(())
}
