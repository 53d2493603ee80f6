//! `GET /v1/projects/<project_id>` by somebody who may through a team, with the decision on disk before
//! the answer: beside a check, a one-row commit and a point read made one after another with the same
//! libraries. The latency that half of the requests stay below, for one client and for sixteen.
//!
//! The baseline is nobody's service: no HTTP of its own, no caller, no pool; each client has a
//! connection to the database for itself. Both sides share the authorization server's connections
//! out of pools of the same size.

use super::Outcome;
use super::client::agent;
use super::reader::Reader;
use super::rounds::{Figure, Target, compare, median};
use super::world::World;
use agent_runtime::authz::fga::{self, Pinned, Question};
use agent_runtime::outbound::{self, Outbound};
use std::time::Instant;
use uuid::Uuid;

/// In each round, of all clients together.
const READS: usize = 400;

const POINT_READ: &str = include_str!("../../sql/queries/projects/find.sql");

/// What one client does over and over.
type Read<'a> = Box<dyn FnMut() -> Outcome + Send + 'a>;

/// Milliseconds below which half of the reads of these clients at once stay.
fn p50<'a>(clients: usize, client: &(dyn Fn() -> Outcome<Read<'a>> + Sync)) -> Outcome<f64> {
    let one = || -> Result<Vec<f64>, String> {
        let work = || -> Outcome<Vec<f64>> {
            let mut read = client()?;
            // The connections are made before the clock runs.
            read()?;
            let mut took = Vec::with_capacity(READS / clients);
            for _ in 0..READS / clients {
                let began = Instant::now();
                read()?;
                took.push(began.elapsed().as_secs_f64() * 1000.0);
            }
            Ok(took)
        };
        work().map_err(|error| error.to_string())
    };
    let all = std::thread::scope(|scope| {
        let started: std::io::Result<Vec<_>> = (0..clients)
            .map(|n| {
                std::thread::Builder::new()
                    .name(format!("client-{n}"))
                    .spawn_scoped(scope, one)
            })
            .collect();
        let ended = started?.into_iter().map(|thread| {
            let ended = thread.join().map_err(|_| "a client panicked".to_owned());
            ended.and_then(|took| took)
        });
        Ok::<_, Box<dyn std::error::Error>>(ended.collect::<Result<Vec<_>, _>>()?)
    })?;
    Ok(median(all.concat()))
}

/// Reads through the service.
fn ours<'a>(world: &World, reader: &'a Reader) -> Outcome<Read<'a>> {
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

    fn read<'a>(&'a self, world: &World, reader: &Reader) -> Outcome<Read<'a>> {
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

pub(crate) fn run() -> Outcome<bool> {
    println!(
        "authorized-read: a project read through a team with its decision on disk, p50 of {READS} a round, \
         beside a check, a commit and a point read"
    );
    let world = World::start_authorized()?;
    let reader = Reader::of(&world)?;
    let parts = Parts::of(&world)?;
    let mut met = true;
    for clients in [1, 16] {
        let name = format!("authorized-read, {clients} at once");
        met &= compare(
            &name,
            "ms",
            &Target::AtMost(1.2),
            || Figure::of(|| p50(clients, &|| ours(&world, &reader))),
            || Figure::of(|| p50(clients, &|| parts.read(&world, &reader))),
        )?;
    }
    Ok(met)
}
