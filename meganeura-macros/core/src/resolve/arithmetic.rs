//! Operators: on numbers that are known now, on sizes, and on values of the graph, where NumPy's rule broadcasts.

use meganeura_shaders::dim::{Dim, broadcast};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr};
use proc_macro2::Span;

use super::Resolver;
use super::describe::Source;
use super::value::Value;
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::Op;
use crate::syntax::{BinaryOp, UnaryOp};

/// Integers beyond this are no sizes; it keeps sums and products of a few of them inside i64.
const LARGEST: i64 = 1 << 53;

/// An operand with the text that messages show.
pub(super) type Operand<'a> = (Value<'a>, Source<'a>);

impl<'a> Resolver<'a, '_> {
    pub(super) fn unary(&mut self, operator: UnaryOp, span: Span, operand: Value<'a>) -> Value<'a> {
        let operand = self.settled(operand, span);
        match (operator, operand) {
            (_, Value::Poison) => Value::Poison,
            (UnaryOp::Negate, Value::Size(dim)) => Value::Size(&Dim::from(0) - &dim),
            (UnaryOp::Negate, Value::Float(value)) => Value::Float(-value),
            (UnaryOp::Not, Value::Bool(value)) => Value::Bool(!value),
            (operator, Value::Tensor(id)) => {
                let dtype = self.graph.ty(id).dtype;
                let (un, text, expected) = match operator {
                    UnaryOp::Negate => (Un::Neg, "-", "f32 or i32"),
                    UnaryOp::Not => (Un::Not, "!", "bool"),
                };
                let fits = match operator {
                    UnaryOp::Negate => matches!(dtype, DType::F32 | DType::I32),
                    UnaryOp::Not => dtype == DType::Bool,
                };
                if !fits {
                    return self.fail(span, diag::operand_type(text, expected, &dtype.to_string()));
                }
                self.at(span);
                Value::Tensor(self.graph.un(un, id))
            }
            (operator, other) => {
                let (text, expected) = match operator {
                    UnaryOp::Negate => ("-", "a number"),
                    UnaryOp::Not => ("!", "bool"),
                };
                let found = self.show(&other);
                self.fail(span, diag::operand_type(text, expected, &found))
            }
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, span: Span, left: Operand<'a>, right: Operand<'a>) -> Value<'a> {
        if left.0.is_poison() || right.0.is_poison() {
            return Value::Poison;
        }
        let is_moving = |operand: &Operand<'a>| matches!(operand.0, Value::Index(_));
        if is_moving(&left) || is_moving(&right) {
            return match self.affine(op, &left.0, &right.0) {
                Some(value) => value,
                None => {
                    let (left, right) = (self.settled_operand(left), self.settled_operand(right));
                    self.binary(op, span, left, right)
                }
            };
        }
        if op == BinaryOp::MatMul {
            return self.matmul(span, left, right);
        }
        match (&left.0, &right.0) {
            (Value::Tensor(_), _) | (_, Value::Tensor(_)) => self.binary_tensor(op, span, left, right),
            (Value::Size(a), Value::Size(b)) => {
                let (a, b) = (a.clone(), b.clone());
                self.binary_size(op, span, &a, &b)
            }
            (Value::Bool(a), Value::Bool(b)) => match op {
                BinaryOp::And => Value::Bool(*a && *b),
                BinaryOp::Or => Value::Bool(*a || *b),
                BinaryOp::Equal => Value::Bool(a == b),
                BinaryOp::NotEqual => Value::Bool(a != b),
                _ => self.fail(span, diag::operand_type(op.text(), "numbers", "bool")),
            },
            _ => match (left.0.number(), right.0.number()) {
                (Some(a), Some(b)) => self.binary_float(op, span, a, b),
                _ => {
                    let runtime = |value: &Value<'a>| matches!(value, Value::Size(dim) if dim.constant().is_none());
                    if let Some((value, _)) = [&left, &right].into_iter().find(|(value, _)| runtime(value))
                        && [&left, &right].into_iter().any(|(value, _)| matches!(value, Value::Float(_)))
                    {
                        let size = self.show(value);
                        return self.fail(span, diag::size_in_place_of_value(&size, "f32"));
                    }
                    let found = format!("{} and {}", self.show(&left.0), self.show(&right.0));
                    self.fail(span, diag::operand_type(op.text(), "numbers or tensors", &found))
                }
            },
        }
    }

    fn binary_size(&mut self, op: BinaryOp, span: Span, a: &Dim, b: &Dim) -> Value<'a> {
        let compare = |f: fn(&i64, &i64) -> bool| a.constant().zip(b.constant()).map(|(a, b)| Value::Bool(f(&a, &b)));
        let result = match op {
            BinaryOp::Add => Some(Value::Size(a + b)),
            BinaryOp::Subtract => Some(Value::Size(a - b)),
            BinaryOp::Multiply => {
                let most = |dim: &Dim| {
                    let (low, high) = self.graph.symbols.bounds(dim);
                    low.unsigned_abs().max(high.unsigned_abs()).max(1)
                };
                let fits = most(a).checked_mul(most(b)).is_some_and(|most| most < 1 << 62);
                if !fits {
                    return self.fail(span, diag::too_large());
                }
                Some(Value::Size(a * b))
            }
            BinaryOp::Divide => return self.divide(span, a, b),
            BinaryOp::Equal if a == b => Some(Value::Bool(true)),
            BinaryOp::NotEqual if a == b => Some(Value::Bool(false)),
            BinaryOp::Equal => compare(|a, b| a == b),
            BinaryOp::NotEqual => compare(|a, b| a != b),
            BinaryOp::Less => compare(|a, b| a < b),
            BinaryOp::LessEqual => compare(|a, b| a <= b),
            BinaryOp::Greater => compare(|a, b| a > b),
            BinaryOp::GreaterEqual => compare(|a, b| a >= b),
            BinaryOp::And | BinaryOp::Or | BinaryOp::MatMul => {
                let found = format!("{} and {}", self.show_size(a), self.show_size(b));
                return self.fail(span, diag::operand_type(op.text(), "bool", &found));
            }
        };
        match result {
            Some(Value::Size(dim)) if self.is_too_large(&dim) => self.fail(span, diag::too_large()),
            Some(value) => value,
            None => {
                let size = if a.constant().is_none() { self.show_size(a) } else { self.show_size(b) };
                self.fail(span, diag::comparison_of_size(&size))
            }
        }
    }

    /// Whether some value in bounds, and so some coefficient, leaves no room for a few more operations in i64.
    fn is_too_large(&self, dim: &Dim) -> bool {
        let (low, high) = self.graph.symbols.bounds(dim);
        let most = low.unsigned_abs().max(high.unsigned_abs());
        most >= 1 << 62 || dim.constant().is_some() && most > LARGEST as u64
    }

    /// Exact, or a mistake that names both values.
    pub(super) fn divide(&mut self, span: Span, a: &Dim, b: &Dim) -> Value<'a> {
        if *b == Dim::from(0) {
            return self.fail(span, diag::division_by_zero());
        }
        match a.div(b) {
            Some(quotient) => Value::Size(quotient),
            None => {
                let (a_text, b_text) = (self.show_size(a), self.show_size(b));
                let rest = a.constant().zip(b.constant()).map(|(a, b)| a.rem_euclid(b.abs()));
                let stepped = b.constant().filter(|_| a.constant().is_none());
                self.fail(span, diag::inexact_division(&a_text, &b_text, rest, stepped))
            }
        }
    }

    fn binary_float(&mut self, op: BinaryOp, span: Span, a: f64, b: f64) -> Value<'a> {
        let value = match op {
            BinaryOp::Add => a + b,
            BinaryOp::Subtract => a - b,
            BinaryOp::Multiply => a * b,
            BinaryOp::Divide if b == 0.0 => return self.fail(span, diag::division_by_zero()),
            BinaryOp::Divide => a / b,
            BinaryOp::Equal => return Value::Bool(a == b),
            BinaryOp::NotEqual => return Value::Bool(a != b),
            BinaryOp::Less => return Value::Bool(a < b),
            BinaryOp::LessEqual => return Value::Bool(a <= b),
            BinaryOp::Greater => return Value::Bool(a > b),
            BinaryOp::GreaterEqual => return Value::Bool(a >= b),
            BinaryOp::And | BinaryOp::Or | BinaryOp::MatMul => {
                return self.fail(span, diag::operand_type(op.text(), "bool", &format!("{a:?} and {b:?}")));
            }
        };
        if value.is_finite() { Value::Float(value) } else { self.fail(span, diag::too_large()) }
    }

    fn binary_tensor(&mut self, op: BinaryOp, span: Span, left: Operand<'a>, right: Operand<'a>) -> Value<'a> {
        let (bin, swap, negate) = match op {
            BinaryOp::Add => (Bin::Add, false, false),
            BinaryOp::Subtract => (Bin::Sub, false, false),
            BinaryOp::Multiply => (Bin::Mul, false, false),
            BinaryOp::Divide => (Bin::Div, false, false),
            BinaryOp::Equal => (Bin::Eq, false, false),
            BinaryOp::NotEqual => (Bin::Eq, false, true),
            BinaryOp::Less => (Bin::Lt, false, false),
            BinaryOp::LessEqual => (Bin::Le, false, false),
            BinaryOp::Greater => (Bin::Lt, true, false),
            BinaryOp::GreaterEqual => (Bin::Le, true, false),
            BinaryOp::And => (Bin::And, false, false),
            BinaryOp::Or => (Bin::Or, false, false),
            BinaryOp::MatMul => return Value::Poison,
        };
        let Some(value) = self.broadcast_bin(bin, op.text(), span, left, right, swap) else { return Value::Poison };
        Value::Tensor(if negate { self.graph.un(Un::Not, value) } else { value })
    }

    /// A registered operation of two operands, one of them a value of the graph.
    pub(super) fn broadcast_bin(
        &mut self,
        bin: Bin,
        text: &str,
        span: Span,
        left: Operand<'a>,
        right: Operand<'a>,
        swap: bool,
    ) -> Option<ValueId> {
        if bin == Bin::Div && right.0.number() == Some(0.0) {
            self.report(right.1.span(), diag::division_by_zero());
            return None;
        }
        self.at(span);
        let sides = self.same_type(text, span, &[left, right])?;
        let dtype = self.graph.ty(sides[0]).dtype;
        let wrong = if bin.is_logical() {
            (dtype != DType::Bool).then_some("bool")
        } else if bin == Bin::Pow || bin == Bin::Div {
            (dtype != DType::F32).then_some("f32")
        } else if bin.is_comparison() {
            None
        } else {
            (dtype == DType::Bool).then_some("numbers")
        };
        if let Some(expected) = wrong {
            self.report(span, diag::operand_type(text, expected, &dtype.to_string()));
            return None;
        }
        let [a, b] = sides[..] else { return None };
        let (a, b) = if swap { (b, a) } else { (a, b) };
        Some(self.graph.bin(bin, a, b))
    }

    /// Values of the graph of one element type that broadcast: constants take the type of the others.
    pub(super) fn same_type(&mut self, text: &str, span: Span, operands: &[Operand<'a>]) -> Option<Vec<ValueId>> {
        let typed = |(value, _): &Operand<'a>| match value {
            Value::Tensor(id) => Some(self.graph.ty(*id).dtype),
            _ => None,
        };
        let bool_constant = operands.iter().any(|(value, _)| matches!(value, Value::Bool(_)));
        let otherwise = if bool_constant { DType::Bool } else { DType::F32 };
        let dtype = operands.iter().find_map(typed).unwrap_or(otherwise);
        if let Some(other) = operands.iter().filter_map(typed).find(|other| *other != dtype) {
            let message = diag::mixed_types(text, &dtype.to_string(), &other.to_string());
            let message = self.with_operands(message, operands);
            self.report(span, message);
            return None;
        }
        let values: Option<Vec<ValueId>> =
            operands.iter().map(|(value, source)| self.constant_as(dtype, value, text, source.span())).collect();
        let values = values?;
        let mut shape = vec![];
        for value in &values {
            match broadcast(&shape, self.graph.shape(*value)) {
                Some(wider) => shape = wider,
                None => {
                    let message = self.broadcast_mismatch(text, &shape, *value);
                    let message = self.with_operands(message, operands);
                    self.report(span, message);
                    return None;
                }
            }
        }
        self.check_size(span, &shape)?;
        Some(values)
    }

    fn broadcast_mismatch(&self, text: &str, so_far: &[Dim], value: ValueId) -> String {
        let shape = self.graph.shape(value);
        let pairs = so_far.iter().rev().zip(shape.iter().rev()).enumerate();
        let clash = pairs.into_iter().find(|(_, (a, b))| a != b && !a.is_one() && !b.is_one());
        let Some((from_last, (a, b))) = clash else { return diag::broadcast(text, "axes", "", "") };
        let axis = if from_last == 0 { "last axis".to_string() } else { format!("axis -{}", from_last + 1) };
        diag::broadcast(text, &axis, &self.show_size(a), &self.show_size(b))
    }

    /// The message with a line for each operand.
    pub(super) fn with_operands(&self, message: String, operands: &[Operand<'a>]) -> String {
        let tensors = operands.iter().enumerate().filter(|(_, (value, _))| matches!(value, Value::Tensor(_)));
        tensors.fold(message, |message, (k, (value, source))| {
            let side = ["left", "right", "third"].get(k).copied().unwrap_or("operand");
            super::with_value(message, &source.text(side), &self.show(value))
        })
    }

    /// A value of the graph: what already is one, or a constant of the type.
    pub(super) fn constant_as(&mut self, dtype: DType, value: &Value<'a>, text: &str, span: Span) -> Option<ValueId> {
        let constant = match (value, dtype) {
            (Value::Tensor(id), _) => return Some(*id),
            (Value::Float(value), DType::F32) if value.abs() > f64::from(f32::MAX) => {
                self.report(span, diag::too_large());
                return None;
            }
            (Value::Float(value), DType::F32) => Const::float(*value),
            (Value::Bool(value), DType::Bool) => Const::Bool(*value),
            (Value::Size(dim), dtype) => {
                let Some(value) = dim.constant() else {
                    let size = self.show_size(dim);
                    self.report(span, diag::size_in_place_of_value(&size, &dtype.to_string()));
                    return None;
                };
                match (dtype, u32::try_from(value), i32::try_from(value)) {
                    (DType::F32, ..) => Const::float(value as f64),
                    (DType::U32, Ok(value), _) => Const::Uint(value),
                    (DType::I32, _, Ok(value)) => Const::Int(value),
                    _ => {
                        self.report(span, diag::operand_type(text, &dtype.to_string(), &value.to_string()));
                        return None;
                    }
                }
            }
            (Value::Poison, _) => return None,
            (other, _) => {
                let found = self.show(other);
                self.report(span, diag::operand_type(text, &dtype.to_string(), &found));
                return None;
            }
        };
        Some(self.graph.emit(Op::Instr(Instr::Const(constant)), &[]))
    }

    /// Reports a shape whose elements cannot be counted, or that has none.
    pub(super) fn check_size(&mut self, span: Span, shape: &[Dim]) -> Option<()> {
        let high = |dim: &Dim| self.graph.symbols.bounds(dim).1;
        if let Some(empty) = shape.iter().find(|dim| high(dim) < 1) {
            let (shape, size) = (self.graph.symbols.show_shape(shape), self.show_size(empty));
            self.report(span, diag::empty_shape(&shape, &size));
            return None;
        }
        let elements = shape.iter().try_fold(1i64, |product, dim| product.checked_mul(high(dim)));
        if elements.is_none_or(|elements| elements >= 1 << 62) {
            let shape = self.graph.symbols.show_shape(shape);
            self.report(span, diag::too_many_elements(&shape));
            return None;
        }
        Some(())
    }
}
