//! Products and sums over labelled axes.

use super::{gradients, mistake, values};

fn total(count: i64, f: impl Fn(i64) -> f64) -> f64 {
    (0..count).map(f).sum()
}

#[test]
fn any_labels_meet() {
    values(
        "f32[n, 3, n], f32[5, n], f32[n], f32, f32[3], f32[n, 3], f32[n, 5, 3]",
        "(einsum(\"bik,jk->bij\", x, m), einsum(\"ij->ji\", m), einsum(\"bk,bk->b\", m, m), einsum(\"ij->\", m),
          einsum(\"bik->i\", x), einsum(\"bik,bk,b->bi\", x, m, f32(ids)), einsum(\"bij->bji\", x))",
        &[
            (&[4, 3, 4], &|s, at| total(5, |k| s.at("x", &[at[0], at[1], k]) * s.at("m", &[at[2], k]))),
            (&[5, 4], &|s, at| s.at("m", &[at[1], at[0]])),
            (&[4], &|s, at| total(5, |k| s.at("m", &[at[0], k]).powi(2))),
            (&[], &|s, _| s.tensor("m").data.iter().sum()),
            (&[3], &|s, at| total(20, |r| s.at("x", &[r / 5, at[0], r % 5]))),
            (&[4, 3], &|s, at| {
                total(5, |k| s.at("x", &[at[0], at[1], k]) * s.at("m", &[at[0], k])) * s.at("ids", &[at[0]])
            }),
            (&[4, 5, 3], &|s, at| s.at("x", &[at[0], at[2], at[1]])),
        ],
    );
    gradients("einsum(\"ik,jk->ij\", p, p) + 0.5");
    gradients("einsum(\"bik,k,ik->bi\", r, q, p)");
    gradients("einsum(\"bik,jl->bkj\", r, p)");
    gradients("einsum(\"i,j->ij\", q, q * 2)");
}

#[test]
fn diagonals_and_labels_of_one_side() {
    values(
        "f32[n], f32, f32[n, n], f32[5]",
        "let s = m @ m.t(); (einsum(\"ii->i\", s), einsum(\"ii\", s), einsum(\"ji\", s), einsum(\"ij,k->j\", m, f32(ids)))",
        &[
            (&[4], &|s, at| total(5, |k| s.at("m", &[at[0], k]).powi(2))),
            (&[], &|s, _| s.tensor("m").data.iter().map(|x| x * x).sum()),
            (&[4, 4], &|s, at| total(5, |k| s.at("m", &[at[0], k]) * s.at("m", &[at[1], k]))),
            (&[5], &|s, at| total(4, |i| s.at("m", &[i, at[0]])) * s.tensor("ids").data.iter().sum::<f64>()),
        ],
    );
    gradients("let s = p @ p.t(); einsum(\"ii,ij->j\", s, p)");
}

#[test]
fn mistakes_in_labels_are_told() {
    assert!(
        mistake("einsum(\"ij,jk->ik\", m, x)").contains("names")
            || mistake("einsum(\"ij,jk->ik\", m, x)").contains("name")
    );
    assert!(
        mistake("einsum(\"ij,jk->ik\", m, m)").contains("stands for 5 and for `n`"),
        "{}",
        mistake("einsum(\"ij,jk->ik\", m, m)")
    );
    assert!(mistake("einsum(\"ij->ik\", m)").contains("label `k`"));
    assert!(mistake("einsum(\"ij,ij->i\", m)").contains("2 operands, found 1 operand"));
    assert!(mistake("einsum(m, m)").contains("begins with its labels"));
}
