//! Elements picked by ids along the middle axis of `[outer, n, inner]`.

use crate::dim::{Dim, Symbols, product};

use super::Unsupported;
use super::launch::{Body, Launch, View, sum};
use super::text::fill;

/// Elements that one workgroup handles.
const BLOCK: u32 = 1024;

/// The index of an element of a value of three axes.
pub(super) fn place(launch: &mut Launch<'_>, view: &View, coordinates: [&str; 3]) -> String {
    let mut terms = launch.front(view);
    for (axis, (stride, coordinate)) in view.strides.clone().iter().zip(coordinates).enumerate() {
        if *stride == Dim::from(0) || coordinate == "0u" {
        } else if stride.is_one() {
            terms.push(coordinate.to_string());
        } else {
            let stride = launch.size(&format!("{}_stride{axis}", view.name), stride);
            terms.push(format!("{coordinate} * {stride}"));
        }
    }
    sum(&terms)
}

/// Statements that take a linear index over the result apart into `o`, `j` and `i`, the last in fours if `wide`.
pub(super) fn coordinates(launch: &mut Launch<'_>, shape: &[Dim], index: &str, wide: bool) -> String {
    let fours = |inner: &Dim| if wide { inner.div(&Dim::from(4)).unwrap_or_default() } else { inner.clone() };
    let (rows, inner) = (launch.size("middle", &shape[1]), launch.size("inner", &fours(&shape[2])));
    let by = if wide { " * 4u" } else { "" };
    format!(
        "let i = ({index} % {inner}){by};\nlet j = {index} / {inner} % {rows};\nlet o = {index} / {inner} / {rows};\n"
    )
}

/// Whether four neighbours along the last axis are dense in the view and each four starts at a multiple of 16 bytes.
pub(super) fn takes_fours(view: &View, inner: &Dim) -> bool {
    inner.is_multiple_of(4)
        && view.aligned
        && view.strides[2].is_one()
        && view.strides[..2].iter().all(|stride| stride.is_multiple_of(4))
}

/// The body of a gather.
pub(super) fn body(launch: &mut Launch<'_>, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let shape = launch.member().shape.clone();
    let rows = launch.member().reads[0].1[1].clone();
    let (x, ids, out) = (launch.argument(0, "x0")?, launch.argument(1, "ids")?, launch.result()?);
    let wide = takes_fours(&x, &shape[2]) && takes_fours(&out, &shape[2]) && ids.strides[2] == Dim::from(0);
    let each = if wide { product(&shape).div(&Dim::from(4)).unwrap_or_default() } else { product(&shape) };
    let coordinates = coordinates(launch, &shape, "element", wide);
    let id = place(launch, &ids, ["o", "j", "i"]);
    let id = launch.load(&ids, &id);
    let (from, to) = (place(launch, &x, ["o", "id", "i"]), place(launch, &out, ["o", "j", "i"]));
    let move_one = match wide {
        true => {
            let value = launch.load4(&x, &from);
            launch.store4(&out, &to, &value)
        }
        false => {
            let value = launch.load(&x, &from);
            launch.store(&out, &to, &value)
        }
    };
    let block = if wide { BLOCK / 4 } else { BLOCK };
    let code = fill(
        include_str!("gather.wgsl"),
        &[
            ("block", block.to_string()),
            ("count", launch.size("count", &each)),
            ("coordinates", coordinates),
            ("id", id),
            ("last", format!("{} - 1u", launch.size("rows", &rows))),
            ("move", move_one),
        ],
    );
    Ok(Body { code, threads: 256, groups: symbols.ceil_div(&each, i64::from(block)) })
}
