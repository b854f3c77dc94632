//! Strided copies with windows. Axes that both sides walk evenly are one; inner runs are copied as slices.

use std::ops::Range;

use meganeura_shaders::dim::Env;
use meganeura_shaders::kernel;

use crate::task::Refusal;
use crate::threads::Threads;
use crate::view::{Source, Target};

/// Elements of a part.
const PART: usize = 64 << 10;

#[derive(Clone, Debug)]
struct Axis {
    size: usize,
    source: i64,
    target: i64,
    /// The indices that take elements of the source, from its first.
    window: Range<i64>,
    windowed: bool,
}

/// A copy that is ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    /// All but the last.
    outer: Vec<Axis>,
    inner: Axis,
    from: i64,
    rows: usize,
    /// Rows of a part.
    together: usize,
    /// Words behind the last that is read or written.
    pub(crate) source_span: usize,
    pub(crate) target_span: usize,
}

impl Copy {
    pub(crate) fn new(copy: &kernel::Copy, env: &Env) -> Result<Copy, Refusal> {
        let mut axes: Vec<Axis> = vec![];
        for axis in &copy.axes {
            let size = axis.extent.eval(env).max(0);
            let (start, length) = match &axis.window {
                Some((start, length)) => (start.eval(env), length.eval(env)),
                None => (0, size),
            };
            let windowed = axis.window.is_some() && (start != 0 || length < size);
            let next = Axis {
                size: size as usize,
                source: axis.source.eval(env),
                target: axis.target.eval(env),
                window: start..start.saturating_add(length.max(0)),
                windowed,
            };
            if size == 1 && !windowed {
                continue;
            }
            match axes.last_mut() {
                Some(before)
                    if !before.windowed
                        && !windowed
                        && before.source == next.source * size
                        && before.target == next.target * size =>
                {
                    let size = before.size * next.size;
                    *before = Axis { size, window: 0..size as i64, ..next };
                }
                _ => axes.push(next),
            }
        }
        let from = copy.from.eval(env);
        let elements: usize = axes.iter().map(|axis| axis.size).product();
        let (mut source, mut target, mut reads) = ([from; 2], [0i64; 2], elements > 0);
        for axis in &axes {
            let taken = axis.window.start.max(0)..axis.window.end.min(axis.size as i64);
            reads &= !taken.is_empty();
            let ends = [taken.start - axis.window.start, taken.end - 1 - axis.window.start].map(|i| i * axis.source);
            source = [source[0] + ends[0].min(ends[1]), source[1] + ends[0].max(ends[1])];
            let end = (axis.size as i64 - 1) * axis.target;
            target = [target[0] + end.min(0), target[1] + end.max(0)];
        }
        let span = |used: bool, [low, high]: [i64; 2]| match (used, low) {
            (false, _) => Ok(0),
            (true, 0..) => Ok(high as usize + 1),
            _ => Err(Refusal("a copy from or to before the first element".into())),
        };
        let (source_span, target_span) = (span(reads, source)?, span(elements > 0, target)?);
        let none = Axis { size: 1, source: 0, target: 0, window: 0..1, windowed: false };
        let inner = axes.pop().unwrap_or(none);
        let rows = axes.iter().map(|axis| axis.size).product();
        let together = (PART / inner.size.max(1)).max(1);
        Ok(Copy { outer: axes, inner, from, rows, together, source_span, target_span })
    }

    pub(crate) fn run(&self, threads: &Threads, read: &Source<'_>, write: &Target<'_>) {
        if self.inner.size == 0 {
            return;
        }
        // One long row is cut, too.
        let across = if self.rows == 1 { self.inner.size.div_ceil(PART) } else { 1 };
        let columns = self.inner.size.div_ceil(across);
        threads.parts(self.rows.div_ceil(self.together) * across, |part| {
            let first = part / across * self.together;
            let column = part % across * columns;
            for row in first..self.rows.min(first + self.together) {
                self.row(row, column..self.inner.size.min(column + columns), read, write);
            }
        });
    }

    fn row(&self, row: usize, columns: Range<usize>, read: &Source<'_>, write: &Target<'_>) {
        let (mut rest, mut source, mut target, mut inside) = (row, self.from, 0i64, true);
        for axis in self.outer.iter().rev() {
            let index = (rest % axis.size) as i64;
            rest /= axis.size;
            inside &= axis.window.contains(&index);
            source += (index - axis.window.start) * axis.source;
            target += index * axis.target;
        }
        let Axis { window, .. } = &self.inner;
        let clamp = |at: i64| at.clamp(columns.start as i64, columns.end as i64) as usize;
        let taken = if inside { clamp(window.start)..clamp(window.end) } else { columns.start..columns.start };
        self.zero(columns.start..taken.start, target, write);
        self.zero(taken.end.max(columns.start)..columns.end, target, write);
        if taken.is_empty() {
            return;
        }
        let (from, to) = (self.inner.source, self.inner.target);
        let source = source + (taken.start as i64 - window.start) * from;
        let target = target + taken.start as i64 * to;
        match (from, to) {
            (1, 1) => {
                // SAFETY: inside of the spans, which the task checked to lie apart.
                let (from, to) = unsafe {
                    let from: &[u32] = read.slice(source as usize, taken.len());
                    (from, write.slice::<u32>(target as usize, taken.len()))
                };
                to.copy_from_slice(from);
            }
            (0, 1) => {
                // SAFETY: as above.
                let word = unsafe { read.slice::<u32>(source as usize, 1) }[0];
                // SAFETY: as above.
                unsafe { write.slice::<u32>(target as usize, taken.len()) }.fill(word);
            }
            _ => {
                for k in 0..taken.len() as i64 {
                    // SAFETY: as above, a word at a time.
                    unsafe {
                        let word = read.slice::<u32>((source + k * from) as usize, 1)[0];
                        write.slice::<u32>((target + k * to) as usize, 1)[0] = word;
                    }
                }
            }
        }
    }

    fn zero(&self, columns: Range<usize>, target: i64, write: &Target<'_>) {
        if columns.is_empty() {
            return;
        }
        let first = target + columns.start as i64 * self.inner.target;
        if self.inner.target == 1 {
            // SAFETY: inside of the span; parts write disjoint rows.
            unsafe { write.slice::<u32>(first as usize, columns.len()) }.fill(0);
            return;
        }
        for k in 0..columns.len() as i64 {
            // SAFETY: as above.
            let word = unsafe { write.slice::<u32>((first + k * self.inner.target) as usize, 1) };
            word[0] = 0;
        }
    }
}
