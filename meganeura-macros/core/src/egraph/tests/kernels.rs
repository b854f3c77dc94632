//! Whatever rules promise, there are kernels for: every step that is chosen has a text that the shader compilers take.

use meganeura_shaders::generate::{Texts, validate, variants};
use meganeura_shaders::schedule::{Member, Operand, Place};

use super::models::*;
use super::*;
use crate::egraph::fuse;
use crate::ir::{Node, ValueId};
use crate::ops;
use crate::testing::{POLICIES, random_graph, training};

fn place(value: ValueId) -> Place {
    Place { buffer: value.index(), offset: Dim::from(0), slots: vec![], lead: vec![] }
}

/// The members of a step that runs.
fn members(graph: &Graph, node: &Node) -> Option<Vec<Member>> {
    let kernels = match &node.op {
        ops::Op::Kernel(kernel) => std::slice::from_ref(kernel),
        ops::Op::Launch(kernels) => &kernels[..],
        _ => return None,
    };
    let member = |((kernel, inputs), output): ((&Kernel, &[ValueId]), &ValueId)| {
        let read = |v: &ValueId| (Operand::Memory(place(*v)), graph.shape(*v).clone(), graph.ty(*v).dtype);
        Member {
            kernel: kernel.clone(),
            reads: inputs.iter().map(read).collect(),
            write: place(*output),
            shape: graph.shape(*output).clone(),
            dtype: graph.ty(*output).dtype,
        }
    };
    Some(super::super::lang::split(kernels, &node.inputs).zip(&node.outputs).map(member).collect())
}

/// The texts of all steps.
fn texts(what: &str, graph: &Graph) -> Texts {
    let fused = fuse(graph).unwrap();
    let (mut texts, mut symbols) = (Texts::default(), fused.symbols.clone());
    for node in &fused.nodes {
        let Some(members) = members(&fused, node) else { continue };
        let found = variants(&members, &mut symbols, &mut texts);
        assert!(found.is_ok(), "{what}: {} of {:?}: {found:?}", node.op.name(), node.origin.rules);
    }
    texts
}

#[test]
fn every_step_of_a_model_has_texts_that_compile() {
    let mut compiled = 0;
    for (name, graph) in [("mlp", mlp(64, 128, 10)), ("decoder", decoder(SMOLLM2, 3)), ("tiny", decoder(TINY, 2))] {
        let graph = with_loss(graph);
        let trained = training(&graph, graph.outputs[0].value, POLICIES[1]);
        for text in texts(name, &trained).list() {
            validate(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            compiled += 1;
        }
    }
    for (name, graph) in
        [("loss", cross_entropy(10)), ("backward", mlp_backward(512, 1024, 256)), ("gate", softmax_gate(576, 64))]
    {
        for text in texts(name, &graph).list() {
            validate(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            compiled += 1;
        }
    }
    assert!(compiled > 50, "{compiled}");
}

#[test]
fn every_step_of_random_graphs_has_a_template() {
    for seed in 100..160 {
        let (graph, loss) = random_graph(seed);
        texts(&format!("graph {seed}"), &graph);
        texts(&format!("graph {seed} trained"), &training(&graph, loss, POLICIES[seed as usize % 3]));
    }
}
