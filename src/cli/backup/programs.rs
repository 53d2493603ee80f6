//! Finds PostgreSQL's client programs: `pg_dump`, `pg_restore` and `psql` of one directory.
//!
//! The server's own version is preferred, else the next newer one: an older `pg_dump` refuses a
//! newer server, and an older server may not accept the output of a newer one.

use super::super::{Failure, Outcome};
use crate::config::Vars;
use crate::dev;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of one version.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Programs {
    pub(in crate::cli) dump: PathBuf,
    pub(in crate::cli) restore: PathBuf,
    pub(in crate::cli) psql: PathBuf,
    pub(in crate::cli) major: u32,
}

impl Programs {
    /// The programs for a server of this `server_version_num`, of version `at_least` or newer.
    ///
    /// # Errors
    /// None are installed, or only older ones.
    pub(in crate::cli) fn find(vars: &Vars, server: i32, at_least: u32) -> Outcome<Self> {
        let server = u32::try_from(server / 10_000).unwrap_or(0);
        let directories = dev::program_directories(vars.raw("PATH"));
        let found: Vec<Self> = directories.iter().filter_map(|dir| Self::at(dir)).collect();
        choose(found, server.max(at_least))
    }

    fn at(dir: &Path) -> Option<Self> {
        let [dump, restore, psql] = ["pg_dump", "pg_restore", "psql"].map(|name| dir.join(name));
        if ![&dump, &restore, &psql].iter().all(|path| path.is_file()) {
            return None;
        }
        // Debian's wrapper in `/usr/bin` chooses a version by itself; the programs are elsewhere.
        if dump
            .canonicalize()
            .is_ok_and(|path| path.ends_with("pg_wrapper"))
        {
            return None;
        }
        let mut command = Command::new(&dump);
        command.arg("--version").env_clear().stdin(Stdio::null());
        let output = command.output().ok()?;
        Some(Self {
            major: dev::major_version(&String::from_utf8_lossy(&output.stdout))?,
            dump,
            restore,
            psql,
        })
    }
}

fn choose(found: Vec<Programs>, needed: u32) -> Outcome<Programs> {
    let newest = found.iter().map(|programs| programs.major).max();
    let fitting = found
        .into_iter()
        .filter(|programs| programs.major >= needed);
    if let Some(chosen) = fitting.min_by_key(|programs| programs.major) {
        return Ok(chosen);
    }
    Err(Failure::new(match newest {
        None => format!(
            "pg_dump, pg_restore and psql are not installed, neither in PATH nor in the usual directories. Install PostgreSQL's client programs, version {needed} (package postgresql-client-{needed} or postgresql)."
        ),
        Some(newest) => format!(
            "PostgreSQL's client programs here are of version {newest}, and {needed} or later is needed. Install postgresql-client-{needed}."
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(major: u32) -> Programs {
        let [dump, restore, psql] = ["pg_dump", "pg_restore", "psql"].map(PathBuf::from);
        Programs {
            dump,
            restore,
            psql,
            major,
        }
    }

    #[test]
    fn the_server_s_own_version_is_taken_and_never_an_older_one() {
        let all = || vec![of(18), of(14), of(15), of(16)];
        assert_eq!(choose(all(), 15).unwrap().major, 15);
        assert_eq!(choose(all(), 17).unwrap().major, 18);
        let failure = choose(vec![of(15)], 17).unwrap_err();
        assert!(
            failure.message.contains("17 or later"),
            "{}",
            failure.message
        );
        let failure = choose(Vec::new(), 15).unwrap_err();
        assert!(
            failure.message.contains("postgresql-client-15"),
            "{}",
            failure.message
        );
    }
}
