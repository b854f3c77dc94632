//! Tensors of a model: declared by members, numbered in order, read where a function mentions them.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{self, Init};
use proc_macro2::Span;

use super::instance::{Member, Place, join};
use super::value::{Row, Value};
use super::{Resolver, initialisers};
use crate::diag::resolve as diag;
use crate::ir::{StoreKind, ValueId};
use crate::ops::{Op, Slice};
use crate::syntax::{Attributes, Element, Expr, ExprKind, TensorMember, TensorRole, TypeKind};

/// A tensor of the model.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) tensor: schedule::Tensor,
    /// The member that declares it.
    pub(super) span: Span,
    /// Whether functions may assign it, and when that has an effect.
    pub(super) role: TensorRole,
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn tensor_member(
        &mut self,
        member: &'a TensorMember,
        attributes: &'a Attributes,
        place: &Place,
    ) -> Option<Member<'a>> {
        let (element, axes): (Element, &'a [Expr]) = match &member.ty.kind {
            TypeKind::Scalar(element) => (*element, &[]),
            TypeKind::Tensor(tensor) => (tensor.element, &tensor.axes),
            TypeKind::Tuple(_) | TypeKind::Poison => return None,
        };
        if element != Element::F32 {
            self.report(member.ty.span, diag::parameter_type(word(member.role), element.name()));
            return None;
        }
        let sizes: Option<Vec<i64>> = axes.iter().map(|axis| self.static_size(member, axis)).collect();
        let init = match &member.initialiser {
            None if member.role == TensorRole::State => Some(Init::Constant(0.0)),
            initialiser => self.initialiser(initialiser.as_ref()?),
        };
        let (sizes, init) = (sizes?, init?);
        if initialisers::needs_fan(init) && sizes.len() < 2 {
            let span = member.initialiser.as_ref().map_or(member.name.span, |init| init.span);
            self.report(span, diag::initialiser_axes(sizes.len()));
            return None;
        }
        let shape: Vec<i64> = place.counts.iter().copied().chain(sizes).collect();
        let dims: Vec<Dim> = shape.iter().map(|size| Dim::from(*size)).collect();
        self.check_size(member.ty.span, &dims)?;
        let segment = attributes.name.as_ref().map_or(member.name.name.as_str(), |text| text.value.as_str());
        let name = join(&place.prefix, segment);
        let role = member.role;
        let trained = !place.frozen && attributes.frozen.is_none() && role == TensorRole::Param;
        let saved = role != TensorRole::State;
        let tensor = schedule::Tensor { name, shape, loops: place.counts.len(), trained, saved, init };
        let span = self.place(member.name.span).span;
        // Names can only be equal where they are with `{}` for each number.
        let form: Vec<&str> = tensor.name.split('.').map(|part| if is_index(part) { "{}" } else { part }).collect();
        let alike = self.alike.entry(form.join(".")).or_default();
        let earlier = alike.iter().map(|index| &self.tensors[*index]).find(|other| collide(&other.tensor, &tensor));
        let earlier = earlier.map(|other| other.span.start().line);
        alike.push(self.tensors.len());
        if let Some(line) = earlier {
            let message = diag::colliding_tensors(&tensor.name, line);
            let at = attributes.name.as_ref().map_or(member.name.span, |text| text.span);
            // The tensors of one layer collide together.
            if self.collided.insert((span.start().line, span.start().column)) {
                self.report(at, message);
            }
        }
        self.tensors.push(Tensor { tensor, span, role });
        let index = self.tensors.len() - 1;
        self.instance_mut().tensor_names.insert(segment.to_string(), index);
        Some(Member::Tensor(index))
    }

    fn static_size(&mut self, member: &TensorMember, axis: &'a Expr) -> Option<i64> {
        if let Some(on) = self.late_names(axis) {
            self.report(axis.span, diag::runtime_size_of_tensor(&member.name.name, &on));
            return None;
        }
        let value = self.constant(axis);
        if value.is_poison() {
            return None;
        }
        let found = self.show(&value);
        match (value.integer(), &value) {
            (Some(size), _) if size >= 1 => return Some(size),
            (Some(size), _) => {
                let message = diag::empty_axis(&member.name.name, size);
                self.report_given(axis, "at least 1", &found, message);
            }
            (None, Value::Size(dim)) => {
                let size = self.graph.symbols.show(dim);
                let message = diag::runtime_size_of_tensor(&member.name.name, &size);
                self.report_given(axis, "a constant", &found, message);
            }
            (None, _) => self.report_given(axis, "a size", &found, diag::size_expected(&found)),
        }
        None
    }

    /// Reports a value that does not fit: where it was passed for a dimension at that place, else `message`.
    pub(super) fn report_given(&mut self, expr: &Expr, expected: &str, found: &str, message: String) {
        let instance = &self.frame().layer.instance;
        let given = match &expr.kind {
            ExprKind::Name(name) => instance.given.get(name.name.as_str()).map(|given| (&name.name, given.at.clone())),
            _ => None,
        };
        match given {
            // The place is in the user's text already.
            Some((name, at)) => {
                let message = diag::dimension_kind(name, &instance.name, expected, found);
                self.errors.push(at, message);
            }
            None => self.report(expr.span, message),
        }
    }

    fn initialiser(&mut self, expr: &'a Expr) -> Option<Init> {
        // What a built-in layer computes from its sizes fails only where they do.
        let computed = self.frame().layer.instance.is_builtin() && !matches!(expr.kind, ExprKind::Name(_));
        let value = match computed {
            true => self.silently(|resolver| resolver.expression(expr)),
            false => self.expression(expr),
        };
        match value {
            Value::Init(init) => Some(init),
            Value::Poison => None,
            other => {
                let found = self.show(&other);
                let message = diag::initialiser_expected(&found, other.number());
                self.report_given(expr, "an initialiser", &found, message);
                None
            }
        }
    }

    /// The value of a tensor, or of its row where loops pick one.
    pub(super) fn read(&mut self, index: usize, rows: &[Row]) -> ValueId {
        let mut value = match self.reads.get(&(index, vec![])) {
            Some(value) => *value,
            None => {
                let tensor = self.tensors[index].tensor.clone();
                let shape = tensor.shape.iter().map(|size| Dim::from(*size)).collect();
                let trained = self.trained.get(index).copied().unwrap_or(false);
                // Memory is read in the root block, whatever loops are open.
                let open = std::mem::take(&mut self.graph.open);
                let value = self.graph.tensor(index, &tensor.name, shape, tensor.loops, trained);
                self.graph.open = open;
                self.reads.insert((index, vec![]), value);
                value
            }
        };
        let mut level = 0;
        for depth in 1..=rows.len() {
            let key = (index, rows[..depth].to_vec());
            if let Row::Each(id) = rows[depth - 1] {
                level = self.level(id).unwrap_or(level);
            }
            value = match self.reads.get(&key) {
                Some(row) => *row,
                None => {
                    let row = self.pick(value, rows[depth - 1], level);
                    self.reads.insert(key, row);
                    row
                }
            };
            level += usize::from(matches!(rows[depth - 1], Row::Each(_)));
        }
        value
    }

    /// A row of an array; nodes go to the block inside of `level` loops.
    fn pick(&mut self, array: ValueId, row: Row, level: usize) -> ValueId {
        let inner = self.graph.open.split_off(level);
        let slice = |from: i64, count: i64| Slice { axis: 0, from: Dim::from(from), to: Dim::from(from + count) };
        let mut inner = inner.into_iter();
        let value = match row {
            Row::Each(_) => {
                self.graph.open.extend(inner.next());
                self.graph.stack_in(array)
            }
            Row::At(at) => {
                let row = self.graph.emit(Op::Slice(slice(at, 1)), &[array]);
                let shape = self.graph.shape(row)[1..].to_vec();
                self.graph.reshape(row, shape)
            }
            Row::Part(from, count) => self.graph.emit(Op::Slice(slice(from, count)), &[array]),
        };
        self.graph.open.extend(inner);
        value
    }

    /// Every element of an argument of the entry must be below this; `value` is the argument, or a view of it.
    pub(super) fn limit_argument(&mut self, value: ValueId, below: &Dim) {
        let Some((node, _)) = self.graph.def(value) else { return };
        let store = match node.op {
            Op::Read(store) => store,
            Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Broadcast(_) => {
                let source = node.inputs[0];
                return self.limit_argument(source, below);
            }
            _ => return,
        };
        let store = &mut self.graph.stores[store.index()];
        if !matches!(store.kind, StoreKind::Argument(_)) || store.ty.dtype != DType::U32 {
            return;
        }
        let smaller = match (&store.below, below.constant()) {
            (Some(known), Some(new)) => known.constant().is_none_or(|known| new < known),
            (Some(_), None) => false,
            (None, _) => true,
        };
        if smaller {
            store.below = Some(below.clone());
        }
    }
}

/// The word that declares it.
pub(super) fn word(role: TensorRole) -> &'static str {
    match role {
        TensorRole::Param => "param",
        TensorRole::Buffer => "buffer",
        TensorRole::State => "state",
    }
}

/// Whether a segment of a name is an index, or stands for all of them.
fn is_index(segment: &str) -> bool {
    segment == "{}" || segment.parse::<u64>().is_ok()
}

/// Whether some element of the one has the name of some element of the other.
fn collide(a: &schedule::Tensor, b: &schedule::Tensor) -> bool {
    let (x, y): (Vec<&str>, Vec<&str>) = (a.name.split('.').collect(), b.name.split('.').collect());
    let mut counts = (a.shape.iter(), b.shape.iter());
    x.len() == y.len()
        && x.iter().zip(&y).all(|(x, y)| {
            let of = |segment: &str, count: Option<&i64>, other: &str| {
                segment == "{}" && (other == "{}" || other.parse().is_ok_and(|k: i64| Some(&k) < count))
            };
            let count_x = if *x == "{}" { counts.0.next() } else { None };
            let count_y = if *y == "{}" { counts.1.next() } else { None };
            x == y || of(x, count_x, y) || of(y, count_y, x)
        })
}
