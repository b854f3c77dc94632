//! Items of an invocation: `use`, `layer`, `model`.
//!
//! A mistake before an item's braces leaves the item with its name, and its members are read all the same. Items end
//! with their braces or a `;`.

use super::ast::{Definition, Import, Item, ItemBody, ItemKind, Source, Visibility};
use super::attributes::{Place, Written};
use super::members;
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

impl Parser<'_> {
    pub(super) fn source(&mut self) -> Source {
        let mut source = Source { imports: vec![], items: vec![], complete: true };
        while !self.is_end() {
            if self.take(";").is_some() {
                continue;
            }
            let (errors, head) = (self.errors.count(), self.at);
            let written = self.written_attributes();
            let visibility = self.visibility();
            let start = self.at;
            let head = self.trees[head..start].iter().cloned().collect();
            if self.is_word("use") {
                let read = self.use_item(written, &visibility, &mut source.imports);
                source.complete &= read.is_ok() && self.errors.count() == errors;
                self.recover(read, start);
                continue;
            }
            let kind = match self.peek_ident(0) {
                Some(word) if word.is("layer") => ItemKind::Layer,
                Some(word) if word.is("model") => ItemKind::Model,
                _ => {
                    source.complete = false;
                    let read = Err(self.unknown_item());
                    self.recover(read, start);
                    continue;
                }
            };
            match self.item(kind, head, written, visibility, errors) {
                Ok(item) => source.items.push(item),
                Err(error) => {
                    source.complete = false;
                    self.recover(Err(error), start);
                }
            }
        }
        source
    }

    fn unknown_item(&self) -> Error {
        let word = self.peek_ident(0).map_or("", |word| word.name.as_str());
        Error::new(self.span(), diag::unknown_item(&self.found(), word))
    }

    /// Reports, and goes to the end of the item or to where the next one begins.
    fn recover(&mut self, read: Parsed<()>, start: usize) {
        let Err(error) = read else { return };
        self.push(error);
        if self.at == start {
            self.at += 1;
        }
        self.skip_item();
    }

    /// The braces of the item, if there are any before the next item.
    fn skip_item(&mut self) -> Option<Group> {
        while !self.is_end() {
            if self.take(";").is_some() || self.begins_item() {
                return None;
            }
            if let Some(group) = self.take_group(Delimiter::Brace) {
                return Some(group);
            }
            self.at += 1;
        }
        None
    }

    fn begins_item(&self) -> bool {
        match self.peek(0) {
            Some(Token::Punct('#', ..)) => self.group_at(1, Delimiter::Bracket).is_some(),
            Some(Token::Ident(word)) => {
                let keyword = ["pub", "use", "layer", "model"].iter().any(|other| word.is(other));
                keyword && (self.peek_ident(1).is_some() || word.is("pub"))
            }
            _ => false,
        }
    }

    fn item(
        &mut self,
        kind: ItemKind,
        head: TokenStream,
        written: Vec<Written>,
        visibility: Visibility,
        errors: usize,
    ) -> Parsed<Item> {
        let start = self.at;
        self.at += 1;
        let name = self.name(if kind == ItemKind::Layer { "the name of a layer" } else { "the name of a model" })?;
        let place = if kind == ItemKind::Layer { Place::Layer } else { Place::Model };
        let travelling = written.iter().filter(|attribute| attribute.is("ignore"));
        let travelling = travelling.flat_map(Written::trees).cloned().collect();
        let attributes = self.attributes(written, place);
        let body = if self.is("=") { self.instance(kind, &name) } else { self.definition(kind, &name) };
        let trees = &self.trees[start..self.at];
        if self.errors.count() == errors
            && let Some(span) = find_dollar(trees)
        {
            self.errors.push(span, diag::dollar());
        }
        let text = trees.iter().cloned().collect();
        let broken = self.errors.count() > errors;
        Ok(Item { attributes, visibility, kind, name, head, travelling, text, body, broken })
    }

    /// `= SmolLm2<dim = 960>;`
    fn instance(&mut self, kind: ItemKind, name: &Ident) -> ItemBody {
        let equals = self.span();
        self.at += 1;
        let read = self.layer_use("a model").and_then(|of| {
            if kind == ItemKind::Layer {
                return Err(Error::new(equals, diag::instance_of_layer(&name.name)));
            }
            self.take(";").map(|_| of).ok_or_else(|| self.unexpected("`;`"))
        });
        match read {
            Ok(of) => ItemBody::Instance(of),
            Err(error) => {
                self.push(error);
                self.skip_item();
                ItemBody::Poison
            }
        }
    }

    fn definition(&mut self, kind: ItemKind, name: &Ident) -> ItemBody {
        let mut dimensions = self.dimensions(kind);
        let group = match self.take_group(Delimiter::Brace) {
            Some(group) => Some(group),
            None => {
                if dimensions.complete {
                    let error = self.unexpected(&format!("`{{` and the members of `{name}`"));
                    self.push(error);
                    dimensions.complete = false;
                }
                self.skip_item()
            }
        };
        let Some(group) = group else { return ItemBody::Poison };
        let members = members::inside_braces(self, &group);
        let definition = Definition { dimensions, members };
        for (attributes, function) in definition.functions() {
            if let Some(train) = &attributes.train
                && (kind == ItemKind::Layer || function.visibility.is_private())
            {
                self.errors.push(train.span, diag::train_of_no_entry());
            }
        }
        ItemBody::Definition(definition)
    }

    /// `use path::{a, b as c};`
    fn use_item(&mut self, written: Vec<Written>, visibility: &Visibility, imports: &mut Vec<Import>) -> Parsed<()> {
        let start = self.span();
        let public = visibility.tokens.clone().into_iter().next().map(|token| token.span());
        self.at += 1;
        let attributes = self.use_attributes(written);
        if let Some(span) = public {
            self.errors.push(span, diag::use_public());
        }
        if self.is(";") {
            return Err(self.unexpected("a path"));
        }
        self.use_tree(&attributes, &[], imports)?;
        if self.take(";").is_some() {
            return Ok(());
        }
        let span = if self.is_end() { start } else { self.span() };
        Err(Error::new(span, diag::expected("`;` after `use`", &self.found())))
    }

    fn use_tree(&mut self, attributes: &TokenStream, before: &[TokenTree], imports: &mut Vec<Import>) -> Parsed<()> {
        let mut path = before.to_vec();
        loop {
            let colons = self.at;
            if self.take("::").is_some() {
                path.extend_from_slice(&self.trees[colons..self.at]);
            }
            if self.is("*") {
                return Err(Error::new(self.span(), diag::use_glob()));
            }
            if let Some(group) = self.take_group(Delimiter::Brace) {
                return self.inside(&group).map(|mut inside| inside.use_group(attributes, &path, imports));
            }
            let Some(name) = self.peek_ident(0).cloned() else { return Err(self.unexpected("a name")) };
            path.push(self.trees[self.at].clone());
            self.at += 1;
            if self.is("::") {
                continue;
            }
            if name.is_never_a_name() {
                return Err(Error::new(name.span, diag::use_of_no_layer()));
            }
            let alias = match self.take_word("as") {
                Some(_) if self.is_word("_") => return Err(Error::new(self.span(), diag::use_of_no_layer())),
                Some(_) => self.name("a name after `as`")?,
                None => name.clone(),
            };
            let path = path.into_iter().collect();
            imports.push(Import { attributes: attributes.clone(), path, name, alias });
            return Ok(());
        }
    }

    fn use_group(&mut self, attributes: &TokenStream, path: &[TokenTree], imports: &mut Vec<Import>) {
        while !self.is_end() {
            let read = self.use_tree(attributes, path, imports).and_then(|()| self.comma_or_end());
            if let Err(error) = read {
                self.push(error);
                while !self.is_end() && self.take(",").is_none() {
                    self.at += 1;
                }
            }
        }
    }
}

/// The names of layers and models that an item mentions, in order.
pub fn layer_names(item: &Item) -> Vec<&Ident> {
    match &item.body {
        ItemBody::Definition(definition) => {
            let mut names = vec![];
            members::layer_uses(&definition.members, &mut names);
            names.into_iter().map(|layer| &layer.name).collect()
        }
        ItemBody::Instance(of) => vec![&of.name],
        ItemBody::Poison => vec![],
    }
}

/// A `$` in an item would change the meaning of the macro that carries it. It can hide in docs, which nobody reads.
fn find_dollar(trees: &[TokenTree]) -> Option<Span> {
    let whole: TokenStream = trees.iter().cloned().collect();
    let mut levels = vec![whole.into_iter()];
    while let Some(level) = levels.last_mut() {
        match level.next() {
            None => drop(levels.pop()),
            Some(TokenTree::Group(group)) => levels.push(group.stream().into_iter()),
            Some(TokenTree::Punct(punct)) if punct.as_char() == '$' => return Some(punct.span()),
            Some(_) => {}
        }
    }
    None
}
