//! Row programs, column sums and copies.

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::{Copy, CopyAxis, Kernel};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Prog};

use crate::case::{Case, LAYOUTS, Layout, member, place};
use crate::devices::Devices;
use crate::programs::{layer_norm, program, rms_norm, softmax, softmax_of};

const F: DType = DType::F32;
const LENGTHS: [i64; 8] = [1, 2, 31, 33, 576, 1000, 257, 4099];

#[test]
fn softmax_and_norms_match_at_any_length() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 9999, 1));
    for layout in [Layout::Aligned, Layout::Padded] {
        let x = (vec![m.clone(), n.clone()], F);
        let gain = (vec![n.clone()], F);
        for (prog, args) in [
            (softmax(), vec![x.clone()]),
            (rms_norm(&n), vec![x.clone(), gain.clone()]),
            (layer_norm(&n), vec![x.clone(), gain.clone(), gain.clone()]),
        ] {
            let case = Case::new(&symbols, vec![member(Kernel::Rows(prog), &args, layout, 0)]);
            for length in LENGTHS {
                case.check(&mut devices, &[5, length]);
            }
            case.check(&mut devices, &[33, 100]);
        }
    }
}

#[test]
fn short_rows_run_both_ways() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 9999, 1));
    let case = Case::new(&symbols, vec![member(Kernel::Rows(softmax()), &[(vec![m, n], F)], Layout::Aligned, 0)]);
    assert_eq!(case.check(&mut devices, &[9, 256]), 2);
    assert_eq!(case.check(&mut devices, &[9, 257]), 1);
}

#[test]
fn sums_and_maxima_of_integers_are_exact() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 0, 99_999, 1));
    for dtype in [F, DType::U32, DType::I32] {
        for reduce in [Instr::RowSum(0), Instr::RowMax(0)] {
            let is_max = matches!(reduce, Instr::RowMax(_));
            let one = member(Kernel::Rows(Prog::of(&reduce)), &[(vec![m.clone(), n.clone()], dtype)], Layout::Odd, 0);
            let case = Case::new(&symbols, vec![one]).exact();
            for length in LENGTHS {
                case.check(&mut devices, &[3, length]);
            }
            case.check(&mut devices, &[1, 70_003]);
            if !is_max {
                case.check(&mut devices, &[3, 0]);
            }
        }
    }
}

#[test]
fn a_long_sum_stays_accurate() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let one = member(
        Kernel::Rows(Prog::of(&Instr::RowSum(0))),
        &[(vec![Dim::from(1), Dim::from(3_000_017)], F)],
        Layout::Aligned,
        0,
    );
    Case::new(&symbols, vec![one]).data(|_, _| f64::from(0.1f32)).near(1e-6).check(&mut devices, &[]);
}

#[test]
fn masked_rows_give_no_nan() {
    let mut devices = Devices::open();
    let symbols = Symbols::default();
    let masked = program(2, |l, x| {
        let low = l.constant(-1e30);
        let score = l.push(Instr::Select(x[1], x[0], low));
        let soft = softmax_of(l, score);
        let zero = l.constant(0.0);
        l.push(Instr::Select(x[1], soft, zero))
    });
    let shape = vec![Dim::from(4), Dim::from(9)];
    let one = member(Kernel::Rows(masked), &[(shape.clone(), F), (shape, DType::Bool)], Layout::Aligned, 0);
    // The mask (argument 1) hides the whole second row and more.
    let data = |argument: usize, k: usize| if argument == 0 || !(10..24).contains(&k) { k as f64 / 7.0 } else { -1.0 };
    Case::new(&symbols, vec![one]).data(data).check(&mut devices, &[]);
}

#[test]
fn arguments_of_any_shape_broadcast_into_rows() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (b, m, n) = (symbols.declare("b", 1, 9, 1), symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 999, 1));
    let one = Dim::from(1);
    let others = [
        vec![],
        vec![n.clone()],
        vec![m.clone(), one.clone()],
        vec![one.clone(), n.clone()],
        vec![b.clone(), one.clone(), n.clone()],
        vec![b.clone(), one.clone(), one.clone()],
        vec![b.clone(), m.clone(), n.clone()],
    ];
    for layout in LAYOUTS {
        for other in &others {
            let scaled = program(2, |l, x| {
                let product = l.mul(x[0], x[1]);
                let sum = l.push(Instr::RowSum(product));
                let shifted = l.bin(Bin::Add, sum, x[1]);
                l.bin(Bin::Sub, product, shifted)
            });
            let args = [(vec![b.clone(), m.clone(), n.clone()], F), (other.clone(), F)];
            let case = Case::new(&symbols, vec![member(Kernel::Rows(scaled), &args, layout, 0)]).exact();
            case.check(&mut devices, &[2, 5, 33]);
            case.check(&mut devices, &[3, 1, 1]);
        }
    }
}

#[test]
fn rows_of_two_lengths_and_reduced_vectors_meet() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n, q) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 999, 1), symbols.declare("q", 1, 1000, 1));
    // sum over n of x, times y over q, less the sum of a vector, plus the greatest index below the mean.
    let prog = program(3, |l, x| {
        let sum = l.push(Instr::RowSum(x[0]));
        let vector = l.push(Instr::RowSum(x[2]));
        let scaled = l.mul(sum, x[1]);
        let most = l.push(Instr::RowMax(scaled));
        let less = l.bin(Bin::Sub, scaled, vector);
        let row = l.push(Instr::Index(1, x[1]));
        let row = l.push(Instr::Cast(F, row));
        let less = l.bin(Bin::Sub, less, row);
        l.bin(Bin::Add, less, most)
    });
    let args = [(vec![m.clone(), n.clone()], F), (vec![m, q], F), (vec![n], F)];
    let case = Case::new(&symbols, vec![member(Kernel::Rows(prog), &args, Layout::Aligned, 0)]).exact();
    for sizes in [[3, 5, 7], [1, 300, 2], [9, 1, 1000]] {
        case.check(&mut devices, &sizes);
    }
}

#[test]
fn cross_entropy_reads_a_label_for_each_row() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 99_999, 1));
    let loss = program(2, |l, x| {
        let column = l.push(Instr::Index(0, x[0]));
        let hit = l.bin(Bin::Eq, column, x[1]);
        let zero = l.constant(0.0);
        let max = l.push(Instr::RowMax(x[0]));
        let less = l.bin(Bin::Sub, x[0], max);
        let at = l.push(Instr::Select(hit, less, zero));
        let at = l.push(Instr::RowSum(at));
        let e = l.un(Un::Exp, less);
        let sum = l.push(Instr::RowSum(e));
        let log = l.un(Un::Log, sum);
        l.bin(Bin::Sub, log, at)
    });
    let args = [(vec![m.clone(), n], F), (vec![m, Dim::from(1)], DType::U32)];
    let case = Case::new(&symbols, vec![member(Kernel::Rows(loss), &args, Layout::Aligned, 0)]);
    case.check(&mut devices, &[7, 10]);
    case.check(&mut devices, &[3, 49_152]);
    case.data(|_, k| if k == 1 { 1000.0 } else { 0.0 }).check(&mut devices, &[2, 10]);
}

#[test]
fn column_sums_are_exact_in_every_layout() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (b, m, n) = (symbols.declare("b", 0, 9, 1), symbols.declare("m", 1, 9999, 1), symbols.declare("n", 1, 999, 1));
    for layout in LAYOUTS {
        let product = Prog::of(&Instr::Bin(Bin::Mul, 0, 1));
        let args = [(vec![b.clone(), m.clone(), n.clone()], F), (vec![b.clone(), m.clone(), Dim::from(1)], F)];
        let weighted = Case::new(&symbols, vec![member(Kernel::ColumnSum(product), &args, layout, 0)]).exact();
        for sizes in [[1, 1, 1], [2, 17, 15], [3, 500, 17], [1, 1025, 33], [0, 3, 5]] {
            weighted.check(&mut devices, &sizes);
        }
    }
    let index = program(1, |l, x| {
        let row = l.push(Instr::Index(1, x[0]));
        let row = l.push(Instr::Cast(F, row));
        l.mul(row, x[0])
    });
    let one = member(Kernel::ColumnSum(index), &[(vec![b, m, n], F)], Layout::Aligned, 0);
    Case::new(&symbols, vec![one]).exact().check(&mut devices, &[3, 7, 19]);
}

#[test]
fn copies_transpose_slice_concatenate_and_pad() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 1, 999, 1));
    let axis = |extent: &Dim, source: &Dim, target: &Dim, window: Option<(Dim, Dim)>| CopyAxis {
        extent: extent.clone(),
        source: source.clone(),
        target: target.clone(),
        window,
    };
    let (zero, one, two) = (Dim::from(0), Dim::from(1), Dim::from(2));
    let wide = &n + &Dim::from(3);
    let copies = [
        // Transposed.
        Copy { axes: vec![axis(&n, &one, &m, None), axis(&m, &n, &one, None)], from: zero.clone() },
        // Every second column into wider rows.
        Copy {
            axes: vec![axis(&m, &n, &wide, None), axis(&symbols.ceil_div(&n, 2), &two, &one, None)],
            from: zero.clone(),
        },
        // Padded on both sides, and one row above.
        Copy {
            axes: vec![
                axis(&(&m + &two), &n, &wide, Some((one.clone(), m.clone()))),
                axis(&wide, &one, &one, Some((two.clone(), n.clone()))),
            ],
            from: zero.clone(),
        },
        // The last row, repeated; dense.
        Copy { axes: vec![axis(&Dim::from(3), &zero, &n, None), axis(&n, &one, &one, None)], from: &(&m - &one) * &n },
        Copy { axes: vec![axis(&m, &n, &n, None), axis(&n, &one, &one, None)], from: zero.clone() },
    ];
    for copy in copies {
        for layout in [Layout::Aligned, Layout::Inside, Layout::Odd] {
            for dtype in [F, DType::Bool] {
                let kernel = Kernel::Copy(copy.clone());
                let mut moved = member(kernel, &[(vec![m.clone(), n.clone()], dtype)], layout, 0);
                moved.write = place(1, &[], layout);
                let case = Case::new(&symbols, vec![moved]).exact();
                for sizes in [[1, 1], [5, 7], [31, 64]] {
                    case.check(&mut devices, &sizes);
                }
            }
        }
    }
}

#[test]
fn rows_and_copies_of_multiples_of_four_take_fours() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (m, n) = (symbols.declare("m", 1, 99, 1), symbols.declare("n", 4, 9996, 4));
    let x = (vec![m.clone(), n.clone()], F);
    let norm = member(
        Kernel::Rows(layer_norm(&n)),
        &[x.clone(), (vec![n.clone()], F), (vec![n.clone()], F)],
        Layout::Inside,
        0,
    );
    let indexed = program(1, |l, x| {
        let column = l.push(Instr::Index(0, x[0]));
        let column = l.push(Instr::Cast(F, column));
        let weighted = l.mul(x[0], column);
        let most = l.push(Instr::RowMax(weighted));
        let sum = l.push(Instr::RowSum(weighted));
        let rest = l.bin(Bin::Sub, weighted, most);
        l.bin(Bin::Add, rest, sum)
    });
    let indexed = member(Kernel::Rows(indexed), std::slice::from_ref(&x), Layout::Padded, 4);
    let axis = |extent: &Dim, source: &Dim, target: &Dim, window| CopyAxis {
        extent: extent.clone(),
        source: source.clone(),
        target: target.clone(),
        window,
    };
    let two = Dim::from(2);
    let axes = vec![
        axis(&(&m + &two), &n, &(&n + &Dim::from(8)), Some((two, m.clone()))),
        axis(&n, &Dim::from(1), &Dim::from(1), None),
    ];
    let mut moved = member(Kernel::Copy(Copy { axes, from: Dim::from(0) }), &[x], Layout::Inside, 0);
    moved.write = place(1, &[], Layout::Inside);
    for (one, exact) in [(norm, false), (indexed, true), (moved, true)] {
        let case = Case::new(&symbols, vec![one]);
        let case = if exact { case.exact() } else { case };
        let (_, _, texts) = case.variants();
        assert!(texts.list().iter().all(|text| text.matches(": array<vec4<f32>>").count() >= 2), "{}", texts.list()[0]);
        for size in [[1, 4], [9, 36], [3, 576], [2, 4100]] {
            case.check(&mut devices, &size);
        }
    }
}
