//! One test for each thing that a loop over layers may do, at odd sizes and under a coefficient.

use super::*;
use crate::autodiff::{Policy, differentiate};
use crate::ops::composite;

#[test]
fn a_chain_of_layers() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(5)], &[size(3), size(3)]);
    let y = g.repeat(&size(5), false, &[x], &[w], |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![]));
    check(g, y[0]);
}

#[test]
fn a_loop_that_runs_down() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(5)], &[size(3), size(3)]);
    let y = g.repeat(&size(5), true, &[x], &[w], |g, _, x, w| (vec![layer(g, x[0], w[0])], vec![x[0]]));
    let sum = sum_axis(&mut g, y[1]);
    let y = g.mul(sum, y[0]);
    check(g, y);
}

#[test]
fn values_of_all_iterations_escape() {
    let Case { mut g, x, rows } = case();
    let w = trained(&mut g, "w", &[size(4)], &[size(3), size(3)]);
    let y = g.repeat(&size(4), false, &[x], &[w], |g, _, x, w| {
        let next = layer(g, x[0], w[0]);
        let other = scale(g, next, 1.3);
        (vec![next], vec![x[0], next, other])
    });
    let parts = [1, 2, 3].map(|k| g.reshape(y[k], vec![&rows * &size(4), size(3)]));
    let a = g.mul(parts[0], parts[1]);
    let a = g.mul(a, parts[2]);
    let third = row(&mut g, y[2], 2);
    let third = sum_axis(&mut g, third);
    let y = g.mul(a, third);
    check(g, y);
}

#[test]
fn one_weight_tied_captured_and_used_outside() {
    let Case { mut g, x, rows } = case();
    let table = g.trained()[0].0;
    let shared = trained(&mut g, "shared", &[], &[size(3), size(3)]);
    let y = g.repeat(&size(3), false, &[x], &[], |g, _, x, _| {
        let y = layer(g, x[0], shared);
        let scores = linear(g, y, table);
        let back = contract(g, "mk,kn->mn", scores, table);
        (vec![scale(g, back, 0.3)], vec![])
    });
    let y = linear(&mut g, y[0], shared);
    let logits = linear(&mut g, y, table);
    let labels = g.argument(1, "labels", Type { shape: vec![rows], dtype: DType::U32 });
    g.stores.last_mut().unwrap().below = Some(size(2));
    let loss = composite::cross_entropy(&mut g, logits, labels);
    let loss = scale(&mut g, loss, 2.5);
    result(&mut g, "loss", loss);
    check_loss(&g, loss);
    let trained = training(&g, loss, Policy::Contractions);
    assert_eq!(trained.outputs.len(), 3, "a tied tensor has one gradient");
}

#[test]
fn loops_within_loops() {
    let Case { mut g, x, .. } = case();
    let (outer, inner) = (size(3), size(2));
    let w = trained(&mut g, "w", &[outer.clone(), inner.clone()], &[size(3), size(3)]);
    let v = trained(&mut g, "v", std::slice::from_ref(&outer), &[size(3), size(3)]);
    let shared = trained(&mut g, "shared", &[], &[size(3), size(3)]);
    let y = g.repeat(&outer, false, &[x], &[w, v], |g, _, x, rows| {
        let [w, v] = [rows[0], rows[1]];
        let start = x[0];
        let y = g.repeat(&inner, true, &[start], &[w], |g, j, x, w| {
            let y = layer(g, x[0], w[0]);
            let y = linear(g, y, shared);
            let j = number(g, j);
            let bias = g.mul(j, start);
            (vec![g.add(y, bias)], vec![y])
        });
        let sum = sum_axis(g, y[1]);
        let y = g.add(sum, y[0]);
        (vec![layer(g, y, v)], vec![y])
    });
    let sum = sum_axis(&mut g, y[1]);
    let y = g.mul(sum, y[0]);
    check(g, y);
}

#[test]
fn zipped_arrays_with_an_index() {
    let Case { mut g, x, .. } = case();
    let a = trained(&mut g, "a", &[size(4)], &[size(5), size(3)]);
    let b = trained(&mut g, "b", &[size(4)], &[size(3), size(5)]);
    let y = g.repeat(&size(4), false, &[x], &[a, b], |g, i, x, w| {
        let y = linear(g, x[0], w[0]);
        let y = composite::rms_norm(g, y, 1e-5);
        let y = linear(g, y, w[1]);
        let i = number(g, i);
        let y = g.mul(y, i);
        (vec![g.add(x[0], y)], vec![])
    });
    check(g, y[0]);
}

#[test]
fn a_layer_used_twice_in_the_body_and_by_two_loops_and_alone() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(4)], &[size(3), size(3)]);
    let y = g.repeat(&size(4), false, &[x], &[w], |g, _, x, w| {
        let once = layer(g, x[0], w[0]);
        (vec![layer(g, once, w[0])], vec![])
    });
    let second = row(&mut g, w, 1);
    let y = layer(&mut g, y[0], second);
    let y = g.repeat(&size(4), true, &[y], &[w], |g, _, x, w| {
        let y = linear(g, x[0], w[0]);
        (vec![scale(g, y, 0.5)], vec![])
    });
    check(g, y[0]);
}

#[test]
fn carried_values_change_places() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(5)], &[size(3), size(3)]);
    let b = scale(&mut g, x, 0.4);
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
    let w = trained(&mut g, "w", &[], &[size(3), size(3)]);
    let y = g.repeat(&steps, false, &[x], &[], |g, _, x, _| {
        let y = linear(g, x[0], w);
        (vec![silu(g, y)], vec![])
    });
    check(g, y[0]);
}

#[test]
fn no_carried_value_and_no_dependency() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(4)], &[size(3), size(3)]);
    let y = g.repeat(&size(4), false, &[], &[w], |g, _, _, w| (vec![], vec![linear(g, x, w[0])]));
    let y = sum_axis(&mut g, y[0]);
    check(g, y);
}

#[test]
fn a_part_of_an_array_and_all_of_it_at_once() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(4)], &[size(3), size(3)]);
    let part = g.emit(Op::Slice(Slice { axis: 0, from: size(1), to: size(3) }), &[w]);
    let y = g.repeat(&size(2), false, &[x], &[part], |g, _, x, rows| {
        let all = sum_axis(g, w);
        let y = layer(g, x[0], rows[0]);
        (vec![layer(g, y, all)], vec![all, rows[0]])
    });
    let all = sum_axis(&mut g, y[1]);
    let first = row(&mut g, y[2], 0);
    let y = linear(&mut g, y[0], all);
    let y = linear(&mut g, y, first);
    check(g, y);
}

#[test]
fn outputs_that_are_tensors_views_or_said_twice() {
    let Case { mut g, x, rows } = case();
    let w = trained(&mut g, "w", &[size(2)], &[size(3), size(3)]);
    let y = g.repeat(&size(2), false, &[x], &[w], |g, _, x, w| {
        let next = layer(g, x[0], w[0]);
        (vec![next], vec![next])
    });
    let flat = g.reshape(y[1], vec![&rows * &size(6)]);
    for (name, value) in [("flat", flat), ("flat again", flat), ("stack", y[1]), ("w", w)] {
        result(&mut g, name, value);
    }
    check(g, y[0]);
}

#[test]
fn three_levels() {
    let Case { mut g, x, .. } = case();
    let each = [size(2), size(3), size(2)];
    let w = trained(&mut g, "w", &each, &[size(3), size(3)]);
    let y = g.repeat(&each[0], false, &[x], &[w], |g, _, x, w| {
        let y = g.repeat(&each[1], true, x, w, |g, _, x, w| {
            let outer = x[0];
            let y = g.repeat(&each[2], false, x, w, |g, _, x, w| {
                let y = layer(g, x[0], w[0]);
                (vec![g.mul(y, outer)], vec![x[0]])
            });
            let sum = sum_axis(g, y[1]);
            let next = g.add(sum, y[0]);
            (vec![scale(g, next, 0.3)], vec![y[0]])
        });
        let sum = sum_axis(g, y[1]);
        (vec![g.add(sum, y[0])], vec![])
    });
    check(g, y[0]);
}

#[test]
fn composites_in_loops_and_the_values_that_they_leave() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(3)], &[size(3), size(3)]);
    let gain = trained(&mut g, "gain", &[size(3)], &[size(3)]);
    let y = g.repeat(&size(3), false, &[x], &[w, gain], |g, _, x, w| {
        let normal = composite::layer_norm(g, x[0], 1e-5);
        let normal = g.mul(normal, w[1]);
        let y = linear(g, normal, w[0]);
        let p = composite::softmax(g, y);
        let active = composite::gelu(g, y);
        let both = g.mul(p, active);
        (vec![g.add(x[0], both)], vec![p])
    });
    let all = composite::logsumexp(&mut g, y[1]);
    let all = sum_axis(&mut g, all);
    let y = g.mul(y[0], all);
    check(g, y);
}

#[test]
fn an_operation_without_a_derivative_is_named_if_the_loss_needs_it() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[], &[size(3), size(3)]);
    g.origin.path = "head".into();
    let diagonal = contract(&mut g, "mk,kk->mk", x, w);
    g.origin.path = "rest".into();
    let other = square_loss(&mut g, x);
    assert!(differentiate(&g, other, Policy::Store).is_ok());
    let loss = square_loss(&mut g, diagonal);
    let absent = differentiate(&g, loss, Policy::Store).unwrap_err();
    assert_eq!(absent.len(), 1, "{absent:?}");
    assert_eq!(absent[0].origin.path, "head");
    assert!(absent[0].reason.contains("diagonal"), "{absent:?}");
}

#[test]
fn backward_nodes_say_whose_they_are() {
    let Case { mut g, x, .. } = case();
    g.origin.path = "layers.fc".into();
    g.origin.span = Some(crate::ir::SpanId(7));
    let w = trained(&mut g, "w", &[size(3)], &[size(3), size(3)]);
    let y = g.repeat(&size(3), false, &[x], &[w], |g, _, x, w| {
        g.origin.path = "layers.fc.inner".into();
        (vec![layer(g, x[0], w[0])], vec![])
    });
    let loss = square_loss(&mut g, y[0]);
    for policy in POLICIES {
        let trained = training(&g, loss, policy);
        let forward = g.nodes.len();
        let blocks = trained.blocks.iter().flat_map(|block| &block.nodes);
        let backward: Vec<_> = blocks.filter(|id| id.index() >= forward).map(|id| trained.node(*id)).collect();
        assert!(backward.iter().all(|node| node.origin.backward));
        let product = backward.iter().filter(|node| matches!(node.op, Op::Contract(_)));
        let of_layer = product.filter(|node| node.origin.path == "layers.fc.inner");
        assert_eq!(
            of_layer.filter(|node| node.origin.span.is_some()).count(),
            2 + usize::from(policy == Policy::Checkpoint)
        );
    }
}

#[test]
fn what_only_jumps_has_a_gradient_of_zeros() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[], &[size(3)]);
    let steps = g.un(Un::Floor, w);
    let y = g.mul(x, steps);
    let loss = square_loss(&mut g, y);
    let trained = training(&g, loss, Policy::Contractions);
    let found = outputs(&trained, &[3], 1);
    let gradient = found.iter().find(|(name, _)| name == "grad.w").unwrap();
    assert_eq!(gradient.1.data, [0.0; 3]);
}

#[test]
fn nodes_of_inner_loops_that_run_again_keep_their_origin() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[size(2), size(3)], &[size(3), size(3)]);
    let y = g.repeat(&size(2), false, &[x], &[w], |g, _, x, w| {
        g.origin.path = "outer".into();
        let y = g.repeat(&size(3), false, x, w, |g, _, x, w| {
            g.origin.path = "outer.inner".into();
            (vec![layer(g, x[0], w[0])], vec![])
        });
        (vec![y[0]], vec![])
    });
    let loss = square_loss(&mut g, y[0]);
    let trained = training(&g, loss, Policy::Checkpoint);
    let nodes = trained.blocks.iter().flat_map(|block| &block.nodes).map(|id| trained.node(*id));
    let products = nodes.filter(|node| matches!(node.op, Op::Contract(_)) && node.origin.backward);
    let inner = products.filter(|node| node.origin.path == "outer.inner").count();
    // By x and by w, again for the outer body, and again for the inner one.
    assert_eq!(inner, 4);
}

#[test]
fn a_tensor_that_is_read_twice_has_one_gradient() {
    let mut g = Graph::new(Symbols::default());
    let [a, b] = [(); 2].map(|()| g.tensor(0, "w", vec![size(3)], 0, true));
    let (c, thrice) = (g.un(Un::Exp, a), scale(&mut g, b, 3.0));
    let y = g.mul(c, thrice);
    let loss = g.sum_all(y);
    result(&mut g, "loss", loss);
    let trained = training(&g, loss, Policy::default());
    assert_eq!(trained.outputs.len(), 2);
    let w = meganeura_shaders::reference::Tensor { shape: vec![3], data: vec![0.0, 1.0, -2.0] };
    let found = crate::interp::graph::run(&trained, &bind(&g, &[]), &[w.clone(), w.clone()]);
    let expected: Vec<f64> = w.data.iter().map(|x| 3.0 * x.exp() * (1.0 + x)).collect();
    assert_close("w", &found[1].data, &expected, 1e-12);
}
