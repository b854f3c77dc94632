//! The end of a chain: what it has gathered, taken apart.

use proc_macro2::{Ident, TokenStream, TokenTree};

use super::unit::{Imported, PROTOCOL, payload};
use crate::diag;
use crate::errors::Errors;
use crate::syntax::{self, Import, Source};

/// An item with all that it needs.
pub struct Arrived {
    /// The path of the facade.
    pub facade: TokenStream,
    /// The item, then the others of its invocation that it reaches; the imports that they name.
    pub source: Source,
    /// What the imports brought.
    pub imported: Imported,
}

/// Reads `{ state } { payload }*`. Mistakes in the items were reported by their invocation.
pub fn arrive(tokens: TokenStream, errors: &mut Errors) -> Arrived {
    let mut groups = groups(tokens);
    let mut state = self::groups(groups.next().unwrap_or_default());
    let mut next = || state.next().unwrap_or_default();
    let (facade, aliases, open) = (next(), next(), next());
    let mut source = Source { imports: vec![], items: vec![], complete: open.is_empty() };
    for text in state {
        source.items.extend(syntax::parse(text, &mut Errors::new()).items);
    }
    let mut imported = Imported::default();
    let aliases = aliases.into_iter().filter_map(|token| match token {
        TokenTree::Ident(alias) => Some(alias),
        _ => None,
    });
    for (alias, tokens) in aliases.zip(groups) {
        let import = import(&alias);
        match payload(tokens, &mut imported.library) {
            Ok(root) => _ = imported.ids.insert(import.alias.name.clone(), root),
            Err(found) => errors.push(alias.span(), diag::protocol(&import.alias.name, &found, PROTOCOL)),
        }
        source.imports.push(import);
    }
    Arrived { facade, source, imported }
}

fn import(alias: &Ident) -> Import {
    let name = syntax::Ident::from_token(alias);
    Import { attributes: TokenStream::new(), path: TokenStream::new(), name: name.clone(), alias: name }
}

fn groups(tokens: TokenStream) -> impl Iterator<Item = TokenStream> {
    tokens.into_iter().filter_map(|token| match token {
        TokenTree::Group(group) => Some(group.stream()),
        _ => None,
    })
}
