//! Products by themselves on a GPU: the compiler's own kernels, timed without what surrounds them in a call.
//!
//! Each figure is one dispatch of many in one submission, each behind a barrier, on a device kept busy before; and for
//! each, elements of the result are compared with f64 before the time counts.

pub mod product;
pub mod tune;

use std::cell::Cell;
use std::error::Error;
use std::time::Instant;

use meganeura::Device;
use meganeura_runtime::device::gpu::{Buffer, Dispatch, Gpu, Pipeline, Source};
use meganeura_shaders::generate::Form;

use crate::Figure;
use product::{BUFFERS, Made, Product, WITH, With, value};

/// m, n, k of the products that docs/performance.md lists.
pub const PRODUCTS: [[u64; 3]; 9] = [
    [128, 576, 576],
    [128, 1536, 576],
    [128, 3072, 576],
    [128, 576, 1536],
    [128, 49_152, 576],
    [512, 3072, 576],
    [2048, 3072, 576],
    [1024, 1024, 1024],
    [4096, 4096, 4096],
];
/// n, k of the matrices that one row is multiplied with.
pub const MATRICES: [[u64; 2]; 6] = [[576, 576], [1536, 576], [3072, 576], [576, 1536], [49_152, 576], [49_152, 4096]];
/// Milliseconds that a device works before a figure is taken.
const WARM: f64 = 60.0;
/// The same before the first figure.
const FIRST_WARM: f64 = 500.0;
/// Milliseconds that a measured submission takes, about.
const SPAN: f64 = 8.0;
/// Bytes that weights of one row rotate over, more than caches hold.
const ROTATE: u64 = 256 << 20;

/// A device with the buffers of all products.
pub struct Bench {
    gpu: Gpu,
    buffers: Vec<Buffer>,
    begun: Cell<bool>,
}

/// A kernel that is ready to run.
pub struct Ready {
    product: Product,
    made: Made,
    pipeline: Pipeline,
}

impl Bench {
    /// Buffers for all these products; those beyond what the device binds at once are left out.
    pub fn new(gpu: &Gpu, products: &[Product]) -> Result<(Bench, Vec<Product>), Box<dyn Error>> {
        let limit = gpu.limits().binding_bytes;
        let fits = |product: &&Product| product.elements().iter().all(|elements| elements * 4 <= limit);
        let products: Vec<Product> = products.iter().filter(fits).copied().collect();
        let mut buffers = vec![];
        for number in 0..BUFFERS {
            let most = products.iter().map(|product| product.elements()[number] * 4).max().unwrap_or(4);
            let rotates = number == 1 && products.iter().any(|product| product.m == 1);
            let bytes = if rotates { most.max(ROTATE) } else { most }.next_multiple_of(256);
            let buffer = gpu.buffer("product", bytes)?;
            if number < 3 {
                fill(gpu, &buffer, number)?;
            }
            buffers.push(buffer);
        }
        Ok((Bench { gpu: gpu.clone(), buffers, begun: Cell::new(false) }, products))
    }

    /// The kernels of products in the forms given, or as the table has it; made in parallel. Those that the device
    /// cannot hold are left out.
    pub fn prepare(&self, wanted: &[(Product, Option<Form>)]) -> Result<Vec<Option<Ready>>, Box<dyn Error>> {
        let memory = self.gpu.limits().workgroup_bytes;
        let made = wanted.iter().map(|(product, form)| product.make(*form, memory));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let sources: Vec<Source> =
            made.iter().flatten().map(|made| Source { name: "product", text: &made.text }).collect();
        let mut pipelines = self.gpu.pipelines(&sources).into_iter();
        let mut all = vec![];
        for (made, (product, _)) in made.into_iter().zip(wanted) {
            all.push(match made {
                Some(made) => match pipelines.next() {
                    Some(pipeline) => Some(Ready { product: *product, made, pipeline: pipeline? }),
                    None => None,
                },
                None => None,
            });
        }
        Ok(all)
    }

    /// Microseconds of one dispatch; an error where it computes something else.
    pub fn time(&self, ready: &Ready) -> Result<f64, Box<dyn Error>> {
        let Ready { product, made, pipeline } = ready;
        let stride = (product.elements()[1] * 4).next_multiple_of(256);
        let copies = if product.m == 1 { (self.buffers[1].bytes() / stride).max(1) } else { 1 };
        let bindings: Vec<Vec<_>> = (0..copies)
            .map(|copy| {
                let at = |buffer: &usize| self.buffers[*buffer].at(if *buffer == 1 { copy * stride } else { 0 });
                made.bindings.iter().map(at).collect()
            })
            .collect();
        let grid = self.gpu.limits().grid("product", made.groups)?;
        let run = |count: usize| -> Result<f64, Box<dyn Error>> {
            let mut recorder = self.gpu.recorder()?;
            let dispatch = |i: usize| Dispatch {
                pipeline,
                buffers: &bindings[i % bindings.len()],
                words: &made.words,
                grid,
                barrier: true,
            };
            recorder.compute((0..count).map(dispatch))?;
            let begun = Instant::now();
            recorder.submit()?.wait()?;
            Ok(begun.elapsed().as_secs_f64() * 1e6)
        };
        self.gpu.clear([&self.buffers[3]].into_iter())?;
        run(1)?;
        self.check(product)?;
        let begun = Instant::now();
        let mut count = 1;
        let mut each = run(1)?;
        let warm = if self.begun.replace(true) { WARM } else { FIRST_WARM };
        while crate::milliseconds(begun) < warm {
            count = ((SPAN * 1e3 / each) as usize).clamp(1, 3000);
            each = run(count)? / count as f64;
        }
        for _ in 0..5 {
            each = each.min(run(count)? / count as f64);
        }
        Ok(each)
    }

    fn check(&self, product: &Product) -> Result<(), Box<dyn Error>> {
        for q in 0..48u64 {
            let (row, column) = match q {
                0 => (product.m - 1, product.n - 1),
                _ => (q * 7919 % product.m, q * 104_729 % product.n),
            };
            let mut found = [0u8; 4];
            self.gpu.download(self.buffers[3].at((row * product.n + column) * 4), &mut found)?;
            let (found, expected) = (f64::from(f32::from_le_bytes(found)), product.expected(row, column, 0));
            // Sums of k products of numbers up to 1, in f32.
            if (found - expected).abs() > 1e-4 * (product.k as f64).sqrt() {
                return Err(format!("{product:?}: element {row}, {column} is {found}, not {expected}").into());
            }
        }
        Ok(())
    }
}

fn fill(gpu: &Gpu, buffer: &Buffer, number: usize) -> Result<(), Box<dyn Error>> {
    const CHUNK: u64 = 32 << 20;
    let mut at = 0;
    while at < buffer.bytes() {
        let bytes = CHUNK.min(buffer.bytes() - at);
        let words: Vec<u8> = (at / 4..(at + bytes) / 4).flat_map(|k| value(number, k).to_le_bytes()).collect();
        gpu.upload(buffer.at(at), &words)?;
        at += bytes;
    }
    Ok(())
}

/// Products of the shapes above in both layouts of the right side, with each thing that is fused; and one row.
pub fn measure(device: &Device) -> Result<Vec<Figure>, Box<dyn Error>> {
    let Some(gpu) = device.as_gpu() else { return Ok(vec![]) };
    let mut products = vec![];
    for [m, n, k] in PRODUCTS {
        products.push(Product { m, n, k, along_k: false, with: With::Nothing });
        products.extend(WITH.map(|(with, _)| Product { m, n, k, along_k: true, with }));
    }
    for [n, k] in MATRICES {
        products.extend([true, false].map(|along_k| Product { m: 1, n, k, along_k, with: With::Nothing }));
    }
    let (bench, products) = Bench::new(gpu, &products)?;
    let ready = bench.prepare(&products.iter().map(|product| (*product, None)).collect::<Vec<_>>())?;
    let mut figures = vec![];
    for ready in ready.iter().flatten() {
        let (product, time) = (ready.product, bench.time(ready)?);
        let Product { m, n, k, along_k, .. } = product;
        let with = WITH.iter().find(|(with, _)| *with == product.with).map_or("", |(_, name)| name);
        let layout = if along_k { "[n, k]" } else { "[k, n]" };
        let rate = match m {
            1 => format!("{:.0} GB/s", (n * k * 4) as f64 / time * 1e-3),
            _ => format!("{:.1} TFLOP/s", (2 * m * n * k) as f64 / time * 1e-6),
        };
        // Names live as long as the program: there are as many as products.
        let name = format!("{m}x{n}x{k} {layout} {with}").leak();
        figures.push(Figure { name, value: time, unit: "us", how: rate.leak() });
    }
    Ok(figures)
}
