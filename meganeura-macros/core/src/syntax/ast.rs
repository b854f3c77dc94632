//! What the parser produces: the text of one invocation as a tree, with the spans that errors and generated code need.
//!
//! Poison (`Poison` variants, `Block::poison`, `Dimensions::complete`) stands where a mistake was reported. Whoever meets
//! it stays silent. Nothing here is checked beyond its form: names, arities and values are for `resolve`.

use super::name::Ident;
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
    /// From `layer` or `model` to the end: what travels to importers.
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

/// The dimensions of an item.
#[derive(Clone, Debug)]
pub struct Dimensions {
    /// In order.
    pub list: Vec<Dimension>,
    /// Whether all of them could be read, names at least.
    pub complete: bool,
}

/// One name between `<` and `>` of a definition.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// Its name.
    pub name: Ident,
    /// What follows it.
    pub kind: DimensionKind,
}

/// The three forms of a dimension.
#[derive(Clone, Debug)]
pub enum DimensionKind {
    /// `dim`: passed by whoever uses the layer.
    Required,
    /// `hidden = 128`: a constant with a default.
    Default(Expr),
    /// `batch in 1..=256`: bound at each call (models only).
    Runtime(Bounds),
    /// Could not be read.
    Poison,
}

/// `low..high`, `low..=high`, with `step s` for a dimension.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The least value.
    pub low: Expr,
    /// The greatest value, or one more than it.
    pub high: Expr,
    /// Whether `high` itself is meant: `..=`.
    pub inclusive: bool,
    /// `step 16`.
    pub step: Option<Expr>,
    /// The `..`.
    pub span: Span,
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

/// A member of a layer or model.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its attributes.
    pub attributes: Attributes,
    /// What it is.
    pub kind: MemberKind,
}

/// The kinds of members.
#[derive(Clone, Debug)]
pub enum MemberKind {
    /// `let head = dim / heads;`
    Let(Constant),
    /// `fc1: Linear<..>`, `blocks: [Block<..>; depth]`
    Layer(SubLayer),
    /// `param`, `buffer` or `state`
    Tensor(TensorMember),
    /// `if bias { .. } else { .. }`
    If(MemberIf),
    /// `fn`
    Function(Function),
    /// Could not be read; kept by name, so that its uses stay silent.
    Poison(Option<Ident>),
}

/// `let name = value`
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name.
    pub name: Ident,
    /// An expression over constants.
    pub value: Expr,
}

/// A layer inside a layer or model.
#[derive(Clone, Debug)]
pub struct SubLayer {
    /// The member's name.
    pub name: Ident,
    /// Which layer.
    pub layer: LayerUse,
    /// The length, where it is an array.
    pub count: Option<Expr>,
}

/// `Linear<784, hidden, bias = false>`
#[derive(Clone, Debug)]
pub struct LayerUse {
    /// The layer's name.
    pub name: Ident,
    /// Positional ones first.
    pub arguments: Vec<Argument>,
}

/// An argument of a layer or of a call.
#[derive(Clone, Debug)]
pub struct Argument {
    /// `bias` in `bias = false`; nothing for a positional one.
    pub name: Option<Ident>,
    /// What is passed.
    pub value: Expr,
}

/// A tensor that a layer or model owns.
#[derive(Clone, Debug)]
pub struct TensorMember {
    /// `param`, `buffer` or `state`.
    pub role: TensorRole,
    /// Its name.
    pub name: Ident,
    /// A tensor or a scalar.
    pub ty: Type,
    /// The initialiser; a `state` has none.
    pub initialiser: Option<Expr>,
}

/// What a tensor member is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorRole {
    /// Trained, stored.
    Param,
    /// Stored, not trained.
    Buffer,
    /// Lives from call to call, not stored.
    State,
}

/// Members on a condition.
#[derive(Clone, Debug)]
pub struct MemberIf {
    /// The word `if`.
    pub span: Span,
    /// `if` and each `else if`: condition and members.
    pub branches: Vec<(Expr, Vec<Member>)>,
    /// Members of the `else`.
    pub otherwise: Option<Vec<Member>>,
}

/// `fn` with its body.
#[derive(Clone, Debug)]
pub struct Function {
    /// An entry where it is not private and stands in a model.
    pub visibility: Visibility,
    /// Its name.
    pub name: Ident,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// What follows `->`.
    pub result: Option<Type>,
    /// Its statements; poison where there was none.
    pub body: Block,
}

/// `x: f32[batch, 784]`, `pos: u32 in 0..max_seq`
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Type,
    /// The range of a scalar.
    pub bounds: Option<Bounds>,
}

/// A type.
#[derive(Clone, Debug)]
pub struct Type {
    /// The element's name, or the parentheses.
    pub span: Span,
    /// Which one.
    pub kind: TypeKind,
}

/// The kinds of types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// `u32`
    Scalar(Element),
    /// `f32[.., dim]`
    Tensor(TensorType),
    /// `(f32, u32[batch])`
    Tuple(Vec<Type>),
    /// Could not be read.
    Poison,
}

/// `f32[.., dim]`
#[derive(Clone, Debug)]
pub struct TensorType {
    /// `f32`
    pub element: Element,
    /// The `..` in front, for any leading axes.
    pub leading: Option<Span>,
    /// The sizes that are written out.
    pub axes: Vec<Expr>,
}

/// Types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// `f32`
    F32,
    /// `u32`
    U32,
    /// `i32`
    I32,
    /// `u8`
    U8,
    /// `bool`
    Bool,
}

/// `{ statements; tail }`
#[derive(Clone, Debug)]
pub struct Block {
    /// In order.
    pub statements: Vec<Statement>,
    /// The value, where there is no `;` behind the last expression.
    pub tail: Option<Tail>,
    pub(super) height: u32,
}

/// The value of a block; it has a number like a statement.
#[derive(Clone, Debug)]
pub struct Tail {
    /// Its place in the function.
    pub number: u32,
    /// The value.
    pub value: Expr,
}

/// A statement of a function.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its place in the function, from 1, those inside loops and branches counted after the one that holds them.
    pub number: u32,
    /// Its first token.
    pub span: Span,
    /// What it does.
    pub kind: StatementKind,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `let x = ..;`, `let mut x = ..;`, `let (a, b) = ..;`
    Let(Pattern, Expr),
    /// `x = ..;`, `x += ..;`, `state[a..b] = ..;`
    Assign(Assign),
    /// `for .. in .. { .. }`
    For(Box<For>),
    /// `if .. { .. } else { .. }` without a value
    If(If),
    /// `f(x);`
    Expr(Expr),
    /// Could not be read; the names that it would have bound.
    Poison(Vec<Ident>),
}

/// What a `let` binds.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `x`, `mut x`
    Name(Binding),
    /// `(a, b)`
    Tuple(Vec<Binding>, Span),
}

/// A name that a `let` binds.
#[derive(Clone, Debug)]
pub struct Binding {
    /// The name.
    pub name: Ident,
    /// Whether it may be assigned to.
    pub mutable: bool,
}

/// An assignment.
#[derive(Clone, Debug)]
pub struct Assign {
    /// The local, buffer or state.
    pub name: Ident,
    /// The part of it: `[a..b]`.
    pub index: Option<Vec<Index>>,
    /// The operator of `+=` and its like.
    pub operator: Option<BinaryOp>,
    /// The `=` or `+=`.
    pub span: Span,
    /// The new value.
    pub value: Expr,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct For {
    /// The word `for`.
    pub span: Span,
    /// What it runs over.
    pub over: Over,
    /// What it repeats.
    pub body: Block,
}

/// The four forms of a loop.
#[derive(Clone, Debug)]
pub enum Over {
    /// `for block in blocks`
    Each {
        /// `block`
        item: Ident,
        /// `blocks`
        array: Expr,
    },
    /// `for (i, block) in blocks`
    Numbered {
        /// `i`
        index: Ident,
        /// `block`
        item: Ident,
        /// `blocks`
        array: Expr,
    },
    /// `for (a, b) in (self_layers, cross_layers)`: as many of the one as of the other
    Together {
        /// `a`, `b`
        items: Vec<Ident>,
        /// `self_layers`, `cross_layers`
        arrays: Vec<Expr>,
    },
    /// `for i in 0..n`
    Range {
        /// `i`
        index: Ident,
        /// `0..n`, without a step
        bounds: Bounds,
    },
    /// Could not be read; the names that it would have bound.
    Poison(Vec<Ident>),
}

/// A choice on constants.
#[derive(Clone, Debug)]
pub struct If {
    /// The word `if`.
    pub span: Span,
    /// `if` and each `else if`: condition and block.
    pub branches: Vec<(Expr, Block)>,
    /// The `else`; always there where the choice is a value.
    pub otherwise: Option<Block>,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its main token: the operator, the name of what is called or accessed, the literal, the brackets.
    pub span: Span,
    /// Which one.
    pub kind: ExprKind,
    pub(super) height: u32,
}

/// The kinds of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `128`
    Int(u64),
    /// `1e-5`
    Float(f64),
    /// `true`
    Bool(bool),
    /// `"bij,bjk->bik"`
    Text(String),
    /// A local, dimension, member or function.
    Name(Ident),
    /// `-x`, `!mask`
    Unary(UnaryOp, Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `fc1(x)`, `softmax(x, axis = -1)`, `blocks[0](x)`: what is called is a `Name`, `Index` or `Field`.
    Call(Box<Expr>, Vec<Argument>),
    /// `x.relu()`, `layer.encode(x)`
    Method(Box<Expr>, Ident, Vec<Argument>),
    /// `embed.weight`
    Field(Box<Expr>, Ident),
    /// `x[a..b, 0]`
    Index(Box<Expr>, Vec<Index>),
    /// `[a, b]`
    Array(Vec<Expr>),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `_` as an element of an array: the one size that `reshape` finds out
    Hole,
    /// `if flag { a } else { b }`
    If(Box<If>),
    /// Could not be read.
    Poison,
}

/// What stands between the brackets of `x[..]`, for one axis.
#[derive(Clone, Debug)]
pub enum Index {
    /// `x[0]`, `x[-1]`, `w[ids]`
    At(Expr),
    /// `x[a..b]`, `x[..b]`, `x[a..]`, `x[..]`
    Slice {
        /// From the start without it.
        start: Option<Expr>,
        /// To the end without it.
        end: Option<Expr>,
        /// Whether `end` itself is meant: `..=`.
        inclusive: bool,
        /// The `..`.
        span: Span,
    },
}

/// Operators in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `!`
    Not,
}

/// Operators between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// `|`
    Or,
    /// `&`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `@`
    MatMul,
}
