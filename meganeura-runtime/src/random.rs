//! Counter-based random numbers: any element of a stream without those before it.
//!
//! Element i of the stream of (seed, name) is `mix(key + (i + 1) · GOLDEN)` with
//! `key = mix(mix(seed + GOLDEN) ^ fnv1a(name))`: splitmix64, started at a hash of both. Everything is integer
//! arithmetic and basic operations of f64, which are exact or correctly rounded everywhere, so all platforms agree on
//! every bit. Changing anything here changes what a seed means.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers that is addressed by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of a name.
    pub(crate) fn named(seed: u64, name: &str) -> Self {
        Self { key: mix(mix(seed.wrapping_add(GOLDEN)) ^ fnv1a(name.as_bytes())) }
    }

    /// The stream of a number.
    pub(crate) fn numbered(seed: u64, number: u64) -> Self {
        Self { key: mix(mix(seed.wrapping_add(GOLDEN)) ^ number) }
    }

    /// 64 random bits.
    pub(crate) fn bits(self, element: u64) -> u64 {
        mix(self.key.wrapping_add(element.wrapping_add(1).wrapping_mul(GOLDEN)))
    }

    /// Uniform in [0, 1), a multiple of 2⁻²⁴.
    pub(crate) fn uniform(self, element: u64) -> f64 {
        unit(self.bits(element) >> 32)
    }

    /// Standard normal (Box and Muller), at most 5.8 from 0.
    pub(crate) fn normal(self, element: u64) -> f64 {
        let bits = self.bits(element);
        // In (0, 1], so that the logarithm is finite.
        let radius = unit(bits >> 32) + EPSILON;
        (-2.0 * ln(radius)).sqrt() * cos_turns(unit(bits & 0xffff_ffff))
    }

    /// Uniform below `limit`, which is not 0; the bias is below `limit` · 2⁻⁶⁴.
    pub(crate) fn below(self, element: u64, limit: u64) -> u64 {
        ((u128::from(self.bits(element)) * u128::from(limit)) >> 64) as u64
    }
}

/// 2⁻²⁴.
const EPSILON: f64 = 1.0 / 16_777_216.0;

/// The upper 24 of 32 bits as a fraction.
fn unit(bits: u64) -> f64 {
    (bits >> 8) as f64 * EPSILON
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The natural logarithm of a positive normal number; the standard library's differs between platforms in last bits.
fn ln(x: f64) -> f64 {
    // x = m · 2^e with m in [√½, √2), and ln m = 2 artanh s with s = (m − 1) / (m + 1), |s| < 0.172.
    const MANTISSA: u64 = (1 << 52) - 1;
    let mut exponent = (x.to_bits() >> 52) as i64 - 1023;
    let mut m = f64::from_bits(x.to_bits() & MANTISSA | 1.0f64.to_bits());
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut series = 0.0;
    for power in (0..11).rev() {
        series = series * square + 1.0 / f64::from(2 * power + 1);
    }
    exponent as f64 * std::f64::consts::LN_2 + 2.0 * s * series
}

/// The exponential function of a number that is not positive, down to 0 from about −745 on; basic operations alone, as
/// above.
pub(crate) fn exp(x: f64) -> f64 {
    // x = n ln 2 + r with |r| ≤ ½ ln 2; ln 2 in two parts, of which the first has few bits, so that n times it is exact.
    const HIGH: f64 = 0.693_147_180_369_123_8;
    const LOW: f64 = 1.908_214_929_270_587_7e-10;
    if x < -746.0 {
        return 0.0;
    }
    let n = (x / std::f64::consts::LN_2).round_ties_even();
    let r = x - n * HIGH - n * LOW;
    let series = (1..15).rev().fold(1.0, |series, term| 1.0 + series * r / f64::from(term));
    // In two steps, since 2ⁿ alone may be too small for a normal number.
    let power = |n: i64| f64::from_bits(((n + 1023) as u64) << 52);
    series * power(n as i64 / 2) * power(n as i64 - n as i64 / 2)
}

/// cos(2π · turns) for turns in [0, 1).
fn cos_turns(turns: f64) -> f64 {
    // Fourth parts of a turn, reflected into the first: exact, since turns is a multiple of 2⁻²⁴.
    let quarters = turns * 4.0;
    let (folded, sign) = match quarters as u32 {
        0 => (quarters, 1.0),
        1 => (2.0 - quarters, -1.0),
        2 => (quarters - 2.0, -1.0),
        _ => (4.0 - quarters, 1.0),
    };
    let angle = folded * std::f64::consts::FRAC_PI_2;
    let square = angle * angle;
    let mut series = 1.0;
    for term in (1..13).rev() {
        let (a, b) = (f64::from(2 * term - 1), f64::from(2 * term));
        series = 1.0 - square / (a * b) * series;
    }
    sign * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_published_functions() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        let stream = Stream { key: 1_234_567 };
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!([0, 1, 2, 3, 4].map(|i| stream.bits(i)), published);
    }

    #[test]
    fn logarithm_exponential_and_cosine_are_those_of_the_standard_library() {
        for i in 1..=100_000u32 {
            let x = f64::from(i) / 100_000.0;
            for x in [x, x * x * x * x, x + 1.0] {
                assert!((ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs().max(0.1), "ln {x}");
            }
            let turns = f64::from(i - 1) * 167.0 * EPSILON;
            let want = (turns * std::f64::consts::TAU).cos();
            assert!((cos_turns(turns) - want).abs() < 1e-15, "cos {turns}");
        }
        for i in 0..75_000u32 {
            let x = -f64::from(i) / 100.0;
            let want = x.exp();
            assert!((exp(x) - want).abs() <= 1e-15 * want.max(f64::MIN_POSITIVE), "exp {x}");
        }
        assert_eq!((exp(0.0), exp(-0.0), exp(-1e300), exp(f64::NEG_INFINITY)), (1.0, 1.0, 0.0, 0.0));
        assert_eq!((ln(1.0), cos_turns(0.0), cos_turns(0.5)), (0.0, 1.0, -1.0));
        assert!(cos_turns(0.25).abs() < 1e-15 && cos_turns(0.75).abs() < 1e-15);
        assert!(((-2.0 * ln(EPSILON)).sqrt() - 5.77).abs() < 0.01);
    }

    #[test]
    fn below_reaches_every_value_evenly() {
        let stream = Stream::numbered(3, 4);
        let mut counts = [0; 7];
        for i in 0..70_000 {
            counts[stream.below(i, 7) as usize] += 1;
        }
        // Five standard deviations of a binomial count.
        assert!(counts.iter().all(|count: &i32| (count - 10_000).abs() < 463), "{counts:?}");
        assert!((0..100).all(|i| stream.below(i, 1) == 0));
    }
}
