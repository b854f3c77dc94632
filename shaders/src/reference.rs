//! What kernels mean: a plain evaluation in f64, which every replayer is tested against.
//!
//! In come a kernel, its arguments (dense, row-major) and the values of the symbols; out comes the dense result. Where
//! the types of the arguments are given, integers wrap and divide as in 32 bits. Nothing here is meant to be fast.

use crate::dim::{Env, broadcast};
use crate::kernel::{Contract, Copy, Kernel, Scan, Term};
use crate::pointwise::Bin;
use crate::prog::{DType, Instr, Prog, cast};

/// A dense row-major array of numbers; truth is 1 and 0.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Sizes, outermost first.
    pub shape: Vec<i64>,
    /// The elements.
    pub data: Vec<f64>,
}

impl Tensor {
    /// A tensor with elements computed from their indices.
    pub fn from_fn(shape: &[i64], mut f: impl FnMut(&[i64]) -> f64) -> Tensor {
        let mut data = vec![];
        each_index(shape, |index| data.push(f(index)));
        Tensor { shape: shape.to_vec(), data }
    }

    /// A tensor without axes.
    pub fn scalar(value: f64) -> Tensor {
        Tensor { shape: vec![], data: vec![value] }
    }

    /// Distances between neighbours along the axes of `shape`, 0 where this stretches.
    fn strides_in(&self, shape: &[i64]) -> Vec<usize> {
        let mut strides = vec![0; shape.len()];
        let mut step = 1;
        for (stride, size) in strides.iter_mut().rev().zip(self.shape.iter().rev()) {
            *stride = if *size == 1 { 0 } else { step };
            step *= *size as usize;
        }
        strides
    }
}

/// Every index of a shape in row-major order; once with no index at all for a scalar.
fn each_index(shape: &[i64], mut f: impl FnMut(&[i64])) {
    if shape.iter().any(|size| *size <= 0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        f(&index);
        let Some(axis) = (0..shape.len()).rev().find(|axis| index[*axis] + 1 < shape[*axis]) else { return };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn offset(index: &[i64], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(i, stride)| *i as usize * stride).sum()
}

/// The result of a kernel over f32 arguments; their shapes must fit. A copy gives its iteration space.
pub fn eval(kernel: &Kernel, args: &[Tensor], env: &Env) -> Tensor {
    eval_typed(kernel, args, &[], env)
}

/// The same for arguments of the given types.
pub fn eval_typed(kernel: &Kernel, args: &[Tensor], dtypes: &[DType], env: &Env) -> Tensor {
    match kernel {
        Kernel::Rows(prog) => eval_prog(prog, args, dtypes, env),
        Kernel::ColumnSum(prog) => column_sum(&eval_prog(prog, args, dtypes, env)),
        Kernel::Contract(contract) => eval_contract(contract, args, dtypes, env),
        Kernel::Copy(copy) => eval_copy(copy, &args[0], env),
        Kernel::Gather => gather(&args[0], &args[1]),
        Kernel::ScatterAdd(count) => scatter_add(&args[0], &args[1], count.eval(env), dtypes.first().copied()),
        Kernel::Scan(scan) => eval_scan(*scan, &args[0], dtypes.first().copied()),
        Kernel::Concat(_) => concat(args),
    }
}

/// The id of an element, or the last index there is.
fn id(ids: &Tensor, strides: &[usize], index: &[i64], count: i64) -> i64 {
    (ids.data[offset(index, strides)] as i64).min(count - 1)
}

fn gather(x: &Tensor, ids: &Tensor) -> Tensor {
    let shape = [x.shape[0], ids.shape[1], x.shape[2]];
    let strides = ids.strides_in(&shape);
    let own = x.strides_in(&x.shape);
    Tensor::from_fn(&shape, |index| x.data[offset(&[index[0], id(ids, &strides, index, x.shape[1]), index[2]], &own)])
}

fn scatter_add(values: &Tensor, ids: &Tensor, count: i64, dtype: Option<DType>) -> Tensor {
    let mut sums = Tensor::from_fn(&[values.shape[0], count, values.shape[2]], |_| 0.0);
    let (strides, own) = (ids.strides_in(&values.shape), sums.strides_in(&sums.shape));
    let mut element = 0;
    each_index(&values.shape, |index| {
        let sum = &mut sums.data[offset(&[index[0], id(ids, &strides, index, count), index[2]], &own)];
        *sum = wrapped(dtype, *sum + values.data[element]);
        element += 1;
    });
    sums
}

fn eval_scan(scan: Scan, x: &Tensor, dtype: Option<DType>) -> Tensor {
    let length = x.shape.last().map_or(1, |last| *last as usize);
    let mut result = x.clone();
    for row in result.data.chunks_mut(length.max(1)) {
        let mut total = if scan.product { 1.0 } else { 0.0 };
        for step in 0..length {
            let at = if scan.reverse { length - 1 - step } else { step };
            let next = binary(if scan.product { Bin::Mul } else { Bin::Add }, dtype, total, row[at]);
            row[at] = if scan.exclusive { total } else { next };
            total = next;
        }
    }
    result
}

fn concat(parts: &[Tensor]) -> Tensor {
    let (outer, inner) = (parts[0].shape[0], parts[0].shape[2]);
    let mut data = vec![];
    for o in 0..outer as usize {
        for part in parts {
            let row = (part.shape[1] * inner) as usize;
            data.extend_from_slice(&part.data[o * row..(o + 1) * row]);
        }
    }
    Tensor { shape: vec![outer, parts.iter().map(|part| part.shape[1]).sum(), inner], data }
}

/// A 32-bit result of arithmetic whose exact value is `value`.
fn wrapped(dtype: Option<DType>, value: f64) -> f64 {
    match dtype {
        Some(DType::U32) => f64::from(value.trunc() as i128 as u32),
        Some(DType::I32) => f64::from(value.trunc() as i128 as i32),
        _ => value,
    }
}

fn binary(op: Bin, dtype: Option<DType>, x: f64, y: f64) -> f64 {
    let by_word = |dtype: DType, x: u32, y: u32| op.on_words(dtype, x, y);
    match dtype {
        Some(DType::U32) => by_word(DType::U32, x as u32, y as u32).map_or(f64::NAN, f64::from),
        Some(DType::I32) => {
            let word = by_word(DType::I32, x as i32 as u32, y as i32 as u32);
            word.map_or(f64::NAN, |word| f64::from(word as i32))
        }
        _ => op.eval(x, y),
    }
}

/// The result of a program; without types every argument counts as f32.
pub fn eval_prog(prog: &Prog, args: &[Tensor], dtypes: &[DType], env: &Env) -> Tensor {
    let mut types: Vec<Option<DType>> = vec![];
    let mut values: Vec<Tensor> = vec![];
    for instr in prog.code.iter() {
        let of = |reg: u8| &values[usize::from(reg)];
        let dtype = match instr {
            Instr::In(k) => dtypes.get(usize::from(*k)).copied(),
            other if other.operands().all(|r| types[usize::from(r)].is_some()) => {
                other.dtype(|r| types[usize::from(r)].unwrap_or(DType::F32))
            }
            _ => None,
        };
        let value = match instr {
            Instr::In(k) => args[usize::from(*k)].clone(),
            Instr::Const(value) => Tensor::scalar(value.value()),
            Instr::Extent(dim) => Tensor::scalar(dim.eval(env) as f64),
            Instr::Un(op, a) => map(&[of(*a)], |x| wrapped(dtype, op.eval(x[0]))),
            Instr::Bin(op, a, b) => map(&[of(*a), of(*b)], |x| binary(*op, dtype, x[0], x[1])),
            Instr::Select(c, a, b) => map(&[of(*c), of(*a), of(*b)], |x| if x[0] != 0.0 { x[1] } else { x[2] }),
            Instr::Cast(to, a) => {
                let integral = |dtype: DType| matches!(dtype, DType::U32 | DType::I32);
                match types[usize::from(*a)] {
                    // Between integers the bits stay.
                    Some(from) if integral(from) && integral(*to) => map(&[of(*a)], |x| wrapped(Some(*to), x[0])),
                    _ => map(&[of(*a)], |x| cast(*to, x[0])),
                }
            }
            Instr::RowSum(a) => reduce_rows(of(*a), 0.0, |x, y| wrapped(dtype, x + y)),
            Instr::RowMax(a) => {
                let least = match dtype {
                    Some(DType::U32) => 0.0,
                    Some(DType::I32) => f64::from(i32::MIN),
                    _ => f64::from(f32::MIN),
                };
                reduce_rows(of(*a), least, f64::max)
            }
            Instr::Index(axis, a) => {
                let shape = of(*a).shape.clone();
                let axis = shape.len().checked_sub(1 + usize::from(*axis));
                Tensor::from_fn(&shape, |index| axis.map_or(0.0, |axis| index[axis] as f64))
            }
        };
        types.push(dtype);
        values.push(value);
    }
    values.pop().unwrap_or_else(|| Tensor::scalar(f64::NAN))
}

fn map(operands: &[&Tensor], f: impl Fn([f64; 3]) -> f64) -> Tensor {
    let shape = operands.iter().fold(vec![], |shape, operand| broadcast(&shape, &operand.shape).unwrap_or_default());
    let strides: Vec<Vec<usize>> = operands.iter().map(|operand| operand.strides_in(&shape)).collect();
    Tensor::from_fn(&shape, |index| {
        let mut x = [0.0; 3];
        for ((x, operand), strides) in x.iter_mut().zip(operands).zip(&strides) {
            *x = operand.data[offset(index, strides)];
        }
        f(x)
    })
}

fn reduce_rows(tensor: &Tensor, first: f64, f: impl Fn(f64, f64) -> f64) -> Tensor {
    let mut shape = tensor.shape.clone();
    let length = shape.last().map_or(1, |last| *last as usize);
    if let Some(last) = shape.last_mut() {
        *last = 1;
    }
    let rows = shape.iter().product::<i64>() as usize;
    let row = |row: usize| tensor.data[row * length..(row + 1) * length].iter().fold(first, |x, y| f(x, *y));
    Tensor { shape, data: (0..rows).map(row).collect() }
}

fn column_sum(tensor: &Tensor) -> Tensor {
    let columns = tensor.shape.last().map_or(1, |last| *last as usize);
    let mut data = vec![0.0; columns];
    for (k, value) in tensor.data.iter().enumerate() {
        data[k % columns] += value;
    }
    Tensor { shape: vec![columns as i64], data }
}

fn eval_contract(contract: &Contract, args: &[Tensor], dtypes: &[DType], env: &Env) -> Tensor {
    let types: Vec<DType> = (0..args.len()).map(|k| dtypes.get(k).copied().unwrap_or(DType::F32)).collect();
    let ((terms, extras), (term_types, extra_types)) = (contract.parts(args), contract.parts(&types));
    let (mut accumulators, mut stats) = (vec![], vec![]);
    for ((term, (a_args, b_args)), (a_types, b_types)) in contract.terms.iter().zip(terms).zip(term_types) {
        let (a, b) = (eval_prog(&term.a, a_args, a_types, env), eval_prog(&term.b, b_args, b_types, env));
        accumulators.push(product(term, &a, &b));
        if let Some(stat) = &term.stat {
            let mut value = eval_prog(stat, a_args, a_types, env);
            value.shape.extend(vec![1; term.spec.columns_beyond_one()]);
            stats.push(value);
        }
    }
    let seeds = accumulators.len() + stats.len();
    let inputs: Vec<Tensor> = accumulators.into_iter().chain(stats).chain(extras.iter().cloned()).collect();
    let types = [vec![DType::F32; seeds], extra_types.to_vec()].concat();
    eval_prog(&contract.epi, &inputs, &types, env)
}

/// `out[..] = Σ a[..] · b[..]` over the labels that the result lacks.
fn product(term: &Term, a: &Tensor, b: &Tensor) -> Tensor {
    let spec = &term.spec;
    let dims = spec.dims(&a.shape, &b.shape).unwrap_or_default();
    let contracted: Vec<u8> = (0..dims.len() as u8).filter(|label| !spec.out.contains(label)).collect();
    let by_label = |labels: &[u8], tensor: &Tensor| {
        let mut strides = vec![0; dims.len()];
        for (label, stride) in labels.iter().zip(tensor.strides_in(&tensor.shape)) {
            strides[usize::from(*label)] += stride;
        }
        strides
    };
    let (a_strides, b_strides) = (by_label(&spec.a, a), by_label(&spec.b, b));
    let pick = |strides: &[usize], labels: &[u8]| -> Vec<usize> {
        labels.iter().map(|label| strides[usize::from(*label)]).collect()
    };
    let sizes = |labels: &[u8]| -> Vec<i64> { labels.iter().map(|label| dims[usize::from(*label)]).collect() };
    let (a_out, b_out) = (pick(&a_strides, &spec.out), pick(&b_strides, &spec.out));
    let (a_sum, b_sum) = (pick(&a_strides, &contracted), pick(&b_strides, &contracted));
    let mut steps = vec![];
    each_index(&sizes(&contracted), |index| steps.push((offset(index, &a_sum), offset(index, &b_sum))));
    Tensor::from_fn(&sizes(&spec.out), |index| {
        let (a_at, b_at) = (offset(index, &a_out), offset(index, &b_out));
        steps.iter().map(|(x, y)| a.data[a_at + x] * b.data[b_at + y]).sum()
    })
}

fn eval_copy(copy: &Copy, source: &Tensor, env: &Env) -> Tensor {
    let shape: Vec<i64> = copy.axes.iter().map(|axis| axis.extent.eval(env)).collect();
    let windows: Vec<Option<(i64, i64)>> = copy
        .axes
        .iter()
        .map(|axis| axis.window.as_ref().map(|(start, length)| (start.eval(env), length.eval(env))))
        .collect();
    let strides: Vec<i64> = copy.axes.iter().map(|axis| axis.source.eval(env)).collect();
    let from = copy.from.eval(env);
    Tensor::from_fn(&shape, |index| {
        let mut at = from;
        for ((index, window), stride) in index.iter().zip(&windows).zip(&strides) {
            let (start, length) = window.unwrap_or((0, i64::MAX));
            let inside = index - start;
            if !(0..length).contains(&inside) {
                return 0.0;
            }
            at += inside * stride;
        }
        source.data[at as usize]
    })
}

/// Where the elements of a copy's result go: for each, in order, its place in the target.
pub fn copy_targets(copy: &Copy, env: &Env) -> Vec<i64> {
    let shape: Vec<i64> = copy.axes.iter().map(|axis| axis.extent.eval(env)).collect();
    let strides: Vec<i64> = copy.axes.iter().map(|axis| axis.target.eval(env)).collect();
    let mut targets = vec![];
    each_index(&shape, |index| targets.push(index.iter().zip(&strides).map(|(i, stride)| i * stride).sum()));
    targets
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::dim::Dim;
    use crate::kernel::{CopyAxis, Spec};
    use crate::pointwise::Un;
    use crate::prog::{Leaf, Linker, finish_one};
    use std::sync::Arc;

    fn ramp(shape: &[i64]) -> Tensor {
        let mut next = 0.0;
        Tensor::from_fn(shape, |_| {
            next += 1.0;
            next
        })
    }

    #[test]
    fn a_row_program_broadcasts_and_reduces_the_last_axis() {
        let mut link = Linker::default();
        let (x, gain) = (link.leaf(Leaf::Arg(0)), link.leaf(Leaf::Arg(1)));
        let sum = link.push(Instr::RowSum(x));
        let scaled = link.mul(x, gain);
        let root = link.bin(Bin::Sub, scaled, sum);
        let prog = finish_one(link, root).0;
        let result = eval(&Kernel::Rows(prog), &[ramp(&[2, 3]), ramp(&[3])], &Env::default());
        assert_eq!(result, Tensor { shape: vec![2, 3], data: vec![-5.0, -2.0, 3.0, -11.0, -5.0, 3.0] });
    }

    #[test]
    fn an_index_counts_from_the_last_axis_and_is_0_where_the_operand_stretches() {
        for (axis, expected) in [(0u8, vec![0.0, 1.0, 2.0, 0.0, 1.0, 2.0]), (1, vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0])] {
            let prog = Prog::of(&Instr::Index(axis, 0));
            assert_eq!(eval(&Kernel::Rows(prog), &[ramp(&[2, 3])], &Env::default()).data, expected);
        }
    }

    #[test]
    fn integers_divide_and_wrap_as_in_32_bits() {
        let by = |op, x: f64, y: f64, dtype| {
            let args = [Tensor::scalar(x), Tensor::scalar(y)];
            eval_typed(&Kernel::Rows(Prog::of(&Instr::Bin(op, 0, 1))), &args, &[dtype; 2], &Env::default()).data[0]
        };
        assert_eq!(by(Bin::Div, -7.0, 2.0, DType::I32), -3.0);
        assert_eq!(by(Bin::Sub, 1.0, 2.0, DType::U32), 4294967295.0);
        assert_eq!(by(Bin::Mul, 4294967295.0, 4294967295.0, DType::U32), 1.0);
        assert_eq!(by(Bin::Mul, 65536.0, -32769.0, DType::I32), 2147418112.0);
        assert_eq!(by(Bin::Div, 7.0, 2.0, DType::F32), 3.5);
        for dtype in [DType::U32, DType::I32] {
            assert_eq!([by(Bin::Div, 7.0, 0.0, dtype), by(Bin::Rem, 7.0, 0.0, dtype)], [7.0, 0.0]);
        }
        let least = f64::from(i32::MIN);
        assert_eq!([Bin::Div, Bin::Rem].map(|op| by(op, least, -1.0, DType::I32)), [least, 0.0]);
    }

    #[test]
    fn a_contraction_sums_what_the_result_lacks_in_any_label_order() {
        let contract = Contract::plain(Spec::parse("bmk,bkn->nbm").unwrap());
        let (a, b) = (ramp(&[2, 2, 3]), ramp(&[2, 3, 1]));
        let result = eval(&Kernel::Contract(Arc::new(contract)), &[a, b], &Env::default());
        assert_eq!(result, Tensor { shape: vec![1, 2, 2], data: vec![14.0, 32.0, 122.0, 167.0] });
    }

    #[test]
    fn what_only_the_left_side_has_and_the_result_lacks_is_summed() {
        let contract = |spec| Kernel::Contract(Arc::new(Contract::plain(Spec::parse(spec).unwrap())));
        let args = [ramp(&[2, 3]), ramp(&[3, 2])];
        assert_eq!(eval(&contract("mk,kn->n"), &args, &Env::default()).data, [71.0, 92.0]);
    }

    #[test]
    fn a_statistic_scales_rows_behind_the_product() {
        let mut link = Linker::default();
        let x = link.leaf(Leaf::Arg(0));
        let square = link.mul(x, x);
        let sum = link.push(Instr::RowSum(square));
        let root = link.un(Un::Recip, sum);
        let stat = finish_one(link, root).0;
        let mut link = Linker::default();
        let (acc, scale) = (link.leaf(Leaf::Acc(0)), link.leaf(Leaf::Stat(0)));
        let root = link.mul(acc, scale);
        let epi = link.finish(&[root], &[Leaf::Acc(0), Leaf::Stat(0)]).0.remove(0);
        let mut contract = Contract { epi, ..Contract::plain(Spec::parse("mk,nk->mn").unwrap()) };
        contract.terms[0].stat = Some(stat);
        let args = [ramp(&[2, 2]), Tensor { shape: vec![1, 2], data: vec![10.0, 20.0] }];
        let result = eval(&Kernel::Contract(Arc::new(contract)), &args, &Env::default());
        assert_eq!(result, Tensor { shape: vec![2, 1], data: vec![50.0 / 5.0, 110.0 / 25.0] });
    }

    #[test]
    fn column_sums_keep_the_last_axis_and_are_0_over_no_rows() {
        let sum = Kernel::ColumnSum(Prog::identity());
        assert_eq!(eval(&sum, &[ramp(&[2, 2, 2])], &Env::default()).data, [16.0, 20.0]);
        assert_eq!(eval(&sum, &[ramp(&[0, 3])], &Env::default()).data, [0.0; 3]);
    }

    #[test]
    fn a_copy_pads_with_zeros_outside_its_window() {
        let axis = CopyAxis {
            extent: Dim::from(4),
            source: Dim::from(2),
            target: Dim::from(5),
            window: Some((Dim::from(1), Dim::from(2))),
        };
        let copy = Copy { axes: vec![axis], from: Dim::from(3) };
        let env = Env::default();
        assert_eq!(eval(&Kernel::Copy(copy.clone()), &[ramp(&[9])], &env).data, [0.0, 4.0, 6.0, 0.0]);
        assert_eq!(copy_targets(&copy, &env), [0, 5, 10, 15]);
    }
}
