//! Arguments one behind the other along the middle axis of `[outer, n, inner]`.

use crate::dim::{Dim, Symbols, product};

use super::Unsupported;
use super::gather::{coordinates, place, takes_fours};
use super::launch::{Body, Launch};
use super::text::fill;

/// Elements that one workgroup handles.
const BLOCK: u32 = 1024;

/// The body of a concatenation.
pub(super) fn body(launch: &mut Launch<'_>, symbols: &mut Symbols) -> Result<Body, Unsupported> {
    let member = launch.member();
    let shape = member.shape.clone();
    let sizes: Vec<Dim> = member.reads.iter().map(|(_, shape, _)| shape[1].clone()).collect();
    let out = launch.result()?;
    let mut views = vec![];
    for k in 0..sizes.len() {
        views.push(launch.argument(k, &format!("x{k}"))?);
    }
    let wide = views.iter().chain([&out]).all(|view| takes_fours(view, &shape[2]));
    let each = if wide { product(&shape).div(&Dim::from(4)).unwrap_or_default() } else { product(&shape) };
    let coordinates = coordinates(launch, &shape, "element", wide);
    let to = place(launch, &out, ["o", "j", "i"]);
    let (mut choices, mut begin) = (String::new(), Dim::from(0));
    for (k, (view, size)) in views.iter().zip(&sizes).enumerate() {
        let row = match k {
            0 => "j".to_string(),
            _ => format!("(j - {})", launch.size(&format!("end{}", k - 1), &begin)),
        };
        begin = &begin + size;
        let from = place(launch, view, ["o", &row, "i"]);
        let copy = match wide {
            true => {
                let value = launch.load4(view, &from);
                launch.store4(&out, &to, &value)
            }
            false => {
                let value = launch.load(view, &from);
                launch.store(&out, &to, &value)
            }
        };
        choices += &match k + 1 == sizes.len() {
            true if k == 0 => copy,
            true => format!(" else {{\n    {copy}\n}}"),
            false => {
                let otherwise = if k == 0 { "if" } else { " else if" };
                format!("{otherwise} (j < {}) {{\n    {copy}\n}}", launch.size(&format!("end{k}"), &begin))
            }
        };
    }
    let block = if wide { BLOCK / 4 } else { BLOCK };
    let code = fill(
        include_str!("concat.wgsl"),
        &[
            ("block", block.to_string()),
            ("count", launch.size("count", &each)),
            ("coordinates", coordinates),
            ("choices", choices),
        ],
    );
    Ok(Body { code, threads: 256, groups: symbols.ceil_div(&each, i64::from(block)) })
}
