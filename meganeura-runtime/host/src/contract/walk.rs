//! How the operands of a contraction move: the axes of tiles, of the matrices around them and of sums.

use meganeura_shaders::kernel;

use super::axes::{Axis, broadcast_steps, joined, offset, rows_and_columns, steps, summed};
use super::signed;
use super::tiles::Tile;
use crate::product::{Extent, Matrix, Place, product};
use crate::task::Layout;
use crate::view::Source;

/// Where an operand begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    Argument(usize),
    /// The result of one of the programs that run first.
    Ahead(usize),
}

/// An operand and how it lies.
pub(super) type Operand = (Origin, Layout);

/// How a value moves along the rows and columns of a tile and the axes around.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Steps {
    pub row: usize,
    pub column: usize,
    pub outer: Vec<usize>,
}

/// One of the products, turned so that its first side has the rows.
pub(super) struct Term {
    /// The side that has the rows, then the one that has the columns.
    pub origins: [Origin; 2],
    pub steps: [Steps; 2],
    /// The summed axis inside of a product, and how the sides move along it.
    pub depth: usize,
    pub depth_steps: [usize; 2],
    /// Further summed axes: their sizes, and how the sides move along them.
    pub loops: Vec<usize>,
    pub loop_steps: [Vec<usize>; 2],
}

impl Steps {
    /// Where a tile begins.
    pub fn at(&self, outer: &[usize], tile: Tile) -> usize {
        offset(outer, &self.outer, tile.outer) + tile.row * self.row + tile.column * self.column
    }
}

impl Term {
    /// Multiplies the sides for a tile.
    ///
    /// # Safety
    ///
    /// The sides are as long as the layouts say, all elements of the place are writable, and nobody else touches them.
    pub unsafe fn multiply(&self, sides: &[Source<'_>; 2], outer: &[usize], tile: Tile, place: Place) {
        let [a, b] = [0, 1].map(|k| sides[k].first().cast::<f32>().wrapping_add(self.steps[k].at(outer, tile)));
        let extent = Extent { rows: tile.rows, columns: tile.columns, depth: self.depth };
        for k in 0..self.loops.iter().product() {
            let [a_at, b_at] = [0, 1].map(|side: usize| offset(&self.loops, &self.loop_steps[side], k));
            let a = Matrix { first: a.wrapping_add(a_at), row: self.steps[0].row, column: self.depth_steps[0] };
            let b = Matrix { first: b.wrapping_add(b_at), row: self.depth_steps[1], column: self.steps[1].column };
            // SAFETY: the caller's promise.
            unsafe { product(a, b, place, extent, k > 0) };
        }
    }
}

/// All axes, told apart, and the terms that walk them.
pub(super) struct Space {
    pub terms: Vec<Term>,
    pub rows: Option<Axis>,
    pub columns: Option<Axis>,
    pub outer: Vec<Axis>,
    /// Result, sides and inputs, through all of which each axis steps.
    pub operands: usize,
}

impl Space {
    /// An axis steps through the result, then both sides of every term, then the inputs of the epilogue.
    pub fn new(
        contract: &kernel::Contract,
        sides: &[[Operand; 2]],
        inputs: &[Operand],
        write: &Layout,
    ) -> Option<Space> {
        let rank = write.shape.len();
        let mut axes: Vec<Axis> = write
            .shape
            .iter()
            .zip(&write.strides)
            .enumerate()
            .map(|(place, (size, stride))| Axis { size: *size, steps: vec![*stride], place })
            .collect();
        let mut sums = vec![];
        for (term, [(_, a), (_, b)]) in contract.terms.iter().zip(sides) {
            let out = &term.spec.out;
            if (1..out.len()).any(|k| out[..k].contains(&out[k])) {
                return None;
            }
            let sizes = term.spec.dims(&signed(&a.shape), &signed(&b.shape))?;
            let sizes: Vec<usize> = sizes.iter().map(|size| *size as usize).collect();
            let [a, b] = [steps(&term.spec.a, a, sizes.len()), steps(&term.spec.b, b, sizes.len())];
            for (axis, label) in axes.iter_mut().zip(out) {
                axis.steps.extend([a[usize::from(*label)], b[usize::from(*label)]]);
            }
            sums.push(summed(&term.spec, &sizes, &a, &b));
        }
        for (_, layout) in inputs {
            for (axis, step) in axes.iter_mut().zip(broadcast_steps(layout, rank)) {
                axis.steps.push(step);
            }
        }
        let mut axes = joined(axes, !contract.epi.uses_index());
        let sides_of = |axis: &Axis, k: usize| [axis.steps[1 + 2 * k] > 0, axis.steps[2 + 2 * k] > 0];
        let (rows, columns) = rows_and_columns(&axes, |axis| (0..sums.len()).map(|k| sides_of(axis, k)).collect());
        let [rows, columns] = [rows, columns].map(|k| k.map(|k| axes[k].clone()));
        axes.retain(|axis| Some(axis.place) != rows.as_ref().map(|axis| axis.place));
        axes.retain(|axis| Some(axis.place) != columns.as_ref().map(|axis| axis.place));
        let operands = 1 + 2 * sums.len() + inputs.len();
        let mut space = Space { terms: vec![], rows, columns, outer: axes, operands };
        for (k, sums) in sums.into_iter().enumerate() {
            let turned = space.columns.as_ref().is_some_and(|axis| sides_of(axis, k)[0]);
            let order = if turned { [1, 0] } else { [0, 1] };
            let mut term = Term {
                origins: order.map(|side| sides[k][side].0),
                steps: order.map(|side| space.steps(1 + 2 * k + side)),
                depth: usize::from(sums.is_some()),
                depth_steps: [0, 0],
                loops: vec![],
                loop_steps: [vec![], vec![]],
            };
            let mut sums = sums.unwrap_or_default();
            if let Some(longest) = (0..sums.len()).max_by_key(|k| sums[*k].size) {
                let axis = sums.remove(longest);
                (term.depth, term.depth_steps) = (axis.size, order.map(|side| axis.steps[side]));
            }
            term.loops = sums.iter().map(|axis| axis.size).collect();
            term.loop_steps = order.map(|side| sums.iter().map(|axis| axis.steps[side]).collect());
            space.terms.push(term);
        }
        Some(space)
    }

    /// The axes around the tiles, the rows and the columns; what is not there has one index.
    pub fn axes(&self) -> Vec<Axis> {
        let one = |like: usize| Axis { size: 1, steps: vec![0; like], place: usize::MAX };
        let operands = self.operands;
        let inner = [&self.rows, &self.columns].map(|axis| axis.clone().unwrap_or_else(|| one(operands)));
        self.outer.iter().cloned().chain(inner).collect()
    }

    /// How one of the operands moves.
    pub fn steps(&self, operand: usize) -> Steps {
        let step = |axis: &Option<Axis>| axis.as_ref().map_or(0, |axis| axis.steps[operand]);
        Steps {
            row: step(&self.rows),
            column: step(&self.columns),
            outer: self.outer.iter().map(|axis| axis.steps[operand]).collect(),
        }
    }
}
