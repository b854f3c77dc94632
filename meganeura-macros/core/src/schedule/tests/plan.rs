//! Plans: what holds at all sizes, and what does not grow with the count.

use std::collections::BTreeSet;

use meganeura_shaders::arena::sizes;
use meganeura_shaders::schedule::{ALIGN, BufferKind, Schedule};

use super::build::{Build, decoder, size};
use super::check::{check_schedule, compile};
use crate::autodiff::Policy;
use crate::interp::oracle::judge;
use crate::interp::trace::next_random;
use crate::ir::{Graph, Type};
use crate::schedule::plan::{conflicts, lifetimes, load};
use crate::testing::{POLICIES, random_graph, result, training};

fn trained_decoder(depth: i64, policy: Policy) -> Schedule {
    let (graph, loss) = decoder(Some(depth));
    compile(&training(&graph, loss, policy))
}

fn trained(seed: u64) -> Graph {
    let (graph, loss) = random_graph(seed);
    training(&graph, loss, POLICIES[seed as usize % 3])
}

#[test]
fn a_plan_made_once_is_valid_and_lean_at_every_size() {
    let schedule = trained_decoder(30, Policy::default());
    let plan = &schedule.plans[0];
    let (lives, seams) = lifetimes(&plan.items, &schedule);
    let conflicts = conflicts(&lives, &seams);
    let mut state = 7;
    for _ in 0..200 {
        let dims = [1 + (next_random(&mut state) % 64) as i64, 1 + (next_random(&mut state) % 2048) as i64];
        let env = schedule.symbols.bind(&dims).unwrap();
        let (arena, sizes) = (plan.arena(&schedule.buffers, &env), sizes(&schedule.buffers, &lives, &env));
        for (a, others) in conflicts.iter().enumerate() {
            let start = arena.offsets[&lives[a].buffer];
            assert!(start % ALIGN == 0 && start + sizes[a] <= arena.bytes);
            for b in others {
                let other = arena.offsets[&lives[*b].buffer];
                assert!(start + sizes[a] <= other || other + sizes[*b] <= start, "{dims:?}");
            }
        }
        assert!(arena.bytes as f64 <= 1.01 * load(&lives, &sizes) as f64, "{dims:?}");
    }
}

/// The proof for all sizes: of two buffers that conflict, one lies above the other, by way of others or not.
fn assert_ordered(graph: &Graph) {
    let schedule = compile(graph);
    let (lives, seams) = lifetimes(&schedule.plans[0].items, &schedule);
    for order in &schedule.plans[0].orders {
        let mut under = vec![BTreeSet::new(); lives.len()];
        for (life, below) in order {
            under[*life] = below.iter().flat_map(|b| under[*b].iter().copied().chain([*b])).collect();
        }
        for (a, others) in conflicts(&lives, &seams).iter().enumerate() {
            assert!(others.iter().all(|b| under[a].contains(b) || under[*b].contains(&a)));
        }
    }
}

#[test]
fn of_two_buffers_that_conflict_one_lies_above_the_other() {
    for seed in 500..540 {
        assert_ordered(&random_graph(seed).0);
        assert_ordered(&trained(seed));
    }
}

#[test]
fn a_buffer_that_is_empty_at_a_sample_is_ordered_too() {
    let mut g = Graph::new(Default::default());
    let most = g.symbols.declare("most", 0, 0, 1);
    let some = g.symbols.declare("some", 0, 40, 1);
    let table = g.input("table", vec![size(50), size(3)]);
    let x = g.slice(table, 0, &size(0), &(&some + &most));
    let (a, b) = (g.tanh(x), g.scale(x, 0.5));
    let y = g.mul(a, b);
    let y = g.sum_all(y);
    result(&mut g, "y", y);
    assert_ordered(&g);
    for some in [1, 40] {
        check_schedule(&g, &[0, some], 1);
    }
}

#[test]
fn random_plans_made_once_are_valid_at_every_size() {
    for seed in 500..520 {
        let schedule = compile(&trained(seed));
        for dims in [[1, 1], [2, 6], [70, 1], [33, 2]] {
            judge(&schedule, &schedule.plans[0], &schedule.symbols.bind(&dims).unwrap()).unwrap();
        }
    }
}

/// No plan needs less than the load; random lives of random sizes cannot always be packed into it.
#[test]
fn random_plans_are_near_the_load() {
    let mut ratios = Vec::new();
    for seed in 500..560 {
        let schedule = compile(&trained(seed));
        let plan = &schedule.plans[0];
        for dims in [[1, 1], [2, 6], [70, 1], [33, 2], [70, 6]] {
            let env = schedule.symbols.bind(&dims).unwrap();
            let least = load(&plan.lives, &sizes(&schedule.buffers, &plan.lives, &env));
            ratios.push(plan.arena(&schedule.buffers, &env).bytes as f64 / least as f64);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let (mean, worst) = (ratios.iter().sum::<f64>() / ratios.len() as f64, ratios[ratios.len() - 1]);
    assert!(ratios[0] >= 1.0 && mean < 1.03 && worst < 1.35, "{mean} {worst}");
}

#[test]
fn the_arena_is_flat_in_the_number_of_layers_without_gradients_and_linear_with_them() {
    let (graph, loss) = decoder(None);
    let grows = |graph: &Graph| {
        let schedule = compile(graph);
        let at = |depth| {
            let env = schedule.symbols.bind(&[4, 512, depth]).unwrap();
            schedule.plans[0].arena(&schedule.buffers, &env).bytes
        };
        (at(31) - at(30), at(200) - at(199))
    };
    assert_eq!(grows(&graph), (0, 0));
    let tokens = 4 * 512;
    for (policy, each) in
        [(Policy::Checkpoint, 4 * 6 * tokens), (Policy::Contractions, 4 * (6 + 4 * 6 + 2 * 10) * tokens)]
    {
        let (early, late) = grows(&training(&graph, loss, policy));
        assert_eq!((early, late), (each, each), "{policy:?}");
    }
}

#[test]
fn the_stacks_are_the_only_memory_with_a_row_for_each_iteration() {
    let (graph, loss) = decoder(None);
    for policy in POLICIES {
        let trained = training(&graph, loss, policy);
        let schedule = compile(&trained);
        let [a, b] = [30, 31].map(|depth| schedule.symbols.bind(&[4, 512, depth]).unwrap());
        let arena = schedule.buffers.iter().filter(|buffer| matches!(buffer.kind, BufferKind::Arena { .. }));
        let grow = arena.filter(|buffer| buffer.bytes.eval(&a) != buffer.bytes.eval(&b)).count();
        let repeats = trained.nodes.iter().filter_map(|node| match &node.op {
            crate::ops::Op::Repeat(repeat) => Some(node.outputs.len() - repeat.carried),
            _ => None,
        });
        assert_eq!(grow, repeats.take(1).sum::<usize>(), "{policy:?}");
    }
}

/// A head without a barrier runs beside the tail of the iteration before, so what lives only in one may not lie where
/// the other's does.
#[test]
fn heads_and_tails_of_a_body_that_run_at_once_share_no_bytes() {
    let mut g = Graph::new(Default::default());
    let count = g.symbols.declare("count", 1, 9, 1);
    let s = g.input("s", vec![count.clone(), size(64), size(3)]);
    let first = g.input("first", vec![size(3)]);
    let first = g.tanh(first);
    let y = g.repeat(&count, false, &[first], &[s], |g, _, x, s| {
        let kept = g.tanh(s[0]);
        let row = g.row(kept, &size(1));
        let next = g.add(x[0], row);
        (vec![next], vec![kept])
    });
    y.iter().enumerate().for_each(|(k, y)| result(&mut g, &format!("y{k}"), *y));
    let schedule = check_schedule(&g, &[5], 1);
    let (lives, seams) = lifetimes(&schedule.plans[0].items, &schedule);
    assert_eq!(seams.len(), 1);
    let (head, tail) = seams[0];
    assert!(head < tail);
    let with = conflicts(&[life(head, head), life(tail, tail)], &seams);
    assert_eq!((with[0].len(), conflicts(&[life(head, head), life(tail, tail)], &[])[0].len()), (1, 0));
    assert!(lives.iter().all(|life| life.first <= life.last));
}

fn life(first: usize, last: usize) -> meganeura_shaders::schedule::Life {
    meganeura_shaders::schedule::Life { buffer: 0, first, last, end: meganeura_shaders::schedule::After::Step(0) }
}

/// The same chain of 36 layers as one loop and as 6 loops of 6.
#[test]
fn checkpoints_in_two_levels_cost_the_square_root() {
    let rows_saved = |levels: &[i64], policy| {
        let mut g = Graph::new(Default::default());
        let rows = g.symbols.declare("rows", 1, 100, 1);
        let given = g.argument(0, "x", Type::float(vec![rows, size(3)]));
        let table = g.param("table", &[], &[size(3), size(3)]);
        let x = g.linear(given, table);
        let each: Vec<_> = levels.iter().map(|n| size(*n)).collect();
        let w = g.param("w", &each, &[size(3), size(3)]);
        let layer = |g: &mut Graph, x, w| {
            let y = g.linear(x, w);
            let y = g.silu(y);
            g.add(x, y)
        };
        let y = match levels {
            [_] => g.repeat(&each[0], false, &[x], &[w], |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![])),
            _ => g.repeat(&each[0], false, &[x], &[w], |g, _, x, w| {
                (g.repeat(&each[1], false, x, w, |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![])), vec![])
            }),
        };
        let squared = g.mul(y[0], y[0]);
        let loss = g.sum_all(squared);
        result(&mut g, "loss", loss);
        let schedule = check_schedule(&training(&g, loss, policy), &[5], 2);
        // 64 rows of 12 bytes are 3 lines.
        let env = schedule.symbols.bind(&[64]).unwrap();
        schedule.plans[0].arena(&schedule.buffers, &env).bytes / 768
    };
    let once = [Policy::Store, Policy::Checkpoint].map(|policy| rows_saved(&[36], policy));
    let twice = [Policy::Store, Policy::Checkpoint].map(|policy| rows_saved(&[6, 6], policy));
    assert!(once[1] > 36 && once[1] < 48 && twice[1] < 26, "{once:?} {twice:?}");
    assert!(once[0] >= 2 * 36 && twice[0] >= 2 * 36, "{once:?} {twice:?}");
}
