//! Contractions against the reference in f64.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use meganeura_shaders::dim::Env;
use meganeura_shaders::kernel::{Contract, Kernel, Spec, Term};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Leaf, Linker, Prog, Reg};
use meganeura_shaders::reference::{Tensor, eval, eval_typed};

use crate::task::{Layout, Task};
use crate::threads::Threads;
use crate::view::{Source, Target};

/// A fixed sequence of numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn shuffle<T>(&mut self, all: &mut [T]) {
        for k in (1..all.len()).rev() {
            all.swap(k, self.below(k + 1));
        }
    }

    /// Between -1 and 1, never 0; exact in f32.
    fn number(&mut self) -> f64 {
        let size = (1 + self.below(1 << 20)) as f64 / f64::from(1 << 20);
        if self.below(2) == 0 { size } else { -size }
    }

    fn tensor(&mut self, shape: &[usize]) -> Tensor {
        let shape: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
        Tensor::from_fn(&shape, |_| self.number())
    }

    /// Dense, or with room between rows.
    fn layout(&mut self, shape: &[usize]) -> Layout {
        let mut layout = Layout::dense(shape, DType::F32);
        for axis in (1..shape.len()).rev() {
            layout.strides[axis - 1] = layout.strides[axis] * shape[axis].max(1) + self.pick(&[0, 0, 1, 16]);
        }
        layout
    }
}

/// The words of a value among NaN, with room behind.
fn words(layout: &Layout, tensor: &Tensor) -> Vec<u32> {
    let mut words = vec![f32::NAN.to_bits(); layout.span() + 3];
    let mut values = tensor.data.iter();
    places(layout, |at| words[at] = (*values.next().unwrap() as f32).to_bits());
    words
}

fn places(layout: &Layout, mut f: impl FnMut(usize)) {
    let mut index = vec![0; layout.shape.len()];
    for _ in 0..layout.elements() {
        f(index.iter().zip(&layout.strides).map(|(i, stride)| i * stride).sum());
        for axis in (0..index.len()).rev() {
            index[axis] += 1;
            if index[axis] < layout.shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// The result's words for some number of threads.
fn run(kernel: &Kernel, layouts: &[Layout], args: &[Vec<u32>], to: &Layout, threads: usize) -> Vec<u32> {
    run_over(kernel, layouts, args, to, threads, None)
}

/// The same with the result over an argument, if one is named.
fn run_over(
    kernel: &Kernel,
    layouts: &[Layout],
    args: &[Vec<u32>],
    to: &Layout,
    threads: usize,
    over: Option<usize>,
) -> Vec<u32> {
    let task = Task::new(kernel, layouts, to, &Env::default()).unwrap_or_else(|refusal| panic!("{kernel}: {refusal}"));
    let mut result = over.map_or_else(|| vec![f32::NAN.to_bits(); to.span() + 3], |k| args[k].clone());
    let mut scratch = vec![f32::NAN; task.scratch()];
    let first = result.as_mut_ptr();
    // SAFETY: the words live as long as the run, which alone touches them.
    let (own, target) = unsafe { (Source::from_raw(first, result.len()), Target::from_raw(first, result.len())) };
    let sources: Vec<Source<'_>> =
        args.iter().enumerate().map(|(k, words)| if over == Some(k) { own } else { Source::new(words) }).collect();
    let threads = Threads::new(threads);
    threads.call(|| task.run(&threads, &sources, target, &mut scratch)).unwrap();
    result
}

/// Compares all elements, and that nothing else was written. `bound` holds the error that each may have.
fn compare(what: &str, to: &Layout, result: &[u32], expected: &Tensor, bound: &Tensor) {
    let mut inside = vec![false; result.len()];
    let mut values = expected.data.iter().zip(&bound.data);
    places(to, |at| {
        let (value, bound) = values.next().unwrap();
        let found = f64::from(f32::from_bits(result[at]));
        assert!((found - value).abs() <= *bound, "{what} {to:?} at {at}: {value}, found {found}, bound {bound}");
        inside[at] = true;
    });
    let outside = (0..result.len()).find(|at| !inside[*at] && !f32::from_bits(result[*at]).is_nan());
    assert_eq!(outside, None, "{what} wrote outside of {to:?}");
}

/// What a sum of products may be off by: each of its additions rounds by half a unit of what has been summed, and
/// sums over absolute values bound that.
fn bound(spec: &Spec, a: &Tensor, b: &Tensor) -> Tensor {
    let absolute = |t: &Tensor| Tensor { shape: t.shape.clone(), data: t.data.iter().map(|x| x.abs()).collect() };
    let terms = spec.dims(&a.shape, &b.shape).unwrap();
    let depth: i64 = (0..terms.len()).filter(|l| !spec.out.contains(&(*l as u8))).map(|l| terms[l]).product();
    let kernel = Kernel::Contract(Arc::new(Contract::plain(spec.clone())));
    let mut sum = eval(&kernel, &[absolute(a), absolute(b)], &Env::default());
    sum.data.iter_mut().for_each(|x| *x *= (depth + 2) as f64 * f64::from(f32::EPSILON));
    sum
}

/// Labels of all kinds that a contraction may have in any order, and sizes around the edges of tiles whose product is small.
fn any_spec(dice: &mut Dice) -> (Spec, Vec<usize>, Vec<usize>, Vec<usize>) {
    let count = 1 + dice.below(6);
    let (mut a, mut b, mut out, mut sizes) = (vec![], vec![], vec![], vec![]);
    let mut budget = 60_000;
    for label in 0..count as u8 {
        let kind = dice.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]);
        if matches!(kind, 0 | 1 | 3 | 4) {
            a.push(label);
        }
        if matches!(kind, 0 | 2 | 3) {
            b.push(label);
        }
        if kind < 3 {
            out.push(label);
        }
        let size = dice.pick(&[1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 49, 63, 64, 65, 70]).min(budget);
        let size = if dice.below(60) == 0 { 0 } else { size };
        budget /= size.max(1);
        sizes.push(size);
    }
    [&mut a, &mut b, &mut out].into_iter().for_each(|labels| dice.shuffle(labels));
    // Mostly in the order in which they came, since then axes can be joined.
    if dice.below(2) == 0 {
        [&mut a, &mut b, &mut out].into_iter().for_each(|labels| labels.sort_unstable());
    }
    let shape = |labels: &[u8]| labels.iter().map(|label| sizes[usize::from(*label)]).collect::<Vec<_>>();
    (Spec::new(&a, &b, &out), shape(&a), shape(&b), shape(&out))
}

#[test]
fn any_contraction_is_a_sum_of_products() {
    let mut dice = Dice(1);
    for _ in 0..4000 {
        let (spec, a, b, out) = any_spec(&mut dice);
        if spec.a.is_empty() && spec.b.is_empty() {
            continue;
        }
        let kernel = Kernel::Contract(Arc::new(Contract::plain(spec.clone())));
        let args = [dice.tensor(&a), dice.tensor(&b)];
        let layouts = [dice.layout(&a), dice.layout(&b)];
        let to = dice.layout(&out);
        let stored: Vec<Vec<u32>> = layouts.iter().zip(&args).map(|(layout, arg)| words(layout, arg)).collect();
        let result = run(&kernel, &layouts, &stored, &to, 1);
        let expected = eval(&kernel, &args, &Env::default());
        compare(&format!("{spec} of {layouts:?}"), &to, &result, &expected, &bound(&spec, &args[0], &args[1]));
    }
}

#[test]
fn products_of_models_have_the_same_bits_on_any_number_of_threads() {
    let mut dice = Dice(2);
    for (spec, a, b) in [
        ("mk,nk->mn", vec![64, 97], vec![131, 97]),
        ("mk,kn->mn", vec![128, 65], vec![65, 577]),
        ("mk,mn->kn", vec![129, 140], vec![129, 300]),
        ("mk,kn->mn", vec![1, 300], vec![300, 1000]),
        ("mk,nk->mn", vec![3, 300], vec![1000, 300]),
        ("mk,nk->mn", vec![1000, 300], vec![3, 300]),
        ("btk,nk->btn", vec![5, 40, 64], vec![192, 64]),
        ("bqhd,bkhd->bhqk", vec![2, 33, 3, 16], vec![2, 65, 3, 16]),
        ("bhqk,bkhd->bqhd", vec![2, 3, 33, 65], vec![2, 65, 3, 16]),
        ("grd,gsd->grs", vec![3, 3, 64], vec![3, 200, 64]),
    ] {
        let spec = Spec::parse(spec).unwrap();
        let kernel = Kernel::Contract(Arc::new(Contract::plain(spec.clone())));
        let args = [dice.tensor(&a), dice.tensor(&b)];
        let layouts = [Layout::dense(&a, DType::F32), Layout::dense(&b, DType::F32)];
        let expected = eval(&kernel, &args, &Env::default());
        let out: Vec<usize> = expected.shape.iter().map(|size| *size as usize).collect();
        let to = Layout::dense(&out, DType::F32);
        let stored: Vec<Vec<u32>> = layouts.iter().zip(&args).map(|(layout, arg)| words(layout, arg)).collect();
        let results = [1, 2, 3].map(|threads| run(&kernel, &layouts, &stored, &to, threads));
        compare(&spec.to_string(), &to, &results[0], &expected, &bound(&spec, &args[0], &args[1]));
        assert!(results[0] == results[1] && results[0] == results[2], "{spec}");
    }
}

/// Builds an epilogue over accumulators, statistics and as many extras as asked for.
fn program(seeds: &[Leaf], extras: u32, build: impl FnOnce(&mut Linker, &[Reg]) -> Reg) -> Prog {
    let leaves: Vec<Leaf> = seeds.iter().copied().chain((0..extras).map(Leaf::Arg)).collect();
    let mut link = Linker::default();
    let inputs: Vec<Reg> = leaves.iter().map(|leaf| link.leaf(*leaf)).collect();
    let root = build(&mut link, &inputs);
    link.finish(&[root], &leaves).0.remove(0)
}

/// A shape that broadcasts to `shape`.
fn narrower(dice: &mut Dice, shape: &[usize]) -> Vec<usize> {
    let skip = if dice.below(2) == 0 { 0 } else { dice.below(shape.len() + 1) };
    shape[skip..].iter().map(|size| if dice.below(3) == 0 { 1 } else { *size }).collect()
}

/// A kernel with everything that it takes, and what each element may be off by.
struct Case {
    kernel: Kernel,
    args: Vec<Tensor>,
    layouts: Vec<Layout>,
    to: Layout,
    bound: Tensor,
    over: Option<usize>,
}

/// Products of one or two terms, with programs before and after of which errors are known.
fn any_fused(dice: &mut Dice) -> Option<Case> {
    let (spec, a, b, out) = any_spec(dice);
    if (spec.a.is_empty() && spec.b.is_empty()) || out.contains(&0) {
        return None;
    }
    let (mut args, mut layouts, mut terms, mut errors, mut largest) = (vec![], vec![], vec![], vec![], vec![]);
    let to = dice.layout(&out);
    for _ in 0..1 + dice.below(2) {
        // Only the left side may have an axis that is summed alone.
        let alone = spec.a.iter().any(|label| !spec.b.contains(label) && !spec.out.contains(label));
        let swapped = !alone && dice.below(4) == 0;
        let (spec, shapes) = match swapped {
            true => (Spec::new(&spec.b, &spec.a, &spec.out), [&b, &a]),
            false => (spec.clone(), [&a, &b]),
        };
        let mut sides = vec![];
        let mut values = vec![];
        let mut depth = 0.0;
        for shape in shapes {
            let whole = dice.tensor(shape);
            layouts.push(dice.layout(shape));
            let prog = match (dice.below(3), shape.is_empty()) {
                (0, _) => {
                    let factor = narrower(dice, shape);
                    layouts.push(dice.layout(&factor));
                    args.extend([whole.clone(), dice.tensor(&factor)]);
                    Prog::of(&Instr::Bin(Bin::Mul, 0, 1))
                }
                (1, false) => {
                    // Divided by its row's sum of squares and 1.
                    args.push(whole.clone());
                    depth += shape[shape.len() - 1] as f64;
                    program(&[], 1, |link, x| {
                        let square = link.mul(x[0], x[0]);
                        let sum = link.push(Instr::RowSum(square));
                        let one = link.constant(1.0);
                        let sum = link.bin(Bin::Add, sum, one);
                        link.bin(Bin::Div, x[0], sum)
                    })
                }
                _ => {
                    args.push(whole.clone());
                    Prog::identity()
                }
            };
            let own = &args[args.len() - usize::from(prog.inputs)..];
            values.push(eval(&Kernel::Rows(prog.clone()), own, &Env::default()));
            sides.push(prog);
        }
        // Relative errors of the sides come on top of those of the sum, which `bound` counts per product.
        let mut error = bound(&spec, &values[0], &values[1]);
        let sizes = spec.dims(&values[0].shape, &values[1].shape).unwrap();
        let summed: i64 = (0..sizes.len()).filter(|l| !spec.out.contains(&(*l as u8))).map(|l| sizes[l]).product();
        let more = (depth + 12.0) / (summed + 2) as f64;
        error.data.iter_mut().for_each(|x| *x *= 1.0 + more);
        let plain = Kernel::Contract(Arc::new(Contract::plain(spec.clone())));
        let sums = eval(&plain, &values, &Env::default());
        largest.push(sums.data.iter().fold(0f64, |most, x| most.max(x.abs())));
        errors.push(error);
        let b = sides.pop().unwrap();
        terms.push(Term { spec, a: sides.pop().unwrap(), b, stat: None });
    }
    let mut contract = Contract { terms, epi: Prog::identity() };
    let seeds = contract.seeds();
    let extra = narrower(dice, &out);
    let (epi, extras, integer) = match dice.below(5) {
        0 => (program(&seeds, 1, |link, x| link.bin(Bin::Add, x[0], x[seeds.len()])), 1, false),
        1 => {
            let relu = |link: &mut Linker, x: &[Reg]| {
                let positive = link.un(Un::Relu, x[0]);
                link.mul(positive, x[seeds.len()])
            };
            (program(&seeds, 1, relu), 1, false)
        }
        2 if !out.is_empty() => {
            let axis = dice.below(out.len()) as u8;
            let half = (out[out.len() - 1 - usize::from(axis)] / 2) as u32;
            let split = |link: &mut Linker, x: &[Reg]| {
                let index = link.push(Instr::Index(axis, x[0]));
                let own = link.push(Instr::Index(0, x[seeds.len()]));
                let half = link.push(Instr::Const(Const::Uint(half)));
                let low = link.bin(Bin::Lt, index, half);
                let other = link.push(Instr::Cast(DType::F32, own));
                let other = link.bin(Bin::Add, other, x[seeds.len()]);
                link.push(Instr::Select(low, x[0], other))
            };
            (program(&seeds, 1, split), 1, false)
        }
        3 => {
            let chosen = |link: &mut Linker, x: &[Reg]| {
                let two = link.push(Instr::Const(Const::Uint(2)));
                let hit = link.bin(Bin::Eq, x[seeds.len()], two);
                let negative = link.un(Un::Neg, x[0]);
                link.push(Instr::Select(hit, x[0], negative))
            };
            (program(&seeds, 1, chosen), 1, true)
        }
        _ if seeds.len() == 1 => (Prog::identity(), 0, false),
        _ => (program(&seeds, 0, |link, x| link.mul(x[0], x[1])), 0, false),
    };
    // The program may leave accumulators out, but it has to have their shape.
    let epi = match seeds.len() {
        2 if extras > 0 => program(&seeds, 1, |link, x| {
            let first = *link.splice(&epi, x).last().unwrap();
            link.mul(first, x[1])
        }),
        _ => epi,
    };
    let mut over = None;
    if extras > 0 {
        let tensor = match integer {
            true => {
                Tensor { data: (0..elements(&extra)).map(|_| dice.below(4) as f64).collect(), ..dice.tensor(&extra) }
            }
            false => dice.tensor(&extra),
        };
        let same = extra == out && !integer;
        over = (same && dice.below(2) == 0).then_some(args.len());
        let layout = if over.is_some() { to.clone() } else { dice.layout(&extra) };
        layouts.push(Layout { dtype: if integer { DType::U32 } else { DType::F32 }, ..layout });
        args.push(tensor);
    }
    contract.epi = epi;
    // Factors behind a sum are at most 1, beside it at most 70 and 1 are added.
    let mut bound = errors[0].clone();
    let ulp = f64::from(f32::EPSILON);
    for (k, x) in bound.data.iter_mut().enumerate() {
        *x += 2.0 * ulp * (largest[0] + 71.0);
        if let Some(error) = errors.get(1) {
            let most = largest[0] + 71.0 + *x;
            *x = *x * (largest[1] + error.data[k]) + error.data[k] * most + 2.0 * ulp * most * largest[1];
        }
    }
    Some(Case { kernel: Kernel::Contract(Arc::new(contract)), args, layouts, to, bound, over })
}

fn elements(shape: &[usize]) -> usize {
    shape.iter().product()
}

fn stored(layout: &Layout, tensor: &Tensor) -> Vec<u32> {
    if layout.dtype == DType::F32 {
        return words(layout, tensor);
    }
    let mut words = vec![u32::MAX; layout.span() + 3];
    let mut values = tensor.data.iter();
    places(layout, |at| words[at] = *values.next().unwrap() as u32);
    words
}

#[test]
fn programs_on_sides_and_behind_are_those_of_the_reference() {
    let mut dice = Dice(3);
    let mut count = 0;
    while count < 3000 {
        let Some(case) = any_fused(&mut dice) else { continue };
        count += 1;
        let dtypes: Vec<DType> = case.layouts.iter().map(|layout| layout.dtype).collect();
        let expected = eval_typed(&case.kernel, &case.args, &dtypes, &Env::default());
        let args: Vec<Vec<u32>> =
            case.layouts.iter().zip(&case.args).map(|(layout, arg)| stored(layout, arg)).collect();
        let result = run_over(&case.kernel, &case.layouts, &args, &case.to, 1, case.over);
        compare(&format!("{} of {:?}", case.kernel, case.layouts), &case.to, &result, &expected, &case.bound);
        if count % 10 == 0 {
            for threads in [2, 3] {
                let again = run_over(&case.kernel, &case.layouts, &args, &case.to, threads, case.over);
                assert!(again == result, "{} with {threads} threads", case.kernel);
            }
        }
    }
}

/// A gated layer behind a norm, of rows that both terms share: as statistic and as program on the left side.
#[test]
fn a_normed_and_gated_pair_of_products_is_that_of_the_reference() {
    let mut dice = Dice(4);
    let scale = || {
        program(&[], 1, |link, x| {
            let square = link.mul(x[0], x[0]);
            let sum = link.push(Instr::RowSum(square));
            let one = link.constant(1.0);
            let sum = link.bin(Bin::Add, sum, one);
            link.un(Un::Rsqrt, sum)
        })
    };
    let normed = || {
        program(&[], 1, |link, x| {
            let scale = *link.splice(&scale(), x).last().unwrap();
            link.mul(x[0], scale)
        })
    };
    for (rows, columns, depth) in [(1, 1, 1), (5, 130, 33), (64, 200, 97), (130, 300, 70), (300, 70, 16)] {
        for as_statistic in [false, true] {
            let term = || Term {
                spec: Spec::parse("mk,nk->mn").unwrap(),
                a: if as_statistic { Prog::identity() } else { normed() },
                b: Prog::identity(),
                stat: as_statistic.then(&scale),
            };
            let mut contract = Contract { terms: vec![term(), term()], epi: Prog::identity() };
            let seeds = contract.seeds();
            contract.epi = program(&seeds, 0, |link, x| {
                let (gate, up) = match as_statistic {
                    true => (link.mul(x[0], x[2]), link.mul(x[1], x[3])),
                    false => (x[0], x[1]),
                };
                let sigmoid = link.un(Un::Sigmoid, gate);
                let silu = link.mul(gate, sigmoid);
                link.mul(silu, up)
            });
            let kernel = Kernel::Contract(Arc::new(contract));
            let x = dice.tensor(&[rows, depth]);
            let weights = [dice.tensor(&[columns, depth]), dice.tensor(&[columns, depth])];
            let args = [x.clone(), weights[0].clone(), x.clone(), weights[1].clone()];
            let layouts = args
                .each_ref()
                .map(|arg| Layout::dense(&arg.shape.iter().map(|size| *size as usize).collect::<Vec<_>>(), DType::F32));
            let to = Layout::dense(&[rows, columns], DType::F32);
            let mut stored: Vec<Vec<u32>> = layouts.iter().zip(&args).map(|(l, arg)| words(l, arg)).collect();
            let expected = eval(&kernel, &args, &Env::default());
            // Rows of length below 1 times weights below 1: products are below the square root of their number, and
            // so are the sums of their absolute values, by Cauchy and Schwarz.
            let most = (depth as f64).sqrt();
            let error = (2 * depth + 16) as f64 * f64::from(f32::EPSILON) * most;
            let bound = error * (1.1 * (most + error) + most) + 8.0 * f64::from(f32::EPSILON) * most * most;
            let bound = Tensor { data: vec![bound; rows * columns], ..expected.clone() };
            let results = [1, 2, 3].map(|threads| run(&kernel, &layouts, &stored, &to, threads));
            compare(&kernel.to_string(), &to, &results[0], &expected, &bound);
            assert!(results[0] == results[1] && results[0] == results[2], "{kernel}");
            // The same rows of one memory, as models have them, and of which others are made only once.
            let task = Task::new(&kernel, &layouts, &to, &Env::default()).unwrap();
            let mut result = vec![f32::NAN.to_bits(); rows * columns + 3];
            let mut scratch = vec![f32::NAN; task.scratch()];
            stored.swap(2, 0);
            let sources = [0, 1, 0, 3].map(|k| Source::new(&stored[k]));
            task.run(&Threads::new(1), &sources, Target::new(&mut result), &mut scratch).unwrap();
            assert!(result == results[0], "{kernel} of shared rows");
            // Other rows on the right must not be taken for the same.
            let other = words(&layouts[2], &dice.tensor(&[rows, depth]));
            let sources = [&stored[0], &stored[1], &other, &stored[3]].map(|words| Source::new(words));
            task.run(&Threads::new(1), &sources, Target::new(&mut result), &mut scratch).unwrap();
            assert!(result != results[0], "{kernel} of different rows");
        }
    }
}

#[test]
fn what_cannot_run_is_refused_before_anything_is_written() {
    let kernel = Kernel::Contract(Arc::new(Contract::plain(Spec::parse("mk,kn->mn").unwrap())));
    let layout = |shape: &[usize]| Layout::dense(shape, DType::F32);
    let fit = [layout(&[3, 5]), layout(&[5, 7])];
    let new = |reads: &[Layout], to: &Layout| Task::new(&kernel, reads, to, &Env::default());
    assert!(new(&fit, &layout(&[3, 7])).is_ok());
    assert!(new(&fit, &layout(&[7, 3])).is_err());
    assert!(new(&[layout(&[3, 5]), layout(&[4, 7])], &layout(&[3, 7])).is_err());
    assert!(new(&fit[..1], &layout(&[3, 7])).is_err());
    assert!(new(&fit, &Layout { dtype: DType::U32, ..layout(&[3, 7]) }).is_err());
    let task = new(&fit, &layout(&[3, 7])).unwrap();
    let (a, b) = (vec![1; 15], vec![1; 35]);
    let mut result = [9; 21];
    let mut refused = |a: &[u32], b: &[u32], words: usize| {
        let sources = [Source::new(a), Source::new(b)];
        let refused = task.run(&Threads::new(1), &sources, Target::new(&mut result[..words]), &mut []).is_err();
        assert!(!refused || result.iter().all(|word| *word == 9));
        refused
    };
    assert!(refused(&a[..14], &b, 21) && refused(&a, &b[..34], 21) && refused(&a, &b, 20));
    assert!(!refused(&a, &b, 21));
    // Over a side, which no product bears.
    let mut words = vec![1; 35];
    let first = words.as_mut_ptr();
    // SAFETY: the words live as long as the run, which alone touches them.
    let (own, target) = unsafe { (Source::from_raw(first, 35), Target::from_raw(first, 35)) };
    assert!(task.run(&Threads::new(1), &[Source::new(&a), own], target, &mut []).is_err());
}
