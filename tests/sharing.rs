//! Layers across crates: the workspace in `tests/sharing`, built and run as users build and run theirs.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::expect_file;

/// The version whose messages are expected.
const RUSTC: &str = "release: 1.95.";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sharing")
}

/// Runs cargo there, in the target folder of this build, whose dependencies are there already.
fn cargo(arguments: &[&str]) -> Output {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).args(["--offline", "--locked"]).current_dir(workspace());
    command.env("CARGO_TARGET_DIR", target).env("CARGO_TERM_COLOR", "never").env_remove("CARGO_MANIFEST_DIR");
    command.output().unwrap()
}

#[test]
fn layers_travel_between_modules_and_crates() {
    let output = cargo(&["test", "-p", "app", "-p", "layers", "-p", "middle"]);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(text.contains("test helpers_of_one_name_stay_apart ... ok"), "{text}");
}

#[test]
fn mistakes_across_crates_are_told_at_the_importer_and_name_the_place() {
    let version = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())).arg("-vV").output().unwrap();
    if !String::from_utf8_lossy(&version.stdout).contains(RUSTC) {
        // Past the capture of test output, which hides what passes.
        let _ = writeln!(std::io::stderr(), "skipped: expected texts are those of {RUSTC}x");
        return;
    }
    let output = cargo(&["build", "-p", "broken"]);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let text = text.replace(&*workspace().to_string_lossy(), "$WORKSPACE");
    let from = text.find("error").unwrap();
    let to = text.find("error: could not compile").unwrap();
    // What failed in the build script of another crate would be no mistake of these.
    assert!(text[..from].contains("Compiling broken") || !text[..from].contains("Compiling"), "{text}");
    expect_file!["sharing/broken/expected.txt"].assert_eq(&text[from..to]);
}

#[test]
fn it_locks_the_versions_of_the_root() {
    let packages = |path: PathBuf| -> BTreeSet<(String, String)> {
        let text = std::fs::read_to_string(path).unwrap();
        let value = |line: Option<&str>| line.and_then(|line| line.split('"').nth(1)).unwrap_or_default().to_string();
        let each = text.split("[[package]]").skip(1).map(|package| {
            let mut lines = package.trim().lines();
            (value(lines.next()), value(lines.next()))
        });
        each.filter(|(name, _)| !["app", "broken", "layers", "middle"].contains(&name.as_str())).collect()
    };
    let root = packages(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock"));
    let here = packages(workspace().join("Cargo.lock"));
    let other: Vec<_> = here.difference(&root).collect();
    assert!(here.len() > 50 && other.is_empty(), "copy the root's Cargo.lock here: {other:?}");
}
