//! Views and layouts: transposes become label orders, reshapes of results become more labels.

use egg::Id;
use meganeura_shaders::dim::{Dim, Shape, product};
use meganeura_shaders::kernel::{Kernel, Spec};

use super::super::lang::{ENode, Eg, Op};
use super::parts::{Parts, plain, products_of};
use super::{New, classes, shape};

/// A product reads the stored order of a transposed side.
pub(super) fn transpose_in(eg: &Eg, node: &ENode) -> Vec<New> {
    let Some(parts) = Parts::of(node) else { return vec![] };
    let Some(bare) = parts.plain() else { return vec![] };
    let (spec, a, b) = (bare.spec, bare.a, bare.b);
    let stored = |perm: &[u8], labels: &[u8]| {
        let mut stored = labels.to_vec();
        perm.iter().zip(labels).for_each(|(p, l)| stored[usize::from(*p)] = *l);
        stored
    };
    let left = transposes_of(eg, a).map(|(perm, x)| (Spec::new(&stored(perm, &spec.a), &spec.b, &spec.out), [x, b]));
    let right = transposes_of(eg, b).map(|(perm, y)| (Spec::new(&spec.a, &stored(perm, &spec.b), &spec.out), [a, y]));
    left.chain(right).map(|(spec, args)| plain(spec, classes(&args))).collect()
}

fn transposes_of(eg: &Eg, id: Id) -> impl Iterator<Item = (&[u8], Id)> {
    let transpose = |n: &'_ ENode| matches!(n.op, Op::Transpose(_)).then_some(n.args[0]);
    eg[id].nodes.iter().filter_map(move |n| match &n.op {
        Op::Transpose(perm) => Some((&perm[..], transpose(n)?)),
        _ => None,
    })
}

/// Two transposes are one; one that moves only axes of size 1 is a reshape.
pub(super) fn transpose_transpose(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Transpose(perm) = &node.op else { return vec![] };
    let from = shape(eg, node.args[0]);
    let moved: Vec<u8> = perm.iter().copied().filter(|axis| !from[usize::from(*axis)].is_one()).collect();
    if moved.is_sorted() {
        let to = perm.iter().map(|axis| from[usize::from(*axis)].clone()).collect();
        return vec![New::Node(Op::Reshape(to), classes(&node.args))];
    }
    let both = |(inner, x): (&[u8], Id)| {
        let perm = perm.iter().map(|axis| inner[usize::from(*axis)]).collect();
        New::Node(Op::Transpose(perm), vec![New::Class(x)])
    };
    transposes_of(eg, node.args[0]).map(both).collect()
}

/// A product stores its result in the order that is asked for.
pub(super) fn transpose_out(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Transpose(perm) = &node.op else { return vec![] };
    let stored = products_of(eg, node.args[0]).filter_map(|p| {
        let bare = p.plain()?;
        let out: Vec<u8> = perm.iter().map(|i| bare.spec.out[usize::from(*i)]).collect();
        Some(plain(Spec::new(&bare.spec.a, &bare.spec.b, &out), classes(&[bare.a, bare.b])))
    });
    stored.collect()
}

/// A product whose results are only read with their last axis split (into heads) splits the weight's axis instead.
pub(super) fn split_label(eg: &Eg, node: &ENode) -> Vec<New> {
    split(eg, node).into_iter().collect()
}

fn split(eg: &Eg, node: &ENode) -> Option<New> {
    let parts = Parts::of(node)?;
    let bare = parts.plain()?;
    let id = eg.lookup(node.clone())?;
    let whole = shape(eg, id);
    let kept = whole.len().checked_sub(1)?;
    let readers: Vec<&ENode> = eg[id].parents().map(|parent| &eg.nodes()[usize::from(parent)]).collect();
    let target = |reader: &&ENode| if let Op::Reshape(target) = &reader.op { Some(target.clone()) } else { None };
    let splits = |target: &&Shape| {
        target.len() > whole.len() && target[..kept] == whole[..kept] && product(&target[kept..]) == whole[kept]
    };
    let targets: Vec<Shape> = readers.iter().map(target).collect::<Option<_>>()?;
    let target = targets.iter().filter(splits).min()?;

    let spec = bare.spec;
    let last = *spec.out.last()?;
    let axis = spec.b.iter().position(|l| *l == last).filter(|_| !spec.a.contains(&last))?;
    let first_free = 1 + spec.a.iter().chain(&spec.b).max()?;
    let pieces: Vec<u8> = (0..(target.len() - kept) as u8).map(|i| first_free + i).collect();
    let split = |labels: &[u8]| -> Vec<u8> {
        labels.iter().flat_map(|l| if *l == last { pieces.clone() } else { vec![*l] }).collect()
    };
    let weight = shape(eg, bare.b);
    let stored = [&weight[..axis], &target[kept..], &weight[axis + 1..]].concat();
    let weight = New::Node(Op::Reshape(stored), vec![New::Class(bare.b)]);
    let spec = Spec::new(&spec.a, &split(&spec.b), &split(&spec.out));
    Some(New::Node(Op::Reshape(whole.clone()), vec![plain(spec, vec![New::Class(bare.a), weight])]))
}

/// A reshape of a reshape is one, and one to the same shape none.
pub(super) fn reshape_reshape(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Reshape(target) = &node.op else { return vec![] };
    if shape(eg, node.args[0]) == target {
        return vec![New::Class(node.args[0])];
    }
    let below = eg[node.args[0]].nodes.iter().filter(|n| matches!(n.op, Op::Reshape(_)));
    let same = |id: Id| match shape(eg, id) == target {
        true => New::Class(id),
        false => New::Node(node.op.clone(), vec![New::Class(id)]),
    };
    below.map(|n| same(n.args[0])).collect()
}

/// A pointwise loop over reshaped values of one shape, and numbers, is reshaped itself: it may run where they are made.
pub(super) fn reshape_loop(eg: &Eg, node: &ENode) -> Vec<New> {
    let Op::Kernel(kernel @ Kernel::Rows(p)) = &node.op else { return vec![] };
    if p.reduces_rows() || p.uses_index() {
        return vec![];
    }
    let is_number = |id: &Id| shape(eg, *id).iter().all(Dim::is_one);
    let Some(space) = node.args.iter().find(|a| !is_number(a)).or(node.args.first()).map(|a| shape(eg, *a)) else {
        return vec![];
    };
    let below = |id: Id| eg[id].nodes.iter().filter(|n| matches!(n.op, Op::Reshape(_))).map(|n| n.args[0]);
    let mut shapes: Vec<&Shape> = node.args.iter().flat_map(|a| below(*a)).map(|x| shape(eg, x)).collect();
    shapes.sort();
    shapes.dedup();
    let mut found = vec![];
    for from in shapes {
        let moved = |a: &Id| match shape(eg, *a) == space {
            true => below(*a).find(|x| shape(eg, *x) == from),
            false => Some(*a).filter(|a| is_number(a) && shape(eg, *a).len() <= from.len().min(space.len())),
        };
        let Some(args) = node.args.iter().map(moved).collect::<Option<Vec<Id>>>() else { continue };
        let whole = p.shape(&node.args.iter().map(|a| shape(eg, *a)).collect::<Vec<_>>());
        if whole.as_ref() == Some(space) {
            let inner = New::Node(Op::Kernel(kernel.clone()), classes(&args));
            found.push(New::Node(Op::Reshape(space.clone()), vec![inner]));
        }
    }
    found
}
