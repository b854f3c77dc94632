//! The verifier of graphs: ids in range and backward-pointing first, then arity and types, so that later stages may
//! index freely and rely on every stated shape.

use super::{BlockId, Graph, Node, ROOT, Repeat, Type, ValueId};
use crate::ops::Op;

impl Graph {
    /// Whether the graph is whole; says what is not.
    pub fn verify(&self) -> Result<(), String> {
        if !self.open.is_empty() {
            return Err("a loop is still open".into());
        }
        self.verify_block(ROOT)?;
        let root = self.block(ROOT);
        let defined = |v: ValueId| root.nodes.iter().any(|id| self.node(*id).outputs.contains(&v));
        match self.outputs.iter().find(|output| !defined(output.value)) {
            Some(output) => Err(format!("output `{}` is not defined in the root block", output.name)),
            None => Ok(()),
        }
    }

    fn verify_block(&self, id: BlockId) -> Result<(), String> {
        let block = self.blocks.get(id.index()).ok_or("a block that does not exist")?;
        let mut known = vec![false; self.values.len()];
        let mark = |known: &mut Vec<bool>, v: &ValueId| known.get_mut(v.index()).map(|slot| *slot = true);
        block.args.iter().try_for_each(|v| mark(&mut known, v)).ok_or("an argument that does not exist")?;
        for node_id in &block.nodes {
            let node = self.nodes.get(node_id.index()).ok_or("a node that does not exist")?;
            let Node { op, inputs, outputs, origin, .. } = node;
            if let Some(unknown) = inputs.iter().find(|v| known.get(v.index()) != Some(&true)) {
                let (name, path) = (op.name(), &origin.path);
                return Err(format!("`{name}` ({path}) uses {unknown:?} before its definition or from another block"));
            }
            self.verify_node(node)?;
            outputs.iter().try_for_each(|v| mark(&mut known, v)).ok_or("an output that does not exist")?;
            for (k, v) in outputs.iter().enumerate() {
                if self.value(*v).def != Some((*node_id, k)) || self.value(*v).block != id {
                    return Err(format!("output {k} of `{}` does not know its definition", op.name()));
                }
            }
        }
        match block.results.iter().find(|v| known.get(v.index()) != Some(&true)) {
            Some(v) => Err(format!("result {v:?} is not known in its block")),
            None => Ok(()),
        }
    }

    fn verify_node(&self, node: &Node) -> Result<(), String> {
        let inputs: Vec<&Type> = node.inputs.iter().map(|v| self.ty(*v)).collect();
        let outputs: Vec<Type> = node.outputs.iter().map(|v| self.ty(*v).clone()).collect();
        let expected: Vec<Type> = match &node.op {
            Op::Read(store) => {
                vec![self.stores.get(store.index()).ok_or("a store that does not exist")?.ty.clone()]
            }
            Op::Repeat(repeat) => self.verify_repeat(repeat, &inputs)?,
            Op::Call(call) => {
                self.verify_block(call.body)?;
                self.verify_types(&node.op, &self.types(&self.block(call.body).args), &owned(&inputs))?;
                if let Some(evaluation) = call.evaluation {
                    self.verify_block(evaluation)?;
                    let block = self.block(evaluation);
                    self.verify_types(&node.op, &self.types(&block.args), &owned(&inputs))?;
                    self.verify_types(&node.op, &self.types(&block.results), &outputs[..1])?;
                }
                let results = self.types(&self.block(call.body).results);
                if let Some(derivative) = &call.derivative {
                    self.verify_block(derivative.block)?;
                    let block = self.block(derivative.block);
                    let args = [owned(&inputs), results.clone(), results[..1].to_vec()].concat();
                    self.verify_types(&node.op, &self.types(&block.args), &args)?;
                    let cotangents: Vec<Type> = derivative.inputs.iter().map(|k| inputs[*k].clone()).collect();
                    self.verify_types(&node.op, &self.types(&block.results), &cotangents)?;
                }
                results
            }
            Op::Launch(kernels) => {
                let mut rest = &inputs[..];
                let infer = |kernel: &meganeura_shaders::kernel::Kernel| {
                    let count = kernel.arity().min(rest.len());
                    let (own, others) = rest.split_at(count);
                    rest = others;
                    Op::Kernel(kernel.clone()).infer(own, &self.symbols)
                };
                kernels.iter().map(infer).collect::<Result<_, _>>().map_err(|misfit| misfit.0)?
            }
            op => vec![op.infer(&inputs, &self.symbols).map_err(|misfit| misfit.0)?],
        };
        self.verify_types(&node.op, &outputs, &expected)
    }

    fn verify_repeat(&self, repeat: &Repeat, inputs: &[&Type]) -> Result<Vec<Type>, String> {
        self.verify_block(repeat.body)?;
        let Repeat { count, carried, stacked, body, .. } = repeat;
        if self.symbols.bounds(count).0 < 1 {
            return Err(format!("a loop runs at least once, found {}", self.symbols.show(count)));
        }
        let (args, results) = (self.types(&self.block(*body).args), self.types(&self.block(*body).results));
        if args.len() != inputs.len() + 1 || results.len() < *carried || inputs.len() < carried + stacked {
            return Err("a loop with too few arguments or results".into());
        }
        for (k, (input, arg)) in inputs.iter().zip(&args[1..]).enumerate() {
            let is_stacked = (*carried..carried + stacked).contains(&k);
            let fits = if is_stacked { arg.stacked(count) == **input } else { arg == *input };
            if !fits || k < *carried && results[k] != *arg {
                return Err(format!("input {k} of a loop does not fit its body"));
            }
        }
        let output = |(k, ty): (usize, &Type)| if k < *carried { ty.clone() } else { ty.stacked(count) };
        Ok(results.iter().enumerate().map(output).collect())
    }

    fn types(&self, values: &[ValueId]) -> Vec<Type> {
        values.iter().map(|v| self.ty(*v).clone()).collect()
    }

    fn verify_types(&self, op: &Op, found: &[Type], expected: &[Type]) -> Result<(), String> {
        if found == expected {
            return Ok(());
        }
        let show = |types: &[Type]| crate::ops::show_types(&types.iter().collect::<Vec<_>>(), &self.symbols);
        Err(format!("`{}`: expected {}, found {}", op.name(), show(expected), show(found)))
    }
}

fn owned(types: &[&Type]) -> Vec<Type> {
    types.iter().map(|ty| (*ty).clone()).collect()
}
