//! `x[..]`: parts of axes, by constants and sizes.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;
use proc_macro2::Span;

use super::value::Value;
use super::{Resolver, argument_name, describe, with_value};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::{Op, Slice};
use crate::syntax::{Expr, Index};

impl<'a> Resolver<'a, '_> {
    /// Each index stands for one axis, those behind the last stay whole.
    pub(super) fn index(&mut self, whole: &'a Expr, base: &'a Expr, indices: &'a [Index]) -> Value<'a> {
        let span = whole.span;
        let value = self.expression(base);
        let parts: Vec<Part> = indices.iter().map(|index| self.part(index)).collect();
        let tensor = match &value {
            Value::Tensor(id) => *id,
            Value::Poison => return Value::Poison,
            Value::Layers(..) => {
                return self.fail(span, diag::not_available("one layer of an array outside of a loop"));
            }
            Value::List(list) => return self.list_element(span, list, &parts),
            other => {
                let found = self.show(other);
                return self.fail(span, diag::not_indexable(&found));
            }
        };
        if parts.iter().any(|part| matches!(part, Part::Poison)) {
            return Value::Poison;
        }
        let shape = self.graph.shape(tensor).clone();
        let is_whole = |part: &Part| matches!(part, Part::Range(None, None, ..));
        let name = argument_name(base, "x");
        let shown = self.show_type(self.graph.ty(tensor));
        if parts.len() > shape.len() {
            let message = diag::too_many_indices(shape.len(), parts.len());
            return self.fail(span, with_value(message, &name, &shown));
        }
        if parts.len() < shape.len() && parts.iter().any(is_whole) {
            let message = diag::ambiguous_whole_axis(shape.len(), parts.len());
            return self.fail(span, with_value(message, &name, &shown));
        }
        self.at(span);
        let (mut result, mut kept, mut ids) = (tensor, vec![], None);
        for (axis, size) in shape.iter().enumerate() {
            let (from, to, keep, at) = match parts.get(axis) {
                None | Some(Part::Range(None, None, ..) | Part::Poison) => {
                    kept.push(size.clone());
                    continue;
                }
                Some(Part::Ids(value, at)) => {
                    if ids.replace((*value, kept.len())).is_some() {
                        return self.fail(*at, diag::second_ids());
                    }
                    self.limit_argument(*value, size);
                    kept.push(size.clone());
                    continue;
                }
                Some(Part::At(index, at)) => {
                    let from = from_end(index, size);
                    let to = &from + &Dim::from(1);
                    (from, to, false, *at)
                }
                Some(Part::Range(start, end, inclusive, at)) => {
                    let from = start.as_ref().map_or_else(|| Dim::from(0), |start| from_end(start, size));
                    let to = end.as_ref().map_or_else(|| size.clone(), |end| from_end(end, size));
                    let to = if *inclusive { &to + &Dim::from(1) } else { to };
                    (from, to, true, *at)
                }
            };
            let length = &to - &from;
            let bounds = |dim: &Dim| self.graph.symbols.bounds(dim);
            let fits = bounds(&from).1 >= 0 && bounds(&length).1 >= 1 && bounds(&(size - &to)).1 >= 0;
            if !fits {
                let written = parts.get(axis).map_or_else(String::new, |part| self.show_part(part));
                let message = diag::outside_axis(&written, axis, &self.show_size(size));
                return self.fail(at, with_value(message, &name, &shown));
            }
            let what = describe::short(whole).unwrap_or_else(|| {
                let written = parts.get(axis).map_or_else(String::new, |part| self.show_part(part));
                format!("{name}[{written}] of axis {axis}")
            });
            self.require(&what, &Dim::from(0), &from);
            self.require(&what, &(&from + &Dim::from(1)), &to);
            self.require(&what, &to, size);
            if keep {
                kept.push(length);
            }
            result = match self.graph.try_emit(Op::Slice(Slice { axis: axis as u8, from, to }), &[result]) {
                Ok(value) => value,
                Err(misfit) => return self.fail(at, with_value(misfit.0, &name, &shown)),
            };
        }
        let result = self.graph.reshape(result, kept);
        Value::Tensor(match ids {
            Some((ids, axis)) => self.graph.take(result, ids, axis),
            None => result,
        })
    }

    /// Dimensions must keep `low <= high`.
    fn require(&mut self, what: &str, low: &Dim, high: &Dim) {
        let path = &self.graph.origin.path;
        let what = if path.is_empty() { what.to_string() } else { format!("{path}: {what}") };
        self.graph.require(what, low, high);
    }

    /// An index as it was written.
    fn show_part(&self, part: &Part) -> String {
        let show = |dim: &Option<Dim>| dim.as_ref().map_or_else(String::new, |dim| self.graph.symbols.show(dim));
        match part {
            Part::At(at, _) => self.graph.symbols.show(at),
            Part::Range(start, end, inclusive, _) => {
                format!("{}{}{}", show(start), if *inclusive { "..=" } else { ".." }, show(end))
            }
            Part::Ids(..) | Part::Poison => String::new(),
        }
    }

    fn part(&mut self, index: &'a Index) -> Part {
        match index {
            Index::At(at) => match self.expression(at) {
                Value::Size(dim) => Part::At(dim, at.span),
                Value::Poison => Part::Poison,
                Value::Tensor(id) if self.graph.ty(id).dtype == DType::U32 => Part::Ids(id, at.span),
                Value::Tensor(id) if self.graph.ty(id).dtype != DType::F32 => {
                    let found = self.show_type(self.graph.ty(id));
                    self.report(at.span, diag::ids_expected(&found));
                    Part::Poison
                }
                other => {
                    let found = self.show(&other);
                    self.report(at.span, diag::index_type(&found));
                    Part::Poison
                }
            },
            Index::Slice { start, end, inclusive, span } => {
                let start = start.as_ref().map(|start| self.bound(start));
                let end = end.as_ref().map(|end| self.bound(end));
                match (start, end) {
                    (Some(None), _) | (_, Some(None)) => Part::Poison,
                    (start, end) => Part::Range(start.flatten(), end.flatten(), *inclusive, *span),
                }
            }
        }
    }

    fn bound(&mut self, expr: &'a Expr) -> Option<Dim> {
        match self.expression(expr) {
            Value::Size(dim) => Some(dim),
            Value::Poison => None,
            other => {
                let found = self.show(&other);
                self.report(expr.span, diag::index_type(&found));
                None
            }
        }
    }

    /// An element of a constant list.
    fn list_element(&mut self, span: Span, list: &[Value<'a>], parts: &[Part]) -> Value<'a> {
        let [Part::At(index, at)] = parts else { return self.fail(span, diag::not_indexable("a list")) };
        let length = list.len() as i64;
        let index = index.constant().map(|index| if index < 0 { index + length } else { index });
        let element = index.and_then(|index| list.get(usize::try_from(index).ok()?));
        match element {
            Some(value) => value.clone(),
            None => self.fail(*at, diag::outside_list(list.len())),
        }
    }
}

/// One axis.
enum Part {
    At(Dim, Span),
    Ids(ValueId, Span),
    Range(Option<Dim>, Option<Dim>, bool, Span),
    Poison,
}

/// Negative numbers count from the end.
fn from_end(index: &Dim, size: &Dim) -> Dim {
    if index.constant().is_some_and(|index| index < 0) { size + index } else { index.clone() }
}
