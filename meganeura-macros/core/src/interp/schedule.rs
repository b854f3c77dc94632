//! The runtime in small, in f64: unrolls the schedule while it runs, over one arena, kernels by their reference.
//!
//! Steps between two barriers run in any order (shuffled on request), and what a buffer held is overwritten with NaN
//! when its life ends, so a missing barrier or a wrong lifetime shows in the results.

use std::collections::BTreeMap;

use meganeura_shaders::arena::Arena;
use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::{Tensor, copy_targets, eval_typed};
use meganeura_shaders::schedule::{BufferId, BufferKind, ELEMENT, Lead, Member, Operand, Place, Plan, Schedule};

use super::trace::{Call, begin, next_random, runs, trace};

/// What a call is given.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// The arguments in order.
    pub arguments: Vec<Tensor>,
    /// Tensors of the model by number, each with the number of its axes that count iterations.
    pub tensors: BTreeMap<usize, (Tensor, usize)>,
    /// Seed and step, where random numbers are made.
    pub random: Option<Tensor>,
}

/// The outputs of a call.
pub fn run(schedule: &Schedule, plan: &Plan, env: &Env, contents: &Contents, shuffle: Option<u64>) -> Vec<Tensor> {
    let layout = plan.arena(&schedule.buffers, env);
    let arena = vec![f64::NAN; (layout.bytes / ELEMENT) as usize];
    let mut memory = Memory { schedule, env, layout, arena, owned: BTreeMap::new() };
    memory.fill(contents);
    let mut random = shuffle.unwrap_or(0);
    for group in trace(schedule, plan, env) {
        let calls = group.calls.iter().flat_map(|call| call.step.members.iter().map(move |member| (call, member)));
        let mut calls: Vec<(&Call<'_>, &Member)> = calls.collect();
        if shuffle.is_some() {
            calls.sort_by_cached_key(|_| next_random(&mut random));
        }
        calls.iter().for_each(|(call, member)| memory.call(member, &call.index));
        for buffer in group.ends {
            let length = memory.length(buffer);
            memory.buffer_mut(buffer)[..length].fill(f64::NAN);
        }
    }
    schedule.outputs.iter().map(|output| memory.read(&output.place, &output.shape, &[])).collect()
}

struct Memory<'a> {
    schedule: &'a Schedule,
    env: &'a Env,
    layout: Arena,
    arena: Vec<f64>,
    owned: BTreeMap<BufferId, Vec<f64>>,
}

impl Memory<'_> {
    fn fill(&mut self, contents: &Contents) {
        for (id, buffer) in self.schedule.buffers.iter().enumerate() {
            if matches!(buffer.kind, BufferKind::Arena { .. }) {
                continue;
            }
            self.owned.insert(id, vec![f64::NAN; self.length(id)]);
            let (tensor, loops) = match buffer.kind {
                BufferKind::Argument(k) => (&contents.arguments[k], 0),
                BufferKind::Tensor(k) => (&contents.tensors[&k].0, contents.tensors[&k].1),
                BufferKind::Random => match &contents.random {
                    Some(words) => (words, 0),
                    None => continue,
                },
                _ => continue,
            };
            let mut stride = (tensor.shape[loops..].iter().product::<i64>() * ELEMENT + 255) / 256 * 256;
            let mut lead = vec![];
            for count in tensor.shape[..loops].iter().rev() {
                lead.insert(0, Lead { first: 0.into(), count: (*count).into(), stride: stride.into() });
                stride *= count;
            }
            let place = Place { buffer: id, offset: Dim::default(), slots: vec![], lead };
            self.write(&place, tensor, &[]);
        }
    }

    fn length(&self, buffer: BufferId) -> usize {
        (self.schedule.buffers[buffer].bytes.eval(self.env) / ELEMENT) as usize
    }

    fn buffer(&self, buffer: BufferId) -> &[f64] {
        match self.layout.offsets.get(&buffer) {
            Some(offset) => &self.arena[(offset / ELEMENT) as usize..][..self.length(buffer)],
            None => &self.owned[&buffer],
        }
    }

    fn buffer_mut(&mut self, buffer: BufferId) -> &mut [f64] {
        let length = self.length(buffer);
        match self.layout.offsets.get(&buffer) {
            Some(offset) => &mut self.arena[(offset / ELEMENT) as usize..][..length],
            None => self.owned.entry(buffer).or_default(),
        }
    }

    fn read(&self, place: &Place, shape: &[Dim], index: &[i64]) -> Tensor {
        let (runs, buffer) = (runs(place, shape, index, self.env), self.buffer(place.buffer));
        let data = runs.into_iter().flat_map(|(first, length)| buffer[first..first + length].iter().copied());
        Tensor { shape: self.env.shape(shape), data: data.collect() }
    }

    fn write(&mut self, place: &Place, value: &Tensor, index: &[i64]) {
        let shape: Vec<Dim> = value.shape.iter().map(|size| Dim::from(*size)).collect();
        let (runs, mut rest) = (runs(place, &shape, index, self.env), value.data.as_slice());
        let buffer = self.buffer_mut(place.buffer);
        for (first, length) in runs {
            buffer[first..first + length].copy_from_slice(&rest[..length]);
            rest = &rest[length..];
        }
    }

    fn call(&mut self, member: &Member, index: &[i64]) {
        if let (Kernel::Copy(copy), [(Operand::Memory(source), ..)]) = (&member.kernel, member.reads.as_slice()) {
            // Strides are in elements of memory, from where the places begin.
            let data = self.buffer(source.buffer)[begin(source, index, self.env)..].to_vec();
            let source = Tensor { shape: vec![data.len() as i64], data };
            let values = eval_typed(&member.kernel, &[source], &[], self.env).data;
            let first = begin(&member.write, index, self.env);
            let targets = copy_targets(copy, self.env);
            let buffer = self.buffer_mut(member.write.buffer);
            for (at, value) in targets.into_iter().zip(values) {
                buffer[first + at as usize] = value;
            }
            return;
        }
        let arg = |(operand, shape, _): &(Operand, Vec<Dim>, DType)| match operand {
            Operand::Index(id) => Tensor { shape: self.env.shape(shape), data: vec![index[*id] as f64] },
            Operand::Memory(place) => self.read(place, shape, index),
        };
        let args: Vec<Tensor> = member.reads.iter().map(arg).collect();
        let dtypes: Vec<DType> = member.reads.iter().map(|(.., dtype)| *dtype).collect();
        let value = eval_typed(&member.kernel, &args, &dtypes, self.env);
        self.write(&member.write, &value, index);
    }
}
