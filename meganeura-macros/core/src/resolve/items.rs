//! What layer names mean: the items of this invocation, then the built-in layers.

use std::collections::BTreeMap;

use super::builtin_layers;
use crate::errors::Errors;
use crate::nearest::nearest;
use crate::syntax::{Item, ItemBody, Source, parse};

/// The layers and models that an invocation can name.
pub struct Items<'a> {
    own: BTreeMap<&'a str, &'a Item>,
    builtin: Source,
    /// Whether an unknown name may be one that could not be read or that a `use` brings in.
    pub(super) open: bool,
}

impl<'a> Items<'a> {
    /// The items of one invocation; of two with one name the first counts.
    pub fn new(source: &'a Source) -> Items<'a> {
        let mut own = BTreeMap::new();
        for item in &source.items {
            own.entry(item.name.name.as_str()).or_insert(item);
        }
        let mut errors = Errors::new();
        let builtin = parse(builtin_layers::text(), &mut errors);
        assert!(errors.is_empty(), "built-in layers parse: {}", errors.render());
        Items { own, builtin, open: !source.complete || !source.imports.is_empty() }
    }

    /// The item of that name, and whether it is built in.
    pub(super) fn find(&self, name: &str) -> Option<(&Item, bool)> {
        let own = self.own.get(name).map(|item| (*item, false));
        own.or_else(|| self.builtin.items.iter().find(|item| item.name.name == name).map(|item| (item, true)))
    }

    /// The item of that name; of a misspelt one, which the text shows, the item that was meant, so that one mistake hides
    /// no other.
    pub(super) fn meant(&self, name: &str) -> Option<(&Item, bool)> {
        let guess =
            || nearest(name, self.names()).filter(|_| !self.open && !builtin_layers::UNAVAILABLE.contains(&name));
        self.find(name).or_else(|| self.find(guess()?))
    }

    /// All names, of what is not available too.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = self.builtin.items.iter().map(|item| item.name.name.as_str());
        self.own.keys().copied().chain(builtin).chain(builtin_layers::UNAVAILABLE.iter().copied())
    }

    /// The item could be read.
    pub(super) fn definition(item: &Item) -> Option<&crate::syntax::Definition> {
        match &item.body {
            ItemBody::Definition(definition) => Some(definition),
            _ => None,
        }
    }
}
