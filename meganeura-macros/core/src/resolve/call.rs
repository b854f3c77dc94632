//! Calls: of functions of the item, of layers, of what is built in. Bodies are inlined where they are called.

use proc_macro2::Span;

use super::describe::Source;
use super::instance::Member;
use super::names::unknown_method;
use super::types::Passed;
use super::value::{Layer, Value};
use super::{Frame, Local, LocalKind, Resolver, Site, arguments, functions};
use crate::diag::resolve as diag;
use crate::syntax::{Argument, Expr, ExprKind, Function, Ident};

/// Calls of an entry; functions that call each other twice over would never end.
const MAX_CALLS: u32 = 20_000;

impl<'a> Resolver<'a, '_> {
    pub(super) fn call(&mut self, span: Span, callee: &'a Expr, arguments: &'a [Argument]) -> Value<'a> {
        let ExprKind::Name(name) = &callee.kind else {
            let callee = self.expression(callee);
            return self.call_value(span, callee, arguments);
        };
        let frame = self.frame();
        let local = frame.locals.iter().rev().find(|local| local.name == name.name).map(|local| local.value.clone());
        let layer = frame.layer.clone();
        let member = layer.instance.members.get(name.name.as_str()).cloned();
        match (local, member) {
            (Some(value), _) => self.call_value(span, value, arguments),
            (None, Some(Member::Function(function))) => self.call_function(span, &layer, function, None, arguments),
            (None, Some(member)) => {
                let value = self.member(&layer, member, name);
                self.call_value(span, value, arguments)
            }
            (None, None) => self.call_builtin(&layer, name, None, arguments),
        }
    }

    /// A function of the language, an initialiser, or a name that was reported.
    fn call_builtin(
        &mut self,
        layer: &Layer<'a>,
        name: &'a Ident,
        receiver: Option<(Value<'a>, &'a Expr)>,
        arguments: &'a [Argument],
    ) -> Value<'a> {
        if let Some(row) = functions::find(&name.name, layer.instance.is_builtin()) {
            return self.call_row(row, name.span, receiver, arguments);
        }
        if receiver.is_none()
            && let Some(value) = self.called_initialiser(&name.name, name.span, arguments)
        {
            return value;
        }
        self.evaluate_all(arguments);
        if let Some((value, _)) = receiver {
            return if value.is_poison() { value } else { self.fail(name.span, unknown_method(&name.name)) };
        }
        if self.is_conditional(layer, name) {
            self.fail(name.span, diag::absent_member(&name.name))
        } else {
            Value::Poison
        }
    }

    /// Mistakes in arguments of what cannot be called are shown all the same.
    fn evaluate_all(&mut self, arguments: &'a [Argument]) {
        for argument in arguments {
            self.expression(&argument.value);
        }
    }

    fn call_value(&mut self, span: Span, callee: Value<'a>, arguments: &'a [Argument]) -> Value<'a> {
        let message = match callee {
            Value::Layer(layer) => return self.call_layer(span, &layer, "forward", arguments),
            Value::Poison => {
                self.evaluate_all(arguments);
                return Value::Poison;
            }
            Value::Layers(layer, _) => diag::call_of_array(&layer.instance.name),
            other => diag::not_callable(&self.show(&other)),
        };
        self.fail(span, message)
    }

    /// `layer(x)` and `layer.encode(x)`
    fn call_layer(&mut self, span: Span, layer: &Layer<'a>, function: &str, arguments: &'a [Argument]) -> Value<'a> {
        match layer.instance.members.get(function) {
            Some(Member::Function(function)) => self.call_function(span, layer, function, Some(layer), arguments),
            Some(Member::Poison) => {
                self.evaluate_all(arguments);
                Value::Poison
            }
            Some(Member::Layer(instance)) => {
                let layer = Layer { instance: instance.clone(), rows: layer.rows.clone() };
                self.call_layer(span, &layer, "forward", arguments)
            }
            _ => {
                self.evaluate_all(arguments);
                let functions = layer.instance.functions.iter().filter_map(|member| member.name());
                let functions: Vec<&str> = functions.map(|name| name.name.as_str()).collect();
                self.fail(span, diag::no_function(&layer.instance.name, function, &functions))
            }
        }
    }

    /// `x.relu()`, `layer.encode(x)`, `x.t()`
    pub(super) fn method(&mut self, receiver: &'a Expr, name: &'a Ident, arguments: &'a [Argument]) -> Value<'a> {
        let value = self.expression(receiver);
        let layer = self.frame().layer.clone();
        match value {
            Value::Layer(layer) => self.call_layer(name.span, &layer, &name.name, arguments),
            Value::Layers(layer, _) => {
                self.evaluate_all(arguments);
                self.fail(name.span, diag::call_of_array(&layer.instance.name))
            }
            value => match layer.instance.members.get(name.name.as_str()).cloned() {
                Some(Member::Function(function)) => {
                    self.call_with(name.span, &layer, function, None, Some((value, receiver)), arguments)
                }
                _ => self.call_builtin(&layer, name, Some((value, receiver)), arguments),
            },
        }
    }

    fn call_function(
        &mut self,
        span: Span,
        layer: &Layer<'a>,
        function: &'a Function,
        as_layer: Option<&Layer<'a>>,
        arguments: &'a [Argument],
    ) -> Value<'a> {
        self.call_with(span, layer, function, as_layer, None, arguments)
    }

    /// `as_layer`: the call names the layer, not the function.
    fn call_with(
        &mut self,
        span: Span,
        layer: &Layer<'a>,
        function: &'a Function,
        as_layer: Option<&Layer<'a>>,
        receiver: Option<(Value<'a>, &'a Expr)>,
        arguments: &'a [Argument],
    ) -> Value<'a> {
        let callee = match as_layer {
            Some(layer) if function.name.name == "forward" => layer.instance.name.clone(),
            _ => function.name.name.clone(),
        };
        let names: Vec<&str> = function.parameters.iter().map(|parameter| parameter.name.name.as_str()).collect();
        let skip = usize::from(receiver.is_some()).min(names.len());
        let bound = arguments::bind(&callee, span, &names[skip..], names.len() - skip, arguments);
        let mut values: Vec<Passed<'a>> =
            receiver.into_iter().map(|(value, expr)| Some((value, Source::Expr(expr)))).take(skip).collect();
        match bound {
            Ok(slots) => {
                for slot in slots {
                    let value = slot.map(|expr| (self.expression(expr), Source::Expr(expr)));
                    values.push(value);
                }
            }
            Err(errors) => {
                errors.into_iter().for_each(|error| self.report(error.span, error.message));
                self.evaluate_all(arguments);
                values.resize(names.len(), None);
            }
        }
        let key = (std::rc::Rc::as_ptr(&layer.instance), function.name.name.as_str());
        let on_stack = |frame: &Frame<'a>| (std::rc::Rc::as_ptr(&frame.layer.instance), frame.function) == key;
        if self.frames.iter().any(on_stack) {
            return self.fail(span, diag::recursive_function(&function.name.name));
        }
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return self.fail(span, diag::too_many_calls(MAX_CALLS));
        }
        let caller = self.frame().site.clone();
        let site = match &layer.instance.site {
            Some(Site::Whole(_)) => Some(Site::Whole(self.place(span))),
            site => site.clone(),
        };
        self.frames.push(Frame::new(layer.clone(), Some(function), site));
        let input = as_layer.is_some() && function.parameters.len() == 1 && function.name.name == "forward";
        let values = self.match_parameters(function, &callee, input, values, caller.as_ref());
        let locals = function
            .parameters
            .iter()
            .zip(values)
            .map(|(parameter, value)| Local {
                name: &parameter.name.name,
                value,
                kind: LocalKind::Parameter,
                assigned: None,
            })
            .collect();
        self.frame_mut().locals = locals;
        let origin = self.graph.origin.clone();
        let result = self.function_body(function);
        self.frames.pop();
        self.graph.origin = origin;
        result
    }
}
