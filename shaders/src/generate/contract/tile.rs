//! Register tiles with the sum split inside the workgroup.

use crate::dim::Symbols;

use super::super::Unsupported;
use super::super::launch::{Body, Launch, grouped, plus, sum};
use super::super::passes::{Lanes, Passes, RowInput, indented};
use super::super::rows::step;
use super::super::text::fill;
use super::finish::{self, is_wide};
use super::plan::{Class, Plan, Side, Sweep};
use super::stage::{Stage, Target, reductions};
use super::table::{DEPTH, Tile};

pub(super) fn body(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    tile: Tile,
    symbols: &mut Symbols,
) -> Result<Body, Unsupported> {
    let (each, parts) = (tile.threads(), tile.parts);
    let rights = plan.sweeps.iter().map(|sweep| sweep.rights.len() as u32).max().unwrap_or(1);
    let (share, whole) = (tile.share(rights), tile.rows * tile.columns / 4);
    launch.shared("tile", "vec4<f32>", parts * share.max(if parts > 1 { whole } else { 0 }));
    let mut accumulators = String::new();
    for t in 0..plan.terms {
        for i in 0..tile.each {
            accumulators += &format!("var acc{t}_{i} = vec4<f32>();\n");
        }
    }
    let mut sweeps = String::new();
    for sweep in &plan.sweeps {
        sweeps += &sweep_text(launch, plan, sweep, tile, share, symbols)?;
    }
    let row_tiles = symbols.ceil_div(&plan.m.count(), i64::from(tile.rows));
    let column_tiles = symbols.ceil_div(&plan.n.count(), i64::from(tile.columns));
    let groups = &(&plan.z.count() * &row_tiles) * &column_tiles;
    let code = fill(
        include_str!("tile.wgsl"),
        &[
            ("bm", tile.rows.to_string()),
            ("bn", tile.columns.to_string()),
            ("tm", tile.each.to_string()),
            ("parts", parts.to_string()),
            ("each", each.to_string()),
            ("across", (tile.columns / 4).to_string()),
            ("row_tiles", launch.size("row_tiles", &row_tiles)),
            ("column_tiles", launch.size("column_tiles", &column_tiles)),
            ("accumulators", accumulators),
            ("sweeps", sweeps),
            ("finish", finish_text(launch, plan, tile)?),
        ],
    );
    Ok(Body { code, threads: each * parts, groups })
}

fn sweep_text(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    sweep: &Sweep<'_>,
    tile: Tile,
    share: u32,
    symbols: &mut Symbols,
) -> Result<String, Unsupported> {
    let (each, parts) = (tile.threads(), tile.parts);
    let start = |first: u32| match parts {
        1 => format!("{first}u"),
        _ => plus(&format!("part * {share}u"), first),
    };
    let turn = DEPTH * parts;
    let target = |outer: u32, first: u32| Target { outer, depth: DEPTH, turn, threads: each, first: start(first) };
    let mut rows = String::new();
    if sweep.left.passes.typed.prog.reduces_rows() {
        rows += &rows_first(launch, plan, sweep, tile, &sweep.left.passes, &mut |launch, passes, row| {
            let mut text = String::new();
            let all = reductions(passes);
            launch.shared("row_values", "f32", all.len() as u32 * tile.rows);
            for (number, reg) in all.iter().enumerate() {
                let at = plus(row, number as u32 * tile.rows);
                text += &format!("row_values[{at}] = {};\n", passes.name(*reg));
            }
            text
        })?;
    }
    let slot = |term: usize| plan.stats.iter().position(|t| *t == term).unwrap_or_default() as u32;
    if !plan.stats.is_empty() {
        launch.shared("row_stats", "f32", plan.stats.len() as u32 * tile.rows);
    }
    for stat in sweep.stats.iter().filter(|stat| !stat.passes.is_single()) {
        rows += &rows_first(launch, plan, sweep, tile, &stat.passes, &mut |_, passes, row| {
            let root = passes.name(passes.typed.prog.root());
            format!("row_stats[{}] = {root};\n", plus(row, slot(stat.term) * tile.rows))
        })?;
    }
    let (a_width, b_width) = (tile.rows / 4 + 1, tile.columns / 4 + 1);
    let left = Stage::new(launch, plan, sweep, &sweep.left, true, target(tile.rows, 0))?;
    let (mut before, mut fetch, mut leave) = (left.before(launch, "m0")?, left.fetch(launch), left.leave(launch));
    let mut multiply = String::new();
    for i in 0..tile.each / 4 {
        let further = i * (tile.rows / tile.each);
        multiply += &format!("let row{i} = tile[{} + kk * {a_width}u + ty];\n", start(further));
    }
    for (j, (t, side)) in sweep.rights.iter().enumerate() {
        let first = DEPTH * (a_width + j as u32 * b_width);
        let right = Stage::new(launch, plan, sweep, side, false, target(tile.columns, first))?;
        before += &right.before(launch, "n0")?;
        fetch += &right.fetch(launch);
        leave += &right.leave(launch);
        multiply += &format!("let column{j} = tile[{} + kk * {b_width}u + tx];\n", start(first));
        for i in 0..tile.each {
            multiply += &format!("acc{t}_{i} = fma(vec4<f32>(row{}[{}]), column{j}, acc{t}_{i});\n", i / 4, i % 4);
        }
    }
    let after = left.conclude(launch, parts, "m0", slot)?;
    let steps = symbols.ceil_div(&sweep.k.count(), i64::from(DEPTH * parts));
    Ok(fill(
        include_str!("sweep.wgsl"),
        &[
            ("rows", rows),
            ("before", before),
            ("steps", launch.size(&format!("{}_steps", sweep.k.name), &steps)),
            ("parts", parts.to_string()),
            ("depth", DEPTH.to_string()),
            ("fetch", fetch),
            ("multiply", multiply),
            ("leave", leave),
            ("after", after),
        ],
    ))
}

/// Passes over the tile's rows before the sum begins, a few lanes a row; `keep` says what one lane of each row leaves
/// in workgroup memory.
fn rows_first(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    sweep: &Sweep<'_>,
    tile: Tile,
    passes: &Passes<'_>,
    keep: &mut dyn FnMut(&mut Launch<'_>, &Passes<'_>, &str) -> String,
) -> Result<String, Unsupported> {
    let threads = tile.threads() * tile.parts;
    let count = threads / tile.rows;
    let rows = launch.size("m", &plan.m.count());
    let mut text = format!(
        "let lane_of_row = lane % {count}u;\nlet slot = lane - lane_of_row;\nlet row_of_lane = min(m0 + lane / {count}u, {rows} - 1u);\n"
    );
    let (inputs, bases) = row_inputs(launch, plan, &sweep.left, &passes.typed.name, "row_of_lane");
    text += &bases;
    let coordinates = row_coordinates(launch, plan, &sweep.left, "row_of_lane");
    let coordinate = |axis: u8| coordinates[usize::from(axis)].clone();
    let lanes = Lanes { count, lane: "lane_of_row".into(), first: "slot".into(), threads };
    text += &passes.run(launch, &lanes, &inputs, &coordinate)?;
    let kept = keep(launch, passes, &format!("lane / {count}u"));
    text += &format!("if (lane_of_row == 0u) {{\n{}}}\nworkgroupBarrier();\n", indented(&kept));
    Ok(format!("{{\n{}}}\n", indented(&text)))
}

/// The inputs of a left side along one row, and the statements of their bases.
pub(super) fn row_inputs(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    left: &Side<'_>,
    name: &str,
    row: &str,
) -> (Vec<RowInput>, String) {
    let (mut inputs, mut bases) = (vec![], String::new());
    for (k, moving) in &left.inputs {
        let mut terms = launch.front(&moving.view);
        terms.extend(launch.moved(&moving.view, &plan.z, &moving.z, "z"));
        terms.extend(launch.moved(&moving.view, &plan.m, &moving.m, row));
        let base = format!("{name}_x{k}_row");
        bases += &format!("let {base} = {};\n", sum(&terms));
        let stride = moving.k.last().cloned().unwrap_or_default();
        let step = step(launch, &moving.view, &stride, "along");
        let wide = is_wide(moving, &moving.k, &[&moving.z, &moving.m]);
        inputs.push(RowInput { k: *k, view: moving.view.clone(), base, step, wide });
    }
    (inputs, bases)
}

/// The coordinates of a row of the left side along its axes, counted from the last, where they are asked for.
pub(super) fn row_coordinates(launch: &mut Launch<'_>, plan: &Plan<'_>, left: &Side<'_>, row: &str) -> Vec<String> {
    let mut of = |axis: usize| {
        let (class, i) = left.axes[axis];
        let (axes, index) = match class {
            Class::Batch => (&plan.z, "z"),
            Class::Row => (&plan.m, row),
            Class::Column | Class::Summed => return "0u".to_string(),
        };
        match axes.place_of(i) {
            Some(place) if left.asked.contains(&(axis as u8)) => launch.coordinate(axes, place, index),
            _ => "0u".into(),
        }
    };
    (0..left.axes.len()).map(&mut of).collect()
}

fn finish_text(launch: &mut Launch<'_>, plan: &Plan<'_>, tile: Tile) -> Result<String, Unsupported> {
    let name = finish::function(launch, plan, 4)?;
    let (each, parts, across) = (tile.threads(), tile.parts, tile.columns / 4);
    let quads = tile.rows * across;
    let mut text = String::new();
    let stats = |row: &str| -> String {
        (0..plan.stats.len()).map(|s| format!(", row_stats[{}]", plus(row, s as u32 * tile.rows))).collect()
    };
    if parts == 1 {
        for i in 0..tile.each {
            let row = plus("ty * 4u", i / 4 * (tile.rows / tile.each) * 4 + i % 4);
            let sums: String = (0..plan.terms).map(|t| format!(", acc{t}_{i}")).collect();
            text += &format!("{name}(z, m0 + {row}, n0 + tx * 4u{sums}{});\n", stats(&row));
        }
        return Ok(text);
    }
    let own = quads / (each * parts);
    for t in 0..plan.terms {
        for i in 0..tile.each {
            let row = i / 4 * (tile.rows / tile.each) * 4 + i % 4;
            let row = grouped("ty * 4u", row);
            text += &format!("tile[part * {quads}u + {row} * {across}u + tx] = acc{t}_{i};\n");
        }
        text += "workgroupBarrier();\n";
        for e in 0..own {
            let terms: Vec<String> =
                (0..parts).map(|part| format!("tile[{}]", plus("lane", e * each * parts + part * quads))).collect();
            text += &format!("let sum{t}_{e} = {};\n", terms.join(" + "));
        }
        text += "workgroupBarrier();\n";
    }
    for e in 0..own {
        let quad = grouped("lane", e * each * parts);
        let sums: String = (0..plan.terms).map(|t| format!(", sum{t}_{e}")).collect();
        let row = format!("{quad} / {across}u");
        text += &format!("{name}(z, m0 + {row}, n0 + {quad} % {across}u * 4u{sums}{});\n", stats(&row));
    }
    Ok(text)
}
