//! Builds the parts behind the door, and connects them. Nothing here waits for the database.

use super::options::Options;
use super::watchdog::Watchdog;
use crate::api;
use crate::audit;
use crate::authn::{Authn, public, session};
use crate::authz::permissions::Permissions;
use crate::authz::{self, Admission};
use crate::error::Result;
use crate::http::context::Shared;
use crate::http::external_calls::ExternalCalls;
use crate::http::probes::Probes;
use crate::http::provider_calls::ProviderCalls;
use crate::http::route::{Mount, Table};
use crate::http::{door, sse};
use crate::ids::Clock;
use crate::log::Subsystem;
use crate::metrics;
use crate::oidc::Oidc;
use crate::outbound::Outbound;
use crate::runtime::{self, Runtime};
use crate::secrets::Secrets;
use crate::store::{self, Store};
use crate::traces::{self, Traces};
use crate::webhooks::Webhooks;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The traces, and the thread that exports them if a collector is set.
fn start_traces(
    options: &mut Options,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<(Traces, Option<traces::Exporter>)> {
    let Some(collector) = options.traces.take() else {
        return Ok((Traces::off(), None));
    };
    let log = crate::log::subsystem(log, Subsystem::Traces);
    let (traces, exporter) = Traces::start(collector, &options.outbound, clock, log)?;
    Ok((traces, Some(exporter)))
}

/// The database for runs. They have many more threads than there are connections, and leave the requests a quarter of these.
fn of_runs(store: &Store, pool_size: u32) -> Store {
    store.limited(pool_size - pool_size / 4)
}

/// The parts behind the door.
pub(super) fn share(
    mut options: Options,
    audit: audit::Audit,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<(Arc<Shared>, Option<traces::Exporter>)> {
    let (traces, exporter) = start_traces(&mut options, clock, log)?;
    let store = Store::open(&options.store, crate::log::subsystem(log, Subsystem::Store))?;
    let (outbound, host_access) = (&options.outbound, options.runs.host_access);
    outbound.log_outages(&crate::log::subsystem(log, Subsystem::Outbound));
    let permissions = permissions(&options, &store, clock, log)?;
    let bounds = bounds(&options);
    set_limits_of_streams(&mut options);
    options.runs.reviewers_need_roles = permissions.is_some();
    let secrets = Secrets::new(
        options.secrets,
        &store,
        &options.outbound,
        clock,
        crate::log::subsystem(log, Subsystem::Secrets),
    )?;
    // Attempts, of which there are more than connections, leave the requests half of them.
    let half = store.limited(options.store.pool_size / 2);
    let webhooks = Webhooks::new(
        half.clone(),
        clock.clone(),
        options.outbound.clone(),
        secrets.through(&half),
        options.webhooks,
        crate::log::subsystem(log, Subsystem::Webhooks),
    );
    let runtime = Runtime::new(
        of_runs(&store, options.store.pool_size),
        clock.clone(),
        runtime::Dependencies {
            outbound: options.outbound.clone(),
            model_keys: options.model_keys.clone(),
            secrets: secrets.clone(),
            webhooks: webhooks.clone(),
            traces: traces.clone(),
        },
        options.runs,
        crate::log::subsystem(log, Subsystem::Runtime),
    );
    let admission = permissions
        .clone()
        .map(|permissions| Arc::new(Admission::new(permissions, audit.clone(), &bounds)));
    let streams = sse::Streams::start(
        options.streams,
        &store,
        clock,
        runtime.feed(),
        admission.clone(),
        &crate::log::subsystem(log, Subsystem::HttpStream),
    )?;
    let shared = Shared {
        external_calls: ExternalCalls::new(options.limits.request_threads),
        provider_calls: ProviderCalls::new(options.limits.request_threads),
        oidc: oidc(&options.outbound, clock, &options.sign_in),
        secrets,
        webhooks,
        authn: authn(&store, clock, options.signer, options.sign_in),
        store,
        clock: clock.clone(),
        audit,
        admission,
        runtime,
        outbound: options.outbound,
        host_access,
        model_keys: options.model_keys,
        license: options.license,
        streams,
        allowed_origins: options.allowed_origins,
        permissions,
        traces,
    };
    Ok((Arc::new(shared), exporter))
}

/// What streams take from the limits of others.
fn set_limits_of_streams(options: &mut Options) {
    options.streams.session_limits = options.sign_in.limits();
    let longest = longest_transaction(&options.store, options.audit.patience);
    options.streams.longest_transaction = options.streams.longest_transaction.max(longest);
}

/// How long a transaction stays open after it took a position: it runs a statement and commits, each until it is cancelled,
/// and may wait for the record of a decision.
fn longest_transaction(store: &store::Options, record: Duration) -> Duration {
    2 * (store.statement_timeout + store.checkout_timeout) + record
}

/// Of questions to the authorization server.
fn bounds(options: &Options) -> authz::Options {
    authz::Options {
        checks_in_flight: options.limits.request_threads.div_ceil(2),
        denials_per_minute: options.denials_per_minute,
    }
}

/// Signs people in at identity providers.
fn oidc(outbound: &Outbound, clock: &Clock, sign_in: &session::Options) -> Oidc {
    Oidc::new(outbound.clone(), clock.clone(), sign_in.provider_timeout)
}

/// Who is it.
fn authn(
    store: &Store,
    clock: &Clock,
    signer: Option<public::Signer>,
    sign_in: session::Options,
) -> Authn {
    Authn::new(store.clone(), clock.clone(), signer, sign_in)
}

/// Who may do what, where authorization is on.
fn permissions(
    options: &Options,
    store: &Store,
    clock: &Clock,
    log: &slog::Logger,
) -> Result<Option<Permissions>> {
    let permissions = options.authorization.as_ref().map(|authorization| {
        Permissions::new(
            authorization,
            store.clone(),
            clock.clone(),
            &options.outbound,
            Some((options.seeds.tenant_id, options.seeds.user_id)),
            crate::log::subsystem(log, Subsystem::Authz),
        )
    });
    permissions.transpose()
}

/// Gives the probes their figures.
pub(super) fn measure(
    probes: &Probes,
    door: &Arc<Mutex<Option<door::Door>>>,
    shared: &Arc<Shared>,
    watchdog: &Arc<Watchdog>,
) {
    let watchdog = Arc::clone(watchdog);
    probes.add(move || vec![metrics::of_watchdog(watchdog.stuck().is_some())]);
    let door = Arc::clone(door);
    probes.add(move || {
        let door = door.try_lock();
        let stats = door
            .ok()
            .and_then(|door| door.as_ref().map(door::Door::stats));
        stats.map_or_else(Vec::new, |stats| metrics::of_door(&stats))
    });
    let shared = Arc::clone(shared);
    probes.add(move || metrics::of_shared(&shared));
}

/// The routes that are mounted outside development, the console's among them.
pub fn table(docs: bool, secrets: bool) -> Table {
    table_with(docs, true, secrets, false)
}

/// The mounted routes of a server.
pub(super) fn mounted(docs: bool, console: bool, shared: &Shared) -> Table {
    let console_login = shared.authn.sign_in().console_token.is_some();
    table_with(docs, console, shared.secrets.is_on(), console_login)
}

fn table_with(docs: bool, console: bool, secrets: bool, console_login: bool) -> Table {
    Table::new(api::routes(), api::NOUNS, |mount| match mount {
        Mount::Always => true,
        Mount::Console => console,
        Mount::Docs => docs,
        Mount::Secrets => secrets,
        Mount::ConsoleLogin => console_login,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn streams_wait_for_what_a_long_statement_commits() {
        let seconds = Duration::from_secs;
        let longest = |statement| {
            let store = store::Options {
                url: Secret::new("postgres://localhost/"),
                pool_size: 1,
                checkout_timeout: seconds(1),
                outage: Default::default(),
                statement_timeout: statement,
            };
            longest_transaction(&store, seconds(5))
        };
        assert_eq!(longest(seconds(10)), seconds(27));
        assert_eq!(longest(seconds(600)), seconds(1207));
    }
}
