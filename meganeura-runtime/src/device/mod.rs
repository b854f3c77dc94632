//! Devices, and below them what the replay of a schedule is made of: buffers, pipelines, recordings, submissions.
//!
//! What comes in are WGSL texts, words, grids and byte offsets; what goes out are submissions that can be waited
//! for. All checks against limits and sizes happen before anything reaches the driver, and a panic of the driver
//! library becomes an error that marks the device as lost. This is the only module with `unsafe` but the mapping of
//! files: what the driver library requires, mapped memory, and that encoders and sync points may change threads.

mod buffer;
mod context;
mod info;
mod limits;
mod pipeline;
mod probe;
mod query;
mod queue;
mod record;
mod staging;

pub use buffer::{Binding, Buffer, Memory};
pub use info::{DeviceInfo, DeviceKind};
pub use limits::{BINDING_ALIGNMENT, Limits, MAX_BUFFERS, MAX_WORDS};
pub use pipeline::{Interface, Pipeline, Source};
pub use record::{Dispatch, Recorder, Submission, Transfer};
pub use staging::HostBuffer;

use crate::{Error, Result};
use context::Context;
use pipeline::PipelineInner;
use queue::Queue;
use staging::Staging;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// A device that models run on; cloning gives another handle of the same one.
#[derive(Clone)]
pub struct Device {
    shared: Arc<Shared>,
}

struct Shared {
    context: Arc<Context>,
    queue: Arc<Queue>,
    staging: Arc<Staging>,
    info: DeviceInfo,
    facts: Facts,
    subgroup: OnceLock<Option<u32>>,
    pipelines: Mutex<BTreeMap<String, Weak<PipelineInner>>>,
}

/// What the driver says about a device beyond the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// Whether shaders may compute in f16.
    pub f16: bool,
    /// Tile size of cooperative matrices of f16 with f32 accumulators, 0 without them.
    pub cooperative_f16: u32,
    /// Tile size of cooperative matrices of f32, 0 without them.
    pub cooperative_f32: u32,
}

impl Device {
    /// Opens a hardware GPU if there is one, else a software Vulkan device.
    ///
    /// The software device runs on the CPU and is slow; it stands in until kernels run on the CPU directly. Printing
    /// the device says which one it is. Fails with [`Error::NoDevice`] if there is neither.
    pub fn open() -> Result<Self> {
        Self::open_where("a GPU or a software Vulkan device", |_| true)
    }

    /// Opens a hardware GPU; fails with [`Error::NoDevice`] if there is none.
    pub fn gpu() -> Result<Self> {
        Self::open_where("a hardware GPU", |info| info.kind == DeviceKind::Gpu)
    }

    /// Opens the first device whose name contains `part`, in any case: `Device::named("radeon")`.
    pub fn named(part: &str) -> Result<Self> {
        let wanted = part.to_lowercase();
        Self::open_where(&format!("named like `{part}`"), |info| info.name.to_lowercase().contains(&wanted))
    }

    /// The devices that can be opened, in the order in which [`Device::open`] tries them.
    pub fn list() -> Vec<DeviceInfo> {
        info::candidates().0.into_iter().map(|candidate| candidate.info).collect()
    }

    /// Runs on a context that the program also uses for other things.
    pub fn from_blade(context: Arc<blade_graphics::Context>) -> Self {
        let info = DeviceInfo::from(context.device_information());
        let capabilities = context.capabilities();
        let facts = Facts {
            f16: capabilities.shader_float16,
            cooperative_f16: capabilities.cooperative_matrix.f16_tile,
            cooperative_f32: capabilities.cooperative_matrix.f32_tile,
        };
        let (limits, heap) = query::query(&info.name).unwrap_or((Limits::BASELINE, 0));
        let context = Arc::new(Context::new(context, info.name.clone(), limits, heap));
        let queue = Arc::new(Queue::new(context.clone()));
        let (staging, pipelines, subgroup) = Default::default();
        Self { shared: Arc::new(Shared { context, queue, staging, info, facts, subgroup, pipelines }) }
    }

    /// Its name, driver and kind.
    pub fn info(&self) -> &DeviceInfo {
        &self.shared.info
    }

    /// Bytes of device and staging memory that this device's handles, tensors and models hold at the moment.
    pub fn allocated_bytes(&self) -> u64 {
        self.shared.context.allocated()
    }

    /// Whether it was lost; every call but this one then fails with [`Error::DeviceLost`].
    pub fn is_lost(&self) -> bool {
        self.shared.context.is_lost()
    }

    fn open_where(wanted: &str, fits: impl Fn(&DeviceInfo) -> bool) -> Result<Self> {
        let (candidates, mut found) = info::candidates();
        for candidate in candidates {
            if !fits(&candidate.info) {
                found.push(candidate.info.to_string());
                continue;
            }
            match candidate.open() {
                Ok(context) => return Ok(Self::from_blade(Arc::new(context))),
                Err(reason) => found.push(format!("{}: {reason}", candidate.info)),
            }
        }
        let found = if found.is_empty() { "none".to_string() } else { found.join("; ") };
        Err(Error::NoDevice { wanted: wanted.to_string(), found })
    }
}

/// What the replay is made of.
#[doc(hidden)]
impl Device {
    /// What it is trusted with.
    pub fn limits(&self) -> &Limits {
        self.shared.context.limits()
    }

    /// What its driver says beyond the baseline.
    pub fn facts(&self) -> &Facts {
        &self.shared.facts
    }

    /// How many invocations a subgroup has, if all of a workgroup of 256 have as many and lie in the order of their
    /// indices; found by running a kernel once.
    pub fn subgroup_size(&self) -> Result<Option<u32>> {
        if let Some(known) = self.shared.subgroup.get() {
            return Ok(*known);
        }
        let found = probe::subgroup_size(self)?;
        Ok(*self.shared.subgroup.get_or_init(|| found))
    }

    /// Fails with [`Error::OutOfMemory`] if `bytes` are more than the driver says are left.
    pub fn check_memory(&self, what: &str, bytes: u64) -> Result<()> {
        self.shared.queue.reap()?;
        buffer::check_budget(&self.shared.context, what, bytes)
    }

    /// Device memory of at least `bytes`, with undefined content; `what` names it in errors.
    pub fn buffer(&self, what: &str, bytes: u64) -> Result<Buffer> {
        self.shared.queue.reap()?;
        Buffer::new(&self.shared.context, what, bytes, Memory::Device)
    }

    /// Host memory of at least `bytes`, with undefined content.
    pub fn host_buffer(&self, memory: Memory, bytes: u64) -> Result<HostBuffer> {
        HostBuffer::new(&self.shared.queue, &self.shared.staging, memory, bytes)
    }

    /// Pipelines of texts, each made once while any is in use; new ones are made on several threads.
    pub fn pipelines(&self, sources: &[Source]) -> Vec<Result<Pipeline>> {
        let mut known: Vec<Option<Pipeline>> = {
            let pipelines = self.lock_pipelines();
            let find = |source: &Source| pipelines.get(source.text)?.upgrade().map(Pipeline);
            sources.iter().map(find).collect()
        };
        let mut missing: Vec<Source> = Vec::new();
        for (source, _) in sources.iter().zip(&known).filter(|(_, known)| known.is_none()) {
            if missing.iter().all(|other| other.text != source.text) {
                missing.push(*source);
            }
        }
        let made = pipeline::create(&self.shared.context, self.limits(), &missing);
        let mut pipelines = self.lock_pipelines();
        pipelines.retain(|_, pipeline| pipeline.strong_count() > 0);
        for (source, pipeline) in missing.iter().zip(&made) {
            if let Ok(pipeline) = pipeline {
                pipelines.insert(source.text.to_string(), Arc::downgrade(&pipeline.0));
            }
        }
        drop(pipelines);
        let result = |(index, source): (usize, &Source)| match known[index].take() {
            Some(pipeline) => Ok(pipeline),
            None => match missing.iter().position(|other| other.text == source.text) {
                Some(at) => made[at].clone(),
                None => unreachable!("a source is known or missing"),
            },
        };
        sources.iter().enumerate().map(result).collect()
    }

    /// One pipeline.
    pub fn pipeline(&self, name: &str, text: &str) -> Result<Pipeline> {
        let mut made = self.pipelines(&[Source { name, text }]);
        let Some(pipeline) = made.pop() else { unreachable!("one source gives one result") };
        pipeline
    }

    /// Begins a recording.
    pub fn recorder(&self) -> Result<Recorder> {
        Recorder::new(&self.shared.queue)
    }

    /// Copies bytes to the device; they may change at once, and everything submitted later sees them.
    pub fn upload(&self, to: Binding, bytes: &[u8]) -> Result<()> {
        staging::upload(&self.shared.queue, &self.shared.staging, to, bytes)
    }

    /// Copies bytes from the device after everything submitted so far, and waits for them.
    pub fn download(&self, from: Binding, into: &mut [u8]) -> Result<()> {
        staging::download(&self.shared.queue, &self.shared.staging, from, into)
    }

    /// Whether both are handles of one device.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    fn lock_pipelines(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Weak<PipelineInner>>> {
        self.shared.pipelines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.info.fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.shared.info)
    }
}
