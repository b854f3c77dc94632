//! The memory of a model's tensors, and of what training keeps beside them.
//!
//! Tensors lie one behind the other, each row of an array and each tensor starting at a line of 256 bytes, in segments
//! that one binding can cover. Gradients and moments have the same layout, so an update walks over all of them at once.

use std::sync::Arc;

use meganeura_shaders::schedule::Tensor;

use crate::device::{Device, Transfer};
use crate::replay::Stretch;
use crate::{Error, Result};

/// Where each tensor's rows lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// For each tensor the segment and offset of its first row; all rows of a tensor lie in one segment.
    places: Vec<(usize, u64)>,
    /// Bytes of each segment.
    segments: Vec<u64>,
}

impl Layout {
    /// Fills segment after segment in order of declaration.
    pub(crate) fn new(tensors: &[Tensor], wanted: impl Fn(&Tensor) -> bool, segment: u64) -> Result<Layout> {
        let mut layout = Layout { places: vec![], segments: vec![] };
        for tensor in tensors {
            let bytes = if wanted(tensor) { tensor.bytes().unsigned_abs() } else { 0 };
            if bytes > segment {
                return Err(Error::Limit {
                    what: format!("tensor `{}`", tensor.name),
                    limit: "bytes of a storage binding",
                    allowed: segment,
                    found: bytes,
                });
            }
            if layout.segments.last().is_none_or(|used| used + bytes > segment) {
                layout.segments.push(0);
            }
            let last = layout.segments.len() - 1;
            layout.places.push((last, layout.segments[last]));
            layout.segments[last] += bytes;
        }
        Ok(layout)
    }

    /// Bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().sum()
    }
}

/// Device memory with the layout of a model's tensors.
#[derive(Clone)]
pub(crate) struct TensorMemory {
    layout: Arc<Layout>,
    segments: Vec<crate::device::Buffer>,
}

impl TensorMemory {
    /// Zeros.
    pub(crate) fn zeroed(device: &Device, what: &str, layout: &Arc<Layout>) -> Result<TensorMemory> {
        let allocate = |bytes: &u64| device.buffer(what, (*bytes).max(256));
        let segments = layout.segments.iter().map(allocate).collect::<Result<Vec<_>>>()?;
        let mut recorder = device.recorder()?;
        let fill =
            |buffer| Transfer::Fill { to: crate::device::Buffer::at(buffer, 0), bytes: buffer.bytes(), value: 0 };
        recorder.transfer(segments.iter().map(fill))?;
        recorder.submit()?;
        Ok(TensorMemory { layout: layout.clone(), segments })
    }

    /// A byte of a tensor.
    pub(crate) fn at(&self, tensor: usize, offset: u64) -> Stretch {
        let (segment, start) = self.layout.places[tensor];
        Stretch { buffer: self.segments[segment].clone(), offset: start + offset }
    }

    /// Whether a tensor begins `bytes` behind the start of another.
    pub(crate) fn is_behind(&self, first: usize, bytes: u64, tensor: usize) -> bool {
        let ((segment, start), (own, place)) = (self.layout.places[first], self.layout.places[tensor]);
        segment == own && start + bytes == place
    }

    /// Sets one row of a tensor.
    pub(crate) fn write(&self, device: &Device, tensor: usize, offset: u64, values: &[f32]) -> Result<()> {
        device.upload(self.at(tensor, offset).binding(), bytemuck::cast_slice(values))
    }

    /// Waits for one row of a tensor.
    pub(crate) fn read(&self, device: &Device, tensor: usize, offset: u64, values: &mut [f32]) -> Result<()> {
        device.download(self.at(tensor, offset).binding(), bytemuck::cast_slice_mut(values))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use meganeura_shaders::schedule::Init;

    fn tensor(shape: &[i64], loops: usize) -> Tensor {
        Tensor { name: "t".into(), shape: shape.into(), loops, trained: true, init: Init::Constant(0.0) }
    }

    #[test]
    fn rows_start_at_lines_and_tensors_stay_in_one_segment() {
        let tensors = [tensor(&[3], 0), tensor(&[2, 5], 1), tensor(&[64], 0), tensor(&[1], 0)];
        let layout = Layout::new(&tensors, |_| true, 1024).unwrap();
        assert_eq!(layout.places, [(0, 0), (0, 256), (0, 768), (1, 0)]);
        assert_eq!(layout.segments, [1024, 256]);
        let error = Layout::new(&[tensor(&[257], 0)], |_| true, 1024).unwrap_err().to_string();
        assert!(error.contains("`t`") && error.contains("1024") && error.contains("1280"), "{error}");
    }
}
