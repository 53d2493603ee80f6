//! Access tokens for Google Cloud.

use std::path::PathBuf;

/// The metadata server of a Google machine, where no other is set.
pub const METADATA_URL: &str = "http://metadata.google.internal";

/// Where access tokens come from.
#[derive(Debug, Clone)]
pub struct Options {
    /// A file of credentials. Without one, the metadata server is asked.
    pub file: Option<File>,
    /// `SVC_SECRETS_KMS_METADATA_URL`.
    pub metadata_url: String,
}

/// A file of credentials: a service account's key, or what a person's sign-in left.
#[derive(Debug, Clone)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// The setting that says so, for messages.
    pub setting: &'static str,
}
