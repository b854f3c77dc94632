//! A judge that never objects proves nothing: what is broken on purpose must be found.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::{After, Binding, Condition, Dispatch, Item, Life, Plan, Schedule, Variant, Word};

use super::build::{Build, size};
use super::check::{compile, given, steps_of};
use crate::interp::oracle::judge;
use crate::interp::schedule::{Contents, run};
use crate::ir::Graph;
use crate::schedule::hazards::steps_mut;
use crate::schedule::plan::{conflicts, lifetimes};
use crate::schedule::verify;
use crate::testing::{POLICIES, bind, contents, random_graph, training};

fn trained(seed: u64) -> Graph {
    let (graph, loss) = random_graph(seed);
    training(&graph, loss, POLICIES[seed as usize % 3])
}

const DIMS: [i64; 2] = [7, 3];

fn with_plan(schedule: &Schedule, change: impl FnOnce(&mut Plan)) -> Schedule {
    let mut schedule = schedule.clone();
    change(&mut schedule.plans[0]);
    schedule
}

fn results(schedule: &Schedule, contents: &Contents) -> Vec<Tensor> {
    run(schedule, &schedule.plans[0], &schedule.symbols.bind(&DIMS).unwrap(), contents, None)
}

fn judged(schedule: &Schedule) -> Result<(), String> {
    judge(schedule, &schedule.plans[0], &schedule.symbols.bind(&DIMS).unwrap())
}

fn inputs(graph: &Graph, seed: u64) -> Contents {
    given(graph, &contents(graph, &bind(graph, &DIMS), seed))
}

#[test]
fn hardly_any_barrier_can_be_left_out() {
    let (mut barriers, mut redundant) = (0, 0);
    for seed in 0..12 {
        let schedule = compile(&trained(seed));
        for k in 0..steps_of(&schedule).len() {
            let mut had = false;
            let weaker = with_plan(&schedule, |plan| {
                had = std::mem::replace(&mut steps_mut(&mut plan.items)[k].barrier, false);
            });
            if had {
                barriers += 1;
                redundant += usize::from(judged(&weaker).is_ok());
                assert!(verify(&weaker).is_err());
            }
        }
    }
    assert!(barriers > 300 && redundant * 50 < barriers, "{redundant} of {barriers}");
}

#[test]
fn buffers_that_live_together_and_share_bytes_are_found() {
    let (mut pairs, mut found) = (0, 0);
    for seed in 0..12 {
        let graph = trained(seed);
        let schedule = compile(&graph);
        let (lives, seams) = lifetimes(&schedule.plans[0].items, &schedule);
        let contents = inputs(&graph, seed);
        let wanted = results(&schedule, &contents);
        for (a, others) in conflicts(&lives, &seams).iter().enumerate() {
            let Some(b) = others.iter().copied().find(|b| *b > a) else { continue };
            // Put b where a lies, above everything else moved out of the way.
            let below = |life: usize| (0..if life == b { a } else { life }).filter(|k| *k != b).collect();
            let order = (0..lives.len()).map(|life| (life, below(life))).collect();
            let broken = with_plan(&schedule, |plan| plan.orders = vec![order]);
            assert!(verify(&broken).unwrap_err().contains("may share bytes"));
            pairs += 1;
            let differ = results(&broken, &contents).iter().zip(&wanted).any(|(a, b)| a.data != b.data);
            found += usize::from(differ || judged(&broken).is_err());
        }
    }
    // What is left are values that are never read and hulls wider than the life inside.
    assert!(pairs > 250 && found * 20 > pairs * 19, "{found} of {pairs}");
}

#[test]
fn a_life_that_ends_early_is_found_by_its_poison() {
    let (mut cuts, mut found) = (0, 0);
    for seed in 0..12 {
        let graph = trained(seed);
        let schedule = compile(&graph);
        let contents = inputs(&graph, seed);
        for (k, life) in schedule.plans[0].lives.iter().enumerate() {
            let writes = |step: &&meganeura_shaders::schedule::Step| {
                step.members.iter().any(|member| member.write.buffer == life.buffer)
            };
            // The step that wrote it first.
            let writer = steps_of(&schedule).iter().position(writes).unwrap();
            if life.first == life.last {
                continue;
            }
            let broken = with_plan(&schedule, |plan| plan.lives[k] = Life { end: After::Step(writer), ..*life });
            assert!(verify(&broken).is_err());
            cuts += 1;
            found += usize::from(results(&broken, &contents).iter().any(|t| t.data.iter().any(|x| x.is_nan())));
        }
    }
    assert!(cuts > 250 && found * 10 > cuts * 9, "{found} of {cuts}");
}

/// `y = x w` and `z = tanh(y)` in two steps.
fn two_steps() -> Schedule {
    let mut g = Graph::new(Default::default());
    let x = g.input("x", vec![size(5), size(3)]);
    let w = g.param("w", &[], &[size(3), size(3)]);
    let y = g.linear(x, w);
    let z = g.tanh(y);
    g.result("z", z);
    compile(&g)
}

fn broken(change: impl FnOnce(&mut Schedule)) -> String {
    let mut schedule = two_steps();
    change(&mut schedule);
    verify(&schedule).unwrap_err()
}

fn step(schedule: &mut Schedule, k: usize) -> &mut meganeura_shaders::schedule::Step {
    steps_mut(&mut schedule.plans[0].items).swap_remove(k)
}

#[test]
fn the_verifier_names_what_is_wrong() {
    assert!(broken(|s| step(s, 1).barrier = false).contains("barrier of step 1"));
    assert!(broken(|s| step(s, 0).barrier = true).contains("barrier of step 0"));
    let swapped = broken(|s| s.plans[0].items.reverse());
    assert!(swapped.contains("before it is written"), "{swapped}");
    let small = broken(|s| s.buffers.iter_mut().for_each(|buffer| buffer.bytes = Dim::from(4)));
    assert!(small.contains("of 4 bytes"), "{small}");
    let store = broken(|s| {
        let read = step(s, 0).members[0].places_read().next().unwrap().0.clone();
        step(s, 1).members[0].write = read;
    });
    assert!(store.contains("not its own"), "{store}");
    assert!(broken(|s| s.plans[0].lives[0].last += 1).contains("lives"));
    assert!(broken(|s| s.plans[0].orders.clear()).contains("without an order"));
    assert!(broken(|s| s.plans[0].condition = Condition::AtMost(Dim::from(1), 1)).contains("does not hold always"));
    assert!(broken(|s| step(s, 0).origins.clear()).contains("0 origins"));
    let unwritten = broken(|s| {
        s.plans[0].items.pop();
    });
    assert!(unwritten.contains("output `z` is not written"), "{unwritten}");
}

#[test]
fn a_launch_that_reads_what_it_writes_is_refused() {
    let joined = broken(|s| {
        let mut second = step(s, 1).clone();
        let first = step(s, 0);
        first.members.append(&mut second.members);
        first.origins.append(&mut second.origins);
        s.plans[0].items.pop();
    });
    assert!(joined.contains("at once"), "{joined}");
    let twice = broken(|s| {
        let first = step(s, 0);
        first.members.push(first.members[0].clone());
        first.origins.push(first.origins[0].clone());
    });
    assert!(twice.contains("two kernels of the launch write"), "{twice}");
    // A pointwise kernel may lie over its operand; a product may not.
    let mut over = two_steps();
    let write = step(&mut over, 0).members[0].write.clone();
    step(&mut over, 1).members[0].write = write.clone();
    over.outputs[0].place = write.clone();
    let (lives, _) = lifetimes(&over.plans[0].items, &over);
    over.plans[0].lives = lives;
    verify(&over).unwrap();
    let product = step(&mut over, 0).members[0].kernel.clone();
    step(&mut over, 1).members[0].kernel = product;
    assert!(verify(&over).unwrap_err().contains("at once"));
}

#[test]
fn limits_of_dispatches_are_checked() {
    let with = |bindings: Vec<Binding>, words: Vec<(String, Word)>| {
        let mut schedule = two_steps();
        let dispatch = Dispatch { text: 0, bindings, words, groups: Dim::from(1), barrier: false };
        step(&mut schedule, 1).variants = vec![Variant { condition: Condition::Always, dispatches: vec![dispatch] }];
        verify(&schedule)
    };
    let word = |k: usize| (format!("w{k}"), Word::Size(Dim::from(1)));
    assert_eq!(with(vec![Binding::Read(0, 0), Binding::Write(0)], (0..60).map(word).collect()), Ok(()));
    assert!(with(vec![Binding::Write(0)], (0..61).map(word).collect()).unwrap_err().contains("61 words"));
    assert!(with(vec![Binding::Write(0); 16], vec![]).unwrap_err().contains("16 bindings"));
    assert!(with(vec![Binding::Read(0, 1)], vec![]).unwrap_err().contains("do not exist"));
    assert!(with(vec![], vec![("w".into(), Word::Inside(0))]).unwrap_err().contains("do not exist"));
    let mut last = two_steps();
    let condition = Condition::WorkgroupMemory(1);
    step(&mut last, 1).variants = vec![Variant { condition, dispatches: vec![] }];
    assert!(verify(&last).unwrap_err().contains("last variant"));
}

#[test]
fn the_oracle_finds_copies_that_miss() {
    let mut g = Graph::new(Default::default());
    let x = g.input("x", vec![size(5), size(3)]);
    let y = g.transpose(x, &[1, 0]);
    g.result("y", y);
    let good = compile(&g);
    let env = good.symbols.bind(&[]).unwrap();
    assert_eq!(judge(&good, &good.plans[0], &env), Ok(()));
    let with = |change: fn(&mut meganeura_shaders::kernel::Copy)| {
        let mut bad = good.clone();
        let Item::Step(step) = &mut bad.plans[0].items[0] else { panic!("a step") };
        let meganeura_shaders::kernel::Kernel::Copy(copy) = &mut step.members[0].kernel else { panic!("a copy") };
        change(copy);
        judge(&bad, &bad.plans[0], &env).unwrap_err()
    };
    assert!(with(|copy| copy.from = Dim::from(1)).contains("leave its source"));
    assert!(with(|copy| copy.axes[0].target = Dim::from(1)).contains("miss its target"));
}

#[test]
fn a_read_beyond_its_buffer_is_found_unless_a_check_keeps_calls_inside() {
    let mut g = Graph::new(Default::default());
    let rows = g.symbols.declare("rows", 1, 16, 1);
    let x = g.input("x", vec![rows.clone(), size(64)]);
    let y = g.slice(x, 0, &size(0), &size(8));
    let y = g.tanh(y);
    g.result("y", y);
    g.require("x[..8]".into(), &size(8), &rows);
    g.require("x[..1]".into(), &size(1), &rows);
    let mut schedule = compile(&g);
    assert_eq!(schedule.checks.len(), 1, "the bounds promise the other one");
    schedule.checks.clear();
    let fault = verify(&schedule).unwrap_err();
    assert!(fault.contains("a place at 0..2048 in `x` of 256 bytes"), "{fault}");
}
