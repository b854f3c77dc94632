//! Kernel descriptions: what a step computes, free of where values lie and of how a device does it.
//!
//! Both replayers start from these: WGSL is generated from them at expansion, the CPU executes them as they are. A
//! kernel has one result; a launch of several kernels has several.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dim::{Dim, Size};
use crate::prog::{DType, Leaf, Prog};

/// Axis labels of `out[..] = Σ a[..] · b[..]`, numbered by first appearance in `a`, `b`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Spec {
    /// Labels of the left side's axes.
    pub a: Vec<u8>,
    /// Labels of the right side's axes.
    pub b: Vec<u8>,
    /// Labels of the result's axes; the others are summed over.
    pub out: Vec<u8>,
}

/// One product with a program on each side. `a` and `stat` share their inputs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Term {
    /// Which axes meet.
    pub spec: Spec,
    /// What is done to the left side while it is read.
    pub a: Prog,
    /// What is done to the right side while it is read.
    pub b: Prog,
    /// A value per row of `a`, reduced over the contracted axis while the product runs; an input of the epilogue.
    pub stat: Option<Prog>,
}

/// Products with accumulators of one shape and a program over them. Arguments: for each term those of `a`, then of
/// `b`; then those of the epilogue, whose inputs are the accumulators, the statistics and these.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Contract {
    /// The products.
    pub terms: Vec<Term>,
    /// The program over accumulators, statistics and further arguments; pointwise.
    pub epi: Prog,
}

/// How one axis of the iteration space of a copy moves through source and target, in elements.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct CopyAxis {
    /// The number of target indices.
    pub extent: Dim,
    /// Distance in the source; 0 repeats.
    pub source: Dim,
    /// Distance in the target.
    pub target: Dim,
    /// The target indices `start .. start + length` take the source's elements from its first; the others take 0.
    /// None: all do, from the source's first.
    pub window: Option<(Dim, Dim)>,
}

/// A strided copy, both ways. The target's other elements are left alone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Copy {
    /// The iteration space, outermost first.
    pub axes: Vec<CopyAxis>,
    /// The source's first element.
    pub from: Dim,
}

/// A running total along the last axis.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Scan {
    /// A product, else a sum.
    pub product: bool,
    /// Without the element itself.
    pub exclusive: bool,
    /// From the last element.
    pub reverse: bool,
}

/// What a step computes.
///
/// `Gather`, `ScatterAdd` and `Concat` see values as `[outer, n, inner]`: the axis in work, and what lies before and
/// behind it. Ids are u32 of shape `[outer or 1, m, inner or 1]`; one beyond the last index stands for the last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Kernel {
    /// A program over every row; pointwise if it reduces nothing.
    Rows(Prog),
    /// A pointwise program, summed over all axes but the last.
    ColumnSum(Prog),
    /// Products with programs on both sides and behind.
    Contract(Arc<Contract>),
    /// One argument, moved.
    Copy(Copy),
    /// `out[o, j, i] = x[o, ids[o, j, i], i]` of `x` and `ids`.
    Gather,
    /// `out[o, k, i] = Σ values[o, j, i]` over all j with `ids[o, j, i] = k`, in the order of j, of `values` and `ids`;
    /// the middle axis of the result has the given size.
    ScatterAdd(Dim),
    /// The total of the elements up to each.
    Scan(Scan),
    /// So many arguments, one behind the other along the middle axis.
    Concat(u8),
}

/// Arguments of one [`Kernel::Concat`].
pub const MAX_PARTS: usize = 12;

/// What belongs to the left and to the right side of a product.
pub type Sides<'a, T> = (&'a [T], &'a [T]);

/// The shapes inside a contraction.
pub struct ContractShapes<S> {
    /// Left sides, after their programs.
    pub a: Vec<Vec<S>>,
    /// Right sides, after their programs.
    pub b: Vec<Vec<S>>,
    /// All accumulators.
    pub acc: Vec<S>,
    /// Statistics, as the epilogue sees them.
    pub stats: Vec<Vec<S>>,
    /// The result.
    pub epi: Vec<S>,
}

impl Kernel {
    /// The number of arguments.
    pub fn arity(&self) -> usize {
        match self {
            Kernel::Rows(p) | Kernel::ColumnSum(p) => usize::from(p.inputs),
            Kernel::Contract(c) => c.arity(),
            Kernel::Copy(_) | Kernel::Scan(_) => 1,
            Kernel::Gather | Kernel::ScatterAdd(_) => 2,
            Kernel::Concat(parts) => usize::from(*parts),
        }
    }

    /// The shape of the result; none where the arguments do not fit. A copy's is what its axes say.
    pub fn shape(&self, args: &[&Vec<Dim>]) -> Option<Vec<Dim>> {
        match self {
            Kernel::Rows(prog) => prog.shape(args),
            Kernel::ColumnSum(prog) => Some(vec![prog.shape(args)?.pop()?]),
            Kernel::Contract(c) => Some(c.shapes(args)?.epi),
            Kernel::Copy(copy) => Some(copy.axes.iter().map(|axis| axis.extent.clone()).collect()),
            Kernel::Gather => {
                let ([o, _, i], [_, m, _]) = (three(args.first()?)?, three(args.get(1)?)?);
                let shape = vec![o.clone(), m.clone(), i.clone()];
                picks(args.get(1)?, &shape).then_some(shape)
            }
            Kernel::ScatterAdd(count) => {
                let [o, _, i] = three(args.first()?)?;
                picks(args.get(1)?, args.first()?).then(|| vec![o.clone(), count.clone(), i.clone()])
            }
            Kernel::Scan(_) => args.first().filter(|shape| !shape.is_empty()).map(|shape| (*shape).clone()),
            Kernel::Concat(parts) => {
                let [o, first, i] = three(args.first()?)?;
                let mut total = first.clone();
                for other in &args[1..] {
                    let [outer, own, inner] = three(other)?;
                    (outer == o && inner == i).then_some(())?;
                    total = &total + own;
                }
                (args.len() == usize::from(*parts)).then(|| vec![o.clone(), total, i.clone()])
            }
        }
    }

    /// The type of the result; none where the arguments do not fit.
    pub fn dtype(&self, args: &[DType]) -> Option<DType> {
        match self {
            Kernel::Rows(prog) | Kernel::ColumnSum(prog) => prog.dtypes(args)?.pop(),
            Kernel::Contract(c) => c.dtypes(args)?.pop(),
            Kernel::Copy(_) => args.first().copied(),
            Kernel::Gather => (*args.get(1)? == DType::U32).then(|| args[0]),
            Kernel::ScatterAdd(_) => (*args.get(1)? == DType::U32).then(|| args[0]).filter(|own| *own != DType::Bool),
            Kernel::Scan(_) => args.first().copied().filter(|own| *own != DType::Bool),
            Kernel::Concat(_) => args.first().copied().filter(|own| args.iter().all(|other| other == own)),
        }
    }

    /// Whether element e of the result needs of argument `k` only element e, so that the result may lie over it.
    pub fn is_elementwise_in(&self, k: usize, args: &[&Vec<Dim>], result: &[Dim]) -> bool {
        let same = args.get(k).is_some_and(|shape| shape.as_slice() == result);
        match self {
            Kernel::Rows(prog) => same && !prog.reduces_rows(),
            Kernel::Contract(c) => same && k >= c.first_extra(),
            Kernel::ColumnSum(_) | Kernel::Copy(_) | Kernel::Gather | Kernel::ScatterAdd(_) => false,
            Kernel::Scan(_) | Kernel::Concat(_) => false,
        }
    }

    /// The name of the template.
    pub fn name(&self) -> &'static str {
        match self {
            Kernel::Rows(prog) if prog.reduces_rows() => "rows",
            Kernel::Rows(_) => "pointwise",
            Kernel::ColumnSum(_) => "column-sum",
            Kernel::Contract(_) => "contract",
            Kernel::Copy(_) => "copy",
            Kernel::Gather => "gather",
            Kernel::ScatterAdd(_) => "scatter-add",
            Kernel::Scan(_) => "scan",
            Kernel::Concat(_) => "concat",
        }
    }
}

fn three(shape: &[Dim]) -> Option<&[Dim; 3]> {
    shape.try_into().ok()
}

/// Whether ids of this shape are there for every element of `values`.
fn picks(ids: &[Dim], values: &[Dim]) -> bool {
    let same = |(axis, (id, value)): (usize, (&Dim, &Dim))| id == value || axis != 1 && id.is_one();
    ids.len() == 3 && values.len() == 3 && ids.iter().zip(values).enumerate().all(same)
}

impl Contract {
    /// One product, nothing before or after.
    pub fn plain(spec: Spec) -> Contract {
        let term = Term { spec, a: Prog::identity(), b: Prog::identity(), stat: None };
        Contract { terms: vec![term], epi: Prog::identity() }
    }

    /// The first inputs of the epilogue: accumulators, then statistics.
    pub fn seeds(&self) -> Vec<Leaf> {
        let accs = (0..self.terms.len() as u8).map(Leaf::Acc);
        let stats = (0..self.terms.len() as u8).filter(|i| self.terms[usize::from(*i)].stat.is_some()).map(Leaf::Stat);
        accs.chain(stats).collect()
    }

    /// All inputs of the epilogue.
    pub fn epi_leaves(&self, extras: &[u32]) -> Vec<Leaf> {
        self.seeds().into_iter().chain(extras.iter().map(|id| Leaf::Arg(*id))).collect()
    }

    /// The index of the first argument that only the epilogue reads.
    pub fn first_extra(&self) -> usize {
        self.terms.iter().map(|t| usize::from(t.a.inputs) + usize::from(t.b.inputs)).sum()
    }

    /// The number of arguments.
    pub fn arity(&self) -> usize {
        (self.first_extra() + usize::from(self.epi.inputs)).saturating_sub(self.seeds().len())
    }

    /// The arguments of each term (`a`, `b`) and of the epilogue.
    pub fn parts<'a, T>(&self, args: &'a [T]) -> (Vec<Sides<'a, T>>, &'a [T]) {
        let mut rest = args;
        let mut take = |n: u8| {
            let (own, others) = rest.split_at(usize::from(n));
            rest = others;
            own
        };
        let terms = self.terms.iter().map(|t| (take(t.a.inputs), take(t.b.inputs))).collect();
        (terms, rest)
    }

    /// The shapes inside; none where the arguments do not fit.
    pub fn shapes<S: Size>(&self, args: &[&Vec<S>]) -> Option<ContractShapes<S>> {
        if args.len() != self.arity() {
            return None;
        }
        let (terms, extras) = self.parts(args);
        let (mut a, mut b, mut accs, mut stats) = (vec![], vec![], vec![], vec![]);
        for (term, (a_args, b_args)) in self.terms.iter().zip(terms) {
            a.push(term.a.shape(a_args)?);
            b.push(term.b.shape(b_args)?);
            accs.push(term.spec.out_shape(a.last()?, b.last()?)?);
            if let Some(stat) = &term.stat {
                let rows = stat.shape(a_args)?;
                stats.push([&rows[..], &vec![S::from(1); term.spec.columns_beyond_one()]].concat());
            }
        }
        let acc = accs.first()?.clone();
        let inputs: Vec<&Vec<S>> = accs.iter().chain(&stats).chain(extras.iter().copied()).collect();
        let epi = self.epi.shape(&inputs)?;
        (accs.iter().all(|s| *s == acc) && epi == acc).then_some(ContractShapes { a, b, acc, stats, epi })
    }

    /// The types of the epilogue's instructions; none where the arguments do not fit.
    pub fn dtypes(&self, args: &[DType]) -> Option<Vec<DType>> {
        let (terms, extras) = self.parts(args);
        let mut inputs = vec![];
        for (term, (a, b)) in self.terms.iter().zip(&terms) {
            let sides = [term.a.dtypes(a)?.pop()?, term.b.dtypes(b)?.pop()?];
            (sides == [DType::F32; 2]).then(|| inputs.push(DType::F32))?;
        }
        for (term, (a, _)) in self.terms.iter().zip(&terms) {
            inputs
                .extend(term.stat.as_ref().map(|stat| stat.dtypes(a)?.pop()).map(|dtype| dtype.unwrap_or(DType::F32)));
        }
        inputs.extend(extras);
        self.epi.dtypes(&inputs)
    }
}

impl Spec {
    /// Labels renumbered by first appearance.
    pub fn new(a: &[u8], b: &[u8], out: &[u8]) -> Spec {
        let mut seen = vec![];
        let mut number = |labels: &[u8]| -> Vec<u8> {
            let mut place = |l: &u8| {
                seen.iter().position(|s| s == l).unwrap_or_else(|| {
                    seen.push(*l);
                    seen.len() - 1
                }) as u8
            };
            labels.iter().map(&mut place).collect()
        };
        let (a, b) = (number(a), number(b));
        Spec { a, b, out: number(out) }
    }

    /// From `"mk,nk->mn"`; none if the text has another form.
    pub fn parse(text: &str) -> Option<Spec> {
        let (inputs, out) = text.split_once("->")?;
        let (a, b) = inputs.split_once(',')?;
        Some(Spec::new(a.as_bytes(), b.as_bytes(), out.as_bytes()))
    }

    /// The size of every label; none where the sides do not fit.
    pub fn dims<S: Size>(&self, a: &[S], b: &[S]) -> Option<Vec<S>> {
        let mut dims: Vec<Option<S>> = vec![None; 1 + usize::from(*self.a.iter().chain(&self.b).max()?)];
        let fits = self.a.len() == a.len() && self.b.len() == b.len();
        for (label, dim) in self.a.iter().zip(a).chain(self.b.iter().zip(b)) {
            let known = dims[usize::from(*label)].get_or_insert_with(|| dim.clone());
            if known != dim {
                return None;
            }
        }
        if fits { dims.into_iter().collect() } else { None }
    }

    /// The shape of the product; none where the sides do not fit, or where `b` alone would be summed.
    pub fn out_shape<S: Size>(&self, a: &[S], b: &[S]) -> Option<Vec<S>> {
        let dims = self.dims(a, b)?;
        if self.b.iter().any(|label| !self.a.contains(label) && !self.out.contains(label)) {
            return None;
        }
        self.out.iter().map(|l| dims.get(usize::from(*l)).cloned()).collect()
    }

    /// A statistic is `[rows.., 1]`; in the result, more than one label may stand where its last axis is.
    pub fn columns_beyond_one(&self) -> usize {
        self.out.len().saturating_sub(self.a.len())
    }

    /// The labels of the left side that are summed over.
    pub fn contracted(&self) -> Vec<u8> {
        self.a.iter().copied().filter(|l| !self.out.contains(l)).collect()
    }

    /// The contracted axis is one, and the last of `a`: a row of `a` is what one output row needs.
    pub fn contracts_rows_of_a(&self) -> bool {
        let contracted = self.contracted();
        contracted.len() == 1 && self.a.last() == contracted.first()
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |labels: &[u8]| labels.iter().map(|l| char::from(b'i' + l)).collect::<String>();
        write!(f, "{},{}->{}", text(&self.a), text(&self.b), text(&self.out))
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Rows(prog) => write!(f, "{} {{{prog}}}", self.name()),
            Kernel::ColumnSum(prog) => write!(f, "column-sum {{{prog}}}"),
            Kernel::Contract(c) => write!(f, "{c}"),
            Kernel::Copy(copy) => write!(f, "copy of {} axes", copy.axes.len()),
            Kernel::Gather | Kernel::ScatterAdd(_) => f.write_str(self.name()),
            Kernel::Scan(scan) => {
                let from = if scan.reverse { " from the end" } else { "" };
                let without = if scan.exclusive { " of the others" } else { "" };
                write!(f, "running {}{without}{from}", if scan.product { "product" } else { "sum" })
            }
            Kernel::Concat(parts) => write!(f, "concat of {parts}"),
        }
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contract {{")?;
        for term in &self.terms {
            write!(f, "{}", term.spec)?;
            let sides = [("a", Some(&term.a)), ("b", Some(&term.b)), ("stat", term.stat.as_ref())];
            for (name, prog) in sides {
                if let Some(prog) = prog.filter(|p| !p.is_identity()) {
                    write!(f, " {name} = {prog}")?;
                }
            }
            write!(f, "; ")?;
        }
        write!(f, "{}}}", self.epi)
    }
}
