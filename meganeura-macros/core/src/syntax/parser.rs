//! The tokens of one level and a place among them.
//!
//! A group is a level of its own: `inside` gives a parser for it, which shares the sink. Groups without delimiters, which
//! macros of the user leave around what they pass on, are opened where they hold a single token, a path or a `pub`;
//! others stay, and are parentheses to the expression parser.
//! What cannot go on returns a `Failure`; whoever can recover pushes it into the sink, once.

use super::name::Ident;
use super::tokens::{OPERATORS, SINGLE, Token, open};
use crate::diag;
use crate::errors::{Error, Errors};
use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

pub(super) type Parsed<T> = Result<T, Error>;

/// Groups inside groups; keeps the stack of parser and compiler small.
pub(super) const MAX_NESTING: u32 = 64;

/// Where `<` and `>` enclose what is being parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Angles {
    /// Nowhere: they compare.
    No,
    /// On this level: `>` ends it.
    Here,
    /// Around a group that this level is inside of.
    Around,
}

pub(super) struct Parser<'a> {
    pub(super) tokens: Vec<Token>,
    /// The same tokens as they came.
    pub(super) trees: Vec<TokenTree>,
    pub(super) at: usize,
    /// The closing delimiter.
    end: Span,
    closer: &'static str,
    depth: u32,
    pub(super) angles: Angles,
    pub(super) errors: &'a mut Errors,
    /// Statements of the current function so far.
    pub(super) statements: &'a mut u32,
}

impl<'a> Parser<'a> {
    pub(super) fn new(stream: TokenStream, errors: &'a mut Errors, statements: &'a mut u32) -> Self {
        let trees = open(stream);
        let end = trees.last().map_or_else(Span::call_site, TokenTree::span);
        let tokens = trees.iter().map(Token::new).collect();
        Self { tokens, trees, at: 0, end, closer: "", depth: 0, angles: Angles::No, errors, statements }
    }

    /// The level inside a group; an error where groups are nested too deep.
    pub(super) fn inside(&mut self, group: &Group) -> Parsed<Parser<'_>> {
        if self.depth >= MAX_NESTING {
            return Err(Error::new(group.span_open(), diag::nested_too_deep(MAX_NESTING)));
        }
        let trees = open(group.stream());
        let closer = match group.delimiter() {
            Delimiter::Parenthesis => ")",
            Delimiter::Bracket => "]",
            Delimiter::Brace => "}",
            Delimiter::None => "",
        };
        Ok(Parser {
            tokens: trees.iter().map(Token::new).collect(),
            trees,
            at: 0,
            end: group.span_close(),
            closer,
            depth: self.depth + 1,
            angles: if self.angles == Angles::No { Angles::No } else { Angles::Around },
            errors: &mut *self.errors,
            statements: &mut *self.statements,
        })
    }

    pub(super) fn push(&mut self, error: Error) {
        self.errors.add(error);
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    /// Of the next token, or of the closing delimiter.
    pub(super) fn span(&self) -> Span {
        self.peek(0).map_or(self.end, Token::span)
    }

    pub(super) fn bump(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at = (self.at + 1).min(self.tokens.len());
        token
    }

    pub(super) fn peek_ident(&self, ahead: usize) -> Option<&Ident> {
        match self.peek(ahead) {
            Some(Token::Ident(ident)) => Some(ident),
            _ => None,
        }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.word_at(0, word)
    }

    pub(super) fn word_at(&self, ahead: usize, word: &str) -> bool {
        self.peek_ident(ahead).is_some_and(|ident| ident.is(word))
    }

    /// Steps over a word of the language, if it is next.
    pub(super) fn take_word(&mut self, word: &str) -> Option<Span> {
        let span = self.is_word(word).then(|| self.span());
        self.at += usize::from(span.is_some());
        span
    }

    pub(super) fn group_at(&self, ahead: usize, delimiter: Delimiter) -> Option<&Group> {
        match self.peek(ahead) {
            Some(Token::Group(group)) if group.delimiter() == delimiter => Some(group),
            _ => None,
        }
    }

    pub(super) fn take_group(&mut self, delimiter: Delimiter) -> Option<Group> {
        let group = self.group_at(0, delimiter).cloned();
        self.at += usize::from(group.is_some());
        group
    }

    /// The longest operator that begins here.
    pub(super) fn operator(&self) -> Option<&'static str> {
        self.operator_at(0)
    }

    pub(super) fn operator_at(&self, ahead: usize) -> Option<&'static str> {
        let Some(Token::Punct(first, ..)) = self.peek(ahead) else { return None };
        let known = OPERATORS.into_iter().find(|operator| {
            let last = operator.len() - 1;
            operator.chars().enumerate().all(|(i, expected)| match self.peek(ahead + i) {
                Some(Token::Punct(char, spacing, _)) => *char == expected && (i == last || *spacing == Spacing::Joint),
                _ => false,
            })
        });
        known.or_else(|| SINGLE.into_iter().find(|(char, _)| char == first).map(|(_, text)| text))
    }

    pub(super) fn is(&self, operator: &str) -> bool {
        self.operator() == Some(operator)
    }

    /// Whether this very character is next, whatever follows it: `>` of `>=`, where it closes.
    pub(super) fn is_char(&self, char: char) -> bool {
        matches!(self.peek(0), Some(Token::Punct(next, ..)) if *next == char)
    }

    pub(super) fn take(&mut self, operator: &str) -> Option<Span> {
        let span = self.is(operator).then(|| self.span());
        self.at += if span.is_some() { operator.len() } else { 0 };
        span
    }

    pub(super) fn expect(&mut self, operator: &str, context: &str) -> Parsed<Span> {
        self.take(operator).ok_or_else(|| self.unexpected(&format!("`{operator}`{context}")))
    }

    /// A name that is being given, or that of something that exists.
    pub(super) fn name(&mut self, what: &str) -> Parsed<Ident> {
        match self.peek_ident(0) {
            Some(ident) if ident.is_never_a_name() => Err(Error::new(ident.span, diag::not_a_name(&ident.name))),
            Some(ident) if ident.is_keyword() => Err(Error::new(ident.span, diag::keyword(what, &ident.name))),
            Some(ident) => {
                let ident = ident.clone();
                self.at += 1;
                Ok(ident)
            }
            None => Err(self.unexpected(what)),
        }
    }

    pub(super) fn unexpected(&self, expected: &str) -> Error {
        Error::new(self.span(), diag::expected(expected, &self.found()))
    }

    /// The next token as messages show it.
    pub(super) fn found(&self) -> String {
        let Some(token) = self.peek(0) else {
            return if self.closer.is_empty() { "the end".into() } else { format!("`{}`", self.closer) };
        };
        let text = match token {
            Token::Ident(ident) => ident.name.clone(),
            Token::Punct(char, ..) => self.operator().map_or_else(|| char.to_string(), str::to_owned),
            Token::Literal(literal) => literal.to_string(),
            Token::Group(group) => match group.delimiter() {
                Delimiter::Parenthesis => "(".into(),
                Delimiter::Bracket => "[".into(),
                Delimiter::Brace => "{".into(),
                Delimiter::None => return "an expression".into(),
            },
        };
        format!("`{text}`")
    }

    /// Between elements of a list: `,`, or the end of this level.
    pub(super) fn comma_or_end(&mut self) -> Parsed<()> {
        if self.is_end() || self.take(",").is_some() {
            return Ok(());
        }
        let closer = self.closer;
        Err(self.after_expression(&format!("`,` or `{closer}`")))
    }

    pub(super) fn expect_end(&mut self) -> Parsed<()> {
        let closer = self.closer;
        if self.is_end() { Ok(()) } else { Err(self.after_expression(&format!("`{closer}`"))) }
    }
}
