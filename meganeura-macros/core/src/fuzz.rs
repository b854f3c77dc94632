//! Whatever the tokens are: no panic, no hang, a small stack is enough, and either a mistake is told or every graph of a
//! call and of a training step is whole. `MEGANEURA_FUZZ` is the number of inputs; `cargo xtask fuzz` sets it high.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::{Duration, Instant};

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::autodiff::{Policy, differentiate};
use crate::errors::Errors;
use crate::pipeline::declare;
use crate::resolve::{Items, resolve_model};
use crate::syntax::{ItemBody, ItemKind, parse};
use crate::testing::{Expander, next_random};

/// What the main thread of a compiler may have less than.
const STACK: usize = 2 << 20;

/// Longer than any input of this size may take, tests in debug and a busy machine included.
const LONGEST: Duration = Duration::from_secs(30);

const FORMS: &str = "
layer Norm<dim, keep = 0.9> {
    buffer mean: f32[dim] = zeros; param scale: f32[dim] = ones;
    fn forward(x: f32[n, dim]) -> f32[n, dim] {
        mean = keep * mean + (1 - keep) * sum(x, axis = 0) / f32(n);
        tap(x - mean) * scale
    }
    fn both(x: f32[n, dim], k: u32) -> (f32[n, dim], f32[n]) { (x * f32(k), sum(x, axis = 1)) }
}
layer Stage<dim, deep = true> {
    norms: [Norm<dim>; 3],
    if deep { fc: Linear<dim, dim>, } else { param w: f32[dim, dim] = xavier_uniform; }
    fn forward(x: f32[n, dim]) -> f32[n, dim] {
        let mut y = x;
        for (i, norm) in norms { y += norm(y) * f32(i); y[.., i] = 0; }
        if deep { fc(y) } else { y @ w }
    }
}
model Net<dim = 6, depth = 2, max = 9, batch in 1..=64, seq in 1..=4> {
    gen: [Stage<dim>; depth], disc: [Stage<dim, deep = false>; depth],
    param table: f32[max, dim] = normal(0.02);
    let area = batch * seq;
    fn run(x: f32[batch, dim]) -> f32[batch, dim] {
        let mut y = x;
        for (a, b) in (gen, disc) { y = a(y) + b(y); }
        for i in 1..dim { y = y * table[i - 1] + y[.., i..i + 1]; }
        let (z, rest) = disc[0].norms[-1].both(y, 2);
        z[.., ..] + reshape(rest, [batch, 1])
    }
    pub fn part(x: f32[batch, dim], pos: u32 in 0..max - 3) -> (f32[batch, dim], f32[3, dim], bool[batch]) {
        let mut t = table;
        t[pos..pos + 2] *= 0.5;
        let y = run(x);
        (y, t[pos..pos + 3], y[.., 0] > 0)
    }
    #[train(params = \"gen.*\")] pub fn first(x: f32[batch, dim]) -> (f32, f32[batch]) { (mean(run(x)), x[.., 0]) }
    #[train(params = \"disc.*\")] pub fn second(x: f32[batch, dim]) -> f32 { sum(pow(run(x), 2)) / f32(area) }
}";

const MLP: &str = include_str!("syntax/tests/mlp.txt");
const DECODER: &str = include_str!("syntax/tests/decoder.txt");

fn below(state: &mut u64, limit: usize) -> usize {
    (next_random(state) >> 20) as usize % limit.max(1)
}

fn pool() -> Vec<TokenTree> {
    let text = "if else for in let mut fn pub use layer model param state buffer step as self _ true false r#if
        x y z i a b gen disc norms norm table dim depth batch seq pos mean area f32 u32 bool Linear RmsNorm Stage Norm
        zeros ones relu sum softmax reshape cross_entropy tap axis keep run both first
        0 1 2 3 9 1.5 1e30 1u8 18446744073709551615 \"s\" \"*\" 'c' , ; : :: . .. ..= = == < <= > >= + - * / @ & | ! # $ ? -> ** += *=
        () [] {} (x) [0] {x} (a, b) [i..i + 2] [.., 0] [_, 2] #[train] [..] (x: f32[batch, dim]) {let x = 1;}";
    text.parse::<TokenStream>().unwrap().into_iter().collect()
}

/// Changes one place somewhere inside.
fn mutate(stream: TokenStream, state: &mut u64, pool: &[TokenTree]) -> TokenStream {
    let mut trees: Vec<TokenTree> = stream.into_iter().collect();
    let groups: Vec<usize> = (0..trees.len()).filter(|at| matches!(trees[*at], TokenTree::Group(_))).collect();
    if !groups.is_empty() && below(state, 6) > 0 {
        let at = groups[below(state, groups.len())];
        if let TokenTree::Group(group) = &trees[at] {
            let inner = mutate(group.stream(), state, pool);
            trees[at] = TokenTree::Group(Group::new(group.delimiter(), inner));
        }
        return trees.into_iter().collect();
    }
    if trees.is_empty() {
        trees.push(pool[below(state, pool.len())].clone());
        return trees.into_iter().collect();
    }
    let (at, other) = (below(state, trees.len()), below(state, trees.len()));
    match below(state, 8) {
        0 => drop(trees.remove(at)),
        1 => trees.insert(at, pool[below(state, pool.len())].clone()),
        2 => trees.swap(at, other),
        3 => trees[at] = trees[other].clone(),
        4 => trees.insert(at, trees[other].clone()),
        5 => {
            let end = at + below(state, trees.len() - at) + 1;
            let inner: TokenStream = trees.drain(at..end).collect();
            trees.insert(at, TokenTree::Group(Group::new(delimiter(state), inner)));
        }
        _ => trees[at] = pool[below(state, pool.len())].clone(),
    }
    trees.into_iter().collect()
}

fn delimiter(state: &mut u64) -> Delimiter {
    [Delimiter::None, Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket][below(state, 4)]
}

/// Tokens without any order, now and then nested deeply.
fn soup(state: &mut u64, pool: &[TokenTree]) -> TokenStream {
    let mut trees: Vec<TokenTree> = vec![];
    for _ in 0..below(state, 40) {
        let mut tree = pool[below(state, pool.len())].clone();
        let depth = if below(state, 30) == 0 { below(state, 300) } else { below(state, 3) };
        for _ in 0..depth {
            let others = (0..below(state, 3)).map(|_| pool[below(state, pool.len())].clone());
            let inner: Vec<TokenTree> = others.chain([tree]).collect();
            tree = TokenTree::Group(Group::new(delimiter(state), inner.into_iter().collect()));
        }
        trees.push(tree);
    }
    let head: TokenStream = match below(state, 3) {
        0 => TokenStream::new(),
        1 => "model M<n in 1..=4>".parse().unwrap(),
        _ => "layer L<dim>".parse().unwrap(),
    };
    let body: TokenStream = trees.into_iter().collect();
    if head.is_empty() {
        return body;
    }
    head.into_iter().chain([TokenTree::Group(Group::new(Delimiter::Brace, body))]).collect()
}

/// Whether a mistake was told.
fn take(stream: &TokenStream) -> bool {
    let mut errors = Errors::new();
    let source = declare(stream.clone(), &mut errors);
    let items = Items::new(&source);
    let models = source.items.iter().filter(|item| item.kind == ItemKind::Model);
    let defined = models.filter(|item| matches!(item.body, ItemBody::Definition(_)));
    let resolved: Vec<_> = defined.map(|item| resolve_model(item, &items, &mut errors)).collect();
    let text = errors.render();
    assert!(!text.contains("internal error") && !text.contains("has a fault"), "{text}\n{stream}");
    if !errors.is_empty() {
        return true;
    }
    if !source.imports.is_empty() {
        return false;
    }
    for model in resolved {
        let model = model.unwrap_or_else(|| panic!("nothing told, nothing made: {stream}"));
        for entry in &model.entries {
            let whole = |graph: &crate::ir::Graph| graph.verify().unwrap_or_else(|error| panic!("{error}\n{stream}"));
            whole(&entry.graph);
            if entry.train.is_some() {
                let graph = entry.training.as_ref().unwrap_or(&entry.graph);
                whole(graph);
                if let Ok(trained) = differentiate(graph, graph.outputs[0].value, Policy::Contractions) {
                    whole(&trained);
                }
            }
        }
    }
    false
}

fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

#[test]
fn tokens_of_any_kind_are_told_or_taken() {
    let rounds = std::env::var("MEGANEURA_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(1_500usize);
    on_a_small_stack(move || {
        let (mut state, pool) = (29, pool());
        let texts: [TokenStream; 3] = [FORMS, MLP, DECODER].map(|text| text.parse().unwrap());
        let (mut told, mut taken) = (0, 0);
        for round in 0..rounds {
            let stream = match round % 8 {
                0 | 1 => soup(&mut state, &pool),
                kind => {
                    let mut stream = texts[if kind == 2 {
                        1
                    } else if kind == 3 {
                        2
                    } else {
                        0
                    }]
                    .clone();
                    for _ in 0..=below(&mut state, 3) {
                        stream = mutate(stream, &mut state, &pool);
                    }
                    stream
                }
            };
            let begin = Instant::now();
            if take(&stream) {
                told += 1
            } else {
                taken += 1
            }
            assert!(begin.elapsed() < LONGEST, "{:?} for\n{stream}", begin.elapsed());
        }
        assert!(told > rounds / 4 && taken > rounds / 40, "{told} told, {taken} taken of {rounds}");
    });
}

#[test]
fn mistakes_never_keep_a_model_from_having_its_type() {
    on_a_small_stack(|| {
        let (mut state, pool) = (5, pool());
        let text: TokenStream = FORMS.parse().unwrap();
        let mut seen = 0;
        for _ in 0..60 {
            let mut stream = text.clone();
            for _ in 0..4 {
                stream = mutate(stream, &mut state, &pool);
            }
            if take(&stream) {
                let tokens = Expander::of(&stream.to_string(), "").tokens.to_string();
                assert!(tokens.contains("compile_error"), "{stream}");
                seen += 1;
            }
        }
        assert!(seen > 20, "{seen}");
    });
}

#[test]
fn nesting_without_end_is_a_mistake() {
    on_a_small_stack(|| {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{ ", " }"),
            ("-", ""),
            ("x + (", ")"),
            ("relu(", ")"),
            ("if true { ", " } else { x }"),
        ] {
            let value = format!("{}x{}", open.repeat(2_000), close.repeat(2_000));
            let text = format!("model M<n in 1..=4> {{ pub fn f(x: f32[n]) -> f32[n] {{ {value} }} }}");
            let mut errors = Errors::new();
            parse(text.parse().unwrap(), &mut errors);
            assert!(!errors.is_empty(), "{open}");
        }
    });
}
