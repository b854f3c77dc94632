//! `cargo xtask bench [--device NAME]`: builds and runs the measuring program.

use crate::run;

/// Runs `meganeura-bench` with the given options.
pub fn run(options: &[&str]) -> Result<(), String> {
    let words = [&["run", "--release", "--quiet", "--package", "meganeura-bench", "--"], options].concat();
    run::cargo(&words, &[])
}
