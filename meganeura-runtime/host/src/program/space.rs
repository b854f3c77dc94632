//! The index space of a program: rows and columns of its result, and how inputs move along them.

use crate::task::Layout;

/// How one value moves: words from one index to the next along each axis of the space.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Moves {
    /// Along the leading axes of the space.
    pub leading: Vec<usize>,
    /// Along the last.
    pub column: usize,
    /// The distance of rows, if it is one for all.
    pub row: Option<usize>,
}

/// Axes of a result, those that may be walked as one merged.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Sizes of the leading axes.
    pub sizes: Vec<usize>,
    /// The size of the last.
    pub columns: usize,
    /// Their product.
    pub rows: usize,
}

/// Where an index along an original axis is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Coordinate {
    /// Always 0.
    Zero,
    /// The column.
    Column,
    /// `row / inner % size`.
    Row { inner: usize, size: usize },
}

struct Axis {
    size: usize,
    strides: Vec<usize>,
    kept: bool,
    origin: usize,
}

/// The space of a result, how each value (the result last) moves in it, and where the coordinate of each original
/// axis, counted from the last, is found. `indexed` axes, counted so too, stay alone; the last axis stays the columns
/// unless `flat`.
pub(crate) fn space(
    values: &[&Layout],
    result: &Layout,
    indexed: &[usize],
    flat: bool,
) -> (Space, Vec<Moves>, Vec<Coordinate>) {
    let rank = result.shape.len().max(1);
    let strides = |layout: &Layout, axis: usize| {
        let own = (axis + layout.shape.len()).checked_sub(rank);
        own.map_or(0, |own| if layout.shape[own] == 1 { 0 } else { layout.strides[own] })
    };
    let everything = || values.iter().copied().chain([result]);
    let size = |axis: usize| (axis + result.shape.len()).checked_sub(rank).map_or(1, |own| result.shape[own]);
    let mut axes: Vec<Axis> = vec![];
    for axis in 0..rank {
        let kept = indexed.contains(&(rank - 1 - axis));
        let next =
            Axis { size: size(axis), strides: everything().map(|v| strides(v, axis)).collect(), kept, origin: axis };
        let last = axis + 1 == rank;
        if last && !flat {
            axes.push(next);
            continue;
        }
        if next.size == 1 {
            let dense = axes.last().is_none_or(|before| before.strides.last() == Some(&1) || before.size == 1);
            if !last || (dense && !axes.is_empty()) {
                continue;
            }
        }
        match axes.last_mut() {
            Some(before)
                if !before.kept
                    && !next.kept
                    && before.strides.iter().zip(&next.strides).all(|(far, near)| *far == near * next.size) =>
            {
                before.size *= next.size;
                before.strides = next.strides;
            }
            _ => axes.push(next),
        }
    }
    let coordinate = |from_last: usize| {
        let place =
            rank.checked_sub(1 + from_last).and_then(|origin| axes.iter().position(|axis| axis.origin == origin));
        match place {
            Some(place) if place + 1 == axes.len() => Coordinate::Column,
            Some(place) => {
                let inner = axes[place + 1..axes.len() - 1].iter().map(|axis| axis.size).product();
                Coordinate::Row { inner, size: axes[place].size }
            }
            None => Coordinate::Zero,
        }
    };
    let coordinates = (0..rank).map(coordinate).collect();
    let leading = &axes[..axes.len() - 1];
    let moves = (0..values.len() + 1).map(|k| {
        let own: Vec<usize> = leading.iter().map(|axis| axis.strides[k]).collect();
        let even = (1..own.len()).all(|axis| own[axis - 1] == own[axis] * leading[axis].size);
        let row = even.then(|| own.last().copied().unwrap_or(0));
        Moves { leading: own, column: axes[axes.len() - 1].strides[k], row }
    });
    let moves = moves.collect();
    let sizes: Vec<usize> = leading.iter().map(|axis| axis.size).collect();
    let rows = sizes.iter().product();
    (Space { sizes, columns: axes[axes.len() - 1].size, rows }, moves, coordinates)
}

impl Space {
    /// Words from the first element of a value to the first of a row.
    pub(crate) fn offset(&self, moves: &Moves, row: usize) -> usize {
        if let Some(step) = moves.row {
            return row * step;
        }
        let (mut rest, mut offset) = (row, 0);
        for (size, stride) in self.sizes.iter().zip(&moves.leading).rev() {
            offset += rest % size * stride;
            rest /= size;
        }
        offset
    }
}
