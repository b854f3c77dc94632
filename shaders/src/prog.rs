//! Row programs: the small straight-line programs inside kernels.
//!
//! A program is a tensor expression under NumPy broadcasting whose only non-pointwise instructions stay inside a row
//! (the last axis). Composing two programs is therefore always sound, and every composition is one kernel: a row per
//! workgroup. RMSNorm, softmax, SiLU and losses are programs, not operations.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dim::{Dim, Size, broadcast};
use crate::pointwise::{Bin, Un};

/// What the elements of a value are; in memory each takes four bytes, truth as 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum DType {
    /// 32-bit floating point.
    F32,
    /// 32-bit unsigned integer.
    U32,
    /// 32-bit signed integer.
    I32,
    /// Truth.
    Bool,
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DType::F32 => "f32",
            DType::U32 => "u32",
            DType::I32 => "i32",
            DType::Bool => "bool",
        })
    }
}

/// A constant; floats compare and hash by representation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Const {
    /// The bits of an `f64`.
    Float(u64),
    /// An unsigned integer.
    Uint(u32),
    /// A signed integer.
    Int(i32),
    /// Truth.
    Bool(bool),
}

impl Const {
    /// A float constant; -0 and 0 are one.
    pub fn float(value: f64) -> Const {
        Const::Float((value + 0.0).to_bits())
    }

    /// The number that it stands for.
    pub fn value(self) -> f64 {
        match self {
            Const::Float(bits) => f64::from_bits(bits),
            Const::Uint(value) => f64::from(value),
            Const::Int(value) => f64::from(value),
            Const::Bool(value) => f64::from(u8::from(value)),
        }
    }

    fn dtype(self) -> DType {
        match self {
            Const::Float(_) => DType::F32,
            Const::Uint(_) => DType::U32,
            Const::Int(_) => DType::I32,
            Const::Bool(_) => DType::Bool,
        }
    }
}

/// An index of an instruction inside its program.
pub type Reg = u8;

/// One instruction; registers are earlier instructions of the same program.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Instr {
    /// The element of input k.
    In(u8),
    /// A constant, of shape `[]`.
    Const(Const),
    /// The size of a dimension as f32, of shape `[]`.
    Extent(Dim),
    /// A registered operation of one operand.
    Un(Un, Reg),
    /// A registered operation of two operands.
    Bin(Bin, Reg, Reg),
    /// The second operand where the first is true, else the third.
    Select(Reg, Reg, Reg),
    /// The value as another type: to integers truncated, to truth whether it is not 0.
    Cast(DType, Reg),
    /// Sum over the last axis, which becomes 1.
    RowSum(Reg),
    /// Maximum over the last axis, which becomes 1.
    RowMax(Reg),
    /// The index (u32) along the given axis, counted from the last; shaped like the operand.
    Index(u8, Reg),
}

impl Instr {
    /// The registers that it reads.
    pub fn operands(&self) -> impl Iterator<Item = Reg> + use<> {
        let operands = match *self {
            Instr::In(_) | Instr::Const(_) | Instr::Extent(_) => [None; 3],
            Instr::Un(_, a) | Instr::Cast(_, a) | Instr::RowSum(a) | Instr::RowMax(a) | Instr::Index(_, a) => {
                [Some(a), None, None]
            }
            Instr::Bin(_, a, b) => [Some(a), Some(b), None],
            Instr::Select(c, a, b) => [Some(c), Some(a), Some(b)],
        };
        operands.into_iter().flatten()
    }

    /// The same instruction over other registers.
    pub fn map(&self, mut f: impl FnMut(Reg) -> Reg) -> Instr {
        match self.clone() {
            leaf @ (Instr::In(_) | Instr::Const(_) | Instr::Extent(_)) => leaf,
            Instr::Un(op, a) => Instr::Un(op, f(a)),
            Instr::Bin(op, a, b) => Instr::Bin(op, f(a), f(b)),
            Instr::Select(c, a, b) => Instr::Select(f(c), f(a), f(b)),
            Instr::Cast(dtype, a) => Instr::Cast(dtype, f(a)),
            Instr::RowSum(a) => Instr::RowSum(f(a)),
            Instr::RowMax(a) => Instr::RowMax(f(a)),
            Instr::Index(axis, a) => Instr::Index(axis, f(a)),
        }
    }

    /// Whether it reads a whole row for one element.
    pub fn reduces(&self) -> bool {
        matches!(self, Instr::RowSum(_) | Instr::RowMax(_))
    }

    fn flops(&self) -> u64 {
        match self {
            Instr::In(_) | Instr::Const(_) | Instr::Extent(_) | Instr::Index(..) => 0,
            Instr::Un(op, _) => op.cost(),
            Instr::Bin(op, ..) => op.cost(),
            Instr::Select(..) | Instr::Cast(..) | Instr::RowSum(_) | Instr::RowMax(_) => 1,
        }
    }

    /// The shape of the result; none where operands do not fit.
    pub fn shape<S: Size>(&self, of: impl Fn(Reg) -> Vec<S>) -> Option<Vec<S>> {
        Some(match *self {
            Instr::In(_) => return None,
            Instr::Const(_) | Instr::Extent(_) => vec![],
            Instr::Un(_, a) | Instr::Cast(_, a) | Instr::Index(_, a) => of(a),
            Instr::Bin(_, a, b) => broadcast(&of(a), &of(b))?,
            Instr::Select(c, a, b) => broadcast(&of(c), &broadcast(&of(a), &of(b))?)?,
            Instr::RowSum(a) | Instr::RowMax(a) => {
                let mut shape = of(a);
                *shape.last_mut()? = S::from(1);
                shape
            }
        })
    }

    /// The type of the result; none where operands do not fit.
    pub fn dtype(&self, of: impl Fn(Reg) -> DType) -> Option<DType> {
        let number = |dtype: DType| (dtype != DType::Bool).then_some(dtype);
        match *self {
            Instr::In(_) => None,
            Instr::Const(value) => Some(value.dtype()),
            Instr::Extent(_) => Some(DType::F32),
            Instr::Un(Un::Not, a) => (of(a) == DType::Bool).then_some(DType::Bool),
            Instr::Un(Un::Nan, a) => (of(a) == DType::F32).then_some(DType::Bool),
            Instr::Un(Un::Neg | Un::Abs | Un::Sign, a) => number(of(a)).filter(|dtype| *dtype != DType::U32),
            Instr::Un(_, a) => (of(a) == DType::F32).then_some(DType::F32),
            Instr::Bin(op, a, b) if op.is_logical() => {
                (of(a) == DType::Bool && of(b) == DType::Bool).then_some(DType::Bool)
            }
            Instr::Bin(op, a, b) if op.is_comparison() => (of(a) == of(b)).then_some(DType::Bool),
            Instr::Bin(Bin::Hash, a, b) => (of(a) == DType::U32 && of(b) == DType::U32).then_some(DType::U32),
            Instr::Bin(Bin::Pow | Bin::Normal, a, b) => {
                (of(a) == DType::F32 && of(b) == DType::F32).then_some(DType::F32)
            }
            Instr::Bin(_, a, b) => number(of(a)).filter(|dtype| *dtype == of(b)),
            Instr::Select(c, a, b) => (of(c) == DType::Bool && of(a) == of(b)).then(|| of(a)),
            Instr::Cast(dtype, _) => Some(dtype),
            Instr::RowSum(a) | Instr::RowMax(a) => number(of(a)),
            Instr::Index(..) => Some(DType::U32),
        }
    }
}

/// Straight-line code in the order of a depth-first walk from the result, which is last; no dead code, no duplicates.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Prog {
    /// The number of inputs; some may be read for their shape alone.
    pub inputs: u8,
    /// The instructions.
    pub code: Arc<[Instr]>,
}

/// What an input of a program stands for while programs are put together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Leaf {
    /// The accumulator of a product.
    Acc(u8),
    /// The row statistic of a product's left side.
    Stat(u8),
    /// A value known by a number of the caller's.
    Arg(u32),
}

impl Prog {
    /// The program that hands its one input on.
    pub fn identity() -> Prog {
        Prog { inputs: 1, code: Arc::new([Instr::In(0)]) }
    }

    /// The program of one instruction over its operands as inputs, in order.
    pub fn of(instr: &Instr) -> Prog {
        let mut link = Linker::default();
        let count = instr.operands().map(|r| r + 1).max().unwrap_or(0);
        let inputs: Vec<Reg> = (0..u32::from(count)).map(|k| link.leaf(Leaf::Arg(k))).collect();
        let root = link.push(instr.map(|r| inputs[usize::from(r)]));
        let seeds: Vec<Leaf> = (0..u32::from(count)).map(Leaf::Arg).collect();
        let (mut programs, _) = link.finish(&[root], &seeds);
        programs.remove(0)
    }

    /// Whether it hands its one input on.
    pub fn is_identity(&self) -> bool {
        self.inputs == 1 && *self.code == [Instr::In(0)]
    }

    /// Reads whole rows before it can write an element.
    pub fn reduces_rows(&self) -> bool {
        self.code.iter().any(Instr::reduces)
    }

    /// Whether an element depends on where it lies.
    pub fn uses_index(&self) -> bool {
        self.code.iter().any(|i| matches!(i, Instr::Index(..)))
    }

    /// The register of the result.
    pub fn root(&self) -> Reg {
        (self.code.len() - 1) as Reg
    }

    /// The shape of every instruction; none where operands do not fit.
    pub fn shapes<S: Size>(&self, args: &[&Vec<S>]) -> Option<Vec<Vec<S>>> {
        let mut shapes: Vec<Vec<S>> = vec![];
        for instr in self.code.iter() {
            shapes.push(match instr {
                Instr::In(i) => (*args.get(usize::from(*i))?).clone(),
                other => other.shape(|r| shapes[usize::from(r)].clone())?,
            });
        }
        Some(shapes)
    }

    /// The shape of the result.
    pub fn shape<S: Size>(&self, args: &[&Vec<S>]) -> Option<Vec<S>> {
        self.shapes(args)?.pop()
    }

    /// The type of every instruction; none where operands do not fit.
    pub fn dtypes(&self, args: &[DType]) -> Option<Vec<DType>> {
        let mut dtypes: Vec<DType> = vec![];
        for instr in self.code.iter() {
            dtypes.push(match instr {
                Instr::In(i) => *args.get(usize::from(*i))?,
                other => other.dtype(|r| dtypes[usize::from(r)])?,
            });
        }
        Some(dtypes)
    }

    /// Operations for arguments of these sizes (which must fit).
    pub fn flops(&self, args: &[&Vec<i64>]) -> u64 {
        let Some(shapes) = self.shapes(args) else { return 0 };
        let elements = |r: Reg| shapes[usize::from(r)].iter().product::<i64>() as u64;
        let widest = |i: &Instr, own: usize| i.operands().map(elements).max().unwrap_or(0).max(elements(own as Reg));
        self.code.iter().enumerate().map(|(own, i)| i.flops() * widest(i, own)).sum()
    }

    /// The operands of the product at the root, whatever way it is bracketed.
    pub fn factors(&self) -> Vec<Reg> {
        let mut factors = vec![];
        let mut todo = vec![self.root()];
        while let Some(reg) = todo.pop() {
            match self.code[usize::from(reg)] {
                Instr::Bin(Bin::Mul, a, b) => todo.extend([b, a]),
                _ => factors.push(reg),
            }
        }
        factors
    }

    /// The value for inputs of one element each; a row reduction over one element is that element, every index is 0,
    /// an extent 1.
    pub fn eval_scalars(&self, inputs: &[f64]) -> f64 {
        let mut values: Vec<f64> = vec![];
        for instr in self.code.iter() {
            let of = |r: &Reg| values[usize::from(*r)];
            values.push(match instr {
                Instr::In(k) => inputs[usize::from(*k)],
                Instr::Const(value) => value.value(),
                Instr::Extent(_) => 1.0,
                Instr::Un(op, a) => op.eval(of(a)),
                Instr::Bin(op, a, b) => op.eval(of(a), of(b)),
                Instr::Select(c, a, b) => {
                    if of(c) != 0.0 {
                        of(a)
                    } else {
                        of(b)
                    }
                }
                Instr::Cast(dtype, a) => cast(*dtype, of(a)),
                Instr::RowSum(a) | Instr::RowMax(a) => of(a),
                Instr::Index(..) => 0.0,
            });
        }
        values.last().copied().unwrap_or(f64::NAN)
    }
}

/// A number as it comes out of a conversion to the type; integers stop at their limits, and NaN is 0.
pub fn cast(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F32 => value,
        DType::U32 => f64::from(value as u32),
        DType::I32 => f64::from(value as i32),
        DType::Bool => f64::from(u8::from(value != 0.0)),
    }
}

/// Puts programs together: shares equal instructions, orders commutative operands, and forgets in what order the
/// pieces came, so that two ways to fuse the same values meet in one program.
#[derive(Default)]
pub struct Linker {
    leaves: Vec<Leaf>,
    code: Vec<Instr>,
    keys: Vec<u64>,
}

impl Linker {
    /// The register of an input.
    pub fn leaf(&mut self, leaf: Leaf) -> Reg {
        let index = self.leaves.iter().position(|l| *l == leaf).unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        });
        self.push(Instr::In(index as u8))
    }

    /// Adds an instruction, or finds it.
    pub fn push(&mut self, instr: Instr) -> Reg {
        let instr = match instr {
            Instr::Bin(op, a, b) if op.commutes() && self.keys[usize::from(a)] > self.keys[usize::from(b)] => {
                Instr::Bin(op, b, a)
            }
            other => other,
        };
        if let Some(known) = self.code.iter().position(|i| *i == instr) {
            return known as Reg;
        }
        debug_assert!(self.code.len() < usize::from(Reg::MAX), "programs are bounded before they are linked");
        self.keys.push(self.key(&instr));
        self.code.push(instr);
        (self.code.len() - 1) as Reg
    }

    /// A float constant.
    pub fn constant(&mut self, value: f64) -> Reg {
        self.push(Instr::Const(Const::float(value)))
    }

    /// A registered operation of one operand.
    pub fn un(&mut self, op: Un, a: Reg) -> Reg {
        self.push(Instr::Un(op, a))
    }

    /// A registered operation of two operands.
    pub fn bin(&mut self, op: Bin, a: Reg, b: Reg) -> Reg {
        self.push(Instr::Bin(op, a, b))
    }

    /// The product of two registers.
    pub fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.bin(Bin::Mul, a, b)
    }

    /// Copies the instructions of `prog` with the given registers as inputs; returns where each one went.
    pub fn splice(&mut self, prog: &Prog, inputs: &[Reg]) -> Vec<Reg> {
        let mut moved: Vec<Reg> = vec![];
        for instr in prog.code.iter() {
            moved.push(match instr {
                Instr::In(i) => inputs[usize::from(*i)],
                other => self.push(other.map(|r| moved[usize::from(r)])),
            });
        }
        moved
    }

    /// The same with leaves as inputs.
    pub fn splice_leaves(&mut self, prog: &Prog, inputs: &[Leaf]) -> Vec<Reg> {
        let inputs: Vec<Reg> = inputs.iter().map(|l| self.leaf(*l)).collect();
        self.splice(prog, &inputs)
    }

    /// One program per root over a common list of leaves: `seeded` first, the others in order of first use.
    pub fn finish(self, roots: &[Reg], seeded: &[Leaf]) -> (Vec<Prog>, Vec<Leaf>) {
        let mut leaves = seeded.to_vec();
        let mut bodies = vec![];
        for root in roots {
            let mut order = vec![];
            self.walk(*root, &mut order);
            for reg in &order {
                if let Instr::In(i) = self.code[usize::from(*reg)] {
                    let leaf = self.leaves[usize::from(i)];
                    if !leaves.contains(&leaf) {
                        leaves.push(leaf);
                    }
                }
            }
            bodies.push(order);
        }
        let position = |leaf: &Leaf| leaves.iter().position(|l| l == leaf).unwrap_or(usize::MAX) as u8;
        let place = |reg: Reg, order: &[Reg]| order.iter().position(|r| *r == reg).unwrap_or(usize::MAX) as Reg;
        let programs = bodies.iter().map(|order| {
            let code = order.iter().map(|reg| match &self.code[usize::from(*reg)] {
                Instr::In(i) => Instr::In(position(&self.leaves[usize::from(*i)])),
                other => other.map(|r| place(r, order)),
            });
            Prog { inputs: leaves.len() as u8, code: code.collect() }
        });
        (programs.collect(), leaves)
    }

    fn walk(&self, reg: Reg, order: &mut Vec<Reg>) {
        if !order.contains(&reg) {
            self.code[usize::from(reg)].operands().for_each(|r| self.walk(r, order));
            order.push(reg);
        }
    }

    /// A structural fingerprint that does not depend on the order of insertion. It only orders operands: a collision
    /// can cost a duplicate, never a wrong program.
    fn key(&self, instr: &Instr) -> u64 {
        let mix = |h: u64, v: u64| (h ^ v).wrapping_mul(0x100_0000_01b3).rotate_left(23);
        let text = |s: &str| s.bytes().fold(7, |h, b| mix(h, u64::from(b)));
        let (tag, value) = match instr {
            Instr::In(i) => match self.leaves[usize::from(*i)] {
                Leaf::Acc(i) => (1, u64::from(i)),
                Leaf::Stat(i) => (2, u64::from(i)),
                Leaf::Arg(id) => (3, u64::from(id)),
            },
            Instr::Const(value) => (4, mix(value.dtype() as u64, value.value().to_bits())),
            Instr::Extent(dim) => (12, text(&format!("{dim:?}"))),
            Instr::Un(op, _) => (5, *op as u64),
            Instr::Bin(op, ..) => (6, *op as u64),
            Instr::Select(..) => (7, 0),
            Instr::RowSum(_) => (8, 0),
            Instr::RowMax(_) => (9, 0),
            Instr::Cast(dtype, _) => (10, *dtype as u64),
            Instr::Index(axis, _) => (11, u64::from(*axis)),
        };
        let seed = mix(mix(0xcbf2_9ce4_8422_2325, tag), value);
        instr.operands().fold(seed, |h, r| mix(h, self.keys[usize::from(r)]))
    }
}

/// `outer` over `args`, where argument `at` is replaced by `inner` over `inner_args`.
pub fn inline(outer: &Prog, args: &[u32], at: usize, inner: &Prog, inner_args: &[u32]) -> (Prog, Vec<u32>) {
    let mut link = Linker::default();
    let inputs: Vec<Reg> = (0..args.len())
        .map(|i| match i == at {
            true => last(&link.splice_leaves(inner, &leaves(inner_args))),
            false => link.leaf(Leaf::Arg(args[i])),
        })
        .collect();
    let root = last(&link.splice(outer, &inputs));
    finish_one(link, root)
}

fn last(registers: &[Reg]) -> Reg {
    registers.last().copied().unwrap_or_default()
}

/// The program of one register of `prog`.
pub fn part(prog: &Prog, args: &[u32], reg: Reg) -> (Prog, Vec<u32>) {
    let mut link = Linker::default();
    let root = link.splice_leaves(prog, &leaves(args))[usize::from(reg)];
    finish_one(link, root)
}

/// The program of one root and its arguments.
pub fn finish_one(link: Linker, root: Reg) -> (Prog, Vec<u32>) {
    let (mut programs, leaves) = link.finish(&[root], &[]);
    (programs.remove(0), arguments(&leaves))
}

/// Arguments as leaves.
pub fn leaves(args: &[u32]) -> Vec<Leaf> {
    args.iter().map(|id| Leaf::Arg(*id)).collect()
}

/// The arguments among the leaves, in order.
pub fn arguments(leaves: &[Leaf]) -> Vec<u32> {
    leaves.iter().filter_map(|l| if let Leaf::Arg(id) = l { Some(*id) } else { None }).collect()
}

impl fmt::Display for Prog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text: Vec<String> = vec![];
        for instr in self.code.iter() {
            let of = |r: &Reg| text[usize::from(*r)].clone();
            text.push(match instr {
                Instr::In(i) => char::from(b'a' + i).to_string(),
                Instr::Const(value) => format!("{}", value.value() as f32),
                Instr::Extent(dim) => {
                    format!("size({})", dim.constant().map_or_else(|| format!("{dim:?}"), |c| c.to_string()))
                }
                Instr::Un(op @ (Un::Neg | Un::Not), a) => format!("{}{}", op.name(), of(a)),
                Instr::Un(op, a) => format!("{}({})", op.name(), bare(&of(a))),
                Instr::Bin(op @ (Bin::Max | Bin::Min | Bin::Pow), a, b) => {
                    format!("{}({}, {})", op.name(), bare(&of(a)), bare(&of(b)))
                }
                Instr::Bin(op, a, b) => format!("({} {} {})", of(a), op.name(), of(b)),
                Instr::Select(c, a, b) => format!("({} ? {} : {})", of(c), of(a), of(b)),
                Instr::Cast(dtype, a) => format!("{dtype}({})", bare(&of(a))),
                Instr::RowSum(a) => format!("sum({})", bare(&of(a))),
                Instr::RowMax(a) => format!("max({})", bare(&of(a))),
                Instr::Index(axis, _) => format!("i{axis}"),
            });
        }
        f.write_str(bare(text.last().map_or("", |t| t)))
    }
}

/// Without one pair of parentheses around the whole.
fn bare(text: &str) -> &str {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    inner.filter(|inner| is_balanced(inner)).unwrap_or(text)
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth >= 0
    }) && depth == 0
}

impl fmt::Debug for Prog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ways_to_write_a_sum_are_one_program() {
        let build = |flip: bool| {
            let mut link = Linker::default();
            let (a, b) = (link.leaf(Leaf::Arg(3)), link.leaf(Leaf::Arg(5)));
            let product = link.mul(a, b);
            let root = if flip { link.bin(Bin::Add, a, product) } else { link.bin(Bin::Add, product, a) };
            finish_one(link, root)
        };
        assert_eq!(build(false), build(true));
    }

    #[test]
    fn inlining_gives_the_composed_value() {
        let square = Prog::of(&Instr::Bin(Bin::Mul, 0, 0));
        let sum = Prog::of(&Instr::Bin(Bin::Sub, 0, 1));
        let (prog, args) = inline(&sum, &[7, 8], 1, &square, &[7]);
        assert_eq!(args, [7]);
        assert_eq!(prog.eval_scalars(&[3.0]), 3.0 - 9.0);
        assert_eq!(prog.to_string(), "a - (a * a)");
    }

    #[test]
    fn types_are_inferred_and_mismatches_refused() {
        let select = Prog::of(&Instr::Select(0, 1, 2));
        assert_eq!(select.dtypes(&[DType::Bool, DType::F32, DType::F32]).map(|t| t[3]), Some(DType::F32));
        assert_eq!(select.dtypes(&[DType::F32, DType::F32, DType::F32]), None);
        let equal = Prog::of(&Instr::Bin(Bin::Eq, 0, 1));
        assert_eq!(equal.dtypes(&[DType::U32, DType::F32]), None);
    }

    #[test]
    fn reductions_keep_the_axis() {
        let sum = Prog::of(&Instr::RowSum(0));
        assert_eq!(sum.shape(&[&vec![4i64, 7]]), Some(vec![4, 1]));
        assert_eq!(sum.shape(&[&Vec::<i64>::new()]), None);
    }
}
