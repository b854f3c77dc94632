//! What is decided about steps once they exist: barriers first ([`hazards`]), memory second ([`plan`]).
//!
//! Both work on the symbolic text of a schedule, loop bodies once, and hold at every size. [`verify()`] checks what they
//! promise.

pub mod hazards;
pub mod plan;
pub mod verify;

pub use verify::verify;

#[cfg(test)]
pub(crate) mod tests;
