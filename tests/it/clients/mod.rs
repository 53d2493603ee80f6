//! The clients in `clients`: their own tests, and what they do on a server of this process.
//!
//! Not here: that no event is lost when a server is killed (`tests/show/clients`).

mod names;
mod python;
mod typescript;

use std::path::{Path, PathBuf};

/// A path in `clients`.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("clients")
        .join(path)
}
