//! The other side: the DBOS library in a process of its own, its tables in a database of their own on the service's
//! cluster.

use super::super::Outcome;
use super::super::deployment::Deployment;
use super::super::peer::{Peer, parts, source};
use super::{CLIENTS_AT_ONCE, Calls, MESSAGE, Side, tool_schema};
use serde_json::json;
use std::cell::RefCell;
use std::process::Command;

/// What it documents: workflows as functions on threads, or as coroutines on one event loop.
const WAYS: [&str; 2] = ["threads", "loop"];
/// Of each way, to find the faster.
const TRIED: usize = 160;

pub(super) struct Dbos {
    peer: RefCell<Peer>,
    way: &'static str,
    database_url: String,
}

impl Dbos {
    /// Starts it, and keeps to the faster of its ways; in a fresh process, which knows that one alone.
    pub(super) fn start(deployment: &Deployment, calls: &Calls<'_>) -> Outcome<Self> {
        deployment
            .database()?
            .batch_execute("create database dbos")?;
        let url = deployment.database_url();
        let cluster = url.strip_suffix("/postgres").ok_or("another database")?;
        let database_url = format!("{cluster}/dbos");
        let mut fastest: Option<(f64, &'static str)> = None;
        for way in WAYS {
            let tried = Self::of(way, &database_url, calls)?;
            let rate = tried.load(CLIENTS_AT_ONCE, TRIED)?;
            println!("  the library's way of {way}: {rate:.1} turns/s");
            if fastest.is_none_or(|(best, _)| rate > best) {
                fastest = Some((rate, way));
            }
        }
        let (_, way) = fastest.ok_or("no way")?;
        Self::of(way, &database_url, calls)
    }

    fn of(way: &'static str, database_url: &str, calls: &Calls<'_>) -> Outcome<Self> {
        let mut command = Command::new(parts()?.join("peer-dbos/bin/python"));
        command
            .arg(source("tests/bench/peers/dbos_turns.py"))
            .args([database_url, &calls.provider.base_url(), &calls.tool.url()]);
        Ok(Self {
            peer: RefCell::new(Peer::start(command)?),
            way,
            database_url: database_url.to_owned(),
        })
    }

    pub(super) fn versions(&self) -> Vec<String> {
        self.peer.borrow().versions.clone()
    }
}

impl Side for Dbos {
    const NAME: &'static str = "DBOS";
    const STEPS: &'static str = "select count(*) from dbos.operation_outputs where error is null and completed_at_epoch_ms is not null";

    fn process(&self) -> u32 {
        self.peer.borrow().id()
    }

    fn database(&self) -> Outcome<postgres::Client> {
        Ok(postgres::Client::connect(
            &self.database_url,
            postgres::NoTls,
        )?)
    }

    fn load(&self, clients: usize, turns: usize) -> Outcome<f64> {
        let each = turns.div_ceil(clients);
        let order = json!({"way": self.way, "clients": clients, "each": each, "message": MESSAGE, "tools": [tool_schema()]});
        let seconds = self.peer.borrow_mut().number(&order, "seconds")?;
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let turns = (clients * each) as f64;
        Ok(turns / seconds)
    }
}
