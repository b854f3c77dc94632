//! Attributes: read before it is known what they belong to, checked once it is.

use super::ast::{Attributes, Text, Train};
use super::literals;
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// An attribute as it was written.
pub(super) struct Written {
    name: Ident,
    /// The brackets.
    group: Group,
    trees: Vec<TokenTree>,
}

impl Written {
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.is(name)
    }

    /// As it was written.
    pub(super) fn trees(&self) -> &[TokenTree] {
        &self.trees
    }
}

/// What an attribute belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Use,
    Layer,
    Model,
    SubLayer,
    Param,
    Buffer,
    State,
    Constant,
    Condition,
    Function,
    /// Something that could not be read.
    Unknown,
}

impl Place {
    fn allowed(self) -> &'static [&'static str] {
        match self {
            Self::Use => &["doc", "allow", "expect", "warn", "deny"],
            Self::Layer | Self::State | Self::Constant | Self::Condition => &["doc"],
            Self::Model => &["ignore", "doc"],
            Self::SubLayer => &["name", "frozen", "store", "precision", "checkpoint", "doc"],
            Self::Param => &["name", "frozen", "store", "doc"],
            Self::Buffer => &["name", "doc"],
            Self::Function => &["train", "precision", "checkpoint", "doc"],
            Self::Unknown => &diag::ATTRIBUTES,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Use => "a `use`",
            Self::Layer => "a layer",
            Self::Model => "a model",
            Self::SubLayer => "a sub-layer",
            Self::Param => "a `param`",
            Self::Buffer => "a `buffer`",
            Self::State => "a `state`",
            Self::Constant => "a `let`",
            Self::Condition => "an `if`",
            Self::Function => "a function",
            Self::Unknown => "this",
        }
    }
}

impl Parser<'_> {
    /// All attributes that stand here.
    pub(super) fn written_attributes(&mut self) -> Vec<Written> {
        let mut written = vec![];
        while self.is("#") {
            let start = self.at;
            self.at += 1;
            let Some(group) = self.take_group(Delimiter::Bracket) else {
                let error = self.unexpected("`[` after `#`");
                self.push(error);
                // An inner attribute: its brackets say nothing more.
                if self.take("!").is_some() {
                    self.take_group(Delimiter::Bracket);
                }
                continue;
            };
            let trees = self.trees[start..self.at].to_vec();
            let name = self.inside(&group).and_then(|mut inside| inside.name("the name of an attribute"));
            match name {
                Ok(name) => written.push(Written { name, group, trees }),
                Err(error) => self.push(error),
            }
        }
        written
    }

    /// Where nothing takes attributes, docs are comments and others mistakes.
    pub(super) fn refuse_attributes(&mut self) {
        for attribute in self.written_attributes() {
            let message = match attribute.name.name.as_str() {
                "doc" => continue,
                "cfg" | "cfg_attr" => diag::cfg_inside(),
                name => diag::attribute_of_no_member(name),
            };
            self.errors.push(attribute.name.span, message);
        }
    }

    /// What the attributes say about something at this place.
    pub(super) fn attributes(&mut self, written: Vec<Written>, place: Place) -> Attributes {
        let mut attributes = Attributes::default();
        for attribute in written {
            if !self.belongs(&attribute.name, place) {
                continue;
            }
            if attribute.name.is("doc") {
                attributes.docs.extend(attribute.trees);
            } else if let Err(error) = self.read(attribute, &mut attributes) {
                self.push(error);
            }
        }
        attributes
    }

    /// Those of a `use` are Rust's and stay as they are.
    pub(super) fn use_attributes(&mut self, written: Vec<Written>) -> TokenStream {
        let kept = written.into_iter().filter(|attribute| self.belongs(&attribute.name, Place::Use));
        kept.flat_map(|attribute| attribute.trees).collect()
    }

    fn belongs(&mut self, name: &Ident, place: Place) -> bool {
        let known = name.name.as_str();
        let message = if known == "cfg" || known == "cfg_attr" {
            diag::cfg_inside()
        } else if place.allowed().contains(&known) {
            return true;
        } else if diag::ATTRIBUTES.contains(&known) || place == Place::Use {
            diag::misplaced_attribute(known, place.description(), place.allowed())
        } else {
            diag::unknown_attribute(known)
        };
        self.errors.push(name.span, message);
        false
    }

    fn read(&mut self, attribute: Written, attributes: &mut Attributes) -> Parsed<()> {
        let Written { name, group, .. } = attribute;
        let mut inside = self.inside(&group)?;
        inside.at += 1;
        let given = match name.name.as_str() {
            "train" => {
                // The function stays an entry that is trained, whatever its parameters say.
                let again = attributes.train.replace(Train { span: name.span, params: None }).is_some();
                if let Some(train) = &mut attributes.train {
                    train.params = inside.train_parameters()?;
                }
                again
            }
            "name" => {
                inside.take("=").ok_or_else(|| inside.form("name = \"..\""))?;
                let text = inside.text("name = \"..\"")?;
                attributes.name.replace(text).is_some()
            }
            "frozen" => attributes.frozen.replace(name.span).is_some(),
            "checkpoint" => attributes.checkpoint.replace(name.span).is_some(),
            "store" => attributes.store.replace(inside.word("store(q8_0)")?).is_some(),
            "precision" => attributes.precision.replace(inside.word("precision(f16)")?).is_some(),
            _ => {
                attributes.ignore.extend(inside.patterns()?);
                false
            }
        };
        if !inside.is_end() {
            let form = match name.name.as_str() {
                "train" => "train(params = \"..\")",
                "name" => "name = \"..\"",
                "store" => "store(q8_0)",
                "precision" => "precision(f16)",
                "ignore" => "ignore(\"..\")",
                bare => bare,
            };
            return Err(inside.form(form));
        }
        if given { Err(Error::new(name.span, diag::repeated_attribute(&name.name))) } else { Ok(()) }
    }

    fn form(&self, form: &str) -> Error {
        Error::new(self.span(), diag::attribute_form(form, &self.found()))
    }

    fn text(&mut self, form: &str) -> Parsed<Text> {
        let text = match self.peek(0) {
            Some(Token::Literal(literal)) => literals::text(literal),
            _ => None,
        };
        self.at += usize::from(text.is_some());
        text.ok_or_else(|| self.form(form))
    }

    fn train_parameters(&mut self) -> Parsed<Option<Text>> {
        const FORM: &str = "train(params = \"..\")";
        let Some(group) = self.take_group(Delimiter::Parenthesis) else { return Ok(None) };
        let mut inside = self.inside(&group)?;
        if inside.take_word("params").is_none() || inside.take("=").is_none() {
            return Err(inside.form(FORM));
        }
        let text = inside.text(FORM)?;
        inside.comma_or_end()?;
        if inside.is_end() { Ok(Some(text)) } else { Err(inside.form(FORM)) }
    }

    /// `(q8_0)`
    fn word(&mut self, form: &str) -> Parsed<Ident> {
        let Some(group) = self.take_group(Delimiter::Parenthesis) else { return Err(self.form(form)) };
        let mut inside = self.inside(&group)?;
        let Some(Token::Ident(word)) = inside.bump() else {
            inside.at = 0;
            return Err(inside.form(form));
        };
        if inside.is_end() { Ok(word) } else { Err(inside.form(form)) }
    }

    /// `("pooler.*", "extra.*")`
    fn patterns(&mut self) -> Parsed<Vec<Text>> {
        const FORM: &str = "ignore(\"..\")";
        let Some(group) = self.take_group(Delimiter::Parenthesis) else { return Err(self.form(FORM)) };
        let mut inside = self.inside(&group)?;
        let mut patterns = vec![];
        while patterns.is_empty() || !inside.is_end() {
            patterns.push(inside.text(FORM)?);
            inside.comma_or_end()?;
        }
        Ok(patterns)
    }
}
