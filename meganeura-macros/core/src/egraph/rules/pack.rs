//! Kernels side by side: what reads the same rows shares one launch.
//!
//! The values that one launch computes are a tuple, `Tuple(c₀, c₁, ..)`, and `Proj i` of it joins the class `cᵢ`; every
//! packed kernel for these values joins the tuple. So a packed kernel is one more alternative, and sound like any
//! other: if one of its arguments depended on one of its results, choosing both would be a cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use egg::Id;
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::Prog;

use super::super::lang::{ENode, Eg, Op, Stored};
use super::super::templates;
use super::parts::{Factor, Parts};
use super::{New, classes};

#[derive(Clone)]
struct Member {
    class: Id,
    kernel: Kernel,
    args: Vec<Id>,
}

/// Launches of the members in order, each of as many as bind no more than one may.
fn launches(members: Vec<Member>) -> Vec<(New, New)> {
    let mut found = vec![];
    let mut chosen: Vec<Member> = vec![];
    for member in members {
        chosen.push(member);
        if !fits(&chosen)
            && let Some(last) = chosen.pop()
        {
            found.extend(launch(std::mem::replace(&mut chosen, vec![last])));
        }
    }
    found.extend(launch(chosen));
    found
}

fn fits(members: &[Member]) -> bool {
    let args: Vec<Id> = members.iter().flat_map(|m| m.args.iter().copied()).collect();
    templates::launch_fits(members.len(), &args)
}

fn launch(members: Vec<Member>) -> Vec<(New, New)> {
    if members.len() < 2 || !fits(&members) {
        return vec![];
    }
    let args: Vec<Id> = members.iter().flat_map(|m| m.args.iter().copied()).collect();
    let kernels: Arc<[Kernel]> = members.iter().map(|m| m.kernel.clone()).collect();
    let values: Vec<Id> = members.iter().map(|m| m.class).collect();
    let tuple = New::Node(Op::Tuple, classes(&values));
    let project = |(i, v): (usize, &Id)| (New::Class(*v), New::Node(Op::Proj(i as u8), vec![tuple.clone()]));
    let projections = values.iter().enumerate().map(project);
    projections.chain([(tuple.clone(), New::Node(Op::Launch(kernels), classes(&args)))]).collect()
}

/// Products of the same rows (query, key, value): for each way to prepare the rows two groups, the values furthest from
/// the products that need nothing of each other, and the bare products, which a backward pass wants stored.
pub(super) fn products(eg: &Eg) -> Vec<(New, New)> {
    let mut reach = Reach::new(eg);
    let mut groups: BTreeMap<_, Vec<(BTreeSet<Id>, Member)>> = BTreeMap::new();
    for (class, node) in nodes(eg) {
        let Some(parts) = Parts::of(node) else { continue };
        let Op::Kernel(kernel) = &node.op else { continue };
        let whole_rows = parts.terms.iter().all(|f| f.term.spec.contracts_rows_of_a());
        let Some(rows) = parts.rows().filter(|_| whole_rows) else { continue };
        let Some(weights) = parts.terms.iter().map(Factor::right).collect::<Option<BTreeSet<Id>>>() else { continue };
        let key = (rows.a.clone(), rows.term.a.clone(), rows.term.stat.clone());
        let member = Member { class, kernel: kernel.clone(), args: node.args.clone() };
        groups.entry(key).or_default().push((weights, member));
    }
    let mut found = vec![];
    for mut group in groups.into_values().filter(|group| group.len() > 1) {
        let results: BTreeSet<Id> = group.iter().map(|(_, m)| m.class).collect();
        group.retain(|(_, m)| reach.below(&m.args).is_disjoint(&results));
        let mut inner = |m: &Member| reach.below(&[m.class]).intersection(&results).count();
        group.sort_by_cached_key(|(weights, m)| (weights.len(), inner(m), m.class));
        let bare = one_a_weight(group.iter());
        let furthest = one_a_weight(group.iter().rev());
        let same = bare.iter().map(|m| m.class).eq(furthest.iter().map(|m| m.class));
        found.extend(launches(furthest));
        if !same {
            found.extend(launches(bare));
        }
    }
    found
}

/// The first member for each weight, in class order.
fn one_a_weight<'a>(group: impl Iterator<Item = &'a (BTreeSet<Id>, Member)>) -> Vec<Member> {
    let mut covered: BTreeSet<Id> = BTreeSet::new();
    let mut members: Vec<Member> = vec![];
    for (weights, member) in group {
        if weights.is_disjoint(&covered) {
            covered.extend(weights);
            members.push(member.clone());
        }
    }
    members.sort_by_key(|m| m.class);
    members
}

/// Loops that read a computed value in common, and whose results something else than a loop needs (a loss and its
/// gradient), each as far fused as it gets: those over the same computed values, and all over one of them.
pub(super) fn loops(eg: &Eg) -> Vec<(New, New)> {
    let is_tensor = |id: Id| eg[id].nodes.iter().any(|n| matches!(n.op, Op::Leaf(_, Stored::Tensor, _)));
    let is_loop = |id: Id| matches!(eg.nodes()[usize::from(id)].op, Op::Kernel(Kernel::Rows(_)));
    let is_root = |id: Id| eg.analysis.roots.iter().any(|r| eg.find(*r) == id);
    let needed = |id: Id| is_root(id) || eg[id].parents().any(|p| !is_loop(p));
    let mut groups: BTreeMap<BTreeSet<Id>, BTreeMap<Id, (usize, Member)>> = BTreeMap::new();
    for (class, node) in nodes(eg).filter(|(id, _)| needed(*id)) {
        let Op::Kernel(kernel @ Kernel::Rows(p)) = &node.op else { continue };
        let all: BTreeSet<Id> = node.args.iter().copied().filter(|a| !is_tensor(*a)).collect();
        let mut keys: BTreeSet<BTreeSet<Id>> = all.iter().map(|id| BTreeSet::from([*id])).collect();
        keys.insert(all);
        for key in keys {
            let members = groups.entry(key).or_default();
            if members.get(&class).is_none_or(|(size, _)| *size < p.code.len()) {
                let member = Member { class, kernel: kernel.clone(), args: node.args.clone() };
                members.insert(class, (p.code.len(), member));
            }
        }
    }
    let mut reach = Reach::new(eg);
    let mut packs: BTreeSet<Vec<(Id, Kernel, Vec<Id>)>> = BTreeSet::new();
    for (_, group) in groups.into_iter().filter(|(key, group)| !key.is_empty() && group.len() > 1) {
        let all: Vec<Id> = group.keys().copied().collect();
        let mut outer = |class: &Id| !all.iter().any(|other| other != class && reach.below(&[*other]).contains(class));
        let members = group.into_iter().filter(|(class, _)| outer(class));
        packs.insert(members.map(|(class, (_, m))| (class, m.kernel, m.args)).collect());
    }
    let member = |(class, kernel, args)| Member { class, kernel, args };
    packs.into_iter().flat_map(|members| launches(members.into_iter().map(member).collect())).collect()
}

/// A column sum beside a product that contracts the same columns (bias and weight gradient).
pub(super) fn column_sum(eg: &Eg) -> Vec<(New, New)> {
    let sum = |(id, n): (Id, &'_ ENode)| match &n.op {
        Op::Kernel(Kernel::ColumnSum(p)) => Some((id, p.clone(), n.args.clone())),
        _ => None,
    };
    let sums: Vec<(Id, Prog, Vec<Id>)> = nodes(eg).filter_map(sum).collect();
    let mut found = vec![];
    for (id, node) in nodes(eg) {
        let Some(parts) = Parts::of(node) else { continue };
        let Op::Kernel(kernel) = &node.op else { continue };
        let sums_columns = |f: &&Factor| f.term.spec.contracted() == f.term.spec.a[..f.term.spec.a.len() - 1];
        let Some(f) = parts.single().filter(sums_columns) else { continue };
        for (sum, p, args) in sums.iter().filter(|(_, p, args)| (p, args) == (&f.term.a, &f.a)) {
            let product = Member { class: id, kernel: kernel.clone(), args: node.args.clone() };
            let beside = Member { class: *sum, kernel: Kernel::ColumnSum(p.clone()), args: args.clone() };
            found.extend(launch(vec![product, beside]));
        }
    }
    found
}

/// The classes that others may need, each looked up once.
struct Reach<'a> {
    eg: &'a Eg,
    known: BTreeMap<Vec<Id>, BTreeSet<Id>>,
}

impl Reach<'_> {
    fn new(eg: &Eg) -> Reach<'_> {
        Reach { eg, known: BTreeMap::new() }
    }

    /// The classes themselves and all that any of their nodes needs.
    fn below(&mut self, classes: &[Id]) -> &BTreeSet<Id> {
        let eg = self.eg;
        self.known.entry(classes.to_vec()).or_insert_with(|| {
            let mut seen = BTreeSet::new();
            let mut todo = classes.to_vec();
            while let Some(id) = todo.pop() {
                if seen.insert(id) {
                    todo.extend(eg[id].nodes.iter().flat_map(|n| n.args.iter().map(|a| eg.find(*a))));
                }
            }
            seen
        })
    }
}

fn nodes(eg: &Eg) -> impl Iterator<Item = (Id, &ENode)> {
    let mut ids: Vec<Id> = eg.classes().map(|c| c.id).collect();
    ids.sort();
    ids.into_iter().flat_map(move |id| eg[id].nodes.iter().map(move |n| (id, n)))
}
