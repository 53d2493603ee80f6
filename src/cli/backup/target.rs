//! The directory of a backup. It is written under another name, and renamed when it is complete.

use super::super::{Failure, Outcome};
use super::manifest::{self, Manifest};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory under construction, locked for as long as this value lives.
pub(super) struct Target {
    wanted: PathBuf,
    partial: PathBuf,
    /// The lock, which the kernel frees when the process ends.
    handle: File,
}

impl Target {
    /// Creates `DIR.partial`, or reuses that of a backup that did not finish.
    ///
    /// # Errors
    /// The directory exists and is not empty, another backup is writing it, or it cannot be
    /// created.
    pub(super) fn take(wanted: &Path) -> Outcome<Self> {
        let wanted = std::path::absolute(wanted)?;
        let Some(name) = wanted.file_name() else {
            return Err(Failure::usage(format!(
                "{} is not a name for a directory.",
                wanted.display()
            )));
        };
        if !is_free(&wanted)? {
            return Err(Failure::new(format!(
                "{} exists and is not an empty directory. Name another one.",
                wanted.display()
            )));
        }
        if is_elsewhere(&wanted)? {
            return Err(Failure::new(format!(
                "{0} is where a file system of its own is mounted: a directory beside it cannot be renamed to it. Name a directory in it: {0}/NAME.",
                wanted.display()
            )));
        }
        let mut partial_name = name.to_owned();
        partial_name.push(".partial");
        let partial = wanted.with_file_name(partial_name);
        let fault = |error: std::io::Error| {
            Failure::new(format!("{} cannot be made: {error}.", partial.display()))
        };
        match DirBuilder::new().mode(0o700).create(&partial) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(fault(error)),
            _ => {}
        }
        // Symbolic links are not followed.
        if !fs::symlink_metadata(&partial).map_err(fault)?.is_dir() {
            return Err(Failure::new(format!(
                "{} is not a directory.",
                partial.display()
            )));
        }
        let handle = File::open(&partial).map_err(fault)?;
        if flock(&handle, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::new(format!(
                "Another backup is being written to {}.",
                partial.display()
            )));
        }
        handle
            .set_permissions(fs::Permissions::from_mode(0o700))
            .map_err(fault)?;
        let target = Self {
            wanted,
            partial,
            handle,
        };
        target.clear()?;
        Ok(target)
    }

    /// The path of a file of this name.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.partial.join(name)
    }

    /// Removes the remains of an unfinished backup.
    fn clear(&self) -> Outcome {
        for name in [super::RUNTIME_FILE, super::OPENFGA_FILE, manifest::FILE] {
            match fs::remove_file(self.path(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let path = self.path(name);
                    return Err(Failure::new(format!(
                        "{} cannot be removed: {error}.",
                        path.display()
                    )));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the whole directory.
    pub(super) fn give_up(self) {
        // If something stays, its name says what it is.
        let _ = self.clear();
        let _ = fs::remove_dir(&self.partial);
    }

    /// Adds the manifest and renames the directory, or removes it all.
    ///
    /// # Errors
    /// It cannot be written, or something else has got the final name meanwhile.
    pub(super) fn finish(self, manifest: &Manifest) -> Outcome {
        let put = self.put(manifest);
        if put.is_err() {
            self.give_up();
        }
        put
    }

    fn put(&self, manifest: &Manifest) -> Outcome {
        let path = self.path(manifest::FILE);
        let fault = |error: std::io::Error| {
            Failure::new(format!(
                "{} cannot be finished: {error}.",
                self.wanted.display()
            ))
        };
        let mut text = serde_json::to_string_pretty(manifest)
            .map_err(|error| Failure::new(error.to_string()))?;
        text.push('\n');
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(fault)?;
        file.write_all(text.as_bytes()).map_err(fault)?;
        file.sync_all().map_err(fault)?;
        self.handle.sync_all().map_err(fault)?;
        fs::rename(&self.partial, &self.wanted).map_err(fault)?;
        let parent = self.wanted.parent().map(File::open);
        if let Some(Ok(parent)) = parent {
            parent.sync_all().map_err(fault)?;
        }
        Ok(())
    }
}

/// Whether a directory may get this name. A symbolic link is refused, wherever it leads.
fn is_free(path: &Path) -> Outcome<bool> {
    if path.is_symlink() {
        return Ok(false);
    }
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(Failure::new(format!("{}: {error}.", path.display()))),
    }
}

/// Whether the path exists and is a mount point: a rename cannot replace it.
fn is_elsewhere(path: &Path) -> Outcome<bool> {
    let fault = |error: std::io::Error| Failure::new(format!("{}: {error}.", path.display()));
    let own = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        own => own.map_err(fault)?.dev(),
    };
    match path.parent() {
        None => Ok(true),
        Some(parent) => Ok(fs::metadata(parent).map_err(fault)?.dev() != own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_backup_left_is_taken_over_and_a_running_one_s_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("b");
        let first = Target::take(&wanted).unwrap();
        fs::write(first.path(super::super::RUNTIME_FILE), "x").unwrap();
        let failure = Target::take(&wanted).err().unwrap();
        assert!(
            failure.message.contains("Another backup"),
            "{}",
            failure.message
        );
        drop(first);
        let second = Target::take(&wanted).unwrap();
        assert!(!second.path(super::super::RUNTIME_FILE).exists());
        second.give_up();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_is_not_empty_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "x").unwrap();
        assert!(Target::take(dir.path()).is_err());
        assert!(Target::take(&dir.path().join("x")).is_err());
        std::os::unix::fs::symlink("empty", dir.path().join("link")).unwrap();
        fs::create_dir(dir.path().join("empty")).unwrap();
        Target::take(&dir.path().join("empty")).unwrap().give_up();
        assert!(Target::take(&dir.path().join("link")).is_err());
    }

    #[test]
    fn a_place_that_a_rename_does_not_lead_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_elsewhere(Path::new("/proc")).unwrap());
        assert!(!is_elsewhere(dir.path()).unwrap());
        assert!(!is_elsewhere(&dir.path().join("none")).unwrap());
    }

    #[test]
    fn what_cannot_be_put_into_its_place_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = dir.path().join("b");
        let target = Target::take(&wanted).unwrap();
        fs::write(target.path(super::super::RUNTIME_FILE), "x").unwrap();
        fs::create_dir(&wanted).unwrap();
        fs::write(wanted.join("came_between"), "x").unwrap();
        let manifest = serde_json::json!({
            "format": 1, "program": "", "startedAt": "2027-01-31T00:00:00Z",
            "endedAt": "2027-01-31T00:00:00Z", "authorizationModel": 1, "secretVersions": 0,
            "keys": [], "keysNote": "", "openfga": null,
            "runtime": {
                "database": "", "schema": "", "postgresql": "", "postgresqlNumber": 1, "file": "",
                "bytes": 0, "sha256": "", "pgDump": 1, "startedAt": "2027-01-31T00:00:00Z",
                "endedAt": "2027-01-31T00:00:00Z"
            }
        });
        let manifest = serde_json::from_value(manifest).unwrap();
        let failure = target.finish(&manifest).err().unwrap();
        assert!(
            failure.message.contains("cannot be finished"),
            "{}",
            failure.message
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(wanted.join("came_between").exists());
    }
}
