//! Axes of a contraction and how they move through everything that it touches.
//!
//! Labels become axes with a distance for each operand. Neighbours are joined wherever all operands step over them as
//! over one longer axis, so that what reaches the matrix product is as large as the layouts allow.

use meganeura_shaders::kernel::Spec;

use crate::task::Layout;

/// An axis: its size, and the elements from one index to the next in each of some operands, 0 where one repeats.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Axis {
    pub size: usize,
    pub steps: Vec<usize>,
    /// Which axis of the result this is, where it is one.
    pub place: usize,
}

/// Drops axes of one index; joins neighbours if `join`.
pub(super) fn joined(axes: Vec<Axis>, join: bool) -> Vec<Axis> {
    let mut kept: Vec<Axis> = vec![];
    for axis in axes.into_iter().filter(|axis| axis.size != 1) {
        match kept.last_mut() {
            Some(last)
                if join && last.steps.iter().zip(&axis.steps).all(|(outer, step)| *outer == step * axis.size) =>
            {
                *last = Axis { size: last.size * axis.size, ..axis };
            }
            _ => kept.push(axis),
        }
    }
    kept
}

/// Distances of every label in an operand; a label that it lacks repeats, one that it has twice is a diagonal.
pub(super) fn steps(labels: &[u8], layout: &Layout, count: usize) -> Vec<usize> {
    let mut steps = vec![0; count];
    for (label, stride) in labels.iter().zip(&layout.strides) {
        steps[usize::from(*label)] += stride;
    }
    steps
}

/// Distances of a value along the axes of a result of some rank under NumPy's broadcasting.
pub(super) fn broadcast_steps(layout: &Layout, rank: usize) -> Vec<usize> {
    let missing = rank.saturating_sub(layout.shape.len());
    let own = layout.shape.iter().zip(&layout.strides).map(|(size, stride)| if *size == 1 { 0 } else { *stride });
    std::iter::repeat_n(0, missing).chain(own).collect()
}

/// The axes that a product sums over, outermost first, with distances in both sides. No axis at all where one has no
/// index, since then the sum is 0 whatever the others are.
pub(super) fn summed(spec: &Spec, sizes: &[usize], a: &[usize], b: &[usize]) -> Option<Vec<Axis>> {
    let labels = (0..sizes.len()).filter(|label| !spec.out.contains(&(*label as u8)));
    let mut axes: Vec<Axis> =
        labels.map(|label| Axis { size: sizes[label], steps: vec![a[label], b[label]], place: 0 }).collect();
    axes.sort_by_key(|axis| std::cmp::Reverse((axis.steps[0], axis.steps[1])));
    axes.iter().all(|axis| axis.size > 0).then(|| joined(axes, true))
}

/// Which axes of the result are the columns and the rows of the products. `sides` says for each term which of its
/// sides move along an axis: columns belong to one side in every term, rows to the other.
pub(super) fn rows_and_columns(
    axes: &[Axis],
    sides: impl Fn(&Axis) -> Vec<[bool; 2]>,
) -> (Option<usize>, Option<usize>) {
    let sides: Vec<Vec<[bool; 2]>> = axes.iter().map(sides).collect();
    let single = |k: &usize| sides[*k].iter().all(|[a, b]| a != b);
    let columns = (0..axes.len()).filter(single).max_by_key(|k| (axes[*k].steps[0] == 1, axes[*k].size));
    let opposite =
        |k: &usize| columns.is_some_and(|c| sides[*k].iter().zip(&sides[c]).all(|(x, [a, b])| *x == [*b, *a]));
    let rows = (0..axes.len()).filter(single).filter(opposite).max_by_key(|k| axes[*k].size);
    (rows, columns)
}

/// Where an index of a space lies in an operand.
pub(super) fn offset(sizes: &[usize], steps: &[usize], mut index: usize) -> usize {
    let mut at = 0;
    for (size, step) in sizes.iter().zip(steps).rev() {
        at += index % size * step;
        index /= size;
    }
    at
}
