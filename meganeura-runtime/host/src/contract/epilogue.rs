//! The program over accumulators, on one tile while it is in the cache.
//!
//! It is compiled for a result whose axes are those around the tiles, the rows and the columns, in this order, so that a
//! tile is a rectangle of it. Accumulators lie in the thread's scratch; everything else is read where it lies.

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::{Const, DType, Instr, Prog};

use super::axes::Axis;
use super::tiles::{Tile, Tiles};
use super::walk::{Operand, Origin, Steps};
use crate::program::{Argument, Output, RowProgram};
use crate::task::{Layout, Refusal};
use crate::view::{Source, Target};

/// A compiled epilogue.
pub(super) struct Epilogue {
    program: RowProgram,
    /// The accumulators among its inputs, which are the first.
    terms: usize,
    /// Where the others lie.
    pub inputs: Vec<Origin>,
    /// Rows of a matrix.
    rows: usize,
    /// Columns of the result are no neighbours, so that it is written through scratch.
    scattered: bool,
}

impl Epilogue {
    /// `axes` are those around the tiles, the rows and the columns; each steps through the result first and through
    /// `inputs` last. `shapes` are those of all the program's inputs before axes were joined.
    pub fn new(
        prog: &Prog,
        axes: &[Axis],
        inputs: &[Operand],
        shapes: &[&Vec<i64>],
        dtype: DType,
        env: &Env,
    ) -> Result<Epilogue, Refusal> {
        if prog.reduces_rows() {
            return Err(Refusal("an epilogue that reduces rows".into()));
        }
        let terms = shapes.len() - inputs.len();
        let shape: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let steps = |operand: usize| axes.iter().map(|axis| axis.steps[operand]).collect::<Vec<usize>>();
        let sums = std::iter::repeat_n(Layout::dense(&shape, DType::F32), terms);
        let others = inputs.iter().enumerate().map(|(k, (_, layout))| Layout {
            shape: shape.clone(),
            strides: steps(1 + 2 * terms + k),
            dtype: layout.dtype,
        });
        let layouts: Vec<Layout> = sums.chain(others).collect();
        let columns = &axes[axes.len() - 1];
        let scattered = columns.size > 1 && columns.steps[0] != 1;
        let result = match scattered {
            true => Layout::dense(&shape, dtype),
            false => Layout { shape: shape.clone(), strides: steps(0), dtype },
        };
        let prog = moved(prog, axes, shapes);
        let program = RowProgram::new(&prog, &layouts, &result, env)?;
        let rows = axes[axes.len() - 2].size;
        Ok(Epilogue { program, terms, inputs: inputs.iter().map(|(origin, _)| *origin).collect(), rows, scattered })
    }

    /// Whether the elements of something matter.
    pub fn reads(&self, origin: Origin) -> bool {
        self.inputs.iter().enumerate().any(|(k, input)| *input == origin && self.program.reads(self.terms + k))
    }

    /// Words that a tile needs: accumulators, a result that is to be scattered, and what the program needs.
    pub fn scratch(&self, tiles: &Tiles) -> usize {
        (self.terms + usize::from(self.scattered)) * area(tiles) + self.program.scratch()
    }

    /// Computes a tile of the result. `words` has the accumulators at the beginning of each area.
    ///
    /// # Safety
    ///
    /// Nobody else touches the tile or writes what is read meanwhile; sources and result are as long as their layouts
    /// say, and the result lies over a source only exactly.
    pub unsafe fn run(
        &self,
        tiles: &Tiles,
        tile: Tile,
        sources: &[Source<'_>],
        write: &Target<'_>,
        (steps, at): (&Steps, usize),
        words: &mut [f32],
    ) {
        let area = area(tiles);
        let (sums, rest) = words.split_at_mut(self.terms * area);
        let sums: &[u32] = bytemuck::cast_slice(sums);
        let panels = (0..self.terms).map(|k| Argument::Panel(Source::new(&sums[k * area..][..area]), tiles.width));
        let arguments: smallvec::SmallVec<[Argument<'_>; 12]> =
            panels.chain(sources.iter().map(|source| Argument::Whole(*source))).collect();
        let first = tile.outer * self.rows + tile.row;
        let (rows, columns) = (first..first + tile.rows, tile.column..tile.column + tile.columns);
        if !self.scattered {
            // SAFETY: the caller's promise.
            unsafe { self.program.run(rows, columns, &arguments, &Output::Whole(write), rest) };
            return;
        }
        let (panel, rest) = rest.split_at_mut(area);
        let panel: &mut [u32] = bytemuck::cast_slice_mut(panel);
        let target = Target::new(panel);
        // SAFETY: the caller's promise; the panel is apart from everything.
        unsafe { self.program.run(rows, columns, &arguments, &Output::Panel(&target, tiles.width), rest) };
        for row in 0..tile.rows {
            for column in 0..tile.columns {
                // SAFETY: elements of the panel and of the tile.
                unsafe {
                    let word = *target.first().add(row * tiles.width + column);
                    *write.first().add(at + row * steps.row + column * steps.column) = word;
                }
            }
        }
    }
}

/// Words between the accumulators of two terms.
pub(super) fn area(tiles: &Tiles) -> usize {
    (tiles.height * tiles.width).next_multiple_of(16)
}

/// The program with indices along the axes' new places. Where the operand of an index has one element, it is 0.
fn moved(prog: &Prog, axes: &[Axis], shapes: &[&Vec<i64>]) -> Prog {
    let Some(own) = prog.shapes(shapes) else { return prog.clone() };
    let rank = own.last().map_or(0, Vec::len);
    let code = prog.code.iter().map(|instr| match instr {
        Instr::Index(axis, of) => {
            let shape = &own[usize::from(*of)];
            let one = shape.len().checked_sub(1 + usize::from(*axis)).is_none_or(|at| shape[at] == 1);
            let place = rank.checked_sub(1 + usize::from(*axis));
            match axes.iter().rev().position(|axis| axis.size != 1 && Some(axis.place) == place) {
                Some(at) if !one => Instr::Index(at as u8, *of),
                _ => Instr::Const(Const::Uint(0)),
            }
        }
        other => other.clone(),
    });
    Prog { inputs: prog.inputs, code: code.collect() }
}
