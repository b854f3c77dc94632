//! Elementwise functions, and the four types of elements.

use super::{gradients, mistake, values};

#[test]
fn rectifiers_with_learned_slopes() {
    values(
        "f32[n, 3, 5]",
        "prelu(x, q)",
        &[(&[4, 3, 5], &|s, at| {
            let x = s.at("x", at);
            if x > 0.0 { x } else { x * s.at("q", at) }
        })],
    );
    gradients("prelu(p * 1.3, q)");
    gradients("prelu(p, 0.2)");
    gradients("prelu(r, reshape(sum(p, axis = 1), [3, 1]))");
}

#[test]
fn powers_at_their_corners() {
    values(
        "f32[n, 5], f32[n, 5], f32[n, 5]",
        "(pow(m, 0), pow(m, 1), pow(abs(m), 0.5))",
        &[(&[4, 5], &|_, _| 1.0), (&[4, 5], &|s, at| s.at("m", at)), (&[4, 5], &|s, at| s.at("m", at).abs().sqrt())],
    );
    gradients("pow(p, 3) + pow(abs(p) + 0.5, q)");
    gradients("pow(2, p) + pow(p * 0, 3) + pow(p * 0, q * 0)");
}

#[test]
fn bounds_and_choices() {
    gradients("clamp(p, -0.3, q) * where(p < 0.1, p, q * 2) + masked_fill(r, r > p, 0.25)");
    gradients("relu6(p * 8) * hardswish(p * 5) + hardsigmoid(p * 4) + min(p, q) * max(p, 0.1)");
}

#[test]
fn integers_go_through_everything_that_has_a_meaning_for_them() {
    let whole = |s: &super::Stores, at: &[i64]| s.at("whole", at) - 2.0;
    values(
        "i32[n, 5], i32[n, 5], i32[n, 5], i32[n, 5], bool[n, 5], i32[n, 5]",
        "let w = whole - 2;
        (abs(w), sign(w), clamp(w, -1, 1), where(mask, w, 0 - w), (w > 0) == mask, min(w, w * w) * max(w, w - w * w))",
        &[
            (&[4, 5], &|s, at| whole(s, at).abs()),
            (&[4, 5], &|s, at| if whole(s, at) == 0.0 { 0.0 } else { whole(s, at).signum() }),
            (&[4, 5], &|s, at| whole(s, at).clamp(-1.0, 1.0)),
            (&[4, 5], &|s, at| if s.at("mask", at) != 0.0 { whole(s, at) } else { -whole(s, at) }),
            (&[4, 5], &|s, at| f64::from(u8::from((whole(s, at) > 0.0) == (s.at("mask", at) != 0.0)))),
            (&[4, 5], &|s, at| {
                let w = whole(s, at);
                w.min(w * w) * w.max(w - w * w)
            }),
        ],
    );
}

#[test]
fn bytes_are_numbers_once_they_are_in() {
    values(
        "f32[n, 5], u32[n, 5], bool[n, 5]",
        "(f32(bytes) / 255, bytes * 2, (bytes == 3) | !mask & mask)",
        &[
            (&[4, 5], &|s, at| s.at("bytes", at) / 255.0),
            (&[4, 5], &|s, at| s.at("bytes", at) * 2.0),
            (&[4, 5], &|s, at| f64::from(u8::from(s.at("bytes", at) == 3.0))),
        ],
    );
    let text = "model M { pub fn f(x: u8[4]) -> u8[4] { x } }";
    assert!(super::mistakes(text).contains("`u8` is for arguments"), "{}", super::mistakes(text));
}

#[test]
fn types_that_do_not_fit_are_told() {
    assert!(mistake("abs(ids)").contains("f32 or i32"));
    assert!(mistake("f32(ids) & mask").contains("bool"), "{}", mistake("f32(ids) & mask"));
    assert!(mistake("f32(ids & ids)").contains("bool"));
}
