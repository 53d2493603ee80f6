//! The keys that `login` keeps, one for each server: files in the user's configuration that only the user can read.

use super::private_file::{self, IfExists};
use super::{Failure, Outcome};
use crate::config::Vars;
use crate::secret::Secret;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The longest name of a file, in bytes, beside what a temporary one adds.
const NAME_BYTES: usize = 200;

/// Where the keys are.
pub(super) struct KeptKeys {
    directory: PathBuf,
}

impl KeptKeys {
    /// Of the user, where the environment says who that is.
    pub(super) fn find(vars: &Vars) -> Option<Self> {
        let directory = vars.user_config_directory()?.join("agent-runtime/keys");
        Some(Self { directory })
    }

    /// The file of a server's key.
    pub(super) fn path(&self, url: &str) -> Outcome<PathBuf> {
        let name = utf8_percent_encode(url, NON_ALPHANUMERIC).to_string();
        match name.len() <= NAME_BYTES {
            true => Ok(self.directory.join(name)),
            false => Err(Failure::usage("The server's URL is too long.")),
        }
    }

    /// The key for a server.
    pub(super) fn read(&self, url: &str) -> Outcome<Option<Secret>> {
        let text = private_file::read(&self.path(url)?)?;
        Ok(text.map(|text| Secret::new(text.trim())))
    }

    /// Keeps a key for a server, in place of the one before.
    pub(super) fn keep(&self, url: &str, key: &Secret) -> Outcome<PathBuf> {
        let path = self.path(url)?;
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory);
        made.map_err(|error| Failure::new(format!("{}: {error}.", self.directory.display())))?;
        private_file::write(&path, &format!("{}\n", key.expose()), IfExists::Replace)?;
        Ok(path)
    }

    /// Forgets the key for a server. False: there was none.
    pub(super) fn forget(&self, url: &str) -> Outcome<bool> {
        let path = self.path(url)?;
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Failure::new(format!("{}: {error}.", path.display()))),
        }
    }

    /// The server for which there is a key, if there is one alone.
    pub(super) fn only_server(&self) -> Option<String> {
        let entries = fs::read_dir(&self.directory).ok()?.flatten();
        let mut servers = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let url = percent_decode_str(&name).decode_utf8().ok()?.into_owned();
            (!name.starts_with('.')).then_some(url)
        });
        let only = servers.next()?;
        servers.next().is_none().then_some(only)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_kept_for_its_server_alone_and_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let vars = Vars::from_pairs([("HOME", home.path().as_os_str())]);
        let keys = KeptKeys::find(&vars).unwrap();
        let (one, two) = ("https://a.example", "http://127.0.0.1:4000/base");
        assert!(keys.read(one).unwrap().is_none() && keys.only_server().is_none());
        for text in ["first", "second"] {
            let path = keys.keep(one, &Secret::new(text)).unwrap();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o600);
            let directory = fs::metadata(path.parent().unwrap()).unwrap();
            assert_eq!(directory.permissions().mode() & 0o7777, 0o700);
            assert_eq!(keys.read(one).unwrap(), Some(Secret::new(text)));
        }
        assert_eq!(keys.only_server().as_deref(), Some(one));
        keys.keep(two, &Secret::new("third")).unwrap();
        assert!(keys.only_server().is_none());
        assert!(keys.forget(one).unwrap() && !keys.forget(one).unwrap());
        assert_eq!(keys.only_server().as_deref(), Some(two));
        assert!(keys.path(&"x".repeat(300)).is_err());
    }
}
