//! Producers into consumers. Every rule composes programs, so both sides are equal by construction.

use egg::Id;
use meganeura_shaders::dim::broadcast;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::{Leaf, Linker, Prog, Reg};

use super::super::lang::{ENode, Eg, Op};
use super::super::link::{arguments, inline, last, leaf};
use super::super::templates;
use super::parts::{Parts, products_of};
use super::{New, classes, shape};

/// `loop p (.., loop q ys, ..)` = `loop p∘q`.
pub(super) fn loops(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Kernel(Kernel::Rows(p)) = &node.op else { return vec![] };
    let fused = inlined(eg, p, &node.args).filter(|(p, _)| templates::fits(p));
    fused.map(|(p, args)| New::Node(Op::Kernel(Kernel::Rows(p)), classes(&args))).collect()
}

/// A loop into the sum over its columns.
pub(super) fn column_sum(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Kernel(Kernel::ColumnSum(p)) = &node.op else { return vec![] };
    let fused = inlined(eg, p, &node.args).filter(|(p, _)| templates::fits(p) && templates::is_column_sum(p));
    fused.map(|(p, args)| New::Node(Op::Kernel(Kernel::ColumnSum(p)), classes(&args))).collect()
}

/// Every way to inline one argument that a loop of the program as written computes: what fusion made of that loop is
/// reached by inlining further.
fn inlined<'a>(eg: &'a Eg, p: &'a Prog, args: &'a [Id]) -> impl Iterator<Item = (Prog, Vec<Id>)> + 'a {
    args.iter().enumerate().flat_map(move |(i, a)| {
        eg[*a].nodes.iter().filter_map(move |n| match &n.op {
            Op::Kernel(Kernel::Rows(q)) if is_written(eg, n) => inline(p, args, i, q, &n.args),
            _ => None,
        })
    })
}

fn is_written(eg: &Eg, node: &ENode) -> bool {
    eg.analysis.history.get(node).is_some_and(|history| history.written)
}

/// A loop into the left side of a product. Row reductions only where the product needs whole rows anyway.
pub(super) fn prologue_a(eg: &Eg, node: &ENode) -> Vec<New> {
    let Some(parts) = Parts::of(node) else { return vec![] };
    let Some(rows) = parts.rows().filter(|f| f.term.stat.is_none()) else { return vec![] };
    let fused = inlined(eg, &rows.term.a, &rows.a).filter_map(|(a, args)| {
        let mut parts = parts.clone();
        parts.set_rows(&a, None, &args);
        parts.node(eg)
    });
    fused.collect()
}

/// A loop into the right side.
pub(super) fn prologue_b(eg: &Eg, node: &ENode) -> Vec<New> {
    let Some(parts) = Parts::of(node) else { return vec![] };
    let Some(factor) = parts.single() else { return vec![] };
    let fused = inlined(eg, &factor.term.b, &factor.b).filter_map(|(b, args)| {
        let mut parts = parts.clone();
        (parts.terms[0].term.b, parts.terms[0].b) = (b, args);
        parts.node(eg)
    });
    fused.collect()
}

/// A loop of the product's own shape becomes its epilogue, its other arguments read there.
pub(super) fn epilogue(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Kernel(Kernel::Rows(p)) = &node.op else { return vec![] };
    if !templates::is_epilogue(p) {
        return vec![];
    }
    let space = node.args.iter().fold(vec![], |s, a| broadcast(&s, shape(eg, *a)).unwrap_or_default());
    let mut found = vec![];
    for arg in node.args.iter().filter(|a| *shape(eg, **a) == space) {
        for mut parts in products_of(eg, *arg).filter(Parts::rows_are_stored) {
            let contract = parts.contract();
            let mut link = Linker::default();
            let own = last(&link.splice_leaves(&parts.epi, &epi_leaves(&parts)));
            let inputs: Vec<Reg> = node.args.iter().map(|a| if a == arg { own } else { link.leaf(leaf(*a)) }).collect();
            let root = last(&link.splice(p, &inputs));
            let (mut programs, leaves) = link.finish(&[root], &contract.seeds());
            (parts.epi, parts.extras) = (programs.remove(0), arguments(&leaves));
            found.extend(parts.node(eg));
        }
    }
    found
}

/// The inputs of the epilogue.
pub(super) fn epi_leaves(parts: &Parts) -> Vec<Leaf> {
    parts.contract().seeds().into_iter().chain(parts.extras.iter().map(|id| leaf(*id))).collect()
}

/// An argument of the epilogue that is itself a product of this shape becomes a second accumulator: of the same rows
/// (gate and up), or of others (a sum of products).
pub(super) fn accumulators(eg: &Eg, node: &ENode) -> Vec<New> {
    let is_candidate = |p: &Parts| p.terms.len() < templates::MAX_TERMS && p.rows_are_stored();
    let Some(parts) = Parts::of(node).filter(is_candidate) else { return vec![] };
    let Some(own) = parts.accumulated(eg) else { return vec![] };
    let mut found = vec![];
    for extra in &parts.extras {
        for other in products_of(eg, *extra).filter(Parts::rows_are_stored) {
            let Some(second) = other.single() else { continue };
            if other.accumulated(eg).as_ref() != Some(&own) {
                continue;
            }
            let mut joined = parts.clone();
            joined.terms.push(second.clone());
            let index = parts.terms.len() as u8;
            let renamed = |leaf| if leaf == Leaf::Acc(0) { Leaf::Acc(index) } else { leaf };
            let theirs: Vec<Leaf> = epi_leaves(&other).into_iter().map(renamed).collect();
            let mut link = Linker::default();
            let value = last(&link.splice_leaves(&other.epi, &theirs));
            let ours = epi_leaves(&parts);
            let inputs: Vec<Reg> =
                ours.into_iter().map(|l| if l == leaf(*extra) { value } else { link.leaf(l) }).collect();
            let root = last(&link.splice(&parts.epi, &inputs));
            let (mut programs, leaves) = link.finish(&[root], &joined.contract().seeds());
            (joined.epi, joined.extras) = (programs.remove(0), arguments(&leaves));
            found.extend(joined.node(eg));
        }
    }
    found
}
