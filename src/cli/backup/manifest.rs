//! The manifest beside the dumps: what they hold, what made them, and their digests.

use super::super::{Failure, Outcome};
use crate::ids::rfc3339;
use crate::store::backups::Facts;
use crate::store::migrations::Recorded;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use time::OffsetDateTime;
use uuid::Uuid;

/// Its name in the directory.
pub(in crate::cli) const FILE: &str = "manifest.json";

/// Raise it when a program that knows an older format could misread the new one.
pub(super) const FORMAT: u32 = 1;

/// The longest manifest, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

pub(super) const KEYS_NOTE: &str = "The keys are not in this backup. A fingerprint is the beginning of a SHA-256 over a text of its own and the key.";

/// A backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Manifest {
    pub(in crate::cli) format: u32,
    /// The version of the program that made the backup.
    pub(in crate::cli) program: String,
    #[serde(with = "rfc3339")]
    pub(in crate::cli) started_at: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(in crate::cli) ended_at: OffsetDateTime,
    /// The version of the authorization model that this program writes.
    pub(in crate::cli) authorization_model: u32,
    /// The tenants in the backup, oldest first. None: there are more than a thousand, or the
    /// program wrote no list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) tenants: Option<Vec<Uuid>>,
    /// Stored versions of secrets, which need the keys.
    pub(in crate::cli) secret_versions: u64,
    pub(in crate::cli) keys: Vec<Key>,
    pub(in crate::cli) keys_note: String,
    pub(in crate::cli) runtime: Database,
    /// None: it was left out.
    pub(in crate::cli) openfga: Option<Database>,
}

/// A database as it was dumped.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Database {
    pub(in crate::cli) database: String,
    pub(in crate::cli) schema: String,
    /// PostgreSQL's version as its packages write it.
    pub(in crate::cli) postgresql: String,
    /// The same as `server_version_num`.
    pub(in crate::cli) postgresql_number: i32,
    /// Runtime's database only: the applied migrations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::cli) migrations: Vec<String>,
    /// Runtime's database only: the oldest program that may run on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) oldest_program: Option<String>,
    /// Authorization server's database only: its newest migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) version: Option<i64>,
    #[serde(flatten)]
    pub(in crate::cli) dump: Dumped,
}

/// A dump in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Dumped {
    pub(in crate::cli) file: String,
    pub(in crate::cli) bytes: u64,
    pub(in crate::cli) sha256: String,
    /// The major version of pg_dump.
    pub(in crate::cli) pg_dump: u32,
    #[serde(with = "rfc3339")]
    pub(in crate::cli) started_at: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(in crate::cli) ended_at: OffsetDateTime,
}

/// A key that is not in the backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct Key {
    /// The setting that gives it.
    pub(in crate::cli) setting: String,
    /// Where the key was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) path: Option<String>,
    /// None: the key could not be read when the backup was made.
    pub(in crate::cli) fingerprint: Option<String>,
    /// Whether secrets cannot be read without it.
    pub(in crate::cli) for_secrets: bool,
}

impl Database {
    pub(super) fn of(facts: &Facts, dump: Dumped) -> Self {
        Self {
            database: facts.database.clone(),
            schema: facts.schema.clone(),
            postgresql: facts.server_text.clone(),
            postgresql_number: facts.server,
            migrations: Vec::new(),
            oldest_program: None,
            version: None,
            dump,
        }
    }

    pub(super) fn with_schema(mut self, recorded: &Recorded) -> Self {
        self.migrations.clone_from(&recorded.applied);
        self.oldest_program.clone_from(&recorded.oldest_binary);
        self
    }

    pub(super) fn with_version(mut self, version: Option<i64>) -> Self {
        self.version = version;
        self
    }
}

impl Manifest {
    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// There is none, it is malformed, or a later program made it.
    pub(in crate::cli) fn read(directory: &Path) -> Outcome<Self> {
        let path = directory.join(FILE);
        let no_use = |why: String| Failure::new(format!("{}: {why}", path.display()));
        let file = File::open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                no_use("there is no such file, so this is no whole backup.".to_owned())
            }
            _ => no_use(format!("{error}.")),
        })?;
        let mut text = String::new();
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| no_use(format!("{error}.")))?;
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_str(&text)
            .map_err(|error| no_use(format!("this is no manifest of a backup ({error}).")))?;
        if head.format != FORMAT {
            return Err(no_use(format!(
                "the backup has format {}, and this program knows {FORMAT}. Install a later version.",
                head.format
            )));
        }
        serde_json::from_str(&text)
            .map_err(|error| no_use(format!("this is no manifest of a backup ({error}).")))
    }

    /// The databases in it, by what they are.
    pub(in crate::cli) fn databases(&self) -> impl Iterator<Item = (&'static str, &Database)> {
        let openfga = self.openfga.iter().map(|database| ("openfga", database));
        std::iter::once(("runtime", &self.runtime)).chain(openfga)
    }
}

/// The SHA-256 and the length of a file; `progress` gets the number of bytes so far.
///
/// # Errors
/// It cannot be read.
pub(in crate::cli) fn digest_of(
    path: &Path,
    mut progress: impl FnMut(u64),
) -> Outcome<(String, u64)> {
    let fault = |error: std::io::Error| Failure::new(format!("{}: {error}.", path.display()));
    let mut file = File::open(path).map_err(fault)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        let amount = file.read(&mut buffer).map_err(fault)?;
        if amount == 0 {
            return Ok((text_of(hash), bytes));
        }
        hash.update(&buffer[..amount]);
        bytes += amount as u64;
        progress(bytes);
    }
}

/// A digest as `sha256sum` writes it.
pub(super) fn text_of(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
