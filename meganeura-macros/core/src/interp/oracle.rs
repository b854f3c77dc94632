//! Judges a schedule and its plan by brute force at given dimensions, knowing neither lifetimes nor hazards.
//!
//! Every element remembers the kernel that wrote it, once in the arena and once in a memory where no two buffers share
//! a byte. A read must find the same writer in both. Between two barriers, no two kernels (of one launch or of two) may
//! touch the same element unless both only read it. Rows of arrays start at whole lines; copies touch what they say.

use std::collections::{BTreeMap, BTreeSet};

use meganeura_shaders::arena::Arena;
use meganeura_shaders::dim::{Env, Shape};
use meganeura_shaders::kernel::{Copy, Kernel};
use meganeura_shaders::reference::copy_targets;
use meganeura_shaders::schedule::{
    ALIGN, BufferId, BufferKind, ELEMENT, Member, Operand, Origin, Place, Plan, Schedule, Slot,
};

use super::trace::{begin, runs, trace};

/// What is wrong, if anything.
pub fn judge(schedule: &Schedule, plan: &Plan, env: &Env) -> Result<(), String> {
    let (shared, apart) = Default::default();
    let mut judge = Judge { schedule, env, arena: plan.arena(&schedule.buffers, env), shared, apart, kernels: 0 };
    for group in trace(schedule, plan, env) {
        let mut touched = BTreeMap::new();
        for call in &group.calls {
            for (member, origin) in call.step.members.iter().zip(&call.step.origins) {
                judge
                    .member(member, &call.index, &mut touched)
                    .map_err(|fault| format!("{fault} in `{}` ({}) at {:?}", origin.what, origin.path, call.index))?;
            }
        }
    }
    for output in &schedule.outputs {
        let origin = Origin { what: output.name.clone(), ..Origin::default() };
        let written = |(_, own): &Both| judge.apart.contains_key(own);
        if !judge.elements(&output.place, &output.shape, &[]).iter().all(written) {
            return Err(format!("output `{}` is not written", origin.what));
        }
    }
    Ok(())
}

/// An element of the arena, or of a buffer outside it.
type Element = (Option<BufferId>, usize);
/// The same element where buffers share bytes, and where they do not.
type Both = (Element, (BufferId, usize));

struct Judge<'s> {
    schedule: &'s Schedule,
    env: &'s Env,
    arena: Arena,
    shared: BTreeMap<Element, usize>,
    apart: BTreeMap<(BufferId, usize), usize>,
    kernels: usize,
}

impl Judge<'_> {
    /// `touched` holds the kernels of the group by element, and whether each has written.
    fn member(
        &mut self,
        member: &Member,
        index: &[i64],
        touched: &mut BTreeMap<Element, Vec<(usize, bool)>>,
    ) -> Result<(), String> {
        self.kernels += 1;
        let number = self.kernels;
        let fault = |what: &str, place: &Place| {
            let Place { buffer, slots, .. } = place;
            Err(format!("{what} `{}` {slots:?}", self.schedule.buffers[*buffer].name))
        };
        let is_aligned = |slot: &Slot| slot.stride.eval(self.env) % ALIGN == 0;
        let places = || member.places_read().map(|(place, _)| place).chain([&member.write]);
        if let Some(place) = places().find(|place| !place.slots.iter().all(is_aligned)) {
            return fault("rows between lines:", place);
        }
        let is_copy = matches!(member.kernel, Kernel::Copy(_));
        if let Some(place) = places().find(|place| !is_copy && !place.lead.is_empty()) {
            return fault("padded rows for a kernel that does not know them:", place);
        }
        let written = self.elements(&member.write, &member.shape, index);
        if let (Kernel::Copy(copy), [(Operand::Memory(read), shape, _)]) = (&member.kernel, member.reads.as_slice()) {
            self.copy(copy, (read, shape), (&member.write, &written), index)?;
        }
        let targets: BTreeSet<Both> = written.iter().copied().collect();
        let shapes: Vec<&Shape> = member.reads.iter().map(|(_, shape, _)| shape).collect();
        for (k, (operand, shape, _)) in member.reads.iter().enumerate() {
            let Operand::Memory(place) = operand else { continue };
            let read = self.elements(place, shape, index);
            for (element, own) in &read {
                if element.1 * ELEMENT as usize >= self.size(element.0) as usize {
                    return fault("read outside:", place);
                }
                let writer = self.shared.get(element);
                let is_given = !matches!(
                    self.schedule.buffers[place.buffer].kind,
                    BufferKind::Arena { .. } | BufferKind::Output(_)
                );
                if writer != self.apart.get(own) || writer.is_none() && !is_given {
                    return fault("overwritten or never written:", place);
                }
                let others = touched.entry(*element).or_default();
                if others.iter().any(|(by, write)| *by != number && *write) {
                    return fault("read and written at once:", place);
                }
                others.push((number, false));
            }
            let overlaps = read.iter().any(|element| targets.contains(element));
            if overlaps && !(member.kernel.is_elementwise_in(k, &shapes, &member.shape) && read == written) {
                return fault("a kernel that writes what it reads:", place);
            }
        }
        for (element, own) in written {
            if element.1 * ELEMENT as usize >= self.size(element.0) as usize {
                return fault("written outside:", &member.write);
            }
            let others = touched.entry(element).or_default();
            if others.iter().any(|(by, _)| *by != number) {
                return fault("written while it is in use:", &member.write);
            }
            others.push((number, true));
            self.shared.insert(element, number);
            self.apart.insert(own, number);
        }
        Ok(())
    }

    /// A copy's strides reach all of its target and nothing but its source.
    fn copy(
        &self,
        copy: &Copy,
        (read, shape): (&Place, &Shape),
        (write, written): (&Place, &[Both]),
        index: &[i64],
    ) -> Result<(), String> {
        let targets = copy_targets(copy, self.env);
        let first = begin(write, index, self.env);
        let mut reached: Vec<usize> = targets.iter().map(|at| first + *at as usize).collect();
        reached.sort_unstable();
        let mut expected: Vec<usize> = written.iter().map(|(_, (_, at))| *at).collect();
        expected.sort_unstable();
        if reached != expected {
            return Err("a copy whose strides miss its target".into());
        }
        let first = begin(read, index, self.env) as i64 + copy.from.eval(self.env);
        let mut sources = vec![first];
        for axis in &copy.axes {
            let (extent, stride) = (axis.extent.eval(self.env), axis.source.eval(self.env));
            let count = axis.window.as_ref().map_or(extent, |(_, length)| length.eval(self.env));
            sources = sources.iter().flat_map(|at| (0..count).map(move |k| at + k * stride)).collect();
        }
        let all: Vec<usize> = self.elements(read, shape, index).iter().map(|(_, (_, at))| *at).collect();
        match sources.iter().all(|at| all.binary_search(&(*at as usize)).is_ok()) {
            true => Ok(()),
            false => Err("a copy whose strides leave its source".into()),
        }
    }

    fn size(&self, space: Option<BufferId>) -> i64 {
        space.map_or(self.arena.bytes, |buffer| self.schedule.buffers[buffer].bytes.eval(self.env))
    }

    fn elements(&self, place: &Place, shape: &Shape, index: &[i64]) -> Vec<Both> {
        let element = |at: usize| match self.arena.offsets.get(&place.buffer) {
            Some(offset) => ((None, (offset / ELEMENT) as usize + at), (place.buffer, at)),
            None => ((Some(place.buffer), at), (place.buffer, at)),
        };
        let runs = runs(place, shape, index, self.env).into_iter();
        runs.flat_map(|(first, length)| (first..first + length).map(element)).collect()
    }
}
