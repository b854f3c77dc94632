//! The replayer of the CPU: it runs the kernel descriptions of the steps, in order, over the same plan of memory.
//!
//! Which recipe a kernel takes and how it is cut is decided when a set of dimensions is first met; a call after that
//! locates its buffers, holds their memories and runs. It allocates nothing.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use meganeura_host::{Layout, Memory, Source, Space, Task, update};
use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{self, BufferId, BufferKind, ELEMENT, Operand, Plan, Schedule};
use smallvec::SmallVec;

use super::facts::{Facts, start, unroll};
use super::program::{Call, Place, Replayer, Work, span};
use super::update::Updates;
use crate::device::host::{Host, SEGMENT};
use crate::{Error, Result};

/// The CPU's side of an entry; all it needs is in the schedule.
pub struct HostReplayer {
    device: Host,
}

impl HostReplayer {
    /// For any entry.
    pub fn new(device: &Host) -> HostReplayer {
        HostReplayer { device: device.clone() }
    }
}

/// Where an argument of a launch comes from.
enum Read {
    Memory(Point),
    /// The index of a loop.
    Index([u32; 1]),
}

/// A word of a buffer of the schedule, counted from its beginning.
#[derive(Clone, Copy)]
struct Point {
    buffer: BufferId,
    word: usize,
}

struct Launch {
    task: usize,
    reads: Vec<Read>,
    write: Point,
}

/// The launches of an entry at known dimensions.
struct HostWork {
    device: Host,
    name: String,
    /// What each buffer is for: whether calls write it; none of those that no launch touches.
    uses: Vec<Option<bool>>,
    tasks: Vec<Task>,
    launches: Vec<Launch>,
    /// Where the launches of each launched step end.
    ends: Vec<usize>,
    kept: Mutex<Kept>,
}

/// What a call needs and the next one can use again.
#[derive(Default)]
struct Kept {
    scratch: Vec<f32>,
    /// For each buffer: the number of its memory and the word at which it begins.
    bases: Vec<(usize, usize)>,
}

impl Replayer for HostReplayer {
    fn facts(&self) -> Facts {
        Facts { workgroup_memory: u32::MAX, binding: SEGMENT }
    }

    fn prepare(&self, schedule: &Schedule, plan: &Plan, env: &Env) -> Result<Box<dyn Work>> {
        let written = |kind: &BufferKind| matches!(kind, BufferKind::Arena { .. } | BufferKind::Output(_));
        let mut work = HostWork {
            device: self.device.clone(),
            name: schedule.name.clone(),
            uses: vec![None; schedule.buffers.len()],
            tasks: vec![],
            launches: vec![],
            ends: vec![],
            kept: Mutex::default(),
        };
        // The tasks of each step of the text: iterations differ in where values lie alone.
        let mut firsts: Vec<Option<usize>> = vec![];
        unroll(schedule, plan, env, |step, number, index| {
            if firsts.len() <= number {
                firsts.resize(number + 1, None);
            }
            let first = match firsts[number] {
                Some(first) => first,
                None => {
                    let first = work.tasks.len();
                    for member in &step.members {
                        let layout = |operand: &Operand, shape: &[Dim], dtype| match operand {
                            Operand::Memory(place) => layout(&place.lead, shape, dtype, env),
                            Operand::Index(_) => layout(&[], shape, dtype, env),
                        };
                        let reads: Vec<Layout> =
                            member.reads.iter().map(|(operand, shape, dtype)| layout(operand, shape, *dtype)).collect();
                        let write = self::layout(&member.write.lead, &member.shape, member.dtype, env);
                        let task = Task::new(&member.kernel, &reads, &write, env);
                        work.tasks.push(task.map_err(|refusal| work.fault(&refusal))?);
                    }
                    firsts[number] = Some(first);
                    first
                }
            };
            for (k, member) in step.members.iter().enumerate() {
                let mut point = |place: &schedule::Place, shape: &[Dim]| {
                    let lead = place.lead.iter().map(|lead| lead.first.eval(env) * lead.stride.eval(env)).sum::<i64>();
                    // Nothing of an empty value is touched, wherever its first row would be.
                    let byte = if env.shape(shape).contains(&0) { 0 } else { start(place, env, index) + lead };
                    work.uses[place.buffer].get_or_insert(written(&schedule.buffers[place.buffer].kind));
                    Point { buffer: place.buffer, word: (byte / ELEMENT).unsigned_abs() as usize }
                };
                let reads = member.reads.iter().map(|(operand, shape, _)| match operand {
                    Operand::Memory(place) => Read::Memory(point(place, shape)),
                    Operand::Index(id) => Read::Index([index[*id].unsigned_abs() as u32]),
                });
                let reads = reads.collect();
                let write = point(&member.write, &member.shape);
                work.uses[write.buffer] = Some(true);
                work.launches.push(Launch { task: first + k, reads, write });
            }
            work.ends.push(work.launches.len());
            Ok(())
        })?;
        let scratch = work.tasks.iter().map(Task::scratch).max().unwrap_or(0);
        let bases = vec![(usize::MAX, 0); schedule.buffers.len()];
        work.kept = Mutex::new(Kept { scratch: vec![0.0; scratch], bases });
        Ok(Box::new(work))
    }
}

/// How a value lies whose first axes may be padded.
fn layout(lead: &[schedule::Lead], shape: &[Dim], dtype: DType, env: &Env) -> Layout {
    let sizes: Vec<usize> = env.shape(shape).iter().map(|size| size.unsigned_abs() as usize).collect();
    let mut layout = Layout::dense(&sizes, dtype);
    for (stride, lead) in layout.strides.iter_mut().zip(lead) {
        *stride = (lead.stride.eval(env) / ELEMENT).unsigned_abs() as usize;
    }
    layout
}

/// What a call holds: memories of the device, and values of the program.
#[derive(Default)]
struct Held<'a> {
    memories: SmallVec<[(Memory, bool); 16]>,
    values: SmallVec<[&'a [u32]; 16]>,
}

impl<'a> Held<'a> {
    /// The number of a memory; it is written if any use of it does.
    fn memory(&mut self, memory: &Memory, write: bool) -> usize {
        match self.memories.iter_mut().position(|(known, _)| known.is_same(memory)) {
            Some(at) => {
                self.memories[at].1 |= write;
                at
            }
            None => {
                self.memories.push((memory.clone(), write));
                self.memories.len() - 1
            }
        }
    }

    /// The number of values of the program, counted down from the largest.
    fn values(&mut self, values: &'a [u32]) -> usize {
        self.values.push(values);
        usize::MAX - (self.values.len() - 1)
    }
}

impl Work for HostWork {
    fn replay(&self, call: &Call<'_>) -> Result<()> {
        for (bytes, to) in call.uploads {
            let Some(buffer) = to.buffer.host() else { return Err(self.fault(&"a buffer of another device")) };
            buffer.write(to.offset, bytes)?;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = Held::default();
        for (id, written) in self.uses.iter().enumerate() {
            let Some(written) = *written else { continue };
            kept.bases[id] = match (call.locate)(id, 0)? {
                Place::Program(values, byte) => (held.values(values), byte as usize / 4),
                Place::Device(stretch) => match stretch.buffer.host() {
                    Some(buffer) => (held.memory(buffer.memory(), written), stretch.offset as usize / 4),
                    None => return Err(self.fault(&"a buffer of another device")),
                },
            };
        }
        let mut places: SmallVec<[(usize, usize); 16]> = SmallVec::new();
        for launch in call.then.iter().flat_map(|updates| &updates.launches) {
            for (k, place) in launch.places.iter().enumerate() {
                let Some(buffer) = place.buffer.host() else { return Err(self.fault(&"a buffer of another device")) };
                // The second is the gradient.
                places.push((held.memory(buffer.memory(), k != 1), place.offset as usize / 4));
            }
        }
        let Kept { scratch, bases } = &mut *kept;
        let Call { then, steps, times, .. } = call;
        self.device.threads().call(|| {
            let space = Space::new(held.memories.iter().map(|(memory, write)| (memory, *write)));
            let mut run = |steps: &Range<usize>| {
                let mut launches = self.launches[span(&self.ends, steps)].iter();
                launches.try_for_each(|launch| self.launch(launch, &held, &space, bases, scratch))
            };
            let update = || then.map_or(Ok(()), |updates| self.update(updates, &places, &space));
            let Some(times) = times else {
                run(steps)?;
                return update();
            };
            let timed = |step: usize, run: &mut dyn FnMut() -> Result<()>| {
                let begin = Instant::now();
                run()?;
                times.add(step, begin.elapsed());
                Ok(())
            };
            for step in steps.start..steps.end.min(self.ends.len()) {
                timed(step, &mut || run(&(step..step + 1)))?;
            }
            if then.is_some() { timed(self.ends.len(), &mut || update()) } else { Ok(()) }
        })
    }
}

impl HostWork {
    fn launch(
        &self,
        launch: &Launch,
        held: &Held<'_>,
        space: &Space<'_>,
        bases: &[(usize, usize)],
        scratch: &mut [f32],
    ) -> Result<()> {
        let missing = || self.fault(&"a value that lies past the end of its buffer");
        let mut reads: SmallVec<[Source<'_>; 16]> = SmallVec::new();
        for read in &launch.reads {
            reads.push(match read {
                Read::Index(index) => Source::new(index),
                Read::Memory(Point { buffer, word }) => {
                    let (memory, base) = bases[*buffer];
                    let source = match held.values.get(usize::MAX - memory) {
                        Some(values) => values.get(base + word..).map(Source::new),
                        None => space.source(memory, base + word),
                    };
                    source.ok_or_else(missing)?
                }
            });
        }
        let (memory, base) = bases[launch.write.buffer];
        let write = space.target(memory, base + launch.write.word).ok_or_else(missing)?;
        let run = self.tasks[launch.task].run(self.device.threads(), &reads, write, scratch);
        run.map_err(|refusal| self.fault(&refusal))
    }

    fn update(&self, updates: &Updates, places: &[(usize, usize)], space: &Space<'_>) -> Result<()> {
        let missing = || self.fault(&"a tensor that lies past the end of its memory");
        let mut places = places.iter();
        for launch in &updates.launches {
            let mut own = places.by_ref().take(launch.places.len());
            let mut written = SmallVec::<[_; 4]>::new();
            let mut gradients = None;
            for (k, (memory, word)) in own.by_ref().enumerate() {
                match k {
                    1 => gradients = Some(space.source(*memory, *word).ok_or_else(missing)?),
                    _ => written.push(space.target(*memory, *word).ok_or_else(missing)?),
                }
            }
            let gradients = gradients.ok_or_else(missing)?;
            let run = update::update(self.device.threads(), &updates.update, &launch.words, gradients, &written);
            run.map_err(|refusal| self.fault(&refusal))?;
        }
        Ok(())
    }

    fn fault(&self, what: &dyn std::fmt::Display) -> Error {
        Error::Kernel { kernel: self.name.clone(), problem: format!("found {what}") }
    }
}
