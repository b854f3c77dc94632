//! Bodies of functions: statements in order, then the value.

use super::value::Value;
use super::{Frame, Local, LocalKind, Resolver, Stated};
use crate::diag::resolve as diag;
use crate::syntax::{Assign, Binding, Block, Expr, Function, Pattern, Statement, StatementKind, TensorRole};

impl<'a> Resolver<'a, '_> {
    /// The value of a function whose frame is the last one; of the declared type wherever that is known.
    pub(super) fn function_body(&mut self, function: &'a Function) -> Value<'a> {
        let value = self.block_value(&function.body);
        match &function.result {
            Some(ty) => {
                let (span, number) = match &function.body.tail {
                    Some(tail) => (tail.value.span, tail.number),
                    None => (ty.span, 0),
                };
                let frame = self.frame_mut();
                let stated = function.body.tail.as_ref().map_or(Stated::Nothing, |tail| Stated::Tail(&tail.value));
                frame.state(number, stated);
                // Names in the type are sizes, never locals.
                frame.locals.clear();
                self.match_result(function, ty, span, value)
            }
            None => match value {
                Value::Poison | Value::Nothing => value,
                value => {
                    let span = function.body.tail.as_ref().map_or(function.name.span, |tail| tail.value.span);
                    let found = self.show(&value);
                    self.fail(span, diag::undeclared_result(&function.name.name, &found))
                }
            },
        }
    }

    /// The value of a block; its names end with it.
    pub(super) fn block_value(&mut self, block: &'a Block) -> Value<'a> {
        let Frame { locals, statement, stated, .. } = self.frame();
        let (outside, number, stated) = (locals.len(), *statement, *stated);
        for statement in &block.statements {
            self.statement(statement);
        }
        let value = match &block.tail {
            Some(tail) => {
                self.frame_mut().state(tail.number, Stated::Tail(&tail.value));
                self.expression(&tail.value)
            }
            None => Value::Nothing,
        };
        let frame = self.frame_mut();
        frame.locals.truncate(outside);
        frame.state(number, stated);
        value
    }

    fn statement(&mut self, statement: &'a Statement) {
        self.frame_mut().state(statement.number, Stated::Statement(statement));
        match &statement.kind {
            StatementKind::Let(pattern, value) => self.let_statement(pattern, value),
            StatementKind::Assign(assign) => self.assign(assign),
            StatementKind::For(repeat) => self.repeat(repeat),
            StatementKind::If(choice) => {
                if let Some(Some(block)) = self.choose(choice) {
                    self.block_value(block);
                }
            }
            StatementKind::Expr(value) => {
                self.expression(value);
            }
            StatementKind::Poison(names) => {
                for name in names {
                    self.bind(&Binding { name: name.clone(), mutable: true }, &name.name, Value::Poison);
                }
            }
        }
    }

    fn bind(&mut self, binding: &Binding, name: &'a str, value: Value<'a>) {
        let kind = if binding.mutable { LocalKind::Mutable } else { LocalKind::Fixed };
        self.frame_mut().locals.push(Local { name, value, kind, assigned: None });
    }

    fn let_statement(&mut self, pattern: &'a Pattern, expr: &'a Expr) {
        let value = self.expression(expr);
        match pattern {
            Pattern::Name(binding) => {
                let value = match value {
                    Value::Nothing => self.fail(expr.span, diag::value_expected()),
                    value => value,
                };
                self.bind(binding, &binding.name.name, value);
            }
            Pattern::Tuple(bindings, span) => {
                let values = match value {
                    Value::Tuple(values) if values.len() == bindings.len() => values,
                    Value::Poison => vec![],
                    Value::Tuple(values) => {
                        self.report(*span, diag::tuple_length(bindings.len(), values.len()));
                        vec![]
                    }
                    other => {
                        let found = self.show(&other);
                        self.report(expr.span, diag::tuple_expected(bindings.len(), &found));
                        vec![]
                    }
                };
                let values = values.into_iter().chain(std::iter::repeat(Value::Poison));
                for (binding, value) in bindings.iter().zip(values) {
                    self.bind(binding, &binding.name.name, value);
                }
            }
        }
    }

    fn assign(&mut self, assign: &'a Assign) {
        let name = assign.name.name.as_str();
        let Some(at) = self.frame().locals.iter().rposition(|local| local.name == name) else {
            let layer = self.frame().layer.clone();
            if let Some(super::instance::Member::Tensor(index)) = layer.instance.members.get(name)
                && self.tensors.get(*index).is_some_and(|tensor| tensor.role != TensorRole::Param)
            {
                return self.assign_buffer(*index, assign);
            }
            self.expression(&assign.value);
            let member = layer.instance.members.get(name);
            // Unknown names were reported from the text.
            if let Some(member) = member.filter(|member| !matches!(member, super::instance::Member::Poison)) {
                let is_tensor = matches!(member, super::instance::Member::Tensor(_));
                self.report(assign.name.span, diag::assigned_member(name, is_tensor));
            }
            return;
        };
        let message = match self.frame().locals[at].kind {
            LocalKind::Parameter => Some(diag::assigned_parameter(name)),
            LocalKind::Fixed => Some(diag::assigned_fixed(name)),
            LocalKind::Mutable => None,
        };
        let right = self.expression(&assign.value);
        if let Some(message) = message {
            self.report(assign.name.span, message);
            return;
        }
        let old = self.frame().locals[at].value.clone();
        let mut value = self.assigned_value(old.clone(), assign, right);
        if assign.index.is_some() && value.is_poison() {
            // A part that does not fit leaves the whole as it was.
            value = old;
        }
        let local = &mut self.frame_mut().locals[at];
        local.value = value;
        local.assigned = Some(assign.value.span);
    }
}
