//! `GET /v1/approvals`: a page of fifty among a million closed approvals and ten thousand that wait, beside the same among ten
//! thousand and one thousand, in another database of the same settings. The latency that half of the requests of one client stay
//! below; of the kinds of page, the worst.
//!
//! Authorization is off: neither a check nor its record hides what a page costs. The rows are written many at once, as the
//! service would have left them.

use super::super::machine::Moment;
use super::super::plan::Plan;
use super::super::rounds::{Figure, compare, median};
use super::super::row::{About, Target, rounded};
use super::super::world::World;
use super::super::{Done, Outcome};
use serde_json::Value;
use std::time::Instant;

/// Rows of a page.
const PAGE: usize = 50;
/// What is asked for. Of the closed ones one in a hundred was voided.
const KINDS: [&str; 5] = [
    "status=waiting",
    "status=waiting&order=desc",
    "status=approved&order=desc",
    "status=voided&order=desc",
    "status=expired&order=desc",
];

/// Approvals with ids in the order of their numbers; three roles, ten projects, a run each.
const FILL: &str = "insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source,
  required_role, title, status, requested_by, created_at, expires_at, subject_digest, closed_at, decided_by)
select $1, approval_id, project_id, run_id, run_id, 1, '/do/0/ask', 'flow', 'role-' || number % 3, 'Pay a refund', status, $2,
  now(), now() + interval '2 days', decode(repeat('00', 32), 'hex'), case when status <> 'waiting' then now() end,
  case when status in ('approved', 'rejected') then $2 end
from generate_series(1, $3::bigint + $4::bigint) as number, lateral (select
  overlay(gen_random_uuid()::text placing lpad(to_hex(number), 8, '0') from 1)::uuid as approval_id,
  ('00000000-0000-7000-8000-00000000000' || number % 10)::uuid as project_id,
  gen_random_uuid() as run_id,
  case when number > $3 then 'waiting' when number % 100 = 0 then 'voided' when number % 25 = 0 then 'expired'
    when number % 5 = 0 then 'rejected' else 'approved' end as status
) as given";

const ABOUT: About = About {
    name: "approval-list",
    work: "a page of 50 approvals that wait, were approved, voided or have expired, among 1 million closed and 10,000 that wait, \
           whichever is slowest: p50",
    beside: "the same among 10,000 closed ones and 1,000 that wait",
    unit: "ms",
    target: Target::AtMost(1.3),
    says_not: "One client, authorization off, each page asked for before: what is read is in memory.",
};

/// The service with so many approvals.
struct Side {
    world: World,
    /// Of each kind in each round.
    requests: usize,
}

impl Side {
    fn of(plan: Plan, closed: i64, waiting: i64) -> Outcome<Self> {
        let world = World::start()?;
        let mut database = world.database()?;
        let seeds = &world.seeds;
        database.execute(FILL, &[&seeds.tenant_id, &seeds.user_id, &closed, &waiting])?;
        database.batch_execute("vacuum analyze approvals")?;
        Ok(Self {
            world,
            requests: plan.pick(50, 200),
        })
    }

    /// The worst kind.
    fn figure(&self) -> Outcome<Figure> {
        let before = Moment::now();
        let mut figures = [0.0; KINDS.len()];
        for (kind, figure) in KINDS.into_iter().zip(&mut figures) {
            *figure = self.p50(kind)?;
        }
        Ok(Figure {
            value: figures.into_iter().fold(0.0, f64::max),
            used: before.until_now(),
            note: format!(" ({})", figures.map(rounded).join(" ")),
        })
    }

    fn p50(&self, kind: &str) -> Outcome<f64> {
        let path = format!("/v1/approvals?{kind}&limit={PAGE}");
        let mut took = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            let began = Instant::now();
            let body = self.world.client.send("GET", &path, "")?;
            took.push(began.elapsed().as_secs_f64() * 1000.0);
            let page: Value = serde_json::from_str(&body)?;
            if page["data"].as_array().map(Vec::len) != Some(PAGE) {
                return Err(format!("{path}: no full page: {body}").into());
            }
        }
        Ok(median(took))
    }
}

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let few = Side::of(plan, 10_000, 1_000)?;
    let many = Side::of(
        plan,
        plan.pick(200_000, 1_000_000),
        plan.pick(5_000, 10_000),
    )?;
    done(compare(plan, &ABOUT, || many.figure(), || few.figure())?)
}
