//! Pointwise programs: any rank, broadcasting by strides, four elements at once where the last axis allows it.

use crate::dim::{Dim, Symbols};
use crate::prog::{DType, Prog};
use crate::schedule::Member;

use super::Unsupported;
use super::launch::{Body, Launch, View, plus, sum};
use super::piece::{Inlet, Typed, four};
use super::space::{Axes, stretched};
use super::text::fill;

/// Elements that one workgroup handles.
const BLOCK: u32 = 1024;
const THREADS: u32 = 256;

/// Shapes and types of the arguments.
pub(super) fn arguments(member: &Member) -> (Vec<&Vec<Dim>>, Vec<DType>) {
    member.reads.iter().map(|(_, shape, dtype)| (shape, *dtype)).unzip()
}

/// Axes of a space of `rank` axes that a program asks the coordinate of; `last` leaves the last one out.
pub(super) fn kept(typed: &Typed<'_>, rank: usize) -> Vec<bool> {
    let coordinates = typed.coordinates();
    (0..rank).map(|axis| coordinates.contains(&((rank - 1 - axis) as u8))).collect()
}

/// Whether quads along the last axis are dense or constant in a view, and each starts at a multiple of 16 bytes.
pub(super) fn quads_fit(view: &View, strides: &[Dim]) -> bool {
    let Some((last, outer)) = strides.split_last() else { return true };
    *last == Dim::from(0) || last.is_one() && view.aligned && outer.iter().all(|stride| stride.is_multiple_of(4))
}

/// The body of a pointwise member.
pub(super) fn body(launch: &mut Launch<'_>, prog: &Prog, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let member = launch.member();
    let (shapes, dtypes) = arguments(member);
    let typed = Typed::new(prog, "f", &shapes, &dtypes)?;
    let rank = member.shape.len();
    let out = launch.result()?;
    let inputs: Vec<u8> = typed.inputs_read().into_iter().collect();
    let mut views = vec![];
    for k in &inputs {
        views.push(launch.argument(usize::from(*k), &format!("x{k}"))?);
    }
    let mut moves: Vec<Vec<Dim>> = views.iter().chain([&out]).map(|view| stretched(&view.strides, rank)).collect();
    let mut refs: Vec<&mut Vec<Dim>> = moves.iter_mut().collect();
    let mut axes = Axes::merge("e", &member.shape, &kept(&typed, rank), &mut refs);
    let wide = axes.sizes.last().is_some_and(|size| size.is_multiple_of(4))
        && views.iter().chain([&out]).zip(&moves).all(|(view, strides)| quads_fit(view, strides))
        && moves.last().and_then(|out| out.last()).is_some_and(Dim::is_one);
    let index = if wide { "quad" } else { "element" };
    if wide {
        axes.count_fours();
    }
    let block = if wide { BLOCK / 4 } else { BLOCK };
    let count = axes.count();
    let count_word = launch.size("count", &count);
    let piece = typed.piece(launch, prog.root(), &Default::default(), "at")?;
    let mut lines = String::new();
    let mut values = vec![];
    for ((view, strides), k) in views.iter().zip(&moves).zip(&inputs) {
        let constant = strides.last().is_none_or(|last| *last == Dim::from(0));
        let mut terms = launch.front(view);
        terms.extend(launch.moved(view, &axes, strides, index));
        let at = sum(&terms);
        let value = if wide && !constant { launch.load4(view, &at) } else { launch.load(view, &at) };
        lines += &format!("let x{k} = {value};\n");
        values.push((*k, wide && !constant));
    }
    for axis in typed.coordinates() {
        if let Some(place) = axes.place_of(rank - 1 - usize::from(axis)) {
            let coordinate = launch.coordinate(&axes, place, index);
            lines += &format!("let i{axis} = {coordinate};\n");
        }
    }
    let last_axis = axes.sizes.len().checked_sub(1);
    let component = |inlet: &Inlet, c: usize| match inlet {
        Inlet::In(k) if values.contains(&(*k, true)) => format!("x{k}[{c}]"),
        Inlet::In(k) => format!("x{k}"),
        Inlet::Coordinate(axis) => match axes.place_of(rank - 1 - usize::from(*axis)) {
            Some(place) if wide && Some(place) == last_axis => plus(&format!("i{axis}"), c as u32),
            Some(_) => format!("i{axis}"),
            None => "0u".into(),
        },
        Inlet::Given(_) => unreachable!("a pointwise program is one piece"),
    };
    let mut terms = launch.front(&out);
    terms.extend(launch.moved(&out, &axes, &moves[views.len()], index));
    let at = sum(&terms);
    lines += &if wide {
        let value = match piece.is_identity() && values.iter().all(|(_, wide)| *wide) && !values.is_empty() {
            true => piece.call(|inlet| match inlet {
                Inlet::In(k) => format!("x{k}"),
                other => component(other, 0),
            }),
            false => four(piece.dtype, |c| piece.call(|inlet| component(inlet, c))),
        };
        launch.store4(&out, &at, &value)
    } else {
        let value = piece.call(|inlet| component(inlet, 0));
        launch.store(&out, &at, &value)
    };
    let code = fill(
        include_str!("pointwise.wgsl"),
        &[
            ("block", block.to_string()),
            ("threads", THREADS.to_string()),
            ("count", count_word),
            ("index", index.into()),
            ("body", lines),
        ],
    );
    Ok(Body { code, threads: THREADS, groups: symbols.ceil_div(&count, i64::from(block)) })
}
