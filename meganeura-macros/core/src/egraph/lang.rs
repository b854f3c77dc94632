//! The language of the e-graph: one node type, attributes in the operation, types as analysis.
//!
//! **Every class denotes contiguous row-major values.** Strides are never a property of a value, only of an access: a
//! transposed read is a label order in a [`Spec`](meganeura_shaders::kernel::Spec). That is what makes `Reshape` free
//! without any condition, and it keeps extraction sound, since the layout of a class cannot depend on which of its
//! nodes was chosen.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use egg::{Analysis, DidMerge, EGraph, Id, Language};
use meganeura_shaders::dim::{Shape, product};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::DType;

use crate::ir::Type;
use crate::ops;

/// What a node of the e-graph does.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Op {
    /// A stored value: a dense id, whose order cannot depend on what else the process has compiled.
    Leaf(u32, Stored, Type),
    /// The same elements under another shape.
    Reshape(Shape),
    /// Axes in another order: a copy, unless a rule absorbs it.
    Transpose(Vec<u8>),
    /// An operation that no rule knows, with the type of its result.
    Opaque(Arc<ops::Op>, Type),
    /// A kernel.
    Kernel(Kernel),
    /// A tuple of values; no kernel, it names the class of the launches that compute them together.
    Tuple,
    /// Several kernels in one launch: a way to compute a tuple.
    Launch(Arc<[Kernel]>),
    /// A value of a tuple.
    Proj(u8),
}

/// Where a leaf comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stored {
    /// A tensor of the model, or the row of one.
    Tensor,
    /// Anything that a call computes or is given.
    Value,
}

/// An operation over classes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ENode {
    /// What it does. First, so that the order of nodes groups by kind.
    pub op: Op,
    /// The classes that it reads.
    pub args: Vec<Id>,
}

impl Language for ENode {
    type Discriminant = std::mem::Discriminant<Op>;

    fn discriminant(&self) -> Self::Discriminant {
        std::mem::discriminant(&self.op)
    }

    fn matches(&self, other: &Self) -> bool {
        self.op == other.op && self.args.len() == other.args.len()
    }

    fn children(&self) -> &[Id] {
        &self.args
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.args
    }
}

/// What is known of a class: equal for all its nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// One type, or those of a tuple.
    pub outs: Vec<Type>,
}

impl Facts {
    /// The shape of a class that is no tuple.
    pub fn shape(&self) -> &Shape {
        &self.outs[0].shape
    }

    /// The type of the elements of a class that is no tuple.
    pub fn dtype(&self) -> DType {
        self.outs[0].dtype
    }
}

/// How a node came to be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// The rules that made it, in order; none for what the graph said.
    pub rules: Rc<[&'static str]>,
    /// Whether it is more than a fusion of loops: what loops may inline.
    pub written: bool,
}

/// The histories of nodes; by arguments first, since those are quick to compare.
#[derive(Clone, Default, Debug)]
pub struct Histories(BTreeMap<Vec<Id>, BTreeMap<Op, History>>);

impl Histories {
    /// The history of a node.
    pub fn get(&self, node: &ENode) -> Option<&History> {
        self.0.get(&node.args)?.get(&node.op)
    }

    /// Adds a node; of one that is known, what was written stays written.
    pub fn insert(&mut self, node: ENode, history: History) {
        let written = history.written;
        self.0.entry(node.args).or_default().entry(node.op).or_insert(history).written |= written;
    }

    /// Follows classes that have been joined.
    pub fn rename(&mut self, find: impl Fn(Id) -> Id) {
        let moved: Vec<Vec<Id>> = self.0.keys().filter(|args| args.iter().any(|a| find(*a) != *a)).cloned().collect();
        for args in moved {
            let nodes = self.0.remove(&args).unwrap_or_default();
            let args: Vec<Id> = args.into_iter().map(&find).collect();
            nodes.into_iter().for_each(|(op, history)| self.insert(ENode { op, args: args.clone() }, history));
        }
    }
}

/// The analysis, and what rules may ask of the whole graph.
#[derive(Clone, Default, Debug)]
pub struct Typing {
    /// What has to be computed.
    pub roots: Vec<Id>,
    /// The history of every node.
    pub history: Histories,
    /// The facts of the class that the next node will join, so that they need not be found again.
    pub expected: Option<Facts>,
}

/// The e-graph of a region.
pub type Eg = EGraph<ENode, Typing>;

impl Analysis<ENode> for Typing {
    type Data = Facts;

    fn make(eg: &mut Eg, node: &ENode, _: Id) -> Facts {
        if let Some(expected) = eg.analysis.expected.take() {
            #[cfg(test)]
            assert_eq!(
                infer(&node.op, &node.args.iter().map(|id| &eg[*id].data).collect::<Vec<_>>()),
                Some(expected.clone())
            );
            return expected;
        }
        let args: Vec<&Facts> = node.args.iter().map(|id| &eg[*id].data).collect();
        let facts = infer(&node.op, &args);
        assert!(facts.is_some(), "ill-typed {} over {args:?}", node.op);
        facts.unwrap_or(Facts { outs: vec![] })
    }

    fn merge(&mut self, a: &mut Facts, b: Facts) -> DidMerge {
        assert_eq!(a.outs, b.outs, "a rule joined values of different type");
        DidMerge(false, false)
    }
}

/// The type of a node; none where its arguments do not fit.
pub fn infer(op: &Op, args: &[&Facts]) -> Option<Facts> {
    let one = |shape: Shape, dtype: DType| Some(Facts { outs: vec![Type { shape, dtype }] });
    match op {
        Op::Leaf(_, _, ty) | Op::Opaque(_, ty) => Some(Facts { outs: vec![ty.clone()] }),
        Op::Reshape(shape) => {
            (product(shape) == product(args[0].shape())).then(|| one(shape.clone(), args[0].dtype()))?
        }
        Op::Transpose(perm) => {
            let shape = args[0].shape();
            one(perm.iter().map(|p| shape.get(usize::from(*p)).cloned()).collect::<Option<_>>()?, args[0].dtype())
        }
        Op::Kernel(kernel) => {
            let shapes: Vec<&Shape> = args.iter().map(|f| f.shape()).collect();
            let dtypes: Vec<DType> = args.iter().map(|f| f.dtype()).collect();
            one(kernel.shape(&shapes)?, kernel.dtype(&dtypes)?)
        }
        Op::Tuple => Some(Facts { outs: args.iter().map(|f| f.outs[0].clone()).collect() }),
        Op::Launch(kernels) => {
            let members = split(kernels, args).map(|(kernel, args)| infer(&Op::Kernel(kernel.clone()), args));
            Some(Facts { outs: members.map(|facts| facts?.outs.pop()).collect::<Option<_>>()? })
        }
        Op::Proj(i) => Some(Facts { outs: vec![args[0].outs.get(usize::from(*i))?.clone()] }),
    }
}

/// The members of a launch with their shares of the arguments.
pub fn split<'a, T>(kernels: &'a [Kernel], args: &'a [T]) -> impl Iterator<Item = (&'a Kernel, &'a [T])> {
    let mut rest = args;
    kernels.iter().map(move |kernel| {
        let (own, others) = rest.split_at(kernel.arity());
        rest = others;
        (kernel, own)
    })
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Leaf(id, Stored::Tensor, _) => write!(f, "tensor{id}"),
            Op::Leaf(id, Stored::Value, _) => write!(f, "value{id}"),
            Op::Reshape(shape) => write!(f, "reshape{shape:?}"),
            Op::Transpose(perm) => write!(f, "transpose{perm:?}"),
            Op::Opaque(op, _) => f.write_str(op.name()),
            Op::Kernel(kernel) => write!(f, "{kernel}"),
            Op::Tuple => f.write_str("tuple"),
            Op::Launch(kernels) => {
                let members: Vec<String> = kernels.iter().map(ToString::to_string).collect();
                write!(f, "launch [{}]", members.join(" | "))
            }
            Op::Proj(i) => write!(f, ".{i}"),
        }
    }
}
