//! How far a kernel's result may be from the reference, by what it computes. There are no exceptions: a case may ask for
//! more than its class, never for less.

use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Prog};

/// Classes, from the strictest. Errors are relative to the larger of 1 and the reference.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Class {
    /// Moved, chosen or compared: the same value.
    Exact,
    /// Rounded once for each operation: what IEEE 754 rounds to the nearest, and division and roots, to which Vulkan gives
    /// 2.5 units in the last place.
    Rounded,
    /// Functions that drivers approximate, and sums and maxima of rows, whose order is the device's.
    Function,
    /// Sums of products, products of many, and whatever feeds on them.
    Product,
}

impl Class {
    pub(crate) fn bound(self) -> f64 {
        match self {
            Class::Exact => 0.0,
            Class::Rounded => 1e-6,
            Class::Function => 2e-5,
            Class::Product => 1e-4,
        }
    }

    /// Of a kernel whose result has these elements. Integers and truth are exact, whatever is done with them.
    pub(crate) fn of(kernel: &Kernel, dtype: DType) -> Class {
        if dtype != DType::F32 {
            return Class::Exact;
        }
        match kernel {
            Kernel::Copy(_) | Kernel::Gather | Kernel::Concat(_) => Class::Exact,
            Kernel::Rows(program) => of_program(program),
            Kernel::ColumnSum(program) => of_program(program).max(Class::Function),
            Kernel::ScatterAdd(_) => Class::Function,
            Kernel::Contract(_) | Kernel::Scan(_) => Class::Product,
        }
    }
}

fn of_program(program: &Prog) -> Class {
    program.code.iter().map(of_instruction).max().unwrap_or(Class::Exact)
}

fn of_instruction(instruction: &Instr) -> Class {
    match instruction {
        Instr::In(_) | Instr::Select(..) | Instr::RowMax(_) | Instr::Index(..) => Class::Exact,
        Instr::Const(_) | Instr::Extent(_) | Instr::Cast(..) => Class::Rounded,
        Instr::RowSum(_) => Class::Function,
        Instr::Un(
            Un::Neg | Un::Abs | Un::Floor | Un::Ceil | Un::Round | Un::Sign | Un::Relu | Un::Not | Un::Nan,
            _,
        ) => Class::Exact,
        Instr::Un(Un::Sqrt | Un::Rsqrt | Un::Recip, _) => Class::Rounded,
        Instr::Un(..) => Class::Function,
        Instr::Bin(Bin::Min | Bin::Max | Bin::Lt | Bin::Le | Bin::Eq | Bin::And | Bin::Or | Bin::Hash, ..) => {
            Class::Exact
        }
        Instr::Bin(Bin::Add | Bin::Sub | Bin::Mul | Bin::Div, ..) => Class::Rounded,
        Instr::Bin(..) => Class::Function,
    }
}
