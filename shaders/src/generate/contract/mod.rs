//! Contractions: register tiles, and a matrix-vector form for one row.

mod finish;
mod plan;
mod stage;
mod table;
mod tile;
mod vector;

use crate::dim::{Dim, Symbols};
use crate::kernel::Contract;

use super::Unsupported;
use super::launch::{Body, Launch};

pub(super) use table::{Choosing, choose};
pub use table::{Form, Tile, Vector};

/// The number of rows of the result, without batches, and what there is for each: columns of all batches.
pub(super) fn sizes(launch: &mut Launch<'_>, contract: &Contract) -> Result<(Dim, Dim), Unsupported> {
    let plan = plan::Plan::new(launch, contract)?;
    Ok((plan.m.count(), &plan.z.count() * &plan.n.count()))
}

/// The body of a contraction.
pub(super) fn body(
    launch: &mut Launch<'_>,
    contract: &Contract,
    form: Form,
    symbols: &mut Symbols,
) -> Result<Body, Unsupported> {
    let plan = plan::Plan::new(launch, contract)?;
    match form {
        Form::Tile(tile) => tile::body(launch, &plan, tile, symbols),
        Form::Vector(vector) => vector::body(launch, &plan, vector, symbols),
    }
}
