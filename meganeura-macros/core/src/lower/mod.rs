//! Graph of kernels → schedule: decides where every value lies, so that almost nothing is copied.
//!
//! In comes a graph whose nodes are reads, kernels, launches, movements of data and loops; out comes a [`Schedule`]
//! with barriers and a memory plan. Whoever needs a value at a certain place (a carried slot, a row of a stack, an
//! output) *aims* it there before its definition is lowered; what did not land is copied when the block ends
//! (`settle`). Aims are hints, so every odd case has one answer: a copy.

mod carry;
mod copy;
mod order;
mod place;
pub mod plain;

use std::collections::BTreeMap;
use std::fmt;

use meganeura_shaders::dim::Symbols;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::schedule::{
    self, Argument, BufferKind, Condition, Item, LoopId, Member, Operand, Place, Plan, Role, Schedule, Step, Variant,
};

use crate::ir::{BlockId, Graph, Node, NodeId, ROOT, StoreId, StoreKind, ValueId};
use crate::ops::Op;
use crate::schedule::hazards::{place_barriers, steps_mut};
use crate::schedule::plan::plan_memory;
use carry::Carried;
use place::Want;

pub use plain::plain;

/// Why a graph has no schedule. Later stages than lowering cannot fail, and a verified graph of kernels fails here only
/// if no variant of a step exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError {
    /// The step.
    pub origin: schedule::Origin,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schedule::Origin { path, what, .. } = &self.origin;
        write!(f, "`{what}` ({path}): {}", self.message)
    }
}

impl std::error::Error for LowerError {}

/// How devices may run the kernels of a step; may intern derived dimensions.
pub type Variants<'v> = dyn FnMut(&[Member], &mut Symbols) -> Result<Vec<Variant>, String> + 'v;

/// The schedule of a verified graph, with one plan.
pub fn lower(graph: &Graph, name: &str, variants: &mut Variants<'_>) -> Result<Schedule, LowerError> {
    let (mut schedule, mut items) = placed(graph, name)?;
    place_barriers(&mut items, &schedule);
    for step in steps_mut(&mut items) {
        let fault = |message| LowerError { origin: step.origins.first().cloned().unwrap_or_default(), message };
        step.variants = variants(&step.members, &mut schedule.symbols).map_err(fault)?;
    }
    let (lives, orders) = plan_memory(&items, &schedule);
    schedule.plans.push(Plan { condition: Condition::Always, items, lives, orders });
    Ok(schedule)
}

/// The schedule without barriers, variants and plan, and its steps.
fn placed(graph: &Graph, name: &str) -> Result<(Schedule, Vec<Item>), LowerError> {
    let graph = &order::ordered(graph);
    let mut lower = Lower::new(graph, name)?;
    let wants: Vec<Want> = (0..graph.outputs.len()).map(|k| lower.want_output(k)).collect();
    let items = lower.block(ROOT, &wants)?;
    lower.outputs(&wants);
    Ok((lower.out, items))
}

struct Lower<'g> {
    graph: &'g Graph,
    out: Schedule,
    /// The loops around the current block, outermost first.
    path: Vec<LoopId>,
    places: BTreeMap<ValueId, Operand>,
    /// Dense copies of values whose rows are padded, and copies of indices in memory.
    packed: BTreeMap<ValueId, Place>,
    aims: BTreeMap<ValueId, Place>,
    /// Memory of a loop's carried values, and of its stacks.
    loops: BTreeMap<NodeId, (Vec<Carried>, Vec<Place>)>,
    /// Buffers of the stores that are read.
    stores: BTreeMap<StoreId, Place>,
    /// The node that is lowered.
    origin: schedule::Origin,
}

impl<'g> Lower<'g> {
    fn new(graph: &'g Graph, name: &str) -> Result<Lower<'g>, LowerError> {
        let mut arguments = BTreeMap::new();
        for store in &graph.stores {
            if let StoreKind::Argument(k) = store.kind {
                let (dtype, shape) = (store.ty.dtype, store.ty.shape.clone());
                arguments.insert(k, Argument { name: store.name.clone(), dtype, shape, below: store.below.clone() });
            }
        }
        if let Some(gap) = (0..arguments.len()).find(|k| !arguments.contains_key(k)) {
            let message = format!("argument {gap} of the entry is missing");
            return Err(LowerError { origin: schedule::Origin::default(), message });
        }
        let out = Schedule {
            name: name.into(),
            symbols: graph.symbols.clone(),
            checks: graph.checks.clone(),
            arguments: arguments.into_values().collect(),
            ..Schedule::default()
        };
        let (path, places, packed, aims, loops, stores, origin) = Default::default();
        Ok(Lower { graph, out, path, places, packed, aims, loops, stores, origin })
    }

    fn want_output(&mut self, k: usize) -> Want {
        let output = &self.graph.outputs[k];
        let layout = self.padded(self.graph.shape(output.value), output.loops);
        let base = match output.role {
            Role::Update(index) => self.tensor(index, &output.name, &layout.bytes),
            _ => self.buffer(&output.name, BufferKind::Output(k), layout.bytes.clone()),
        };
        Want { value: output.value, base, layout }
    }

    fn outputs(&mut self, wants: &[Want]) {
        for (output, want) in self.graph.outputs.iter().zip(wants) {
            let ty = self.graph.ty(output.value);
            self.out.outputs.push(schedule::Output {
                role: output.role.clone(),
                name: output.name.clone(),
                place: want.layout.view(&want.base),
                shape: ty.shape.clone(),
                dtype: ty.dtype,
            });
        }
    }

    fn block(&mut self, id: BlockId, wants: &[Want]) -> Result<Vec<Item>, LowerError> {
        for want in wants {
            if !self.is_tensor(want) {
                self.aim(want.value, &want.base, &want.layout);
            }
        }
        let nodes = &self.graph.block(id).nodes;
        for position in (0..nodes.len()).rev() {
            if let Op::Repeat(repeat) = &self.graph.node(nodes[position]).op {
                self.allocate(repeat, nodes, position, wants);
            }
        }
        let mut items = Vec::new();
        for node in nodes {
            self.node(*node, &mut items)?;
        }
        let (updates, others): (Vec<&Want>, Vec<&Want>) = wants.iter().partition(|want| self.is_tensor(want));
        others.into_iter().for_each(|want| self.settle(want, &mut items, "keep"));
        self.update(&updates, &mut items);
        Ok(items)
    }

    fn is_tensor(&self, want: &Want) -> bool {
        matches!(self.out.buffers[want.base.buffer].kind, BufferKind::Tensor(_))
    }

    /// Tensors of the model get their new values once nobody reads the old ones: what still lies in one of them is
    /// copied out first.
    fn update(&mut self, updates: &[&Want], items: &mut Vec<Item>) {
        for want in updates {
            let view = want.layout.view(&want.base);
            if let Operand::Memory(place) = self.places[&want.value].clone()
                && place != view
                && updates.iter().any(|other| other.base.buffer == place.buffer)
            {
                let apart = self.fresh_copy(want.value, items, "keep");
                self.places.insert(want.value, Operand::Memory(apart));
            }
        }
        updates.iter().for_each(|want| self.settle(want, items, "update"));
    }

    /// The memory of a tensor of the model.
    fn tensor(&mut self, index: usize, name: &str, bytes: &meganeura_shaders::dim::Dim) -> Place {
        let is_it =
            |store: &crate::ir::Store| matches!(store.kind, StoreKind::Tensor { index: own, .. } if own == index);
        match self.graph.stores.iter().position(is_it) {
            Some(store) => self.store(StoreId(store as u32)),
            None => self.buffer(name, BufferKind::Tensor(index), bytes.clone()),
        }
    }

    /// Copies what did not land where it must lie.
    fn settle(&mut self, want: &Want, items: &mut Vec<Item>, why: &str) {
        let view = want.layout.view(&want.base);
        if self.places[&want.value] != Operand::Memory(view.clone()) {
            self.copy(want.value, &view, items, why);
        }
    }

    fn node(&mut self, id: NodeId, items: &mut Vec<Item>) -> Result<(), LowerError> {
        let node = self.graph.node(id);
        self.origin = origin(node);
        let Node { op, inputs, outputs, .. } = node;
        match op {
            Op::Repeat(repeat) => return self.repeat(id, repeat, items),
            Op::Kernel(kernel) => self.launch(node, std::slice::from_ref(kernel), items),
            Op::Launch(kernels) => self.launch(node, kernels, items),
            Op::Read(store) => {
                let place = self.store(*store);
                self.places.insert(outputs[0], Operand::Memory(place));
            }
            _ if place::keeps_order(self.graph, node) => {
                let operand = self.reshaped(inputs[0], outputs[0], items);
                self.places.insert(outputs[0], operand);
            }
            Op::Slice(slice) if place::is_view(self.graph, node) => {
                let operand = self.sliced(inputs[0], outputs[0], slice, items);
                self.places.insert(outputs[0], operand);
            }
            Op::Slice(_) | Op::Transpose(_) | Op::Pad(_) | Op::Broadcast(_) => self.movement(node, items),
            other => {
                let message = format!("`{}` is not a kernel", other.name());
                return Err(LowerError { origin: self.origin.clone(), message });
            }
        }
        Ok(())
    }

    fn store(&mut self, id: StoreId) -> Place {
        if let Some(place) = self.stores.get(&id) {
            return place.clone();
        }
        let store = self.graph.store(id);
        let kind = match store.kind {
            StoreKind::Argument(k) => BufferKind::Argument(k),
            StoreKind::Tensor { index, .. } => BufferKind::Tensor(index),
            StoreKind::Random => BufferKind::Random,
        };
        let layout = self.padded(&store.ty.shape, store.loops);
        let place = layout.view(&self.buffer(&store.name, kind, layout.bytes.clone()));
        self.stores.insert(id, place.clone());
        place
    }

    /// One step: the inputs of each kernel in order, one output each.
    fn launch(&mut self, node: &Node, kernels: &[Kernel], items: &mut Vec<Item>) {
        let mut rest = node.inputs.as_slice();
        let mut members = Vec::new();
        for (kernel, output) in kernels.iter().zip(&node.outputs) {
            let (own, others) = rest.split_at(kernel.arity());
            rest = others;
            let read = |v: &ValueId| {
                let ty = self.graph.ty(*v);
                (self.dense(*v, items), ty.shape.clone(), ty.dtype)
            };
            let reads = own.iter().map(read).collect();
            let ty = self.graph.ty(*output);
            let layout = self.padded(&ty.shape, 0);
            let write = self.aims.get(output).cloned().unwrap_or_else(|| self.arena(layout.bytes));
            self.places.insert(*output, Operand::Memory(write.clone()));
            members.push(Member { kernel: kernel.clone(), reads, write, shape: ty.shape.clone(), dtype: ty.dtype });
        }
        self.push_step(members, None, items);
    }

    /// A step that serves the current node; `why` names what the graph does not say.
    fn push_step(&mut self, members: Vec<Member>, why: Option<&str>, items: &mut Vec<Item>) {
        let mut origin = self.origin.clone();
        if let Some(why) = why {
            (origin.what, origin.rules, origin.choice) = (why.into(), vec![], None);
        }
        let origins = vec![origin; members.len()];
        items.push(Item::Step(Step { members, barrier: false, origins, variants: vec![] }));
    }
}

fn origin(node: &Node) -> schedule::Origin {
    let given = &node.origin;
    let what = if given.what.is_empty() { node.op.name().into() } else { given.what.clone() };
    let (path, rules) = (given.path.clone(), given.rules.clone());
    schedule::Origin { path, what, backward: given.backward, rules, choice: given.choice }
}
