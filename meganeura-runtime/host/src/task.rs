//! A kernel description at known sizes, prepared to run.
//!
//! Everything that depends on shapes alone is decided here, once a set of sizes: which recipe runs a product, into
//! how many parts a launch is cut, which registers of a program share memory. Running allocates nothing.

use std::fmt;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::DType;

use crate::column_sum::ColumnSum;
use crate::contract::Contract;
use crate::copy::Copy;
use crate::indexed::Indexed;
use crate::rows::Rows;
use crate::threads::Threads;
use crate::view::{Source, Target};

/// How a value lies in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Elements from one index to the next, along each axis; the last axis of a value is dense.
    pub strides: Vec<usize>,
    /// What its elements are.
    pub dtype: DType,
}

/// Why a kernel cannot run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Layout {
    /// Row after row.
    pub fn dense(shape: &[usize], dtype: DType) -> Layout {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Layout { shape: shape.to_vec(), strides, dtype }
    }

    /// The number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Words from the first element to behind the last.
    pub fn span(&self) -> usize {
        if self.elements() == 0 {
            return 0;
        }
        1 + self.shape.iter().zip(&self.strides).map(|(size, stride)| (size - 1) * stride).sum::<usize>()
    }
}

/// What runs a kernel.
enum Recipe {
    Rows(Rows),
    ColumnSum(ColumnSum),
    Copy(Copy),
    Indexed(Indexed),
    Contract(Box<Contract>),
}

/// A kernel, ready to run any number of times.
pub struct Task {
    reads: Vec<Layout>,
    write: Layout,
    recipe: Recipe,
    /// Whether the result may lie exactly over the argument.
    elementwise: Vec<bool>,
}

impl Task {
    /// Prepares a kernel whose arguments and result lie as stated. The strides of a copy are its own.
    pub fn new(kernel: &Kernel, reads: &[Layout], write: &Layout, env: &Env) -> Result<Task, Refusal> {
        if reads.len() != kernel.arity() {
            return Err(Refusal(format!("{} arguments of a kernel that takes {}", reads.len(), kernel.arity())));
        }
        let recipe = match kernel {
            Kernel::Rows(prog) => Recipe::Rows(Rows::new(prog, reads, write, env)?),
            Kernel::ColumnSum(prog) => Recipe::ColumnSum(ColumnSum::new(prog, reads, write, env)?),
            Kernel::Copy(copy) => Recipe::Copy(Copy::new(copy, env)?),
            Kernel::Gather => Recipe::Indexed(Indexed::gather(reads, write)?),
            Kernel::ScatterAdd(_) => Recipe::Indexed(Indexed::scatter_add(reads, write)?),
            Kernel::Scan(scan) => Recipe::Indexed(Indexed::scan(*scan, reads, write)?),
            Kernel::Concat(_) => Recipe::Indexed(Indexed::concat(reads, write)?),
            Kernel::Contract(contract) => Recipe::Contract(Box::new(Contract::new(contract, reads, write, env)?)),
        };
        let dims = |layout: &Layout| layout.shape.iter().map(|size| Dim::from(*size as i64)).collect::<Vec<Dim>>();
        let shapes: Vec<Vec<Dim>> = reads.iter().map(dims).collect();
        let shapes: Vec<&Vec<Dim>> = shapes.iter().collect();
        let elementwise = (0..reads.len())
            .map(|k| kernel.is_elementwise_in(k, &shapes, &dims(write)) && reads[k].strides == write.strides);
        Ok(Task { elementwise: elementwise.collect(), reads: reads.to_vec(), write: write.clone(), recipe })
    }

    /// Words that a run needs beside arguments and result; runs that follow each other may share them.
    pub fn scratch(&self) -> usize {
        match &self.recipe {
            Recipe::ColumnSum(sum) => sum.scratch(),
            Recipe::Contract(contract) => contract.scratch(),
            Recipe::Rows(_) | Recipe::Copy(_) | Recipe::Indexed(_) => 0,
        }
    }

    /// Words that the kernel touches of an argument.
    fn read_span(&self, k: usize) -> usize {
        let read = match &self.recipe {
            Recipe::Rows(rows) => rows.reads(k),
            Recipe::ColumnSum(sum) => sum.reads(k),
            Recipe::Contract(contract) => contract.reads(k),
            Recipe::Copy(copy) => return copy.source_span,
            Recipe::Indexed(_) => true,
        };
        if read { self.reads[k].span() } else { 0 }
    }

    fn write_span(&self) -> usize {
        match &self.recipe {
            Recipe::Copy(copy) => copy.target_span,
            _ => self.write.span(),
        }
    }

    /// Runs it. Fails, before anything is written, if a stretch is too short or the result lies over an argument in a
    /// way that the kernel does not bear.
    pub fn run(
        &self,
        threads: &Threads,
        reads: &[Source<'_>],
        write: Target<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Refusal> {
        if reads.len() != self.reads.len() || scratch.len() < self.scratch() {
            return Err(Refusal("another number of arguments, or too little scratch".into()));
        }
        let written = self.write_span();
        if write.words() < written {
            return Err(Refusal(format!("a result of {written} words in {}", write.words())));
        }
        for (k, source) in reads.iter().enumerate() {
            let read = self.read_span(k);
            if source.words() < read {
                return Err(Refusal(format!("argument {k} of {read} words in {}", source.words())));
            }
            let (from, to) = (source.address(), write.address());
            let apart = read == 0 || written == 0 || from + 4 * read <= to || to + 4 * written <= from;
            if apart || (self.elementwise[k] && from == to) {
                continue;
            }
            let copies = matches!(self.recipe, Recipe::Copy(_));
            if copies || !interleaved((from / 4, &self.reads[k]), (to / 4, &self.write)) {
                return Err(Refusal(format!("the result lies over argument {k}")));
            }
        }
        match &self.recipe {
            Recipe::Rows(rows) => rows.run(threads, reads, &write),
            Recipe::ColumnSum(sum) => sum.run(threads, reads, &write, scratch),
            Recipe::Copy(copy) => copy.run(threads, &reads[0], &write),
            Recipe::Indexed(indexed) => indexed.run(threads, reads, &write),
            Recipe::Contract(contract) => return contract.run(threads, reads, &write, scratch),
        }
        Ok(())
    }
}

/// Whether two values, given with their first words, lie in different columns of the same longer rows.
fn interleaved((a_first, a): (usize, &Layout), (b_first, b): (usize, &Layout)) -> bool {
    let step = |layout: &Layout| layout.strides.len().checked_sub(2).map(|axis| layout.strides[axis]);
    let (Some(step), Some(other)) = (step(a), step(b)) else { return false };
    let even = |layout: &Layout| layout.strides[..layout.strides.len() - 1].iter().all(|stride| stride % step == 0);
    if step == 0 || step != other || !even(a) || !even(b) {
        return false;
    }
    // Columns of both, counted from the first of `a`.
    let start = (b_first as i64 - a_first as i64).rem_euclid(step as i64) as usize;
    let columns = |layout: &Layout| layout.shape[layout.shape.len() - 1];
    columns(a) <= start && start + columns(b) <= step
}
