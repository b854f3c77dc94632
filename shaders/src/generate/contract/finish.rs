//! The end of a contraction: the epilogue's program over one element of the result, or four along the columns.

use crate::dim::Dim;

use super::super::Unsupported;
use super::super::launch::{Launch, sum};
use super::super::piece::{Inlet, four};
use super::plan::{Class, Moving, Plan};

/// Terms of an index for batch, row and column indices called `z`, `m` and `column`.
pub(super) fn at(launch: &mut Launch<'_>, plan: &Plan<'_>, moving: &Moving, m: &str, column: &str) -> Vec<String> {
    let mut terms = launch.front(&moving.view);
    terms.extend(launch.moved(&moving.view, &plan.z, &moving.z, "z"));
    terms.extend(launch.moved(&moving.view, &plan.m, &moving.m, m));
    terms.extend(launch.moved(&moving.view, &plan.n, &moving.n, column));
    terms
}

/// Whether four neighbours along the last of `axes` lie together, from a multiple of 16 bytes on, wherever the other
/// indices are.
pub(super) fn is_wide(moving: &Moving, along: &[Dim], others: &[&[Dim]]) -> bool {
    let Some((last, outer)) = along.split_last() else { return false };
    let rest = outer.iter().chain(others.iter().copied().flatten());
    last.is_one() && moving.view.aligned && rest.into_iter().all(|stride| stride.is_multiple_of(4))
}

/// Whether quads along the last of these axes never straddle its end.
pub(super) fn is_whole(sizes: &[Dim]) -> bool {
    sizes.last().is_some_and(|size| size.is_multiple_of(4))
}

/// Whether nothing moves.
pub(super) fn is_still(strides: &[Dim]) -> bool {
    strides.iter().all(|stride| *stride == Dim::from(0))
}

/// Writes `fn finish(z, m, n, accumulators, statistics)` for `width` columns from `n` on and returns its name.
pub(super) fn function(launch: &mut Launch<'_>, plan: &Plan<'_>, width: usize) -> Result<String, Unsupported> {
    let wide = width == 4;
    let (rows, columns) = (launch.size("m", &plan.m.count()), launch.size("n", &plan.n.count()));
    let whole = wide && is_whole(&plan.n.sizes);
    let piece = plan.epi.piece(launch, plan.epi.prog.root(), &Default::default(), "at")?;
    let mut body = String::new();
    let column = |c: usize| if c == 0 { "n".to_string() } else { format!("n{c}") };
    let mut vectors = vec![];
    for (k, moving) in &plan.extras {
        let still = is_still(&moving.n);
        let value = if !wide || still {
            let index = sum(&at(launch, plan, moving, "m", "n"));
            launch.load(&moving.view, &index)
        } else if whole && is_wide(moving, &moving.n, &[&moving.z, &moving.m]) {
            let index = sum(&at(launch, plan, moving, "m", "n"));
            launch.load4(&moving.view, &index)
        } else {
            let dtype = moving.view.dtype;
            four(dtype, |c| {
                let index = sum(&at(launch, plan, moving, "m", &column(c)));
                launch.load(&moving.view, &index)
            })
        };
        body += &format!("    let x{k} = {value};\n");
        if wide && !still {
            vectors.push(*k);
        }
    }
    let seeds = plan.terms + plan.stats.len();
    let component = |launch: &mut Launch<'_>, inlet: &Inlet, c: usize| match inlet {
        Inlet::In(k) if usize::from(*k) < plan.terms => {
            if wide {
                format!("v{k}[{c}]")
            } else {
                format!("v{k}")
            }
        }
        Inlet::In(k) if usize::from(*k) < seeds => format!("s{}", usize::from(*k) - plan.terms),
        Inlet::In(k) if vectors.contains(k) => format!("x{k}[{c}]"),
        Inlet::In(k) => format!("x{k}"),
        Inlet::Coordinate(axis) => {
            let (class, i) = plan.axes[plan.axes.len() - 1 - usize::from(*axis)];
            let n = column(c);
            let (axes, index) = match class {
                Class::Batch => (&plan.z, "z"),
                Class::Row => (&plan.m, "m"),
                Class::Column | Class::Summed => (&plan.n, n.as_str()),
            };
            axes.place_of(i).map_or_else(|| "0u".into(), |place| launch.coordinate(axes, place, index))
        }
        Inlet::Given(_) => unreachable!("the epilogue is one piece"),
    };
    let out = &plan.out;
    if !wide {
        let value = piece.call(|inlet| component(launch, inlet, 0));
        let index = sum(&at(launch, plan, out, "m", "n"));
        body += &format!("    {}\n", launch.store(&out.view, &index, &value));
    } else {
        let value = if piece.is_identity() && plan.extras.is_empty() && piece.inlets == [Inlet::In(0)] {
            "v0".to_string()
        } else {
            four(piece.dtype, |c| piece.call(|inlet| component(launch, inlet, c)))
        };
        if whole && is_wide(out, &out.n, &[&out.z, &out.m]) {
            let index = sum(&at(launch, plan, out, "m", "n"));
            body += &format!("    {}\n", launch.store4(&out.view, &index, &value));
        } else {
            body += &format!("    let value = {value};\n");
            for c in 0..4 {
                let index = sum(&at(launch, plan, out, "m", &column(c)));
                let store = launch.store(&out.view, &index, &format!("value[{c}]"));
                body += &match c {
                    0 => format!("    {store}\n"),
                    _ => format!("    if (n + {c}u < {columns}) {{\n        {store}\n    }}\n"),
                };
            }
        }
    }
    let mut text = format!("    if (m >= {rows} || n >= {columns}) {{\n        return;\n    }}\n");
    for c in (1..4).filter(|c| body.contains(&format!("n{c}"))) {
        let n = if whole { format!("n + {c}u") } else { format!("min(n + {c}u, {columns} - 1u)") };
        text += &format!("    let n{c} = {n};\n");
    }
    let body = text + &body;
    let name = launch.named("finish");
    let kind = if wide { "vec4<f32>" } else { "f32" };
    let mut parameters: Vec<String> = ["z", "m", "n"].map(|index| format!("{index}: u32")).to_vec();
    parameters.extend((0..plan.terms).map(|t| format!("v{t}: {kind}")));
    parameters.extend((0..plan.stats.len()).map(|s| format!("s{s}: f32")));
    launch.function(format!("fn {name}({}) {{\n{body}}}\n", parameters.join(", ")));
    Ok(name)
}
