//! Row programs as launches: cut into parts of rows and, where nothing is reduced, of columns.

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::Prog;
use smallvec::SmallVec;

use crate::program::{Argument, Output, RowProgram};
use crate::task::{Layout, Refusal};
use crate::threads::{Threads, lane};
use crate::view::{Source, Target};

/// Elements of simple work in a part: some microseconds, so that handing it over is cheap beside it.
const PART: usize = 32 << 10;

/// A row program that is ready to run.
pub(crate) struct Rows {
    program: RowProgram,
    /// Rows and columns of a part.
    rows: usize,
    columns: usize,
}

impl Rows {
    pub(crate) fn new(prog: &Prog, args: &[Layout], result: &Layout, env: &Env) -> Result<Rows, Refusal> {
        let program = RowProgram::flat(prog, args, result, env)?;
        let work = PART / (1 + program.cost() as usize / 16);
        let longest = program.longest().max(program.columns()).max(1);
        let (rows, columns) = match program.reduces() || longest < work {
            true => ((work / longest).max(1), program.columns()),
            false => (1, work.next_multiple_of(512)),
        };
        Ok(Rows { program, rows, columns: columns.max(1) })
    }

    /// Whether an argument's elements matter.
    pub(crate) fn reads(&self, k: usize) -> bool {
        self.program.reads(k)
    }

    /// Runs it on stretches that were checked.
    pub(crate) fn run(&self, threads: &Threads, reads: &[Source<'_>], write: &Target<'_>) {
        let arguments: SmallVec<[Argument<'_>; 12]> = reads.iter().map(|source| Argument::Whole(*source)).collect();
        let (rows, columns) = (self.program.rows(), self.program.columns());
        let across = columns.div_ceil(self.columns);
        threads.parts(rows.div_ceil(self.rows) * across, |part| {
            let (row, column) = (part / across * self.rows, part % across * self.columns);
            let (row, column) = (row..rows.min(row + self.rows), column..columns.min(column + self.columns));
            lane(self.program.scratch(), |scratch| {
                // SAFETY: parts are disjoint, and the task checked how arguments and result overlap.
                unsafe { self.program.run(row, column, &arguments, &Output::Whole(write), scratch) }
            });
        });
    }
}
