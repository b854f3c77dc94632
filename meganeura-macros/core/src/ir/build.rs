//! Building graphs: nodes go to the innermost open block, and what they read from blocks around it is captured.

use std::collections::BTreeMap;

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr};
use meganeura_shaders::schedule::Check;

use super::{
    Block, BlockId, Call, Derivative, Graph, Node, NodeId, Origin, Output, ROOT, Repeat, Store, StoreId, StoreKind,
    Type, Value, ValueId,
};
use crate::ops::{Misfit, Op};

/// A loop, or a composite's block, under construction.
#[derive(Clone, Debug)]
pub struct Open {
    /// The block that nodes go to.
    pub body: BlockId,
    /// What makes it a loop; none: the block of a composite, which captures nothing.
    pub repeat: Option<OpenRepeat>,
}

/// A loop under construction.
#[derive(Clone, Debug)]
pub struct OpenRepeat {
    /// How often it will run.
    pub count: Dim,
    /// Whether the index counts down.
    pub reversed: bool,
    /// The index inside.
    pub index: ValueId,
    /// Outer value and body argument of each carried value.
    pub carried: Vec<(ValueId, ValueId)>,
    /// Outer value and body argument of each stacked input.
    pub stacked: Vec<(ValueId, ValueId)>,
    /// Outer value and body argument of each captured value.
    pub captured: Vec<(ValueId, ValueId)>,
}

impl Graph {
    /// The block that new nodes go to.
    pub fn current(&self) -> BlockId {
        self.open.last().map_or(ROOT, |open| open.body)
    }

    /// A value without a definition, or with one that the caller adds.
    pub fn new_value(&mut self, ty: Type, block: BlockId, def: Option<(NodeId, usize)>) -> ValueId {
        self.values.push(Value { ty, block, def });
        ValueId(self.values.len() as u32 - 1)
    }

    /// Appends a node with outputs of the given types to the current block.
    pub fn push(&mut self, op: Op, inputs: &[ValueId], outputs: Vec<Type>) -> NodeId {
        let inputs = inputs.iter().map(|value| self.import(self.open.len(), *value)).collect();
        let (id, block) = (NodeId(self.nodes.len() as u32), self.current());
        let outputs = outputs.into_iter().enumerate();
        let outputs = outputs.map(|(k, ty)| self.new_value(ty, block, Some((id, k)))).collect();
        self.nodes.push(Node { op, inputs, outputs, block, origin: self.origin.clone() });
        self.blocks[block.index()].nodes.push(id);
        id
    }

    /// Appends a node whose one result the operation infers, or says what does not fit.
    pub fn try_emit(&mut self, op: Op, inputs: &[ValueId]) -> Result<ValueId, Misfit> {
        let types: Vec<&Type> = inputs.iter().map(|v| self.ty(*v)).collect();
        let ty = op.infer(&types, &self.symbols)?;
        let node = self.push(op, inputs, vec![ty]);
        Ok(self.node(node).outputs[0])
    }

    /// The same where the caller knows that it fits.
    pub fn emit(&mut self, op: Op, inputs: &[ValueId]) -> ValueId {
        let what = format!("{op:?} over {:?}", inputs.iter().map(|v| self.ty(*v)).collect::<Vec<_>>());
        let value = self.try_emit(op, inputs);
        assert!(value.is_ok(), "ill-typed {what}: {value:?}");
        value.unwrap_or(ValueId(0))
    }

    fn import(&mut self, level: usize, value: ValueId) -> ValueId {
        let home = level.checked_sub(1).map_or(ROOT, |outer| self.open[outer].body);
        if self.value(value).block == home {
            return value;
        }
        assert!(level > 0, "a value from a closed block");
        let outer = self.import(level - 1, value);
        let Some(repeat) = &self.open[level - 1].repeat else { unreachable!("a composite's block captures nothing") };
        if let Some((_, arg)) = repeat.captured.iter().find(|(source, _)| *source == outer) {
            return *arg;
        }
        let arg = self.new_value(self.ty(outer).clone(), home, None);
        if let Some(repeat) = &mut self.open[level - 1].repeat {
            repeat.captured.push((outer, arg));
        }
        arg
    }

    fn new_block(&mut self) -> BlockId {
        self.blocks.push(Block::default());
        BlockId(self.blocks.len() as u32 - 1)
    }

    /// Begins a loop and gives its index.
    pub fn open_repeat(&mut self, count: Dim, reversed: bool) -> ValueId {
        let body = self.new_block();
        let index = self.new_value(Type { shape: vec![], dtype: DType::U32 }, body, None);
        let (carried, stacked, captured) = Default::default();
        let repeat = OpenRepeat { count, reversed, index, carried, stacked, captured };
        self.open.push(Open { body, repeat: Some(repeat) });
        index
    }

    /// The innermost loop under construction.
    pub fn innermost(&mut self) -> &mut OpenRepeat {
        let repeat = self.open.last_mut().and_then(|open| open.repeat.as_mut());
        let Some(repeat) = repeat else { unreachable!("a loop is open") };
        repeat
    }

    /// One more carried value of the innermost loop, starting as `init`; gives it as the body sees it.
    pub fn carry(&mut self, init: ValueId) -> ValueId {
        let init = self.import(self.open.len() - 1, init);
        let arg = self.new_value(self.ty(init).clone(), self.current(), None);
        self.innermost().carried.push((init, arg));
        arg
    }

    /// One more input of which iteration i sees row i.
    pub fn stack_in(&mut self, source: ValueId) -> ValueId {
        let source = self.import(self.open.len() - 1, source);
        let Some(row) = self.ty(source).row() else { unreachable!("a stacked input has rows") };
        let arg = self.new_value(row, self.current(), None);
        self.innermost().stacked.push((source, arg));
        arg
    }

    /// Ends the innermost loop; the outputs are the last carried values, then the stacks.
    pub fn close_repeat(&mut self, carried: &[ValueId], stacks: &[ValueId]) -> Vec<ValueId> {
        let level = self.open.len();
        let results: Vec<ValueId> = carried.iter().chain(stacks).map(|v| self.import(level, *v)).collect();
        let Some(open) = self.open.pop() else { unreachable!("a loop is open") };
        self.finish(open, results)
    }

    /// Makes the node of a loop that is no longer open.
    pub fn finish(&mut self, open: Open, results: Vec<ValueId>) -> Vec<ValueId> {
        let Open { body, repeat: Some(repeat) } = open else { unreachable!("a loop") };
        let OpenRepeat { count, reversed, index, carried, stacked, captured } = repeat;
        let types = results.iter().enumerate().map(|(k, result)| {
            let ty = self.ty(*result);
            if k < carried.len() { ty.clone() } else { ty.stacked(&count) }
        });
        let types = types.collect();
        let op = Op::Repeat(Repeat { count, reversed, carried: carried.len(), stacked: stacked.len(), body });
        let (inputs, args): (Vec<_>, Vec<_>) = carried.into_iter().chain(stacked).chain(captured).unzip();
        self.blocks[body.index()].args = [vec![index], args].concat();
        self.blocks[body.index()].results = results;
        let node = self.push(op, &inputs, types);
        self.node(node).outputs.clone()
    }

    /// `body` gets the index, the carried values and the rows; it gives the next carried values and rows of stacks.
    pub fn repeat(
        &mut self,
        count: &Dim,
        reversed: bool,
        carried: &[ValueId],
        stacked: &[ValueId],
        body: impl FnOnce(&mut Graph, ValueId, &[ValueId], &[ValueId]) -> (Vec<ValueId>, Vec<ValueId>),
    ) -> Vec<ValueId> {
        let index = self.open_repeat(count.clone(), reversed);
        let carried: Vec<ValueId> = carried.iter().map(|v| self.carry(*v)).collect();
        let rows: Vec<ValueId> = stacked.iter().map(|v| self.stack_in(*v)).collect();
        let (next, stacks) = body(self, index, &carried, &rows);
        self.close_repeat(&next, &stacks)
    }

    /// A block of its own with arguments of the given types: `build` gives its results.
    pub fn isolated(&mut self, args: &[Type], build: impl FnOnce(&mut Graph, &[ValueId]) -> Vec<ValueId>) -> BlockId {
        let body = self.new_block();
        let args: Vec<ValueId> = args.iter().map(|ty| self.new_value(ty.clone(), body, None)).collect();
        self.blocks[body.index()].args = args.clone();
        self.open.push(Open { body, repeat: None });
        let results = build(self, &args);
        self.open.pop();
        self.blocks[body.index()].results = results;
        body
    }

    /// A composite over `inputs`; `body` gives the result and the inner values, `derivative` (over inputs, results
    /// and cotangent) the cotangents of the inputs that it lists.
    pub fn call(
        &mut self,
        name: &str,
        inputs: &[ValueId],
        body: impl FnOnce(&mut Graph, &[ValueId]) -> Vec<ValueId>,
        derivative: Option<(Vec<usize>, CallDerivative<'_>)>,
    ) -> ValueId {
        let types: Vec<Type> = inputs.iter().map(|v| self.ty(*v).clone()).collect();
        let body = self.isolated(&types, body);
        let results: Vec<Type> = self.block(body).results.iter().map(|v| self.ty(*v).clone()).collect();
        let derivative = derivative.map(|(which, build)| {
            let args = [&types[..], &results, &results[..1]].concat();
            let (given, made) = (types.len(), results.len());
            let block = self.isolated(&args, |graph, args| {
                build(graph, &args[..given], &args[given..given + made], args[given + made])
            });
            Derivative { block, inputs: which }
        });
        let node = self.push(Op::Call(Call { name: name.into(), body, derivative, evaluation: None }), inputs, results);
        self.node(node).outputs[0]
    }

    /// What a composite is outside of training steps.
    pub fn set_evaluation(&mut self, value: ValueId, build: impl FnOnce(&mut Graph, &[ValueId]) -> ValueId) {
        let Some((id, _)) = self.value(value).def else { return };
        let types: Vec<Type> = self.node(id).inputs.iter().map(|v| self.ty(*v).clone()).collect();
        let block = self.isolated(&types, |graph, args| vec![build(graph, args)]);
        if let Op::Call(call) = &mut self.nodes[id.index()].op {
            call.evaluation = Some(block);
        }
    }

    /// Makes `value` of the loop's body one more stack; an existing one is found again.
    pub fn add_stack(&mut self, node: NodeId, value: ValueId) -> ValueId {
        let Op::Repeat(repeat) = self.node(node).op.clone() else { unreachable!("only loops have stacks") };
        let results = &mut self.blocks[repeat.body.index()].results;
        if let Some(known) = results[repeat.carried..].iter().position(|v| *v == value) {
            return self.node(node).outputs[repeat.carried + known];
        }
        results.push(value);
        let ty = self.ty(value).stacked(&repeat.count);
        let Node { outputs, block, .. } = self.node(node);
        let (def, block) = (Some((node, outputs.len())), *block);
        let stack = self.new_value(ty, block, def);
        self.nodes[node.index()].outputs.push(stack);
        stack
    }

    /// A copy of a node in the current block, with its own copy of a loop's body; `map` learns all new values.
    pub fn copy_node(&mut self, id: NodeId, inputs: &[ValueId], map: &mut BTreeMap<ValueId, ValueId>) -> NodeId {
        let Node { op, outputs, .. } = self.node(id).clone();
        let op = match op {
            Op::Repeat(repeat) => Op::Repeat(Repeat { body: self.copy_body(&repeat, map), ..repeat }),
            op => op,
        };
        let types = outputs.iter().map(|v| self.ty(*v).clone()).collect();
        let copy = self.push(op, inputs, types);
        map.extend(outputs.into_iter().zip(self.node(copy).outputs.clone()));
        copy
    }

    fn copy_body(&mut self, repeat: &Repeat, map: &mut BTreeMap<ValueId, ValueId>) -> BlockId {
        let Block { args, nodes, results } = self.block(repeat.body).clone();
        let index = self.open_repeat(repeat.count.clone(), repeat.reversed);
        let body = self.current();
        map.insert(args[0], index);
        for arg in &args[1..] {
            let copy = self.new_value(self.ty(*arg).clone(), body, None);
            map.insert(*arg, copy);
        }
        let around = self.origin.clone();
        for node in nodes {
            let Node { inputs, origin, .. } = self.node(node).clone();
            let inputs: Vec<ValueId> = inputs.iter().map(|v| map[v]).collect();
            self.origin = Origin { backward: around.backward || origin.backward, ..origin };
            self.copy_node(node, &inputs, map);
        }
        self.origin = around;
        self.open.pop();
        self.blocks[body.index()].args = args.iter().map(|v| map[v]).collect();
        self.blocks[body.index()].results = results.iter().map(|v| map[v]).collect();
        body
    }

    /// The nodes of a block once more in the current block, with `args` for its arguments; gives its results.
    pub fn inline_block(&mut self, block: BlockId, args: &[ValueId]) -> Vec<ValueId> {
        let Block { args: formal, nodes, results } = self.block(block).clone();
        let mut map: BTreeMap<ValueId, ValueId> = formal.into_iter().zip(args.iter().copied()).collect();
        for node in nodes {
            let inputs: Vec<ValueId> = self.node(node).inputs.iter().map(|v| map[v]).collect();
            self.copy_node(node, &inputs, &mut map);
        }
        results.iter().map(|v| map[v]).collect()
    }

    /// Memory from outside, and the value that reads it (in the root block).
    pub fn add_store(&mut self, store: Store) -> ValueId {
        debug_assert!(self.open.is_empty(), "stores are read in the root block");
        let ty = store.ty.clone();
        self.stores.push(store);
        let node = self.push(Op::Read(StoreId(self.stores.len() as u32 - 1)), &[], vec![ty]);
        self.node(node).outputs[0]
    }

    /// Argument k of the entry.
    pub fn argument(&mut self, index: usize, name: &str, ty: Type) -> ValueId {
        self.add_store(Store { kind: StoreKind::Argument(index), name: name.into(), ty, loops: 0, below: None })
    }

    /// Tensor k of the model; the first `loops` axes count iterations.
    pub fn tensor(&mut self, index: usize, name: &str, shape: Shape, loops: usize, trained: bool) -> ValueId {
        let kind = StoreKind::Tensor { index, trained };
        self.add_store(Store { kind, name: name.into(), ty: Type::float(shape), loops, below: None })
    }

    /// Dimensions must keep `low <= high`; what holds for all in bounds is not written down.
    pub fn require(&mut self, what: String, low: &Dim, high: &Dim) {
        let check = Check { what, low: low.clone(), high: high.clone() };
        if !self.symbols.nonnegative(&(high - low)) && !self.checks.contains(&check) {
            self.checks.push(check);
        }
    }

    /// One more output.
    pub fn output(&mut self, output: Output) {
        self.outputs.push(output);
    }

    /// A float constant, of shape `[]`.
    pub fn constant(&mut self, value: f64) -> ValueId {
        self.emit(Op::Instr(Instr::Const(Const::float(value))), &[])
    }

    /// A dimension as f32, of shape `[]`.
    pub fn extent(&mut self, dim: &Dim) -> ValueId {
        self.emit(Op::Instr(Instr::Extent(dim.clone())), &[])
    }

    /// A registered operation of one operand.
    pub fn un(&mut self, op: Un, x: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::Un(op, 0)), &[x])
    }

    /// A registered operation of two operands, broadcast.
    pub fn bin(&mut self, op: Bin, x: ValueId, y: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::Bin(op, 0, 1)), &[x, y])
    }

    /// `x + y`.
    pub fn add(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.bin(Bin::Add, x, y)
    }

    /// `x - y`.
    pub fn sub(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.bin(Bin::Sub, x, y)
    }

    /// `x · y`.
    pub fn mul(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.bin(Bin::Mul, x, y)
    }

    /// `x / y`.
    pub fn div(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.bin(Bin::Div, x, y)
    }

    /// `x` where the condition holds, else `y`.
    pub fn select(&mut self, condition: ValueId, x: ValueId, y: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::Select(0, 1, 2)), &[condition, x, y])
    }

    /// `x` with a constant.
    pub fn with_const(&mut self, op: Bin, x: ValueId, c: f64) -> ValueId {
        let c = self.constant(c);
        self.bin(op, x, c)
    }

    /// Sum over the last axis, which becomes 1.
    pub fn row_sum(&mut self, x: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::RowSum(0)), &[x])
    }

    /// Maximum over the last axis, which becomes 1.
    pub fn row_max(&mut self, x: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::RowMax(0)), &[x])
    }

    /// The index along an axis counted from the last, shaped like `x`.
    pub fn index(&mut self, axis_from_last: u8, x: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::Index(axis_from_last, 0)), &[x])
    }

    /// The value as another type.
    pub fn cast(&mut self, dtype: DType, x: ValueId) -> ValueId {
        self.emit(Op::Instr(Instr::Cast(dtype, 0)), &[x])
    }

    /// The same elements under another shape.
    pub fn reshape(&mut self, x: ValueId, shape: Shape) -> ValueId {
        if *self.shape(x) == shape { x } else { self.emit(Op::Reshape(crate::ops::Reshape { shape }), &[x]) }
    }

    /// Axis k of the result is axis `perm[k]` of `x`.
    pub fn transpose(&mut self, x: ValueId, perm: &[u8]) -> ValueId {
        self.emit(Op::Transpose(crate::ops::Transpose { perm: perm.to_vec() }), &[x])
    }
}

/// What builds a composite's derivative: from the inputs, the results of the body and the cotangent of the first.
pub type CallDerivative<'a> = &'a dyn Fn(&mut Graph, &[ValueId], &[ValueId], ValueId) -> Vec<ValueId>;
