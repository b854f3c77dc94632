//! Products as a model computes them, against the matrix product that the CPU's kernels call, and the reading of a
//! large weight against the bandwidth of memory.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use meganeura::{Device, DeviceKind, Tensor, model};
use rayon::prelude::*;

use crate::{Figure, milliseconds};

model! {
    /// Square products.
    model Square<n in 1..=4096> {
        /// a · b.
        pub fn product(a: f32[n, n], b: f32[n, n]) -> f32[n, n] { a @ b }
    }

    /// The last layer of a language model with 49,152 tokens.
    model Head {
        head: Linear<576, 49152, bias = false>,

        /// Scores of every token.
        pub fn scores(x: f32[1, 576]) -> f32[1, 49152] { head(x) }
    }
}

const ROUNDS: usize = 30;
const SIZES: [(usize, [&str; 3]); 2] = [
    (512, ["product_512", "product_512_gemm", "product_512_share"]),
    (1024, ["product_1024", "product_1024_gemm", "product_1024_share"]),
];

/// All of them; what concerns the CPU's own library and memory only there.
pub fn measure(device: &Device) -> Result<Vec<Figure>, Box<dyn Error>> {
    let on_cpu = device.info().kind == DeviceKind::Host;
    let mut figures = vec![];
    for (size, names) in SIZES {
        figures.extend(square(device, size, names, on_cpu)?);
    }
    figures.extend(head(device, on_cpu)?);
    Ok(figures)
}

fn square(device: &Device, n: usize, names: [&'static str; 3], on_cpu: bool) -> Result<Vec<Figure>, Box<dyn Error>> {
    let values = |seed: usize| (0..n * n).map(|k| ((k * 7919 + seed) % 2003) as f32 / 1001.5 - 1.0).collect::<Vec<_>>();
    let (left, right) = (values(1), values(2));
    let tensors = [Tensor::new(device, &left, &[n, n])?, Tensor::new(device, &right, &[n, n])?];
    let mut model = Square::new(device)?;
    let mut own = f64::INFINITY;
    let mut peers = [f64::INFINITY; 2];
    let mut result = vec![0.0f32; n * n];
    // In turns, so that what else the machine does meets all of them.
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let product = model.product(&tensors[0], &tensors[1])?;
        product.read(&mut result[..])?;
        let read = milliseconds(begun);
        own = own.min(if on_cpu { timed(|| model.product(&tensors[0], &tensors[1]))? } else { read });
        if on_cpu {
            for (best, parallelism) in peers.iter_mut().zip([gemm::Parallelism::None, gemm::Parallelism::Rayon(0)]) {
                let begun = Instant::now();
                by_the_crate(n, &mut result, &left, &right, parallelism);
                *best = best.min(milliseconds(begun));
                black_box(&mut result);
            }
        }
    }
    let mut figures = vec![Figure { name: names[0], value: own, unit: "ms", how: "best of 30" }];
    if on_cpu {
        let peer = peers[0].min(peers[1]);
        figures.push(Figure {
            name: names[1],
            value: peer,
            unit: "ms",
            how: "the gemm crate, best of 1 and all threads",
        });
        figures.push(Figure { name: names[2], value: peer / own, unit: "", how: "of the crate's speed" });
    }
    Ok(figures)
}

fn timed<T, E>(run: impl FnOnce() -> Result<T, E>) -> Result<f64, E> {
    let begun = Instant::now();
    black_box(run()?);
    Ok(milliseconds(begun))
}

#[allow(unsafe_code)]
fn by_the_crate(n: usize, result: &mut [f32], a: &[f32], b: &[f32], parallelism: gemm::Parallelism) {
    assert!(result.len() == n * n && a.len() == n * n && b.len() == n * n);
    let stride = n as isize;
    // SAFETY: all three are n × n, row by row, and the result is none of the others.
    unsafe {
        gemm::gemm(
            n,
            n,
            n,
            result.as_mut_ptr(),
            1,
            stride,
            false,
            a.as_ptr(),
            1,
            stride,
            b.as_ptr(),
            1,
            stride,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

fn head(device: &Device, on_cpu: bool) -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut model = Head::new(device)?;
    let x: Vec<f32> = (0..576).map(|k| (k * 37 % 101) as f32 / 50.5 - 1.0).collect();
    let weights = vec![1.0f32; 576 * 49_152];
    let gigabytes = weights.len() as f64 * 4e-9;
    let (mut own, mut memory) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        model.scores(&x)?.read(&mut vec![0.0; 49_152])?;
        own = own.min(milliseconds(begun));
        if on_cpu {
            let begun = Instant::now();
            black_box(sum(black_box(&weights)));
            memory = memory.min(milliseconds(begun));
        }
    }
    let rate = |time: f64| gigabytes / time * 1e3;
    let mut figures =
        vec![Figure { name: "head_49152x576", value: rate(own), unit: "GB/s", how: "one row, best of 30" }];
    if on_cpu {
        let how = "a sum over as many bytes, all threads";
        figures.push(Figure { name: "memory_read", value: rate(memory), unit: "GB/s", how });
        figures.push(Figure { name: "head_share", value: memory / own, unit: "", how: "of the bandwidth" });
    }
    Ok(figures)
}

/// A sum that does little but read.
fn sum(values: &[f32]) -> f32 {
    let part = |part: &[f32]| {
        let mut lanes = [0.0f32; 64];
        for line in part.chunks_exact(64) {
            lanes.iter_mut().zip(line).for_each(|(lane, x)| *lane += x);
        }
        lanes.iter().sum::<f32>()
    };
    values.par_chunks(1 << 18).map(part).sum()
}
