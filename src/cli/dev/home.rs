//! What `dev` keeps between its starts, and where other commands find it.
//!
//! Its files are in the data directory, readable by their owner only:
//!
//! | file | what is in it |
//! |---|---|
//! | `token` | the bearer token of the last start |
//! | `authorization` | the same as an HTTP header, for `curl -H @…` |
//! | `dev.json` | ids, the port of the example's tool, the URLs of the last start |
//! | `secrets.key`, `aad.key` | keys of the secrets; servers outside development refuse them |

use super::super::{Failure, Outcome, private_file};
use crate::config::{self, Vars};
use crate::dev::cluster;
use crate::ids::Clock;
use crate::secret::Secret;
use private_file::IfExists;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The data directory of `dev`.
pub(in crate::cli) struct Home(PathBuf);

/// The content of `dev.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) tenant_id: Uuid,
    pub(super) user_id: Uuid,
    /// The URL of the last start.
    #[serde(default)]
    pub(super) url: Option<String>,
    /// The URL of the authorization server of the last start, if it had one.
    #[serde(default)]
    pub(super) authorization_url: Option<String>,
    /// The port of the example's tool, whose URL is part of the agent.
    #[serde(default)]
    pub(super) tool_port: Option<u16>,
}

impl Home {
    /// The user's directory; none without a home directory.
    pub(in crate::cli) fn find(vars: &Vars) -> Option<Self> {
        let wanted = vars.user_data_directory()?.join("agent-runtime");
        Some(Self(cluster::default_data_dir(&wanted)))
    }

    /// A directory that was named.
    pub(in crate::cli) fn at(directory: &Path) -> Outcome<Self> {
        let path = std::path::absolute(directory).map_err(|error| {
            Failure::new(format!("{} is no directory: {error}.", directory.display()))
        })?;
        Ok(Self(resolved(&path)))
    }

    /// The directory that was named, else the user's.
    pub(in crate::cli) fn named_or_found(
        named: Option<&Path>,
        vars: &Vars,
    ) -> Outcome<Option<Self>> {
        match named {
            Some(directory) => Self::at(directory).map(Some),
            None => Ok(Self::find(vars)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// The key that wraps data keys, and the key that binds rows: see `config::development_key`.
    pub(super) fn key_paths(&self) -> [PathBuf; 2] {
        ["secrets.key", "aad.key"].map(|name| self.0.join(name))
    }

    /// Makes the keys that are missing.
    pub(super) fn make_keys(&self) -> Outcome {
        for path in self.key_paths() {
            let mut key = zeroize::Zeroizing::new([0; 32]);
            getrandom::fill(key.as_mut_slice())
                .map_err(|error| Failure::new(format!("There are no random bytes: {error}.")))?;
            let content = config::development_key(&key);
            private_file::write_for(private_file::OURS, &path, &content, IfExists::Keep)?;
        }
        Ok(())
    }

    pub(super) fn token_path(&self) -> PathBuf {
        self.0.join("token")
    }

    pub(super) fn authorization_path(&self) -> PathBuf {
        self.0.join("authorization")
    }

    fn kept_path(&self) -> PathBuf {
        self.0.join("dev.json")
    }

    /// The URL of the last start.
    pub(in crate::cli) fn url(&self) -> Option<String> {
        self.kept()?.url
    }

    /// The URL of the authorization server of the last start.
    pub(super) fn authorization_url(&self) -> Option<String> {
        self.kept()?.authorization_url
    }

    fn kept(&self) -> Option<Kept> {
        let text = private_file::read(&self.kept_path()).ok()??;
        serde_json::from_str(&text).ok()
    }

    /// The token, if there was a start.
    pub(in crate::cli) fn token(&self) -> Outcome<Option<Secret>> {
        let text = private_file::read(&self.token_path())?;
        Ok(text.map(|text| Secret::new(text.as_str())))
    }

    /// Creates the directory, unless the private database's start has done so.
    pub(super) fn make(&self) -> Outcome {
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.0);
        made.map_err(|error| Failure::new(format!("{} cannot be made: {error}.", self.0.display())))
    }

    /// The state of an earlier start, or new ids.
    pub(super) fn open(&self, clock: &Clock) -> Outcome<Kept> {
        match private_file::read(&self.kept_path())? {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                Failure::new(format!(
                    "{} is not what dev wrote ({error}). Move it away and start again.",
                    self.kept_path().display()
                ))
            }),
            None => Ok(Kept {
                tenant_id: clock.new_id(),
                user_id: clock.new_id(),
                url: None,
                authorization_url: None,
                tool_port: None,
            }),
        }
    }

    /// Saves the state for the next start and for other commands.
    pub(super) fn keep(&self, kept: &Kept, token: &Secret) -> Outcome {
        let json = serde_json::to_string(kept).map_err(|error| Failure::new(error.to_string()))?;
        let line = zeroize::Zeroizing::new(format!("{}\n", token.expose()));
        let header = zeroize::Zeroizing::new(format!("Authorization: Bearer {}", line.as_str()));
        private_file::write(&self.token_path(), &line, IfExists::Replace)?;
        private_file::write(&self.authorization_path(), &header, IfExists::Replace)?;
        private_file::write(&self.kept_path(), &json, IfExists::Replace)?;
        Ok(())
    }
}

/// The path without `..` and links, as far as it exists: another command finds the server by it.
fn resolved(path: &Path) -> PathBuf {
    let known = path.ancestors().find_map(|part| {
        let rest = path.strip_prefix(part).ok()?;
        let part = part.canonicalize().ok()?;
        // Joined with nothing, it would end with a slash.
        Some(part.components().chain(rest.components()).collect())
    });
    known.unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_same_by_each_of_its_paths() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = scratch.path();
        std::fs::create_dir(scratch.join("beside")).unwrap();
        let plain = Home::at(&scratch.join("data")).ok().unwrap();
        let around = Home::at(&scratch.join("beside/../data")).ok().unwrap();
        assert_eq!(around.0, plain.0);
        std::fs::create_dir(&plain.0).unwrap();
        assert_eq!(
            Home::at(&scratch.join("beside/../data")).ok().unwrap().0,
            plain.0
        );
    }
}
