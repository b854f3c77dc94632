//! Measures what people wait for: JSON lines first, one a figure, then a table.
//!
//! `cargo xtask bench` runs it; `--device gpu`, `--device host` or `--device NAME` picks the device, the last by a part of its name. Every figure is taken on a
//! warm device, since an idle GPU runs at a fraction of its clock.

mod decode;
mod depth;
mod kernels;
mod mlp;
mod products;

use std::error::Error;
use std::time::Instant;

use meganeura::Device;

/// One measured figure.
pub struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    how: &'static str,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let begun = Instant::now();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (tune, words) = match words[..] {
        ["--tune", ref rest @ ..] => (true, rest),
        ref all => (false, all),
    };
    let device = match words[..] {
        [] => Device::open()?,
        ["--device", "gpu"] => Device::gpu()?,
        ["--device", "host"] => Device::host(),
        ["--device", name] => Device::named(name)?,
        _ => return Err("usage: meganeura-bench [--tune] [--device gpu | --device host | --device NAME]".into()),
    };
    if tune {
        return kernels::tune::run(&device, kernels::product::With::Nothing);
    }
    let open = Figure { name: "device_open", value: milliseconds(begun), unit: "ms", how: "once, cold" };
    let mut figures = vec![open];
    for measure in [mlp::measure, depth::measure, decode::measure, products::measure, kernels::measure] {
        figures.extend(measure(&device)?);
    }
    print(&device, &figures);
    Ok(())
}

/// Milliseconds since then.
pub fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

#[allow(clippy::print_stdout)]
fn print(device: &Device, figures: &[Figure]) {
    for Figure { name, value, unit, how } in figures {
        let device = device.to_string().replace(['"', '\\'], "'");
        println!(r#"{{"name":"{name}","device":"{device}","value":{value:.5},"unit":"{unit}","how":"{how}"}}"#);
    }
    println!("\n{device}");
    for Figure { name, value, unit, how } in figures {
        println!("{name:<36} {value:>12.4} {unit:<6} {how}");
    }
}
