//! Contractions at known sizes: products tile by tile, with a program over each tile while it is in the cache.
//!
//! In come layouts of arguments and result. Sides with a program, and statistics, are computed first, into the task's
//! scratch; all others are read where they lie. Then each part of the launch multiplies its tiles: straight into the
//! result where nothing follows, else into the thread's own scratch, from where the epilogue writes the result. So no
//! intermediate has the result's size, and parts share nothing but what they read.

mod axes;
mod epilogue;
#[cfg(test)]
mod tests;
mod tiles;
mod walk;

use meganeura_shaders::dim::Env;
use meganeura_shaders::kernel::{self, Kernel};
use meganeura_shaders::prog::{DType, Instr, Prog};
use smallvec::SmallVec;

use self::axes::Axis;
use self::epilogue::{Epilogue, area};
use self::tiles::{Form, Tile, Tiles};
use self::walk::{Origin, Space, Steps, Term};
use crate::product::Matrix;
use crate::task::{Layout, Refusal, Task};
use crate::threads::{Threads, lane};
use crate::view::{Source, Target};

/// A row program whose result the products or the epilogue read.
struct Ahead {
    prog: Prog,
    task: Task,
    /// Its first argument among all.
    from: usize,
    reads: Vec<Layout>,
    /// Where its result goes in the task's scratch, and its words.
    to: usize,
    words: usize,
    /// An earlier one that computes the same if its arguments are the same memory.
    twin: Option<usize>,
}

/// A prepared contraction.
pub(crate) struct Contract {
    ahead: Vec<Ahead>,
    terms: Vec<Term>,
    tiles: Tiles,
    /// Sizes of the axes around the tiles.
    outer: Vec<usize>,
    result: Steps,
    /// None: the products of the only term are the result.
    epilogue: Option<Epilogue>,
    /// Where the words begin that programs which run first may use.
    spare: usize,
    scratch: usize,
}

impl Contract {
    /// Prepares; fails where layouts do not fit.
    pub fn new(contract: &kernel::Contract, reads: &[Layout], write: &Layout, env: &Env) -> Result<Contract, Refusal> {
        let misfit = || Refusal(format!("arguments or result do not fit `{contract}`"));
        let shapes: Vec<Vec<i64>> = reads.iter().map(|read| signed(&read.shape)).collect();
        let inside = contract.shapes(&shapes.iter().collect::<Vec<_>>()).ok_or_else(misfit)?;
        let types: Vec<DType> = reads.iter().map(|read| read.dtype).collect();
        let dtype = contract.dtypes(&types).and_then(|mut types| types.pop()).ok_or_else(misfit)?;
        if inside.epi != signed(&write.shape) || dtype != write.dtype || contract.terms.is_empty() {
            return Err(misfit());
        }
        let mut ahead = Programs { reads, env, all: vec![], room: 0 };
        let (mut sides, mut next) = (vec![], 0);
        let mut stats = vec![];
        for (k, term) in contract.terms.iter().enumerate() {
            let (from, count) = (next, usize::from(term.a.inputs));
            let a = ahead.side(&term.a, from, &inside.a[k])?;
            let b = ahead.side(&term.b, from + count, &inside.b[k])?;
            sides.push([a, b]);
            if let Some(stat) = &term.stat {
                // The rows of the statistic, and ones where more than one axis of the result stands for the last.
                stats.push(ahead.run_first(stat, from, count, &inside.stats[stats.len()])?);
            }
            next = from + count + usize::from(term.b.inputs);
        }
        let extras = (next..reads.len()).map(|k| (Origin::Argument(k), reads[k].clone()));
        let inputs: Vec<(Origin, Layout)> = stats.into_iter().chain(extras).collect();
        let space = Space::new(contract, &sides, &inputs, write).ok_or_else(misfit)?;
        let direct = contract.epi.is_identity() && contract.terms.len() == 1;
        let depth = space.terms.iter().map(|term| term.depth * term.loops.iter().product::<usize>()).sum();
        let outer: Vec<usize> = space.outer.iter().map(|axis| axis.size).collect();
        let size = |axis: &Option<Axis>| axis.as_ref().map_or(1, |axis| axis.size);
        let form = Form { direct, wide: space.terms.iter().all(|term| term.depth_steps[0] > 1) };
        let tiles = Tiles::new(outer.iter().product(), size(&space.rows), size(&space.columns), depth, form);
        let result = space.steps(0);
        let epilogue = match direct {
            true => None,
            false => {
                let accumulators = std::iter::repeat_n(&inside.acc, contract.terms.len());
                let extras = &shapes[next..];
                let shapes: Vec<&Vec<i64>> = accumulators.chain(&inside.stats).chain(extras).collect();
                Some(Epilogue::new(&contract.epi, &space.axes(), &inputs, &shapes, dtype, env)?)
            }
        };
        let spare = ahead.room;
        let scratch = spare + ahead.all.iter().map(|ahead| ahead.task.scratch()).max().unwrap_or(0);
        Ok(Contract { ahead: ahead.all, terms: space.terms, tiles, outer, result, epilogue, spare, scratch })
    }

    /// Words that a run needs beside arguments and result.
    pub fn scratch(&self) -> usize {
        self.scratch
    }

    /// Whether an argument's elements matter.
    pub fn reads(&self, k: usize) -> bool {
        let input =
            |ahead: &Ahead| k.checked_sub(ahead.from).is_some_and(|k| ahead.prog.code.contains(&Instr::In(k as u8)));
        let side = |term: &Term| term.origins.contains(&Origin::Argument(k));
        let last = self.epilogue.as_ref().is_some_and(|epilogue| epilogue.reads(Origin::Argument(k)));
        last || self.ahead.iter().any(input) || self.terms.iter().any(side)
    }

    /// Runs it over stretches that are long enough; the result may lie over arguments of the epilogue alone, and only
    /// exactly.
    pub fn run(
        &self,
        threads: &Threads,
        reads: &[Source<'_>],
        write: &Target<'_>,
        scratch: &mut [f32],
    ) -> Result<(), Refusal> {
        let (values, spare) = scratch.split_at_mut(self.spare);
        let mut computed: SmallVec<[usize; 8]> = SmallVec::new();
        for ahead in &self.ahead {
            let own = |from: usize| reads[from..from + ahead.reads.len()].iter().map(Source::address);
            let twin = ahead.twin.filter(|twin| own(self.ahead[*twin].from).eq(own(ahead.from)));
            computed.push(twin.map_or(ahead.to, |twin| computed[twin]));
            if twin.is_none() {
                let to = Target::new(bytemuck::cast_slice_mut(&mut values[ahead.to..][..ahead.words]));
                ahead.task.run(threads, &reads[ahead.from..][..ahead.reads.len()], to, spare)?;
            }
        }
        let values: &[u32] = bytemuck::cast_slice(values);
        let source = |origin: Origin| match origin {
            Origin::Argument(k) => reads[k],
            Origin::Ahead(k) => Source::new(&values[computed[k]..]),
        };
        let sides: SmallVec<[[Source<'_>; 2]; 4]> = self.terms.iter().map(|term| term.origins.map(source)).collect();
        let origins = self.epilogue.as_ref().map_or(&[][..], |epilogue| &epilogue.inputs);
        let inputs: SmallVec<[Source<'_>; 8]> = origins.iter().map(|origin| source(*origin)).collect();
        threads.parts(self.tiles.parts(), |part| {
            for tile in self.tiles.of(part) {
                // SAFETY: stretches are as long as the layouts say, and no other part has elements of this tile.
                unsafe { self.tile(tile, &sides, &inputs, write) };
            }
        });
        Ok(())
    }

    /// # Safety
    ///
    /// Sides, inputs of the epilogue and result are as long as the layouts say; nobody else touches the tile.
    unsafe fn tile(&self, tile: Tile, sides: &[[Source<'_>; 2]], inputs: &[Source<'_>], write: &Target<'_>) {
        let at = self.result.at(&self.outer, tile);
        let Some(epilogue) = &self.epilogue else {
            let first = write.first().cast::<f32>().wrapping_add(at);
            let place = Matrix { first, row: self.result.row, column: self.result.column };
            // SAFETY: the caller's promise.
            return unsafe { self.terms[0].multiply(&sides[0], &self.outer, tile, place) };
        };
        lane(epilogue.scratch(&self.tiles), |words| {
            for (k, (term, sides)) in self.terms.iter().zip(sides).enumerate() {
                let first = words[k * area(&self.tiles)..].as_mut_ptr();
                let place = Matrix { first, row: self.tiles.width, column: 1 };
                // SAFETY: the caller's promise, and the scratch is this thread's own.
                unsafe { term.multiply(sides, &self.outer, tile, place) };
            }
            // SAFETY: the caller's promise.
            unsafe { epilogue.run(&self.tiles, tile, inputs, write, (&self.result, at), words) };
        });
    }
}

/// Collects the programs that run first.
struct Programs<'a> {
    reads: &'a [Layout],
    env: &'a Env,
    all: Vec<Ahead>,
    room: usize,
}

impl Programs<'_> {
    /// One side of a product: where it lies already or will lie.
    fn side(&mut self, prog: &Prog, from: usize, shape: &[i64]) -> Result<(Origin, Layout), Refusal> {
        if prog.is_identity() {
            return Ok((Origin::Argument(from), self.reads[from].clone()));
        }
        self.run_first(prog, from, usize::from(prog.inputs), shape)
    }

    fn run_first(
        &mut self,
        prog: &Prog,
        from: usize,
        count: usize,
        shape: &[i64],
    ) -> Result<(Origin, Layout), Refusal> {
        let reads = self.reads[from..from + count].to_vec();
        let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
        let layout = Layout::dense(&shape, DType::F32);
        let own =
            prog.shape(&reads.iter().map(|read| signed(&read.shape)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        let own: Vec<usize> = own.unwrap_or_default().iter().map(|size| *size as usize).collect();
        let task = Task::new(&Kernel::Rows(prog.clone()), &reads, &Layout::dense(&own, DType::F32), self.env)?;
        let twin = self.all.iter().position(|ahead| ahead.prog == *prog && ahead.reads == reads);
        let (to, words) = (self.room, layout.span());
        self.room += words.next_multiple_of(16);
        self.all.push(Ahead { prog: prog.clone(), task, from, reads, to, words, twin });
        Ok((Origin::Ahead(self.all.len() - 1), layout))
    }
}

fn signed(shape: &[usize]) -> Vec<i64> {
    shape.iter().map(|size| *size as i64).collect()
}
