//! The names of the files of a backup.

/// The file of the runtime's database.
pub(super) const RUNTIME_FILE: &str = "runtime.dump";

/// The file of the authorization server's.
pub(super) const OPENFGA_FILE: &str = "openfga.dump";
