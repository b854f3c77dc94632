//! Reductions beyond sums, indices of extremes, running totals.

use super::{Stores, gradients, gradients_of, mistake, values};

fn row(s: &Stores, at: &[i64]) -> Vec<f64> {
    (0..5).map(|k| s.at("m", &[at[0], k])).collect()
}

fn first(row: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for k in 1..row.len() {
        if better(row[k], row[best]) {
            best = k;
        }
    }
    best as f64
}

#[test]
fn products_over_axes() {
    values(
        "f32[n], f32[5], f32[n, 1, 5], f32",
        "(prod(m, axis = 1), prod(m, 0), prod(x, 1, keep = true), prod(m))",
        &[
            (&[4], &|s, at| row(s, at).iter().product()),
            (&[5], &|s, at| (0..4).map(|i| s.at("m", &[i, at[0]])).product()),
            (&[4, 1, 5], &|s, at| (0..3).map(|j| s.at("x", &[at[0], j, at[2]])).product()),
            (&[], &|s, _| s.tensor("m").data.iter().product()),
        ],
    );
    gradients("prod(p, axis = 0) + prod(p * 1.5)");
    // The product of the others is not 0 where one element is.
    gradients_of("sum(prod(p * where(arange(5) == 2, 0.0, 1.0), axis = 1) * 3.0)");
    gradients_of("sum(prod(p * where(arange(5) < 2, 0.0, 1.0) + p * 1e-3, axis = 1) * 300.0)");
}

#[test]
fn extremes_of_integers() {
    values(
        "i32[n], u32, u32[5], i32[n]",
        "(min(whole - 2, axis = 1), max(ids), min(bytes, axis = 0), max(whole - 4, axis = -1))",
        &[
            (&[4], &|s, at| (0..5).map(|k| s.at("whole", &[at[0], k]) - 2.0).fold(f64::MAX, f64::min)),
            (&[], &|s, _| s.tensor("ids").data.iter().copied().fold(0.0, f64::max)),
            (&[5], &|s, at| (0..4).map(|i| s.at("bytes", &[i, at[0]])).fold(f64::MAX, f64::min)),
            (&[4], &|s, at| (0..5).map(|k| s.at("whole", &[at[0], k]) - 4.0).fold(f64::MIN, f64::max)),
        ],
    );
}

#[test]
fn norms_of_any_power() {
    values(
        "f32[n], f32",
        "(norm(m, axis = 1, p = 3), norm(x, p = 1.5))",
        &[
            (&[4], &|s, at| row(s, at).iter().map(|x| x.abs().powi(3)).sum::<f64>().cbrt()),
            (&[], &|s, _| s.tensor("x").data.iter().map(|x| x.abs().powf(1.5)).sum::<f64>().powf(1.0 / 1.5)),
        ],
    );
    gradients("norm(p, axis = 0, p = 3) + norm(p, p = 1.5) + norm(q, p = 1)");
    assert!(mistake("norm(m, axis = 1, p = 0.5)").contains("at least 1"));
}

#[test]
fn indices_of_extremes_are_the_first() {
    values(
        "u32[n], u32[5], u32, u32[n], u32[n, 5], u32[n], u32[n]",
        "(argmax(m, axis = 1), argmin(m, axis = 0), argmax(x), argmin(whole, axis = -1), argmax(x, 1),
          argmax(bytes, 1), argmax(clamp(m, -0.1, 0.1), 1))",
        &[
            (&[4], &|s, at| first(&row(s, at), |a, b| a > b)),
            (&[5], &|s, at| first(&(0..4).map(|i| s.at("m", &[i, at[0]])).collect::<Vec<_>>(), |a, b| a < b)),
            (&[], &|s, _| first(&s.tensor("x").data, |a, b| a > b)),
            (&[4], &|s, at| first(&(0..5).map(|k| s.at("whole", &[at[0], k])).collect::<Vec<_>>(), |a, b| a < b)),
            (&[4, 5], &|s, at| first(&(0..3).map(|j| s.at("x", &[at[0], j, at[1]])).collect::<Vec<_>>(), |a, b| a > b)),
            (&[4], &|s, at| first(&(0..5).map(|k| s.at("bytes", &[at[0], k])).collect::<Vec<_>>(), |a, b| a > b)),
            (&[4], &|s, at| first(&row(s, at).iter().map(|x| x.clamp(-0.1, 0.1)).collect::<Vec<_>>(), |a, b| a > b)),
        ],
    );
}

#[test]
fn the_first_nan_wins_and_infinities_are_numbers() {
    // Rows: NaN at 2 and 4; all -inf; +inf at 3; -inf and the least float.
    values(
        "u32[n], u32[n, 2]",
        "let row = reshape(arange(n), [n, 1]);
        let inf = abs(1.0 / (m * 0.0));
        let nan = inf * 0.0;
        let odd = (arange(5) == 2) | (arange(5) == 4);
        let y = where((row == 0) & odd, nan, m);
        let y = where(row == 1, 0.0 - inf, y);
        let y = where((row == 2) & (arange(5) == 3), inf, y);
        let y = where(row == 3, where(arange(5) == 4, -3.4028234e38, 0.0 - inf), y);
        let (_most, best) = topk(y, 2);
        (argmax(y, 1), best)",
        &[
            (&[4], &|_, at| [2.0, 0.0, 3.0, 4.0][at[0] as usize]),
            (&[4, 2], &|s, at| match (at[0], at[1]) {
                (0, 0) => 2.0,
                (0, _) => 4.0,
                (1, k) => k as f64,
                (2, 0) => 3.0,
                (2, _) => [0.0, 1.0, 2.0, 4.0][first(&[0, 1, 2, 4].map(|k| s.at("m", &[2, k])), |a, b| a > b) as usize],
                (_, 0) => 4.0,
                _ => 0.0,
            }),
        ],
    );
}

#[test]
fn the_largest_in_order() {
    let sorted = |s: &Stores, at: &[i64]| {
        let row = row(s, at);
        let mut order: Vec<usize> = (0..5).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
        (row, order)
    };
    values(
        "f32[n, 3], u32[n, 3], f32[n, 3, 1], u32[n, 5]",
        "let (v, i) = topk(m, 3); let (w, j) = topk(whole, 5); let (u, _u) = topk(x, 1); (v, i, u, j)",
        &[
            (&[4, 3], &|s, at| {
                let (row, order) = sorted(s, at);
                row[order[at[1] as usize]]
            }),
            (&[4, 3], &|s, at| sorted(s, at).1[at[1] as usize] as f64),
            (&[4, 3, 1], &|s, at| (0..5).map(|k| s.at("x", &[at[0], at[1], k])).fold(f64::MIN, f64::max)),
            (&[4, 5], &|s, at| {
                let row: Vec<f64> = (0..5).map(|k| s.at("whole", &[at[0], k])).collect();
                let mut order: Vec<usize> = (0..5).collect();
                order.sort_by(|a, b| row[*b].total_cmp(&row[*a]).then(a.cmp(b)));
                order[at[1] as usize] as f64
            }),
        ],
    );
    gradients("let (a, _a) = topk(p, 3); let (b, _b) = topk(r, 1); a * 2 + b * reshape(q[0..3], [1, 3, 1])");
    assert!(
        mistake("let (a, _a) = topk(m, 6); a[.., 0]").contains("6 of 5"),
        "{}",
        mistake("let (a, _a) = topk(m, 6); a[.., 0]")
    );
}

#[test]
fn running_sums_along_any_axis() {
    values(
        "f32[n, 3, 5], f32[n, 3, 5], u32[n]",
        "(cumsum(x, 2), cumsum(x, axis = -2), cumsum(ids, 0))",
        &[
            (&[4, 3, 5], &|s, at| (0..=at[2]).map(|k| s.at("x", &[at[0], at[1], k])).sum()),
            (&[4, 3, 5], &|s, at| (0..=at[1]).map(|j| s.at("x", &[at[0], j, at[2]])).sum()),
            (&[4], &|s, at| (0..=at[0]).map(|i| s.at("ids", &[i])).sum()),
        ],
    );
    gradients("cumsum(p * q, 1) * 0.5 + cumsum(p, axis = 0)");
}

#[test]
fn softmax_of_masked_rows_is_0_and_so_is_its_gradient() {
    // Row 1 is masked everywhere, as false, as -inf, as the least float; -1e4 is an ordinary bias.
    for masked in ["-1e30", "0.0 - 1.0 / (f32(ids[0]) * 0)", "-3.4e38"] {
        let body = format!("softmax(where(reshape(arange(3), [3, 1]) == 1, {masked}, p))");
        gradients_of(&format!("sum({body} * q * 3.0) + sum(logsumexp(p * 2))"));
    }
    values(
        "f32[n, 5], f32[n, 5], f32[n, 5]",
        "let hidden = reshape(arange(n), [n, 1]) == 1;
        (softmax(masked_fill(m, hidden, -1e30)), softmax(where(hidden, m - 1e4, m)), softmax(masked_fill(m, hidden, -3.4e38), axis = 0))",
        &[
            (&[4, 5], &|s, at| match at[0] {
                1 => 0.0,
                _ => s.at("m", at).exp() / row(s, at).iter().map(|x| x.exp()).sum::<f64>(),
            }),
            (&[4, 5], &|s, at| match at[0] {
                // Within what is left of a number next to 10,000.
                1 => (s.at("m", at) - 1e4 + 1e4).exp() / row(s, at).iter().map(|x| (x - 1e4 + 1e4).exp()).sum::<f64>(),
                _ => s.at("m", at).exp() / row(s, at).iter().map(|x| x.exp()).sum::<f64>(),
            }),
            (&[4, 5], &|s, at| match at[0] {
                1 => 0.0,
                _ => s.at("m", at).exp() / [0, 2, 3].map(|i| s.at("m", &[i, at[1]]).exp()).iter().sum::<f64>(),
            }),
        ],
    );
}

#[test]
fn variances_are_of_two_passes() {
    values(
        "f32, f32, f32[n]",
        "(var(m * 0.0 + 33.3), var(10000 + f32(arange(4))), var(m, axis = 1, correction = 1))",
        &[
            (&[], &|_, _| 0.0),
            (&[], &|_, _| 1.25),
            (&[4], &|s, at| {
                let row = row(s, at);
                let mean = row.iter().sum::<f64>() / 5.0;
                row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4.0
            }),
        ],
    );
    gradients("var(p, axis = 1) + var(r, axis = [0, 2], correction = 1)");
}
