//! Development tasks: `cargo xtask ci | bench | tune | bless | fetch | fuzz`.

mod bench;
mod fetch;
mod run;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <task>
  ci      everything that has to pass: format, lints, documentation, tests, the README's commands
  bench   measures the speed of what is here: JSON lines, then a table
  tune    measures every form of a product on a GPU and proposes rows of the table that chooses among them
  bless   writes the expected output of tests anew
  fetch   downloads a published model into target/models/; without a name it lists them
  fuzz    gives the compiler inputs that nobody would write, 100,000 or as many as said";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci"] => run::ci(),
        ["bench", options @ ..] => bench::run(options),
        ["tune", options @ ..] => bench::tune(options),
        ["bless"] => run::bless(),
        ["fetch"] => fetch::list(),
        ["fetch", name] => fetch::fetch(name),
        ["fuzz"] => run::fuzz("100000"),
        ["fuzz", count] => run::fuzz(count),
        _ => Err(USAGE.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            run::tell(&message);
            ExitCode::FAILURE
        }
    }
}
