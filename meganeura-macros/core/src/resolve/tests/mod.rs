#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod buffers;
mod calls;
mod first_page;
mod forms;
mod functions;
mod items;
mod loops;
mod many;
mod meaning;
mod mutations;
mod shapes;
mod structure;
mod types;
mod values;

use super::{Items, Resolved, declare, resolve_model};
use crate::errors::Errors;
use crate::syntax::{ItemKind, parse};

/// The models of a text and all mistakes, as the pipeline finds them.
fn read(text: &str) -> (Vec<Resolved>, String) {
    let mut errors = Errors::new();
    let source = parse(text.parse().expect("tokens"), &mut errors);
    let items = Items::new(&source);
    declare(&source, &items, &mut errors);
    let models = source.items.iter().filter(|item| item.kind == ItemKind::Model);
    let resolved = models.filter_map(|item| resolve_model(item, &items, &mut errors)).collect();
    (resolved, errors.render())
}

/// The last model of a text without mistakes.
fn clean(text: &str) -> Resolved {
    let (mut models, errors) = read(text);
    assert_eq!(errors, "", "{text}");
    models.pop().expect("a model")
}

/// All mistakes of a text.
fn mistakes(text: &str) -> String {
    read(text).1
}

/// Each statement or value alone in a function, with the mistakes that it brings: its line is the fourth.
fn in_function(bodies: &[&str]) -> String {
    let text = |body: &&str| {
        let found = mistakes(&format!(
            "pub model M<dim = 8, classes = 4, batch in 1..=64, seq in 1..=32> {{
                fc: Linear<dim, classes>, wide: Linear<2 * dim, classes>, norm: RmsNorm<dim>,
                pub fn run(x: f32[batch, dim], y: f32[batch, seq, dim], ids: u32[batch], mask: bool[batch, dim]) -> f32 {{
{body}
                }}
                fn helper(a: f32[n, dim], b: f32[n]) -> f32[n] {{ b + sum(a, axis = 1) }}
            }}"
        ));
        format!("{body}\n{}", indented(&found))
    };
    bodies.iter().map(text).collect()
}

/// Each text with its mistakes.
fn in_source(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n{}", indented(&mistakes(text)))).collect()
}

fn indented(errors: &str) -> String {
    match errors {
        "" => "    no mistake\n".into(),
        errors => errors.lines().map(|line| format!("    {line}\n")).collect(),
    }
}
