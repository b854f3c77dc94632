//! Composition of programs over classes: the linker of `meganeura_shaders` with class ids for arguments.

use egg::Id;
use meganeura_shaders::prog::{self, Leaf, Linker, Prog, Reg};

use super::templates::MAX_CODE;

/// The arguments among the leaves, in order.
pub(super) fn arguments(leaves: &[Leaf]) -> Vec<Id> {
    prog::arguments(leaves).into_iter().map(|id| Id::from(id as usize)).collect()
}

/// A class as a leaf.
pub(super) fn leaf(id: Id) -> Leaf {
    Leaf::Arg(usize::from(id) as u32)
}

pub(super) fn leaves(args: &[Id]) -> Vec<Leaf> {
    args.iter().map(|id| leaf(*id)).collect()
}

/// The register of the result of a program that was spliced in.
pub(super) fn last(registers: &[Reg]) -> Reg {
    registers.last().copied().unwrap_or_default()
}

/// The program of one root and its arguments.
pub(super) fn finish_one(link: Linker, root: Reg) -> (Prog, Vec<Id>) {
    let (mut programs, leaves) = link.finish(&[root], &[]);
    (programs.remove(0), arguments(&leaves))
}

/// `outer` over `args`, where argument `at` is replaced by `inner` over `inner_args`; none if that is far too long.
pub(super) fn inline(outer: &Prog, args: &[Id], at: usize, inner: &Prog, inner_args: &[Id]) -> Option<(Prog, Vec<Id>)> {
    if outer.code.len() + inner.code.len() > 2 * MAX_CODE {
        return None;
    }
    let mut link = Linker::default();
    let inputs: Vec<Reg> = (0..args.len())
        .map(|i| match i == at {
            true => last(&link.splice_leaves(inner, &leaves(inner_args))),
            false => link.leaf(leaf(args[i])),
        })
        .collect();
    let root = last(&link.splice(outer, &inputs));
    Some(finish_one(link, root))
}
