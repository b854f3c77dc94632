//! A model: its members once, then each entry as a graph of its own with the dimensions that its arguments fix.

use std::collections::{BTreeMap, BTreeSet};

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{Model, Role};

use super::instance::{Instance, Place};
use super::items::{Defined, Found, Items, Scope};
use super::tensors::Tensor;
use super::value::{Layer, Value};
use super::{Argument, Entry, Frame, Local, LocalKind, Resolved, Resolver, Train, mentions};
use crate::diag::resolve as diag;
use crate::errors::{At, Errors};
use crate::ir::{Output, ROOT, Type};
use crate::syntax::{
    Attributes, Definition, DimensionKind, Expr, Function, Item, Member, MemberKind, TensorRole, TypeKind,
};

pub(super) fn resolve(item: &Item, items: &Items<'_>, errors: &mut Errors) -> Option<Resolved> {
    let defined = items.define(Found { item, scope: Scope::Own })?;
    let definition = defined.definition;
    let before = errors.count();
    let name = item.name.name.clone();
    let place = Place { name: name.clone(), ..Place::default() };
    let mut spans = vec![];
    let mut entries: Vec<Entry> = vec![];
    // Where buffers are assigned, and where a training step does it.
    let (mut assigned, mut reached) = (vec![], BTreeSet::new());
    let (mut tensors, ignored);
    let functions: Vec<&Member>;
    {
        let all: BTreeSet<&str> = runtime_dimensions(definition).map(|(name, _)| name).collect();
        let mut members = Resolver::new(items, errors, Symbols::default(), vec![]);
        let used = defined.passed.first().map_or(&item.name, |(of, _)| &of.name);
        members.check_arrived(&defined, used)?;
        members.declare_dimensions(&defined, &all);
        let instance = members.instantiate(&defined, None, place.clone())?;
        (tensors, ignored) = (members.tensors, members.ignored);
        functions = instance.functions.clone();
    }
    for member in functions {
        if let MemberKind::Function(function) = &member.kind
            && !function.visibility.is_private()
        {
            let dimensions = fixed_dimensions(definition, function);
            let mut walk = Resolver::new(items, errors, Symbols::default(), spans);
            walk.declare_dimensions(&defined, &dimensions);
            let mut entry = walk.entry(&defined, function, &member.attributes, &tensors, place.clone());
            let buffers = walk.written.iter().filter(|written| written.role == TensorRole::Buffer);
            assigned.extend(buffers.map(|written| written.at.clone()));
            let trains_otherwise = walk.depends_on_mode && member.attributes.train.is_some();
            spans = walk.spans;
            tensors = walk.tensors;
            if let Some(entry) = entry.as_mut().filter(|_| trains_otherwise) {
                let mut walk = Resolver::new(items, errors, Symbols::default(), spans);
                walk.training = true;
                walk.declare_dimensions(&defined, &dimensions);
                let other = walk.entry(&defined, function, &member.attributes, &tensors, place.clone());
                reached.extend(walk.written.iter().map(|written| position(&written.at)));
                spans = walk.spans;
                tensors = walk.tensors;
                entry.training = other.map(|other| other.graph);
            }
            entries.extend(entry);
        }
    }
    if errors.count() == before && entries.iter().any(|entry| entry.train.is_some()) {
        for at in assigned.into_iter().filter(|at| !reached.contains(&position(at))) {
            errors.push(at, diag::buffer_without_training());
        }
    }
    if errors.count() > before || !items.whole {
        return None;
    }
    let model = Model { name, tensors: tensors.into_iter().map(|tensor| tensor.tensor).collect(), ignored };
    Some(Resolved { model, entries, spans })
}

/// What tells places apart, those in layers from elsewhere too.
fn position(at: &At) -> (usize, usize, Option<(String, usize, usize)>) {
    let place = |span: proc_macro2::Span| (span.start().line, span.start().column);
    let inside =
        at.inside.as_ref().map(|inside| (inside.layer.to_string(), place(inside.span).0, place(inside.span).1));
    (place(at.span).0, place(at.span).1, inside)
}

fn runtime_dimensions(definition: &Definition) -> impl Iterator<Item = (&str, &crate::syntax::Bounds)> {
    definition.dimensions.list.iter().filter_map(|dimension| match &dimension.kind {
        DimensionKind::Runtime(bounds) => Some((dimension.name.name.as_str(), bounds)),
        _ => None,
    })
}

/// The runtime dimensions in the types of a function's parameters, through constants too.
fn fixed_dimensions<'a>(definition: &'a Definition, function: &'a Function) -> BTreeSet<&'a str> {
    let mut constants: BTreeMap<&str, &Expr> = BTreeMap::new();
    for dimension in &definition.dimensions.list {
        if let DimensionKind::Default(value) = &dimension.kind {
            constants.insert(&dimension.name.name, value);
        }
    }
    mentions::constants(&definition.members, &mut constants);
    let mut open: Vec<&str> = vec![];
    for parameter in &function.parameters {
        mentions::mentioned_in_type(&parameter.ty, &mut open);
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if seen.insert(name)
            && let Some(value) = constants.get(name)
        {
            mentions::mentioned(value, &mut open);
        }
    }
    // What a type that could not be read would have fixed is not known.
    let all = function.parameters.iter().any(|parameter| matches!(parameter.ty.kind, TypeKind::Poison));
    runtime_dimensions(definition).map(|(name, _)| name).filter(|name| all || seen.contains(name)).collect()
}

impl<'a> Resolver<'a, '_> {
    /// Symbols for the given runtime dimensions of a model. Bounds may use constants that come before.
    fn declare_dimensions(&mut self, defined: &Defined<'a>, wanted: &BTreeSet<&str>) {
        let definition = defined.definition;
        let site = self.site_of(defined, None);
        let mut scope = Instance::empty(definition, defined.at.scope, site.clone());
        // Mistakes in what is given are reported where the members are resolved.
        let given = self.silently(|resolver| resolver.given(defined, None));
        for dimension in &definition.dimensions.list {
            let name = dimension.name.name.as_str();
            if let Some((value, _)) = given.get(name) {
                if !value.is_poison() {
                    scope.members.insert(name, super::instance::Member::Constant(value.clone()));
                }
                continue;
            }
            let layer = Layer { instance: std::rc::Rc::new(scope.clone()), rows: vec![] };
            self.frames.push(Frame::new(layer, None, site.clone()));
            match &dimension.kind {
                DimensionKind::Default(value) => {
                    // Its mistakes are reported where the members are resolved.
                    let value = self.silently(|resolver| resolver.expression(value));
                    if !value.is_poison() {
                        scope.members.insert(name, super::instance::Member::Constant(value));
                    }
                }
                DimensionKind::Runtime(bounds) if wanted.contains(name) => {
                    let range = self.range(bounds);
                    let step = match &bounds.step {
                        None => Some(1),
                        Some(step) => match self.constant(step) {
                            Value::Poison => None,
                            value => match value.integer() {
                                Some(value) if value >= 1 => Some(value),
                                _ => {
                                    let found = self.show(&value);
                                    self.report(step.span, diag::step(&found));
                                    None
                                }
                            },
                        },
                    };
                    match (range, step) {
                        (Some((low, _)), _) if low < 1 => {
                            self.report(bounds.low.span, diag::low_of_dimension(name, low));
                        }
                        (Some((_, high)), _) if high > i64::from(u32::MAX) => {
                            self.report(bounds.high.span, diag::too_large());
                        }
                        (Some((low, high)), Some(step)) => {
                            let dim = self.graph.symbols.declare(name, low, high, step);
                            self.dimensions.insert(name.to_string(), dim);
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            self.frames.pop();
        }
    }

    fn entry(
        &mut self,
        defined: &Defined<'a>,
        function: &'a Function,
        attributes: &'a Attributes,
        tensors: &[Tensor],
        place: Place,
    ) -> Option<Entry> {
        // The members' own mistakes are known already.
        let instance = self.silently(|resolver| resolver.instantiate(defined, None, place))?;
        // The tables of earlier entries follow the members' tensors.
        self.tensors.extend(tensors.iter().skip(self.tensors.len()).cloned());
        let site = instance.site.clone();
        self.frames.push(Frame::new(Layer { instance, rows: vec![] }, Some(function), site));
        let at = self.place(function.name.span);
        let train = attributes.train.as_ref().map(|train| self.trains(train, tensors));
        self.trained = (0..self.tensors.len())
            .map(|index| train.as_ref().is_some_and(|train| train.tensors.contains(&index)))
            .collect();
        let (mut arguments, mut locals) = (vec![], vec![]);
        for (index, parameter) in function.parameters.iter().enumerate() {
            let (argument, value) = self.argument(index, parameter);
            arguments.extend(argument);
            let name = &parameter.name.name;
            locals.push(Local { name, value, kind: LocalKind::Parameter, assigned: None });
        }
        self.frame_mut().locals = locals;
        if arguments.len() == function.parameters.len() {
            self.check_solvable(function, &arguments);
        }
        if attributes.train.is_some() {
            self.check_loss(function);
        }
        let count = self.errors.count();
        let value = self.function_body(function);
        self.check_silence(function, count, &value);
        let results = match &value {
            Value::Nothing if attributes.train.is_some() => None,
            _ => self.results(function, value),
        };
        self.update_outputs();
        for (k, tap) in std::mem::take(&mut self.taps).into_iter().enumerate() {
            self.graph.output(Output { role: Role::Tap(k), name: tap.path, value: tap.value, loops: 0 });
        }
        self.frames.pop();
        let results = results?;
        if self.errors.is_empty() {
            let verified = self.graph.verify();
            if let Err(fault) = verified {
                self.errors.push(at, diag::internal(&function.name.name, &fault));
                return None;
            }
        }
        Some(Entry {
            name: function.name.name.clone(),
            at,
            docs: attributes.docs.clone(),
            graph: std::mem::take(&mut self.graph),
            training: None,
            train,
            arguments,
            results,
        })
    }

    /// An argument of the entry and what its name stands for inside.
    fn argument(&mut self, index: usize, parameter: &'a crate::syntax::Parameter) -> (Option<Argument>, Value<'a>) {
        let name = parameter.name.name.clone();
        let none = (None, Value::Poison);
        match &parameter.ty.kind {
            TypeKind::Tuple(_) => {
                self.report(parameter.ty.span, diag::tuple_argument(&name));
                return none;
            }
            TypeKind::Tensor(tensor) if tensor.leading.is_some() => {
                let span = tensor.leading.unwrap_or(parameter.ty.span);
                self.report(span, diag::leading_of_entry(&name));
                return none;
            }
            _ => {}
        }
        let Some(ty) = self.declared_type(&parameter.ty) else { return none };
        if self.check_size(parameter.ty.span, &ty.shape).is_none() {
            return none;
        }
        self.at(parameter.name.span);
        let value = self.graph.argument(index, &name, ty.clone());
        let Some(bounds) = &parameter.bounds else {
            return (Some(Argument { name, ty, dimension: None }), Value::Tensor(value));
        };
        if self.frame().layer.instance.members.contains_key(name.as_str()) {
            self.report(parameter.name.span, diag::dimension_as_argument(&name));
            return none;
        }
        match self.range(bounds) {
            Some((low, high)) if low >= 0 && high <= i64::from(u32::MAX) => {
                let dim = self.graph.symbols.declare(&name, low, high, 1);
                self.frame_mut().sizes.insert(&parameter.name.name, dim.clone());
                (Some(Argument { name, ty, dimension: Some(dim.clone()) }), Value::Size(dim))
            }
            Some((low, _)) if low < 0 => {
                self.report(bounds.low.span, diag::low_of_argument(&name, low));
                none
            }
            Some(_) => {
                self.report(bounds.high.span, diag::too_large());
                none
            }
            None => none,
        }
    }

    /// Every runtime dimension must follow from the sizes of the arguments.
    fn check_solvable(&mut self, function: &'a Function, arguments: &[Argument]) {
        let mut known: BTreeSet<u16> =
            arguments.iter().filter_map(|argument| argument.dimension.as_ref()).flat_map(Dim::symbols).collect();
        let lows: Vec<i64> = self.graph.symbols.declared().iter().map(|bounds| bounds.low).collect();
        let Ok(sample) = self.graph.symbols.bind(&lows) else { return };
        let axes: Vec<&Dim> = arguments.iter().flat_map(|argument| &argument.ty.shape).collect();
        loop {
            let solved = axes.iter().find_map(|axis| {
                let mut open = axis.symbols().into_iter().filter(|symbol| !known.contains(symbol));
                let symbol = open.next().filter(|_| open.next().is_none())?;
                axis.linear_in(symbol, &sample).map(|_| symbol)
            });
            match solved {
                Some(symbol) => known.insert(symbol),
                None => break,
            };
        }
        let declared = self.graph.symbols.declared();
        let open = declared.iter().find(|bounds| !known.contains(&bounds.symbol)).map(|bounds| bounds.name.to_string());
        if let Some(name) = open {
            self.report(function.name.span, diag::unsolvable_dimension(&name, &function.name.name));
        }
    }

    fn check_loss(&mut self, function: &'a Function) {
        let first = match &function.result {
            Some(ty) => match &ty.kind {
                TypeKind::Tuple(parts) => parts.first().unwrap_or(ty),
                _ => ty,
            },
            None => {
                self.report(function.name.span, diag::loss_result(&function.name.name, "nothing"));
                return;
            }
        };
        if !matches!(first.kind, TypeKind::Scalar(crate::syntax::Element::F32) | TypeKind::Poison) {
            let found = match &first.kind {
                TypeKind::Scalar(element) => element.name().to_string(),
                TypeKind::Tensor(tensor) => {
                    let axes: Vec<String> =
                        tensor.axes.iter().map(|axis| super::describe::short(axis).unwrap_or("_".into())).collect();
                    format!("{}[{}]", tensor.element.name(), axes.join(", "))
                }
                _ => "a tuple".into(),
            };
            self.report(first.span, diag::loss_result(&function.name.name, &found));
        }
    }

    /// Poison without a mistake is a fault of this compiler, never a silent one.
    fn check_silence(&mut self, function: &'a Function, before: usize, value: &Value<'a>) {
        if value.is_poison() && self.errors.count() == before && self.errors.is_empty() && self.items.whole {
            let fault = "its value could not be resolved";
            self.report(function.name.span, diag::internal(&function.name.name, fault));
        }
    }

    fn results(&mut self, function: &'a Function, value: Value<'a>) -> Option<Vec<Type>> {
        let name = function.name.name.clone();
        let values = match value {
            Value::Poison => return None,
            Value::Nothing => {
                self.report(function.name.span, diag::entry_without_result(&name));
                return None;
            }
            Value::Tuple(values) => values,
            value => vec![value],
        };
        let single = values.len() == 1;
        let span = function.body.tail.as_ref().map_or(function.name.span, |tail| tail.value.span);
        let declared: Vec<&crate::syntax::Type> = match function.result.as_ref().map(|ty| &ty.kind) {
            Some(TypeKind::Tuple(parts)) => parts.iter().collect(),
            _ => function.result.iter().collect(),
        };
        if values.iter().any(|value| matches!(value, Value::Tuple(_))) {
            self.report(span, diag::nested_result(&name));
            return None;
        }
        let mut types = vec![];
        for (k, value) in values.into_iter().enumerate() {
            let dtype = match declared.get(k).map(|ty| &ty.kind) {
                Some(TypeKind::Scalar(element)) => super::types::dtype(*element),
                _ => DType::F32,
            };
            self.at(span);
            let value = match &value {
                // A bounded argument as it is: its memory holds it already.
                Value::Size(dim) if dim.constant().is_none() => {
                    let size = self.graph.extent(dim);
                    self.graph.cast(dtype, size)
                }
                value => self.constant_as(dtype, value, &name, span)?,
            };
            debug_assert!(self.graph.value(value).block == ROOT, "results are values of the root block");
            types.push(self.graph.ty(value).clone());
            let name = if single { name.clone() } else { format!("{name}.{k}") };
            self.graph.output(Output { role: Role::Result(k), name, value, loops: 0 });
        }
        Some(types)
    }

    /// The tensors that a loss trains.
    fn trains(&mut self, train: &crate::syntax::Train, tensors: &[Tensor]) -> Train {
        let all = (0..tensors.len()).filter(|index| tensors[*index].tensor.trained);
        let Some(params) = &train.params else { return Train { params: None, tensors: all.collect() } };
        let matching: Vec<usize> = all.filter(|index| matches(&params.value, &tensors[*index].tensor.name)).collect();
        if matching.is_empty() && !tensors.is_empty() {
            let names = tensors.iter().map(|tensor| tensor.tensor.name.as_str());
            // What stands before a point may be meant with all that follows.
            let patterns = names.flat_map(|name| {
                let parts = name.match_indices('.').map(|(at, _)| format!("{}.*", &name[..at]));
                parts.chain([name.to_string()]).collect::<Vec<_>>()
            });
            let patterns: BTreeSet<String> = patterns.collect();
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            self.report(params.span, diag::pattern_without_match(&params.value, &patterns));
        }
        Train { params: Some(params.value.clone()), tensors: matching }
    }
}

/// Whether a name fits a pattern in which `*` stands for any text; indices of arrays fit `{}`'s place only by `*`.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.into_iter().any(|at| matches(rest, &name[at..]))
        }),
    }
}
