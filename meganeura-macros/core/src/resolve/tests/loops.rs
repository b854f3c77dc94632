//! Loops in all their forms: values, gradients and mistakes.

use expect_test::expect;

use super::meaning::entries;
use super::{clean, in_source};

const SCALE: &str = "
    layer Scale<dim = 3> { param w: f32[dim] = ones; param b: f32[dim] = zeros;
        fn forward(x: f32[.., dim]) -> f32[.., dim] { x * w + tanh(b) } }
    layer Stage<dim = 3> { inner: [Scale<dim>; 4], last: Scale<dim>,
        fn forward(x: f32[.., dim]) -> f32[.., dim] {
            let mut y = x;
            for s in inner { y = s(y) - x; }
            last(y)
        } }";

fn model(members: &str, body: &str) -> String {
    format!(
        "{SCALE} model M<n in 1..=64> {{ {members}
            pub fn f(x: f32[n, 3]) -> f32[n, 3] {{ {body} }}
            #[train] pub fn loss(x: f32[n, 3]) -> f32 {{ mean(pow(f(x), 2)) }}
        }}"
    )
}

#[test]
fn a_loop_that_counts_gives_its_number() {
    let text = model(
        "layers: [Scale; 5],",
        "let mut y = x;
         for (i, layer) in layers { y = layer(y) * f32(i + 1) - where(i == 2, x, 0.5); }
         y",
    );
    let out = &entries(&text, &[4])[0];
    out.check(0, &[4, 3], |at| {
        (0..5).fold(out.at("x", at), |y, i| {
            let w = |name: &str| out.at(&format!("layers.{{}}.{name}"), &[i, at[1]]);
            let shift = if i == 2 { out.at("x", at) } else { 0.5 };
            (y * w("w") + w("b").tanh()) * (i + 1) as f64 - shift
        })
    });
}

#[test]
fn arrays_of_one_length_run_together() {
    let text = model(
        "a: [Scale; 3], b: [Stage; 3], c: [Scale; 4],",
        "let mut y = x;
         for (p, q, r) in (a, b, c[1..]) { y = p(y) + 0.5 * tanh(q(y)) * r.w; }
         y",
    );
    let out = &entries(&text, &[2])[0];
    let scale = |y: f64, name: &str, index: &[i64], c: i64| {
        let at = [index, &[c]].concat();
        y * out.at(&format!("{name}.w"), &at) + out.at(&format!("{name}.b"), &at).tanh()
    };
    out.check(0, &[2, 3], |at| {
        let c = at[1];
        (0..3).fold(out.at("x", at), |y, i| {
            let inner = (0..4).fold(y, |z, j| scale(z, "b.{}.inner.{}", &[i, j], c) - y);
            let stage = scale(inner, "b.{}.last", &[i], c);
            scale(y, "a.{}", &[i], c) + 0.5 * stage.tanh() * out.at("c.{}.w", &[i + 1, c])
        })
    });
}

#[test]
fn a_loop_over_numbers_picks_elements_and_parts() {
    let text = "model M<n in 1..=64> {
            param w: f32[6, 4] = ones; param v: f32[n_of, 8] = ones; param m: f32[4, 5] = ones;
            let n_of = 3;
            pub fn f(x: f32[n, 8]) -> (f32[n, 4], f32[n], f32[n, 2]) {
                let mut a = x[.., ..4];
                let mut b = x[.., 0];
                let mut c = x[.., ..2];
                for i in 1..5 {
                    a = a * w[i] + w[i + 1, i - 1] - w[5 - i];
                    b = b + x[.., i] * x[.., 2 * i - 1];
                    for j in 0..3 { c += x[.., i + 2..i + 4] * v[j, 2 * j] + w[i, j]; }
                }
                (a, b, c)
            }
            #[train] pub fn loss(x: f32[n, 8]) -> f32 {
                let (a, b, c) = f(x);
                let mut d = 0.0;
                for i in 0..3 { let y = v @ x.t(); d += sum(y[i]) + sum(m[i..i + 2, 3 - i]); }
                mean(pow(a, 2)) + mean(tanh(b)) * sum(c) + d
            }
        }"
    .replace("let n_of = 3;", "")
    .replace("n_of", "3");
    let out = &entries(&text, &[3])[0];
    let (x, w) = (|i, j| out.at("x", &[i, j]), |i, j| out.at("w", &[i, j]));
    out.check(0, &[3, 4], |at| {
        (1..5).fold(x(at[0], at[1]), |a, i| a * w(i, at[1]) + w(i + 1, i - 1) - w(5 - i, at[1]))
    });
    out.check(1, &[3], |at| (1..5).fold(x(at[0], 0), |b, i| b + x(at[0], i) * x(at[0], 2 * i - 1)));
    out.check(2, &[3, 2], |at| {
        let step = |i: i64, j: i64| x(at[0], i + 2 + at[1]) * out.at("v", &[j, 2 * j]) + w(i, j);
        (1..5).fold(x(at[0], at[1]), |c, i| c + (0..3).map(|j| step(i, j)).sum::<f64>())
    });
}

#[test]
fn a_loop_over_a_runtime_dimension_is_a_recurrent_net() {
    let text = "layer Cell<dim> { fc: Linear<dim, dim>, ih: Linear<dim, dim, bias = false>,
            fn forward(x: f32[n, dim], h: f32[n, dim]) -> f32[n, dim] { tanh(ih(x) + fc(h)) } }
        model M<seq in 1..=9, n in 1..=4> { cell: Cell<3>,
            pub fn f(x: f32[n, seq, 3]) -> f32[n, 3] {
                let mut h = x[.., 0, ..] * 0.5;
                for t in 0..seq { h = cell(x[.., t, ..], h); }
                h
            }
            #[train] pub fn loss(x: f32[n, seq, 3]) -> f32 { sum(pow(f(x), 2)) }
        }";
    for seq in [1, 2, 5] {
        let out = &entries(text, &[seq, 2])[0];
        out.check(0, &[2, 3], |at| {
            let start: Vec<f64> = (0..3).map(|c| 0.5 * out.at("x", &[at[0], 0, c])).collect();
            let step = |h: Vec<f64>, t: i64| {
                let product = |row: i64| -> f64 {
                    let ih: f64 =
                        (0..3).map(|k| out.at("cell.ih.weight", &[row, k]) * out.at("x", &[at[0], t, k])).sum();
                    let hh: f64 = (0..3).map(|k| out.at("cell.fc.weight", &[row, k]) * h[k as usize]).sum();
                    ih + hh + out.at("cell.fc.bias", &[row])
                };
                (0..3).map(|row| product(row).tanh()).collect()
            };
            (0..seq).fold(start, step)[at[1] as usize]
        });
    }
}

#[test]
fn single_layers_of_arrays_are_their_rows() {
    let text = model(
        "a: [Scale; 3], b: [Stage; 2],",
        "let mut y = a[0](x) + a[-1](x) * b[1].inner[2](x);
         for s in b[0].inner { y = y + s(a[1](y)); }
         for stage in b { y = stage.inner[-1](y); }
         for i in 0..2 { y = y * a[i + 1].w + b[i].last(y); }
         for s in a[..2] { y = s(y); }
         y",
    );
    let out = &entries(&text, &[2])[0];
    out.check(0, &[2, 3], |at| {
        let (x, c) = (out.at("x", at), at[1]);
        let scale = |y: f64, name: &str, index: &[i64]| {
            let at = [index, &[c]].concat();
            y * out.at(&format!("{name}.w"), &at) + out.at(&format!("{name}.b"), &at).tanh()
        };
        let mut y = scale(x, "a.{}", &[0]) + scale(x, "a.{}", &[2]) * scale(x, "b.{}.inner.{}", &[1, 2]);
        y = (0..4).fold(y, |y, j| y + scale(scale(y, "a.{}", &[1]), "b.{}.inner.{}", &[0, j]));
        y = (0..2).fold(y, |y, i| scale(y, "b.{}.inner.{}", &[i, 3]));
        y = (0..2).fold(y, |y, i| y * out.at("a.{}.w", &[i + 1, c]) + scale(y, "b.{}.last", &[i]));
        (0..2).fold(y, |y, i| scale(y, "a.{}", &[i]))
    });
}

#[test]
fn numbers_of_loops_go_into_functions_as_numbers() {
    let text = "layer Take<dim> { param w: f32[4, dim] = ones;
            fn forward(x: f32[.., dim], k: u32) -> f32[.., dim] { x * w[k] + f32(k) } }
        model M<n in 1..=4> { take: Take<3>,
            fn twice(k: u32) -> u32 { k + 1 }
            pub fn f(x: f32[n, 3]) -> f32[n, 3] {
                let mut y = x;
                for i in 0..3 { y = take(y, twice(i)); }
                take(y, 0)
            }
            #[train] pub fn loss(x: f32[n, 3]) -> f32 { sum(f(x)) }
        }";
    let out = &entries(text, &[2])[0];
    out.check(0, &[2, 3], |at| {
        [1, 2, 3, 0].into_iter().fold(out.at("x", at), |y, k| y * out.at("take.w", &[k, at[1]]) + k as f64)
    });
}

#[test]
fn depth_changes_numbers_and_nothing_else_in_any_loop() {
    let text = |depth: usize| {
        let body = "let mut y = x;
            for (i, p) in a { for s in p.inner { y = s(y) * f32(i + 1); } }
            for (p, q) in (a, b) { y = q(p(y)); }
            for i in 0..depth { y = y * w[i] + b[i](y); }
            y";
        let members = format!("a: [Stage; {depth}], b: [Scale; {depth}], param w: f32[{depth}, 3] = ones;");
        clean(&model(&members, &body.replace("depth", &depth.to_string()))).entries[1].graph.to_string()
    };
    let numbers = |text: String, depth: usize| {
        text.replace(&format!("repeat {depth} "), "repeat D ").replace(&format!("f32[{depth}, "), "f32[D, ")
    };
    assert_eq!(numbers(text(7), 7), numbers(text(93), 93));
}

#[test]
fn mistakes_of_loops_name_both_sides() {
    let body =
        |body: &str| model("a: [Scale; 3], b: [Stage; 2], fc: Linear<3, 3>,", &format!("let mut y = x; {body} y"));
    let texts: Vec<String> = [
        "for (p, q) in (a, b) { y = p(y); }",
        "for i in 0..0 { y = y; }",
        "for i in 3..2 { y = y; }",
        "for i in 0..n - 1 { y = y * 2; }",
        "for i in 0..=0.5 { y = y; }",
        "for i in 4 { y = y; }",
        "for row in x { y = y + row; }",
        "for s in fc { y = s(y); }",
        "for i in 0..4 { y = y + x[.., i]; }",
        "for i in 0..2 { y = y + x[.., i..i + 3]; }",
        "for i in 0..2 { y = y + x[.., ..i]; }",
        "y = a[3](y);",
        "y = a[-4](y);",
        "y = a[0, 1](y);",
        "y = a[n](y);",
        "for i in 0..3 { y = a[i + 1](y); }",
        "for i in 0..2 { y = a[2 * i](y); }",
        "for s in a[2..2] { y = s(y); }",
        "for i in 0..3 { y = y * (i - 1); }",
        "for i in 0..3 { if i == 1 { y = x; } }",
        "for i in 0..2 { for j in 0..i { y = x; } }",
        "for i in 0..3 { i = 2; }",
    ]
    .iter()
    .map(|text| body(text))
    .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let found = in_source(&texts);
    let lines: Vec<&str> = found
        .lines()
        .filter(|line| line.contains("let mut y = x;") || line.starts_with("    ") && line.contains(": "))
        .collect();
    let shown: String = lines
        .iter()
        .filter_map(|line| match line.split_once("let mut y = x; ") {
            Some((_, body)) => body.strip_suffix(" y }").map(|body| format!("{body}\n")),
            None if line.trim_start().starts_with(|c: char| c.is_ascii_digit()) => {
                line.trim_start().splitn(3, ':').nth(2).map(|message| format!("   {message}\n"))
            }
            None => None,
        })
        .collect();
    expect![[r#"
        for (p, q) in (a, b) { y = p(y); }
            arrays of one loop are equally long: `a` has 3, `b` has 2
        for i in 0..0 { y = y; }
            a loop runs at least once: nothing lies from 0 to 0
        for i in 3..2 { y = y; }
            a loop runs at least once: nothing lies from 3 to 2
        for i in 0..n - 1 { y = y * 2; }
            a loop runs at least once: from 0 to `n - 1` may be nothing
        for i in 0..=0.5 { y = y; }
            the bounds of a loop are constants or dimensions, found 0.5
        for i in 4 { y = y; }
            a loop goes over an array of layers, found 4: a loop over numbers is written `for i in 0..n`
        for row in x { y = y + row; }
            a loop goes over an array of layers, found f32[n, 3]: its parts are `x[i]` in `for i in 0..n`
        for s in fc { y = s(y); }
            a loop goes over an array of layers, found the layer `fc`
        for i in 0..4 { y = y + x[.., i]; }
            the loop goes from 0 to 3, outside of axis 1, which has 3
        for i in 0..2 { y = y + x[.., i..i + 3]; }
            the loop goes from 0 to 3, outside of axis 1, which has 3
        for i in 0..2 { y = y + x[.., ..i]; }
            the length of this part changes with the loop: expected one that stays, such as `x[i..i + 4]`
        y = a[3](y);
            3 lies outside of `a`, which has 3 layers
        y = a[-4](y);
            -4 lies outside of `a`, which has 3 layers
        y = a[0, 1](y);
            `a` is an array of layers: expected 1 index, found 2
        y = a[n](y);
            `a` is an array of layers: expected a constant or the number of a loop, found `n`
        for i in 0..3 { y = a[i + 1](y); }
            1..4 lies outside of `a`, which has 3 layers
        for i in 0..2 { y = a[2 * i](y); }
            `a` is an array of layers: expected a constant or the number of a loop, found a number that changes otherwise
        for s in a[2..2] { y = s(y); }
            2..2 lies outside of `a`, which has 3 layers
        for i in 0..3 { y = y * (i - 1); }
            a number of a loop is u32 and not negative, found -1
        for i in 0..3 { if i == 1 { y = x; } }
            the condition of an `if` is a constant: for each element write `where(mask, a, b)`
        for i in 0..2 { for j in 0..i { y = x; } }
            the bounds of a loop are constants or dimensions, found a number that changes with its loop
        for i in 0..3 { i = 2; }
            `i` does not change: declare it with `let mut i`
    "#]].assert_eq(&shown);
}
