//! One matrix product of f32, whatever the strides: the only place that knows which code multiplies.
//!
//! Few rows or columns go through [`crate::matvec`], which runs at the speed of memory; so do sides that both lie
//! densely along the summed axis, as long as they are small. Neither allocates. All else goes to the crate `gemm-f32`,
//! which allocates at each call: a few bytes always, and its packed copy of a panel where the right side is dense along
//! the summed axis (147 KB for 128 columns of 576) or the left side is not and there are more than 128 columns
//! (`examples/products.rs` prints what it counts). One call is one part of a launch and runs on one thread; the bits of
//! a result depend on the arguments of this function alone.

use gemm_common::Parallelism;

use crate::matvec;

/// Rows on one side up to which a product is bound by reading the other.
pub(crate) const FEW: usize = 8;
/// Rows up to which sides that are both dense along the summed axis are multiplied where they lie, since packing the
/// other side would not pay.
const UNPACKED: usize = 64;
/// Columns up to which they are, since the crate's tiles are wider.
const NARROW: usize = 16;
/// Summed elements from which that pays: for fewer the sums across vectors cost more than packing.
const LONG: usize = 64;

/// Where a matrix lies: its first element, and the elements from row to row and from column to column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<P> {
    pub first: P,
    pub row: usize,
    pub column: usize,
}

/// A matrix to read.
pub(crate) type Side = Matrix<*const f32>;
/// A matrix to write.
pub(crate) type Place = Matrix<*mut f32>;

impl<P> Matrix<P> {
    /// With rows for columns.
    pub fn transposed(self) -> Matrix<P> {
        Matrix { first: self.first, row: self.column, column: self.row }
    }
}

/// The numbers of rows, columns and products summed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

/// `c = a · b`, or `c += a · b` if `add`.
///
/// # Safety
///
/// All elements of `a` and `b` are readable and all of `c` writable; no element of `c` is one of another place of `c`
/// or of `a` or `b`, and nobody else touches `c` meanwhile.
pub(crate) unsafe fn product(a: Side, b: Side, c: Place, extent: Extent, add: bool) {
    let Extent { rows, columns, depth } = extent;
    if rows == 0 || columns == 0 || (depth == 0 && add) {
        return;
    }
    // The result's dense axis is to be the columns.
    let turned = if columns == 1 { c.row == 1 && rows > 1 } else { rows > 1 && c.row < c.column };
    let (a, b, c, extent) = match turned {
        true => (b.transposed(), a.transposed(), c.transposed(), Extent { rows: columns, columns: rows, depth }),
        false => (a, b, c, extent),
    };
    // SAFETY: the caller's promise, for the same elements.
    unsafe {
        if !few(a, b, c, extent, add) {
            packed(a, b, c, extent, add);
        }
    }
}

/// Does what needs no packing; false if nothing was done.
///
/// # Safety
///
/// That of [`product`].
unsafe fn few(a: Side, b: Side, c: Place, extent: Extent, add: bool) -> bool {
    let Extent { rows, columns, depth } = extent;
    let turned = Extent { rows: columns, columns: rows, depth };
    let few_columns = columns <= FEW && columns < rows;
    let dense = a.column == 1 && depth >= LONG && (rows <= UNPACKED || columns <= NARROW);
    // SAFETY: the caller's promise, for the same elements.
    unsafe {
        if (rows <= FEW || dense) && b.row == 1 && !few_columns {
            matvec::dots(a, b, c, extent, add);
        } else if few_columns && a.column == 1 {
            matvec::dots(b.transposed(), a.transposed(), c.transposed(), turned, add);
        } else if rows <= FEW && b.column == 1 {
            matvec::streams(a, b, c, extent, add);
        } else if columns <= FEW && a.row == 1 {
            matvec::streams(b.transposed(), a.transposed(), c.transposed(), turned, add);
        } else {
            return false;
        }
    }
    true
}

/// The crate's product.
///
/// # Safety
///
/// That of [`product`].
unsafe fn packed(a: Side, b: Side, c: Place, extent: Extent, add: bool) {
    let Extent { rows, columns, depth } = extent;
    let at = |stride: usize| stride as isize;
    // The crate wants the result's dense axis for rows, so both sides change places.
    // SAFETY: the caller's promise; the crate reads and writes these elements only.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            columns,
            rows,
            depth,
            c.first,
            at(c.row),
            at(c.column),
            add,
            b.first,
            at(b.row),
            at(b.column),
            a.first,
            at(a.row),
            at(a.column),
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of both signs, none of them 0, from a fixed sequence.
    fn noise(count: usize, seed: usize) -> Vec<f32> {
        let mut state = (seed as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 0.999
        };
        (0..count).map(|_| next()).collect()
    }

    /// A matrix of noise among NaN, dense along its rows or its columns or neither.
    fn place(rows: usize, columns: usize, order: usize, pad: usize, seed: usize) -> (Vec<f32>, usize, usize) {
        let (row, column) = match order {
            0 => (columns + pad, 1),
            1 => (1, rows + pad),
            _ => (2 * columns + 1 + pad, 2),
        };
        let mut words = vec![f32::NAN; rows * row + columns * column + 1];
        let values = noise(rows * columns, seed);
        for r in 0..rows {
            for c in 0..columns {
                words[r * row + c * column] = values[r * columns + c];
            }
        }
        (words, row, column)
    }

    fn check(extent: Extent, orders: [usize; 3], pad: usize, add: bool) {
        let Extent { rows, columns, depth } = extent;
        let (a, ar, ac) = place(rows, depth, orders[0], pad, 1);
        let (b, br, bc) = place(depth, columns, orders[1], pad, 2);
        let (mut before, cr, cc) = place(rows, columns, orders[2], pad, 3);
        if !add {
            before.fill(f32::NAN);
        }
        let mut c = before.clone();
        // SAFETY: `place` makes room for all elements.
        unsafe {
            let a = Matrix { first: a.as_ptr(), row: ar, column: ac };
            let b = Matrix { first: b.as_ptr(), row: br, column: bc };
            product(a, b, Matrix { first: c.as_mut_ptr(), row: cr, column: cc }, extent, add);
        }
        let mut inside = vec![false; c.len()];
        for r in 0..rows {
            for k in 0..columns {
                let at = r * cr + k * cc;
                inside[at] = true;
                let first = if add { f64::from(before[at]) } else { 0.0 };
                let terms = (0..depth).map(|d| f64::from(a[r * ar + d * ac]) * f64::from(b[d * br + k * bc]));
                let (sum, size) = terms.fold((first, first.abs()), |(s, m), x| (s + x, m + x.abs()));
                // Each of depth + 1 additions rounds by at most half a unit of what has been summed.
                let bound = (depth + 2) as f64 * f64::from(f32::EPSILON) * size;
                let found = f64::from(c[at]);
                assert!((found - sum).abs() <= bound, "{extent:?} {orders:?} {add} at {r}, {k}: {sum}, found {found}");
            }
        }
        for (at, inside) in inside.iter().enumerate() {
            assert!(*inside || c[at].is_nan(), "{extent:?} {orders:?} wrote outside at {at}");
        }
    }

    #[test]
    fn products_of_any_strides_are_sums_of_products() {
        let sizes = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 33, 49, 65];
        let mut k = 0;
        for rows in sizes {
            for columns in sizes {
                for order in 0..27 {
                    k += 1;
                    let depth = [1, 2, 3, 5, 15, 16, 17, 31, 64, 65, 97][k % 11];
                    let orders = [order / 9, order / 3 % 3, order % 3];
                    check(Extent { rows, columns, depth }, orders, [0, 1, 16][k % 3], k % 4 == 0);
                }
            }
        }
    }

    #[test]
    fn few_rows_are_right_at_lengths_that_pass_the_pieces() {
        for rows in [1, 2, 5, 8] {
            for (columns, depth) in [(3, 1023), (4, 1025), (9, 2500), (4097, 9), (1500, 17), (700, 70)] {
                for order in 0..9 {
                    check(Extent { rows, columns, depth }, [order / 3, order % 3, 0], 1, false);
                    let turned = Extent { rows: columns, columns: rows, depth };
                    check(turned, [order / 3, order % 3, order % 2], 0, true);
                }
            }
        }
    }

    #[test]
    fn blocks_beyond_the_caches_are_summed_in_one_result() {
        for order in 0..27 {
            let extent = Extent { rows: 97, columns: 131, depth: [700, 1100][order % 2] };
            check(extent, [order / 9, order / 3 % 3, order % 3], order % 2, order % 5 == 0);
        }
    }

    #[test]
    fn nothing_summed_is_0_and_nothing_else() {
        for (rows, columns) in [(1, 1), (3, 70), (70, 3), (20, 20)] {
            check(Extent { rows, columns, depth: 0 }, [0, 0, 0], 2, false);
            check(Extent { rows, columns, depth: 0 }, [0, 0, 1], 2, true);
            check(Extent { rows: 0, columns, depth: 5 }, [0, 0, 0], 2, false);
            check(Extent { rows, columns: 0, depth: 5 }, [0, 0, 0], 2, false);
        }
    }
}
