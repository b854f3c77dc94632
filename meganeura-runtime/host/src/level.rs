//! Which vector instructions this CPU has: found once, named for people, dispatched to in one place.

use std::fmt;
use std::marker::PhantomData;

use meganeura_shaders::math::Arithmetic;
use pulp::Simd;

/// A set of vector instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// What every CPU of the target has.
    Portable,
    /// AVX2 and fused multiply-add.
    Avx2,
    /// AVX-512 (F, BW, CD, DQ, VL).
    Avx512,
    /// NEON.
    Neon,
}

impl Level {
    /// What this CPU has.
    pub fn here() -> Level {
        match pulp::Arch::new() {
            pulp::Arch::Scalar => Level::Portable,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            pulp::Arch::V3(_) => Level::Avx2,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            pulp::Arch::V4(_) => Level::Avx512,
            #[cfg(target_arch = "aarch64")]
            pulp::Arch::Neon(_) => Level::Neon,
            _ => Level::Portable,
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Portable => "portable",
            Level::Avx2 => "AVX2 and FMA",
            Level::Avx512 => "AVX-512",
            Level::Neon => "NEON",
        })
    }
}

/// Products and sums rounded once where the vector instructions can.
pub(crate) struct By<S>(PhantomData<S>);

impl<S> Clone for By<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for By<S> {}

impl<S: Simd> Arithmetic for By<S> {
    #[inline(always)]
    fn fma(x: f32, y: f32, z: f32) -> f32 {
        if S::IS_SCALAR { x * y + z } else { x.mul_add(y, z) }
    }
}
