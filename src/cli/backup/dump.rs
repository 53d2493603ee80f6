//! Dumps one database into one file, through a pipe from `pg_dump`. The digest is computed on the
//! way, so nothing is read twice.

use super::super::{Failure, Outcome, terminal};
use super::child::Watch;
use super::manifest::{Dumped, text_of};
use super::programs::Programs;
use crate::ids::Clock;
use crate::store::libpq::Environment;
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long `pg_dump` waits for a lock.
const LOCK_WAIT: &str = "--lock-wait-timeout=60s";
/// Pause between two progress lines.
const WORD: Duration = Duration::from_millis(500);

/// A database and how to dump it.
pub(super) struct Dump<'a> {
    pub(super) programs: &'a Programs,
    pub(super) environment: &'a Environment,
    pub(super) schema: &'a str,
    pub(super) path: &'a Path,
    /// For progress messages.
    pub(super) what: &'a str,
    /// The snapshot of another connection to use; none: a new one.
    pub(super) snapshot: Option<&'a str>,
}

/// Progress, on a terminal only.
pub(in crate::cli) struct Pace {
    what: String,
    at: Option<Instant>,
    is_shown: bool,
}

impl Pace {
    pub(in crate::cli) fn of(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            at: std::io::stderr().is_terminal().then(Instant::now),
            is_shown: false,
        }
    }

    pub(in crate::cli) fn show(&mut self, bytes: u64) {
        if let Some(at) = self.at.as_mut().filter(|at| at.elapsed() > WORD) {
            *at = Instant::now();
            self.is_shown = true;
            let megabytes = bytes / 1_000_000;
            terminal::progress(format_args!("{}: {megabytes} MB", self.what));
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        if self.is_shown {
            terminal::progress("");
        }
    }
}

/// Dumps the database.
///
/// # Errors
/// `pg_dump` failed, the file cannot be written, or this process got a signal to end.
pub(super) fn dump(wanted: &Dump<'_>, clock: &Clock, watch: &Watch) -> Outcome<Dumped> {
    let started_at = clock.now();
    let unwritten = |error: std::io::Error| {
        Failure::new(format!(
            "{} cannot be written: {error}.",
            wanted.path.display()
        ))
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(wanted.path)
        .map_err(unwritten)?;
    let mut command = Command::new(&wanted.programs.dump);
    wanted.environment.apply(&mut command);
    command
        .args([
            "--format=custom",
            "--no-password",
            "--no-unlogged-table-data",
            LOCK_WAIT,
        ])
        .arg(format!("--schema={}", exactly(wanted.schema)))
        .args(wanted.snapshot.map(|name| format!("--snapshot={name}")))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut program = watch.spawn("pg_dump", &mut command)?;
    let mut hash = Sha256::new();
    let mut bytes = 0_u64;
    let mut pace = Pace::of(wanted.what);
    if let Some(mut output) = program.stdout() {
        let mut buffer = vec![0; 256 * 1024];
        loop {
            let amount = output.read(&mut buffer)?;
            if amount == 0 {
                break;
            }
            hash.update(&buffer[..amount]);
            file.write_all(&buffer[..amount]).map_err(unwritten)?;
            bytes += amount as u64;
            pace.show(bytes);
        }
    }
    program.finish()?;
    watch.check()?;
    file.sync_all().map_err(unwritten)?;
    let ended_at = clock.now();
    // It can be read back.
    relations(wanted.programs, wanted.path, watch)?;
    let name = wanted.path.file_name().unwrap_or_default();
    Ok(Dumped {
        file: name.to_string_lossy().into_owned(),
        bytes,
        sha256: text_of(hash),
        pg_dump: wanted.programs.major,
        started_at,
        ended_at,
    })
}

/// Has `pg_restore` read a dump's table of contents, and counts the tables and indexes in it, each of which a restore locks
/// until it commits.
///
/// # Errors
/// The file is not a dump.
pub(in crate::cli) fn relations(programs: &Programs, path: &Path, watch: &Watch) -> Outcome<u64> {
    let mut command = Command::new(&programs.restore);
    command.env_clear().env("LC_ALL", "C");
    let file = File::open(path)?;
    command.arg("--list").stdin(file).stdout(Stdio::piped());
    let mut program = watch.spawn("pg_restore --list", &mut command)?;
    let mut count = 0;
    if let Some(listed) = program.stdout() {
        for line in BufReader::new(listed).split(b'\n') {
            count += u64::from(is_relation(&String::from_utf8_lossy(&line?)));
        }
    }
    program.finish()?;
    Ok(count)
}

/// Whether a line of the table of contents is a table or an index; that of a key is its constraint's.
fn is_relation(line: &str) -> bool {
    // The entry's number, two numbers of PostgreSQL's, and what it is: one or more words.
    let mut words = line.split_ascii_whitespace().skip(3);
    match (words.next(), words.next()) {
        (Some("TABLE"), Some(next)) => !["DATA", "ATTACH"].contains(&next),
        (Some("INDEX"), Some(next)) => next != "ATTACH",
        (Some("CONSTRAINT"), _) => true,
        _ => false,
    }
}

/// A pattern that matches this name only.
fn exactly(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::is_relation;

    #[test]
    fn tables_and_indexes_of_a_table_of_contents_are_counted() {
        for (line, expected) in [
            ("215; 1259 16385 TABLE public agents owner", true),
            ("3201; 0 0 TABLE ATTACH public runs_2026_11 owner", false),
            ("3402; 0 16385 TABLE DATA public agents owner", false),
            ("3100; 1259 16400 INDEX public agents_by_name owner", true),
            (
                "3300; 0 0 INDEX ATTACH public runs_2026_11_pkey owner",
                false,
            ),
            (
                "3050; 2606 16390 CONSTRAINT public agents agents_pkey owner",
                true,
            ),
            (
                "3350; 2606 16500 FK CONSTRAINT public runs runs_fkey owner",
                false,
            ),
            ("; Dumped from database version: 15.8", false),
            ("", false),
        ] {
            assert_eq!(is_relation(line), expected, "{line}");
        }
    }
}
