#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod first_page;
mod structure;

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
