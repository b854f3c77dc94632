//! Sums of a pointwise program over all axes but the last.

use crate::dim::{Dim, Symbols};
use crate::prog::{DType, Prog};

use super::Unsupported;
use super::launch::{Body, Launch, View, memory_type, sum};
use super::piece::{Inlet, Typed};
use super::pointwise::{arguments, kept};
use super::rows::step;
use super::space::{Axes, stretched};
use super::text::fill;

const COLUMNS: i64 = 16;
const THREADS: u32 = 256;

/// The body of a column sum.
pub(super) fn body(launch: &mut Launch<'_>, prog: &Prog, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let member = launch.member();
    let (shapes, dtypes) = arguments(member);
    let typed = Typed::new(prog, "f", &shapes, &dtypes)?;
    let shape = typed.shapes[usize::from(prog.root())].clone();
    let Some((columns, leading)) = shape.split_last() else {
        return Err(Unsupported::new("a column sum of a value without axes"));
    };
    let rank = shape.len();
    let (zero, parts) = match member.dtype {
        DType::F32 => ("0.0f", "parts"),
        DType::U32 => ("0u", "parts_u32"),
        DType::I32 => ("0i", "parts_i32"),
        DType::Bool => return Err(Unsupported::new("a column sum of truth values")),
    };
    launch.shared(parts, memory_type(member.dtype), THREADS);
    let out = launch.result()?;
    let inputs: Vec<u8> = typed.inputs_read().into_iter().collect();
    let mut views = vec![];
    for k in &inputs {
        views.push(launch.argument(usize::from(*k), &format!("x{k}"))?);
    }
    let leading_moves = |view: &View| stretched(&view.strides, rank).into_iter().take(rank - 1).collect::<Vec<Dim>>();
    let mut moves: Vec<Vec<Dim>> = views.iter().map(leading_moves).collect();
    let mut refs: Vec<&mut Vec<Dim>> = moves.iter_mut().collect();
    let axes = Axes::merge("row", leading, &kept(&typed, rank)[..rank - 1], &mut refs);
    let mut loads = String::new();
    for ((view, strides), k) in views.iter().zip(&moves).zip(&inputs) {
        let mut terms = launch.front(view);
        terms.extend(launch.moved(view, &axes, strides, "row"));
        let along = stretched(&view.strides, rank).pop().unwrap_or_default();
        terms.extend(step(launch, view, &along, "along").map(|step| format!("column{step}")));
        loads += &format!("let x{k} = {};\n", launch.load(view, &sum(&terms)));
    }
    for axis in typed.coordinates().into_iter().filter(|axis| *axis > 0) {
        let place = axes.place_of(rank - 1 - usize::from(axis));
        let coordinate = place.map_or_else(|| "0u".into(), |place| launch.coordinate(&axes, place, "row"));
        loads += &format!("let i{axis} = {coordinate};\n");
    }
    let piece = typed.piece(launch, prog.root(), &Default::default(), "at")?;
    let value = piece.call(|inlet| match inlet {
        Inlet::In(k) => format!("x{k}"),
        Inlet::Coordinate(0) => "column".into(),
        Inlet::Coordinate(axis) => format!("i{axis}"),
        Inlet::Given(_) => unreachable!("a pointwise program is one piece"),
    });
    let mut terms = launch.front(&out);
    let along = out.strides.last().cloned().unwrap_or_default();
    terms.extend(step(launch, &out, &along, "along").map(|step| format!("column{step}")));
    let store = launch.store(&out, &sum(&terms), "total");
    let code = fill(
        include_str!("column_sum.wgsl"),
        &[
            ("columns", launch.size("columns", columns)),
            ("rows", launch.size("rows", &axes.count())),
            ("zero", zero.into()),
            ("parts", parts.into()),
            ("loads", loads),
            ("value", value),
            ("store", store),
        ],
    );
    Ok(Body { code, threads: THREADS, groups: symbols.ceil_div(columns, COLUMNS) })
}
