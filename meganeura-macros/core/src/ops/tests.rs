//! Every operation in the middle of a graph: its value against a plain formula, its gradient against the slope.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use meganeura_shaders::dim::{Dim, Symbols};
use meganeura_shaders::kernel::{self, Kernel, Spec};
use meganeura_shaders::pointwise::{Bin, Un};
use meganeura_shaders::prog::{Instr, Leaf, Linker};
use meganeura_shaders::reference::Tensor;

use super::*;
use crate::autodiff::Policy;
use crate::interp;
use crate::ir::{Graph, Type};
use crate::testing::*;

type Build<'a> = &'a dyn Fn(&mut Graph, &[ValueId]) -> ValueId;
type Formula<'a> = &'a dyn Fn(&[Tensor]) -> Tensor;

pub(super) fn dims(sizes: &[i64]) -> Shape {
    sizes.iter().map(|size| Dim::from(*size)).collect()
}

/// What `0.7 Σ w y + 0.3 Σ y²` and a second use of the operands make of it.
fn loss_of(g: &mut Graph, x: &[ValueId], y: ValueId) -> ValueId {
    let shape = g.shape(y).clone();
    let w = frozen(g, "w", &[], &shape);
    let weighted = g.mul(w, y);
    let weighted = g.with_const(Bin::Mul, weighted, 0.7);
    let square = g.mul(y, y);
    let square = g.with_const(Bin::Mul, square, 0.3);
    let both = g.add(weighted, square);
    let mut loss = g.sum_all(both);
    for x in x {
        let square = g.mul(*x, *x);
        let sum = g.sum_all(square);
        let sum = g.with_const(Bin::Mul, sum, 0.11);
        loss = g.add(loss, sum);
    }
    result(g, "loss", loss);
    loss
}

/// The operation over `before(p)` for tensors `p` of these shapes.
pub(super) fn middle(shapes: &[&[i64]], before: Build<'_>, build: Build<'_>) -> (Graph, ValueId) {
    let mut g = Graph::new(Symbols::default());
    let p: Vec<ValueId> =
        shapes.iter().enumerate().map(|(k, shape)| trained(&mut g, &format!("p{k}"), &[], &dims(shape))).collect();
    let x: Vec<ValueId> = p.iter().map(|p| before(&mut g, &[*p])).collect();
    let y = build(&mut g, &x);
    x.iter().for_each(|x| result(&mut g, "x", *x));
    result(&mut g, "y", y);
    let loss = loss_of(&mut g, &x, y);
    (g, loss)
}

/// The same inside a loop, over operands that change with the iteration.
pub(super) fn looped(shapes: &[&[i64]], before: Build<'_>, build: Build<'_>) -> (Graph, ValueId) {
    let mut g = Graph::new(Symbols::default());
    let count = Dim::from(2);
    let p: Vec<ValueId> =
        shapes.iter().enumerate().map(|(k, shape)| trained(&mut g, &format!("p{k}"), &[], &dims(shape))).collect();
    let y = g.repeat(&count, false, &[], &[], |g, index, _, _| {
        let index = g.cast(DType::F32, index);
        let index = g.with_const(Bin::Mul, index, 0.25);
        let factor = g.with_const(Bin::Add, index, 0.75);
        let mut x = vec![];
        for p in &p {
            let scaled = g.mul(*p, factor);
            x.push(before(g, &[scaled]));
        }
        (vec![], vec![build(g, &x)])
    });
    let loss = loss_of(&mut g, &p, y[0]);
    (g, loss)
}

fn check_value(shapes: &[&[i64]], before: Build<'_>, build: Build<'_>, formula: Formula<'_>) {
    let (g, _) = middle(shapes, before, build);
    g.verify().unwrap();
    let env = bind(&g, &[]);
    let found = interp::graph::run(&g, &env, &contents(&g, &env, 5));
    let (x, y) = (&found[..shapes.len()], &found[shapes.len()]);
    let expected = formula(x);
    assert_eq!(y.shape, expected.shape);
    assert_close("value", &y.data, &expected.data, 1e-12);
}

pub(super) fn check(shapes: &[&[i64]], before: Build<'_>, build: Build<'_>, formula: Formula<'_>) {
    check_value(shapes, before, build, formula);
    let (g, loss) = middle(shapes, before, build);
    check_gradients(&g, loss, &[], 5, Policy::Contractions);
    let (g, loss) = looped(shapes, before, build);
    for policy in POLICIES {
        check_gradients(&g, loss, &[], 7, policy);
    }
}

/// Operands of both signs, off the integers.
pub(super) fn plain(g: &mut Graph, p: &[ValueId]) -> ValueId {
    let scaled = g.with_const(Bin::Mul, p[0], 1.7);
    g.with_const(Bin::Add, scaled, 0.13)
}

/// Operands from 0.5 up.
fn positive(g: &mut Graph, p: &[ValueId]) -> ValueId {
    let square = g.mul(p[0], p[0]);
    g.with_const(Bin::Add, square, 0.5)
}

fn map(x: &Tensor, f: impl Fn(f64) -> f64) -> Tensor {
    Tensor { shape: x.shape.clone(), data: x.data.iter().map(|x| f(*x)).collect() }
}

/// `[3, 5]` with `[5]`.
fn zip(x: &[Tensor], f: impl Fn(f64, f64) -> f64) -> Tensor {
    Tensor::from_fn(&[3, 5], |i| f(x[0].data[(i[0] * 5 + i[1]) as usize], x[1].data[i[1] as usize]))
}

fn at(x: &Tensor, index: &[i64]) -> f64 {
    x.data[index.iter().zip(&x.shape).fold(0, |at, (i, size)| at * size + i) as usize]
}

/// `2/√π ∫ e^(-t²)` by Simpson's rule.
fn erf(x: f64) -> f64 {
    let (steps, h) = (400, x / 400.0);
    let weight = |k: i32| if k == 0 || k == steps { 1.0 } else { f64::from(2 + 2 * (k % 2)) };
    (0..=steps).map(|k| weight(k) * (-(f64::from(k) * h).powi(2)).exp()).sum::<f64>() * h / 3.0 * FRAC_2_SQRT_PI
}

#[test]
fn every_operation_of_one_operand() {
    for op in Un::ALL {
        let formula: fn(f64) -> f64 = match op {
            Un::Neg => |x| 0.0 - x,
            Un::Not => |x| if x < 0.0 { 2.0 * x } else { x },
            Un::Nan => |x| x,
            Un::Abs => |x| if x < 0.0 { -x } else { x },
            Un::Exp => |x| 1.0 / (-x).exp(),
            Un::Log => |x| x.log2() / std::f64::consts::LOG2_E,
            Un::Log1p => |x| (1.0 + x).ln(),
            Un::Sqrt => |x| x.powf(0.5),
            Un::Rsqrt => |x| x.powf(-0.5),
            Un::Recip => |x| x.powi(-1),
            Un::Sin => |x| (PI / 2.0 - x).cos(),
            Un::Cos => |x| (PI / 2.0 - x).sin(),
            Un::Tan => |x| x.sin() / x.cos(),
            Un::Erf => erf,
            Un::Floor => |x| x - x.rem_euclid(1.0),
            Un::Ceil => |x| x + (-x).rem_euclid(1.0),
            Un::Round => |x| (x + 0.5) - (x + 0.5).rem_euclid(1.0),
            Un::Sign => |x| x / x.abs(),
            Un::Relu => |x| (x + x.abs()) / 2.0,
            Un::Sigmoid => |x| x.exp() / (1.0 + x.exp()),
            Un::Tanh => |x| x.sinh() / x.cosh(),
            Un::Softplus => |x| (1.0 + x.exp()).ln(),
        };
        let build = |g: &mut Graph, x: &[ValueId]| {
            if *op == Un::Nan {
                let (hit, zero) = (g.un(*op, x[0]), g.constant(0.0));
                return g.select(hit, zero, x[0]);
            }
            if *op != Un::Not {
                return g.un(*op, x[0]);
            }
            let (zero, twice) = (g.constant(0.0), g.with_const(Bin::Mul, x[0], 2.0));
            let negative = g.bin(Bin::Lt, x[0], zero);
            let other = g.un(Un::Not, negative);
            g.select(other, x[0], twice)
        };
        let needs_positive = matches!(op, Un::Log | Un::Log1p | Un::Sqrt | Un::Rsqrt | Un::Recip);
        let before: Build<'_> = if needs_positive { &positive } else { &plain };
        check(&[&[3, 5]], before, &build, &|x| map(&x[0], formula));
    }
}

#[test]
fn every_operation_of_two_operands_with_one_stretched() {
    // Random numbers are made of words, and have a test of their own.
    for op in Bin::ALL.iter().filter(|op| !matches!(op, Bin::Hash | Bin::Normal)) {
        let truth = |holds: bool, x: f64, y: f64| if holds { x } else { 3.0 * y };
        let formula: &dyn Fn(f64, f64) -> f64 = match op {
            Bin::Add => &|x, y| y + x,
            Bin::Sub => &|x, y| -(y - x),
            Bin::Mul => &|x, y| y * x,
            Bin::Div => &|x, y| x * y.recip(),
            Bin::Max => &|x, y| if x < y { y } else { x },
            Bin::Min => &|x, y| if x < y { x } else { y },
            Bin::Rem => &|x, y| x - (x / y).trunc() * y,
            Bin::Pow => &|x, y| (y * x.ln()).exp(),
            Bin::Lt => &|x, y| truth(x < y, x, y),
            Bin::Le => &|x, y| truth(x <= y, x, y),
            Bin::Eq => &|x, y| truth(x == y, x, y),
            Bin::And => &|x, y| truth(x < y && x < 0.2, x, y),
            Bin::Or => &|x, y| truth(x < y || x < 0.2, x, y),
            Bin::Hash | Bin::Normal => continue,
        };
        let build = |g: &mut Graph, x: &[ValueId]| {
            let condition = if op.is_comparison() {
                g.bin(*op, x[0], x[1])
            } else if op.is_logical() {
                let limit = g.constant(0.2);
                let (less, low) = (g.bin(Bin::Lt, x[0], x[1]), g.bin(Bin::Lt, x[0], limit));
                g.bin(*op, less, low)
            } else {
                return g.bin(*op, x[0], x[1]);
            };
            let thrice = g.with_const(Bin::Mul, x[1], 3.0);
            g.select(condition, x[0], thrice)
        };
        let before: Build<'_> = if matches!(op, Bin::Div | Bin::Rem | Bin::Pow) { &positive } else { &plain };
        check(&[&[3, 5], &[5]], before, &build, &|x| zip(x, formula));
    }
}

#[test]
fn an_operand_that_is_given_twice_gets_both_parts() {
    check(&[&[3, 5]], &plain, &|g, x| g.mul(x[0], x[0]), &|x| map(&x[0], |x| x * x));
    let once = |g: &mut Graph, x: &[ValueId]| g.emit(Op::Instr(Instr::Bin(Bin::Div, 1, 1)), &[x[0], x[0]]);
    check_value(&[&[3, 5]], &positive, &once, &|x| map(&x[0], |_| 1.0));
    let same = |g: &mut Graph, x: &[ValueId]| g.emit(Op::Instr(Instr::Bin(Bin::Pow, 0, 0)), &[x[0]]);
    check(&[&[3, 5]], &positive, &same, &|x| map(&x[0], |x| (x * x.ln()).exp()));
}

#[test]
fn instructions_without_a_function() {
    let select = |g: &mut Graph, x: &[ValueId]| {
        let condition = g.bin(Bin::Lt, x[0], x[1]);
        g.select(condition, x[2], x[1])
    };
    let formula = |x: &[Tensor]| {
        Tensor::from_fn(&[3, 5], |i| {
            let (a, b, c) = (at(&x[0], i), at(&x[1], &i[1..]), at(&x[2], &[i[0], 0]));
            if a < b { c } else { b }
        })
    };
    check(&[&[3, 5], &[5], &[3, 1]], &plain, &select, &formula);
    check(&[&[3, 5]], &plain, &|g, x| g.cast(DType::F32, x[0]), &|x| x[0].clone());
    let indexed = |g: &mut Graph, x: &[ValueId]| {
        let (column, row) = (g.index(0, x[0]), g.index(1, x[0]));
        let ten = g.emit(Op::Instr(Instr::Const(meganeura_shaders::prog::Const::Uint(10))), &[]);
        let row = g.mul(row, ten);
        let place = g.add(column, row);
        let place = g.cast(DType::F32, place);
        g.mul(place, x[0])
    };
    let formula = |x: &[Tensor]| Tensor::from_fn(&[3, 5], |i| (10 * i[0] + i[1]) as f64 * at(&x[0], i));
    check(&[&[3, 5]], &plain, &indexed, &formula);
    let fold = |x: &Tensor, first: f64, f: fn(f64, f64) -> f64| {
        Tensor::from_fn(&[3, 1], |i| (0..5).map(|k| at(x, &[i[0], k])).fold(first, f))
    };
    check(&[&[3, 5]], &plain, &|g, x| g.row_sum(x[0]), &|x| fold(&x[0], 0.0, |a, b| a + b));
    check(&[&[3, 5]], &plain, &|g, x| g.row_max(x[0]), &|x| fold(&x[0], f64::MIN, f64::max));
}

#[test]
fn ties_of_a_row_maximum_go_to_the_first_index() {
    let mut g = Graph::new(Symbols::default());
    let x = trained(&mut g, "x", &[], &dims(&[3, 5]));
    let max = g.row_max(x);
    let w = g.with_const(Bin::Mul, max, 3.0);
    let loss = g.sum_all(w);
    result(&mut g, "loss", loss);
    let trained = training(&g, loss, Policy::default());
    let rows = [[1.0, 4.0, 2.0, 4.0, 4.0], [-1.0, -1.0, -2.0, -1.0, -3.0], [f64::NEG_INFINITY; 5]];
    let x = Tensor { shape: vec![3, 5], data: rows.concat() };
    let found = interp::graph::run(&trained, &bind(&g, &[]), &[x]);
    // No finite maximum, nothing to give to.
    let expected = [[0.0, 3.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0, 0.0], [0.0; 5]];
    assert_eq!(found[1].data, expected.concat());
}

#[test]
fn structural_operations() {
    let reshape = |g: &mut Graph, x: &[ValueId]| g.reshape(x[0], dims(&[5, 6]));
    check(&[&[2, 3, 5]], &plain, &reshape, &|x| Tensor { shape: vec![5, 6], data: x[0].data.clone() });
    let broadcast = |g: &mut Graph, x: &[ValueId]| g.broadcast(x[0], &dims(&[2, 3, 5]));
    check(&[&[3, 1]], &plain, &broadcast, &|x| Tensor::from_fn(&[2, 3, 5], |i| at(&x[0], &[i[1], 0])));
    let transpose = |g: &mut Graph, x: &[ValueId]| g.transpose(x[0], &[2, 0, 1]);
    check(&[&[2, 3, 5]], &plain, &transpose, &|x| Tensor::from_fn(&[5, 2, 3], |i| at(&x[0], &[i[1], i[2], i[0]])));
    for axis in 0..3u8 {
        let mut shape = [3, 3, 3];
        let slice = Slice { axis, from: Dim::from(1), to: Dim::from(3) };
        shape[usize::from(axis)] = 2;
        let formula = |x: &[Tensor]| {
            Tensor::from_fn(&shape, |i| {
                let mut i = i.to_vec();
                i[usize::from(axis)] += 1;
                at(&x[0], &i)
            })
        };
        check(&[&[3, 3, 3]], &plain, &|g, x| g.emit(Op::Slice(slice.clone()), &[x[0]]), &formula);
        let pad = Pad { axis, before: Dim::from(2), total: Dim::from(7) };
        shape[usize::from(axis)] = 7;
        let formula = |x: &[Tensor]| {
            Tensor::from_fn(&shape, |i| {
                let mut i = i.to_vec();
                i[usize::from(axis)] -= 2;
                if (0..3).contains(&i[usize::from(axis)]) { at(&x[0], &i) } else { 0.0 }
            })
        };
        check(&[&[3, 3, 3]], &plain, &|g, x| g.emit(Op::Pad(pad.clone()), &[x[0]]), &formula);
    }
    let sum = |g: &mut Graph, x: &[ValueId]| g.emit(Op::Sum(Sum { axes: vec![0, 2] }), &[x[0]]);
    let formula =
        |x: &[Tensor]| Tensor::from_fn(&[1, 3, 1], |i| (0..10).map(|k| at(&x[0], &[k / 5, i[1], k % 5])).sum());
    check(&[&[2, 3, 5]], &plain, &sum, &formula);
}

#[test]
fn contractions_in_every_order_of_labels() {
    // Batches, transposes, an outer product, a weighted sum of all, an axis that only the left side has.
    let specs: [(&str, &[i64], &[i64]); 9] = [
        ("mk,kn->mn", &[3, 5], &[5, 2]),
        ("km,nk->nm", &[5, 3], &[2, 5]),
        ("bmk,bkn->bmn", &[2, 3, 1], &[2, 1, 7]),
        ("bhmk,bhnk->bmhn", &[1, 2, 3, 5], &[1, 2, 4, 5]),
        ("m,n->mn", &[3], &[4]),
        ("mk,mk->", &[3, 5], &[3, 5]),
        ("mk,mk->m", &[3, 5], &[3, 5]),
        ("mrk,kn->mn", &[3, 2, 5], &[5, 2]),
        ("bmk,kn->nbm", &[2, 3, 5], &[5, 7]),
    ];
    for (text, a, b) in specs {
        let spec = Spec::parse(text).unwrap();
        let build = |g: &mut Graph, x: &[ValueId]| g.emit(Op::Contract(Contract { spec: spec.clone() }), x);
        let formula = |x: &[Tensor]| {
            let sizes = spec.dims(&x[0].shape, &x[1].shape).unwrap();
            let out: Vec<i64> = spec.out.iter().map(|label| sizes[usize::from(*label)]).collect();
            let mut sums = Tensor::from_fn(&out, |_| 0.0);
            let all = Tensor::from_fn(&sizes, |_| 0.0);
            let mut index = vec![0; sizes.len()];
            for mut flat in 0..all.data.len() as i64 {
                for (i, size) in index.iter_mut().zip(&sizes).rev() {
                    (*i, flat) = (flat % size, flat / size);
                }
                let of = |labels: &[u8]| labels.iter().map(|label| index[usize::from(*label)]).collect::<Vec<_>>();
                let place = of(&spec.out).iter().zip(&out).fold(0, |at, (i, size)| at * size + i);
                sums.data[place as usize] += at(&x[0], &of(&spec.a)) * at(&x[1], &of(&spec.b));
            }
            sums
        };
        check(&[a, b], &plain, &build, &formula);
    }
}

/// No kernel walks along an axis that the left side lacks, so shapes do not promise it.
#[test]
fn what_only_the_right_side_has_is_never_summed() {
    let symbols = Symbols::default();
    let infer = |text: &str, b: &[i64]| {
        let spec = Spec::parse(text).unwrap();
        let (a, b) = (dims(&[3, 5]), dims(b));
        let whole = kernel::Contract::plain(spec.clone()).shapes(&[&a, &b]).map(|shapes| shapes.epi);
        let inferred = Op::Contract(Contract { spec }).infer(&[&Type::float(a), &Type::float(b)], &symbols);
        assert_eq!(inferred.as_ref().ok().map(|ty| &ty.shape), whole.as_ref(), "{text}");
        inferred.map_err(|misfit| misfit.0)
    };
    for (text, b) in [("mk,kn->m", &[5, 2][..]), ("mk,nk->m", &[2, 5]), ("mk,n->mk", &[7]), ("mk,kn->", &[5, 2])] {
        let message = infer(text, b).unwrap_err();
        assert!(message.contains("does not take f32[3, 5], f32["), "{message}");
    }
    assert_eq!(infer("mk,kn->mn", &[5, 2]).unwrap().shape, dims(&[3, 2]));
    assert_eq!(infer("mk,k->", &[5]).unwrap().shape, dims(&[]), "what only the left side has may be");
}

#[test]
fn a_program_has_the_derivative_of_its_instructions() {
    let mut link = Linker::default();
    let (x, gain) = (link.leaf(Leaf::Arg(0)), link.leaf(Leaf::Arg(1)));
    let square = link.mul(x, x);
    let sum = link.push(Instr::RowSum(square));
    let one = link.constant(1.0);
    let sum = link.bin(Bin::Add, sum, one);
    let scale = link.un(Un::Rsqrt, sum);
    let scaled = link.mul(x, scale);
    let root = link.mul(scaled, gain);
    let prog = link.finish(&[root], &[Leaf::Arg(0), Leaf::Arg(1)]).0.remove(0);
    let formula = |x: &[Tensor]| {
        Tensor::from_fn(&[3, 5], |i| {
            let sum: f64 = (0..5).map(|k| at(&x[0], &[i[0], k]).powi(2)).sum();
            at(&x[0], i) / (1.0 + sum).sqrt() * x[1].data[i[1] as usize]
        })
    };
    check(&[&[3, 5], &[5]], &plain, &|g, x| g.emit(Op::Rows(prog.clone()), x), &formula);
    let kernel = |g: &mut Graph, x: &[ValueId]| g.emit(Op::Kernel(Kernel::Rows(prog.clone())), x);
    check_value(&[&[3, 5], &[5]], &plain, &kernel, &formula);
    let (g, loss) = middle(&[&[3, 5], &[5]], &plain, &kernel);
    let absent = crate::autodiff::differentiate(&g, loss, Policy::default()).unwrap_err();
    assert!(absent[0].reason.contains("no derivative"), "{absent:?}");
}

#[test]
fn integers_wrap_in_sums() {
    let mut g = Graph::new(Symbols::default());
    let x = g.argument(0, "x", Type { shape: dims(&[3, 1]), dtype: DType::U32 });
    let sum = g.emit(Op::Sum(Sum { axes: vec![0] }), &[x]);
    result(&mut g, "sum", sum);
    let x = Tensor { shape: vec![3, 1], data: vec![4294967295.0, 4294967295.0, 5.0] };
    assert_eq!(interp::graph::run(&g, &bind(&g, &[]), &[x])[0].data, [3.0]);
}
