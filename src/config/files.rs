//! Reads the files that settings name.
//!
//! A file with a secret must be readable by its owner only (mode 0600 or stricter), unless it is in
//! systemd's credentials directory. The check is made on the open file, not on its path, so the
//! checked file is the one that is read. A returned text says what is wrong, for use after the
//! setting's name. It never contains what a file holds.

use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The largest file with a secret.
pub(super) const MAX_SECRET_BYTES: u64 = 64 * 1024;
/// The largest file of certificates.
const MAX_CERTIFICATES_BYTES: u64 = 4 * 1024 * 1024;
/// The largest file that says whom the server trusts.
const MAX_TRUSTED_BYTES: u64 = 1024 * 1024;

/// The prefix of credentials that systemd loaded from a directory, as the unit does:
/// `LoadCredential=credentials:DIRECTORY`.
const OF_DIRECTORY: &str = "credentials_";

/// systemd's credentials directory, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) struct Credentials(pub(super) Option<PathBuf>);

impl Credentials {
    /// The credential of this name, if there is one: a single one, else one from a directory.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let directory = self.0.as_ref()?;
        [name.to_owned(), format!("{OF_DIRECTORY}{name}")]
            .map(|name| directory.join(name))
            .into_iter()
            .find(|path| path.exists())
    }

    /// The names of the credentials that begin with `prefix`, as [`Credentials::find`] expects
    /// them.
    pub(super) fn names_with_prefix(&self, prefix: &str) -> Vec<String> {
        let entries = self.0.as_ref().and_then(|dir| std::fs::read_dir(dir).ok());
        let mut names: Vec<_> = entries
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .map(|name| match name.strip_prefix(OF_DIRECTORY) {
                Some(name) => name.to_owned(),
                None => name,
            })
            .filter(|name| name.starts_with(prefix))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether a path is in the credentials directory, after following links and `..`.
    fn hold(&self, path: &Path) -> bool {
        let dir = self.0.as_ref().and_then(|dir| dir.canonicalize().ok());
        match (dir, path.canonicalize()) {
            (Some(dir), Ok(path)) => path.starts_with(dir),
            _ => false,
        }
    }

    /// The content of a file with a secret, as bytes.
    pub(super) fn read_secret(&self, path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
        let file = open(path)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 && !self.hold(path) {
            return Err(format!(
                "names a file of mode {mode:04o}, which others than its owner can use (chmod 600 \
                 it)"
            ));
        }
        read(file, MAX_SECRET_BYTES)
    }

    /// The content of a file with a secret, as text without one final newline.
    pub(super) fn read_secret_text(&self, path: &Path) -> Result<Zeroizing<String>, String> {
        let bytes = self.read_secret(path)?;
        let text =
            std::str::from_utf8(&bytes).map_err(|_| "names a file that is not UTF-8".to_owned())?;
        let text = text
            .strip_suffix("\r\n")
            .or_else(|| text.strip_suffix('\n'))
            .unwrap_or(text);
        Ok(Zeroizing::new(text.to_owned()))
    }
}

/// The content of a file of certificates, which is not secret.
pub(super) fn read_certificates(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    read(open(path)?, MAX_CERTIFICATES_BYTES)
}

/// The content of a file that says whom the server trusts. Others may not change it, nor read it unless root owns it.
pub(super) fn read_trusted(path: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    let file = open(path)?;
    let about = file.metadata().map_err(unreadable)?;
    let mode = about.permissions().mode() & 0o7777;
    let is_of_root = about.uid() == 0 && mode & 0o022 == 0;
    if !is_of_root && mode & 0o027 != 0 {
        return Err(format!(
            "names a file of mode {mode:04o}, which others can use (chmod 640 it, or let root own it and nobody else \
             write to it)"
        ));
    }
    read(file, MAX_TRUSTED_BYTES)
}

/// Opens a regular file, without blocking on a named pipe.
fn open(path: &Path) -> Result<File, String> {
    if !path.is_absolute() {
        return Err("is not an absolute path".to_owned());
    }
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path)
        .map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_file() {
        Ok(file)
    } else {
        Err("names something that is not a plain file".to_owned())
    }
}

fn read(file: File, max_bytes: u64) -> Result<Zeroizing<Vec<u8>>, String> {
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("names a file of more than {max_bytes} bytes"));
    }
    Ok(bytes)
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err takes"
)]
fn unreadable(cause: std::io::Error) -> String {
    match cause.kind() {
        ErrorKind::NotFound => "names a file that is not there".to_owned(),
        ErrorKind::PermissionDenied => "names a file that this process may not read".to_owned(),
        _ => format!("names a file that cannot be read ({cause})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn file(dir: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    fn fault(path: &Path) -> String {
        Credentials::default().read_secret_text(path).unwrap_err()
    }

    #[test]
    fn a_secret_file_is_its_owner_s_alone() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400] {
            let path = file(dir.path(), &format!("{mode:o}"), b"abc\n", mode);
            let text = Credentials::default().read_secret_text(&path).unwrap();
            assert_eq!(text.as_str(), "abc");
        }
        for mode in [0o640, 0o604, 0o660, 0o601, 0o620] {
            let path = file(dir.path(), &format!("{mode:o}"), b"abc", mode);
            assert!(fault(&path).contains(&format!("{mode:04o}")));
        }
    }

    #[test]
    fn the_credentials_directory_is_trusted_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("credentials");
        fs::create_dir(&inside).unwrap();
        let credentials = Credentials(Some(inside.clone()));
        let path = file(&inside, "key", b"abc", 0o444);
        assert!(credentials.read_secret(&path).is_ok());
        let outside = file(dir.path(), "outside", b"abc", 0o444);
        assert!(credentials.read_secret(&outside).is_err());
        assert!(credentials.read_secret(&inside.join("../outside")).is_err());
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        assert!(credentials.read_secret(&inside.join("link")).is_err());
    }

    #[test]
    fn a_trusted_file_is_changed_by_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o640, 0o440] {
            let path = file(dir.path(), &format!("{mode:o}"), b"{}", mode);
            assert_eq!(read_trusted(&path).unwrap().as_slice(), b"{}");
        }
        for mode in [0o660, 0o620, 0o602, 0o666] {
            let path = file(dir.path(), &format!("{mode:o}"), b"{}", mode);
            let refusal = read_trusted(&path).unwrap_err();
            assert!(refusal.contains(&format!("{mode:04o}")), "{refusal}");
        }
        // What everybody may read is taken from root alone.
        let path = file(dir.path(), "644", b"{}", 0o644);
        let is_of_root = fs::metadata(&path).unwrap().uid() == 0;
        assert_eq!(read_trusted(&path).is_ok(), is_of_root);
    }

    #[test]
    fn one_newline_is_trimmed() {
        let dir = tempfile::tempdir().unwrap();
        for (bytes, text) in [
            (&b"a\n\n"[..], "a\n"),
            (b"a\r\n", "a"),
            (b" a ", " a "),
            (b"\n", ""),
        ] {
            let path = file(dir.path(), "key", bytes, 0o600);
            let read = Credentials::default().read_secret_text(&path).unwrap();
            assert_eq!(read.as_str(), text);
        }
    }

    #[test]
    fn what_is_no_readable_file_is_said() {
        let dir = tempfile::tempdir().unwrap();
        assert!(fault(&dir.path().join("absent")).contains("not there"));
        assert!(fault(dir.path()).contains("not a plain file"));
        assert!(fault(Path::new("relative")).contains("absolute"));
        let path = file(dir.path(), "latin", b"\xff\xfe", 0o600);
        assert!(fault(&path).contains("UTF-8"));
        let large = vec![b'a'; 64 * 1024 + 1];
        let path = file(dir.path(), "large", &large, 0o600);
        assert!(fault(&path).contains("more than"));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(fault(&pipe).contains("not a plain file"));
    }
}
