//! Whatever the tokens are: no panic, and either a mistake is told or every graph is whole.

use proc_macro2::{Group, TokenStream, TokenTree};

use super::first_page::{DECODER, MLP};
use crate::errors::Errors;
use crate::resolve::{Items, declare, resolve_model};
use crate::syntax::{ItemBody, ItemKind, parse};
use crate::testing::next_random;

/// A model with most of what this version has.
const RICH: &str = "
layer Half<dim, deep = true> {
    let half = dim / 2;
    if deep { up: Linear<dim, half, bias = false>, } else { param scale: f32[half] = ones; }
    norm: RmsNorm<half, eps = 1e-5>,
    fn forward(x: f32[.., dim], k: u32) -> f32[.., half] {
        let y = if deep { up(x) } else { x[.., ..half] * scale };
        norm(relu(y) - f32(k))
    }
    fn weigh(x: f32[n, half], w: f32[n]) -> f32[half] { w @ softmax(x, axis = -1) }
}
model Rich<dim = 8, depth = 3, batch in 1..=64, seq in 4..=64 step 4> {
    #[name = \"a.b\"] halves: [Half<dim>; depth],
    #[frozen] head: Linear<dim / 2, 10, init = normal(0.02)>,
    param table: f32[10, dim] = xavier_uniform;
    let area = batch * seq;
    pub fn run(x: f32[batch, seq, dim], pos: u32 in 0..16) -> (f32[batch, seq, 10], f32) {
        let mut y = x;
        let (mut total, rest) = (0.0, clamp(x, -1, 1.0));
        for half in halves {
            let z = half(y, pos);
            total += mean(z) / f32(area);
            y = y + z @ half.up.weight;
        }
        (head(y[.., .., dim / 2..]) + where(rest > 0.5, rest, 0) @ table.t(), total)
    }
    #[train] pub fn loss(x: f32[batch, dim], label: u32[batch]) -> f32 {
        let flat = reshape(x, [_, 1, dim]).flatten(from = 1);
        cross_entropy(head(max(flat, -flat)[.., 0..4]), label) + var(flat, correction = 1) * sum(x, axis = [0, 1], keep = false)
    }
}";

fn below(state: &mut u64, limit: usize) -> usize {
    (next_random(state) % limit.max(1) as u64) as usize
}

fn pool() -> Vec<TokenTree> {
    let text =
        "if else let mut param true x y z half halves head total dim depth batch seq pos label table area f32 u32
        Linear RmsNorm Half ones zeros relu sum mean softmax reshape cross_entropy axis keep
        0 1 2 3 8 1.5 -1 .. = == < > + - * / @ & | ! . , ; [] () (x) [0] [x] [x, x] (x, y) [..] [_, 2] {x}";
    text.parse::<TokenStream>().unwrap().into_iter().collect()
}

/// Changes one place somewhere inside.
fn mutate(stream: TokenStream, state: &mut u64, pool: &[TokenTree]) -> TokenStream {
    let mut trees: Vec<TokenTree> = stream.into_iter().collect();
    let groups: Vec<usize> = (0..trees.len()).filter(|at| matches!(trees[*at], TokenTree::Group(_))).collect();
    if !groups.is_empty() && below(state, 5) > 0 {
        let at = groups[below(state, groups.len())];
        if let TokenTree::Group(group) = &trees[at] {
            let inner = mutate(group.stream(), state, pool);
            trees[at] = TokenTree::Group(Group::new(group.delimiter(), inner));
        }
        return trees.into_iter().collect();
    }
    if trees.is_empty() {
        return trees.into_iter().collect();
    }
    let (at, other) = (below(state, trees.len()), below(state, trees.len()));
    match below(state, 5) {
        0 => drop(trees.remove(at)),
        1 => trees.insert(at, pool[below(state, pool.len())].clone()),
        2 => trees.swap(at, other),
        3 => trees[at] = trees[other].clone(),
        _ => trees[at] = pool[below(state, pool.len())].clone(),
    }
    trees.into_iter().collect()
}

#[test]
fn mutations_are_told_or_resolve_to_whole_graphs() {
    let (mut state, pool) = (17, pool());
    let texts: [TokenStream; 3] = [RICH, MLP, DECODER].map(|text| text.parse().unwrap());
    let (mut told, mut whole) = (0, 0);
    for round in 0..2_000 {
        let mut stream = texts[if round % 8 == 0 {
            1
        } else if round % 8 == 1 {
            2
        } else {
            0
        }]
        .clone();
        for _ in 0..=below(&mut state, 2) {
            stream = mutate(stream, &mut state, &pool);
        }
        let mut errors = Errors::new();
        let source = parse(stream.clone(), &mut errors);
        let items = Items::new(&source);
        declare(&source, &items, &mut errors);
        let models = source.items.iter().filter(|item| item.kind == ItemKind::Model);
        let defined = models.filter(|item| matches!(item.body, ItemBody::Definition(_)));
        let resolved: Vec<_> = defined.map(|item| resolve_model(item, &items, &mut errors)).collect();
        let text = errors.render();
        assert!(!text.contains("internal error"), "{text}\n{stream}");
        if !errors.is_empty() {
            told += 1;
            continue;
        }
        for model in resolved {
            let model = model.unwrap_or_else(|| panic!("nothing told, nothing made: {stream}"));
            model.entries.iter().for_each(|entry| entry.graph.verify().unwrap());
            whole += model.entries.len();
        }
    }
    assert!(told > 500 && whole > 100, "{told} told, {whole} whole");
}
