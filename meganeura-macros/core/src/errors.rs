//! The one sink for mistakes of the user.
//!
//! In: a span and a message, in whatever order the stages find them. Out: `compile_error!` tokens that rustc shows at
//! the span, or text for tests. Errors come out in source order (stable where places are equal), equal ones once.
//! A stage pushes and carries on with poison; `gate` between stages stops when something was pushed.

use std::rc::Rc;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use crate::diag;

/// A place in the text of the invocation, and what it stands for where the mistake is in a layer from elsewhere.
#[derive(Clone, Debug)]
pub struct At {
    /// The place.
    pub span: Span,
    /// The mistake's own place.
    pub inside: Option<Inside>,
}

/// A place in a layer that was brought in; rustc would show a span of another crate at the whole invocation.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The layer.
    pub layer: Rc<str>,
    /// The place in it.
    pub span: Span,
}

impl From<Span> for At {
    fn from(span: Span) -> At {
        At { span, inside: None }
    }
}

/// One mistake: where it is and what it says.
#[derive(Clone, Debug)]
pub struct Error {
    /// The token that is wrong.
    pub span: Span,
    /// Lower case, no full stop; hints go on a second line.
    pub message: String,
}

/// All mistakes found so far.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    list: Vec<Error>,
}

impl Error {
    /// A mistake at a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// Whether it says the same at the same place.
    pub(crate) fn is_same(&self, other: &Error) -> bool {
        self.place() == other.place() && self.message == other.message
    }

    fn place(&self) -> ((usize, usize), (usize, usize)) {
        let (start, end) = (self.span.start(), self.span.end());
        ((start.line, start.column), (end.line, end.column))
    }
}

impl Errors {
    /// An empty sink.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mistake.
    pub fn push(&mut self, at: impl Into<At>, message: impl Into<String>) {
        let (At { span, inside }, mut message) = (at.into(), message.into());
        if let Some(Inside { layer, span }) = inside {
            message += &diag::inside_layer(&layer, &diag::place(span));
        }
        self.list.push(Error::new(span, message));
    }

    /// Adds a mistake made elsewhere.
    pub fn add(&mut self, error: Error) {
        self.list.push(error);
    }

    /// Takes all mistakes of another sink.
    pub fn extend(&mut self, other: Self) {
        self.list.extend(other.list);
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many mistakes were reported so far, repetitions included: a stage compares two counts to see whether a part failed.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Ends a phase: everything reported so far as the error, or nothing.
    pub fn gate(&mut self) -> Result<(), Self> {
        if self.list.is_empty() { Ok(()) } else { Err(std::mem::take(self)) }
    }

    /// The mistakes in source order, equal ones once.
    pub fn sorted(&self) -> Vec<Error> {
        let mut sorted: Vec<_> = self.list.clone();
        sorted.sort_by_key(Error::place);
        let mut kept: Vec<Error> = vec![];
        for error in sorted {
            let same_place = kept.iter().rev().take_while(|other| other.place() == error.place());
            if !same_place.into_iter().any(|other| other.message == error.message) {
                kept.push(error);
            }
        }
        kept
    }

    /// One `compile_error!` for each mistake, at its place.
    pub fn to_compile_errors(&self) -> TokenStream {
        let errors = self
            .sorted()
            .into_iter()
            .map(|Error { span, message }| quote_spanned!(span=> ::core::compile_error! { #message }));
        errors.collect()
    }

    /// `line:column: message` for each mistake, a line each; columns count from 1.
    pub fn render(&self) -> String {
        let lines = self.sorted().into_iter().map(|error| {
            let start = error.span.start();
            format!("{}:{}: {}\n", start.line, start.column + 1, error.message)
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proc_macro2::TokenTree;

    fn spans(text: &str) -> Vec<Span> {
        text.parse::<TokenStream>().unwrap().into_iter().map(|token| token.span()).collect()
    }

    #[test]
    fn errors_come_out_in_source_order_and_equal_ones_once() {
        let at = spans("a\nb c");
        let mut errors = Errors::new();
        errors.push(at[2], "third");
        errors.push(at[1], "second");
        errors.push(at[0], "first");
        errors.push(at[1], "another second");
        errors.push(at[1], "second");
        assert_eq!(errors.render(), "1:1: first\n2:1: second\n2:1: another second\n2:3: third\n");
        assert_eq!(errors.count(), 5);
    }

    #[test]
    fn gate_hands_over_what_was_pushed() {
        let mut errors = Errors::new();
        assert!(errors.gate().is_ok());
        errors.push(Span::call_site(), "wrong");
        assert_eq!(errors.gate().unwrap_err().count(), 1);
        assert!(errors.gate().is_ok());
    }

    #[test]
    fn compile_errors_carry_the_message_and_the_span_on_every_token() {
        let at = spans("one two");
        let mut errors = Errors::new();
        errors.push(at[1], "`two` is \"wrong\"");
        let tokens: Vec<TokenTree> = errors.to_compile_errors().into_iter().collect();
        let text: String = tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(text, ": : core : : compile_error ! { \"`two` is \\\"wrong\\\"\" }");
        assert!(tokens.iter().all(|token| token.span().start() == at[1].start()));
    }
}
