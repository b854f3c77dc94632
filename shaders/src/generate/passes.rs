//! Row programs cut at their reductions: passes over a row, and what is one value per row between them.
//!
//! A pass reads the row once and gathers every reduction whose operand is known by then. Values of the row are read
//! or computed again in each pass; values of which a row has one are computed once, by every lane of the row.

use std::collections::BTreeSet;

use crate::dim::Dim;
use crate::prog::{Const, DType, Instr, Reg};

use super::Unsupported;
use super::launch::{Launch, View, memory_type, plus, sum};
use super::piece::{Inlet, Typed};

/// One walk over a row.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    /// The length of the row.
    pub length: Dim,
    /// What is gathered: registers of reductions.
    pub reductions: Vec<Reg>,
}

/// A program in passes.
pub(super) struct Passes<'p> {
    /// The program.
    pub typed: Typed<'p>,
    /// In order; reductions of one pass may be gathered together.
    pub passes: Vec<Pass>,
    /// Registers of which a row has one value, without constants and reductions, in order, each with the number of
    /// passes that it needs.
    scalars: Vec<(Reg, usize)>,
    level: Vec<usize>,
}

/// Where the inputs of a row lie.
pub(super) struct RowInput {
    /// The input.
    pub k: u8,
    /// Where it lies.
    pub view: View,
    /// The index of its first element of this row.
    pub base: String,
    /// The distance between elements of the row: none if the row has one, an empty text if they are neighbours.
    pub step: Option<String>,
    /// Whether fours of neighbours start at multiples of 16 bytes.
    pub wide: bool,
}

/// How many lanes work on a row, and how they find each other.
pub(super) struct Lanes {
    /// Lanes of a row; a power of two.
    pub count: u32,
    /// The lane within its row.
    pub lane: String,
    /// The index in workgroup memory of what lane 0 of this row leaves.
    pub first: String,
    /// Threads of the workgroup.
    pub threads: u32,
}

impl<'p> Passes<'p> {
    pub(super) fn new(typed: Typed<'p>) -> Passes<'p> {
        let code = &typed.prog.code;
        let mut needed = BTreeSet::new();
        let mut todo = vec![typed.prog.root()];
        while let Some(reg) = todo.pop() {
            if needed.insert(reg) {
                todo.extend(typed.needs(reg));
            }
        }
        let (mut level, mut passes, mut scalars) = (vec![0; code.len()], Vec::<Vec<Pass>>::new(), vec![]);
        for &reg in &needed {
            let own = usize::from(reg);
            level[own] = typed.needs(reg).iter().map(|r| level[usize::from(*r)]).max().unwrap_or(0);
            match typed.instr(reg) {
                Instr::RowSum(a) | Instr::RowMax(a) if !typed.is_row_scalar(*a) => {
                    let length = typed.shapes[usize::from(*a)].last().cloned().unwrap_or_default();
                    passes.resize(passes.len().max(level[own] + 1), vec![]);
                    let known = passes[level[own]].iter().position(|pass| pass.length == length);
                    match known {
                        Some(known) => passes[level[own]][known].reductions.push(reg),
                        None => passes[level[own]].push(Pass { length, reductions: vec![reg] }),
                    }
                    level[own] += 1;
                }
                Instr::Const(_) => {}
                _ if typed.is_row_scalar(reg) => scalars.push((reg, level[own])),
                _ => {}
            }
        }
        // Levels with rows of different lengths take a pass for each.
        let passes = passes.into_iter().flatten().collect();
        Passes { typed, passes, scalars, level }
    }

    /// The registers of which a row has one value.
    pub(super) fn given(&self) -> BTreeSet<Reg> {
        let reductions = self.passes.iter().flat_map(|pass| &pass.reductions).copied();
        self.scalars.iter().map(|(reg, _)| *reg).chain(reductions).collect()
    }

    /// Whether one pass gathers everything.
    pub(super) fn is_single(&self) -> bool {
        self.passes.len() == 1
    }

    /// The name of a register's value.
    pub(super) fn name(&self, reg: Reg) -> String {
        format!("{}_r{reg}", self.typed.name)
    }

    /// The inputs that the passes (and, with `root`, the result) read element by element.
    pub(super) fn row_inputs(&self) -> BTreeSet<u8> {
        self.typed.inputs_read()
    }

    /// `let` statements of the row's values that `passes` passes allow and `done` do not.
    pub(super) fn scalars(
        &self,
        launch: &mut Launch<'_>,
        levels: std::ops::Range<usize>,
        inputs: &[RowInput],
        coordinate: &dyn Fn(u8) -> String,
        suffix: &str,
    ) -> Result<String, Unsupported> {
        let mut names: Vec<String> = vec![String::new(); self.typed.prog.code.len()];
        for reg in 0..names.len() as Reg {
            names[usize::from(reg)] = match self.typed.instr(reg) {
                Instr::Const(value) => self.typed.constant(reg, *value)?,
                _ => self.name(reg) + suffix,
            };
        }
        let mut lines = String::new();
        for (reg, level) in self.scalars.iter().filter(|(_, level)| levels.contains(level)) {
            debug_assert!(self.level[usize::from(*reg)] == *level, "levels are what scalars are sorted by");
            let value = match self.typed.instr(*reg) {
                Instr::In(k) => {
                    let input = inputs.iter().find(|input| input.k == *k);
                    let input = input.ok_or_else(|| Unsupported::new("an input that is not read"))?;
                    launch.load(&input.view, &input.base)
                }
                Instr::Index(axis, of) => {
                    let shape = &self.typed.shapes[usize::from(*of)];
                    let own = shape.len().checked_sub(1 + usize::from(*axis));
                    if own.is_none_or(|own| shape[own].is_one()) { "0u".into() } else { coordinate(*axis) }
                }
                other => self.typed.expression(launch, *reg, other, &names),
            };
            lines += &format!("let {} = {value};\n", names[usize::from(*reg)]);
        }
        Ok(lines)
    }

    /// The number of levels: every scalar's is below.
    pub(super) fn levels(&self) -> usize {
        self.level.iter().max().map_or(1, |level| level + 1)
    }

    /// All passes over one row, by the lanes of the row together; afterwards every lane has the row's values. All
    /// threads of the workgroup must come here, as there are barriers.
    pub(super) fn run(
        &self,
        launch: &mut Launch<'_>,
        lanes: &Lanes,
        inputs: &[RowInput],
        coordinate: &dyn Fn(u8) -> String,
    ) -> Result<String, Unsupported> {
        let mut text = String::new();
        let mut level = 0;
        text += &self.scalars(launch, 0..1, inputs, coordinate, "")?;
        for (number, pass) in self.passes.iter().enumerate() {
            let own = pass.reductions.iter().map(|reg| self.level[usize::from(*reg)]).max().unwrap_or(1);
            if own - 1 > level {
                text += &self.scalars(launch, level + 1..own, inputs, coordinate, "")?;
                level = own - 1;
            }
            let (gathered, walk) = self.walk(launch, number, pass, lanes, inputs, coordinate)?;
            text += &walk;
            text += &reduce(launch, lanes, &gathered);
        }
        text += &self.scalars(launch, level + 1..self.levels(), inputs, coordinate, "")?;
        Ok(text)
    }

    fn walk(
        &self,
        launch: &mut Launch<'_>,
        number: usize,
        pass: &Pass,
        lanes: &Lanes,
        inputs: &[RowInput],
        coordinate: &dyn Fn(u8) -> String,
    ) -> Result<(Vec<Gathered>, String), Unsupported> {
        let length = launch.size(&format!("{}_length{number}", self.typed.name), &pass.length);
        let given = self.given();
        let mut pieces = vec![];
        for reg in &pass.reductions {
            let (Instr::RowSum(operand) | Instr::RowMax(operand)) = self.typed.instr(*reg) else { continue };
            let piece = self.typed.piece(launch, *operand, &given, &format!("at{reg}"))?;
            let sums = matches!(self.typed.instr(*reg), Instr::RowSum(_));
            pieces.push((Gathered { name: self.name(*reg), sums, dtype: self.typed.dtype(*reg) }, piece));
        }
        let read: BTreeSet<u8> = pieces.iter().flat_map(|(_, piece)| piece.inputs()).collect();
        let wide = fours(&pass.length, &read, inputs);
        let (mut before, mut flush, mut inside) = (String::new(), String::new(), String::new());
        for k in read {
            inside += &self.load(launch, inputs, k, "j", wide)?;
        }
        for (own, piece) in &pieces {
            let part = own.part();
            before += &format!("var {part} = {};\n", own.first());
            // Sums of long rows stay accurate when short stretches are added up first.
            let target = if own.sums && own.dtype == DType::F32 { format!("{part}_near") } else { part.clone() };
            if target != part {
                before += &format!("var {target} = 0.0f;\n");
                flush += &format!("{part} += {target};\n{target} = 0.0f;\n");
            }
            let value = |c: usize| piece.call(|inlet| self.inlet(inlet, "j", wide.then_some(c), coordinate));
            let value = match wide {
                true => own.join(&format!("({})", own.join(&value(0), &value(1))), &own.join(&value(2), &value(3))),
                false => value(0),
            };
            inside += &format!("{target} = {};\n", own.join(&target, &format!("({value})")));
        }
        let by = if wide { 4 } else { 1 };
        let first = if wide { format!("{} * 4u", lanes.lane) } else { lanes.lane.clone() };
        let (step, stretch) = (lanes.count * by, lanes.count * by * 32);
        let walk = match flush.is_empty() {
            true => format!("for (var j = {first}; j < {length}; j += {step}u) {{\n{}}}\n", indented(&inside)),
            false => format!(
                "for (var far = 0u; far < {length}; far += {stretch}u) {{\n    for (var j = far + {first}; j < min({length}, far + {stretch}u); j += {step}u) {{\n{}    }}\n{}}}\n",
                indented(&indented(&inside)),
                indented(&flush),
            ),
        };
        Ok((pieces.into_iter().map(|(own, _)| own).collect(), before + &walk))
    }

    /// The `let` of an input's element j, or of the four from there on.
    pub(super) fn load(
        &self,
        launch: &mut Launch<'_>,
        inputs: &[RowInput],
        k: u8,
        j: &str,
        wide: bool,
    ) -> Result<String, Unsupported> {
        let input = inputs.iter().find(|input| input.k == k);
        let input = input.ok_or_else(|| Unsupported::new("an input that is not read"))?;
        let at = match &input.step {
            None => input.base.clone(),
            Some(step) => format!("{} + {j}{step}", input.base),
        };
        let value = if wide { launch.load4(&input.view, &at) } else { launch.load(&input.view, &at) };
        Ok(format!("let x{k} = {value};\n"))
    }

    /// What a piece takes at element `j` of the row, or at a component of the four from there on.
    pub(super) fn inlet(
        &self,
        inlet: &Inlet,
        j: &str,
        component: Option<usize>,
        coordinate: &dyn Fn(u8) -> String,
    ) -> String {
        match (inlet, component) {
            (Inlet::In(k), None) => format!("x{k}"),
            (Inlet::In(k), Some(c)) => format!("x{k}[{c}]"),
            (Inlet::Coordinate(0), None) => j.to_string(),
            (Inlet::Coordinate(0), Some(c)) => plus(j, c as u32),
            (Inlet::Coordinate(axis), _) => coordinate(*axis),
            (Inlet::Given(reg), _) => self.name(*reg),
        }
    }
}

/// Whether a row of this length may be read in fours: all of these inputs then are.
pub(super) fn fours(length: &Dim, read: &BTreeSet<u8>, inputs: &[RowInput]) -> bool {
    let is_wide = |k: &u8| inputs.iter().any(|input| input.k == *k && input.wide);
    length.is_multiple_of(4) && !read.is_empty() && read.iter().all(is_wide)
}

/// A reduction in the making: `part` is a lane's share, `name` becomes the whole.
#[derive(Clone)]
pub(super) struct Gathered {
    /// The name of the result.
    pub name: String,
    /// A sum, else a maximum.
    pub sums: bool,
    /// The type.
    pub dtype: DType,
}

impl Gathered {
    /// The variable of a lane's share.
    pub(super) fn part(&self) -> String {
        format!("{}_part", self.name)
    }

    /// What nothing reduces to.
    pub(super) fn first(&self) -> String {
        let first = match (self.sums, self.dtype) {
            (true, DType::F32) => Const::float(0.0),
            (false, DType::F32) => Const::float(f64::from(f32::MIN)),
            (true, DType::I32) => Const::Int(0),
            (false, DType::I32) => Const::Int(i32::MIN),
            (_, DType::U32 | DType::Bool) => Const::Uint(0),
        };
        super::piece::literal(first).unwrap_or_default()
    }

    /// Two shares as one.
    pub(super) fn join(&self, a: &str, b: &str) -> String {
        if self.sums { format!("{a} + {b}") } else { format!("max({a}, {b})") }
    }
}

/// Reduces the lanes' shares through workgroup memory, in a fixed order: each lane leaves its share; where a row has
/// more than 32 lanes, the first of them add up stretches; then every lane adds up what is left. Three barriers or two.
pub(super) fn reduce(launch: &mut Launch<'_>, lanes: &Lanes, gathered: &[Gathered]) -> String {
    let Lanes { count, lane, first, threads } = lanes;
    let mut counts = [0u32; 3];
    let (mut leave, mut middle, mut collect) = (String::new(), String::new(), String::new());
    let few = if *count > 32 { 16 } else { *count };
    for own in gathered {
        let kind = match own.dtype {
            DType::F32 => 0,
            DType::U32 | DType::Bool => 1,
            DType::I32 => 2,
        };
        let array = ["parts", "parts_u32", "parts_i32"][kind];
        let offset = counts[kind] * threads;
        counts[kind] += 1;
        launch.shared(array, memory_type(own.dtype), counts[kind] * threads);
        let at = plus(first, offset);
        let own_at = if at == "0u" { lane.clone() } else { format!("{at} + {lane}") };
        let (name, part) = (&own.name, own.part());
        leave += &format!("{array}[{own_at}] = {part};\n");
        if *count > 32 {
            middle += &format!(
                "    for (var other = {lane} + {few}u; other < {count}u; other += {few}u) {{\n        {part} = {};\n    }}\n    {array}[{own_at}] = {part};\n",
                own.join(&part, &format!("{array}[{at} + other]")),
            );
        }
        collect += &format!(
            "var {name} = {array}[{at}];\nfor (var other = 1u; other < {few}u; other++) {{\n    {name} = {};\n}}\n",
            own.join(name, &format!("{array}[{at} + other]")),
        );
    }
    let mut text = leave + "workgroupBarrier();\n";
    if *count > 32 {
        text += &format!("if ({lane} < {few}u) {{\n{middle}}}\nworkgroupBarrier();\n");
    }
    // The arrays are free again after the last barrier.
    text + &collect + "workgroupBarrier();\n"
}

/// Lines moved in by one level.
pub(super) fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

/// The sum of a row's base terms as a variable of its own.
pub(super) fn base(name: &str, terms: &[String]) -> String {
    format!("let {name} = {};\n", sum(terms))
}
