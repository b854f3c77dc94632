//! Sums of the values that ids send to the same row: no atomics on values, so the order of every sum is fixed.

use crate::dim::{Dim, Symbols, product};
use crate::prog::DType;

use super::Unsupported;
use super::gather::{coordinates, place};
use super::launch::{Body, Launch};
use super::text::fill;

/// The body of a scatter.
pub(super) fn body(launch: &mut Launch<'_>, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let shape = launch.member().shape.clone();
    let count = launch.member().reads[0].1[1].clone();
    let (values, ids, out) = (launch.argument(0, "x0")?, launch.argument(1, "ids")?, launch.result()?);
    let zero = match out.dtype {
        DType::F32 => "0.0f",
        DType::U32 => "0u",
        DType::I32 => "0i",
        DType::Bool => return Err(Unsupported::new("sums of truth values")),
    };
    let (middle, last) = (launch.size("values", &count), format!("{} - 1u", launch.size("middle", &shape[1])));
    if ids.strides[2] == Dim::from(0) && !shape[2].is_one() {
        launch.shared("hits", "atomic<u32>", 8);
        let id = place(launch, &ids, ["o", "mine", "0u"]);
        let value = place(launch, &values, ["o", "at", "i"]);
        let to = place(launch, &out, ["o", "j", "i"]);
        let (id, value, sum) = (launch.load(&ids, &id), launch.load(&values, &value), launch.load(&out, &to));
        let code = fill(
            include_str!("scatter_rows.wgsl"),
            &[
                ("rows", launch.size("middle", &shape[1])),
                ("inner", launch.size("inner", &shape[2])),
                ("values", middle),
                ("last", last),
                ("id", id),
                ("clear", launch.store(&out, &to, zero)),
                ("add", launch.store(&out, &to, &format!("{sum} + {value}"))),
            ],
        );
        return Ok(Body { code, threads: 256, groups: &shape[0] * &shape[1] });
    }
    let each = product(&shape);
    let coordinates = coordinates(launch, &shape, "element", false);
    let (id, value) = (place(launch, &ids, ["o", "at", "i"]), place(launch, &values, ["o", "at", "i"]));
    let to = place(launch, &out, ["o", "j", "i"]);
    let code = fill(
        include_str!("scatter_elements.wgsl"),
        &[
            ("count", launch.size("count", &each)),
            ("coordinates", coordinates),
            ("values", middle),
            ("last", last),
            ("zero", zero.into()),
            ("id", launch.load(&ids, &id)),
            ("value", launch.load(&values, &value)),
            ("store", launch.store(&out, &to, "total")),
        ],
    );
    Ok(Body { code, threads: 256, groups: symbols.ceil_div(&each, 256) })
}
