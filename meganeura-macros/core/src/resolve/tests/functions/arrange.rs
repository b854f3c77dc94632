//! Functions of shape: joining, cutting, repeating, turning, and what is made of sizes alone.

use super::{Stores, gradients, mistake, values};

#[test]
fn parts_are_joined_along_any_axis() {
    values(
        "f32[n, 6, 5], f32[2 * n, 5], f32[n, 3, 11], i32[n, 10], bool[n, 7]",
        "(concat([x, x * 2], axis = 1), concat([m, m + 1], 0), concat([x, x[.., .., 0..1], neg(x)], -1),
          concat([whole, whole + 1], 1), concat([mask, mask[.., 1..3]], 1))",
        &[
            (&[4, 6, 5], &|s, at| s.at("x", &[at[0], at[1] % 3, at[2]]) * if at[1] < 3 { 1.0 } else { 2.0 }),
            (&[8, 5], &|s, at| s.at("m", &[at[0] % 4, at[1]]) + f64::from(u8::from(at[0] >= 4))),
            (&[4, 3, 11], &|s, at| match at[2] {
                0..5 => s.at("x", at),
                5 => s.at("x", &[at[0], at[1], 0]),
                k => -s.at("x", &[at[0], at[1], k - 6]),
            }),
            (&[4, 10], &|s, at| s.at("whole", &[at[0], at[1] % 5]) + f64::from(u8::from(at[1] >= 5))),
            (&[4, 7], &|s, at| s.at("mask", &[at[0], if at[1] < 5 { at[1] } else { at[1] - 4 }])),
        ],
    );
    gradients("concat([p, p * q, r[0]], 0) * 0.5");
    gradients("concat([p, reshape(q, [1, 5]) * 3, p[0..1]], axis = 0) + 1");
    gradients("concat([r, broadcast(q, [2, 1, 5]), r * 2], axis = 1)");
    // More parts than one kernel takes.
    let many = (1..=30).map(|k| format!("q * {k}")).collect::<Vec<_>>().join(", ");
    values(
        "f32[n * 30]",
        &format!("concat([{}], 0)", (1..=30).map(|k| format!("f32(ids) * {k}")).collect::<Vec<_>>().join(", ")),
        &[(&[120], &|s, at| s.at("ids", &[at[0] % 4]) * (at[0] / 4 + 1) as f64)],
    );
    gradients(&format!("concat([{many}], 0)"));
    assert!(mistake("concat([x, m], 1)[0]").contains("axis 1 alone"));
}

#[test]
fn parts_are_stacked_on_a_new_axis() {
    values(
        "f32[2, n, 5], f32[n, 2, 5], f32[n, 5, 3], u32[2]",
        "(stack([m, m * 2], 0), stack([m, m * 2], 1), stack([m, m, m], axis = -1), stack([ids[0], ids[0] + 1], 0))",
        &[
            (&[2, 4, 5], &|s, at| s.at("m", &at[1..]) * (at[0] + 1) as f64),
            (&[4, 2, 5], &|s, at| s.at("m", &[at[0], at[2]]) * (at[1] + 1) as f64),
            (&[4, 5, 3], &|s, at| s.at("m", &at[..2])),
            (&[2], &|s, at| s.at("ids", &[0]) + at[0] as f64),
        ],
    );
    gradients("stack([p, p * q], axis = 1)");
}

#[test]
fn axes_are_cut_into_parts() {
    values(
        "f32[n, 3, 2], f32[n, 3, 3], f32[n, 1, 5]",
        "let (a, b) = split(x, [2, 3], axis = 2); let (c, d, e) = split(x, 3, 1); (a, b, d - c * 0 + e * 0)",
        &[
            (&[4, 3, 2], &|s, at| s.at("x", at)),
            (&[4, 3, 3], &|s, at| s.at("x", &[at[0], at[1], at[2] + 2])),
            (&[4, 1, 5], &|s, at| s.at("x", &[at[0], 1, at[2]])),
        ],
    );
    gradients("let (a, b) = split(p, [2, 3], 1); concat([b * 2, a], 1)");
    assert!(mistake("let (a, b) = split(x, 2, 1); a[.., 0, 0]").contains("axis of 3"));
    assert!(mistake("let (a, b) = split(x, [1, 1], 1); a[.., 0, 0]").contains("axis of 3"));
}

#[test]
fn values_are_put_around() {
    let inside = |at: &[i64]| (1..4).contains(&at[1]) && (2..7).contains(&at[2]);
    values(
        "f32[n, 5, 8], f32[n, 6], i32[n, 7], bool[n, 6]",
        "(pad(x, [[1, 1], [2, 1]], value = 7), pad(m, [[0, 1]]), pad(whole, [[2, 0]], value = -3), pad(mask, [[0, 1]]))",
        &[
            (&[4, 5, 8], &|s, at| if inside(at) { s.at("x", &[at[0], at[1] - 1, at[2] - 2]) } else { 7.0 }),
            (&[4, 6], &|s, at| if at[1] < 5 { s.at("m", at) } else { 0.0 }),
            (&[4, 7], &|s, at| if at[1] >= 2 { s.at("whole", &[at[0], at[1] - 2]) } else { -3.0 }),
            (&[4, 6], &|s, at| if at[1] < 5 { s.at("mask", at) } else { 0.0 }),
        ],
    );
    gradients("pad(p, [[1, 0], [0, 2]], value = 0.5)");
    gradients("pad(p * q, [[2, 3]]) * 0.5");
}

#[test]
fn elements_are_repeated_each_or_all_together() {
    values(
        "f32[n, 10], f32[n, 10], f32[3 * n, 5], f32[n * n]",
        "(repeat(m, 2, axis = 1), tile(m, 2, axis = 1), repeat(m, 3, 0), tile(f32(ids), n, 0))",
        &[
            (&[4, 10], &|s, at| s.at("m", &[at[0], at[1] / 2])),
            (&[4, 10], &|s, at| s.at("m", &[at[0], at[1] % 5])),
            (&[12, 5], &|s, at| s.at("m", &[at[0] / 3, at[1]])),
            (&[16], &|s, at| s.at("ids", &[at[0] % 4])),
        ],
    );
    gradients("repeat(p, 3, axis = 0) * tile(q, 1, 0) + tile(p, 3, 0)");
}

#[test]
fn axes_are_turned_round() {
    values(
        "f32[n, 3, 5], f32[n, 5], u32[n]",
        "(flip(x, [1, 2]), flip(m, 0), flip(ids, axis = -1))",
        &[
            (&[4, 3, 5], &|s, at| s.at("x", &[at[0], 2 - at[1], 4 - at[2]])),
            (&[4, 5], &|s, at| s.at("m", &[3 - at[0], at[1]])),
            (&[4], &|s, at| s.at("ids", &[3 - at[0]])),
        ],
    );
    gradients("flip(p, 1) * q + flip(p, [0, 1])");
}

#[test]
fn triangles_keep_their_side() {
    let keep = |holds: bool, value: f64| if holds { value } else { 0.0 };
    values(
        "f32[n, 3, 5], f32[n, 3, 5], f32[n, 5], bool[n, 5]",
        "(tril(x), triu(x, k = 1), tril(m, -2), triu(mask, k = -1))",
        &[
            (&[4, 3, 5], &|s, at| keep(at[2] <= at[1], s.at("x", at))),
            (&[4, 3, 5], &|s, at| keep(at[2] > at[1], s.at("x", at))),
            (&[4, 5], &|s, at| keep(at[1] + 2 <= at[0], s.at("m", at))),
            (&[4, 5], &|s, at| keep(at[1] + 1 >= at[0], s.at("mask", at))),
        ],
    );
    gradients("tril(p) * 2 + triu(p, k = 2) * q");
}

#[test]
fn tensors_of_sizes() {
    values(
        "u32[n], f32[7], f32[1], f32[n, 4], f32[n]",
        "(arange(n) * 2, linspace(-1, 2.5, 7), linspace(3, 4, 1), one_hot(min(ids, 0 * ids + 3), 4), linspace(0, 1, n))",
        &[
            (&[4], &|_, at| 2.0 * at[0] as f64),
            (&[7], &|_, at| -1.0 + 3.5 * at[0] as f64 / 6.0),
            (&[1], &|_, _| 3.0),
            (&[4, 4], &|s: &Stores, at| f64::from(u8::from(s.at("ids", &at[..1]).min(3.0) == at[1] as f64))),
            (&[4], &|_, at| at[0] as f64 / 3.0),
        ],
    );
    gradients("one_hot(ids, 5) @ p.t() + f32(arange(3)) * linspace(q[0], 2, 3)");
}

#[test]
fn habits_of_python_are_told() {
    assert!(mistake("concat([m, m], dim = 1)[.., 0]").contains("called `axis`"));
    assert!(mistake("cumsum(m, dim = 1)[.., 0]").contains("called `axis`"));
    assert!(mistake("prod(m, axis = 1, keepdim = false)").contains("called `keep`"));
    assert!(mistake("cat([m, m], 1)[.., 0]").contains("called `concat`"));
}
