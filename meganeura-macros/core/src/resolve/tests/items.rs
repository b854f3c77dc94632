//! Mistakes in items, members and dimensions.

use expect_test::expect;

use super::in_source;

#[test]
fn items_and_members_are_declared_once() {
    expect![[r#"
        layer A {} layer A {}
            1:18: `A` is defined twice, first on line 1
        layer A<n, n> {}
            1:12: `n` is declared twice, first on line 1
        layer A<n> { let n = 4; }
            1:18: `n` is declared twice, first on line 1
        layer A { param w: f32[4] = ones; param w: f32[4] = ones; }
            1:41: `w` is declared twice, first on line 1
        layer A<b> { if b { param w: f32[4] = ones; } else { param w: f32[5] = ones; } }
            no mistake
        layer A<b> { if b { param w: f32[4] = ones; } param w: f32[5] = ones; }
            1:53: `w` is declared twice, first on line 1
        layer A { a: B, } layer B { b: C, } layer C { c: A, }
            1:50: `A` contains itself: A → B → C → A
        layer A { a: A, }
            1:14: `A` contains itself
        layer A { a: Liner<1, 2>, }
            1:14: unknown layer `Liner`, did you mean `Linear`?
        layer A { a: Conv2d<1, 2, 3>, }
            1:14: `Conv2d` is not available yet
        layer A { a: Linear<1>, }
            1:14: `Linear` takes at least 2 arguments, found 1: `out` is missing
        layer A { a: Linear<1, 2, true, zeros, 4>, }
            1:40: `Linear` takes at most 4 arguments, found 5
        layer A { a: Linear<1, 2, biased = true>, }
            1:27: `Linear` has no argument `biased`, did you mean `bias`?
        layer A { a: Linear<1, out = 2, out = 3>, }
            1:33: `out` of `Linear` is given twice
        layer A { a: Linear<in_features = 1, out = 2>, }
            1:21: the argument `in_features` is called `in` here
        use crate::layers::Norm; layer A { n: Norm<4>, }
            no mistake
        model M { pub fn save(x: f32[4]) -> f32[4] { x } }
            1:18: `save` is a method that `M` has anyway: give the entry another name
        model M { pub fn schedule_x(x: f32[4]) -> f32[4] { x } fn load(x: f32[4]) -> f32[4] { x } }
            1:18: `schedule_x` is a method that `M` has anyway: give the entry another name
        #[ignore("a.*")] model M { #[store(q8_0)] a: Linear<1, 2>, #[checkpoint] fn f(x: f32[4]) -> f32[4] { x } }
            1:36: `#[store]` is not available yet
            1:62: `#[checkpoint]` is not available yet
        model M { buffer b: f32[4] = zeros; state s: f32[4]; }
            no mistake
        model M { pub fn f(x: u8[4]) -> u8[4] { x } }
            1:33: `u8` is for arguments: their bytes are brought in as u32, so the result is `u32`
    "#]]
    .assert_eq(&in_source(&[
        "layer A {} layer A {}",
        "layer A<n, n> {}",
        "layer A<n> { let n = 4; }",
        "layer A { param w: f32[4] = ones; param w: f32[4] = ones; }",
        "layer A<b> { if b { param w: f32[4] = ones; } else { param w: f32[5] = ones; } }",
        "layer A<b> { if b { param w: f32[4] = ones; } param w: f32[5] = ones; }",
        "layer A { a: B, } layer B { b: C, } layer C { c: A, }",
        "layer A { a: A, }",
        "layer A { a: Liner<1, 2>, }",
        "layer A { a: Conv2d<1, 2, 3>, }",
        "layer A { a: Linear<1>, }",
        "layer A { a: Linear<1, 2, true, zeros, 4>, }",
        "layer A { a: Linear<1, 2, biased = true>, }",
        "layer A { a: Linear<1, out = 2, out = 3>, }",
        "layer A { a: Linear<in_features = 1, out = 2>, }",
        "use crate::layers::Norm; layer A { n: Norm<4>, }",
        "model M { pub fn save(x: f32[4]) -> f32[4] { x } }",
        "model M { pub fn schedule_x(x: f32[4]) -> f32[4] { x } fn load(x: f32[4]) -> f32[4] { x } }",
        "#[ignore(\"a.*\")] model M { #[store(q8_0)] a: Linear<1, 2>, #[checkpoint] fn f(x: f32[4]) -> f32[4] { x } }",
        "model M { buffer b: f32[4] = zeros; state s: f32[4]; }",
        "model M { pub fn f(x: u8[4]) -> u8[4] { x } }",
    ]));
}

#[test]
fn dimensions_and_sizes_are_positive_constants() {
    expect![[r#"
        model M<n = 0> { a: Linear<n, 4>, }
            1:28: `in` of `a` is at least 1, found 0
        model M { a: Linear<784, 0>, }
            1:26: `out` of `a` is at least 1, found 0
        model M { a: Linear<784, 2.5>, }
            1:26: `out` of `a` is a size, found 2.5
        model M { a: Linear<784, true>, }
            1:26: `out` of `a` is a size, found true
        model M { a: Linear<784, 4, bias = 1>, }
            1:36: `bias` of `a` is `true` or `false`, found 1
        model M { a: Linear<784, 4, init = 1.0>, }
            1:36: `init` of `a` is an initialiser, found 1.0
        model M { a: Linear<784, 4, init = normal(-1.0)>, }
            1:36: a standard deviation is not negative, found -1
        model M<n in 1..=4> { a: Linear<n, 4>, }
            1:33: `in` of `a` is a constant, found `n`
        model M<n in 0..=4> {}
            1:14: the dimension `n` is at least 1, found 0
        model M<n in 4..=3> {}
            1:15: the range is empty: its least value is 4, its greatest 3
        model M<n in 4..4> {}
            1:15: the range is empty: its least value is 4, its greatest 3
        model M<n in 1..=0.5> {}
            1:18: a bound is a constant integer, found 0.5
        model M<n in 16..=64 step 0> {}
            1:27: a step is a constant integer of at least 1, found 0
        model M<n = m> {}
            1:13: unknown name `m`
        model M<n = m, m = 4> {}
            1:13: `m` does not exist here: it is declared later, or on a condition that does not hold
        model M<n = 7, h = n / 2> {}
            1:22: 7 / 2 leaves a rest of 1: sizes divide exactly
        model M { a: [Linear<4, 4>; 0], }
            1:29: an array has at least 1 layer, found 0 in `a`
        model M { a: [Linear<4, 4>; 1.5], }
            1:29: the length of `a` is a constant integer, found 1.5
        model M { param w: f32[0] = ones; }
            1:24: an axis of `w` is at least 1, found 0
        model M { param w: u32[4] = ones; }
            1:20: a `param` has elements of f32, found u32
        model M { param w: f32[4] = 1.0; }
            1:29: expected an initialiser, found 1.0: write `constant(1)`
        model M { param w: f32[4] = kaiming_uniform; }
            1:29: this initialiser counts inputs and outputs: expected at least 2 axes, found 1
        model M { param w: f32[4] = uniform(1); }
            1:29: `uniform` takes 2 arguments, found 1: `high` is missing
        model M { param w: f32[4] = uniform(1, 0); }
            1:29: the low end of `uniform` is 1, its high end 0: expected the lower one first
        model M { param w: f32[4] = normal(std = 0.1, mean = 0.0); }
            1:47: `normal` has no argument `mean`, expected `std`
        model M { param w: f32[4] = gaussian; }
            1:29: unknown name `gaussian`
        model M { param w: f32[4000000000, 4000000000] = ones; }
            1:20: a tensor of shape [4000000000, 4000000000] is too large
        model M { let a = relu(b); let b = 4; }
            1:24: `b` does not exist here: it is declared later, or on a condition that does not hold
        model M { let a = 1 / 0; let b = 2 / (a - 1); }
            1:21: division by 0
        model M { let a = zeros([4]); }
            1:19: expected a constant: arithmetic over numbers and dimensions, found f32[4]
        model M { param w: f32[4] = constant(1e39); }
            1:38: this number is too large
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 8] { x * 1e39 + elu(x, alpha = 1e39) } }
            1:65: this number is too large
            1:87: this number is too large
        model M<n in 1..=4294967295> { let a = n * n; let b = a + a; let c = b * n; }
            1:42: this number is too large
        model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32 { sum(reshape(x, [4000000000, 4000000000, 4000000000])) } }
            1:70: a tensor of shape [4000000000, 4000000000, 4000000000] is too large
        model M<deep = false> { if deep { param w: f32[4] = ones; } pub fn f(x: f32[4]) -> f32[4] { x + w } }
            1:97: `w` does not exist here: it is declared later, or on a condition that does not hold
        model M<deep = 1> { if deep { param w: f32[4] = ones; } }
            1:24: the condition of an `if` is a constant bool, found 1
        model M { #[name = "a"] x: Linear<4, 4>, #[name = "a"] y: Linear<4, 4>, }
            1:59: two tensors are called `a.weight`, the first on line 1: give one a `#[name = ".."]`
        model M { a: [Linear<4, 4>; 3], #[name = "a.1"] y: Linear<4, 4>, }
            1:52: two tensors are called `a.1.weight`, the first on line 1: give one a `#[name = ".."]`
        model M { a: Linear<4, 4>, #[train(params = "b.*")] pub fn f(x: f32[4]) -> f32 { sum(a(x)) } }
            1:45: `b.*` names no parameter that is trained, did you mean `a.*`?
    "#]]
    .assert_eq(&in_source(&[
        "model M<n = 0> { a: Linear<n, 4>, }",
        "model M { a: Linear<784, 0>, }",
        "model M { a: Linear<784, 2.5>, }",
        "model M { a: Linear<784, true>, }",
        "model M { a: Linear<784, 4, bias = 1>, }",
        "model M { a: Linear<784, 4, init = 1.0>, }",
        "model M { a: Linear<784, 4, init = normal(-1.0)>, }",
        "model M<n in 1..=4> { a: Linear<n, 4>, }",
        "model M<n in 0..=4> {}",
        "model M<n in 4..=3> {}",
        "model M<n in 4..4> {}",
        "model M<n in 1..=0.5> {}",
        "model M<n in 16..=64 step 0> {}",
        "model M<n = m> {}",
        "model M<n = m, m = 4> {}",
        "model M<n = 7, h = n / 2> {}",
        "model M { a: [Linear<4, 4>; 0], }",
        "model M { a: [Linear<4, 4>; 1.5], }",
        "model M { param w: f32[0] = ones; }",
        "model M { param w: u32[4] = ones; }",
        "model M { param w: f32[4] = 1.0; }",
        "model M { param w: f32[4] = kaiming_uniform; }",
        "model M { param w: f32[4] = uniform(1); }",
        "model M { param w: f32[4] = uniform(1, 0); }",
        "model M { param w: f32[4] = normal(std = 0.1, mean = 0.0); }",
        "model M { param w: f32[4] = gaussian; }",
        "model M { param w: f32[4000000000, 4000000000] = ones; }",
        "model M { let a = relu(b); let b = 4; }",
        "model M { let a = 1 / 0; let b = 2 / (a - 1); }",
        "model M { let a = zeros([4]); }",
        "model M { param w: f32[4] = constant(1e39); }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32[n, 8] { x * 1e39 + elu(x, alpha = 1e39) } }",
        "model M<n in 1..=4294967295> { let a = n * n; let b = a + a; let c = b * n; }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8]) -> f32 { sum(reshape(x, [4000000000, 4000000000, 4000000000])) } }",
        "model M<deep = false> { if deep { param w: f32[4] = ones; } pub fn f(x: f32[4]) -> f32[4] { x + w } }",
        "model M<deep = 1> { if deep { param w: f32[4] = ones; } }",
        "model M { #[name = \"a\"] x: Linear<4, 4>, #[name = \"a\"] y: Linear<4, 4>, }",
        "model M { a: [Linear<4, 4>; 3], #[name = \"a.1\"] y: Linear<4, 4>, }",
        "model M { a: Linear<4, 4>, #[train(params = \"b.*\")] pub fn f(x: f32[4]) -> f32 { sum(a(x)) } }",
    ]));
}

#[test]
fn entries_fix_their_dimensions() {
    expect![[r#"
        model M { pub fn f(x: f32[n, 4]) -> f32[4] { sum(x, axis = 0) } }
            1:27: unknown size `n`: a runtime dimension is declared between `<` and `>`, `n in 1..=256`
        model M { pub fn f(x: f32[.., 4]) -> f32 { sum(x) } }
            1:27: `x` is an argument of an entry: write all its axes out
        model M { pub fn f(x: (f32, f32)) -> f32 { 0.0 } }
            1:23: `x` is an argument of an entry, expected a tensor or a scalar, found a tuple
        model M<n in 1..=4> { pub fn f(x: f32[4]) -> f32[n, 4] { broadcast(x, [n, 4]) } }
            1:72: `n` is not known in `f`: no argument of the entry has it in its type
        model M<n in 1..=4> { let m = 2 * n; pub fn f(x: f32[4]) -> f32[4] { x * f32(m) } }
            1:35: `n` is not known in `f`: no argument of the entry has it in its type
        model M<n in 1..=4, m in 1..=4> { pub fn f(x: f32[n * m]) -> f32 { sum(x) } }
            1:42: `n` does not follow from the sizes of the arguments of `f`: give one argument an axis of `n`
        model M<n in 1..=4> { pub fn f(x: f32[n], k: u32 in 0..n) -> f32 { sum(x[k..]) } }
            1:56: a bound is a constant integer, found `n`
        model M<n in 1..=4> { pub fn f(x: f32[n], k: u32 in -1..4) -> f32 { sum(x) } }
            1:53: `k` is u32 and not negative, found -1
        model M<n in 1..=4> { pub fn f(x: f32[n], k: u32) -> f32 { sum(x[0..k]) } }
            1:69: an index is an integer or a dimension, found u32
        layer L { fn forward(x: f32[n], k: u32 in 0..4) -> f32[n] { x } }
                model M<n in 1..=4> { l: L, pub fn f(x: f32[n]) -> f32[n] { l(l(x, 5), -1) } }
            2:76: `l` expects `k` to be in 0..=3, found 5
            2:80: `l` expects `k` to be u32, found -1
        model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32 in 1..=8) -> f32[n, k] { x[.., ..k] } }
            no mistake
        model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32 in 1..=8, y: f32[k + n]) -> f32[n + 1] { y[k - 1..] } }
            no mistake
        model M<n in 1..=4> { pub fn f(n: f32[n, 8]) -> f32[n, 8] { n } }
            no mistake
        model M<n in 1..=4> { pub fn f(x: f32[n, 8], n: u32 in 1..=8) -> f32[n, 8] { x } }
            1:46: `n` is a member or dimension already: give the argument another name
        model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32) -> f32[k, 8] { x } }
            1:61: unknown size `k`: a runtime dimension is declared between `<` and `>`, `k in 1..=256`
        layer L { fn forward(x: f32[a, b], a: u32) -> f32[a, b] { x[..a] } }
                model M<n in 1..=4> { l: L, pub fn f(x: f32[2, 8], k: u32) -> f32[2, 8] { l(x, 2) + l(x, k) + l(x, 1) } }
            2:98: `forward` uses `a` as a size: expected a constant or a bounded argument, found a value
            2:105: `l` expects the first axis of `x` to be 1 (`a`), found 2
                   x: f32[2, 8]
        layer L { fn forward(b: f32[a, b], a: f32) -> f32[a, b] { b * a } }
                model M<n in 1..=4> { l: L, pub fn f(x: f32[n, 8]) -> f32[n, 8] { l(x, 2) } }
            no mistake
        model Inner<n in 1..=4> { let m = 2 * n; pub fn f(x: f32[n]) -> f32[m] { zeros([m]) } }
                model M<k in 1..=9> { inner: Inner, pub fn f(x: f32[k]) -> f32[k] { inner.f(x) } }
            2:83: `f` declares the last axis of its result as `k`, found `2·k`
                   inner.f(x): f32[2·k]
    "#]]
    .assert_eq(&in_source(&[
        "model M { pub fn f(x: f32[n, 4]) -> f32[4] { sum(x, axis = 0) } }",
        "model M { pub fn f(x: f32[.., 4]) -> f32 { sum(x) } }",
        "model M { pub fn f(x: (f32, f32)) -> f32 { 0.0 } }",
        "model M<n in 1..=4> { pub fn f(x: f32[4]) -> f32[n, 4] { broadcast(x, [n, 4]) } }",
        "model M<n in 1..=4> { let m = 2 * n; pub fn f(x: f32[4]) -> f32[4] { x * f32(m) } }",
        "model M<n in 1..=4, m in 1..=4> { pub fn f(x: f32[n * m]) -> f32 { sum(x) } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n], k: u32 in 0..n) -> f32 { sum(x[k..]) } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n], k: u32 in -1..4) -> f32 { sum(x) } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n], k: u32) -> f32 { sum(x[0..k]) } }",
        "layer L { fn forward(x: f32[n], k: u32 in 0..4) -> f32[n] { x } }
        model M<n in 1..=4> { l: L, pub fn f(x: f32[n]) -> f32[n] { l(l(x, 5), -1) } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32 in 1..=8) -> f32[n, k] { x[.., ..k] } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32 in 1..=8, y: f32[k + n]) -> f32[n + 1] { y[k - 1..] } }",
        "model M<n in 1..=4> { pub fn f(n: f32[n, 8]) -> f32[n, 8] { n } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8], n: u32 in 1..=8) -> f32[n, 8] { x } }",
        "model M<n in 1..=4> { pub fn f(x: f32[n, 8], k: u32) -> f32[k, 8] { x } }",
        "layer L { fn forward(x: f32[a, b], a: u32) -> f32[a, b] { x[..a] } }
        model M<n in 1..=4> { l: L, pub fn f(x: f32[2, 8], k: u32) -> f32[2, 8] { l(x, 2) + l(x, k) + l(x, 1) } }",
        "layer L { fn forward(b: f32[a, b], a: f32) -> f32[a, b] { b * a } }
        model M<n in 1..=4> { l: L, pub fn f(x: f32[n, 8]) -> f32[n, 8] { l(x, 2) } }",
        "model Inner<n in 1..=4> { let m = 2 * n; pub fn f(x: f32[n]) -> f32[m] { zeros([m]) } }
        model M<k in 1..=9> { inner: Inner, pub fn f(x: f32[k]) -> f32[k] { inner.f(x) } }",
    ]));
}
