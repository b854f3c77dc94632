//! `cargo xtask bench [--device NAME] [--torch PYTHON]`: builds and runs the measuring program, then the peers.

use std::process::Command;

use crate::run;

/// Runs `meganeura-bench` with the given options, and PyTorch beside it if a Python that has it is named.
pub fn run(options: &[&str]) -> Result<(), String> {
    let (own, torch) = match options.iter().position(|word| *word == "--torch") {
        Some(at) => {
            let Some(python) = options.get(at + 1) else { return Err("--torch needs the path of a Python".into()) };
            ([&options[..at], &options[at + 2..]].concat(), Some(*python))
        }
        None => (options.to_vec(), None),
    };
    let words = [&["run", "--release", "--quiet", "--package", "meganeura-bench", "--"], &own[..]].concat();
    run::cargo(&words, &[])?;
    let Some(python) = torch else { return Ok(()) };
    match Command::new(python).arg("bench/peers/mlp.py").status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{python}: {status}")),
        Err(error) => Err(format!("{python} cannot be run: {error}")),
    }
}
