//! The other side: the DBOS library in a process of its own, its tables in a database of their own on the service's
//! cluster.

use super::super::Outcome;
use super::super::deployment::Deployment;
use super::super::peer::{Peer, parts, source};
use super::{CLIENTS_AT_ONCE, Calls, Each, MESSAGE, Side, tool_schema};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::process::Command;

/// What it documents: workflows as functions on threads, or as coroutines on one event loop.
const WAYS: [&str; 2] = ["threads", "loop"];
/// Of each way, to find the faster.
const TRIED: usize = 160;

/// Where it keeps its tables, and what its steps call.
pub(crate) struct Library {
    database_url: String,
    provider_url: String,
    tool_url: String,
}

impl Library {
    /// Makes it a database on the service's cluster.
    pub(crate) fn start(deployment: &Deployment, calls: &Calls<'_>) -> Outcome<Self> {
        Ok(Self {
            database_url: deployment.further_database("dbos")?,
            provider_url: calls.provider.base_url(),
            tool_url: calls.tool.url(),
        })
    }

    /// A process that makes this workflow in the faster of its ways: a fresh one, which knows that way alone.
    pub(crate) fn fastest(&self, workflow: &'static str, each: Each) -> Outcome<Dbos> {
        let mut fastest: Option<(f64, &'static str)> = None;
        for way in WAYS {
            let tried = self.process(workflow, each, way)?;
            let rate = tried.load(CLIENTS_AT_ONCE, TRIED)?;
            println!("  the library's way of {way}: {rate:.1} runs/s");
            if fastest.is_none_or(|(best, _)| rate > best) {
                fastest = Some((rate, way));
            }
        }
        let (_, way) = fastest.ok_or("no way")?;
        self.process(workflow, each, way)
    }

    /// A process of it.
    pub(crate) fn peer(&self) -> Outcome<Peer> {
        let mut command = Command::new(parts()?.join("peer-dbos/bin/python"));
        command.arg(source("tests/bench/peers/dbos_runs.py")).args([
            &self.database_url,
            &self.provider_url,
            &self.tool_url,
        ]);
        Peer::start(command)
    }

    fn process(&self, workflow: &'static str, each: Each, way: &'static str) -> Outcome<Dbos> {
        Ok(Dbos {
            peer: RefCell::new(self.peer()?),
            workflow,
            each,
            way,
            database_url: self.database_url.clone(),
        })
    }
}

/// A process of it that makes one workflow in one way.
pub(crate) struct Dbos {
    peer: RefCell<Peer>,
    workflow: &'static str,
    each: Each,
    way: &'static str,
    database_url: String,
}

impl Dbos {
    pub(crate) fn versions(&self) -> Vec<String> {
        self.peer.borrow().versions.clone()
    }

    /// Seconds that an order takes.
    pub(crate) fn seconds(&self, order: &Value) -> Outcome<f64> {
        self.peer.borrow_mut().number(order, "seconds")
    }
}

impl Side for Dbos {
    const NAME: &'static str = "DBOS";
    const STEPS: &'static str = "select count(*) from dbos.operation_outputs where error is null and completed_at_epoch_ms is not null";

    fn each(&self) -> Each {
        self.each
    }

    fn process(&self) -> u32 {
        self.peer.borrow().id()
    }

    fn database(&self) -> Outcome<postgres::Client> {
        Ok(postgres::Client::connect(
            &self.database_url,
            postgres::NoTls,
        )?)
    }

    fn load(&self, clients: usize, runs: usize) -> Outcome<f64> {
        let each = runs.div_ceil(clients);
        let order = json!({"workflow": self.workflow, "way": self.way, "clients": clients, "each": each,
            "message": MESSAGE, "tools": [tool_schema()]});
        let seconds = self.seconds(&order)?;
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let runs = (clients * each) as f64;
        Ok(runs / seconds)
    }
}
