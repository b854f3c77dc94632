//! The beginning of a chain: an item with the others of its invocation that it needs, and the imports that these need.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::quote;

use crate::resolve::Items;
use crate::syntax::{Import, Item, Source, layer_names};

/// One chain for each item.
pub fn chains(facade: &TokenStream, source: &Source) -> TokenStream {
    let (meant, mut seen) = (Items::new(source), BTreeSet::new());
    let items = source.items.iter().filter(|item| seen.insert(item.name.name.as_str()));
    items.map(|item| chain(facade, source, &meant, item)).collect()
}

/// The state is `{ [facade] [aliases] [open or nothing] { item } { own }* }`.
fn chain(facade: &TokenStream, source: &Source, meant: &Items<'_>, item: &Item) -> TokenStream {
    let (own, imports) = reach(source, meant, item);
    let aliases = imports.iter().map(|import| import.alias.to_token());
    let open = (!source.complete).then(|| quote!(open));
    let (head, text) = (&item.head, &item.text);
    let own = own[1..].iter().map(|Item { travelling, text, .. }| quote!({ #travelling #text }));
    let state = quote!({ [#facade] [#(#aliases)*] [#open] { #head #text } #(#own)* });
    let end = quote!(#facade::__private::__item);
    let mut paths = imports.iter().map(|import| import.path.clone()).chain([end]);
    let first = paths.next();
    quote!(#first ! { #([#paths])* #state })
}

fn reach<'a>(source: &'a Source, meant: &'a Items<'a>, item: &'a Item) -> (Vec<&'a Item>, Vec<&'a Import>) {
    let (mut own, mut mentioned) = (vec![item], BTreeSet::new());
    let mut next = 0;
    while let Some(item) = own.get(next) {
        for name in layer_names(item) {
            mentioned.insert(name.name.as_str());
            if let Some(item) = meant.own_item(&name.name)
                && own.iter().all(|known| known.name.name != item.name.name)
            {
                own.push(item);
            }
        }
        next += 1;
    }
    (own, source.imports.iter().filter(|import| mentioned.contains(import.alias.name.as_str())).collect())
}

/// Leaves it to rustc to warn about a `use` that nothing needs, in its own words and under its own lint.
pub fn unused_imports(source: &Source) -> TokenStream {
    let used: BTreeSet<&str> =
        source.items.iter().flat_map(|item| layer_names(item)).map(|name| name.name.as_str()).collect();
    let unused = source.imports.iter().filter(|import| !used.contains(import.alias.name.as_str()));
    let warn = |import: &Import| {
        let (attributes, path, alias) = (&import.attributes, at_last_name(&import.path), import.alias.to_token());
        quote!(const _: () = { #attributes use #path as #alias; };)
    };
    unused.map(warn).collect()
}

/// The path, all of it at the place of its last name, so that a message about one of a group shows that one.
fn at_last_name(path: &TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = path.clone().into_iter().collect();
    let place = tokens.last().map_or_else(Span::call_site, TokenTree::span);
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(token.span().located_at(place));
        token
    });
    moved.collect()
}
