//! Memory with one place for each row of each of a model's tensors: parameters, gradients, moments.

use meganeura_shaders::schedule::{ELEMENT, Tensor};

use crate::Result;
use crate::device::{Binding, Device};
use crate::storage::{Kind, Rows, Segments, Spot, Storage};

/// Tensors of a model in segments; only some of them may have a place. A clone is another handle of the same memory.
#[derive(Clone)]
pub(crate) struct Parameters {
    storage: Storage,
    places: Vec<Option<Rows>>,
    /// Bytes from one row of a tensor to the next.
    strides: Vec<u64>,
}

/// Elements that lie one behind the other in several memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// Where they begin, in each memory.
    pub(crate) starts: [Spot; 2],
    /// How many bytes.
    pub(crate) bytes: u64,
}

impl Parameters {
    /// Zeros for the tensors that are wanted.
    pub(crate) fn new(device: &Device, kind: Kind, tensors: &[Tensor], wanted: &[bool]) -> Result<Parameters> {
        let mut segments = Segments::new(device);
        let place = |(tensor, wanted): (&Tensor, &bool)| {
            let (count, stride) = (tensor.names().len() as u64, tensor.stride().unsigned_abs());
            wanted.then(|| segments.place_rows(&format!("tensor `{}`", tensor.name), count, stride)).transpose()
        };
        let places = tensors.iter().zip(wanted).map(place).collect::<Result<Vec<_>>>()?;
        let strides = tensors.iter().map(|tensor| tensor.stride().unsigned_abs()).collect();
        Ok(Parameters { storage: Storage::new(device, kind, &segments)?, places, strides })
    }

    /// A byte of a tensor.
    pub(crate) fn at(&self, tensor: usize, offset: u64) -> Option<Binding<'_>> {
        Some(self.storage.at(self.places[tensor].as_ref()?.at(offset)?))
    }

    /// A place.
    pub(crate) fn spot(&self, spot: Spot) -> Binding<'_> {
        self.storage.at(spot)
    }

    /// Sets elements of one row of a tensor, from element `first` on.
    pub(crate) fn write(&self, device: &Device, tensor: usize, row: usize, first: usize, values: &[f32]) -> Result<()> {
        let offset = row as u64 * self.strides[tensor] + first as u64 * ELEMENT.unsigned_abs();
        match self.at(tensor, offset) {
            Some(to) => device.upload(to, bytemuck::cast_slice(values)),
            None => Ok(()),
        }
    }

    /// Waits for elements of one row of a tensor, from element `first` on.
    pub(crate) fn read(
        &self,
        device: &Device,
        tensor: usize,
        row: usize,
        first: usize,
        values: &mut [f32],
    ) -> Result<()> {
        let offset = row as u64 * self.strides[tensor] + first as u64 * ELEMENT.unsigned_abs();
        match self.at(tensor, offset) {
            Some(from) => device.download(from, bytemuck::cast_slice_mut(values)),
            None => Ok(()),
        }
    }

    /// The stretches of the wanted tensors that both have, as long as they lie one behind the other in both.
    pub(crate) fn runs(&self, other: &Parameters, wanted: &[bool]) -> Vec<Run> {
        let mut runs: Vec<Run> = vec![];
        let places = self.places.iter().zip(&other.places).zip(&self.strides).zip(wanted);
        for ((own, other), stride) in places.filter(|(_, wanted)| **wanted).map(|(place, _)| place) {
            let (Some(own), Some(other)) = (own, other) else { continue };
            for row in 0u64.. {
                let (Some(a), Some(b)) = (own.at(row * stride), other.at(row * stride)) else { break };
                let follows = |run: &&mut Run| {
                    run.starts
                        .iter()
                        .zip([a, b])
                        .all(|(start, next)| start.segment == next.segment && start.offset + run.bytes == next.offset)
                };
                match runs.last_mut().filter(follows) {
                    Some(run) => run.bytes += stride,
                    None => runs.push(Run { starts: [a, b], bytes: *stride }),
                }
            }
        }
        runs
    }
}
