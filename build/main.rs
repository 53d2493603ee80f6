//! What the binary carries and its source in Rust does not: the license keys that this build trusts, and the files of the
//! console.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo hands a build script its input in the environment, and reads what it prints"
)]

mod bundle;
mod console;
mod license_keys;

use std::path::{Path, PathBuf};

fn main() {
    for embed in [license_keys::embed, console::embed] {
        if let Err(fault) = embed() {
            println!("cargo::error={fault}");
        }
    }
}

/// A directory that cargo names.
fn directory(variable: &str) -> Result<PathBuf, String> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| format!("cargo did not set {variable}"))
}

fn write(out: &Path, content: &[u8]) -> Result<(), String> {
    std::fs::write(out, content).map_err(|cause| format!("{}: {cause}", out.display()))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|cause| format!("{}: {cause}", file.display()))
}
