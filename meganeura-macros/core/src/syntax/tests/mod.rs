#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod expressions;
mod first_page;
mod items;
mod members;
mod mistakes;
mod mutations;
mod show;
mod statements;

use super::{Block, Definition, Expr, Function, Item, ItemBody, Member, MemberKind, Source, parse};
use crate::errors::Errors;

/// The tree and the mistakes of a text.
fn read(text: &str) -> (Source, String) {
    let mut errors = Errors::new();
    let source = parse(text.parse().expect("tokens"), &mut errors);
    (source, errors.render())
}

/// The tree of a text without mistakes.
fn clean(text: &str) -> Source {
    let (source, errors) = read(text);
    assert_eq!(errors, "", "{text}");
    assert!(source.complete && source.items.iter().all(|item| !item.broken));
    source
}

fn definition(item: &Item) -> &Definition {
    match &item.body {
        ItemBody::Definition(definition) => definition,
        other => panic!("{other:?}"),
    }
}

/// The members of a layer that has these, without mistakes.
fn clean_members(text: &str) -> Vec<Member> {
    let source = clean(&format!("layer L {{ {text} }}"));
    definition(&source.items[0]).members.clone()
}

fn function(member: &Member) -> &Function {
    match &member.kind {
        MemberKind::Function(function) => function,
        other => panic!("{other:?}"),
    }
}

/// The body of a function, without mistakes.
fn clean_body(text: &str) -> Block {
    function(&clean_members(&format!("fn f() {{ {text} }}"))[0]).body.clone()
}

/// An expression, without mistakes.
fn clean_expr(text: &str) -> Expr {
    clean_body(text).tail.expect("a value").value
}

/// The body of a function and its mistakes; its text begins behind a brace at 1:1.
fn broken_body(text: &str) -> (Block, String) {
    let body: proc_macro2::TokenStream = format!("{{{text}}}").parse().expect("tokens");
    let head: proc_macro2::TokenStream = "fn f()".parse().expect("tokens");
    let members = proc_macro2::Group::new(proc_macro2::Delimiter::Brace, head.into_iter().chain(body).collect());
    let item: proc_macro2::TokenStream = "layer L".parse().expect("tokens");
    let mut errors = Errors::new();
    let whole = item.into_iter().chain([proc_macro2::TokenTree::Group(members)]).collect();
    let source = parse(whole, &mut errors);
    (function(&definition(&source.items[0]).members[0]).body.clone(), errors.render())
}
