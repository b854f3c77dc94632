//! Barriers of schedules written by hand, for what `lower` has no reason to make.

use crate::schedule::hazards::place_barriers;
use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::{DType, Prog};
use meganeura_shaders::schedule::*;

fn barriers(loops: usize, mut items: Vec<Item>) -> Vec<bool> {
    let kind = BufferKind::Arena { owner: None };
    let buffer = |name: &str| Buffer { name: name.into(), kind: kind.clone(), bytes: Dim::from(4096) };
    let info = |id: usize| Loop { count: Dim::from(4), reversed: false, outer: id.checked_sub(1) };
    let schedule = Schedule {
        buffers: ["b", "c", "d"].map(buffer).to_vec(),
        loops: (0..loops).map(info).collect(),
        ..Schedule::default()
    };
    place_barriers(&mut items, &schedule);
    steps(&items).iter().map(|step| step.barrier).collect()
}

fn slot(base: i64, index: Option<LoopId>, stride: i64) -> Slot {
    Slot { base: Dim::from(base), index, parity: false, stride: Dim::from(stride) }
}

fn place(buffer: BufferId, slots: &[Slot]) -> Place {
    Place { buffer, offset: Dim::default(), slots: slots.to_vec(), lead: vec![] }
}

fn member(read: Place, write: Place) -> Member {
    let kernel = Kernel::Rows(Prog::identity());
    let reads = vec![(Operand::Memory(read), vec![], DType::F32)];
    Member { kernel, reads, write, shape: vec![], dtype: DType::F32 }
}

fn launch(members: Vec<Member>) -> Item {
    let origins = vec![Origin::default(); members.len()];
    Item::Step(Step { members, barrier: false, origins, variants: vec![] })
}

fn step(read: Place, write: Place) -> Item {
    launch(vec![member(read, write)])
}

const B: BufferId = 0;
const C: BufferId = 1;
const D: BufferId = 2;

#[test]
fn places_of_one_stride_are_apart_and_those_of_two_are_not_compared() {
    let pair = |a: Slot, b: Slot| {
        barriers(0, vec![step(place(C, &[]), place(B, &[a])), step(place(B, &[b]), place(D, &[]))])[1]
    };
    assert!(!pair(slot(2, None, 256), slot(1, None, 256)));
    assert!(pair(slot(1, None, 256), slot(1, None, 256)));
    assert!(pair(slot(2, None, 256), slot(1, None, 512)), "the same bytes");
    let parity = |base| Slot { parity: true, ..slot(base, None, 256) };
    assert!(!pair(parity(2), parity(1)));
    assert!(pair(parity(2), parity(0)));
}

#[test]
fn indices_of_two_loops_are_not_compared() {
    // b[i] is written, then a loop within reads b[j + 1].
    let nest = |read: Slot| {
        let at = place(D, &[slot(0, Some(1), 256)]);
        let inner = vec![step(place(B, &[read]), at), step(place(C, &[]), place(C, &[]))];
        let outer = vec![step(place(C, &[]), place(B, &[slot(0, Some(0), 256)])), Item::Loop { id: 1, body: inner }];
        barriers(2, vec![Item::Loop { id: 0, body: outer }])
    };
    assert_eq!(nest(slot(1, Some(1), 256)), [true, true, true]);
    assert_eq!(nest(slot(1, Some(0), 256)), [true, false, true], "b[i + 1], until it is written in the next iteration");
}

#[test]
fn an_iteration_meets_only_the_one_before() {
    // b[i] is written from b[i - d], after a step that waits for itself.
    let distance = |d: i64| {
        let first = step(place(B, &[slot(-d, Some(0), 256)]), place(B, &[slot(0, Some(0), 256)]));
        barriers(1, vec![Item::Loop { id: 0, body: vec![first, step(place(C, &[]), place(C, &[]))] }])
    };
    assert_eq!(distance(1), [true, false], "the barrier at the head is enough for both");
    assert_eq!(distance(2), [false, true], "the second step's stands between an iteration and the next but one");
    // Alone in the loop, it waits for itself, or for nobody: then the head gets a barrier all the same.
    for d in [1, 2] {
        let only = step(place(B, &[slot(-d, Some(0), 256)]), place(B, &[slot(0, Some(0), 256)]));
        assert_eq!(barriers(1, vec![Item::Loop { id: 0, body: vec![only] }]), [true]);
    }
}

#[test]
fn behind_a_loop_only_its_last_iteration_is_pending() {
    // d[i] = b[i] for four rows; then a row of b is written.
    let row = |k: i64| {
        let copy = step(place(B, &[slot(0, Some(0), 256)]), place(D, &[slot(0, Some(0), 256)]));
        let after = step(place(C, &[]), place(B, &[slot(k, None, 256)]));
        barriers(1, vec![Item::Loop { id: 0, body: vec![copy] }, after])
    };
    assert_eq!(row(3), [true, true]);
    assert_eq!(row(2), [true, false]);
}

#[test]
fn every_result_and_every_operand_of_a_launch_counts() {
    let at = |buffer, k| place(buffer, &[slot(k, None, 256)]);
    let two = launch(vec![member(at(C, 0), at(B, 0)), member(at(C, 1), at(D, 1))]);
    let after = |read: Place, write: Place| barriers(0, vec![two.clone(), step(read, write)])[1];
    assert!(after(at(B, 0), at(C, 7)), "reads the first result");
    assert!(after(at(D, 1), at(C, 7)), "reads the second result");
    assert!(after(at(C, 7), at(C, 0)), "overwrites the first operand");
    assert!(after(at(C, 7), at(C, 1)), "overwrites the second operand");
    assert!(!after(at(C, 1), at(D, 0)), "reads what is only read");
}
