//! The normal form of a region: the rules that are never worse, until none matches, then collapsing.

use std::collections::BTreeMap;

use egg::Id;

use super::dag::{Dag, Note};
use super::rules::{Find, New, Rule};

/// Applies the rules that are never worse until none matches: everywhere at once, but one rule at a time and the first
/// in the list first, since a later one may hide what an earlier one looks for.
pub(super) fn normal_form(dag: &Dag, rules: &[Rule]) -> Dag {
    let mut dag = dag.clone();
    'again: loop {
        let (eg, _) = dag.to_egraph();
        for rule in rules {
            let Find::Always(find) = rule.find else { continue };
            let first = |id: usize| Some((Id::from(id), find(&eg, &dag.nodes[id]).into_iter().next()?));
            let replaced: BTreeMap<Id, New> = (0..dag.nodes.len()).filter_map(first).collect();
            if !replaced.is_empty() {
                let next = replace(&dag, &replaced, rule.name);
                assert!(next.is_some(), "a node is replaced by what is below it");
                match next {
                    Some(next) => dag = next,
                    None => break 'again,
                }
                continue 'again;
            }
        }
        break;
    }
    dag.collapse()
}

struct Build<'a> {
    from: &'a Dag,
    replaced: &'a BTreeMap<Id, New>,
    rule: &'static str,
    to: Dag,
    moved: BTreeMap<Id, Option<Id>>,
}

impl Build<'_> {
    fn class(&mut self, id: Id) -> Option<Id> {
        if let Some(known) = self.moved.get(&id) {
            return *known;
        }
        self.moved.insert(id, None);
        let from = self.from;
        let (node, note) = (&from.nodes[usize::from(id)], &from.notes[usize::from(id)]);
        let to = match self.replaced.get(&id) {
            Some(new) => {
                let mut note = note.clone();
                note.rules.push(self.rule);
                self.term(new, &note)
            }
            None => {
                let args: Vec<Id> = node.args.iter().map(|a| self.class(*a)).collect::<Option<_>>()?;
                Some(self.to.add(node.op.clone(), &args, note))
            }
        };
        self.moved.insert(id, to);
        to
    }

    fn term(&mut self, new: &New, note: &Note) -> Option<Id> {
        match new {
            New::Class(id) => self.class(*id),
            New::Node(op, args) => {
                let args: Vec<Id> = args.iter().map(|a| self.term(a, note)).collect::<Option<_>>()?;
                Some(self.to.add(op.clone(), &args, note))
            }
        }
    }
}

/// The graph with other definitions of some nodes; none if that closes a cycle.
pub(super) fn replace(dag: &Dag, replaced: &BTreeMap<Id, New>, rule: &'static str) -> Option<Dag> {
    let mut build = Build { from: dag, replaced, rule, to: Dag::default(), moved: BTreeMap::new() };
    // In order of position first, so that the recursion stays shallow.
    let order: Vec<Id> = (0..dag.nodes.len()).map(Id::from).collect();
    let roots = dag.roots.clone();
    order.into_iter().for_each(|id| {
        build.class(id);
    });
    build.to.roots = roots.iter().map(|r| build.class(*r)).collect::<Option<_>>()?;
    Some(build.to.without_dead())
}
