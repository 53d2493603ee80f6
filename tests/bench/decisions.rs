//! An authorized read, beside the same service built to discard its decisions: requests a second of 64
//! keep-alive clients. All else is the same on both sides: the door, the pipeline, the check, the
//! authorization server and the database.

use super::plan::Plan;
use super::reader::Reader;
use super::rounds::compare;
use super::row::{About, Target};
use super::world::{World, log};
use super::{Done, Outcome, wrk};
use agent_runtime::api;
use agent_runtime::audit::Audit;
use agent_runtime::authn::{Authn, session};
use agent_runtime::authz::{Admission, Options};
use agent_runtime::http::context::Shared;
use agent_runtime::http::door::{Door, Limits};
use agent_runtime::http::external_calls::ExternalCalls;
use agent_runtime::http::pipeline::Pipeline;
use agent_runtime::http::probes::Probes;
use agent_runtime::http::provider_calls::ProviderCalls;
use agent_runtime::http::route::Table;
use agent_runtime::http::sse;
use agent_runtime::oidc::Oidc;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The same service behind a door of its own.
struct Side {
    door: Door,
    shared: Arc<Shared>,
}

impl Side {
    fn stop(self) {
        let patience = Duration::from_secs(5);
        self.shared.streams.stop(Instant::now() + patience);
        self.door.stop(patience);
    }
}

/// Another door of the world's service, whose decisions go to this audit.
fn side(world: &World, audit: Audit) -> Outcome<Side> {
    let limits = Limits::default();
    let shared = world.server()?.shared();
    let permissions = shared.permissions.clone().ok_or("authorization is off")?;
    let bounds = Options {
        // A check refused for want of room is no answer to count.
        checks_in_flight: limits.request_threads,
        denials_per_minute: 120,
    };
    let admission = Arc::new(Admission::new(permissions.clone(), audit.clone(), &bounds));
    let (store, clock) = (shared.store.clone(), world.clock.clone());
    let own = Shared {
        external_calls: ExternalCalls::new(limits.request_threads),
        provider_calls: ProviderCalls::new(limits.request_threads),
        authn: Authn::new(store.clone(), clock.clone(), None, Default::default()),
        clock: clock.clone(),
        audit,
        runtime: shared.runtime.clone(),
        oidc: Oidc::new(
            shared.outbound.clone(),
            clock.clone(),
            session::Options::default().provider_timeout,
        ),
        outbound: shared.outbound.clone(),
        host_access: shared.host_access,
        model_keys: shared.model_keys.clone(),
        license: shared.license.clone(),
        secrets: shared.secrets.clone(),
        webhooks: shared.webhooks.clone(),
        traces: shared.traces.clone(),
        streams: sse::Streams::start(
            sse::Options::default(),
            &store,
            &clock,
            shared.runtime.feed(),
            Some(Arc::clone(&admission)),
            &log(),
        )?,
        allowed_origins: Vec::new(),
        admission: Some(admission),
        permissions: Some(permissions),
        store,
    };
    let probes = Arc::new(Probes::new());
    probes.set("server", Ok(()));
    let table = Table::new(api::routes(), &[], |_| true);
    let shared = Arc::new(own);
    let pipeline = Arc::new(Pipeline::new(Arc::clone(&shared), table, probes, log()));
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let door = Door::open(listener, limits, pipeline, clock, log())?;
    Ok(Side { door, shared })
}

const ABOUT: About = About {
    name: "decisions",
    work: "a project read through a team with its decision on disk before the answer, 64 keep-alive clients",
    beside: "the same build with an audit that discards decisions",
    unit: "requests/s",
    target: Target::AtLeast(0.9),
    says_not: "Most of the time goes to the authorization server, so the audit's own cost is diluted; `authorized-read` \
               shows it undiluted.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start_authorized()?;
    let reader = Reader::of(&world)?;
    let audit = world.server()?.shared().audit.clone();
    let ours = side(&world, audit.clone())?;
    let baseline = side(&world, audit.discarding())?;
    let (path, token) = (reader.path(), Some(reader.token.as_str()));
    let row = compare(
        plan,
        &ABOUT,
        || wrk::load(ours.door.local_addr(), &path, token),
        || wrk::load(baseline.door.local_addr(), &path, token),
    )?;
    ours.stop();
    baseline.stop();
    done(row)
}
