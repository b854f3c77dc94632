//! What users read when a model has mistakes: each case in `tests/ui` against its expected text.
//!
//! The texts are those of one version of rustc, since it draws the frame around our words; other versions skip.

use std::io::Write;
use std::process::Command;

/// The version whose output is expected.
const RUSTC: &str = "rustc 1.95.";

#[test]
fn mistakes_read_as_expected() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let version = String::from_utf8_lossy(&version).into_owned();
    if !version.starts_with(RUSTC) {
        // Past the capture of test output, which hides what passes.
        let _ =
            writeln!(std::io::stderr(), "skipped: expected texts are those of {RUSTC}x, this is {}", version.trim());
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}
