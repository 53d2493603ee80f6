//! Small files that only their owner can read (tokens, keys, the state of `dev`), and files that
//! have another owner or mode from the start.
//!
//! A file is written to a temporary file beside it, under a new name that begins with a dot, and
//! then renamed. So no symbolic link is followed, and no reader sees half a file. The next writer
//! removes what a killed one left.

use super::{Failure, Outcome};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::ffi::OsString;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;
use zeroize::Zeroizing;

/// The longest such file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// What to do with an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfExists {
    /// Keep it; [`write`] then returns false.
    Keep,
    /// Replace it.
    Replace,
}

/// Owner and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) mode: u32,
    /// User and group; none: this process's own.
    pub(super) owner: Option<(u32, u32)>,
}

/// Readable by its creator only.
pub(super) const OURS: Access = Access {
    mode: 0o600,
    owner: None,
};

/// Writes a file of mode 0600. False: it existed and was kept.
pub(super) fn write(path: &Path, text: &str, if_exists: IfExists) -> Outcome<bool> {
    write_for(OURS, path, text.as_bytes(), if_exists)
}

/// Writes a file of any mode and owner. False: it existed and was kept.
pub(super) fn write_for(
    access: Access,
    path: &Path,
    bytes: &[u8],
    if_exists: IfExists,
) -> Outcome<bool> {
    let fault = |error: std::io::Error| {
        Failure::new(format!("{} cannot be written: {error}.", path.display()))
    };
    remove_left(path);
    let mut name = fresh_stem(path);
    name.push(std::process::id().to_string());
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
        .write_all(bytes)
        .and_then(|()| match access.owner {
            Some((user, group)) => fchown(&file, Some(user), Some(group)),
            None => Ok(()),
        })
        .and_then(|()| file.set_permissions(Permissions::from_mode(access.mode)))
        .and_then(|()| file.sync_all())
        .and_then(|()| match if_exists {
            IfExists::Replace => fs::rename(&fresh, path),
            // link(2) fails if the name exists.
            IfExists::Keep => fs::hard_link(&fresh, path),
        });
    if if_exists == IfExists::Keep || written.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fault(error)),
    }
}

/// The temporary file's name begins with this; the writer's process id follows.
fn fresh_stem(path: &Path) -> OsString {
    let mut stem = OsString::from(".");
    stem.push(path.file_name().unwrap_or_default());
    stem.push(".");
    stem
}

/// Removes temporary files of killed writers. Errors are ignored.
pub(super) fn remove_left(path: &Path) {
    let stem = fresh_stem(path);
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    let entries = fs::read_dir(directory.unwrap_or(Path::new(".")));
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.as_bytes().strip_prefix(stem.as_bytes());
        let writer = writer.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        if let Some(writer) = writer.and_then(Pid::from_raw)
            && test_kill_process(writer) == Err(Errno::SRCH)
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// What is wrong with the owner and mode of a file or directory, as a phrase after its path; none
/// if nothing is. Symbolic links are not followed.
///
/// # Errors
/// It cannot be examined, or is neither a file nor a directory.
pub(super) fn faults(access: Access, path: &Path) -> std::io::Result<Option<String>> {
    let found = fs::symlink_metadata(path)?;
    let mode = found.mode() & 0o7777;
    let mut faults = Vec::new();
    if found.is_symlink() {
        faults.push("is a link".to_owned());
    } else if mode & !access.mode != 0 {
        faults.push(format!(
            "has mode {mode:04o} instead of {:04o}",
            access.mode
        ));
    }
    if let Some((user, group)) = access.owner
        && (found.uid(), found.gid()) != (user, group)
    {
        faults.push(format!(
            "belongs to user {} and group {} instead of {user} and {group}",
            found.uid(),
            found.gid()
        ));
    }
    Ok((!faults.is_empty()).then(|| faults.join(" and ")))
}

/// Corrects owner and mode of an existing file or directory. False: they were right.
///
/// # Errors
/// It is a symbolic link, has other hard links, or cannot be changed.
pub(super) fn put_right(access: Access, path: &Path) -> Outcome<bool> {
    let fault = |what: &dyn std::fmt::Display| {
        Failure::new(format!("{} cannot be corrected: {what}.", path.display()))
    };
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let flags = flags.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| fault(&error))?;
    let found = file.metadata().map_err(|error| fault(&error))?;
    if found.is_file() && found.nlink() != 1 {
        return Err(fault(
            &"it has other hard links, which would change with it",
        ));
    }
    let mut is_changed = false;
    if let Some((user, group)) = access.owner
        && (found.uid(), found.gid()) != (user, group)
    {
        fchown(&file, Some(user), Some(group)).map_err(|error| fault(&error))?;
        is_changed = true;
    }
    if found.mode() & 0o7777 != access.mode {
        let permissions = Permissions::from_mode(access.mode);
        file.set_permissions(permissions)
            .map_err(|error| fault(&error))?;
        is_changed = true;
    }
    Ok(is_changed)
}

/// The text of such a file without its final newline; none if there is no file.
///
/// # Errors
/// Others can use it, it belongs to another user, or it cannot be read.
pub(super) fn read(path: &Path) -> Outcome<Option<Zeroizing<String>>> {
    let fault = |what: &dyn std::fmt::Display| {
        Failure::new(format!("{} cannot be used: {what}.", path.display()))
    };
    let flags = OFlags::NONBLOCK.bits().cast_signed();
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
            "its mode is {:04o}, so others than its owner can use it; run chmod 600 on it",
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
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_is_private_and_kept_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        assert!(read(&path).unwrap().is_none());
        assert!(write(&path, "one\n", IfExists::Keep).unwrap());
        assert!(!write(&path, "two\n", IfExists::Keep).unwrap());
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "one");
        assert!(write(&path, "two\n", IfExists::Replace).unwrap());
        assert_eq!(read(&path).unwrap().unwrap().as_str(), "two");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_writer_left_goes_and_what_one_writes_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        // Above the largest pid of Linux (2^22).
        let dead = dir.path().join(".token.999999999");
        let alive = dir.path().join(".token.1");
        let others = [".token.9x", ".tokens.999999999", "token.999999999"];
        let others = others.map(|name| dir.path().join(name));
        for left in others.iter().chain([&dead, &alive]) {
            fs::write(left, "half").unwrap();
        }
        assert!(write(&path, "one\n", IfExists::Keep).unwrap());
        assert!(!dead.exists() && alive.exists());
        assert!(others.iter().all(|path| path.exists()));
    }

    #[test]
    fn no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, path) = (dir.path().join("victim"), dir.path().join("token"));
        fs::write(&victim, "safe").unwrap();
        symlink(&victim, &path).unwrap();
        assert!(!write(&path, "x", IfExists::Keep).unwrap());
        assert!(write(&path, "x", IfExists::Replace).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "safe");
        assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
    }

    #[test]
    fn a_wrong_mode_is_told_and_put_right() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let access = Access {
            mode: 0o640,
            owner: None,
        };
        assert!(write_for(access, &path, &[0, 255], IfExists::Keep).unwrap());
        assert_eq!(faults(access, &path).unwrap(), None);
        assert!(!put_right(access, &path).unwrap());
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let fault = faults(access, &path).unwrap().unwrap();
        assert_eq!(fault, "has mode 0644 instead of 0640");
        assert!(put_right(access, &path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        let link = dir.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(faults(access, &link).unwrap().unwrap(), "is a link");
        assert!(put_right(access, &link).is_err());
        fs::hard_link(&path, dir.path().join("other")).unwrap();
        assert!(put_right(access, &path).is_err());
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
