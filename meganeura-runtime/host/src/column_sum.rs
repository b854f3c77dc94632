//! Sums of a pointwise program over all axes but the last.
//!
//! Rows come in groups fixed by the shape. A group is taken in tiles whose rows are added by halving, so that short
//! rows are vector work too; tiles of a group are added in order, groups pairwise.

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::{DType, Prog};
use pulp::{Arch, Simd, WithSimd};
use smallvec::SmallVec;

use crate::program::{Argument, Output, RowProgram};
use crate::task::{Layout, Refusal};
use crate::threads::{Threads, lane};
use crate::view::{Source, Target};

/// Columns of a part.
const COLUMNS: usize = 512;
/// Elements of a tile.
const TILE: usize = 4096;
/// Tiles of a group: few enough to add them in order.
const TILES: usize = 16;

/// A column sum that is ready to run.
pub(crate) struct ColumnSum {
    program: RowProgram,
    dtype: DType,
    /// Columns of a part, rows of a tile, groups.
    columns: usize,
    tile: usize,
    groups: usize,
    /// Words from one element of the result to the next.
    stride: usize,
}

/// `sums += x`, element by element.
struct AddFloats<'a>(&'a mut [f32], &'a [f32]);
struct AddInts<'a>(&'a mut [u32], &'a [u32]);

impl WithSimd for AddFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (sum, x) in self.0.iter_mut().zip(self.1) {
            *sum += x;
        }
    }
}

impl WithSimd for AddInts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        for (sum, x) in self.0.iter_mut().zip(self.1) {
            *sum = sum.wrapping_add(*x);
        }
    }
}

fn add(dtype: DType, sums: &mut [f32], x: &[f32]) {
    match dtype {
        DType::F32 => Arch::new().dispatch(AddFloats(sums, x)),
        _ => Arch::new().dispatch(AddInts(bytemuck::cast_slice_mut(sums), bytemuck::cast_slice(x))),
    }
}

/// Adds rows of `width` into the first, pairwise.
fn fold(dtype: DType, rows: &mut [f32], width: usize) {
    let mut count = rows.len() / width.max(1);
    while count > 1 {
        let left = count.div_ceil(2);
        let (sums, others) = rows.split_at_mut(left * width);
        add(dtype, &mut sums[..(count - left) * width], &others[..(count - left) * width]);
        count = left;
    }
}

impl ColumnSum {
    pub(crate) fn new(prog: &Prog, args: &[Layout], write: &Layout, env: &Env) -> Result<ColumnSum, Refusal> {
        if prog.reduces_rows() || write.dtype == DType::Bool {
            return Err(Refusal("a column sum of reductions or of truth values".into()));
        }
        let shapes: Vec<Vec<i64>> =
            args.iter().map(|arg| arg.shape.iter().map(|size| *size as i64).collect()).collect();
        let inner = prog.shape(&shapes.iter().collect::<Vec<_>>()).filter(|shape| !shape.is_empty());
        let Some(inner) = inner else { return Err(Refusal("a column sum of a value without axes".into())) };
        let inner: Vec<usize> = inner.iter().map(|size| *size as usize).collect();
        if write.shape != inner[inner.len() - 1..] {
            return Err(Refusal("a column sum into something else than a row".into()));
        }
        let program = RowProgram::new(prog, args, &Layout::dense(&inner, write.dtype), env)?;
        let columns = COLUMNS.min(program.columns()).max(1);
        let tile = (TILE / columns).max(1);
        let groups = program.rows().div_ceil(tile * TILES).max(1);
        let stride = if write.shape[0] > 1 { write.strides[0] } else { 1 };
        Ok(ColumnSum { program, dtype: write.dtype, columns, tile, groups, stride })
    }

    pub(crate) fn reads(&self, k: usize) -> bool {
        self.program.reads(k)
    }

    /// Whether groups are summed beside the result: there are several, or the result's elements lie apart.
    fn beside(&self) -> bool {
        self.groups > 1 || self.stride != 1
    }

    /// Words for the sums of groups.
    pub(crate) fn scratch(&self) -> usize {
        if self.beside() { self.groups * self.program.columns() } else { 0 }
    }

    pub(crate) fn run(&self, threads: &Threads, reads: &[Source<'_>], write: &Target<'_>, scratch: &mut [f32]) {
        let arguments: SmallVec<[Argument<'_>; 12]> = reads.iter().map(|source| Argument::Whole(*source)).collect();
        let (rows, columns) = (self.program.rows(), self.program.columns());
        let across = columns.div_ceil(self.columns);
        let beside = self.beside();
        let sums = Target::new(bytemuck::cast_slice_mut(scratch));
        // The sums of a group's columns lie together, panel after panel, groups of a panel one after the other.
        let sums_at = |group: usize, column: usize, width: usize| column * self.groups + group * width;
        threads.parts(self.groups * across, |part| {
            let (group, column) = (part / across, part % across * self.columns);
            let width = self.columns.min(columns - column);
            let group_rows = group * self.tile * TILES..rows.min((group + 1) * self.tile * TILES);
            // SAFETY: parts write disjoint columns of groups or of the result, and nobody reads them yet.
            let total: &mut [f32] = unsafe {
                if beside { sums.slice(sums_at(group, column, width), width) } else { write.slice(column, width) }
            };
            total.fill(0.0);
            let own = (self.tile * width).next_multiple_of(16);
            lane(own + self.program.scratch(), |words| {
                let (tile, rest) = words.split_at_mut(own);
                let mut row = group_rows.start;
                while row < group_rows.end {
                    let count = self.tile.min(group_rows.end - row);
                    let panel = Target::new(bytemuck::cast_slice_mut(tile));
                    let output = Output::Panel(&panel, width);
                    // SAFETY: the panel is this thread's own; the task checked that the arguments lie elsewhere.
                    unsafe { self.program.run(row..row + count, column..column + width, &arguments, &output, rest) };
                    fold(self.dtype, &mut tile[..count * width], width);
                    add(self.dtype, total, &tile[..width]);
                    row += count;
                }
            });
        });
        if beside {
            threads.parts(across, |part| {
                let column = part * self.columns;
                let width = self.columns.min(columns - column);
                // SAFETY: panels are disjoint, and the groups are done.
                let groups: &mut [f32] = unsafe { sums.slice(sums_at(0, column, width), self.groups * width) };
                fold(self.dtype, groups, width);
                for (k, sum) in groups[..width].iter().enumerate() {
                    // SAFETY: elements of the result are written by one part each.
                    let to: &mut [f32] = unsafe { write.slice(self.stride * (column + k), 1) };
                    to[0] = *sum;
                }
            });
        }
    }
}
