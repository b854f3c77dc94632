//! A contraction with its arguments beside the programs that take them.

use std::sync::Arc;

use egg::Id;
use meganeura_shaders::dim::Shape;
use meganeura_shaders::kernel::{Contract, Kernel, Spec, Term};
use meganeura_shaders::prog::Prog;

use super::super::lang::{ENode, Eg, Op};
use super::super::templates;
use super::{New, classes, shape};

#[derive(Clone)]
pub(super) struct Parts {
    pub(super) terms: Vec<Factor>,
    pub(super) epi: Prog,
    pub(super) extras: Vec<Id>,
}

#[derive(Clone)]
pub(super) struct Factor {
    pub(super) term: Term,
    pub(super) a: Vec<Id>,
    pub(super) b: Vec<Id>,
}

impl Factor {
    /// The right side, if it is one stored value.
    pub(super) fn right(&self) -> Option<Id> {
        if let [id] = self.b[..] { Some(id) } else { None }
    }
}

/// One product of two stored values, nothing before or after.
pub(super) struct Plain<'a> {
    pub(super) spec: &'a Spec,
    pub(super) a: Id,
    pub(super) b: Id,
}

/// The contractions of a class, taken apart.
pub(super) fn products_of(eg: &Eg, id: Id) -> impl Iterator<Item = Parts> {
    eg[id].nodes.iter().filter_map(Parts::of)
}

/// A product of two stored values.
pub(super) fn plain(spec: Spec, args: Vec<New>) -> New {
    New::Node(Op::Kernel(Kernel::Contract(Arc::new(Contract::plain(spec)))), args)
}

impl Parts {
    pub(super) fn of(node: &ENode) -> Option<Parts> {
        let Op::Kernel(Kernel::Contract(c)) = &node.op else { return None };
        let (args, extras) = c.parts(&node.args);
        let factor =
            |(term, (a, b)): (&Term, (&[Id], &[Id]))| Factor { term: term.clone(), a: a.to_vec(), b: b.to_vec() };
        let terms = c.terms.iter().zip(args).map(factor).collect();
        Some(Parts { terms, epi: c.epi.clone(), extras: extras.to_vec() })
    }

    pub(super) fn single(&self) -> Option<&Factor> {
        if let [factor] = &self.terms[..] { Some(factor) } else { None }
    }

    pub(super) fn plain(&self) -> Option<Plain<'_>> {
        let factor = self.single()?;
        let is_bare = self.rows_are_stored() && factor.term.b.is_identity() && self.epi.is_identity();
        is_bare.then_some(Plain { spec: &factor.term.spec, a: *factor.a.first()?, b: factor.right()? })
    }

    /// No left side is computed on the way.
    pub(super) fn rows_are_stored(&self) -> bool {
        self.terms.iter().all(|f| f.term.stat.is_none() && f.term.a.is_identity())
    }

    /// The left side that all terms have in common.
    pub(super) fn rows(&self) -> Option<&Factor> {
        let first = self.terms.first()?;
        let same = |f: &Factor| (&f.a, &f.term.a, &f.term.spec.a) == (&first.a, &first.term.a, &first.term.spec.a);
        self.terms.iter().all(same).then_some(first)
    }

    /// With other rows in all terms.
    pub(super) fn set_rows(&mut self, a: &Prog, stat: Option<&Prog>, args: &[Id]) {
        for (i, factor) in self.terms.iter_mut().enumerate() {
            factor.term.a = a.clone();
            factor.term.stat = stat.filter(|_| i == 0).cloned();
            factor.a = args.to_vec();
        }
    }

    pub(super) fn contract(&self) -> Contract {
        Contract { terms: self.terms.iter().map(|f| f.term.clone()).collect(), epi: self.epi.clone() }
    }

    pub(super) fn args(&self) -> Vec<Id> {
        let terms = self.terms.iter().flat_map(|f| f.a.iter().chain(&f.b));
        terms.chain(&self.extras).copied().collect()
    }

    /// The shape of the accumulators.
    pub(super) fn accumulated(&self, eg: &Eg) -> Option<Shape> {
        let args = self.args();
        let shapes: Vec<&Shape> = args.iter().map(|id| shape(eg, *id)).collect();
        Some(self.contract().shapes(&shapes)?.acc)
    }

    /// The term, if there is a kernel for it.
    pub(super) fn node(&self, eg: &Eg) -> Option<New> {
        let (contract, args) = (self.contract(), self.args());
        let fits = templates::contract_fits(&contract, &args)
            && templates::is_epilogue(&contract.epi)
            && contract.terms.iter().all(|t| templates::is_left_side(&t.a, &t.spec) && templates::is_right_side(&t.b))
            && contract.terms.iter().flat_map(|t| &t.stat).all(templates::is_statistic)
            && templates::share_a_tile(&contract.terms)
            && templates::sides_are_floats(eg, &contract, &args);
        fits.then(|| New::Node(Op::Kernel(Kernel::Contract(Arc::new(contract))), classes(&args)))
    }
}
