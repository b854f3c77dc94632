//! Identities of arithmetic. These change rounding, never the value.

use meganeura_shaders::dim::{Dim, Shape};
use meganeura_shaders::kernel::Spec;
use meganeura_shaders::prog::{DType, Instr, Leaf, Linker, Reg};

use super::super::lang::{ENode, Eg};
use super::super::link::{arguments, last, leaf, leaves};
use super::super::templates;
use super::parts::{Factor, Parts};
use super::{New, shape};

/// A factor of the rows that is the same along the contracted axis moves behind the product: it scales rows of the
/// result. A normalisation becomes a statistic that the product gathers while it runs.
pub(super) fn row_scale(eg: &Eg, node: &ENode) -> Vec<New> {
    row_scaled(eg, node).into_iter().collect()
}

fn row_scaled(eg: &Eg, node: &ENode) -> Option<New> {
    let mut parts = Parts::of(node)?;
    let Factor { term, a: args, .. } = parts.rows().filter(|f| f.term.stat.is_none()).cloned()?;
    let shapes = term.a.shapes::<Dim>(&args.iter().map(|a| shape(eg, *a)).collect::<Vec<&Shape>>())?;
    let dtypes = term.a.dtypes(&args.iter().map(|a| eg[*a].data.dtype()).collect::<Vec<DType>>())?;
    if !templates::reduces_floats(&term.a, &dtypes) {
        return None;
    }
    let is_uniform = |r: &Reg| shapes[usize::from(*r)].last().is_none_or(Dim::is_one);
    let (uniform, rest): (Vec<Reg>, Vec<Reg>) = term.a.factors().into_iter().partition(is_uniform);
    let is_float = |r: &Reg| dtypes[usize::from(*r)] == DType::F32;
    let in_place = parts.terms.iter().all(|f| rows_keep_their_place(&f.term.spec));
    if uniform.is_empty() || rest.is_empty() || !in_place || !uniform.iter().all(is_float) {
        return None;
    }
    let constants: Vec<f64> = uniform
        .iter()
        .filter_map(
            |r| if let Instr::Const(value) = &term.a.code[usize::from(*r)] { Some(value.value()) } else { None },
        )
        .collect();
    let is_constant = constants.len() == uniform.len();
    // The statistic is one number for each row, whatever of the row it was made from.
    let full_rows = |r: &Reg| shapes[usize::from(*r)].len() == term.spec.a.len();
    if !is_constant && !uniform.iter().any(full_rows) {
        return None;
    }
    let mut link = Linker::default();
    let moved = link.splice_leaves(&term.a, &leaves(&args));
    let roots = [times(&mut link, &rest, &moved), times(&mut link, &uniform, &moved)];
    let (programs, kept) = link.finish(&roots[..if is_constant { 1 } else { 2 }], &[]);
    parts.set_rows(&programs[0], programs.get(1), &arguments(&kept));
    let rows = programs[0].shape(&parts.terms[0].a.iter().map(|a| shape(eg, *a)).collect::<Vec<_>>());
    if rows.as_ref() != shapes.last() {
        return None;
    }

    let mut link = Linker::default();
    let scale = match is_constant {
        true => link.constant(constants.iter().product()),
        false => link.leaf(Leaf::Stat(0)),
    };
    let accumulators = (0..parts.terms.len() as u8).map(Leaf::Acc);
    let before: Vec<Leaf> = accumulators.chain(parts.extras.iter().map(|id| leaf(*id))).collect();
    let inputs: Vec<Reg> = before
        .into_iter()
        .map(|leaf| {
            let value = link.leaf(leaf);
            if matches!(leaf, Leaf::Acc(_)) { link.mul(value, scale) } else { value }
        })
        .collect();
    let root = last(&link.splice(&parts.epi, &inputs));
    let (mut programs, kept) = link.finish(&[root], &parts.contract().seeds());
    (parts.epi, parts.extras) = (programs.remove(0), arguments(&kept));
    parts.node(eg)
}

/// The statistic has a row's place in the result: the rows of `a` are the leading axes of the result, in order.
fn rows_keep_their_place(spec: &Spec) -> bool {
    spec.contracts_rows_of_a() && spec.out.len() >= spec.a.len() && spec.out.starts_with(&spec.a[..spec.a.len() - 1])
}

fn times(link: &mut Linker, factors: &[Reg], moved: &[Reg]) -> Reg {
    let product = factors.iter().map(|r| moved[usize::from(*r)]).reduce(|a, b| link.mul(a, b));
    product.unwrap_or_default()
}
