//! Takes apart what has no derivative of its own but consists of operations that have: composites without one, or
//! whose inner values the loss reads, and row programs. Only what a gradient flows through.

use std::collections::BTreeMap;

use meganeura_shaders::prog::{Instr, Prog};

use super::activity::active;
use crate::ir::{BlockId, Call, Graph, Node, NodeId, Open, Origin, ROOT, ValueId};
use crate::ops::Op;

type Map = BTreeMap<ValueId, ValueId>;

/// Takes apart in place; gives what the loss is now.
pub(super) fn expand(graph: &mut Graph, loss: ValueId) -> ValueId {
    let active = active(graph, loss);
    let around = graph.origin.clone();
    let map = expand_block(graph, ROOT, &|v| active.get(v.index()) == Some(&true));
    graph.origin = around;
    graph.outputs.iter_mut().for_each(|output| output.value = renamed(&map, output.value));
    renamed(&map, loss)
}

fn renamed(map: &Map, value: ValueId) -> ValueId {
    map.get(&value).copied().unwrap_or(value)
}

/// Gives the new names of the values of the block that are gone.
fn expand_block(graph: &mut Graph, block: BlockId, is_active: &dyn Fn(&ValueId) -> bool) -> Map {
    let around = std::mem::replace(&mut graph.open, vec![Open { body: block, repeat: None }]);
    let mut map = Map::new();
    for id in std::mem::take(&mut graph.blocks[block.index()].nodes) {
        let node = &mut graph.nodes[id.index()];
        node.inputs.iter_mut().for_each(|v| *v = renamed(&map, *v));
        match node.op.clone() {
            Op::Repeat(repeat) => {
                let inner = expand_block(graph, repeat.body, is_active);
                let results = &mut graph.blocks[repeat.body.index()].results;
                results.iter_mut().for_each(|v| *v = renamed(&inner, *v));
                graph.blocks[block.index()].nodes.push(id);
            }
            op => match parts_of(&op, &node.outputs, is_active) {
                Some(parts) => take_apart(graph, id, &parts, &mut map),
                None => graph.blocks[block.index()].nodes.push(id),
            },
        }
    }
    graph.open = around;
    map
}

enum Parts {
    Body(Call),
    Program(Prog),
}

/// What a node consists of, if it must be taken apart.
fn parts_of(op: &Op, outputs: &[ValueId], is_active: &dyn Fn(&ValueId) -> bool) -> Option<Parts> {
    match op {
        Op::Call(call) if call.derivative.is_none() && outputs.iter().any(is_active) => Some(Parts::Body(call.clone())),
        Op::Call(call) if outputs.iter().skip(1).any(is_active) => Some(Parts::Body(call.clone())),
        Op::Rows(prog) if outputs.iter().any(is_active) => Some(Parts::Program(prog.clone())),
        _ => None,
    }
}

/// Puts the parts in the node's place.
fn take_apart(graph: &mut Graph, id: NodeId, parts: &Parts, map: &mut Map) {
    let Node { inputs, outputs, origin, .. } = graph.node(id).clone();
    let results = match parts {
        Parts::Body(call) => {
            let what = if origin.what.is_empty() { call.name.clone() } else { origin.what.clone() };
            graph.origin = Origin { what, ..origin };
            inline_call(graph, call, &inputs)
        }
        Parts::Program(prog) => {
            graph.origin = origin;
            vec![inline_program(graph, prog, &inputs)]
        }
    };
    map.extend(outputs.into_iter().zip(results));
}

/// The body of a composite in the current block; composites in it are taken apart as well if they state no derivative.
fn inline_call(graph: &mut Graph, call: &Call, inputs: &[ValueId]) -> Vec<ValueId> {
    let body = graph.block(call.body).clone();
    let mut map: Map = body.args.into_iter().zip(inputs.iter().copied()).collect();
    for id in body.nodes {
        let Node { op, inputs, outputs, .. } = graph.node(id).clone();
        let inputs: Vec<ValueId> = inputs.iter().map(|v| map[v]).collect();
        let results = match &op {
            Op::Call(inner) if inner.derivative.is_none() => inline_call(graph, inner, &inputs),
            Op::Rows(prog) => vec![inline_program(graph, prog, &inputs)],
            _ => {
                graph.copy_node(id, &inputs, &mut map);
                continue;
            }
        };
        map.extend(outputs.into_iter().zip(results));
    }
    body.results.iter().map(|v| map[v]).collect()
}

/// The instructions of a program as nodes.
fn inline_program(graph: &mut Graph, prog: &Prog, inputs: &[ValueId]) -> ValueId {
    let mut values: Vec<ValueId> = vec![];
    for instr in prog.code.iter() {
        values.push(match instr {
            Instr::In(k) => inputs[usize::from(*k)],
            instr => {
                let operands: Vec<ValueId> = instr.operands().map(|r| values[usize::from(r)]).collect();
                let mut position = 0;
                let instr = instr.map(|_| {
                    position += 1;
                    position - 1
                });
                graph.emit(Op::Instr(instr), &operands)
            }
        });
    }
    values.last().copied().unwrap_or(ValueId(0))
}
