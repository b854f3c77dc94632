//! Names that the user wrote.

use proc_macro2::Span;
use std::fmt;

/// A name and where it stands.
#[derive(Clone, Debug)]
pub struct Ident {
    /// Without `r#`.
    pub name: String,
    /// Where it stands.
    pub span: Span,
    /// Whether it was written with `r#`: then it is no keyword of the language.
    pub raw: bool,
}

/// Words that stand for a place in Rust's module tree or for nothing, and so name nothing here.
const NOT_NAMES: [&str; 6] = ["self", "Self", "super", "crate", "_", "$crate"];

/// Words that begin or continue something in the body of a function.
const KEYWORDS: [&str; 6] = ["if", "else", "for", "let", "true", "false"];

const RUST_KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

impl Ident {
    /// A name at a place.
    pub fn new(name: impl Into<String>, span: Span) -> Self {
        Self { name: name.into(), span, raw: false }
    }

    pub(crate) fn from_token(token: &proc_macro2::Ident) -> Self {
        let text = token.to_string();
        match text.strip_prefix("r#") {
            Some(name) => Self { name: name.into(), span: token.span(), raw: true },
            None => Self { name: text, span: token.span(), raw: false },
        }
    }

    /// The name as Rust takes it, with `r#` where Rust needs it, at the user's place.
    pub fn to_token(&self) -> proc_macro2::Ident {
        if RUST_KEYWORDS.contains(&self.name.as_str()) {
            proc_macro2::Ident::new_raw(&self.name, self.span)
        } else {
            proc_macro2::Ident::new(&self.name, self.span)
        }
    }

    /// Whether it is this word of the language.
    pub(super) fn is(&self, word: &str) -> bool {
        !self.raw && self.name == word
    }

    pub(super) fn is_never_a_name(&self) -> bool {
        NOT_NAMES.contains(&self.name.as_str())
    }

    pub(super) fn is_keyword(&self) -> bool {
        !self.raw && KEYWORDS.contains(&self.name.as_str())
    }
}

impl fmt::Display for Ident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
