//! Batches of rows that lie in memory.
//!
//! What comes in are two slices, each a row an example; what goes out are pairs of batches of equal rows, in order or
//! shuffled. The order is a function of the seed and the epoch. Lengths that do not fit are an error of the first
//! batch when it is used, since a loop has no other place for it; [`DataLoader::check`] tells before.

use crate::random::Stream;
use crate::{Error, Result};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// A slice that is read as rows: `(values, row)`, or the slice alone for rows of one element.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    values: &'a [T],
    row: usize,
}

impl<'a, T, S: AsRef<[T]> + ?Sized> From<(&'a S, usize)> for Rows<'a, T> {
    fn from((values, row): (&'a S, usize)) -> Self {
        Self { values: values.as_ref(), row }
    }
}

impl<'a, T> From<&'a [T]> for Rows<'a, T> {
    fn from(values: &'a [T]) -> Self {
        Self { values, row: 1 }
    }
}

impl<'a, T> From<&'a Vec<T>> for Rows<'a, T> {
    fn from(values: &'a Vec<T>) -> Self {
        Self { values, row: 1 }
    }
}

impl<'a, T, const N: usize> From<&'a [T; N]> for Rows<'a, T> {
    fn from(values: &'a [T; N]) -> Self {
        Self { values, row: 1 }
    }
}

/// Yields pairs of batches: `for (x, label) in DataLoader::new((images, 784), labels).batch(64).shuffle(0)`.
///
/// ```
/// use meganeura_runtime::DataLoader;
///
/// let (images, labels) = (vec![0.5f32; 100 * 784], vec![3u32; 100]);
/// let loader = DataLoader::new((&images, 784), &labels).batch(64).shuffle(0);
/// for epoch in 0..2 {
///     let sizes: Vec<usize> = loader.epoch(epoch).map(|(_, label)| label.len()).collect();
///     assert_eq!(sizes, [64, 36]);
/// }
/// ```
///
/// One pass over it yields every row once; the last batch may be smaller. Iterating over `&loader` again is the next
/// epoch, and with [`shuffle`](Self::shuffle) each epoch has an order of its own.
#[derive(Debug)]
pub struct DataLoader<'a, A, B> {
    first: Rows<'a, A>,
    second: Rows<'a, B>,
    batch: usize,
    seed: Option<u64>,
    /// The epoch of the next iteration.
    next: AtomicU64,
}

impl<'a, A: Copy, B: Copy> DataLoader<'a, A, B> {
    /// Rows of the first slice paired with rows of the second, in batches of 1.
    pub fn new(first: impl Into<Rows<'a, A>>, second: impl Into<Rows<'a, B>>) -> Self {
        Self { first: first.into(), second: second.into(), batch: 1, seed: None, next: AtomicU64::new(0) }
    }

    /// At most `rows` rows a batch, at least 1.
    pub fn batch(mut self, rows: usize) -> Self {
        self.batch = rows;
        self
    }

    /// Every epoch in a random order of its own, which the seed and the epoch's number determine.
    pub fn shuffle(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Number of rows; fails with [`Error::Mismatch`] if the slices do not fit each other, their rows or the batch.
    pub fn check(&self) -> Result<usize> {
        let mismatch = |name: &str, expected: String, found: String| {
            Err(Error::Mismatch { name: name.to_string(), expected, found })
        };
        if self.batch == 0 {
            return mismatch("batch", "at least 1 row".to_string(), "0".to_string());
        }
        for (name, row, length) in
            [("first", self.first.row, self.first.values.len()), ("second", self.second.row, self.second.values.len())]
        {
            if row == 0 {
                return mismatch(name, "rows of at least 1 element".to_string(), "0".to_string());
            }
            if length % row != 0 {
                return mismatch(name, format!("whole rows of {row} elements"), format!("{length} elements"));
            }
        }
        let rows = self.first.values.len() / self.first.row;
        let found = self.second.values.len() / self.second.row;
        if rows != found {
            return mismatch("second", format!("{rows} rows, as in the first"), format!("{found}"));
        }
        Ok(rows)
    }

    /// The batches of one epoch, whatever was iterated before.
    pub fn epoch(&self, epoch: u64) -> Batches<'a, A, B> {
        let (rows, problem) = match self.check() {
            Ok(rows) => (rows, None),
            Err(problem) => (0, Some(problem)),
        };
        let order = self.seed.map(|seed| shuffled(rows, Stream::numbered(seed, epoch)));
        Batches { first: self.first, second: self.second, batch: self.batch.max(1), rows, order, at: 0, problem }
    }
}

/// Fisher and Yates.
fn shuffled(rows: usize, stream: Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    for last in (1..rows).rev() {
        let other = stream.below(last as u64, last as u64 + 1) as usize;
        order.swap(last, other);
    }
    order
}

impl<'a, A: Copy, B: Copy> IntoIterator for &DataLoader<'a, A, B> {
    type Item = (Batch<A>, Batch<B>);
    type IntoIter = Batches<'a, A, B>;

    fn into_iter(self) -> Self::IntoIter {
        self.epoch(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

impl<'a, A: Copy, B: Copy> IntoIterator for DataLoader<'a, A, B> {
    type Item = (Batch<A>, Batch<B>);
    type IntoIter = Batches<'a, A, B>;

    fn into_iter(self) -> Self::IntoIter {
        (&self).into_iter()
    }
}

/// The batches of one epoch.
#[derive(Debug)]
pub struct Batches<'a, A, B> {
    first: Rows<'a, A>,
    second: Rows<'a, B>,
    batch: usize,
    rows: usize,
    order: Option<Vec<usize>>,
    /// Rows that were yielded.
    at: usize,
    /// Makes one pair of batches that cannot be used.
    problem: Option<Error>,
}

impl<A: Copy, B: Copy> Iterator for Batches<'_, A, B> {
    type Item = (Batch<A>, Batch<B>);

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(problem) = self.problem.take() {
            return Some((Batch::unusable(problem.clone()), Batch::unusable(problem)));
        }
        let end = self.rows.min(self.at.saturating_add(self.batch));
        if self.at == end {
            return None;
        }
        let rows = self.at..end;
        self.at = end;
        let order = self.order.as_deref();
        Some((gather(&self.first, order, rows.clone()), gather(&self.second, order, rows)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.rows - self.at).div_ceil(self.batch) + usize::from(self.problem.is_some());
        (left, Some(left))
    }
}

impl<A: Copy, B: Copy> ExactSizeIterator for Batches<'_, A, B> {}

fn gather<T: Copy>(from: &Rows<T>, order: Option<&[usize]>, rows: std::ops::Range<usize>) -> Batch<T> {
    let row = from.row;
    let values = match order {
        None => from.values[rows.start * row..rows.end * row].to_vec(),
        Some(order) => {
            let mut values = Vec::with_capacity(rows.len() * row);
            for &index in &order[rows.clone()] {
                values.extend_from_slice(&from.values[index * row..(index + 1) * row]);
            }
            values
        }
    };
    Batch { values, rows: rows.len(), problem: None }
}

/// Rows of one batch; it is a slice, and `&batch` is an argument of a model.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    values: Vec<T>,
    rows: usize,
    problem: Option<Error>,
}

impl<T> Batch<T> {
    fn unusable(problem: Error) -> Self {
        Self { values: Vec::new(), rows: 0, problem: Some(problem) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values, or why the loader could make none.
    pub fn values(&self) -> Result<&[T]> {
        match &self.problem {
            None => Ok(&self.values),
            Some(problem) => Err(problem.clone()),
        }
    }

    /// The values, or why the loader could make none.
    pub fn into_vec(self) -> Result<Vec<T>> {
        match self.problem {
            None => Ok(self.values),
            Some(problem) => Err(problem),
        }
    }
}

impl<T> Deref for Batch<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Row r is [10 r, 10 r + 1, 10 r + 2], its label r.
    fn data(rows: usize) -> (Vec<f32>, Vec<u32>) {
        ((0..rows).flat_map(|r| (0..3).map(move |i| (10 * r + i) as f32)).collect(), (0..rows as u32).collect())
    }

    /// The labels of an epoch, and the sizes of its batches; checks that rows stay together.
    fn walk<'a>(batches: impl IntoIterator<Item = (Batch<f32>, Batch<u32>)> + 'a) -> (Vec<u32>, Vec<usize>) {
        let (mut labels, mut sizes) = (Vec::new(), Vec::new());
        for (x, label) in batches {
            assert_eq!((x.len(), x.rows(), label.rows()), (3 * label.len(), label.len(), label.len()));
            for (row, &label) in x.chunks(3).zip(label.iter()) {
                assert_eq!(row, [0, 1, 2].map(|i| (10 * label + i) as f32));
            }
            labels.extend_from_slice(&label);
            sizes.push(label.len());
        }
        (labels, sizes)
    }

    #[test]
    fn rows_come_once_in_order_and_the_last_batch_is_what_is_left() {
        for (rows, batch, sizes) in
            [(7, 3, vec![3, 3, 1]), (6, 3, vec![3, 3]), (2, 64, vec![2]), (3, 1, vec![1; 3]), (0, 4, vec![])]
        {
            let (x, label) = data(rows);
            let loader = DataLoader::new((&x, 3), &label).batch(batch);
            assert_eq!(loader.epoch(0).len(), sizes.len());
            assert_eq!(walk(loader), (label.clone(), sizes));
        }
    }

    #[test]
    fn shuffled_epochs_are_permutations_that_the_seed_determines() {
        let (x, label) = data(1_003);
        let loader = |seed| DataLoader::new((&x[..], 3), &label[..]).batch(64).shuffle(seed);
        let seven = loader(7);
        let (first, second) = (walk(&seven).0, walk(&seven).0);
        assert_ne!(first, label);
        assert_ne!(first, second);
        let mut sorted = second.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, label);
        assert_eq!((walk(seven.epoch(0)).0, walk(seven.epoch(1)).0), (first.clone(), second));
        assert_eq!(walk(loader(7)).0, first);
        assert_ne!(walk(loader(8)).0, first);
    }

    #[test]
    fn every_order_is_equally_likely() {
        let (x, label) = data(4);
        let loader = DataLoader::new((&x, 3), &label).batch(4).shuffle(1);
        let mut counts = std::collections::BTreeMap::new();
        for epoch in 0..24_000 {
            *counts.entry(walk(loader.epoch(epoch)).0).or_insert(0i32) += 1;
        }
        // 1,000 of each are expected; five standard deviations.
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|count| (count - 1_000).abs() < 155), "{counts:?}");
    }

    #[test]
    fn lengths_that_do_not_fit_are_one_batch_that_says_so() {
        let (x, label) = data(5);
        for (loader, words) in [
            (DataLoader::new((&x[..14], 3), &label[..]), ["`first`", "whole rows of 3", "14"]),
            (DataLoader::new((&x[..12], 3), &label[..]), ["`second`", "4 rows", "5"]),
            (DataLoader::new((&x[..], 0), &label[..]), ["`first`", "at least 1", "0"]),
            (DataLoader::new((&x[..], 3), &label[..]).batch(0), ["`batch`", "at least 1", "0"]),
            (DataLoader::new((&x[..], 3), (&label[..], 2)), ["`second`", "whole rows of 2", "5"]),
        ] {
            let error = loader.check().unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
            let batches: Vec<_> = loader.shuffle(0).into_iter().collect();
            assert_eq!(batches.len(), 1);
            assert_eq!(batches[0].0.values().unwrap_err().to_string(), error);
            assert_eq!(batches[0].1.clone().into_vec().unwrap_err().to_string(), error);
        }
    }
}
