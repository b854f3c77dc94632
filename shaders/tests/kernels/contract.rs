//! Contractions: every form, at tile edges, with programs on all sides.

use std::sync::Arc;

use meganeura_shaders::dim::{Dim, Shape, Symbols};
use meganeura_shaders::generate::{Form, Tile, Vector};
use meganeura_shaders::kernel::{Contract, Kernel, Spec, Term};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{DType, Instr, Leaf, Linker, Prog, Reg};
use meganeura_shaders::schedule::Condition;

use crate::case::{Case, LAYOUTS, Layout, member, place, positive};
use crate::devices::Devices;
use crate::programs::{program, rms_norm, rms_scale, silu, softmax};

const F: DType = DType::F32;

fn spec(text: &str) -> Spec {
    Spec::parse(text).unwrap()
}

fn term(text: &str) -> Term {
    Term { spec: spec(text), a: Prog::identity(), b: Prog::identity(), stat: None }
}

/// An epilogue over `seeds` and `extras` further arguments.
fn epilogue(seeds: &[Leaf], extras: u32, build: impl FnOnce(&mut Linker, &[Reg]) -> Reg) -> Prog {
    let mut link = Linker::default();
    let leaves: Vec<Leaf> = seeds.iter().copied().chain((0..extras).map(Leaf::Arg)).collect();
    let registers: Vec<Reg> = leaves.iter().map(|leaf| link.leaf(*leaf)).collect();
    let root = build(&mut link, &registers);
    link.finish(&[root], &leaves).0.remove(0)
}

fn plain(text: &str) -> Kernel {
    Kernel::Contract(Arc::new(Contract::plain(spec(text))))
}

struct Dims {
    symbols: Symbols,
    m: Dim,
    n: Dim,
    k: Dim,
}

/// Dimensions that are multiples of `step`.
fn dims(step: i64) -> Dims {
    let mut symbols = Symbols::default();
    let low = if step == 1 { 0 } else { step };
    let mut declare = |name| symbols.declare(name, low, 4096, step);
    let (m, n, k) = (declare("m"), declare("n"), declare("k"));
    Dims { symbols, m, n, k }
}

/// Sizes that are multiples of `step`.
fn fit<const N: usize>(sizes: [i64; N], step: i64) -> [i64; N] {
    sizes.map(|size| (size + step - 1) / step * step)
}

fn of(shapes: &[&[&Dim]]) -> Vec<(Shape, DType)> {
    shapes.iter().map(|shape| (shape.iter().map(|dim| (*dim).clone()).collect(), F)).collect()
}

#[test]
fn products_are_exact_at_tile_edges_in_all_layouts_of_both_sides() {
    let mut devices = Devices::open();
    let Dims { symbols, m, n, k } = dims(1);
    let sizes =
        [[1, 1, 1], [31, 33, 7], [33, 31, 33], [32, 32, 32], [2, 3, 104], [65, 1, 440], [1, 65, 31], [250, 33, 1025]];
    for (text, shapes) in [
        ("mk,nk->mn", [[&m, &k], [&n, &k]]),
        ("mk,kn->mn", [[&m, &k], [&k, &n]]),
        ("km,kn->mn", [[&k, &m], [&k, &n]]),
        ("km,nk->mn", [[&k, &m], [&n, &k]]),
        ("mk,nk->nm", [[&m, &k], [&n, &k]]),
    ] {
        for layout in [Layout::Aligned, Layout::Odd] {
            let args = of(&[&shapes[0], &shapes[1]]);
            let case = Case::new(&symbols, vec![member(plain(text), &args, layout, 0)]).exact();
            for size in sizes {
                case.check(&mut devices, &size);
            }
        }
    }
}

#[test]
fn products_of_multiples_of_four_take_fours_and_stay_exact() {
    let mut devices = Devices::open();
    let Dims { symbols, m, n, k } = dims(4);
    for (text, shapes) in [
        ("mk,nk->mn", [[&m, &k], [&n, &k]]),
        ("mk,kn->mn", [[&m, &k], [&k, &n]]),
        ("km,kn->mn", [[&k, &m], [&k, &n]]),
        ("km,nk->mn", [[&k, &m], [&n, &k]]),
    ] {
        for layout in LAYOUTS {
            let args = of(&[&shapes[0], &shapes[1]]);
            let case = Case::new(&symbols, vec![member(plain(text), &args, layout, 0)]).exact();
            let (_, _, texts) = case.variants();
            // The last one is that of tiles.
            let text = &texts.list()[texts.list().len() - 1];
            let fours = text.matches("array<vec4<f32>>").count();
            let none = matches!(layout, Layout::Odd | Layout::Ragged);
            assert!(if none { fours == 0 } else { fours == 3 }, "{fours} in {layout:?}\n{text}");
            for size in [[4, 4, 4], [36, 28, 12], [32, 64, 48], [100, 36, 1028]] {
                case.check(&mut devices, &size);
            }
        }
    }
}

#[test]
fn a_sum_over_nothing_is_zero_and_no_rows_are_no_work() {
    let mut devices = Devices::open();
    let Dims { symbols, m, n, k } = dims(1);
    let case =
        Case::new(&symbols, vec![member(plain("mk,nk->mn"), &of(&[&[&m, &k], &[&n, &k]]), Layout::Aligned, 0)]).exact();
    for size in [[3, 5, 0], [0, 5, 7], [3, 0, 7], [1, 5, 0]] {
        case.check(&mut devices, &size);
    }
}

#[test]
fn one_row_runs_as_a_vector_in_both_layouts_of_the_matrix() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let mut symbols = Symbols::default();
        let m = symbols.declare("m", 1, 99, 1);
        let (n, k) = (symbols.declare("n", step, 4096, step), symbols.declare("k", step, 4096, step));
        for (text, right) in [("mk,nk->mn", [&n, &k]), ("mk,kn->mn", [&k, &n])] {
            let case =
                Case::new(&symbols, vec![member(plain(text), &of(&[&[&m, &k], &right]), Layout::Aligned, 0)]).exact();
            let (_, variants, _) = case.variants();
            assert_eq!(variants[0].condition, Condition::AtMost(m.clone(), 1));
            for size in [[1, 4, 4], [1, 36, 100], [1, 64, 1028], [1, 100, 576]] {
                assert_eq!(case.check(&mut devices, &size), 4);
            }
            assert_eq!(case.check(&mut devices, &[2, 36, 100]), 3);
        }
        for text in ["k,nk->n", "nk,k->n", "k,kn->n"] {
            let matrix: &[&Dim] = if text.contains("kn") { &[&k, &n] } else { &[&n, &k] };
            let args = if text.starts_with('n') { of(&[matrix, &[&k]]) } else { of(&[&[&k], matrix]) };
            let case = Case::new(&symbols, vec![member(plain(text), &args, Layout::Inside, 0)]).exact();
            assert_eq!(case.variants().1.len(), 1);
            case.check(&mut devices, &[1, 36, 100]);
        }
        let case =
            Case::new(&symbols, vec![member(plain("nk,nk->"), &of(&[&[&n, &k], &[&n, &k]]), Layout::Aligned, 0)])
                .exact();
        case.check(&mut devices, &[1, 12, 36]);
    }
}

#[test]
fn batches_and_several_labels_of_a_class_combine() {
    let mut devices = Devices::open();
    let mut symbols = Symbols::default();
    let (b, h, s, t, d) = (
        symbols.declare("b", 1, 9, 1),
        symbols.declare("h", 1, 9, 1),
        symbols.declare("s", 1, 99, 1),
        symbols.declare("t", 1, 99, 1),
        symbols.declare("d", 1, 99, 1),
    );
    let cases: [(&str, &[&Dim], &[&Dim]); 9] = [
        ("bhsd,bhtd->bhst", &[&b, &h, &s, &d], &[&b, &h, &t, &d]),
        // Heads lie between: scores and values of attention without a transpose.
        ("bshd,bthd->bhst", &[&b, &s, &h, &d], &[&b, &t, &h, &d]),
        ("bhst,bthd->bshd", &[&b, &h, &s, &t], &[&b, &t, &h, &d]),
        // A projection into heads, written head by head.
        ("bsd,htd->bhst", &[&b, &s, &d], &[&h, &t, &d]),
        // Weight gradients sum over batch and sequence.
        ("bsd,bst->dt", &[&b, &s, &d], &[&b, &s, &t]),
        ("bsd,bst->td", &[&b, &s, &d], &[&b, &s, &t]),
        // Summed labels that do not merge, and in other orders on both sides.
        ("shd,hsbt->dbt", &[&s, &h, &d], &[&h, &s, &b, &t]),
        ("bsd,sbd->b", &[&b, &s, &d], &[&s, &b, &d]),
        ("bst,d->sdbt", &[&b, &s, &t], &[&d]),
    ];
    for (text, left, right) in cases {
        for layout in [Layout::Aligned, Layout::Padded] {
            let case = Case::new(&symbols, vec![member(plain(text), &of(&[left, right]), layout, 0)]).exact();
            for size in [[2, 3, 5, 7, 11], [1, 2, 33, 17, 31], [3, 1, 1, 40, 3]] {
                case.check(&mut devices, &size);
            }
        }
    }
}

#[test]
fn epilogues_broadcast_and_know_where_they_are() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let Dims { symbols, m, n, k } = dims(step);
        let one = Dim::from(1);
        let epi = epilogue(&[Leaf::Acc(0)], 4, |l, x| {
            let biased = l.bin(Bin::Add, x[0], x[1]);
            let scaled = l.mul(biased, x[2]);
            let rest = l.bin(Bin::Add, scaled, x[3]);
            let (row, column) = (l.push(Instr::Index(1, x[0])), l.push(Instr::Index(0, x[0])));
            let upper = l.bin(Bin::Le, row, column);
            l.push(Instr::Select(upper, rest, x[4]))
        });
        for text in ["mk,nk->mn", "km,kn->mn"] {
            let kernel = Kernel::Contract(Arc::new(Contract { terms: vec![term(text)], epi: epi.clone() }));
            let (a, b): (&[&Dim], &[&Dim]) =
                if text == "mk,nk->mn" { (&[&m, &k], &[&n, &k]) } else { (&[&k, &m], &[&k, &n]) };
            let args = of(&[a, b, &[&n], &[&m, &one], &[&m, &n], &[]]);
            for layout in LAYOUTS {
                let mut product = member(kernel.clone(), &args, layout, 0);
                for in_place in [false, true] {
                    if in_place {
                        product.write = place(4, &product.shape, layout);
                    }
                    let case = Case::new(&symbols, vec![product.clone()]).exact();
                    for size in [[1, 35, 7], [35, 67, 19], [3, 3, 99]] {
                        case.check(&mut devices, &fit(size, step));
                    }
                }
            }
        }
    }
}

#[test]
fn prologues_apply_while_staged_in_every_layout() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let Dims { symbols, m, n, k } = dims(step);
        let one = Dim::from(1);
        // Not 0 at 0, so that padding shows; masks by position.
        let left = program(3, |l, x| {
            let scaled = l.mul(x[0], x[1]);
            let shifted = l.bin(Bin::Add, scaled, x[2]);
            let (row, column) = (l.push(Instr::Index(1, x[0])), l.push(Instr::Index(0, x[0])));
            let lower = l.bin(Bin::Lt, column, row);
            let two = l.constant(2.0);
            l.push(Instr::Select(lower, two, shifted))
        });
        let right = program(2, |l, x| l.bin(Bin::Add, x[0], x[1]));
        for (text, a, b) in
            [("mk,nk->mn", [&m, &k], [&n, &k]), ("mk,kn->mn", [&m, &k], [&k, &n]), ("km,kn->mn", [&k, &m], [&k, &n])]
        {
            let contract = Contract {
                terms: vec![Term { spec: spec(text), a: left.clone(), b: right.clone(), stat: None }],
                epi: Prog::identity(),
            };
            for layout in [Layout::Aligned, Layout::Odd] {
                let args = of(&[&a, &[a[1]], &[a[0], &one], &b, &[b[0], &one]]);
                let one = member(Kernel::Contract(Arc::new(contract.clone())), &args, layout, 0);
                let case = Case::new(&symbols, vec![one]).exact();
                for size in [[1, 35, 7], [35, 67, 19], [32, 3, 99], [1, 1, 1]] {
                    case.check(&mut devices, &fit(size, step));
                }
            }
        }
    }
}

#[test]
fn row_programs_run_on_the_left_side() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let Dims { symbols, m, n, k } = dims(step);
        for (prog, extra) in [(rms_norm(&k), vec![&k]), (softmax(), vec![])] {
            for (text, right) in [("mk,nk->mn", [&n, &k]), ("mk,kn->mn", [&k, &n])] {
                let contract = Contract { terms: vec![Term { a: prog.clone(), ..term(text) }], epi: Prog::identity() };
                let left = [&m, &k];
                let mut shapes: Vec<&[&Dim]> = vec![&left];
                if !extra.is_empty() {
                    shapes.push(&extra);
                }
                shapes.push(&right);
                let one = member(Kernel::Contract(Arc::new(contract)), &of(&shapes), Layout::Aligned, 0);
                let case = Case::new(&symbols, vec![one]);
                for size in [[1, 35, 7], [35, 67, 19], [64, 3, 999], [1, 1, 576]] {
                    case.check(&mut devices, &fit(size, step));
                }
            }
        }
    }
}

/// `rsqrt(mean of squares)` as a statistic.
fn row_scale(k: &Dim) -> Prog {
    let k = k.clone();
    program(1, |l, x| rms_scale(l, x[0], &k))
}

#[test]
fn statistics_are_gathered_while_the_product_runs() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let mut symbols = Symbols::default();
        let b = symbols.declare("b", 1, 9, 1);
        let mut declare = |name| symbols.declare(name, step, 4096, step);
        let (m, n, k) = (declare("m"), declare("n"), declare("k"));
        let two = Dim::from(2);
        let epi = epilogue(&[Leaf::Acc(0), Leaf::Stat(0)], 0, |l, x| l.mul(x[0], x[1]));
        let max = program(1, |l, x| {
            let absolute = l.un(Un::Abs, x[0]);
            l.push(Instr::RowMax(absolute))
        });
        // Needs a pass of its own: the spread around the mean.
        let nested = program(1, |l, x| {
            let sum = l.push(Instr::RowSum(x[0]));
            let size = l.push(Instr::Extent(k.clone()));
            let mean = l.bin(Bin::Div, sum, size);
            let less = l.bin(Bin::Sub, x[0], mean);
            let square = l.mul(less, less);
            let sum = l.push(Instr::RowSum(square));
            l.un(Un::Recip, sum)
        });
        for stat in [row_scale(&k), max, nested] {
            for (text, left, right) in [
                ("mk,nk->mn", vec![&m, &k], vec![&n, &k]),
                ("bmk,kn->bmn", vec![&b, &m, &k], vec![&k, &n]),
                ("bmk,bkn->bmn", vec![&b, &m, &k], vec![&b, &k, &n]),
                ("mk,hnk->mhn", vec![&m, &k], vec![&two, &n, &k]),
            ] {
                let terms = vec![Term { stat: Some(stat.clone()), ..term(text) }];
                let kernel = Kernel::Contract(Arc::new(Contract { terms, epi: epi.clone() }));
                let one = member(kernel, &of(&[&left, &right]), Layout::Aligned, 0);
                let case = Case::new(&symbols, vec![one]);
                for size in [[1, 1, 36, 8], [2, 36, 68, 20], [3, 64, 4, 576]] {
                    if size[1] % step == 0 {
                        case.check(&mut devices, &size);
                    }
                }
            }
        }
    }
}

#[test]
fn several_products_share_a_left_side_or_bring_their_own() {
    let mut devices = Devices::open();
    for step in [1, 4] {
        let Dims { mut symbols, m, n, k } = dims(step);
        let q = symbols.declare("q", step, 999, step);
        let gated = |seeds: &[Leaf], scale: bool| {
            epilogue(seeds, 0, |l, x| {
                let scaled: Vec<Reg> = (0..2).map(|t| if scale { l.mul(x[t], x[2 + t]) } else { x[t] }).collect();
                let inner = silu();
                let gate = *l.splice(&inner, &[scaled[0]]).last().unwrap();
                l.mul(gate, scaled[1])
            })
        };
        let two = [Leaf::Acc(0), Leaf::Acc(1)];
        let both = Contract { terms: vec![term("mk,nk->mn"), term("mk,nk->mn")], epi: gated(&two, false) };
        let mut shared = member(
            Kernel::Contract(Arc::new(both.clone())),
            &of(&[&[&m, &k], &[&n, &k], &[&m, &k], &[&n, &k]]),
            Layout::Aligned,
            0,
        );
        shared.reads[2].0 = shared.reads[0].0.clone();
        let case = Case::new(&symbols, vec![shared]).data(positive);
        let (_, _, texts) = case.variants();
        assert!(texts.list().iter().all(|text| text.matches("let steps").count() <= 1), "the left side is staged once");
        for size in [[1, 35, 7, 1], [35, 67, 19, 1], [64, 3, 99, 1]] {
            case.check(&mut devices, &fit(size, step));
        }
        let scaled = Term { stat: Some(row_scale(&k)), ..term("mk,kn->mn") };
        let seeds = [two[0], two[1], Leaf::Stat(0), Leaf::Stat(1)];
        let both = Contract { terms: vec![scaled.clone(), scaled], epi: gated(&seeds, true) };
        let mut shared = member(
            Kernel::Contract(Arc::new(both)),
            &of(&[&[&m, &k], &[&k, &n], &[&m, &k], &[&k, &n]]),
            Layout::Aligned,
            0,
        );
        shared.reads[2].0 = shared.reads[0].0.clone();
        let case = Case::new(&symbols, vec![shared]);
        for size in [[1, 35, 7, 1], [35, 67, 19, 1]] {
            case.check(&mut devices, &fit(size, step));
        }
        let epi = epilogue(&[Leaf::Acc(0), Leaf::Acc(1), Leaf::Acc(2)], 0, |l, x| {
            let sum = l.bin(Bin::Add, x[0], x[1]);
            l.bin(Bin::Sub, sum, x[2])
        });
        let terms = vec![term("mk,nk->mn"), term("qm,qn->mn"), term("mk,kn->mn")];
        let args = of(&[&[&m, &k], &[&n, &k], &[&q, &m], &[&q, &n], &[&m, &k], &[&k, &n]]);
        let one = member(Kernel::Contract(Arc::new(Contract { terms, epi })), &args, Layout::Inside, 0);
        let case = Case::new(&symbols, vec![one]).exact();
        for size in [[1, 35, 7, 3], [35, 67, 19, 43], [64, 3, 99, 7], [3, 7, 7, 99]] {
            case.check(&mut devices, &fit(size, step));
        }
    }
}

#[test]
fn a_text_of_a_product_depends_on_sizes_only_where_the_table_or_whole_turns_do() {
    let texts = |high: i64, n: i64, k: i64| {
        let mut symbols = Symbols::default();
        let m = symbols.declare("m", 1, high, 1);
        let args = of(&[&[&m, &Dim::from(k)], &[&Dim::from(n), &Dim::from(k)]]);
        Case::new(&symbols, vec![member(plain("mk,nk->mn"), &args, Layout::Aligned, 0)]).variants().2.list().to_vec()
    };
    let all = texts(4096, 576, 576);
    assert_eq!(all.len(), 4, "a vector, two small tiles, a large one");
    assert_eq!(all, texts(8192, 1024, 576));
    assert_eq!(all, texts(10_000, 64, 1024));
    let more_columns = texts(4096, 3072, 576);
    assert!(all[0] != more_columns[0] && all[1..] == more_columns[1..], "one row takes fewer lanes for a column");
    let broken_turns = texts(4096, 576, 580);
    assert!(all[0] == broken_turns[0] && all[1..].iter().zip(&broken_turns[1..]).all(|(a, b)| a != b));
    assert_eq!(broken_turns, texts(4096, 64, 1028));
    assert_eq!(all, texts(8, 576, 576), "bounds do not count");
    assert_ne!(all, texts(4096, 577, 577));
}

/// The forms of the table, and others that `cargo xtask tune` tries: more parts, more threads, other proportions.
const FORMS: [Form; 11] = [
    tile(32, 32, 4, 2),
    tile(32, 32, 4, 4),
    tile(32, 64, 8, 4),
    tile(64, 32, 4, 2),
    tile(64, 64, 8, 1),
    tile(64, 64, 8, 2),
    tile(128, 64, 8, 1),
    vector(256, 32),
    vector(256, 64),
    vector(256, 128),
    vector(64, 32),
];

const fn tile(rows: u32, columns: u32, each: u32, parts: u32) -> Form {
    Form::Tile(Tile { rows, columns, each, parts })
}

const fn vector(threads: u32, lanes: u32) -> Form {
    Form::Vector(Vector { threads, lanes })
}

#[test]
fn every_form_is_exact_around_its_own_edges_whether_or_not_its_turns_end_with_the_sum() {
    let mut devices = Devices::open();
    for form in FORMS {
        let (rows, columns, turn) = match form {
            Form::Tile(Tile { rows, columns, parts, .. }) => {
                (i64::from(rows), i64::from(columns), 16 * i64::from(parts))
            }
            Form::Vector(Vector { threads, lanes }) => (1, i64::from(threads / lanes), i64::from(lanes)),
        };
        let last = if rows == 1 { 1 } else { rows + 1 };
        for (step, sizes) in [
            (
                1,
                [
                    [last.min(rows), columns, turn],
                    [last, columns - 1, turn - 1],
                    [1, columns + 1, 2 * turn + 1],
                    [1, 1, 1],
                ],
            ),
            (4, [[last, columns + 4, 4], [rows, columns, turn + 4], [1, 4, 2 * turn], [last.min(37), 36, 3 * turn]]),
            (turn, [[last, columns, turn], [rows, columns + 1, 2 * turn], [1, 1, turn], [last.min(37), 67, 3 * turn]]),
        ] {
            for (text, flat) in [("mk,nk->mn", true), ("mk,kn->mn", false)] {
                let mut symbols = Symbols::default();
                let multiple = if step == 4 { 4 } else { 1 };
                let (m, n) = (symbols.declare("m", 1, 4096, 1), symbols.declare("n", multiple, 4096, multiple));
                let k = symbols.declare("k", step, 4096, step);
                let right: &[&Dim] = if flat { &[&n, &k] } else { &[&k, &n] };
                let one = member(plain(text), &of(&[&[&m, &k], right]), Layout::Aligned, 0);
                let case = Case::new(&symbols, vec![one]).exact();
                for size in sizes {
                    let n = if step == 4 { (size[1] + 3) / 4 * 4 } else { size[1].max(1) };
                    let k = (size[2].max(1) + step - 1) / step * step;
                    case.check_as(&mut devices, form, &[size[0], n, k]);
                }
            }
        }
    }
}

#[test]
fn every_form_gathers_statistics_runs_row_programs_and_shares_left_sides() {
    let mut devices = Devices::open();
    for form in FORMS {
        let rows = if matches!(form, Form::Vector(_)) { 1 } else { 67 };
        for step in [1, 64] {
            let mut symbols = Symbols::default();
            let (m, n) = (symbols.declare("m", 1, 4096, 1), symbols.declare("n", 1, 4096, 1));
            let k = symbols.declare("k", step, 4096, step);
            let scaled = epilogue(&[Leaf::Acc(0), Leaf::Stat(0)], 1, |l, x| {
                let scaled = l.mul(x[0], x[1]);
                l.bin(Bin::Add, scaled, x[2])
            });
            let gained = program(2, |l, x| l.mul(x[0], x[1]));
            let of_gained = {
                let k = k.clone();
                program(2, |l, x| rms_scale(l, x[0], &k))
            };
            let scale = Term { a: gained, stat: Some(of_gained), ..term("mk,nk->mn") };
            let row_scale = Contract { terms: vec![scale], epi: scaled };
            let prologue =
                Contract { terms: vec![Term { a: rms_norm(&k), ..term("mk,nk->mn") }], epi: Prog::identity() };
            let both = epilogue(&[Leaf::Acc(0), Leaf::Acc(1)], 0, |l, x| l.mul(x[0], x[1]));
            let pair = Contract { terms: vec![term("mk,nk->mn"), term("mk,nk->mn")], epi: both };
            let cases = [
                (row_scale, of(&[&[&m, &k], &[&k], &[&n, &k], &[&n]])),
                (prologue, of(&[&[&m, &k], &[&k], &[&n, &k]])),
                (pair, of(&[&[&m, &k], &[&n, &k], &[&m, &k], &[&n, &k]])),
            ];
            for (number, (contract, args)) in cases.into_iter().enumerate() {
                let mut one = member(Kernel::Contract(Arc::new(contract)), &args, Layout::Aligned, 0);
                if number == 2 {
                    // One left side for both products.
                    one.reads[2].0 = one.reads[0].0.clone();
                }
                // Products of two sums of both signs would lose what cancels.
                let case = Case::new(&symbols, vec![one]).data(positive);
                case.check_as(&mut devices, form, &[rows, 37, 128 - 3 * i64::from(step == 1)]);
            }
        }
    }
}
