//! Programs of random instructions, shapes, types and layouts against the reference in f64.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::kernel::Kernel;
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Const, DType, Instr, Prog, Reg};
use meganeura_shaders::reference::{self, Tensor};

use super::{Argument, Output, RowProgram};
use crate::task::{Layout, Task};
use crate::threads::Threads;
use crate::view::{Source, Target};

/// NaN with bits that no operation makes.
const POISON: u32 = 0x7fc0_dead;

/// Pseudo-random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub(crate) fn word(dtype: DType, value: f64) -> u32 {
    match dtype {
        DType::F32 => (value as f32).to_bits(),
        DType::U32 => value as u32,
        DType::I32 => value as i32 as u32,
        DType::Bool => u32::from(value != 0.0),
    }
}

pub(crate) fn value(dtype: DType, word: u32) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::from_bits(word)),
        DType::U32 | DType::Bool => f64::from(word),
        DType::I32 => f64::from(word as i32),
    }
}

/// Offsets of all elements, in order.
pub(crate) fn offsets(layout: &Layout) -> Vec<usize> {
    let mut offsets = vec![0];
    for (size, stride) in layout.shape.iter().zip(&layout.strides) {
        offsets = offsets.iter().flat_map(|at| (0..*size).map(move |k| at + k * stride)).collect();
    }
    offsets
}

/// Words of a value in memory, poison between.
pub(crate) fn place(layout: &Layout, tensor: &Tensor) -> Vec<u32> {
    let mut words = vec![POISON; layout.span() + 7];
    for (at, x) in offsets(layout).into_iter().zip(&tensor.data) {
        words[at] = word(layout.dtype, *x);
    }
    words
}

/// A layout whose rows may have gaps.
pub(crate) fn layout(random: &mut Random, shape: &[usize], dtype: DType) -> Layout {
    let mut layout = Layout::dense(shape, dtype);
    if random.below(3) == 0 {
        let mut step = 1;
        for axis in (0..shape.len()).rev() {
            layout.strides[axis] = step;
            step *= shape[axis];
            if random.below(2) == 0 {
                step += random.below(6);
            }
        }
    }
    layout
}

/// Small numbers, exact under sums and products of a few.
fn small(random: &mut Random, shape: &[usize], dtype: DType) -> Tensor {
    let shape: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
    Tensor::from_fn(&shape, |_| match dtype {
        DType::Bool => random.below(2) as f64,
        DType::U32 => random.below(7) as f64,
        DType::I32 => random.below(9) as f64 - 4.0,
        DType::F32 => (random.below(17) as f64 - 8.0) / 2.0,
    })
}

const SIZES: [usize; 25] =
    [1, 3000, 5000, 1, 1, 1, 2, 3, 5, 7, 10, 16, 17, 31, 32, 33, 49, 64, 100, 128, 255, 257, 511, 513, 1100];

/// A program and how its arguments and result lie.
struct Case {
    prog: Prog,
    args: Vec<Layout>,
    result: Layout,
}

/// Instructions are drawn until the program has `length`; what does not fit is drawn again.
fn case(random: &mut Random, reduces: bool) -> Case {
    let rank = if !reduces && random.below(16) == 0 { 0 } else { 1 + random.below(4) };
    let mut full: Vec<usize> = (0..rank).map(|_| random.pick(&SIZES)).collect();
    while full.iter().product::<usize>() > 6000 {
        let axis = random.below(rank);
        full[axis] = full[axis].div_ceil(2);
    }
    if rank > 0 && random.below(40) == 0 {
        full[random.below(rank)] = 0;
    }
    let other = if random.below(3) == 0 { random.pick(&SIZES[..21]) } else { *full.last().unwrap_or(&1) };
    let inputs = 1 + random.below(4);
    let (mut args, mut code, mut magnitude) = (vec![], vec![], vec![]);
    for k in 0..inputs {
        let mut shape = full.clone();
        if reduces && k > 0 && random.below(3) == 0 {
            shape[rank - 1] = other;
        }
        for size in &mut shape {
            if k > 0 && random.below(4) == 0 {
                *size = 1;
            }
        }
        if k > 0 && random.below(4) == 0 {
            shape.drain(..random.below(rank + 1));
        }
        let dtype = random.pick(&[DType::F32, DType::F32, DType::F32, DType::U32, DType::I32, DType::Bool]);
        args.push(layout(random, &shape, dtype));
        code.push(Instr::In(k as u8));
        magnitude.push(8.0);
    }
    let length = inputs + 2 + random.below(14);
    let arg_shapes: Vec<Vec<i64>> = args.iter().map(|a| a.shape.iter().map(|s| *s as i64).collect()).collect();
    let arg_types: Vec<DType> = args.iter().map(|a| a.dtype).collect();
    for _ in 0..2000 {
        if code.len() >= length {
            break;
        }
        let recent = code.len().min(6);
        let mut reg = || -> Reg {
            let near = random.below(2) == 0;
            (if near { code.len() - 1 - random.below(recent) } else { random.below(code.len()) }) as Reg
        };
        let (mut a, b, c) = (reg(), reg(), reg());
        if random.below(2) == 0 {
            a = (code.len() - 1) as Reg;
        }
        let instr = match random.below(if reduces { 16 } else { 13 }) {
            0 => Instr::Un(
                random.pick(&[Un::Neg, Un::Abs, Un::Sign, Un::Relu, Un::Floor, Un::Ceil, Un::Round, Un::Not]),
                a,
            ),
            1..=6 => match random.pick(Bin::ALL) {
                // Hashes are beyond what f32 holds, normal numbers are not exact.
                Bin::Hash | Bin::Normal => Instr::Bin(Bin::Add, a, b),
                bin => Instr::Bin(bin, a, b),
            },
            7 => Instr::Select(a, b, c),
            8 => Instr::Cast(random.pick(&[DType::F32, DType::U32, DType::I32, DType::Bool]), a),
            9 => Instr::Index(random.below(4) as u8, a),
            10 => Instr::Const(random.pick(&[Const::float(0.5), Const::Uint(3), Const::Int(-2), Const::Bool(true)])),
            11 => Instr::Extent(Dim::from(3)),
            12 => Instr::Bin(Bin::Add, a, b),
            13 => Instr::RowMax(a),
            _ => Instr::RowSum(a),
        };
        if matches!(instr, Instr::Bin(Bin::Div | Bin::Rem | Bin::Pow, ..)) && random.below(4) > 0 {
            continue;
        }
        if matches!(instr, Instr::Const(_) | Instr::Extent(_)) && code.len() + 1 >= length {
            continue;
        }
        let mut longer = code.clone();
        longer.push(instr.clone());
        let prog = Prog { inputs: inputs as u8, code: longer.into() };
        let (Some(shapes), Some(dtypes)) =
            (prog.shapes(&arg_shapes.iter().collect::<Vec<_>>()), prog.dtypes(&arg_types))
        else {
            continue;
        };
        // A scalar has no row to reduce.
        if instr.reduces() && shapes[usize::from(instr.operands().next().unwrap())].is_empty() {
            continue;
        }
        let of = |r: Reg| magnitude[usize::from(r)];
        let floats = dtypes[dtypes.len() - 1] == DType::F32;
        // Values stay multiples of 2^-10 or so below 2^13, which sums and products of f32 hold exactly.
        let most: f64 = match instr {
            Instr::Bin(Bin::Mul, a, b) => of(a) * of(b),
            Instr::Bin(Bin::Div | Bin::Pow, ..) if floats => f64::INFINITY,
            Instr::Bin(Bin::Add | Bin::Sub, a, b) => of(a) + of(b),
            Instr::Bin(_, a, b) | Instr::Select(_, a, b) => f64::max(of(a), of(b)),
            Instr::RowSum(a) => of(a) * shapes[usize::from(a)].last().map_or(1.0, |n| *n as f64),
            Instr::Index(..) => 6000.0,
            Instr::Cast(_, a) if dtypes[usize::from(a)] == DType::F32 || !floats => of(a),
            Instr::Cast(_, a) => of(a),
            Instr::Un(_, a) | Instr::RowMax(a) => of(a),
            _ => 4.0,
        };
        // Differences of unsigned integers wrap.
        let wraps = matches!(instr, Instr::Bin(Bin::Sub, ..)) && dtypes[dtypes.len() - 1] == DType::U32;
        let wraps = wraps || matches!(instr, Instr::Cast(DType::U32, _));
        let most = if wraps { 5e9 } else { most };
        if floats && most > 20_000.0 {
            continue;
        }
        // Beyond exact conversion, and where casts of NaN decide.
        if most > 1e15 && !wraps {
            continue;
        }
        magnitude.push(most);
        code.push(instr);
    }
    let prog = Prog { inputs: inputs as u8, code: code.into() };
    let shape = prog.shape(&arg_shapes.iter().collect::<Vec<_>>()).unwrap();
    let dtype = *prog.dtypes(&arg_types).unwrap().last().unwrap();
    let shape: Vec<usize> = shape.iter().map(|size| *size as usize).collect();
    let result = layout(random, &shape, dtype);
    Case { prog, args, result }
}

/// Whether both are one number, up to the range of f32.
fn same(found: f64, exact: f64) -> bool {
    let exact = if exact.abs() > f64::from(u32::MAX) { f64::from(exact as f32) } else { exact };
    (found.is_nan() && exact.is_nan()) || found == exact
}

#[test]
fn random_programs_of_exact_instructions_equal_the_reference() {
    let threads = [1, 2, 3].map(Threads::new);
    let (mut elements, mut varied, mut over) = (0, 0, 0);
    for seed in 0..4000 {
        let random = &mut Random::new(seed);
        let Case { prog, args, result } = case(random, seed % 2 == 0);
        let tensors: Vec<Tensor> = args.iter().map(|arg| small(random, &arg.shape, arg.dtype)).collect();
        let types: Vec<DType> = args.iter().map(|arg| arg.dtype).collect();
        let kernel = Kernel::Rows(prog.clone());
        let exact = reference::eval_typed(&kernel, &tensors, &types, &Env::default());
        let about = || format!("seed {seed}: {prog} of {args:?} to {result:?}");
        let task = Task::new(&kernel, &args, &result, &Env::default()).unwrap_or_else(|e| panic!("{e}: {}", about()));
        let memory: Vec<Vec<u32>> = args.iter().zip(&tensors).map(|(arg, tensor)| place(arg, tensor)).collect();
        let mut written = vec![POISON; result.span() + 5];
        let sources: Vec<Source<'_>> = memory.iter().map(|words| Source::new(words)).collect();
        let own = &threads[seed as usize % 3];
        own.call(|| task.run(own, &sources, Target::new(&mut written), &mut [])).unwrap();
        let at = offsets(&result);
        for (at, exact) in at.iter().zip(&exact.data) {
            let found = value(result.dtype, written[*at]);
            assert!(same(found, *exact), "{}: {found} at {at}, {exact} in f64", about());
            elements += 1;
        }
        let dims = |layout: &Layout| layout.shape.iter().map(|size| Dim::from(*size as i64)).collect::<Vec<Dim>>();
        let shapes: Vec<Vec<Dim>> = args.iter().map(dims).collect();
        for k in 0..args.len() {
            let fits = args[k].strides == result.strides;
            if !fits || !kernel.is_elementwise_in(k, &shapes.iter().collect::<Vec<_>>(), &dims(&result)) {
                continue;
            }
            let mut both = memory[k].clone();
            let (first, words) = (both.as_mut_ptr(), both.len());
            let mut sources = sources.clone();
            // SAFETY: the launch alone touches the words.
            sources[k] = unsafe { Source::from_raw(first, words) };
            // SAFETY: as above.
            let target = unsafe { Target::from_raw(first, words) };
            own.call(|| task.run(own, &sources, target, &mut [])).unwrap();
            let equal = at.iter().all(|at| {
                let [found, before] = [both[*at], written[*at]].map(|word| value(result.dtype, word));
                same(found, before)
            });
            assert!(equal, "over argument {k}: {}", about());
            over += 1;
        }
        varied += usize::from(exact.data.windows(2).any(|x| x[0] != x[1]));
        at.iter().for_each(|at| written[*at] = POISON);
        assert!(written.iter().all(|word| *word == POISON), "a gap was written: {}", about());
    }
    assert!(elements > 500_000 && varied > 1000 && over > 500, "{elements} elements, {varied} results that vary");
}

/// What a program gives in f64 while every input and every instruction's result is off by up to `size` parts in 2^24 of itself.
fn disturbed(prog: &Prog, args: &[Tensor], random: &mut Random, size: f64) -> Tensor {
    let mut values: Vec<Tensor> = vec![];
    for instr in prog.code.iter() {
        let mut of: Vec<Tensor> = vec![];
        let mut single = instr.map(|r| {
            of.push(values[usize::from(r)].clone());
            (of.len() - 1) as Reg
        });
        if let Instr::In(k) = instr {
            of.push(args[usize::from(*k)].clone());
            single = Instr::In(0);
        }
        let inputs = of.len() as u8;
        let code: Vec<Instr> = (0..inputs).map(Instr::In).chain([single]).collect();
        let one = Prog { inputs, code: code.into() };
        let mut value = reference::eval_prog(&one, &of, &[], &Env::default());
        if !matches!(instr, Instr::Const(_)) {
            for x in &mut value.data {
                *x *= 1.0 + size * (random.below(2001) as f64 / 1000.0 - 1.0) / f64::from(1 << 24);
            }
        }
        values.push(value);
    }
    values.pop().unwrap()
}

/// Chains of smooth functions and reductions. The bound of an element is ten times what disturbances of four roundings
/// an instruction make of it, which is what the errors stated for the functions amount to.
#[test]
fn random_programs_of_smooth_functions_stay_within_their_rounding() {
    let threads = Threads::new(1);
    let smooth = [
        Un::Exp,
        Un::Sigmoid,
        Un::Tanh,
        Un::Softplus,
        Un::Erf,
        Un::Sin,
        Un::Cos,
        Un::Neg,
        Un::Abs,
        Un::Relu,
        Un::Sqrt,
        Un::Log1p,
        Un::Recip,
        Un::Rsqrt,
    ];
    let (mut checked, mut varied) = (0, 0);
    for seed in 0..600u64 {
        let random = &mut Random::new(seed + 77);
        let columns = random.pick(&[1, 3, 10, 17, 64, 300, 576, 1025, 2300]);
        let rows = 1 + random.below(1 + 3000 / columns);
        let shapes = [vec![rows, columns], vec![columns], vec![rows, 1]];
        let args: Vec<Layout> = shapes.iter().map(|shape| layout(random, shape, DType::F32)).collect();
        let tensors: Vec<Tensor> = args
            .iter()
            .map(|arg| {
                let shape: Vec<i64> = arg.shape.iter().map(|size| *size as i64).collect();
                Tensor::from_fn(&shape, |_| f64::from((random.below(4001) as f32 - 2000.0) / 1000.0))
            })
            .collect();
        let mut code = vec![Instr::In(0), Instr::In(1), Instr::In(2)];
        for _ in 0..2 + random.below(10) {
            let a = (code.len() - 1 - random.below(2)) as Reg;
            let b = random.below(code.len()) as Reg;
            let un = random.pick(&smooth);
            let a = if matches!(un, Un::Sqrt | Un::Rsqrt | Un::Log1p) {
                code.push(Instr::Un(Un::Abs, a));
                (code.len() - 1) as Reg
            } else {
                a
            };
            code.push(match random.below(8) {
                0..=3 => Instr::Un(un, a),
                4 | 5 => Instr::Bin(random.pick(&[Bin::Add, Bin::Sub, Bin::Mul, Bin::Max]), a, b),
                6 => Instr::RowSum(a),
                _ => Instr::RowMax(a),
            });
        }
        let last = (code.len() - 1) as Reg;
        code.push(Instr::Bin(Bin::Add, last, 0));
        let prog = Prog { inputs: 3, code: code.into() };
        let result = layout(random, &[rows, columns], DType::F32);
        let task = Task::new(&Kernel::Rows(prog.clone()), &args, &result, &Env::default()).unwrap();
        let memory: Vec<Vec<u32>> = args.iter().zip(&tensors).map(|(arg, tensor)| place(arg, tensor)).collect();
        let mut written = vec![POISON; result.span()];
        let sources: Vec<Source<'_>> = memory.iter().map(|words| Source::new(words)).collect();
        task.run(&threads, &sources, Target::new(&mut written), &mut []).unwrap();
        let exact = reference::eval_prog(&prog, &tensors, &[], &Env::default());
        let trials: Vec<Tensor> = (0..4).map(|_| disturbed(&prog, &tensors, random, 4.0)).collect();
        for (k, at) in offsets(&result).into_iter().enumerate() {
            let (found, exact) = (f64::from(f32::from_bits(written[at])), exact.data[k]);
            let spread = trials.iter().map(|trial| (trial.data[k] - exact).abs()).fold(0.0, f64::max);
            if !exact.is_finite() || exact.abs() > 1e30 || spread.is_nan() || spread > 1e-2 * exact.abs() {
                continue;
            }
            let bound = 10.0 * spread + 1e-6 * exact.abs() + 1e-30;
            assert!(
                (found - exact).abs() <= bound,
                "seed {seed}: {prog} of {args:?}: {found} at {k}, {exact} ± {bound}"
            );
            checked += 1;
        }
        varied += usize::from(exact.data.windows(2).any(|x| x[0] != x[1]));
    }
    assert!(checked > 300_000 && varied > 400, "{checked} elements, {varied} results that vary");
}

/// A panel of accumulators in the middle of a result, a bias and a scale of each row that lie in memory.
#[test]
fn a_rectangle_of_a_program_reads_panels_and_whole_values() {
    let code = vec![
        Instr::In(0),
        Instr::In(1),
        Instr::In(2),
        Instr::Bin(Bin::Mul, 0, 2),
        Instr::Bin(Bin::Add, 3, 1),
        Instr::Index(0, 0),
        Instr::Cast(DType::F32, 5),
        Instr::Bin(Bin::Add, 4, 6),
    ];
    let prog = Prog { inputs: 3, code: code.into() };
    for (outer, rows, columns) in [(3, 7, 10), (2, 5, 700), (1, 1, 1), (2, 40, 33)] {
        let random = &mut Random::new(columns as u64);
        let shape = [outer, rows, columns];
        let bias = Layout { shape: vec![outer, 1, columns], strides: vec![columns + 3, columns, 1], dtype: DType::F32 };
        let layouts = [Layout::dense(&shape, DType::F32), bias, Layout::dense(&[rows, 1], DType::F32)];
        let mut result = Layout::dense(&shape, DType::F32);
        result.strides[0] += 4;
        let tensors: Vec<Tensor> = layouts.iter().map(|layout| small(random, &layout.shape, DType::F32)).collect();
        let exact = reference::eval_prog(&prog, &tensors, &[], &Env::default());
        let memory: Vec<Vec<u32>> = layouts.iter().zip(&tensors).map(|(at, tensor)| place(at, tensor)).collect();
        let program = RowProgram::new(&prog, &layouts, &result, &Env::default()).unwrap();
        assert_eq!((program.rows(), program.columns()), (outer * rows, columns));
        let mut scratch = vec![f32::NAN; program.scratch()];
        for _ in 0..20 {
            let (row, column) = (random.below(outer * rows), random.below(columns));
            let rows = row..row + 1 + random.below(outer * rows - row);
            let columns_taken = column..column + 1 + random.below(columns - column);
            let stride = columns_taken.len() + random.below(9);
            let mut panel = vec![POISON; rows.len() * stride];
            for (k, row) in rows.clone().enumerate() {
                let from = row * columns + columns_taken.start;
                panel[k * stride..][..columns_taken.len()].copy_from_slice(&memory[0][from..][..columns_taken.len()]);
            }
            let mut written = vec![POISON; result.span()];
            let arguments = [
                Argument::Panel(Source::new(&panel), stride),
                Argument::Whole(Source::new(&memory[1])),
                Argument::Whole(Source::new(&memory[2])),
            ];
            let mut into = vec![POISON; rows.len() * stride];
            // SAFETY: nothing lies over anything.
            unsafe {
                let whole = Output::Whole(&Target::new(&mut written));
                program.run(rows.clone(), columns_taken.clone(), &arguments, &whole, &mut scratch);
                let alone = Output::Panel(&Target::new(&mut into), stride);
                program.run(rows.clone(), columns_taken.clone(), &arguments, &alone, &mut scratch);
            }
            for (k, at) in offsets(&result).into_iter().enumerate() {
                let (row, column) = (k / columns, k % columns);
                if rows.contains(&row) && columns_taken.contains(&column) {
                    assert_eq!(f64::from(f32::from_bits(written[at])), exact.data[k]);
                    let at = (row - rows.start) * stride + column - columns_taken.start;
                    assert_eq!(f64::from(f32::from_bits(into[at])), exact.data[k]);
                } else {
                    assert_eq!(written[at], POISON);
                }
            }
        }
    }
}

/// Every set of vector instructions that this CPU has.
fn levels() -> Vec<pulp::Arch> {
    let mut levels = vec![pulp::Arch::Scalar, pulp::Arch::new()];
    #[cfg(target_arch = "x86_64")]
    levels.extend(pulp::x86::V3::try_new().map(pulp::Arch::V3));
    levels
}

#[test]
fn all_vector_instructions_give_the_registry_and_rows_alike() {
    for columns in [1, 3, 16, 33, 600] {
        let layout = Layout::dense(&[5, columns], DType::F32);
        let random = &mut Random::new(columns as u64);
        let mut draw = || {
            let shape = [5, columns as i64];
            Tensor::from_fn(&shape, |_| f64::from((random.below(4001) as f32 - 1999.5) / 700.0))
        };
        let (a, b) = (draw(), draw());
        let singles = Un::ALL.iter().filter(|un| !matches!(un, Un::Not | Un::Nan)).map(|un| Instr::Un(*un, 0));
        let other = |bin: &Bin| bin.is_logical() || bin.is_comparison() || matches!(bin, Bin::Hash | Bin::Normal);
        let pairs = Bin::ALL.iter().filter(|bin| !other(bin));
        for instr in singles.chain(pairs.map(|bin| Instr::Bin(*bin, 0, 1))) {
            let code = vec![
                Instr::In(0),
                Instr::In(1),
                instr.clone(),
                Instr::RowMax(1),
                Instr::RowSum(1),
                Instr::Bin(Bin::Mul, 3, 4),
                Instr::Bin(Bin::Mul, 2, 5),
                Instr::Bin(Bin::Add, 6, 1),
            ];
            let prog = Prog { inputs: 2, code: code.into() };
            let args = [a.clone(), b.clone()];
            let exact = reference::eval_prog(&prog, &args, &[], &Env::default());
            let memory = args.each_ref().map(|tensor| place(&layout, tensor));
            let layouts = [layout.clone(), layout.clone()];
            let program = RowProgram::new(&prog, &layouts, &layout, &Env::default()).unwrap();
            let part = |x: &Tensor, k: usize| x.data[k / columns * columns..][..columns].to_vec();
            for level in levels() {
                let mut written = vec![POISON; layout.span()];
                let mut scratch = vec![f32::NAN; program.scratch()];
                let arguments = memory.each_ref().map(|words| Argument::Whole(Source::new(words)));
                let output = Output::Whole(&Target::new(&mut written));
                // SAFETY: nothing lies over anything.
                unsafe { program.code.run(level, 0..5, 0..columns, &arguments, &output, &mut scratch) };
                for (k, exact) in exact.data.iter().enumerate() {
                    let found = f64::from(f32::from_bits(written[k]));
                    let row = part(&b, k);
                    let (most, sum) =
                        (row.iter().copied().fold(f64::MIN, f64::max), row.iter().map(|x| x.abs()).sum::<f64>());
                    let value = match instr {
                        Instr::Un(op, _) => op.eval(a.data[k]),
                        Instr::Bin(op, ..) => op.eval(a.data[k], b.data[k]),
                        _ => f64::NAN,
                    };
                    // Six roundings of the product's factors, of which a sum may cancel.
                    let bound = 8.0 * f64::from(f32::EPSILON) * (value.abs() * most.abs() * sum + b.data[k].abs());
                    let same = found.is_nan() && exact.is_nan() || (found - exact).abs() <= bound;
                    assert!(same, "{instr:?} of {}: {found} instead of {exact}", a.data[k]);
                }
            }
        }
    }
}
