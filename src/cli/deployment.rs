//! An installed service: where its files are, and its settings as systemd passes them.
//!
//! Guarantees: a command reads what the unit reads, the same env file and the same credentials.
//! Copies of credentials are in a directory that only the service's user can read, and are removed
//! with the command.
//!
//! Not here: the meaning of the settings (`config`), and writing them (`setup`).

use super::account::{self, Account};
use super::private_file::{self, Access, IfExists};
use super::{Failure, Outcome};
use crate::config::{EnvFile, Vars};
use crate::ids::Clock;
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use uuid::Uuid;
use zeroize::Zeroizing;

/// The system user of the service; its unit and its files have the same name.
pub(super) const USER: &str = "agent-runtime";
/// The settings (`EnvironmentFile=`).
pub(super) const ENV_FILE: &str = "/etc/agent-runtime/agent-runtime.env";
/// The secrets, one file each, named after its setting (`LoadCredential=`).
pub(super) const CREDENTIALS: &str = "/etc/agent-runtime/credentials";
/// The service's own state (`StateDirectory=`).
pub(super) const STATE: &str = "/var/lib/agent-runtime";
/// The settings of the companion package's OpenFGA.
pub(super) const OPENFGA_ENV_FILE: &str = "/etc/agent-runtime-openfga/openfga.env";
/// The system user of the companion package's OpenFGA.
pub(super) const OPENFGA_USER: &str = "agent-runtime-openfga";

/// The longest env file, in bytes.
const ENV_FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The longest credential, in bytes.
const CREDENTIAL_MAX_BYTES: u64 = 1024 * 1024;

/// Permissions of the env file: only the service reads it.
pub(super) fn env_file_access(service: Option<&Account>) -> Access {
    Access {
        mode: 0o640,
        owner: owned(service.map(|service| (0, service.gid))),
    }
}

/// Permissions of a credential: only root, which passes it on.
pub(super) fn credential_access() -> Access {
    Access {
        mode: 0o600,
        owner: owned(Some((0, 0))),
    }
}

/// Permissions of the credentials' directory.
pub(super) fn credentials_access() -> Access {
    Access {
        mode: 0o700,
        ..credential_access()
    }
}

/// Permissions of the state directory.
pub(super) fn state_access(service: Option<&Account>) -> Access {
    Access {
        mode: 0o700,
        owner: owned(service.map(|service| (service.uid, service.gid))),
    }
}

/// Only root can give a file to another owner.
fn owned(owner: Option<(u32, u32)>) -> Option<(u32, u32)> {
    owner.filter(|_| account::is_root())
}

/// Reads an env file; empty if it does not exist.
///
/// # Errors
/// It cannot be read, is too long, or has an unclosed quote.
pub(super) fn read_env_file(path: &Path) -> Outcome<Option<EnvFile>> {
    let fault = |what: &dyn std::fmt::Display| {
        Failure::new(format!("{} cannot be read: {what}.", path.display()))
    };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(&error)),
    };
    let mut text = Zeroizing::new(String::new());
    file.take(ENV_FILE_MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| fault(&error))?;
    let parsed = EnvFile::parse(&text);
    let parsed =
        parsed.map_err(|line| fault(&format!("the quote that line {line} opens is not closed")))?;
    Ok(Some(parsed))
}

/// The variables of an env file, and the directory of credentials if there is one.
pub(super) fn vars(file: &EnvFile, credentials: Option<&Path>) -> Vars {
    let pairs = file.values();
    let vars = Vars::from_pairs(pairs.map(|(name, value)| (name, value.expose())));
    match credentials {
        Some(directory) => vars.with("CREDENTIALS_DIRECTORY", directory),
        None => vars,
    }
}

/// The paths of the credentials in a directory. Names that begin with a dot are files under
/// construction.
pub(super) fn credentials(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_bytes().starts_with(b".");
        if !is_hidden && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The name of a directory of copies begins with this; an id follows.
const COPIES_STEM: &str = "agent-runtime-";
/// Copies older than this belong to a killed command, in seconds.
const COPIES_MAX_AGE_S: i64 = 600;

/// Removes copies for this reader that a killed command left. Errors are ignored.
fn remove_left(base: &Path, reader: u32, clock: &Clock) {
    let ours = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let id = name
            .to_str()
            .and_then(|name| name.strip_prefix(COPIES_STEM));
        // Metadata of the entry itself: symbolic links are not followed.
        let (Some(true), Ok(found)) = (id.map(|id| Uuid::try_parse(id).is_ok()), entry.metadata())
        else {
            continue;
        };
        let age_s = clock.now().unix_timestamp() - found.mtime();
        // A directory gets its reader as owner last.
        if found.is_dir() && [reader, ours].contains(&found.uid()) && age_s > COPIES_MAX_AGE_S {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Copies of credentials that only one account can read, as systemd makes them. Dropping the value
/// removes them.
pub(super) struct Copies(PathBuf);

impl Copies {
    /// Copies every credential of a directory, into memory if `/run` is there.
    ///
    /// # Errors
    /// One cannot be read, or no copy can be written.
    pub(super) fn of(directory: &Path, reader: &Account, clock: &Clock) -> Outcome<Self> {
        let base = [Path::new("/run"), Path::new("/tmp")];
        let base = base.into_iter().find(|base| base.is_dir());
        let base = base.unwrap_or(Path::new("/"));
        remove_left(base, reader.uid, clock);
        let copies = Self(base.join(format!("{COPIES_STEM}{}", clock.new_id())));
        let fault = |error: std::io::Error| {
            Failure::new(format!(
                "{} cannot be copied: {error}.",
                directory.display()
            ))
        };
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&copies.0)
            .map_err(fault)?;
        let access = |mode| Access {
            mode,
            owner: owned(Some((reader.uid, reader.gid))),
        };
        for path in credentials(directory).map_err(fault)? {
            let mut bytes = Zeroizing::new(Vec::new());
            fs::File::open(&path)
                .and_then(|file| file.take(CREDENTIAL_MAX_BYTES).read_to_end(&mut bytes))
                .map_err(fault)?;
            let copy = copies.0.join(path.file_name().unwrap_or_default());
            private_file::write_for(access(0o400), &copy, &bytes, IfExists::Keep)?;
        }
        // Last: before this nobody else can enter.
        private_file::put_right(access(0o700), &copies.0)?;
        Ok(copies)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        // What remains is readable by its reader only, and in memory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime};

    #[test]
    fn a_name_that_begins_with_a_dot_is_no_credential() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["SVC_SEED_TOKEN", ".SVC_SEED_TOKEN.4242"] {
            fs::write(dir.path().join(name), "x").unwrap();
        }
        let found = credentials(dir.path()).unwrap();
        assert_eq!(found, [dir.path().join("SVC_SEED_TOKEN")]);
    }

    #[test]
    fn copies_that_a_killed_command_left_go() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let ours = rustix::process::geteuid().as_raw();
        let long_ago = SystemTime::from(clock.now()) - Duration::from_secs(3600);
        let made = |name: String, is_old: bool| {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("SVC_SEED_TOKEN"), "x").unwrap();
            if is_old {
                let directory = fs::File::open(&path).unwrap();
                directory.set_modified(long_ago).unwrap();
            }
            path
        };
        let copies = || format!("{COPIES_STEM}{}", clock.new_id());
        let (left, fresh) = (made(copies(), true), made(copies(), false));
        let others = ["agent-runtime-openfga", "other"].map(|name| made(name.to_owned(), true));
        let target = made("target".to_owned(), true);
        let link = dir.path().join(copies());
        symlink(&target, &link).unwrap();
        remove_left(dir.path(), ours, &clock);
        assert!(!left.exists() && fresh.exists());
        assert!(others.iter().all(|path| path.exists()));
        assert!(target.join("SVC_SEED_TOKEN").exists() && link.exists());
    }
}
