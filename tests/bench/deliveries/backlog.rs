//! Fresh deliveries a second while very many retries wait, beside the same while none does: two services, each with a
//! database of its own, measured in turns.
//!
//! The retries are spread over a hundred endpoints. Sixteen of them answer again and are those that the fresh deliveries go
//! to, so that both kinds lie under the same keys; the others are still away. All are due long after the benchmark.

use super::commits::limit;
use crate::Outcome;
use crate::hooks::{Group, Hooks};
use crate::plan::Plan;
use crate::rounds::{Figure, Measure, compare, grow};
use crate::row::{About, Row, Target};
use uuid::Uuid;

const FRESH: usize = 16;
const AWAY: usize = 84;
/// Retries that one statement writes at most.
const BATCH: usize = 50_000;
const FEW: usize = 10_000;
const VACUUM: &str =
    "vacuum (analyze) webhook_events, webhook_deliveries, webhook_attempts, job_jobs, job_keys";
const RETRIES: &str = include_str!("retries.sql");

const ABOUT: About = About {
    name: "webhook-backlog",
    work: "fresh deliveries to 16 endpoints that answer at once while a million retries wait (in the short form 50,000)",
    beside: "the same while none waits",
    unit: "deliveries/s",
    target: Target::AtLeast(0.8),
    says_not: "The retries wait and none becomes due: it shows that what waits is not looked at, not how a flood of \
               retries shares the threads.",
};

struct Side {
    hooks: Hooks,
    fresh: Group,
    away: Group,
}

impl Side {
    fn start() -> Outcome<Self> {
        let hooks = Hooks::start()?;
        let (fresh, away) = (hooks.group(FRESH)?, hooks.group(AWAY)?);
        hooks.drain(&fresh, 1)?;
        Ok(Self { hooks, fresh, away })
    }

    /// Writes retries as the service would have them.
    fn fill(&self, retries: usize) -> Outcome {
        let mut database = self.hooks.world.database()?;
        database.batch_execute(
            "set synchronous_commit = off;
             create function pg_temp.bench_id(at timestamptz) returns uuid language sql as $$
               select (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(r, 1, 3) || '8'
                 || substr(r, 4, 15))::uuid from md5(random()::text || clock_timestamp()::text) as r $$",
        )?;
        let row = database.query_one("select body from webhook_events limit 1", &[])?;
        let body: String = row.get(0);
        let endpoints = self.fresh.endpoints.iter().chain(&self.away.endpoints);
        let endpoints: Vec<Uuid> = endpoints.map(|endpoint| endpoint.endpoint_id).collect();
        let write = database.prepare(RETRIES)?;
        let mut left = retries;
        while left > 0 {
            let now = left.min(BATCH);
            let events = i32::try_from(now / endpoints.len())?;
            let tenant_id = self.hooks.world.seeds.tenant_id;
            database.execute(&write, &[&tenant_id, &endpoints, &events, &body])?;
            left -= now;
        }
        // What the writing left to do is done before anything is measured.
        for work in [VACUUM, "checkpoint"] {
            database.batch_execute(work)?;
        }
        // The endpoints that are back are known to be.
        self.drain(FRESH * 8)?;
        self.wait(retries)
    }

    /// That this many retries wait, each with its job.
    fn wait(&self, retries: usize) -> Outcome {
        let row = self.hooks.world.database()?.query_one(
            "select (select count(*) from webhook_deliveries where state = 'being-sent'),
               (select count(*) from job_jobs where queue = 'webhooks' and run_at > now() and lease_id is null)",
            &[],
        )?;
        let (deliveries, jobs): (i64, i64) = (row.get(0), row.get(1));
        match i64::try_from(retries)? {
            retries if deliveries == retries && jobs == retries => Ok(()),
            retries => Err(format!("of {retries} retries {deliveries} wait, {jobs} jobs").into()),
        }
    }

    fn drain(&self, deliveries: usize) -> Outcome<f64> {
        self.hooks.drain(&self.fresh, deliveries / FRESH)
    }
}

pub(super) fn run(plan: Plan) -> Outcome<Row> {
    let retries = plan.pick(50_000, 1_000_000);
    let deliveries = plan.pick(1_600, 6_400);
    let (ours, none) = (Side::start()?, Side::start()?);
    ours.fill(retries)?;
    let mut row = compare(
        plan,
        &ABOUT,
        || Figure::of(|| ours.drain(deliveries)),
        || Figure::of(|| none.drain(deliveries)),
    )?;
    ours.wait(retries)?;
    none.wait(0)?;
    row.limit = limit(&none.hooks.world, 32, plan.pick(50, 200))?;
    if !plan.short {
        let at: Measure<'_> = &|waiting| match waiting {
            0 => none.drain(deliveries),
            FEW => {
                none.fill(FEW)?;
                none.drain(deliveries)
            }
            _ => ours.drain(deliveries),
        };
        let places = [0, FEW, retries];
        let lines = [("agent-runtime", at)];
        let growth = grow("waiting retries", "deliveries/s", &places, &lines)?;
        row.growth.push(growth);
    }
    Ok(row)
}
