//! Running totals along the last axis.

use crate::dim::Dim;
use crate::kernel::Scan;
use crate::prog::DType;

use super::Unsupported;
use super::launch::{Body, Launch, memory_type, sum};
use super::rows::step;
use super::space::Axes;
use super::text::fill;

/// The body of a scan, one row a workgroup.
pub(super) fn body(launch: &mut Launch<'_>, scan: Scan) -> Result<Body, Unsupported> {
    let shape = launch.member().shape.clone();
    let Some((length, leading)) = shape.split_last() else { return Err(Unsupported::new("a scan without axes")) };
    let (x, out) = (launch.argument(0, "x0")?, launch.result()?);
    let (kind, parts) = match out.dtype {
        DType::F32 => ("f", "parts"),
        DType::U32 => ("u", "parts_u32"),
        DType::I32 => ("i", "parts_i32"),
        DType::Bool => return Err(Unsupported::new("a scan of truth values")),
    };
    launch.shared(parts, memory_type(out.dtype), 256);
    let split = |strides: &[Dim]| {
        let mut strides = strides.to_vec();
        let along = strides.pop().unwrap_or_default();
        (strides, along)
    };
    let ((mut from, along), (mut to, out_along)) = (split(&x.strides), split(&out.strides));
    let axes = Axes::merge("row", leading, &vec![false; leading.len()], &mut [&mut from, &mut to]);
    let place = |launch: &mut Launch<'_>, view: &super::launch::View, strides: &[Dim], along: &Dim| {
        let mut terms = launch.front(view);
        terms.extend(launch.moved(view, &axes, strides, "group"));
        terms.extend(step(launch, view, along, "along").map(|step| format!("at{step}")));
        sum(&terms)
    };
    let (read, write) = (place(launch, &x, &from, &along), place(launch, &out, &to, &out_along));
    let length = launch.size("length", length);
    let code = fill(
        include_str!("scan.wgsl"),
        &[
            ("parts", parts.into()),
            ("none", format!("{}{kind}", if scan.product { "1" } else { "0" })),
            ("op", if scan.product { "*" } else { "+" }.into()),
            ("at", if scan.reverse { format!("{length} - 1u - j") } else { "j".into() }),
            ("length", length),
            ("load", launch.load(&x, &read)),
            ("own", if scan.exclusive { "before" } else { "up_to" }.into()),
            ("store", launch.store(&out, &write, "total")),
        ],
    );
    Ok(Body { code, threads: 256, groups: axes.count() })
}
