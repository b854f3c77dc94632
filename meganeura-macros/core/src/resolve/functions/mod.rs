//! Built-in functions: a row states the name, the parameters and what builds the result. The registry of pointwise
//! operations adds its own rows.

mod arrange;
mod attention;
mod einsum;
mod elementwise;
mod join;
mod layers;
mod losses;
mod order;
mod pick;
mod random;
mod reductions;
mod rope;
mod shape;
pub(super) mod taps;

use meganeura_shaders::dim::Dim;
use meganeura_shaders::pointwise::Un;
use meganeura_shaders::prog::DType;
use proc_macro2::Span;

use super::arithmetic::Operand;
use super::describe::Source;
use super::value::Value;
use super::{Resolver, arguments, with_value};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::syntax::{Argument, Expr};

/// What an argument must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A value of the graph with f32 elements, or a number.
    Float,
    /// The same of any element type.
    Any,
    /// A tensor of u32.
    Labels,
    /// Anything: the builder looks at it.
    Value,
    /// One axis of the first argument.
    Axis,
    /// Axes of the first argument, all without it.
    Axes,
    /// `true` or `false`, known now.
    Flag,
    /// A number that is known now.
    Number,
    /// A list of sizes, which may hold one `_`.
    Sizes,
}

/// A parameter of a built-in function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

/// Shorthand for a required parameter.
const fn needs(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: true }
}

/// Shorthand for a parameter with a default.
const fn takes(name: &'static str, kind: Kind) -> Parameter {
    Parameter { name, kind, required: false }
}

/// What makes the result; nothing where a mistake was reported.
type Build = for<'a> fn(&mut Resolver<'a, '_>, &Call<'a>) -> Option<Value<'a>>;

/// A built-in function.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    build: Build,
}

/// An argument after its check.
#[derive(Clone, Debug)]
enum Arg<'a> {
    Value(Value<'a>),
    Axes(Vec<usize>),
    Flag(bool),
    Number(f64),
    Sizes(Vec<Option<Dim>>),
}

/// A call of a built-in function.
pub(super) struct Call<'a> {
    name: &'static str,
    span: Span,
    arguments: Vec<Option<(Arg<'a>, Source<'a>)>>,
}

/// The tables, by family.
const FAMILIES: [&[Row]; 13] = [
    elementwise::ROWS,
    reductions::ROWS,
    order::ROWS,
    shape::ROWS,
    join::ROWS,
    arrange::ROWS,
    pick::ROWS,
    einsum::ROWS,
    losses::ROWS,
    random::ROWS,
    taps::ROWS,
    attention::ROWS,
    rope::ROWS,
];

/// Functions that the language has and this version does not.
pub(super) const UNAVAILABLE: &[&str] = &[
    "max_pool2d",
    "avg_pool2d",
    "adaptive_avg_pool2d",
    "global_avg_pool",
    "upsample_nearest",
    "upsample_bilinear",
    "multinomial",
];

const UNARY: &[Parameter] = &[needs("x", Kind::Float)];

/// The row of that name; some are for the bodies of built-in layers alone.
pub(super) fn find(name: &str, builtin: bool) -> Option<Row> {
    let own: &[&[Row]] = if builtin { &[layers::ROWS] } else { &[] };
    let rows = FAMILIES.iter().chain(own).flat_map(|rows| rows.iter());
    rows.copied().find(|row| row.name == name).or_else(|| {
        let un = pointwise(name)?;
        Some(Row { name: un.name(), parameters: UNARY, build: elementwise::registered })
    })
}

/// The registered operation of one operand that is written as a function.
fn pointwise(name: &str) -> Option<Un> {
    Un::ALL.iter().copied().find(|un| un.name() == name && name.starts_with(|first: char| first.is_alphabetic()))
}

/// The names of all functions that a user may call.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let rows = FAMILIES.iter().flat_map(|rows| rows.iter()).map(|row| row.name);
    let registered = Un::ALL.iter().map(|un| un.name()).filter(|name| pointwise(name).is_some());
    rows.chain(registered).chain(UNAVAILABLE.iter().copied())
}

/// Arguments to the parameters of a row.
pub(super) fn bind<'a>(
    row: &Row,
    span: Span,
    receiver: bool,
    arguments: &'a [Argument],
) -> Result<Vec<Option<&'a Expr>>, Vec<crate::errors::Error>> {
    let parameters = &row.parameters[usize::from(receiver).min(row.parameters.len())..];
    let names: Vec<&str> = parameters.iter().map(|parameter| parameter.name).collect();
    arguments::bind_where(row.name, span, &names, |k| parameters[k].required, arguments)
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn call_row(
        &mut self,
        row: Row,
        span: Span,
        receiver: Option<(Value<'a>, &'a Expr)>,
        arguments: &'a [Argument],
    ) -> Value<'a> {
        let slots = match bind(&row, span, receiver.is_some(), arguments) {
            Ok(slots) => slots,
            Err(errors) => {
                errors.into_iter().for_each(|error| self.report(error.span, error.message));
                for argument in arguments {
                    self.expression(&argument.value);
                }
                return Value::Poison;
            }
        };
        let mut values: Vec<Option<Operand<'a>>> = vec![];
        values.extend(receiver.map(|(value, expr)| Some((value, Source::Expr(expr)))));
        for slot in slots {
            let value = slot.map(|expr| (self.expression(expr), Source::Expr(expr)));
            values.push(value);
        }
        let values: Vec<_> = values.into_iter().map(|value| value.map(|value| self.settled_operand(value))).collect();
        let rank = match values.first() {
            Some(Some((Value::Tensor(id), _))) => Some(self.graph.shape(*id).len()),
            Some(Some((Value::Poison, _))) => None,
            Some(Some((Value::List(list), _))) => list.iter().find_map(|value| match value {
                Value::Tensor(id) => Some(self.graph.shape(*id).len()),
                _ => None,
            }),
            _ => Some(0),
        };
        let (mut checked, mut whole) = (vec![], true);
        for (parameter, value) in row.parameters.iter().zip(values) {
            let argument = match value {
                None => None,
                Some((value, source)) => {
                    let argument = self.check_argument(row.name, *parameter, value, source, rank);
                    whole &= argument.is_some();
                    argument.map(|argument| (argument, source))
                }
            };
            checked.push(argument);
        }
        if !whole {
            return Value::Poison;
        }
        self.at(span);
        (row.build)(self, &Call { name: row.name, span, arguments: checked }).unwrap_or(Value::Poison)
    }

    fn check_argument(
        &mut self,
        function: &str,
        parameter: Parameter,
        value: Value<'a>,
        source: Source<'a>,
        rank: Option<usize>,
    ) -> Option<Arg<'a>> {
        if value.is_poison() {
            return None;
        }
        let span = source.span();
        let wrong = match (parameter.kind, &value) {
            (Kind::Value, _) => return Some(Arg::Value(value)),
            (Kind::Labels, Value::Tensor(id)) if self.graph.ty(*id).dtype == DType::U32 => {
                return Some(Arg::Value(value));
            }
            (Kind::Labels, _) => "u32",
            (Kind::Float, Value::Tensor(id)) => match self.graph.ty(*id).dtype {
                DType::F32 => return Some(Arg::Value(value)),
                _ => "f32",
            },
            (Kind::Float, Value::Size(dim)) if dim.constant().is_none() => {
                let size = self.show_size(dim);
                self.report(span, diag::size_in_place_of_value(&size, "f32"));
                return None;
            }
            (Kind::Float, Value::Float(_) | Value::Size(_)) => return Some(Arg::Value(value)),
            (Kind::Float, _) => "f32",
            (Kind::Any, Value::Tensor(_) | Value::Float(_) | Value::Size(_) | Value::Bool(_)) => {
                return Some(Arg::Value(value));
            }
            (Kind::Any, _) => "a tensor",
            (Kind::Flag, Value::Bool(flag)) => return Some(Arg::Flag(*flag)),
            (Kind::Flag, _) => "`true` or `false`",
            (Kind::Number, value) => match value.number() {
                Some(number) if number.abs() <= f64::from(f32::MAX) => return Some(Arg::Number(number)),
                Some(_) => {
                    self.report(span, diag::too_large());
                    return None;
                }
                None => "a number that is known now",
            },
            (Kind::Axis | Kind::Axes, value) => {
                let one = |value: &Value<'a>| value.integer();
                let axes: Option<Vec<i64>> = match value {
                    Value::List(list) if parameter.kind == Kind::Axes => list.iter().map(one).collect(),
                    value => one(value).map(|axis| vec![axis]),
                };
                match axes {
                    Some(axes) => return self.check_axes(function, axes, span, rank?),
                    None if parameter.kind == Kind::Axes => "an axis or a list of them",
                    None => "an axis",
                }
            }
            (Kind::Sizes, Value::List(list)) => {
                let size = |value: &Value<'a>| match value {
                    Value::Size(dim) => Some(Some(dim.clone())),
                    Value::Hole => Some(None),
                    _ => None,
                };
                match list.iter().map(size).collect::<Option<Vec<_>>>() {
                    Some(sizes) => return Some(Arg::Sizes(sizes)),
                    None => "a list of sizes",
                }
            }
            (Kind::Sizes, _) => "a list of sizes",
        };
        let found = self.show(&value);
        let message = diag::argument_type(function, parameter.name, wrong, &found);
        let message = match value {
            Value::Tensor(_) => with_value(message, &source.text(parameter.name), &found),
            _ => message,
        };
        self.report(span, message);
        None
    }

    fn check_axes(&mut self, function: &str, axes: Vec<i64>, span: Span, rank: usize) -> Option<Arg<'a>> {
        let mut positions = vec![];
        for axis in axes {
            let from_start = if axis < 0 { axis + rank as i64 } else { axis };
            if !(0..rank as i64).contains(&from_start) {
                self.report(span, diag::axis_outside(function, axis, rank));
                return None;
            }
            positions.push(from_start as usize);
        }
        let mut sorted = positions.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < positions.len() {
            self.report(span, diag::repeated_axis(function));
            return None;
        }
        Some(Arg::Axes(positions))
    }

    /// An f32 value of the graph, of a number too.
    fn float(&mut self, call: &Call<'a>, at: usize) -> Option<ValueId> {
        let (value, source) = call.operand(at)?;
        self.constant_as(DType::F32, &value, call.name, source.span())
    }
}

impl<'a> Call<'a> {
    fn get(&self, at: usize) -> Option<&(Arg<'a>, Source<'a>)> {
        self.arguments.get(at)?.as_ref()
    }

    /// An argument as it was given, with its text.
    fn operand(&self, at: usize) -> Option<Operand<'a>> {
        match self.get(at)? {
            (Arg::Value(value), source) => Some((value.clone(), *source)),
            _ => None,
        }
    }

    fn value(&self, at: usize) -> Option<&Value<'a>> {
        match self.get(at)? {
            (Arg::Value(value), _) => Some(value),
            _ => None,
        }
    }

    /// The place of an argument, or of the call.
    fn place(&self, at: usize) -> Span {
        self.get(at).map_or(self.span, |(_, source)| source.span())
    }

    fn axes(&self, at: usize) -> Option<Vec<usize>> {
        match self.get(at)? {
            (Arg::Axes(axes), _) => Some(axes.clone()),
            _ => None,
        }
    }

    fn flag(&self, at: usize, default: bool) -> bool {
        match self.get(at) {
            Some((Arg::Flag(flag), _)) => *flag,
            _ => default,
        }
    }

    fn number(&self, at: usize, default: f64) -> f64 {
        match self.get(at) {
            Some((Arg::Number(number), _)) => *number,
            _ => default,
        }
    }

    fn sizes(&self, at: usize) -> Option<&[Option<Dim>]> {
        match self.get(at)? {
            (Arg::Sizes(sizes), _) => Some(sizes),
            _ => None,
        }
    }
}
