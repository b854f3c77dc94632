//! Layers and models with their arguments: constants evaluated, conditions decided, tensors numbered in order of
//! declaration. An array of layers is one instance whose tensors have one more leading axis.

use std::collections::BTreeMap;
use std::rc::Rc;

use proc_macro2::Span;

use super::items::Items;
use super::value::{Layer, Value};
use super::{Frame, Resolver, describe, mentions};
use crate::diag::resolve as diag;
use crate::syntax::{
    Attributes, Definition, Dimension, DimensionKind, Expr, ExprKind, Function, Item, ItemKind, LayerUse, MemberKind,
    SubLayer,
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
        self.frames.push(Frame::new(
            Layer { instance: Rc::new(instance), rows: vec![] },
            None,
            builtin.then_some(site),
        ));
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

    pub(super) fn instance_mut(&mut self) -> &mut Instance<'a> {
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
            Value::Text(_) | Value::Hole => self.fail(expr.span, diag::not_constant("a string")),
            value => value,
        }
    }

    /// A name in a constant that only calls can give a value, if there is one.
    pub(super) fn late_names(&self, expr: &Expr) -> Option<String> {
        let members = &self.frames.last()?.layer.instance.members;
        let mut mentioned = vec![];
        mentions::mentioned(expr, &mut mentioned);
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
}

pub(super) fn join(path: &str, segment: &str) -> String {
    match (path.is_empty(), segment.is_empty()) {
        (true, _) => segment.into(),
        (_, true) => path.into(),
        _ => format!("{path}.{segment}"),
    }
}
