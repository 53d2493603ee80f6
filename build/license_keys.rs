//! The license keys that this build trusts.
//!
//! They come from a file, so that nothing at run time can add one. The file is
//! `packaging/license-keys.pub`, or the one that `AGENT_RUNTIME_LICENSE_KEYS_FILE` names when the
//! project is built (relative to the package). Its form stands in its own comment. A file that is
//! not of that form fails the build.

use crate::{directory, write};

const VARIABLE: &str = "AGENT_RUNTIME_LICENSE_KEYS_FILE";
const DEFAULT_FILE: &str = "packaging/license-keys.pub";
const MAX_KEYS: usize = 2;

pub(crate) fn embed() -> Result<(), String> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let package = directory("CARGO_MANIFEST_DIR")?;
    let file = std::env::var_os(VARIABLE).unwrap_or_else(|| DEFAULT_FILE.into());
    let file = package.join(file);
    println!("cargo::rerun-if-changed={}", file.display());
    let text = std::fs::read_to_string(&file)
        .map_err(|cause| format!("the license keys file {}: {cause}", file.display()))?;
    let keys = parse(&text).map_err(|fault| format!("{}: {fault}", file.display()))?;
    let out = directory("OUT_DIR")?.join("license_keys.rs");
    let code = format!(
        "/// The public license keys that this build trusts.\n\
         const COMPILED_IN: &[[u8; 32]] = &{keys:?};\n\
         /// The file that they came from.\n\
         #[cfg(test)]\n\
         const COMPILED_IN_FROM: &str = {file:?};\n"
    );
    write(&out, code.as_bytes())
}

/// Each line is empty, a comment that begins with `#`, or 64 hexadecimal digits.
fn parse(text: &str) -> Result<Vec<[u8; 32]>, String> {
    let mut keys = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key =
            key(line).ok_or_else(|| format!("line {} is not 64 hexadecimal digits", index + 1))?;
        if keys.contains(&key) {
            return Err(format!("line {} repeats a key", index + 1));
        }
        keys.push(key);
    }
    if keys.len() > MAX_KEYS {
        return Err(format!("more than {MAX_KEYS} keys"));
    }
    Ok(keys)
}

fn key(line: &str) -> Option<[u8; 32]> {
    if line.len() != 64 || !line.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (index, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(line.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(key)
}
