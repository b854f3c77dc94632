//! Expressions back to text, as short as messages need them.

use proc_macro2::Span;

use super::Stated;
use crate::syntax::written::{expression, index, range};
use crate::syntax::{Assign, BinaryOp, Binding, Expr, Ident, Index, Over, Pattern, StatementKind};

/// Longer text says less than a word.
const LIMIT: usize = 32;

/// The expression as the user may have written it, if it is short.
pub(super) fn short(expr: &Expr) -> Option<String> {
    let text = expression(expr)?;
    (text.chars().count() <= LIMIT).then_some(text)
}

/// A statement as the user may have written it; of one with blocks the head.
pub(super) fn statement(stated: Stated<'_>) -> String {
    let written = |expr: &Expr| expression(expr).unwrap_or_else(|| "..".into());
    let kind = match stated {
        Stated::Nothing => return String::new(),
        Stated::Tail(value) => return written(value),
        Stated::Statement(statement) => &statement.kind,
    };
    let names = |bindings: &[Binding]| {
        let name = |binding: &Binding| format!("{}{}", if binding.mutable { "mut " } else { "" }, binding.name.name);
        bindings.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match kind {
        StatementKind::Let(Pattern::Name(binding), value) => {
            format!("let {} = {};", names(std::slice::from_ref(binding)), written(value))
        }
        StatementKind::Let(Pattern::Tuple(bindings, _), value) => {
            format!("let ({}) = {};", names(bindings), written(value))
        }
        StatementKind::Assign(Assign { name, index: part, operator, value, .. }) => {
            let part = part.as_ref().map_or(Some(String::new()), |part| {
                let parts: Option<Vec<String>> = part.iter().map(index).collect();
                Some(format!("[{}]", parts?.join(", ")))
            });
            let operator = operator.map_or("", BinaryOp::text);
            format!("{}{} {operator}= {};", name.name, part.unwrap_or_else(|| "[..]".into()), written(value))
        }
        StatementKind::For(repeat) => match &repeat.over {
            Over::Each { item, array } => format!("for {} in {}", item.name, written(array)),
            Over::Numbered { index, item, array } => {
                format!("for ({}, {}) in {}", index.name, item.name, written(array))
            }
            Over::Together { items, arrays } => {
                let items: Vec<&str> = items.iter().map(|item| item.name.as_str()).collect();
                let arrays: Vec<String> = arrays.iter().map(written).collect();
                format!("for ({}) in ({})", items.join(", "), arrays.join(", "))
            }
            Over::Range { index, bounds } => format!("for {} in {}", index.name, range(bounds)),
            Over::Poison(_) => "for ..".into(),
        },
        StatementKind::If(choice) => {
            format!("if {}", choice.branches.first().map_or("..".into(), |(condition, _)| written(condition)))
        }
        StatementKind::Expr(value) => format!("{};", written(value)),
        StatementKind::Poison(_) => String::new(),
    }
}

/// A part of a local as the user may have written it.
pub(super) fn part_text(name: &str, indices: &[Index]) -> Option<String> {
    let indices: Option<Vec<String>> = indices.iter().map(index).collect();
    Some(format!("{name}[{}]", indices?.join(", "))).filter(|text| text.chars().count() <= LIMIT)
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
