//! Facts that only a kernel can tell.

use super::{Dispatch, Gpu};
use crate::Result;

const SUBGROUP: &str = "var<storage, read_write> b0: array<vec2<u32>>;
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) index: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    b0[index] = vec2<u32>(size, lane);
}";

/// The size of subgroups, if it is one for all and invocation i is lane i mod size of its subgroup.
pub(super) fn subgroup_size(device: &Gpu) -> Result<Option<u32>> {
    let pipeline = match device.pipeline("subgroup probe", SUBGROUP) {
        Ok(pipeline) => pipeline,
        Err(error) if device.is_lost() => return Err(error),
        Err(error) => {
            log::info!("no subgroups on `{device}`: {error}");
            return Ok(None);
        }
    };
    let buffer = device.buffer("subgroup probe", 8 * 256)?;
    let mut recorder = device.recorder()?;
    let buffers = [buffer.at(0)];
    recorder.compute([Dispatch {
        pipeline: &pipeline,
        buffers: &buffers,
        words: &[],
        grid: [1; 3],
        barrier: false,
    }])?;
    recorder.submit()?;
    let mut lanes = [[0u32; 2]; 256];
    device.download(buffer.at(0), bytemuck::cast_slice_mut(&mut lanes))?;
    let size = lanes[0][0];
    let regular = size > 0 && (0..).zip(&lanes).all(|(index, &[other, lane])| other == size && lane == index % size);
    Ok(regular.then_some(size))
}
