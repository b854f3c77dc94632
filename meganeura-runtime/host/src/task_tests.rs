//! Column sums, copies, threads and refusals, through tasks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::kernel::{Copy, CopyAxis, Kernel};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Prog};
use meganeura_shaders::reference::{self, Tensor};

use crate::program::tests::{Random, layout, offsets, place, value};
use crate::task::{Layout, Task};
use crate::threads::Threads;
use crate::view::{Source, Target};

fn prog(inputs: u8, code: &[Instr]) -> Prog {
    Prog { inputs, code: code.into() }
}

fn tensor(layout: &Layout, mut f: impl FnMut() -> f64) -> Tensor {
    let shape: Vec<i64> = layout.shape.iter().map(|size| *size as i64).collect();
    Tensor::from_fn(&shape, |_| f64::from(f() as f32))
}

/// The words of the result with 1, 2 and 3 threads, which must be the same.
fn run(task: &Task, memory: &[Vec<u32>], words: usize) -> Vec<u32> {
    let mut results = vec![];
    for threads in [1, 2, 3].map(Threads::new) {
        let mut written = vec![0x7fc0_dead; words];
        let sources: Vec<Source<'_>> = memory.iter().map(|words| Source::new(words)).collect();
        let mut scratch = vec![f32::NAN; task.scratch()];
        threads.call(|| task.run(&threads, &sources, Target::new(&mut written), &mut scratch)).unwrap();
        results.push(written);
    }
    assert!(results.iter().all(|words| *words == results[0]), "threads change bits");
    results.remove(0)
}

#[test]
fn column_sums_are_those_of_the_reference() {
    let weighted = prog(2, &[Instr::In(0), Instr::In(1), Instr::Bin(Bin::Mul, 0, 1)]);
    let shapes: [&[usize]; 14] = [
        &[1],
        &[7],
        &[0, 5],
        &[5, 0],
        &[1, 1],
        &[64, 10],
        &[3, 4, 129],
        &[33, 513],
        &[700, 3],
        &[2, 31, 1030],
        &[9000, 1],
        &[40_000, 2],
        &[4097, 17],
        &[129, 128],
    ];
    for (seed, shape) in shapes.into_iter().enumerate() {
        for dtype in [DType::F32, DType::I32, DType::U32] {
            for prog in [Prog::identity(), weighted.clone()] {
                let random = &mut Random::new(seed as u64);
                let mut args = vec![layout(random, shape, dtype)];
                if prog.inputs == 2 {
                    args.push(layout(random, &[&shape[..shape.len() - 1], &[1]].concat(), dtype));
                }
                let columns = *shape.last().unwrap();
                let result = Layout::dense(&[columns], dtype);
                let tensors: Vec<Tensor> = args
                    .iter()
                    .map(|arg| {
                        tensor(arg, || match dtype {
                            DType::F32 => random.below(2001) as f64 / 1000.0 - 1.0,
                            DType::I32 => random.below(2001) as f64 - 1000.0,
                            _ => random.below(2001) as f64,
                        })
                    })
                    .collect();
                let kernel = Kernel::ColumnSum(prog.clone());
                let types = vec![dtype; args.len()];
                let exact = reference::eval_typed(&kernel, &tensors, &types, &Env::default());
                let sizes = kernel_sizes(&prog, &tensors, &types, columns);
                let memory: Vec<Vec<u32>> = args.iter().zip(&tensors).map(|(arg, x)| place(arg, x)).collect();
                let task = Task::new(&kernel, &args, &result, &Env::default()).unwrap();
                let written = run(&task, &memory, columns + 3);
                for k in 0..columns {
                    let found = value(dtype, written[k]);
                    if dtype != DType::F32 {
                        // The reference does not wrap.
                        assert_eq!(written[k], exact.data[k] as i64 as u32, "{shape:?} {dtype} at {k}");
                        continue;
                    }
                    // A rounding of a product, and about one for each of 16 tiles and for each halving.
                    let bound = 40.0 * f64::from(f32::EPSILON) * sizes[k];
                    assert!((found - exact.data[k]).abs() <= bound, "{shape:?}: {found} at {k}, {}", exact.data[k]);
                }
                assert!(written[columns..].iter().all(|word| *word == 0x7fc0_dead));
            }
        }
    }
}

/// Sums of magnitudes by column.
fn kernel_sizes(prog: &Prog, args: &[Tensor], dtypes: &[DType], columns: usize) -> Vec<f64> {
    let terms = reference::eval_prog(prog, args, dtypes, &Env::default());
    let mut sizes = vec![0.0; columns];
    terms.data.iter().enumerate().for_each(|(k, x)| sizes[k % columns] += x.abs());
    sizes
}

#[test]
fn long_sums_are_nearly_exact() {
    let count = 1 << 20;
    let mut random = Random::new(5);
    let x = Layout::dense(&[count], DType::F32);
    let values = tensor(&x, || random.below(1000) as f64 / 1000.0);
    let exact: f64 = values.data.iter().sum();
    let memory = [place(&x, &values)];
    let one = Layout::dense(&[1], DType::F32);
    let row = Task::new(&Kernel::Rows(Prog::of(&Instr::RowSum(0))), &[x], &one, &Env::default()).unwrap();
    let column = Layout::dense(&[count, 1], DType::F32);
    let column = Task::new(&Kernel::ColumnSum(Prog::identity()), &[column], &one, &Env::default()).unwrap();
    for task in [row, column] {
        let found = f64::from(f32::from_bits(run(&task, &memory, 1)[0]));
        assert!((found - exact).abs() < 4e-7 * exact, "{found} instead of {exact}");
    }
}

#[test]
fn sums_keep_nan_and_maxima_pass_it_over() {
    for columns in [1, 10, 33, 700, 7000] {
        for at in [0, columns / 2, columns - 1] {
            let arg = Layout::dense(&[9, columns], DType::F32);
            let mut k = 0;
            let x = tensor(&arg, || {
                k += 1;
                let lone = (k - 1) % columns == at && k < 3 * columns;
                if lone { f64::NAN } else { -(k as f64) }
            });
            let result = Layout::dense(&[9, 1], DType::F32);
            for instr in [Instr::RowSum(0), Instr::RowMax(0)] {
                let kernel = Kernel::Rows(Prog::of(&instr));
                let exact = reference::eval(&kernel, std::slice::from_ref(&x), &Env::default());
                let task = Task::new(&kernel, std::slice::from_ref(&arg), &result, &Env::default()).unwrap();
                let written = run(&task, &[place(&arg, &x)], 9);
                for (word, exact) in written.iter().zip(&exact.data) {
                    let found = f64::from(f32::from_bits(*word));
                    let close = (found - exact).abs() <= 1e-6 * exact.abs();
                    assert!(
                        found.is_nan() == exact.is_nan() && (close || found.is_nan()),
                        "{instr:?}: {found}, {exact}"
                    );
                }
                assert!(instr == Instr::RowMax(0) || exact.data[0].is_nan() && !exact.data[8].is_nan());
            }
        }
    }
}

#[test]
fn copies_go_where_the_reference_says() {
    for seed in 0..3000u64 {
        let random = &mut Random::new(seed);
        let mut axes = vec![];
        let (mut source_step, mut target_step) = (1i64, 1i64);
        for _ in 0..random.below(5) {
            let extent = [1, 1, 2, 3, 5, 8, 17, 40][random.below(8)];
            let mut window = None;
            let mut taken = extent;
            if random.below(3) == 0 {
                let start = random.below(extent as usize + 2) as i64 - 1;
                taken = 1 + random.below(extent as usize + 1) as i64;
                window = Some((Dim::from(start), Dim::from(taken)));
            }
            let source = if random.below(5) == 0 { 0 } else { source_step };
            axes.insert(
                0,
                CopyAxis {
                    extent: Dim::from(extent),
                    source: Dim::from(source),
                    target: Dim::from(target_step),
                    window,
                },
            );
            source_step += (taken - 1).max(0) * source + [0, 0, 1, 3][random.below(4)];
            target_step = target_step * extent + [0, 0, 2][random.below(3)];
            if target_step > 20_000 {
                break;
            }
        }
        // Axes may change places, as in a transposition.
        if axes.len() > 1 && random.below(2) == 0 {
            let at = random.below(axes.len() - 1);
            axes.swap(at, at + 1);
        }
        let copy = Copy { axes, from: Dim::from(random.below(4) as i64) };
        let env = Env::default();
        let words = source_step as usize * 50 + 64;
        let source = Tensor::from_fn(&[words as i64], |index| 1.0 + index[0] as f64);
        let kernel = Kernel::Copy(copy.clone());
        let exact = reference::eval(&kernel, std::slice::from_ref(&source), &env);
        let targets = reference::copy_targets(&copy, &env);
        let shape: Vec<usize> = exact.shape.iter().map(|size| *size as usize).collect();
        let read = Layout::dense(&[words], DType::F32);
        let task = Task::new(&kernel, std::slice::from_ref(&read), &Layout::dense(&shape, DType::F32), &env).unwrap();
        let room = targets.iter().max().map_or(0, |at| *at as usize + 1) + 2;
        let mut written = run(&task, &[place(&read, &source)], room);
        for (at, exact) in targets.iter().zip(&exact.data) {
            let found = f64::from(f32::from_bits(written[*at as usize]));
            assert_eq!(found, *exact, "seed {seed}: {copy:?} at {at}");
        }
        targets.iter().for_each(|at| written[*at as usize] = 0x7fc0_dead);
        assert!(written.iter().all(|word| *word == 0x7fc0_dead), "seed {seed}: something else was written");
    }
}

#[test]
fn threads_do_not_change_bits_of_programs() {
    let softmax = prog(
        1,
        &[
            Instr::In(0),
            Instr::RowMax(0),
            Instr::Bin(Bin::Sub, 0, 1),
            Instr::Un(Un::Exp, 2),
            Instr::RowSum(3),
            Instr::Bin(Bin::Div, 3, 4),
        ],
    );
    let silu = prog(1, &[Instr::In(0), Instr::Un(Un::Sigmoid, 0), Instr::Bin(Bin::Mul, 0, 1)]);
    for (prog, shape) in [
        (&softmax, [300, 576]),
        (&softmax, [5000, 10]),
        (&softmax, [3, 50_000]),
        (&silu, [1, 200_001]),
        (&silu, [130, 700]),
    ] {
        let random = &mut Random::new(1);
        let arg = Layout::dense(&shape, DType::F32);
        let x = tensor(&arg, || random.below(4001) as f64 / 1000.0 - 2.0);
        let task = Task::new(&Kernel::Rows(prog.clone()), std::slice::from_ref(&arg), &arg, &Env::default()).unwrap();
        let written = run(&task, &[place(&arg, &x)], arg.span());
        let exact = reference::eval(&Kernel::Rows(prog.clone()), &[x], &Env::default());
        for (at, exact) in offsets(&arg).into_iter().zip(&exact.data) {
            let found = f64::from(f32::from_bits(written[at]));
            // Of softmax: e^x to 1 unit of its argument's rounding, a sum of some levels, a quotient.
            assert!((found - exact).abs() <= 2e-6 * exact.abs(), "{shape:?}: {found} at {at}, {exact}");
        }
    }
}

#[test]
fn short_stretches_and_overlaps_are_refused_before_anything_is_written() {
    let threads = Threads::new(1);
    let kernel = Kernel::Rows(Prog::of(&Instr::Bin(Bin::Add, 0, 1)));
    let whole = Layout::dense(&[4, 3], DType::F32);
    let row = Layout::dense(&[3], DType::F32);
    let task = Task::new(&kernel, &[whole.clone(), row.clone()], &whole, &Env::default()).unwrap();
    let (x, bias) = (vec![1.0f32.to_bits(); 12], vec![2.0f32.to_bits(); 3]);
    let mut written = [0; 12];
    let mut check = |x: &[u32], bias: &[u32], words: usize| {
        let sources = [Source::new(x), Source::new(bias)];
        task.run(&threads, &sources, Target::new(&mut written[..words]), &mut [])
    };
    assert!(check(&x[..11], &bias, 12).unwrap_err().0.contains("argument 0 of 12 words in 11"));
    assert!(check(&x, &bias[..2], 12).unwrap_err().0.contains("argument 1"));
    assert!(check(&x, &bias, 11).unwrap_err().0.contains("result of 12 words in 11"));
    assert!(written.iter().all(|word| *word == 0));
    let mut memory = vec![0; 24];
    let first = memory.as_mut_ptr();
    let over = |x: usize, bias: usize, result: usize| {
        // SAFETY: one memory of 24 words, which only this launch touches.
        let (sources, target) = unsafe {
            let source = |at: usize| Source::from_raw(first.add(at), 24 - at);
            ([source(x), source(bias)], Target::from_raw(first.add(result), 24 - result))
        };
        task.run(&threads, &sources, target, &mut [])
    };
    assert_eq!(over(0, 21, 0), Ok(()));
    assert_eq!(over(0, 21, 3).unwrap_err().0, "the result lies over argument 0");
    assert_eq!(over(0, 11, 0).unwrap_err().0, "the result lies over argument 1");
    assert_eq!(over(12, 9, 0).unwrap_err().0, "the result lies over argument 1");
    // A result in other columns of the rows in which the argument lies.
    let columns = Layout { shape: vec![4, 3], strides: vec![6, 1], dtype: DType::F32 };
    let beside = Task::new(&kernel, &[columns.clone(), row], &columns, &Env::default()).unwrap();
    let mut words: Vec<u32> = (0..24).map(|k| (k as f32).to_bits()).collect();
    let first = words.as_mut_ptr();
    // SAFETY: as above; the stretches interleave.
    let (source, target) = unsafe { (Source::from_raw(first, 24), Target::from_raw(first.add(3), 21)) };
    assert_eq!(beside.run(&threads, &[source, Source::new(&bias)], target, &mut []), Ok(()));
    assert_eq!([3, 9, 22].map(|k| f32::from_bits(words[k])), [2.0, 8.0, 21.0]);
}

#[test]
fn programs_and_layouts_that_do_not_fit_are_refused() {
    let layout = |shape: &[usize]| Layout::dense(shape, DType::F32);
    let add = Kernel::Rows(Prog::of(&Instr::Bin(Bin::Add, 0, 1)));
    let refused = |args: &[Layout], result: &Layout| Task::new(&add, args, result, &Env::default()).is_err();
    assert!(refused(&[layout(&[2, 3])], &layout(&[2, 3])));
    assert!(refused(&[layout(&[2, 3]), layout(&[4])], &layout(&[2, 3])));
    assert!(refused(&[layout(&[2, 3]), layout(&[3])], &layout(&[3])));
    assert!(refused(&[layout(&[2, 3]), Layout::dense(&[3], DType::I32)], &layout(&[2, 3])));
    assert!(!refused(&[layout(&[2, 3]), layout(&[3])], &layout(&[2, 3])));
}
