//! What the kernels can do, as predicates that the rules ask.
//!
//! A rule that makes something that no template can run is wrong however well its two sides agree, so every
//! restriction of a template is stated here and nowhere else.

use std::collections::BTreeSet;

use egg::Id;
use meganeura_shaders::kernel::{Contract, Spec, Term};
use meganeura_shaders::prog::{DType, Prog};
use meganeura_shaders::schedule::MAX_BINDINGS;

use super::lang::Eg;

/// Arguments of one program: they bound the search, and registers in a kernel.
pub const MAX_ARGS: usize = 8;

/// Instructions of one program.
pub const MAX_CODE: usize = 48;

/// Products that one kernel accumulates.
pub const MAX_TERMS: usize = 3;

/// Whether a program of its own is small enough.
pub fn fits(prog: &Prog) -> bool {
    prog.code.len() <= MAX_CODE && usize::from(prog.inputs) <= MAX_ARGS
}

/// What runs behind a product sees one element of it.
pub fn is_epilogue(prog: &Prog) -> bool {
    !prog.reduces_rows()
}

/// Rows of the right side cross the tiles of a product.
pub fn is_right_side(prog: &Prog) -> bool {
    !prog.reduces_rows()
}

/// Columns are summed in tiles of rows and columns, so no row is whole there.
pub fn is_column_sum(prog: &Prog) -> bool {
    !prog.reduces_rows()
}

/// A product can reduce rows of its left side only where it runs along whole rows anyway.
pub fn is_left_side(prog: &Prog, spec: &Spec) -> bool {
    !prog.reduces_rows() || spec.contracts_rows_of_a()
}

/// A statistic is gathered in one pass: no reduction waits for another one of the same row.
pub fn is_statistic(prog: &Prog) -> bool {
    let mut waits = vec![];
    prog.code.iter().all(|instr| {
        let operands_wait = instr.operands().any(|r| waits[usize::from(r)]);
        waits.push(operands_wait || instr.reduces());
        !(operands_wait && instr.reduces())
    })
}

/// What a product gathers of its rows beside its sums are floats.
pub fn reduces_floats(prog: &Prog, dtypes: &[DType]) -> bool {
    prog.code.iter().zip(dtypes).all(|(instr, dtype)| !instr.reduces() || *dtype == DType::F32)
}

/// Accumulators lie in one tile, so rows and columns of all products are the same axes of the result.
pub fn share_a_tile(terms: &[Term]) -> bool {
    let classes = |spec: &Spec| -> Vec<(bool, bool)> {
        spec.out.iter().map(|label| (spec.a.contains(label), spec.b.contains(label))).collect()
    };
    terms.windows(2).all(|pair| classes(&pair[0].spec) == classes(&pair[1].spec))
}

/// Whether a product with its programs is small enough: those of the sides and the one behind share registers.
pub fn contract_fits(contract: &Contract, args: &[Id]) -> bool {
    let side = |p: &Prog| (p.code.len(), usize::from(p.inputs));
    let mut sizes = vec![side(&contract.epi)];
    for term in &contract.terms {
        sizes.extend([side(&term.a), side(&term.b)]);
        sizes.extend(term.stat.as_ref().map(side));
    }
    let distinct: BTreeSet<&Id> = args.iter().collect();
    contract.terms.len() <= MAX_TERMS
        && sizes.iter().all(|(_, inputs)| *inputs <= MAX_ARGS)
        && sizes.iter().map(|(code, _)| code).sum::<usize>() <= MAX_CODE
        && distinct.len() < MAX_BINDINGS
}

/// Whether both sides of every product are floats.
pub fn sides_are_floats(eg: &Eg, contract: &Contract, args: &[Id]) -> bool {
    let dtypes: Vec<DType> = args.iter().map(|id| eg[*id].data.dtype()).collect();
    contract.dtypes(&dtypes).is_some()
}

/// Whether so many kernels fit into one launch.
pub fn launch_fits(kernels: usize, args: &[Id]) -> bool {
    let distinct: BTreeSet<&Id> = args.iter().collect();
    distinct.len() + kernels <= MAX_BINDINGS
}
