//! `for block in blocks`: one `Repeat`. The body is resolved once; tensors of the array become stacked inputs, locals
//! that the body assigns become carried values, all else is captured.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;

use super::value::{Layer, LoopId, Value};
use super::{Local, LocalKind, Resolver};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::syntax::{Block, Expr, For, Over, StatementKind};

impl<'a> Resolver<'a, '_> {
    pub(super) fn repeat(&mut self, repeat: &'a For) {
        let (items, arrays): (Vec<&'a str>, Vec<&'a Expr>) = match &repeat.over {
            Over::Each { item, array } => (vec![&item.name], vec![array]),
            // Other loops were reported from the text: their bodies are checked as far as that goes.
            Over::Numbered { index, item, .. } => (vec![&index.name, &item.name], vec![]),
            Over::Together { items, .. } => (items.iter().map(|item| item.name.as_str()).collect(), vec![]),
            Over::Range { index, .. } => (vec![&index.name], vec![]),
            Over::Poison(names) => (names.iter().map(|name| name.name.as_str()).collect(), vec![]),
        };
        match &arrays[..] {
            [array] => {
                let value = self.expression(array);
                match value {
                    Value::Layers(layer, count) => self.repeat_layers(repeat, items[0], layer, count),
                    Value::Poison => self.poisoned(repeat, &items),
                    other => {
                        let found = self.show(&other);
                        self.report(array.span, diag::loop_over(&found));
                        self.poisoned(repeat, &items);
                    }
                }
            }
            _ => self.poisoned(repeat, &items),
        }
    }

    /// The body once, with poison for what the loop would give; what it assigns is poison after it.
    fn poisoned(&mut self, repeat: &'a For, names: &[&'a str]) {
        let outside = self.frame().locals.len();
        for name in names {
            let local = Local { name, value: Value::Poison, kind: LocalKind::Fixed, assigned: None };
            self.frame_mut().locals.push(local);
        }
        self.block_value(&repeat.body);
        self.frame_mut().locals.truncate(outside);
        for at in self.assigned_locals(&repeat.body) {
            self.frame_mut().locals[at].value = Value::Poison;
        }
    }

    fn repeat_layers(&mut self, repeat: &'a For, item: &'a str, array: Layer<'a>, count: i64) {
        let assigned = self.assigned_locals(&repeat.body);
        self.at(repeat.span);
        let (mut carried, mut before): (Vec<(usize, ValueId)>, Vec<Value<'a>>) = (vec![], vec![]);
        for at in assigned.iter().copied() {
            let value = self.frame().locals[at].value.clone();
            if let Some(initial) = self.initial(at, repeat) {
                carried.push((at, initial));
                before.push(value);
            }
        }
        self.graph.open_repeat(Dim::from(count), false);
        let id = LoopId(self.loop_count);
        self.loop_count += 1;
        self.loops.push(id);
        let mut arguments = vec![];
        for (at, initial) in &carried {
            let argument = self.graph.carry(*initial);
            let local = &mut self.frame_mut().locals[*at];
            local.value = Value::Tensor(argument);
            local.assigned = None;
            arguments.push(argument);
        }
        let outside = self.frame().locals.len();
        let rows = array.rows.iter().copied().chain([id]).collect();
        let value = Value::Layer(Layer { instance: array.instance, rows });
        self.frame_mut().locals.push(Local { name: item, value, kind: LocalKind::Fixed, assigned: None });
        let tail = self.block_value(&repeat.body);
        self.frame_mut().locals.truncate(outside);
        if let (Some(tail_expr), false) = (&repeat.body.tail, matches!(tail, Value::Nothing | Value::Poison)) {
            self.report(tail_expr.value.span, diag::value_of_loop());
        }
        self.at(repeat.span);
        let mut results = vec![];
        let mut unchanged = vec![];
        for ((at, _), argument) in carried.iter().zip(&arguments) {
            match self.carried_result(*at, *argument, repeat) {
                Some(result) if result == *argument => unchanged.push(*argument),
                Some(result) => results.push((*at, result)),
                None => {
                    self.frame_mut().locals[*at].value = Value::Poison;
                    unchanged.push(*argument);
                }
            }
        }
        // What no iteration changes is captured, not carried.
        let open = self.graph.innermost();
        let (kept, captured) = std::mem::take(&mut open.carried)
            .into_iter()
            .partition::<Vec<_>, _>(|(_, argument)| !unchanged.contains(argument));
        open.carried = kept;
        open.captured.extend(captured);
        for (((at, _), argument), before) in carried.iter().zip(&arguments).zip(before) {
            let local = &mut self.frame_mut().locals[*at];
            if unchanged.contains(argument) && !local.value.is_poison() {
                local.value = before;
            }
        }
        // What has no value outside of the loop has none behind it.
        for at in assigned.iter().filter(|at| !carried.iter().any(|(carried, _)| carried == *at)) {
            self.frame_mut().locals[*at].value = Value::Poison;
        }
        self.loops.pop();
        if results.is_empty() {
            self.graph.open.pop();
            return;
        }
        let values: Vec<ValueId> = results.iter().map(|(_, value)| *value).collect();
        let outputs = self.graph.close_repeat(&values, &[]);
        for ((at, _), output) in results.into_iter().zip(outputs) {
            self.frame_mut().locals[at].value = Value::Tensor(output);
        }
    }

    /// What a carried value starts as; a number starts as a scalar.
    fn initial(&mut self, at: usize, repeat: &'a For) -> Option<ValueId> {
        let local = &self.frame().locals[at];
        let (name, value) = (local.name, local.value.clone());
        match value {
            Value::Tensor(id) => Some(id),
            Value::Poison => None,
            Value::Float(_) | Value::Size(_) => {
                let value = self.constant_as(DType::F32, &value, name, repeat.span);
                if value.is_none() {
                    self.frame_mut().locals[at].value = Value::Poison;
                }
                value
            }
            Value::Bool(_) => self.constant_as(DType::Bool, &value, name, repeat.span),
            other => {
                let found = self.show(&other);
                self.report(repeat.span, diag::carried_kind(name, &found));
                self.frame_mut().locals[at].value = Value::Poison;
                None
            }
        }
    }

    fn carried_result(&mut self, at: usize, argument: ValueId, repeat: &'a For) -> Option<ValueId> {
        let local = &self.frame().locals[at];
        let (name, value, span) = (local.name, local.value.clone(), local.assigned.unwrap_or(repeat.span));
        let expected = self.graph.ty(argument).clone();
        let result = match &value {
            Value::Poison => return None,
            Value::Tensor(id) => *id,
            Value::Float(_) | Value::Size(_) | Value::Bool(_) if expected.shape.is_empty() => {
                self.constant_as(expected.dtype, &value, name, span)?
            }
            _ => argument,
        };
        let fits = *self.graph.ty(result) == expected && (result != argument || matches!(value, Value::Tensor(_)));
        if !fits {
            let (expected, found) = (self.show_type(&expected), self.show(&value));
            self.report(span, diag::carried_type(name, &expected, &found));
            return None;
        }
        Some(result)
    }

    /// Locals from outside that the block assigns, by position, in order.
    fn assigned_locals(&self, block: &'a Block) -> Vec<usize> {
        let mut names = vec![];
        assigned(block, &mut vec![], &mut names);
        let locals = &self.frame().locals;
        let position = |name: &&str| {
            let at = locals.iter().rposition(|local| local.name == *name)?;
            (locals[at].kind == LocalKind::Mutable).then_some(at)
        };
        let mut found: Vec<usize> = names.iter().filter_map(position).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Names that a block assigns and does not bind itself.
fn assigned<'a>(block: &'a Block, bound: &mut Vec<&'a str>, names: &mut Vec<&'a str>) {
    let outside = bound.len();
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Let(pattern, _) => {
                bound.extend(pattern.bindings().iter().map(|binding| binding.name.name.as_str()));
            }
            StatementKind::Poison(poisoned) => bound.extend(poisoned.iter().map(|name| name.name.as_str())),
            StatementKind::Assign(assign) if !bound.contains(&assign.name.name.as_str()) => {
                names.push(&assign.name.name);
            }
            StatementKind::For(repeat) => assigned(&repeat.body, bound, names),
            StatementKind::If(choice) => {
                let blocks = choice.branches.iter().map(|(_, block)| block).chain(&choice.otherwise);
                blocks.for_each(|block| assigned(block, bound, names));
            }
            _ => {}
        }
    }
    bound.truncate(outside);
}
