//! Expressions: binding powers as Pratt's, on a stack of its own, so that only brackets recurse.
//!
//! From loose to tight, as in Rust and Python: comparisons, `|`, `&`, `+ -`, `* / @`,
//! signs, then calls, indices and members. A mistake ends the expression; the statement or member around it recovers.
//! The height of every tree is limited, so that whoever walks one may recurse.

use super::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use super::height::MAX_HEIGHT;
use super::parser::{Angles, Parsed, Parser};
use super::tokens::Token;
use crate::diag;
use crate::errors::Error;
use proc_macro2::{Delimiter, Span};

impl BinaryOp {
    fn from_text(text: &str) -> Option<Self> {
        Some(match text {
            "|" => Self::Or,
            "&" => Self::And,
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterEqual,
            "+" => Self::Add,
            "-" => Self::Subtract,
            "*" => Self::Multiply,
            "/" => Self::Divide,
            "@" => Self::MatMul,
            _ => return None,
        })
    }

    /// As it is written.
    pub fn text(self) -> &'static str {
        match self {
            Self::Or => "|",
            Self::And => "&",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::MatMul => "@",
        }
    }

    /// Whether it compares.
    pub fn is_comparison(self) -> bool {
        self.power() == 1
    }

    fn power(self) -> u8 {
        match self {
            Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 1,
            Self::Or => 2,
            Self::And => 3,
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide | Self::MatMul => 5,
        }
    }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let mut operands = vec![self.unary()?];
        let mut operators: Vec<(BinaryOp, Span)> = vec![];
        while let Some(operator) = self.binary_operator()? {
            while let Some((first, span)) = operators.pop_if(|(first, _)| first.power() >= operator.power()) {
                if operator.is_comparison() && first.is_comparison() {
                    return Err(Error::new(self.span(), diag::chained_comparison(first.text(), operator.text())));
                }
                self.join(&mut operands, first, span)?;
            }
            operators.push((operator, self.span()));
            self.at += operator.text().len();
            operands.push(self.unary()?);
        }
        while let Some((operator, span)) = operators.pop() {
            self.join(&mut operands, operator, span)?;
        }
        operands.pop().ok_or_else(|| self.unexpected(diag::VALUE))
    }

    /// The last two operands become one.
    fn join(&self, operands: &mut Vec<Expr>, operator: BinaryOp, span: Span) -> Parsed<()> {
        if let (Some(right), Some(left)) = (operands.pop(), operands.pop()) {
            operands.push(self.node(span, ExprKind::Binary(operator, Box::new(left), Box::new(right)))?);
        }
        Ok(())
    }

    /// A node on top of others that is not too high.
    pub(super) fn node(&self, span: Span, kind: ExprKind) -> Parsed<Expr> {
        let node = Expr::new(span, kind);
        if node.height > MAX_HEIGHT { Err(Error::new(span, diag::expression_too_deep(MAX_HEIGHT))) } else { Ok(node) }
    }

    /// The operator that follows an operand, if one does; what other languages write there is a mistake.
    fn binary_operator(&self) -> Parsed<Option<BinaryOp>> {
        let fail = |message: String| Err(Error::new(self.span(), message));
        if let Some(word) = self.peek_ident(0) {
            return match word.name.as_str() {
                "and" | "or" if !word.raw => fail(diag::word_operator(&word.name)),
                "if" if !word.raw && self.is_python_if() => fail(diag::python_if()),
                _ => Ok(None),
            };
        }
        let Some(text) = self.operator() else { return Ok(None) };
        match text {
            "**" => return fail(diag::power()),
            "&&" | "||" => return fail(diag::doubled_operator(text)),
            "%" | "^" | "<<" => return fail(diag::no_operator(text)),
            ">>" if self.angles != Angles::Here => return fail(diag::no_operator(text)),
            _ => {}
        }
        match (BinaryOp::from_text(text), self.angles) {
            (Some(_), Angles::Here) if text.starts_with('>') => Ok(None),
            (Some(operator), Angles::Here | Angles::Around) if operator.is_comparison() => {
                fail(diag::layer_as_argument())
            }
            (operator, _) => Ok(operator),
        }
    }

    /// `a if c else b`: no braces up to the end of the statement, which a forgotten `;` before an `if` would show.
    fn is_python_if(&self) -> bool {
        for token in self.tokens.iter().skip(self.at + 1) {
            match token {
                Token::Group(group) if group.delimiter() == Delimiter::Brace => return false,
                Token::Punct(';', ..) => return true,
                Token::Ident(word) if word.is("else") => return true,
                _ => {}
            }
        }
        true
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let mut operators = vec![];
        loop {
            let span = self.span();
            if self.is_word("not") && self.begins_operand(1) {
                return Err(Error::new(span, diag::word_operator("not")));
            }
            // Not `take`: `-=` and `!=` cannot begin a value, but `--x` and `!-x` can.
            match self.operator() {
                Some("-") => operators.push((UnaryOp::Negate, span)),
                Some("!") => operators.push((UnaryOp::Not, span)),
                Some("~") => return Err(Error::new(span, diag::tilde())),
                _ => break,
            }
            self.at += 1;
        }
        let mut operand = self.postfix()?;
        while let Some((operator, span)) = operators.pop() {
            operand = self.node(span, ExprKind::Unary(operator, Box::new(operand)))?;
        }
        Ok(operand)
    }

    /// Whether a name or literal stands there: two operands in a row.
    fn begins_operand(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            Some(Token::Ident(word)) => !["and", "or", "if", "else", "in"].iter().any(|other| word.is(other)),
            Some(Token::Literal(_)) => true,
            _ => false,
        }
    }

    /// What follows an expression is none of `expected`.
    pub(super) fn after_expression(&self, expected: &str) -> Error {
        match self.operator() {
            Some(".." | "..=") => Error::new(self.span(), diag::range_outside()),
            Some(">" | ">=" | "<" | "<=") if self.angles == Angles::Here => {
                Error::new(self.span(), diag::layer_as_argument())
            }
            _ => self.unexpected(expected),
        }
    }
}
