//! What layer names mean: in an invocation its items, what its imports brought, then the built-in layers; in an item that
//! travelled the units that it came with, then the built-in layers.

use std::collections::{BTreeMap, BTreeSet};

use super::builtin_layers;
use crate::errors::{Error, Errors};
use crate::nearest::nearest;
use crate::sharing::{Imported, Unit};
use crate::syntax::{Definition, Dimensions, Item, ItemBody, LayerUse, Source, layer_names, parse};

/// Instances of instances of instances.
const MAX_INSTANCES: usize = 64;

/// The layers and models that an invocation can name.
pub struct Items<'a> {
    own: BTreeMap<&'a str, &'a Item>,
    aliases: BTreeSet<&'a str>,
    imported: Option<&'a Imported>,
    builtin: Source,
    /// A definition without anything, for the arguments of instances.
    pub(super) nothing: Definition,
    /// Whether an unknown name may be one that could not be read.
    open: bool,
    /// Whether all that is reached could be read: what is poison has been reported, perhaps by another invocation.
    pub(super) whole: bool,
}

/// Where a name stands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope<'a> {
    Own,
    Builtin,
    Unit(&'a Unit),
}

/// An item and what the names in it mean.
#[derive(Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) item: &'a Item,
    pub(super) scope: Scope<'a>,
}

/// What a name may be.
pub(super) enum Named<'a> {
    Found(Found<'a>),
    /// It has not arrived, or has a mistake that is reported elsewhere.
    Quiet,
    Unknown,
}

/// The definition that a name leads to.
pub(super) struct Defined<'a> {
    /// The item that has it, with what the names in it mean.
    pub(super) at: Found<'a>,
    pub(super) definition: &'a Definition,
    /// What instances on the way pass, the outermost first, and where that stands.
    pub(super) passed: Vec<(&'a LayerUse, Found<'a>)>,
}

impl<'a> Named<'a> {
    pub(super) fn found(self) -> Option<Found<'a>> {
        match self {
            Named::Found(found) => Some(found),
            Named::Quiet | Named::Unknown => None,
        }
    }
}

impl<'a> Items<'a> {
    /// The items of one invocation, before its imports arrive; of two with one name the first counts.
    pub fn new(source: &'a Source) -> Items<'a> {
        let mut own = BTreeMap::new();
        for item in &source.items {
            own.entry(item.name.name.as_str()).or_insert(item);
        }
        let mut errors = Errors::new();
        let builtin = parse(builtin_layers::text(), &mut errors);
        assert!(errors.is_empty(), "built-in layers parse: {}", errors.render());
        let dimensions = Dimensions { list: vec![], complete: true };
        Items {
            own,
            aliases: source.imports.iter().map(|import| import.alias.name.as_str()).collect(),
            imported: None,
            builtin,
            nothing: Definition { dimensions, members: vec![] },
            open: !source.complete,
            whole: true,
        }
    }

    /// The same with what the imports brought.
    pub fn arrived(source: &'a Source, imported: &'a Imported) -> Items<'a> {
        Items { imported: Some(imported), ..Items::new(source) }
    }

    /// What a name means where it stands.
    pub(super) fn find(&self, scope: Scope<'_>, name: &str) -> Named<'_> {
        let unit = |unit: Option<&'a Unit>| match unit {
            Some(unit @ Unit { item: Some(item), .. }) => Named::Found(Found { item, scope: Scope::Unit(unit) }),
            _ => Named::Quiet,
        };
        match scope {
            Scope::Own => {
                if let Some(item) = self.own.get(name) {
                    return Named::Found(Found { item, scope: Scope::Own });
                }
                if self.aliases.contains(name) {
                    return unit(self.imported.and_then(|imported| imported.get(name)));
                }
            }
            Scope::Unit(Unit { names, .. }) => {
                if let Some(id) = names.get(name) {
                    return unit(self.imported.and_then(|imported| imported.unit(id)));
                }
            }
            Scope::Builtin => {}
        }
        let builtin = self.builtin.items.iter().find(|item| item.name.name == name);
        match builtin {
            Some(item) => Named::Found(Found { item, scope: Scope::Builtin }),
            None if self.open && matches!(scope, Scope::Own) && !builtin_layers::UNAVAILABLE.contains(&name) => {
                Named::Quiet
            }
            None => Named::Unknown,
        }
    }

    /// Whether a name is that of a layer or model, arrived or not.
    pub(super) fn is_item(&self, scope: Scope<'_>, name: &str) -> bool {
        let alias = matches!(scope, Scope::Own) && self.aliases.contains(name);
        alias || self.find(scope, name).found().is_some()
    }

    /// What a name means; of a misspelt one, which the text shows, what was meant, so that one mistake hides no other.
    pub(super) fn meant(&self, scope: Scope<'_>, name: &str) -> Option<Found<'_>> {
        let guess = || nearest(name, self.names()).filter(|_| !builtin_layers::UNAVAILABLE.contains(&name));
        match (self.find(scope, name), scope) {
            (Named::Unknown, Scope::Own) => self.find(scope, guess()?).found(),
            (named, _) => named.found(),
        }
    }

    /// The item of this invocation that a name means.
    pub(crate) fn own_item(&self, name: &str) -> Option<&Item> {
        let found = self.meant(Scope::Own, name)?;
        matches!(found.scope, Scope::Own).then_some(found.item)
    }

    /// All names of this invocation, of what is not available too.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let builtin = self.builtin.items.iter().map(|item| item.name.name.as_str());
        let own = self.own.keys().copied().chain(self.aliases.iter().copied());
        own.chain(builtin).chain(builtin_layers::UNAVAILABLE.iter().copied())
    }

    /// The definition of an item, through instances, where it could be read.
    pub(super) fn define<'s>(&'s self, found: Found<'s>) -> Option<Defined<'s>> {
        let (mut at, mut passed) = (found, vec![]);
        while passed.len() < MAX_INSTANCES {
            match &at.item.body {
                ItemBody::Definition(definition) => return Some(Defined { at, definition, passed }),
                ItemBody::Instance(of) => {
                    passed.push((of, at));
                    at = self.meant(at.scope, &of.name.name)?;
                }
                ItemBody::Poison => return None,
            }
        }
        None
    }

    /// The definition that an item of this invocation has or is an instance of; and whether that is another's.
    pub(crate) fn definition_of<'s>(&'s self, item: &'s Item) -> Option<(&'s Definition, bool)> {
        let defined = self.define(Found { item, scope: Scope::Own })?;
        Some((defined.definition, !matches!(defined.at.scope, Scope::Own)))
    }

    /// What this version of the language does not know in a unit.
    pub(super) fn mistakes(&self, unit: &'a Unit) -> &'a [Error] {
        unit.mistakes.get_or_init(|| {
            let mut errors = Errors::new();
            if let Some(item) = &unit.item {
                super::declare::item(item, Scope::Unit(unit), self, &mut errors);
            }
            errors.sorted()
        })
    }

    /// Whether everything that the imported names of these items reach has arrived with its text.
    pub(super) fn is_whole(&self, items: &[Item]) -> bool {
        let (mut open, mut seen) = (vec![], BTreeSet::new());
        for name in items.iter().flat_map(layer_names) {
            match self.find(Scope::Own, &name.name) {
                Named::Found(Found { scope: Scope::Unit(unit), .. }) => open.push(unit),
                Named::Found(_) => {}
                Named::Quiet | Named::Unknown => return false,
            }
        }
        while let Some(unit) = open.pop() {
            if unit.item.is_none() {
                return false;
            }
            for id in unit.names.values().filter(|id| seen.insert(id.as_str())) {
                match self.imported.and_then(|imported| imported.unit(id)) {
                    Some(unit) => open.push(unit),
                    None => return false,
                }
            }
        }
        true
    }
}
