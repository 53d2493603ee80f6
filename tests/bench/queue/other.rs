//! The other queues, each in a process and a database of its own: graphile-worker (Node) and River (Go).

use crate::Outcome;
use crate::machine::{Moment, Used};
use crate::openfga::uri;
use crate::peer::{Peer, parts, source};
use postgres::{Client, NoTls};
use serde_json::json;
use std::process::Command;

pub(crate) struct Other {
    pub(crate) name: &'static str,
    pub(crate) peer: Peer,
    database: Client,
    /// Where its jobs are.
    table: &'static str,
    /// Of them, those that are not done.
    undone: &'static str,
    /// Jobs that wait for the next day.
    later: usize,
}

impl Other {
    pub(crate) fn graphile(url: &str) -> Outcome<Self> {
        let packages = parts()?.join("peer-graphile");
        let architecture = match std::env::consts::ARCH {
            "aarch64" => "arm64",
            _ => "x64",
        };
        let node = format!("node_modules/node-linux-{architecture}/bin/node");
        let mut command = Command::new(packages.join(node));
        command
            .arg(source("tests/bench/peers/graphile/main.mjs"))
            .current_dir(packages);
        Self::start(
            "graphile-worker",
            command,
            url,
            "graphile_worker._private_jobs",
            "true",
        )
    }

    pub(crate) fn river(url: &str) -> Outcome<Self> {
        let command = Command::new(parts()?.join("peer-river/river"));
        Self::start("River", command, url, "river_job", "state <> 'completed'")
    }

    /// Starts it on an empty database, of which this is the URL.
    fn start(
        name: &'static str,
        mut command: Command,
        url: &str,
        table: &'static str,
        undone: &'static str,
    ) -> Outcome<Self> {
        command
            .arg(uri(url).ok_or("no URL of a database")?)
            .env_clear()
            // What graphile-worker's documents name: no line for each job that succeeds.
            .envs([("NODE_ENV", "production"), ("NO_LOG_SUCCESS", "1")]);
        Ok(Self {
            name,
            peer: Peer::start(command)?,
            database: Client::connect(url, NoTls)?,
            table,
            undone,
            later: 0,
        })
    }

    fn count(&mut self, which: &str) -> Outcome<usize> {
        let sql = format!("select count(*) from {} where {which}", self.table);
        let row = self.database.query_one(&sql, &[])?;
        Ok(usize::try_from(row.get::<_, i64>(0))?)
    }

    /// Checks that this many jobs are not done.
    fn left(&mut self, jobs: usize) -> Outcome {
        match self.count(self.undone)? {
            waiting if waiting == jobs => Ok(()),
            waiting => Err(format!("{}: {waiting} jobs wait, not {jobs}", self.name).into()),
        }
    }

    /// Leaves this many jobs waiting, on vacuumed pages.
    pub(crate) fn fill(&mut self, jobs: usize) -> Outcome {
        self.later = 0;
        self.refill(jobs, false)
    }

    /// Leaves this many jobs waiting for the next day.
    pub(crate) fn fill_later(&mut self, jobs: usize) -> Outcome {
        self.later = jobs;
        self.refill(jobs, true)
    }

    fn refill(&mut self, jobs: usize, later: bool) -> Outcome {
        let table = self.table;
        self.database.batch_execute(&format!("truncate {table}"))?;
        if jobs > 0 {
            self.peer.ask(&json!({"fill": jobs, "later": later}))?;
        }
        self.database
            .batch_execute(&format!("vacuum analyze {table}"))?;
        self.database.batch_execute("checkpoint")?;
        self.left(jobs)
    }

    /// Jobs a second, from before its worker starts until the last job is completed.
    pub(crate) fn drain(&mut self, jobs: usize) -> Outcome<(f64, Used)> {
        let before = Moment::now();
        let seconds = self.peer.number(&json!({"drain": jobs}), "seconds")?;
        let used = before.until_now();
        self.left(self.later)?;
        Ok((jobs as f64 / seconds, used))
    }

    /// Milliseconds from the enqueue's commit to the handler's first line, one job at a time.
    pub(crate) fn starts(&mut self, jobs: usize) -> Outcome<(Vec<f64>, Used)> {
        let before = Moment::now();
        let answer = self.peer.ask(&json!({"starts": jobs}))?;
        let used = before.until_now();
        let took: Vec<f64> = serde_json::from_value(answer["milliseconds"].clone())?;
        self.left(self.later)?;
        match took.len() {
            started if started == jobs => Ok((took, used)),
            started => Err(format!("{}: {started} of {jobs} jobs started", self.name).into()),
        }
    }
}
