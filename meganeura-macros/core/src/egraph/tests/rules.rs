//! Each rule: a graph on which it fires, one on which it must not, and equality of both sides. Equality is checked for
//! *every* node of every class that saturation left, so a rule is also checked against all that others made of it.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::DType;

use super::models::*;
use super::*;
use crate::egraph::dag::Dag;
use crate::egraph::oracle::{check_classes, class_values, close};
use crate::egraph::rewrite::normal_form;
use crate::egraph::rules::Find;
use crate::egraph::saturate::saturate;
use crate::ir::ValueId;
use crate::ops::composite;

/// How often the rule joined classes (or rewrote, if it is one of the normal form), with the others it needs.
fn fires_on(dag: &Dag, rule: &str, with: &[&str]) -> usize {
    let chosen: Vec<Rule> = ALL.iter().copied().filter(|r| r.name == rule || with.contains(&r.name)).collect();
    assert_eq!(chosen.len(), 1 + with.len(), "{rule}: a rule that does not exist");
    if chosen.iter().any(|r| r.name == rule && matches!(r.find, Find::Always(_))) {
        let normal = same_values(dag, &chosen);
        return normal.notes.iter().filter(|note| note.rules.contains(&rule)).count();
    }
    let (mut eg, _) = dag.to_egraph();
    let stats = saturate(&mut eg, &chosen, Limits::default()).unwrap();
    let compared = check_classes(&eg, &small()).unwrap_or_else(|difference| panic!("{rule}: {difference}"));
    assert_eq!(compared, stats.nodes);
    stats.joined.get(rule).copied().unwrap_or(0)
}

/// The normal form, which must give what the graph gives.
fn same_values(dag: &Dag, rules: &[Rule]) -> Dag {
    let normal = normal_form(dag, rules);
    let ((before, _), (after, _)) = (dag.to_egraph(), normal.to_egraph());
    let (old, new) = (class_values(&before, &small()), class_values(&after, &small()));
    let roots = before.analysis.roots.iter().zip(&after.analysis.roots);
    roots.for_each(|(x, y)| assert!(close(&old[&before.find(*x)], &new[&after.find(*y)]), "a value changed"));
    normal
}

fn fires(graph: &Graph, rule: &str, with: &[&str]) -> usize {
    fires_on(&plain(graph), rule, with)
}

/// The same where loops are one already.
fn fires_collapsed(graph: &Graph, rule: &str, with: &[&str]) -> usize {
    fires_on(&plain(graph).collapse(), rule, with)
}

/// `f` of a product `x Wᵀ` with `x: [m, 4]`, `W: [6, 4]`.
fn after_product(f: impl FnOnce(&mut Model, ValueId) -> ValueId) -> Graph {
    model(|model| {
        let shape = model.rows(4);
        let (x, w) = (model.input(shape), model.tensor(&[6, 4]));
        let y = einsum(&mut model.g, "mk,nk->mn", x, w);
        vec![f(model, y)]
    })
}

/// The product of `f(x)` with `W`.
fn before_product(f: impl FnOnce(&mut Model, ValueId) -> ValueId) -> Graph {
    model(|model| {
        let shape = model.rows(4);
        let x = model.input(shape);
        let y = f(model, x);
        let w = model.tensor(&[6, 4]);
        vec![einsum(&mut model.g, "mk,nk->mn", y, w)]
    })
}

/// `f` of an input `[m, 4]`.
fn of_rows(f: impl FnOnce(&mut Model, ValueId) -> ValueId) -> Graph {
    model(|model| {
        let shape = model.rows(4);
        let x = model.input(shape);
        vec![f(model, x)]
    })
}

fn row_scaled(model: &mut Model, x: ValueId) -> ValueId {
    let r = model.g.row_sum(x);
    model.g.mul(x, r)
}

fn column_sum(model: &mut Model, x: ValueId) -> ValueId {
    model.g.sum(x, &[0])
}

#[test]
fn loops_fuse_and_single_loops_stay() {
    assert!(fires(&of_rows(row_scaled), "fuse/loops", &[]) > 0);
    assert_eq!(fires(&of_rows(|f, x| f.g.un(Un::Exp, x)), "fuse/loops", &[]), 0);
}

#[test]
fn column_sums_take_pointwise_loops() {
    let relu = of_rows(|f, x| {
        let y = f.g.un(Un::Relu, x);
        column_sum(f, y)
    });
    assert!(fires(&relu, "fuse/column-sum", &[]) > 0);
    assert_eq!(fires(&of_rows(column_sum), "fuse/column-sum", &[]), 0);
    let softmax = of_rows(|f, x| {
        let y = composite::softmax(&mut f.g, x);
        column_sum(f, y)
    });
    assert_eq!(fires_collapsed(&softmax, "fuse/column-sum", &[]), 0);
}

#[test]
fn epilogues_are_pointwise() {
    let bias = |f: &mut Model, y| {
        let b = f.tensor(&[6]);
        let z = f.g.add(y, b);
        f.g.un(Un::Relu, z)
    };
    assert!(fires(&after_product(bias), "fuse/epilogue", &[]) > 0);
    let softmax = after_product(|f, y| composite::softmax(&mut f.g, y));
    assert_eq!(fires_collapsed(&softmax, "fuse/epilogue", &[]), 0);
    // The product is broadcast against something larger: there is no kernel for that.
    let spread = after_product(|f, y| {
        let z = f.input(vec![2.into(), f.m.clone(), 6.into()]);
        f.g.mul(y, z)
    });
    assert_eq!(fires(&spread, "fuse/epilogue", &[]), 0);
}

/// The number of kernels, and the most buffers that one of them binds.
fn bindings(graph: &Graph) -> (usize, usize) {
    let searched = searched(graph, &small());
    let bound = |node: &&ENode| {
        let results = if let Op::Launch(kernels) = &node.op { kernels.len() } else { 1 };
        node.args.iter().collect::<std::collections::BTreeSet<_>>().len() + results
    };
    let kernels = searched.kernels();
    (kernels.len(), kernels.iter().map(bound).max().unwrap())
}

fn sum_with(f: &mut Model, x: ValueId, count: usize, sizes: &[i64]) -> ValueId {
    let others: Vec<ValueId> = (0..count).map(|_| f.tensor(sizes)).collect();
    others.into_iter().fold(x, |sum, other| f.g.add(sum, other))
}

#[test]
fn launches_stop_at_the_buffers_that_they_may_bind() {
    assert_eq!(bindings(&after_product(|f, y| sum_with(f, y, 3, &[6]))), (1, 6));
    let (kernels, most) = bindings(&after_product(|f, y| sum_with(f, y, 20, &[6])));
    assert!(kernels > 2 && most <= 15, "{kernels} kernels, {most} bindings");
    // 8 arguments before the product and 7 behind it are allowed each, but not together.
    let both = |before: usize, behind: usize| {
        model(|f| {
            let shape = f.rows(4);
            let x = f.input(shape);
            let x = sum_with(f, x, before, &[4]);
            let w = f.tensor(&[6, 4]);
            let y = einsum(&mut f.g, "mk,nk->mn", x, w);
            vec![sum_with(f, y, behind, &[6])]
        })
    };
    assert_eq!(bindings(&both(7, 5)), (1, 15));
    let (kernels, most) = bindings(&both(7, 7));
    assert!(kernels > 1 && most <= 15, "{kernels} kernels, {most} bindings");
    // Nine products of the same rows are two launches.
    let many = of_rows(|f, x| {
        let products: Vec<ValueId> = (0..9)
            .map(|_| {
                let w = f.tensor(&[6, 4]);
                let y = einsum(&mut f.g, "mk,nk->mn", x, w);
                f.result(y);
                y
            })
            .collect();
        products[0]
    });
    let (kernels, most) = bindings(&many);
    assert!(kernels <= 3 && most <= 15, "{kernels} kernels, {most} bindings");
}

#[test]
fn programs_stop_at_their_length() {
    let long = of_rows(|f, x| {
        (0..40).fold(x, |y, k| {
            let y = f.g.with_const(Bin::Mul, y, 1.5 + f64::from(k));
            f.g.un(Un::Sin, y)
        })
    });
    let searched = searched(&long, &small());
    let code = |node: &&ENode| if let Op::Kernel(Kernel::Rows(p)) = &node.op { p.code.len() } else { 0 };
    let most = searched.kernels().iter().map(code).max().unwrap();
    assert!((30..=48).contains(&most), "{most}");
}

/// A rule is asked again when something new lies below: the second loop follows the first behind the product.
#[test]
fn epilogues_follow_epilogues() {
    let twice = after_product(|f, y| {
        let z = f.g.un(Un::Relu, y);
        f.result(z);
        let shape = f.rows(6);
        let other = f.input(shape);
        f.g.mul(z, other)
    });
    assert_eq!(fires(&twice, "fuse/epilogue", &[]), 2);
}

#[test]
fn products_of_one_shape_become_accumulators() {
    let gated = |second: &'static [i64], spec: &'static str| {
        model(|f| {
            let shape = f.rows(4);
            let (x, a, b) = (f.input(shape), f.tensor(&[6, 4]), f.tensor(second));
            let u = einsum(&mut f.g, "mk,nk->mn", x, a);
            let v = einsum(&mut f.g, spec, x, b);
            let column = vec![f.m.clone(), 1.into()];
            let v = if second.len() == 1 { f.g.reshape(v, column) } else { v };
            vec![f.g.mul(u, v)]
        })
    };
    assert!(fires(&gated(&[6, 4], "mk,nk->mn"), "fuse/accumulators", &["fuse/epilogue"]) > 0);
    assert_eq!(fires(&gated(&[4], "mk,k->m"), "fuse/accumulators", &["fuse/epilogue"]), 0);
    // A product that is broadcast has other rows.
    let broadcast = model(|f| {
        let shape = f.rows(4);
        let (x, a, y) = (f.input(shape), f.tensor(&[6, 4]), f.tensor(&[4]));
        let u = einsum(&mut f.g, "mk,nk->mn", x, a);
        let v = einsum(&mut f.g, "k,nk->n", y, a);
        vec![f.g.mul(u, v)]
    });
    assert_eq!(fires(&broadcast, "fuse/accumulators", &["fuse/epilogue"]), 0);
}

#[test]
fn sums_of_products_become_accumulators() {
    let sum = model(|f| {
        let (left, right) = (f.rows(4), f.rows(5));
        let (x, y, a, b) = (f.input(left), f.input(right), f.tensor(&[6, 4]), f.tensor(&[6, 5]));
        let u = einsum(&mut f.g, "mk,nk->mn", x, a);
        let v = einsum(&mut f.g, "mk,nk->mn", y, b);
        vec![f.g.add(u, v)]
    });
    assert!(fires(&sum, "fuse/accumulators", &["fuse/epilogue"]) > 0);
}

#[test]
fn prologues_reduce_rows_only_where_rows_are_contracted() {
    assert!(fires(&before_product(|f, x| f.g.un(Un::Relu, x)), "fuse/prologue-a", &[]) > 0);
    assert!(fires_collapsed(&before_product(row_scaled), "fuse/prologue-a", &[]) > 0);
    assert_eq!(fires(&before_product(|_, x| x), "fuse/prologue-a", &[]), 0);
    let transposed = |body: fn(&mut Model, ValueId) -> ValueId| {
        model(|f| {
            let (left, right) = (f.rows(4), f.rows(5));
            let (x, y) = (f.input(left), f.input(right));
            let z = body(f, x);
            vec![einsum(&mut f.g, "mk,mn->kn", z, y)]
        })
    };
    assert!(fires(&transposed(|f, x| f.g.un(Un::Relu, x)), "fuse/prologue-a", &[]) > 0);
    let softmax = transposed(|f, x| composite::softmax(&mut f.g, x));
    assert_eq!(fires_collapsed(&softmax, "fuse/prologue-a", &[]), 0);
}

#[test]
fn right_sides_take_pointwise_loops() {
    let right = |body: fn(&mut Model, ValueId) -> ValueId| {
        model(|f| {
            let (left, right) = (f.rows(4), f.rows(5));
            let (x, y) = (f.input(left), f.input(right));
            let z = body(f, y);
            vec![einsum(&mut f.g, "mk,mn->kn", x, z)]
        })
    };
    assert!(fires(&right(|f, x| f.g.un(Un::Relu, x)), "fuse/prologue-b", &[]) > 0);
    let softmax = right(|f, x| composite::softmax(&mut f.g, x));
    assert_eq!(fires_collapsed(&softmax, "fuse/prologue-b", &[]), 0);
}

#[test]
fn row_scales_commute_with_products() {
    let with = ["fuse/prologue-a"];
    assert!(fires_collapsed(&before_product(row_scaled), "algebra/row-scale", &with) > 0);
    let halved = before_product(|f, x| f.g.with_const(Bin::Mul, x, 0.5));
    assert!(fires(&halved, "algebra/row-scale", &with) > 0);
    let columns = before_product(|f, x| {
        let w = f.tensor(&[4]);
        f.g.mul(x, w)
    });
    assert_eq!(fires(&columns, "algebra/row-scale", &with), 0);
    let shifted = before_product(|f, x| {
        let r = f.g.row_sum(x);
        f.g.add(x, r)
    });
    assert_eq!(fires_collapsed(&shifted, "algebra/row-scale", &with), 0);
    // One number for all rows is no statistic of a row.
    let scalar = before_product(|f, x| {
        let s = f.input(vec![]);
        f.g.mul(x, s)
    });
    assert_eq!(fires(&scalar, "algebra/row-scale", &with), 0);
    // Without its factor nothing is left that has rows.
    let outer = before_product(|f, x| {
        let (r, w) = (f.g.row_sum(x), f.tensor(&[4]));
        f.g.mul(r, w)
    });
    assert_eq!(fires_collapsed(&outer, "algebra/row-scale", &with), 0);
}

/// The statistic is `[m, 1]` and the result `[m, 2, 3]`: without the place for a second column label it would meet the
/// wrong axis, silently so for m = 2.
#[test]
fn a_row_scale_meets_results_with_several_column_axes() {
    let heads = model(|f| {
        let shape = f.rows(4);
        let (x, w) = (f.input(shape), f.tensor(&[2, 3, 4]));
        let y = row_scaled(f, x);
        vec![einsum(&mut f.g, "mk,hdk->mhd", y, w)]
    });
    assert!(fires_collapsed(&heads, "algebra/row-scale", &["fuse/prologue-a"]) > 0);
}

#[test]
fn a_row_scale_needs_its_rows_in_front() {
    let turned = model(|f| {
        let shape = f.rows(4);
        let (x, w) = (f.input(shape), f.tensor(&[6, 4]));
        let y = row_scaled(f, x);
        vec![einsum(&mut f.g, "mk,nk->nm", y, w)]
    });
    assert_eq!(fires_collapsed(&turned, "algebra/row-scale", &["fuse/prologue-a"]), 0);
}

#[test]
fn transposes_become_label_orders() {
    let layer = model(|f| {
        let shape = f.rows(4);
        let (x, w) = (f.input(shape), f.tensor(&[6, 4]));
        vec![linear(&mut f.g, x, w)]
    });
    assert_eq!(fires(&layer, "layout/transpose-in", &[]), 1);
    assert_eq!(fires(&after_product(|_, y| y), "layout/transpose-in", &[]), 0);
    assert_eq!(fires(&after_product(|f, y| f.g.transpose(y, &[1, 0])), "layout/transpose-out", &[]), 1);
    let between = after_product(|f, y| {
        let z = f.g.un(Un::Relu, y);
        f.g.transpose(z, &[1, 0])
    });
    assert_eq!(fires(&between, "layout/transpose-out", &[]), 0);
}

/// Three axes: an order and its inverse are not the same there.
#[test]
fn orders_of_three_axes_are_absorbed_both_ways() {
    let turned = model(|f| {
        let (x, y) = (f.input(vec![5.into(), f.m.clone(), 2.into()]), f.tensor(&[7, 2, 5]));
        let x = f.g.transpose(x, &[2, 0, 1]);
        let y = f.g.transpose(y, &[1, 2, 0]);
        let z = einsum(&mut f.g, "hkm,hkn->hmn", x, y);
        vec![f.g.transpose(z, &[1, 2, 0])]
    });
    assert!(fires(&turned, "layout/transpose-in", &[]) > 0);
    assert!(fires(&turned, "layout/transpose-out", &[]) > 0);
    assert_eq!(searched(&turned, &small()).outline(), ["product"]);
}

#[test]
fn transposes_of_transposes_are_one_or_none() {
    let twice = |first: [u8; 3], second: [u8; 3]| {
        model(|f| {
            let x = f.input(vec![f.m.clone(), 2.into(), 5.into()]);
            let y = f.g.transpose(x, &first);
            vec![f.g.transpose(y, &second)]
        })
    };
    let transposes = |graph: &Graph| {
        let normal = same_values(&plain(graph), ALL);
        normal.nodes.iter().filter(|n| matches!(n.op, Op::Transpose(_))).count()
    };
    assert_eq!(transposes(&twice([1, 2, 0], [1, 2, 0])), 1);
    assert_eq!(transposes(&twice([1, 2, 0], [2, 0, 1])), 0);
    assert_eq!(transposes(&twice([1, 2, 0], [0, 2, 1])), 1);
    assert!(fires(&twice([1, 2, 0], [2, 0, 1]), "layout/transpose-transpose", &[]) > 0);
    let once = of_rows(|f, x| f.g.transpose(x, &[1, 0]));
    assert_eq!(fires(&once, "layout/transpose-transpose", &[]), 0);
}

#[test]
fn reshapes_of_results_split_the_weight() {
    let shaped = |sizes: fn(&Dim) -> Vec<Dim>| {
        after_product(|f, y| {
            let sizes = sizes(&f.m);
            f.g.reshape(y, sizes)
        })
    };
    assert!(fires(&shaped(|m| vec![m.clone(), 2.into(), 3.into()]), "layout/split-label", &[]) > 0);
    assert_eq!(fires(&shaped(|m| vec![m * &6.into()]), "layout/split-label", &[]), 0);
    let twice = of_rows(|f, x| {
        let y = f.g.reshape(x, vec![f.m.clone(), 2.into(), 2.into()]);
        let flat = vec![&f.m * &2.into(), 2.into()];
        f.g.reshape(y, flat)
    });
    assert_eq!(fires(&twice, "layout/reshape-reshape", &[]), 1);
    assert_eq!(fires(&shaped(|m| vec![m * &6.into()]), "layout/reshape-reshape", &[]), 0);
}

#[test]
fn pointwise_loops_run_before_a_reshape() {
    let flat = |f: &mut Model, x: ValueId| {
        let shape = vec![&f.m * &4.into()];
        f.g.reshape(x, shape)
    };
    let scaled = of_rows(|f, x| {
        let y = flat(f, x);
        let s = f.input(vec![]);
        f.g.mul(y, s)
    });
    assert!(fires(&scaled, "layout/reshape-loop", &[]) > 0);
    let both = of_rows(|f, x| {
        let y = flat(f, x);
        let z = f.input(f.rows(4));
        let z = flat(f, z);
        f.g.sub(y, z)
    });
    assert!(fires(&both, "layout/reshape-loop", &[]) > 0);
    let other = of_rows(|f, x| {
        let y = flat(f, x);
        let z = f.input(vec![&f.m * &4.into()]);
        f.g.sub(y, z)
    });
    assert_eq!(fires(&other, "layout/reshape-loop", &[]), 0);
    let summed = of_rows(|f, x| {
        let y = flat(f, x);
        f.g.row_sum(y)
    });
    assert_eq!(fires(&summed, "layout/reshape-loop", &[]), 0);
    let normal = of_rows(|f, x| {
        let shape = vec![f.m.clone(), 2.into(), 2.into()];
        let y = f.g.reshape(x, shape);
        composite::softmax(&mut f.g, y)
    });
    assert_eq!(fires_collapsed(&normal, "layout/reshape-loop", &[]), 0);
    let placed = of_rows(|f, x| {
        let shape = vec![f.m.clone(), 2.into(), 2.into()];
        let y = f.g.reshape(x, shape);
        let column = f.g.index(0, y);
        let column = f.g.cast(DType::F32, column);
        f.g.mul(y, column)
    });
    assert_eq!(fires_collapsed(&placed, "layout/reshape-loop", &[]), 0);
}

#[test]
fn products_of_the_same_rows_pack_unless_one_needs_the_other() {
    let two = |dependent: bool| {
        model(|f| {
            let shape = f.rows(4);
            let (x, a, b) = (f.input(shape), f.tensor(&[6, 4]), f.tensor(&[4, 4]));
            let u = einsum(&mut f.g, "mk,nk->mn", x, b);
            let v = einsum(&mut f.g, "mk,nk->mn", if dependent { u } else { x }, a);
            vec![u, v]
        })
    };
    assert!(fires(&two(false), "pack/products", &[]) > 0);
    assert_eq!(fires(&two(true), "pack/products", &[]), 0);
}

#[test]
fn a_value_for_all_rows_is_not_repeated_for_each() {
    let scalar = of_rows(|f, x| {
        let s = f.input(dims(&[1, 1]));
        let e = f.g.un(Un::Exp, s);
        f.g.mul(x, e)
    });
    let dag = plain(&scalar);
    assert_eq!(dag.clone().collapse().nodes.len(), dag.nodes.len());
}

#[test]
fn a_loss_packs_with_its_gradient_and_a_bias_gradient_with_its_weights() {
    let normal = |graph: &Graph| normal_form(&plain(graph), ALL);
    let loss = normal(&cross_entropy(5));
    assert!(fires_on(&loss, "pack/loops", &["fuse/loops"]) > 0);
    assert_eq!(fires_on(&normal(&all_logits(4, 5)), "pack/loops", &["fuse/loops"]), 0);
    assert!(fires_on(&normal(&mlp_backward(4, 6, 3)), "pack/column-sum", &[]) > 0);
    assert_eq!(fires_on(&loss, "pack/column-sum", &[]), 0);
}

/// Every rule has been named above.
#[test]
fn no_rule_is_untested() {
    let tests = include_str!("rules.rs");
    ALL.iter().for_each(|r| assert!(tests.contains(&format!("\"{}\"", r.name)), "{} has no test", r.name));
}

/// All classes of all example graphs, normal form against the original included.
#[test]
fn saturation_keeps_values() {
    let graphs = [
        decoder_layer(TINY),
        all_logits(4, 5),
        cross_entropy(5),
        mlp(4, 6, 3),
        mlp_backward(4, 6, 3),
        mlp_backward(3, 3, 3),
        softmax_gate(4, 5),
        wide(4),
    ];
    let mut compared = 0;
    for graph in &graphs {
        let normal = same_values(&plain(graph), ALL);
        let (mut eg, _) = normal.to_egraph();
        saturate(&mut eg, ALL, Limits::default()).unwrap();
        compared += check_classes(&eg, &small()).unwrap();
    }
    assert!(compared > 300, "{compared} nodes compared");
}

/// A statistic is gathered in one pass and of floats; a deviation from the mean takes two.
#[test]
fn row_scales_take_what_one_pass_over_floats_gathers() {
    let scaled = |scale: fn(&mut Model, ValueId) -> ValueId| {
        before_product(|f, x| {
            let s = scale(f, x);
            f.g.mul(x, s)
        })
    };
    let with = ["fuse/prologue-a"];
    let deviation = scaled(|f, x| {
        let mean = composite::mean(&mut f.g, x, &[1]);
        let centred = f.g.sub(x, mean);
        let square = f.g.mul(centred, centred);
        f.g.row_sum(square)
    });
    assert_eq!(fires_collapsed(&deviation, "algebra/row-scale", &with), 0);
    let counted = scaled(|f, x| {
        let zero = f.g.constant(0.0);
        let positive = f.g.bin(Bin::Lt, zero, x);
        let ones = f.g.cast(DType::U32, positive);
        let count = f.g.row_sum(ones);
        f.g.cast(DType::F32, count)
    });
    assert_eq!(fires_collapsed(&counted, "algebra/row-scale", &with), 0);
    let largest = scaled(|f, x| f.g.row_max(x));
    assert!(fires_collapsed(&largest, "algebra/row-scale", &with) > 0);
}

/// Two accumulators of one tile: a product whose rows are the other's columns has another.
#[test]
fn accumulators_share_a_tile() {
    let sum = |second: &'static str| {
        model(|f| {
            let square = vec![f.m.clone(), f.m.clone()];
            let (x, y) = (f.input(square.clone()), f.input(square));
            let u = einsum(&mut f.g, "mk,nk->mn", x, y);
            let v = einsum(&mut f.g, second, y, x);
            vec![f.g.add(u, v)]
        })
    };
    assert!(fires(&sum("mk,kn->mn"), "fuse/accumulators", &["fuse/epilogue"]) > 0);
    assert_eq!(fires(&sum("mk,kn->nm"), "fuse/accumulators", &["fuse/epilogue"]), 0);
}

/// What only a stack wants whole is a view of what its reader splits: no second product.
#[test]
fn a_product_that_is_split_and_stored_is_one_product() {
    let stored = model(|f| {
        let shape = f.rows(4);
        let (x, w) = (f.input(shape), f.tensor(&[6, 4]));
        let y = einsum(&mut f.g, "mk,nk->mn", x, w);
        let heads = f.g.reshape(y, vec![f.m.clone(), 2.into(), 3.into()]);
        vec![y, f.g.un(Un::Relu, heads)]
    });
    let outline = searched(&stored, &small()).outline();
    assert_eq!(outline.iter().filter(|kernel| kernel.contains("product")).count(), 1, "{outline:?}");
    let added = model(|f| {
        let shape = f.rows(4);
        let (x, w, b) = (f.input(shape), f.tensor(&[6, 4]), f.tensor(&[6]));
        let y = einsum(&mut f.g, "mk,nk->mn", x, w);
        let heads = f.g.reshape(y, vec![f.m.clone(), 2.into(), 3.into()]);
        vec![f.g.add(y, b), f.g.un(Un::Relu, heads)]
    });
    assert_eq!(fires(&added, "layout/split-label", &[]), 0);
}

#[test]
fn only_floats_are_multiplied() {
    // A u32 tensor converted on the way: its conversion may run before the product, the tensor itself not.
    let converted = model(|f| {
        let shape = f.rows(4);
        let x = f.argument(shape, DType::U32);
        let y = f.g.cast(DType::F32, x);
        let w = f.tensor(&[6, 4]);
        vec![einsum(&mut f.g, "mk,nk->mn", y, w)]
    });
    assert!(fires(&converted, "fuse/prologue-a", &[]) > 0);
    assert_eq!(searched(&converted, &small()).outline(), ["pro product"]);
}
