//! What a loop costs and what it must not do: counts, slots, barriers, the arena.

use crate::ir::{Graph, ValueId};
use crate::schedule::plan::lifetimes;
use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::schedule::{Item, Schedule, Slot};

use super::build::{Build, size};
use super::check::{check_schedule, compile, steps_of};

/// A graph over `rows`, with a value 3 wide.
fn start() -> (Graph, Dim, ValueId) {
    let mut g = Graph::new(Default::default());
    let rows = g.symbols.declare("rows", 1, 100, 1);
    let x = g.input("x", vec![rows.clone(), size(3)]);
    let y = g.tanh(x);
    (g, rows, y)
}

fn body(schedule: &Schedule) -> &[Item] {
    let mut bodies = schedule.plans[0].items.iter().filter_map(|item| match item {
        Item::Loop { body, .. } => Some(body),
        Item::Step(_) => None,
    });
    bodies.next_back().unwrap()
}

fn barriers(items: &[Item]) -> Vec<bool> {
    let flag = |item: &Item| match item {
        Item::Step(step) => step.barrier,
        Item::Loop { .. } => panic!("a loop"),
    };
    items.iter().map(flag).collect()
}

/// Copies that lowering itself made, by why.
pub(super) fn copies(schedule: &Schedule, why: &str) -> usize {
    steps_of(schedule).iter().filter(|step| step.origins[0].what == why).count()
}

#[test]
fn every_count_from_one_up() {
    let (mut g, rows, x) = start();
    let count = g.symbols.declare("count", 1, 9, 1);
    let w = g.param("w", std::slice::from_ref(&count), &[size(3), size(3)]);
    let shared = g.param("shared", &[], &[size(3), size(3)]);
    let halved = g.scale(x, 0.5);
    let y = g.repeat(&count, false, &[x, halved], &[w], |g, i, x, w| {
        let y = g.linear(x[0], w[0]);
        let y = g.silu(y);
        let down = g.repeat(&count, true, &[y], &[], |g, _, y, _| {
            let z = g.linear(y[0], shared);
            (vec![g.scale(z, 0.8)], vec![y[0]])
        });
        let all = g.sum_axis(down[1], 0);
        let i = g.float(i);
        let i = g.expand(i, 0, &size(3));
        let i = g.expand(i, 0, &rows);
        let z = g.mul(x[1], i);
        let z = g.add(z, down[0]);
        (vec![g.add(x[0], z), g.scale(all, 0.3)], vec![z])
    });
    let all = g.sum_axis(y[2], 0);
    let y = g.mul(y[0], y[1]);
    let y = g.add(y, all);
    g.result("y", y);
    for count in [1, 2, 3, 4, 7] {
        check_schedule(&g, &[3, count], 1);
    }
    assert_eq!(g.symbols.bind(&[3, 0]).unwrap_err().to_string(), "`count` must lie in 1..=9, found 0");
}

#[test]
fn a_loop_that_may_not_run_is_refused() {
    let (mut g, _, x) = start();
    let some = g.symbols.declare("some", 0, 4, 1);
    let y = g.repeat(&some, false, &[x], &[], |g, _, x, _| (vec![g.silu(x[0])], vec![]));
    g.result("y", y[0]);
    assert!(g.verify().unwrap_err().contains("a loop runs at least once"));
}

/// Slots of the memory that carries a value, by what the body does with it.
fn slots(body: impl FnOnce(&mut Graph, ValueId, ValueId) -> (ValueId, Vec<ValueId>)) -> (i64, Schedule) {
    let (mut g, _, x) = start();
    let count = g.symbols.declare("count", 1, 9, 1);
    let w = g.param("w", std::slice::from_ref(&count), &[size(3), size(3)]);
    let y = g.repeat(&count, false, &[x], &[w], |g, _, x, w| {
        let (next, stacks) = body(g, x[0], w[0]);
        (vec![next], stacks)
    });
    y.iter().enumerate().for_each(|(k, y)| g.result(&format!("y{k}"), *y));
    for count in [1, 2, 3, 6] {
        check_schedule(&g, &[70, count], count as u64);
    }
    let schedule = compile(&g);
    // 70 rows of 12 bytes are 4 lines of 256.
    let env = schedule.symbols.bind(&[70, 5]).unwrap();
    let last = &schedule.outputs[0].place;
    let steps = steps_of(&schedule);
    let writer = steps.iter().rev().find(|step| step.members[0].write.buffer == last.buffer).unwrap();
    let kept = writer.origins[0].what == "keep" && writer.members[0].kernel.name() == "copy";
    let carrier = if kept { writer.members[0].places_read().next().unwrap().0 } else { last };
    (schedule.buffers[carrier.buffer].bytes.eval(&env) / 1024, schedule)
}

#[test]
fn a_carried_value_has_one_slot_or_two_or_all() {
    let (elementwise, _) = slots(|g, x, _| (g.silu(x), vec![]));
    assert_eq!(elementwise, 1, "over itself");
    let (product, schedule) = slots(|g, x, w| (g.linear(x, w), vec![]));
    assert_eq!(product, 2, "a product reads all of its operand");
    let parity = |slot: &&Slot| slot.parity && slot.index.is_some();
    let steps = steps_of(&schedule);
    assert_eq!(steps.iter().flat_map(|s| s.places()).flat_map(|p| &p.slots).filter(parity).count(), 2);
    let read_before = |g: &mut Graph, x, w| {
        let y = g.linear(x, w);
        (g.silu(y), vec![])
    };
    assert_eq!(slots(read_before).0, 1, "read before its successor is written");
    let read_after = |g: &mut Graph, x, w| {
        let next = g.linear(x, w);
        let z = g.mul(next, x);
        (next, vec![z])
    };
    assert_eq!(slots(read_after).0, 2, "read after its successor is written");
    let at_once = |g: &mut Graph, x, w| {
        let y = g.linear(x, w);
        (g.add(y, x), vec![])
    };
    assert_eq!(slots(at_once).0, 1, "element by element over the argument itself");
    let in_a_loop = |g: &mut Graph, x, w| {
        let y = g.tanh(x);
        let inner = g.repeat(&size(2), false, &[y], &[], |g, _, y, _| (vec![g.linear(y[0], w)], vec![]));
        (g.silu(inner[0]), vec![])
    };
    assert_eq!(slots(in_a_loop).0, 1, "an inner loop of its own memory");
    let from_a_loop = |g: &mut Graph, x, w| {
        let y = g.tanh(x);
        let inner = g.repeat(&size(2), false, &[y], &[], |g, _, y, _| (vec![g.silu(y[0])], vec![]));
        let _ = w;
        (inner[0], vec![])
    };
    assert_eq!(slots(from_a_loop).0, 2, "an inner loop writes its result from its own start on");
    let by_rows = |g: &mut Graph, x, _| (g.rms_norm_step(x), vec![]);
    assert_eq!(slots(by_rows).0, 2, "a row program reads its row");
    let (argument, _) = slots(|g, x, w| (g.linear(x, w), vec![x]));
    assert_eq!(argument, 6, "the stack of what goes in is where it is carried");
    let result = |g: &mut Graph, x, w| {
        let next = g.linear(x, w);
        (next, vec![next])
    };
    assert_eq!(slots(result).0, 6, "the stack of what comes out, too");
}

#[test]
fn a_residual_in_an_epilogue_lies_over_itself_and_the_left_side_of_its_product_does_not() {
    let (residual, _) = slots(|g, x, w| {
        let y = g.tanh(x);
        (g.linear_plus(y, w, x), vec![])
    });
    assert_eq!(residual, 1, "the epilogue reads element for element");
    let (left, _) = slots(|g, x, w| (g.linear_plus(x, w, x), vec![]));
    assert_eq!(left, 2, "the product reads all of it");
}

#[test]
fn an_initial_value_that_is_needed_later_is_not_overwritten() {
    let (mut g, _, x) = start();
    let starts: Vec<ValueId> = (1..=4).map(|k| g.scale(x, f64::from(k))).collect();
    let through = |g: &mut Graph, start: ValueId, captured: ValueId| {
        let y = g.repeat(&size(3), false, &[start], &[], |g, _, x, _| {
            let y = g.add(x[0], captured);
            (vec![g.silu(y)], vec![])
        });
        y[0]
    };
    let later = through(&mut g, starts[0], x);
    let later = g.mul(later, starts[0]);
    let captured = through(&mut g, starts[1], starts[1]);
    let output = through(&mut g, starts[2], x);
    let part = through(&mut g, starts[3], x);
    let slice = g.slice(starts[3], 0, &size(0), &size(1));
    for (name, value) in [later, captured, output, starts[2], part, slice].into_iter().enumerate() {
        g.result(&name.to_string(), value);
    }
    check_schedule(&g, &[5], 1);
}

#[test]
fn a_loop_goes_on_where_the_one_before_it_ended() {
    let (mut g, _, x) = start();
    let w = g.param("w", &[size(3)], &[size(3), size(3)]);
    let [a, b] = [false, true].map(|reversed| {
        move |g: &mut Graph, x: ValueId| {
            g.repeat(&size(3), reversed, &[x], &[w], |g, _, x, w| {
                let y = g.linear(x[0], w[0]);
                (vec![g.silu(y)], vec![])
            })[0]
        }
    });
    let y = a(&mut g, x);
    let y = b(&mut g, y);
    let y = a(&mut g, y);
    g.result("y", y);
    let schedule = check_schedule(&g, &[5], 1);
    let copies = steps_of(&schedule).iter().filter(|s| matches!(s.members[0].kernel, Kernel::Copy(_))).count();
    assert_eq!((steps_of(&schedule).len(), copies), (7, 0));
}

#[test]
fn barriers_stand_where_iterations_meet() {
    // Rows of a stack do not meet; what has no barrier at its head runs beside the end of the iteration before.
    let (mut g, _, x) = start();
    let s = g.frozen("s", &[size(4)], &[size(64), size(3)]);
    let first = g.row(x, &size(0));
    let sum = |overlapped: bool| {
        let mut g = g.clone();
        let y = g.repeat(&size(4), false, &[first], &[s], |g, _, x, s| {
            let a = g.silu(s[0]);
            let row = g.row(a, &size(1));
            (vec![g.add(x[0], row)], if overlapped { vec![a] } else { vec![] })
        });
        y.iter().for_each(|y| g.result("y", *y));
        let schedule = check_schedule(&g, &[5], 1);
        (barriers(body(&schedule)), lifetimes(&schedule.plans[0].items, &schedule).1.len())
    };
    assert_eq!(sum(true), (vec![false, true], 1), "a row of its own: only the sum waits");
    assert_eq!(sum(false), (vec![true, true], 0), "one buffer: iteration i + 1 writes what i still reads");
    // Nothing meets: the head gets one, which bounds what runs at once.
    let y = g.repeat(&size(4), false, &[], &[s], |g, _, _, s| (vec![], vec![g.silu(s[0])]));
    g.result("y", y[0]);
    assert_eq!(barriers(body(&compile(&g))), [true]);
}

#[test]
fn what_does_not_depend_on_each_other_waits_for_one_barrier() {
    // Four chains written one after the other.
    let (mut g, _, x) = start();
    let ends: Vec<ValueId> = (1..=4)
        .map(|k| {
            let y = g.scale(x, f64::from(k));
            let z = g.silu(y);
            g.tanh(z)
        })
        .collect();
    ends.iter().enumerate().for_each(|(k, y)| g.result(&format!("y{k}"), *y));
    let schedule = check_schedule(&g, &[5], 1);
    assert_eq!(steps_of(&schedule).len(), 1 + 4 * 3);
    assert_eq!(steps_of(&schedule).iter().filter(|step| step.barrier).count(), 3);
}

#[test]
fn what_reads_only_stored_values_is_made_right_before_it_is_read() {
    let (mut g, rows, x) = start();
    let other = g.input("other", vec![rows, size(3)]);
    let early = g.scale(other, 0.5);
    let y = g.tanh(x);
    let y = g.tanh(y);
    let y = g.add(y, early);
    g.result("y", y);
    let schedule = check_schedule(&g, &[5], 1);
    let steps = steps_of(&schedule);
    let made = steps.iter().position(|step| step.origins[0].what == "rows").unwrap();
    assert_eq!((made, steps.iter().filter(|step| step.barrier).count()), (2, 3), "beside the tanh");
}
