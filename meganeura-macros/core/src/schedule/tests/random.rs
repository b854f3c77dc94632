//! Random graphs: every schedule means what the graph means, and the random ones reach every case.

use std::collections::BTreeMap;

use meganeura_shaders::schedule::{Operand, Schedule, Slot};

use super::check::{check_meaning, compile, steps_of};
use super::loops::copies;
use crate::schedule::plan::lifetimes;
use crate::testing::{POLICIES, random_graph, reordered, training};

#[test]
fn schedules_of_random_graphs_mean_what_the_graphs_mean() {
    for seed in 0..60 {
        let (graph, loss) = random_graph(seed);
        let dims = [1 + (seed as i64 * 7) % 9, 1 + (seed as i64) % 5];
        check_meaning(&graph, &dims, seed);
        for policy in POLICIES {
            check_meaning(&training(&graph, loss, policy), &dims, seed);
        }
    }
}

#[test]
fn any_order_of_a_block_will_do() {
    for seed in 5000..5020 {
        let (graph, loss) = random_graph(seed);
        let trained = training(&reordered(&graph, seed), loss, POLICIES[seed as usize % 3]);
        for k in 0..2 {
            check_meaning(&reordered(&trained, seed + k), &[1 + seed as i64 % 7, 1 + seed as i64 % 4], seed);
        }
    }
}

fn count(schedule: &Schedule, seen: &mut BTreeMap<&'static str, usize>) {
    let mut see = |what: &'static str, times: usize| *seen.entry(what).or_insert(0) += times;
    for why in ["start", "keep", "pack", "spread"] {
        see(why, copies(schedule, why));
    }
    let steps = steps_of(schedule);
    let slots = || steps.iter().flat_map(|step| step.places()).flat_map(|place| &place.slots);
    see("two slots", slots().filter(|slot| slot.parity).count());
    let next = |slot: &&Slot| !slot.parity && slot.base == 1.into() && slot.index.is_some();
    see("a row for each position", slots().filter(next).count());
    see("two levels", steps.iter().filter(|step| step.members[0].write.slots.len() > 1).count());
    let members = || steps.iter().flat_map(|step| &step.members);
    see("over its own operand", members().filter(|m| m.places_read().any(|(place, _)| *place == m.write)).count());
    let index = |(operand, ..): &(Operand, _, _)| matches!(operand, Operand::Index(_));
    see("an index as operand", members().filter(|m| m.reads.iter().any(index)).count());
    see("bodies that start without a barrier", lifetimes(&schedule.plans[0].items, schedule).1.len());
}

#[test]
fn random_graphs_reach_every_case() {
    let mut seen = BTreeMap::new();
    for seed in 0..60 {
        let (graph, loss) = random_graph(seed);
        count(&compile(&graph), &mut seen);
        count(&compile(&training(&graph, loss, POLICIES[seed as usize % 3])), &mut seen);
    }
    assert!(seen.values().all(|times| *times > 5), "{seen:?}");
}
