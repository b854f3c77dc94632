//! The procedural macros.
