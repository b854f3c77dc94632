//! Stored elements as f32.

use half::f16;
use half::slice::HalfFloatSliceExt;
use safetensors::tensor::Dtype;

/// Whether elements of this type convert.
pub(super) fn converts(kind: Dtype) -> bool {
    matches!(kind, Dtype::F32 | Dtype::F16 | Dtype::BF16)
}

/// Converts elements from `first` on; false if there are too few or the type does not convert.
pub(super) fn to_f32(kind: Dtype, bytes: &[u8], first: usize, into: &mut [f32]) -> bool {
    let size = if kind == Dtype::F32 { 4 } else { 2 };
    let range = first.checked_mul(size).zip(into.len().checked_mul(size));
    let Some(bytes) = range.and_then(|(start, length)| bytes.get(start..start.checked_add(length)?)) else {
        return false;
    };
    match kind {
        // Bytes in a file need not be aligned, so they are copied one element at a time.
        Dtype::F32 => {
            for (to, from) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *to = f32::from_le_bytes(*from);
            }
        }
        Dtype::BF16 => {
            for (to, from) in into.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *to = f32::from_bits(u32::from(u16::from_le_bytes(*from)) << 16);
            }
        }
        Dtype::F16 => {
            let mut halves = [f16::ZERO; 256];
            for (to, from) in into.chunks_mut(256).zip(bytes.chunks(512)) {
                for (half, bytes) in halves.iter_mut().zip(from.as_chunks::<2>().0) {
                    *half = f16::from_le_bytes(*bytes);
                }
                halves[..to.len()].convert_to_f32_slice(to);
            }
        }
        _ => return false,
    }
    true
}
