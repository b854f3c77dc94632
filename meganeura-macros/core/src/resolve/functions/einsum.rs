//! `einsum`: products and sums over labelled axes, two operands at a time from the left.
//!
//! A label that stands twice in one operand takes the diagonal, one that nobody else has is summed before the product.
//! Without `->` the result has the labels that stand once, in the order of the alphabet, as in NumPy.

use meganeura_shaders::dim::Dim;
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::pointwise::Bin;

use super::{Call, Kind, Row, needs, takes};
use crate::diag::resolve as diag;
use crate::ir::{Graph, ValueId};
use crate::ops::{Contract, Op};
use crate::resolve::Resolver;
use crate::resolve::value::Value;

pub(super) const ROWS: &[Row] = &[Row {
    name: "einsum",
    parameters: &[
        needs("labels", Kind::Value),
        needs("a", Kind::Float),
        takes("b", Kind::Float),
        takes("c", Kind::Float),
        takes("d", Kind::Float),
    ],
    build: einsum,
}];

/// A value and the label of each of its axes.
type Labelled = (ValueId, Vec<char>);

fn einsum<'a>(cx: &mut Resolver<'a, '_>, call: &Call<'a>) -> Option<Value<'a>> {
    let Value::Text(text) = call.value(0)? else {
        cx.report(call.place(0), diag::einsum_text());
        return None;
    };
    let (inputs, result) = match text.split_once("->") {
        Some((inputs, result)) => (inputs, Some(result)),
        None => (*text, None),
    };
    let letters = |part: &str| part.chars().filter(|c| *c != ' ').collect::<Vec<char>>();
    let inputs: Vec<Vec<char>> = inputs.split(',').map(letters).collect();
    let result = result.map(letters);
    if !inputs.iter().chain(&result).flatten().all(char::is_ascii_alphabetic) {
        cx.report(call.place(0), diag::einsum_letters(text));
        return None;
    }
    let given = (1..5).filter(|at| call.get(*at).is_some()).count();
    if given != inputs.len() {
        cx.report(call.place(0), diag::einsum_operands(inputs.len(), given));
        return None;
    }
    let mut sizes: std::collections::BTreeMap<char, Dim> = Default::default();
    let mut operands: Vec<Labelled> = vec![];
    for (k, labels) in inputs.into_iter().enumerate() {
        let value = cx.float(call, k + 1)?;
        let shape = cx.graph.shape(value).clone();
        if shape.len() != labels.len() {
            let found = cx.show_type(cx.graph.ty(value));
            cx.report(call.place(k + 1), diag::einsum_rank(&labels.iter().collect::<String>(), &found));
            return None;
        }
        for (label, size) in labels.iter().zip(&shape) {
            let known = sizes.entry(*label).or_insert_with(|| size.clone());
            if known != size {
                let (first, other) = (cx.show_size(&known.clone()), cx.show_size(size));
                cx.report(call.place(k + 1), diag::einsum_size(*label, &first, &other));
                return None;
            }
        }
        operands.push((value, labels));
    }
    let times = |label: &char| operands.iter().flat_map(|(_, labels)| labels).filter(|other| *other == label).count();
    let result = result.unwrap_or_else(|| sizes.keys().filter(|label| times(label) == 1).copied().collect());
    let twice = |label: &&char| !sizes.contains_key(label) || result.iter().filter(|other| other == label).count() > 1;
    if let Some(label) = result.iter().find(twice) {
        cx.report(call.place(0), diag::einsum_result(*label));
        return None;
    }
    let value = contracted(&mut cx.graph, operands, &result);
    Some(Value::Tensor(value))
}

fn contracted(graph: &mut Graph, operands: Vec<Labelled>, result: &[char]) -> ValueId {
    let mut rest: std::collections::VecDeque<Labelled> =
        operands.into_iter().map(|operand| diagonal(graph, operand)).collect();
    while rest.len() > 1 {
        let (Some(a), Some(b)) = (rest.pop_front(), rest.pop_front()) else { break };
        let later = |label: &char| result.contains(label) || rest.iter().any(|(_, labels)| labels.contains(label));
        let a = summed(graph, a, |label| later(label) || b.1.contains(label));
        let b = summed(graph, b, |label| later(label) || a.1.contains(label));
        let all = a.1.iter().chain(b.1.iter().filter(|label| !a.1.contains(label)));
        let mut kept: Vec<char> = all.filter(|label| later(label)).copied().collect();
        if rest.is_empty() {
            kept = result.to_vec();
        }
        let bytes = |labels: &[char]| labels.iter().map(|label| *label as u8).collect::<Vec<u8>>();
        let spec = Spec::new(&bytes(&a.1), &bytes(&b.1), &bytes(&kept));
        let product = graph.emit(Op::Contract(Contract { spec }), &[a.0, b.0]);
        rest.push_front((product, kept));
    }
    let Some(last) = rest.pop_front() else { return graph.constant(0.0) };
    let (value, labels) = summed(graph, last, |label| result.contains(label));
    let perm: Vec<u8> =
        result.iter().filter_map(|label| labels.iter().position(|other| other == label)).map(|k| k as u8).collect();
    if perm.iter().copied().eq(0..perm.len() as u8) { value } else { graph.transpose(value, &perm) }
}

/// Every label once: elements off the diagonal go to 0 and the second axis is summed.
fn diagonal(graph: &mut Graph, (mut value, mut labels): Labelled) -> Labelled {
    while let Some(second) = (0..labels.len()).find(|k| labels[..*k].contains(&labels[*k])) {
        let first = labels.iter().position(|label| *label == labels[second]).unwrap_or_default();
        let rank = labels.len();
        let (row, column) =
            (graph.index((rank - 1 - first) as u8, value), graph.index((rank - 1 - second) as u8, value));
        let (on, zero) = (graph.bin(Bin::Eq, row, column), graph.constant(0.0));
        let kept = graph.select(on, value, zero);
        value = without(graph, kept, &[second]);
        labels.remove(second);
    }
    (value, labels)
}

/// Without the axes whose labels nobody keeps.
fn summed(graph: &mut Graph, (value, labels): Labelled, keeps: impl Fn(&char) -> bool) -> Labelled {
    let gone: Vec<usize> = (0..labels.len()).filter(|k| !keeps(&labels[*k])).collect();
    let value = without(graph, value, &gone);
    (value, labels.into_iter().filter(|label| keeps(label)).collect())
}

fn without(graph: &mut Graph, value: ValueId, axes: &[usize]) -> ValueId {
    let summed = graph.sum(value, &axes.iter().map(|axis| *axis as u8).collect::<Vec<_>>());
    let shape = graph.shape(summed).iter().enumerate();
    let kept = shape.filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| size.clone()).collect();
    graph.reshape(summed, kept)
}
