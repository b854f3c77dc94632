//! Units: content-addressed, so that equal names of different origins stay apart and what arrives on two ways is one.
//!
//! The id of a unit is a hash of its text and of the ids that it refers to. A unit is parsed when it is asked for: most
//! of what arrives has been seen before, or is not instantiated.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote;

use super::hash::Hash;
use crate::errors::{Error, Errors};
use crate::syntax::{Item, layer_names, parse};

/// To be raised with every change of what the braces of a payload hold. The calling convention around it never changes.
pub(super) const PROTOCOL: &str = "v1";

/// An item that travelled.
#[derive(Debug)]
pub struct Unit {
    /// What the layer names in it stand for: ids of units. Others are built in.
    pub names: BTreeMap<String, String>,
    /// Nothing where it has a mistake, which was reported where the item was written.
    pub item: Option<Item>,
    /// What this version of the language does not know in it.
    pub(crate) mistakes: OnceCell<Vec<Error>>,
}

/// What the imports of an item have brought.
#[derive(Default, Debug)]
pub struct Imported {
    /// The unit of each name, those of which nothing arrived without.
    pub(super) ids: BTreeMap<String, String>,
    pub(super) library: Library,
}

/// Units by id.
#[derive(Default, Debug)]
pub(super) struct Library {
    units: BTreeMap<String, (TokenStream, OnceCell<Unit>)>,
}

impl Imported {
    /// What an imported name stands for; nothing where that did not arrive.
    pub fn get(&self, name: &str) -> Option<&Unit> {
        self.unit(self.ids.get(name)?)
    }

    /// A unit by its id.
    pub fn unit(&self, id: &str) -> Option<&Unit> {
        self.library.get(id)
    }
}

impl Library {
    pub(super) fn insert(&mut self, id: String, tokens: TokenStream) {
        self.units.entry(id).or_insert_with(|| (tokens, OnceCell::new()));
    }

    fn get(&self, id: &str) -> Option<&Unit> {
        let (tokens, unit) = self.units.get(id)?;
        Some(unit.get_or_init(|| decode(tokens.clone())))
    }

    /// `(id { unit })*`
    pub(super) fn tokens(&self) -> TokenStream {
        let units = self.units.iter().map(|(id, (tokens, _))| {
            let id = Ident::new(id, Span::call_site());
            quote!(#id { #tokens })
        });
        units.collect()
    }
}

/// Takes `protocol root (id { unit })*` apart without a look into the units. `Err` holds a protocol that this version
/// cannot read.
pub(super) fn payload(tokens: TokenStream, library: &mut Library) -> Result<String, String> {
    let (mut ids, mut units) = (vec![], vec![]);
    for token in tokens {
        match token {
            TokenTree::Ident(id) => ids.push(id.to_string()),
            TokenTree::Group(unit) => units.push(unit.stream()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    let mut ids = ids.into_iter();
    let protocol = ids.next().unwrap_or_default();
    match ids.next() {
        Some(root) if protocol == PROTOCOL => {
            ids.zip(units).for_each(|(id, unit)| library.insert(id, unit));
            Ok(root)
        }
        _ => Err(protocol),
    }
}

/// `[name id, ..] text`
fn decode(tokens: TokenStream) -> Unit {
    let mut tokens = tokens.into_iter();
    let mut words = vec![];
    if let Some(TokenTree::Group(names)) = tokens.next() {
        let idents = names.stream().into_iter().filter_map(|token| match token {
            TokenTree::Ident(ident) => Some(ident.to_string()),
            _ => None,
        });
        words.extend(idents);
    }
    let names = words.chunks_exact(2).map(|pair| (pair[0].trim_start_matches("r#").to_string(), pair[1].clone()));
    let mut errors = Errors::new();
    let source = parse(tokens.collect(), &mut errors);
    let item = source.items.into_iter().next();
    let mistakes = OnceCell::new();
    if let Some(error) = errors.sorted().into_iter().next() {
        mistakes.get_or_init(|| vec![error]);
    }
    Unit { names: names.collect(), item, mistakes }
}

fn encode(names: &BTreeMap<String, String>, text: &TokenStream, sound: bool) -> (String, TokenStream) {
    let mut hash = Hash::new();
    hash.tokens(text);
    names.iter().for_each(|(name, id)| hash.text(&format!("{name} {id}")));
    hash.text(if sound { "" } else { "poison" });
    let pairs = names.iter().map(|(name, id)| {
        let [name, id] = [name, id].map(|text| Ident::new(text, Span::call_site()));
        quote!(#name #id)
    });
    let text = sound.then_some(text);
    (hash.ident("u", Span::call_site()).to_string(), quote!([#(#pairs),*] #text))
}

/// Turns the items of an invocation into units, with what they reach: used ones first. Gives the id of the first item.
/// `sound` says of each item whether its text is without mistakes.
pub fn units(items: &[Item], sound: &[bool], imported: &mut Imported) -> Option<String> {
    let mut waiting: Vec<(&Item, bool)> = items.iter().zip(sound.iter().copied()).collect();
    let mut ids = imported.ids.clone();
    let first = items.first()?.name.name.clone();
    // An item of the invocation hides no import: both of one name are a mistake that was reported.
    unit(&first, &mut waiting, &mut ids, &mut imported.library)
}

fn unit(
    name: &str,
    waiting: &mut Vec<(&Item, bool)>,
    ids: &mut BTreeMap<String, String>,
    library: &mut Library,
) -> Option<String> {
    let Some(at) = waiting.iter().position(|(item, _)| item.name.name == name) else { return ids.get(name).cloned() };
    // A name that is found inside of itself is a cycle, which was reported.
    let (item, mut sound) = waiting.remove(at);
    let mut names = BTreeMap::new();
    for layer in layer_names(item) {
        match unit(&layer.name, waiting, ids, library) {
            Some(id) => _ = names.insert(layer.name.clone(), id),
            None => sound &= crate::resolve::is_builtin(&layer.name),
        }
    }
    let Item { travelling, text, .. } = item;
    let (id, tokens) = encode(&names, &quote!(#travelling #text), sound);
    library.insert(id.clone(), tokens);
    ids.insert(name.to_string(), id.clone());
    Some(id)
}
