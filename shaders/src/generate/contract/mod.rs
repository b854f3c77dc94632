//! Contractions: register tiles, and a matrix-vector form for one row.

mod finish;
mod plan;
mod stage;
mod tile;
mod vector;

use crate::dim::{Dim, Symbols};
use crate::kernel::Contract;

use super::Unsupported;
use super::launch::{Body, Launch};

pub(super) use tile::Tile;

/// How a contraction runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Register tiles.
    Tile(Tile),
    /// One row: lanes share a column's sum.
    Vector,
}

/// The number of rows of the result, without batches.
pub(super) fn rows(launch: &mut Launch<'_>, contract: &Contract) -> Result<Dim, Unsupported> {
    Ok(plan::Plan::new(launch, contract)?.m.count())
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
        Form::Vector => vector::body(launch, &plan, symbols),
    }
}
