//! One test for each thing that a loop over layers may do, at odd sizes and under a coefficient; and for the movements
//! of data, which read rows as they lie.

use crate::ir::{Graph, Output, Type, ValueId};
use crate::ops::{Broadcast, Op, Sum};
use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog};
use meganeura_shaders::schedule::{BufferKind, Role};

use super::build::{Build, size};
use super::check::{check_schedule, compile, steps_of};
use super::loops::copies;
use crate::testing::{POLICIES, training};

struct Case {
    g: Graph,
    rows: Dim,
    x: ValueId,
}

fn case() -> Case {
    let mut g = Graph::new(Default::default());
    let rows = g.symbols.declare("rows", 1, 100, 1);
    let x = g.input("x", vec![rows.clone(), size(3)]);
    let x = g.tanh(x);
    Case { g, rows, x }
}

fn layer(g: &mut Graph, x: ValueId, w: ValueId) -> ValueId {
    let y = g.linear(x, w);
    let y = g.silu(y);
    g.add(x, y)
}

fn check(mut g: Graph, y: ValueId) {
    let squared = g.mul(y, y);
    let loss = g.sum_all(squared);
    let loss = g.scale(loss, 0.7);
    g.result("y", y);
    g.result("loss", loss);
    let declared = g.symbols.declared().len();
    for n in [7, 1, 2] {
        check_schedule(&g, &vec![n; declared], n as u64);
    }
    if g.trained().is_empty() {
        return;
    }
    for policy in POLICIES {
        check_schedule(&training(&g, loss, policy), &vec![7; declared], 3);
    }
}

#[test]
fn a_chain_of_layers() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(5)], &[size(3), size(3)]);
    let y = g.repeat(&size(5), false, &[x], &[w], |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![]));
    check(g, y[0]);
}

#[test]
fn a_loop_that_runs_down() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(5)], &[size(3), size(3)]);
    let y = g.repeat(&size(5), true, &[x], &[w], |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![x[0]]));
    let sum = g.sum_axis(y[1], 0);
    let y = g.mul(sum, y[0]);
    check(g, y);
}

#[test]
fn values_of_all_iterations_escape() {
    let Case { mut g, x, rows } = case();
    let w = g.param("w", &[size(4)], &[size(3), size(3)]);
    let y = g.repeat(&size(4), false, &[x], &[w], |g, _, x, w| {
        let next = layer(g, x[0], w[0]);
        let other = g.scale(next, 1.3);
        (vec![next], vec![x[0], next, other])
    });
    let parts = [1, 2, 3].map(|k| g.reshape(y[k], vec![&rows * &size(4), size(3)]));
    let a = g.mul(parts[0], parts[1]);
    let a = g.mul(a, parts[2]);
    let third = g.row(y[2], &size(2));
    let third = g.sum_axis(third, 0);
    let third = g.expand(third, 0, &(&rows * &size(4)));
    let y = g.mul(a, third);
    check(g, y);
}

#[test]
fn loops_within_loops() {
    let Case { mut g, x, .. } = case();
    let (outer, inner) = (size(3), size(2));
    let w = g.param("w", &[outer.clone(), inner.clone()], &[size(3), size(3)]);
    let v = g.param("v", std::slice::from_ref(&outer), &[size(3), size(3)]);
    let shared = g.param("shared", &[], &[size(3), size(3)]);
    let y = g.repeat(&outer, false, &[x], &[w, v], |g, _, x, rows| {
        let [w, v] = [rows[0], rows[1]];
        let start = x[0];
        let y = g.repeat(&inner, true, &[start], &[w], |g, j, x, w| {
            let y = layer(g, x[0], w[0]);
            let y = g.linear(y, shared);
            let j = g.float(j);
            let bias = g.mul(j, start);
            (vec![g.add(y, bias)], vec![y])
        });
        let sum = g.sum_axis(y[1], 0);
        let y = g.add(sum, y[0]);
        (vec![layer(g, y, v)], vec![y])
    });
    let sum = g.sum_axis(y[1], 0);
    let y = g.mul(sum, y[0]);
    check(g, y);
}

#[test]
fn zipped_arrays_with_an_index() {
    let Case { mut g, x, .. } = case();
    let a = g.param("a", &[size(4)], &[size(5), size(3)]);
    let b = g.param("b", &[size(4)], &[size(3), size(5)]);
    let y = g.repeat(&size(4), false, &[x], &[a, b], |g, i, x, w| {
        let y = g.linear(x[0], w[0]);
        let y = g.silu(y);
        let y = g.linear(y, w[1]);
        let i = g.float(i);
        let y = g.mul(y, i);
        (vec![g.add(x[0], y)], vec![])
    });
    check(g, y[0]);
}

#[test]
fn a_layer_used_twice_in_the_body_and_by_two_loops_and_alone() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(4)], &[size(3), size(3)]);
    let twice = |g: &mut Graph, x: ValueId, w: ValueId| {
        let x = layer(g, x, w);
        layer(g, x, w)
    };
    let y = g.repeat(&size(4), false, &[x], &[w], |g, _, x, w| (vec![twice(g, x[0], w[0])], vec![]));
    let second = g.row(w, &size(1));
    let y = layer(&mut g, y[0], second);
    let y = g.repeat(&size(4), true, &[y], &[w], |g, _, x, w| {
        let y = g.linear(x[0], w[0]);
        (vec![g.scale(y, 0.5)], vec![])
    });
    check(g, y[0]);
}

#[test]
fn carried_values_change_places() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(5)], &[size(3), size(3)]);
    let b = g.scale(x, 0.4);
    let y = g.repeat(&size(5), false, &[x, b, x], &[w], |g, _, x, w| {
        let next = layer(g, x[1], w[0]);
        (vec![x[1], next, x[0]], vec![])
    });
    let ab = g.mul(y[0], y[1]);
    let y = g.add(ab, y[2]);
    check(g, y);
}

#[test]
fn a_count_that_is_a_dimension() {
    let Case { mut g, x, .. } = case();
    let steps = g.symbols.declare("steps", 1, 9, 1);
    let w = g.param("w", &[], &[size(3), size(3)]);
    let y = g.repeat(&steps, false, &[x], &[], |g, _, x, _| {
        let y = g.linear(x[0], w);
        (vec![g.silu(y)], vec![])
    });
    // Two slots, or the number of slots: the last one is known when it runs.
    check(g, y[0]);
}

#[test]
fn no_carried_value_and_no_dependency() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(4)], &[size(3), size(3)]);
    let y = g.repeat(&size(4), false, &[], &[w], |g, _, _, w| {
        let y = g.linear(x, w[0]);
        (vec![], vec![y])
    });
    let y = g.sum_axis(y[0], 0);
    check(g, y);
}

#[test]
fn a_part_of_an_array_and_all_of_it_at_once() {
    let Case { mut g, x, .. } = case();
    let w = g.param("w", &[size(4)], &[size(3), size(3)]);
    let part = g.slice(w, 0, &size(1), &size(2));
    let y = g.repeat(&size(2), false, &[x], &[part], |g, _, x, rows| {
        let all = g.sum_axis(w, 0);
        let y = layer(g, x[0], rows[0]);
        let next = layer(g, y, all);
        (vec![next], vec![all, rows[0]])
    });
    let all = g.sum_axis(y[1], 0);
    let row = g.row(y[2], &size(0));
    let y = g.linear(y[0], all);
    let y = g.linear(y, row);
    check(g, y);
}

#[test]
fn outputs_that_are_stores_views_or_said_twice() {
    let Case { mut g, x, rows } = case();
    let w = g.param("w", &[size(2)], &[size(3), size(3)]);
    let given = g.input("given", vec![rows.clone(), size(3)]);
    let y = g.repeat(&size(2), false, &[x], &[w], |g, _, x, w| {
        let next = layer(g, x[0], w[0]);
        (vec![next], vec![next])
    });
    let flat = g.reshape(y[1], vec![&rows * &size(6)]);
    let second = g.row(w, &size(1));
    for (name, value) in
        [("flat", flat), ("again", flat), ("stack", y[1]), ("w", w), ("second", second), ("given", given)]
    {
        g.result(name, value);
    }
    g.output(Output { role: Role::Gradient(0), name: "like w".into(), value: w, loops: 1 });
    let schedule = compile(&g);
    for output in &schedule.outputs {
        assert!(matches!(schedule.buffers[output.place.buffer].kind, BufferKind::Output(_)), "{}", output.name);
        assert_eq!(output.place.lead.len(), usize::from(output.name == "like w"), "{}", output.name);
    }
    check(g, y[0]);
}

#[test]
fn three_levels() {
    let Case { mut g, x, .. } = case();
    let each = [size(2), size(3), size(2)];
    let w = g.param("w", &each, &[size(3), size(3)]);
    let y = g.repeat(&each[0], false, &[x], &[w], |g, _, x, w| {
        let y = g.repeat(&each[1], true, x, w, |g, _, x, w| {
            let outer = x[0];
            let y = g.repeat(&each[2], false, x, w, |g, _, x, w| {
                let y = layer(g, x[0], w[0]);
                let y = g.mul(y, outer);
                (vec![y], vec![x[0]])
            });
            let sum = g.sum_axis(y[1], 0);
            let next = g.add(sum, y[0]);
            (vec![g.scale(next, 0.3)], vec![y[0]])
        });
        let sum = g.sum_axis(y[1], 0);
        (vec![g.add(sum, y[0])], vec![])
    });
    check(g, y[0]);
}

#[test]
fn sums_over_every_set_of_axes() {
    let mut g = Graph::new(Default::default());
    let (a, b) = (g.symbols.declare("a", 1, 9, 1), g.symbols.declare("b", 1, 9, 1));
    let x = g.input("x", vec![a, size(2), size(1), b, size(3)]);
    for set in 0u32..32 {
        let axes: Vec<u8> = (0..5).filter(|axis| set >> axis & 1 == 1).collect();
        let y = g.emit(Op::Sum(Sum { axes: axes.clone() }), &[x]);
        g.result(&format!("{axes:?}"), y);
    }
    for dims in [[3, 5], [1, 1], [4, 1]] {
        check_schedule(&g, &dims, 1);
    }
    let schedule = compile(&g);
    let copied = steps_of(&schedule).iter().filter(|s| matches!(s.members[0].kernel, Kernel::Copy(_))).count();
    assert!(copied < 32, "leading and trailing axes need no transpose");
}

#[test]
fn movements_of_dense_values_and_of_padded_rows() {
    let Case { mut g, rows, x } = case();
    let s = g.param("s", &[size(4)], &[size(3), size(5)]);
    for (name, of) in [("dense", None), ("padded", Some(s))] {
        let v = of.unwrap_or_else(|| {
            let scaled = g.scale(s, 0.5);
            g.silu(scaled)
        });
        let turned = g.transpose(v, &[2, 0, 1]);
        let part = g.slice(v, 1, &size(1), &size(2));
        let last = g.slice(v, 2, &size(3), &size(2));
        let padded = g.pad(v, 2, &size(2), &size(9));
        let first = g.pad(part, 0, &size(1), &size(6));
        let wide = g.emit(Op::Broadcast(Broadcast { shape: vec![size(2), size(4), size(3), size(5)] }), &[v]);
        for (k, value) in [turned, part, last, padded, first, wide].into_iter().enumerate() {
            let value = g.tanh(value);
            g.result(&format!("{name} {k}"), value);
        }
    }
    let flipped = g.transpose(x, &[1, 0]);
    let flipped = g.pad(flipped, 1, &size(1), &(&rows + &size(2)));
    check(g, flipped);
}

#[test]
fn what_keeps_the_order_of_elements_is_no_step() {
    let mut g = Graph::new(Default::default());
    let rows = g.symbols.declare("rows", 1, 9, 1);
    let x = g.input("x", vec![size(1), rows.clone(), size(1), size(6)]);
    let x = g.tanh(x);
    let before = steps_of(&compile_result(&g, x)).len();
    let y = g.transpose(x, &[1, 2, 3, 0]);
    let y = g.reshape(y, vec![size(1), rows.clone(), size(6)]);
    let y = g.slice(y, 1, &size(0), &size(1));
    let y = g.reshape(y, vec![size(6)]);
    let y = g.emit(Op::Broadcast(Broadcast { shape: vec![size(1), size(6)] }), &[y]);
    let y = g.slice(y, 1, &size(2), &size(3));
    let y = g.silu(y);
    assert_eq!(steps_of(&compile_result(&g, y)).len(), before + 1);
    check(g, y);
}

fn compile_result(g: &Graph, value: ValueId) -> meganeura_shaders::schedule::Schedule {
    let mut g = g.clone();
    g.result("y", value);
    compile(&g)
}

#[test]
fn indices_of_loops_become_values_stacks_and_carried_values() {
    let Case { mut g, x, .. } = case();
    let zero = g.emit(Op::Instr(Instr::Const(Const::Uint(3))), &[]);
    let y = g.repeat(&size(4), true, &[x, zero], &[], |g, i, x, _| {
        let before = g.float(x[1]);
        let shaped = g.reshape(i, vec![size(1), size(1)]);
        let wide = g.emit(Op::Broadcast(Broadcast { shape: vec![size(1), size(3)] }), &[shaped]);
        let wide = g.cast(DType::F32, wide);
        let y = g.mul(x[0], before);
        (vec![g.add(y, wide), i], vec![i, shaped])
    });
    y[1..].iter().for_each(|y| {
        let one = g.cast(DType::F32, *y);
        let one = g.with_const(Bin::Add, one, 1.0);
        g.result("index", one);
    });
    check(g, y[0]);
}

/// One launch of two kernels whose results are carried.
#[test]
fn a_launch_lies_over_its_operands_only_if_no_other_kernel_of_it_reads_them() {
    let slots = |cross: bool| {
        let Case { mut g, x, .. } = case();
        let z = g.scale(x, 0.5);
        let y = g.repeat(&size(3), false, &[x, z], &[], |g, _, x, _| {
            let sum = Kernel::Rows(Prog::of(&Instr::Bin(Bin::Add, 0, 1)));
            let wave = Kernel::Rows(Prog::of(&Instr::Un(Un::Sin, 0)));
            let second = if cross { x[0] } else { x[1] };
            let own = g.tanh(x[0]);
            let types: Vec<Type> = vec![g.ty(own).clone(); 2];
            // The second kernel reads what the first one writes, or what it writes itself.
            let node = g.push(Op::Launch(vec![sum, wave]), &[own, x[0], second], types);
            let outputs = g.node(node).outputs.clone();
            (outputs, vec![])
        });
        g.result("a", y[0]);
        g.result("b", y[1]);
        let schedule = check_schedule(&g, &[5], 1);
        let parity = |p: &&meganeura_shaders::schedule::Place| p.slots.iter().any(|slot| slot.parity);
        steps_of(&schedule).iter().flat_map(|step| step.members.iter().map(|m| &m.write)).filter(parity).count()
    };
    assert_eq!(slots(false), 0, "each over its own operand");
    assert!(slots(true) > 0, "two slots for what the other kernel reads");
}

#[test]
fn rows_that_are_whole_lines_are_walked_as_they_lie_and_others_spread() {
    let spreads = |width: i64, offset: i64| {
        let mut g = Graph::new(Default::default());
        let x = g.input("x", vec![size(6), size(width)]);
        let x = g.tanh(x);
        let x = g.slice(x, 0, &size(offset), &size(4));
        let y = g.repeat(&size(4), false, &[], &[x], |g, _, _, rows| (vec![], vec![g.silu(rows[0])]));
        g.result("y", y[0]);
        let schedule = check_schedule(&g, &[], 1);
        (copies(&schedule, "spread"), copies(&schedule, "keep"))
    };
    assert_eq!(spreads(64, 0), (0, 1));
    assert_eq!(spreads(128, 2), (0, 1), "a part that starts at a row");
    assert_eq!(spreads(3, 1), (1, 1));
    // Between rows: half a row in, so no row of the walk is one of the array.
    let mut g = Graph::new(Default::default());
    let x = g.input("x", vec![size(256)]);
    let x = g.tanh(x);
    let x = g.slice(x, 0, &size(32), &size(128));
    let x = g.reshape(x, vec![size(2), size(64)]);
    let y = g.repeat(&size(2), false, &[], &[x], |g, _, _, rows| (vec![], vec![g.silu(rows[0])]));
    g.result("y", y[0]);
    assert_eq!(copies(&check_schedule(&g, &[], 1), "spread"), 1);
}
