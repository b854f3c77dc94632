//! How high trees are.

use super::ast::{Argument, Expr, ExprKind, If, Index};
use proc_macro2::Span;

/// Operations on top of each other in one expression, blocks inside included.
pub(super) const MAX_HEIGHT: u32 = 256;

impl Expr {
    pub(super) fn new(span: Span, kind: ExprKind) -> Self {
        let below = match &kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Name(_)
            | ExprKind::Hole
            | ExprKind::Poison => 0,
            ExprKind::Unary(_, operand) => operand.height,
            ExprKind::Binary(_, left, right) => left.height.max(right.height),
            ExprKind::Call(callee, arguments) => callee.height.max(highest_argument(arguments)),
            ExprKind::Method(receiver, _, arguments) => receiver.height.max(highest_argument(arguments)),
            ExprKind::Field(base, _) => base.height,
            ExprKind::Index(base, indices) => base.height.max(highest_index(indices)),
            ExprKind::Array(elements) | ExprKind::Tuple(elements) => {
                elements.iter().map(|element| element.height).max().unwrap_or(0)
            }
            ExprKind::If(choice) => choice.height(),
        };
        Self { span, kind, height: below + 1 }
    }

    pub(super) fn poison(span: Span) -> Self {
        Self::new(span, ExprKind::Poison)
    }

    /// Whether this very expression could not be read.
    pub fn is_poison(&self) -> bool {
        matches!(self.kind, ExprKind::Poison)
    }
}

pub(super) fn highest_index(indices: &[Index]) -> u32 {
    let heights = indices.iter().flat_map(|index| match index {
        Index::At(at) => [at.height, 0],
        Index::Slice { start, end, .. } => [start, end].map(|end| end.as_ref().map_or(0, |end| end.height)),
    });
    heights.max().unwrap_or(0)
}

fn highest_argument(arguments: &[Argument]) -> u32 {
    arguments.iter().map(|argument| argument.value.height).max().unwrap_or(0)
}

impl If {
    pub(super) fn height(&self) -> u32 {
        let branches = self.branches.iter().map(|(condition, block)| condition.height.max(block.height));
        branches.chain(self.otherwise.iter().map(|block| block.height)).max().unwrap_or(0)
    }
}
