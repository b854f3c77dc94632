//! Derivatives of single operations: the cotangent of one input from that of the result.
//!
//! A rule asks the tape for the values that it reads; asking is what makes a value live in the backward pass. A rule
//! need not undo broadcasting: whoever calls it sums the cotangent to the operand's shape.

use std::fmt;

use meganeura_shaders::dim::Shape;
use meganeura_shaders::pointwise::{Bin, Slope, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Leaf, Linker, Prog, Reg, finish_one, leaves};

use super::Op;
use crate::ir::{Graph, ValueId};

/// Why an operation has no derivative.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotDifferentiable(pub String);

impl fmt::Display for NotDifferentiable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a derivative may ask for.
pub trait Tape {
    /// Where the cotangents are built.
    fn graph(&mut self) -> &mut Graph;
    /// Input k of the operation.
    fn input(&mut self, k: usize) -> ValueId;
    /// The shape of input k, which needs no value.
    fn shape(&self, k: usize) -> Shape;
    /// The result of the operation.
    fn output(&mut self) -> ValueId;
}

/// Numbers of leaves beside the operands.
const RESULT: u32 = 8;
const COTANGENT: u32 = 9;

/// Whether the result of an instruction does not change, or only jumps, with input `k`.
pub(super) fn is_flat(instr: &Instr, k: usize) -> bool {
    let moves = |position: usize| match instr {
        Instr::Un(op, _) => matches!(op.slopes()[0], Slope::By(_)),
        Instr::Bin(op, ..) => matches!(op.slopes()[position], Slope::By(_)),
        Instr::Select(..) => position > 0,
        Instr::Cast(dtype, _) => *dtype == DType::F32,
        Instr::RowSum(_) | Instr::RowMax(_) => true,
        Instr::In(_) | Instr::Const(_) | Instr::Extent(_) | Instr::Index(..) => false,
    };
    !instr.operands().enumerate().any(|(position, reg)| usize::from(reg) == k && moves(position))
}

/// The cotangent of input `k`: the sum over the operands that it is. None where nothing changes with it.
pub(super) fn instr_vjp(instr: &Instr, k: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Option<ValueId> {
    let positions: Vec<usize> =
        instr.operands().enumerate().filter(|(_, reg)| usize::from(*reg) == k).map(|(position, _)| position).collect();
    let parts = positions.into_iter().filter_map(|position| operand_vjp(instr, position, cotangent, tape));
    let parts: Vec<ValueId> = parts.collect();
    parts.into_iter().reduce(|sum, part| tape.graph().add(sum, part))
}

fn operand_vjp(instr: &Instr, position: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Option<ValueId> {
    let operands: Vec<Reg> = instr.operands().collect();
    let slope = match instr {
        Instr::Un(op, _) => op.slopes()[0],
        Instr::Bin(op, ..) => op.slopes()[position],
        Instr::Select(..) => return select_vjp(position, &operands, cotangent, tape),
        Instr::Cast(dtype, _) => return (*dtype == DType::F32).then_some(cotangent),
        Instr::RowSum(a) => {
            let shape = tape.shape(usize::from(*a));
            return Some(tape.graph().broadcast(cotangent, &shape));
        }
        Instr::RowMax(_) => return Some(row_max_vjp(&operands, cotangent, tape)),
        Instr::In(_) | Instr::Const(_) | Instr::Extent(_) | Instr::Index(..) => return None,
    };
    let Slope::By(slope) = slope else { return None };
    let (slope, args) = slope_program(slope, operands.len());
    if let [Instr::Const(value)] = &*slope.code {
        match value.value() {
            1.0 => return Some(cotangent),
            -1.0 => return Some(tape.graph().un(Un::Neg, cotangent)),
            _ => {}
        }
    }
    let mut link = Linker::default();
    let ct = link.leaf(Leaf::Arg(COTANGENT));
    let slope = link.splice_leaves(&slope, &leaves(&args)).last().copied()?;
    let root = link.mul(ct, slope);
    Some(emit(link, root, &operands, cotangent, tape))
}

fn slope_program(slope: fn(&mut Linker, &[Reg], Reg) -> Reg, operands: usize) -> (Prog, Vec<u32>) {
    let mut link = Linker::default();
    let inputs: Vec<Reg> = (0..operands as u32).map(|k| link.leaf(Leaf::Arg(k))).collect();
    let result = link.leaf(Leaf::Arg(RESULT));
    let root = slope(&mut link, &inputs, result);
    finish_one(link, root)
}

/// A node of the program; asks the tape for what it reads.
fn emit(link: Linker, root: Reg, operands: &[Reg], cotangent: ValueId, tape: &mut dyn Tape) -> ValueId {
    let (prog, args) = finish_one(link, root);
    let mut value = |arg: u32| match arg {
        COTANGENT => cotangent,
        RESULT => tape.output(),
        operand => tape.input(usize::from(operands[operand as usize])),
    };
    let inputs: Vec<ValueId> = args.into_iter().map(&mut value).collect();
    tape.graph().emit(Op::Rows(prog), &inputs)
}

fn select_vjp(position: usize, operands: &[Reg], cotangent: ValueId, tape: &mut dyn Tape) -> Option<ValueId> {
    let mut link = Linker::default();
    let (condition, ct, zero) = (link.leaf(Leaf::Arg(0)), link.leaf(Leaf::Arg(COTANGENT)), link.constant(0.0));
    let root = match position {
        0 => return None,
        1 => link.push(Instr::Select(condition, ct, zero)),
        _ => link.push(Instr::Select(condition, zero, ct)),
    };
    Some(emit(link, root, operands, cotangent, tape))
}

/// The first element that is the maximum takes all: of the hits, the one with the largest distance from the end of
/// all indices, in u32 so that it is exact for every length.
fn row_max_vjp(operands: &[Reg], cotangent: ValueId, tape: &mut dyn Tape) -> ValueId {
    let mut link = Linker::default();
    let (x, max, ct) = (link.leaf(Leaf::Arg(0)), link.leaf(Leaf::Arg(RESULT)), link.leaf(Leaf::Arg(COTANGENT)));
    let hit = link.bin(Bin::Eq, x, max);
    let index = link.push(Instr::Index(0, x));
    let (end, none) = (link.push(Instr::Const(Const::Uint(u32::MAX))), link.push(Instr::Const(Const::Uint(0))));
    let distance = link.bin(Bin::Sub, end, index);
    let distance = link.push(Instr::Select(hit, distance, none));
    let first = link.push(Instr::RowMax(distance));
    let is_first = link.bin(Bin::Eq, distance, first);
    let chosen = link.bin(Bin::And, hit, is_first);
    let zero = link.constant(0.0);
    let root = link.push(Instr::Select(chosen, ct, zero));
    emit(link, root, operands, cotangent, tape)
}
