//! Strided copies, both ways, with windows. Strides are those of memory: a padded place adds only where it begins.

use crate::dim::{Dim, Symbols};
use crate::kernel::Copy;

use super::Unsupported;
use super::launch::{Body, Launch, sum, value_type};
use super::pointwise::quads_fit;
use super::space::Axes;
use super::text::fill;

const BLOCK: i64 = 1024;
const THREADS: u32 = 256;

/// The body of a copy.
pub(super) fn body(launch: &mut Launch<'_>, copy: &Copy, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let out = launch.result()?;
    let source = launch.argument(0, "x0")?;
    let sizes: Vec<Dim> = copy.axes.iter().map(|axis| axis.extent.clone()).collect();
    // An axis with a window stays alone, even where it has one element: that may lie outside.
    let windowed: Vec<bool> = copy.axes.iter().map(|axis| axis.window.is_some()).collect();
    let mut from: Vec<Dim> = copy.axes.iter().map(|axis| axis.source.clone()).collect();
    let mut to: Vec<Dim> = copy.axes.iter().map(|axis| axis.target.clone()).collect();
    let mut axes = Axes::merge("e", &sizes, &windowed, &mut [&mut from, &mut to]);
    // A window along the last axis would cut fours.
    let is_cut = copy.axes.iter().enumerate().any(|(axis, own)| {
        own.window.is_some() && axes.place_of(axis).is_none_or(|place| place + 1 == axes.sizes.len())
    });
    let wide = !is_cut
        && axes.sizes.last().is_some_and(|size| size.is_multiple_of(4))
        && copy.from.is_multiple_of(4)
        && [(&source, &from), (&out, &to)]
            .iter()
            .all(|(view, strides)| strides.last().is_some_and(Dim::is_one) && quads_fit(view, strides));
    if wide {
        axes.count_fours();
    }
    let (mut coordinates, mut inside, mut read, mut write) =
        (String::new(), vec![], launch.front(&source), launch.front(&out));
    if copy.from != Dim::from(0) {
        read.push(launch.size("begin", &copy.from));
    }
    let windows = copy.axes.iter().enumerate().filter_map(|(axis, own)| Some((axis, own.window.as_ref()?)));
    let mut shifted = vec![false; axes.sizes.len()];
    for (axis, (start, length)) in windows {
        let (start, length) =
            (launch.size(&format!("start{axis}"), start), launch.size(&format!("length{axis}"), length));
        match axes.place_of(axis) {
            Some(place) => {
                let coordinate = launch.coordinate(&axes, place, "element");
                // Before the window the difference wraps beyond its length.
                coordinates += &format!("let in{place} = {coordinate} - {start};\n");
                inside.push(format!("in{place} < {length}"));
                shifted[place] = true;
            }
            None => {
                inside.push(format!("0u - {start} < {length}"));
                if copy.axes[axis].source != Dim::from(0) {
                    let stride = launch.size(&format!("single{axis}"), &copy.axes[axis].source);
                    read.push(format!("(0u - {start}) * {stride}"));
                }
            }
        }
    }
    for place in 0..axes.sizes.len() {
        let coordinate = launch.coordinate(&axes, place, "element");
        coordinates += &format!("let at{place} = {coordinate};\n");
        for (terms, stride, name) in [(&mut read, &from[place], "source"), (&mut write, &to[place], "target")] {
            let own = if name == "source" && shifted[place] { format!("in{place}") } else { format!("at{place}") };
            if *stride == Dim::from(0) {
            } else if stride.is_one() {
                terms.push(own);
            } else {
                terms.push(format!("{own} * {}", launch.size(&format!("{name}{place}"), stride)));
            }
        }
    }
    let kind = value_type(source.dtype);
    let zero = if wide { format!("vec4<{kind}>()") } else { format!("{kind}()") };
    let count = axes.count();
    let (read, write) = (sum(&read), sum(&write));
    let (load, store) = match wide {
        true => (launch.load4(&source, &read), launch.store4(&out, &write, "value")),
        false => (launch.load(&source, &read), launch.store(&out, &write, "value")),
    };
    let block = if wide { BLOCK / 4 } else { BLOCK };
    let code = fill(
        include_str!("copy.wgsl"),
        &[
            ("count", launch.size("count", &count)),
            ("coordinates", coordinates),
            ("block", block.to_string()),
            ("zero", zero),
            ("inside", if inside.is_empty() { "true".into() } else { inside.join(" && ") }),
            ("load", load),
            ("store", store),
        ],
    );
    Ok(Body { code, threads: THREADS, groups: symbols.ceil_div(&count, block) })
}
