//! The rules by family: `layout` (views and transposes), `fuse` (producers into consumers), `algebra` (identities of
//! arithmetic), `pack` (several kernels in one launch).
//!
//! Rules are directional and never permute operands: commutativity is the business of
//! [`Linker`](meganeura_shaders::prog::Linker), associativity that of `factors`. A rule reads a clean graph and returns
//! equal terms; nothing is added before all rules have read, so the order of rules cannot change what they see.
//!
//! Each result has one derivation: a product takes its epilogue and accumulators while its rows are still a stored
//! value, then its prologue, then the factors of its rows move away. A loop inlines what was written, not what was
//! fused before. Without these two guards the same nodes are found five times over.

mod algebra;
mod fuse;
mod layout;
mod pack;
mod parts;

use egg::Id;
use meganeura_shaders::dim::Shape;
use meganeura_shaders::kernel::Kernel;

use super::lang::{ENode, Eg, Op};

/// Terms to be added: known classes and new nodes over them.
#[derive(Clone, Debug)]
pub enum New {
    /// A class that is there.
    Class(Id),
    /// A node that may be new.
    Node(Op, Vec<New>),
}

/// A named rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// `family/rule`.
    pub name: &'static str,
    /// What it looks for and finds.
    pub find: Find,
}

/// How a rule is applied.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Equals of one node that are never worse: for the graph before saturation.
    Always(fn(&Eg, &ENode) -> Vec<New>),
    /// Equals of one node; may look at the nodes of the given kind in the classes that it reads.
    Node(Below, fn(&Eg, &ENode) -> Vec<New>),
    /// Pairs of equals from the whole graph, once after the others have ended: what it packs should be the final
    /// kernels, since nothing that enters an e-graph leaves it again.
    Finish(fn(&Eg) -> Vec<(New, New)>),
}

/// What a rule looks at below its node: only when there is more of that, it is asked again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Below {
    /// Nothing but types.
    Nothing,
    /// Loops.
    Loops,
    /// Products.
    Products,
    /// Reshapes.
    Reshapes,
}

impl Below {
    /// Whether a rule looks at such a node.
    pub fn is(self, op: &Op) -> bool {
        match self {
            Below::Nothing => false,
            Below::Loops => matches!(op, Op::Kernel(Kernel::Rows(_))),
            Below::Products => matches!(op, Op::Kernel(Kernel::Contract(_))),
            Below::Reshapes => matches!(op, Op::Reshape(_)),
        }
    }
}

/// Every rule.
pub const ALL: &[Rule] = &[
    Rule { name: "layout/transpose-transpose", find: Find::Always(layout::transpose_transpose) },
    Rule { name: "layout/transpose-in", find: Find::Always(layout::transpose_in) },
    Rule { name: "layout/transpose-out", find: Find::Always(layout::transpose_out) },
    Rule { name: "layout/split-label", find: Find::Always(layout::split_label) },
    Rule { name: "layout/reshape-reshape", find: Find::Always(layout::reshape_reshape) },
    Rule { name: "layout/reshape-loop", find: Find::Node(Below::Reshapes, layout::reshape_loop) },
    Rule { name: "fuse/loops", find: Find::Node(Below::Loops, fuse::loops) },
    Rule { name: "fuse/column-sum", find: Find::Node(Below::Loops, fuse::column_sum) },
    Rule { name: "fuse/epilogue", find: Find::Node(Below::Products, fuse::epilogue) },
    Rule { name: "fuse/accumulators", find: Find::Node(Below::Products, fuse::accumulators) },
    Rule { name: "fuse/prologue-a", find: Find::Node(Below::Loops, fuse::prologue_a) },
    Rule { name: "fuse/prologue-b", find: Find::Node(Below::Loops, fuse::prologue_b) },
    Rule { name: "algebra/row-scale", find: Find::Node(Below::Nothing, algebra::row_scale) },
    Rule { name: "pack/products", find: Find::Finish(pack::products) },
    Rule { name: "pack/loops", find: Find::Finish(pack::loops) },
    Rule { name: "pack/column-sum", find: Find::Finish(pack::column_sum) },
];

/// The rule whose results loops do not inline.
pub(super) const LOOPS: &str = "fuse/loops";

fn shape(eg: &Eg, id: Id) -> &Shape {
    eg[id].data.shape()
}

fn classes(ids: &[Id]) -> Vec<New> {
    ids.iter().map(|id| New::Class(*id)).collect()
}
