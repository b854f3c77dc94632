//! Sums and maxima of rows: lanes of accumulators inside a stretch, stretches pairwise, so that errors of sums stay
//! near those of one rounding a level.

use std::marker::PhantomData;

use bytemuck::Pod;
use meganeura_shaders::prog::DType;
use pulp::{Arch, Simd, WithSimd};

use super::loops::{Out, Tile, View};

/// Accumulators of a row.
const LANES: usize = 32;
/// Rows below this length are reduced several at a time.
const SHORT: usize = 32;
const TOGETHER: usize = 8;

/// What a row is reduced to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fold {
    Sum,
    Max,
}

/// How two values of a type become one.
trait Join: 'static {
    type Of: Pod;
    const FIRST: Self::Of;
    fn join(a: Self::Of, b: Self::Of) -> Self::Of;
}

macro_rules! joins {
    ($($Name:ident: $Of:ty = $first:expr, |$a:ident, $b:ident| $join:expr;)+) => {
        $(
            struct $Name;
            impl Join for $Name {
                type Of = $Of;
                const FIRST: $Of = $first;
                #[inline(always)]
                fn join($a: $Of, $b: $Of) -> $Of { $join }
            }
        )+
    };
}

joins! {
    SumF32: f32 = 0.0, |a, b| a + b;
    SumInt: u32 = 0, |a, b| a.wrapping_add(b);
    // NaN is passed over, as it is by the maximum of two.
    MaxF32: f32 = f32::MIN, |a, b| if b > a { b } else { a };
    MaxI32: i32 = i32::MIN, |a, b| a.max(b);
    MaxU32: u32 = 0, |a, b| a.max(b);
}

struct Rows<J> {
    tile: Tile,
    out: Out,
    a: View,
    join: PhantomData<J>,
}

#[inline(always)]
fn lanes<J: Join>(x: &[J::Of]) -> J::Of {
    let mut sums = [J::FIRST; LANES];
    let mut blocks = x.chunks_exact(LANES);
    for block in &mut blocks {
        for (sum, x) in sums.iter_mut().zip(block) {
            *sum = J::join(*sum, *x);
        }
    }
    for (sum, x) in sums.iter_mut().zip(blocks.remainder()) {
        *sum = J::join(*sum, *x);
    }
    let lanes = sums;
    fold::<J>(&lanes)
}

/// Joins lanes by halving. Apart from the loop before, which compilers would otherwise shuffle for its sake.
#[inline(never)]
fn fold<J: Join>(lanes: &[J::Of; LANES]) -> J::Of {
    let mut sums = *lanes;
    let mut count = LANES / 2;
    while count > 0 {
        for k in 0..count {
            sums[k] = J::join(sums[k], sums[k + count]);
        }
        count /= 2;
    }
    sums[0]
}

impl<J: Join> WithSimd for Rows<J> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Rows { tile: Tile { rows, length }, out, a, .. } = self;
        // SAFETY: the results are one word a row, apart from the operand.
        let results = unsafe { out.row::<J::Of>(0, rows) };
        let mut row = 0;
        while length < SHORT && row + TOGETHER <= rows {
            // SAFETY: rows of the operand, which nobody writes.
            let x: [&[J::Of]; TOGETHER] = std::array::from_fn(|k| unsafe { a.row(row + k, length) });
            let mut sums = [J::FIRST; TOGETHER];
            for k in 0..length {
                for (sum, x) in sums.iter_mut().zip(&x) {
                    *sum = J::join(*sum, x[k]);
                }
            }
            results[row..row + TOGETHER].copy_from_slice(&sums);
            row += TOGETHER;
        }
        while row < rows {
            // SAFETY: as above.
            results[row] = lanes::<J>(unsafe { a.row(row, length) });
            row += 1;
        }
    }
}

/// One word for each row of the operand, neighbours from the first of `out` on.
pub(super) fn rows(arch: Arch, fold: Fold, dtype: DType, tile: Tile, out: Out, a: View) {
    debug_assert!(a.is_wide(), "rows are what is reduced");
    match (fold, dtype) {
        (Fold::Sum, DType::F32) => arch.dispatch(Rows::<SumF32> { tile, out, a, join: PhantomData }),
        (Fold::Sum, _) => arch.dispatch(Rows::<SumInt> { tile, out, a, join: PhantomData }),
        (Fold::Max, DType::F32) => arch.dispatch(Rows::<MaxF32> { tile, out, a, join: PhantomData }),
        (Fold::Max, DType::I32) => arch.dispatch(Rows::<MaxI32> { tile, out, a, join: PhantomData }),
        (Fold::Max, _) => arch.dispatch(Rows::<MaxU32> { tile, out, a, join: PhantomData }),
    }
}

/// A row in the making, of which stretches come one after the other.
pub(super) struct Cascade {
    fold: Fold,
    dtype: DType,
    /// The sum of `2^k` stretches at k, where bit k of `count` is set.
    parts: [u32; 32],
    count: u32,
}

impl Cascade {
    pub(super) fn new(fold: Fold, dtype: DType) -> Cascade {
        Cascade { fold, dtype, parts: [0; 32], count: 0 }
    }

    fn join(&self, a: u32, b: u32) -> u32 {
        fn by<J: Join>(a: u32, b: u32) -> u32 {
            bytemuck::cast(J::join(bytemuck::cast(a), bytemuck::cast(b)))
        }
        match (self.fold, self.dtype) {
            (Fold::Sum, DType::F32) => by::<SumF32>(a, b),
            (Fold::Sum, _) => by::<SumInt>(a, b),
            (Fold::Max, DType::F32) => by::<MaxF32>(a, b),
            (Fold::Max, DType::I32) => by::<MaxI32>(a, b),
            (Fold::Max, _) => by::<MaxU32>(a, b),
        }
    }

    pub(super) fn push(&mut self, stretch: u32) {
        let (mut value, mut level) = (stretch, 0);
        while self.count >> level & 1 == 1 {
            value = self.join(self.parts[level], value);
            level += 1;
        }
        self.parts[level] = value;
        self.count += 1;
    }

    pub(super) fn total(&self) -> u32 {
        let mut parts = (0..32).filter(|level| self.count >> level & 1 == 1).map(|level| self.parts[level]);
        let first = parts.next().unwrap_or_else(|| match (self.fold, self.dtype) {
            (Fold::Sum, _) | (Fold::Max, DType::U32 | DType::Bool) => 0,
            (Fold::Max, DType::F32) => f32::MIN.to_bits(),
            (Fold::Max, DType::I32) => i32::MIN as u32,
        });
        parts.fold(first, |total, part| self.join(part, total))
    }
}
