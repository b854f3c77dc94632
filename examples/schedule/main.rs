//! Shows what the compiler makes of a model: `cargo run --release --example schedule -- pre_norm_mlp --picture out.svg`.
//!
//! Each line of a table is one launch: the kernels in it, the layer that they serve, the shape of the result, the bytes
//! that they move, their floating-point operations and the rules of the search that made them. A `|` before a step means
//! that it waits for those before it. `--explain` tells for each kernel which statements it serves, what it costs and what
//! was considered instead. `--picture FILE` draws the steps with what they read from each other, and below them what lies
//! in the arena while they run.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod models;

use std::error::Error;
use std::process::ExitCode;

/// What to show.
struct Wanted {
    show: fn() -> Result<Vec<models::Shown>, meganeura::Error>,
    explain: bool,
    picture: Option<String>,
}

fn main() -> ExitCode {
    let Some(wanted) = wanted(std::env::args().skip(1)) else {
        let known: Vec<&str> = models::ALL.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "usage: cargo run --release --example schedule -- NAME [--explain] [--picture FILE.svg], where NAME is one of {}",
            known.join(", ")
        );
        return ExitCode::FAILURE;
    };
    match print(&wanted) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn wanted(mut given: impl Iterator<Item = String>) -> Option<Wanted> {
    let (mut show, mut explain, mut picture) = (None, false, None);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--explain" => explain = true,
            "--picture" => picture = Some(given.next()?),
            name if show.is_none() => show = Some(models::ALL.iter().find(|(known, _)| *known == name)?.1),
            _ => return None,
        }
    }
    Some(Wanted { show: show?, explain, picture })
}

fn print(wanted: &Wanted) -> Result<(), Box<dyn Error>> {
    let shown = (wanted.show)()?;
    for models::Shown { title, table, explanation, .. } in &shown {
        println!("{title}\n\n{}", if wanted.explain { *explanation } else { table });
    }
    let pictures = shown.into_iter().map(|shown| shown.picture).reduce(|all, next| all.above(&next));
    if let (Some(file), Some(picture)) = (&wanted.picture, pictures) {
        std::fs::write(file, picture.to_string()).map_err(|error| format!("writing `{file}`: {error}"))?;
        println!("drawn in {file}");
    }
    Ok(())
}
