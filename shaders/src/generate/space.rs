//! Index spaces: how operands move along axes, and which axes may be walked as one.
//!
//! Everything here is symbolic; equality of polynomials is the proof that two axes merge. Strides count elements.

use crate::dim::{Dim, product};
use crate::schedule::{ELEMENT, Place};

use super::Unsupported;

/// Distances between neighbours along the axes of a value, 0 along an axis of size 1, and where the first element
/// lies behind the offset and slots of its place.
pub(super) fn strides(place: Option<&Place>, shape: &[Dim]) -> Result<(Vec<Dim>, Dim), Unsupported> {
    let (mut strides, mut first, mut step) = (vec![], Dim::from(0), Dim::from(1));
    for (axis, size) in shape.iter().enumerate().rev() {
        let padded = place.and_then(|place| place.lead.get(axis));
        strides.push(step.clone());
        if let (Some(lead), Some(stride)) = (padded, strides.last_mut()) {
            let elements = lead.stride.div(&Dim::from(ELEMENT));
            *stride = elements.ok_or_else(|| Unsupported::new("rows that do not start at whole elements"))?;
            first = &first + &(&lead.first * stride);
        }
        step = &step * size;
    }
    strides.reverse();
    for (stride, size) in strides.iter_mut().zip(shape) {
        if size.is_one() {
            *stride = Dim::from(0);
        }
    }
    Ok((strides, first))
}

/// The strides along the last axes of a space of `rank` axes; 0 along those that the value lacks.
pub(super) fn stretched(strides: &[Dim], rank: usize) -> Vec<Dim> {
    let missing = rank.saturating_sub(strides.len());
    let own = strides.iter().skip(strides.len().saturating_sub(rank)).cloned();
    std::iter::repeat_n(Dim::from(0), missing).chain(own).collect()
}

/// Axes that one linear index walks over, outermost first.
#[derive(Clone, Debug)]
pub(super) struct Axes {
    /// Prefix of its words.
    pub name: String,
    /// The sizes, after merging.
    pub sizes: Vec<Dim>,
    /// Of each axis before merging: the one that it is now, where it stands alone.
    alone: Vec<Option<usize>>,
    /// Whether the index counts fours along the last axis; coordinates are in elements all the same.
    pub fours: bool,
}

impl Axes {
    /// Merges neighbours that all views walk alike; `views` are their strides, which shrink with the axes. Axes that
    /// are `kept` stay alone, so that their coordinate is known. Axes of size 1 go.
    pub(super) fn merge(name: &str, sizes: &[Dim], kept: &[bool], views: &mut [&mut Vec<Dim>]) -> Axes {
        let mut axes = Axes { name: name.to_string(), sizes: vec![], alone: vec![None; sizes.len()], fours: false };
        let mut merged: Vec<Vec<Dim>> = vec![vec![]; views.len()];
        let mut may_grow = false;
        for (axis, size) in sizes.iter().enumerate() {
            if size.is_one() {
                continue;
            }
            let joins = |(view, merged): (&&mut Vec<Dim>, &Vec<Dim>)| {
                merged.last().is_some_and(|outer| *outer == &view[axis] * size)
            };
            if may_grow && !kept[axis] && views.iter().zip(&merged).all(joins) {
                if let Some(last) = axes.sizes.last_mut() {
                    *last = &*last * size;
                }
                for (view, merged) in views.iter().zip(&mut merged) {
                    merged.pop();
                    merged.push(view[axis].clone());
                }
            } else {
                axes.alone[axis] = kept[axis].then_some(axes.sizes.len());
                axes.sizes.push(size.clone());
                for (view, merged) in views.iter().zip(&mut merged) {
                    merged.push(view[axis].clone());
                }
            }
            may_grow = !kept[axis];
        }
        for (view, merged) in views.iter_mut().zip(merged) {
            **view = merged;
        }
        axes
    }

    /// Makes the index count fours along the last axis, whose size must be a multiple of four.
    pub(super) fn count_fours(&mut self) {
        if let Some(last) = self.sizes.last_mut() {
            *last = last.div(&Dim::from(4)).unwrap_or_default();
            self.fours = true;
        }
    }

    /// The number of positions.
    pub(super) fn count(&self) -> Dim {
        product(&self.sizes)
    }

    /// The axis that an axis before merging is now; none if it had size 1. It must have been kept.
    pub(super) fn place_of(&self, axis: usize) -> Option<usize> {
        self.alone[axis]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dim::Symbols;

    #[test]
    fn equal_shapes_are_one_axis_and_a_bias_makes_two() {
        let mut symbols = Symbols::default();
        let (b, s) = (symbols.declare("b", 1, 9, 1), symbols.declare("s", 1, 9, 1));
        let shape = [b, s, Dim::from(128)];
        let dense = strides(None, &shape).map(|s| s.0).unwrap_or_default();
        let (mut x, mut y) = (dense.clone(), dense.clone());
        let axes = Axes::merge("e", &shape, &[false; 3], &mut [&mut x, &mut y]);
        assert_eq!((axes.sizes.len(), x), (1, vec![Dim::from(1)]));
        let bias = strides(None, &shape[2..]).map(|s| s.0).unwrap_or_default();
        let (mut x, mut y) = (dense, stretched(&bias, 3));
        let axes = Axes::merge("e", &shape, &[false; 3], &mut [&mut x, &mut y]);
        assert_eq!((axes.sizes.len(), y), (2, vec![Dim::from(0), Dim::from(1)]));
    }

    #[test]
    fn a_kept_axis_stands_alone() {
        let shape = [Dim::from(3), Dim::from(5), Dim::from(1), Dim::from(7)];
        let mut x = strides(None, &shape).map(|s| s.0).unwrap_or_default();
        let axes = Axes::merge("e", &shape, &[false, true, true, false], &mut [&mut x]);
        assert_eq!(axes.sizes, [Dim::from(3), Dim::from(5), Dim::from(7)]);
        assert_eq!((axes.place_of(1), axes.place_of(2)), (Some(1), None));
    }
}
