//! Expressions back to text, as short as messages need them.

use proc_macro2::Span;

use crate::syntax::{Argument, BinaryOp, Expr, ExprKind, Ident, Index, UnaryOp};

/// Longer text says less than a word.
const LIMIT: usize = 32;

/// The expression as the user may have written it, if it is short.
pub(super) fn short(expr: &Expr) -> Option<String> {
    let text = text(expr)?;
    (text.chars().count() <= LIMIT).then_some(text)
}

/// A part of a local as the user may have written it.
pub(super) fn part_text(name: &str, indices: &[Index]) -> Option<String> {
    let indices: Option<Vec<String>> = indices.iter().map(index_text).collect();
    Some(format!("{name}[{}]", indices?.join(", "))).filter(|text| text.chars().count() <= LIMIT)
}

fn text(expr: &Expr) -> Option<String> {
    Some(match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Text(value) => format!("{value:?}"),
        ExprKind::Name(name) => name.name.clone(),
        ExprKind::Unary(operator, operand) => {
            let sign = match operator {
                UnaryOp::Negate => "-",
                UnaryOp::Not => "!",
            };
            format!("{sign}{}", operand_text(operand, 9)?)
        }
        ExprKind::Binary(operator, left, right) => {
            let power = power(*operator);
            format!("{} {} {}", operand_text(left, power)?, operator.text(), operand_text(right, power + 1)?)
        }
        ExprKind::Call(callee, arguments) => format!("{}({})", text(callee)?, arguments_text(arguments)?),
        ExprKind::Method(receiver, name, arguments) => {
            format!("{}.{name}({})", operand_text(receiver, 9)?, arguments_text(arguments)?)
        }
        ExprKind::Field(base, name) => format!("{}.{name}", operand_text(base, 9)?),
        ExprKind::Index(base, indices) => {
            let indices: Option<Vec<String>> = indices.iter().map(index_text).collect();
            format!("{}[{}]", operand_text(base, 9)?, indices?.join(", "))
        }
        ExprKind::Array(parts) => format!("[{}]", all(parts)?),
        ExprKind::Tuple(parts) => format!("({})", all(parts)?),
        ExprKind::Hole => "_".into(),
        ExprKind::If(_) | ExprKind::Poison => return None,
    })
}

fn all(parts: &[Expr]) -> Option<String> {
    parts.iter().map(text).collect::<Option<Vec<_>>>().map(|parts| parts.join(", "))
}

fn arguments_text(arguments: &[Argument]) -> Option<String> {
    let argument = |argument: &Argument| match &argument.name {
        Some(name) => Some(format!("{name} = {}", text(&argument.value)?)),
        None => text(&argument.value),
    };
    arguments.iter().map(argument).collect::<Option<Vec<_>>>().map(|parts| parts.join(", "))
}

fn index_text(index: &Index) -> Option<String> {
    match index {
        Index::At(at) => text(at),
        Index::Slice { start, end, inclusive, .. } => {
            let part = |end: &Option<Expr>| end.as_ref().map_or(Some(String::new()), text);
            Some(format!("{}{}{}", part(start)?, if *inclusive { "..=" } else { ".." }, part(end)?))
        }
    }
}

fn operand_text(expr: &Expr, least: u8) -> Option<String> {
    let own = match &expr.kind {
        ExprKind::Binary(operator, ..) => power(*operator),
        ExprKind::Unary(..) => 8,
        _ => 9,
    };
    let text = text(expr)?;
    Some(if own < least { format!("({text})") } else { text })
}

fn power(operator: BinaryOp) -> u8 {
    match operator {
        BinaryOp::Or => 2,
        BinaryOp::And => 3,
        BinaryOp::Add | BinaryOp::Subtract => 4,
        BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::MatMul => 5,
        _ => 1,
    }
}

/// The text that an operand was written as.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// An expression.
    Expr(&'a Expr),
    /// The left side of `x += ..`.
    Name(&'a Ident),
}

impl Source<'_> {
    pub(super) fn span(self) -> Span {
        match self {
            Source::Expr(expr) => expr.span,
            Source::Name(name) => name.span,
        }
    }

    /// The text, or the name of its role where that is long.
    pub(super) fn text(self, role: &str) -> String {
        match self {
            Source::Expr(expr) => short(expr).unwrap_or_else(|| role.to_string()),
            Source::Name(name) => name.name.clone(),
        }
    }
}
