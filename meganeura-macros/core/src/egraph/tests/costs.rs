//! What the cost says of single kernels.

use super::models::*;
use super::*;
use crate::egraph::cost::{Cost, REFERENCE};

/// The price of the one kernel that is chosen, in nanoseconds.
fn price(graph: &Graph, env: &Env) -> u64 {
    let searched = searched(graph, env);
    assert_eq!(searched.kernels().len(), 1, "{:?}", searched.outline());
    let cost = Cost { device: REFERENCE, at: env };
    cost.node(&searched.eg, searched.kernels()[0]) / 1000
}

fn product(k: i64, n: i64) -> Graph {
    model(|f| {
        let shape = f.rows(k);
        let (x, w) = (f.input(shape), f.tensor(&[n, k]));
        vec![einsum(&mut f.g, "mk,nk->mn", x, w)]
    })
}

#[test]
fn a_product_of_one_tile_is_launch_bytes_and_flops() {
    let (m, k, n) = (64, 1000, 64);
    let bytes = 4 * (m * k + n * k + m * n);
    let expected = 2200 + bytes / 4000 + 2 * m * k * n / 30_000;
    assert!(price(&product(k, n), &at(m)).abs_diff(expected as u64) <= 2);
}

#[test]
fn sides_are_read_again_for_each_tile_of_the_other() {
    let (m, k, n) = (128, 1000, 192);
    let bytes = 4 * (m * k + n * k + m * n);
    let cached = 4 * (m * k * 2 + n * k);
    let expected = 2200 + bytes / 4000 + cached / 16_000 + 2 * m * k * n / 30_000;
    assert!(price(&product(k, n), &at(m)).abs_diff(expected as u64) <= 3);
}

/// Gate and up read their common rows once; two products of different rows read both.
#[test]
fn accumulators_of_the_same_rows_share_what_they_read() {
    let gated = |same: bool| {
        model(|f| {
            let shape = f.rows(512);
            let (x, y) = (f.input(shape.clone()), f.input(shape));
            let (a, b) = (f.tensor(&[1024, 512]), f.tensor(&[1024, 512]));
            let u = einsum(&mut f.g, "mk,nk->mn", x, a);
            let v = einsum(&mut f.g, "mk,nk->mn", if same { x } else { y }, b);
            vec![f.g.mul(u, v)]
        })
    };
    let (m, k, tiles) = (128, 512, 1024 / 64);
    let bytes = 4 * m * k;
    let saved = bytes / 4000 + bytes * (tiles - 1) / 16_000;
    let (same, other) = (price(&gated(true), &at(m)), price(&gated(false), &at(m)));
    assert!((other - same).abs_diff(saved as u64) <= 2, "{same} {other}");
}

#[test]
fn a_program_counts_its_elements() {
    let map = model(|f| {
        let shape = f.rows(1000);
        let x = f.input(shape);
        vec![f.g.un(meganeura_shaders::pointwise::Un::Exp, x)]
    });
    let elements = 300 * 1000;
    let expected = 2200 + 2 * 4 * elements / 4000 + 8 * elements / 30_000;
    assert!(price(&map, &at(300)).abs_diff(expected as u64) <= 2);
}
