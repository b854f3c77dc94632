//! Kernels that move or add elements by position: gather, scatter-add, running totals, joins.
//!
//! Values are `[outer, n, inner]`; parts are ranges of rows, or for sums of places ranges of columns, so that every
//! element is written by one part and added to in the order of the ids.

use meganeura_shaders::kernel::Scan;
use meganeura_shaders::prog::DType;

use crate::task::{Layout, Refusal};
use crate::threads::Threads;
use crate::view::{Source, Target};

/// Elements of a part.
const PART: usize = 32 << 10;
/// Columns of a part of a scatter.
const COLUMNS: usize = 128;

/// A kernel of this family that is ready to run.
pub(crate) enum Indexed {
    Gather { x: Axes, ids: Axes, out: Axes },
    ScatterAdd { values: Axes, ids: Axes, out: Axes, dtype: DType },
    Scan { scan: Scan, x: Layout, out: Layout, dtype: DType },
    Concat { parts: Vec<Axes>, out: Axes },
}

/// Sizes and strides of three axes; strides of single elements are 0.
#[derive(Clone, Copy)]
pub(crate) struct Axes {
    size: [usize; 3],
    stride: [usize; 3],
}

impl Axes {
    fn of(layout: &Layout) -> Result<Axes, Refusal> {
        let sizes = layout.shape.as_slice().try_into().ok().zip(layout.strides.as_slice().try_into().ok());
        let Some((size, strides)): Option<([usize; 3], [usize; 3])> = sizes else {
            return Err(Refusal(format!("a value of {} axes where three are expected", layout.shape.len())));
        };
        let mut stride = strides;
        stride.iter_mut().zip(size).filter(|(_, size)| *size == 1).for_each(|(stride, _)| *stride = 0);
        Ok(Axes { size, stride })
    }

    fn at(&self, outer: usize, middle: usize, inner: usize) -> usize {
        outer * self.stride[0] + middle * self.stride[1] + inner * self.stride[2]
    }
}

/// Copies `count` words that lie `from_stride` and `to_stride` apart.
fn copy(
    from: &Source<'_>,
    at: usize,
    from_stride: usize,
    to: &Target<'_>,
    start: usize,
    to_stride: usize,
    count: usize,
) {
    // SAFETY: the result lies apart from the arguments, and each of its words belongs to one part.
    unsafe {
        if from_stride == 1 && to_stride == 1 {
            to.slice::<u32>(start, count).copy_from_slice(from.slice(at, count));
            return;
        }
        for k in 0..count {
            to.slice::<u32>(start + k * to_stride, 1)[0] = from.slice::<u32>(at + k * from_stride, 1)[0];
        }
    }
}

fn word(from: &Source<'_>, at: usize) -> u32 {
    // SAFETY: the result lies apart from the arguments, which nobody writes.
    let one: &[u32] = unsafe { from.slice(at, 1) };
    one[0]
}

/// The sum of two elements, given and returned as words.
fn sum(dtype: DType, x: u32, y: u32) -> u32 {
    match dtype {
        DType::F32 => (f32::from_bits(x) + f32::from_bits(y)).to_bits(),
        _ => x.wrapping_add(y),
    }
}

fn product(dtype: DType, x: u32, y: u32) -> u32 {
    match dtype {
        DType::F32 => (f32::from_bits(x) * f32::from_bits(y)).to_bits(),
        _ => x.wrapping_mul(y),
    }
}

/// Runs `row` for every row, some in each part.
fn rows(threads: &Threads, count: usize, elements: usize, row: impl Fn(usize) + Sync) {
    let each = (PART / elements.max(1)).max(1);
    threads.parts(count.div_ceil(each), |part| (part * each..count.min((part + 1) * each)).for_each(&row));
}

impl Indexed {
    pub(crate) fn gather(reads: &[Layout], write: &Layout) -> Result<Indexed, Refusal> {
        let (x, ids, out) = (Axes::of(&reads[0])?, Axes::of(&reads[1])?, Axes::of(write)?);
        if x.size[1] == 0 && write.elements() > 0 {
            return Err(Refusal("a gather from an axis without elements".into()));
        }
        picks(&ids, &out)?;
        Ok(Indexed::Gather { x, ids, out })
    }

    pub(crate) fn scatter_add(reads: &[Layout], write: &Layout) -> Result<Indexed, Refusal> {
        let (values, ids, out) = (Axes::of(&reads[0])?, Axes::of(&reads[1])?, Axes::of(write)?);
        picks(&ids, &values)?;
        if [out.size[0], out.size[2]] != [values.size[0], values.size[2]] || (out.size[1] == 0 && values.size[1] > 0) {
            return Err(Refusal("a scatter into another shape".into()));
        }
        Ok(Indexed::ScatterAdd { values, ids, out, dtype: write.dtype })
    }

    pub(crate) fn scan(scan: Scan, reads: &[Layout], write: &Layout) -> Result<Indexed, Refusal> {
        if reads[0].shape != write.shape || write.shape.is_empty() {
            return Err(Refusal("a running total of another shape than its argument's".into()));
        }
        Ok(Indexed::Scan { scan, x: reads[0].clone(), out: write.clone(), dtype: write.dtype })
    }

    pub(crate) fn concat(reads: &[Layout], write: &Layout) -> Result<Indexed, Refusal> {
        let parts = reads.iter().map(Axes::of).collect::<Result<Vec<_>, _>>()?;
        let out = Axes::of(write)?;
        let total: usize = parts.iter().map(|part| part.size[1]).sum();
        let same = parts.iter().all(|part| [part.size[0], part.size[2]] == [out.size[0], out.size[2]]);
        if !same || total != out.size[1] {
            return Err(Refusal("a join of values that do not fit".into()));
        }
        Ok(Indexed::Concat { parts, out })
    }

    pub(crate) fn run(&self, threads: &Threads, reads: &[Source<'_>], write: &Target<'_>) {
        match self {
            Indexed::Gather { x, ids, out } => gather(threads, (&reads[0], x), (&reads[1], ids), (write, out)),
            Indexed::ScatterAdd { values, ids, out, dtype } => {
                scatter(threads, (&reads[0], values), (&reads[1], ids), (write, out), *dtype);
            }
            Indexed::Scan { scan, x, out, dtype } => totals(threads, *scan, (&reads[0], x), (write, out), *dtype),
            Indexed::Concat { parts, out } => {
                let [outer, _, inner] = out.size;
                let mut first = 0;
                for (source, part) in reads.iter().zip(parts) {
                    let count = part.size[1];
                    rows(threads, outer * count, inner, |row| {
                        let (o, j) = (row / count, row % count);
                        let (at, to) = (part.at(o, j, 0), out.at(o, first + j, 0));
                        copy(source, at, part.stride[2], write, to, out.stride[2], inner);
                    });
                    first += count;
                }
            }
        }
    }
}

/// Fails unless ids have one element, or as many as the value that they pick, along each axis.
fn picks(ids: &Axes, value: &Axes) -> Result<(), Refusal> {
    let fits = ids.size[1] == value.size[1] && [0, 2].iter().all(|k| [1, value.size[*k]].contains(&ids.size[*k]));
    if fits { Ok(()) } else { Err(Refusal("ids of another shape than what they pick".into())) }
}

fn gather(
    threads: &Threads,
    (x, from): (&Source<'_>, &Axes),
    (ids, which): (&Source<'_>, &Axes),
    (write, out): (&Target<'_>, &Axes),
) {
    let [outer, count, inner] = out.size;
    let id = |o, j, i| (word(ids, which.at(o, j, i)) as usize).min(from.size[1] - 1);
    rows(threads, outer * count, inner, |row| {
        let (o, j) = (row / count, row % count);
        if which.stride[2] == 0 && inner > 0 {
            let at = from.at(o, id(o, j, 0), 0);
            return copy(x, at, from.stride[2], write, out.at(o, j, 0), out.stride[2], inner);
        }
        (0..inner).for_each(|i| copy(x, from.at(o, id(o, j, i), i), 1, write, out.at(o, j, i), 1, 1));
    });
}

fn scatter(
    threads: &Threads,
    (x, from): (&Source<'_>, &Axes),
    (ids, which): (&Source<'_>, &Axes),
    (write, out): (&Target<'_>, &Axes),
    dtype: DType,
) {
    let [outer, places, inner] = out.size;
    let across = inner.div_ceil(COLUMNS);
    rows(threads, outer * across, from.size[1].max(places) * inner.min(COLUMNS), |row| {
        let (o, columns) = (row / across, row % across * COLUMNS);
        let columns = columns..inner.min(columns + COLUMNS);
        // SAFETY: the result lies apart from the arguments, and these columns of it belong to this part.
        let to = |k, i| unsafe { &mut write.slice::<u32>(out.at(o, k, i), 1)[0] };
        (0..places).for_each(|k| columns.clone().for_each(|i| *to(k, i) = 0));
        for j in 0..from.size[1] {
            for i in columns.clone() {
                let k = (word(ids, which.at(o, j, i)) as usize).min(places - 1);
                let total = to(k, i);
                *total = sum(dtype, *total, word(x, from.at(o, j, i)));
            }
        }
    });
}

fn totals(
    threads: &Threads,
    scan: Scan,
    (x, from): (&Source<'_>, &Layout),
    (write, out): (&Target<'_>, &Layout),
    dtype: DType,
) {
    let (leading, length) = (&out.shape[..out.shape.len() - 1], out.shape[out.shape.len() - 1]);
    let step = |layout: &Layout| layout.strides[layout.strides.len() - 1];
    let begin = |layout: &Layout, mut row: usize| {
        let axes = leading.iter().zip(&layout.strides).rev();
        axes.fold(0, |at, (size, stride)| {
            let index = row % size;
            row /= size;
            at + index * stride
        })
    };
    let add = if scan.product { product } else { sum };
    rows(threads, leading.iter().product(), length, |row| {
        let (start, to) = (begin(from, row), begin(out, row));
        let mut total = match (scan.product, dtype) {
            (false, _) => 0,
            (true, DType::F32) => 1.0f32.to_bits(),
            (true, _) => 1,
        };
        for k in 0..length {
            let at = if scan.reverse { length - 1 - k } else { k };
            let next = add(dtype, total, word(x, start + at * step(from)));
            // SAFETY: the result lies apart from the argument, and this row of it belongs to this part.
            let place = unsafe { &mut write.slice::<u32>(to + at * step(out), 1)[0] };
            *place = if scan.exclusive { total } else { next };
            total = next;
        }
    });
}
