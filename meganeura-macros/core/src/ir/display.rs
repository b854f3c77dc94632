//! The text of a graph: one line a node, bodies indented. It is the golden and the dump format.

use std::fmt;

use super::{BlockId, Graph, ROOT, ValueId};
use crate::ops::Op;

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show_block(ROOT, 0, f)?;
        for output in &self.outputs {
            writeln!(f, "output {} = %{}", output.name, output.value.0)?;
        }
        Ok(())
    }
}

impl Graph {
    fn show_block(&self, id: BlockId, indent: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let block = self.block(id);
        for node in block.nodes.iter().map(|id| self.node(*id)) {
            let what = match &node.op {
                Op::Read(store) => format!("read {}", self.store(*store).name),
                Op::Instr(instr) => format!("{} {instr:?}", node.op.name()),
                Op::Rows(prog) => format!("rows {{{prog}}}"),
                Op::Repeat(repeat) => {
                    let order = if repeat.reversed { "down" } else { "up" };
                    format!("repeat {} {order}", self.symbols.show(&repeat.count))
                }
                Op::Contract(contract) => format!("contract {}", contract.spec),
                Op::Kernel(kernel) => kernel.to_string(),
                Op::Launch(kernels) => kernels.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
                op => op.name().to_string(),
            };
            let outputs: Vec<String> = node.outputs.iter().map(|v| self.show_value(*v)).collect();
            let (outputs, inputs) = (outputs.join(", "), show_ids(&node.inputs));
            let path = &node.origin.path;
            let mark = if node.origin.backward { " ∂" } else { "" };
            writeln!(f, "{:indent$}{outputs} = {what}({inputs})   # {path}{mark}", "")?;
            if let Op::Repeat(repeat) = &node.op {
                let body = self.block(repeat.body);
                let args: Vec<String> = body.args.iter().map(|v| self.show_value(*v)).collect();
                writeln!(f, "{:indent$}  given {}", "", args.join(", "))?;
                self.show_block(repeat.body, indent + 2, f)?;
                writeln!(f, "{:indent$}  give {}", "", show_ids(&body.results))?;
            }
        }
        Ok(())
    }

    fn show_value(&self, id: ValueId) -> String {
        let ty = self.ty(id);
        format!("%{}: {}{}", id.0, ty.dtype, self.symbols.show_shape(&ty.shape))
    }
}

fn show_ids(values: &[ValueId]) -> String {
    values.iter().map(|v| format!("%{}", v.0)).collect::<Vec<_>>().join(", ")
}
