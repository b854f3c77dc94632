//! Rows and elements that ids name.

use super::{gradients, mistake, values};

#[test]
fn ids_pick_rows_of_any_axis() {
    values("f32[n, 3, 5], f32[n, n, 5], f32[n, 3, n], f32[3, 5], bool[n, 5], f32[2, n]", "let w = x[0];
        let two = stack([ids, ids], 0) * 0 + 2;
        (x[ids * 0 + arange(n)], x[.., min(ids, ids * 0 + 2), ..], x[.., .., ids], x[ids[0] * 0], mask[arange(n)], w[1, two])", &[
        (&[4, 3, 5], &|s, at| s.at("x", at)),
        (&[4, 4, 5], &|s, at| s.at("x", &[at[0], s.at("ids", &[at[1]]).min(2.0) as i64, at[2]])),
        (&[4, 3, 4], &|s, at| s.at("x", &[at[0], at[1], s.at("ids", &[at[2]]) as i64])),
        (&[3, 5], &|s, at| s.at("x", &[0, at[0], at[1]])),
        (&[4, 5], &|s, at| s.at("mask", at)),
        (&[2, 4], &|s, _| s.at("x", &[0, 1, 2])),
    ]);
    // Ids that name a row twice: the gradients of both add up.
    gradients("p.t()[ids] * 0.5");
    gradients("p[.., ids] + p[.., arange(n) * 0]");
    gradients("r[.., repeat(arange(3), 2, 0), ..]");
    assert!(mistake("m[whole[.., 0], 0]").contains("ids are u32"));
    assert!(mistake("x[ids, ids, 0]").contains("a second tensor of ids"));
}

#[test]
fn gather_takes_along_an_axis() {
    values(
        "f32[n, 2, 5], f32[n, 3, 2], f32[n, 3, 1], f32[2, 5]",
        "let a = reshape(tile(arange(3), 4, 0)[0..10], [1, 2, 5]);
        let b = reshape(arange(2), [1, 1, 2]) * 4;
        let c = reshape(ids, [n, 1, 1]);
        (gather(x, a, axis = 1), gather(x, b, 2), gather(x, c, axis = -1), gather(m, reshape(arange(2), [2, 1]), 0))",
        &[
            (&[4, 2, 5], &|s, at| s.at("x", &[at[0], (at[1] * 5 + at[2]) % 3, at[2]])),
            (&[4, 3, 2], &|s, at| s.at("x", &[at[0], at[1], at[2] * 4])),
            (&[4, 3, 1], &|s, at| s.at("x", &[at[0], at[1], s.at("ids", &[at[0]]) as i64])),
            (&[2, 5], &|s, at| s.at("m", at)),
        ],
    );
    gradients("gather(p, reshape(tile(arange(2), 8, 0)[0..15], [3, 5]), axis = 0) * q");
    gradients("gather(r, reshape(arange(3), [1, 3, 1]) * 2, axis = 2)");
}

#[test]
fn scattered_values_add_up() {
    values("f32[n, 5], u32[5]", "(scatter_add(m, reshape(repeat(arange(2), 2, 0)[0..3], [1, 3]) + 1, x[.., .., 0], axis = 1), scatter_add(ids[0] * 0 + zeros_of, ids, ids * 0 + 1, 0))".replace("zeros_of", "arange(5) * 0").as_str(), &[
        (&[4, 5], &|s, at| {
            let sent = (0..3).filter(|j| j / 2 + 1 == at[1]).map(|j| s.at("x", &[at[0], j, 0]));
            s.at("m", at) + sent.sum::<f64>()
        }),
        (&[5], &|s, at| s.tensor("ids").data.iter().filter(|id| **id == at[0] as f64).count() as f64),
    ]);
    gradients("scatter_add(p, reshape(repeat(arange(2), 3, 0)[0..4], [4, 1]), concat([p, p[0..1]], 0) * q, axis = 0)");
    gradients("scatter_add(p, reshape(repeat(arange(4), 4, 0)[0..15], [3, 5]), p * 2, axis = 1)");
}

#[test]
fn an_embedding_is_its_rows_and_a_tied_weight_has_one_gradient() {
    let resolved = super::clean(
        "model M<n in 1..=64> {
            embed: Embedding<7, 3>,
            #[train] pub fn loss(ids: u32[n, 2], label: u32[n, 2]) -> f32 {
                let h = tanh(embed(ids) * 1.3);
                2.5 * cross_entropy(h @ embed.weight.t(), label)
            }
        }",
    );
    let graph = &resolved.entries[0].graph;
    assert_eq!(graph.stores.iter().filter(|store| store.below == Some(7.into())).count(), 2, "both kinds of ids");
    let loss = graph.outputs[0].value;
    for policy in crate::testing::POLICIES {
        crate::testing::check_gradients(graph, loss, &[4], 3, policy);
    }
    super::check_schedules("embedding", &crate::testing::training(graph, loss, crate::autodiff::Policy::Contractions));
}
