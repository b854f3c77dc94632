//! Row programs at known layouts.
//!
//! [`RowProgram::new`] compiles a program once for arguments and a result that lie as stated; [`RowProgram::run`]
//! computes a rectangle of the result: some of its rows (indices along all axes but the last, counted as one) and,
//! where nothing is reduced, some of its columns. Arguments and result lie where their layouts say
//! ([`Argument::Whole`], [`Output::Whole`]: from the first element of the whole value) or in a panel of the rectangle
//! alone ([`Argument::Panel`], [`Output::Panel`]: element (r, c) of the rectangle at `r * stride + c`, or `r * stride`
//! for an argument of one column). What an input has one word of along an axis need not be told: strides are 0 there,
//! whatever a layout says where the size is 1, and a layout may say 0 where it is not.
//!
//! ```text
//! let epilogue = RowProgram::new(&contract.epi, &layouts, &result, env)?;
//! lane(own + epilogue.scratch(), |words| {
//!     let (panel, rest) = words.split_at_mut(own);
//!     .. accumulators of rows r0..r1 and columns c0..c1 into panel, `stride` words from row to row ..
//!     let accumulators = Source::new(bytemuck::cast_slice(panel));
//!     // SAFETY: ..
//!     unsafe { epilogue.run(r0..r1, c0..c1, &[Argument::Panel(accumulators, stride), Argument::Whole(bias)], &Output::Whole(&write), rest) };
//! });
//! ```

mod compile;
mod exec;
mod fold;
mod loops;
mod space;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::Range;

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::Prog;

use crate::task::{Layout, Refusal};
use crate::view::{Source, Target};
use compile::Compiled;

/// Where an argument of a run lies.
#[derive(Clone, Copy)]
pub(crate) enum Argument<'a> {
    /// As its layout says.
    Whole(Source<'a>),
    /// The rectangle alone, rows this many words apart.
    Panel(Source<'a>, usize),
}

/// Where the result of a run lies.
pub(crate) enum Output<'t, 'a> {
    /// As its layout says.
    Whole(&'t Target<'a>),
    /// The rectangle alone, rows this many words apart.
    Panel(&'t Target<'a>, usize),
}

/// A program at known layouts.
#[derive(Clone, Debug)]
pub(crate) struct RowProgram {
    code: Compiled,
}

impl RowProgram {
    /// With the rows and columns of the result as its shape has them.
    pub(crate) fn new(prog: &Prog, args: &[Layout], result: &Layout, env: &Env) -> Result<RowProgram, Refusal> {
        Ok(RowProgram { code: Compiled::new(prog, args, result, env, false)? })
    }

    /// With columns as long as strides allow, if nothing is reduced.
    pub(crate) fn flat(prog: &Prog, args: &[Layout], result: &Layout, env: &Env) -> Result<RowProgram, Refusal> {
        Ok(RowProgram { code: Compiled::new(prog, args, result, env, true)? })
    }

    /// Rows of the result.
    pub(crate) fn rows(&self) -> usize {
        self.code.space.rows
    }

    /// Columns of the result.
    pub(crate) fn columns(&self) -> usize {
        self.code.space.columns
    }

    /// Whether rows must be taken whole.
    pub(crate) fn reduces(&self) -> bool {
        self.code.reduces
    }

    /// Elements of the longest row.
    pub(crate) fn longest(&self) -> usize {
        self.code.longest
    }

    /// Floating-point operations for an element of a row.
    pub(crate) fn cost(&self) -> u64 {
        self.code.cost
    }

    /// Words that a run needs beside arguments and result.
    pub(crate) fn scratch(&self) -> usize {
        self.code.scratch()
    }

    /// The arguments that are read at all; others count for their shape.
    pub(crate) fn reads(&self, k: usize) -> bool {
        self.code.inputs.get(k).is_some_and(Option::is_some)
    }

    /// Computes a rectangle of the result; `scratch` holds what was left there.
    ///
    /// # Safety
    ///
    /// Nobody else writes the arguments or touches the rectangle meanwhile. An argument may lie over the result only
    /// exactly, each element over that which is computed from it, in a program that reduces nothing.
    pub(crate) unsafe fn run(
        &self,
        rows: Range<usize>,
        columns: Range<usize>,
        arguments: &[Argument<'_>],
        output: &Output<'_, '_>,
        scratch: &mut [f32],
    ) {
        // SAFETY: the caller's.
        unsafe { self.code.run(pulp::Arch::new(), rows, columns, arguments, output, scratch) }
    }
}
