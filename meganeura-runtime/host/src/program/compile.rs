//! Row programs at known layouts, as steps over tiles of rows.
//!
//! Every instruction has one value in all, one a row, or one an element of a row (each with its own row length). Rows
//! that fit into the first-level cache are taken whole, several at a time if they are short; longer rows are walked in
//! chunks, once for each reduction that waits for others. What a later walk needs is kept if it is dear and computed
//! again if it is cheap.

use meganeura_shaders::dim::Env;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};

use super::fold::Fold;
use super::space::{Coordinate, Moves, Space, space};
use crate::task::{Layout, Refusal};

/// Elements of a chunk: registers stay in the first-level cache and the choice of a loop is paid rarely.
pub(super) const CHUNK: usize = 512;
/// Words of registers up to which rows are taken whole.
const WHOLE: usize = 6144;
/// Operations from which a value that a later walk needs is kept.
const DEAR: u64 = 6;

/// Of how much a value has one word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Class {
    /// Of everything.
    One,
    /// Of each row.
    Row,
    /// Of each element of a row.
    Wide,
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A word for everything.
    One(usize),
    /// A word for each row of the tile.
    Row(usize),
    /// A register of a tile or chunk.
    Wide(usize),
    /// A buffer of a whole row.
    Kept(usize),
    /// An input, read where it lies.
    Input(usize),
    /// The result.
    Result,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Op {
    Un(Un, DType),
    Bin(Bin, DType),
    MulAdd,
    Select,
    Cast(DType, DType),
    Fold(Fold, DType),
    /// The column, or what the row says.
    Index(Coordinate),
    Copy,
}

/// One instruction over a tile.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub op: Op,
    pub class: Class,
    /// Elements of a row: of the operand's, if this reduces.
    pub length: usize,
    pub out: Place,
    pub operands: [Place; 3],
    pub count: usize,
}

/// Steps that are done together.
#[derive(Clone, Debug, Default)]
pub(super) struct Section {
    /// Over chunks of rows of this length; none: over whole rows.
    pub walk: Option<usize>,
    pub steps: Vec<Step>,
}

/// An input that a program reads.
#[derive(Clone, Debug)]
pub(super) struct Input {
    pub class: Class,
    pub moves: Moves,
    /// Elements of its rows.
    pub length: usize,
    /// Words that the whole value spans.
    pub span: usize,
    /// Its word, or its words of a tile's rows.
    pub slot: usize,
}

/// A program, compiled.
#[derive(Clone, Debug)]
pub(super) struct Compiled {
    pub space: Space,
    pub moves: Moves,
    pub span: usize,
    /// By the number of the input; none if it is not read.
    pub inputs: Vec<Option<Input>>,
    /// Constants and room for what has one value.
    pub ones: Vec<u32>,
    pub once: Vec<Step>,
    pub sections: Vec<Section>,
    /// The number of values of which a row has one.
    pub rows: usize,
    /// Registers, and words of each.
    pub wide: usize,
    pub slot: usize,
    /// Lengths of rows that are kept.
    pub kept: Vec<usize>,
    /// Rows of a tile, where rows are taken whole.
    pub together: usize,
    pub reduces: bool,
    /// Operations for an element of a row.
    pub cost: u64,
    /// The longest row.
    pub longest: usize,
}

#[derive(Clone, Debug)]
enum Source {
    Input(usize),
    Const(u32),
    Op(Op),
}

#[derive(Clone, Debug)]
struct Node {
    source: Source,
    class: Class,
    length: usize,
    operands: Vec<usize>,
    cost: u64,
    /// How many reductions come before.
    level: usize,
    needed: bool,
}

fn refuse<T>(text: &str) -> Result<T, Refusal> {
    Err(Refusal(text.into()))
}

fn word(value: Const) -> u32 {
    match value {
        Const::Float(bits) => (f64::from_bits(bits) as f32).to_bits(),
        Const::Uint(value) => value,
        Const::Int(value) => value as u32,
        Const::Bool(value) => u32::from(value),
    }
}

impl Compiled {
    pub(super) fn new(
        prog: &Prog,
        args: &[Layout],
        result: &Layout,
        env: &Env,
        flat: bool,
    ) -> Result<Compiled, Refusal> {
        if args.len() != usize::from(prog.inputs) || prog.code.is_empty() {
            return refuse("a program with another number of arguments");
        }
        let shapes: Vec<Vec<i64>> =
            args.iter().map(|arg| arg.shape.iter().map(|size| *size as i64).collect()).collect();
        let dtypes: Vec<DType> = args.iter().map(|arg| arg.dtype).collect();
        let (Some(shapes), Some(dtypes)) = (prog.shapes(&shapes.iter().collect::<Vec<_>>()), prog.dtypes(&dtypes))
        else {
            return refuse("arguments that a program does not fit");
        };
        let root = prog.code.len() - 1;
        if !shapes[root].iter().map(|size| *size as usize).eq(result.shape.iter().copied())
            || dtypes[root] != result.dtype
        {
            return refuse("a result of another shape or type than its program's");
        }
        let reduces = prog.reduces_rows();
        let indexed: Vec<usize> = prog
            .code
            .iter()
            .filter_map(|instr| if let Instr::Index(axis, _) = instr { Some(usize::from(*axis)) } else { None })
            .collect();
        let values: Vec<&Layout> = args.iter().collect();
        let (space, mut moves, coordinates) = space(&values, result, &indexed, flat && !reduces);
        let own_moves = moves.pop().unwrap_or_default();
        if own_moves.column != 1 && space.columns > 1 {
            return refuse("a result whose rows have gaps");
        }
        let mut nodes: Vec<Node> = vec![];
        for (reg, instr) in prog.code.iter().enumerate() {
            let operands: Vec<usize> = instr.operands().map(usize::from).collect();
            let last = |shape: &Vec<i64>| shape.last().map_or(1, |size| *size as usize);
            let above = operands.iter().map(|r| nodes[*r].class).max().unwrap_or(Class::One);
            let own = if reduces { last(&shapes[reg]) } else { space.columns };
            // In a program that reduces, shapes say of what a value has one word; in another, how inputs move.
            let shaped = |class: Class| match (reduces, own) {
                (false, _) => class,
                (true, 1) => class.min(Class::Row),
                (true, _) => Class::Wide,
            };
            let operand_dtype = operands.first().map_or(DType::F32, |r| dtypes[*r]);
            let level = operands.iter().map(|r| nodes[*r].level).max().unwrap_or(0);
            let mut node = Node {
                source: Source::Op(Op::Copy),
                class: shaped(above),
                length: own,
                operands,
                cost: 1,
                level,
                needed: false,
            };
            match instr {
                Instr::In(k) => {
                    let moves = &moves[usize::from(*k)];
                    let by_moves = match (moves.column, moves.leading.iter().any(|stride| *stride > 0)) {
                        (0, false) => Class::One,
                        (0, true) => Class::Row,
                        _ => Class::Wide,
                    };
                    node.class = shaped(by_moves);
                    node.source = Source::Input(usize::from(*k));
                    node.cost = 0;
                }
                Instr::Const(value) => {
                    node.source = Source::Const(word(*value));
                    node.class = Class::One;
                }
                Instr::Extent(dim) => {
                    node.source = Source::Const((dim.eval(env) as f32).to_bits());
                    node.class = Class::One;
                }
                Instr::Un(op, _) => {
                    node.source = Source::Op(Op::Un(*op, operand_dtype));
                    node.cost = op.cost();
                }
                Instr::Bin(op, ..) => {
                    node.source = Source::Op(Op::Bin(*op, operand_dtype));
                    node.cost = op.cost();
                }
                Instr::Select(..) => node.source = Source::Op(Op::Select),
                Instr::Cast(to, _) => node.source = Source::Op(Op::Cast(operand_dtype, *to)),
                Instr::RowSum(_) | Instr::RowMax(_) => {
                    let fold = if matches!(instr, Instr::RowSum(_)) { Fold::Sum } else { Fold::Max };
                    node.source = Source::Op(Op::Fold(fold, operand_dtype));
                    node.class = Class::Row;
                    node.length = nodes[node.operands[0]].length;
                    if nodes[node.operands[0]].class == Class::Wide {
                        node.level += 1;
                    }
                }
                Instr::Index(axis, _) => {
                    let of = node.operands[0];
                    let own_axis = shapes[of].len().checked_sub(1 + usize::from(*axis));
                    let stays = own_axis.is_none_or(|own| shapes[of][own] == 1);
                    let found = match coordinates.get(usize::from(*axis)) {
                        Some(found) if !stays => *found,
                        _ => Coordinate::Zero,
                    };
                    let class = match found {
                        Coordinate::Zero => Class::One,
                        Coordinate::Row { .. } => Class::Row,
                        Coordinate::Column => Class::Wide,
                    };
                    node.class = shaped(class);
                    node.source = match found {
                        Coordinate::Zero if node.class == Class::One => Source::Const(0),
                        found => Source::Op(Op::Index(found)),
                    };
                    node.level = 0;
                    node.operands.clear();
                    node.cost = 0;
                }
            }
            nodes.push(node);
        }
        // The result is written by the last step, whatever the root is.
        let plain = matches!(nodes[root].source, Source::Op(op) if !matches!(op, Op::Fold(..)))
            && nodes[root].class == Class::Wide;
        if !plain {
            nodes.push(Node {
                source: Source::Op(Op::Copy),
                class: Class::Wide,
                length: space.columns,
                operands: vec![root],
                cost: 1,
                level: nodes[root].level,
                needed: true,
            });
        }
        fuse(&mut nodes);
        mark(&mut nodes);
        let mut build = Build::new(nodes, &moves, args);
        let longest = build.nodes.iter().filter(|node| node.needed).map(|node| node.length).max().unwrap_or(1);
        build.sections(reduces, space.columns, space.rows, longest);
        let cost = build.nodes.iter().filter(|node| node.needed && node.class == Class::Wide).map(|node| node.cost);
        let cost = cost.sum();
        Ok(Compiled {
            moves: own_moves,
            span: result.span(),
            inputs: build.inputs,
            ones: build.ones,
            once: build.once,
            sections: build.sections,
            rows: build.rows,
            wide: build.wide,
            slot: build.slot,
            kept: build.kept,
            together: build.together,
            reduces,
            cost,
            longest,
            space,
        })
    }
}

/// Products that only a sum reads become one step with it.
fn fuse(nodes: &mut [Node]) {
    let mut uses = vec![0usize; nodes.len()];
    for node in nodes.iter() {
        node.operands.iter().for_each(|r| uses[*r] += 1);
    }
    for reg in 0..nodes.len() {
        let Source::Op(Op::Bin(Bin::Add, DType::F32)) = nodes[reg].source else { continue };
        if nodes[reg].class != Class::Wide {
            continue;
        }
        let [p, q] = nodes[reg].operands[..] else { continue };
        let is_product = |r: usize| {
            matches!(nodes[r].source, Source::Op(Op::Bin(Bin::Mul, DType::F32)))
                && nodes[r].class == Class::Wide
                && uses[r] == 1
        };
        let (product, other) = match (is_product(p), is_product(q)) {
            (true, _) => (p, q),
            (_, true) => (q, p),
            _ => continue,
        };
        let [mut a, mut b] = nodes[product].operands[..] else { continue };
        if nodes[a].class != Class::Wide {
            (a, b) = (b, a);
        }
        nodes[reg].source = Source::Op(Op::MulAdd);
        nodes[reg].operands = vec![a, b, other];
        nodes[reg].cost = 2;
    }
}

/// Which nodes the result needs.
fn mark(nodes: &mut [Node]) {
    let Some(root) = nodes.last_mut() else { return };
    root.needed = true;
    for reg in (0..nodes.len()).rev() {
        if nodes[reg].needed {
            for operand in nodes[reg].operands.clone() {
                nodes[operand].needed = true;
            }
        }
    }
}

/// An earlier node of the same input.
fn same_input(before: &[Node], node: &Node) -> Option<usize> {
    let Source::Input(k) = node.source else { return None };
    before.iter().position(|other| other.needed && matches!(other.source, Source::Input(own) if own == k))
}

struct Build {
    nodes: Vec<Node>,
    places: Vec<Option<Place>>,
    inputs: Vec<Option<Input>>,
    ones: Vec<u32>,
    once: Vec<Step>,
    sections: Vec<Section>,
    rows: usize,
    wide: usize,
    slot: usize,
    kept: Vec<usize>,
    together: usize,
}

impl Build {
    /// With places for everything but registers.
    fn new(nodes: Vec<Node>, moves: &[Moves], args: &[Layout]) -> Build {
        let mut build = Build {
            places: vec![None; nodes.len()],
            inputs: vec![None; args.len()],
            ones: vec![],
            once: vec![],
            sections: vec![],
            rows: 0,
            wide: 0,
            slot: CHUNK,
            kept: vec![],
            together: 1,
            nodes,
        };
        for reg in 0..build.nodes.len() {
            let node = build.nodes[reg].clone();
            if !node.needed {
                continue;
            }
            let known = same_input(&build.nodes[..reg], &node);
            if let Some(known) = known {
                build.places[reg] = build.places[known];
                continue;
            }
            let mut slot = 0;
            let place = match node.class {
                Class::One => {
                    slot = build.ones.len();
                    build.ones.push(if let Source::Const(word) = node.source { word } else { 0 });
                    Some(Place::One(slot))
                }
                Class::Row => {
                    slot = build.rows;
                    build.rows += 1;
                    Some(Place::Row(slot))
                }
                Class::Wide => None,
            };
            build.places[reg] = place;
            if let Source::Input(k) = node.source {
                build.places[reg] = Some(place.unwrap_or(Place::Input(k)));
                let span = args[k].span();
                build.inputs[k] =
                    Some(Input { class: node.class, moves: moves[k].clone(), length: node.length, span, slot });
            }
            if let (Class::One, Source::Op(_)) = (node.class, &node.source) {
                let step = build.step(reg);
                build.once.extend(step);
            }
        }
        build
    }

    /// The step of a node whose operands have places.
    fn step(&self, reg: usize) -> Option<Step> {
        let node = &self.nodes[reg];
        let Source::Op(op) = node.source else { return None };
        let mut operands = [Place::One(0); 3];
        for (place, operand) in operands.iter_mut().zip(&node.operands) {
            *place = self.places[*operand]?;
        }
        let length = match op {
            Op::Fold(..) if self.nodes[node.operands[0]].class != Class::Wide => 1,
            _ => node.length,
        };
        Some(Step { op, class: node.class, length, out: self.places[reg]?, operands, count: node.operands.len() })
    }

    fn is_op(&self, reg: usize) -> bool {
        self.nodes[reg].needed && matches!(self.nodes[reg].source, Source::Op(_))
    }

    fn sections(&mut self, reduces: bool, columns: usize, rows: usize, longest: usize) {
        let root = self.nodes.len() - 1;
        let all: Vec<usize> =
            (0..self.nodes.len()).filter(|r| self.is_op(*r) && self.nodes[*r].class != Class::One).collect();
        let of = |class: Class| all.iter().copied().filter(|r| self.nodes[*r].class == class).collect::<Vec<usize>>();
        let (narrow, wide) = (of(Class::Row), of(Class::Wide));
        if !reduces {
            self.emit(None, &narrow, root);
            self.emit(Some(columns), &wide, root);
            return;
        }
        self.emit(None, &all, root);
        if self.wide.max(1) * longest <= WHOLE {
            self.together = if longest >= CHUNK / 2 { 1 } else { (CHUNK / longest.max(1)).clamp(1, rows.max(1)) };
            self.slot = (self.together * longest).next_multiple_of(16);
            return;
        }
        (self.sections, self.wide) = (vec![], 0);
        self.passes(&narrow, root);
    }

    /// Rows in chunks, once for every level of reductions.
    fn passes(&mut self, narrow: &[usize], root: usize) {
        // What each section does: values of rows, or a walk to some targets.
        let levels = self.nodes.iter().map(|node| node.level).max().unwrap_or(0);
        let mut plan: Vec<(Option<usize>, Vec<usize>)> = vec![];
        let walks = |r: usize| {
            let node = &self.nodes[r];
            matches!(node.source, Source::Op(Op::Fold(..))) && self.nodes[node.operands[0]].class == Class::Wide
        };
        for level in 0..=levels {
            let values = narrow.iter().copied().filter(|r| self.nodes[*r].level == level && !walks(*r)).collect();
            plan.push((None, values));
            let gathered: Vec<usize> =
                narrow.iter().copied().filter(|r| self.nodes[*r].level == level + 1 && walks(*r)).collect();
            let mut lengths: Vec<usize> = gathered.iter().map(|r| self.nodes[*r].length).collect();
            lengths.sort_unstable();
            lengths.dedup();
            for length in lengths {
                plan.push((
                    Some(length),
                    gathered.iter().copied().filter(|r| self.nodes[*r].length == length).collect(),
                ));
            }
        }
        plan.push((Some(self.nodes[root].length), vec![root]));
        // A value is kept if several walks need it and it is dear.
        let mut cones: Vec<Vec<usize>> =
            plan.iter().map(|(walk, targets)| self.cone(walk.is_some(), targets)).collect();
        for reg in 0..self.nodes.len() {
            let shared = cones.iter().filter(|cone| cone.contains(&reg)).count() > 1;
            if shared && self.is_op(reg) && self.dear(reg) {
                self.places[reg] = Some(Place::Kept(self.kept.len()));
                self.kept.push(self.nodes[reg].length);
            }
        }
        if !self.kept.is_empty() {
            let mut done: Vec<usize> = vec![];
            for ((walk, targets), cone) in plan.iter().zip(&mut cones) {
                *cone = self.cone_without(walk.is_some(), targets, &done);
                done.extend(cone.iter().filter(|r| matches!(self.places[**r], Some(Place::Kept(_)))));
            }
        }
        for ((walk, _), cone) in plan.into_iter().zip(cones) {
            if !cone.is_empty() {
                self.emit(walk, &cone, root);
            }
        }
    }

    fn cone(&self, walks: bool, targets: &[usize]) -> Vec<usize> {
        self.cone_without(walks, targets, &[])
    }

    /// The steps of a section: its targets and, in a walk, the wide values that they need and that are not `done`.
    fn cone_without(&self, walks: bool, targets: &[usize], done: &[usize]) -> Vec<usize> {
        let mut cone: Vec<usize> = targets.to_vec();
        let mut todo = if walks { cone.clone() } else { vec![] };
        while let Some(reg) = todo.pop() {
            for operand in &self.nodes[reg].operands {
                let wide = self.nodes[*operand].class == Class::Wide && self.is_op(*operand);
                if wide && !cone.contains(operand) && !done.contains(operand) {
                    cone.push(*operand);
                    todo.push(*operand);
                }
            }
        }
        cone.sort_unstable();
        cone
    }

    /// Whether computing a wide value again, from what is kept, costs more than reading it.
    fn dear(&self, reg: usize) -> bool {
        let kept = |r: usize| matches!(self.places[r], Some(Place::Kept(_)));
        let done: Vec<usize> = (0..self.nodes.len()).filter(|r| kept(*r)).collect();
        let cone = self.cone_without(true, &[reg], &done);
        cone.iter().map(|r| self.nodes[*r].cost).sum::<u64>() >= DEAR
    }

    /// Adds a section of these steps; wide values get registers that are used again after the last use.
    fn emit(&mut self, walk: Option<usize>, steps: &[usize], root: usize) {
        let mut last = vec![0; self.nodes.len()];
        for (at, reg) in steps.iter().enumerate() {
            self.nodes[*reg].operands.iter().for_each(|operand| last[*operand] = at);
        }
        let (mut free, mut registers): (Vec<usize>, usize) = (vec![], 0);
        let mut section = Section { walk, steps: vec![] };
        let mut own: Vec<usize> = vec![];
        for (at, reg) in steps.iter().copied().enumerate() {
            if reg == root {
                self.places[reg] = Some(Place::Result);
            } else if self.nodes[reg].class == Class::Wide && !matches!(self.places[reg], Some(Place::Kept(_))) {
                let register = free.pop().unwrap_or_else(|| {
                    registers += 1;
                    registers - 1
                });
                self.places[reg] = Some(Place::Wide(register));
                own.push(reg);
            }
            section.steps.extend(self.step(reg));
            for operand in &self.nodes[reg].operands {
                if let Some(Place::Wide(register)) = self.places[*operand]
                    && last[*operand] == at
                    && !free.contains(&register)
                {
                    free.push(register);
                }
            }
        }
        self.wide = self.wide.max(registers);
        own.iter().for_each(|reg| self.places[*reg] = None);
        if !section.steps.is_empty() {
            self.sections.push(section);
        }
    }
}
