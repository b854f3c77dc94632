//! Loops, in all their forms: one `Repeat` each. The body is resolved once; tensors of arrays become stacked inputs,
//! locals that the body assigns become carried values, all else is captured.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::prog::DType;

use super::value::{Affine, Layer, LoopId, Row, Value};
use super::{Local, LocalKind, OpenLoop, Resolver};
use crate::diag::resolve as diag;
use crate::ir::ValueId;
use crate::syntax::{Block, Bounds, Expr, For, Over, StatementKind};

/// What a name of a loop stands for, the same text for each iteration.
enum Each<'a> {
    /// The number of the iteration, counted from here.
    Number(Dim),
    /// An element of an array of layers.
    Layer(Layer<'a>),
}

impl<'a> Resolver<'a, '_> {
    pub(super) fn repeat(&mut self, repeat: &'a For) {
        let (names, arrays): (Vec<&'a str>, Vec<&'a Expr>) = match &repeat.over {
            Over::Each { item, array } => (vec![&item.name], vec![array]),
            Over::Numbered { index, item, array } => (vec![&index.name, &item.name], vec![array]),
            Over::Together { items, arrays } => {
                (items.iter().map(|item| item.name.as_str()).collect(), arrays.iter().collect())
            }
            Over::Range { index, bounds } => {
                let name = index.name.as_str();
                return match self.numbers(bounds) {
                    Some((low, count)) => self.repeat_over(repeat, vec![(name, Each::Number(low))], count),
                    None => self.poisoned(repeat, &[name]),
                };
            }
            Over::Poison(names) => (names.iter().map(|name| name.name.as_str()).collect(), vec![]),
        };
        let mut found: Vec<(Layer<'a>, i64)> = vec![];
        for array in &arrays {
            match self.expression(array) {
                Value::Layers(layer, count) => found.push((layer, count)),
                Value::Poison => {}
                other => {
                    let shown = self.show(&other);
                    let number = matches!(other, Value::Size(_) | Value::Float(_) | Value::Index(_));
                    self.report(array.span, diag::loop_over(&shown, number, matches!(other, Value::Tensor(_))));
                }
            }
        }
        if found.is_empty() || found.len() < arrays.len() {
            return self.poisoned(repeat, &names);
        }
        let (first, count) = (found[0].0.instance.name.clone(), found[0].1);
        if let Some(at) = found.iter().position(|(_, other)| *other != count) {
            let (other, length) = (found[at].0.instance.name.clone(), found[at].1);
            self.report(arrays[at].span, diag::unequal_arrays(&first, count, &other, length));
            return self.poisoned(repeat, &names);
        }
        let number = (names.len() > found.len()).then(|| Each::Number(Dim::from(0)));
        let each = number.into_iter().chain(found.into_iter().map(|(layer, _)| Each::Layer(layer)));
        self.repeat_over(repeat, names.into_iter().zip(each).collect(), Dim::from(count));
    }

    /// The first number of a range and how many there are: at least one, whatever the call.
    fn numbers(&mut self, bounds: &'a Bounds) -> Option<(Dim, Dim)> {
        let mut end = |expr: &'a Expr| match self.expression(expr) {
            Value::Size(dim) => Some(dim),
            Value::Poison => None,
            other => {
                let found = self.show(&other);
                self.report(expr.span, diag::loop_bound(&found));
                None
            }
        };
        let (low, high) = (end(&bounds.low), end(&bounds.high));
        let (low, high) = (low?, high?);
        let count = &high - &low;
        let count = if bounds.inclusive { &count + &Dim::from(1) } else { count };
        if self.graph.symbols.bounds(&low).0 < 0 {
            let low = self.show_size(&low);
            self.report(bounds.low.span, diag::negative_index(&low));
            return None;
        }
        let (least, most) = self.graph.symbols.bounds(&count);
        if least < 1 {
            let (low, high) = (self.show_size(&low), self.show_size(&high));
            self.report(bounds.span, diag::empty_loop(&low, &high, most < 1));
            return None;
        }
        if most > i64::from(u32::MAX) {
            self.report(bounds.high.span, diag::too_large());
            return None;
        }
        Some((low, count))
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

    fn repeat_over(&mut self, repeat: &'a For, each: Vec<(&'a str, Each<'a>)>, count: Dim) {
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
        let index = self.graph.open_repeat(count.clone(), false);
        let id = LoopId(self.loop_count);
        self.loop_count += 1;
        self.loops.push(OpenLoop { id, index, count });
        let mut arguments = vec![];
        for (at, initial) in &carried {
            let argument = self.graph.carry(*initial);
            let local = &mut self.frame_mut().locals[*at];
            local.value = Value::Tensor(argument);
            local.assigned = None;
            arguments.push(argument);
        }
        let outside = self.frame().locals.len();
        for (name, each) in each {
            let value = match each {
                Each::Number(offset) => Value::Index(Affine { id, factor: 1, offset }),
                Each::Layer(Layer { instance, mut rows }) => {
                    rows.push(Row::Each(id));
                    Value::Layer(Layer { instance, rows })
                }
            };
            self.frame_mut().locals.push(Local { name, value, kind: LocalKind::Fixed, assigned: None });
        }
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
        let level = self.loops.len();
        self.loops.pop();
        let written = self.written_by(id);
        let tapped: Vec<usize> = (0..self.taps.len()).filter(|k| self.taps[*k].loops.len() == level).collect();
        let tapped: Vec<usize> = tapped.into_iter().filter(|k| self.taps[*k].loops.last() == Some(&id)).collect();
        if results.is_empty() && written.is_empty() && tapped.is_empty() {
            self.graph.open.pop();
            return;
        }
        let values: Vec<ValueId> = results.iter().map(|(_, value)| *value).collect();
        let rows = written.iter().filter_map(|key| self.reads.get(key)).copied();
        let stacks: Vec<ValueId> = rows.chain(tapped.iter().map(|k| self.taps[*k].value)).collect();
        let mut outputs = self.graph.close_repeat(&values, &stacks).into_iter();
        for ((at, _), output) in results.into_iter().zip(outputs.by_ref()) {
            self.frame_mut().locals[at].value = Value::Tensor(output);
        }
        for (rows, stack) in written.iter().zip(outputs.by_ref()) {
            self.store_stack(id, rows, stack);
        }
        for (k, stack) in tapped.into_iter().zip(outputs) {
            self.taps[k].value = stack;
            self.taps[k].loops.pop();
        }
    }

    /// What a carried value starts as; a number starts as a scalar.
    fn initial(&mut self, at: usize, repeat: &'a For) -> Option<ValueId> {
        let local = &self.frame().locals[at];
        let (name, value) = (local.name, local.value.clone());
        let value = self.settled(value, repeat.span);
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
        let value = self.settled(value, span);
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
