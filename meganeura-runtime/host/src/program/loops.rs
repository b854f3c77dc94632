//! The loops of programs: one instruction over a tile of rows, compiled for each row of the pointwise registry and each
//! set of vector instructions.
//!
//! Operands and results are addresses, since a result may lie beside its operands in one memory; a loop makes slices of
//! one row at a time. Who builds a [`Step`](super::exec) vouches that they are inside of memory and that results overlap
//! no operand.

use std::marker::PhantomData;

use bytemuck::Pod;
use meganeura_shaders::math::Arithmetic;
use meganeura_shaders::pointwise::{Bin, OnF32, OnInt, OnOrdered, OnTruth, Un, Visit};
use meganeura_shaders::prog::DType;
use pulp::{Arch, Simd, WithSimd};

use crate::level::By;

/// How many rows a step takes, and how many elements of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tile {
    pub rows: usize,
    pub length: usize,
}

/// An operand: rows of words, or one word for each row. Two registers, so that it is handed on in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    first: *const u32,
    /// Words from row to row, twice, and 1 if a row has a word for each element.
    step: usize,
}

/// A result, likewise; always wide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub first: *mut u32,
    pub row: usize,
}

impl View {
    /// Rows of words, the first word of row r at `r * row` behind `first`.
    #[inline(always)]
    pub(crate) fn wide(first: *const u32, row: usize) -> View {
        View { first, step: row << 1 | 1 }
    }

    /// A word for each row, likewise.
    #[inline(always)]
    pub(crate) fn narrow(first: *const u32, row: usize) -> View {
        View { first, step: row << 1 }
    }

    /// Whether a row has a word for each element.
    #[inline(always)]
    pub(crate) fn is_wide(self) -> bool {
        self.step & 1 == 1
    }

    /// Words from row to row.
    #[inline(always)]
    pub(crate) fn distance(self) -> usize {
        self.step >> 1
    }

    /// From another row on.
    ///
    /// # Safety
    ///
    /// The row is one of the operand's.
    #[inline(always)]
    pub(crate) unsafe fn from(self, row: usize) -> View {
        // SAFETY: the caller's.
        View { first: unsafe { self.first.add(row * self.distance()) }, ..self }
    }

    /// One word a row as rows of one word.
    #[inline(always)]
    pub(crate) fn widened(self) -> View {
        View { step: self.step | 1, ..self }
    }

    /// # Safety
    ///
    /// The row lies in memory that nobody writes while the slice lives.
    #[inline(always)]
    pub(super) unsafe fn row<'a, T: Pod>(self, row: usize, length: usize) -> &'a [T] {
        const { assert!(size_of::<T>() == 4 && align_of::<T>() == 4) }
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(self.first.add(row * self.distance()).cast(), length) }
    }

    /// # Safety
    ///
    /// As for `row`, of one word.
    #[inline(always)]
    unsafe fn one<T: Pod>(self, row: usize) -> T {
        const { assert!(size_of::<T>() == 4 && align_of::<T>() == 4) }
        // SAFETY: the caller's.
        unsafe { self.first.add(row * self.distance()).cast::<T>().read() }
    }

    fn is_flat(self, length: usize) -> bool {
        if self.is_wide() { self.distance() == length } else { self.distance() == 0 }
    }
}

impl Out {
    /// # Safety
    ///
    /// The row lies in memory that nobody else touches while the slice lives.
    #[inline(always)]
    pub(super) unsafe fn row<'a, T: Pod>(self, row: usize, length: usize) -> &'a mut [T] {
        const { assert!(size_of::<T>() == 4 && align_of::<T>() == 4) }
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(row * self.row).cast(), length) }
    }
}

impl Tile {
    /// Rows that follow each other without gaps are one.
    fn flat(self, out: Out, views: &[View]) -> Tile {
        let flat = out.row == self.length && views.iter().all(|view| view.is_flat(self.length));
        if self.rows > 1 && flat { Tile { rows: 1, length: self.rows * self.length } } else { self }
    }
}

/// A function of elements.
trait Map<const N: usize> {
    type From: Pod;
    type To: Pod;
    fn at<S: Simd>(x: [Self::From; N]) -> Self::To;
}

struct Floats<R>(PhantomData<R>);
struct Ints<R, T>(PhantomData<(R, T)>);
struct Ordered<R, T>(PhantomData<(R, T)>);
struct Truths<R>(PhantomData<R>);

impl<const N: usize, R: OnF32<N>> Map<N> for Floats<R> {
    type From = f32;
    type To = f32;
    #[inline(always)]
    fn at<S: Simd>(x: [f32; N]) -> f32 {
        R::value::<By<S>>(x)
    }
}

impl<const N: usize, T: Pod, R: OnInt<N, T>> Map<N> for Ints<R, T> {
    type From = T;
    type To = T;
    #[inline(always)]
    fn at<S: Simd>(x: [T; N]) -> T {
        R::value(x)
    }
}

impl<const N: usize, T: Pod + PartialOrd, R: OnOrdered<N>> Map<N> for Ordered<R, T> {
    type From = T;
    type To = u32;
    #[inline(always)]
    fn at<S: Simd>(x: [T; N]) -> u32 {
        u32::from(R::value(x))
    }
}

impl<const N: usize, R: OnTruth<N>> Map<N> for Truths<R> {
    type From = u32;
    type To = u32;
    #[inline(always)]
    fn at<S: Simd>(x: [u32; N]) -> u32 {
        let truth = |x: u32| x != 0;
        u32::from(R::value(x.map(truth)))
    }
}

macro_rules! casts {
    ($($Name:ident |$x:ident: $From:ty| $to:expr, $To:ty;)+) => {
        $(
            struct $Name;
            impl Map<1> for $Name {
                type From = $From;
                type To = $To;
                #[inline(always)]
                fn at<S: Simd>([$x]: [$From; 1]) -> $To { $to }
            }
        )+
    };
}

casts! {
    Same |x: u32| x, u32;
    FloatToUint |x: f32| x as u32, u32;
    FloatToInt |x: f32| x as i32, i32;
    FloatToTruth |x: f32| u32::from(x != 0.0), u32;
    WordToTruth |x: u32| u32::from(x != 0), u32;
    UintToFloat |x: u32| x as f32, f32;
    IntToFloat |x: i32| x as f32, f32;
    TruthToFloat |x: u32| if x != 0 { 1.0 } else { 0.0 }, f32;
}

struct Unary<M> {
    tile: Tile,
    out: Out,
    a: View,
    map: PhantomData<M>,
}

impl<M: Map<1>> WithSimd for Unary<M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Unary { tile, out, a, .. } = self;
        for row in 0..tile.rows {
            if a.is_wide() {
                // SAFETY: see the module: operands and results are in memory and apart.
                let (d, x) = unsafe { (out.row::<M::To>(row, tile.length), a.row::<M::From>(row, tile.length)) };
                for (d, x) in d.iter_mut().zip(x) {
                    *d = M::at::<S>([*x]);
                }
            } else {
                // SAFETY: as above.
                let value = M::at::<S>([unsafe { a.one::<M::From>(row) }]);
                // SAFETY: as above.
                unsafe { out.row::<M::To>(row, tile.length) }.fill(value);
            }
        }
    }
}

struct Binary<M> {
    tile: Tile,
    out: Out,
    a: View,
    b: View,
    map: PhantomData<M>,
}

impl<M: Map<2>> WithSimd for Binary<M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Binary { tile, out, a, b, .. } = self;
        let n = tile.length;
        for row in 0..tile.rows {
            // SAFETY: see the module: operands and results are in memory and apart.
            unsafe {
                match (a.is_wide(), b.is_wide()) {
                    (true, true) => {
                        let (x, y) = (a.row::<M::From>(row, n), b.row::<M::From>(row, n));
                        for ((d, x), y) in out.row::<M::To>(row, n).iter_mut().zip(x).zip(y) {
                            *d = M::at::<S>([*x, *y]);
                        }
                    }
                    (true, false) => {
                        let (x, y) = (a.row::<M::From>(row, n), b.one::<M::From>(row));
                        for (d, x) in out.row::<M::To>(row, n).iter_mut().zip(x) {
                            *d = M::at::<S>([*x, y]);
                        }
                    }
                    (false, true) => {
                        let (x, y) = (a.one::<M::From>(row), b.row::<M::From>(row, n));
                        for (d, y) in out.row::<M::To>(row, n).iter_mut().zip(y) {
                            *d = M::at::<S>([x, *y]);
                        }
                    }
                    (false, false) => {
                        let value = M::at::<S>([a.one::<M::From>(row), b.one::<M::From>(row)]);
                        out.row::<M::To>(row, n).fill(value);
                    }
                }
            }
        }
    }
}

/// `a b + c` of floats, where `a` is wide.
struct MulAdd {
    tile: Tile,
    out: Out,
    x: [View; 3],
}

impl WithSimd for MulAdd {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let MulAdd { tile, out, x: [a, b, c] } = self;
        let n = tile.length;
        for row in 0..tile.rows {
            // SAFETY: see the module: operands and results are in memory and apart.
            unsafe {
                let a = a.row::<f32>(row, n);
                match (b.is_wide(), c.is_wide()) {
                    (true, true) => {
                        let (b, c) = (b.row::<f32>(row, n), c.row::<f32>(row, n));
                        for (((d, a), b), c) in out.row::<f32>(row, n).iter_mut().zip(a).zip(b).zip(c) {
                            *d = By::<S>::fma(*a, *b, *c);
                        }
                    }
                    (true, false) => {
                        let (b, c) = (b.row::<f32>(row, n), c.one::<f32>(row));
                        for ((d, a), b) in out.row::<f32>(row, n).iter_mut().zip(a).zip(b) {
                            *d = By::<S>::fma(*a, *b, c);
                        }
                    }
                    (false, true) => {
                        let (b, c) = (b.one::<f32>(row), c.row::<f32>(row, n));
                        for ((d, a), c) in out.row::<f32>(row, n).iter_mut().zip(a).zip(c) {
                            *d = By::<S>::fma(*a, b, *c);
                        }
                    }
                    (false, false) => {
                        let (b, c) = (b.one::<f32>(row), c.one::<f32>(row));
                        for (d, a) in out.row::<f32>(row, n).iter_mut().zip(a) {
                            *d = By::<S>::fma(*a, b, c);
                        }
                    }
                }
            }
        }
    }
}

struct Select {
    tile: Tile,
    out: Out,
    x: [View; 3],
}

impl WithSimd for Select {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Select { tile, out, x: [condition, yes, no] } = self;
        let n = tile.length;
        for row in 0..tile.rows {
            // SAFETY: see the module: operands and results are in memory and apart.
            unsafe {
                if !condition.is_wide() {
                    let taken = if condition.one::<u32>(row) != 0 { yes } else { no };
                    let a = taken.from(row);
                    let out = Out { first: out.first.add(row * out.row), ..out };
                    let tile = Tile { rows: 1, length: n };
                    Unary::<Same> { tile, out, a, map: PhantomData }.with_simd(simd);
                    continue;
                }
                let condition = condition.row::<u32>(row, n);
                match (yes.is_wide(), no.is_wide()) {
                    (true, true) => {
                        let (yes, no) = (yes.row::<u32>(row, n), no.row::<u32>(row, n));
                        for (((d, c), yes), no) in out.row::<u32>(row, n).iter_mut().zip(condition).zip(yes).zip(no) {
                            *d = if *c != 0 { *yes } else { *no };
                        }
                    }
                    (true, false) => {
                        let (yes, no) = (yes.row::<u32>(row, n), no.one::<u32>(row));
                        for ((d, c), yes) in out.row::<u32>(row, n).iter_mut().zip(condition).zip(yes) {
                            *d = if *c != 0 { *yes } else { no };
                        }
                    }
                    (false, true) => {
                        let (yes, no) = (yes.one::<u32>(row), no.row::<u32>(row, n));
                        for ((d, c), no) in out.row::<u32>(row, n).iter_mut().zip(condition).zip(no) {
                            *d = if *c != 0 { yes } else { *no };
                        }
                    }
                    (false, false) => {
                        let (yes, no) = (yes.one::<u32>(row), no.one::<u32>(row));
                        for (d, c) in out.row::<u32>(row, n).iter_mut().zip(condition) {
                            *d = if *c != 0 { yes } else { no };
                        }
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct VisitUnary {
    arch: Arch,
    dtype: DType,
    tile: Tile,
    out: Out,
    a: View,
}

impl VisitUnary {
    #[inline(always)]
    fn run<M: Map<1>>(self) {
        let VisitUnary { arch, tile, out, a, .. } = self;
        arch.dispatch(Unary::<M> { tile, out, a, map: PhantomData });
    }
}

impl Visit<1> for VisitUnary {
    type Out = ();

    #[inline(always)]
    fn f32<R: OnF32<1>>(self) {
        self.run::<Floats<R>>();
    }

    #[inline(always)]
    fn i32<R: OnInt<1, i32>>(self) {
        self.run::<Ints<R, i32>>();
    }

    #[inline(always)]
    fn u32<R: OnInt<1, u32>>(self) {
        self.run::<Ints<R, u32>>();
    }

    #[inline(always)]
    fn ordered<R: OnOrdered<1>>(self) {
        match self.dtype {
            DType::F32 => self.run::<Ordered<R, f32>>(),
            DType::I32 => self.run::<Ordered<R, i32>>(),
            DType::U32 | DType::Bool => self.run::<Ordered<R, u32>>(),
        }
    }

    #[inline(always)]
    fn truth<R: OnTruth<1>>(self) {
        self.run::<Truths<R>>();
    }
}

#[derive(Clone, Copy)]
struct VisitBinary {
    arch: Arch,
    dtype: DType,
    tile: Tile,
    out: Out,
    a: View,
    b: View,
}

impl VisitBinary {
    #[inline(always)]
    fn run<M: Map<2>>(self) {
        let VisitBinary { arch, tile, out, a, b, .. } = self;
        arch.dispatch(Binary::<M> { tile, out, a, b, map: PhantomData });
    }
}

impl Visit<2> for VisitBinary {
    type Out = ();

    #[inline(always)]
    fn f32<R: OnF32<2>>(self) {
        self.run::<Floats<R>>();
    }

    #[inline(always)]
    fn i32<R: OnInt<2, i32>>(self) {
        self.run::<Ints<R, i32>>();
    }

    #[inline(always)]
    fn u32<R: OnInt<2, u32>>(self) {
        self.run::<Ints<R, u32>>();
    }

    #[inline(always)]
    fn ordered<R: OnOrdered<2>>(self) {
        match self.dtype {
            DType::F32 => self.run::<Ordered<R, f32>>(),
            DType::I32 => self.run::<Ordered<R, i32>>(),
            DType::U32 | DType::Bool => self.run::<Ordered<R, u32>>(),
        }
    }

    #[inline(always)]
    fn truth<R: OnTruth<2>>(self) {
        self.run::<Truths<R>>();
    }
}

/// A registered operation of one operand of type `dtype`.
pub(super) fn unary(arch: Arch, op: Un, dtype: DType, tile: Tile, out: Out, a: View) {
    let tile = tile.flat(out, &[a]);
    let known = op.visit(dtype, VisitUnary { arch, dtype, tile, out, a });
    debug_assert!(known.is_some(), "types are checked when a program is made");
}

/// A registered operation of two operands of type `dtype`.
pub(super) fn binary(arch: Arch, op: Bin, dtype: DType, tile: Tile, out: Out, a: View, b: View) {
    let tile = tile.flat(out, &[a, b]);
    let known = op.visit(dtype, VisitBinary { arch, dtype, tile, out, a, b });
    debug_assert!(known.is_some(), "types are checked when a program is made");
}

/// `a b + c` of floats, where `a` is wide.
pub(super) fn mul_add(arch: Arch, tile: Tile, out: Out, x: [View; 3]) {
    debug_assert!(x[0].is_wide(), "operands are ordered when a program is made");
    arch.dispatch(MulAdd { tile: tile.flat(out, &x), out, x });
}

/// The second operand where the first is true, else the third.
pub(super) fn select(arch: Arch, tile: Tile, out: Out, x: [View; 3]) {
    arch.dispatch(Select { tile: tile.flat(out, &x), out, x });
}

/// The operand as another type.
pub(super) fn cast(arch: Arch, from: DType, to: DType, tile: Tile, out: Out, a: View) {
    let tile = tile.flat(out, &[a]);
    let visit = VisitUnary { arch, dtype: from, tile, out, a };
    match (from, to) {
        (DType::F32, DType::U32) => visit.run::<FloatToUint>(),
        (DType::F32, DType::I32) => visit.run::<FloatToInt>(),
        (DType::F32, DType::Bool) => visit.run::<FloatToTruth>(),
        (DType::U32, DType::F32) => visit.run::<UintToFloat>(),
        (DType::I32, DType::F32) => visit.run::<IntToFloat>(),
        (DType::Bool, DType::F32) => visit.run::<TruthToFloat>(),
        (DType::Bool, DType::U32 | DType::I32) | (DType::U32 | DType::I32, DType::Bool) => visit.run::<WordToTruth>(),
        (DType::F32, DType::F32) | (DType::Bool, DType::Bool) => visit.run::<Same>(),
        (DType::U32 | DType::I32, DType::U32 | DType::I32) => visit.run::<Same>(),
    }
}

/// The operand as it is.
pub(super) fn copy(arch: Arch, tile: Tile, out: Out, a: View) {
    let tile = tile.flat(out, &[a]);
    VisitUnary { arch, dtype: DType::U32, tile, out, a }.run::<Same>();
}
