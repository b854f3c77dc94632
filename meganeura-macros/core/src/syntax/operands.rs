//! Operands: literals, names, parentheses and arrays, with the calls, indices and members behind them.

use super::ast::{Argument, Expr, ExprKind, Index, UnaryOp};
use super::literals;
use super::parser::{Angles, Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group};

impl Parser<'_> {
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let mut base = self.primary()?;
        if matches!(base.kind, ExprKind::If(_)) {
            return Ok(base);
        }
        loop {
            if let Some(group) = self.take_group(Delimiter::Parenthesis) {
                if !matches!(base.kind, ExprKind::Name(_) | ExprKind::Index(..) | ExprKind::Field(..)) {
                    return Err(Error::new(group.span_open(), diag::not_callable()));
                }
                let arguments = self.arguments(&group)?;
                base = self.node(base.span, ExprKind::Call(Box::new(base), arguments))?;
            } else if let Some(group) = self.take_group(Delimiter::Bracket) {
                let indices = self.indices(&group)?;
                base = self.node(group.span(), ExprKind::Index(Box::new(base), indices))?;
            } else if self.take(".").is_some() {
                if let Some(Token::Literal(literal)) = self.peek(0) {
                    return Err(Error::new(literal.span(), diag::tuple_field()));
                }
                let name = self.name("the name of a member or function")?;
                base = match self.take_group(Delimiter::Parenthesis) {
                    Some(group) => {
                        let arguments = self.arguments(&group)?;
                        self.node(name.span, ExprKind::Method(Box::new(base), name, arguments))?
                    }
                    None => self.node(name.span, ExprKind::Field(Box::new(base), name))?,
                };
            } else {
                return Ok(base);
            }
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        match self.peek(0).cloned() {
            Some(Token::Literal(literal)) => {
                let (negative, kind) = literals::value(&literal)?;
                self.at += 1;
                let value = Expr::new(span, kind);
                if !negative {
                    return Ok(value);
                }
                self.node(span, ExprKind::Unary(UnaryOp::Negate, Box::new(value)))
            }
            Some(Token::Ident(word)) if word.is("true") || word.is("false") => {
                self.at += 1;
                Ok(Expr::new(span, ExprKind::Bool(word.is("true"))))
            }
            Some(Token::Ident(word)) if word.is("if") => {
                let choice = self.choice()?;
                self.value_of(choice)
            }
            Some(Token::Ident(word)) if word.is("_") => Err(Error::new(span, diag::hole())),
            Some(Token::Ident(_)) => self.used_name(),
            Some(Token::Group(group)) => match group.delimiter() {
                Delimiter::Parenthesis => self.parentheses(&group),
                Delimiter::Bracket => self.array(&group),
                Delimiter::None => {
                    self.at += 1;
                    let mut inside = self.inside(&group)?;
                    let value = inside.expression()?;
                    inside.expect_end()?;
                    Ok(value)
                }
                Delimiter::Brace => Err(self.unexpected(diag::VALUE)),
            },
            Some(Token::Punct(..)) => Err(match (self.operator(), self.peek(1)) {
                (Some("."), Some(Token::Literal(digits))) => Error::new(span, diag::leading_point(&digits.to_string())),
                (Some(".." | "..="), _) => Error::new(span, diag::range_outside()),
                _ => self.unexpected(diag::VALUE),
            }),
            None => Err(self.unexpected(diag::VALUE)),
        }
    }

    fn used_name(&mut self) -> Parsed<Expr> {
        let name = self.name(diag::VALUE)?;
        if self.is("::") && self.peek_ident(2).is_some() {
            return Err(Error::new(self.span(), diag::path_in_place_of_name()));
        }
        let looks_like_layer =
            name.name.starts_with(char::is_uppercase) && name.name.contains(char::is_lowercase) && self.is("<");
        if looks_like_layer && self.angles == Angles::No {
            return Err(Error::new(name.span, diag::inline_layer(&name.name)));
        }
        Ok(Expr::new(name.span, ExprKind::Name(name)))
    }

    /// `(a)`, `(a, b)`
    fn parentheses(&mut self, group: &Group) -> Parsed<Expr> {
        self.at += 1;
        let mut inside = self.inside(group)?;
        let first = inside.expression()?;
        if inside.is_end() {
            return Ok(first);
        }
        inside.comma_or_end()?;
        let mut elements = vec![first];
        while !inside.is_end() {
            elements.push(inside.expression()?);
            inside.comma_or_end()?;
        }
        self.node(group.span(), ExprKind::Tuple(elements))
    }

    /// `[a, b]`
    fn array(&mut self, group: &Group) -> Parsed<Expr> {
        self.at += 1;
        let mut inside = self.inside(group)?;
        let mut elements = vec![];
        while !inside.is_end() {
            let alone = inside.peek(1).is_none() || inside.operator_at(1) == Some(",");
            if alone && let Some(span) = inside.take_word("_") {
                elements.push(Expr::new(span, ExprKind::Hole));
            } else {
                elements.push(inside.expression()?);
            }
            inside.comma_or_end()?;
        }
        self.node(group.span(), ExprKind::Array(elements))
    }

    /// Between the parentheses of a call.
    fn arguments(&mut self, group: &Group) -> Parsed<Vec<Argument>> {
        let mut inside = self.inside(group)?;
        let mut arguments: Vec<Argument> = vec![];
        while !inside.is_end() {
            let argument = inside.argument(&arguments)?;
            arguments.push(argument);
            inside.comma_or_end()?;
        }
        Ok(arguments)
    }

    /// `value` or `name = value`, of a call or of a layer.
    pub(super) fn argument(&mut self, before: &[Argument]) -> Parsed<Argument> {
        let (start, span) = (self.at, self.span());
        let name = if self.peek_ident(0).is_some() && self.operator_at(1) == Some("=") {
            let name = self.name("the name of an argument")?;
            self.at += 1;
            Some(name)
        } else {
            None
        };
        let value = self.expression()?;
        if name.is_none() && before.last().is_some_and(|last| last.name.is_some()) {
            self.at = start;
            return Err(Error::new(span, diag::positional_after_named()));
        }
        Ok(Argument { name, value })
    }

    /// Between the brackets of an index.
    fn indices(&mut self, group: &Group) -> Parsed<Vec<Index>> {
        let mut inside = self.inside(group)?;
        if inside.is_end() {
            return Err(Error::new(group.span_close(), diag::empty_index()));
        }
        let mut indices = vec![];
        while !inside.is_end() {
            indices.push(inside.index()?);
            inside.comma_or_end()?;
        }
        Ok(indices)
    }

    fn index(&mut self) -> Parsed<Index> {
        self.refuse_python_slice()?;
        let start = if self.is("..") || self.is("..=") { None } else { Some(self.expression()?) };
        self.refuse_python_slice()?;
        let span = self.span();
        let inclusive = self.is("..=");
        if self.take("..").is_none() && self.take("..=").is_none() {
            return match start {
                Some(at) => Ok(Index::At(at)),
                None => Err(self.unexpected("an index")),
            };
        }
        let open = self.is_end() || self.is(",");
        let end = if open && !inclusive { None } else { Some(self.expression()?) };
        self.refuse_python_slice()?;
        Ok(Index::Slice { start, end, inclusive, span })
    }

    fn refuse_python_slice(&self) -> Parsed<()> {
        let message = match self.operator() {
            Some("::") => diag::slice_step(),
            Some(":") => diag::python_slice(),
            Some("...") => diag::ellipsis(),
            _ => return Ok(()),
        };
        Err(Error::new(self.span(), message))
    }
}
