//! Commands in order, stopping at the first that fails.

use std::process::Command;

/// Words for cargo, and what its environment has beside ours.
type Task = (&'static [&'static str], &'static [(&'static str, &'static str)]);

/// What CI runs, in this order.
const CI: &[Task] = &[
    (&["fmt", "--all", "--check"], &[]),
    (&["fmt", "--all", "--check", "--manifest-path", "tests/sharing/Cargo.toml"], &[]),
    (&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"], &[]),
    (&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "--deny warnings")]),
    (&["test"], &[]),
];

/// Runs what CI runs.
pub fn ci() -> Result<(), String> {
    CI.iter().try_for_each(|(words, environment)| cargo(words, environment))
}

/// Writes expected outputs anew: compiler errors, golden texts.
pub fn bless() -> Result<(), String> {
    cargo(&["test", "--workspace"], &[("TRYBUILD", "overwrite"), ("UPDATE_EXPECT", "1")])
}

/// Gives the compiler inputs that nobody would write.
pub fn fuzz(count: &str) -> Result<(), String> {
    let count: u64 = count.parse().map_err(|error| format!("expected a number of inputs: {error}"))?;
    let words = ["test", "--release", "-p", "meganeura-core", "--lib", "--", "fuzz"];
    cargo(&words, &[("MEGANEURA_FUZZ", &count.to_string())])
}

/// Runs cargo.
pub fn cargo(words: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    tell(&format!("cargo {}", words.join(" ")));
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(cargo).args(words).envs(environment.iter().copied()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("cargo {}: {status}", words.join(" "))),
        Err(error) => Err(format!("cargo cannot be run: {error}")),
    }
}

/// Prints a line for whoever waits.
#[allow(clippy::print_stderr)]
pub fn tell(line: &str) {
    eprintln!("{line}");
}
