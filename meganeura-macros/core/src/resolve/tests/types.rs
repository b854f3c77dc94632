//! Mistakes in element types, results and statements.

use expect_test::expect;

use super::{in_function, in_source};

#[test]
fn element_types_do_not_mix() {
    expect![[r#"
        sum(x + ids)
            4:7: `+` expects one element type, found f32 and u32: `f32(..)` converts
                   x: f32[batch, 8]
                   ids: u32[batch]
        sum(x & mask)
            4:7: `&` expects one element type, found f32 and bool: a mask chooses with `where(mask, a, b)`
                   x: f32[batch, 8]
                   mask: bool[batch, 8]
        sum(x * mask)
            4:7: `*` expects one element type, found f32 and bool: a mask chooses with `where(mask, a, b)`
                   x: f32[batch, 8]
                   mask: bool[batch, 8]
        sum(!x)
            4:5: `!` expects bool, found f32
        sum(-ids)
            4:5: `-` expects f32 or i32, found u32
        sum(ids / 2)
            4:9: `/` expects f32, found u32
        sum(ids + 0.5)
            4:11: `+` expects u32, found 0.5
        sum(ids - 5000000000)
            4:11: `-` expects u32, found 5000000000
        sum(where(x, x, x))
            4:11: `where` expects `mask` to be bool, found f32[batch, 8]
        sum(where(mask, x, ids))
            4:5: `where` expects one element type, found f32 and u32: `f32(..)` converts
                   x: f32[batch, 8]
                   ids: u32[batch]
        sum(relu(ids))
            4:10: `relu` expects `x` to be f32, found u32[batch]
                   ids: u32[batch]
        sum(mask)
            4:5: `sum` expects `x` to be a tensor of f32, found bool[batch, 8]
        mean(ids)
            4:6: `mean` expects `x` to be a tensor of f32, found u32[batch]
        sum(ids @ ids)
            4:9: `@` expects f32, found u32 and u32
                   ids: u32[batch]
                   ids: u32[batch]
        sum(fc(mask))
            4:8: `fc` expects its input to be f32[.., 8], found bool[batch, 8]
                   mask: bool[batch, 8]
        sum(exp(true))
            4:9: `exp` expects `x` to be f32, found true
        sum(x) + true
            4:10: `+` expects f32, found true
        sum(x) + [1, 2]
            4:10: `+` expects f32, found [1, 2]
        sum(x) + "a"
            4:10: `+` expects f32, found a string
        sum(leaky_relu(x, slope = x))
            4:27: `leaky_relu` expects `slope` to be a number that is known now, found f32[batch, 8]
                   x: f32[batch, 8]
        sum(x, keep = 1)
            4:15: `sum` expects `keep` to be `true` or `false`, found 1
        sum(x, axis = 0.5)
            4:15: `sum` expects `axis` to be an axis or a list of them, found 0.5
        sum(x) + f32(true & 1)
            4:19: `&` expects numbers or tensors, found true and 1
        sum(-[1])
            4:5: `-` expects a number, found [1]
    "#]]
    .assert_eq(&in_function(&[
        "sum(x + ids)",
        "sum(x & mask)",
        "sum(x * mask)",
        "sum(!x)",
        "sum(-ids)",
        "sum(ids / 2)",
        "sum(ids + 0.5)",
        "sum(ids - 5000000000)",
        "sum(where(x, x, x))",
        "sum(where(mask, x, ids))",
        "sum(relu(ids))",
        "sum(mask)",
        "mean(ids)",
        "sum(ids @ ids)",
        "sum(fc(mask))",
        "sum(exp(true))",
        "sum(x) + true",
        "sum(x) + [1, 2]",
        "sum(x) + \"a\"",
        "sum(leaky_relu(x, slope = x))",
        "sum(x, keep = 1)",
        "sum(x, axis = 0.5)",
        "sum(x) + f32(true & 1)",
        "sum(-[1])",
    ]));
}

#[test]
fn losses_check_labels_and_shapes() {
    expect![[r#"
        cross_entropy(fc(x), x)
            4:22: `cross_entropy` expects `label` to be u32, found f32[batch, 8]
                   x: f32[batch, 8]
        cross_entropy(fc(x), x[.., 0])
            4:23: `cross_entropy` expects `label` to be u32, found f32[batch]
                   x[.., 0]: f32[batch]
        cross_entropy(fc(y), ids)
            4:22: `cross_entropy` expects one label for each row of logits, u32[batch, seq], found u32[batch]
                   fc(y): f32[batch, seq, 4]
                   ids: u32[batch]
        cross_entropy(fc(x), 0)
            4:22: `cross_entropy` expects `label` to be u32, found 0
        cross_entropy(sum(x), ids)
            4:15: `cross_entropy` works along an axis, found a scalar
        cross_entropy(fc(x), ids, label_smoothing = 0.1)
            no mistake
        mse(x, fc(x))
            4:1: `mse` expects two tensors of one shape
                   x: f32[batch, 8]
                   fc(x): f32[batch, 4]
        bce_with_logits(x, ids)
            4:20: `bce_with_logits` expects `target` to be f32, found u32[batch]
                   ids: u32[batch]
    "#]]
    .assert_eq(&in_function(&[
        "cross_entropy(fc(x), x)",
        "cross_entropy(fc(x), x[.., 0])",
        "cross_entropy(fc(y), ids)",
        "cross_entropy(fc(x), 0)",
        "cross_entropy(sum(x), ids)",
        "cross_entropy(fc(x), ids, label_smoothing = 0.1)",
        "mse(x, fc(x))",
        "bce_with_logits(x, ids)",
    ]));
}

#[test]
fn statements_change_only_what_may_change() {
    expect![[r#"
        x = relu(x); sum(x)
            4:1: `x` is an argument and does not change: write `let mut x = x;` first
        let a = x; a = relu(a); sum(a)
            4:12: `a` does not change: declare it with `let mut a`
        fc = x; sum(x)
            4:1: `fc` is a member, only locals change: write `let mut` and another name
        dim = 4; sum(x)
            4:1: `dim` is a member, only locals change: write `let mut` and another name
        let a = x; b = a; sum(a)
            4:12: unknown name `b`
        let mut a = x; a[0] = 1.0; sum(a)
            no mistake
        let (a, b) = x; sum(a)
            4:14: expected a tuple of 2 values, found f32[batch, 8]
        let (a, b) = (x, x, x); sum(a)
            4:5: expected 2 values, found 3
        let (a, a) = (x, x); sum(a)
            4:9: `a` is declared twice
        for i in 0..4 { let a = x; } sum(x)
            no mistake
        for l in fc { let a = l(x); } sum(x)
            4:10: a loop goes over an array of layers, found the layer `fc`
        for l in x { let a = l; } sum(x)
            4:10: a loop goes over an array of layers, found f32[batch, 8]: its parts are `x[i]` in `for i in 0..n`
        sum(sum)
            4:5: `sum` is a function: call it
        let sum = x; sum(x)
            4:14: only layers and functions can be called, found f32[batch, 8]
    "#]]
    .assert_eq(&in_function(&[
        "x = relu(x); sum(x)",
        "let a = x; a = relu(a); sum(a)",
        "fc = x; sum(x)",
        "dim = 4; sum(x)",
        "let a = x; b = a; sum(a)",
        "let mut a = x; a[0] = 1.0; sum(a)",
        "let (a, b) = x; sum(a)",
        "let (a, b) = (x, x, x); sum(a)",
        "let (a, a) = (x, x); sum(a)",
        "for i in 0..4 { let a = x; } sum(x)",
        "for l in fc { let a = l(x); } sum(x)",
        "for l in x { let a = l; } sum(x)",
        "sum(sum)",
        "let sum = x; sum(x)",
    ]));
}

#[test]
fn results_are_what_was_declared() {
    expect![[r#"
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 4] { x } }
            1:61: `f` declares the last axis of its result as 4, found 8
                   x: f32[n, 8]
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[8] { x } }
            1:58: `f` declares its result as f32[8], found f32[n, 8]
                   x: f32[n, 8]
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> u32[n, 8] { x } }
            1:61: `f` declares its result as u32[n, 8], found f32[n, 8]
                   x: f32[n, 8]
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32 { x } }
            1:55: `f` declares its result as f32, found f32[n, 8]
                   x: f32[n, 8]
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> (f32, f32) { x } }
            1:62: `f` declares its result as (f32, f32), found f32[n, 8]
                   x: f32[n, 8]
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> (f32[n, 8], f32) { (x, x) } }
            1:68: `f` declares its result as (f32[n, 8], f32), found (f32[n, 8], f32[n, 8])
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 8] { let y = x; } }
            1:49: `f` declares its result as f32[n, 8], found nothing
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) { x } }
            1:48: `f` declares no result, found f32[n, 8]: write `-> ..` before its body
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) { let y = x; } }
            1:30: the entry `f` has no result: write `-> ..` before its body
        model M<n in 1..=4> { #[train] pub fn f(x: f32[n, 8]) -> f32[n] { sum(x, axis = 1) } }
            1:58: `#[train]` needs a loss: expected `f` to give f32, or a tuple that starts with it, found f32[n]
        model M<n in 1..=4> { #[train] pub fn f(x: f32[n, 8]) { sum(x); } }
            1:39: `#[train]` needs a loss: expected `f` to give f32, or a tuple that starts with it, found nothing
        model M<n in 1..=4> { #[train] pub fn f(x: u32[n, 8]) -> (u32, f32) { (sum(x), 0.0) } }
            1:59: `#[train]` needs a loss: expected `f` to give f32, or a tuple that starts with it, found u32
        layer L { fn forward(x: f32[.., n]) -> f32[.., n] { sum(x, axis = -1) } }
                model M<n in 1..=4> { l: L, pub fn f(x: f32[n, 8]) -> f32[n, 8] { l(x) } }
            1:53: `forward` declares the leading axes (`..`) of its result as [n], found []
                   sum(x, axis = -1): f32[n]
    "#]]
    .assert_eq(&in_source(&[
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 4] { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[8] { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> u32[n, 8] { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32 { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> (f32, f32) { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> (f32[n, 8], f32) { (x, x) } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 8] { let y = x; } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) { let y = x; } }",
        "model M<n in 1..=4> { #[train] pub fn f(x: f32[n, 8]) -> f32[n] { sum(x, axis = 1) } }",
        "model M<n in 1..=4> { #[train] pub fn f(x: f32[n, 8]) { sum(x); } }",
        "model M<n in 1..=4> { #[train] pub fn f(x: u32[n, 8]) -> (u32, f32) { (sum(x), 0.0) } }",
        "layer L { fn forward(x: f32[.., n]) -> f32[.., n] { sum(x, axis = -1) } }
        model M<n in 1..=4> { l: L, pub fn f(x: f32[n, 8]) -> f32[n, 8] { l(x) } }",
    ]));
}

#[test]
fn a_loop_keeps_the_types_of_what_it_changes() {
    let model = |body: &str| {
        format!(
            "model M<n in 1..=4> {{ ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {{
{body}
            }} }}"
        )
    };
    let texts: Vec<String> = [
        "let mut x = x; for l in ws { x = l(x); } x",
        "let mut s = 0.0; for l in ls { s = s + x; } x + s",
        "let mut s = (x, x); for l in ls { s = (x, x); } x",
        "let mut s = x; for l in ls { s = [1]; } x",
        "let mut x = x; for l in ls { x = l(l(x)); x } x",
        "let mut x = x; for l in ls { x = sum(x > 0.0); } x",
        "let mut x = x; for l in ls { x = misspelt(x); } x",
        "let mut x = x; for (i, l) in ls { x = l(x); } x",
        "let mut x = x; for (a, b) in (ls, ls) { x = a(x) + b(x); } x",
    ]
    .iter()
    .map(|body| model(body))
    .collect();
    expect![[r#"
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for l in ws { x = l(x); } x
                    } }
            2:34: `x` keeps its type through the loop: expected f32[n, 8], found f32[n, 4]
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut s = 0.0; for l in ls { s = s + x; } x + s
                    } }
            2:38: `s` keeps its type through the loop: expected f32, found f32[n, 8]
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut s = (x, x); for l in ls { s = (x, x); } x
                    } }
            2:21: a loop changes tensors only, `s` is (f32[n, 8], f32[n, 8])
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut s = x; for l in ls { s = [1]; } x
                    } }
            2:34: `s` keeps its type through the loop: expected f32[n, 8], found [1]
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for l in ls { x = l(l(x)); x } x
                    } }
            2:43: a loop has no value: assign it to a `let mut` from outside
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for l in ls { x = sum(x > 0.0); } x
                    } }
            2:40: `sum` expects `x` to be a tensor of f32, found bool[n, 8]
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for l in ls { x = misspelt(x); } x
                    } }
            2:34: unknown name `misspelt`
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for (i, l) in ls { x = l(x); } x
                    } }
            no mistake
        model M<n in 1..=4> { ls: [Linear<8, 8>; 3], ws: [Linear<8, 4>; 2], pub fn f(x: f32[n, 8]) -> f32[n, 8] {
        let mut x = x; for (a, b) in (ls, ls) { x = a(x) + b(x); } x
                    } }
            no mistake
    "#]]
    .assert_eq(&in_source(&texts.iter().map(String::as_str).collect::<Vec<_>>()));
}
