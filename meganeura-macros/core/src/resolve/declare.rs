//! What the text of an invocation shows, without a value: names, cycles, arities, forms that are not available yet.
//!
//! Every item is checked, whether a model reaches it or not. The resolver is silent about what is reported here.

use std::collections::BTreeSet;

use super::items::{Named, Scope};
use super::mentions::member_names;
use super::names::Names;
use super::{Items, arguments, builtin_layers};
use crate::diag::resolve as diag;
use crate::errors::{Error, Errors};
use crate::syntax::{
    Attributes, Definition, DimensionKind, Ident, Item, ItemBody, ItemKind, LayerUse, Member, MemberKind, Source,
    layer_names,
};

/// Methods and constants that a model's type has beside its entries.
const GENERATED: [&str; 13] = [
    "new",
    "with_seed",
    "load",
    "loader",
    "save",
    "save_as",
    "save_only",
    "reset",
    "share",
    "trainer",
    "load_trainer",
    "shape",
    "to_vec",
];

/// Beginnings of the names of generated methods.
const GENERATED_PREFIXES: [&str; 3] = ["schedule_", "trace_", "explain_"];

/// Reports what the text of the items shows.
pub fn declare(source: &Source, items: &Items<'_>, errors: &mut Errors) {
    let names = source.imports.iter().map(|import| &import.alias).chain(source.items.iter().map(|item| &item.name));
    let mut seen: Vec<&Ident> = vec![];
    for name in names {
        match seen.iter().find(|other| other.name == name.name) {
            Some(first) => errors.push(name.span, diag::repeated_item(&name.name, first.span.start().line)),
            None => seen.push(name),
        }
    }
    source.items.iter().for_each(|own| item(own, Scope::Own, items, errors));
    cycles(source, errors);
}

/// Which of the items that arrived have nothing wrong in their text. Reports what the imports show of the first one:
/// the rest of it was reported before they arrived, and the others are the first in chains of their own.
pub fn check<'a>(source: &'a Source, items: &mut Items<'a>, errors: &mut Errors) -> Vec<bool> {
    let before = Items::new(source);
    let mistakes = |own: &Item, items: &Items<'_>| {
        let mut errors = Errors::new();
        item(own, Scope::Own, items, &mut errors);
        errors.sorted()
    };
    let mut sound = vec![];
    for own in &source.items {
        let found = mistakes(own, items);
        sound.push(!own.broken && found.is_empty());
        if sound.len() == 1 {
            let known = mistakes(own, &before);
            let is_known = |error: &Error| known.iter().any(|other| other.is_same(error));
            found.into_iter().filter(|error| !is_known(error)).for_each(|error| errors.add(error));
        }
    }
    let mut circles = Errors::new();
    cycles(source, &mut circles);
    items.whole = sound.iter().all(|sound| *sound) && circles.is_empty() && items.is_whole(&source.items);
    sound
}

/// What the text of one item shows.
pub(super) fn item<'a>(item: &'a Item, scope: Scope<'a>, items: &'a Items<'a>, errors: &mut Errors) {
    let definition = match &item.body {
        ItemBody::Definition(definition) => definition,
        ItemBody::Instance(_) => &items.nothing,
        ItemBody::Poison => return,
    };
    let mut declare = Declare { items, scope, errors, item, definition };
    match &item.body {
        ItemBody::Instance(of) => declare.instance(of),
        _ => declare.definition(),
    }
}

struct Declare<'a, 'e> {
    items: &'a Items<'a>,
    scope: Scope<'a>,
    errors: &'e mut Errors,
    item: &'a Item,
    definition: &'a Definition,
}

impl<'a> Declare<'a, '_> {
    fn definition(&mut self) {
        let mut seen: Vec<&'a Ident> = vec![];
        for dimension in &self.definition.dimensions.list {
            self.unique(&dimension.name, &mut seen);
        }
        self.members(&self.definition.members, &mut seen);
        let definition = self.definition;
        let mut names = self.names();
        for dimension in &definition.dimensions.list {
            match &dimension.kind {
                DimensionKind::Default(value) => names.constant(value),
                DimensionKind::Runtime(bounds) => {
                    names.constant(&bounds.low);
                    names.constant(&bounds.high);
                    bounds.step.iter().for_each(|step| names.constant(step));
                }
                DimensionKind::Required | DimensionKind::Poison => {}
            }
        }
        names.members(&definition.members);
    }

    fn names(&mut self) -> Names<'a, '_> {
        let mut members = member_names(&self.definition.members);
        members.extend(self.definition.dimensions.list.iter().map(|dimension| dimension.name.name.as_str()));
        Names {
            items: self.items,
            scope: self.scope,
            errors: self.errors,
            definition: self.definition,
            kind: self.item.kind,
            complete: self.definition.dimensions.complete,
            members,
            locals: vec![],
        }
    }

    /// `model A = B<..>;`
    fn instance(&mut self, of: &'a LayerUse) {
        let items = self.items;
        let defined = items.find(self.scope, &of.name.name).found().and_then(|found| items.define(found));
        if defined.is_some_and(|defined| defined.at.item.kind == ItemKind::Layer) {
            self.errors.push(of.name.span, diag::instance_of_a_layer(&of.name.name));
            return;
        }
        self.layer_use(of);
        let mut names = self.names();
        of.arguments.iter().for_each(|argument| names.constant(&argument.value));
    }

    fn unique(&mut self, name: &'a Ident, seen: &mut Vec<&'a Ident>) {
        match seen.iter().find(|other| other.name == name.name) {
            Some(first) => {
                self.errors.push(name.span, diag::repeated_member(&name.name, first.span.start().line));
            }
            None => seen.push(name),
        }
    }

    fn members(&mut self, members: &'a [Member], seen: &mut Vec<&'a Ident>) {
        for member in members {
            if let Some(name) = member.name() {
                self.unique(name, seen);
            }
            self.attributes(&member.attributes);
            match &member.kind {
                MemberKind::Layer(layer) => self.layer_use(&layer.layer),
                MemberKind::If(choice) => {
                    // Branches exclude each other, so a name may stand in several.
                    let before = seen.len();
                    let mut found: Vec<&'a Ident> = vec![];
                    let branches = choice.branches.iter().map(|(_, members)| members).chain(&choice.otherwise);
                    for branch in branches {
                        self.members(branch, seen);
                        found.extend(seen.drain(before..));
                    }
                    seen.extend(found);
                }
                MemberKind::Function(function) => {
                    let name = function.name.name.as_str();
                    let generated =
                        GENERATED.contains(&name) || GENERATED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
                    if self.item.kind == ItemKind::Model && !function.visibility.is_private() && generated {
                        self.errors.push(function.name.span, diag::generated_method(name, &self.item.name.name));
                    }
                }
                MemberKind::Let(_) | MemberKind::Tensor(_) | MemberKind::Poison(_) => {}
            }
        }
    }

    fn attributes(&mut self, attributes: &Attributes) {
        let unavailable = [
            (attributes.store.as_ref().map(|store| store.span), "`#[store]`"),
            (attributes.precision.as_ref().map(|precision| precision.span), "`#[precision]`"),
            (attributes.checkpoint, "`#[checkpoint]`"),
        ];
        for (span, what) in unavailable {
            if let Some(span) = span {
                self.errors.push(span, diag::not_available(what));
            }
        }
    }

    fn layer_use(&mut self, layer: &'a LayerUse) {
        let name = layer.name.name.as_str();
        let items = self.items;
        let found = match items.find(self.scope, name) {
            Named::Found(found) => found,
            Named::Quiet => return,
            Named::Unknown if builtin_layers::UNAVAILABLE.contains(&name) => {
                self.errors.push(layer.name.span, diag::not_available(&format!("`{name}`")));
                return;
            }
            Named::Unknown => {
                self.errors.push(layer.name.span, diag::unknown_layer(name, items.names()));
                return;
            }
        };
        let Some(defined) = items.define(found).filter(|defined| defined.definition.dimensions.complete) else {
            return;
        };
        let list = &defined.definition.dimensions.list;
        let names: Vec<&str> = list.iter().map(|dimension| dimension.name.name.as_str()).collect();
        let needed = |k: usize| matches!(list[k].kind, DimensionKind::Required);
        let bound = arguments::bind_where(name, layer.name.span, &names, needed, &layer.arguments);
        for mut error in bound.err().into_iter().flatten() {
            if matches!(found.scope, Scope::Unit(_)) {
                error.message += &crate::diag::defined_at(name, &crate::diag::place(found.item.name.span));
            }
            self.errors.add(error);
        }
    }
}

/// Layers that contain themselves: each cycle once, at the member that closes it.
fn cycles(source: &Source, errors: &mut Errors) {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for item in &source.items {
        walk(source, item, &mut vec![], &mut done, errors);
    }
}

/// `done` holds the items behind which all cycles are known.
fn walk<'a>(
    source: &'a Source,
    item: &'a Item,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
    errors: &mut Errors,
) {
    if done.contains(item.name.name.as_str()) {
        return;
    }
    path.push(&item.name.name);
    for layer in layer_names(item) {
        let name = layer.name.as_str();
        if let Some(start) = path.iter().position(|on_path| *on_path == name) {
            let cycle: Vec<&str> = path[start..].iter().copied().chain([name]).collect();
            errors.push(layer.span, diag::cycle(&cycle));
        } else if let Some(inner) = source.items.iter().find(|inner| inner.name.name == name) {
            walk(source, inner, path, done, errors);
        }
    }
    path.pop();
    done.insert(&item.name.name);
}
