//! The graph: arenas of values, nodes and blocks; loops are nodes.
//!
//! A [`Repeat`] node has inputs `carried | stacked | captured` and outputs `carried | stacks`. Its body is isolated:
//! argument 0 is the loop index, argument `1 + k` stands for input `k` (for a stacked input, its row at the index),
//! result `k` belongs to output `k` (for a stack, its row). A reversed loop counts its index down; rows keep their
//! index. A [`Call`] is a composite: its body block takes the inputs and gives the result and named inner values.
//! Storage is append-only and every id points backward, so a graph can be walked in the order of its blocks.

mod broadcast;
mod build;
mod display;
mod index;
mod random;
mod verify;

use std::rc::Rc;

use meganeura_shaders::dim::{Dim, Shape, Symbols};
use meganeura_shaders::prog::DType;
use meganeura_shaders::schedule::{Check, Role};

pub use build::{CallDerivative, Open, OpenRepeat};

use crate::egraph::Choices;
use crate::ops::Op;

macro_rules! declare_ids {
    ($($(#[$about:meta])* $Id:ident;)+) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $Id(pub u32);

        impl $Id {
            /// The position in its arena.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+ };
}

declare_ids! {
    /// A value of a [`Graph`].
    ValueId;
    /// A node of a [`Graph`].
    NodeId;
    /// A block of a [`Graph`].
    BlockId;
    /// Memory that the caller or the model owns.
    StoreId;
    /// A place in the source, for errors: an index into the table of whoever built the graph.
    SpanId;
}

/// The block that holds all others.
pub const ROOT: BlockId = BlockId(0);

/// What is known of a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Type {
    /// Sizes of the axes.
    pub shape: Shape,
    /// What the elements are.
    pub dtype: DType,
}

impl Type {
    /// A type of f32 elements.
    pub fn float(shape: Shape) -> Type {
        Type { shape, dtype: DType::F32 }
    }

    /// The same type for each of `count` iterations.
    pub fn stacked(&self, count: &Dim) -> Type {
        Type { shape: [std::slice::from_ref(count), &self.shape].concat(), dtype: self.dtype }
    }

    /// The type of one row of axis 0; none of a scalar.
    pub fn row(&self) -> Option<Type> {
        Some(Type { shape: self.shape.get(1..)?.to_vec(), dtype: self.dtype })
    }
}

/// A value: defined by an output of a node, or an argument of its block.
#[derive(Clone, Debug)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// The block that it belongs to.
    pub block: BlockId,
    /// The node and output that define it; a block argument has none.
    pub def: Option<(NodeId, usize)>,
}

/// Where a node comes from. It takes no part in equality of computations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// Dotted member path, then the statement's number.
    pub path: String,
    /// The number of the statement in its function.
    pub statement: u32,
    /// Whether the node belongs to the backward pass.
    pub backward: bool,
    /// The source, for errors.
    pub span: Option<SpanId>,
    /// What the user called it, once a chosen kernel no longer shows it.
    pub what: String,
    /// The rules of the search that made the node.
    pub rules: Vec<String>,
    /// The user's statement that the node serves.
    pub served: Option<Rc<Served>>,
    /// Why the search chose the node: an index into [`Choices::list`].
    pub choice: Option<usize>,
}

/// A statement of the user's.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Served {
    /// The dotted path of the layer whose function it stands in, empty at the top.
    pub path: String,
    /// The function.
    pub function: String,
    /// Its number in that function.
    pub number: u32,
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub span: Option<SpanId>,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub op: Op,
    /// What it reads: values of its block.
    pub inputs: Vec<ValueId>,
    /// What it makes.
    pub outputs: Vec<ValueId>,
    /// The block that it belongs to.
    pub block: BlockId,
    /// Where it comes from.
    pub origin: Origin,
}

/// A list of nodes with arguments and results.
#[derive(Clone, Default, Debug)]
pub struct Block {
    /// What it is given.
    pub args: Vec<ValueId>,
    /// In order: a node reads only arguments and outputs of earlier nodes.
    pub nodes: Vec<NodeId>,
    /// What it gives.
    pub results: Vec<ValueId>,
}

/// A loop.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Repeat {
    /// How often; at least 1.
    pub count: Dim,
    /// Whether the index counts down.
    pub reversed: bool,
    /// The number of carried values.
    pub carried: usize,
    /// The number of stacked inputs; the rest of the inputs is captured.
    pub stacked: usize,
    /// What runs.
    pub body: BlockId,
}

impl Repeat {
    /// Carried values live *between* iterations, at positions `0..=count`. This is the one that the loop starts from.
    pub fn first_position(&self) -> Dim {
        if self.reversed { self.count.clone() } else { Dim::from(0) }
    }

    /// The position that the loop ends at.
    pub fn last_position(&self) -> Dim {
        if self.reversed { Dim::from(0) } else { self.count.clone() }
    }

    /// How far before iteration `i` the position lies that it reads.
    pub fn position_in(&self) -> i64 {
        i64::from(self.reversed)
    }

    /// How far after iteration `i` the position lies that it writes.
    pub fn position_out(&self) -> i64 {
        i64::from(!self.reversed)
    }
}

/// A composite operation with its body, and its derivative if it states one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Call {
    /// The name in the language.
    pub name: String,
    /// Arguments: the inputs. Results: the result, then named inner values that the derivative reads.
    pub body: BlockId,
    /// The derivative; without one the body is differentiated.
    pub derivative: Option<Derivative>,
    /// What it is outside of training steps, with the same arguments and one result; none: the body.
    pub evaluation: Option<BlockId>,
}

/// The derivative of a composite.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Derivative {
    /// Arguments: the inputs, the results of the body, the cotangent of the result. Results: cotangents of `inputs`.
    pub block: BlockId,
    /// The inputs that have a cotangent, in the order of the block's results.
    pub inputs: Vec<usize>,
}

/// What a store is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StoreKind {
    /// Argument k of the entry.
    Argument(usize),
    /// The two words of the seed and the step, u32.
    Random,
    /// Tensor k of the model, trained or not.
    Tensor {
        /// Which tensor.
        index: usize,
        /// Whether it gets a gradient.
        trained: bool,
    },
}

/// Memory that the caller or the model owns. Its first `loops` axes are one row for each iteration.
#[derive(Clone, Debug)]
pub struct Store {
    /// What it is.
    pub kind: StoreKind,
    /// For people.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How many leading axes count iterations.
    pub loops: usize,
    /// Every element must be below this (labels).
    pub below: Option<Dim>,
}

/// A value that a call leaves behind.
#[derive(Clone, Debug)]
pub struct Output {
    /// What it is for.
    pub role: Role,
    /// For people.
    pub name: String,
    /// The value.
    pub value: ValueId,
    /// Leading axes with one row for each iteration (as in [`Store::loops`]).
    pub loops: usize,
}

/// A computation.
#[derive(Clone, Default, Debug)]
pub struct Graph {
    /// The dimensions.
    pub symbols: Symbols,
    /// All values.
    pub values: Vec<Value>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// All blocks; the first is the root.
    pub blocks: Vec<Block>,
    /// All memory from outside.
    pub stores: Vec<Store>,
    /// What the computation is for.
    pub outputs: Vec<Output>,
    /// What the dimensions must keep beside their bounds.
    pub checks: Vec<Check>,
    /// Why the search chose what it did, of a graph that it made.
    pub choices: Choices,
    /// Loops under construction.
    pub open: Vec<Open>,
    /// What new nodes get as their origin.
    pub origin: Origin,
}

impl Graph {
    /// A graph without nodes.
    pub fn new(symbols: Symbols) -> Graph {
        Graph { symbols, blocks: vec![Block::default()], ..Graph::default() }
    }

    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &Type {
        &self.values[id.index()].ty
    }

    /// The shape of a value.
    pub fn shape(&self, id: ValueId) -> &Shape {
        &self.values[id.index()].ty.shape
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A block.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// A store.
    pub fn store(&self, id: StoreId) -> &Store {
        &self.stores[id.index()]
    }

    /// The node that defines a value, and which of its outputs it is.
    pub fn def(&self, id: ValueId) -> Option<(&Node, usize)> {
        self.value(id).def.map(|(node, output)| (self.node(node), output))
    }

    /// The values of the tensors that are trained, in the order of the stores.
    pub fn trained(&self) -> Vec<(ValueId, StoreId)> {
        let read = |id: &NodeId| match self.node(*id).op {
            Op::Read(store) if matches!(self.store(store).kind, StoreKind::Tensor { trained: true, .. }) => {
                Some((self.node(*id).outputs[0], store))
            }
            _ => None,
        };
        self.block(ROOT).nodes.iter().filter_map(read).collect()
    }
}
