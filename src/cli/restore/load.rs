//! One dump into one database, in one transaction: `pg_restore` writes the dump as a script, and
//! `psql` runs it between a beginning that clears the schema and an end that commits.
//!
//! The end is said by us, last and only if `pg_restore` has ended well. Whatever is cut off before
//! (this process killed, too) ends the script without it, and the database is as it was.

use super::super::backup::{Database, Pace, Programs, Watch};
use super::super::{Failure, Outcome};
use crate::store::connect::Environment;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Locks on what is removed are waited for this long; nobody is to hold any.
const BEGIN: &str =
    "begin;\nset local lock_timeout = '30s';\nset local client_min_messages = warning;\n";
const CLEAR: &str = include_str!("../../../sql/restore/clear.sql");
/// A dump carries no statistics that every version restores.
const END: &str = "\ncommit;\nanalyze;\n";

/// Where a dump goes.
pub(super) struct Target<'a> {
    pub(super) programs: &'a Programs,
    pub(super) environment: Environment,
    pub(super) path: PathBuf,
    /// For people, while it goes on.
    pub(super) what: &'static str,
}

/// A dump and where it goes.
pub(super) struct Load<'a> {
    target: &'a Target<'a>,
    schema: &'a str,
}

impl<'a> Target<'a> {
    pub(super) fn of(&'a self, dumped: &'a Database) -> Load<'a> {
        Load {
            target: self,
            schema: &dumped.schema,
        }
    }
}

/// Replaces what the schema holds by what was dumped.
///
/// # Errors
/// One of the programs failed, or this process was told to end: the database is as it was.
pub(super) fn load(load: &Load<'_>, watch: &Watch) -> Outcome {
    let target = load.target;
    let mut command = Command::new(&target.programs.psql);
    target.environment.apply(&mut command);
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
    let mut command = Command::new(&target.programs.restore);
    command.env_clear().env("LC_ALL", "C");
    command
        .args(["--file=-", "--no-owner", "--no-privileges"])
        .arg(format!("--schema={}", load.schema))
        .arg(&target.path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut dump = watch.spawn("pg_restore", &mut command)?;
    let Some(mut output) = dump.stdout() else {
        return Err(Failure::new("pg_restore gives no output."));
    };
    let written = script
        .write_all(BEGIN.as_bytes())
        .and_then(|()| script.write_all(CLEAR.as_bytes()))
        .and_then(|()| pass_on(&mut output, &mut script, target.what));
    if let Err(error) = written {
        drop(script);
        if error.kind() == ErrorKind::BrokenPipe {
            // psql has ended, and says why.
            psql.finish()?;
        }
        return Err(Failure::from(error));
    }
    dump.finish()?;
    watch.check()?;
    script.write_all(END.as_bytes())?;
    drop(script);
    psql.finish()
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
