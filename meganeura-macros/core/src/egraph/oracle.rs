//! The oracle of the rules, in f64: *every* node of *every* class of a saturated graph against the value of its class.

use std::collections::BTreeMap;

use egg::Id;
use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::{Tensor, eval_typed};

use super::lang::{Eg, Op, split};
use crate::ir::Type;
use crate::ops;

/// One tensor, or the members of a tuple.
pub(super) type Value = Vec<Tensor>;

/// The value of a node from those of its arguments.
fn evaluate(op: &Op, args: &[&Value], dtypes: &[DType], env: &Env) -> Value {
    let tensors: Vec<&Tensor> = args.iter().map(|v| &v[0]).collect();
    let owned = |args: &[&Tensor]| args.iter().map(|tensor| (*tensor).clone()).collect::<Vec<Tensor>>();
    let one = match op {
        Op::Leaf(id, _, ty) => leaf(*id, ty, env),
        Op::Reshape(shape) => Tensor { shape: env.shape(shape), data: tensors[0].data.clone() },
        Op::Transpose(perm) => {
            let transpose = ops::Op::Transpose(ops::Transpose { perm: perm.clone() });
            return transpose.eval(&tensors, dtypes, env);
        }
        Op::Opaque(op, _) => return op.eval(&tensors, dtypes, env),
        Op::Kernel(kernel) => eval_typed(kernel, &owned(&tensors), dtypes, env),
        Op::Tuple => return owned(&tensors),
        Op::Launch(kernels) => {
            let args: Vec<(&Tensor, DType)> = tensors.iter().copied().zip(dtypes.iter().copied()).collect();
            let member = |(kernel, args): (&_, &[(&Tensor, DType)])| {
                let (tensors, dtypes): (Vec<&Tensor>, Vec<DType>) = args.iter().copied().unzip();
                eval_typed(kernel, &owned(&tensors), &dtypes, env)
            };
            return split(kernels, &args).map(member).collect();
        }
        Op::Proj(i) => args[0][usize::from(*i)].clone(),
    };
    vec![one]
}

/// Made-up contents: reproducible, of both signs, small enough for exponentials.
pub(super) fn made_up(seed: u64, shape: &[i64], dtype: DType) -> Tensor {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Tensor::from_fn(shape, |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let unit = (state >> 33) as f64 / (1u64 << 31) as f64;
        match dtype {
            DType::F32 => (unit - 0.5) * 2.0,
            DType::U32 | DType::I32 => (unit * 3.0).floor(),
            DType::Bool => (unit * 2.0).floor(),
        }
    })
}

fn leaf(id: u32, ty: &Type, env: &Env) -> Tensor {
    made_up(u64::from(id), &env.shape(&ty.shape), ty.dtype)
}

/// The value of every class, from whichever node can be computed first.
pub(super) fn class_values(eg: &Eg, env: &Env) -> BTreeMap<Id, Value> {
    let mut values: BTreeMap<Id, Value> = BTreeMap::new();
    loop {
        let before = values.len();
        let open: Vec<_> = eg.classes().filter(|class| !values.contains_key(&class.id)).collect();
        for class in open {
            let ready = class.nodes.iter().find(|n| n.args.iter().all(|a| values.contains_key(&eg.find(*a))));
            if let Some(node) = ready {
                let value = node_value(eg, &node.op, &node.args, &values, env);
                values.insert(class.id, value);
            }
        }
        if values.len() == before {
            return values;
        }
    }
}

fn node_value(eg: &Eg, op: &Op, args: &[Id], values: &BTreeMap<Id, Value>, env: &Env) -> Value {
    let dtypes: Vec<DType> = match op {
        Op::Proj(_) => vec![],
        _ => args.iter().map(|a| eg[*a].data.dtype()).collect(),
    };
    let args: Vec<&Value> = args.iter().map(|a| &values[&eg.find(*a)]).collect();
    evaluate(op, &args, &dtypes, env)
}

/// Every node of every class against the value of its class; gives the number compared, or the first difference.
pub(super) fn check_classes(eg: &Eg, env: &Env) -> Result<usize, String> {
    let values = class_values(eg, env);
    let mut compared = 0;
    for class in eg.classes() {
        let expected = values.get(&class.id).ok_or(format!("class {} has no value", class.id))?;
        let shapes: Vec<Vec<i64>> = class.data.outs.iter().map(|ty| env.shape(&ty.shape)).collect();
        if !expected.iter().map(|tensor| &tensor.shape).eq(&shapes) {
            return Err(format!("class {} has another shape than its type says", class.id));
        }
        for node in &class.nodes {
            let found = node_value(eg, &node.op, &node.args, &values, env);
            if !close(expected, &found) {
                let first = &class.nodes[0].op;
                return Err(format!(
                    "class {}: {}\n {expected:.4?}\n {found:.4?}\n first node {first}",
                    class.id, node.op
                ));
            }
            compared += 1;
        }
    }
    Ok(compared)
}

/// Equal within what f64 rounding explains; a number that is none is equal to nothing.
pub(super) fn close(a: &Value, b: &Value) -> bool {
    let near = |x: &f64, y: &f64| (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs()));
    let same = |a: &Tensor, b: &Tensor| a.shape == b.shape && a.data.iter().zip(&b.data).all(|(x, y)| near(x, y));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}
