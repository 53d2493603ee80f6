//! `GET /v1/projects/<project_id>` by somebody who may through a team, with the decision on disk before
//! the answer: beside a check, a one-row commit and a point read made one after another with the same
//! libraries. The latency that half of the requests stay below, for one client and for sixteen.
//!
//! The baseline is nobody's service: no HTTP of its own, no caller, no pool; each client has a
//! connection to the database for itself. Both sides share the authorization server's connections
//! out of pools of the same size.

use super::client::agent;
use super::load::{Load, Work};
use super::plan::Plan;
use super::reader::Reader;
use super::rounds::{CLIENTS, Figure, Measure, compare, grow};
use super::row::{About, Target};
use super::world::World;
use super::{Done, Outcome};
use agent_runtime::authz::fga::{self, Pinned, Question};
use agent_runtime::outbound::{self, Outbound};
use uuid::Uuid;

/// In each round, of all clients together.
const READS: usize = 400;

const POINT_READ: &str = include_str!("../../sql/queries/projects/find.sql");

/// Milliseconds below which half of the reads of these clients at once stay.
fn p50<'a>(clients: usize, client: &(dyn Fn(usize) -> Outcome<Work<'a>> + Sync)) -> Outcome<f64> {
    Ok(Load::of(clients, READS / clients, client)?.p50())
}

/// Reads through the service.
fn ours<'a>(world: &World, reader: &'a Reader) -> Outcome<Work<'a>> {
    let agent = agent();
    let url = format!("http://{}{}", world.client.address(), reader.path());
    let bearer = format!("Bearer {}", reader.token);
    Ok(Box::new(move || {
        let request = agent.get(&url).header("authorization", &bearer);
        request.call()?.body_mut().read_to_vec()?;
        Ok(())
    }))
}

/// What the service cannot do without, one after another.
struct Parts {
    client: fga::Client,
    on: Pinned,
    tenant_id: Uuid,
}

impl Parts {
    fn of(world: &World) -> Outcome<Self> {
        let mut database = world.database()?;
        database.batch_execute(
            "create table bench_commits (tenant_id uuid not null, at timestamptz not null)",
        )?;
        let row = database.query_one("select store_id, model_id from authz_stores", &[])?;
        let authorization = world.authorization()?;
        let options = fga::Options {
            url: authorization.url,
            timeout: authorization.timeout,
            connections: authorization.connections,
        };
        Ok(Self {
            client: fga::Client::new(&Outbound::new(outbound::Options::default())?, &options)?,
            on: Pinned {
                store_id: row.get(0),
                model_id: row.get(1),
            },
            tenant_id: world.seeds.tenant_id,
        })
    }

    fn read<'a>(&'a self, world: &World, reader: &Reader) -> Outcome<Work<'a>> {
        let mut database = world.database()?;
        let commit = database.prepare("insert into bench_commits values ($1, now())")?;
        let point_read = database.prepare(POINT_READ)?;
        let project_id = reader.project_id;
        let (user, object) = (
            format!("user:{}", reader.user_id),
            format!("project:{project_id}"),
        );
        Ok(Box::new(move || {
            let question = Question {
                user: &user,
                relation: "can_read",
                object: &object,
                contextual: &[],
            };
            let allowed = self.client.check(&self.on, &question);
            if !allowed.map_err(|failure| failure.to_string())? {
                return Err("the reader may not read".into());
            }
            database.execute(&commit, &[&self.tenant_id])?;
            database.query_one(&point_read, &[&self.tenant_id, &project_id])?;
            Ok(())
        }))
    }
}

const fn about(name: &'static str, work: &'static str) -> About {
    About {
        name,
        work,
        beside: "a check, a one-row commit and a point read made one after another with the same libraries",
        unit: "ms",
        target: Target::AtMost(1.2),
        says_not: "The baseline is nobody's service: no HTTP of its own, no caller, no pool.",
    }
}

const ONE: About = about(
    "authorized-read-1",
    "a project read through a team with its decision on disk, one client, p50",
);
const SIXTEEN: About = about(
    "authorized-read-16",
    "a project read through a team with its decision on disk, 16 clients, p50",
);

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start_authorized()?;
    let reader = Reader::of(&world)?;
    let parts = Parts::of(&world)?;
    let service = |clients| p50(clients, &|_| ours(&world, &reader));
    let baseline = |clients| p50(clients, &|_| parts.read(&world, &reader));
    let measured = |about, clients| {
        compare(
            plan,
            about,
            || Figure::of(|| service(clients)),
            || Figure::of(|| baseline(clients)),
        )
    };
    done(measured(&ONE, 1)?)?;
    let mut row = measured(&SIXTEEN, 16)?;
    if !plan.short {
        let lines: [(_, Measure<'_>); 2] = [
            ("agent-runtime", &|clients| service(clients)),
            ("baseline", &|clients| baseline(clients)),
        ];
        row.growth.push(grow("clients", "ms", &CLIENTS, &lines)?);
    }
    done(row)
}
