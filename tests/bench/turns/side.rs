//! What is measured of either side, in the same way: runs a second, checked at the provider, at the tool and in the
//! side's own journal; what a run leaves in the database; the process's memory. A run is an agent's turn or a flow, of
//! three steps.

use super::super::Outcome;
use super::super::machine::{Moment, resident_kib};
use super::super::rounds::Figure;
use super::{CLIENTS_AT_ONCE, Calls, Each};
use postgres::Client;
use std::cell::Cell;

/// One of those that make runs.
pub(crate) trait Side {
    const NAME: &'static str;
    /// Counts the finished steps in its journal.
    const STEPS: &'static str;

    /// What a run of it calls.
    fn each(&self) -> Each;

    fn process(&self) -> u32;

    /// A connection to the database that it keeps its journal in.
    fn database(&self) -> Outcome<Client>;

    /// Runs a second of so many clients, so many runs in all. Each client makes one more before the clock runs.
    fn load(&self, clients: usize, runs: usize) -> Outcome<f64>;
}

/// Runs that were made.
pub(crate) struct Made {
    /// A second.
    pub(crate) rate: f64,
    /// Warming up included.
    pub(crate) runs: f64,
    /// Transactions that wrote, a run.
    pub(crate) transactions: f64,
    /// Write-ahead log, a run.
    pub(crate) wal_kib: f64,
}

impl Made {
    pub(crate) fn note(&self) -> String {
        format!(
            " ({:.1} writing transactions, {:.1} KiB of log a run)",
            self.transactions, self.wal_kib
        )
    }
}

/// Where the whole cluster stands: transactions begun that wrote, and bytes of its log.
fn marks(database: &mut Client) -> Outcome<(f64, f64)> {
    let row = database.query_one(
        "select pg_snapshot_xmax(pg_current_snapshot())::text::float8, (pg_current_wal_lsn() - '0/0')::float8",
        &[],
    )?;
    Ok((row.get(0), row.get(1)))
}

fn steps<S: Side>(database: &mut Client) -> Outcome<i64> {
    Ok(database.query_one(S::STEPS, &[])?.get(0))
}

/// Makes runs, and checks that they were made: their calls, and three steps in the journal each.
pub(crate) fn made<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    runs: usize,
) -> Outcome<Made> {
    let mut database = side.database()?;
    let (calls_before, steps_before) = (calls.count(), steps::<S>(&mut database)?);
    let before = marks(&mut database)?;
    let rate = side.load(clients, runs)?;
    let after = marks(&mut database)?;
    let made = clients * runs.div_ceil(clients) + clients;
    calls.check(S::NAME, side.each(), calls_before, made)?;
    let journaled = steps::<S>(&mut database)? - steps_before;
    if usize::try_from(journaled)? != 3 * made {
        return Err(format!(
            "{}: {made} runs left {journaled} steps in the journal",
            S::NAME
        )
        .into());
    }
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    let made = made as f64;
    Ok(Made {
        rate,
        runs: made,
        transactions: (after.0 - before.0) / made,
        wal_kib: (after.1 - before.1) / made / 1024.0,
    })
}

/// A round's figure; keeps how many transactions a run took.
pub(crate) fn figure<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    count: usize,
    transactions: &Cell<f64>,
) -> Outcome<Figure> {
    let before = Moment::now();
    let made = made(side, calls, CLIENTS_AT_ONCE, count)?;
    transactions.set(made.transactions);
    Ok(Figure {
        value: made.rate,
        used: before.until_now(),
        note: made.note(),
    })
}

/// MiB of the process after more runs.
pub(crate) fn memory<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    count: usize,
) -> Outcome<f64> {
    made(side, calls, clients, count)?;
    Ok(resident_kib(side.process())? / 1024.0)
}

/// Bytes of its database, with nothing in it that a vacuum frees.
pub(crate) fn size(database: &mut Client) -> Outcome<f64> {
    database.batch_execute("vacuum")?;
    database.batch_execute("checkpoint")?;
    let size = "select pg_database_size(current_database())::float8";
    Ok(database.query_one(size, &[])?.get(0))
}

/// KiB by which its database grows a run, indexes included.
pub(crate) fn growth<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    count: usize,
) -> Outcome<f64> {
    let mut database = side.database()?;
    let before = size(&mut database)?;
    let made = made(side, calls, clients, count)?;
    Ok((size(&mut database)? - before) / made.runs / 1024.0)
}
