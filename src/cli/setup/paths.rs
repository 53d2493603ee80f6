//! Where the files of an installation are.

use crate::cli::deployment;
use std::path::{Path, PathBuf};

/// Where the files are.
pub(super) struct Paths {
    pub(super) env_file: PathBuf,
    pub(super) credentials: PathBuf,
    pub(super) state: PathBuf,
    pub(super) openfga_env_file: PathBuf,
}

impl Paths {
    pub(super) fn under(root: Option<&Path>) -> Self {
        let under_root = |path: &str| match root {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        };
        Self {
            env_file: under_root(deployment::ENV_FILE),
            credentials: under_root(deployment::CREDENTIALS),
            state: under_root(deployment::STATE),
            openfga_env_file: under_root(deployment::OPENFGA_ENV_FILE),
        }
    }
}
