//! The meaning of a loop: the same graph with every iteration written out, for counts as an environment has them.

use std::collections::BTreeMap;

use meganeura_shaders::dim::{Dim, Env};
use meganeura_shaders::prog::{Const, DType, Instr};

use crate::ir::{BlockId, Graph, Node, ROOT, Repeat, ValueId};
use crate::ops::{Op, Pad, Slice};

type Map = BTreeMap<ValueId, ValueId>;

/// The graph without loops. Dimensions stay symbols; counts have the values of `env`.
pub fn unroll(graph: &Graph, env: &Env) -> Graph {
    let mut flat = graph.clone();
    flat.blocks[ROOT.index()].nodes.clear();
    let mut unroll = Unroll { graph, env, flat };
    let map = unroll.block(ROOT, Map::new());
    unroll.flat.outputs.iter_mut().for_each(|output| output.value = map[&output.value]);
    unroll.flat
}

struct Unroll<'a> {
    graph: &'a Graph,
    env: &'a Env,
    flat: Graph,
}

impl Unroll<'_> {
    fn block(&mut self, block: BlockId, mut map: Map) -> Map {
        for id in &self.graph.block(block).nodes {
            let Node { op, inputs, outputs, .. } = self.graph.node(*id);
            let inputs: Vec<ValueId> = inputs.iter().map(|v| map[v]).collect();
            let copies = match op {
                Op::Repeat(repeat) => self.repeat(repeat, &inputs),
                op => {
                    let types = outputs.iter().map(|v| self.graph.ty(*v).clone()).collect();
                    let node = self.flat.push(op.clone(), &inputs, types);
                    self.flat.node(node).outputs.clone()
                }
            };
            map.extend(outputs.iter().copied().zip(copies));
        }
        map
    }

    fn repeat(&mut self, repeat: &Repeat, inputs: &[ValueId]) -> Vec<ValueId> {
        let body = self.graph.block(repeat.body);
        let count = repeat.count.eval(self.env);
        let (init, outer) = inputs.split_at(repeat.carried);
        let mut carried = init.to_vec();
        let mut stacks: Vec<Option<ValueId>> = vec![None; body.results.len() - repeat.carried];
        for step in 0..count {
            let i = if repeat.reversed { count - 1 - step } else { step };
            let mut args = vec![self.flat.emit(Op::Instr(Instr::Const(Const::Uint(i as u32))), &[])];
            args.extend(&carried);
            for (k, source) in outer.iter().enumerate() {
                args.push(if k < repeat.stacked { self.row(*source, i) } else { *source });
            }
            let map = self.block(repeat.body, body.args.iter().copied().zip(args).collect());
            carried = body.results[..repeat.carried].iter().map(|v| map[v]).collect();
            for (stack, result) in stacks.iter_mut().zip(&body.results[repeat.carried..]) {
                let shape = [&[Dim::from(1)], &self.graph.shape(*result)[..]].concat();
                let row = self.flat.reshape(map[result], shape);
                let is_bool = self.flat.ty(row).dtype == DType::Bool;
                let row = if is_bool { self.flat.cast(DType::U32, row) } else { row };
                let pad = Pad { axis: 0, before: Dim::from(i), total: repeat.count.clone() };
                let part = self.flat.emit(Op::Pad(pad), &[row]);
                *stack = Some(stack.map_or(part, |sum| self.flat.add(sum, part)));
            }
        }
        let results = body.results[repeat.carried..].iter();
        let stacks = stacks.into_iter().flatten().zip(results).map(|(stack, result)| {
            let is_bool = self.graph.ty(*result).dtype == DType::Bool;
            if is_bool { self.flat.cast(DType::Bool, stack) } else { stack }
        });
        let stacks: Vec<ValueId> = stacks.collect();
        carried.into_iter().chain(stacks).collect()
    }

    fn row(&mut self, source: ValueId, i: i64) -> ValueId {
        let slice = Slice { axis: 0, from: Dim::from(i), to: Dim::from(i + 1) };
        let row = self.flat.emit(Op::Slice(slice), &[source]);
        let shape = self.flat.shape(row)[1..].to_vec();
        self.flat.reshape(row, shape)
    }
}
