//! Models with several mistakes: each is one error.

use expect_test::expect;

use super::mistakes;

#[test]
fn two_mistakes_in_one_body_are_two_errors() {
    expect![[r#"
        4:30: unknown name `aa`
        5:19: `b` expects its input's last axis to be 8, found 16
               a(x): f32[n, 16]
    "#]]
    .assert_eq(&mistakes(
        "model M<n in 1..=4> {
            a: Linear<8, 16>, b: Linear<8, 4>,
            pub fn f(x: f32[n, 8]) -> f32[n, 4] {
                let h = relu(aa(x));
                b(a(x)) + h * h - softmax(h)
            }
        }",
    ));
}

#[test]
fn a_broken_layer_does_not_break_its_users() {
    expect![[r#"
        3:68: `down` expects its input's last axis to be 32 (`4 * dim`), found 8
               x: f32[n, 8]
        12:97: `cross_entropy` expects `label` to be u32, found f32[n]
               label: f32[n]
    "#]]
    .assert_eq(&mistakes(
        "layer Block<dim> {
            up: Linear<dim, 4 * dim>, down: Linear<4 * dim, dim>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] { x + down(x) }
        }
        model M<n in 1..=4> {
            blocks: [Block<8>; 3], head: Linear<8, 10>,
            pub fn scores(x: f32[n, 8]) -> f32[n, 10] {
                let mut x = x;
                for block in blocks { x = block(x); }
                head(x)
            }
            #[train] pub fn loss(x: f32[n, 8], label: f32[n]) -> f32 { cross_entropy(scores(x), label) }
            pub fn best(x: f32[n, 8]) -> u32[n] { argmax(scores(x), axis = 1) }
        }",
    ));
}

#[test]
fn six_mistakes_are_six_errors_in_order() {
    expect![[r#"
        2:28: 7 / 2 leaves a rest of 1: sizes divide exactly
        8:34: `Linear` has no argument `biass`, did you mean `bias`?
        9:37: unknown name `one`, did you mean `ones`?
        10:66: `#[train]` needs a loss: expected `loss` to give f32, or a tuple that starts with it, found f32[1]
        12:34: unknown name `undefined`
        13:33: `@` expects the second last axis of its right side to be 7, as the last axis of its left side, found `n`
               relu(x): f32[n, 7]
               x: f32[n, 7]
    "#]]
    .assert_eq(&mistakes(
        "layer Half<dim> {
            let half = dim / 2;
            fc: Linear<dim, half>,
            fn forward(x: f32[.., dim]) -> f32[.., half] { relu(fc(x)) }
        }
        pub model M<dim = 7, n in 1..=4> {
            half: Half<dim>,
            out: Linear<dim, 10, biass = false>,
            param scale: f32[dim] = one;
            #[train] pub fn loss(x: f32[n, 7], label: u32[n]) -> f32[1] {
                let h = half(x) * scale;
                let y = out(x) + undefined;
                let z = relu(x) @ x;
                cross_entropy(y, label)
            }
        }",
    ));
}

#[test]
fn a_mistake_in_a_shared_function_is_told_once() {
    expect![[r#"
        3:55: `fc` expects its input's last axis to be 8, found 4
               fc(x): f32[n, 4]
        6:51: `c` declares the last axis of its result as 8, found 4
               shared(x): f32[n, 4]
    "#]]
    .assert_eq(&mistakes(
        "model M<n in 1..=4> {
            fc: Linear<8, 4>,
            fn shared(x: f32[n, 8]) -> f32[n, 4] { fc(fc(x)) }
            pub fn a(x: f32[n, 8]) -> f32[n, 4] { shared(x) }
            pub fn b(x: f32[n, 8]) -> f32[n, 4] { shared(x) + shared(x) }
            pub fn c(x: f32[n, 8]) -> f32[n, 8] { shared(x) }
        }",
    ));
}

#[test]
fn one_member_that_cannot_be_made_is_one_error() {
    expect![[r#"
        2:17: unknown layer `Missing`
        3:31: unknown name `misspelt`
        4:23: 5 / 2 leaves a rest of 1: sizes divide exactly
    "#]]
    .assert_eq(&mistakes(
        "model M<n in 1..=4> {
            fc: Missing<8, 4>,
            param w: f32[4] = misspelt;
            let k = 5 / 2;
            other: Linear<k, 4>,
            pub fn a(x: f32[n, 8]) -> f32[n, 4] { fc(x) + w }
            pub fn b(x: f32[n, 8]) -> f32[n, 4] { other(fc(x) * fc.weight.t()) }
        }",
    ));
}

#[test]
fn a_syntax_mistake_leaves_the_rest_to_be_checked() {
    expect![[r#"
        2:26: expected `,` or `>`, found `4`
        3:65: expected `;`, found `y`
        4:53: `@` expects the second last axis of its right side to be 8, as the last axis of its left side, found `n`
               x: f32[n, 8]
               x: f32[n, 8]
    "#]]
    .assert_eq(&mistakes(
        "model M<n in 1..=4> {
            fc: Linear<8 4>,
            pub fn a(x: f32[n, 8]) -> f32[n, 4] { let y = fc(x) y }
            pub fn b(x: f32[n, 8]) -> f32[n, 4] { x @ x }
        }",
    ));
}

#[test]
fn a_local_that_a_loop_cannot_carry_is_silent_behind_it() {
    expect![[r#"
        4:29: unknown name `missing`
        6:17: a loop changes tensors only, `z` is (f32[n, 8], f32[n, 8])
    "#]]
    .assert_eq(&mistakes(
        "model M<n in 1..=4> {
            ls: [Linear<8, 8>; 3],
            pub fn f(x: f32[n, 8]) -> f32[n, 8] {
                let mut y = missing;
                let mut z = (x, x);
                for l in ls { y = l(x); z = l(x); }
                relu(y) + z
            }
        }",
    ));
}
