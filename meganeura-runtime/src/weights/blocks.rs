//! Quantised blocks as f32: the block types of GGUF files.
//!
//! The layouts are those of ggml's block structures (ggml-common.h; the GGUF page of its documentation names the
//! types). `d` and `m` are f16 unless said otherwise, `q` is an element's integer. Every value is
//! rounded once: products of an f16, a scale and an integer are exact in f32 except those of Q6_K, which have no
//! offset to add.
//!
//! | type | bytes of a block, in order | element |
//! |---|---|---|
//! | Q4_0 | d, 16 of nibbles (e, e + 16) | d (q − 8) |
//! | Q4_1 | d, m, 16 of nibbles | d q + m |
//! | Q5_0 | d, 32 fifth bits, 16 of nibbles | d (q − 16) |
//! | Q5_1 | d, m, 32 fifth bits, 16 of nibbles | d q + m |
//! | Q8_0 | d, 32 of i8 | d q |
//! | Q2_K | 16 of (scale, min) nibbles, 64 of pairs of bits, d, m | d scale q − m min, a scale for 16 |
//! | Q3_K | 32 of third bits, 64 of pairs of bits, 12 of 16 scales of 6 bits, d | d (scale − 32) (q − 4), a scale for 16 |
//! | Q4_K | d, m, 12 of 8 scales and 8 mins of 6 bits, 128 of nibbles | d scale q − m min, a scale for 32 |
//! | Q5_K | d, m, 12 of scales and mins, 32 of fifth bits, 128 of nibbles | as Q4_K |
//! | Q6_K | 128 of nibbles, 64 of pairs of bits, 16 scales of i8, d | d scale (q − 32), a scale for 16 |
//! | Q8_K | d (f32), 256 of i8, 16 sums of i16 | d q |

use super::kind::Kind;
use half::f16;

/// Elements of the largest block.
pub(super) const MOST: usize = 256;

/// Converts one block; `bytes` and `into` have the lengths that [`Kind::block`] names. Other types give zeros.
pub(super) fn block_to_f32(kind: Kind, bytes: &[u8], into: &mut [f32]) {
    match kind {
        Kind::Q4_0 => nibbles(&bytes[2..], into, |q| half(bytes, 0) * (q - 8.0)),
        Kind::Q4_1 => nibbles(&bytes[4..], into, |q| half(bytes, 0) * q + half(bytes, 2)),
        Kind::Q5_0 => fives(&bytes[2..], into, |q| half(bytes, 0) * (q - 16.0)),
        Kind::Q5_1 => fives(&bytes[4..], into, |q| half(bytes, 0) * q + half(bytes, 2)),
        Kind::Q8_0 => bytes_times(half(bytes, 0), &bytes[2..], into),
        Kind::Q8_K => {
            let d = bytes.first_chunk().map_or(0.0, |d| f32::from_le_bytes(*d));
            bytes_times(d, &bytes[4..260], into);
        }
        Kind::Q2_K => q2_k(bytes, into),
        Kind::Q3_K => q3_k(bytes, into),
        Kind::Q4_K => q45_k(bytes, None, &bytes[16..], into),
        Kind::Q5_K => q45_k(bytes, Some(&bytes[16..48]), &bytes[48..], into),
        Kind::Q6_K => q6_k(bytes, into),
        _ => into.fill(0.0),
    }
}

fn half(bytes: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([bytes[at], bytes[at + 1]]).to_f32()
}

/// Low nibbles are the first half of a block, high ones the second.
fn nibbles(bytes: &[u8], into: &mut [f32], value: impl Fn(f32) -> f32) {
    let (low, high) = into.split_at_mut(16);
    for ((byte, low), high) in bytes.iter().zip(low).zip(high) {
        (*low, *high) = (value(f32::from(byte & 15)), value(f32::from(byte >> 4)));
    }
}

/// Four bytes with the fifth bit of each element, then nibbles.
fn fives(bytes: &[u8], into: &mut [f32], value: impl Fn(f32) -> f32) {
    let fifth = |e: usize| (bytes[e / 8] >> (e % 8) & 1) << 4;
    for (l, byte) in bytes[4..20].iter().enumerate() {
        into[l] = value(f32::from(byte & 15 | fifth(l)));
        into[l + 16] = value(f32::from(byte >> 4 | fifth(l + 16)));
    }
}

fn bytes_times(d: f32, bytes: &[u8], into: &mut [f32]) {
    for (to, byte) in into.iter_mut().zip(bytes) {
        *to = d * f32::from(*byte as i8);
    }
}

fn q2_k(bytes: &[u8], into: &mut [f32]) {
    let (scales, pairs) = (&bytes[..16], &bytes[16..80]);
    let (d, m) = (half(bytes, 80), half(bytes, 82));
    for (group, into) in into.chunks_mut(16).enumerate() {
        let (scale, min) = (d * f32::from(scales[group] & 15), m * f32::from(scales[group] >> 4));
        let (first, shift) = pair(group);
        for (to, byte) in into.iter_mut().zip(&pairs[first..]) {
            *to = scale * f32::from(byte >> shift & 3) - min;
        }
    }
}

fn q3_k(bytes: &[u8], into: &mut [f32]) {
    let (thirds, pairs, scales) = (&bytes[..32], &bytes[32..96], &bytes[96..108]);
    let d = half(bytes, 108);
    for (group, into) in into.chunks_mut(16).enumerate() {
        let low = scales[group % 8] >> (group / 8 * 4) & 15;
        let high = scales[8 + group % 4] >> (group / 4 * 2) & 3;
        let scale = d * (f32::from(low | high << 4) - 32.0);
        let (first, shift) = pair(group);
        let third = &thirds[group % 2 * 16..];
        for ((to, byte), third) in into.iter_mut().zip(&pairs[first..]).zip(third) {
            *to = scale * (f32::from(byte >> shift & 3 | (third >> (group / 2) & 1) << 2) - 4.0);
        }
    }
}

/// Where the pairs of bits of a group of 16 elements begin, and by how much they are shifted: 32 bytes have four
/// times 32 elements.
fn pair(group: usize) -> (usize, usize) {
    (group / 8 * 32 + group % 2 * 16, group % 8 / 2 * 2)
}

fn q45_k(bytes: &[u8], fifths: Option<&[u8]>, quants: &[u8], into: &mut [f32]) {
    let (d, m) = (half(bytes, 0), half(bytes, 2));
    let packed = &bytes[4..16];
    for (group, into) in into.chunks_mut(32).enumerate() {
        let (scale, min) = if group < 4 {
            (packed[group] & 63, packed[group + 4] & 63)
        } else {
            let low = packed[group + 4];
            (low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4)
        };
        let (scale, min) = (d * f32::from(scale), m * f32::from(min));
        let quants = &quants[group / 2 * 32..];
        for (l, to) in into.iter_mut().enumerate() {
            let fifth = fifths.map_or(0, |fifths| fifths[l] >> group & 1);
            *to = scale * f32::from(quants[l] >> (group % 2 * 4) & 15 | fifth << 4) - min;
        }
    }
}

fn q6_k(bytes: &[u8], into: &mut [f32]) {
    let (low, high, scales) = (&bytes[..128], &bytes[128..192], &bytes[192..208]);
    let d = half(bytes, 208);
    for (group, into) in into.chunks_mut(32).enumerate() {
        // 128 elements have 64 bytes of nibbles, low ones first, and 32 bytes of pairs of bits.
        let (part, quarter) = (group / 4, group % 4);
        let (low, high) = (&low[part * 64 + quarter % 2 * 32..], &high[part * 32..]);
        for (l, to) in into.iter_mut().enumerate() {
            let q = low[l] >> (quarter / 2 * 4) & 15 | (high[l] >> (quarter * 2) & 3) << 4;
            let scale = d * f32::from(scales[group * 2 + l / 16] as i8);
            *to = scale * (f32::from(q) - 32.0);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::excessive_precision)]
mod tests {
    use super::*;
    use crate::weights::convert::to_f32;

    /// For each type: where a block has halves, six elements of the third of three blocks of pseudo-random bytes, and
    /// the sum of all elements, element i times i mod 97 + 1; as the reference implementation (gguf 0.19 for Python)
    /// gives them.
    const REFERENCE: &[(Kind, &[usize], [f32; 6], f64)] = &[
        (
            Kind::Q4_0,
            &[0],
            [0.1566162109375, 0.1566162109375, -0.7830810546875, -1.2529296875, 0.313232421875, -1.0963134765625],
            793.9908447265625,
        ),
        (
            Kind::Q4_1,
            &[0, 2],
            [2.1007080078125, 2.1007080078125, 2.3087158203125, 2.7247314453125, 1.6846923828125, 3.1407470703125],
            955.3568115234375,
        ),
        (
            Kind::Q5_0,
            &[0],
            [1.12353515625, -0.187255859375, -2.62158203125, 1.87255859375, 2.808837890625, 2.059814453125],
            -135.92822265625,
        ),
        (
            Kind::Q5_1,
            &[0, 2],
            [-3.4024658203125, -2.7740478515625, -0.2603759765625, 0.1585693359375, -4.2403564453125, -0.8887939453125],
            297.460205078125,
        ),
        (
            Kind::Q8_0,
            &[0],
            [7.212890625, -12.923095703125, 17.5814208984375, -13.9749755859375, 1.3524169921875, -18.0322265625],
            5094.0115966796875,
        ),
        (
            Kind::Q2_K,
            &[80, 82],
            [-2.0313720703125, -2.0313720703125, -5.6878662109375, -2.7818603515625, -0.2257080078125, -2.028564453125],
            -80054.62561035156,
        ),
        (
            Kind::Q3_K,
            &[108],
            [-4.705078125, -14.115234375, -18.232177734375, 0.196044921875, -5.09716796875, 10.1943359375],
            23709.125732421875,
        ),
        (
            Kind::Q4_K,
            &[0, 2],
            [-5.470458984375, -2.079345703125, 37.74462890625, 11.0782470703125, 5.697509765625, -1.2425537109375],
            -228354.4822998047,
        ),
        (
            Kind::Q5_K,
            &[0, 2],
            [0.5537109375, -97.58203125, -49.0341796875, 1.112548828125, -6.98291015625, -23.0068359375],
            -3154124.217529297,
        ),
        (
            Kind::Q6_K,
            &[208],
            [394.083984375, 197.0419921875, -516.357421875, -42.9609375, 96.86865234375, 85.921875],
            -28873.830688476562,
        ),
    ];

    /// Numbers of types in files, from which the pseudo-random bytes follow.
    const NUMBERS: [u64; 10] = [2, 3, 6, 7, 8, 10, 11, 12, 13, 14];

    /// Pseudo-random bytes, the high ones of halves such that they are about an eighth.
    fn blocks(kind: Kind, halves: &[usize], seed: u64, count: usize) -> Vec<u8> {
        let size = kind.block().unwrap().1;
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        let mut bytes: Vec<u8> = (0..count * size).map(|_| next()).collect();
        for block in bytes.chunks_mut(size) {
            halves.iter().for_each(|at| block[at + 1] = block[at + 1] & 0x83 | 0x30);
        }
        bytes
    }

    #[test]
    fn blocks_have_the_values_of_the_reference_implementation() {
        for ((kind, halves, some, sum), number) in REFERENCE.iter().zip(NUMBERS) {
            assert_eq!(Kind::of_gguf(number as u32), *kind);
            let bytes = blocks(*kind, halves, number + 1, 3);
            let size = kind.block().unwrap().0;
            let mut values = vec![0.0; 3 * size];
            assert!(to_f32(*kind, &bytes, 0, &mut values));
            let places = if size == 32 { [0, 1, 15, 16, 17, 31] } else { [0, 15, 33, 100, 161, 255] };
            assert_eq!(places.map(|at| values[2 * size + at]), *some, "{kind}");
            let found: f64 = values.iter().enumerate().map(|(i, value)| f64::from(*value) * (i % 97 + 1) as f64).sum();
            assert_eq!(found, *sum, "{kind}");
        }
    }

    #[test]
    fn blocks_of_bytes_are_multiples_of_their_scale() {
        // 0.75, then −128 … 127 in steps of one; the sums that follow are not read.
        let mut block = [&0.75f32.to_le_bytes()[..], &[0; 288]].concat();
        (0..256).for_each(|e| block[4 + e] = (e as i32 - 128) as i8 as u8);
        let mut values = [0.0; 256];
        block_to_f32(Kind::Q8_K, &block, &mut values);
        (0..256).for_each(|e| assert_eq!(values[e], 0.75 * (e as f32 - 128.0)));
    }

    #[test]
    fn four_bits_by_hand() {
        // d = 0.5 (0x3800), m = −1 (0xbc00); nibbles 0 … 15 are elements 0 … 15, their complements 16 … 31.
        let nibbles: Vec<u8> = (0..16).map(|q| (15 - q) << 4 | q).collect();
        let mut values = [0.0; 32];
        block_to_f32(Kind::Q4_0, &[&[0x00, 0x38][..], &nibbles].concat(), &mut values);
        (0..16).for_each(|e| assert_eq!((values[e], values[31 - e]), (0.5 * (e as f32 - 8.0), 0.5 * (e as f32 - 8.0))));
        block_to_f32(Kind::Q4_1, &[&[0x00, 0x38, 0x00, 0xbc][..], &nibbles].concat(), &mut values);
        (0..16).for_each(|e| assert_eq!((values[e], values[31 - e]), (0.5 * e as f32 - 1.0, 0.5 * e as f32 - 1.0)));
    }

    #[test]
    fn parts_of_blocks_are_read_and_nothing_beyond_the_last() {
        for (kind, halves, ..) in REFERENCE {
            let (size, _) = kind.block().unwrap();
            let bytes = blocks(*kind, halves, 77, 5);
            let mut all = vec![0.0; 5 * size];
            assert!(to_f32(*kind, &bytes, 0, &mut all));
            for (first, length) in
                [(0, 1), (size - 1, 2), (1, 3 * size), (size, size), (4 * size + 3, size - 3), (7, 0)]
            {
                let mut part = vec![f32::NAN; length];
                assert!(to_f32(*kind, &bytes, first, &mut part));
                assert_eq!(part, all[first..first + length], "{kind} {first} {length}");
            }
            let mut one = [0.0; 2];
            assert!(!to_f32(*kind, &bytes, 5 * size - 1, &mut one));
            assert!(!to_f32(*kind, &bytes, usize::MAX, &mut one));
            assert!(!to_f32(*kind, &bytes[..bytes.len() - 1], 5 * size - 1, &mut one[..1]));
        }
    }

    #[test]
    fn any_bytes_convert() {
        for kind in REFERENCE.iter().map(|(kind, ..)| *kind).chain([Kind::Q8_K]) {
            let (elements, size) = kind.block().unwrap();
            for byte in [0, 0x7f, 0x80, 0xff] {
                block_to_f32(kind, &vec![byte; size], &mut vec![0.0; elements]);
            }
        }
    }
}
