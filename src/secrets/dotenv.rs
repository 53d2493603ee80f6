//! The backend `dotenv`: env files in a directory, for development only (section 1.3).
//!
//! Guarantees: a file is written whole or not at all. It keeps its mode, its comments, the order of
//! its lines, and every line that the put does not concern. Names that begin with `SVC_` are
//! invisible. A mutex orders the writers of this process, and each reads the file after it got the
//! mutex. That is enough for one server, which is all that development mode has. An edit by a
//! person is lost only if it falls into the few milliseconds between the read and the rename.
//!
//! Left out: tenants other than the seeded one, environments other than the served one, earlier
//! versions (so a rotated signing secret does not overlap), and the author of a value.

use super::{SecretRef, Unreadable, is_name};
use crate::config::EnvFile;
use crate::error::{Code, Error, Result};
use crate::proof::{Admin, May};
use crate::secret::Secret;
use crate::store::page::Order;
use crate::store::secrets::{Described, ListRequest};
use crate::store::tenants::Tenant;
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use time::OffsetDateTime;
use uuid::Uuid;
use zeroize::Zeroizing;

/// The longest env file.
const FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The backend `dotenv`.
#[derive(Debug, Clone)]
pub struct DotenvOptions {
    /// The directory with the files.
    pub directory: PathBuf,
    /// Their paths, lowest precedence first.
    pub files: Vec<String>,
    /// The environment that they hold.
    pub environment: String,
    /// The tenant that they belong to.
    pub tenant_id: Uuid,
}

/// Opens the backend.
pub(super) struct Dotenv {
    files: Vec<PathBuf>,
    environment: String,
    tenant_id: Uuid,
    turn: Mutex<()>,
}

impl Dotenv {
    pub(super) fn new(options: DotenvOptions) -> Result<Self> {
        if !options.directory.is_dir() {
            return Err(Error::new(
                Code::InvalidRequest,
                format!(
                    "SVC_SECRETS_DOTENV_DIR names {}, which is no directory.",
                    options.directory.display()
                ),
            ));
        }
        let path = |file: &String| options.directory.join(file);
        Ok(Self {
            files: options.files.iter().map(path).collect(),
            environment: options.environment,
            tenant_id: options.tenant_id,
            turn: Mutex::new(()),
        })
    }

    fn has(&self, tenant_id: Uuid, at: &SecretRef) -> bool {
        tenant_id == self.tenant_id && at.environment == self.environment
    }

    /// Every secret with its value and the time of its file. An empty value hides that of a lower
    /// file and is not a secret itself.
    fn all(&self) -> Result<BTreeMap<String, (Secret, OffsetDateTime)>, String> {
        let mut all = BTreeMap::new();
        for path in &self.files {
            let Some((file, changed_at)) = read(path)? else {
                continue;
            };
            let named = file.values().filter(|(name, _)| is_name(name));
            all.extend(named.map(|(name, value)| (name.to_owned(), (value.clone(), changed_at))));
        }
        all.retain(|_, (value, _)| !value.expose().is_empty());
        Ok(all)
    }

    pub(super) fn resolve(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Secret, Unreadable> {
        if !self.has(tenant_id, at) {
            return Err(Unreadable::NotFound);
        }
        let mut all = self.all().map_err(Unreadable::Unavailable)?;
        let (value, _) = all.remove(&at.name).ok_or(Unreadable::NotFound)?;
        Ok(value)
    }

    pub(super) fn exists(&self, tenant_id: Uuid, at: &SecretRef) -> Result<bool, Unreadable> {
        match self.resolve(tenant_id, at) {
            Ok(_) => Ok(true),
            Err(Unreadable::NotFound) => Ok(false),
            Err(unreadable) => Err(unreadable),
        }
    }

    /// The secret whose name differs in the case of its letters at most, if there is one.
    pub(super) fn like(&self, tenant_id: Uuid, at: &SecretRef) -> Result<Option<String>> {
        if !self.has(tenant_id, at) {
            return Ok(None);
        }
        let all = self.all().map_err(unavailable)?;
        if all.contains_key(&at.name) {
            return Ok(Some(at.name.clone()));
        }
        let mut names = all.into_keys();
        Ok(names.find(|name| name.eq_ignore_ascii_case(&at.name)))
    }

    fn described(&self, name: &str, at: OffsetDateTime) -> Described {
        Described {
            at: SecretRef {
                environment: self.environment.clone(),
                name: name.to_owned(),
            },
            version: 1,
            created_by: None,
            created_at: at,
            updated_at: at,
            versions: vec![(1, at)],
        }
    }

    pub(super) fn find(
        &self,
        may: &impl May<Admin, Tenant>,
        at: &SecretRef,
    ) -> Result<Option<Described>> {
        if !self.has(may.tenant_id(), at) {
            return Ok(None);
        }
        let all = self.all().map_err(unavailable)?;
        let found = all.get(&at.name);
        Ok(found.map(|(_, changed_at)| self.described(&at.name, *changed_at)))
    }

    pub(super) fn list(
        &self,
        may: &impl May<Admin, Tenant>,
        page: &ListRequest,
    ) -> Result<Vec<Described>> {
        if let Some(other) = page
            .environment
            .as_ref()
            .filter(|e| **e != self.environment)
        {
            return Err(self.other_environment(other));
        }
        if may.tenant_id() != self.tenant_id {
            return Ok(Vec::new());
        }
        let all = self.all().map_err(unavailable)?;
        let mut rows: Vec<_> = all
            .iter()
            .map(|(name, (_, changed_at))| self.described(name, *changed_at))
            .collect();
        if page.order == Order::Desc {
            rows.reverse();
        }
        if let Some(after) = &page.after {
            rows.retain(|row| match page.order {
                Order::Asc => row.at > *after,
                Order::Desc => row.at < *after,
            });
        }
        rows.truncate(page.rows());
        Ok(rows)
    }

    fn other_environment(&self, other: &str) -> Error {
        let other: String = other.chars().take(100).collect();
        Error::new(
            Code::InvalidRequest,
            format!(
                "The environment {other} is not served here: the env files are the environment {} \
                 (SVC_ENVIRONMENT).",
                self.environment
            ),
        )
        .detail("parameter", "environment")
    }

    /// Writes a value into the file of highest precedence. The flag is true if the name is new.
    pub(super) fn put(
        &self,
        may: &impl May<Admin, Tenant>,
        at: &SecretRef,
        value: &Secret,
    ) -> Result<(Described, bool)> {
        if at.environment != self.environment {
            return Err(self.other_environment(&at.environment));
        }
        if may.tenant_id() != self.tenant_id {
            return Err(Error::new(
                Code::NotConfigured,
                "The env files are the seeded tenant's. Other tenants need SVC_SECRETS_BACKEND=postgres.",
            ));
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = self.find(may, at)?.is_none();
        let highest = self
            .files
            .last()
            .ok_or_else(|| Error::internal("no file"))?;
        let (mut file, _) = read(highest)
            .map_err(unavailable)?
            .unwrap_or_else(|| (EnvFile::default(), OffsetDateTime::UNIX_EPOCH));
        file.set(&at.name, value);
        if !file.reads_back() {
            return Err(Error::internal("the value would not be read back as it is"));
        }
        if file.text().len() as u64 > FILE_MAX_BYTES {
            return Err(Error::new(
                Code::Conflict,
                format!(
                    "With this value the env file {} would be longer than {FILE_MAX_BYTES} bytes, \
                     and could not be read. Delete what is not used.",
                    highest.display()
                ),
            ));
        }
        write(highest, &file).map_err(unavailable)?;
        let described = self.find(may, at)?;
        let described = described.ok_or_else(|| Error::internal("it was written"))?;
        Ok((described, is_new))
    }

    /// Removes the name from every file. False: no file had it.
    pub(super) fn delete(&self, may: &impl May<Admin, Tenant>, at: &SecretRef) -> Result<bool> {
        if !self.has(may.tenant_id(), at) {
            return Ok(false);
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let stood = self.find(may, at)?.is_some();
        // Lowest precedence first, so that until the end the effective value stays the same.
        for path in &self.files {
            let Some((mut file, _)) = read(path).map_err(unavailable)? else {
                continue;
            };
            if file.remove(&at.name) {
                write(path, &file).map_err(unavailable)?;
            }
        }
        Ok(stood)
    }
}

/// Whether the files can be read and the directory accepts a new one.
pub(super) fn probe(options: DotenvOptions) -> Result<(), String> {
    let directory = options.directory.clone();
    let dotenv = Dotenv::new(options).map_err(|error| error.message().to_owned())?;
    dotenv.all()?;
    let path = directory.join(format!(".probe.{}", std::process::id()));
    let tried = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .and_then(|_| std::fs::remove_file(&path));
    tried.map_err(|error| {
        let directory = directory.display();
        format!("The directory {directory} takes no file: {error}.")
    })
}

fn unavailable(sentence: String) -> Error {
    Error::new(Code::SecretsUnavailable, sentence)
}

/// A file's text and its time of change; empty if there is no file.
fn read(path: &Path) -> Result<Option<(EnvFile, OffsetDateTime)>, String> {
    let unreadable = |why: &dyn std::fmt::Display| {
        format!("The env file {} cannot be read: {why}.", path.display())
    };
    // Do not block on a named pipe; it is refused below.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    let metadata = file.metadata().map_err(|error| unreadable(&error))?;
    if !metadata.is_file() || metadata.len() > FILE_MAX_BYTES {
        return Err(unreadable(&format!(
            "it is no plain file of at most {FILE_MAX_BYTES} bytes"
        )));
    }
    let length = usize::try_from(metadata.len()).unwrap_or_default();
    let mut text = Zeroizing::new(String::with_capacity(length));
    file.take(FILE_MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(&error))?;
    let parsed = EnvFile::parse(&text)
        .map_err(|line| unreadable(&format!("the quote that line {line} opens is not closed")))?;
    let changed_at = metadata.modified().map_err(|error| unreadable(&error))?;
    Ok(Some((parsed, changed_at.into())))
}

/// Writes a file whole: to a temporary file, to disk, then by rename.
fn write(path: &Path, file: &EnvFile) -> Result<(), String> {
    // A symbolic link stays a link; its target is written.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mode = std::fs::metadata(&path).map_or(0o600, |old| old.permissions().mode() & 0o7777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = write_beside(&beside, &path, mode, file);
    if written.is_err() {
        // Remove the temporary file: it holds values.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(|error| {
        format!(
            "The env file {} cannot be written: {error}.",
            path.display()
        )
    })
}

fn write_beside(beside: &Path, path: &Path, mode: u32, file: &EnvFile) -> std::io::Result<()> {
    // Remove the temporary file of a process that died.
    match std::fs::remove_file(beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(beside)?;
    new.write_all(file.text().as_bytes())?;
    new.set_permissions(std::fs::Permissions::from_mode(mode))?;
    new.sync_all()?;
    std::fs::rename(beside, path)?;
    let directory = path.parent().unwrap_or_else(|| Path::new("/"));
    std::fs::File::open(directory)?.sync_all()
}
