//! Holds the tests of this workspace.
//!
//! What is left of the collisions at the crate root: one text, at one place, made public twice. `pub(crate)` is the remedy,
//! or an argument of the macro as the name of the layer.
//!
//! ```compile_fail,E0428
//! macro_rules! same {
//!     () => { mega::model! { pub layer Same<dim> { a: Linear<dim, dim> } } };
//! }
//! mod a { same!(); }
//! mod b { same!(); }
//! # fn main() {}
//! ```
//!
//! ```
//! macro_rules! same {
//!     () => { mega::model! { pub(crate) layer Same<dim> { a: Linear<dim, dim> } } };
//! }
//! mod a { same!(); }
//! mod b { same!(); }
//! mega::model! {
//!     use self::{a::Same, b::Same as Other};
//!     model M<dim = 2> { a: Same<dim>, b: Other<dim> }
//! }
//! # fn main() { assert_eq!(M::PARAMETER_COUNT, 12) }
//! ```
