//! Layers and models with their arguments: constants evaluated, conditions decided, tensors numbered in order of
//! declaration. An array of layers is one instance whose tensors have one more leading axis.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::items::{Defined, Found, Named, Scope};
use super::value::{Layer, Value};
use super::{Frame, Resolver, Site, describe, mentions};
use crate::diag::resolve as diag;
use crate::errors::At;
use crate::syntax::{
    Attributes, Definition, Dimension, DimensionKind, Expr, ExprKind, Function, Ident, LayerUse, MemberKind, SubLayer,
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
    /// What the layer names in it mean.
    pub(super) scope: Scope<'a>,
    /// Where its mistakes are shown, if its text is none of this invocation.
    pub(super) site: Option<Site>,
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
    pub(super) at: At,
}

/// What dimensions are given, by name.
pub(super) type GivenValues<'a> = BTreeMap<&'a str, (Value<'a>, Given)>;

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

impl<'a> Instance<'a> {
    /// Nothing yet.
    pub(super) fn empty(definition: &'a Definition, scope: Scope<'a>, site: Option<Site>) -> Instance<'a> {
        Instance {
            name: String::new(),
            definition,
            scope,
            site,
            member_path: String::new(),
            members: BTreeMap::new(),
            tensor_names: BTreeMap::new(),
            functions: vec![],
            given: BTreeMap::new(),
        }
    }

    /// Whether its text is the language's own.
    pub(super) fn is_builtin(&self) -> bool {
        matches!(self.scope, Scope::Builtin)
    }

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
    /// The instance of a model without arguments, or of a layer in a model; `None` where it must not be used.
    pub(super) fn instantiate(
        &mut self,
        defined: &Defined<'a>,
        layer: Option<&'a LayerUse>,
        place: Place,
    ) -> Option<Rc<Instance<'a>>> {
        let (item, definition) = (defined.at.item, defined.definition);
        if self.instantiating.iter().any(|outer| std::ptr::eq(*outer, item)) {
            return None;
        }
        let top = self.frames.is_empty();
        self.layers += 1;
        if self.layers > MAX_LAYERS {
            // Reported once, where the limit is passed.
            if self.layers == MAX_LAYERS + 1 {
                let span = layer.map_or(item.name.span, |layer| layer.name.span);
                self.report(span, diag::too_many_layers(MAX_LAYERS));
            }
            return None;
        }
        let used = layer.map(|layer| &layer.name);
        let site = self.site_of(defined, used);
        let given = self.given(defined, layer);
        let instance = Instance {
            name: place.name.clone(),
            member_path: place.member_path.clone(),
            given: given.iter().map(|(name, (_, given))| (*name, given.clone())).collect(),
            ..Instance::empty(definition, defined.at.scope, site.clone())
        };
        let inside = place.prefix.replace("{}", "*");
        let items = defined.passed.iter().map(|(_, at)| at.item).chain([item]);
        let patterns = items.flat_map(|item| &item.attributes.ignore);
        self.ignored.extend(patterns.map(|pattern| join(&inside, &pattern.value)));
        self.instantiating.push(item);
        self.frames.push(Frame::new(Layer { instance: Rc::new(instance), rows: vec![] }, None, site));
        for dimension in &definition.dimensions.list {
            let given = given.get(dimension.name.name.as_str()).cloned();
            let member = self.dimension(dimension, given, top);
            self.add_member(&dimension.name.name, member);
        }
        self.members(&definition.members, &place);
        self.instantiating.pop();
        self.frames.pop().map(|frame| frame.layer.instance)
    }

    /// Where mistakes in a definition are shown, as it is reached from the last frame by this name.
    pub(super) fn site_of(&self, defined: &Defined<'a>, used: Option<&Ident>) -> Option<Site> {
        // A model that is an instance names the other one itself.
        let first = defined.passed.first().map(|(of, _)| &of.name);
        self.site(defined.at, used.or(first).unwrap_or(&defined.at.item.name))
    }

    fn site(&self, at: Found<'a>, used: &Ident) -> Option<Site> {
        match at.scope {
            Scope::Own => None,
            Scope::Builtin => Some(Site::Whole(self.place(used.span))),
            Scope::Unit(_) => {
                Some(Site::Imported { member: self.place(used.span).span, layer: at.item.name.name.as_str().into() })
            }
        }
    }

    /// What the dimensions of a definition are given: by its use, else by instances on the way to it.
    pub(super) fn given(&mut self, defined: &Defined<'a>, layer: Option<&'a LayerUse>) -> GivenValues<'a> {
        let mut given = self.layer_arguments(defined.definition, layer);
        let nothing = &self.items.nothing;
        for (of, found) in &defined.passed {
            let used = layer.map(|layer| &layer.name).or(defined.passed.first().map(|(of, _)| &of.name));
            let site = self.site(*found, used.unwrap_or(&of.name));
            let instance = Instance::empty(nothing, found.scope, site.clone());
            self.frames.push(Frame::new(Layer { instance: Rc::new(instance), rows: vec![] }, None, site));
            let passed = self.layer_arguments(defined.definition, Some(of));
            self.frames.pop();
            for (name, value) in passed {
                given.entry(name).or_insert(value);
            }
        }
        given
    }

    /// What a unit has that this version of the language does not know; its own invocation knew better.
    pub(super) fn check_arrived(&mut self, defined: &Defined<'a>, used: &Ident) -> Option<()> {
        let Scope::Unit(unit) = defined.at.scope else { return Some(()) };
        let Some(mistake) = self.items.mistakes(unit).first().cloned() else { return Some(()) };
        if let Some(site) = self.site_of(defined, Some(used)) {
            self.errors.push(site.at(mistake.span), mistake.message);
        }
        None
    }

    fn add_member(&mut self, name: &'a str, member: Member<'a>) {
        self.instance_mut().members.insert(name, member);
    }

    pub(super) fn instance_mut(&mut self) -> &mut Instance<'a> {
        Rc::make_mut(&mut self.frame_mut().layer.instance)
    }

    /// The arguments between `<` and `>`, evaluated where they stand. Wrong ones were reported from the text.
    fn layer_arguments(&mut self, definition: &'a Definition, arguments: Option<&'a LayerUse>) -> GivenValues<'a> {
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
            let about = Given { text, at: self.place(argument.value.span) };
            if let Some(dimension) = dimension {
                given.insert(dimension.name.name.as_str(), (value, about));
            }
        }
        given
    }

    fn dimension(&mut self, dimension: &'a Dimension, given: Option<(Value<'a>, Given)>, top: bool) -> Member<'a> {
        if let Some((value, given)) = given {
            let fits = match (&dimension.kind, &value) {
                (_, Value::Poison) => None,
                (DimensionKind::Runtime(bounds), Value::Size(dim)) => {
                    self.check_dimension(&dimension.name.name, bounds, dim, given.at)
                }
                (DimensionKind::Runtime(_), _) => {
                    let (name, found) = (self.frame().layer.instance.name.clone(), self.show(&value));
                    self.errors.push(given.at, diag::dimension_kind(&dimension.name.name, &name, "a size", &found));
                    None
                }
                _ => Some(()),
            };
            return if fits.is_none() { Member::Poison } else { Member::Constant(value) };
        }
        match &dimension.kind {
            DimensionKind::Default(default) => {
                // An argument that a default cannot use has no use as a size either, and that is reported.
                let value = match self.frame().layer.instance.is_builtin() {
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
        let scope = self.frame().layer.instance.scope;
        let name = &layer.layer.name;
        let found = items.meant(scope, &name.name);
        if found.is_none() && matches!((scope, items.find(scope, &name.name)), (Scope::Unit(_), Named::Unknown)) {
            self.report(name.span, diag::newer_layer(&name.name));
        }
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
        let defined = items.define(found?)?;
        self.check_arrived(&defined, name)?;
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
        let instance = self.instantiate(&defined, Some(&layer.layer), inside)?;
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
