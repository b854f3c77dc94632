//! Expressions to values.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::prog::DType;
use proc_macro2::Span;

use super::arithmetic::Operand;
use super::describe::Source;
use super::instance::Member;
use super::value::{Layer, Value};
use super::{Resolver, initialisers};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::{Contract, Op};
use crate::syntax::{Block, Expr, ExprKind, Ident, If};

/// Expressions and calls inside each other; what is deeper would overflow the stack of a compiler.
const MAX_DEPTH: u32 = 200;

impl<'a> Resolver<'a, '_> {
    pub(super) fn expression(&mut self, expr: &'a Expr) -> Value<'a> {
        if self.depth >= MAX_DEPTH {
            return self.fail(expr.span, diag::too_deep(MAX_DEPTH));
        }
        self.depth += 1;
        let value = self.expression_inside(expr);
        self.depth -= 1;
        value
    }

    fn expression_inside(&mut self, expr: &'a Expr) -> Value<'a> {
        match &expr.kind {
            ExprKind::Int(value) => match i64::try_from(*value) {
                Ok(value) if value < 1 << 53 => Value::int(value),
                _ => self.fail(expr.span, diag::too_large()),
            },
            ExprKind::Float(value) => Value::Float(*value),
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Text(text) => Value::Text(text),
            ExprKind::Hole => Value::Hole,
            ExprKind::Poison => Value::Poison,
            ExprKind::Name(name) => self.name(name),
            ExprKind::Unary(operator, operand) => {
                let operand = self.expression(operand);
                self.unary(*operator, expr.span, operand)
            }
            ExprKind::Binary(operator, left, right) => {
                let left = (self.expression(left), Source::Expr(left));
                let right = (self.expression(right), Source::Expr(right));
                self.binary(*operator, expr.span, left, right)
            }
            ExprKind::Call(callee, arguments) => self.call(expr.span, callee, arguments),
            ExprKind::Method(receiver, name, arguments) => self.method(receiver, name, arguments),
            ExprKind::Field(base, name) => {
                let base = self.expression(base);
                self.field(base, name)
            }
            ExprKind::Index(base, indices) => self.index(expr, base, indices),
            ExprKind::Array(parts) => Value::List(parts.iter().map(|part| self.expression(part)).collect()),
            ExprKind::Tuple(parts) => Value::Tuple(parts.iter().map(|part| self.expression(part)).collect()),
            ExprKind::If(choice) => match self.choose(choice) {
                Some(Some(block)) => self.block_value(block),
                _ => Value::Poison,
            },
        }
    }

    /// The block that the conditions pick; poison if one is no constant.
    pub(super) fn choose(&mut self, choice: &'a If) -> Option<Option<&'a Block>> {
        for (condition, block) in &choice.branches {
            if self.condition(condition)? {
                return Some(Some(block));
            }
        }
        Some(choice.otherwise.as_ref())
    }

    pub(super) fn condition(&mut self, condition: &'a Expr) -> Option<bool> {
        match self.expression(condition) {
            Value::Bool(value) => Some(value),
            Value::Poison => None,
            Value::Tensor(_) => {
                self.report(condition.span, diag::condition_on_elements());
                None
            }
            other => {
                let found = self.show(&other);
                let message = diag::condition_type(&found);
                self.report_given(condition, "`true` or `false`", &found, message);
                None
            }
        }
    }

    /// What a name stands for; unknown ones were reported from the text.
    pub(super) fn name(&mut self, name: &'a Ident) -> Value<'a> {
        let frame = self.frame();
        if let Some(local) = frame.locals.iter().rev().find(|local| local.name == name.name) {
            return local.value.clone();
        }
        if let Some(size) = frame.sizes.get(name.name.as_str()) {
            return Value::Size(size.clone());
        }
        let layer = frame.layer.clone();
        match layer.instance.members.get(name.name.as_str()).cloned() {
            Some(member) => self.member(&layer, member, name),
            None => match initialisers::plain(&name.name) {
                Some(init) => Value::Init(init),
                None if self.is_conditional(&layer, name) => self.fail(name.span, diag::absent_member(&name.name)),
                None => Value::Poison,
            },
        }
    }

    /// Whether the item has the member later, or on conditions that do not hold here.
    pub(super) fn is_conditional(&self, layer: &Layer<'a>, name: &Ident) -> bool {
        let definition = layer.instance.definition;
        definition.dimensions.list.iter().any(|dimension| dimension.name.name == name.name)
            || super::mentions::member_names(&definition.members).contains(name.name.as_str())
    }

    /// What a member of a layer stands for.
    pub(super) fn member(&mut self, layer: &Layer<'a>, member: Member<'a>, name: &Ident) -> Value<'a> {
        match member {
            Member::Poison => Value::Poison,
            Member::Constant(value) => value,
            Member::Layer(instance) => Value::Layer(Layer { instance, rows: layer.rows.clone() }),
            Member::Layers(instance, count) => Value::Layers(Layer { instance, rows: layer.rows.clone() }, count),
            Member::Tensor(index) => {
                self.at(name.span);
                Value::Tensor(self.read(index, &layer.rows))
            }
            Member::Function(_) => self.fail(name.span, diag::function_as_value(&name.name)),
            Member::Unbound(on) => {
                let function = self.frame().function;
                if !function.is_empty() && !self.unbound.insert(on.clone()) {
                    return Value::Poison;
                }
                self.fail(name.span, diag::unbound_dimension(&name.name, &on, function))
            }
            Member::Late(expr) => self.late(expr),
        }
    }

    /// A constant over sizes that the call binds.
    fn late(&mut self, expr: &'a Expr) -> Value<'a> {
        let locals = std::mem::take(&mut self.frame_mut().locals);
        let value = self.expression(expr);
        self.frame_mut().locals = locals;
        value
    }

    /// `embed.weight`
    pub(super) fn field(&mut self, base: Value<'a>, name: &'a Ident) -> Value<'a> {
        match base {
            Value::Poison => Value::Poison,
            Value::Layer(layer) => {
                let instance = layer.instance.clone();
                let known = instance.members.get(name.name.as_str()).filter(|member| member.is_visible());
                let tensor = || instance.tensor_names.get(&name.name).map(|index| Member::Tensor(*index));
                match known.cloned().or_else(tensor) {
                    Some(member) => self.member(&layer, member, name),
                    None => {
                        let message = diag::no_member(&instance.name, &name.name, &instance.visible());
                        self.fail(name.span, message)
                    }
                }
            }
            Value::Layers(layer, _) => self.fail(name.span, diag::field_of_array(&layer.instance.name)),
            Value::Tensor(_) => self.fail(name.span, diag::field_of_tensor(&name.name)),
            other => {
                let found = self.show(&other);
                self.fail(name.span, diag::field_of_other(&name.name, &found))
            }
        }
    }

    /// `a @ b`, by NumPy's rule: leading axes broadcast, a vector is a row on the left and a column on the right.
    pub(super) fn matmul(&mut self, span: Span, left: Operand<'a>, right: Operand<'a>) -> Value<'a> {
        let (Value::Tensor(a), Value::Tensor(b)) = (&left.0, &right.0) else {
            let found = format!("{} and {}", self.show(&left.0), self.show(&right.0));
            return self.fail(span, diag::operand_type("@", "tensors", &found));
        };
        let (a, b) = (*a, *b);
        let operands = [left, right];
        let types = [a, b].map(|id| self.graph.ty(id).clone());
        let message = if types.iter().any(|ty| ty.dtype != DType::F32) {
            let found = format!("{} and {}", types[0].dtype, types[1].dtype);
            Some(diag::operand_type("@", "f32", &found))
        } else if types.iter().any(|ty| ty.shape.is_empty()) {
            Some(diag::matmul_of_scalar())
        } else {
            let (inner, other) = inner_sizes(&types[0].shape, &types[1].shape);
            let axis = if types[1].shape.len() == 1 { "only axis" } else { "second last axis" };
            (inner != other).then(|| diag::matmul_mismatch(axis, &self.show_size(inner), &self.show_size(other)))
        };
        if let Some(message) = message {
            let message = self.with_operands(message, &operands);
            return self.fail(span, message);
        }
        self.at(span);
        match self.product(a, b) {
            Ok(value) => {
                let shape = self.graph.shape(value).clone();
                self.check_size(span, &shape).map_or(Value::Poison, |()| Value::Tensor(value))
            }
            Err((axis, x, y)) => {
                let axis = format!("axis -{axis}");
                let message = diag::broadcast("@", &axis, &self.show_size(&x), &self.show_size(&y));
                let message = self.with_operands(message, &operands);
                self.fail(span, message)
            }
        }
    }

    /// The product of two f32 tensors whose inner sizes agree, or the leading axis that does not broadcast.
    fn product(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, (usize, Dim, Dim)> {
        let (a_shape, b_shape) = (self.graph.shape(a).clone(), self.graph.shape(b).clone());
        let (a_own, b_own) = (a_shape.len().min(2), b_shape.len().min(2));
        let (a_lead, b_lead) = (&a_shape[..a_shape.len() - a_own], &b_shape[..b_shape.len() - b_own]);
        let count = a_lead.len().max(b_lead.len());
        let (mut a_kept, mut b_kept, mut out) = (vec![], vec![], vec![]);
        let (mut a_labels, mut b_labels, mut labels) = (vec![], vec![], vec![]);
        for axis in 0..count {
            let label = axis as u8;
            let at = |lead: &[Dim]| (axis + lead.len()).checked_sub(count).map(|k| lead[k].clone());
            let (x, y) = (at(a_lead), at(b_lead));
            if let (Some(x), Some(y)) = (&x, &y)
                && x != y
                && !x.is_one()
                && !y.is_one()
            {
                return Err((count - axis + 2, x.clone(), y.clone()));
            }
            // An axis of 1 that the other side stretches is no axis of the product.
            let stretched = |own: &Option<Dim>, other: &Option<Dim>| {
                own.as_ref().is_some_and(Dim::is_one) && other.as_ref().is_some_and(|other| !other.is_one())
            };
            let (keep_x, keep_y) = (x.is_some() && !stretched(&x, &y), y.is_some() && !stretched(&y, &x));
            if let Some(x) = x.clone().filter(|_| keep_x) {
                a_kept.push(x);
                a_labels.push(label);
            }
            if let Some(y) = y.clone().filter(|_| keep_y) {
                b_kept.push(y);
                b_labels.push(label);
            }
            labels.push(label);
            out.push(if keep_x { x } else { y });
        }
        let (row, inner, column) = (count as u8, count as u8 + 1, count as u8 + 2);
        a_kept.extend_from_slice(&a_shape[a_lead.len()..]);
        b_kept.extend_from_slice(&b_shape[b_lead.len()..]);
        if a_own == 2 {
            a_labels.push(row);
            labels.push(row);
        }
        a_labels.push(inner);
        b_labels.push(inner);
        if b_own == 2 {
            b_labels.push(column);
            labels.push(column);
        }
        let (a, b) = (self.graph.reshape(a, a_kept), self.graph.reshape(b, b_kept));
        let spec = Spec::new(&a_labels, &b_labels, &labels);
        Ok(self.graph.emit(Op::Contract(Contract { spec }), &[a, b]))
    }
}

fn inner_sizes<'s>(a: &'s [Dim], b: &'s [Dim]) -> (&'s Dim, &'s Dim) {
    (&a[a.len() - 1], &b[b.len().saturating_sub(2)])
}
