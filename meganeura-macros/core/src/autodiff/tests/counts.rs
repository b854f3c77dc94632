//! What a loop costs and what it must not do: what is carried, what is saved, what is left out.

use std::collections::BTreeMap;

use meganeura_shaders::reference::Tensor;

use super::*;
use crate::autodiff::{Policy, differentiate};
use crate::ir::{Node, ROOT, Repeat};
use crate::ops::composite;

/// The loops at the root, in order, and their nodes.
fn loops(graph: &Graph) -> Vec<(Repeat, Node)> {
    let nodes = graph.block(ROOT).nodes.iter().map(|id| graph.node(*id));
    nodes.filter_map(|node| if let Op::Repeat(r) = &node.op { Some((r.clone(), node.clone())) } else { None }).collect()
}

fn stacks(graph: &Graph, at: usize) -> usize {
    let (repeat, node) = &loops(graph)[at];
    node.outputs.len() - repeat.carried
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.outputs.iter().map(|output| output.name.as_str()).collect()
}

#[test]
fn every_count_from_one_up() {
    let Case { mut g, x, .. } = case();
    let count = g.symbols.declare("count", 1, 9, 1);
    let w = trained(&mut g, "w", std::slice::from_ref(&count), &[size(3), size(3)]);
    let shared = trained(&mut g, "shared", &[], &[size(3), size(3)]);
    let halved = scale(&mut g, x, 0.5);
    let y = g.repeat(&count, false, &[x, halved], &[w], |g, i, x, w| {
        let y = linear(g, x[0], w[0]);
        let y = silu(g, y);
        let down = g.repeat(&count, true, &[y], &[], |g, _, y, _| {
            let z = linear(g, y[0], shared);
            (vec![scale(g, z, 0.8)], vec![y[0]])
        });
        let all = sum_axis(g, down[1]);
        let i = number(g, i);
        let z = g.mul(x[1], i);
        let z = g.add(z, down[0]);
        (vec![g.add(x[0], z), scale(g, all, 0.3)], vec![z])
    });
    let all = sum_axis(&mut g, y[2]);
    let y = g.mul(y[0], y[1]);
    let y = g.add(y, all);
    let loss = square_loss(&mut g, y);
    for count in [1, 2, 3, 4, 7] {
        for policy in POLICIES {
            check_gradients(&g, loss, &[3, count], 2, policy);
        }
    }
}

#[test]
fn a_loop_that_may_not_run_is_refused() {
    let Case { mut g, x, .. } = case();
    let some = g.symbols.declare("some", 0, 4, 1);
    g.repeat(&some, false, &[x], &[], |g, _, x, _| (vec![silu(g, x[0])], vec![]));
    assert!(g.verify().unwrap_err().contains("runs at least once"));
}

/// `x + n c`, `x cⁿ` and Σ sᵢ c have the derivatives that one learns at school.
#[test]
fn what_a_loop_captures_gets_the_sum_over_its_iterations() {
    for (count, reversed) in [(1, false), (2, true), (5, false), (6, true)] {
        let mut g = Graph::new(Default::default());
        let [x, c] = ["x", "c"].map(|name| trained(&mut g, name, &[], &[]));
        let s = trained(&mut g, "s", &[size(count)], &[]);
        let y = g.repeat(&size(count), reversed, &[x, x], &[s], |g, _, x, s| {
            let product = g.mul(s[0], c);
            (vec![g.add(x[0], c), g.mul(x[1], c)], vec![product])
        });
        let sum = g.sum_all(y[2]);
        let part = g.add(y[0], y[1]);
        let loss = g.add(part, sum);
        let loss = g.add(loss, c);
        result(&mut g, "loss", loss);
        let ramp = Tensor::from_fn(&[count], |i| (i[0] + 1) as f64);
        let stores = [Tensor::scalar(0.7), Tensor::scalar(1.3), ramp];
        let (x, c, n) = (0.7, 1.3f64, count as f64);
        let total = n * (n + 1.0) / 2.0;
        for policy in POLICIES {
            let trained = training(&g, loss, policy);
            let found = crate::interp::graph::run(&trained, &bind(&g, &[]), &stores);
            let by_name: BTreeMap<&str, &Tensor> = names(&trained).into_iter().zip(&found).collect();
            let power = |k: i64| c.powi(k as i32);
            assert_close("loss", &by_name["loss"].data, &[x + n * c + x * power(count) + total * c + c], 1e-12);
            assert_close("grad.x", &by_name["grad.x"].data, &[1.0 + power(count)], 1e-12);
            assert_close("grad.c", &by_name["grad.c"].data, &[n + n * x * power(count - 1) + total + 1.0], 1e-12);
            assert_close("grad.s", &by_name["grad.s"].data, &vec![c; count as usize], 1e-12);
        }
    }
}

/// Two products, one frozen: `silu(x v) w`, and a captured bias.
fn half_frozen(is_frozen: bool) -> (Graph, ValueId) {
    let Case { mut g, x, .. } = case();
    let each = [size(4)];
    let v = trained(&mut g, "v", &each, &[size(3), size(3)]);
    let make = if is_frozen { frozen } else { trained };
    let w = make(&mut g, "w", &each, &[size(3), size(3)]);
    let bias = make(&mut g, "bias", &[], &[size(3)]);
    let y = g.repeat(&size(4), false, &[x], &[v, w], |g, _, x, rows| {
        let y = linear(g, x[0], rows[0]);
        let hidden = silu(g, y);
        let y = linear(g, hidden, rows[1]);
        (vec![g.add(y, bias)], vec![])
    });
    let loss = square_loss(&mut g, y[0]);
    (g, loss)
}

fn products(graph: &Graph) -> usize {
    let is_product = |id: &&crate::ir::NodeId| matches!(graph.node(**id).op, Op::Contract(_));
    graph.blocks.iter().flat_map(|block| &block.nodes).filter(is_product).count()
}

#[test]
fn what_is_frozen_has_no_gradient_and_nothing_is_saved_for_it() {
    let (trained, half) = (half_frozen(false), half_frozen(true));
    for policy in POLICIES {
        check_gradients(&half.0, half.1, &[5], 1, policy);
        let [all, some] = [&trained, &half].map(|(g, loss)| training(g, *loss, policy));
        assert_eq!(names(&some), ["loss", "grad.table", "grad.v"]);
        assert_eq!(some.outputs.iter().map(|output| output.loops).collect::<Vec<_>>(), [0, 0, 1]);
        let (all_loops, some_loops) = (loops(&all), loops(&some));
        // Carried backwards: dx and the sum of the bias; stacked: dv and dw. Half frozen: dx; dv.
        assert_eq!((all_loops[1].0.carried, stacks(&all, 1)), (2, 2));
        assert_eq!((some_loops[1].0.carried, stacks(&some, 1)), (1, 1));
        match policy {
            // x, x v, σ(x v), silu(x v); the last one only dw asks for.
            Policy::Store => assert_eq!((stacks(&all, 0), stacks(&some, 0)), (4, 3)),
            // x, x v; the rest runs again.
            Policy::Contractions => assert_eq!((stacks(&all, 0), stacks(&some, 0)), (2, 2)),
            Policy::Checkpoint => assert_eq!((stacks(&all, 0), stacks(&some, 0)), (1, 1)),
        }
        assert_eq!(products(&all), products(&some) + 1);
    }
}

#[test]
fn nothing_is_differentiated_that_the_loss_does_not_need() {
    let Case { mut g, x, .. } = case();
    let each = [size(4)];
    let [w, v, unused] = ["w", "v", "unused"].map(|name| trained(&mut g, name, &each, &[size(3), size(3)]));
    let y = g.repeat(&size(4), false, &[x, x, x], &[w, v, unused], |g, _, x, rows| {
        let a = linear(g, x[0], rows[0]);
        let b = linear(g, x[1], rows[1]);
        let b = g.add(b, x[0]);
        let c = linear(g, x[2], rows[2]);
        let c = g.mul(c, b);
        (vec![silu(g, a), b, c], vec![a, b, c])
    });
    // The second carried value reads the first; the first reads only itself.
    let loss = square_loss(&mut g, y[0]);
    result(&mut g, "metric", y[2]);
    for policy in POLICIES {
        check_gradients(&g, loss, &[5], 1, policy);
        let trained = training(&g, loss, policy);
        assert_eq!(names(&trained), ["loss", "metric", "grad.table", "grad.w"]);
        let found = loops(&trained);
        assert_eq!((found[0].0.carried, found[1].0.carried, stacks(&trained, 1)), (3, 1, 1));
        let saved = match policy {
            Policy::Store => 3,
            Policy::Contractions => 2,
            Policy::Checkpoint => 1,
        };
        assert_eq!(stacks(&trained, 0), saved, "x, x w and with `Store` σ(x w); nothing of the others");
        // Without the metric, the others are gone from the forward loop as well.
        let mut only_loss = g.clone();
        only_loss.outputs.retain(|output| output.name == "loss");
        let trained = training(&only_loss, loss, policy);
        assert_eq!((loops(&trained)[0].0.carried, loops(&trained)[0].0.stacked), (1, 1));
    }
}

/// Three values take turns; a tensor made one of them, and the loss reads one of them.
#[test]
fn what_is_active_and_what_is_needed_travels_with_the_iterations() {
    let Case { mut g, rows, x } = case();
    let constant = g.fill(0.4, &vec![rows, size(3)]);
    let y = g.repeat(&size(5), false, &[x, constant, constant], &[], |g, _, x, _| {
        let [a, b, c] = [x[0], x[1], x[2]].map(|x| silu(g, x));
        (vec![c, a, b], vec![])
    });
    // Five steps of a cycle of three: what began at the front is in the third place.
    let loss = square_loss(&mut g, y[2]);
    for policy in POLICIES {
        check_gradients(&g, loss, &[5], 1, policy);
    }
}

/// A decoder's layer without its attention: as many values of each kind.
fn decoder(depth: i64) -> (Graph, ValueId) {
    let Case { mut g, rows, x } = case();
    let (dim, ffn, each) = (size(3), size(5), [size(depth)]);
    let mut array = |name: &str, shape: &[&Dim]| {
        let shape: Vec<Dim> = shape.iter().map(|d| (*d).clone()).collect();
        trained(&mut g, name, &each, &shape)
    };
    let mut weights = vec![array("input_norm", &[&dim]), array("post_norm", &[&dim])];
    weights.extend(["q", "k", "v", "o"].map(|name| array(name, &[&dim, &dim])));
    weights.extend(["gate", "up"].map(|name| array(name, &[&ffn, &dim])));
    weights.push(array("down", &[&dim, &ffn]));
    let finals = g.repeat(&size(depth), false, &[x], &weights, |g, _, carried, w| {
        let h = composite::rms_norm(g, carried[0], 1e-5);
        let h = g.mul(h, w[0]);
        let [q, k, v] = [2, 3, 4].map(|p| linear(g, h, w[p]));
        let q = composite::silu(g, q);
        let qk = g.mul(q, k);
        let mixed = g.add(qk, v);
        let o = linear(g, mixed, w[5]);
        let x = g.add(carried[0], o);
        let h = composite::rms_norm(g, x, 1e-5);
        let h = g.mul(h, w[1]);
        let [gate, up] = [6, 7].map(|p| linear(g, h, w[p]));
        let gate = composite::silu(g, gate);
        let inner = g.mul(gate, up);
        let down = linear(g, inner, w[8]);
        (vec![g.add(x, down)], vec![])
    });
    let table = g.trained()[0].0;
    let logits = linear(&mut g, finals[0], table);
    let labels = g.argument(1, "labels", Type { shape: vec![rows], dtype: DType::U32 });
    g.stores.last_mut().unwrap().below = Some(size(2));
    let loss = composite::cross_entropy(&mut g, logits, labels);
    let loss = scale(&mut g, loss, 3.0);
    result(&mut g, "loss", loss);
    (g, loss)
}

#[test]
fn a_decoder_saves_what_products_made_and_nothing_else() {
    let (g, loss) = decoder(3);
    check_loss(&g, loss);
    // Carried x; of the products q, k, o, gate, up: nobody asks for v and down, and x + o runs again.
    assert_eq!(stacks(&training(&g, loss, Policy::Contractions), 0), 7);
    assert_eq!(stacks(&training(&g, loss, Policy::Checkpoint), 0), 1);
    for policy in POLICIES {
        let trained = training(&g, loss, policy);
        let loops = loops(&trained);
        assert_eq!((loops[1].0.carried, loops[1].0.reversed, stacks(&trained, 1)), (1, true, 9), "dx; one per weight");
    }
}

#[test]
fn the_graph_does_not_grow_with_depth() {
    let nodes = |depth| {
        let (g, loss) = decoder(depth);
        let trained = differentiate(&g, loss, Policy::default()).unwrap();
        trained.blocks.iter().map(|block| block.nodes.len()).sum::<usize>()
    };
    assert_eq!(nodes(2), nodes(1000));
}

#[test]
fn each_kind_of_value_is_saved_or_runs_again() {
    // The value, or what it is computed from: one stack either way. Which one shows in its shape.
    let shape_of = |value: &dyn Fn(&mut Graph, ValueId) -> ValueId| {
        let Case { mut g, x, .. } = case();
        let y = g.repeat(&size(3), false, &[x], &[], |g, _, x, _| {
            let value = value(g, x[0]);
            let squared = g.mul(value, value);
            (vec![g.add(x[0], squared)], vec![])
        });
        let loss = square_loss(&mut g, y[0]);
        check_loss(&g, loss);
        [Policy::Store, Policy::Contractions].map(|policy| {
            let trained = training(&g, loss, policy);
            let (repeat, node) = &loops(&trained)[0];
            let saved = &node.outputs[repeat.carried..];
            saved.iter().map(|v| g.symbols.show_shape(&trained.shape(*v)[1..])).collect::<Vec<_>>()
        })
    };
    assert_eq!(shape_of(&|g, x| g.row_sum(x)), [["[rows, 1]"], ["[rows, 3]"]], "a row statistic");
    let columns = |g: &mut Graph, x: ValueId| g.emit(Op::Sum(Sum { axes: vec![0] }), &[x]);
    assert_eq!(shape_of(&columns), [["[1, 3]"], ["[1, 3]"]], "a sum over rows");
    let column = |g: &mut Graph, x: ValueId| g.emit(Op::Slice(Slice { axis: 1, from: size(0), to: size(1) }), &[x]);
    assert_eq!(shape_of(&column), [["[rows, 3]"], ["[rows, 3]"]], "a part");
    let composite = |g: &mut Graph, x: ValueId| composite::logsumexp(g, x);
    assert_eq!(shape_of(&composite)[1], ["[rows, 3]"], "a composite of rows");
    let mixed = |g: &mut Graph, x: ValueId| {
        let body = |g: &mut Graph, x: &[ValueId]| vec![contract(g, "mk,mk->k", x[0], x[0])];
        let derivative = |g: &mut Graph, x: &[ValueId], _: &[ValueId], ct: ValueId| {
            let part = g.mul(x[0], ct);
            vec![scale(g, part, 2.0)]
        };
        g.call("squares", &[x], body, Some((vec![0], &derivative)))
    };
    assert_eq!(shape_of(&mixed)[1], ["[3]", "[rows, 3]"], "a composite with a product");
}

#[test]
fn what_only_jumps_carries_nothing_back() {
    let Case { mut g, x, .. } = case();
    let w = trained(&mut g, "w", &[], &[size(3)]);
    let y = g.repeat(&size(3), false, &[x], &[], |g, _, x, _| {
        let product = g.mul(x[0], w);
        (vec![g.un(Un::Round, product)], vec![])
    });
    let y = g.add(y[0], x);
    let loss = square_loss(&mut g, y);
    for policy in POLICIES {
        let trained = training(&g, loss, policy);
        assert_eq!(loops(&trained).len(), 1);
        assert_eq!(names(&trained), ["loss", "grad.table", "grad.w"]);
    }
}

#[test]
fn composites_that_no_gradient_flows_through_stay_whole() {
    let Case { mut g, rows, x } = case();
    let given = g.argument(1, "other", Type::float(vec![rows, size(3)]));
    let metric = composite::silu(&mut g, given);
    let y = composite::silu(&mut g, x);
    let loss = square_loss(&mut g, y);
    result(&mut g, "metric", metric);
    let trained = training(&g, loss, Policy::default());
    let calls = trained.block(ROOT).nodes.iter().filter(|id| matches!(trained.node(**id).op, Op::Call(_)));
    assert_eq!(calls.count(), 1);
}

#[test]
fn a_sum_costs_its_derivative_nothing() {
    let mut g = Graph::new(Default::default());
    let [a, b] = ["a", "b"].map(|name| trained(&mut g, name, &[], &[]));
    let loss = g.add(a, b);
    result(&mut g, "loss", loss);
    let trained = training(&g, loss, Policy::default());
    assert_eq!(trained.block(ROOT).nodes.len(), g.block(ROOT).nodes.len() + 1, "the loss's own cotangent, 1");
}
