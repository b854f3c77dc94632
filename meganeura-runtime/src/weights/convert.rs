//! Stored elements as f32.

use super::blocks::{self, block_to_f32};
use super::kind::Kind;
use half::f16;
use half::slice::HalfFloatSliceExt;

/// Converts elements from `first` on; false if there are too few or the type does not convert.
pub(super) fn to_f32(kind: Kind, bytes: &[u8], first: usize, into: &mut [f32]) -> bool {
    let Some((elements, size)) = kind.block() else { return false };
    if elements > 1 {
        return blocks_to_f32(kind, (elements, size), bytes, first, into);
    }
    let range = first.checked_mul(size).zip(into.len().checked_mul(size));
    let Some(bytes) = range.and_then(|(start, length)| bytes.get(start..start.checked_add(length)?)) else {
        return false;
    };
    match kind {
        // Bytes in a file need not be aligned, so they are copied one element at a time.
        Kind::F32 => {
            for (to, from) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *to = f32::from_le_bytes(*from);
            }
        }
        Kind::Bf16 => {
            for (to, from) in into.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *to = f32::from_bits(u32::from(u16::from_le_bytes(*from)) << 16);
            }
        }
        _ => {
            let mut halves = [f16::ZERO; 256];
            for (to, from) in into.chunks_mut(256).zip(bytes.chunks(512)) {
                for (half, bytes) in halves.iter_mut().zip(from.as_chunks::<2>().0) {
                    *half = f16::from_le_bytes(*bytes);
                }
                halves[..to.len()].convert_to_f32_slice(to);
            }
        }
    }
    true
}

/// Elements of blocks; those at the ends may be parts of one.
fn blocks_to_f32(kind: Kind, (elements, size): (usize, usize), bytes: &[u8], first: usize, into: &mut [f32]) -> bool {
    let Some(end) = first.checked_add(into.len()) else { return false };
    let range = (first / elements).checked_mul(size).zip(end.div_ceil(elements).checked_mul(size));
    let Some(bytes) = range.and_then(|(start, end)| bytes.get(start..end)) else { return false };
    let (mut skip, mut rest) = (first % elements, into);
    for block in bytes.chunks_exact(size) {
        let length = rest.len().min(elements - skip);
        let (to, after) = rest.split_at_mut(length);
        if length == elements {
            block_to_f32(kind, block, to);
        } else {
            let mut whole = [0.0; blocks::MOST];
            block_to_f32(kind, block, &mut whole[..elements]);
            to.copy_from_slice(&whole[skip..skip + length]);
        }
        (skip, rest) = (0, after);
    }
    true
}
