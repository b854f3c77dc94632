//! What an expression stands for while it is resolved: a number that is known now, a value of the graph, or a layer.

use std::rc::Rc;

use meganeura_shaders::dim::Dim;
use meganeura_shaders::schedule::Init;

use super::Resolver;
use super::instance::Instance;
use crate::ir::{Type, ValueId};

/// A value of the language.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// Its mistake was reported.
    Poison,
    /// An integer: a constant, or a polynomial over runtime dimensions.
    Size(Dim),
    /// A constant.
    Float(f64),
    /// A constant.
    Bool(bool),
    /// A string literal.
    Text(&'a str),
    /// `_` in the list of `reshape`.
    Hole,
    /// `[a, b]`
    List(Vec<Value<'a>>),
    /// `(a, b)`
    Tuple(Vec<Value<'a>>),
    /// A value of the graph.
    Tensor(ValueId),
    /// An integer that changes with a loop, or a polynomial over runtime dimensions beside that.
    Index(Affine),
    /// One layer.
    Layer(Layer<'a>),
    /// An array of layers, and its length.
    Layers(Layer<'a>, i64),
    /// An initialiser.
    Init(Init),
    /// What a function without a result gives.
    Nothing,
}

/// A layer as a function sees it.
#[derive(Clone, Debug)]
pub(super) struct Layer<'a> {
    /// Its members.
    pub(super) instance: Rc<Instance<'a>>,
    /// What picks its element of the arrays around it, outermost first.
    pub(super) rows: Vec<Row>,
}

/// How an element of an array of layers is picked, or several of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Row {
    /// By a loop, one after the other.
    Each(LoopId),
    /// The one at this place.
    At(i64),
    /// An array again: that many from this place on.
    Part(i64, i64),
}

/// `factor · index + offset`, where a loop counts the index from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Affine {
    pub(super) id: LoopId,
    /// Not 0.
    pub(super) factor: i64,
    pub(super) offset: Dim,
}

/// A loop, once in each resolver.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LoopId(pub(super) u32);

impl<'a> Value<'a> {
    pub(super) fn int(value: i64) -> Value<'a> {
        Value::Size(Dim::from(value))
    }

    pub(super) fn is_poison(&self) -> bool {
        match self {
            Value::Poison => true,
            Value::List(parts) | Value::Tuple(parts) => parts.iter().any(Value::is_poison),
            _ => false,
        }
    }

    /// The value of a number that is known now.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Value::Float(value) => Some(*value),
            Value::Size(dim) => dim.constant().map(|value| value as f64),
            _ => None,
        }
    }

    /// The value of an integer that is known now.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Value::Size(dim) => dim.constant(),
            _ => None,
        }
    }
}

impl<'a> Resolver<'a, '_> {
    /// A type as the language writes it.
    pub(super) fn show_type(&self, ty: &Type) -> String {
        if ty.shape.is_empty() {
            return ty.dtype.to_string();
        }
        format!("{}{}", ty.dtype, self.graph.symbols.show_shape(&ty.shape))
    }

    /// A size for a message: a number as it is, a polynomial in backticks.
    pub(super) fn show_size(&self, dim: &Dim) -> String {
        match dim.constant() {
            Some(value) => value.to_string(),
            None => format!("`{}`", self.graph.symbols.show(dim)),
        }
    }

    /// What a value is, for a message.
    pub(super) fn show(&self, value: &Value<'a>) -> String {
        match value {
            Value::Poison => "a value with a mistake".into(),
            Value::Size(dim) => self.show_size(dim),
            Value::Float(value) => format!("{value:?}"),
            Value::Bool(value) => value.to_string(),
            Value::Text(_) => "a string".into(),
            Value::Hole => "`_`".into(),
            Value::List(parts) => format!("[{}]", self.show_all(parts)),
            Value::Tuple(parts) => format!("({})", self.show_all(parts)),
            Value::Tensor(id) => self.show_type(self.graph.ty(*id)),
            Value::Index(_) => "a number that changes with its loop".into(),
            Value::Layer(layer) => format!("the layer `{}`", layer.instance.name),
            Value::Layers(layer, _) => format!("the array of layers `{}`", layer.instance.name),
            Value::Init(_) => "an initialiser".into(),
            Value::Nothing => "nothing".into(),
        }
    }

    fn show_all(&self, parts: &[Value<'a>]) -> String {
        parts.iter().map(|part| self.show(part)).collect::<Vec<_>>().join(", ")
    }
}
