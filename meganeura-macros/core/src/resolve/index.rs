//! `x[..]`: parts of axes, by constants, sizes, and numbers that change with a loop. Arrays of layers have parts too.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;
use proc_macro2::Span;

use super::value::{Affine, Layer, Row, Value};
use super::{Resolver, argument_name, describe, with_value};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::ops::{Op, Slice};
use crate::syntax::{Expr, Index};

/// The part of one axis that an index means.
pub(super) struct AxisPart {
    pub(super) from: Start,
    pub(super) length: Dim,
    /// Whether the axis stays.
    pub(super) keep: bool,
    pub(super) span: Span,
    /// All of the axis.
    pub(super) whole: bool,
    /// Which elements of it, in which order.
    pub(super) ids: Option<ValueId>,
}

/// Where a part begins.
#[derive(Clone)]
pub(super) enum Start {
    Fixed(Dim),
    Moving(Affine),
}

impl<'a> Resolver<'a, '_> {
    /// Each index stands for one axis, those behind the last stay whole.
    pub(super) fn index(&mut self, written: &'a Expr, base: &'a Expr, indices: &'a [Index]) -> Value<'a> {
        let span = written.span;
        let value = self.expression(base);
        let parts: Vec<Part> = indices.iter().map(|index| self.part(index)).collect();
        let tensor = match &value {
            Value::Tensor(id) => *id,
            Value::Poison => return Value::Poison,
            Value::Layers(layer, count) => return self.array_part(span, layer, *count, &parts),
            Value::List(list) => return self.list_element(span, list, &parts),
            other => {
                let found = self.show(other);
                return self.fail(span, diag::not_indexable(&found));
            }
        };
        let name = argument_name(base, "x");
        self.at(span);
        let what = describe::short(written);
        let Some(parts) = self.axis_parts(span, &name, what, tensor, parts) else { return Value::Poison };
        self.take_parts(tensor, &parts).map_or(Value::Poison, Value::Tensor)
    }

    /// What the indices mean for each axis of a tensor.
    pub(super) fn axis_parts(
        &mut self,
        span: Span,
        name: &str,
        what: Option<String>,
        tensor: ValueId,
        parts: Vec<Part>,
    ) -> Option<Vec<AxisPart>> {
        if parts.iter().any(|part| matches!(part, Part::Poison)) {
            return None;
        }
        let shape = self.graph.shape(tensor).clone();
        let whole = |part: &Part| matches!(part, Part::Range(None, None, ..));
        let shown = self.show_type(self.graph.ty(tensor));
        if parts.len() > shape.len() {
            let message = diag::too_many_indices(shape.len(), parts.len());
            self.report(span, with_value(message, name, &shown));
            return None;
        }
        if parts.len() < shape.len() && parts.iter().any(whole) {
            let message = diag::ambiguous_whole_axis(shape.len(), parts.len());
            self.report(span, with_value(message, name, &shown));
            return None;
        }
        let mut found = vec![];
        for (axis, size) in shape.iter().enumerate() {
            let (from, length, keep, at) = match parts.get(axis) {
                None | Some(Part::Range(None, None, ..) | Part::Poison) => {
                    let from = Start::Fixed(Dim::from(0));
                    found.push(AxisPart { from, length: size.clone(), keep: true, span, whole: true, ids: None });
                    continue;
                }
                Some(Part::Ids(value, at)) => {
                    if found.iter().any(|part: &AxisPart| part.ids.is_some()) {
                        self.report(*at, diag::second_ids());
                        return None;
                    }
                    self.limit_argument(*value, size);
                    let from = Start::Fixed(Dim::from(0));
                    let (length, ids) = (size.clone(), Some(*value));
                    found.push(AxisPart { from, length, keep: true, span: *at, whole: true, ids });
                    continue;
                }
                Some(Part::At(index, at)) => (from_end(index, size), Dim::from(1), false, *at),
                Some(Part::Range(start, end, inclusive, at)) => {
                    let from = start.as_ref().map_or(Start::Fixed(Dim::from(0)), |start| from_end(start, size));
                    let to = end.as_ref().map_or(Start::Fixed(size.clone()), |end| from_end(end, size));
                    let length = match (&from, &to) {
                        (Start::Fixed(from), Start::Fixed(to)) => to - from,
                        (Start::Moving(a), Start::Moving(b)) if (a.id, a.factor) == (b.id, b.factor) => {
                            &b.offset - &a.offset
                        }
                        _ => {
                            self.report(*at, diag::moving_length());
                            return None;
                        }
                    };
                    let length = if *inclusive { &length + &Dim::from(1) } else { length };
                    (from, length, true, *at)
                }
            };
            let (least, most) = match &from {
                Start::Fixed(from) => (from.clone(), from.clone()),
                Start::Moving(from) => self.extremes(from, self.level(from.id)?),
            };
            let bounds = |dim: &Dim| self.graph.symbols.bounds(dim);
            let rest = size - &(&most + &length);
            let is_known =
                matches!(from, Start::Moving(_)) && [&least, &rest].iter().all(|dim| dim.constant().is_some());
            let fits = match is_known {
                true => bounds(&least).0 >= 0 && bounds(&rest).0 >= 0 && bounds(&length).1 >= 1,
                false => bounds(&least).1 >= 0 && bounds(&length).1 >= 1 && bounds(&rest).1 >= 0,
            };
            if !fits {
                let written = parts.get(axis).map_or_else(String::new, |part| self.show_part(part));
                let range = matches!(from, Start::Moving(_)).then(|| {
                    let end = &(&most + &length) - &Dim::from(1);
                    (self.graph.symbols.show(&least), self.graph.symbols.show(&end))
                });
                let message = match range {
                    Some((low, high)) => diag::loop_outside_axis(&low, &high, axis, &self.show_size(size)),
                    None => diag::outside_axis(&written, axis, &self.show_size(size)),
                };
                self.report(at, with_value(message, name, &shown));
                return None;
            }
            let what = what.clone().unwrap_or_else(|| {
                let written = parts.get(axis).map_or_else(String::new, |part| self.show_part(part));
                format!("{name}[{written}] of axis {axis}")
            });
            self.require(&what, &Dim::from(0), &least);
            self.require(&what, &(&least + &Dim::from(1)), &(&least + &length));
            self.require(&what, &(&most + &length), size);
            found.push(AxisPart { from, length, keep, span: at, whole: false, ids: None });
        }
        Some(found)
    }

    /// Dimensions must keep `low <= high`.
    fn require(&mut self, what: &str, low: &Dim, high: &Dim) {
        let path = &self.graph.origin.path;
        let what = if path.is_empty() { what.to_string() } else { format!("{path}: {what}") };
        self.graph.require(what, low, high);
    }

    /// The part of a tensor, without the axes of single elements.
    pub(super) fn take_parts(&mut self, tensor: ValueId, parts: &[AxisPart]) -> Option<ValueId> {
        let mut result = tensor;
        for (axis, part) in parts.iter().enumerate() {
            if let (Start::Fixed(from), false) = (&part.from, part.whole) {
                let slice = Slice { axis: axis as u8, from: from.clone(), to: from + &part.length };
                result = match self.graph.try_emit(Op::Slice(slice), &[result]) {
                    Ok(value) => value,
                    Err(misfit) => {
                        self.report(part.span, misfit.0);
                        return None;
                    }
                };
            }
        }
        // Outer loops first: what an inner one picks from exists inside of the outer one only.
        let mut moving: Vec<(usize, usize)> = vec![];
        for (axis, part) in parts.iter().enumerate() {
            if let Start::Moving(from) = &part.from {
                moving.push((self.level(from.id)?, axis));
            }
        }
        moving.sort_unstable();
        for (_, axis) in moving {
            if let Start::Moving(from) = &parts[axis].from {
                result = self.moving_part(result, axis, from, &parts[axis].length, parts[axis].span)?;
            }
        }
        let kept: Vec<&AxisPart> = parts.iter().filter(|part| part.keep).collect();
        let result = self.graph.reshape(result, kept.iter().map(|part| part.length.clone()).collect());
        let ids = kept.iter().enumerate().find_map(|(axis, part)| part.ids.map(|ids| (ids, axis)));
        Some(match ids {
            Some((ids, axis)) => self.graph.take(result, ids, axis),
            None => result,
        })
    }

    /// One layer of an array, or an array of some of them.
    fn array_part(&mut self, span: Span, layer: &Layer<'a>, count: i64, parts: &[Part]) -> Value<'a> {
        let name = layer.instance.name.clone();
        let with = |row: Row| {
            let rows = layer.rows.iter().copied().chain([row]).collect();
            Layer { instance: layer.instance.clone(), rows }
        };
        let fixed = |start: &Option<Start>, otherwise: i64| match start {
            None => Some(otherwise),
            Some(Start::Fixed(dim)) => dim.constant().map(|at| if at < 0 { at + count } else { at }),
            Some(Start::Moving(_)) => None,
        };
        match parts {
            [Part::Poison] => Value::Poison,
            [Part::At(Start::Fixed(dim), at)] => match dim.constant() {
                Some(index) if (-count..count).contains(&index) => {
                    Value::Layer(with(Row::At(if index < 0 { index + count } else { index })))
                }
                Some(index) => self.fail(*at, diag::outside_array(&name, &index.to_string(), count)),
                None => {
                    let found = self.show_size(dim);
                    self.fail(*at, diag::array_index(&name, &found))
                }
            },
            [Part::At(Start::Moving(affine), at)] => {
                let steps = self.level(affine.id).and_then(|level| self.loops[level].count.constant());
                match (affine.offset.constant(), steps) {
                    (Some(first), Some(steps)) if affine.factor == 1 => {
                        if first < 0 || first + steps > count {
                            let index = format!("{first}..{}", first + steps);
                            return self.fail(*at, diag::outside_array(&name, &index, count));
                        }
                        let mut picked = with(Row::Each(affine.id));
                        if (first, steps) != (0, count) {
                            let last = picked.rows.len() - 1;
                            picked.rows.insert(last, Row::Part(first, steps));
                        }
                        Value::Layer(picked)
                    }
                    _ => self.fail(*at, diag::array_index(&name, "a number that changes otherwise")),
                }
            }
            [Part::Range(start, end, inclusive, at)] => match (fixed(start, 0), fixed(end, count)) {
                (Some(from), Some(to)) => {
                    let to = if *inclusive && end.is_some() { to + 1 } else { to };
                    if from < 0 || to > count || from >= to {
                        return self.fail(*at, diag::outside_array(&name, &format!("{from}..{to}"), count));
                    }
                    Value::Layers(with(Row::Part(from, to - from)), to - from)
                }
                _ => self.fail(*at, diag::array_index(&name, "a bound that is not known now")),
            },
            _ => self.fail(span, diag::array_indices(&name, parts.len())),
        }
    }

    /// An index as it was written.
    fn show_part(&self, part: &Part) -> String {
        let start = |start: &Start| match start {
            Start::Fixed(dim) => self.graph.symbols.show(dim),
            Start::Moving(_) => "_".into(),
        };
        let show = |end: &Option<Start>| end.as_ref().map_or_else(String::new, start);
        match part {
            Part::At(at, _) => start(at),
            Part::Range(start, end, inclusive, _) => {
                format!("{}{}{}", show(start), if *inclusive { "..=" } else { ".." }, show(end))
            }
            Part::Ids(..) | Part::Poison => String::new(),
        }
    }

    pub(super) fn part(&mut self, index: &'a Index) -> Part {
        match index {
            Index::At(at) => match self.expression(at) {
                Value::Size(dim) => Part::At(Start::Fixed(dim), at.span),
                Value::Index(affine) => Part::At(Start::Moving(affine), at.span),
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

    fn bound(&mut self, expr: &'a Expr) -> Option<Start> {
        match self.expression(expr) {
            Value::Size(dim) => Some(Start::Fixed(dim)),
            Value::Index(affine) => Some(Start::Moving(affine)),
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
        let [Part::At(Start::Fixed(index), at)] = parts else { return self.fail(span, diag::not_indexable("a list")) };
        let length = list.len() as i64;
        let index = index.constant().map(|index| if index < 0 { index + length } else { index });
        let element = index.and_then(|index| list.get(usize::try_from(index).ok()?));
        match element {
            Some(value) => value.clone(),
            None => self.fail(*at, diag::outside_list(list.len())),
        }
    }
}

/// One index as it was written.
pub(super) enum Part {
    At(Start, Span),
    Ids(ValueId, Span),
    Range(Option<Start>, Option<Start>, bool, Span),
    Poison,
}

/// Negative numbers count from the end.
fn from_end(index: &Start, size: &Dim) -> Start {
    match index {
        Start::Fixed(index) if index.constant().is_some_and(|index| index < 0) => Start::Fixed(size + index),
        other => other.clone(),
    }
}
