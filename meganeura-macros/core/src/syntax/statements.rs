//! Blocks and statements.
//!
//! A mistake ends its statement: the parser goes on behind the next `;`, or at the next `let` or `for` where the `;` is
//! what was forgotten. What the broken statement would have bound stays bound, to poison.

use super::ast::{Assign, BinaryOp, Binding, Block, Expr, ExprKind, Index, Pattern, Statement, StatementKind, Tail};
use super::height::highest_index;
use super::name::Ident;
use super::parser::{Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Group, Span};

/// What a statement turned out to be.
pub(super) enum Read {
    Statement(StatementKind),
    Tail(Expr),
}

impl Block {
    /// A block of which nothing could be read.
    pub(super) fn poison(span: Span) -> Self {
        Self::new(vec![], Some(Tail { number: 0, value: Expr::poison(span) }))
    }

    fn new(statements: Vec<Statement>, tail: Option<Tail>) -> Self {
        let heights = statements.iter().map(|statement| statement.kind.height());
        let height = heights.chain(tail.iter().map(|tail| tail.value.height)).max().unwrap_or(0) + 1;
        Self { statements, tail, height }
    }

    /// Whether the block as a whole or its value could not be read.
    pub fn is_poison(&self) -> bool {
        self.tail.as_ref().is_some_and(|tail| tail.value.is_poison())
    }
}

impl StatementKind {
    fn height(&self) -> u32 {
        match self {
            Self::Let(_, value) | Self::Expr(value) => value.height,
            Self::Assign(assign) => {
                assign.value.height.max(assign.index.as_ref().map_or(0, |index| highest_index(index)))
            }
            Self::For(repeat) => repeat.body.height,
            Self::If(choice) => choice.height(),
            Self::Poison(_) => 0,
        }
    }
}

impl Pattern {
    /// The names that it binds.
    pub fn bindings(&self) -> &[Binding] {
        match self {
            Self::Name(binding) => std::slice::from_ref(binding),
            Self::Tuple(bindings, _) => bindings,
        }
    }

    fn into_names(self) -> Vec<Ident> {
        match self {
            Self::Name(binding) => vec![binding.name],
            Self::Tuple(bindings, _) => bindings.into_iter().map(|binding| binding.name).collect(),
        }
    }
}

impl Parser<'_> {
    /// The statements between braces; mistakes have been reported.
    pub(super) fn block(&mut self, group: &Group) -> Block {
        match self.inside(group) {
            Ok(mut inside) => inside.statements(),
            Err(error) => {
                self.push(error);
                Block::poison(group.span_open())
            }
        }
    }

    fn statements(&mut self) -> Block {
        let mut statements = vec![];
        let mut tail = None;
        let mut broken = false;
        while !self.is_end() {
            if self.take(";").is_some() {
                continue;
            }
            let errors = self.errors.count();
            self.refuse_attributes();
            if self.is_end() {
                break;
            }
            *self.statements += 1;
            let (number, span) = (*self.statements, self.span());
            let read = self.statement().unwrap_or_else(|error| {
                self.push(error);
                if self.skip_statement() || !self.is_end() {
                    Read::Statement(StatementKind::Poison(vec![]))
                } else {
                    Read::Tail(Expr::poison(span))
                }
            });
            match read {
                Read::Statement(kind) => statements.push(Statement { number, span, kind }),
                Read::Tail(value) => tail = Some(Tail { number, value }),
            }
            broken = self.errors.count() > errors;
        }
        let ends_open = !matches!(self.tokens.last(), Some(Token::Punct(';', ..)));
        if broken && ends_open && tail.is_none() {
            // What was skipped may have held the value.
            tail = Some(Tail { number: *self.statements, value: Expr::poison(self.span()) });
        }
        Block::new(statements, tail)
    }

    fn statement(&mut self) -> Parsed<Read> {
        let Some(word) = self.peek_ident(0).filter(|word| !word.raw) else { return self.expression_statement() };
        let next_is_value = match self.peek(1) {
            None | Some(Token::Ident(_) | Token::Literal(_) | Token::Group(_)) => true,
            Some(Token::Punct(char, ..)) => matches!(char, ';' | '-' | '!'),
        };
        match word.name.as_str() {
            "let" => self.let_statement(),
            "for" => self.for_statement(),
            "if" => self.if_statement(),
            "return" if next_is_value && self.peek(1).is_some() => Err(Error::new(self.span(), diag::return_habit())),
            "while" | "loop" if matches!(self.peek(1), Some(Token::Ident(_) | Token::Group(_) | Token::Literal(_))) => {
                let error = Error::new(self.span(), diag::while_loop());
                self.push(error);
                // Its body is not read: what it means depends on the loop.
                if self.skip_to_braces().is_none() {
                    self.skip_statement();
                }
                Ok(Read::Statement(StatementKind::Poison(vec![])))
            }
            _ => self.expression_statement(),
        }
    }

    fn let_statement(&mut self) -> Parsed<Read> {
        self.at += 1;
        let pattern = self.pattern()?;
        if self.take("=").is_none() {
            let first = pattern.bindings().first().map(|binding| binding.name.name.clone());
            let error = match first {
                Some(name) if self.is(":") => Error::new(self.span(), diag::typed_let(&name)),
                _ => self.unexpected("`=`"),
            };
            self.push(error);
            self.skip_statement();
            return Ok(Read::Statement(StatementKind::Poison(pattern.into_names())));
        }
        let value = self.value_of_statement();
        Ok(Read::Statement(StatementKind::Let(pattern, value)))
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        let span = self.span();
        let Some(group) = self.take_group(Delimiter::Parenthesis) else { return self.binding().map(Pattern::Name) };
        let mut inside = self.inside(&group)?;
        let mut bindings = vec![];
        while bindings.is_empty() || !inside.is_end() {
            bindings.push(inside.binding()?);
            inside.comma_or_end()?;
        }
        Ok(Pattern::Tuple(bindings, span))
    }

    fn binding(&mut self) -> Parsed<Binding> {
        let mutable = self.peek_ident(1).is_some() && self.take_word("mut").is_some();
        Ok(Binding { name: self.name("a name")?, mutable })
    }

    /// The value behind a `=` up to its `;`. A mistake is reported and leaves poison.
    fn value_of_statement(&mut self) -> Expr {
        let span = self.span();
        match self.expression() {
            Ok(value) if self.take(";").is_some() => value,
            Ok(value) => {
                let error = self.after_expression("`;`");
                self.push(error);
                if self.is_end() || self.begins_statement() {
                    return value;
                }
                self.skip_statement();
                Expr::poison(span)
            }
            Err(error) => {
                self.push(error);
                self.skip_statement();
                Expr::poison(span)
            }
        }
    }

    fn begins_statement(&self) -> bool {
        self.is_word("let") || self.is_word("for")
    }

    /// Behind the next `;`, or before what can only begin a statement. Whether there was a `;`.
    fn skip_statement(&mut self) -> bool {
        while !self.is_end() {
            if self.take(";").is_some() {
                return true;
            }
            if self.begins_statement() {
                return false;
            }
            self.at += 1;
        }
        false
    }

    fn expression_statement(&mut self) -> Parsed<Read> {
        let value = self.expression()?;
        if self.is_end() {
            return Ok(Read::Tail(value));
        }
        if self.take(";").is_some() {
            return Ok(Read::Statement(StatementKind::Expr(value)));
        }
        let span = self.span();
        let operator = match self.operator() {
            Some("=") => None,
            Some("+=") => Some(BinaryOp::Add),
            Some("-=") => Some(BinaryOp::Subtract),
            Some("*=") => Some(BinaryOp::Multiply),
            Some("/=") => Some(BinaryOp::Divide),
            Some("@=") => Some(BinaryOp::MatMul),
            Some("&=") => Some(BinaryOp::And),
            Some("|=") => Some(BinaryOp::Or),
            _ => {
                let error = self.after_expression("`;`");
                if !self.begins_statement() {
                    return Err(error);
                }
                self.push(error);
                return Ok(Read::Statement(StatementKind::Expr(value)));
            }
        };
        let (name, index) = target(value)?;
        self.at += if operator.is_some() { 2 } else { 1 };
        let value = self.value_of_statement();
        Ok(Read::Statement(StatementKind::Assign(Assign { name, index, operator, span, value })))
    }

    fn if_statement(&mut self) -> Parsed<Read> {
        let choice = self.choice()?;
        let mut blocks = choice.branches.iter().map(|(_, block)| block).chain(&choice.otherwise);
        if self.is_end() && blocks.any(|block| block.tail.is_some()) {
            return self.value_of(choice).map(Read::Tail);
        }
        Ok(Read::Statement(StatementKind::If(choice)))
    }
}

/// The left side of an assignment.
fn target(value: Expr) -> Parsed<(Ident, Option<Vec<Index>>)> {
    match value.kind {
        ExprKind::Name(name) => Ok((name, None)),
        ExprKind::Index(base, index) => match base.kind {
            ExprKind::Name(name) => Ok((name, Some(index))),
            _ => Err(Error::new(value.span, diag::not_assignable())),
        },
        ExprKind::Tuple(_) => Err(Error::new(value.span, diag::tuple_assignment())),
        _ => Err(Error::new(value.span, diag::not_assignable())),
    }
}
