//! Backups and their restores, as an operator runs them: the program's own commands, PostgreSQL's own
//! tools, a real OpenFGA.

mod cut;
mod keys;
mod restoring;
mod strangers;
mod taking;

use crate::harness::Database;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a command came to.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Said {
    #[track_caller]
    fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// An operator's shell: its variables, and a directory for backups.
struct Shell {
    variables: Vec<(&'static str, String)>,
    place: tempfile::TempDir,
}

impl Shell {
    /// For this database.
    fn on(database: &Database) -> Self {
        Self {
            variables: vec![
                ("SVC_DEV", "true".to_owned()),
                ("SVC_DATABASE_URL", database.url()),
                ("SVC_LOG_LEVEL", "error".to_owned()),
            ],
            place: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.retain(|(other, _)| *other != name);
        self.variables.push((name, value.into()));
        self
    }

    /// A path beside the backups.
    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent-runtime"));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let output = self.command(arguments).output().unwrap();
        Said {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Makes a backup of this name.
    #[track_caller]
    fn backup(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        self.run(&["backup", text(&path)]).expect(0);
        path
    }

    /// Restores one, with these flags.
    fn restore(&self, path: &Path, flags: &[&str]) -> Said {
        self.run(&[&["restore", text(path)], flags].concat())
    }

    /// Puts a program before all others of its name: a script in which `$real` is the real one.
    fn in_place_of(self, name: &str, script: &str) -> Self {
        let directory = self.path("bin");
        let _ = std::fs::create_dir(&directory);
        let real = real_directory();
        for program in ["pg_dump", "pg_restore", "psql"] {
            let link = directory.join(program);
            if std::fs::symlink_metadata(&link).is_err() {
                std::os::unix::fs::symlink(real.join(program), link).unwrap();
            }
        }
        let path = directory.join(name);
        std::fs::remove_file(&path).unwrap();
        let real = real.join(name);
        let all = format!(
            "#!/bin/sh\nreal={}\nplace={}\nif [ \"$1\" = --version ]; then exec $real --version; fi\n{script}\n",
            real.display(),
            self.place.path().display()
        );
        std::fs::write(&path, all).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let search = format!("{}:/usr/bin:/bin", directory.display());
        self.with("PATH", search)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Where the programs of the server's version lie: beside the server that the tests run on.
fn real_directory() -> PathBuf {
    let database = Database::empty();
    let mut client = database.client();
    let row = client.query_one(
        "select current_setting('server_version_num')::int / 10000",
        &[],
    );
    let major: i32 = row.unwrap().get(0);
    let versioned = PathBuf::from(format!("/usr/lib/postgresql/{major}/bin"));
    let places = [versioned, PathBuf::from("/usr/bin")];
    let found = places
        .into_iter()
        .find(|place| place.join("pg_dump").exists());
    found.expect("PostgreSQL's client programs are installed (tests/setup/postgres)")
}

/// How many rows a table has.
fn count(database: &Database, table: &str) -> i64 {
    let mut client = database.client();
    let row = client.query_one(&format!("select count(*) from {table}"), &[]);
    row.unwrap().get(0)
}
