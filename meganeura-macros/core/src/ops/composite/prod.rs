//! The product of a row.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Scan;

use crate::ir::{Graph, ValueId};
use crate::ops::{Op, Slice};

/// The product over the last axis, `[.., 1]`. Its derivative is the product of the others, which is made of what comes
/// before and what comes behind, so that it is right where elements are 0.
pub fn prod(graph: &mut Graph, x: ValueId) -> ValueId {
    let scan = Scan { product: true, exclusive: false, reverse: false };
    let body = |graph: &mut Graph, x: &[ValueId]| {
        let totals = graph.running_total(x[0], scan);
        let shape = graph.shape(totals);
        let (axis, to) = (shape.len() - 1, shape[shape.len() - 1].clone());
        let from = &to - &Dim::from(1);
        vec![graph.emit(Op::Slice(Slice { axis: axis as u8, from, to }), &[totals])]
    };
    let derivative = |graph: &mut Graph, x: &[ValueId], _: &[ValueId], g: ValueId| {
        let before = graph.running_total(x[0], Scan { exclusive: true, ..scan });
        let behind = graph.running_total(x[0], Scan { exclusive: true, reverse: true, ..scan });
        let others = graph.mul(before, behind);
        vec![graph.mul(others, g)]
    };
    graph.call("prod", &[x], body, Some((vec![0], &derivative)))
}
