//! Layers and models with their arguments: constants evaluated, conditions decided, tensors numbered in order of
//! declaration. An array of layers is one instance whose tensors have one more leading axis.

use std::collections::BTreeMap;
use std::rc::Rc;

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{self, Init};
use proc_macro2::Span;

use super::items::Items;
use super::value::{Layer, LoopId, Value};
use super::{Frame, Resolver, describe, initialisers, names};
use crate::diag::resolve as diag;
use crate::ir::{StoreKind, ValueId};
use crate::ops::Op;
use crate::syntax::{
    Attributes, Definition, Dimension, DimensionKind, Element, Expr, ExprKind, Function, Item, ItemKind, LayerUse,
    MemberKind, SubLayer, TensorMember, TypeKind,
};

/// Layers of a model, each array counted once; layers inside layers inside layers could be without number.
const MAX_LAYERS: u32 = 20_000;

/// Members of an item with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Instance<'a> {
    /// What messages call it: the member, or the model.
    pub(super) name: String,
    /// What it was made of.
    pub(super) definition: &'a Definition,
    /// Whether its text is not the user's.
    pub(super) builtin: bool,
    /// Dotted names of members, for origins of nodes.
    pub(super) member_path: String,
    pub(super) members: BTreeMap<&'a str, Member<'a>>,
    /// Tensors by the last segment of their names.
    pub(super) tensor_names: BTreeMap<String, usize>,
    /// Functions in order.
    pub(super) functions: Vec<&'a crate::syntax::Member>,
    /// What was passed for dimensions.
    pub(super) given: BTreeMap<&'a str, Given>,
}

/// What a dimension was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    /// The text of the argument, if it is short and says more than its value.
    pub(super) text: Option<String>,
    /// Where it stands.
    pub(super) span: Span,
}

/// What a name of an item stands for.
#[derive(Clone, Debug)]
pub(super) enum Member<'a> {
    /// A mistake was reported.
    Poison,
    /// A dimension or a `let`.
    Constant(Value<'a>),
    /// A sub-layer.
    Layer(Rc<Instance<'a>>),
    /// An array of them, and its length.
    Layers(Rc<Instance<'a>>, i64),
    /// A tensor.
    Tensor(usize),
    /// A function.
    Function(&'a Function),
    /// It depends on a runtime dimension that no argument of this entry fixes.
    Unbound(String),
    /// A constant over dimensions that the call binds.
    Late(&'a Expr),
}

impl Member<'_> {
    /// Whether `layer.name` reaches it.
    pub(super) fn is_visible(&self) -> bool {
        !matches!(self, Member::Constant(_) | Member::Unbound(_) | Member::Late(_))
    }
}

impl Instance<'_> {
    /// The names that `layer.name` reaches.
    pub(super) fn visible(&self) -> Vec<&str> {
        let members = self.members.iter().filter(|(_, member)| member.is_visible()).map(|(name, _)| *name);
        members.chain(self.tensor_names.keys().map(String::as_str)).collect()
    }
}

/// A tensor of the model.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) tensor: schedule::Tensor,
    /// The member that declares it.
    pub(super) span: Span,
}

/// Where an instance stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) member_path: String,
    /// The names of tensors inside begin with this.
    pub(super) prefix: String,
    /// Lengths of the arrays around it.
    pub(super) counts: Vec<i64>,
    pub(super) frozen: bool,
}

impl<'a> Resolver<'a, '_> {
    /// The instance of an item; `None` where it must not be used.
    pub(super) fn instantiate(
        &mut self,
        item: &'a Item,
        builtin: bool,
        arguments: Option<&'a LayerUse>,
        place: Place,
    ) -> Option<Rc<Instance<'a>>> {
        let definition = Items::definition(item)?;
        let name = item.name.name.as_str();
        if self.instantiating.contains(&name) {
            return None;
        }
        self.layers += 1;
        if self.layers > MAX_LAYERS {
            // Reported once, where the limit is passed.
            if self.layers == MAX_LAYERS + 1 {
                let span = arguments.map_or(item.name.span, |layer| layer.name.span);
                self.report(span, diag::too_many_layers(MAX_LAYERS));
            }
            return None;
        }
        let site = arguments.map_or(item.name.span, |layer| layer.name.span);
        let arguments = self.layer_arguments(definition, arguments);
        let instance = Instance {
            name: place.name.clone(),
            definition,
            builtin,
            member_path: place.member_path.clone(),
            members: BTreeMap::new(),
            tensor_names: BTreeMap::new(),
            functions: vec![],
            given: arguments.iter().map(|(name, (_, given))| (*name, given.clone())).collect(),
        };
        self.instantiating.push(name);
        self.frames.push(Frame {
            layer: Layer { instance: Rc::new(instance), rows: vec![] },
            function: "",
            locals: vec![],
            sizes: BTreeMap::new(),
            leading: None,
            site: builtin.then_some(site),
            statement: 0,
        });
        for dimension in &definition.dimensions.list {
            let given = arguments.get(dimension.name.name.as_str()).map(|(value, _)| value.clone());
            let top = self.frames.len() == 1;
            let member = self.dimension(dimension, given, top && item.kind == ItemKind::Model);
            self.add_member(&dimension.name.name, member);
        }
        self.members(&definition.members, &place);
        self.instantiating.pop();
        self.frames.pop().map(|frame| frame.layer.instance)
    }

    fn add_member(&mut self, name: &'a str, member: Member<'a>) {
        self.instance_mut().members.insert(name, member);
    }

    fn instance_mut(&mut self) -> &mut Instance<'a> {
        Rc::make_mut(&mut self.frame_mut().layer.instance)
    }

    /// The arguments between `<` and `>`, evaluated where they stand. Wrong ones were reported from the text.
    fn layer_arguments(
        &mut self,
        definition: &'a Definition,
        arguments: Option<&'a LayerUse>,
    ) -> BTreeMap<&'a str, (Value<'a>, Given)> {
        let mut given = BTreeMap::new();
        let mut positions = definition.dimensions.list.iter();
        for argument in arguments.iter().flat_map(|layer| &layer.arguments) {
            let dimension = match &argument.name {
                None => positions.next(),
                Some(name) => definition.dimensions.list.iter().find(|dimension| dimension.name.name == name.name),
            };
            let value = match self.late_names(&argument.value) {
                Some(_) => Value::Poison,
                None => self.constant(&argument.value),
            };
            let is_literal = matches!(argument.value.kind, ExprKind::Int(_));
            let text = describe::short(&argument.value).filter(|_| !is_literal);
            let about = Given { text, span: argument.value.span };
            if let Some(dimension) = dimension {
                given.insert(dimension.name.name.as_str(), (value, about));
            }
        }
        given
    }

    fn dimension(&mut self, dimension: &'a Dimension, given: Option<Value<'a>>, top: bool) -> Member<'a> {
        if let Some(value) = given {
            return if value.is_poison() { Member::Poison } else { Member::Constant(value) };
        }
        match &dimension.kind {
            DimensionKind::Default(default) => {
                // An argument that a default cannot use has no use as a size either, and that is reported.
                let value = match self.frame().layer.instance.builtin {
                    true => self.silently(|resolver| resolver.constant(default)),
                    false => self.constant(default),
                };
                if value.is_poison() { Member::Poison } else { Member::Constant(value) }
            }
            DimensionKind::Runtime(_) => match self.dimensions.get(&dimension.name.name) {
                Some(dim) if top => Member::Constant(Value::Size(dim.clone())),
                _ => Member::Unbound(dimension.name.name.clone()),
            },
            DimensionKind::Required | DimensionKind::Poison => Member::Poison,
        }
    }

    /// The value of an expression that must be known now.
    pub(super) fn constant(&mut self, expr: &'a Expr) -> Value<'a> {
        match self.expression(expr) {
            value @ (Value::Tensor(_) | Value::Layer(_) | Value::Layers(..) | Value::Tuple(_) | Value::Nothing) => {
                let found = self.show(&value);
                self.fail(expr.span, diag::not_constant(&found))
            }
            Value::Text | Value::Hole => self.fail(expr.span, diag::not_constant("a string")),
            value => value,
        }
    }

    /// A name in a constant that only calls can give a value, if there is one.
    fn late_names(&self, expr: &Expr) -> Option<String> {
        let members = &self.frames.last()?.layer.instance.members;
        let mut mentioned = vec![];
        names::mentioned(expr, &mut mentioned);
        mentioned.into_iter().find_map(|name| match members.get(name) {
            Some(Member::Unbound(on)) => Some(on.clone()),
            Some(Member::Late(_)) => Some(name.to_string()),
            _ => None,
        })
    }

    fn members(&mut self, members: &'a [crate::syntax::Member], place: &Place) {
        for member in members {
            match &member.kind {
                MemberKind::Let(constant) => {
                    let value = if self.late_names(&constant.value).is_some() {
                        Member::Late(&constant.value)
                    } else {
                        match self.constant(&constant.value) {
                            Value::Poison => Member::Poison,
                            value => Member::Constant(value),
                        }
                    };
                    self.add_member(&constant.name.name, value);
                }
                MemberKind::Layer(layer) => {
                    let value = self.sub_layer(layer, &member.attributes, place).unwrap_or(Member::Poison);
                    self.add_member(&layer.name.name, value);
                }
                MemberKind::Tensor(tensor) => {
                    let value = self.tensor_member(tensor, &member.attributes, place).unwrap_or(Member::Poison);
                    self.add_member(&tensor.name.name, value);
                }
                MemberKind::Function(function) => {
                    self.add_member(&function.name.name, Member::Function(function));
                    self.instance_mut().functions.push(member);
                }
                MemberKind::Poison(name) => {
                    if let Some(name) = name {
                        self.add_member(&name.name, Member::Poison);
                    }
                }
                MemberKind::If(choice) => {
                    let mut chosen = choice.otherwise.as_deref();
                    for (condition, branch) in &choice.branches {
                        match self.condition(condition) {
                            Some(false) => continue,
                            Some(true) => chosen = Some(branch),
                            None => {
                                let all = choice.branches.iter().flat_map(|(_, members)| members);
                                for name in all.chain(choice.otherwise.iter().flatten()).filter_map(|m| m.name()) {
                                    self.add_member(&name.name, Member::Poison);
                                }
                                chosen = None;
                            }
                        }
                        break;
                    }
                    if let Some(chosen) = chosen {
                        self.members(chosen, place);
                    }
                }
            }
        }
    }

    fn sub_layer(&mut self, layer: &'a SubLayer, attributes: &'a Attributes, place: &Place) -> Option<Member<'a>> {
        let items = self.items;
        let found = items.meant(&layer.layer.name.name);
        if let Some(on) = layer.layer.arguments.iter().find_map(|argument| self.late_names(&argument.value)) {
            return Some(Member::Unbound(on));
        }
        let count = match &layer.count {
            None => None,
            Some(count) => match self.constant(count) {
                Value::Poison => return None,
                value => match value.integer() {
                    Some(length) if length >= 1 => Some(length),
                    Some(length) => {
                        self.report(count.span, diag::empty_array(&layer.name.name, length));
                        return None;
                    }
                    None => {
                        let found = self.show(&value);
                        self.report(count.span, diag::array_length(&layer.name.name, &found));
                        return None;
                    }
                },
            },
        };
        let (item, builtin) = found?;
        let segment = attributes.name.as_ref().map_or(layer.name.name.as_str(), |text| text.value.as_str());
        let mut prefix = join(&place.prefix, segment);
        if count.is_some() {
            prefix = join(&prefix, "{}");
        }
        let inside = Place {
            name: layer.name.name.clone(),
            member_path: join(&place.member_path, &layer.name.name),
            prefix,
            counts: place.counts.iter().copied().chain(count).collect(),
            frozen: place.frozen || attributes.frozen.is_some(),
        };
        let instance = self.instantiate(item, builtin, Some(&layer.layer), inside)?;
        Some(match count {
            None => Member::Layer(instance),
            Some(count) => Member::Layers(instance, count),
        })
    }

    fn tensor_member(
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
            self.report(member.ty.span, diag::parameter_type(element.name()));
            return None;
        }
        let sizes: Option<Vec<i64>> = axes.iter().map(|axis| self.static_size(member, axis)).collect();
        let init = self.initialiser(member.initialiser.as_ref()?);
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
        let trained = !place.frozen && attributes.frozen.is_none();
        let tensor = schedule::Tensor { name, shape, loops: place.counts.len(), trained, init };
        let span = self.place(member.name.span);
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
        self.tensors.push(Tensor { tensor, span });
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
            ExprKind::Name(name) => instance.given.get(name.name.as_str()).map(|given| (&name.name, given.span)),
            _ => None,
        };
        match given {
            // The place is in the user's text already.
            Some((name, span)) => {
                let message = diag::dimension_kind(name, &instance.name, expected, found);
                self.errors.push(span, message);
            }
            None => self.report(expr.span, message),
        }
    }

    fn initialiser(&mut self, expr: &'a Expr) -> Option<Init> {
        // What a built-in layer computes from its sizes fails only where they do.
        let computed = self.frame().layer.instance.builtin && !matches!(expr.kind, ExprKind::Name(_));
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
    pub(super) fn read(&mut self, index: usize, rows: &[LoopId]) -> ValueId {
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
        for depth in 1..=rows.len() {
            let key = (index, rows[..depth].to_vec());
            value = match self.reads.get(&key) {
                Some(row) => *row,
                None => {
                    let level = self.loops.iter().position(|id| *id == rows[depth - 1]).map_or(0, |level| level + 1);
                    let inner = self.graph.open.split_off(level);
                    let row = self.graph.stack_in(value);
                    self.graph.open.extend(inner);
                    self.reads.insert(key, row);
                    row
                }
            };
        }
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

fn join(path: &str, segment: &str) -> String {
    match (path.is_empty(), segment.is_empty()) {
        (true, _) => segment.into(),
        (_, true) => path.into(),
        _ => format!("{path}.{segment}"),
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
