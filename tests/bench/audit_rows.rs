//! Decisions in the tables of the audit, as many as wanted, over five whole months of the past.
//!
//! They are what three writers would have left, in the order of their time, each in its month's partition, which is made apart
//! and then attached, as the service makes one; every index is the service's own. The planner's figures are taken anew
//! afterwards. Not here: the question asked of the model, which makes a record half as long again, and the chain of digests,
//! which no page reads.

use super::Outcome;
use super::world::World;
use postgres::Client;
use std::thread::Builder;
use std::time::SystemTime;
use uuid::Uuid;

/// Connections that load at once.
const LOADING: usize = 2;
/// Values of a filter that are asked about in turn.
const ASKED: i64 = 10;

const FILL: &str = include_str!("audit_rows.sql");

const MONTHS: &str = "select to_char(month, 'YYYYMM'), month at time zone 'UTC',
  (month at time zone 'UTC')::text, ((month + interval '1 month') at time zone 'UTC')::text,
  extract(epoch from month + interval '1 month' - month)::float8 * 1e6
from generate_series(
  date_trunc('month', now() at time zone 'UTC') - interval '6 months',
  date_trunc('month', now() at time zone 'UTC') - interval '2 months', interval '1 month') as month";

/// The slots as their last batches left them; no page reads the digests.
const WRITERS: &str = "insert into audit_writers
  (slot, epoch, position, decided_at, allowed_digest, denied_digest)
select slot, 1, max(position), max(decided_at), decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex')
from audit_decisions where decided_at >= $1
group by slot";

/// One outcome's decisions of one month.
struct Part {
    parent: &'static str,
    outcome: &'static str,
    month: String,
    starts: SystemTime,
    /// As the partition's bounds are written.
    bounds: [String; 2],
    /// The first and the one after the last, over all outcomes.
    numbers: [i64; 2],
    /// Between two decisions.
    step_us: f64,
}

/// What a page is asked for by.
#[derive(Clone, Copy)]
pub(crate) enum Filter {
    Actor,
    Resource,
    Run,
}

impl Part {
    /// Makes it, fills it and attaches it; how many rows it has.
    fn load(&self, database: &mut Client, tenant_id: Uuid) -> Outcome<u64> {
        let (parent, [from, to]) = (self.parent, &self.bounds);
        let table = format!("{parent}_{}", self.month);
        database.batch_execute(&format!(
            "set maintenance_work_mem = '256MB';
             create table {table} (like {parent} including defaults including constraints including storage)"
        ))?;
        let [first, end] = self.numbers;
        let rows = database.execute(
            &FILL.replace("audit_part", &table),
            &[
                &tenant_id,
                &first,
                &end,
                &self.starts,
                &self.step_us,
                &self.outcome,
            ],
        )?;
        database.batch_execute(&format!(
            "alter table {parent} attach partition {table} for values from ('{from}') to ('{to}')"
        ))?;
        Ok(rows)
    }
}

fn parts(database: &mut Client, rows: usize) -> Outcome<Vec<Part>> {
    let months = database.query(MONTHS, &[])?;
    let (rows, count) = (i64::try_from(rows)?, i64::try_from(months.len())?);
    let mut parts = Vec::new();
    for (place, month) in (0..count).zip(&months) {
        let numbers = [rows * place / count, rows * (place + 1) / count];
        let length_us: f64 = month.get(4);
        for (parent, outcome) in [
            ("audit_decisions_allowed", "allowed"),
            ("audit_decisions_denied", "denied"),
        ] {
            parts.push(Part {
                parent,
                outcome,
                month: month.get(0),
                starts: month.get(1),
                bounds: [month.get(2), month.get(3)],
                numbers,
                step_us: length_us / (numbers[1] - numbers[0]) as f64,
            });
        }
    }
    Ok(parts)
}

/// Puts so many decisions of the world's tenant into its tables, which have none.
pub(crate) fn fill(world: &World, rows: usize) -> Outcome {
    let mut database = world.database()?;
    let (sender, left) = crossbeam_channel::unbounded();
    let mut last = SystemTime::UNIX_EPOCH;
    for part in parts(&mut database, rows)? {
        last = last.max(part.starts);
        sender.send(part)?;
    }
    drop(sender);
    let some = || -> Result<u64, String> {
        let mut loaded = 0;
        let mut database = world.database().map_err(|error| error.to_string())?;
        for part in &left {
            let part = part.load(&mut database, world.seeds.tenant_id);
            loaded += part.map_err(|error| format!("loading: {error:?}"))?;
        }
        Ok(loaded)
    };
    let loaded = std::thread::scope(|scope| {
        let threads: std::io::Result<Vec<_>> = (0..LOADING)
            .map(|number| {
                let thread = Builder::new().name(format!("load-{number}"));
                thread.spawn_scoped(scope, some)
            })
            .collect();
        let ended = threads.map_err(|error| error.to_string())?.into_iter();
        ended
            .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
            .sum::<Result<u64, String>>()
    })?;
    if loaded != rows as u64 {
        return Err(format!("{loaded} of {rows} decisions were loaded").into());
    }
    database.execute(WRITERS, &[&last])?;
    database.batch_execute("analyze audit_decisions; analyze audit_writers; checkpoint")?;
    Ok(())
}

impl Filter {
    /// In the page's address.
    pub(crate) const fn parameter(self) -> &'static str {
        match self {
            Self::Actor => "actorSubject",
            Self::Resource => "resource",
            Self::Run => "runId",
        }
    }

    const fn column(self) -> &'static str {
        match self {
            Self::Actor => "actor_subject",
            Self::Resource => "resource",
            Self::Run => "run_id",
        }
    }

    /// The values that most decisions have: two of a hundred each of these actors, one each of the others.
    pub(crate) fn often(self, database: &mut Client) -> Outcome<Vec<String>> {
        let value = match self {
            Self::Actor => "'user:' || md5('actor' || number)::uuid",
            Self::Resource => "'project:' || md5('about5' || number)::uuid",
            Self::Run => "(md5('about0' || number)::uuid)::text",
        };
        let values = format!("select {value} from generate_series(0, $1::bigint - 1) as number");
        let rows = database.query(&values, &[&ASKED])?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// How many decisions have it, of so many that are looked at.
    pub(crate) fn count(self, database: &mut Client, value: &str, most: usize) -> Outcome<usize> {
        let column = self.column();
        let count = format!(
            "select count(*) from (select from audit_decisions
             where tenant_id = (select tenant_id from tenants) and {column} = '{value}' limit {most}) as found"
        );
        let count: i64 = database.query_one(&count, &[])?.get(0);
        Ok(usize::try_from(count)?)
    }

    /// Which decisions a page shall have.
    pub(crate) fn ids(
        self,
        database: &mut Client,
        value: &str,
        order: &str,
        before: usize,
        rows: usize,
    ) -> Outcome<Vec<Uuid>> {
        let column = self.column();
        let ids = format!(
            "select id from audit_decisions
             where tenant_id = (select tenant_id from tenants) and {column} = '{value}'
             order by decided_at {order}, slot {order}, position {order} offset {before} limit {rows}"
        );
        let ids = database.query(&ids, &[])?;
        Ok(ids.iter().map(|row| row.get(0)).collect())
    }
}
