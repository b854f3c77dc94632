//! The macro that hands an item on, under a name of its own, and the item's name for it.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};

use super::hash::Hash;
use super::unit::{Imported, PROTOCOL};
use crate::diag;
use crate::syntax::{Item, ItemBody, ItemKind};

/// `macro_export` puts what is public at the root of the crate, whatever module it is in: the name holds a hash of the
/// text and of its place, and the item's own name is a `use` of it. The user's spans are on the macro and on its `use`
/// alone, for editors and for messages about visibility.
pub fn carrier(item: &Item, id: &str, imported: &Imported) -> TokenStream {
    let span = item.name.span;
    let mut hash = Hash::new();
    hash.tokens(&item.text);
    hash.text(&format!("{} {} {}", span.file(), span.start().line, span.start().column));
    let carrier = hash.ident(&format!("__meganeura_{}_", item.name.name), span);
    let (name, visibility) = (item.name.to_token(), &item.visibility.tokens);
    let public = item.visibility.public;
    let export = public.then(|| quote!(#[macro_export]));
    let docs = (public && item.kind == ItemKind::Layer).then(|| docs(item));
    let inline = docs.is_some().then(|| quote!(#[doc(inline)]));
    let [protocol, id] = [PROTOCOL, id].map(|text| Ident::new(text, span));
    let units = imported.library.tokens();
    let direct = diag::called_as_macro(&item.name.name);
    quote_spanned! {span=>
        #docs
        #[doc(hidden)]
        #[allow(non_local_definitions, unused_macro_rules, unused_macros)]
        #export
        macro_rules! #carrier {
            ([$($next:tt)*] $($rest:tt)*) => { $($next)* ! { $($rest)* { #protocol #id #units } } };
            ($($other:tt)*) => { ::core::compile_error! { #direct } };
        }
        #inline
        #[allow(unreachable_pub, unused_imports)]
        #visibility use #carrier as #name;
    }
}

fn docs(item: &Item) -> TokenStream {
    let own = &item.attributes.docs;
    let dimensions: Vec<&str> = match &item.body {
        ItemBody::Definition(definition) => {
            definition.dimensions.list.iter().map(|dimension| dimension.name.name.as_str()).collect()
        }
        _ => vec![],
    };
    let usage = format!("\n\nA layer for `model!`: `{}<{}>`.", item.name.name, dimensions.join(", "));
    quote!(#own #[doc = #usage])
}
