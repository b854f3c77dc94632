//! Prints what the compiler makes of a model: `cargo run --release --example schedule -- pre_norm_mlp`.
//!
//! Each line is one launch: the kernels in it, the layer that they serve, the shape of the result, the bytes that they
//! move, their floating-point operations and the rules of the search that made them. A `|` before a step means that it
//! waits for those before it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod models;

use std::error::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let found = names.first().and_then(|name| models::ALL.iter().find(|(known, _)| known == name));
    let Some((_, show)) = found.filter(|_| names.len() == 1) else {
        let known: Vec<&str> = models::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: cargo run --release --example schedule -- NAME, where NAME is one of {}", known.join(", "));
        return ExitCode::FAILURE;
    };
    match print(*show) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn print(show: fn() -> Result<Vec<models::Shown>, meganeura::Error>) -> Result<(), Box<dyn Error>> {
    for models::Shown { title, table } in show()? {
        println!("{title}\n\n{table}");
    }
    Ok(())
}
