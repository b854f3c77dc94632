//! `if`, as a value and as a statement.

use super::ast::{Block, Expr, ExprKind, If};
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group};

impl Parser<'_> {
    /// `if` where a value is needed.
    pub(super) fn value_of(&self, choice: If) -> Parsed<Expr> {
        if choice.otherwise.is_none() {
            return Err(Error::new(choice.span, diag::missing_else()));
        }
        self.node(choice.span, ExprKind::If(Box::new(choice)))
    }

    /// `if c { .. } else if d { .. } else { .. }`; begins at `if`.
    pub(super) fn choice(&mut self) -> Parsed<If> {
        let span = self.span();
        let mut branches: Vec<(Expr, Block)> = vec![];
        loop {
            self.at += 1;
            let (condition, group) = self.condition()?;
            branches.push((condition, self.block(&group)));
            if self.is_word("elif") {
                return Err(Error::new(self.span(), diag::elif_habit()));
            }
            if self.take_word("else").is_none() {
                return Ok(If { span, branches, otherwise: None });
            }
            if self.is_word("if") {
                continue;
            }
            let Some(group) = self.take_group(Delimiter::Brace) else {
                return Err(self.unexpected("`{` after `else`"));
            };
            let otherwise = Some(self.block(&group));
            return Ok(If { span, branches, otherwise });
        }
    }

    /// A condition and the braces behind it. A mistake in the condition leaves the braces to be read.
    pub(super) fn condition(&mut self) -> Parsed<(Expr, Group)> {
        let span = self.span();
        let mut condition = self.expression();
        if condition.is_ok() && self.group_at(0, Delimiter::Brace).is_none() {
            condition = Err(if self.is("=") {
                Error::new(self.span(), diag::assignment_in_expression())
            } else {
                self.after_expression("`{`")
            });
        }
        let error = match condition {
            Ok(condition) => match self.take_group(Delimiter::Brace) {
                Some(group) => return Ok((condition, group)),
                None => self.unexpected("`{`"),
            },
            Err(error) => error,
        };
        match self.skip_to_braces() {
            Some(group) => {
                self.push(error);
                Ok((Expr::poison(span), group))
            }
            None => Err(error),
        }
    }

    /// The next braces of this statement or member.
    pub(super) fn skip_to_braces(&mut self) -> Option<Group> {
        let rest = self.tokens.iter().enumerate().skip(self.at);
        let braces =
            rest.take_while(|(_, token)| !matches!(token, Token::Punct(';', ..))).find_map(|(at, token)| match token {
                Token::Group(group) if group.delimiter() == Delimiter::Brace => Some((at, group.clone())),
                _ => None,
            });
        let (at, group) = braces?;
        self.at = at + 1;
        Some(group)
    }
}
