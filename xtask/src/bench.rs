//! `cargo xtask bench [--device NAME] [--torch PYTHON]`: builds and runs the measuring program, then the peers.
//! `cargo xtask bench --expansion` measures the compiler instead, built with optimisation and without.
//! `cargo xtask tune [--device NAME]` measures every form of a product against the table's choice.

use std::process::Command;

use crate::run;

/// Runs the compiler's own measurement under two profiles.
fn expansion() -> Result<(), String> {
    let run = |profile| {
        let words = ["run", "--quiet", "--profile", profile, "--package", "meganeura-core"];
        run::cargo(&[&words[..], &["--features", "testing", "--example", "expansion"]].concat(), &[])
    };
    ["release", "plain"].into_iter().try_for_each(run)
}

/// Runs `meganeura-bench` with the given options, and PyTorch beside it if a Python that has it is named.
pub fn run(options: &[&str]) -> Result<(), String> {
    if options == ["--expansion"] {
        return expansion();
    }
    let (own, torch) = match options.iter().position(|word| *word == "--torch") {
        Some(at) => {
            let Some(python) = options.get(at + 1) else { return Err("--torch needs the path of a Python".into()) };
            ([&options[..at], &options[at + 2..]].concat(), Some(*python))
        }
        None => (options.to_vec(), None),
    };
    measure(&own)?;
    let Some(python) = torch else { return Ok(()) };
    match Command::new(python).arg("bench/peers/mlp.py").status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{python}: {status}")),
        Err(error) => Err(format!("{python} cannot be run: {error}")),
    }
}

/// Lets `meganeura-bench` try every form of a product.
pub fn tune(options: &[&str]) -> Result<(), String> {
    measure(&[&["--tune"], options].concat())
}

fn measure(words: &[&str]) -> Result<(), String> {
    run::cargo(&[&["run", "--release", "--quiet", "--package", "meganeura-bench", "--"], words].concat(), &[])
}
