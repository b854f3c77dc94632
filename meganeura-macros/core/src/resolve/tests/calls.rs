//! Mistakes in names and calls.

use expect_test::expect;

use super::in_function;

#[test]
fn names_are_told_with_the_nearest_one() {
    expect![[r#"
        sum(z)
            4:5: unknown name `z`
        sum(relo(x))
            4:5: unknown name `relo`, did you mean `relu`?
        sum(fc2(x))
            4:5: unknown name `fc2`, did you mean `fc`?
        sum(x.gelo())
            4:7: unknown name `gelo`, did you mean `gelu`?
        sum(fc.wieght)
            4:8: `fc` has no member `wieght`, did you mean `weight`?
        sum(fc.encode(x))
            4:8: `fc` has no function `encode`, expected `forward`
        sum(relu)
            4:5: `relu` is a function: call it
        sum(helper)
            4:5: `helper` is a function: call it
        sum(Linear(x))
            4:5: a layer is a member: declare `name: Linear<..>` above and call `name`
        let a = b; sum(a)
            4:9: unknown name `b`
        sum(x + batc)
            4:9: unknown name `batc`, did you mean `batch`?
        sum(x.max_pool2d(3))
            4:7: `max_pool2d` is not available yet
        sum(x.shape)
            4:7: sizes are known by name: give the axis one in the type of the function
        sum(x.T)
            4:7: the last two axes are swapped by `.t()`
        dim(x)
            4:1: only layers and functions can be called, found 8
        x(x)
            4:1: only layers and functions can be called, found f32[batch, 8]
        sum(y.fc)
            4:7: a tensor has no member `fc`
    "#]]
    .assert_eq(&in_function(&[
        "sum(z)",
        "sum(relo(x))",
        "sum(fc2(x))",
        "sum(x.gelo())",
        "sum(fc.wieght)",
        "sum(fc.encode(x))",
        "sum(relu)",
        "sum(helper)",
        "sum(Linear(x))",
        "let a = b; sum(a)",
        "sum(x + batc)",
        "sum(x.max_pool2d(3))",
        "sum(x.shape)",
        "sum(x.T)",
        "dim(x)",
        "x(x)",
        "sum(y.fc)",
    ]));
}

#[test]
fn calls_need_their_arguments() {
    expect![[r#"
        sum(fc())
            4:5: `fc` takes 1 argument, found 0: `x` is missing
        sum(fc(x, x))
            4:11: `fc` takes 1 argument, found 2
        sum(fc(y = x))
            4:8: `fc` has no argument `y`, expected `x`
        sum(helper(x))
            4:5: `helper` takes 2 arguments, found 1: `b` is missing
        sum(helper(x, sum(x, axis = 1), x))
            4:33: `helper` takes 2 arguments, found 3
        sum(helper(x, a = x))
            4:15: `a` of `helper` is given twice
        sum(helper(b = sum(x, axis = 1), a = x))
            no mistake
        sum()
            4:1: `sum` takes at least 1 argument, found 0: `x` is missing
        sum(x, 0, true, 1)
            4:17: `sum` takes at most 3 arguments, found 4
        sum(x, dim = 0)
            4:8: the argument `dim` is called `axis` here
        sum(x, axis = 0, keepdim = true)
            4:18: the argument `keepdim` is called `keep` here
        sum(x, axes = 0)
            4:8: the argument `axes` is called `axis` here
        sum(x, foo = 0)
            4:8: `sum` has no argument `foo`, expected one of `x`, `axis`, `keep`
        sum(relu(x, inplace = true))
            4:13: `relu` has no argument `inplace`, expected `x`
        sum(clamp(x, min = 0.0, max = 1.0))
            4:14: the argument `min` is called `low` here
            4:25: the argument `max` is called `high` here
        sum(var(x, unbiased = true))
            4:12: the argument `unbiased` is called `correction` here
        sum(leaky_relu(x, negative_slope = 0.1))
            4:19: the argument `negative_slope` is called `slope` here
        sum(x.softmax(dim = 1))
            4:15: the argument `dim` is called `axis` here
        sum(matmul(x, x))
            4:5: `matmul` is written `a @ b`
        sum(view(x, [8]))
            4:5: `view` is called `reshape` here
        sum(cat([x, x], 0))
            4:5: `cat` is called `concat` here
        sum(x.unsqueeze(0))
            4:7: `unsqueeze` is written `reshape(x, [..])`, with or without an axis of 1
        sum(maximum(x, 0.0))
            4:5: `maximum` is called `max` here
        mse_loss(x, x)
            4:1: `mse_loss` is called `mse` here
    "#]]
    .assert_eq(&in_function(&[
        "sum(fc())",
        "sum(fc(x, x))",
        "sum(fc(y = x))",
        "sum(helper(x))",
        "sum(helper(x, sum(x, axis = 1), x))",
        "sum(helper(x, a = x))",
        "sum(helper(b = sum(x, axis = 1), a = x))",
        "sum()",
        "sum(x, 0, true, 1)",
        "sum(x, dim = 0)",
        "sum(x, axis = 0, keepdim = true)",
        "sum(x, axes = 0)",
        "sum(x, foo = 0)",
        "sum(relu(x, inplace = true))",
        "sum(clamp(x, min = 0.0, max = 1.0))",
        "sum(var(x, unbiased = true))",
        "sum(leaky_relu(x, negative_slope = 0.1))",
        "sum(x.softmax(dim = 1))",
        "sum(matmul(x, x))",
        "sum(view(x, [8]))",
        "sum(cat([x, x], 0))",
        "sum(x.unsqueeze(0))",
        "sum(maximum(x, 0.0))",
        "mse_loss(x, x)",
    ]));
}

#[test]
fn functions_do_not_call_themselves_and_know_their_arguments() {
    expect![[r#"
        model M<batch in 1..=4> { fn f(x: f32[batch]) -> f32 { f(x) } pub fn run(x: f32[batch]) -> f32 { f(x) } }
            1:56: `f` calls itself: functions are inlined, so none may
        model M<batch in 1..=4> {
                    fn f(x: f32[batch]) -> f32 { g(x) }
                    fn g(x: f32[batch]) -> f32 { f(x) }
                    pub fn run(x: f32[batch]) -> f32 { g(x) }
                }
            2:42: `g` calls itself: functions are inlined, so none may
        layer L { param w: f32[4] = ones; }
                model M<batch in 1..=4> { l: L, pub fn run(x: f32[batch, 4]) -> f32 { sum(l(x)) } }
            2:83: `l` has no function `forward`
        layer L { fn encode(x: f32[n]) -> f32[n] { x } }
                model M<batch in 1..=4> { l: L, pub fn run(x: f32[batch]) -> f32[batch] { l.encode(l.decode(x)) } }
            2:94: `l` has no function `decode`, did you mean `encode`?
        layer L { fn forward(x: f32[n], x: f32[n]) -> f32[n] { x } }
            1:33: `x` is declared twice
        layer L { fn forward(x: f32[n]) -> f32[m] { x } }
            1:40: unknown size `m`: no parameter has it in its type
        layer L { fn forward(x: f32[n]) -> f32[n] { relu(x, y) } }
            1:53: `relu` takes 1 argument, found 2
            1:53: unknown name `y`
        layer Unused { fn forward(x: f32[n]) -> f32[n] { x + misspelt } }
            1:54: unknown name `misspelt`
        model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[batch, 4] { bs(x) } }
            1:98: `bs` is an array of layers: call them one by one, `for layer in bs { x = layer(x); }`
        model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[batch, 4] { bs[0](x) } }
            no mistake
        model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[4, 4] { bs.weight } }
            1:97: `bs` is an array of layers: take them one by one, `for layer in bs`
    "#]]
    .assert_eq(&super::in_source(&[
        "model M<batch in 1..=4> { fn f(x: f32[batch]) -> f32 { f(x) } pub fn run(x: f32[batch]) -> f32 { f(x) } }",
        "model M<batch in 1..=4> {
            fn f(x: f32[batch]) -> f32 { g(x) }
            fn g(x: f32[batch]) -> f32 { f(x) }
            pub fn run(x: f32[batch]) -> f32 { g(x) }
        }",
        "layer L { param w: f32[4] = ones; }
        model M<batch in 1..=4> { l: L, pub fn run(x: f32[batch, 4]) -> f32 { sum(l(x)) } }",
        "layer L { fn encode(x: f32[n]) -> f32[n] { x } }
        model M<batch in 1..=4> { l: L, pub fn run(x: f32[batch]) -> f32[batch] { l.encode(l.decode(x)) } }",
        "layer L { fn forward(x: f32[n], x: f32[n]) -> f32[n] { x } }",
        "layer L { fn forward(x: f32[n]) -> f32[m] { x } }",
        "layer L { fn forward(x: f32[n]) -> f32[n] { relu(x, y) } }",
        "layer Unused { fn forward(x: f32[n]) -> f32[n] { x + misspelt } }",
        "model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[batch, 4] { bs(x) } }",
        "model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[batch, 4] { bs[0](x) } }",
        "model M<batch in 1..=4> { bs: [Linear<4, 4>; 2], pub fn run(x: f32[batch, 4]) -> f32[4, 4] { bs.weight } }",
    ]));
}
