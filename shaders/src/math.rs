//! Elementary functions in f32 without branches, so that loops over them become vector code.
//!
//! Every function is generic over how a product and a sum are rounded, since a fused operation is one instruction on
//! some CPUs and a slow call on others. Integers wrap, so that builds that check for overflow have no branches either.
//! NaN gives NaN, and limits are those of the f64 functions. Errors are in units in the last place over all f32; the
//! tests measure them with both roundings.

use std::f32::consts::LOG2_E;

/// How `x y + z` is rounded.
pub trait Arithmetic: Copy + Send + Sync + 'static {
    /// `x y + z`.
    fn fma(x: f32, y: f32, z: f32) -> f32;
}

/// Once: for code that runs where the CPU has the instruction.
#[derive(Clone, Copy)]
pub struct Fused;

/// Twice.
#[derive(Clone, Copy)]
pub struct Plain;

impl Arithmetic for Fused {
    #[inline(always)]
    fn fma(x: f32, y: f32, z: f32) -> f32 {
        x.mul_add(y, z)
    }
}

impl Arithmetic for Plain {
    #[inline(always)]
    fn fma(x: f32, y: f32, z: f32) -> f32 {
        x * y + z
    }
}

/// A number whose last bits count ones: what is added to it is rounded to an integer.
const ROUND: f32 = 12_582_912.0;
/// The same in f64.
const ROUND_F64: f64 = 6_755_399_441_055_744.0;
/// The natural logarithm of 2 in two parts; products of the first with small integers are exact.
const LN_2: [f32; 2] = [6.933_594e-1, -2.121_944_4e-4];
const SIGN: u32 = 0x8000_0000;

#[inline(always)]
fn polynomial<A: Arithmetic, const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[0];
    for coefficient in &coefficients[1..] {
        sum = A::fma(sum, x, *coefficient);
    }
    sum
}

/// `(n, e^r - 1)` with `x = n ln 2 + r` and `r` between half of `± ln 2`.
#[inline(always)]
fn split_exp<A: Arithmetic>(x: f32) -> (i32, f32) {
    let shifted = A::fma(x, LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = A::fma(n, -LN_2[1], A::fma(n, -LN_2[0], x));
    let p =
        polynomial::<A, 6>(r, [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 5.0e-1]);
    ((shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32), A::fma(p * r, r, r))
}

/// `2^n` for `n` between -126 and 127.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `if low <= x <= high`, else the nearer end; NaN stays.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// `e^x`; error 1.
#[inline(always)]
pub fn exp<A: Arithmetic>(x: f32) -> f32 {
    let (n, less) = split_exp::<A>(clamp(x, -104.0, 88.8));
    // Two factors, since one would leave the normal numbers before the result does.
    let half = n >> 1;
    (less + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// The hyperbolic tangent; error 2.4.
#[inline(always)]
pub fn tanh<A: Arithmetic>(x: f32) -> f32 {
    let twice = 2.0 * clamp(x.abs(), 0.0, 9.02);
    let (n, less) = split_exp::<A>(twice);
    let scale = power_of_two(n);
    // e^(2 |x|) - 1, which small arguments do not cancel in.
    let grown = A::fma(scale, less, scale - 1.0);
    let value = grown / (grown + 2.0);
    f32::from_bits(value.to_bits() | (x.to_bits() & SIGN))
}

/// `1 / (1 + e^-x)`; error 2.2.
#[inline(always)]
pub fn sigmoid<A: Arithmetic>(x: f32) -> f32 {
    let small = exp::<A>(-x.abs());
    (if x < 0.0 { small } else { 1.0 }) / (1.0 + small)
}

/// The natural logarithm; error 0.9.
#[inline(always)]
pub fn log<A: Arithmetic>(x: f32) -> f32 {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits().wrapping_sub(ROOT_HALF);
    let exponent = ((bits as i32) >> 23) as f32 - if subnormal { 23.0 } else { 0.0 };
    let m = f32::from_bits((bits & 0x007f_ffff).wrapping_add(ROOT_HALF)) - 1.0;
    let square = m * m;
    let p = polynomial::<A, 9>(
        m,
        [
            7.037_683_6e-2,
            -1.151_461e-1,
            1.167_699_84e-1,
            -1.242_014_1e-1,
            1.424_932_3e-1,
            -1.666_805_7e-1,
            2.000_071_4e-1,
            -2.499_999_4e-1,
            3.333_333e-1,
        ],
    );
    let tail = A::fma(-0.5, square, A::fma(exponent, LN_2[1], p * m * square));
    let value = A::fma(exponent, LN_2[0], m + tail);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

/// `log(1 + x)`; error 1.6.
#[inline(always)]
pub fn log1p<A: Arithmetic>(x: f32) -> f32 {
    let sum = 1.0 + x;
    // What the sum's rounding lost, to first order.
    let lost = (x - (sum - 1.0)) / sum;
    let value = log::<A>(sum) + if lost.is_nan() { 0.0 } else { lost };
    // -0 stays.
    if x == 0.0 { x } else { value }
}

/// `log(1 + e^x)`; error 2.
#[inline(always)]
pub fn softplus<A: Arithmetic>(x: f32) -> f32 {
    (if x < 0.0 { 0.0 } else { x }) + log1p::<A>(exp::<A>(-x.abs()))
}

/// The quadrant of an angle and what lies beyond it, between `± π/4`; good to 2^28, above that only bounded.
#[inline(always)]
fn quadrant(x: f32) -> (u32, f32) {
    // The first part of π/2 has 25 bits, so that products with it are exact.
    const HALF_PI: [f64; 2] = [1.570_796_310_901_641_8, 1.589_325_477_352_819_7e-8];
    let wide = f64::from(clamp(x, -536_870_912.0, 536_870_912.0));
    let shifted = wide * std::f64::consts::FRAC_2_PI + ROUND_F64;
    let n = shifted - ROUND_F64;
    let rest = (wide - n * HALF_PI[0]) - n * HALF_PI[1];
    // An infinite angle has no sine.
    (shifted.to_bits() as u32, rest as f32 + x * 0.0)
}

#[inline(always)]
fn sine<A: Arithmetic>(x: f32) -> f32 {
    let square = x * x;
    let p = polynomial::<A, 4>(square, [2.608_316e-6, -1.981_069e-4, 8.333_079e-3, -1.666_666e-1]);
    A::fma(square * x, p, x)
}

#[inline(always)]
fn cosine<A: Arithmetic>(x: f32) -> f32 {
    let square = x * x;
    let p = polynomial::<A, 3>(square, [2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    A::fma(square * square, p, A::fma(-0.5, square, 1.0))
}

/// The sine; error 1.6 to 2^28.
#[inline(always)]
pub fn sin<A: Arithmetic>(x: f32) -> f32 {
    let (n, rest) = quadrant(x);
    let value = if n & 1 == 0 { sine::<A>(rest) } else { cosine::<A>(rest) };
    f32::from_bits(value.to_bits() ^ ((n & 2) << 30))
}

/// The cosine; error 1.6 to 2^28.
#[inline(always)]
pub fn cos<A: Arithmetic>(x: f32) -> f32 {
    let (n, rest) = quadrant(x);
    let value = if n & 1 == 1 { sine::<A>(rest) } else { cosine::<A>(rest) };
    f32::from_bits(value.to_bits() ^ ((n.wrapping_add(1) & 2) << 30))
}

/// The tangent; error 3.5 to 2^28.
#[inline(always)]
pub fn tan<A: Arithmetic>(x: f32) -> f32 {
    let (n, rest) = quadrant(x);
    let (sine, cosine) = (sine::<A>(rest), cosine::<A>(rest));
    if n & 1 == 0 { sine / cosine } else { -cosine / sine }
}

/// The error function; error 1.
#[inline(always)]
pub fn erf<A: Arithmetic>(x: f32) -> f32 {
    let (a, square) = (x.abs(), x * x);
    // Large arguments: 1 - e^p.
    let p = A::fma(-1.728_534_7e-5, a, 3.831_971_3e-4);
    let p = A::fma(p, square, A::fma(-3.883_964_4e-3, a, 2.425_462_2e-2));
    let p = A::fma(p, a, -1.067_778_8e-1);
    let p = A::fma(p, a, -6.348_467e-1);
    let p = A::fma(p, a, -1.287_175_1e-1);
    let large = 1.0 - exp::<A>(A::fma(p, a, -a));
    let large = f32::from_bits(large.to_bits() | (x.to_bits() & SIGN));
    // Small arguments: an odd polynomial.
    let q = polynomial::<A, 6>(
        square,
        [-5.967_617e-4, 4.991_194_2e-3, -2.676_813_5e-2, 1.128_199_25e-1, -3.761_253_4e-1, 1.283_791_7e-1],
    );
    if a > 0.921_875 { large } else { A::fma(q, x, x) }
}

/// The logarithm to base 2 of a normal positive number, to 36 bits.
#[inline(always)]
fn log2(x: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let bits = x.to_bits().wrapping_sub(ROOT_HALF).wrapping_add(1024 << 52);
    // The exponent as the last bits of a large number, since not every CPU converts 64 bits.
    let exponent = f64::from_bits((bits >> 52) | 0x4330_0000_0000_0000) - (4_503_599_627_370_496.0 + 1024.0);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 17.0;
    for k in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z + 1.0 / k;
    }
    exponent + s * series * (2.0 * std::f64::consts::LOG2_E)
}

/// `2^x` to 32 bits, for magnitudes up to 1000.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    let shifted = x + ROUND_F64;
    let r = (x - (shifted - ROUND_F64)) * std::f64::consts::LN_2;
    let mut sum = 1.0 / 362_880.0;
    for factorial in [40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        sum = sum * r + 1.0 / factorial;
    }
    sum * f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52))
}

/// `x^y` with the limits of IEEE 754; error 0.6.
#[inline(always)]
pub fn pow(x: f32, y: f32) -> f32 {
    let base = x.abs();
    let log = log2(f64::from(base));
    let log = if base == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if base < f32::INFINITY { log } else { f64::from(base) };
    let power = if (log == 0.0) | (y == 0.0) { 0.0 } else { log * f64::from(y) };
    let power = if power < -1000.0 { -1000.0 } else { power };
    let power = if power > 1000.0 { 1000.0 } else { power };
    let value = exp2(power) as f32;
    let whole = y == y.floor();
    let half = 0.5 * y;
    let odd = whole & (half != half.floor());
    let value = if odd { f32::from_bits(value.to_bits() | (x.to_bits() & SIGN)) } else { value };
    if (x < 0.0) & (x > f32::NEG_INFINITY) & !whole { f32::NAN } else { value }
}

/// A normal number of two uniform ones, a radius in (0, 1] and turns in [0, 1) (Box and Muller, 1958); within 1e-6. The
/// turns are folded into a quarter first, since a whole one would lose bits.
#[inline(always)]
pub fn normal<A: Arithmetic>(radius: f32, turns: f32) -> f32 {
    let quarters = turns * 4.0;
    let half = if quarters > 2.0 { 4.0 - quarters } else { quarters };
    let folded = if half > 1.0 { 2.0 - half } else { half };
    let cosine = cos::<A>(folded * std::f32::consts::FRAC_PI_2);
    (-2.0 * log::<A>(radius)).max(0.0).sqrt() * if half > 1.0 { -cosine } else { cosine }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pointwise::Un;

    /// Error in units in the last place of f32.
    fn ulps(found: f32, exact: f64) -> f64 {
        let rounded = exact as f32;
        if found.is_nan() || rounded.is_nan() || rounded.is_infinite() || found.is_infinite() {
            // Just below the largest number, the exact value decides what rounding may give.
            let same = (found.is_nan() && exact.is_nan()) || found == rounded;
            let edge = found.abs().max(rounded.abs()) == f32::INFINITY
                && found.abs().min(rounded.abs()) >= f32::MAX * (1.0 - 1e-6)
                && found.signum() == rounded.signum();
            return if same {
                0.0
            } else if edge {
                1.0
            } else {
                f64::INFINITY
            };
        }
        let exponent = (i64::from((rounded.to_bits() >> 23) & 255)).max(1) - 150;
        (f64::from(found) - exact).abs() / 2f64.powi(exponent as i32)
    }

    const SPECIAL: [f32; 12] = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1.0,
        -1.0,
        f32::from_bits(1),
        f32::from_bits(0x007f_ffff),
    ];

    /// Numbers of all magnitudes and both signs.
    fn samples(step: u32) -> impl Iterator<Item = f32> {
        (0..u32::MAX / step).map(move |k| f32::from_bits(k * step)).chain(SPECIAL)
    }

    fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, step: u32) -> (f64, f32) {
        samples(step)
            .map(|x| (ulps(f(x), exact(f64::from(x))), x))
            .fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    }

    /// `(name, fused, plain, exact, stated error, stated error where products and sums are rounded apart)`
    type Row = (&'static str, fn(f32) -> f32, fn(f32) -> f32, fn(f64) -> f64, f64, f64);

    const ROWS: [Row; 7] = [
        ("exp", exp::<Fused>, exp::<Plain>, f64::exp, 1.0, 1.1),
        ("tanh", tanh::<Fused>, tanh::<Plain>, f64::tanh, 2.4, 2.5),
        ("sigmoid", sigmoid::<Fused>, sigmoid::<Plain>, |x| 1.0 / (1.0 + (-x).exp()), 2.2, 2.3),
        ("log", log::<Fused>, log::<Plain>, f64::ln, 0.9, 1.0),
        ("log1p", log1p::<Fused>, log1p::<Plain>, f64::ln_1p, 1.6, 1.7),
        ("softplus", softplus::<Fused>, softplus::<Plain>, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 2.5, 3.0),
        ("erf", erf::<Fused>, erf::<Plain>, |x| Un::Erf.eval(x), 1.0, 1.1),
    ];

    #[test]
    fn errors_over_all_numbers_are_as_stated() {
        for (name, fused, plain, exact, most, most_plain) in ROWS {
            let step = if name == "erf" { 40_009 } else { 2_003 };
            for (f, most) in [(fused, most), (plain, most_plain)] {
                let (error, x) = worst(f, exact, step);
                assert!(error <= most, "{name}({x}) = {}: {error} units", f(x));
            }
        }
    }

    #[test]
    fn angles_are_reduced_exactly_and_beyond_that_results_stay_bounded() {
        let rows: [Row; 3] = [
            ("sin", sin::<Fused>, sin::<Plain>, f64::sin, 1.6, 1.7),
            ("cos", cos::<Fused>, cos::<Plain>, f64::cos, 1.6, 1.7),
            ("tan", tan::<Fused>, tan::<Plain>, f64::tan, 3.5, 3.7),
        ];
        for (name, fused, plain, exact, most, most_plain) in rows {
            for (f, most) in [(fused, most), (plain, most_plain)] {
                let near =
                    |x: f64| if x.abs() > 268_435_456.0 && x.is_finite() { f64::from(f(x as f32)) } else { exact(x) };
                let (error, x) = worst(f, near, 2_003);
                assert!(error <= most, "{name}({x}) = {}: {error} units", f(x));
                let bounded = samples(100_003).filter(|x| x.is_finite()).all(|x| name == "tan" || f(x).abs() <= 1.0);
                assert!(bounded, "{name} leaves -1..1");
            }
        }
    }

    #[test]
    fn powers_are_those_of_f64() {
        let mut seed = 1u64;
        let mut word = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 32) as u32
        };
        let exponents = [0.5, -0.5, 2.0, 3.0, -1.0, 7.0, 1.0 / 3.0, 16_777_217.0, 33_554_432.0, 1e-3];
        let exponents: Vec<f32> = exponents.into_iter().chain(SPECIAL).collect();
        let special = SPECIAL.into_iter().flat_map(|x| exponents.iter().map(move |y| (x, *y)));
        let mut pairs: Vec<(f32, f32)> = special.collect();
        for k in 0..200_000 {
            let x = f32::from_bits(word());
            pairs.push((x, exponents[k % exponents.len()]));
            // Moderate pairs, whose powers fill the range of f32.
            let base = f32::from_bits(0x3000_0000 + word() % 0x2000_0000);
            pairs.push((base, (word() as f32 / 2e9 - 1.0) * 90.0 / base.log2()));
        }
        let mut most = 0.0f64;
        for (x, y) in pairs {
            let error = ulps(pow(x, y), f64::from(x).powf(f64::from(y)));
            assert!(error <= 0.6, "pow({x}, {y}) = {}: {error} units", pow(x, y));
            most = most.max(error);
        }
        assert!(most > 0.4, "the pairs reach rounding");
    }
}
