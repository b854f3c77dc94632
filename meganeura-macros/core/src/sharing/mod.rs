//! How items reach other invocations, modules and crates.
//!
//! What travels is a *unit*: the text of an item with the meaning of each layer name in it. `__model` starts one chain for
//! each item, of the imports that the item reaches: `A! { [path::B] [$crate::__private::__item] { state } }`. Every item's
//! macro obeys one calling convention, for ever: call the path in the first brackets with the rest of the input and your
//! own payload appended. `__item` ends the chain with the state and the payloads, in the order of the imports, and emits
//! the item's own macro. An item with a mistake that its text shows travels without text: it is poison to importers, who
//! stay silent about it, since the invocation that has it reports it in the same build.

mod arrive;
mod carrier;
mod chain;
mod hash;
mod unit;

#[cfg(test)]
mod tests;

pub use arrive::{Arrived, arrive};
pub use carrier::carrier;
pub use chain::{chains, unused_imports};
pub use unit::{Imported, Unit, units};
