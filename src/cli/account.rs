//! Accounts of this host: owners of files, and commands that run as another account.
//!
//! Not here: accounts that are not in `/etc/passwd`.

use super::{Failure, Outcome};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

const PASSWD: &str = "/etc/passwd";

/// An account of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Account {
    /// The account of this name, if there is one.
    ///
    /// # Errors
    /// The accounts cannot be read.
    pub(super) fn find(name: &str) -> Outcome<Option<Self>> {
        let accounts = std::fs::read_to_string(Path::new(PASSWD))
            .map_err(|error| Failure::new(format!("{PASSWD} cannot be read: {error}.")))?;
        Ok(Self::among(&accounts, name))
    }

    fn among(accounts: &str, name: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next().filter(|found| *found == name)?;
            let uid = fields.nth(1)?.parse().ok()?;
            let gid = fields.next()?.parse().ok()?;
            Some(Self {
                name: name.to_owned(),
                uid,
                gid,
            })
        })
    }

    /// This program again, as this account.
    pub(super) fn this_program(&self) -> Command {
        let mut command = this_program();
        if is_root() {
            // The standard library also drops root's supplementary groups here.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }
}

/// This program again, with an empty environment. It runs through the kernel's open file, because
/// the other account may not be able to reach its path.
pub(super) fn this_program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.env_clear().current_dir("/").stdin(Stdio::null());
    command
}

/// Whether this process may act as any account.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts = "root:x:0:0::/root:/bin/sh\npostgres-2:x:7:8::/:/x\npostgres:x:101:103::/p:/y\nbroken\n";
        let found = Account::among(accounts, "postgres").unwrap();
        assert_eq!((found.uid, found.gid), (101, 103));
        assert_eq!(Account::among(accounts, "post"), None);
        assert_eq!(Account::among(accounts, "broken"), None);
    }
}
