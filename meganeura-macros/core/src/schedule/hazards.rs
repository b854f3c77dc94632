//! Barriers: before a step that touches what a step since the last barrier wrote, or writes what it read.
//!
//! A loop body is looked at in three surroundings: its first iteration after what precedes the loop, any iteration
//! after the one before it, and its last iteration before what follows. Places are affine in the loop indices, so the
//! iteration before is the same place with its slots moved by one. A body always holds a barrier (the first step gets
//! one if no hazard asks for it); so only neighbouring iterations can meet. One look is enough, since a new barrier
//! only ends what was pending.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::schedule::{Item, LoopId, Place, Schedule, Slot, Step};

#[derive(Clone)]
struct Access {
    place: Place,
    write: bool,
}

/// Sets the barriers that the steps need, on top of those that they have. Of the schedule only loops and bounds count.
pub fn place_barriers(items: &mut [Item], schedule: &Schedule) {
    walk(items, &mut Vec::new(), &[], schedule);
}

/// `fixed` are loops that stand at a known index.
fn walk(items: &mut [Item], pending: &mut Vec<Access>, fixed: &[(LoopId, Dim)], schedule: &Schedule) {
    for item in items {
        match item {
            Item::Step(step) => {
                let mut accesses = accesses(step);
                fixed.iter().for_each(|(id, index)| move_to(&mut accesses, *id, index, None));
                let meet = |new: &Access| pending.iter().any(|old| conflict(old, new, schedule));
                if step.barrier || accesses.iter().any(meet) {
                    step.barrier = true;
                    pending.clear();
                }
                pending.extend(accesses);
            }
            Item::Loop { id, body } => {
                let info = &schedule.loops[*id];
                walk(body, pending, &[fixed, &[(*id, info.first())]].concat(), schedule);
                let before = Dim::from(if info.reversed { 1 } else { -1 });
                pending.clear();
                walk(body, pending, fixed, schedule);
                move_to(pending, *id, &before, Some(*id));
                walk(body, pending, fixed, schedule);
                if !has_barrier(body) {
                    if let Some(step) = first_step_mut(body) {
                        step.barrier = true;
                    }
                    pending.clear();
                    walk(body, pending, fixed, schedule);
                }
                move_to(pending, *id, &info.last(), None);
            }
        }
    }
}

fn accesses(step: &Step) -> Vec<Access> {
    let access = |place: &Place, write| Access { place: place.clone(), write };
    let reads = step.members.iter().flat_map(|member| member.places_read()).map(|(place, _)| access(place, false));
    reads.chain(step.members.iter().map(|member| access(&member.write, true))).collect()
}

/// Replaces the index of a loop by `by`, plus itself where it stays.
fn move_to(accesses: &mut [Access], id: LoopId, by: &Dim, stays: Option<LoopId>) {
    for slot in accesses.iter_mut().flat_map(|access| &mut access.place.slots).filter(|slot| slot.index == Some(id)) {
        slot.base = &slot.base + by;
        slot.index = stays;
    }
}

fn conflict(old: &Access, new: &Access, schedule: &Schedule) -> bool {
    (old.write || new.write) && old.place.buffer == new.place.buffer && !are_apart(&old.place, &new.place, schedule)
}

/// Whether some slot of the two places provably differs: by their bases where one loop's index counts in both, else for
/// every index that their loops take.
pub fn are_apart(a: &Place, b: &Place, schedule: &Schedule) -> bool {
    let bounds = |dim: &Dim| schedule.symbols.bounds(dim);
    let last = |slot: &Slot| slot.index.map_or(Dim::from(0), |id| &schedule.loops[id].count - &Dim::from(1));
    let is_above = |high: &Slot, low: &Slot| bounds(&(&high.base - &(&low.base + &last(low)))).0 > 0;
    a.slots.iter().zip(&b.slots).filter(|(a, b)| a.stride == b.stride && a.parity == b.parity).any(|(a, b)| {
        if a.index != b.index {
            return !a.parity && (is_above(a, b) || is_above(b, a));
        }
        let (low, high) = bounds(&(&a.base - &b.base));
        if a.parity { low == high && low % 2 != 0 } else { low > 0 || high < 0 }
    })
}

fn has_barrier(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Step(step) => step.barrier,
        Item::Loop { body, .. } => has_barrier(body),
    })
}

/// The step that runs first.
pub fn first_step(items: &[Item]) -> Option<&Step> {
    match items.first()? {
        Item::Step(step) => Some(step),
        Item::Loop { body, .. } => first_step(body),
    }
}

fn first_step_mut(items: &mut [Item]) -> Option<&mut Step> {
    match items.first_mut()? {
        Item::Step(step) => Some(step),
        Item::Loop { body, .. } => first_step_mut(body),
    }
}

/// The steps of the text in order, loop bodies once.
pub fn steps_mut(items: &mut [Item]) -> Vec<&mut Step> {
    fn walk<'s>(items: &'s mut [Item], steps: &mut Vec<&'s mut Step>) {
        for item in items {
            match item {
                Item::Step(step) => steps.push(step),
                Item::Loop { body, .. } => walk(body, steps),
            }
        }
    }
    let mut steps = Vec::new();
    walk(items, &mut steps);
    steps
}
