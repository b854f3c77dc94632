//! Invocations, items, visibility and attributes.

use super::{Dimensions, LayerUse, Member};
use crate::syntax::Ident;
use proc_macro2::{Span, TokenStream};

/// One invocation of `model!`.
#[derive(Clone, Debug)]
pub struct Source {
    /// The single names that all `use` bring in, in order.
    pub imports: Vec<Import>,
    /// Layers and models, in order, those with mistakes included.
    pub items: Vec<Item>,
    /// Whether every `use` and every item's head could be read; if not, an unknown name may be one of those.
    pub complete: bool,
}

/// One name of a `use`.
#[derive(Clone, Debug)]
pub struct Import {
    /// Lint and doc attributes of the `use`, as written.
    pub attributes: TokenStream,
    /// The path with its last name, as written.
    pub path: TokenStream,
    /// The last name of the path.
    pub name: Ident,
    /// The name that it has here, `name` without an `as`.
    pub alias: Ident,
}

/// A layer or a model.
#[derive(Clone, Debug)]
pub struct Item {
    /// Docs, and `#[ignore]` of a model.
    pub attributes: Attributes,
    /// Who may use it.
    pub visibility: Visibility,
    /// Which keyword stood before the name.
    pub kind: ItemKind,
    /// Its name.
    pub name: Ident,
    /// Attributes and visibility, as written.
    pub head: TokenStream,
    /// Of the attributes those that travel: `#[ignore]`.
    pub travelling: TokenStream,
    /// From `layer` or `model` to the end, what travels behind them.
    pub text: TokenStream,
    /// What it consists of.
    pub body: ItemBody,
    /// Whether a mistake was reported anywhere in it.
    pub broken: bool,
}

/// Layer or model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// `layer`
    Layer,
    /// `model`
    Model,
}

/// What stands behind an item's name.
#[derive(Clone, Debug)]
pub enum ItemBody {
    /// `<dimensions> { members }`
    Definition(Definition),
    /// `= Other<arguments>;`
    Instance(LayerUse),
    /// Only the name could be read.
    Poison,
}

/// The definition of a layer or model.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Between `<` and `>`.
    pub dimensions: Dimensions,
    /// Between the braces.
    pub members: Vec<Member>,
}

/// Who may use an item or function.
#[derive(Clone, Debug, Default)]
pub struct Visibility {
    /// `pub`, `pub(crate)`, .. as written; empty for private.
    pub tokens: TokenStream,
    /// Whether `pub` stands alone.
    pub public: bool,
}

impl Visibility {
    /// Whether there is no `pub` of any kind.
    pub fn is_private(&self) -> bool {
        self.tokens.is_empty()
    }
}

/// A string literal.
#[derive(Clone, Debug)]
pub struct Text {
    /// What it says, escapes resolved.
    pub value: String,
    /// The literal.
    pub span: Span,
}

/// Attributes of an item or member; those that make no sense at their place have been reported and dropped.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// Doc attributes as written.
    pub docs: TokenStream,
    /// `#[train]` on a function.
    pub train: Option<Train>,
    /// `#[name = "a.b"]`: the segment of tensor names.
    pub name: Option<Text>,
    /// `#[frozen]`: where it was written.
    pub frozen: Option<Span>,
    /// `#[store(q8_0)]`: the storage type.
    pub store: Option<Ident>,
    /// `#[precision(f16)]`
    pub precision: Option<Ident>,
    /// `#[checkpoint]`: where it was written.
    pub checkpoint: Option<Span>,
    /// `#[ignore("pooler.*")]` of a model, all patterns.
    pub ignore: Vec<Text>,
}

/// `#[train]` or `#[train(params = "disc.*")]`.
#[derive(Clone, Debug)]
pub struct Train {
    /// The word `train`.
    pub span: Span,
    /// Which parameters are trained; all without it.
    pub params: Option<Text>,
}
