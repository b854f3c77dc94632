//! The devices that every case runs on.

use meganeura_host::{Layout, Memory, Source, Space, Task, Threads, update};
use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{Member, Operand, Place};
use meganeura_shaders::update::Update;

pub(crate) use crate::vulkan::Run;
use crate::vulkan::Vulkan;

/// A Vulkan device, if there is one, and the CPU with different numbers of threads.
pub(crate) struct Devices {
    pub(crate) vulkan: Option<Vulkan>,
    pub(crate) cpu: [Threads; 2],
}

impl Devices {
    pub(crate) fn open() -> Devices {
        Devices { vulkan: Vulkan::open(), cpu: [1, 3].map(Threads::new) }
    }

    /// How many: first those of the CPU, then Vulkan's.
    pub(crate) fn count(&self) -> usize {
        self.cpu.len() + usize::from(self.vulkan.is_some())
    }
}

/// Runs members, each after the one before, over buffers that start as given; returns what they become. Places begin
/// at the given bytes.
pub(crate) fn on_cpu(
    threads: &Threads,
    buffers: &[Vec<u32>],
    members: &[Member],
    env: &Env,
    loops: &[u32],
    begin: impl Fn(&Place) -> i64 + Sync,
) -> Vec<Vec<u32>> {
    let memories: Vec<Memory> = buffers.iter().map(|words| memory(words)).collect();
    let layout = |place: Option<&Place>, shape: &[Dim], dtype: DType| {
        let sizes: Vec<usize> = env.shape(shape).iter().map(|size| *size as usize).collect();
        let mut layout = Layout::dense(&sizes, dtype);
        for (stride, lead) in layout.strides.iter_mut().zip(place.map_or(&[][..], |place| &place.lead)) {
            *stride = (lead.stride.eval(env) / 4) as usize;
        }
        layout
    };
    // Nothing of an empty value is touched, wherever its first row would be.
    let first = |place: &Place, shape: &[Dim]| {
        if env.shape(shape).contains(&0) {
            return 0;
        }
        let lead: i64 = place.lead.iter().map(|lead| lead.first.eval(env) * lead.stride.eval(env)).sum();
        ((begin(place) + lead) / 4) as usize
    };
    for member in members {
        let reads = member.reads.iter().map(|(operand, shape, dtype)| match operand {
            Operand::Memory(place) => layout(Some(place), shape, *dtype),
            Operand::Index(_) => layout(None, shape, *dtype),
        });
        let reads: Vec<Layout> = reads.collect();
        let write = layout(Some(&member.write), &member.shape, member.dtype);
        let task = Task::new(&member.kernel, &reads, &write, env).unwrap_or_else(|e| panic!("{e}: {}", member.kernel));
        let mut scratch = vec![f32::NAN; task.scratch()];
        threads.call(|| {
            let space = Space::new(memories.iter().map(|memory| (memory, true)));
            let reads = member.reads.iter().map(|(operand, shape, _)| match operand {
                Operand::Memory(place) => space.source(place.buffer, first(place, shape)).unwrap(),
                Operand::Index(id) => Source::new(std::slice::from_ref(&loops[*id])),
            });
            let write = space.target(member.write.buffer, first(&member.write, &member.shape)).unwrap();
            let run = task.run(threads, &reads.collect::<Vec<_>>(), write, &mut scratch);
            run.unwrap_or_else(|e| panic!("{e}: {}", member.kernel));
        });
    }
    memories.iter().zip(buffers).map(|(memory, words)| memory.read()[..words.len()].to_vec()).collect()
}

/// An optimizer's step over one stretch in memories of their own.
pub(crate) fn update_on_cpu(threads: &Threads, buffers: &[Vec<u32>], kind: &Update, words: &[u32]) -> Vec<Vec<u32>> {
    let memories: Vec<Memory> = buffers.iter().map(|words| memory(words)).collect();
    threads.call(|| {
        let space = Space::new(memories.iter().map(|memory| (memory, true)));
        let target = |k| space.target(k, 0).unwrap();
        let places: Vec<_> = (0..buffers.len()).filter(|k| *k != 1).map(target).collect();
        update::update(threads, kind, words, space.source(1, 0).unwrap(), &places).unwrap();
    });
    memories.iter().zip(buffers).map(|(memory, words)| memory.read()[..words.len()].to_vec()).collect()
}

fn memory(words: &[u32]) -> Memory {
    let memory = Memory::new(4 * words.len() as u64).unwrap();
    memory.change(|all| all[..words.len()].copy_from_slice(words));
    memory
}
