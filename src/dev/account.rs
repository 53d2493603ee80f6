//! The account that runs the private PostgreSQL, and directories that this account can use.
//!
//! PostgreSQL refuses to run as root, so under root a system user runs it. Any other user runs it
//! directly. The system user owns only the inner directories. The directory around them stays
//! root's, so the server's user cannot replace anything that root opens there.

use super::failure::Failure;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// System users that may run the server for root, in order of preference.
const SYSTEM_USERS: [&str; 2] = ["postgres", "nobody"];

/// The account that the server runs under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    gid: u32,
    /// This process is root, and the server runs as another user.
    switched: bool,
}

impl Account {
    /// This process's account, or under root a system user.
    pub(super) fn choose() -> Result<Self, Failure> {
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            return Ok(Self {
                name: format!("uid {}", uid.as_raw()),
                uid: uid.as_raw(),
                gid: rustix::process::getegid().as_raw(),
                switched: false,
            });
        }
        let users = fs::read_to_string("/etc/passwd")
            .map_err(|fault| Failure::io("read", Path::new("/etc/passwd"), &fault))?;
        Self::among(&users).ok_or_else(|| {
            Failure::new(format!(
                "PostgreSQL does not run as root, and none of the users {} exists to run it. \
                 Start as an ordinary user, or create the user: useradd --system postgres",
                SYSTEM_USERS.join(", ")
            ))
        })
    }

    /// The first of the system users in the text of a passwd file.
    fn among(passwd: &str) -> Option<Self> {
        SYSTEM_USERS.iter().find_map(|wanted| {
            passwd.lines().find_map(|line| {
                let mut fields = line.split(':');
                let name = fields.next().filter(|name| name == wanted)?;
                let uid = fields.nth(1)?.parse().ok().filter(|uid| *uid != 0)?;
                let gid = fields.next()?.parse().ok()?;
                Some(Self {
                    name: name.to_owned(),
                    uid,
                    gid,
                    switched: true,
                })
            })
        })
    }

    /// A command that runs as this account, in its own process group, so that Ctrl-C reaches only
    /// this process. It gets none of the environment: `PG…` variables would change what it does.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = quiet_command(program);
        if self.switched {
            // The standard library also drops root's supplementary groups here.
            command.uid(self.uid).gid(self.gid).current_dir("/");
        }
        command
    }

    /// Makes `path` and its parents, owned by this process's user and private. Under root other
    /// users may pass through, because the server's directories lie inside.
    pub(super) fn make_outer(&self, path: &Path) -> Result<(), Failure> {
        let missing: Vec<&Path> = path.ancestors().take_while(|dir| !dir.exists()).collect();
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(path);
        made.map_err(|fault| Failure::io("create", path, &fault))?;
        if self.switched {
            for dir in missing {
                set_mode(dir, 0o755)?;
            }
            set_mode(path, 0o711)
        } else {
            set_mode(path, 0o700)
        }
    }

    /// Makes `path` private to this account (and root). An existing directory must already be
    /// private, because other users may be able to write around it.
    pub(super) fn make_private(&self, path: &Path) -> Result<(), Failure> {
        match DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {
                set_mode(path, 0o700)?;
                chown(path, Some(self.uid), Some(self.gid))
                    .map_err(|fault| Failure::io("hand over", path, &fault))
            }
            Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {
                self.check_private(path)
            }
            Err(fault) => Err(Failure::io("create", path, &fault)),
        }
    }

    fn check_private(&self, path: &Path) -> Result<(), Failure> {
        let found =
            fs::symlink_metadata(path).map_err(|fault| Failure::io("look at", path, &fault))?;
        if !found.is_dir() {
            return Err(Failure::new(format!(
                "{} is in the way: it should be a directory. Move it away and start again.",
                path.display()
            )));
        }
        if found.uid() != self.uid {
            return Err(Failure::new(format!(
                "{} belongs to uid {}, but the server runs as {} (uid {}). It was made by another \
                 user: use another data directory, or start as that user.",
                path.display(),
                found.uid(),
                self.name,
                self.uid
            )));
        }
        set_mode(path, 0o700)
    }

    /// The first directory towards `path` that this account cannot enter.
    pub(super) fn blocked_at(&self, path: &Path) -> Option<PathBuf> {
        if !self.switched {
            return None;
        }
        let mut ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
        ancestors.reverse();
        ancestors.into_iter().find_map(|dir| {
            let found = fs::metadata(dir).ok()?;
            let bit = if found.uid() == self.uid {
                0o100
            } else if found.gid() == self.gid {
                0o010
            } else {
                0o001
            };
            (found.mode() & bit == 0).then(|| dir.to_owned())
        })
    }

    /// Fails if this account cannot reach the path, and says at which directory.
    pub(super) fn check_reach(&self, path: &Path) -> Result<(), Failure> {
        match self.blocked_at(path) {
            None => Ok(()),
            Some(dir) => Err(Failure::new(format!(
                "PostgreSQL runs as the user {} here, who cannot enter {} to reach {}. Use a \
                 directory that this user can reach, or start as an ordinary user.",
                self.name,
                dir.display(),
                path.display()
            ))),
        }
    }
}

/// A command in its own process group, with a small fixed environment.
pub(super) fn quiet_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(std::process::Stdio::null());
    command
}

fn set_mode(path: &Path, mode: u32) -> Result<(), Failure> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|fault| Failure::io("set the permissions of", path, &fault))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_takes_postgres_before_nobody_and_never_root() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65533::/:/x\npostgres:x:101:103::/p:/y\n";
        let found = Account::among(passwd).unwrap();
        assert_eq!(
            (found.name.as_str(), found.uid, found.gid),
            ("postgres", 101, 103)
        );
        let found = Account::among(&passwd.replace("postgres", "other")).unwrap();
        assert_eq!((found.name.as_str(), found.uid), ("nobody", 65534));
        assert_eq!(Account::among("postgres:x:0:0::/:/x\nbroken\n"), None);
    }

    #[test]
    fn a_closed_parent_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("closed/inner");
        fs::create_dir_all(&inner).unwrap();
        set_mode(dir.path(), 0o755).unwrap();
        set_mode(&dir.path().join("closed"), 0o700).unwrap();
        let other = Account {
            name: "someone".to_owned(),
            uid: 64_999,
            gid: 64_999,
            switched: true,
        };
        assert_eq!(other.blocked_at(&inner), Some(dir.path().join("closed")));
        let text = other.check_reach(&inner).unwrap_err().to_string();
        assert!(
            text.contains("someone") && text.contains("closed"),
            "{text}"
        );
        set_mode(&dir.path().join("closed"), 0o711).unwrap();
        assert_eq!(other.blocked_at(&inner), None);
    }
}
