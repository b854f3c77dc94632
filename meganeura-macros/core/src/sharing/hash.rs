//! A hash over tokens that is the same for the same tokens on every way they may come, which their printed text is not.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};

/// FNV-1a.
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn text(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn tokens(&mut self, tokens: &TokenStream) {
        for token in tokens.clone() {
            match token {
                TokenTree::Group(group) => {
                    self.text(match group.delimiter() {
                        Delimiter::Brace => "{",
                        Delimiter::Bracket => "[",
                        Delimiter::Parenthesis => "(",
                        Delimiter::None => "",
                    });
                    self.tokens(&group.stream());
                    self.text("end");
                }
                token => self.text(&token.to_string()),
            }
        }
    }

    pub(super) fn ident(&self, prefix: &str, span: Span) -> Ident {
        Ident::new(&format!("{prefix}{:016x}", self.0), span)
    }
}
