//! Staging: how a side of a product gets from memory into workgroup memory, four elements a thread at a time.
//!
//! A side is staged along `k` or along its outer index (rows of the left, columns of the right), whichever is dense in
//! memory: `quad` is the first of four indices that way within the tile, `line` the index the other way. Outer indices
//! are clamped to the last one, whose results nobody writes; beyond the last `k` zeros are staged. Where the count of
//! `k` is known to be a multiple of what a workgroup takes in a turn, nothing is asked about its end.

use crate::dim::Dim;
use crate::prog::{DType, Instr, Reg};

use super::super::Unsupported;
use super::super::launch::{Launch, grouped, plus, sum};
use super::super::passes::{Gathered, Passes, RowInput};
use super::super::piece::{Inlet, Piece, four};
use super::super::rows::step;
use super::super::space::Axes;
use super::finish::{is_still, is_whole, is_wide};
use super::plan::{Class, Moving, Plan, Side, Stat, Sweep};

/// The tile that a side is staged into.
#[derive(Clone)]
pub(super) struct Target {
    /// Rows or columns.
    pub outer: u32,
    /// The k step.
    pub depth: u32,
    /// What all parts of the workgroup take of `k` in a turn.
    pub turn: u32,
    /// Threads that stage together.
    pub threads: u32,
    /// The index of its first vec4 in `tile`.
    pub first: String,
}

/// A reduction that a thread has a share of, and what it gathers.
pub(super) type Share = (Gathered, Piece);

/// A side on its way.
pub(super) struct Stage<'s, 'p> {
    plan: &'s Plan<'p>,
    k: &'s Axes,
    side: &'s Side<'p>,
    is_left: bool,
    /// Quads lie along `k`.
    along_k: bool,
    /// No quad straddles the end.
    whole: bool,
    /// No turn straddles the end of `k`.
    even: bool,
    target: Target,
    piece: Piece,
    stats: Vec<(&'s Stat<'p>, Vec<Share>)>,
    /// The counts of outer indices and of `k`.
    limits: (String, String),
}

impl<'s, 'p> Stage<'s, 'p> {
    pub(super) fn new(
        launch: &mut Launch<'_>,
        plan: &'s Plan<'p>,
        sweep: &'s Sweep<'p>,
        side: &'s Side<'p>,
        is_left: bool,
        target: Target,
    ) -> Result<Self, Unsupported> {
        let rigid = side.passes.typed.prog.reduces_rows() || is_left && !sweep.stats.is_empty();
        let along_k = rigid || lies_along_k(side, is_left);
        let outer = if is_left { &plan.m } else { &plan.n };
        let whole = is_whole(if along_k { &sweep.k.sizes } else { &outer.sizes });
        let even = (whole || !along_k) && sweep.k.count().is_multiple_of(i64::from(target.turn));
        // What a row has once is known only where the row is what is summed.
        let given = if side.passes.typed.prog.reduces_rows() { side.passes.given() } else { Default::default() };
        let piece = side.passes.typed.piece(launch, side.passes.typed.prog.root(), &given, "at")?;
        let mut stats = vec![];
        for stat in sweep.stats.iter().filter(|stat| is_left && stat.passes.is_single()) {
            stats.push((stat, gathered(launch, &stat.passes)?));
        }
        let outer_count = launch.size(if is_left { "m" } else { "n" }, &outer.count());
        let limits = (outer_count, launch.size(&sweep.k.name, &sweep.k.count()));
        Ok(Stage { plan, k: &sweep.k, side, is_left, along_k, whole, even, target, piece, stats, limits })
    }

    fn quads(&self) -> u32 {
        self.target.outer * self.target.depth / 4 / self.target.threads
    }

    fn outer_axes(&self) -> &'s Axes {
        if self.is_left { &self.plan.m } else { &self.plan.n }
    }

    fn outer_strides<'m>(&self, moving: &'m Moving) -> &'m [Dim] {
        if self.is_left { &moving.m } else { &moving.n }
    }

    fn is_still(&self, moving: &Moving) -> bool {
        is_still(if self.along_k { &moving.k } else { self.outer_strides(moving) })
    }

    fn is_wide(&self, moving: &Moving) -> bool {
        let outer = self.outer_strides(moving);
        let (along, other) = if self.along_k { (&moving.k[..], outer) } else { (outer, &moving.k[..]) };
        self.whole && is_wide(moving, along, &[other, &moving.z])
    }

    fn name(&self, what: &str, quad: u32) -> String {
        format!("{}_{what}{quad}", self.side.name)
    }

    /// Terms of an index without those of `k`.
    fn base(&self, launch: &mut Launch<'_>, moving: &Moving, outer: &str) -> String {
        let mut terms = launch.front(&moving.view);
        terms.extend(launch.moved(&moving.view, &self.plan.z, &moving.z, "z"));
        terms.extend(launch.moved(&moving.view, self.outer_axes(), self.outer_strides(moving), outer));
        sum(&terms)
    }

    /// An index from a base and `k`.
    fn index(&self, launch: &mut Launch<'_>, moving: &Moving, base: &str, k: &str) -> String {
        let mut terms = vec![base.to_string()];
        terms.extend(launch.moved(&moving.view, self.k, &moving.k, k));
        sum(&terms)
    }

    /// What does not change with `k`: which elements a thread stages, where they lie, and all that rows have once.
    /// `origin` is the first outer index of the tile.
    pub(super) fn before(&self, launch: &mut Launch<'_>, origin: &str) -> Result<String, Unsupported> {
        let Target { outer, depth, threads, .. } = &self.target;
        let (outer_count, _) = &self.limits;
        let mut text = String::new();
        for e in 0..self.quads() {
            let [f, o, q, r] = ["item", "outer", "quad", "line"].map(|what| self.name(what, e));
            text += &format!("let {f} = {};\n", plus("thread", e * threads));
            let across = if self.along_k { depth / 4 } else { outer / 4 };
            text += &format!("let {q} = ({f} % {across}u) * 4u;\nlet {r} = {f} / {across}u;\n");
            if self.along_k {
                text += &format!("let {o} = min({origin} + {r}, {outer_count} - 1u);\n");
            } else if self.whole {
                text += &format!("let {o} = min({origin} + {q}, {outer_count} - 4u);\n");
            } else {
                for c in 0..4 {
                    text += &format!("let {o}_{c} = min({origin} + {}, {outer_count} - 1u);\n", plus(&q, c));
                }
            }
            for (k, moving) in &self.side.inputs {
                let at = self.name(&format!("x{k}_at"), e);
                let one = self.along_k || self.is_wide(moving) || self.is_still(moving);
                if one {
                    let index = if self.along_k || self.whole { o.clone() } else { format!("{o}_0") };
                    text += &format!("let {at} = {};\n", self.base(launch, moving, &index));
                } else {
                    for c in 0..4 {
                        let index = if self.whole { grouped(&o, c) } else { format!("{o}_{c}") };
                        text += &format!("let {at}_{c} = {};\n", self.base(launch, moving, &index));
                    }
                }
                let x = self.name(&format!("x{k}_"), e);
                if is_still(&moving.k) {
                    text += &format!("let {x} = {};\n", self.load(launch, moving, *k, e, &[]));
                } else if self.is_still(moving) {
                    text += &format!("var {x}: {};\n", super::super::launch::value_type(moving.view.dtype));
                } else {
                    text += &format!("var {x}: vec4<{}>;\n", super::super::launch::value_type(moving.view.dtype));
                }
            }
            text += &self.row_values(launch, e)?;
            for (_, gathered) in &self.stats {
                for (own, _) in gathered {
                    text += &format!("var {}_{e} = {};\n", own.part(), own.first());
                }
            }
        }
        Ok(text)
    }

    /// What a program with row reductions needs of each row: its reductions are in `row_values`.
    fn row_values(&self, launch: &mut Launch<'_>, e: u32) -> Result<String, Unsupported> {
        let passes = &self.side.passes;
        let mut text = String::new();
        for (number, reg) in reductions(passes).iter().enumerate() {
            let first = number as u32 * self.target.outer;
            let r = self.name("line", e);
            text += &format!("let {}_{e} = row_values[{}];\n", passes.name(*reg), plus(&r, first));
        }
        let inputs = self.row_inputs(launch, e);
        let coordinates = self.coordinates(launch, &self.name("outer", e));
        let coordinate = |axis: u8| coordinates[usize::from(axis)].clone();
        if passes.typed.prog.reduces_rows() {
            text += &passes.scalars(launch, 0..passes.levels(), &inputs, &coordinate, &format!("_{e}"))?;
        }
        for (stat, _) in &self.stats {
            text += &stat.passes.scalars(launch, 0..1, &inputs, &coordinate, &format!("_{e}"))?;
        }
        Ok(text)
    }

    /// Outer and batch coordinates along the side's axes, counted from the last, where they are asked for.
    fn coordinates(&self, launch: &mut Launch<'_>, outer: &str) -> Vec<String> {
        let mut of = |axis: u8| match self.side.asked.contains(&axis) {
            true => self.coordinate(launch, axis, outer, "0u"),
            false => "0u".to_string(),
        };
        (0..self.side.axes.len() as u8).map(&mut of).collect()
    }

    fn coordinate(&self, launch: &mut Launch<'_>, axis: u8, outer: &str, k: &str) -> String {
        let (class, i) = self.side.axes[usize::from(axis)];
        let (axes, index) = match class {
            Class::Batch => (&self.plan.z, "z"),
            Class::Row | Class::Column => (self.outer_axes(), outer),
            Class::Summed => (self.k, k),
        };
        axes.place_of(i).map_or_else(|| "0u".into(), |place| launch.coordinate(axes, place, index))
    }

    fn row_inputs(&self, launch: &mut Launch<'_>, e: u32) -> Vec<RowInput> {
        let input = |(k, moving): &(u8, Moving)| RowInput {
            k: *k,
            view: moving.view.clone(),
            base: self.name(&format!("x{k}_at"), e),
            step: step(launch, &moving.view, moving.k.last().unwrap_or(&Dim::from(0)), "along"),
            wide: false,
        };
        self.side.inputs.iter().map(input).collect()
    }

    /// The value of an input for quad `e` at `k` (one index, or four along it).
    fn load(&self, launch: &mut Launch<'_>, moving: &Moving, k: u8, e: u32, at_k: &[String]) -> String {
        let at = self.name(&format!("x{k}_at"), e);
        let of = |c: usize| at_k.get(c).or(at_k.first()).cloned().unwrap_or_default();
        if self.is_still(moving) {
            let index = self.index(launch, moving, &at, &of(0));
            return launch.load(&moving.view, &index);
        }
        if self.is_wide(moving) {
            let index = self.index(launch, moving, &at, &of(0));
            return launch.load4(&moving.view, &index);
        }
        four(moving.view.dtype, |c| {
            let base = if self.along_k { at.clone() } else { format!("{at}_{c}") };
            let index = self.index(launch, moving, &base, &of(c));
            launch.load(&moving.view, &index)
        })
    }

    /// Loads the elements of the tile at `k0` into registers.
    pub(super) fn fetch(&self, launch: &mut Launch<'_>) -> String {
        let count = &self.limits.1;
        let mut text = String::new();
        for e in 0..self.quads() {
            let [q, r, k] = ["quad", "line", "k"].map(|what| self.name(what, e));
            let moving: Vec<&(u8, Moving)> =
                self.side.inputs.iter().filter(|(_, moving)| !is_still(&moving.k)).collect();
            if moving.is_empty() {
                continue;
            }
            let at_k: Vec<String> = if !self.along_k {
                text += &match self.even {
                    true => format!("let {k} = k0 + {r};\n"),
                    false => format!("let {k} = min(k0 + {r}, {count} - 1u);\n"),
                };
                vec![k]
            } else if self.whole {
                text += &match self.even {
                    true => format!("let {k} = k0 + {q};\n"),
                    false => format!("let {k} = min(k0 + {q}, {count} - 4u);\n"),
                };
                (0..4).map(|c| grouped(&k, c)).collect()
            } else {
                for c in 0..4 {
                    text += &format!("let {k}_{c} = min(k0 + {}, {count} - 1u);\n", plus(&q, c));
                }
                (0..4).map(|c| format!("{k}_{c}")).collect()
            };
            for (number, moving) in moving {
                let value = self.load(launch, moving, *number, e, &at_k);
                text += &format!("{} = {value};\n", self.name(&format!("x{number}_"), e));
            }
        }
        text
    }

    /// Applies the program to what was fetched and leaves it in the tile; gathers statistics.
    pub(super) fn leave(&self, launch: &mut Launch<'_>) -> String {
        let Target { outer, first, .. } = &self.target;
        let (count, width) = (&self.limits.1, outer / 4 + 1);
        let mut text = String::new();
        for e in 0..self.quads() {
            let [q, r] = ["quad", "line"].map(|what| self.name(what, e));
            let k_of = |c: usize| match self.along_k {
                true => plus(&format!("k0 + {q}"), c as u32),
                false => format!("k0 + {r}"),
            };
            let alone = self.piece.is_identity().then(|| self.piece.inlets.first().copied()).flatten();
            let vector = match alone {
                Some(Inlet::In(k)) if self.is_vector(k) => self.name(&format!("x{k}_"), e),
                _ => four(DType::F32, |c| self.call(launch, &self.piece, e, c, &k_of(c))),
            };
            let masked = if self.even {
                vector
            } else if self.along_k && !self.whole {
                text += &format!("let {} = {vector};\n", self.name("all", e));
                let all = self.name("all", e);
                four(DType::F32, |c| format!("select(0.0f, {all}[{c}], {} < {count})", k_of(c)))
            } else {
                format!("select(vec4<f32>(), {vector}, {} < {count})", k_of(0))
            };
            let v = self.name("v", e);
            text += &format!("let {v} = {masked};\n");
            if self.along_k {
                for c in 0..4 {
                    let line = format!("{} * {width}u", grouped(&q, c));
                    text += &format!("tile[{first} + {line} + {r} / 4u][{r} % 4u] = {v}[{c}];\n");
                }
            } else {
                text += &format!("tile[{first} + {r} * {width}u + {q} / 4u] = {v};\n");
            }
            for (_, gathered) in &self.stats {
                for (own, piece) in gathered {
                    let part = format!("{}_{e}", own.part());
                    for c in 0..4 {
                        let value = self.call(launch, piece, e, c, &k_of(c));
                        let joined = own.join(&part, &value);
                        text += &match self.even {
                            true => format!("{part} = {joined};\n"),
                            false => format!("if ({} < {count}) {{\n    {part} = {joined};\n}}\n", k_of(c)),
                        };
                    }
                }
            }
        }
        text
    }

    fn is_vector(&self, k: u8) -> bool {
        self.side.inputs.iter().any(|(known, moving)| *known == k && !self.is_still(moving))
    }

    fn call(&self, launch: &mut Launch<'_>, piece: &Piece, e: u32, c: usize, k: &str) -> String {
        let o = self.name("outer", e);
        let outer = match (self.along_k, self.whole) {
            (true, _) => o,
            (false, true) => grouped(&o, c as u32),
            (false, false) => format!("{o}_{c}"),
        };
        piece.call(|inlet| match inlet {
            Inlet::In(k) if self.is_vector(*k) => format!("{}[{c}]", self.name(&format!("x{k}_"), e)),
            Inlet::In(k) => self.name(&format!("x{k}_"), e),
            Inlet::Coordinate(axis) => self.coordinate(launch, *axis, &outer, &format!("({k})")),
            Inlet::Given(reg) => format!("{}_r{reg}_{e}", piece.owner),
        })
    }

    /// After the last step: every statistic's reductions, gathered from the threads of each row and the parts of the
    /// workgroup, then its value in `row_stats`. Threads below the tile's rows each take one row. `origin` is the
    /// first row of the tile. Barriers before and after the values.
    pub(super) fn conclude(
        &self,
        launch: &mut Launch<'_>,
        parts: u32,
        origin: &str,
        slot: impl Fn(usize) -> u32,
    ) -> Result<String, Unsupported> {
        let mut text = String::new();
        let Target { outer, depth, threads, .. } = &self.target;
        let (each, across) = (outer * depth / 4, depth / 4);
        let number: usize = self.stats.iter().map(|(_, gathered)| gathered.len()).sum();
        if number == 0 {
            return Ok(text);
        }
        launch.shared("parts", "f32", number as u32 * parts * each);
        let mut region = 0;
        let (mut collect, mut values) = (String::new(), String::new());
        for (stat, gathered) in &self.stats {
            for (own, _) in gathered {
                let first = region * parts * each;
                region += 1;
                for e in 0..self.quads() {
                    text += &format!(
                        "parts[{}] = {}_{e};\n",
                        plus(&format!("part * {each}u + thread"), first + e * threads),
                        own.part()
                    );
                }
                let name = &own.name;
                collect += &format!(
                    "    var {name} = {};\n    for (var group_part = 0u; group_part < {parts}u; group_part++) {{\n        for (var q = 0u; q < {across}u; q++) {{\n            {name} = {};\n        }}\n    }}\n",
                    own.first(),
                    own.join(
                        name,
                        &format!("parts[{}]", plus(&format!("group_part * {each}u + lane * {across}u + q"), first))
                    ),
                );
            }
            let outer_index = "row_of_lane";
            let mut inputs = vec![];
            for (k, moving) in &self.side.inputs {
                values += &format!(
                    "    let {}_x{k}_at = {};\n",
                    stat.passes.typed.name,
                    self.base(launch, moving, outer_index)
                );
                inputs.push(RowInput {
                    k: *k,
                    view: moving.view.clone(),
                    base: format!("{}_x{k}_at", stat.passes.typed.name),
                    step: None,
                    wide: false,
                });
            }
            let coordinates = self.coordinates(launch, outer_index);
            let coordinate = |axis: u8| coordinates[usize::from(axis)].clone();
            let scalars = stat.passes.scalars(launch, 0..stat.passes.levels(), &inputs, &coordinate, "")?;
            values += &super::super::passes::indented(&scalars);
            let root = stat.passes.name(stat.passes.typed.prog.root());
            values += &format!("    row_stats[{}] = {root};\n", plus("lane", slot(stat.term) * outer));
        }
        text += "workgroupBarrier();\n";
        text +=
            &format!("if (lane < {outer}u) {{\n    let row_of_lane = min({origin} + lane, {} - 1u);\n", self.limits.0);
        Ok(text + &collect + &values + "}\nworkgroupBarrier();\n")
    }
}

/// The reductions of a program that hold for its rows.
pub(super) fn reductions(passes: &Passes<'_>) -> Vec<Reg> {
    passes.passes.iter().flat_map(|pass| pass.reductions.iter().copied()).collect()
}

/// What a statistic gathers in its only pass.
pub(super) fn gathered(launch: &mut Launch<'_>, passes: &Passes<'_>) -> Result<Vec<Share>, Unsupported> {
    let mut all = vec![];
    for reg in reductions(passes) {
        let (Instr::RowSum(operand) | Instr::RowMax(operand)) = passes.typed.instr(reg) else { continue };
        let piece = passes.typed.piece(launch, *operand, &passes.given(), &format!("at{reg}"))?;
        let sums = matches!(passes.typed.instr(reg), Instr::RowSum(_));
        let own = Gathered { name: passes.name(reg), sums, dtype: passes.typed.dtype(reg) };
        if own.dtype != DType::F32 {
            return Err(Unsupported::new("a statistic over other values than floats"));
        }
        all.push((own, piece));
    }
    Ok(all)
}

/// Which way a side is dense; operands that move both ways decide, `k` wins a draw.
pub(super) fn lies_along_k(side: &Side<'_>, is_left: bool) -> bool {
    let is_dense = |strides: &[Dim]| strides.last().is_some_and(Dim::is_one);
    let outer = |moving: &Moving| if is_left { moving.m.clone() } else { moving.n.clone() };
    let both = |moving: &&Moving| !is_still(&moving.k) && !is_still(&outer(moving));
    let all: Vec<&Moving> = side.inputs.iter().map(|(_, moving)| moving).collect();
    let deciding: Vec<&&Moving> = all.iter().filter(|moving| both(moving)).collect();
    let (along_k, along_outer): (usize, usize) = deciding.iter().fold((0, 0), |(k, o), moving| {
        (k + usize::from(is_dense(&moving.k)), o + usize::from(is_dense(&outer(moving))))
    });
    along_outer <= along_k
}
