//! What is measured of either side, in the same way: turns a second, checked at the provider, at the tool and in the
//! side's own journal; what a turn leaves in the database; the process's memory.

use super::super::Outcome;
use super::super::machine::resident_kib;
use super::Calls;
use postgres::Client;

/// One of the two that make turns.
pub(super) trait Side {
    const NAME: &'static str;
    /// Counts the finished steps in its journal.
    const STEPS: &'static str;

    fn process(&self) -> u32;

    /// A connection to the database that it keeps its journal in.
    fn database(&self) -> Outcome<Client>;

    /// Turns a second of so many clients, so many turns in all. Each client makes one more before the clock runs.
    fn load(&self, clients: usize, turns: usize) -> Outcome<f64>;
}

/// Turns that were made.
pub(super) struct Made {
    /// A second.
    pub(super) rate: f64,
    /// Warming up included.
    pub(super) turns: f64,
    /// Transactions that wrote, a turn.
    pub(super) transactions: f64,
    /// Write-ahead log, a turn.
    pub(super) wal_kib: f64,
}

impl Made {
    pub(super) fn note(&self) -> String {
        format!(
            " ({:.1} writing transactions, {:.1} KiB of log a turn)",
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

/// Makes turns, and checks that they were made: two model calls, one tool call and three steps in the journal each.
pub(super) fn turns<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    turns: usize,
) -> Outcome<Made> {
    let mut database = side.database()?;
    let (calls_before, steps_before) = (calls.count(), steps::<S>(&mut database)?);
    let before = marks(&mut database)?;
    let rate = side.load(clients, turns)?;
    let after = marks(&mut database)?;
    let made = clients * turns.div_ceil(clients) + clients;
    calls.check(S::NAME, calls_before, made)?;
    let journaled = steps::<S>(&mut database)? - steps_before;
    if usize::try_from(journaled)? != 3 * made {
        return Err(format!(
            "{}: {made} turns left {journaled} steps in the journal",
            S::NAME
        )
        .into());
    }
    #[allow(clippy::cast_precision_loss, reason = "some thousands")]
    let made = made as f64;
    Ok(Made {
        rate,
        turns: made,
        transactions: (after.0 - before.0) / made,
        wal_kib: (after.1 - before.1) / made / 1024.0,
    })
}

/// MiB of the process after more turns.
pub(super) fn memory<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    count: usize,
) -> Outcome<f64> {
    turns(side, calls, clients, count)?;
    Ok(resident_kib(side.process())? / 1024.0)
}

/// Bytes of its database, with nothing in it that a vacuum frees.
fn size(database: &mut Client) -> Outcome<f64> {
    database.batch_execute("vacuum")?;
    database.batch_execute("checkpoint")?;
    let size = "select pg_database_size(current_database())::float8";
    Ok(database.query_one(size, &[])?.get(0))
}

/// KiB by which its database grows a turn, indexes included.
pub(super) fn growth<S: Side>(
    side: &S,
    calls: &Calls<'_>,
    clients: usize,
    count: usize,
) -> Outcome<f64> {
    let mut database = side.database()?;
    let before = size(&mut database)?;
    let made = turns(side, calls, clients, count)?;
    Ok((size(&mut database)? - before) / made.turns / 1024.0)
}
