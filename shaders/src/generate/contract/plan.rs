//! What a contraction is, seen from its result: which axes are batches, rows, columns and summed, and how every operand
//! moves along them.
//!
//! Axes of a class that all operands walk alike are one; a linear index per class (`z`, `m`, `n`, `k`) is all that the
//! templates know. The sides change places where the result's last axis would else be a row, so that results are
//! written along columns.

use std::collections::BTreeSet;

use crate::dim::Dim;
use crate::kernel::{Contract, Term};
use crate::prog::{DType, Prog};

use super::super::Unsupported;
use super::super::launch::{Launch, View};
use super::super::passes::Passes;
use super::super::piece::Typed;
use super::super::space::{Axes, stretched};

/// Rights that share a staged left side; more would not fit the memory that every device has.
const SHARED: usize = 2;

/// An operand and how it moves along each class of axes.
pub(super) struct Moving {
    /// Where it lies.
    pub view: View,
    /// Strides by batch axis.
    pub z: Vec<Dim>,
    /// Strides by row axis.
    pub m: Vec<Dim>,
    /// Strides by column axis.
    pub n: Vec<Dim>,
    /// Strides by summed axis.
    pub k: Vec<Dim>,
}

/// Where a coordinate that a program asks for comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Batch,
    Row,
    Column,
    Summed,
}

/// A side of a product: its program and what that reads.
pub(super) struct Side<'p> {
    /// The prefix of its names.
    pub name: String,
    /// The program, cut at its reductions.
    pub passes: Passes<'p>,
    /// The inputs that it reads.
    pub inputs: Vec<(u8, Moving)>,
    /// For each axis of the side, counted from the last: its class and which axis of the class it was before merging.
    pub axes: Vec<(Class, usize)>,
    /// The axes, counted from the last, whose coordinates the program or the statistic asks for.
    pub asked: BTreeSet<u8>,
}

/// A statistic of the left side.
pub(super) struct Stat<'p> {
    /// The term that it belongs to.
    pub term: usize,
    /// The program; it shares the inputs of the side.
    pub passes: Passes<'p>,
}

/// Products over one left side: it is staged once.
pub(super) struct Sweep<'p> {
    /// The summed axes.
    pub k: Axes,
    /// The left side.
    pub left: Side<'p>,
    /// Statistics gathered from it.
    pub stats: Vec<Stat<'p>>,
    /// Right sides with the terms that they belong to.
    pub rights: Vec<(usize, Side<'p>)>,
}

/// A contraction in the terms of the templates.
pub(super) struct Plan<'p> {
    pub z: Axes,
    pub m: Axes,
    pub n: Axes,
    pub sweeps: Vec<Sweep<'p>>,
    /// The program behind.
    pub epi: Typed<'p>,
    /// The number of products.
    pub terms: usize,
    /// The terms with a statistic, in the order of the epilogue's inputs.
    pub stats: Vec<usize>,
    /// The epilogue's further inputs that it reads.
    pub extras: Vec<(u8, Moving)>,
    /// The result.
    pub out: Moving,
    /// For each axis of the result, from the first: class and which of it.
    pub axes: Vec<(Class, usize)>,
}

/// One term before it finds its sweep.
struct Half<'p> {
    left: Side<'p>,
    right: Side<'p>,
    stat: Option<Passes<'p>>,
    k_sizes: Vec<Dim>,
    k_kept: Vec<bool>,
    left_arguments: Vec<usize>,
}

impl<'p> Plan<'p> {
    pub(super) fn new(launch: &mut Launch<'_>, contract: &'p Contract) -> Result<Plan<'p>, Unsupported> {
        let member = launch.member();
        let numbers: Vec<usize> = (0..member.reads.len()).collect();
        let (sides, extras) = contract.parts(&numbers);
        let rigid = |term: &Term| term.stat.is_some() || term.a.reduces_rows();
        let ends_in_row =
            |term: &Term| term.spec.out.last().is_some_and(|l| term.spec.a.contains(l) && !term.spec.b.contains(l));
        let flip = !contract.terms.iter().any(rigid) && contract.terms.iter().all(ends_in_row);
        let first = contract.terms.first().ok_or_else(|| Unsupported::new("a contraction without products"))?;
        let axes = classes(first, flip);
        if contract.terms.iter().any(|term| classes(term, flip) != axes) {
            return Err(Unsupported::new("products whose rows and columns lie differently in the result"));
        }
        let sizes_of = |class: Class| -> Vec<Dim> {
            let own = axes.iter().zip(&member.shape).filter(|((c, _), _)| *c == class);
            own.map(|(_, size)| size.clone()).collect()
        };
        let mut halves = vec![];
        for (t, (term, (a, b))) in contract.terms.iter().zip(sides).enumerate() {
            halves.push(half(launch, t, term, (a, b), flip, &axes)?);
        }
        let (epi, extras) = epilogue(launch, contract, extras, &axes)?;
        let view = launch.result()?;
        let out = moving(view.strides.clone(), view, &axes);
        let mut plan = Plan {
            z: Axes::merge("z", &[], &[], &mut []),
            m: Axes::merge("m", &[], &[], &mut []),
            n: Axes::merge("n", &[], &[], &mut []),
            sweeps: vec![],
            epi,
            terms: contract.terms.len(),
            stats: (0..contract.terms.len()).filter(|t| contract.terms[*t].stat.is_some()).collect(),
            extras,
            out,
            axes: axes.clone(),
        };
        let kept = |class: Class, count: usize| -> Vec<bool> {
            let asks = |axes: &[(Class, usize)], axis: u8, i: usize| axes.get(usize::from(axis)) == Some(&(class, i));
            let backwards: Vec<(Class, usize)> = axes.iter().rev().copied().collect();
            let by_side = |side: &Side<'_>, i: usize| side.asked.iter().any(|axis| asks(&side.axes, *axis, i));
            (0..count)
                .map(|i| {
                    plan.epi.coordinates().iter().any(|axis| asks(&backwards, *axis, i))
                        || halves.iter().any(|half| by_side(&half.left, i) || by_side(&half.right, i))
                })
                .collect()
        };
        let (z, m, n) = (sizes_of(Class::Batch), sizes_of(Class::Row), sizes_of(Class::Column));
        let kept = [kept(Class::Batch, z.len()), kept(Class::Row, m.len()), kept(Class::Column, n.len())];
        let mut all: Vec<&mut Moving> = vec![&mut plan.out];
        all.extend(plan.extras.iter_mut().map(|(_, moving)| moving));
        for half in &mut halves {
            all.extend(half.left.inputs.iter_mut().chain(&mut half.right.inputs).map(|(_, moving)| moving));
        }
        plan.z = Axes::merge("z", &z, &kept[0], &mut all.iter_mut().map(|moving| &mut moving.z).collect::<Vec<_>>());
        plan.m = Axes::merge("m", &m, &kept[1], &mut all.iter_mut().map(|moving| &mut moving.m).collect::<Vec<_>>());
        plan.n = Axes::merge("n", &n, &kept[2], &mut all.iter_mut().map(|moving| &mut moving.n).collect::<Vec<_>>());
        plan.sweeps = sweeps(launch, halves);
        Ok(plan)
    }
}

/// The class of each axis of the result, and the how-manieth of it the axis is.
fn classes(term: &Term, flip: bool) -> Vec<(Class, usize)> {
    let (left, right) = if flip { (&term.spec.b, &term.spec.a) } else { (&term.spec.a, &term.spec.b) };
    let mut counts = [0; 3];
    let class = |label: &u8| match (left.contains(label), right.contains(label)) {
        (true, true) => (Class::Batch, 0),
        (true, false) => (Class::Row, 1),
        _ => (Class::Column, 2),
    };
    let mut numbered = |label: &u8| {
        let (class, slot) = class(label);
        counts[slot] += 1;
        (class, counts[slot] - 1)
    };
    term.spec.out.iter().map(&mut numbered).collect()
}

/// Strides by class, from strides along the axes of `axes`.
fn moving(strides: Vec<Dim>, view: View, axes: &[(Class, usize)]) -> Moving {
    let count = |class: Class| axes.iter().filter(|(c, _)| *c == class).map(|(_, i)| i + 1).max().unwrap_or(0);
    let by = |class: Class, count: usize| {
        let mut own = vec![Dim::from(0); count];
        for (stride, (_, i)) in strides.iter().zip(axes).filter(|(_, (c, _))| *c == class) {
            own[*i] = &own[*i] + stride;
        }
        own
    };
    let (z, m, n) = (
        by(Class::Batch, count(Class::Batch)),
        by(Class::Row, count(Class::Row)),
        by(Class::Column, count(Class::Column)),
    );
    Moving { z, m, n, k: by(Class::Summed, count(Class::Summed)), view }
}

fn half<'p>(
    launch: &mut Launch<'_>,
    t: usize,
    term: &'p Term,
    arguments: (&[usize], &[usize]),
    flip: bool,
    out: &[(Class, usize)],
) -> Result<Half<'p>, Unsupported> {
    if term.b.reduces_rows() {
        return Err(Unsupported::new("a row program on the right side of a product"));
    }
    if (term.a.reduces_rows() || term.stat.is_some()) && !term.spec.contracts_rows_of_a() {
        return Err(Unsupported::new("a row program on a left side whose rows are not what is summed"));
    }
    let spec = &term.spec;
    let (a, b) = ((&spec.a, &term.a, arguments.0), (&spec.b, &term.b, arguments.1));
    let ((labels, prog, numbers), (other_labels, other_prog, other_numbers)) = if flip { (b, a) } else { (a, b) };
    let mut summed: Vec<u8> = vec![];
    for label in labels.iter().chain(other_labels) {
        if !spec.out.contains(label) && !summed.contains(label) {
            summed.push(*label);
        }
    }
    let class = |label: &u8| match spec.out.iter().position(|l| l == label) {
        Some(axis) => out[axis],
        None => (Class::Summed, summed.iter().position(|l| l == label).unwrap_or_default()),
    };
    let member = launch.member();
    let (mut k_sizes, mut k_kept) = (vec![Dim::from(1); summed.len()], vec![false; summed.len()]);
    let counts = [Class::Batch, Class::Row, Class::Column].map(|class| out.iter().filter(|(c, _)| *c == class).count());
    let mut side = |launch: &mut Launch<'_>,
                    name: String,
                    labels: &[u8],
                    prog: &'p Prog,
                    numbers: &[usize],
                    stat: Option<&'p Prog>| {
        let shapes: Vec<&Vec<Dim>> = numbers.iter().map(|k| &member.reads[*k].1).collect();
        let dtypes: Vec<DType> = numbers.iter().map(|k| member.reads[*k].2).collect();
        let passes = Passes::new(Typed::new(prog, &name, &shapes, &dtypes)?);
        let typed = &passes.typed;
        let axes: Vec<(Class, usize)> = labels.iter().map(class).collect();
        for (size, (class, i)) in typed.shapes[usize::from(prog.root())].iter().zip(&axes) {
            if *class == Class::Summed {
                k_sizes[*i] = size.clone();
            }
        }
        let backwards: Vec<(Class, usize)> = axes.iter().rev().copied().collect();
        let stat = match stat {
            Some(stat) => Some(Passes::new(Typed::new(stat, &format!("{name}_stat"), &shapes, &dtypes)?)),
            None => None,
        };
        let mut asked = typed.coordinates();
        asked.extend(stat.iter().flat_map(|stat| stat.typed.coordinates()));
        for axis in &asked {
            if let Some((Class::Summed, i)) = backwards.get(usize::from(*axis)) {
                k_kept[*i] = true;
            }
        }
        let mut read = typed.inputs_read();
        read.extend(stat.iter().flat_map(|stat| stat.typed.inputs_read()));
        let mut inputs = vec![];
        for k in read {
            let view = launch.argument(numbers[usize::from(k)], &format!("{name}_x{k}"))?;
            let mut own = moving(stretched(&view.strides, labels.len()), view, &axes);
            own.z.resize(counts[0], Dim::from(0));
            own.m.resize(counts[1], Dim::from(0));
            own.n.resize(counts[2], Dim::from(0));
            own.k.resize(summed.len(), Dim::from(0));
            inputs.push((k, own));
        }
        Ok((Side { name, passes, inputs, axes: backwards, asked }, stat))
    };
    let (left, stat) = side(launch, format!("a{t}"), labels, prog, numbers, term.stat.as_ref())?;
    let (right, _) = side(launch, format!("b{t}"), other_labels, other_prog, other_numbers, None)?;
    Ok(Half { left, right, stat, k_sizes, k_kept, left_arguments: numbers.to_vec() })
}

type Epilogue<'p> = (Typed<'p>, Vec<(u8, Moving)>);

fn epilogue<'p>(
    launch: &mut Launch<'_>,
    contract: &'p Contract,
    extras: &[usize],
    axes: &[(Class, usize)],
) -> Result<Epilogue<'p>, Unsupported> {
    if contract.epi.reduces_rows() {
        return Err(Unsupported::new("a row program behind a product"));
    }
    let member = launch.member();
    let arguments: Vec<&Vec<Dim>> = member.reads.iter().map(|(_, shape, _)| shape).collect();
    let shapes =
        contract.shapes(&arguments).ok_or_else(|| Unsupported::new("arguments that do not fit their product"))?;
    let seeds = contract.seeds().len();
    let inputs: Vec<&Vec<Dim>> = std::iter::repeat_n(&shapes.acc, contract.terms.len())
        .chain(&shapes.stats)
        .chain(extras.iter().map(|k| arguments[*k]))
        .collect();
    let dtypes: Vec<DType> =
        std::iter::repeat_n(DType::F32, seeds).chain(extras.iter().map(|k| member.reads[*k].2)).collect();
    let epi = Typed::new(&contract.epi, "epi", &inputs, &dtypes)?;
    // A statistic has the left side's axes before the summed one; they must be the first of the result.
    for term in contract.terms.iter().filter(|term| term.stat.is_some()) {
        let leading = &term.spec.a[..term.spec.a.len().saturating_sub(1)];
        if !term.spec.out.starts_with(leading) {
            return Err(Unsupported::new("a statistic of rows that do not lead the result"));
        }
    }
    let mut moved = vec![];
    for k in epi.inputs_read().into_iter().filter(|k| usize::from(*k) >= seeds) {
        let view = launch.argument(extras[usize::from(k) - seeds], &format!("epi_x{k}"))?;
        moved.push((k, moving(stretched(&view.strides, axes.len()), view, axes)));
    }
    Ok((epi, moved))
}

/// Terms with equal left sides and sums share a sweep.
fn sweeps<'p>(launch: &Launch<'_>, halves: Vec<Half<'p>>) -> Vec<Sweep<'p>> {
    let member = launch.member();
    let mut groups: Vec<Vec<(usize, Half<'p>)>> = vec![];
    for (t, half) in halves.into_iter().enumerate() {
        let equal = |group: &&mut Vec<(usize, Half<'p>)>| {
            let first = &group[0].1;
            let operands = |half: &Half<'_>| -> Vec<_> {
                half.left_arguments.iter().map(|k| (&member.reads[*k].0, &member.reads[*k].1)).collect()
            };
            group.len() < SHARED
                && first.left.passes.typed.prog == half.left.passes.typed.prog
                && first.left.axes == half.left.axes
                && first.k_sizes == half.k_sizes
                && operands(first) == operands(&half)
        };
        match groups.iter_mut().find(equal) {
            Some(group) => group.push((t, half)),
            None => groups.push(vec![(t, half)]),
        }
    }
    groups.into_iter().map(sweep).collect()
}

fn sweep<'p>(group: Vec<(usize, Half<'p>)>) -> Sweep<'p> {
    let (mut left, mut stats, mut rights) = (None, vec![], vec![]);
    let (mut sizes, mut kept) = (vec![], vec![]);
    for (t, half) in group {
        sizes = half.k_sizes;
        kept.resize(sizes.len(), false);
        kept.iter_mut().zip(half.k_kept).for_each(|(kept, own)| *kept |= own);
        stats.extend(half.stat.map(|passes| Stat { term: t, passes }));
        rights.push((t, half.right));
        match &mut left {
            None => left = Some(half.left),
            // The second term's statistic may read inputs that the first one's side does not.
            Some(left) => {
                for (k, moving) in half.left.inputs {
                    if left.inputs.iter().all(|(known, _)| *known != k) {
                        left.inputs.push((k, moving));
                    }
                }
            }
        }
    }
    let Some(mut left) = left else { unreachable!("a group has a first term") };
    let name = format!("k{}", rights.first().map_or(0, |(t, _)| *t));
    let mut views: Vec<&mut Vec<Dim>> = left.inputs.iter_mut().map(|(_, moving)| &mut moving.k).collect();
    for (_, right) in &mut rights {
        views.extend(right.inputs.iter_mut().map(|(_, moving)| &mut moving.k));
    }
    let k = Axes::merge(&name, &sizes, &kept, &mut views);
    Sweep { k, left, stats, rights }
}
