//! Losses, with rows that do not count and labels that are spread.

use super::{Stores, gradients_of, values};

fn row(s: &Stores, i: i64) -> Vec<f64> {
    (0..5).map(|k| s.at("m", &[i, k])).collect()
}

fn log_sum(row: &[f64]) -> f64 {
    row.iter().map(|x| x.exp()).sum::<f64>().ln()
}

#[test]
fn cross_entropy_counts_rows_and_spreads_labels() {
    let label = |s: &Stores, i: i64| s.at("ids", &[i]) as i64;
    let each = |s: &Stores, i: i64| log_sum(&row(s, i)) - row(s, i)[label(s, i) as usize];
    let spread =
        |s: &Stores, i: i64| 0.9 * each(s, i) + 0.1 * (log_sum(&row(s, i)) - row(s, i).iter().sum::<f64>() / 5.0);
    values(
        "f32, f32, f32, f32",
        "(cross_entropy(m, ids, ignore_index = 2), cross_entropy(m, ids, label_smoothing = 0.1),
          cross_entropy(m, ids * 0 + 3, ignore_index = 3), cross_entropy(m, ids * 7, ignore_index = 4294967295))",
        &[
            (&[], &|s, _| {
                let rows: Vec<i64> = (0..4).filter(|i| label(s, *i) != 2).collect();
                rows.iter().map(|i| each(s, *i)).sum::<f64>() / (rows.len().max(1) as f64)
            }),
            (&[], &|s, _| (0..4).map(|i| spread(s, i)).sum::<f64>() / 4.0),
            (&[], &|_, _| 0.0),
            (&[], &|s, _| {
                let rows: Vec<i64> = (0..4).filter(|i| label(s, *i) * 7 < 5).collect();
                rows.iter().map(|i| log_sum(&row(s, *i)) - row(s, *i)[0]).sum::<f64>() / (rows.len().max(1) as f64)
            }),
        ],
    );
    gradients_of("cross_entropy(p, arange(3), ignore_index = 1)");
    gradients_of("cross_entropy(p * q, arange(3) + 1, label_smoothing = 0.2, ignore_index = 3)");
    // No row counts: the rest of the loss is all there is.
    gradients_of("cross_entropy(p, arange(3) * 0 + 2, ignore_index = 2)");
}

#[test]
fn large_logits_are_exact() {
    values(
        "f32, f32",
        "let y = reshape(where(arange(2) == 0, 1000.0, 0.0), [1, 2]); (cross_entropy(y, arange(1)), cross_entropy(y, arange(1) + 1))",
        &[(&[], &|_, _| 0.0), (&[], &|_, _| 1000.0)],
    );
}

#[test]
fn divergences_and_distances() {
    values(
        "f32, f32",
        "let q = softmax(m); (kl_div(log_softmax(x[.., 0, ..]), q), kl_div(m, masked_fill(q, mask, 0)))",
        &[
            (&[], &|s, _| {
                let term = |i: i64, k: i64| {
                    let x: Vec<f64> = (0..5).map(|k| s.at("x", &[i, 0, k])).collect();
                    let log_q = s.at("m", &[i, k]) - log_sum(&row(s, i));
                    log_q.exp() * (log_q - (x[k as usize] - log_sum(&x)))
                };
                (0..20).map(|r| term(r / 5, r % 5)).sum::<f64>() / 4.0
            }),
            (&[], &|s, _| {
                let term = |i: i64, k: i64| {
                    let log_q = s.at("m", &[i, k]) - log_sum(&row(s, i));
                    if s.at("mask", &[i, k]) != 0.0 { 0.0 } else { log_q.exp() * (log_q - s.at("m", &[i, k])) }
                };
                (0..20).map(|r| term(r / 5, r % 5)).sum::<f64>() / 4.0
            }),
        ],
    );
    gradients_of("kl_div(log_softmax(p), softmax(p * q * 2)) + kl_div(p, masked_fill(softmax(p), p < 0.1, 0))");
    gradients_of(
        "bce_with_logits(p * 3, sigmoid(p * q)) + mse(p, p * q) + l1(p, q[0] * p) + huber(p * 4, p * q, delta = 0.7)",
    );
}

#[test]
fn nothing_flows_through_a_stopped_value() {
    let resolved = super::clean(
        "model M { param a: f32[3] = ones; param b: f32[3] = ones;
            #[train] pub fn loss(x: f32[3]) -> f32 { sum(stop_gradient(a * x) * b * 2) + sum(a * a) } }",
    );
    let graph = &resolved.entries[0].graph;
    let trained = crate::testing::training(graph, graph.outputs[0].value, Default::default());
    let found: std::collections::BTreeMap<_, _> = crate::testing::outputs(&trained, &[], 3).into_iter().collect();
    let stores = crate::testing::contents(graph, &crate::testing::bind(graph, &[]), 3);
    let of = |name: &str| &stores[graph.stores.iter().position(|store| store.name == name).unwrap()].data;
    let expected = |f: &dyn Fn(usize) -> f64| (0..3).map(f).collect::<Vec<f64>>();
    crate::testing::assert_close("a", &found["grad.a"].data, &expected(&|k| 2.0 * of("a")[k]), 1e-12);
    crate::testing::assert_close("b", &found["grad.b"].data, &expected(&|k| 2.0 * of("a")[k] * of("x")[k]), 1e-12);
    super::check_schedules("stop_gradient", &trained);
}
