//! Values of small models against formulas written out in f64, at odd sizes.

use std::collections::BTreeMap;

use meganeura_shaders::reference::Tensor;
use meganeura_shaders::schedule::Check;

use super::clean;
use crate::interp::graph::run;
use crate::testing::{assert_close, bind, contents};

/// The contents of stores by name, and the results of the first entry.
struct Outcome {
    stores: BTreeMap<String, Tensor>,
    results: Vec<Tensor>,
}

impl Outcome {
    /// An element of a store.
    fn at(&self, name: &str, index: &[i64]) -> f64 {
        let Tensor { shape, data } = &self.stores[name];
        assert_eq!(shape.len(), index.len(), "{name}");
        data[shape.iter().zip(index).fold(0, |offset, (size, k)| offset * size + k) as usize]
    }

    /// Result k is what `f` says, in shape and in every element, and not constant unless it is one number.
    fn check(&self, k: usize, shape: &[i64], f: impl Fn(&[i64]) -> f64) {
        let expected = Tensor::from_fn(shape, f);
        assert_eq!(self.results[k].shape, shape, "result {k}");
        assert!(shape.is_empty() || expected.data.iter().any(|x| *x != expected.data[0]), "result {k} shows nothing");
        assert_close(&format!("result {k}"), &self.results[k].data, &expected.data, 1e-12);
    }
}

fn evaluate(text: &str, dims: &[i64]) -> Outcome {
    let resolved = clean(text);
    let graph = &resolved.entries[0].graph;
    let env = bind(graph, dims);
    let given = contents(graph, &env, 7);
    let results = run(graph, &env, &given);
    let stores = graph.stores.iter().map(|store| store.name.clone()).zip(given).collect();
    Outcome { stores, results }
}

/// A function over `x: f32[n, 3, 5]`, `m: f32[n, 5]`, `ids: u32[n]`, `mask: bool[n, 5]`, at n = 4.
fn function(result: &str, body: &str) -> Outcome {
    let text = format!(
        "model M<n in 1..=64, width = 5> {{
            pub fn f(x: f32[n, 3, 5], m: f32[n, 5], ids: u32[n], mask: bool[n, 5]) -> {result} {{ {body} }}
        }}"
    );
    evaluate(&text, &[4])
}

fn total(count: i64, f: impl Fn(i64) -> f64) -> f64 {
    (0..count).map(f).sum()
}

#[test]
fn a_classifier_is_two_products_and_a_mean_of_logarithms() {
    let out = evaluate(
        "model M<n in 1..=64> {
            a: Linear<5, 7>, b: Linear<7, 3, bias = false>,
            pub fn loss(x: f32[n, 5], label: u32[n]) -> (f32, f32[n, 3]) {
                let y = b(tanh(a(x)));
                (cross_entropy(y, label), y)
            }
        }",
        &[6],
    );
    let hidden =
        |i, j| (out.at("a.bias", &[j]) + total(5, |k| out.at("x", &[i, k]) * out.at("a.weight", &[j, k]))).tanh();
    let scores = |i, c| total(7, |j| hidden(i, j) * out.at("b.weight", &[c, j]));
    out.check(1, &[6, 3], |at| scores(at[0], at[1]));
    let row = |i| total(3, |c| f64::exp(scores(i, c))).ln() - scores(i, out.at("label", &[i]) as i64);
    out.check(0, &[], |_| total(6, row) / 6.0);
}

#[test]
fn loops_inside_loops_take_their_own_rows() {
    let out = evaluate(
        "layer Scale { param w: f32[3] = ones; fn forward(x: f32[.., 3]) -> f32[.., 3] { x * w + x } }
        layer Stage {
            inner: [Scale; 4], last: Scale,
            fn forward(x: f32[.., 3]) -> f32[.., 3] {
                let mut y = x;
                for s in inner { y = s(y) - x; }
                last(y)
            }
        }
        model M<n in 1..=64> {
            stages: [Stage; 2],
            pub fn f(x: f32[n, 3]) -> (f32[n, 3], f32) {
                let mut y = x;
                let mut sum_of_means = 0;
                for stage in stages { y = stage(y); sum_of_means += mean(y); }
                for stage in stages { y = stage.last(y) * 2; }
                (y, sum_of_means)
            }
        }",
        &[5],
    );
    let step = |y: f64, w: f64| y * w + y;
    let forward = |i: i64, c: i64, stages: i64| {
        (0..stages).fold(out.at("x", &[i, c]), |x, k| {
            let y = (0..4).fold(x, |y, j| step(y, out.at("stages.{}.inner.{}.w", &[k, j, c])) - x);
            step(y, out.at("stages.{}.last.w", &[k, c]))
        })
    };
    out.check(0, &[5, 3], |at| {
        (0..2).fold(forward(at[0], at[1], 2), |y, k| 2.0 * step(y, out.at("stages.{}.last.w", &[k, at[1]])))
    });
    out.check(1, &[], |_| (1..=2).map(|stages| total(15, |k| forward(k / 3, k % 3, stages)) / 15.0).sum());
}

#[test]
fn norms_use_their_weights() {
    let out = evaluate(
        "model M<n in 1..=64> {
            a: RmsNorm<7>, b: LayerNorm<7>, c: LayerNorm<7, eps = 0.5, bias = false>,
            pub fn f(x: f32[n, 7]) -> (f32[n, 7], f32[n, 7], f32[n, 7]) { (a(x), b(x), c(x)) }
        }",
        &[3],
    );
    let x = |i, j| out.at("x", &[i, j]);
    let mean = |i| total(7, |j| x(i, j)) / 7.0;
    let var = |i| total(7, |j| (x(i, j) - mean(i)).powi(2)) / 7.0;
    out.check(0, &[3, 7], |at| {
        let square = total(7, |j| x(at[0], j).powi(2)) / 7.0;
        x(at[0], at[1]) / (square + 1e-6).sqrt() * out.at("a.weight", &[at[1]])
    });
    out.check(1, &[3, 7], |at| {
        let y = (x(at[0], at[1]) - mean(at[0])) / (var(at[0]) + 1e-5).sqrt();
        y * out.at("b.weight", &[at[1]]) + out.at("b.bias", &[at[1]])
    });
    out.check(2, &[3, 7], |at| {
        (x(at[0], at[1]) - mean(at[0])) / (var(at[0]) + 0.5).sqrt() * out.at("c.weight", &[at[1]])
    });
}

#[test]
fn products_broadcast_leading_axes_and_take_vectors() {
    let out = function(
        "(f32[n, n, 3], f32[n, 3], f32[5], f32, f32[2, n, 3, 3], f32[n, 3, 3])",
        "let row = m[0];
        let two = reshape(x[0..2], [2, 1, 3, 5]);
        (m @ x.transpose(1, 2), x @ row, row @ m.t() @ m, row @ row, two @ x.t(), x[0..1] @ x.t())",
    );
    let (x, m) = (|i, j, k| out.at("x", &[i, j, k]), |i, k| out.at("m", &[i, k]));
    out.check(0, &[4, 4, 3], |at| total(5, |k| m(at[1], k) * x(at[0], at[2], k)));
    out.check(1, &[4, 3], |at| total(5, |k| x(at[0], at[1], k) * m(0, k)));
    out.check(2, &[5], |at| total(4, |i| total(5, |k| m(0, k) * m(i, k)) * m(i, at[0])));
    out.check(3, &[], |_| total(5, |k| m(0, k) * m(0, k)));
    out.check(4, &[2, 4, 3, 3], |at| total(5, |k| x(at[0], at[2], k) * x(at[1], at[3], k)));
    out.check(5, &[4, 3, 3], |at| total(5, |k| x(0, at[1], k) * x(at[0], at[2], k)));
}

#[test]
fn reductions_take_axes_from_both_ends() {
    let out = function(
        "(f32[3], f32[n, 1, 5], f32[n, 5], f32[3, 5], f32, f32[n, 3], f32[n, 5], f32, f32[n, 3, 1], f32[n])",
        "(sum(x, axis = [0, -1]), mean(x, 1, keep = true), max(x, axis = 1), min(x, axis = 0), max(x),
          var(x, axis = -1, correction = 1), norm(x, axis = 1), norm(x, p = 1), x.sum(axis = 2, keep = true),
          mean(x, axis = [2, 1]))",
    );
    let x = |i, j, k| out.at("x", &[i, j, k]);
    out.check(0, &[3], |at| total(20, |r| x(r / 5, at[0], r % 5)));
    out.check(1, &[4, 1, 5], |at| total(3, |j| x(at[0], j, at[2])) / 3.0);
    out.check(2, &[4, 5], |at| (0..3).map(|j| x(at[0], j, at[1])).fold(f64::MIN, f64::max));
    out.check(3, &[3, 5], |at| (0..4).map(|i| x(i, at[0], at[1])).fold(f64::MAX, f64::min));
    out.check(4, &[], |_| (0..60).map(|r| x(r / 15, r / 5 % 3, r % 5)).fold(f64::MIN, f64::max));
    out.check(5, &[4, 3], |at| {
        let mean = total(5, |k| x(at[0], at[1], k)) / 5.0;
        total(5, |k| (x(at[0], at[1], k) - mean).powi(2)) / 4.0
    });
    out.check(6, &[4, 5], |at| total(3, |j| x(at[0], j, at[1]).powi(2)).sqrt());
    out.check(7, &[], |_| total(60, |r| x(r / 15, r / 5 % 3, r % 5).abs()));
    out.check(8, &[4, 3, 1], |at| total(5, |k| x(at[0], at[1], k)));
    out.check(9, &[4], |at| total(15, |r| x(at[0], r / 5, r % 5)) / 15.0);
}

#[test]
fn softmax_runs_along_any_axis() {
    let out = function(
        "(f32[n, 3, 5], f32[n, 3, 5], f32[n, 3, 5], f32[n, 5])",
        "(softmax(x), softmax(x, axis = 0), log_softmax(x, 1), logsumexp(x, axis = -2))",
    );
    let x = |i, j, k| out.at("x", &[i, j, k]);
    out.check(0, &[4, 3, 5], |at| x(at[0], at[1], at[2]).exp() / total(5, |k| x(at[0], at[1], k).exp()));
    out.check(1, &[4, 3, 5], |at| x(at[0], at[1], at[2]).exp() / total(4, |i| x(i, at[1], at[2]).exp()));
    let log = |at: &[i64]| total(3, |j| x(at[0], j, at[at.len() - 1]).exp()).ln();
    out.check(2, &[4, 3, 5], |at| x(at[0], at[1], at[2]) - log(at));
    out.check(3, &[4, 5], log);
}

#[test]
fn elementwise_functions_broadcast_and_take_numbers() {
    let out = function(
        "(f32[n, 5], f32[n, 3, 5], f32[n, 5], f32[n, 5], f32[n, 5], f32[n], f32[n, 5], f32[n, 5], bool[n], u32[n])",
        "(pow(m, 2) - 2 * m / 4, max(x, reshape(m, [n, 1, 5])), clamp(m, -0.25, 1 / 2.0), where(mask, m, -1),
          masked_fill(m, !mask | (m > 0.5), 9), f32(ids) * f32(n) + f32(width), m.leaky_relu(slope = 0.5),
          min(m, 0.1) + neg(m) * hardsigmoid(m), (ids != 2) & (ids >= 1), ids * 3 + 1)",
    );
    let m = |at: &[i64]| out.at("m", at);
    let (mask, id) = (|at: &[i64]| out.at("mask", at) != 0.0, |at: &[i64]| out.at("ids", at));
    out.check(0, &[4, 5], |at| m(at).powi(2) - m(at) / 2.0);
    out.check(1, &[4, 3, 5], |at| out.at("x", at).max(m(&[at[0], at[2]])));
    out.check(2, &[4, 5], |at| m(at).clamp(-0.25, 0.5));
    out.check(3, &[4, 5], |at| if mask(at) { m(at) } else { -1.0 });
    out.check(4, &[4, 5], |at| if !mask(at) || m(at) > 0.5 { 9.0 } else { m(at) });
    out.check(5, &[4], |at| id(at) * 4.0 + 5.0);
    out.check(6, &[4, 5], |at| if m(at) > 0.0 { m(at) } else { m(at) / 2.0 });
    out.check(7, &[4, 5], |at| m(at).min(0.1) - m(at) * ((m(at) + 3.0) / 6.0));
    out.check(8, &[4], |at| f64::from(u8::from(id(at) != 2.0 && id(at) >= 1.0)));
    out.check(9, &[4], |at| id(at) * 3.0 + 1.0);
}

#[test]
fn indices_pick_and_cut_from_both_ends() {
    let out = function(
        "(f32[3, 5], f32[n], f32[n, 2, 5], f32[2], f32[n, 3, 4], f32[2, 3], f32[n, 3])",
        "(x[-1], m[.., 0], x[.., 1.., ..], x[1, -2.., 2], x[.., .., ..-1], x[1..=2, .., width - 1], x[0..n, .., -5])",
    );
    let x = |i, j, k| out.at("x", &[i, j, k]);
    out.check(0, &[3, 5], |at| x(3, at[0], at[1]));
    out.check(1, &[4], |at| out.at("m", &[at[0], 0]));
    out.check(2, &[4, 2, 5], |at| x(at[0], at[1] + 1, at[2]));
    out.check(3, &[2], |at| x(1, at[0] + 1, 2));
    out.check(4, &[4, 3, 4], |at| x(at[0], at[1], at[2]));
    out.check(5, &[2, 3], |at| x(at[0] + 1, at[1], 4));
    out.check(6, &[4, 3], |at| x(at[0], at[1], 0));
}

#[test]
fn slices_that_may_overrun_say_what_dimensions_must_keep() {
    let resolved = clean(
        "layer Cut<dim> { fn forward(x: f32[rows, dim]) -> f32[3, dim] { x[rows - 3..] } }
        model M<n in 1..=64, k in 1..=8, h in 8..=32 step 8> {
            cuts: [Cut<5>; 2],
            cut: Cut<5>,
            pub fn f(x: f32[n, 5], y: f32[k], z: f32[h]) -> f32 {
                let mut s = sum(x[..8]) + sum(x[..8]) + sum(x[k..n]) + y[2] + sum(cut(x)) + sum(x[2..=k]);
                for c in cuts { s = s + sum(c(x)); }
                s + sum(x[-1]) + sum(x[0..1, ..-1]) + sum(y[k - 1]) + sum(z[8 - k..h]) + sum(z[..h / 2]) + z[7]
            }
        }",
    );
    let graph = &resolved.entries[0].graph;
    let shown = |check: &Check| format!("{} needs {}", check.what, check.show(&graph.symbols));
    let expected = [
        "x[..8] needs 8 <= n",
        "x[k..n] needs k + 1 <= n",
        "y[2] needs 3 <= k",
        "cut: x[rows - 3..] needs 0 <= n - 3",
        "x[2..=k] needs 3 <= k + 1",
        "x[2..=k] needs k + 1 <= n",
        "cuts: x[rows - 3..] needs 0 <= n - 3",
    ];
    assert_eq!(graph.checks.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn shape_functions_keep_every_element() {
    let out = function(
        "(f32[5, 3 * n], f32[n * 15], f32[n, 15], f32[n, 5, 3], f32[5, n, 3], f32[2, n, 5], f32[3 * n, 5])",
        "(reshape(x, [_, 3 * n]), flatten(x), x.flatten(from = 1), x.transpose(-1, 1), permute(x, [2, 0, 1]),
          broadcast(m, [2, n, 5]) + zeros([2, 1, 1]) + full([5], 3), x.flatten(to = 1))",
    );
    let flat = |k: i64| out.at("x", &[k / 15, k / 5 % 3, k % 5]);
    out.check(0, &[5, 12], |at| flat(at[0] * 12 + at[1]));
    out.check(1, &[60], |at| flat(at[0]));
    out.check(2, &[4, 15], |at| flat(at[0] * 15 + at[1]));
    out.check(3, &[4, 5, 3], |at| out.at("x", &[at[0], at[2], at[1]]));
    out.check(4, &[5, 4, 3], |at| out.at("x", &[at[1], at[2], at[0]]));
    out.check(5, &[2, 4, 5], |at| out.at("m", &at[1..]) + 3.0);
    out.check(6, &[12, 5], |at| flat(at[0] * 5 + at[1]));
}

#[test]
fn losses_are_means() {
    let out = function(
        "(f32, f32, f32, f32, f32)",
        "let y = x[.., 0, ..];
        (mse(m, y), l1(m, y), huber(m, y, delta = 0.5), bce_with_logits(m, f32(mask)), mse(m, 0))",
    );
    let each = |f: &dyn Fn(f64, f64) -> f64| {
        total(20, |r| f(out.at("m", &[r / 5, r % 5]), out.at("x", &[r / 5, 0, r % 5]))) / 20.0
    };
    out.check(0, &[], |_| each(&|a, b| (a - b).powi(2)));
    out.check(1, &[], |_| each(&|a, b| (a - b).abs()));
    out.check(2, &[], |_| {
        each(&|a, b| if (a - b).abs() <= 0.5 { (a - b).powi(2) / 2.0 } else { 0.5 * ((a - b).abs() - 0.25) })
    });
    out.check(3, &[], |_| {
        let loss = |r: i64| {
            let p = 1.0 / (1.0 + (-out.at("m", &[r / 5, r % 5])).exp());
            if out.at("mask", &[r / 5, r % 5]) != 0.0 { -p.ln() } else { -(1.0 - p).ln() }
        };
        total(20, loss) / 20.0
    });
    out.check(4, &[], |_| each(&|a, _| a * a));
}

#[test]
fn constants_conditions_and_bounded_arguments_decide_shapes() {
    let text = |rich: bool| {
        format!(
            "layer Pick<dim, deep, factor = 2 * dim, shape = [dim, 2]> {{
                let half = if deep {{ dim / 2 }} else {{ dim }};
                if deep {{ param w: f32[half] = ones; }} else {{ param v: f32[half] = zeros; }}
                fn forward(x: f32[.., dim], k: u32) -> f32[.., half] {{
                    let scale = if deep {{ w }} else {{ v + 1 }};
                    let mut y = x[.., ..half] * scale;
                    if deep {{ y = y * factor; }}
                    y - f32(k) * shape[1]
                }}
            }}
            model M<dim = 6, h in 4..=64 step 4> {{
                pick: Pick<dim, {rich}>,
                pub fn f(x: f32[h / 2, dim], k: u32 in 0..9) -> (f32[h / 2, {}], f32) {{
                    (pick(x, k), f32(h) + f32(u32(k)))
                }}
            }}",
            if rich { "3" } else { "6" }
        )
    };
    let out = evaluate(&text(true), &[12, 7]);
    out.check(0, &[6, 3], |at| out.at("x", at) * out.at("pick.w", &at[1..]) * 12.0 - 14.0);
    out.check(1, &[], |_| 19.0);
    let out = evaluate(&text(false), &[8, 2]);
    out.check(0, &[4, 6], |at| out.at("x", at) * (out.at("pick.v", &at[1..]) + 1.0) - 4.0);
}

#[test]
fn models_are_members_whose_dimensions_the_call_binds() {
    let out = evaluate(
        "model Inner<batch in 1..=8, scale = 2> {
            let twice = 2 * batch;
            fc: Linear<3, 3, bias = false>,
            pub fn f(x: f32[batch, 3]) -> f32[twice, 3] { fc(reshape(broadcast(x, [scale, batch, 3]), [twice, 3])) }
        }
        model M<n in 1..=64> {
            inner: Inner,
            pub fn f(x: f32[n, 3]) -> f32[2 * n, 3] { inner.f(x) }
        }",
        &[5],
    );
    // The inner model is the first; the last one is under test.
    let resolved = out.results.len();
    assert_eq!(resolved, 1);
    out.check(0, &[10, 3], |at| total(3, |k| out.at("x", &[at[0] % 5, k]) * out.at("inner.fc.weight", &[at[1], k])));
}

#[test]
fn every_registered_function_is_one_of_the_language() {
    for un in meganeura_shaders::pointwise::Un::ALL.iter().filter(|un| un.name().chars().all(char::is_alphanumeric)) {
        let name = un.name();
        let (argument, shift) =
            if ["log", "log1p", "sqrt", "rsqrt"].contains(&name) { ("m * 3 + 3", 3.0) } else { ("m * 3", 0.0) };
        let out = function("(f32[n, 5], f32)", &format!("({name}({argument}), m.{name}()[0, 0] * 0 + {name}(0.75))"));
        out.check(0, &[4, 5], |at| un.eval(out.at("m", at) * 3.0 + shift));
        if shift == 0.0 {
            out.check(1, &[], |_| un.eval(0.75));
        }
    }
}

#[test]
fn resolved_losses_have_the_gradients_of_their_slopes() {
    let resolved = clean(
        "layer Block<dim> {
            norm: RmsNorm<dim>, up: Linear<dim, 2 * dim>, down: Linear<2 * dim, dim, bias = false>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] { x + down(silu(up(norm(x)))) }
        }
        model M<n in 1..=64> {
            blocks: [Block<3>; 2], head: Linear<3, 4>,
            #[train] pub fn loss(x: f32[n, 3], label: u32[n]) -> f32 {
                let mut x = x;
                for block in blocks { x = block(x); }
                cross_entropy(head(x), label)
            }
        }",
    );
    let graph = &resolved.entries[0].graph;
    let loss = graph.outputs[0].value;
    crate::testing::check_gradients(graph, loss, &[5], 3, crate::autodiff::Policy::Contractions);
    crate::testing::check_against_unrolled(graph, loss, &[5], 3, crate::autodiff::Policy::Contractions);
}
