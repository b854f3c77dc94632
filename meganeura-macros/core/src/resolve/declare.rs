//! What the text of an invocation shows, without a value: names, cycles, arities, forms that are not available yet.
//!
//! Every item is checked, whether a model reaches it or not. The resolver is silent about what is reported here.

use std::collections::BTreeSet;

use super::mentions::member_names;
use super::names::Names;
use super::{Items, arguments, builtin_layers};
use crate::diag::resolve as diag;
use crate::errors::Errors;
use crate::syntax::{
    Attributes, Definition, DimensionKind, Ident, Item, ItemBody, ItemKind, LayerUse, Member, MemberKind, Source,
    TensorRole,
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
const GENERATED_PREFIXES: [&str; 2] = ["schedule_", "trace_"];

/// Reports what the text of the items shows.
pub fn declare(source: &Source, items: &Items<'_>, errors: &mut Errors) {
    for import in &source.imports {
        errors.push(import.name.span, diag::not_available("`use` inside `model!`"));
    }
    for (k, item) in source.items.iter().enumerate() {
        if let Some(first) = source.items[..k].iter().find(|other| other.name.name == item.name.name) {
            errors.push(item.name.span, diag::repeated_item(&item.name.name, first.name.span.start().line));
        }
        if let Some(pattern) = item.attributes.ignore.first() {
            errors.push(pattern.span, diag::not_available("`#[ignore]`"));
        }
        match &item.body {
            ItemBody::Definition(definition) => Declare { items, errors, item, definition }.definition(),
            ItemBody::Instance(_) => errors.push(item.name.span, diag::not_available("an instance of a model")),
            ItemBody::Poison => {}
        }
    }
    cycles(source, errors);
}

struct Declare<'a, 'e> {
    items: &'a Items<'a>,
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
        let mut members = member_names(&self.definition.members);
        members.extend(self.definition.dimensions.list.iter().map(|dimension| dimension.name.name.as_str()));
        let mut names = Names {
            items: self.items,
            errors: self.errors,
            definition: self.definition,
            kind: self.item.kind,
            complete: self.definition.dimensions.complete,
            members,
            locals: vec![],
        };
        for dimension in &self.definition.dimensions.list {
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
        names.members(&self.definition.members);
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
                MemberKind::Tensor(tensor) => {
                    let word = match tensor.role {
                        TensorRole::Param => continue,
                        TensorRole::Buffer => "`buffer`",
                        TensorRole::State => "`state`",
                    };
                    self.errors.push(tensor.name.span, diag::not_available(word));
                }
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
                MemberKind::Let(_) | MemberKind::Poison(_) => {}
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
        let Some((item, _)) = items.find(name) else {
            if builtin_layers::UNAVAILABLE.contains(&name) {
                self.errors.push(layer.name.span, diag::not_available(&format!("`{name}`")));
            } else if !items.open {
                self.errors.push(layer.name.span, diag::unknown_layer(name, items.names()));
            }
            return;
        };
        let Some(definition) = Items::definition(item) else { return };
        if !definition.dimensions.complete {
            return;
        }
        let list = &definition.dimensions.list;
        let names: Vec<&str> = list.iter().map(|dimension| dimension.name.name.as_str()).collect();
        let needed = |k: usize| matches!(list[k].kind, DimensionKind::Required);
        let bound = arguments::bind_where(name, layer.name.span, &names, needed, &layer.arguments);
        bound.err().into_iter().flatten().for_each(|error| self.errors.add(error));
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
    let Some(definition) = Items::definition(item).filter(|_| !done.contains(item.name.name.as_str())) else { return };
    path.push(&item.name.name);
    let mut uses = vec![];
    layer_uses(&definition.members, &mut uses);
    for layer in uses {
        let name = layer.name.name.as_str();
        if let Some(start) = path.iter().position(|on_path| *on_path == name) {
            let cycle: Vec<&str> = path[start..].iter().copied().chain([name]).collect();
            errors.push(layer.name.span, diag::cycle(&cycle));
        } else if let Some(inner) = source.items.iter().find(|inner| inner.name.name == name) {
            walk(source, inner, path, done, errors);
        }
    }
    path.pop();
    done.insert(&item.name.name);
}

fn layer_uses<'a>(members: &'a [Member], uses: &mut Vec<&'a LayerUse>) {
    for member in members {
        match &member.kind {
            MemberKind::Layer(layer) => uses.push(&layer.layer),
            MemberKind::If(choice) => {
                choice.branches.iter().for_each(|(_, members)| layer_uses(members, uses));
                choice.otherwise.iter().for_each(|members| layer_uses(members, uses));
            }
            _ => {}
        }
    }
}
