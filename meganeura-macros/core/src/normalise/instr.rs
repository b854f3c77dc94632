//! Instructions over values that are not yet repeated, and the arithmetic of constants.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};

use super::Normaliser;
use super::lazy::{Core, Lazy};
use crate::ir::Type;
use crate::ops::Op;

impl Normaliser<'_> {
    pub(super) fn instr(&mut self, instr: &Instr, inputs: &[Lazy], ty: Type) -> Lazy {
        match instr {
            Instr::Const(_) => Lazy::number(instr.clone()),
            Instr::Extent(dim) => Lazy::number(match dim.constant() {
                Some(size) => Instr::Const(Const::float(size as f64)),
                None => instr.clone(),
            }),
            // Shaped like the operand, so that has to have its shape.
            Instr::Index(..) => {
                let full = self.force(&inputs[0]);
                Lazy::of(self.to.emit(Op::Instr(instr.clone()), &[full]), ty)
            }
            Instr::RowSum(_) => {
                let axis = inputs[0].ty.shape.len().saturating_sub(1);
                self.sum(&[axis as u8], &inputs[0], ty)
            }
            // Repetition does not change a maximum.
            Instr::RowMax(_) => {
                let shape = self.core_shape(&inputs[0].core);
                match shape.last().is_none_or(Dim::is_one) {
                    true => Lazy { ty, ..inputs[0].clone() },
                    false => {
                        let value = self.core(&inputs[0].core);
                        Lazy { core: Core::Value(self.to.emit(Op::Instr(instr.clone()), &[value])), ty }
                    }
                }
            }
            _ => match folded(instr, inputs) {
                Some(core) => Lazy { core, ty },
                None => {
                    let cores: Vec<_> = inputs.iter().map(|lazy| self.core(&lazy.core)).collect();
                    Lazy { core: Core::Value(self.to.emit(Op::Instr(instr.clone()), &cores)), ty }
                }
            },
        }
    }

    /// A program, taken apart: collapsing puts its instructions together again, beside their neighbours.
    pub(super) fn program(&mut self, prog: &Prog, inputs: &[Lazy]) -> Option<Lazy> {
        let mut values: Vec<Lazy> = vec![];
        for instr in prog.code.iter() {
            values.push(match instr {
                Instr::In(k) => inputs.get(usize::from(*k))?.clone(),
                instr => {
                    let mut operands: Vec<Lazy> = vec![];
                    let own = instr.map(|reg| {
                        operands.push(values[usize::from(reg)].clone());
                        (operands.len() - 1) as u8
                    });
                    let shape = own.shape(|reg| operands[usize::from(reg)].ty.shape.clone())?;
                    let dtype = own.dtype(|reg| operands[usize::from(reg)].ty.dtype)?;
                    self.instr(&own, &operands, Type { shape, dtype })
                }
            });
        }
        values.pop()
    }
}

/// The result without an instruction: of two constants, of `x · 1`, of `x + 0`.
fn folded(instr: &Instr, inputs: &[Lazy]) -> Option<Core> {
    if inputs.iter().any(|lazy| lazy.ty.dtype != DType::F32) {
        return None;
    }
    let constant = |reg: u8| match &inputs[usize::from(reg)].core {
        Core::Number(Instr::Const(value)) => Some(value.value()),
        _ => None,
    };
    let core = |reg: u8| Some(inputs[usize::from(reg)].core.clone());
    let number = |value: f64| value.is_finite().then(|| Core::Number(Instr::Const(Const::float(value))));
    match *instr {
        Instr::Un(Un::Nan, _) => None,
        Instr::Un(op, a) => number(op.eval(constant(a)?)),
        Instr::Bin(op, ..) if op.is_comparison() || op.is_logical() => None,
        Instr::Bin(op, a, b) => match (op, constant(a), constant(b)) {
            (_, Some(x), Some(y)) => number(op.eval(x, y)),
            (Bin::Mul | Bin::Div, _, Some(1.0)) | (Bin::Add | Bin::Sub, _, Some(0.0)) => core(a),
            (Bin::Mul, Some(1.0), _) | (Bin::Add, Some(0.0), _) => core(b),
            _ => None,
        },
        _ => None,
    }
}
