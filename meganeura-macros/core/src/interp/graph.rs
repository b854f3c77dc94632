//! The meaning of a graph: evaluation in f64, loops as loops, composites by their bodies, kernels by their reference.
//!
//! In come the contents of the stores, dense and in the stores' own shapes; out come the values of the outputs.

use std::collections::BTreeMap;
use std::rc::Rc;

use meganeura_shaders::dim::Env;
use meganeura_shaders::prog::DType;
use meganeura_shaders::reference::Tensor;

use crate::ir::{BlockId, Graph, ROOT, Repeat, ValueId};
use crate::ops::Op;

type Values = BTreeMap<ValueId, Rc<Tensor>>;

/// The outputs in order, given the contents of all stores.
pub fn run(graph: &Graph, env: &Env, stores: &[Tensor]) -> Vec<Tensor> {
    let stores: Vec<Rc<Tensor>> = stores.iter().cloned().map(Rc::new).collect();
    let mut values = Values::new();
    Interpreter { graph, env, stores: &stores }.block(ROOT, &mut values);
    graph.outputs.iter().map(|output| (*values[&output.value]).clone()).collect()
}

struct Interpreter<'a> {
    graph: &'a Graph,
    env: &'a Env,
    stores: &'a [Rc<Tensor>],
}

impl Interpreter<'_> {
    /// Adds what the nodes of a block make; `values` has the block's arguments.
    fn block(&self, block: BlockId, values: &mut Values) {
        for id in &self.graph.block(block).nodes {
            let node = self.graph.node(*id);
            let inputs: Vec<Rc<Tensor>> = node.inputs.iter().map(|v| values[v].clone()).collect();
            let results: Vec<Rc<Tensor>> = match &node.op {
                Op::Read(store) => vec![self.stores[store.index()].clone()],
                Op::Repeat(repeat) => self.repeat(repeat, &inputs),
                Op::Call(call) => self.results(call.body, inputs),
                op => {
                    let inputs: Vec<&Tensor> = inputs.iter().map(|tensor| &**tensor).collect();
                    let dtypes: Vec<DType> = node.inputs.iter().map(|v| self.graph.ty(*v).dtype).collect();
                    op.eval(&inputs, &dtypes, self.env).into_iter().map(Rc::new).collect()
                }
            };
            values.extend(node.outputs.iter().copied().zip(results));
        }
    }

    /// The results of a block for its arguments.
    fn results(&self, block: BlockId, args: impl IntoIterator<Item = Rc<Tensor>>) -> Vec<Rc<Tensor>> {
        let mut values: Values = self.graph.block(block).args.iter().copied().zip(args).collect();
        self.block(block, &mut values);
        self.graph.block(block).results.iter().map(|v| values[v].clone()).collect()
    }

    fn repeat(&self, repeat: &Repeat, inputs: &[Rc<Tensor>]) -> Vec<Rc<Tensor>> {
        let count = repeat.count.eval(self.env) as usize;
        let (init, outer) = inputs.split_at(repeat.carried);
        let mut carried = init.to_vec();
        let mut stacks: Vec<Vec<Rc<Tensor>>> = vec![];
        for step in 0..count {
            let i = if repeat.reversed { count - 1 - step } else { step };
            let rows = outer.iter().enumerate().map(|(k, source)| match k < repeat.stacked {
                true => Rc::new(row(source, i)),
                false => source.clone(),
            });
            let index = Rc::new(Tensor::scalar(i as f64));
            let args = [index].into_iter().chain(carried.iter().cloned()).chain(rows);
            let mut results = self.results(repeat.body, args);
            let rows = results.split_off(repeat.carried);
            carried = results;
            stacks.resize(rows.len(), vec![]);
            stacks.iter_mut().zip(rows).for_each(|(stack, row)| stack.push(row));
        }
        let stack = |mut rows: Vec<Rc<Tensor>>| {
            if repeat.reversed {
                rows.reverse();
            }
            let shape = [&[count as i64], &rows[0].shape[..]].concat();
            Rc::new(Tensor { shape, data: rows.iter().flat_map(|row| row.data.iter().copied()).collect() })
        };
        carried.into_iter().chain(stacks.into_iter().map(stack)).collect()
    }
}

fn row(source: &Tensor, i: usize) -> Tensor {
    let shape = source.shape[1..].to_vec();
    let size = shape.iter().product::<i64>() as usize;
    Tensor { shape, data: source.data[i * size..(i + 1) * size].to_vec() }
}
