//! What the text of a function shows: unknown names, wrong arities, and forms that are not available yet.

use std::collections::BTreeSet;

use super::items::{Items, Scope};
use super::mentions::{find_members, parts};
use super::{arguments, functions, initialisers};
use crate::diag::resolve as diag;
use crate::errors::Errors;
use crate::syntax::{
    Argument, Assign, Block, Definition, Element, Expr, ExprKind, Function, Ident, If, ItemKind, Member, MemberKind,
    Over, Statement, StatementKind, Type, TypeKind,
};

/// The walk over one item.
pub(super) struct Names<'a, 'e> {
    pub(super) items: &'a Items<'a>,
    pub(super) scope: Scope<'a>,
    pub(super) errors: &'e mut Errors,
    pub(super) definition: &'a Definition,
    pub(super) kind: ItemKind,
    /// Whether the names of all dimensions could be read.
    pub(super) complete: bool,
    /// Dimensions and members.
    pub(super) members: BTreeSet<&'a str>,
    pub(super) locals: Vec<Local<'a>>,
}

/// A name inside a function.
#[derive(Clone, Copy)]
pub(super) struct Local<'a> {
    name: &'a str,
    /// Whether a loop picks it from an array of layers.
    is_layer: bool,
}

impl<'a> Local<'a> {
    fn value(name: &'a str) -> Local<'a> {
        Local { name, is_layer: false }
    }
}

/// The message about a name that is called as a method and is no function that is available.
pub(super) fn unknown_method(name: &str) -> String {
    if functions::UNAVAILABLE.contains(&name) {
        return diag::not_available(&format!("`{name}`"));
    }
    diag::function_habit(name).unwrap_or_else(|| diag::unknown_name(name, functions::names()))
}

impl<'a> Names<'a, '_> {
    fn known(&self, name: &str) -> bool {
        !self.complete || self.is_local(name) || self.members.contains(name)
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|local| local.name == name)
    }

    /// All names that may be meant.
    fn own(&self) -> Vec<&'a str> {
        self.locals.iter().map(|local| local.name).chain(self.members.iter().copied()).collect()
    }

    /// The constants, tensors, layers and functions of an item.
    pub(super) fn members(&mut self, members: &'a [Member]) {
        for member in members {
            match &member.kind {
                MemberKind::Let(constant) => self.constant(&constant.value),
                MemberKind::Layer(layer) => {
                    layer.layer.arguments.iter().for_each(|argument| self.constant(&argument.value));
                    layer.count.iter().for_each(|count| self.constant(count));
                }
                MemberKind::Tensor(tensor) => {
                    self.ty(&tensor.ty, false, &mut vec![]);
                    tensor.initialiser.iter().for_each(|value| self.constant(value));
                }
                MemberKind::If(choice) => {
                    for (condition, members) in &choice.branches {
                        self.constant(condition);
                        self.members(members);
                    }
                    choice.otherwise.iter().for_each(|members| self.members(members));
                }
                MemberKind::Function(function) => {
                    self.function(function, self.kind == ItemKind::Model && !function.visibility.is_private());
                }
                MemberKind::Poison(_) => {}
            }
        }
    }

    fn unknown(&mut self, name: &Ident, functions: bool) {
        let mut known: Vec<&str> = self.own();
        for builtin in functions::names().filter(|_| functions).chain(initialisers::names()) {
            known.push(builtin);
        }
        let message = diag::unknown_name(&name.name, known);
        self.errors.push(name.span, message);
    }

    /// An expression outside of functions.
    pub(super) fn constant(&mut self, expr: &'a Expr) {
        self.expression(expr);
    }

    pub(super) fn function(&mut self, function: &'a Function, entry: bool) {
        let mut bound = vec![];
        for parameter in &function.parameters {
            let is_scalar = matches!(parameter.ty.kind, TypeKind::Scalar(Element::U32));
            if is_scalar && (!entry || parameter.bounds.is_some()) {
                self.locals.push(Local::value(&parameter.name.name));
            }
        }
        for parameter in &function.parameters {
            self.ty(&parameter.ty, !entry, &mut bound);
            if let Some(bounds) = &parameter.bounds {
                self.expression(&bounds.low);
                self.expression(&bounds.high);
            }
        }
        self.locals.extend(bound.drain(..).map(Local::value));
        if let Some(ty) = &function.result {
            self.no_bytes(ty);
            self.ty(ty, false, &mut vec![]);
        }
        let mut seen: Vec<&str> = vec![];
        for parameter in &function.parameters {
            let name = parameter.name.name.as_str();
            if seen.contains(&name) && name != "_" {
                self.errors.push(parameter.name.span, diag::repeated_parameter(name));
            }
            seen.push(name);
        }
        self.locals.extend(seen.into_iter().map(Local::value));
        self.block(&function.body);
        self.locals.clear();
    }

    /// Bytes are widened when they come in, so there are none to give back.
    fn no_bytes(&mut self, ty: &'a Type) {
        match &ty.kind {
            TypeKind::Tuple(parts) => parts.iter().for_each(|part| self.no_bytes(part)),
            TypeKind::Tensor(tensor) if tensor.element == Element::U8 => {
                self.errors.push(ty.span, diag::result_of_bytes());
            }
            TypeKind::Scalar(Element::U8) => self.errors.push(ty.span, diag::result_of_bytes()),
            _ => {}
        }
    }

    /// A type; names that only it mentions are bound by the call, where that is allowed.
    fn ty(&mut self, ty: &'a Type, binds: bool, bound: &mut Vec<&'a str>) {
        match &ty.kind {
            TypeKind::Tensor(tensor) => {
                for axis in &tensor.axes {
                    match &axis.kind {
                        ExprKind::Name(name) if !self.known(&name.name) && !bound.contains(&name.name.as_str()) => {
                            if binds {
                                bound.push(&name.name);
                            } else {
                                let is_model = self.kind == ItemKind::Model;
                                let message = diag::unknown_size(&name.name, self.own(), is_model);
                                self.errors.push(name.span, message);
                            }
                        }
                        ExprKind::Name(_) => {}
                        _ => {
                            let count = self.locals.len();
                            self.locals.extend(bound.iter().copied().map(Local::value));
                            self.expression(axis);
                            self.locals.truncate(count);
                        }
                    }
                }
            }
            TypeKind::Tuple(parts) => parts.iter().for_each(|part| self.ty(part, binds, bound)),
            TypeKind::Scalar(_) | TypeKind::Poison => {}
        }
    }

    fn block(&mut self, block: &'a Block) {
        let outside = self.locals.len();
        block.statements.iter().for_each(|statement| self.statement(statement));
        block.tail.iter().for_each(|tail| self.expression(&tail.value));
        self.locals.truncate(outside);
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Let(pattern, value) => {
                self.expression(value);
                let names: Vec<&'a Ident> = pattern.bindings().iter().map(|binding| &binding.name).collect();
                for (k, name) in names.iter().enumerate() {
                    if names[..k].iter().any(|other| other.name == name.name) {
                        self.errors.push(name.span, diag::repeated_parameter(&name.name));
                    }
                }
                self.locals.extend(names.iter().map(|name| Local::value(&name.name)));
            }
            StatementKind::Assign(assign) => self.assign(assign),
            StatementKind::For(repeat) => {
                let outside = self.locals.len();
                match &repeat.over {
                    Over::Each { item, array } => {
                        self.expression(array);
                        self.locals.push(Local { name: &item.name, is_layer: true });
                    }
                    Over::Numbered { index, item, array } => {
                        self.expression(array);
                        self.locals.push(Local::value(&index.name));
                        self.locals.push(Local { name: &item.name, is_layer: true });
                    }
                    Over::Together { items, arrays } => {
                        arrays.iter().for_each(|array| self.expression(array));
                        self.locals.extend(items.iter().map(|item| Local { name: &item.name, is_layer: true }));
                    }
                    Over::Range { index, bounds } => {
                        self.expression(&bounds.low);
                        self.expression(&bounds.high);
                        self.locals.push(Local::value(&index.name));
                    }
                    Over::Poison(names) => {
                        self.locals.extend(names.iter().map(|name| Local { name: &name.name, is_layer: true }));
                    }
                }
                self.block(&repeat.body);
                self.locals.truncate(outside);
            }
            StatementKind::If(choice) => self.choice(choice),
            StatementKind::Expr(value) => self.expression(value),
            StatementKind::Poison(names) => self.locals.extend(names.iter().map(|name| Local::value(&name.name))),
        }
    }

    fn assign(&mut self, assign: &'a Assign) {
        if !self.known(&assign.name.name) {
            let message = diag::unknown_name(&assign.name.name, self.own());
            self.errors.push(assign.name.span, message);
        }
        for index in assign.index.iter().flatten() {
            parts(index).for_each(|part| self.expression(part));
        }
        self.expression(&assign.value);
    }

    fn choice(&mut self, choice: &'a If) {
        for (condition, block) in &choice.branches {
            self.expression(condition);
            self.block(block);
        }
        choice.otherwise.iter().for_each(|block| self.block(block));
    }

    fn arguments(&mut self, arguments: &'a [Argument]) {
        arguments.iter().for_each(|argument| self.expression(&argument.value));
    }

    fn expression(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Name(name) => {
                if !self.known(&name.name) && initialisers::plain(&name.name).is_none() {
                    let message = if functions::find(&name.name, false).is_some() {
                        diag::function_as_value(&name.name)
                    } else {
                        return self.unknown(name, false);
                    };
                    self.errors.push(name.span, message);
                }
            }
            ExprKind::Unary(_, operand) => self.expression(operand),
            ExprKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Call(callee, arguments) => {
                match &callee.kind {
                    ExprKind::Name(name) => self.call(expr, name, arguments),
                    _ => self.expression(callee),
                }
                self.arguments(arguments);
            }
            ExprKind::Method(receiver, name, arguments) => {
                self.expression(receiver);
                self.method(receiver, name, arguments);
                self.arguments(arguments);
            }
            ExprKind::Field(base, _) => self.expression(base),
            ExprKind::Index(base, indices) => {
                self.expression(base);
                for index in indices {
                    parts(index).for_each(|part| self.expression(part));
                }
            }
            ExprKind::Array(parts) | ExprKind::Tuple(parts) => parts.iter().for_each(|part| self.expression(part)),
            ExprKind::If(choice) => self.choice(choice),
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Hole
            | ExprKind::Poison => {}
        }
    }

    fn call(&mut self, expr: &Expr, name: &'a Ident, arguments: &'a [Argument]) {
        if self.is_local(&name.name) || !self.complete {
            return;
        }
        if self.members.contains(name.name.as_str()) {
            self.own_arity(expr, name, arguments);
            return;
        }
        if let Some(row) = functions::find(&name.name, false).filter(|row| row.name != "t") {
            let bound = functions::bind(&row, name.span, false, arguments);
            bound.err().into_iter().flatten().for_each(|error| self.errors.add(error));
        } else if functions::UNAVAILABLE.contains(&name.name.as_str()) {
            self.errors.push(name.span, diag::not_available(&format!("`{name}`")));
        } else if let Some((_, parameters)) = initialisers::CALLED.iter().find(|(known, _)| *known == name.name) {
            let bound = arguments::bind(&name.name, name.span, parameters, parameters.len(), arguments);
            bound.err().into_iter().flatten().for_each(|error| self.errors.add(error));
        } else if self.items.is_item(self.scope, &name.name) {
            self.errors.push(name.span, diag::layer_as_function(&name.name));
        } else if let Some(message) = diag::function_habit(&name.name) {
            self.errors.push(name.span, message);
        } else {
            self.unknown(name, true);
        }
    }

    /// The number and the names of arguments of the item's own functions and sub-layers.
    fn own_arity(&mut self, expr: &Expr, name: &Ident, arguments: &'a [Argument]) {
        let mut found = vec![];
        find_members(&self.definition.members, &name.name, &mut found);
        let [member] = found[..] else { return };
        let function = match &member.kind {
            MemberKind::Function(function) => function,
            MemberKind::Layer(layer) if layer.count.is_none() => {
                let items = self.items;
                let found = items.find(self.scope, &layer.layer.name.name).found();
                let Some(defined) = found.and_then(|found| items.define(found)) else { return };
                let mut forward = vec![];
                find_members(&defined.definition.members, "forward", &mut forward);
                match forward.first().map(|member| &member.kind) {
                    Some(MemberKind::Function(function)) => function,
                    _ => return,
                }
            }
            _ => return,
        };
        let names: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name.name.as_str()).collect();
        let bound = arguments::bind(&name.name, expr.span, &names, names.len(), arguments);
        bound.err().into_iter().flatten().for_each(|error| self.errors.add(error));
    }

    /// `x.relu()`: of a layer's functions only values know more.
    fn method(&mut self, receiver: &Expr, name: &'a Ident, arguments: &'a [Argument]) {
        let is_layer = match &receiver.kind {
            ExprKind::Name(name) => self.is_layer(&name.name),
            ExprKind::Field(..) | ExprKind::Index(..) => true,
            _ => false,
        };
        if is_layer || self.members.contains(name.name.as_str()) {
            return;
        }
        match functions::find(&name.name, false) {
            Some(row) => {
                let bound = functions::bind(&row, name.span, true, arguments);
                bound.err().into_iter().flatten().for_each(|error| self.errors.add(error));
            }
            None => self.errors.push(name.span, unknown_method(&name.name)),
        }
    }

    /// Whether a name stands for a layer, or may.
    fn is_layer(&self, name: &str) -> bool {
        if let Some(local) = self.locals.iter().rev().find(|local| local.name == name) {
            return local.is_layer;
        }
        let mut found = vec![];
        find_members(&self.definition.members, name, &mut found);
        found.iter().any(|member| matches!(member.kind, MemberKind::Layer(_) | MemberKind::Poison(_)))
    }
}
