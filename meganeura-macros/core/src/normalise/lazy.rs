//! Values that are not yet repeated along their axes: most readers do that by themselves.

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::prog::{DType, Instr};

use super::Normaliser;
use crate::ir::{Type, ValueId};
use crate::ops::{Broadcast, Op};

/// What is stored of a value.
#[derive(Clone, Debug)]
pub(super) enum Core {
    /// A value of the new graph.
    Value(ValueId),
    /// A constant or the size of a dimension, made anew wherever it is read.
    Number(Instr),
}

/// `core`, repeated to `ty`.
#[derive(Clone, Debug)]
pub(super) struct Lazy {
    pub(super) core: Core,
    pub(super) ty: Type,
}

impl Lazy {
    pub(super) fn of(value: ValueId, ty: Type) -> Lazy {
        Lazy { core: Core::Value(value), ty }
    }

    pub(super) fn number(instr: Instr) -> Lazy {
        let dtype = instr.dtype(|_| DType::F32).unwrap_or(DType::F32);
        Lazy { core: Core::Number(instr), ty: Type { shape: vec![], dtype } }
    }
}

impl Normaliser<'_> {
    /// The value of a core in the block that is being built.
    pub(super) fn core(&mut self, core: &Core) -> ValueId {
        match core {
            Core::Value(value) => *value,
            Core::Number(instr) => self.to.emit(Op::Instr(instr.clone()), &[]),
        }
    }

    pub(super) fn core_shape(&self, core: &Core) -> Shape {
        match core {
            Core::Value(value) => self.to.shape(*value).clone(),
            Core::Number(_) => vec![],
        }
    }

    /// The value in its full shape.
    pub(super) fn force(&mut self, lazy: &Lazy) -> ValueId {
        let value = self.core(&lazy.core);
        let shape = self.to.shape(value);
        if *shape == lazy.ty.shape {
            return value;
        }
        let leading = lazy.ty.shape.len().checked_sub(shape.len());
        let only_ones =
            leading.is_some_and(|n| lazy.ty.shape[..n].iter().all(Dim::is_one) && lazy.ty.shape[n..] == shape[..]);
        if only_ones {
            return self.to.reshape(value, lazy.ty.shape.clone());
        }
        self.to.emit(Op::Broadcast(Broadcast { shape: lazy.ty.shape.clone() }), &[value])
    }

    /// The same elements with leading axes of size 1 up to the given rank.
    pub(super) fn with_rank(&mut self, value: ValueId, rank: usize) -> ValueId {
        let shape = self.to.shape(value).clone();
        let ones = vec![Dim::from(1); rank.saturating_sub(shape.len())];
        self.to.reshape(value, [ones, shape].concat())
    }
}
