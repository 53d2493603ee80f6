//! Transactions whose every statement asks before it is sent, and actors whose statements a schedule orders.

use crate::harness::{Database, PATIENCE};
use agent_runtime::error::Result;
use agent_runtime::store::{Parameter, Sql};
use postgres::{Client, Row, Statement};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Called before each statement and before the commit; an error ends the transaction there.
pub(super) type Before<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Statements of one transaction.
pub(super) struct Stepped<'a> {
    client: &'a mut Client,
    before: Before<'a>,
}

impl Sql for Stepped<'_> {
    fn prepared(&mut self, sql: &'static str) -> Result<Statement> {
        Ok(self.client.prepare(sql)?)
    }

    fn query(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>> {
        (self.before)()?;
        Ok(self.client.query(sql, parameters)?)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<u64> {
        (self.before)()?;
        Ok(self.client.execute(sql, parameters)?)
    }
}

/// A transaction: committed if `work` succeeds. After an error the connection is left where it stands, as a crash leaves
/// it, and is not used again.
pub(super) fn transact<T>(
    client: &mut Client,
    before: Before<'_>,
    work: impl FnOnce(&mut Stepped<'_>) -> Result<T>,
) -> Result<T> {
    client.batch_execute("begin")?;
    let value = work(&mut Stepped {
        client,
        before: &mut *before,
    })?;
    before()?;
    client.batch_execute("commit")?;
    Ok(value)
}

/// A transaction that nothing interrupts.
pub(super) fn whole<T>(client: &mut Client, work: impl FnOnce(&mut Stepped<'_>) -> Result<T>) -> T {
    transact(client, &mut || Ok(()), work).unwrap()
}

/// What an actor does on its connection.
pub(super) type Work<'a> = Box<dyn FnOnce(&mut Client, Before<'_>) + Send + 'a>;

enum State {
    /// It asks for its next statement.
    Ready,
    /// It was let go, and has not come back: it works, or waits for a lock.
    Away,
    Done,
}

struct Actors {
    pids: Vec<i32>,
    states: Vec<State>,
    go: Vec<Sender<()>>,
    reports: Receiver<(usize, bool)>,
    looker: Client,
}

/// Runs the actors, one statement at a time: `choices` says whose comes next among those that are not blocked by a lock.
pub(super) fn interleave(database: &Database, works: Vec<Work<'_>>, choices: &[u8]) {
    let (report, reports) = mpsc::channel();
    let mut clients: Vec<Client> = works.iter().map(|_| database.client()).collect();
    let pid = |client: &mut Client| {
        let row = client.query_one("select pg_backend_pid()", &[]);
        row.unwrap().get(0)
    };
    let mut actors = Actors {
        pids: clients.iter_mut().map(pid).collect(),
        states: works.iter().map(|_| State::Away).collect(),
        go: Vec::new(),
        reports,
        looker: database.client(),
    };
    std::thread::scope(|scope| {
        for (at, (work, mut client)) in works.into_iter().zip(clients).enumerate() {
            let (go, gone) = mpsc::channel::<()>();
            actors.go.push(go);
            let report = report.clone();
            scope.spawn(move || {
                let mut before = || {
                    report.send((at, false)).unwrap();
                    gone.recv_timeout(PATIENCE).unwrap();
                    Ok(())
                };
                work(&mut client, &mut before);
                report.send((at, true)).unwrap();
            });
        }
        let mut choices = choices.iter();
        while let Some(ready) = actors.run_until_blocked() {
            let choice = usize::from(choices.next().copied().unwrap_or_default());
            actors.let_go(ready[choice % ready.len()]);
        }
    });
}

impl Actors {
    fn let_go(&mut self, at: usize) {
        self.states[at] = State::Away;
        self.go[at].send(()).unwrap();
    }

    /// Waits until every actor asks, waits for a lock, or is done. Those that ask; none once all are done.
    fn run_until_blocked(&mut self) -> Option<Vec<usize>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.reports.recv_timeout(Duration::from_millis(1)) {
                Ok((at, is_done)) => {
                    self.states[at] = if is_done { State::Done } else { State::Ready };
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("every actor is gone"),
            }
            assert!(Instant::now() < deadline, "the actors stand still");
            let of = |wanted: fn(&State) -> bool| -> Vec<usize> {
                let states = self.states.iter().enumerate();
                states
                    .filter(|(_, state)| wanted(state))
                    .map(|(at, _)| at)
                    .collect()
            };
            let (away, ready) = (
                of(|state| matches!(state, State::Away)),
                of(|state| matches!(state, State::Ready)),
            );
            if away.is_empty() && ready.is_empty() {
                return None;
            }
            if !ready.is_empty() && self.are_blocked(&away) {
                return Some(ready);
            }
        }
    }

    fn are_blocked(&mut self, away: &[usize]) -> bool {
        if away.is_empty() {
            return true;
        }
        let pids: Vec<i32> = away.iter().map(|at| self.pids[*at]).collect();
        let row = self.looker.query_one(
            "select count(*) from pg_stat_activity where pid = any ($1) and wait_event_type = 'Lock'",
            &[&pids],
        );
        let blocked: i64 = row.unwrap().get(0);
        usize::try_from(blocked).unwrap() == away.len()
    }
}
