//! Measures what `model!` costs while a crate compiles: a pre-norm MLP with training, of several depths, stage by stage.
//!
//! `cargo xtask bench --expansion` runs it twice, with the compiler optimised and not. It prints JSON lines, then a table.
#![allow(clippy::print_stdout, missing_docs)]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

use meganeura_core::testing::Expander;
use proc_macro2::{TokenStream, TokenTree};

const DEPTHS: [usize; 4] = [2, 8, 30, 100];

/// Milliseconds by stage, in the order in which stages first end.
type Stages = Vec<(&'static str, f64)>;

fn main() {
    let rounds = if cfg!(debug_assertions) { 3 } else { 15 };
    let built = if cfg!(debug_assertions) { "unoptimised" } else { "optimised" };
    let columns: Vec<Measured> = DEPTHS.iter().map(|depth| measure(*depth, rounds)).collect();
    for (depth, column) in DEPTHS.iter().zip(&columns) {
        for (stage, time) in &column.stages {
            println!(
                r#"{{"name":"expansion","compiler":"{built}","depth":{depth},"stage":"{stage}","value":{time:.4},"unit":"ms"}}"#
            );
        }
        let Measured { tokens, texts, .. } = column;
        println!(
            r#"{{"name":"expansion_size","compiler":"{built}","depth":{depth},"tokens":{tokens},"texts":{texts}}}"#
        );
    }
    println!("\nexpansion, compiler {built}, ms (the best of {rounds})");
    let row = |name: &str, value: &dyn Fn(&Measured) -> String| {
        let values: String = columns.iter().map(|column| format!("{:>10}", value(column))).collect();
        println!("{name:<22}{values}");
    };
    println!("{:<22}{}", "layers", DEPTHS.map(|depth| format!("{depth:>10}")).concat());
    for (k, (stage, _)) in columns[0].stages.iter().enumerate() {
        row(stage, &|column| format!("{:.2}", column.stages[k].1));
    }
    row("all", &|column| format!("{:.2}", column.stages.iter().map(|(_, time)| time).sum::<f64>()));
    row("tokens", &|column| column.tokens.to_string());
    row("distinct texts", &|column| column.texts.to_string());
}

struct Measured {
    stages: Stages,
    tokens: usize,
    texts: usize,
}

fn measure(depth: usize, rounds: usize) -> Measured {
    let text = model(depth);
    let runs: Vec<Stages> = (0..rounds).map(|_| run(&text)).collect();
    let total = |stages: &Stages| stages.iter().map(|(_, time)| time).sum::<f64>();
    let best = runs.into_iter().min_by(|a, b| total(a).total_cmp(&total(b))).unwrap_or_default();
    let shown = Expander::of(&text, "wgsl");
    let errors = shown.errors();
    assert!(errors.is_empty(), "{errors:?}");
    let texts: BTreeSet<&str> =
        shown.dumps.iter().filter_map(|dump| dump.split_once('\n').map(|(_, text)| text)).collect();
    Measured { stages: best, tokens: count(shown.tokens.clone()), texts: texts.len() }
}

fn run(text: &str) -> Stages {
    let stages: Rc<RefCell<Stages>> = Rc::default();
    let (into, mut last) = (Rc::clone(&stages), Instant::now());
    let passed = move |stage| {
        let mut stages = into.borrow_mut();
        let time = last.elapsed().as_secs_f64() * 1e3;
        match stages.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, sum)) => *sum += time,
            None => stages.push((stage, time)),
        }
        last = Instant::now();
    };
    Expander::watched(text, Box::new(passed));
    stages.take()
}

/// Tokens, those inside of groups too; a literal of any length is one.
fn count(tokens: TokenStream) -> usize {
    tokens.into_iter().map(|tree| if let TokenTree::Group(group) = tree { 2 + count(group.stream()) } else { 1 }).sum()
}

fn model(depth: usize) -> String {
    format!(
        "layer Block<dim, ffn> {{
            norm: RmsNorm<dim>,
            gate: Linear<dim, ffn, bias = false>,
            up: Linear<dim, ffn, bias = false>,
            down: Linear<ffn, dim, bias = false>,
            fn forward(x: f32[.., dim]) -> f32[.., dim] {{
                let h = norm(x);
                x + down(silu(gate(h)) * up(h))
            }}
        }}
        pub model Net<dim = 64, depth = {depth}, batch in 1..=256> {{
            blocks: [Block<dim, 4 * dim>; depth],
            norm: RmsNorm<dim>,
            head: Linear<dim, 10>,
            pub fn logits(x: f32[batch, dim]) -> f32[batch, 10] {{
                let mut h = x;
                for block in blocks {{ h = block(h); }}
                head(norm(h))
            }}
            #[train]
            pub fn loss(x: f32[batch, dim], label: u32[batch]) -> f32 {{ cross_entropy(logits(x), label) }}
        }}"
    )
}
