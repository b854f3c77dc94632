//! Every composite: value, gradient, the stated derivative against that of the body, and the numbers that go wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;

use super::*;
use crate::autodiff::Policy;
use crate::interp;
use crate::ir::{StoreKind, Type};
use crate::ops::Op;
use crate::ops::tests::{check, dims, looped, middle, plain};
use crate::testing::*;

type Build = fn(&mut Graph, ValueId) -> ValueId;
/// A row to a row, or to one number.
type Formula = fn(&[f64]) -> Vec<f64>;

const ROWS: [(&str, Build, Formula); 17] = [
    ("silu", silu, |x| each(x, |x| x / (1.0 + (-x).exp()))),
    ("gelu", gelu, |x| each(x, |x| x * Un::Erf.eval(x / 2f64.sqrt()).mul_add(0.5, 0.5))),
    ("gelu_tanh", gelu_tanh, |x| {
        each(x, |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            x / (1.0 + (-2.0 * inner).exp())
        })
    }),
    ("relu6", |g, x| scaled(g, x, relu6), |x| each(x, |x| (5.0 * x).clamp(0.0, 6.0))),
    ("hardsigmoid", |g, x| scaled(g, x, hardsigmoid), |x| each(x, |x| (5.0 * x / 6.0 + 0.5).clamp(0.0, 1.0))),
    ("hardswish", |g, x| scaled(g, x, hardswish), |x| each(x, |x| 5.0 * x * (5.0 * x / 6.0 + 0.5).clamp(0.0, 1.0))),
    ("leaky_relu", |g, x| leaky_relu(g, x, 0.2), |x| each(x, |x| x.max(0.0) + 0.2 * x.min(0.0))),
    ("elu", |g, x| elu(g, x, 1.3), |x| each(x, |x| if x > 0.0 { x } else { 1.3 * x.exp_m1() })),
    ("softmax", softmax, |x| {
        let sum: f64 = x.iter().map(|x| x.exp()).sum();
        each(x, |x| x.exp() / sum)
    }),
    ("log_softmax", log_softmax, |x| {
        let sum: f64 = x.iter().map(|x| x.exp()).sum();
        each(x, |x| x - sum.ln())
    }),
    ("logsumexp", logsumexp, |x| vec![x.iter().map(|x| x.exp()).sum::<f64>().ln()]),
    (
        "rms_norm",
        |g, x| rms_norm(g, x, 1e-3),
        |x| {
            let rms = (mean_square(x, 0.0) + 1e-3).sqrt();
            each(x, |x| x / rms)
        },
    ),
    (
        "layer_norm",
        |g, x| layer_norm(g, x, 1e-3),
        |x| {
            let mean = average(x);
            let deviation = (mean_square(x, mean) + 1e-3).sqrt();
            each(x, |x| (x - mean) / deviation)
        },
    ),
    ("mean", |g, x| last(g, x, mean), |x| vec![average(x)]),
    ("var", |g, x| last(g, x, |g, x, axes| var(g, x, axes, 0)), |x| vec![mean_square(x, average(x))]),
    ("norm", |g, x| last(g, x, norm), |x| vec![(mean_square(x, 0.0) * x.len() as f64).sqrt()]),
    (
        "softmax of softmax",
        |g, x| {
            let inner = softmax(g, x);
            softmax(g, inner)
        },
        |x| {
            let sum: f64 = x.iter().map(|x| x.exp()).sum();
            let inner: f64 = x.iter().map(|x| (x.exp() / sum).exp()).sum();
            each(x, |x| (x.exp() / sum).exp() / inner)
        },
    ),
];

fn each(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|x| f(*x)).collect()
}

fn average(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn mean_square(x: &[f64], from: f64) -> f64 {
    x.iter().map(|x| (x - from).powi(2)).sum::<f64>() / x.len() as f64
}

/// Over a range that reaches both corners.
fn scaled(g: &mut Graph, x: ValueId, f: Build) -> ValueId {
    let x = g.with_const(Bin::Mul, x, 5.0);
    f(g, x)
}

fn last(g: &mut Graph, x: ValueId, f: fn(&mut Graph, ValueId, &[u8]) -> ValueId) -> ValueId {
    let axis = g.shape(x).len() as u8 - 1;
    f(g, x, &[axis])
}

fn by_rows(x: &Tensor, f: Formula) -> Tensor {
    let length = *x.shape.last().unwrap();
    let data: Vec<f64> = x.data.chunks(length as usize).flat_map(f).collect();
    let mut shape = x.shape.clone();
    *shape.last_mut().unwrap() = data.len() as i64 * length / x.data.len() as i64;
    Tensor { shape, data }
}

#[test]
fn every_composite_of_rows() {
    for shape in [&[3, 5][..], &[2, 1, 7], &[11]] {
        for (_, build, formula) in ROWS {
            check(&[shape], &plain, &|g, x| build(g, x[0]), &|x| by_rows(&x[0], formula));
        }
    }
}

#[test]
fn rows_of_one_element() {
    for (name, build, formula) in ROWS {
        let (g, _) = middle(&[&[3, 1]], &plain, &|g, x| build(g, x[0]));
        let env = bind(&g, &[]);
        let found = interp::graph::run(&g, &env, &contents(&g, &env, 3));
        assert_close(name, &found[1].data, &by_rows(&found[0], formula).data, 1e-12);
    }
}

/// The graph with every composite's derivative forgotten.
fn by_bodies(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    for node in &mut graph.nodes {
        if let Op::Call(call) = &mut node.op {
            call.derivative = None;
        }
    }
    graph
}

fn same_gradients(name: &str, g: &Graph, loss: ValueId, dims: &[i64]) {
    for policy in POLICIES {
        let stated = outputs(&training(g, loss, policy), dims, 9);
        let body = outputs(&training(&by_bodies(g), loss, policy), dims, 9);
        assert_eq!(stated.len(), body.len());
        for ((_, stated), (output, body)) in stated.iter().zip(&body) {
            assert_close(&format!("{output} of {name}"), &stated.data, &body.data, 1e-10);
        }
    }
}

#[test]
fn a_stated_derivative_is_that_of_the_body() {
    for (name, build, _) in ROWS {
        for make in [middle, looped] {
            let (g, loss) = make(&[&[3, 7]], &plain, &|g, x| build(g, x[0]));
            same_gradients(name, &g, loss, &[]);
        }
    }
    let (g, loss) = classification();
    same_gradients("cross_entropy", &g, loss, &[3, 4]);
}

#[test]
fn statistics_over_other_axes() {
    let mean_of = |x: &Tensor, f: &dyn Fn(&[f64]) -> f64| {
        Tensor::from_fn(&[1, 3, 1], |i| {
            let of = |k: usize| x.data[(k / 5 * 3 + i[1] as usize) * 5 + k % 5];
            f(&(0..10).map(of).collect::<Vec<_>>())
        })
    };
    let shape = [&[2i64, 3, 5][..]];
    check(&shape, &plain, &|g, x| mean(g, x[0], &[0, 2]), &|x| mean_of(&x[0], &average));
    let unbiased = |x: &[f64]| mean_square(x, average(x)) * 10.0 / 9.0;
    check(&shape, &plain, &|g, x| var(g, x[0], &[0, 2], 1), &|x| mean_of(&x[0], &unbiased));
    let length = |x: &[f64]| (mean_square(x, 0.0) * 10.0).sqrt();
    check(&shape, &plain, &|g, x| norm(g, x[0], &[0, 2]), &|x| mean_of(&x[0], &length));
}

#[test]
fn mean_squared_error() {
    let formula = |x: &[Tensor]| {
        let errors = x[0].data.iter().zip(&x[1].data).map(|(a, b)| (a - b).powi(2));
        Tensor::scalar(errors.sum::<f64>() / 15.0)
    };
    check(&[&[3, 5], &[3, 5]], &plain, &|g, x| mse(g, x[0], x[1]), &formula);
}

/// Logits `[batch, seq, 7]` over runtime dimensions.
fn classification() -> (Graph, ValueId) {
    let mut symbols = Symbols::default();
    let (batch, seq) = (symbols.declare("batch", 1, 9, 1), symbols.declare("seq", 1, 9, 1));
    let mut g = Graph::new(symbols);
    let given = g.argument(0, "given", Type::float(vec![batch.clone(), seq.clone(), 7.into()]));
    let gain = trained(&mut g, "gain", &[], &dims(&[7]));
    let logits = g.mul(given, gain);
    let labels = g.argument(1, "labels", Type { shape: vec![batch, seq], dtype: DType::U32 });
    g.stores.last_mut().unwrap().below = Some(Dim::from(7));
    let loss = cross_entropy(&mut g, logits, labels);
    let loss = g.with_const(Bin::Mul, loss, 2.5);
    let square = g.mul(gain, gain);
    let extra = g.sum_all(square);
    let loss = g.add(loss, extra);
    result(&mut g, "logits", logits);
    result(&mut g, "loss", loss);
    (g, loss)
}

#[test]
fn cross_entropy_is_the_mean_of_minus_log_p() {
    let (g, loss) = classification();
    let env = bind(&g, &[3, 4]);
    let stores = contents(&g, &env, 2);
    let found = interp::graph::run(&g, &env, &stores);
    let rows = found[0].data.chunks(7).zip(&stores[2].data).map(|(row, label)| {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        sum.ln() - row[*label as usize]
    });
    let extra: f64 = stores[1].data.iter().map(|x| x * x).sum();
    assert_close("loss", &found[1].data, &[2.5 * rows.sum::<f64>() / 12.0 + extra], 1e-12);
    check_gradients(&g, loss, &[3, 4], 2, Policy::default());
    check_gradients(&g, loss, &[1, 1], 2, Policy::default());
}

/// Result and gradient of a sum weighted by 1, 2, 3, ...
fn at(x: &[f64], rows: i64, build: Build) -> (Vec<f64>, Vec<f64>) {
    let mut g = Graph::new(Symbols::default());
    let columns = x.len() as i64 / rows;
    let value = trained(&mut g, "x", &[], &dims(&[rows, columns]));
    let y = build(&mut g, value);
    let shape = g.shape(y).clone();
    let w = frozen(&mut g, "w", &[], &shape);
    let weighted = g.mul(y, w);
    let loss = g.sum_all(weighted);
    result(&mut g, "y", y);
    let trained = training(&g, loss, Policy::default());
    let mut next = 0.0;
    let w = Tensor::from_fn(&bind(&g, &[]).shape(&shape), |_| {
        next += 1.0;
        next
    });
    let x = Tensor { shape: vec![rows, columns], data: x.to_vec() };
    assert!(matches!(g.stores[0].kind, StoreKind::Tensor { trained: true, .. }));
    let mut found = interp::graph::run(&trained, &bind(&g, &[]), &[x, w]).into_iter();
    (found.next().unwrap().data, found.next().unwrap().data)
}

#[test]
fn a_masked_row_is_0_with_zero_gradient() {
    for masked in [f64::NEG_INFINITY, -3.4e38, -1e30] {
        let (y, gradient) = at(&[0.0, 1.0, masked, masked, 0.5, masked], 3, softmax);
        assert_close("softmax", &y, &[0.268941421, 0.731058579, 0.0, 0.0, 1.0, 0.0], 1e-8);
        let slope = 0.268941421 * 0.731058579;
        assert_close("gradient", &gradient, &[-slope, slope, 0.0, 0.0, 0.0, 0.0], 1e-8);
        assert_eq!(at(&[masked; 3], 1, log_softmax).1, [0.0; 3]);
        assert_eq!(at(&[masked; 3], 1, logsumexp).1, [0.0; 3]);
        assert!(at(&[masked; 3], 1, logsumexp).0[0] <= MASKED);
    }
    let (y, gradient) = at(&[-1e4, -1e4 + 1.0], 1, softmax);
    assert_close("a bias", &y, &[0.268941421, 0.731058579], 1e-8);
    assert!(gradient[0] < -0.19);
}

#[test]
fn activations_of_large_arguments() {
    let x = [-1e4, -100.0, -45.0, -13.5, 13.5, 44.0, 100.0, 1e4];
    for build in [gelu, gelu_tanh, silu, |g: &mut Graph, x| elu(g, x, 1.0)] {
        let (y, gradient) = at(&x, 1, build);
        assert!(y.iter().chain(&gradient).all(|x| x.is_finite()), "{y:?} {gradient:?}");
    }
    for build in [gelu, gelu_tanh] {
        let (y, _) = at(&x, 1, build);
        assert_close("gelu", &y, &[0.0, 0.0, 0.0, 0.0, 13.5, 44.0, 100.0, 1e4], 1e-6);
    }
}

#[test]
fn the_two_forms_of_gelu_are_not_mixed() {
    let (y, gradient) = at(&[1.0, -1.0, -5.0], 1, gelu);
    assert_close("erf", &y, &[0.8413447, -0.1586553, -1.43326e-6], 1e-7);
    assert_close("slope", &gradient[1..2], &[2.0 * -0.083315], 1e-5);
    let (y, gradient) = at(&[1.0, -1.0], 1, gelu_tanh);
    assert_close("tanh", &y[..1], &[0.8411920], 1e-7);
    assert_close("slope", &gradient[1..], &[2.0 * -0.082964], 1e-5);
}

#[test]
fn variance_is_not_a_difference_of_squares() {
    let (y, _) = at(&[10000.0, 10001.0, 10002.0, 10003.0], 1, |g, x| layer_norm(g, x, 1e-5));
    assert_close("layer_norm", &y, &[-1.341635, -0.447212, 0.447212, 1.341635], 1e-6);
    let (y, _) = at(&[33.3; 576], 1, |g, x| layer_norm(g, x, 1e-5));
    assert!(y.iter().all(|x| x.abs() < 1e-9));
    let (y, gradient) = at(&[0.0; 5], 1, |g, x| rms_norm(g, x, 1e-6));
    assert_eq!(y, [0.0; 5]);
    assert!(gradient.iter().all(|x| x.is_finite()));
    assert_eq!(at(&[0.0; 3], 1, |g, x| last(g, x, norm)), (vec![0.0], vec![0.0; 3]));
}

#[test]
fn cross_entropy_of_large_logits_is_exact() {
    for (label, loss, gradient) in [(0.0, 0.0, [0.0, 0.0]), (1.0, 1000.0, [1.0, -1.0])] {
        let mut g = Graph::new(Symbols::default());
        let x = trained(&mut g, "x", &[], &dims(&[1, 2]));
        let labels = g.argument(0, "labels", Type { shape: dims(&[1]), dtype: DType::U32 });
        let value = cross_entropy(&mut g, x, labels);
        result(&mut g, "loss", value);
        let trained = training(&g, value, Policy::default());
        let x = Tensor { shape: vec![1, 2], data: vec![1000.0, 0.0] };
        let found = interp::graph::run(&trained, &bind(&g, &[]), &[x, Tensor { shape: vec![1], data: vec![label] }]);
        assert_eq!((found[0].data[0], &found[1].data[..]), (loss, &gradient[..]));
    }
}

#[test]
fn corners_have_the_slopes_of_pytorch() {
    assert_eq!(at(&[0.0, 6.0, 3.0], 1, relu6).1, [0.0, 0.0, 3.0]);
    assert_eq!(at(&[-3.0, 3.0], 1, hardsigmoid).1, [0.0, 0.0]);
    assert_eq!(at(&[0.0], 1, |g, x| leaky_relu(g, x, 0.2)).1, [0.2]);
    assert_eq!(at(&[0.0], 1, |g, x| elu(g, x, 1.5)).1, [1.5]);
}

#[test]
fn an_inner_value_that_the_loss_reads_has_a_gradient_too() {
    let (g, loss) = middle(&[&[3, 5]], &plain, &|g, x| {
        let y = rms_norm(g, x[0], 1e-3);
        let node = g.value(y).def.unwrap().0;
        let r = g.node(node).outputs[1];
        g.mul(y, r)
    });
    check_gradients(&g, loss, &[], 4, Policy::default());
}
