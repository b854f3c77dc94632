//! Products with few rows on one side, at the speed at which memory gives the other side.
//!
//! The large side lies either densely along the summed axis ([`dots`]: four of its rows at a time, one accumulator
//! each) or densely across it ([`streams`]: rows scaled and added to the results, several at a time). Either way it is
//! read once, in order, and prefetched far ahead, since the hardware's own prefetching stops at the end of a page.

// Arrays of vectors are registers here, and several of them share an index.
#![allow(clippy::needless_range_loop)]

use pulp::{Arch, Simd, WithSimd};

use crate::product::{Extent, FEW, Matrix, Place, Side};

/// Rows of the large side read at a time.
const WIDE: usize = 4;
/// Summed elements for which a side that is not dense is copied at once.
const PIECE: usize = 1024;
/// Elements read between asking for a line and using it, where rows are short.
const AHEAD: usize = 4096;
/// Results that a pass over rows leaves in the first cache.
const ACROSS: usize = 4096;

/// `c = a · b` where `b` is dense along the summed axis. Rows of `a` that are not are copied piece by piece, and only
/// `FEW` of them may there be.
///
/// # Safety
///
/// That of [`crate::product::product`].
pub(crate) unsafe fn dots(a: Side, b: Side, c: Place, extent: Extent, add: bool) {
    debug_assert_eq!(b.row, 1);
    if a.column == 1 || extent.depth == 0 {
        return Arch::new().dispatch(Dots { a, b, c, extent, add });
    }
    assert!(extent.rows <= FEW, "only few rows are copied");
    let mut copy = [0f32; FEW * PIECE];
    for from in (0..extent.depth).step_by(PIECE) {
        let depth = PIECE.min(extent.depth - from);
        for row in 0..extent.rows {
            for k in 0..depth {
                // SAFETY: inside of `a`.
                copy[row * PIECE + k] = unsafe { *a.first.add(row * a.row + (from + k) * a.column) };
            }
        }
        let a = Matrix { first: copy.as_ptr(), row: PIECE, column: 1 };
        // SAFETY: inside of `b`.
        let b = Matrix { first: unsafe { b.first.add(from) }, ..b };
        Arch::new().dispatch(Dots { a, b, c, extent: Extent { depth, ..extent }, add: add || from > 0 });
    }
}

struct Dots {
    a: Side,
    b: Side,
    c: Place,
    extent: Extent,
    add: bool,
}

impl WithSimd for Dots {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Extent { rows, columns, .. } = self.extent;
        // Accumulators, one vector of `b` and those of `a` fit into the registers.
        let most = if S::REGISTER_COUNT >= 32 { 6 } else { 3 };
        let tall = rows.div_ceil(rows.div_ceil(most).max(1));
        for column in (0..columns).step_by(WIDE) {
            for row in (0..rows).step_by(tall.max(1)) {
                match (tall.min(rows - row), columns - column) {
                    (1, 1) => self.tile::<S, 1, 1>(simd, row, column),
                    (1, _) => self.tile::<S, 1, WIDE>(simd, row, column),
                    (2, _) => self.tile::<S, 2, WIDE>(simd, row, column),
                    (3, _) => self.tile::<S, 3, WIDE>(simd, row, column),
                    (4, _) => self.tile::<S, 4, WIDE>(simd, row, column),
                    (5, _) => self.tile::<S, 5, WIDE>(simd, row, column),
                    (_, _) => self.tile::<S, 6, WIDE>(simd, row, column),
                }
            }
        }
    }
}

impl Dots {
    /// `M` x `N` results, or as many as there are columns; columns that are not there repeat the last.
    #[inline(always)]
    fn tile<S: Simd, const M: usize, const N: usize>(&self, simd: S, row: usize, column: usize) {
        let Extent { columns, depth, .. } = self.extent;
        let n = N.min(columns - column);
        let mut a = [self.a.first; M];
        let mut b = [self.b.first; N];
        for (m, a) in a.iter_mut().enumerate() {
            *a = a.wrapping_add((row + m) * self.a.row);
        }
        for (k, b) in b.iter_mut().enumerate() {
            *b = b.wrapping_add((column + k.min(n - 1)) * self.b.column);
        }
        let ahead = if row == 0 { ahead(self.b.column, N) } else { 0 };
        let mut sums = [[simd.splat_f32s(0.0); N]; M];
        let mut k = 0;
        while k + S::F32_LANES <= depth {
            let mut x = [sums[0][0]; M];
            for m in 0..M {
                // SAFETY: inside of the row of `a`.
                x[m] = unsafe { load::<S>(a[m].add(k)) };
            }
            for j in 0..N {
                if ahead > 0 {
                    prefetch(b[j].wrapping_add(k + ahead));
                }
                // SAFETY: inside of the row of `b`.
                let y = unsafe { load::<S>(b[j].add(k)) };
                for m in 0..M {
                    sums[m][j] = simd.mul_add_e_f32s(x[m], y, sums[m][j]);
                }
            }
            k += S::F32_LANES;
        }
        if k < depth {
            let mut x = [sums[0][0]; M];
            for m in 0..M {
                // SAFETY: the rest of the row of `a`.
                x[m] = simd.partial_load_f32s(unsafe { std::slice::from_raw_parts(a[m].add(k), depth - k) });
            }
            for j in 0..N {
                // SAFETY: the rest of the row of `b`.
                let y = simd.partial_load_f32s(unsafe { std::slice::from_raw_parts(b[j].add(k), depth - k) });
                for m in 0..M {
                    sums[m][j] = simd.mul_add_e_f32s(x[m], y, sums[m][j]);
                }
            }
        }
        for m in 0..M {
            for j in 0..n {
                let sum = simd.reduce_sum_f32s(sums[m][j]);
                // SAFETY: inside of `c`, which nobody else touches.
                unsafe {
                    let at = self.c.first.add((row + m) * self.c.row + (column + j) * self.c.column);
                    *at = if self.add { *at + sum } else { sum };
                }
            }
        }
    }
}

/// How many elements ahead to fetch where `rows` rows are read at the same time: the same place of the rows behind
/// them, as far as that is not so far that the cache forgets it, else further along each.
#[inline(always)]
fn ahead(stride: usize, rows: usize) -> usize {
    let next = stride * rows;
    if (1024..=4096).contains(&next) {
        next
    } else if next < 1024 {
        1536 / stride.max(1) * stride
    } else {
        1536
    }
}

/// `c = a · b` for few rows of `a` where `b` is dense across the summed axis.
///
/// # Safety
///
/// That of [`crate::product::product`].
pub(crate) unsafe fn streams(a: Side, b: Side, c: Place, extent: Extent, add: bool) {
    debug_assert!(b.column == 1 && extent.rows <= FEW);
    let Extent { rows, columns, .. } = extent;
    let across = ACROSS / rows.next_power_of_two();
    let mut results = [0f32; ACROSS];
    for from in (0..columns).step_by(across) {
        let extent = Extent { columns: across.min(columns - from), ..extent };
        // SAFETY: inside of `b`.
        let b = Matrix { first: unsafe { b.first.add(from) }, ..b };
        // SAFETY: inside of `c`.
        let c = Matrix { first: unsafe { c.first.add(from * c.column) }, ..c };
        if c.column == 1 {
            Arch::new().dispatch(Streams { a, b, c, extent, add });
            continue;
        }
        let dense = Matrix { first: results.as_mut_ptr(), row: across, column: 1 };
        Arch::new().dispatch(Streams { a, b, c: dense, extent, add: false });
        for row in 0..rows {
            for (k, sum) in results[row * across..][..extent.columns].iter().enumerate() {
                // SAFETY: inside of `c`, which nobody else touches.
                unsafe {
                    let at = c.first.add(row * c.row + k * c.column);
                    *at = if add { *at + sum } else { *sum };
                }
            }
        }
    }
}

struct Streams {
    a: Side,
    b: Side,
    c: Place,
    extent: Extent,
    add: bool,
}

impl WithSimd for Streams {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Where scales do not all fit into the registers, several vectors share a load of one.
        match (self.extent.rows, S::REGISTER_COUNT >= 32) {
            (1, _) => self.all::<S, 1, 8, 1>(simd),
            (2, _) => self.all::<S, 2, 8, 1>(simd),
            (3, _) => self.all::<S, 3, 4, 1>(simd),
            (4, _) => self.all::<S, 4, 4, 1>(simd),
            (5, true) => self.all::<S, 5, 4, 4>(simd),
            (6, true) => self.all::<S, 6, 4, 4>(simd),
            (7, true) => self.all::<S, 7, 4, 4>(simd),
            (_, true) => self.all::<S, 8, 4, 4>(simd),
            (5, false) => self.all::<S, 5, 4, 2>(simd),
            (6, false) => self.all::<S, 6, 4, 2>(simd),
            (7, false) => self.all::<S, 7, 4, 2>(simd),
            (_, false) => self.all::<S, 8, 4, 2>(simd),
        }
    }
}

impl Streams {
    #[inline(always)]
    fn all<S: Simd, const M: usize, const R: usize, const J: usize>(&self, simd: S) {
        let Extent { columns, depth, .. } = self.extent;
        if !self.add {
            for m in 0..M {
                // SAFETY: a row of `c`, which nobody else touches.
                unsafe { std::slice::from_raw_parts_mut(self.c.first.add(m * self.c.row), columns) }.fill(0.0);
            }
        }
        let mut k = 0;
        while k + R <= depth {
            self.rows::<S, M, R, J>(simd, k);
            k += R;
        }
        while k < depth {
            self.rows::<S, M, 1, J>(simd, k);
            k += 1;
        }
    }

    /// Adds `R` rows of `b`, scaled, to each row of results.
    #[inline(always)]
    fn rows<S: Simd, const M: usize, const R: usize, const J: usize>(&self, simd: S, k: usize) {
        let columns = self.extent.columns;
        let mut scales = [[simd.splat_f32s(0.0); R]; M];
        for (m, scales) in scales.iter_mut().enumerate() {
            for (r, scale) in scales.iter_mut().enumerate() {
                // SAFETY: inside of `a`.
                *scale = simd.splat_f32s(unsafe { *self.a.first.add(m * self.a.row + (k + r) * self.a.column) });
            }
        }
        let b = self.b.first.wrapping_add(k * self.b.row);
        let mut j = 0;
        while j + J * S::F32_LANES <= columns {
            self.vectors::<S, M, R, J>(simd, &scales, b, j);
            j += J * S::F32_LANES;
        }
        while J > 1 && j + S::F32_LANES <= columns {
            self.vectors::<S, M, R, 1>(simd, &scales, b, j);
            j += S::F32_LANES;
        }
        if j < columns {
            let rest = columns - j;
            for m in 0..M {
                // SAFETY: the rest of row m of `c`, which nobody else touches.
                let results = unsafe { std::slice::from_raw_parts_mut(self.c.first.add(m * self.c.row + j), rest) };
                let mut sum = simd.partial_load_f32s(results);
                for r in 0..R {
                    // SAFETY: the rest of row k + r of `b`.
                    let x = unsafe { std::slice::from_raw_parts(b.add(r * self.b.row + j), rest) };
                    sum = simd.mul_add_e_f32s(scales[m][r], simd.partial_load_f32s(x), sum);
                }
                simd.partial_store_f32s(results, sum);
            }
        }
    }

    /// The same for `J` vectors of columns.
    #[inline(always)]
    fn vectors<S: Simd, const M: usize, const R: usize, const J: usize>(
        &self,
        simd: S,
        scales: &[[S::f32s; R]; M],
        b: *const f32,
        j: usize,
    ) {
        let ahead = (AHEAD / (R * self.extent.columns)).max(1) * R * self.b.row;
        let mut x = [[scales[0][0]; J]; R];
        for r in 0..R {
            for v in 0..J {
                let at = b.wrapping_add(r * self.b.row + j + v * S::F32_LANES);
                prefetch(at.wrapping_add(ahead));
                // SAFETY: inside of row k + r of `b`.
                x[r][v] = unsafe { load::<S>(at) };
            }
        }
        for m in 0..M {
            let at = self.c.first.wrapping_add(m * self.c.row + j);
            let mut sums = [scales[0][0]; J];
            for v in 0..J {
                // SAFETY: inside of row m of `c`, which nobody else touches.
                sums[v] = unsafe { load::<S>(at.add(v * S::F32_LANES)) };
            }
            for r in 0..R {
                for v in 0..J {
                    sums[v] = simd.mul_add_e_f32s(scales[m][r], x[r][v], sums[v]);
                }
            }
            for v in 0..J {
                // SAFETY: as above.
                unsafe { at.add(v * S::F32_LANES).cast::<S::f32s>().write_unaligned(sums[v]) };
            }
        }
    }
}

/// # Safety
///
/// As many elements as a vector has are readable.
#[inline(always)]
unsafe fn load<S: Simd>(at: *const f32) -> S::f32s {
    // SAFETY: the caller's promise; all bits are values.
    unsafe { at.cast::<S::f32s>().read_unaligned() }
}

/// Asks for a line of memory that will be read; any address may be asked for.
#[inline(always)]
fn prefetch(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing that the program could notice, and faults nowhere.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
