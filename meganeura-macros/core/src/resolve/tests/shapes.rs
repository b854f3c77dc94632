//! Mistakes in shapes.

use expect_test::expect;

use super::in_function;

#[test]
fn layers_and_functions_check_what_they_are_given() {
    expect![[r#"
        sum(fc(fc(x)))
            4:8: `fc` expects its input's last axis to be 8 (`dim`), found 4
                   fc(x): f32[batch, 4]
        sum(wide(x))
            4:10: `wide` expects its input's last axis to be 16 (`2 * dim`), found 8
                   x: f32[batch, 8]
        sum(fc(sum(x)))
            4:8: `fc` expects its input to be f32[.., 8], found f32
                   sum(x): f32
        sum(norm(wide(y)))
            4:10: `norm` expects its input's last axis to be 8 (`dim`), found 4
                   wide(y): f32[batch, seq, 4]
            4:15: `wide` expects its input's last axis to be 16 (`2 * dim`), found 8
                   y: f32[batch, seq, 8]
        sum(helper(y, x))
            4:12: `helper` expects `a` to be f32[n, 8], found f32[batch, seq, 8]
                   y: f32[batch, seq, 8]
            4:15: `helper` expects `b` to be f32[n], found f32[batch, 8]
                   x: f32[batch, 8]
        sum(helper(x, sum(y, axis = [1, 2])) + helper(x, sum(x, axis = 0)))
            4:50: `helper` expects the last axis of `b` to be `batch` (`n`), found 8
                   sum(x, axis = 0): f32[8]
        sum(helper(sum(y, axis = 0), sum(x, axis = 1)))
            4:30: `helper` expects the last axis of `b` to be `seq` (`n`), found `batch`
                   sum(x, axis = 1): f32[batch]
    "#]]
    .assert_eq(&in_function(&[
        "sum(fc(fc(x)))",
        "sum(wide(x))",
        "sum(fc(sum(x)))",
        "sum(norm(wide(y)))",
        "sum(helper(y, x))",
        "sum(helper(x, sum(y, axis = [1, 2])) + helper(x, sum(x, axis = 0)))",
        "sum(helper(sum(y, axis = 0), sum(x, axis = 1)))",
    ]));
}

#[test]
fn operators_name_the_axis_and_both_sides() {
    expect![[r#"
        sum(x + fc(x))
            4:7: the operands of `+` do not broadcast: their last axis is 8 and 4
                   x: f32[batch, 8]
                   fc(x): f32[batch, 4]
        sum(x * y)
            4:7: the operands of `*` do not broadcast: their axis -2 is `batch` and `seq`
                   x: f32[batch, 8]
                   y: f32[batch, seq, 8]
        let mut a = x; a += fc(x); sum(a)
            4:18: the operands of `+` do not broadcast: their last axis is 8 and 4
                   a: f32[batch, 8]
                   fc(x): f32[batch, 4]
        sum(x @ x)
            4:7: `@` expects the second last axis of its right side to be 8, as the last axis of its left side, found `batch`
                   x: f32[batch, 8]
                   x: f32[batch, 8]
        sum(x @ fc.weight)
            4:7: `@` expects the second last axis of its right side to be 8, as the last axis of its left side, found 4
                   x: f32[batch, 8]
                   fc.weight: f32[4, 8]
        sum(x @ fc.weight.t())
            no mistake
        sum(x[0] @ x)
            4:10: `@` expects the second last axis of its right side to be 8, as the last axis of its left side, found `batch`
                   x[0]: f32[8]
                   x: f32[batch, 8]
        sum(sum(x) @ x)
            4:12: `@` expects tensors of at least 1 axis: a scalar is multiplied by `*`
                   sum(x): f32
                   x: f32[batch, 8]
        sum(y @ reshape(x, [batch, dim, 1]))
            no mistake
        sum(reshape(y, [seq, batch, dim]) @ reshape(y, [batch, dim, seq]))
            4:35: the operands of `@` do not broadcast: their axis -3 is `seq` and `batch`
                   reshape(y, [seq, batch, dim]): f32[seq, batch, 8]
                   reshape(y, [batch, dim, seq]): f32[batch, 8, seq]
        sum(where(x > 0.0, x, fc(x)))
            4:5: the operands of `where` do not broadcast: their last axis is 8 and 4
                   x: f32[batch, 8]
                   fc(x): f32[batch, 4]
        sum(max(x, fc(x)))
            4:5: the operands of `max` do not broadcast: their last axis is 8 and 4
                   x: f32[batch, 8]
                   fc(x): f32[batch, 4]
        sum(where(ids == 0, y, 0.0))
            4:15: the mask of `where` does not broadcast with the values
                   ids == 0: bool[batch]
                   y: f32[batch, seq, 8]
    "#]].assert_eq(&in_function(&[
        "sum(x + fc(x))",
        "sum(x * y)",
        "let mut a = x; a += fc(x); sum(a)",
        "sum(x @ x)",
        "sum(x @ fc.weight)",
        "sum(x @ fc.weight.t())",
        "sum(x[0] @ x)",
        "sum(sum(x) @ x)",
        "sum(y @ reshape(x, [batch, dim, 1]))",
        "sum(reshape(y, [seq, batch, dim]) @ reshape(y, [batch, dim, seq]))",
        "sum(where(x > 0.0, x, fc(x)))",
        "sum(max(x, fc(x)))",
        "sum(where(ids == 0, y, 0.0))",
    ]));
}

#[test]
fn shape_functions_count_elements_and_axes() {
    expect![[r#"
        sum(reshape(x, [batch, 9]))
            4:16: `reshape` keeps the number of elements: expected `8·batch`, found `9·batch`
                   x: f32[batch, 8]
        sum(reshape(x, [_, 3]))
            4:16: `_` cannot be found: `8·batch` elements do not divide by 3
                   x: f32[batch, 8]
        sum(reshape(x, [_, _]))
            4:16: `reshape` can find one size: expected one `_`
        sum(reshape(x, [batch, 8.0]))
            4:16: `reshape` expects `shape` to be a list of sizes, found [`batch`, 8.0]
        sum(reshape(x, 8))
            4:16: `reshape` expects `shape` to be a list of sizes, found 8
        sum(reshape(x, [batch, 0, _]))
            4:16: `reshape` keeps the number of elements: expected `8·batch`, found 0
                   x: f32[batch, 8]
        sum(flatten(y, from = 2, to = 1))
            4:31: `flatten` goes from an axis to a later one, found 2 and 1
                   y: f32[batch, seq, 8]
        sum(flatten(y, from = 3))
            4:23: `flatten` has no axis 3: its argument has 3 axes, -3 to 2
        sum(transpose(x, 0, 2))
            4:21: `transpose` has no axis 2: its argument has 2 axes, -2 to 1
        sum(permute(y, [0, 1]))
            4:16: `permute` names every axis once: expected 3, found 2
                   y: f32[batch, seq, 8]
        sum(permute(y, [0, 1, 1]))
            4:16: `permute` is given one axis twice
        sum(broadcast(x, [batch, 9]))
            4:18: [batch, 8] does not broadcast to [batch, 9]
                   x: f32[batch, 8]
        sum(broadcast(x, [batch, _]))
            4:18: `broadcast` needs every size: only `reshape` can find a `_`
        sum(x[0].t())
            4:6: `.t()` swaps the last two axes: expected at least 2, found 1
                   x[0]: f32[8]
        sum(softmax(x, axis = 2))
            4:23: `softmax` has no axis 2: its argument has 2 axes, -2 to 1
        sum(softmax(sum(x)))
            4:13: `softmax` works along an axis, found a scalar
        sum(sum(x, axis = -3))
            4:19: `sum` has no axis -3: its argument has 2 axes, -2 to 1
        sum(sum(x, axis = [0, 0]))
            4:19: `sum` is given one axis twice
        sum(sum(x, axis = []))
            4:19: `sum` is given no axis: leave `axis` out to reduce all
        sum(max(x, 0))
            4:12: `max` with 0 could mean an axis or an operand: write `axis = 0`, or `max(x, 0.0)`
        sum(max(x, [0, 1]))
            4:12: `max` over axes is written `axis = [0, 1]`
        sum(max(x, x, axis = 0))
            4:22: `max` of two operands has no axis
        sum(norm(x))
            no mistake
        sum(var(x, correction = 0.5))
            4:25: a correction is an integer of at least 0, found 0.5
        sum(zeros([batch, 0]))
            4:11: every axis is at least 1, found 0 in [batch, 0]
        sum(ones([batch, _]))
            4:10: `ones` needs every size: only `reshape` can find a `_`
        sum(full([batch], x))
            4:19: `full` expects `value` to be a scalar, found f32[batch, 8]
    "#]]
    .assert_eq(&in_function(&[
        "sum(reshape(x, [batch, 9]))",
        "sum(reshape(x, [_, 3]))",
        "sum(reshape(x, [_, _]))",
        "sum(reshape(x, [batch, 8.0]))",
        "sum(reshape(x, 8))",
        "sum(reshape(x, [batch, 0, _]))",
        "sum(flatten(y, from = 2, to = 1))",
        "sum(flatten(y, from = 3))",
        "sum(transpose(x, 0, 2))",
        "sum(permute(y, [0, 1]))",
        "sum(permute(y, [0, 1, 1]))",
        "sum(broadcast(x, [batch, 9]))",
        "sum(broadcast(x, [batch, _]))",
        "sum(x[0].t())",
        "sum(softmax(x, axis = 2))",
        "sum(softmax(sum(x)))",
        "sum(sum(x, axis = -3))",
        "sum(sum(x, axis = [0, 0]))",
        "sum(sum(x, axis = []))",
        "sum(max(x, 0))",
        "sum(max(x, [0, 1]))",
        "sum(max(x, x, axis = 0))",
        "sum(norm(x))",
        "sum(var(x, correction = 0.5))",
        "sum(zeros([batch, 0]))",
        "sum(ones([batch, _]))",
        "sum(full([batch], x))",
    ]));
}

#[test]
fn indices_stay_inside_of_their_axis() {
    expect![[r#"
        sum(x[0, 8])
            4:10: 8 lies outside of axis 1, which has 8
                   x: f32[batch, 8]
        sum(x[0, -9])
            4:10: -9 lies outside of axis 1, which has 8
                   x: f32[batch, 8]
        sum(x[0, 4..9])
            4:11: 4..9 lies outside of axis 1, which has 8
                   x: f32[batch, 8]
        sum(x[0, 4..4])
            4:11: 4..4 lies outside of axis 1, which has 8
                   x: f32[batch, 8]
        sum(x[0, 4..=8])
            4:11: 4..=8 lies outside of axis 1, which has 8
                   x: f32[batch, 8]
        sum(x[100])
            4:7: 100 lies outside of axis 0, which has `batch`
                   x: f32[batch, 8]
        sum(x[0, 0, 0])
            4:6: expected at most 2 indices, found 3
                   x: f32[batch, 8]
        sum(y[.., 0])
            4:6: each `..` stands for one axis: expected 3 indices, found 2
                   y: f32[batch, seq, 8]
        sum(x[ids])
            no mistake
        sum(x[0.5])
            4:7: an index is an integer or a dimension, found 0.5
        sum(x[x])
            4:7: an index is an integer or a dimension, found f32[batch, 8]
        sum(x[0..0.5])
            4:10: an index is an integer or a dimension, found 0.5
        sum(fc[0])
            4:7: only tensors have parts, found the layer `fc`
        sum(8[0])
            4:6: only tensors have parts, found 8
    "#]]
    .assert_eq(&in_function(&[
        "sum(x[0, 8])",
        "sum(x[0, -9])",
        "sum(x[0, 4..9])",
        "sum(x[0, 4..4])",
        "sum(x[0, 4..=8])",
        "sum(x[100])",
        "sum(x[0, 0, 0])",
        "sum(y[.., 0])",
        "sum(x[ids])",
        "sum(x[0.5])",
        "sum(x[x])",
        "sum(x[0..0.5])",
        "sum(fc[0])",
        "sum(8[0])",
    ]));
}

#[test]
fn sizes_divide_exactly_and_are_not_compared() {
    expect![[r#"
        sum(reshape(x, [batch * 3, dim / 3]))
            4:32: 8 / 3 leaves a rest of 2: sizes divide exactly
        sum(reshape(x, [batch / 2, 2 * dim]))
            4:23: `batch` / 2 may leave a rest: sizes divide exactly (a runtime dimension by its `step 2`)
        sum(x) / (dim - 8)
            4:15: division by 0
        if batch > 4 { sum(x) } else { sum(y) }
            4:10: `batch` is not known before a call, so nothing can depend on how it compares
        if dim { sum(x) } else { sum(y) }
            4:4: the condition of an `if` is a constant bool, found 8
        if sum(x) > 0.0 { sum(x) } else { sum(y) }
            4:11: the condition of an `if` is a constant: for each element write `where(mask, a, b)`
        sum(x) / batch
            4:10: `batch` is a runtime integer, expected f32: write `f32(..)` around it
        sum(x) * 0.5 / (1.0 / batch)
            4:21: `batch` is a runtime integer, expected f32: write `f32(..)` around it
        sum(x) + 9007199254740993
            4:10: this number is too large
        sum(zeros([9007199254740991 * 2]))
            4:29: this number is too large
        sum(zeros([4000000000, 4000000000]))
            4:11: a tensor of shape [4000000000, 4000000000] is too large
    "#]]
    .assert_eq(&in_function(&[
        "sum(reshape(x, [batch * 3, dim / 3]))",
        "sum(reshape(x, [batch / 2, 2 * dim]))",
        "sum(x) / (dim - 8)",
        "if batch > 4 { sum(x) } else { sum(y) }",
        "if dim { sum(x) } else { sum(y) }",
        "if sum(x) > 0.0 { sum(x) } else { sum(y) }",
        "sum(x) / batch",
        "sum(x) * 0.5 / (1.0 / batch)",
        "sum(x) + 9007199254740993",
        "sum(zeros([9007199254740991 * 2]))",
        "sum(zeros([4000000000, 4000000000]))",
    ]));
}

#[test]
fn attention_and_rope_say_what_they_expect() {
    expect![[r#"
        sum(attention(x, x, x))
            no mistake
        sum(attention(y, x, x))
            4:5: `attention` expects queries `[.., queries, heads, width]`, keys `[.., keys, kv_heads, width]` and values `[.., keys, kv_heads, any]` with equal axes in front, and `kv_heads` to divide `heads`
                   y: f32[batch, seq, 8]
                   x: f32[batch, 8]
                   x: f32[batch, 8]
        sum(attention(reshape(y, [batch, seq, 4, 2]), reshape(y, [batch, seq, 2, 4]), reshape(y, [batch, seq, 2, 4])))
            4:5: `attention` expects queries `[.., queries, heads, width]`, keys `[.., keys, kv_heads, width]` and values `[.., keys, kv_heads, any]` with equal axes in front, and `kv_heads` to divide `heads`
                   reshape(y, [batch, seq, 4, 2]): f32[batch, seq, 4, 2]
                   reshape(y, [batch, seq, 2, 4]): f32[batch, seq, 2, 4]
                   reshape(y, [batch, seq, 2, 4]): f32[batch, seq, 2, 4]
        sum(attention(reshape(y, [batch, seq, 4, 2]), reshape(y[.., ..6], [batch, seq, 3, 2]), reshape(y[.., ..6], [batch, seq, 3, 2])))
            4:56: each `..` stands for one axis: expected 3 indices, found 2
                   y: f32[batch, seq, 8]
            4:97: each `..` stands for one axis: expected 3 indices, found 2
                   y: f32[batch, seq, 8]
        sum(attention(x[0], x, x))
            4:5: `attention` expects `[.., rows, heads, width]`, or `[rows, width]` for one head
                   x[0]: f32[8]
                   x: f32[batch, 8]
                   x: f32[batch, 8]
        sum(attention(x, x, x, mask = mask))
            4:31: a mask of `attention` is a bool or f32 tensor that broadcasts to [batch, batch], found bool[batch, 8]
        sum(attention(x, x, x, mask = 1))
            4:31: `attention` expects `mask` to be a tensor of bool or f32, found 1
        sum(attention(x, x, x, window = 0))
            4:33: `attention` expects `window` to be a size of at least 1, found 0
        sum(attention(x, x, x, causal = 1))
            4:33: `attention` expects `causal` to be `true` or `false`, found 1
        sum(rope(x, 0))
            no mistake
        sum(rope(x[0], 0))
            4:11: `rope` expects `[.., rows, heads, width]` or `[rows, width]`
                   x[0]: f32[8]
        sum(rope(x, 1.5))
            4:13: `rope` expects `pos` to be a u32 or a tensor of them, found 1.5
        sum(rope(x, ids))
            no mistake
        sum(rope(y, 0, dims = 3))
            4:23: `rope` turns an even number of elements, of a head that has 8, found 3
        sum(rope(y, 0, dims = 16))
            4:23: `rope` turns an even number of elements, of a head that has 8, found 16
        sum(rope(y, 0, theta = 0))
            4:24: `rope` expects `theta` above 0, found 0.0
        sum(rope(reshape(y, [batch, seq, 8, 1]), 0))
            4:10: `rope` turns an even number of elements, of a head that has 1, found 1
        sum(rope(y.t(), 0))
            4:12: `rope` turns an even number of elements, of a head that has `seq`, found `seq`
    "#]].assert_eq(&in_function(&[
        "sum(attention(x, x, x))",
        "sum(attention(y, x, x))",
        "sum(attention(reshape(y, [batch, seq, 4, 2]), reshape(y, [batch, seq, 2, 4]), reshape(y, [batch, seq, 2, 4])))",
        "sum(attention(reshape(y, [batch, seq, 4, 2]), reshape(y[.., ..6], [batch, seq, 3, 2]), reshape(y[.., ..6], [batch, seq, 3, 2])))",
        "sum(attention(x[0], x, x))",
        "sum(attention(x, x, x, mask = mask))",
        "sum(attention(x, x, x, mask = 1))",
        "sum(attention(x, x, x, window = 0))",
        "sum(attention(x, x, x, causal = 1))",
        "sum(rope(x, 0))",
        "sum(rope(x[0], 0))",
        "sum(rope(x, 1.5))",
        "sum(rope(x, ids))",
        "sum(rope(y, 0, dims = 3))",
        "sum(rope(y, 0, dims = 16))",
        "sum(rope(y, 0, theta = 0))",
        "sum(rope(reshape(y, [batch, seq, 8, 1]), 0))",
        "sum(rope(y.t(), 0))",
    ]));
}
