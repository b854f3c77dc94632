//! Types of parameters and results against values. Names that stand only in a function's types are bound by the call,
//! `..` stands for the same leading axes everywhere in it.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::{Const, DType, Instr};
use proc_macro2::Span;

use super::describe::Source;
use super::instance::Member;
use super::value::Value;
use super::{Resolver, Site, describe, mentions, with_value};
use crate::diag::resolve as diag;
use crate::diag::resolve::Subject;
use crate::errors::At;
use crate::ir;
use crate::ops::{Broadcast, Op};
use crate::syntax::{
    Bounds, Dimension, DimensionKind, Element, Expr, ExprKind, Function, Parameter, TensorType, Type, TypeKind,
};

/// An argument with its text.
pub(super) type Passed<'a> = Option<(Value<'a>, Source<'a>)>;

/// An axis whose declared size is still to be compared.
struct Axis<'a> {
    declared: &'a Expr,
    found: Dim,
    /// Counted from the last, from 1.
    from_last: usize,
    rank: usize,
    about: usize,
    shown: String,
}

/// What is compared with a type.
struct About<'a> {
    subject: Subject,
    name: String,
    at: At,
    ty: &'a Type,
    value: Value<'a>,
}

impl<'a> Resolver<'a, '_> {
    /// The values that a function's parameters get; its frame is the last one. Mistakes are at the caller's text.
    pub(super) fn match_parameters(
        &mut self,
        function: &'a Function,
        callee: &str,
        input: bool,
        values: Vec<Passed<'a>>,
        caller: Option<&Site>,
    ) -> Vec<Value<'a>> {
        let (mut abouts, mut axes, mut converted) = (vec![], vec![], vec![]);
        for (parameter, passed) in function.parameters.iter().zip(values) {
            let Some((value, source)) = passed else {
                converted.push(Value::Poison);
                continue;
            };
            let name = parameter.name.name.clone();
            let subject = if input {
                Subject::Input { layer: callee.into() }
            } else {
                Subject::Parameter { function: callee.into(), parameter: name.clone() }
            };
            let at = caller.map_or_else(|| source.span().into(), |site| site.at(source.span()));
            let (name, value_of) = (source.text(&name), value.clone());
            abouts.push(About { subject, name, at: at.clone(), ty: &parameter.ty, value: value_of });
            let value = self.compare(&parameter.ty, value, &abouts, &mut axes);
            if let (Some(bounds), Value::Size(dim)) = (&parameter.bounds, &value) {
                self.check_range(bounds, dim, &abouts);
            }
            let value = self.bind_scalar(function, parameter, value, at);
            converted.push(value);
        }
        let failed = self.compare_axes(axes, &abouts);
        for about in failed {
            let parameter =
                function.parameters.iter().position(|parameter| std::ptr::eq(&parameter.ty, abouts[about].ty));
            if let Some(parameter) = parameter {
                converted[parameter] = Value::Poison;
            }
        }
        converted
    }

    /// A `u32` scalar stands in the function's types as well.
    fn bind_scalar(&mut self, function: &'a Function, parameter: &'a Parameter, value: Value<'a>, at: At) -> Value<'a> {
        let name = parameter.name.name.as_str();
        match (&parameter.ty.kind, &value) {
            (TypeKind::Scalar(Element::U32), Value::Size(dim)) => {
                self.frame_mut().sizes.insert(name, dim.clone());
            }
            (TypeKind::Scalar(Element::U32), Value::Tensor(_) | Value::Index(_)) => {
                let mut sizes = vec![];
                let types = function.parameters.iter().map(|parameter| &parameter.ty).chain(&function.result);
                types.for_each(|ty| mentions::mentioned_in_type(ty, &mut sizes));
                if sizes.contains(&name) {
                    self.errors.push(at, diag::size_of_values(&function.name.name, name));
                    return Value::Poison;
                }
            }
            _ => {}
        }
        value
    }

    /// The value of a function; poison becomes a value of the declared type, so that its users can be checked.
    pub(super) fn match_result(
        &mut self,
        function: &'a Function,
        ty: &'a Type,
        span: Span,
        value: Value<'a>,
    ) -> Value<'a> {
        if value.is_poison() {
            return self.placeholder(ty);
        }
        let subject = Subject::Result { function: function.name.name.clone() };
        let name = function.body.tail.as_ref().and_then(|tail| describe::short(&tail.value));
        let name = name.unwrap_or_else(|| "result".into());
        let abouts = vec![About { subject, name, at: self.place(span), ty, value: value.clone() }];
        let mut axes = vec![];
        let value = self.compare(ty, value, &abouts, &mut axes);
        if self.compare_axes(axes, &abouts).is_empty() { value } else { Value::Poison }
    }

    /// Element type and number of axes now, sizes later.
    fn compare(&mut self, ty: &'a Type, value: Value<'a>, abouts: &[About<'a>], axes: &mut Vec<Axis<'a>>) -> Value<'a> {
        let fits = match (&ty.kind, &value) {
            (_, Value::Poison) | (TypeKind::Poison, _) => return Value::Poison,
            (TypeKind::Tuple(types), Value::Tuple(values)) if types.len() == values.len() => {
                let values = types.iter().zip(values.iter().cloned());
                return Value::Tuple(values.map(|(ty, value)| self.compare(ty, value, abouts, axes)).collect());
            }
            (TypeKind::Scalar(element), value) => return self.compare_scalar(*element, value.clone(), abouts),
            (TypeKind::Tensor(declared), Value::Tensor(id)) => {
                let found = self.graph.ty(*id).clone();
                let rank_fits = match declared.leading {
                    Some(_) => found.shape.len() >= declared.axes.len(),
                    None => found.shape.len() == declared.axes.len(),
                };
                let fits = dtype(declared.element) == found.dtype && rank_fits;
                if fits {
                    return self.collect_axes(declared, value.clone(), &found, abouts, axes);
                }
                false
            }
            _ => false,
        };
        debug_assert!(!fits);
        self.type_mismatch(abouts)
    }

    fn type_mismatch(&mut self, abouts: &[About<'a>]) -> Value<'a> {
        let Some(about) = abouts.last() else { return Value::Poison };
        let (expected, found) = (self.expected_type(about.ty), self.show(&about.value));
        let message = diag::type_mismatch(&about.subject, &expected, &found);
        let message = match about.value {
            Value::Tensor(_) => with_value(message, &about.name, &found),
            _ => message,
        };
        self.errors.push(about.at.clone(), message);
        Value::Poison
    }

    fn collect_axes(
        &mut self,
        declared: &'a TensorType,
        value: Value<'a>,
        found: &ir::Type,
        abouts: &[About<'a>],
        axes: &mut Vec<Axis<'a>>,
    ) -> Value<'a> {
        let rank = found.shape.len();
        let shown = self.show_type(found);
        let (lead, rest) = found.shape.split_at(rank - declared.axes.len());
        if declared.leading.is_some() {
            match self.frame().leading.clone() {
                None => self.frame_mut().leading = Some(lead.to_vec()),
                Some(known) if known == lead => {}
                Some(known) => {
                    let Some(about) = abouts.last() else { return Value::Poison };
                    let [known, lead] = [&known[..], lead].map(|shape| self.graph.symbols.show_shape(shape));
                    let message = diag::leading_mismatch(&about.subject, &known, &lead);
                    self.errors.push(about.at.clone(), with_value(message, &about.name, &shown));
                    return Value::Poison;
                }
            }
        }
        let count = declared.axes.len();
        for (k, (declared, found)) in declared.axes.iter().zip(rest).enumerate() {
            let (found, shown) = (found.clone(), shown.clone());
            axes.push(Axis { declared, found, from_last: count - k, rank, about: abouts.len() - 1, shown });
        }
        value
    }

    fn compare_scalar(&mut self, element: Element, value: Value<'a>, abouts: &[About<'a>]) -> Value<'a> {
        let fits = match (&value, element) {
            (Value::Float(_), Element::F32) | (Value::Bool(_), Element::Bool) => true,
            (Value::Size(dim), Element::F32) => {
                return match (dim.constant(), abouts.last()) {
                    (Some(constant), _) => Value::Float(constant as f64),
                    (None, Some(about)) => {
                        let size = self.show_size(dim);
                        self.errors.push(about.at.clone(), diag::size_in_place_of_value(&size, "f32"));
                        Value::Poison
                    }
                    (None, None) => Value::Poison,
                };
            }
            (Value::Size(dim), Element::U32) => self.graph.symbols.bounds(dim).1 >= 0,
            (Value::Size(_), Element::I32) => true,
            (Value::Index(_), Element::U32) => true,
            (Value::Tensor(id), element) => {
                let ty = self.graph.ty(*id);
                ty.shape.is_empty() && dtype(element) == ty.dtype
            }
            _ => false,
        };
        if fits { value } else { self.type_mismatch(abouts) }
    }

    /// Binds names, then compares; gives the positions of what does not fit.
    fn compare_axes(&mut self, axes: Vec<Axis<'a>>, abouts: &[About<'a>]) -> Vec<usize> {
        for axis in &axes {
            if let ExprKind::Name(name) = &axis.declared.kind
                && self.is_bound_by_call(&name.name)
            {
                self.frame_mut().sizes.insert(&name.name, axis.found.clone());
                let list = &self.frame().layer.instance.definition.dimensions.list;
                let dimension = list.iter().find(|dimension| dimension.name.name == name.name);
                if let Some(Dimension { kind: DimensionKind::Runtime(bounds), .. }) = dimension {
                    self.check_dimension(&name.name, bounds, &axis.found, abouts[axis.about].at.clone());
                }
            }
        }
        let mut failed: Vec<usize> = vec![];
        for axis in axes {
            let expected = match self.constant(axis.declared) {
                Value::Size(dim) => dim,
                Value::Poison => continue,
                other => {
                    let found = self.show(&other);
                    self.report(axis.declared.span, diag::size_expected(&found));
                    continue;
                }
            };
            if expected == axis.found || failed.contains(&axis.about) {
                continue;
            }
            let about = &abouts[axis.about];
            let origin = self.origin_of(axis.declared);
            let expected = self.show_size(&expected);
            let origin = origin.filter(|origin| *origin != expected && format!("`{origin}`") != expected);
            let position = if axis.from_last == 1 {
                "last axis".to_string()
            } else if axis.from_last == axis.rank {
                "first axis".to_string()
            } else {
                format!("axis -{}", axis.from_last)
            };
            let found = self.show_size(&axis.found);
            let message = diag::axis_mismatch(&about.subject, &position, &expected, origin.as_deref(), &found);
            let message = with_value(message, &about.name, &axis.shown);
            self.errors.push(about.at.clone(), message);
            failed.push(axis.about);
        }
        failed
    }

    fn is_bound_by_call(&self, name: &str) -> bool {
        let frame = self.frame();
        let member = frame.layer.instance.members.get(name);
        let is_scalar = frame.scalars.contains(&name);
        !is_scalar && !frame.sizes.contains_key(name) && matches!(member, None | Some(Member::Unbound(_)))
    }

    /// What a declared size is called where the layer is used, or else in its own text.
    fn origin_of(&self, declared: &Expr) -> Option<String> {
        let instance = &self.frame().layer.instance;
        match &declared.kind {
            ExprKind::Int(_) => None,
            ExprKind::Name(name) => match instance.given.get(name.name.as_str()) {
                Some(given) => given.text.clone(),
                None => Some(name.name.clone()),
            },
            _ if instance.is_builtin() => None,
            _ => describe::short(declared),
        }
    }

    fn check_range(&mut self, bounds: &'a Bounds, dim: &Dim, abouts: &[About<'a>]) {
        let Some((low, high)) = self.range(bounds) else { return };
        let (least, most) = self.graph.symbols.bounds(dim);
        if (most < low || least > high)
            && let Some(about) = abouts.last()
        {
            let found = self.show_size(dim);
            self.errors.push(about.at.clone(), diag::outside_range(&about.subject, low, high, &found));
        }
    }

    /// A runtime dimension of a model that is a member, bound or passed.
    pub(super) fn check_dimension(&mut self, name: &str, bounds: &'a Bounds, dim: &Dim, at: At) -> Option<()> {
        let (low, high) = self.range(bounds)?;
        let (least, most) = self.graph.symbols.bounds(dim);
        if most >= low && least <= high {
            return Some(());
        }
        let layer = self.frame().layer.instance.name.clone();
        let found = self.show_size(dim);
        self.errors.push(at, diag::dimension_kind(name, &layer, &format!("in {low}..={high}"), &found));
        None
    }

    /// The least and the greatest value.
    pub(super) fn range(&mut self, bounds: &'a Bounds) -> Option<(i64, i64)> {
        let mut end = |expr: &'a Expr| match self.constant(expr) {
            Value::Poison => None,
            value => match value.integer() {
                Some(value) => Some(value),
                None => {
                    let found = self.show(&value);
                    self.report(expr.span, diag::bound_expected(&found));
                    None
                }
            },
        };
        let (low, high) = (end(&bounds.low), end(&bounds.high));
        let (low, high) = (low?, high?);
        let high = if bounds.inclusive { high } else { high - 1 };
        if low > high {
            self.report(bounds.span, diag::empty_range(low, high));
            return None;
        }
        Some((low, high))
    }

    /// A type with the sizes of this call, as far as they are known.
    fn expected_type(&mut self, ty: &'a Type) -> String {
        match &ty.kind {
            TypeKind::Poison => "a value".into(),
            TypeKind::Scalar(element) => element.name().into(),
            TypeKind::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.expected_type(part)).collect();
                format!("({})", parts.join(", "))
            }
            TypeKind::Tensor(tensor) => {
                let mut axes: Vec<String> = tensor.leading.iter().map(|_| "..".to_string()).collect();
                for axis in &tensor.axes {
                    let unbound = matches!(&axis.kind, ExprKind::Name(name) if self.is_bound_by_call(&name.name));
                    let value = if unbound { Value::Poison } else { self.constant(axis) };
                    axes.push(match value {
                        Value::Size(dim) => self.graph.symbols.show(&dim),
                        _ => describe::short(axis).unwrap_or_else(|| "_".into()),
                    });
                }
                format!("{}[{}]", tensor.element.name(), axes.join(", "))
            }
        }
    }

    /// The type that a declaration stands for, where every size is known.
    pub(super) fn declared_type(&mut self, ty: &'a Type) -> Option<ir::Type> {
        let (element, leading, axes): (_, _, &[Expr]) = match &ty.kind {
            TypeKind::Scalar(element) => (*element, None, &[]),
            TypeKind::Tensor(tensor) => (tensor.element, tensor.leading, &tensor.axes),
            TypeKind::Tuple(_) | TypeKind::Poison => return None,
        };
        let mut shape = match leading {
            Some(_) => self.frame().leading.clone()?,
            None => vec![],
        };
        for axis in axes {
            match self.constant(axis) {
                Value::Size(dim) => shape.push(dim),
                Value::Poison => return None,
                other => {
                    let found = self.show(&other);
                    self.report(axis.span, diag::size_expected(&found));
                    return None;
                }
            }
        }
        Some(ir::Type { shape, dtype: dtype(element) })
    }

    /// Some value of a type; the graph that holds it is never used.
    fn placeholder(&mut self, ty: &'a Type) -> Value<'a> {
        if let TypeKind::Tuple(parts) = &ty.kind {
            return Value::Tuple(parts.iter().map(|part| self.placeholder(part)).collect());
        }
        let count = self.errors.count();
        let declared = self.declared_type(ty);
        let Some(ir::Type { shape, dtype }) = declared.filter(|_| self.errors.count() == count) else {
            return Value::Poison;
        };
        let constant = match dtype {
            DType::F32 => Const::float(0.0),
            DType::Bool => Const::Bool(false),
            _ if shape.is_empty() => return Value::Poison,
            DType::U32 => Const::Uint(0),
            DType::I32 => Const::Int(0),
        };
        let value = self.graph.emit(Op::Instr(Instr::Const(constant)), &[]);
        Value::Tensor(self.graph.emit(Op::Broadcast(Broadcast { shape }), &[value]))
    }
}

/// What elements are in the graph. Bytes are widened when they are brought in.
pub(super) fn dtype(element: Element) -> DType {
    match element {
        Element::F32 => DType::F32,
        Element::U32 | Element::U8 => DType::U32,
        Element::I32 => DType::I32,
        Element::Bool => DType::Bool,
    }
}
