//! Each form of an item, and what a broken one leaves.

use super::{clean, definition, read, show};
use crate::syntax::{ItemBody, ItemKind};
use expect_test::expect;

fn imports(text: &str) -> Vec<String> {
    let show = |tokens: &proc_macro2::TokenStream| tokens.to_string().replace(' ', "");
    let source = clean(text);
    source.imports.iter().map(|import| format!("{} as {}", show(&import.path), import.alias)).collect()
}

#[test]
fn imports_in_every_form() {
    assert_eq!(imports("use crate::layers::SwiGlu;"), ["crate::layers::SwiGlu as SwiGlu"]);
    assert_eq!(imports("use ::other::B as C;"), ["::other::B as C"]);
    assert_eq!(imports("use self::A; use super::B;"), ["self::A as A", "super::B as B"]);
    assert_eq!(
        imports("use a::{B, c::{D as E, F,}, ::g::H};"),
        ["a::B as B", "a::c::D as E", "a::c::F as F", "a::::g::H as H"]
    );
    assert_eq!(imports("use {a::B, crate::C};"), ["a::B as B", "crate::C as C"]);
    assert_eq!(imports("use Local; use r#type::Layer;"), ["Local as Local", "r#type::Layer as Layer"]);
}

#[test]
fn attributes_of_a_use_stay_with_each_of_its_names() {
    let source = clean("#[allow(unused_imports)] use a::{B, C};");
    let kept: Vec<_> = source.imports.iter().map(|import| import.attributes.to_string().replace(' ', "")).collect();
    assert_eq!(kept, ["#[allow(unused_imports)]", "#[allow(unused_imports)]"]);
}

#[test]
fn dimensions_in_every_form() {
    let source = clean(
        "model M<hidden = 128, eps = 1e-5, bias = true, head = hidden / 4, h in 16..=2048 step 16, n in 0..8,> {}
         layer L<dim, in, out, k = -1, sizes = [3, 5]> {} layer N {} layer O<> {}",
    );
    let dimensions = |at: usize| show::list(&definition(&source.items[at]).dimensions.list, show::dimension);
    assert_eq!(
        dimensions(0),
        "hidden = 128, eps = 1e-5, bias = true, head = (hidden / 4), h in 16..=2048 step 16, n in 0..8"
    );
    assert_eq!(dimensions(1), "dim, in, out, k = -1, sizes = array[3, 5]");
    assert_eq!(dimensions(2) + &dimensions(3), "");
}

#[test]
fn a_broken_dimension_is_poison_under_its_name_and_the_others_stay() {
    let texts =
        ["a = 1 2, b = 3", "a = 1 b = 2, c = 3", "a = ?, b = 1", "3, b = 1", "a: 3, b = 1", "a, b = 1", "a = 1, b = 2"];
    let mut table = String::new();
    for text in texts {
        let (source, errors) = read(&format!("model M<\n{text}> {{}}"));
        let dimensions = &definition(&source.items[0]).dimensions;
        let list = show::list(&dimensions.list, show::dimension);
        table += &format!("{text}\n{errors}    {list}, complete: {}\n", dimensions.complete);
    }
    expect![[r#"
        a = 1 2, b = 3
        2:7: expected `,` or `>`, found `2`
            a POISON, b = 3, complete: true
        a = 1 b = 2, c = 3
        2:7: expected `,` or `>`, found `b`
            a = 1, b = 2, c = 3, complete: true
        a = ?, b = 1
        2:5: expected a value, found `?`
            a POISON, b = 1, complete: true
        3, b = 1
        2:1: expected a dimension, found `3`
            b = 1, complete: false
        a: 3, b = 1
        2:2: expected `,` or `>`, found `:`
            a POISON, b = 1, complete: true
        a, b = 1
        2:1: nobody passes `a` to a model: give it a default (`a = 128`) or a range (`a in 1..=128`)
            a POISON, b = 1, complete: true
        a = 1, b = 2
            a = 1, b = 2, complete: true
    "#]]
    .assert_eq(&table);
}

#[test]
fn items_keep_visibility_docs_kind_and_text() {
    let source = clean("/// Docs.\npub layer A<n> { a: B<n> } pub(crate) model C {} layer D {}");
    let [a, c, d] = source.items.as_slice() else { panic!("three items") };
    assert_eq!((a.kind, c.kind, d.kind), (ItemKind::Layer, ItemKind::Model, ItemKind::Layer));
    assert!(a.visibility.public && !c.visibility.public && !c.visibility.is_private() && d.visibility.is_private());
    assert!(a.attributes.docs.to_string().contains("Docs."));
    assert_eq!(a.text.to_string().replace(' ', ""), "layerA<n>{a:B<n>}");
}

#[test]
fn an_item_reads_the_same_after_it_travelled() {
    let source = clean(super::first_page::DECODER);
    for item in &source.items {
        let mut errors = crate::errors::Errors::new();
        let again = crate::syntax::parse(item.text.clone(), &mut errors);
        assert!(errors.is_empty());
        let member_text = |item: &crate::syntax::Item| match &item.body {
            ItemBody::Definition(definition) => show::members(&definition.members),
            ItemBody::Instance(of) => show::layer_use(of),
            ItemBody::Poison => "poison".into(),
        };
        assert_eq!(member_text(&again.items[0]), member_text(item));
        assert_eq!(again.items[0].text.to_string(), item.text.to_string());
    }
}

#[test]
fn instances() {
    let source = clean("pub model B = A<dim = 960>;");
    let ItemBody::Instance(of) = &source.items[0].body else { panic!("an instance") };
    assert_eq!(show::layer_use(of), "A<dim = 960>");
    assert_eq!(source.items[0].text.to_string().replace(' ', ""), "modelB=A<dim=960>;");
}

#[test]
fn a_broken_item_leaves_its_name_its_members_and_the_other_items() {
    let (source, errors) = read(
        "use a::*; layre X<n> { } layer A<n, ?> { b: B<?>, c: C } layer D<n { d: D } model = 3; layer E { } use b::F",
    );
    let names: Vec<_> = source.items.iter().map(|item| (item.name.name.as_str(), item.broken)).collect();
    assert_eq!(names, [("A", true), ("D", true), ("E", false)]);
    assert!(!source.complete);
    assert_eq!(show::members(&definition(&source.items[0]).members), "POISON b, c: C<>");
    assert!(!definition(&source.items[0]).dimensions.complete);
    assert_eq!(show::members(&definition(&source.items[1]).members), "d: D<>");
    expect![[r#"
        1:8: `model!` cannot see what a `*` brings in: name each layer
        1:11: expected `use`, `layer` or `model`, found `layre`, did you mean `layer`?
        1:37: expected a dimension, found `?`
        1:47: expected a value, found `?`
        1:68: expected `,` or `>`, found `{`
        1:83: expected the name of a model, found `=`
        1:100: expected `;` after `use`, found the end
    "#]]
    .assert_eq(&errors);
}
