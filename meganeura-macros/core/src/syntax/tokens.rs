//! Tokens, operators of several characters, and groups without delimiters.

use super::name::Ident;
use proc_macro2::{Delimiter, Group, Literal, Spacing, Span, TokenStream, TokenTree};

#[derive(Clone)]
pub(super) enum Token {
    Ident(Ident),
    Punct(char, Spacing, Span),
    Literal(Literal),
    Group(Group),
}

impl Token {
    pub(super) fn new(tree: &TokenTree) -> Self {
        match tree {
            TokenTree::Ident(ident) => Self::Ident(Ident::from_token(ident)),
            TokenTree::Punct(punct) => Self::Punct(punct.as_char(), punct.spacing(), punct.span()),
            TokenTree::Literal(literal) => Self::Literal(literal.clone()),
            TokenTree::Group(group) => Self::Group(group.clone()),
        }
    }

    pub(super) fn span(&self) -> Span {
        match self {
            Self::Ident(ident) => ident.span,
            Self::Punct(_, _, span) => *span,
            Self::Literal(literal) => literal.span(),
            Self::Group(group) => group.span(),
        }
    }
}

/// Longest first. What the language lacks is here too, so that a message can name all of it.
pub(super) const OPERATORS: [&str; 24] = [
    "...", "..=", "==", "!=", "<=", ">=", "->", "=>", "..", "::", "+=", "-=", "*=", "/=", "@=", "&=", "|=", "%=", "^=",
    "&&", "||", "**", "<<", ">>",
];

pub(super) const SINGLE: [(char, &str); 26] = [
    ('=', "="),
    ('<', "<"),
    ('>', ">"),
    ('!', "!"),
    ('~', "~"),
    ('+', "+"),
    ('-', "-"),
    ('*', "*"),
    ('/', "/"),
    ('%', "%"),
    ('^', "^"),
    ('&', "&"),
    ('|', "|"),
    ('@', "@"),
    ('.', "."),
    (',', ","),
    (';', ";"),
    (':', ":"),
    ('#', "#"),
    ('$', "$"),
    ('?', "?"),
    ('\'', "'"),
    ('\\', "\\"),
    ('`', "`"),
    ('"', "\""),
    ('_', "_"),
];

/// The trees of a level, groups without delimiters opened where that changes no meaning.
pub(super) fn open(stream: TokenStream) -> Vec<TokenTree> {
    let mut opened = vec![];
    let mut rest: Vec<_> = stream.into_iter().collect();
    rest.reverse();
    while let Some(tree) = rest.pop() {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                if inner.len() <= 1 || is_pub(&inner) || is_path(&inner) {
                    rest.extend(inner.into_iter().rev());
                } else {
                    opened.push(TokenTree::Group(group));
                }
            }
            tree => opened.push(tree),
        }
    }
    opened
}

fn is_pub(trees: &[TokenTree]) -> bool {
    matches!(trees, [TokenTree::Ident(first), ..] if first == "pub")
}

fn is_path(trees: &[TokenTree]) -> bool {
    let mut parts = trees.iter();
    let path = parts.all(|tree| match tree {
        TokenTree::Ident(_) => true,
        TokenTree::Punct(punct) => punct.as_char() == ':',
        _ => false,
    });
    path && trees.iter().any(|tree| matches!(tree, TokenTree::Punct(_)))
}
