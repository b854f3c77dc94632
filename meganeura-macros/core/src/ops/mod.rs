//! The operations of a graph. A pointwise one is a row of the registry in `meganeura_shaders::pointwise`; a structural
//! one is a file here and a line in `structural!`; a composite is a body over both.

mod broadcast;
pub mod composite;
mod concat;
mod contract;
mod eval;
mod gather;
mod pad;
mod reshape;
mod scan;
mod scatter_add;
mod slice;
mod stop_gradient;
mod sum;
#[cfg(test)]
mod tests;
mod transpose;
mod vjp;

use std::fmt;

use meganeura_shaders::dim::{Env, Shape, Symbols};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::{DType, Instr, Prog};
use meganeura_shaders::reference::Tensor;

pub use broadcast::Broadcast;
pub use concat::Concat;
pub use contract::Contract;
pub use gather::Gather;
pub use pad::Pad;
pub use reshape::Reshape;
pub use scan::RunningTotal;
pub use scatter_add::ScatterAdd;
pub use slice::Slice;
pub use stop_gradient::StopGradient;
pub use sum::Sum;
pub use transpose::Transpose;
pub use vjp::{NotDifferentiable, Tape};

use crate::ir::{Call, Repeat, StoreId, Type, ValueId};

/// Why an operation does not take its inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misfit(pub String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a structural operation states.
pub trait Structural {
    /// The name in dumps and errors.
    const NAME: &'static str;

    /// Whether the result lies in memory as the input does, under another shape or from a later row on.
    fn is_view(&self) -> bool {
        false
    }

    /// Whether the result counts as a constant for gradients.
    fn is_flat(&self) -> bool {
        false
    }

    /// The kernel that the operation is, if it is one and nothing else.
    fn kernel(&self) -> Option<Kernel> {
        None
    }

    /// The shape of the result.
    fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit>;

    /// The value; the inputs fit.
    fn eval(&self, inputs: &[&Tensor], env: &Env) -> Tensor;

    /// The cotangent of input `k` from that of the result; it may still be larger where the input was broadcast.
    fn vjp(&self, k: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<ValueId, NotDifferentiable>;
}

macro_rules! structural {
    ($($Name:ident),+) => {
        /// What a node does.
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Op {
            /// Memory from outside.
            Read(StoreId),
            /// One instruction, whose registers are the node's inputs, broadcast; never `In`.
            Instr(Instr),
            /// Several instructions over the node's inputs.
            Rows(Prog),
            $(#[allow(missing_docs)] $Name($Name),)+
            /// A composite.
            Call(Call),
            /// A loop.
            Repeat(Repeat),
            /// A chosen kernel.
            Kernel(Kernel),
            /// Chosen kernels of one launch: the inputs of each in order, one output each.
            Launch(Vec<Kernel>),
        }

        impl Op {
            /// The name in dumps and errors.
            pub fn name(&self) -> &str {
                match self {
                    $(Op::$Name(_) => $Name::NAME,)+
                    Op::Read(_) => "read",
                    Op::Instr(instr) => instr_name(instr),
                    Op::Rows(_) => "rows",
                    Op::Call(call) => &call.name,
                    Op::Repeat(_) => "repeat",
                    Op::Kernel(kernel) => kernel.name(),
                    Op::Launch(_) => "launch",
                }
            }

            /// Same memory under another shape: no step.
            pub fn is_view(&self) -> bool {
                match self {
                    $(Op::$Name(op) => op.is_view(),)+
                    _ => false,
                }
            }

            /// The kernel of a structural operation that is one and nothing else.
            pub fn kernel(&self) -> Option<Kernel> {
                match self {
                    $(Op::$Name(op) => op.kernel(),)+
                    _ => None,
                }
            }

            fn is_constant_for_gradients(&self) -> bool {
                match self {
                    $(Op::$Name(op) => op.is_flat(),)+
                    _ => false,
                }
            }

            fn infer_structural(&self, inputs: &[&Type], symbols: &Symbols) -> Option<Result<Shape, Misfit>> {
                match self {
                    $(Op::$Name(op) => Some(op.infer(inputs, symbols)),)+
                    _ => None,
                }
            }

            fn eval_structural(&self, inputs: &[&Tensor], env: &Env) -> Option<Tensor> {
                match self {
                    $(Op::$Name(op) => Some(op.eval(inputs, env)),)+
                    _ => None,
                }
            }

            fn vjp_structural(
                &self,
                k: usize,
                cotangent: ValueId,
                tape: &mut dyn Tape,
            ) -> Option<Result<ValueId, NotDifferentiable>> {
                match self {
                    $(Op::$Name(op) => Some(op.vjp(k, cotangent, tape)),)+
                    _ => None,
                }
            }
        }
    };
}

structural!(
    Reshape,
    Broadcast,
    Transpose,
    Slice,
    Pad,
    Sum,
    Contract,
    Gather,
    ScatterAdd,
    RunningTotal,
    Concat,
    StopGradient
);

impl Op {
    /// The type of the result of an operation that has one.
    pub fn infer(&self, inputs: &[&Type], symbols: &Symbols) -> Result<Type, Misfit> {
        if let Some(shape) = self.infer_structural(inputs, symbols) {
            let dtype = inputs.first().map_or(DType::F32, |ty| ty.dtype);
            return Ok(Type { shape: shape?, dtype });
        }
        let shapes: Vec<&Shape> = inputs.iter().map(|ty| &ty.shape).collect();
        let dtypes: Vec<DType> = inputs.iter().map(|ty| ty.dtype).collect();
        let found = match self {
            Op::Instr(instr) => instr_type(instr, inputs),
            Op::Rows(prog) => prog.shape(&shapes).zip(prog.dtypes(&dtypes).and_then(|mut d| d.pop())),
            Op::Kernel(kernel) => kernel.shape(&shapes).zip(kernel.dtype(&dtypes)),
            _ => None,
        };
        found
            .map(|(shape, dtype)| Type { shape, dtype })
            .ok_or_else(|| Misfit(format!("`{}` does not take {}", self.name(), show_types(inputs, symbols))))
    }

    /// The cotangent of input `k` from that of the result; none where the result does not change with it. Programs,
    /// composites and loops are taken apart before.
    pub fn vjp(&self, k: usize, cotangent: ValueId, tape: &mut dyn Tape) -> Result<Option<ValueId>, NotDifferentiable> {
        if let Some(result) = self.vjp_structural(k, cotangent, tape) {
            return result.map(Some);
        }
        match self {
            Op::Instr(instr) => Ok(vjp::instr_vjp(instr, k, cotangent, tape)),
            _ => Err(NotDifferentiable(format!("`{}` has no derivative", self.name()))),
        }
    }

    /// Whether the result does not change, or only jumps, with input `k`.
    pub fn is_flat(&self, k: usize) -> bool {
        matches!(self, Op::Instr(instr) if vjp::is_flat(instr, k)) || self.is_constant_for_gradients()
    }
}

fn instr_type(instr: &Instr, inputs: &[&Type]) -> Option<(Shape, DType)> {
    let fits = instr.operands().all(|r| usize::from(r) < inputs.len());
    let shape = fits.then(|| instr.shape(|r| inputs[usize::from(r)].shape.clone()))??;
    Some((shape, instr.dtype(|r| inputs[usize::from(r)].dtype)?))
}

fn instr_name(instr: &Instr) -> &'static str {
    match instr {
        Instr::In(_) => "in",
        Instr::Const(_) => "constant",
        Instr::Extent(_) => "size",
        Instr::Un(op, _) => op.name(),
        Instr::Bin(op, ..) => op.name(),
        Instr::Select(..) => "where",
        Instr::Cast(..) => "cast",
        Instr::RowSum(_) => "row_sum",
        Instr::RowMax(_) => "row_max",
        Instr::Index(..) => "index",
    }
}

/// Types for people: `f32[batch, 10], u32[batch]`.
pub fn show_types(types: &[&Type], symbols: &Symbols) -> String {
    let show = |ty: &&Type| format!("{}{}", ty.dtype, symbols.show_shape(&ty.shape));
    types.iter().map(show).collect::<Vec<_>>().join(", ")
}

/// The shape of what a kernel makes of its inputs.
fn of_kernel(kernel: &Kernel, inputs: &[&Type], symbols: &Symbols) -> Result<Shape, Misfit> {
    let (shapes, dtypes): (Vec<&Shape>, Vec<DType>) = inputs.iter().map(|ty| (&ty.shape, ty.dtype)).unzip();
    let fits = kernel.arity() == inputs.len() && kernel.dtype(&dtypes).is_some();
    let shape = fits.then(|| kernel.shape(&shapes)).flatten();
    shape.ok_or_else(|| Misfit(format!("`{}` does not take {}", kernel.name(), show_types(inputs, symbols))))
}

/// The value of a kernel.
fn value_of(kernel: &Kernel, inputs: &[&Tensor], env: &Env) -> Tensor {
    let args: Vec<Tensor> = inputs.iter().map(|tensor| (*tensor).clone()).collect();
    meganeura_shaders::reference::eval(kernel, &args, env)
}

/// The only input.
fn one<'t>(name: &str, inputs: &[&'t Type]) -> Result<&'t Type, Misfit> {
    match inputs {
        [ty] => Ok(ty),
        _ => Err(Misfit(format!("`{name}` takes one input, found {}", inputs.len()))),
    }
}
