//! One row times a matrix: lanes along the dense axis of the matrix, sums through workgroup memory.

use crate::dim::Symbols;
use crate::prog::DType;

use super::super::Unsupported;
use super::super::launch::{Body, Launch, sum};
use super::super::passes::{Gathered, Lanes, indented, reduce};
use super::super::piece::{Inlet, Piece, four};
use super::super::text::fill;
use super::finish::{self, is_still, is_whole, is_wide};
use super::plan::{Class, Moving, Plan, Side, Sweep};
use super::stage::{gathered, lies_along_k};
use super::table::Vector;
use super::tile::{row_coordinates, row_inputs};

pub(super) fn body(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    form: Vector,
    symbols: &mut Symbols,
) -> Result<Body, Unsupported> {
    let along_k = plan.sweeps.iter().flat_map(|sweep| &sweep.rights).all(|(_, side)| lies_along_k(side, false));
    let Vector { threads, lanes } = form;
    let count = if along_k { lanes } else { lanes / 4 };
    let columns = threads / count;
    let (column, thread) = match along_k {
        true => (format!("lane / {count}u"), format!("lane % {count}u")),
        false => (format!("lane % {columns}u"), format!("lane / {columns}u")),
    };
    let mut sweeps = String::new();
    for sweep in &plan.sweeps {
        sweeps += &sweep_text(launch, plan, sweep, count, threads)?;
    }
    let name = finish::function(launch, plan, 1)?;
    let sums: String = (0..plan.terms).map(|t| format!(", sum{t}")).collect();
    let stats: String = plan.stats.iter().map(|t| format!(", stat{t}")).collect();
    let column_tiles = symbols.ceil_div(&plan.n.count(), i64::from(columns));
    let code = fill(
        include_str!("vector.wgsl"),
        &[
            ("columns", columns.to_string()),
            ("count", count.to_string()),
            ("column_tiles", launch.size("column_tiles", &column_tiles)),
            ("column", column),
            ("thread", thread),
            ("slot", format!("column * {count}u")),
            ("n", launch.size("n", &plan.n.count())),
            ("sweeps", sweeps),
            ("finish", format!("{name}(z, 0u, n{sums}{stats});")),
        ],
    );
    // No row, no workgroup: here the row count is at most 1.
    let groups = &(&plan.z.count() * &plan.m.count()) * &column_tiles;
    Ok(Body { code, threads, groups })
}

/// A side while its elements are loaded, at `k` (and the three after it).
struct Loading<'s, 'p> {
    plan: &'s Plan<'p>,
    sweep: &'s Sweep<'p>,
    side: &'s Side<'p>,
    is_left: bool,
    wide: bool,
}

fn sweep_text(
    launch: &mut Launch<'_>,
    plan: &Plan<'_>,
    sweep: &Sweep<'_>,
    count: u32,
    threads: u32,
) -> Result<String, Unsupported> {
    let sides = || std::iter::once(&sweep.left).chain(sweep.rights.iter().map(|(_, side)| side));
    let fits = |moving: &Moving| is_still(&moving.k) || is_wide(moving, &moving.k, &[&moving.z, &moving.n]);
    let wide = is_whole(&sweep.k.sizes) && sides().all(|side| side.inputs.iter().all(|(_, moving)| fits(moving)));
    let limit = launch.size(&sweep.k.name, &sweep.k.count());
    let left_prog = &sweep.left.passes;
    let mut text = String::new();
    let (inputs, bases) = row_inputs(launch, plan, &sweep.left, &sweep.left.name, "0u");
    text += &bases;
    let coordinates = row_coordinates(launch, plan, &sweep.left, "0u");
    let coordinate = |axis: u8| coordinates[usize::from(axis)].clone();
    if left_prog.typed.prog.reduces_rows() {
        // All threads walk over the one row together.
        let lanes = Lanes { count: threads, lane: "lane".into(), first: "0u".into(), threads };
        text += &left_prog.run(launch, &lanes, &inputs, &coordinate)?;
    }
    let (mut inside, mut totals, mut before) = (String::new(), vec![], String::new());
    let kind = if wide { "vec4<f32>" } else { "f32" };
    let given = if left_prog.typed.prog.reduces_rows() { left_prog.given() } else { Default::default() };
    let left = Loading { plan, sweep, side: &sweep.left, is_left: true, wide };
    let piece = left_prog.typed.piece(launch, left_prog.typed.prog.root(), &given, "at")?;
    before += &left.before(launch);
    inside += &left.load(launch);
    inside += &format!("let left = {};\n", left.value(launch, &piece));
    for (t, side) in &sweep.rights {
        let right = Loading { plan, sweep, side, is_left: false, wide };
        let prog = &side.passes.typed;
        let piece = prog.piece(launch, prog.prog.root(), &Default::default(), "at")?;
        before += &right.before(launch);
        inside += &right.load(launch);
        before += &format!("var acc{t} = {kind}();\n");
        inside += &format!("acc{t} = fma(left, {}, acc{t});\n", right.value(launch, &piece));
        totals.push((Gathered { name: format!("sum{t}"), sums: true, dtype: DType::F32 }, format!("acc{t}")));
    }
    let mut concluded = String::new();
    for stat in &sweep.stats {
        if stat.passes.is_single() {
            before += &stat.passes.scalars(launch, 0..1, &inputs, &coordinate, "")?;
            for (own, piece) in gathered(launch, &stat.passes)? {
                before += &format!("var {} = {};\n", own.part(), own.first());
                for c in 0..if wide { 4 } else { 1 } {
                    let value = left.component(launch, &piece, c);
                    inside += &format!("{} = {};\n", own.part(), own.join(&own.part(), &value));
                }
                totals.push((own, String::new()));
            }
            concluded += &stat.passes.scalars(launch, 1..stat.passes.levels(), &inputs, &coordinate, "")?;
        } else {
            let lanes = Lanes { count: threads, lane: "lane".into(), first: "0u".into(), threads };
            text += &stat.passes.run(launch, &lanes, &inputs, &coordinate)?;
        }
        let root = stat.passes.name(stat.passes.typed.prog.root());
        concluded += &format!("let stat{} = {root};\n", stat.term);
    }
    let (first, step) = if wide { ("thread * 4u", count * 4) } else { ("thread", count) };
    text += &before;
    text += &format!("for (var k = {first}; k < {limit}; k += {step}u) {{\n{}}}\n", indented(&inside));
    for (own, acc) in totals.iter().filter(|(_, acc)| !acc.is_empty()) {
        let share = if wide { format!("({acc}.x + {acc}.y) + ({acc}.z + {acc}.w)") } else { acc.clone() };
        text += &format!("var {} = {share};\n", own.part());
    }
    let lanes = Lanes { count, lane: "thread".into(), first: "slot".into(), threads };
    let gathered: Vec<Gathered> = totals.into_iter().map(|(own, _)| own).collect();
    text += &reduce(launch, &lanes, &gathered);
    Ok(text + &concluded)
}

impl Loading<'_, '_> {
    fn variable(&self, k: u8) -> String {
        format!("{}_x{k}", self.side.name)
    }

    /// Where each input lies for this thread's column, and what does not change with `k`.
    fn before(&self, launch: &mut Launch<'_>) -> String {
        let mut text = String::new();
        for (k, moving) in &self.side.inputs {
            let x = self.variable(*k);
            let base = format!("{x}_row");
            if !self.is_left {
                let terms = finish::at(launch, self.plan, moving, "0u", "n");
                text += &format!("let {base} = {};\n", sum(&terms));
            }
            if is_still(&moving.k) {
                text += &format!("let {x} = {};\n", launch.load(&moving.view, &base));
            }
        }
        text
    }

    fn load(&self, launch: &mut Launch<'_>) -> String {
        let mut text = String::new();
        for (k, moving) in self.side.inputs.iter().filter(|(_, moving)| !is_still(&moving.k)) {
            let x = self.variable(*k);
            let mut terms = vec![format!("{x}_row")];
            terms.extend(launch.moved(&moving.view, &self.sweep.k, &moving.k, "k"));
            let at = sum(&terms);
            let value = if self.wide { launch.load4(&moving.view, &at) } else { launch.load(&moving.view, &at) };
            text += &format!("let {x} = {value};\n");
        }
        text
    }

    fn is_vector(&self, k: u8) -> bool {
        self.wide && self.side.inputs.iter().any(|(known, moving)| *known == k && !is_still(&moving.k))
    }

    /// One component of a piece.
    fn component(&self, launch: &mut Launch<'_>, piece: &Piece, c: usize) -> String {
        piece.call(|inlet| match inlet {
            Inlet::In(k) if self.is_vector(*k) => format!("{}[{c}]", self.variable(*k)),
            Inlet::In(k) => self.variable(*k),
            Inlet::Given(reg) => format!("{}_r{reg}", piece.owner),
            Inlet::Coordinate(axis) => {
                let (class, i) = self.side.axes[usize::from(*axis)];
                let k = if c == 0 { "k".to_string() } else { format!("(k + {c}u)") };
                let (axes, index) = match class {
                    Class::Batch => (&self.plan.z, "z"),
                    Class::Row => (&self.plan.m, "0u"),
                    Class::Column => (&self.plan.n, "n"),
                    Class::Summed => (&self.sweep.k, k.as_str()),
                };
                axes.place_of(i).map_or_else(|| "0u".into(), |place| launch.coordinate(axes, place, index))
            }
        })
    }

    fn value(&self, launch: &mut Launch<'_>, piece: &Piece) -> String {
        let alone = piece.is_identity().then(|| piece.inlets.first().copied()).flatten();
        match alone {
            _ if !self.wide => self.component(launch, piece, 0),
            Some(Inlet::In(k)) if self.is_vector(k) => self.variable(k),
            _ => four(DType::F32, |c| self.component(launch, piece, c)),
        }
    }
}
