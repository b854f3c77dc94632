//! The encoders of a device and the submissions in flight.
//!
//! The driver library's `start` begins an encoder's next command buffer whether or not the device is done with it.
//! So each encoder here has a single one, and is handed out again only after its sync point was reached; there are
//! at most [`IN_FLIGHT`] of them unless recordings that are kept need more. What a submission uses is held beside
//! its encoder and let go when the sync point is seen; that is also when the times of a timed recording are read.

use super::buffer::Buffer;
use super::context::{Context, SyncPoint};
use super::pipeline::Pipeline;
use crate::Result;
use crate::device::Times;
use blade_graphics as gpu;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Submissions that may be in flight before recording another waits for the oldest.
const IN_FLIGHT: usize = 8;

/// Something that a submission in flight still uses.
pub(super) enum Keep {
    Buffer(#[allow(dead_code)] Buffer),
    Pipeline(#[allow(dead_code)] Pipeline),
}

/// An encoder with one command buffer.
pub(super) struct Encoder {
    pub(super) raw: gpu::CommandEncoder,
    /// Whether it has begun its command buffer, in which nothing is recorded yet.
    begun: bool,
}

// SAFETY: an encoder is not `Send` because it holds pointers into mapped memory of its own and the driver's handles,
// which may be used from any thread by one at a time; here it always has exactly one owner.
#[allow(unsafe_code)]
unsafe impl Send for Encoder {}

struct Flight {
    encoder: Encoder,
    point: SyncPoint,
    keep: Vec<Keep>,
    /// Where the times of its passes go.
    times: Option<Arc<Times>>,
}

pub(super) struct Queue {
    context: Arc<Context>,
    state: Mutex<State>,
    /// Encoders that exist.
    encoders: AtomicUsize,
    ids: AtomicU64,
}

#[derive(Default)]
struct State {
    idle: Vec<Encoder>,
    /// In the order of their sync points.
    flights: VecDeque<Flight>,
}

impl Queue {
    pub(super) fn new(context: Arc<Context>) -> Self {
        let state = Mutex::new(State::default());
        Self { context, state, encoders: AtomicUsize::new(0), ids: AtomicU64::new(0) }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// A number that no earlier recording has.
    pub(super) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// An encoder that has begun its command buffer.
    pub(super) fn take(&self) -> Result<Encoder> {
        let mut encoder = loop {
            self.reap()?;
            let oldest = {
                let mut state = self.lock();
                if let Some(encoder) = state.idle.pop() {
                    break encoder;
                }
                state.flights.front().map(|flight| flight.point.clone())
            };
            match oldest {
                Some(point) if self.encoders.load(Ordering::Relaxed) >= IN_FLIGHT => {
                    self.context.wait(&point, u32::MAX)?;
                }
                _ => break self.create()?,
            }
        };
        if std::mem::take(&mut encoder.begun) {
            return Ok(encoder);
        }
        let started = self.context.call("beginning a command buffer", |_| encoder.raw.start());
        if let Err(error) = started {
            self.destroy(encoder);
            return Err(error);
        }
        Ok(encoder)
    }

    /// Submits command buffers in their order; the point is reached when all are done. The times of passes that are
    /// named by a number go to `times` when that is seen.
    pub(super) fn submit(
        &self,
        encoders: Vec<Encoder>,
        keep: Vec<Keep>,
        times: Option<&Arc<Times>>,
    ) -> Result<SyncPoint> {
        // The lock spans the submissions, so that flights are in the order of their points.
        let mut state = self.lock();
        let mut keep = Some(keep);
        let count = encoders.len();
        let mut last = None;
        for (index, mut encoder) in encoders.into_iter().enumerate() {
            let point = self.context.call("submitting", |gpu| SyncPoint(gpu.submit(&mut encoder.raw)))?;
            last = Some(point.clone());
            let keep = if index + 1 == count { keep.take().unwrap_or_default() } else { Vec::new() };
            state.flights.push_back(Flight { encoder, point, keep, times: times.cloned() });
        }
        let Some(last) = last else { unreachable!("a recording has at least one encoder") };
        Ok(last)
    }

    /// Destroys encoders whose commands were never submitted.
    pub(super) fn discard(&self, encoders: Vec<Encoder>) {
        for encoder in encoders {
            self.destroy(encoder);
        }
    }

    /// Lets go of what finished submissions used.
    pub(super) fn reap(&self) -> Result<()> {
        let mut done = Vec::new();
        let mut state = self.lock();
        while let Some(flight) = state.flights.front() {
            if !self.context.wait(&flight.point, 0)? {
                break;
            }
            let Some(Flight { mut encoder, keep, times, .. }) = state.flights.pop_front() else { break };
            done.push(keep);
            if let Some(times) = times {
                self.tell(&mut encoder, &times)?;
            }
            state.idle.push(encoder);
        }
        drop(state);
        drop(done);
        Ok(())
    }

    /// Waits for everything that was submitted and lets go of it, so that all times are told.
    pub(super) fn settle(&self) -> Result<()> {
        let last = self.lock().flights.back().map(|flight| flight.point.clone());
        if let Some(point) = last {
            self.context.wait(&point, u32::MAX)?;
        }
        self.reap()
    }

    /// The driver library reads the times of a command buffer when the encoder begins its next one.
    fn tell(&self, encoder: &mut Encoder, times: &Times) -> Result<()> {
        self.context.call("reading times", |_| {
            encoder.raw.start();
            encoder.begun = true;
            for (name, time) in encoder.raw.timings() {
                if let Ok(step) = name.parse() {
                    times.add(step, *time);
                }
            }
        })
    }

    fn create(&self) -> Result<Encoder> {
        let desc = gpu::CommandEncoderDesc { name: "", buffer_count: 1, manual_barriers: true };
        let raw = self.context.call("creating a command encoder", |gpu| gpu.create_command_encoder(desc))?;
        self.encoders.fetch_add(1, Ordering::Relaxed);
        Ok(Encoder { raw, begun: false })
    }

    fn destroy(&self, mut encoder: Encoder) {
        self.encoders.fetch_sub(1, Ordering::Relaxed);
        self.context.destroy("destroying a command encoder", |gpu| gpu.destroy_command_encoder(&mut encoder.raw));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held that leaves the lists in disorder.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let State { idle, flights } = std::mem::take(&mut *self.lock());
        for Flight { encoder, point, keep, .. } in flights {
            if self.context.wait(&point, u32::MAX).is_err() {
                log::debug!("a submission of a lost device is not waited for");
            }
            self.destroy(encoder);
            drop(keep);
        }
        self.discard(idle);
    }
}
