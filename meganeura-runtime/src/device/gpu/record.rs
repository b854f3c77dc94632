//! Recording: dispatches and copies into command buffers, and their submission.
//!
//! A [`Recorder`] owns its encoders, so recording takes no lock and a finished recording can wait while another is
//! submitted. Dispatches given together go into one compute pass with barriers only where they ask for one; between
//! passes, and at the end of every command buffer, there is a barrier for everything. A recording is split where the
//! driver library would run out of its plain-data memory. Everything used is held until the device is done with it.

use super::buffer::{Binding, Buffer, Memory};
use super::context::{Context, SyncPoint};
use super::limits::{self, BINDING_ALIGNMENT};
use super::pipeline::{Arguments, Pipeline};
use super::queue::{Encoder, Keep, Queue};
use crate::device::Times;
use crate::{Error, Result};
use std::sync::Arc;

/// Dispatches in one command buffer: each may take 256 of the 2²⁰ bytes that the driver library has for words.
const DISPATCHES_PER_ENCODER: usize = 4_000;

/// Passes in one command buffer: as many as the driver library can tell the times of.
const PASSES_PER_ENCODER: usize = blade_graphics::limits::PASS_COUNT;

/// One launch of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'a> {
    /// The kernel.
    pub pipeline: &'a Pipeline,
    /// What `b0`, `b1`, … are bound to; entries that the kernel does not declare are ignored.
    pub buffers: &'a [Binding<'a>],
    /// The words of `p`.
    pub words: &'a [u32],
    /// Workgroups along each axis; with a zero among them nothing runs.
    pub grid: [u32; 3],
    /// Whether all that was recorded before it in this pass must be finished and visible first.
    pub barrier: bool,
}

/// One copy between buffers; copies of one pass are not ordered among each other.
#[derive(Clone, Copy, Debug)]
pub enum Transfer<'a> {
    /// Copies bytes.
    Copy {
        /// Where from.
        from: Binding<'a>,
        /// Where to.
        to: Binding<'a>,
        /// How many bytes, a multiple of four.
        bytes: u64,
    },
    /// Sets every byte to one value.
    Fill {
        /// Where.
        to: Binding<'a>,
        /// How many bytes, a multiple of four.
        bytes: u64,
        /// The value of each.
        value: u8,
    },
}

/// Commands that are recorded and not yet submitted; dropping it discards them.
pub struct Recorder {
    queue: Arc<Queue>,
    /// At least one; the last is being recorded.
    encoders: Vec<Encoder>,
    keep: Vec<Keep>,
    id: u64,
    passes: usize,
    dispatches: usize,
    times: Option<Arc<Times>>,
    /// Whether a command was refused: what was recorded before it must not run alone.
    refused: bool,
}

/// Work that was handed to the device.
#[derive(Clone)]
pub struct Submission {
    context: Arc<Context>,
    point: SyncPoint,
}

impl Recorder {
    pub(super) fn new(queue: &Arc<Queue>) -> Result<Self> {
        let (encoders, id, keep) = (vec![queue.take()?], queue.next_id(), Vec::new());
        let (passes, dispatches, times, refused) = Default::default();
        Ok(Self { queue: queue.clone(), encoders, keep, id, passes, dispatches, times, refused })
    }

    /// Records dispatches into one compute pass. After an error the recording cannot be submitted.
    pub fn compute<'a>(&mut self, dispatches: impl IntoIterator<Item = Dispatch<'a>>) -> Result<()> {
        let result = self.record_dispatches("", dispatches);
        self.refused |= result.is_err();
        result
    }

    /// Records the dispatches of a step into a pass of its own, whose time is told to `times` when the recording was
    /// submitted and the device is done with it. After an error the recording cannot be submitted.
    pub fn compute_timed(&mut self, step: usize, dispatches: &[Dispatch<'_>], times: &Arc<Times>) -> Result<()> {
        self.times = Some(times.clone());
        let runs = dispatches.iter().any(|dispatch| !dispatch.grid.contains(&0));
        let result = match runs {
            true => self.record_dispatches(&step.to_string(), dispatches.iter().copied()),
            false => dispatches.iter().try_for_each(|dispatch| check(self.queue.context(), dispatch)),
        };
        self.refused |= result.is_err();
        result
    }

    /// Records copies and fills into one pass. After an error the recording cannot be submitted.
    pub fn transfer<'a>(&mut self, transfers: impl IntoIterator<Item = Transfer<'a>>) -> Result<()> {
        let result = self.record_transfers(transfers);
        self.refused |= result.is_err();
        result
    }

    /// Hands everything to the device, which runs it after all earlier submissions.
    pub fn submit(mut self) -> Result<Submission> {
        let context = self.queue.context().clone();
        context.check()?;
        if self.refused {
            let problem = "expected a complete recording, found one with a refused command".to_string();
            return Err(Error::Kernel { kernel: "recording".to_string(), problem });
        }
        let encoders = std::mem::take(&mut self.encoders);
        let keep = std::mem::take(&mut self.keep);
        let point = self.queue.submit(encoders, keep, self.times.as_ref())?;
        Ok(Submission { context, point })
    }

    fn record_dispatches<'a>(&mut self, name: &str, dispatches: impl IntoIterator<Item = Dispatch<'a>>) -> Result<()> {
        let mut dispatches = dispatches.into_iter().peekable();
        let context = self.queue.context().clone();
        while dispatches.peek().is_some() {
            self.begin_pass()?;
            let Self { encoders, keep, id, dispatches: count, .. } = self;
            let Some(encoder) = encoders.last_mut() else { unreachable!("there is always an encoder") };
            context.call("recording dispatches", |_| {
                let mut pass = encoder.raw.compute(name);
                let mut barrier = false;
                while *count < DISPATCHES_PER_ENCODER {
                    let Some(dispatch) = dispatches.next() else { return Ok(()) };
                    check(&context, &dispatch)?;
                    barrier |= dispatch.barrier;
                    if dispatch.grid.contains(&0) {
                        continue;
                    }
                    hold(keep, *id, &dispatch);
                    if barrier {
                        pass.barrier();
                    }
                    barrier = false;
                    let mut launch = pass.with(dispatch.pipeline.raw());
                    launch.bind(0, &Arguments(&dispatch));
                    launch.dispatch(dispatch.grid);
                    *count += 1;
                }
                Ok(())
            })??;
        }
        Ok(())
    }

    fn record_transfers<'a>(&mut self, transfers: impl IntoIterator<Item = Transfer<'a>>) -> Result<()> {
        self.begin_pass()?;
        let Self { queue, encoders, keep, id, .. } = self;
        let Some(encoder) = encoders.last_mut() else { unreachable!("there is always an encoder") };
        let context = queue.context();
        context.call("recording copies", |_| {
            let mut pass = encoder.raw.transfer("");
            for transfer in transfers {
                let (from, to, bytes) = match transfer {
                    Transfer::Copy { from, to, bytes } => (Some(from), to, bytes),
                    Transfer::Fill { to, bytes, .. } => (None, to, bytes),
                };
                for place in from.iter().chain([&to]) {
                    check_range(context, place, bytes)?;
                    if place.buffer.mark(*id) {
                        keep.push(Keep::Buffer(place.buffer.clone()));
                    }
                }
                let piece = |place: Binding| place.buffer.0.raw.at(place.offset);
                match transfer {
                    _ if bytes == 0 => {}
                    Transfer::Copy { from, to, bytes } => pass.copy_buffer_to_buffer(piece(from), piece(to), bytes),
                    Transfer::Fill { to, bytes, value } => pass.fill_buffer(piece(to), bytes, value),
                }
            }
            Ok(())
        })?
    }

    fn begin_pass(&mut self) -> Result<()> {
        if self.dispatches >= DISPATCHES_PER_ENCODER || self.passes >= PASSES_PER_ENCODER {
            self.encoders.push(self.queue.take()?);
            self.dispatches = 0;
            self.passes = 0;
        }
        if self.passes > 0 {
            let Some(encoder) = self.encoders.last_mut() else { unreachable!("there is always an encoder") };
            self.queue.context().call("recording a barrier", |_| encoder.raw.barrier())?;
        }
        self.passes += 1;
        Ok(())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.queue.discard(std::mem::take(&mut self.encoders));
    }
}

impl Submission {
    /// Waits until the device is done with it.
    pub fn wait(&self) -> Result<()> {
        self.context.wait(&self.point, u32::MAX).map(|_| ())
    }

    /// Whether the device is done with it.
    pub fn is_done(&self) -> Result<bool> {
        self.context.wait(&self.point, 0)
    }
}

fn hold(keep: &mut Vec<Keep>, id: u64, dispatch: &Dispatch) {
    if dispatch.pipeline.mark(id) {
        keep.push(Keep::Pipeline(dispatch.pipeline.clone()));
    }
    for binding in dispatch.buffers {
        if binding.buffer.mark(id) {
            keep.push(Keep::Buffer(binding.buffer.clone()));
        }
    }
}

fn check(context: &Arc<Context>, dispatch: &Dispatch) -> Result<()> {
    let pipeline = dispatch.pipeline;
    let interface = pipeline.interface();
    if interface.words != dispatch.words.len() {
        let (expected, found) = (interface.words, dispatch.words.len());
        return Err(pipeline.refuse(format!("expected {expected} words of `p`, found {found}")));
    }
    let expected = interface.buffers.last().map_or(0, |last| last + 1);
    if dispatch.buffers.len() < expected {
        return Err(pipeline.refuse(format!("expected {expected} buffers, found {}", dispatch.buffers.len())));
    }
    for &number in &interface.buffers {
        let Binding { buffer, offset } = dispatch.buffers[number];
        if !Arc::ptr_eq(&buffer.0.context, context) {
            return Err(other_device(context, buffer));
        }
        if buffer.memory() != Memory::Device {
            return Err(pipeline.refuse(format!("expected device memory for b{number}, found {buffer:?}")));
        }
        if !offset.is_multiple_of(BINDING_ALIGNMENT) || offset >= buffer.bytes() {
            return Err(pipeline.refuse(format!(
                "expected for b{number} an offset that is a multiple of {BINDING_ALIGNMENT} below {}, found {offset}",
                buffer.bytes()
            )));
        }
    }
    let allowed = context.limits().workgroups;
    for count in dispatch.grid {
        limits::check(
            || format!("grid {:?} of kernel `{}`", dispatch.grid, pipeline.name()),
            "workgroups along an axis",
            allowed.into(),
            count.into(),
        )?;
    }
    Ok(())
}

fn check_range(context: &Arc<Context>, place: &Binding, bytes: u64) -> Result<()> {
    if !Arc::ptr_eq(&place.buffer.0.context, context) {
        return Err(other_device(context, place.buffer));
    }
    let end = place.offset.checked_add(bytes);
    if place.offset.is_multiple_of(4) && bytes.is_multiple_of(4) && end.is_some_and(|end| end <= place.buffer.bytes()) {
        return Ok(());
    }
    Err(Error::Kernel {
        kernel: "copy".to_string(),
        problem: format!("expected whole words within {:?}, found {bytes} bytes at {}", place.buffer, place.offset),
    })
}

fn other_device(context: &Context, buffer: &Buffer) -> Error {
    Error::OtherDevice {
        what: format!("{buffer:?}"),
        expected: context.name().to_string(),
        found: buffer.0.context.name().to_string(),
    }
}
