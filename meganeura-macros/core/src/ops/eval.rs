//! The value of an operation in f64.

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::{DType, Prog};
use meganeura_shaders::reference::{Tensor, eval_prog, eval_typed};

use super::Op;

impl Op {
    /// The results of an operation other than `Read`, `Call` and `Repeat`, which need the graph around them: none of
    /// those. Integers wrap as in 32 bits.
    pub fn eval(&self, inputs: &[&Tensor], dtypes: &[DType], env: &Env) -> Vec<Tensor> {
        if let Some(mut result) = self.eval_structural(inputs, env) {
            result.data.iter_mut().for_each(|x| *x = wrapped(dtypes.first().copied(), *x));
            return vec![result];
        }
        let args: Vec<Tensor> = inputs.iter().map(|tensor| (*tensor).clone()).collect();
        match self {
            Op::Instr(instr) => vec![eval_prog(&Prog::of(instr), &args, dtypes, env)],
            Op::Rows(prog) => vec![eval_prog(prog, &args, dtypes, env)],
            Op::Kernel(kernel) => vec![eval_typed(kernel, &args, dtypes, env)],
            Op::Launch(kernels) => {
                let mut from = 0;
                let mut results = vec![];
                for kernel in kernels {
                    let own = from..from + kernel.arity();
                    from = own.end;
                    results.push(eval_typed(kernel, &args[own.clone()], &dtypes[own], env));
                }
                results
            }
            _ => vec![],
        }
    }
}

fn wrapped(dtype: Option<DType>, value: f64) -> f64 {
    match dtype {
        Some(DType::U32) => f64::from(value as i128 as u32),
        Some(DType::I32) => f64::from(value as i128 as i32),
        _ => value,
    }
}

/// The element at an index; an axis of size 1 has it everywhere, and leading axes may be missing.
pub(super) fn element(tensor: &Tensor, index: &[i64]) -> f64 {
    let own = &index[index.len() - tensor.shape.len()..];
    let place = |at: i64, (i, size): (&i64, &i64)| at * size + if *size == 1 { 0 } else { *i };
    tensor.data[own.iter().zip(&tensor.shape).fold(0, place) as usize]
}
