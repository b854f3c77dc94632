//! Every form on every shape, against the table's choice: what `cargo xtask tune` prints.

use std::error::Error;

use meganeura::Device;
use meganeura_shaders::generate::{Form, Tile, Vector};

use super::product::{Product, With};
use super::{Bench, MATRICES, PRODUCTS};

const fn tile(rows: u32, columns: u32, each: u32, parts: u32) -> Form {
    Form::Tile(Tile { rows, columns, each, parts })
}

const fn vector(threads: u32, lanes: u32) -> Form {
    Form::Vector(Vector { threads, lanes })
}

/// The forms that are tried: of tiles, then of one row.
const TILES: [Form; 11] = [
    tile(32, 32, 4, 2),
    tile(32, 32, 4, 4),
    tile(32, 64, 4, 2),
    tile(32, 64, 8, 4),
    tile(64, 32, 4, 2),
    tile(64, 32, 8, 4),
    tile(64, 64, 4, 1),
    tile(64, 64, 8, 1),
    tile(64, 64, 8, 2),
    tile(64, 128, 8, 1),
    tile(128, 64, 8, 1),
];
const VECTORS: [Form; 7] = [
    vector(256, 32),
    vector(128, 32),
    vector(64, 32),
    vector(128, 64),
    vector(256, 64),
    vector(128, 128),
    vector(256, 128),
];

fn show(form: Form) -> String {
    match form {
        Form::Tile(Tile { rows, columns, each, parts }) => format!("tile({rows}, {columns}, {each}, {parts})"),
        Form::Vector(Vector { threads, lanes }) => format!("vector({threads}, {lanes})"),
    }
}

/// More shapes than the page lists, to find where one form gives way to another.
fn products() -> Vec<Product> {
    let between = [[16, 576, 576], [64, 128, 784], [256, 1024, 1024], [512, 1024, 1024], [2048, 2048, 2048]];
    let shapes = PRODUCTS.iter().copied().chain(between).chain(MATRICES.map(|[n, k]| [1, n, k]));
    let both = |[m, n, k]: [u64; 3]| [true, false].map(|along_k| Product { m, n, k, along_k, with: With::Nothing });
    shapes.flat_map(both).collect()
}

/// Measures all, prints a line for each and what the table should say.
#[allow(clippy::print_stdout)]
pub fn run(device: &Device, with: With) -> Result<(), Box<dyn Error>> {
    let Some(gpu) = device.as_gpu() else { return Err("forms are of a GPU; this device has no shaders".into()) };
    let products: Vec<Product> = products().into_iter().map(|product| Product { with, ..product }).collect();
    let (bench, products) = Bench::new(gpu, &products)?;
    let forms = |product: &Product| if product.m == 1 { VECTORS.to_vec() } else { TILES.to_vec() };
    for product in products {
        let own: Vec<Form> = forms(&product);
        let mut wanted: Vec<_> = own.iter().map(|form| (product, Some(*form))).collect();
        wanted.push((product, None));
        let mut times = vec![];
        for ready in bench.prepare(&wanted)? {
            times.push(match ready {
                Some(ready) => bench.time(&ready)?,
                None => f64::INFINITY,
            });
        }
        let table = times.pop().unwrap_or(f64::INFINITY);
        let Product { m, n, k, along_k, .. } = product;
        let layout = if along_k { "[n, k]" } else { "[k, n]" };
        let mut order: Vec<(f64, Form)> = times.iter().copied().zip(own).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let all: Vec<String> = order.iter().map(|(time, form)| format!("{} {time:.1}", show(*form))).collect();
        println!("{m}x{n}x{k} {layout}  table {table:.1}  {}", all.join("  "));
        if let Some((best, form)) = order.first()
            && table > 1.05 * best
        {
            println!("    proposed for rows {m}, columns {n}, results {}: {}", m * n, show(*form));
        }
    }
    Ok(())
}
