//! Loads one dump into one database in one transaction. `pg_restore` writes the dump as a script,
//! and `psql` runs it after a prologue that clears the schema and before an epilogue that commits.
//!
//! This process sends the epilogue last, and only if `pg_restore` succeeded. An interruption
//! before, even of this process, ends the script without it, and the database stays as it was.

use super::super::backup::{Pace, Program, Programs, Watch};
use super::super::{Failure, Outcome};
use crate::store::libpq::Environment;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

/// How long a lock on what is removed is waited for; nobody should hold one.
const BEGIN: &str =
    "begin;\nset local lock_timeout = '30s';\nset local client_min_messages = warning;\n";
const CLEAR: &str = include_str!("../../../sql/restore/clear.sql");
const END: &str = "\ncommit;\n";

/// psql's exit code if the server refused a statement; the transaction is then rolled back.
const SCRIPT_FAILED: i32 = 3;

/// A dump and its target.
pub(super) struct Load<'a> {
    pub(super) programs: &'a Programs,
    pub(super) environment: &'a Environment,
    pub(super) path: &'a Path,
    pub(super) schema: &'a str,
    /// For progress messages.
    pub(super) what: &'static str,
}

/// A load that failed.
pub(super) struct Cut {
    pub(super) failure: Failure,
    /// Whether the database is as it was. Unknown if the connection was lost during the commit.
    pub(super) is_undone: bool,
}

impl Cut {
    pub(super) fn undone(failure: Failure) -> Self {
        Self {
            failure,
            is_undone: true,
        }
    }
}

/// Replaces the schema's content with the dump.
///
/// # Errors
/// One of the programs failed, or this process got a signal to end.
pub(super) fn load(load: &Load<'_>, watch: &Watch) -> Result<(), Cut> {
    let (psql, mut script) = run(load, watch).map_err(Cut::undone)?;
    let written = script.write_all(END.as_bytes()).map_err(Failure::from);
    drop(script);
    // psql's message says more.
    let (code, failure) = match psql.end() {
        Ok(ended) => (ended.code, ended.failure.or(written.err())),
        Err(failure) => (None, Some(failure)),
    };
    failure.map_or(Ok(()), |failure| {
        Err(Cut {
            failure,
            is_undone: code == Some(SCRIPT_FAILED),
        })
    })
}

/// The whole script except its epilogue.
fn run(load: &Load<'_>, watch: &Watch) -> Outcome<(Program, ChildStdin)> {
    let mut command = Command::new(&load.programs.psql);
    load.environment.apply(&mut command);
    command
        .args([
            "--no-psqlrc",
            "--no-password",
            "--quiet",
            "--set=ON_ERROR_STOP=1",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut psql = watch.spawn("psql", &mut command)?;
    let Some(mut script) = psql.stdin() else {
        return Err(Failure::new("psql takes no input."));
    };
    let mut command = Command::new(&load.programs.restore);
    command.env_clear().env("LC_ALL", "C");
    command
        .args(["--file=-", "--no-owner", "--no-privileges"])
        .arg(format!("--schema={}", load.schema))
        .arg(load.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut dump = watch.spawn("pg_restore", &mut command)?;
    let Some(mut output) = dump.stdout() else {
        return Err(Failure::new("pg_restore gives no output."));
    };
    let written = script
        .write_all(BEGIN.as_bytes())
        .and_then(|()| script.write_all(CLEAR.as_bytes()))
        .and_then(|()| pass_on(&mut output, &mut script, load.what));
    if let Err(error) = written {
        drop(script);
        if error.kind() == ErrorKind::BrokenPipe {
            // psql has ended and reports why.
            psql.finish()?;
        }
        return Err(Failure::from(error));
    }
    dump.finish()?;
    watch.check()?;
    Ok((psql, script))
}

fn pass_on(from: &mut impl Read, to: &mut impl Write, what: &str) -> std::io::Result<()> {
    let mut pace = Pace::of(&format!("restoring {what}"));
    let mut buffer = vec![0; 256 * 1024];
    let mut bytes = 0;
    loop {
        let amount = from.read(&mut buffer)?;
        if amount == 0 {
            return Ok(());
        }
        to.write_all(&buffer[..amount])?;
        bytes += amount as u64;
        pace.show(bytes);
    }
}
