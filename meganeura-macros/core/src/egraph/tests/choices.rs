//! What the search chooses: the kernels of whole blocks, and the choices that depend on sizes.

use meganeura_shaders::pointwise::{Bin, Un};

use super::models::*;
use super::*;
use crate::egraph::{Memo, choose, dump, fuse};
use crate::ops::{self, composite};

/// Gate, up and the norm before them, and what follows: one kernel with two accumulators; bias, activation and residual
/// behind products; query, key and value in one launch.
#[test]
fn a_decoder_layer_is_six_kernels() {
    let expected = [
        "stat product epi | stat product epi | stat product epi",
        "product",
        "pro product",
        "product epi",
        "stat product×2 epi",
        "product epi",
    ];
    for m in [1, 128, 2048] {
        assert_eq!(searched(&decoder_layer(SMOLLM2), &at(m)).outline(), expected, "at {m}");
    }
}

/// `x V + softmax(x W)`: the product with the sum behind it waits for the other, so the bare products share a launch.
#[test]
fn packed_products_do_not_wait_for_each_other() {
    let searched = searched(&softmax_gate(576, 64), &at(1));
    assert_eq!(searched.outline()[0], "product | product");
    let packs = searched.eg.classes().flat_map(|class| &class.nodes).filter(|n| matches!(n.op, Op::Launch(_)));
    let products = packs.filter(|n| outline(&n.op).matches("product").count() == 2);
    assert_eq!(products.count(), 1, "and nothing else is offered");
}

/// A transpose before a loop is a label order of the product behind it.
#[test]
fn views_reach_over_loops() {
    let graph = model(|f| {
        let shape = f.rows(4);
        let (x, w) = (f.input(shape), f.tensor(&[6, 4]));
        let turned = f.g.transpose(w, &[1, 0]);
        let x = f.g.repeat(&3.into(), false, &[x], &[], |g, _, x, _| (vec![g.un(Un::Tanh, x[0])], vec![]))[0];
        vec![matmul(&mut f.g, x, turned)]
    });
    let fused = fuse(&graph).unwrap();
    assert!(!fused.nodes.iter().any(|n| matches!(n.op, ops::Op::Transpose(_))), "{fused}");
}

/// Every dimension counts 128, if it may; the same graph with other bounds has other kernels.
#[test]
fn choices_are_made_at_a_size_within_the_bounds() {
    let at = |low: i64, high: i64, step: i64| {
        let mut symbols = Symbols::default();
        let n = symbols.declare("n", low, high, step);
        n.eval(&crate::egraph::cost::representative(&symbols))
    };
    assert_eq!([at(1, 1000, 1), at(1, 7, 1), at(300, 1000, 1), at(3, 1000, 50)], [128, 7, 300, 103]);
    let kernels = fuse(&all_logits(576, 49152)).unwrap();
    let kernels = kernels.nodes.iter().filter(|n| matches!(n.op, ops::Op::Kernel(_))).count();
    assert_eq!(kernels, 2, "at 1 it would be one kernel");
}

#[test]
fn bias_activation_and_residual_are_behind_the_product() {
    assert_eq!(searched(&mlp(64, 128, 10), &at(128)).outline(), ["product epi", "product epi"]);
}

#[test]
fn a_loss_and_its_gradient_share_a_pass_over_the_logits() {
    let outline = searched(&cross_entropy(10), &at(64)).outline();
    assert!(outline.contains(&"rows | rows".to_string()), "{outline:?}");
}

#[test]
fn gradients_fuse_like_anything_else() {
    let mut kernels = searched(&mlp_backward(512, 1024, 256), &at(256)).outline();
    kernels.sort();
    // norm · W₁ + b₁ with relu · W₂ · dW₂ · dh with the relu's mask · dW₁ with the bias gradient · dn · d gain · dx
    let expected = [
        "column sum",
        "column sum | product",
        "product",
        "product",
        "product",
        "product epi",
        "product epi",
        "rows",
        "rows | rows",
    ];
    assert_eq!(kernels, expected);
}

/// A loop's body is fused once, whatever the count; the loop stays, and so do stores and outputs.
#[test]
fn a_loop_is_fused_once_whatever_the_count() {
    let kernels = |layers: i64| {
        let mut memo = Memo::default();
        let fused = choose(&normalise(&decoder(SMOLLM2, layers)), &mut memo).unwrap();
        fused.verify().unwrap();
        assert_eq!((memo.len(), fused.stores.len(), fused.outputs.len()), (1, 11, 1));
        fused.to_string().replace(&format!("repeat {layers} up"), "repeat").replace(&format!("[{layers}, "), "[")
    };
    assert_eq!(kernels(2), kernels(30));
}

/// Two loops over the same body are one region.
#[test]
fn equal_regions_are_searched_once() {
    let twice = model(|f| {
        let shape = f.rows(5);
        let (x, w, v) = (f.input(shape), f.array(&[3, 5, 5]), f.array(&[4, 5, 5]));
        let mut x = x;
        for (count, w) in [(3, w), (4, v)] {
            x = f.g.repeat(&count.into(), false, &[x], &[w], |g, _, x, w| {
                let y = linear(g, x[0], w[0]);
                (vec![g.un(Un::Relu, y)], vec![])
            })[0];
        }
        vec![x]
    });
    let mut memo = Memo::default();
    let fused = choose(&normalise(&twice), &mut memo).unwrap();
    fused.verify().unwrap();
    assert_eq!(memo.len(), 1);
}

#[test]
fn a_kernel_knows_the_value_that_it_computes_and_the_rules_that_made_it() {
    let graph = model(|f| {
        let shape = f.rows(5);
        let (x, gain, w) = (f.input(shape), f.tensor(&[5]), f.tensor(&[7, 5]));
        f.g.origin.path = "net.norm".into();
        let n = composite::rms_norm(&mut f.g, x, 1e-5);
        let n = f.g.mul(n, gain);
        f.g.origin.path = "net.head".into();
        f.g.origin.statement = 2;
        let y = linear(&mut f.g, n, w);
        f.g.origin.statement = 3;
        vec![composite::silu(&mut f.g, y)]
    });
    let fused = fuse(&graph).unwrap();
    let kernels: Vec<_> =
        fused.nodes.iter().filter(|n| matches!(n.op, ops::Op::Kernel(_))).map(|n| &n.origin).collect();
    assert_eq!(kernels.len(), 1);
    let origin = kernels[0];
    assert_eq!(
        (origin.path.as_str(), origin.statement, origin.what.as_str()),
        ("net.head", 3, "rms_norm · * · @ · silu")
    );
    assert_eq!(origin.rules, ["fuse/epilogue", "fuse/prologue-a", "algebra/row-scale"]);
}

#[test]
fn the_dump_names_kernels_rules_and_prices() {
    let text = dump(&mlp(64, 128, 10)).unwrap();
    assert!(text.starts_with("block 0 region 0: ") && text.contains("relu(a + b)"), "{text}");
    assert!(text.contains("# fuse/epilogue") && text.ends_with(" µs\n"), "{text}");
}

#[test]
fn a_norm_is_fused_where_that_is_cheaper() {
    assert_eq!(searched(&all_logits(576, 49152), &at(1)).outline(), ["stat product epi"]);
    assert_eq!(searched(&all_logits(576, 49152), &at(2048)).outline(), ["rows", "product"]);
}

#[test]
fn a_formula_by_hand_is_the_kernel_of_the_composite() {
    let silu = |by_hand: bool| {
        model(|f| {
            let shape = f.rows(5);
            let x = f.input(shape);
            let y = match by_hand {
                true => {
                    let s = f.g.un(Un::Sigmoid, x);
                    f.g.mul(s, x)
                }
                false => composite::silu(&mut f.g, x),
            };
            vec![y]
        })
    };
    assert_eq!(searched(&silu(true), &small()).kernels(), searched(&silu(false), &small()).kernels());
    let norm = |by_hand: bool| {
        model(|f| {
            let shape = f.rows(5);
            let x = f.input(shape);
            let gain = f.tensor(&[5]);
            let g = &mut f.g;
            let n = match by_hand {
                true => {
                    let square = g.mul(x, x);
                    let mean = composite::mean(g, square, &[1]);
                    let shifted = g.with_const(Bin::Add, mean, 1e-5);
                    let r = g.un(Un::Rsqrt, shifted);
                    g.mul(r, x)
                }
                false => composite::rms_norm(g, x, 1e-5),
            };
            vec![g.mul(n, gain)]
        })
    };
    let (hand, built_in) = (searched(&norm(true), &small()), searched(&norm(false), &small()));
    assert_eq!(hand.kernels(), built_in.kernels());
    assert_eq!(hand.outline(), ["rows"]);
}
