//! Small files that their owner alone can read: tokens, and what `dev` keeps between starts.
//!
//! A file is written whole beside its place, under a name that did not exist, and then put there:
//! no link that somebody laid out is followed, and no reader sees half of it.

use super::{Failure, Outcome};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// The longest such file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// What becomes of a file that stands already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It stays; [`write`] then returns false.
    Kept,
    /// It is replaced.
    Replaced,
}

/// Writes a file of mode 0600. False: one stood there already and was kept.
pub(super) fn write(path: &Path, text: &str, standing: Standing) -> Outcome<bool> {
    let fault = |error: std::io::Error| {
        Failure::new(format!("{} cannot be written: {error}.", path.display()))
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = path.with_file_name(name);
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(fault(error)),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .map_err(fault)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| match standing {
            Standing::Replaced => fs::rename(&fresh, path),
            // A link is made where nothing is, or not at all.
            Standing::Kept => fs::hard_link(&fresh, path),
        });
    if standing == Standing::Kept || written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fault(error)),
    }
}

/// The text of such a file, without its last newline; nothing if there is none.
///
/// # Errors
/// Others than its owner can use it, it is another user's, or it cannot be read.
pub(super) fn read(path: &Path) -> Outcome<Option<Zeroizing<String>>> {
    let fault = |what: &dyn std::fmt::Display| {
        Failure::new(format!("{} cannot be used: {what}.", path.display()))
    };
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(&error)),
    };
    let found = file.metadata().map_err(|error| fault(&error))?;
    if !found.is_file() {
        return Err(fault(&"it is not a plain file"));
    }
    if found.mode() & 0o077 != 0 {
        return Err(fault(&format!(
            "its mode is {:04o}, so that others than its owner can use it; chmod 600 it",
            found.mode() & 0o7777
        )));
    }
    let mut text = Zeroizing::new(String::new());
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| fault(&error))?;
    let length = text.strip_suffix('\n').unwrap_or(&text).len();
    text.truncate(length);
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_private_and_kept_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(read(&path).unwrap().is_none());
        assert!(write(&path, "one\n", Standing::Kept).unwrap());
        assert!(!write(&path, "two\n", Standing::Kept).unwrap());
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "one");
        assert!(write(&path, "two\n", Standing::Replaced).unwrap());
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, path) = (dir.path().join("victim"), dir.path().join("token"));
        fs::write(&victim, "safe").unwrap();
        symlink(&victim, &path).unwrap();
        assert!(!write(&path, "x", Standing::Kept).unwrap());
        assert!(write(&path, "x", Standing::Replaced).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "safe");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn an_open_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let failure = read(&path).unwrap_err();
        assert!(failure.message.contains("0644"), "{}", failure.message);
        assert!(read(dir.path()).is_err());
    }
}
