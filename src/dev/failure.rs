//! Why the private PostgreSQL does not run.

use std::path::Path;

/// Why the cluster did not start, and what to do.
#[derive(Debug)]
pub struct Failure(pub(super) String);

impl Failure {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn io(doing: &str, path: &Path, fault: &std::io::Error) -> Self {
        Self(format!("Could not {doing} {}: {fault}.", path.display()))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
