//! Functions: their signatures stay readable, whatever their parameters, results or bodies hold.

use super::ast::{Block, Bounds, Element, Expr, Function, Parameter, Type, TypeKind, Visibility};
use super::members::Attempt;
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Span};

impl Parser<'_> {
    pub(super) fn function(&mut self, attempt: &mut Attempt, visibility: Visibility) -> Parsed<Function> {
        let name = self.member_name(attempt, "the name of a function")?;
        let Some(group) = self.take_group(Delimiter::Parenthesis) else {
            return Err(self.unexpected(&format!("`(` after `{name}`")));
        };
        let parameters = self.inside(&group)?.parameters();
        *self.statements = 0;
        let result = self.take("->").map(|_| {
            let span = self.span();
            self.parse_type().unwrap_or_else(|error| {
                self.push(error);
                Type { span, kind: TypeKind::Poison }
            })
        });
        attempt.closed = true;
        if let Some(group) = self.take_group(Delimiter::Brace) {
            let body = self.block(&group);
            return Ok(Function { visibility, name, parameters, result, body });
        }
        if !result.as_ref().is_some_and(Type::is_poison) {
            let expected = if result.is_some() { "`{`" } else { "`->` or `{`" };
            let error = self.unexpected(expected);
            self.push(error);
        }
        let result = result.or(Some(Type { span: self.span(), kind: TypeKind::Poison }));
        let from = self.at;
        self.skip_member(attempt);
        let braces = self.tokens[from.min(self.at)..self.at].iter().find_map(|token| match token {
            Token::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.clone()),
            _ => None,
        });
        let body = match braces {
            Some(group) => self.block(&group),
            None => Block::poison(name.span),
        };
        Ok(Function { visibility, name, parameters, result, body })
    }

    fn parameters(&mut self) -> Vec<Parameter> {
        let mut parameters = vec![];
        while !self.is_end() {
            let span = self.span();
            let before = parameters.len();
            let read = self.parameter(&mut parameters).and_then(|()| self.comma_or_end());
            let Err(error) = read else { continue };
            self.push(error);
            if self.peek_ident(0).is_some() && self.operator_at(1) == Some(":") && parameters.len() > before {
                continue; // Only the `,` was forgotten.
            }
            if parameters.len() == before {
                // It has a place, so that calls with the right number of arguments stay silent.
                parameters.push(poison_parameter(Ident::new("_", span)));
            }
            while !self.is_end() && self.take(",").is_none() {
                self.at += 1;
            }
        }
        parameters
    }

    fn parameter(&mut self, parameters: &mut Vec<Parameter>) -> Parsed<()> {
        self.refuse_attributes();
        let reference = usize::from(self.is("&"));
        if self.word_at(reference, "self") {
            self.errors.push(self.tokens[self.at + reference].span(), diag::self_parameter());
            self.at += reference + 1;
            return Ok(());
        }
        if self.is_word("mut")
            && let Some(name) = self.peek_ident(1).cloned()
        {
            self.errors.push(self.span(), diag::mutable_parameter(&name.name));
            self.at += 1;
        }
        let name = self.name("a parameter")?;
        let index = parameters.len();
        parameters.push(poison_parameter(name.clone()));
        self.expect(":", &format!(" and the type of `{name}`"))?;
        let ty = self.parse_type()?;
        let bounded = self.take_word("in");
        let is_count = matches!(ty.kind, TypeKind::Scalar(Element::U32));
        parameters[index].ty = ty;
        let Some(at) = bounded else { return Ok(()) };
        if !is_count {
            return Err(Error::new(at, diag::bounds_of_tensor()));
        }
        let poison = Expr::poison(at);
        let unread = Bounds { low: poison.clone(), high: poison, inclusive: false, step: None, span: at };
        parameters[index].bounds = Some(unread);
        parameters[index].bounds = Some(self.bounds(false)?);
        Ok(())
    }
}

fn poison_parameter(name: Ident) -> Parameter {
    let span: Span = name.span;
    Parameter { name, ty: Type { span, kind: TypeKind::Poison }, bounds: None }
}
