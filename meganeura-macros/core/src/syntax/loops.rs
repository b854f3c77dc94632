//! Loops, in their four forms.

use super::ast::{Expr, ExprKind, For, Over, StatementKind};
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::statements::Read;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group};

impl Parser<'_> {
    pub(super) fn for_statement(&mut self) -> Parsed<Read> {
        let span = self.span();
        self.at += 1;
        let mut names = vec![];
        let over = self.loop_head(&mut names);
        let (over, group) = match over {
            Ok(over) => match self.take_group(Delimiter::Brace) {
                Some(group) => (over, group),
                None => self.broken_loop(names, self.after_expression("`{`"))?,
            },
            Err(error) => self.broken_loop(names, error)?,
        };
        let body = self.block(&group);
        Ok(Read::Statement(StatementKind::For(Box::new(For { span, over, body }))))
    }

    /// The head of a loop has a mistake; its body may still be read.
    fn broken_loop(&mut self, names: Vec<Ident>, error: Error) -> Parsed<(Over, Group)> {
        match self.skip_to_braces() {
            Some(group) => {
                self.push(error);
                Ok((Over::Poison(names), group))
            }
            None => Err(error),
        }
    }

    fn loop_head(&mut self, names: &mut Vec<Ident>) -> Parsed<Over> {
        let single = self.group_at(0, Delimiter::Parenthesis).is_none();
        let at = self.span();
        match self.take_group(Delimiter::Parenthesis) {
            Some(group) => {
                let mut inside = self.inside(&group)?;
                while names.is_empty() || !inside.is_end() {
                    names.push(inside.name("a name")?);
                    inside.comma_or_end()?;
                }
            }
            None => names.push(self.name("a name")?),
        }
        if self.is(",") {
            return Err(Error::new(self.span(), diag::loop_names()));
        }
        if self.take_word("in").is_none() {
            return Err(self.unexpected("`in`"));
        }
        if self.is("..") || self.is("..=") {
            return Err(self.unexpected("the first number"));
        }
        let source = self.expression()?;
        if self.is("..") || self.is("..=") {
            let bounds = self.bounds_from(source, false)?;
            return match names.first() {
                Some(index) if single => Ok(Over::Range { index: index.clone(), bounds }),
                _ => Err(Error::new(at, diag::range_needs_one_name())),
            };
        }
        if let ExprKind::Call(callee, _) = &source.kind
            && let ExprKind::Name(function) = &callee.kind
            && ["range", "enumerate", "zip"].contains(&function.name.as_str())
        {
            return Err(Error::new(function.span, diag::python_loop(&function.name)));
        }
        match (names.as_slice(), source.kind) {
            (_, ExprKind::Tuple(arrays)) if arrays.len() == names.len() => {
                Ok(Over::Together { items: names.clone(), arrays })
            }
            (_, ExprKind::Tuple(arrays)) => Err(Error::new(at, diag::unpaired_loop(names.len(), arrays.len()))),
            ([item], kind) => Ok(Over::Each { item: item.clone(), array: Expr::new(source.span, kind) }),
            ([index, item], kind) => {
                let array = Expr::new(source.span, kind);
                Ok(Over::Numbered { index: index.clone(), item: item.clone(), array })
            }
            _ => Err(Error::new(at, diag::loop_names())),
        }
    }
}
