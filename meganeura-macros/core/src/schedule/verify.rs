//! The verifier of schedules: what hazards, plan and lowering promise, checked on the text and at sample sizes.
//!
//! Ids are in range; reads follow writes; no kernel of a launch touches what another one writes, and its own operands
//! only element for element; results lie inside their buffers; launches keep to the limits of bindings and words;
//! barriers and lives are those that a second look gives; every order keeps apart what lives together.

use std::collections::BTreeSet;

use meganeura_shaders::dim::{Env, Shape};
use meganeura_shaders::schedule::{
    Binding, BufferId, BufferKind, Condition, Dispatch, ELEMENT, Item, Lead, MAX_BINDINGS, MAX_WORDS, Member, Operand,
    Place, Plan, Role, Schedule, Slot, Step, Word, steps,
};

use super::hazards::{are_apart, place_barriers, steps_mut};
use super::plan::{conflicts, lifetimes};

/// Whether the schedule keeps its promises; says what does not.
pub fn verify(schedule: &Schedule) -> Result<(), String> {
    match schedule.plans.last() {
        Some(Plan { condition: Condition::Always, .. }) => {}
        _ => return Err("the last plan does not hold always".into()),
    }
    let samples = schedule.symbols.samples();
    for plan in &schedule.plans {
        let mut written = vec![false; schedule.buffers.len()];
        for (id, buffer) in schedule.buffers.iter().enumerate() {
            written[id] = matches!(buffer.kind, BufferKind::Argument(_) | BufferKind::Tensor(_) | BufferKind::Random);
        }
        for (number, step) in steps(&plan.items).into_iter().enumerate() {
            let at = |fault: String| match step.origins.first() {
                Some(origin) => format!("step {number}, `{}` ({}): {fault}", origin.what, origin.path),
                None => format!("step {number}: {fault}"),
            };
            verify_step(step, schedule, &samples, &mut written).map_err(at)?;
        }
        for output in &schedule.outputs {
            if !written.get(output.place.buffer).is_some_and(|written| *written) {
                return Err(format!("output `{}` is not written", output.name));
            }
            verify_place(&output.place, &output.shape, schedule, &samples)?;
        }
        verify_barriers(plan, schedule)?;
        verify_lives(plan, schedule)?;
    }
    Ok(())
}

fn verify_step(step: &Step, schedule: &Schedule, samples: &[Env], written: &mut [bool]) -> Result<(), String> {
    if step.members.is_empty() || step.members.len() != step.origins.len() {
        return Err(format!("{} kernels with {} origins", step.members.len(), step.origins.len()));
    }
    let places = || step.members.iter().flat_map(Member::places_read);
    // Slices may overrun within the bounds of the dimensions where the schedule's checks do not hold.
    let kept = |env: &&Env| schedule.checks.iter().all(|check| check.holds(env));
    let kept: Vec<Env> = samples.iter().filter(kept).cloned().collect();
    places().try_for_each(|(place, shape)| verify_place(place, shape, schedule, &kept))?;
    step.members.iter().try_for_each(|m| verify_place(&m.write, &m.shape, schedule, samples))?;
    verify_launch(step, schedule)?;
    let name = |place: &Place| &schedule.buffers[place.buffer].name;
    if let Some((place, _)) = places().find(|(place, _)| !written[place.buffer]) {
        return Err(format!("reads `{}` before it is written", name(place)));
    }
    for member in &step.members {
        let is_own = match schedule.buffers[member.write.buffer].kind {
            BufferKind::Arena { .. } | BufferKind::Output(_) => true,
            BufferKind::Tensor(k) => schedule.outputs.iter().any(|output| output.role == Role::Update(k)),
            BufferKind::Argument(_) | BufferKind::Random => false,
        };
        if !is_own {
            return Err(format!("writes `{}`, which is not its own", name(&member.write)));
        }
        written[member.write.buffer] = true;
    }
    let mut distinct: Vec<&Place> = step.places().collect();
    let mut seen: Vec<&Place> = Vec::new();
    distinct.retain(|place| {
        !seen.contains(place) && {
            seen.push(place);
            true
        }
    });
    if distinct.len() > MAX_BINDINGS {
        return Err(format!("{} places, at most {MAX_BINDINGS} can be bound", distinct.len()));
    }
    match step.variants.last() {
        None => {}
        Some(variant) if variant.condition != Condition::Always => return Err("the last variant may not hold".into()),
        Some(_) => {
            let dispatches = step.variants.iter().flat_map(|variant| &variant.dispatches);
            dispatches.into_iter().try_for_each(|dispatch| verify_dispatch(dispatch, step, schedule))?;
        }
    }
    Ok(())
}

/// Whether the kernels of one launch may run at once.
fn verify_launch(step: &Step, schedule: &Schedule) -> Result<(), String> {
    let meet = |a: &Place, b: &Place| a.buffer == b.buffer && !are_apart(a, b, schedule);
    for (own, writer) in step.members.iter().enumerate() {
        let name = &schedule.buffers[writer.write.buffer].name;
        for (other, member) in step.members.iter().enumerate() {
            if other != own && meet(&member.write, &writer.write) {
                return Err(format!("two kernels of the launch write `{name}`"));
            }
            let shapes: Vec<&Shape> = member.reads.iter().map(|(_, shape, _)| shape).collect();
            for (k, (operand, ..)) in member.reads.iter().enumerate() {
                let Operand::Memory(place) = operand else { continue };
                let over_itself = || {
                    other == own && *place == writer.write && member.kernel.is_elementwise_in(k, &shapes, &member.shape)
                };
                if meet(place, &writer.write) && !over_itself() {
                    return Err(format!("reads and writes `{name}` at once"));
                }
            }
        }
    }
    Ok(())
}

fn verify_dispatch(dispatch: &Dispatch, step: &Step, schedule: &Schedule) -> Result<(), String> {
    let Dispatch { bindings, words, .. } = dispatch;
    if bindings.len() > MAX_BINDINGS || words.len() > MAX_WORDS {
        return Err(format!("{} bindings and {} words", bindings.len(), words.len()));
    }
    let exists = |binding: &Binding| match binding {
        Binding::Write(member) => *member < step.members.len(),
        Binding::Read(member, k) => {
            let operand = step.members.get(*member).and_then(|member| member.reads.get(*k));
            operand.is_some_and(|(operand, ..)| matches!(operand, Operand::Memory(_)))
        }
    };
    let names: BTreeSet<&str> = words.iter().map(|(name, _)| name.as_str()).collect();
    let is_known = |word: &Word| match word {
        Word::Inside(k) => *k < bindings.len(),
        Word::Index(id) => *id < schedule.loops.len(),
        Word::Size(_) | Word::SizeAsFloat(_) => true,
    };
    if !bindings.iter().all(exists) || names.len() != words.len() || !words.iter().all(|(_, word)| is_known(word)) {
        return Err("a dispatch with bindings or words that do not exist".into());
    }
    Ok(())
}

fn verify_place(place: &Place, shape: &Shape, schedule: &Schedule, samples: &[Env]) -> Result<(), String> {
    let Some(buffer) = schedule.buffers.get(place.buffer) else { return Err("a buffer that does not exist".into()) };
    let known = |slot: &Slot| slot.index.is_none_or(|id| id < schedule.loops.len());
    if place.lead.len() > shape.len() || !place.slots.iter().all(known) {
        return Err(format!("a place in `{}` of a loop or with rows that do not exist", buffer.name));
    }
    for env in samples {
        let (mut first, mut end) = (place.offset.eval(env), place.offset.eval(env));
        for Slot { base, index, parity, stride } in &place.slots {
            let (base, stride) = (base.eval(env), stride.eval(env));
            let last = index.map_or(0, |id| schedule.loops[id].count.eval(env) - 1);
            let (low, high) = if *parity { (0, 1) } else { (base, base + last) };
            (first, end) = (first + low * stride, end + high * stride);
        }
        for Lead { first: row, count, stride } in &place.lead {
            let (row, stride) = (row.eval(env), stride.eval(env));
            (first, end) = (first + row * stride, end + (row + (count.eval(env) - 1).max(0)) * stride);
        }
        end += env.shape(&shape[place.lead.len()..]).iter().product::<i64>() * ELEMENT;
        let bytes = buffer.bytes.eval(env);
        if first < 0 || end > bytes || first % ELEMENT != 0 {
            return Err(format!("a place at {first}..{end} in `{}` of {bytes} bytes", buffer.name));
        }
    }
    Ok(())
}

fn verify_barriers(plan: &Plan, schedule: &Schedule) -> Result<(), String> {
    let mut items = plan.items.clone();
    steps_mut(&mut items).into_iter().for_each(|step| step.barrier = false);
    place_barriers(&mut items, schedule);
    let flags = |items: &[Item]| steps(items).iter().map(|step| step.barrier).collect::<Vec<_>>();
    match flags(&items).into_iter().zip(flags(&plan.items)).position(|(needed, found)| needed != found) {
        Some(step) => Err(format!("the barrier of step {step} is not where hazards ask for it")),
        None => Ok(()),
    }
}

fn verify_lives(plan: &Plan, schedule: &Schedule) -> Result<(), String> {
    let (lives, seams) = lifetimes(&plan.items, schedule);
    if lives != plan.lives {
        return Err("lives that the steps do not have".into());
    }
    let conflicts = conflicts(&lives, &seams);
    for order in &plan.orders {
        let mut below: Vec<Option<BTreeSet<BufferId>>> = vec![None; lives.len()];
        for (life, direct) in order {
            let mut all: BTreeSet<usize> = direct.iter().copied().collect();
            for under in direct {
                let Some(Some(under)) = below.get(*under) else { return Err("an order that is none".into()) };
                all.extend(under);
            }
            match below.get_mut(*life) {
                Some(empty @ None) => *empty = Some(all),
                _ => return Err("an order with a life twice, or one that does not exist".into()),
            }
        }
        let lies_below = |a: usize, b: usize| below[b].as_ref().is_some_and(|all| all.contains(&a));
        for (a, others) in conflicts.iter().enumerate() {
            if let Some(b) = others.iter().find(|b| !lies_below(a, **b) && !lies_below(**b, a)) {
                let [a, b] = [a, *b].map(|life| &schedule.buffers[lives[life].buffer].name);
                return Err(format!("`{a}` and `{b}` live at once and may share bytes"));
            }
        }
    }
    match plan.orders.is_empty() {
        true => Err("a plan without an order".into()),
        false => Ok(()),
    }
}
