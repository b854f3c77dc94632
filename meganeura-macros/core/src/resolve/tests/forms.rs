//! Choices, assignments, tuples and bounded arguments: values, gradients and mistakes.

use expect_test::expect;

use super::meaning::entries;
use super::{clean, in_function};

#[test]
fn parts_of_locals_are_replaced_and_the_rest_stays() {
    let text = "model M<n in 1..=8> { param w: f32[5, 4] = ones; param v: f32[2] = ones;
            pub fn f(x: f32[n, 4]) -> (f32[n, 4], f32[5, 4], f32[3, n, 4], f32[n, 4]) {
                let mut a = x;
                a[.., 1..3] = x[.., 2..] * v;
                a[.., -1] += x[.., 0];
                let mut b = w * 2;
                b[1] = w[2];
                b[2..4, 0] = v;
                b[-1, ..] *= 3;
                b[0, 3] = 0.5;
                let mut c = x * w[..3].reshape([3, 1, 4]);
                for i in 0..3 {
                    c[i] = c[i] * w[i] + x;
                    for j in 0..2 { c[i, .., 2 * j..2 * j + 2] -= v * f32(j + 1); }
                }
                let mut d = x;
                d[.., ..] = w[0];
                (a, b, c, d)
            }
            #[train] pub fn loss(x: f32[n, 4]) -> f32 {
                let (a, b, c, d) = f(x);
                sum(pow(a, 2)) + mean(tanh(b)) * mean(c) + sum(d)
            }
        }";
    let out = &entries(text, &[3])[0];
    let (x, w, v) = (|i, j| out.at("x", &[i, j]), |i, j| out.at("w", &[i, j]), |i| out.at("v", &[i]));
    out.check(0, &[3, 4], |at| match at[1] {
        1 | 2 => x(at[0], at[1] + 1) * v(at[1] - 1),
        3 => x(at[0], 3) + x(at[0], 0),
        _ => x(at[0], 0),
    });
    out.check(1, &[5, 4], |at| match (at[0], at[1]) {
        (0, 3) => 0.5,
        (1, j) => w(2, j),
        (i @ (2 | 3), 0) => v(i - 2),
        (4, j) => w(4, j) * 6.0,
        (i, j) => w(i, j) * 2.0,
    });
    out.check(2, &[3, 3, 4], |at| {
        let (i, n, k) = (at[0], at[1], at[2]);
        x(n, k) * w(i, k) * w(i, k) + x(n, k) - v(k % 2) * (k / 2 + 1) as f64
    });
    out.check(3, &[3, 4], |at| w(0, at[1]));
}

#[test]
fn bounded_arguments_stand_in_shapes_and_parts() {
    let text = "layer Shift<dim> { param w: f32[8, dim] = ones;
            fn forward(x: f32[seq, dim], pos: u32) -> f32[seq, dim] { x * w[pos..pos + seq] } }
        model M<seq in 1..=4, max = 8> { shift: Shift<3>, param t: f32[max, 3] = ones;
            pub fn f(x: f32[seq, 3], pos: u32 in 0..5) -> (f32[seq, 3], f32[max, 3], f32[2 * seq + pos, 3], f32, u32) {
                let mut table = t;
                table[pos..pos + seq] = shift(x, pos);
                let mut all = broadcast(t[0], [2 * seq + pos, 3]);
                all[..pos + seq] = table[..pos + seq];
                all[pos + seq..] *= x;
                (t[pos + 1] + shift(x, pos = pos + 1), table, all, sum(all) / f32(pos + seq), pos + 2)
            }
            #[train] pub fn loss(x: f32[seq, 3], pos: u32 in 0..5) -> f32 {
                let (a, b, c, d, e) = f(x, pos);
                mean(pow(a, 2)) + sum(tanh(b)) * mean(c) + d * f32(e)
            }
        }";
    for (seq, pos) in [(1, 0), (3, 1), (2, 4)] {
        let out = &entries(text, &[seq, pos])[0];
        let (x, t) = (|i, j| out.at("x", &[i, j]), |i, j| out.at("t", &[i, j]));
        let w = |i, j| out.at("shift.w", &[i, j]);
        out.check(0, &[seq, 3], |at| t(pos + 1, at[1]) + x(at[0], at[1]) * w(pos + 1 + at[0], at[1]));
        let table = |i: i64, j: i64| {
            if (pos..pos + seq).contains(&i) { x(i - pos, j) * w(i, j) } else { t(i, j) }
        };
        out.check(1, &[8, 3], |at| table(at[0], at[1]));
        let all = |i: i64, j: i64| if i < pos + seq { table(i, j) } else { t(0, j) * x(i - pos - seq, j) };
        out.check(2, &[2 * seq + pos, 3], |at| all(at[0], at[1]));
        out.check(3, &[], |_| {
            let sum: f64 = (0..2 * seq + pos).flat_map(|i| (0..3).map(move |j| (i, j))).map(|(i, j)| all(i, j)).sum();
            sum / (pos + seq) as f64
        });
        out.check(4, &[], |_| (pos + 2) as f64);
    }
}

#[test]
fn parts_that_bounds_do_not_prove_are_checked_by_calls() {
    let text = "model M<seq in 1..=4> { param t: f32[6, 3] = ones;
        pub fn f(x: f32[seq, 3], pos: u32 in 0..5) -> f32[seq, 3] { x * t[pos..pos + seq] + t[pos + 1] * t[..pos] @ x.t() @ x } }"
        .replace(" + t[pos + 1] * t[..pos] @ x.t() @ x", " + t[pos + 1]");
    let resolved = clean(&text);
    let graph = &resolved.entries[0].graph;
    let shown =
        |check: &meganeura_shaders::schedule::Check| format!("{} needs {}\n", check.what, check.show(&graph.symbols));
    let shown: String = graph.checks.iter().map(shown).collect();
    expect![[r#"
        t[pos..pos + seq] needs seq + pos <= 6
    "#]]
    .assert_eq(&shown);
}

#[test]
fn choices_on_constants_pick_members_statements_and_values() {
    let text = |deep: bool, kind: i64| {
        format!(
            "layer Part<deep, kind, dim = 3> {{
                if deep {{ up: Linear<dim, dim>, let scale = 2; }} else if kind == 1 {{ param g: f32[dim] = ones; let scale = 3; }}
                else {{ let scale = 0.5; }}
                fn forward(x: f32[n, dim]) -> f32[n, dim] {{
                    let mut y = x * scale;
                    if deep & (kind > 0) {{ y = up(y); }} else if kind == 1 {{ y *= g; }} else {{ y += 1; }}
                    let z = if kind == 2 {{ let a = y * y; a + x }} else {{ y }};
                    z + if deep {{ 1 }} else {{ 0.25 }}
                }}
            }}
            model M<n in 1..=8> {{ part: Part<{deep}, {kind}>,
                param w: f32[3] = ones;
                pub fn f(x: f32[n, 3]) -> f32[n, 3] {{ part(x) * w }}
                #[train] pub fn loss(x: f32[n, 3]) -> f32 {{ sum(pow(f(x), 2)) }} }}"
        )
    };
    for (deep, kind) in [(true, 1), (true, 0), (false, 1), (false, 2)] {
        let out = &entries(&text(deep, kind), &[2])[0];
        let x = |i, j| out.at("x", &[i, j]);
        out.check(0, &[2, 3], |at| {
            let scale = if deep {
                2.0
            } else if kind == 1 {
                3.0
            } else {
                0.5
            };
            let scaled = |j| x(at[0], j) * scale;
            let y = if deep && kind > 0 {
                out.at("part.up.bias", &[at[1]])
                    + (0..3).map(|k| out.at("part.up.weight", &[at[1], k]) * scaled(k)).sum::<f64>()
            } else if kind == 1 {
                scaled(at[1]) * out.at("part.g", &[at[1]])
            } else {
                scaled(at[1]) + 1.0
            };
            let z = if kind == 2 { y * y + x(at[0], at[1]) } else { y };
            (z + if deep { 1.0 } else { 0.25 }) * out.at("w", &[at[1]])
        });
    }
}

#[test]
fn tuples_go_through_functions_layers_and_loops() {
    let text = "layer Cell<dim> { a: Linear<2 * dim, dim>,
            fn forward(x: f32[n, dim], h: f32[n, dim]) -> (f32[n, dim], f32[n], bool[n]) {
                let mut both = broadcast(h[0, 0], [n, 2 * dim]);
                both[.., ..dim] = x; both[.., dim..] = h;
                let y = tanh(a(both));
                (y, sum(y, axis = 1), sum(y, axis = 1) > 0)
            } }
        model M<n in 1..=8> { cells: [Cell<3>; 2],
            fn both(x: f32[n, 3]) -> (f32[n, 3], (f32[n, 3], f32)) { (x + 1, (x * 2, 0.5)) }
            pub fn f(x: f32[n, 3]) -> (f32[n, 3], f32[n], bool[n], u32) {
                let (p, q) = both(x);
                let (mut h, s) = q;
                let mut total = x[.., 0] * s;
                let mut last = total > 0;
                for cell in cells {
                    let (y, part, sign) = cell(p, h);
                    h = y; total += part; last = sign;
                }
                (h, total, last, 3)
            }
            #[train] pub fn loss(x: f32[n, 3]) -> (f32, f32[n]) {
                let (h, total, last, k) = f(x);
                (sum(where(reshape(last, [n, 1]), h, -h)) + mean(total), total)
            } }";
    let out = &entries(text, &[3])[0];
    let hidden = |i: i64, steps: i64| {
        let x = |k: i64| out.at("x", &[i, k]);
        let start: Vec<f64> = (0..3).map(|k| 2.0 * x(k)).collect();
        (0..steps).fold(start, |h, s| {
            let row = |r: i64| {
                let weight = |k: i64| out.at("cells.{}.a.weight", &[s, r, k]);
                let sum: f64 = (0..3).map(|k| weight(k) * (x(k) + 1.0) + weight(k + 3) * h[k as usize]).sum();
                (sum + out.at("cells.{}.a.bias", &[s, r])).tanh()
            };
            (0..3).map(row).collect()
        })
    };
    let sum = |i, steps| hidden(i, steps).iter().sum::<f64>();
    out.check(0, &[3, 3], |at| hidden(at[0], 2)[at[1] as usize]);
    out.check(1, &[3], |at| out.at("x", &[at[0], 0]) * 0.5 + sum(at[0], 1) + sum(at[0], 2));
    assert_eq!(out.results[2].data, (0..3).map(|i| f64::from(u8::from(sum(i, 2) > 0.0))).collect::<Vec<_>>());
    out.check(3, &[], |_| 3.0);
}

#[test]
fn mistakes_of_assignments_name_both_sides() {
    expect![[r#"
        let mut a = x; a[0..2] = y; sum(a)
            4:26: this part of `a` is f32[2, 8], found f32[batch, seq, 8]
                   y: f32[batch, seq, 8]
        let mut a = x; a[.., 0..3] = x[.., 0..2]; sum(a)
            4:31: this part of `a` is f32[batch, 3], found f32[batch, 2]
                   x[.., 0..2]: f32[batch, 2]
        let mut a = x; a[0] = ids; sum(a)
            4:23: this part of `a` is f32[8], found u32[batch]
                   ids: u32[batch]
        let mut a = x; a[.., 9] = 0; sum(a)
            4:22: 9 lies outside of axis 1, which has 8
                   a: f32[batch, 8]
        let mut a = x; a[0, 0, 0] = 0; sum(a)
            4:18: expected at most 2 indices, found 3
                   a: f32[batch, 8]
        let a = x; a[0] = 0; sum(a)
            4:12: `a` does not change: declare it with `let mut a`
        x[0] = 0; sum(x)
            4:1: `x` is an argument and does not change: write `let mut x = x;` first
        let mut a = 1; a[0] = 2; sum(x)
            4:16: only tensors have parts, found 1
        let mut a = x; for i in 0..4 { a[.., i * 3] = 0; } sum(a)
            4:40: the loop goes from 0 to 9, outside of axis 1, which has 8
                   a: f32[batch, 8]
        let (a, b) = x; sum(a)
            4:14: expected a tuple of 2 values, found f32[batch, 8]
        let (a, b) = (x, y, ids); sum(a)
            4:5: expected 2 values, found 3
        let a = if batch > 3 { x } else { x * 2 }; sum(a)
            4:18: `batch` is not known before a call, so nothing can depend on how it compares
        let a = if mask { x } else { x * 2 }; sum(a)
            4:12: the condition of an `if` is a constant: for each element write `where(mask, a, b)`
        let a = if dim > 3 { x }; sum(a)
            4:9: an `if` with a value needs an `else`
        let mut a = x; a += y; sum(a)
            4:18: the operands of `+` do not broadcast: their axis -2 is `batch` and `seq`
                   a: f32[batch, 8]
                   y: f32[batch, seq, 8]
        fc[0] = x; sum(x)
            4:1: `fc` is a member, only locals change: write `let mut` and another name
        let mut s = 0; for i in 0..3 { s = y; } sum(x)
            4:36: `s` keeps its type through the loop: expected f32, found f32[batch, seq, 8]
    "#]]
    .assert_eq(&in_function(&[
        "let mut a = x; a[0..2] = y; sum(a)",
        "let mut a = x; a[.., 0..3] = x[.., 0..2]; sum(a)",
        "let mut a = x; a[0] = ids; sum(a)",
        "let mut a = x; a[.., 9] = 0; sum(a)",
        "let mut a = x; a[0, 0, 0] = 0; sum(a)",
        "let a = x; a[0] = 0; sum(a)",
        "x[0] = 0; sum(x)",
        "let mut a = 1; a[0] = 2; sum(x)",
        "let mut a = x; for i in 0..4 { a[.., i * 3] = 0; } sum(a)",
        "let (a, b) = x; sum(a)",
        "let (a, b) = (x, y, ids); sum(a)",
        "let a = if batch > 3 { x } else { x * 2 }; sum(a)",
        "let a = if mask { x } else { x * 2 }; sum(a)",
        "let a = if dim > 3 { x }; sum(a)",
        "let mut a = x; a += y; sum(a)",
        "fc[0] = x; sum(x)",
        "let mut s = 0; for i in 0..3 { s = y; } sum(x)",
    ]));
}
