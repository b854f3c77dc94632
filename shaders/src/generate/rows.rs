//! Row programs with reductions: short rows several to a workgroup, long rows one.

use std::collections::BTreeSet;

use crate::dim::{Dim, Symbols};
use crate::prog::Prog;

use super::Unsupported;
use super::launch::{Body, Launch, View};
use super::passes::{Lanes, Passes, RowInput, base, fours, indented};
use super::piece::{Typed, four};
use super::pointwise::{arguments, kept, quads_fit};
use super::space::{Axes, stretched};
use super::text::fill;

const THREADS: u32 = 256;
/// Lanes of a short row.
pub(super) const SHORT: u32 = 32;
/// Lanes of a long row.
pub(super) const LONG: u32 = 256;
/// Rows up to this length are short.
pub(super) const LONGEST_SHORT: i64 = 256;

/// The distance between elements of a row, from the stride of its axis.
pub(super) fn step(launch: &mut Launch<'_>, view: &View, stride: &Dim, name: &str) -> Option<String> {
    if *stride == Dim::from(0) {
        None
    } else if stride.is_one() {
        Some(String::new())
    } else {
        Some(format!(" * {}", launch.size(&format!("{}_{name}", view.name), stride)))
    }
}

/// The lengths of the rows that a program walks over, added up: each length once.
pub(super) fn lengths(prog: &Prog, launch: &Launch<'_>) -> Result<Dim, Unsupported> {
    let (shapes, dtypes) = arguments(launch.member());
    let passes = Passes::new(Typed::new(prog, "f", &shapes, &dtypes)?);
    let lengths: BTreeSet<Dim> = passes.passes.into_iter().map(|pass| pass.length).collect();
    Ok(lengths.iter().fold(Dim::from(0), |sum, length| &sum + length))
}

/// The body of a member whose rows have `lanes` lanes each.
pub(super) fn body(
    launch: &mut Launch<'_>,
    prog: &Prog,
    lanes: u32,
    symbols: &mut Symbols,
) -> Result<Body, Unsupported> {
    let member = launch.member();
    let (shapes, dtypes) = arguments(member);
    let typed = Typed::new(prog, "f", &shapes, &dtypes)?;
    let rank = member.shape.len();
    let Some((columns, leading)) = member.shape.split_last() else {
        return Err(Unsupported::new("a row program whose result has no axis"));
    };
    let out = launch.result()?;
    let passes = Passes::new(typed);
    let inputs: Vec<u8> = passes.row_inputs().into_iter().collect();
    let mut views = vec![];
    for k in &inputs {
        views.push(launch.argument(usize::from(*k), &format!("x{k}"))?);
    }
    // The last axis is the row; an operand's own stride along it counts even where the result has one element there.
    let along: Vec<Dim> = views.iter().map(|view| view.strides.last().cloned().unwrap_or_default()).collect();
    let leading_moves = |view: &View| stretched(&view.strides, rank).into_iter().take(rank - 1).collect::<Vec<Dim>>();
    let mut moves: Vec<Vec<Dim>> = views.iter().chain([&out]).map(leading_moves).collect();
    let mut refs: Vec<&mut Vec<Dim>> = moves.iter_mut().collect();
    let keep = kept(&passes.typed, rank);
    let axes = Axes::merge("row", leading, &keep[..rank - 1], &mut refs);
    let count = axes.count();
    let mut bases = String::new();
    let mut row_inputs = vec![];
    for ((view, strides), (k, stride)) in views.iter().zip(&moves).zip(inputs.iter().zip(&along)) {
        let mut terms = launch.front(view);
        terms.extend(launch.moved(view, &axes, strides, "row"));
        bases += &base(&format!("x{k}_row"), &terms);
        let step = step(launch, view, stride, "along");
        let wide = quads_fit(view, &[strides, std::slice::from_ref(stride)].concat());
        row_inputs.push(RowInput { k: *k, view: view.clone(), base: format!("x{k}_row"), step, wide });
    }
    for axis in passes.typed.coordinates().into_iter().filter(|axis| *axis > 0) {
        let place = axes.place_of(rank - 1 - usize::from(axis));
        let coordinate = place.map_or_else(|| "0u".into(), |place| launch.coordinate(&axes, place, "row"));
        bases += &format!("let i{axis} = {coordinate};\n");
    }
    let coordinate = |axis: u8| format!("i{axis}");
    let lanes = Lanes { count: lanes, lane: "lane_of_row".into(), first: "slot".into(), threads: THREADS };
    let text = passes.run(launch, &lanes, &row_inputs, &coordinate)?;
    let mut terms = launch.front(&out);
    terms.extend(launch.moved(&out, &axes, &moves[views.len()], "row"));
    let mut write = base("out_row", &terms);
    let piece = passes.typed.piece(launch, prog.root(), &passes.given(), "at")?;
    if columns.is_one() {
        let value = piece.call(|inlet| passes.inlet(inlet, "j", None, &coordinate));
        let store = launch.store(&out, "out_row", &value);
        write += &format!("if (lane_of_row == 0u) {{\n    {store}\n}}\n");
    } else {
        let length = launch.size("columns", columns);
        let stride = out.strides.last().cloned().unwrap_or_default();
        let moved = [&moves[views.len()][..], std::slice::from_ref(&stride)].concat();
        let wide = stride.is_one() && quads_fit(&out, &moved) && fours(columns, &piece.inputs(), &row_inputs);
        let mut inner = String::new();
        for k in piece.inputs() {
            inner += &passes.load(launch, &row_inputs, k, "j", wide)?;
        }
        let along = step(launch, &out, &stride, "along").unwrap_or_default();
        let at = format!("out_row + j{along}");
        inner += &match wide {
            true => {
                let value = four(piece.dtype, |c| piece.call(|inlet| passes.inlet(inlet, "j", Some(c), &coordinate)));
                launch.store4(&out, &at, &value)
            }
            false => {
                let value = piece.call(|inlet| passes.inlet(inlet, "j", None, &coordinate));
                launch.store(&out, &at, &value)
            }
        };
        let (first, by) = if wide { ("lane_of_row * 4u", lanes.count * 4) } else { ("lane_of_row", lanes.count) };
        write += &format!("for (var j = {first}; j < {length}; j += {by}u) {{\n{}}}\n", indented(&inner));
    }
    let rows = THREADS / lanes.count;
    let code = fill(
        include_str!("rows.wgsl"),
        &[
            ("lanes", lanes.count.to_string()),
            ("rows", rows.to_string()),
            ("count", launch.size("rows", &count)),
            ("bases", bases),
            ("passes", text),
            ("write", write),
        ],
    );
    Ok(Body { code, threads: THREADS, groups: symbols.ceil_div(&count, i64::from(rows)) })
}
