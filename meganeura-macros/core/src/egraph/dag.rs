//! A region before saturation: a plain graph of the language, hash-consed, with notes on where its nodes come from.

use std::collections::BTreeMap;

use egg::Id;
use meganeura_shaders::dim::{Dim, Shape, broadcast};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::prog::{Instr, Leaf, Linker, Prog, Reg};

use super::lang::{ENode, Eg, Facts, History, Op, Typing, infer};
use super::link::{finish_one, inline, leaf};
use super::templates::{MAX_ARGS, MAX_CODE};

/// Where a node comes from.
#[derive(Clone, Debug, Default)]
pub struct Note {
    /// A number of the caller's for the value that it computes.
    pub source: Option<usize>,
    /// The rules that made it.
    pub rules: Vec<&'static str>,
}

/// A graph in which every node stands behind what it reads.
#[derive(Clone, Debug, Default)]
pub struct Dag {
    /// The nodes; ids in them are positions here.
    pub nodes: Vec<ENode>,
    /// The type of each node.
    pub facts: Vec<Facts>,
    /// Where each node comes from.
    pub notes: Vec<Note>,
    /// What has to be computed, in order.
    pub roots: Vec<Id>,
    memo: BTreeMap<ENode, Id>,
}

impl Dag {
    /// Adds a node, or finds it.
    pub fn add(&mut self, op: Op, args: &[Id], note: &Note) -> Id {
        let node = ENode { op, args: args.to_vec() };
        if let Some(id) = self.memo.get(&node) {
            return *id;
        }
        let facts: Vec<&Facts> = args.iter().map(|a| &self.facts[usize::from(*a)]).collect();
        let facts = infer(&node.op, &facts);
        assert!(facts.is_some(), "{} does not fit its arguments", node.op);
        let Some(facts) = facts else { return Id::from(0) };
        let id = Id::from(self.nodes.len());
        self.facts.push(facts);
        self.notes.push(note.clone());
        self.memo.insert(node.clone(), id);
        self.nodes.push(node);
        id
    }

    /// A program over classes, written by `body`.
    pub fn map(&mut self, args: &[Id], note: &Note, body: impl FnOnce(&mut Linker, &[Reg]) -> Reg) -> Id {
        let mut link = Linker::default();
        let inputs: Vec<Reg> = args.iter().map(|a| link.leaf(leaf(*a))).collect();
        let root = body(&mut link, &inputs);
        let (prog, args) = finish_one(link, root);
        self.add(Op::Kernel(Kernel::Rows(prog)), &args, note)
    }

    /// The shape of a node.
    pub fn shape(&self, id: Id) -> &Shape {
        self.facts[usize::from(id)].shape()
    }

    fn rows(&self, id: usize) -> Option<&Prog> {
        if let Op::Kernel(Kernel::Rows(prog)) = &self.nodes[id].op { Some(prog) } else { None }
    }

    /// Inlines loops where that is never worse, so that saturation only meets choices that are real:
    ///
    /// * a value of the same rows (or one number for each of them) with one consumer: saves a kernel and a round trip
    ///   through memory, repeats nothing. A composite with inner values of its own, such as softmax, becomes one loop.
    /// * a pointwise value of at most one stored tensor, read by loops alone: they read that tensor instead.
    pub fn collapse(mut self) -> Dag {
        let mut consumers = self.consumers();
        let mut next = self.nodes.len();
        while next > 0 {
            next -= 1;
            let Some(changed) = self.collapse_one(next, &mut consumers) else { continue };
            // What a consumer reads has changed, so its own place among its readers may have.
            next = changed + 1;
        }
        self.without_dead()
    }

    fn consumers(&self) -> Vec<Vec<usize>> {
        let live = self.live();
        let mut consumers = vec![vec![]; self.nodes.len()];
        for i in (0..self.nodes.len()).filter(|i| live[*i]) {
            self.nodes[i].args.iter().for_each(|a| consumers[usize::from(*a)].push(i));
        }
        consumers
    }

    /// Inlines a node into its consumers; gives the last of these.
    fn collapse_one(&mut self, which: usize, consumers: &mut [Vec<usize>]) -> Option<usize> {
        let id = Id::from(which);
        let readers = consumers[which].clone();
        let last = *readers.iter().max()?;
        if self.roots.contains(&id) || !self.is_collapsible(which, &readers) {
            return None;
        }
        let (inner, inner_args) = (self.rows(which)?.clone(), self.nodes[which].args.clone());
        let mut fused = vec![];
        for at in &readers {
            let outer = self.rows(*at)?;
            let place = self.nodes[*at].args.iter().position(|a| *a == id)?;
            fused.push((*at, inline(outer, &self.nodes[*at].args, place, &inner, &inner_args)?));
        }
        for (at, (prog, args)) in fused {
            let node = ENode { op: Op::Kernel(Kernel::Rows(prog)), args };
            let old = std::mem::replace(&mut self.nodes[at], node);
            old.args.iter().for_each(|a| consumers[usize::from(*a)].retain(|reader| *reader != at));
            self.nodes[at].args.iter().for_each(|a| consumers[usize::from(*a)].push(at));
        }
        inner_args.iter().for_each(|a| consumers[usize::from(*a)].retain(|reader| *reader != which));
        Some(last)
    }

    fn is_collapsible(&self, which: usize, readers: &[usize]) -> bool {
        let Some(inner) = self.rows(which) else { return false };
        let (own, args) = (self.facts[which].shape(), &self.nodes[which].args);
        let stored = args.iter().filter(|a| self.shape(**a) == own).count();
        let takes = |reader: &usize| {
            // A column sum can do less than a loop: what moved into it would be lost to the loops before it.
            let Some(outer) = self.rows(*reader) else { return false };
            let read = &self.nodes[*reader].args;
            let bindings = read.iter().filter(|a| !args.contains(a)).count() + args.len() - 1;
            outer.code.len() + inner.code.len() <= MAX_CODE && bindings <= MAX_ARGS && self.has_rows(*reader, own)
        };
        (readers.len() == 1 || stored <= 1 && !inner.reduces_rows()) && readers.iter().all(takes)
    }

    /// Whether the shape is that of a node's rows, or of one number for each of them.
    fn has_rows(&self, node: usize, own: &[Dim]) -> bool {
        let args = self.nodes[node].args.iter();
        let space = args.fold(vec![], |space, a| broadcast(&space, self.shape(*a)).unwrap_or_default());
        let one_each = |(last, rows): (&Dim, &[Dim])| {
            last.is_one() && own.len() == space.len() && *rows == space[..space.len() - 1]
        };
        *own == space[..] || own.split_last().is_some_and(one_each)
    }

    fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        let mut todo: Vec<usize> = self.roots.iter().map(|r| usize::from(*r)).collect();
        while let Some(i) = todo.pop() {
            if !std::mem::replace(&mut live[i], true) {
                todo.extend(self.nodes[i].args.iter().map(|a| usize::from(*a)));
            }
        }
        live
    }

    /// Only what the roots need.
    pub(super) fn without_dead(&self) -> Dag {
        let (live, mut dag, mut moved) = (self.live(), Dag::default(), BTreeMap::new());
        for i in (0..self.nodes.len()).filter(|i| live[*i]) {
            let args: Vec<Id> = self.nodes[i].args.iter().map(|a| moved[a]).collect();
            moved.insert(Id::from(i), dag.add(self.nodes[i].op.clone(), &args, &self.notes[i]));
        }
        dag.roots = self.roots.iter().map(|r| moved[r]).collect();
        dag
    }

    /// The e-graph of these nodes, and the class of each.
    pub fn to_egraph(&self) -> (Eg, Vec<Id>) {
        let mut eg = Eg::new(Typing::default());
        let mut ids: Vec<Id> = vec![];
        for (node, note) in self.nodes.iter().zip(&self.notes) {
            let args = node.args.iter().map(|a| ids[usize::from(*a)]).collect();
            let node = ENode { op: node.op.clone(), args };
            eg.analysis.history.insert(node.clone(), History { rules: note.rules[..].into(), written: true });
            ids.push(eg.add(node));
        }
        eg.analysis.roots = self.roots.iter().map(|r| ids[usize::from(*r)]).collect();
        eg.rebuild();
        (eg, ids)
    }

    /// A node of one instruction; constants are part of it.
    pub fn instr(&mut self, instr: &Instr, operands: &[Operand], note: &Note) -> Id {
        let mut link = Linker::default();
        let registers: Vec<Reg> = operands
            .iter()
            .map(|operand| match operand {
                Operand::Node(id) => link.leaf(Leaf::Arg(usize::from(*id) as u32)),
                Operand::Number(number) => link.push(number.clone()),
            })
            .collect();
        let root = link.push(instr.map(|reg| registers[usize::from(reg)]));
        let (prog, args) = finish_one(link, root);
        self.add(Op::Kernel(Kernel::Rows(prog)), &args, note)
    }
}

/// What an instruction reads.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A node.
    Node(Id),
    /// A constant or the size of a dimension.
    Number(Instr),
}
