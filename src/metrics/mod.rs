//! The metrics at `/metrics`: values that each part keeps in memory, under their public names. A
//! scrape waits for nothing. `docs/metrics.md` is generated from them.

#[cfg(test)]
mod document;
mod figure;
mod runs;

use crate::authn::session::SignIns;
use crate::http::context::Shared;
use crate::http::door;
use crate::http::probes::{Metric, MetricKind};
use crate::outbound::Peer;
use crate::store::primary::PrimaryStatus;
use crate::store::sessions::Method;
use crate::{audit, authz, traces, webhooks};
use MetricKind::{Counter, Gauge};
use figure::figure;
use std::time::Duration;
use time::OffsetDateTime;

/// The values are far below what a double represents exactly.
fn size(count: usize) -> f64 {
    figure(u64::try_from(count).unwrap_or(u64::MAX))
}

fn gauge(name: &'static str, help: &'static str, value: usize) -> Metric {
    Metric::single(name, help, Gauge, size(value))
}

fn counter(name: &'static str, help: &'static str, value: u64) -> Metric {
    Metric::single(name, help, Counter, figure(value))
}

/// The door's metrics.
#[rustfmt::skip]
pub fn of_door(stats: &door::Stats) -> Vec<Metric> {
    vec![
        gauge("agent_runtime_connections", "Connections open.", stats.connections),
        counter("agent_runtime_connections_accepted_total", "Connections taken.", stats.connections_accepted),
        counter("agent_runtime_connections_refused_total", "Connections closed because too many were open.", stats.connections_refused),
        counter("agent_runtime_accept_failures_total", "Connections that the system could not give.", stats.accept_failures),
        Metric::labelled(
            "agent_runtime_answers_total",
            "Answers by the first digit of their status.",
            Counter,
            (1..=5)
                .zip(stats.answers_by_class)
                .map(|(class, count)| (vec![("class", format!("{class}xx"))], figure(count)))
                .collect(),
        ),
        counter("agent_runtime_answers_discarded_total", "Answers that came after the door had given up on their request.", stats.answers_discarded),
        Metric::single("agent_runtime_answer_bytes", "Bytes of whole answers that clients have not taken.", Gauge, figure(stats.answer_bytes)),
        counter("agent_runtime_answers_cut_total", "Answers cut off because answers in memory had to end and their clients were the slowest.", stats.answers_cut),
        gauge("agent_runtime_requests_queued", "Requests that wait for a thread.", stats.queue_length),
        gauge("agent_runtime_requests_in_flight", "Requests that are being answered.", stats.in_flight),
        Metric::single("agent_runtime_request_body_bytes", "Bytes of bodies in memory.", Gauge, figure(stats.body_bytes)),
        gauge("agent_runtime_streams", "Streams open.", stats.streams),
        gauge("agent_runtime_request_threads", "Request threads that take work.", stats.request_threads),
        gauge("agent_runtime_request_threads_stuck", "Request threads held beyond the deadline.", stats.stuck_threads),
        counter("agent_runtime_request_threads_replaced_total", "Request threads started in place of stuck ones.", stats.threads_replaced),
        counter("agent_runtime_panics_total", "Panics caught in handlers.", stats.panics),
    ]
}

/// How many tenants are in sync with the authorization server.
fn of_permissions(tenant_counts: authz::permissions::TenantCounts) -> [Metric; 2] {
    let by_state = [
        ("compared", tenant_counts.compared),
        ("failed", tenant_counts.failed),
    ];
    [
        Metric::labelled(
            "agent_runtime_authorization_tenants",
            "Tenants whose permissions were compared, and those that something of their own keeps from it.",
            Gauge,
            by_state
                .map(|(state, count)| (vec![("state", state.to_owned())], size(count)))
                .into(),
        ),
        gauge(
            "agent_runtime_authorization_objects_untold",
            "Objects whose changed permissions the authorization server does not take.",
            tenant_counts.unapplied,
        ),
    ]
}

/// The metrics of the parts behind the door.
pub fn of_shared(shared: &Shared) -> Vec<Metric> {
    let pool = shared.store.pool().state();
    let mut metrics = of_database(pool.connections, pool.idle_connections);
    if let Some(status) = shared.store.manager().primary_status() {
        metrics.extend(of_primary(&status));
    }
    metrics.push(of_streams(shared.streams.open()));
    if let Some(license) = &shared.license {
        metrics.push(of_license(license.expires_at));
    }
    metrics.push(of_outages(usize::from(shared.store.is_away()), |peer| {
        shared.outbound.away(peer)
    }));
    metrics.extend(of_audit(&shared.audit.stats()));
    if shared.secrets.is_on() {
        metrics.push(of_secrets(shared.secrets.kept()));
    }
    if shared.webhooks.is_on() {
        metrics.extend(of_webhooks(&shared.webhooks.stats()));
    }
    if let Some(stats) = shared.traces.stats() {
        metrics.extend(of_traces(&stats));
    }
    if let Some(admission) = &shared.admission {
        metrics.extend(of_admission(&admission.stats()));
    }
    if let Some(permissions) = &shared.permissions {
        metrics.extend(of_permissions(permissions.tenant_counts()));
    }
    metrics.push(of_sign_ins(shared.authn.sign_ins()));
    let runs = shared.runtime.stats();
    metrics.push(of_sessions(runs.sessions));
    metrics.extend(of_identity_providers(shared.oidc.asked()));
    metrics.push(of_erasures(shared.runtime.payloads_erased()));
    metrics.push(of_hold(shared.runtime.is_held()));
    metrics.push(of_refused_runs(shared.runtime.runs_refused()));
    if let Some(stats) = shared.runtime.queue_stats() {
        metrics.extend(of_run_jobs(&stats));
    }
    metrics.extend(runs::of_runs(&runs));
    metrics.extend(runs::of_approvals(&runs.approvals));
    metrics
}

/// Whether a part of the process is stuck.
pub fn of_watchdog(is_stuck: bool) -> Metric {
    gauge(
        "agent_runtime_stuck",
        "1 while a part of the process is stuck, so that a restart would help.",
        usize::from(is_stuck),
    )
}

#[rustfmt::skip]
fn of_database(connections: u32, idle: u32) -> Vec<Metric> {
    vec![
        Metric::single("agent_runtime_database_connections", "Connections to the database.", Gauge, connections),
        Metric::single("agent_runtime_database_connections_idle", "Connections to the database that wait for work.", Gauge, idle),
    ]
}

/// Which of several hosts is the primary database.
#[rustfmt::skip]
fn of_primary(status: &PrimaryStatus) -> [Metric; 3] {
    let host = |(name, is_primary): &(String, bool)| (vec![("host", name.clone())], size(usize::from(*is_primary)));
    let timeline = u64::try_from(status.timeline).unwrap_or(0);
    [
        Metric::labelled(
            "agent_runtime_database_primary",
            "1 where this process takes the host for the primary.",
            Gauge,
            status.hosts.iter().map(host).collect(),
        ),
        Metric::single("agent_runtime_database_timeline", "PostgreSQL's timeline of the primary: each promotion begins a higher one. 0 before it is known.", Gauge, figure(timeline)),
        Metric::single("agent_runtime_database_primary_seconds", "How long this process has taken that host for the primary.", Gauge, status.since.as_secs_f64()),
    ]
}

/// What is away, by what it is.
fn of_outages(databases: usize, away: impl Fn(Peer) -> usize) -> Metric {
    let peers = [
        ("authorization-server", Peer::AuthorizationServer),
        ("key-management", Peer::KeyManagement),
        ("model-provider", Peer::ModelProvider),
        ("tool", Peer::Tool),
        ("identity-provider", Peer::IdentityProvider),
    ];
    let peers = peers.map(|(what, peer)| (what, away(peer)));
    Metric::labelled(
        "agent_runtime_away",
        "Dependencies that did not answer of late, as the log told.",
        Gauge,
        std::iter::once(("database", databases))
            .chain(peers)
            .map(|(what, count)| (vec![("what", what.to_owned())], size(count)))
            .collect(),
    )
}

/// The time itself, from which an alert computes what is left: a figure that the server counted down would stay behind
/// between scrapes.
fn of_license(expires_at: OffsetDateTime) -> Metric {
    let seconds = u64::try_from(expires_at.unix_timestamp()).unwrap_or(0);
    Metric::single(
        "agent_runtime_license_expiry_timestamp_seconds",
        "When the license expires, in seconds since 1970-01-01 UTC. A grace that the license gives comes after it.",
        Gauge,
        figure(seconds),
    )
}

fn of_streams(open: usize) -> Metric {
    gauge(
        "agent_runtime_streams_served",
        "Streams that a stream thread serves.",
        open,
    )
}

fn of_sign_ins(sign_ins: &SignIns) -> Metric {
    let labelled = |(method, is_opened, count): (Method, bool, u64)| {
        let outcome = if is_opened { "opened" } else { "refused" };
        let labels = [("method", method.text()), ("outcome", outcome)];
        let labels = labels.map(|(name, text)| (name, text.to_owned()));
        (labels.to_vec(), figure(count))
    };
    Metric::labelled(
        "agent_runtime_sign_ins_total",
        "Sign-ins with a browser, by how and what came of them.",
        Counter,
        sign_ins.figures().into_iter().map(labelled).collect(),
    )
}

fn of_sessions(open: i64) -> Metric {
    gauge(
        "agent_runtime_sessions",
        "Sessions of browsers that are open, in all tenants, as the database had them at most 15 s before.",
        usize::try_from(open).unwrap_or(0),
    )
}

#[rustfmt::skip]
fn of_identity_providers((requests, took): (u64, Duration)) -> [Metric; 2] {
    [
        counter("agent_runtime_identity_provider_requests_total", "Requests to identity providers: for their documents, their keys, ID tokens and userinfo.", requests),
        Metric::single("agent_runtime_identity_provider_seconds_total", "How long all requests to identity providers took.", Counter, took.as_secs_f64()),
    ]
}

fn of_secrets(kept: usize) -> Metric {
    gauge(
        "agent_runtime_secrets_in_memory",
        "Values of secrets that are kept in memory.",
        kept,
    )
}

fn of_hold(is_held: bool) -> Metric {
    gauge(
        "agent_runtime_runs_held",
        "1 while an operator holds all runs, so that none goes on; else 0.",
        usize::from(is_held),
    )
}

fn of_refused_runs([below_root, unfinished]: [u64; 2]) -> Metric {
    let series = [("below-root", below_root), ("unfinished", unfinished)];
    Metric::labelled(
        "agent_runtime_runs_refused_total",
        "Runs that did not begin because a bound was reached: below one run at the top, or of a tenant's runs that have not ended.",
        Counter,
        series
            .map(|(bound, count)| (vec![("bound", bound.to_owned())], figure(count)))
            .into(),
    )
}

fn of_erasures(count: u64) -> Metric {
    counter(
        "agent_runtime_payloads_erased_total",
        "Runs of which this process erased what they were given, said and answered.",
        count,
    )
}

#[rustfmt::skip]
fn of_traces(stats: &traces::Stats) -> Vec<Metric> {
    let dropped = [("full", stats.dropped_full), ("refused", stats.dropped_refused)];
    vec![
        gauge("agent_runtime_spans_queued", "Spans that wait to be sent to the collector of traces.", stats.queued),
        counter("agent_runtime_spans_exported_total", "Spans that the collector of traces took.", stats.exported),
        Metric::labelled(
            "agent_runtime_spans_dropped_total",
            "Spans dropped because too many waited, or because the collector of traces refused them.",
            Counter,
            dropped.map(|(reason, count)| (vec![("reason", reason.to_owned())], figure(count))).into(),
        ),
    ]
}

#[rustfmt::skip]
fn of_run_jobs(stats: &jobs::Stats) -> [Metric; 3] {
    let ended = [
        ("done", stats.done),
        ("retried", stats.retried),
        ("snoozed", stats.snoozed),
        ("dead", stats.dead),
        ("cancelled", stats.cancelled),
        ("lost", stats.lost),
        ("handed-back", stats.handed_back),
    ];
    [
        counter("agent_runtime_run_jobs_claimed_total", "Runs taken up.", stats.claimed),
        Metric::single("agent_runtime_run_jobs_running", "Runs being carried on.", Gauge, figure(stats.running)),
        Metric::labelled(
            "agent_runtime_run_jobs_ended_total",
            "Runs put down, by how.",
            Counter,
            ended.into_iter().map(|(how, count)| (vec![("how", how.to_owned())], figure(count))).collect(),
        ),
    ]
}

#[rustfmt::skip]
fn of_audit(stats: &audit::Stats) -> Vec<Metric> {
    vec![
        Metric::labelled(
            "agent_runtime_decisions_total",
            "Access decisions by what decided and how.",
            Counter,
            stats.decided.iter().map(|(stage, outcome, count)| {
                let labels = [("stage", stage.text()), ("outcome", outcome.text())];
                (labels.map(|(name, text)| (name, text.to_owned())).to_vec(), figure(*count))
            }).collect(),
        ),
        gauge("agent_runtime_audit_queued", "Access decisions that wait to be written.", stats.queued),
        gauge("agent_runtime_audit_writing", "Access decisions that are being written.", stats.writing),
        counter("agent_runtime_audit_rows_total", "Access decisions written.", stats.rows_written),
        counter("agent_runtime_audit_commits_total", "Transactions that wrote access decisions.", stats.batches_written),
        counter("agent_runtime_audit_refused_total", "Access decisions that the database did not take.", stats.rows_refused),
        counter("agent_runtime_audit_late_total", "Access decisions given up because they were not on disk in time.", stats.rows_late),
        counter("agent_runtime_audit_overflowed_total", "Access decisions for which there was no room to wait.", stats.rows_overflowed),
        Metric::single("agent_runtime_audit_commit_seconds", "How long the last transaction with access decisions took.", Gauge, stats.last_commit.as_secs_f64()),
        Metric::single("agent_runtime_audit_commit_seconds_total", "How long all transactions with access decisions took.", Counter, stats.commits.as_secs_f64()),
    ]
}

#[rustfmt::skip]
fn of_admission(stats: &authz::Stats) -> Vec<Metric> {
    vec![
        gauge("agent_runtime_authorization_checks_in_flight", "Requests that ask the authorization server.", stats.checks_in_flight),
        gauge("agent_runtime_authorization_checks_waiting", "Requests that wait until they may ask the authorization server.", stats.checks_waiting),
        counter("agent_runtime_authorization_checks_refused_total", "Requests refused because there was no room among those that ask the authorization server.", stats.checks_refused),
        counter("agent_runtime_authorization_checks_failed_total", "Checks that the authorization server did not answer.", stats.checks_failed),
        gauge("agent_runtime_authorization_breaker_open", "1 while the authorization server is not asked because it did not answer.", usize::from(stats.is_breaker_open)),
        gauge("agent_runtime_authorization_credentials_limited", "Credentials that were denied so often that they are not served.", stats.credentials_limited),
        counter("agent_runtime_authorization_requests_limited_total", "Requests refused because their credential was denied too often.", stats.requests_limited),
    ]
}

#[rustfmt::skip]
fn of_webhooks(stats: &webhooks::Stats) -> Vec<Metric> {
    let by = |label: &'static str, values: Vec<(&str, u64)>| {
        let labelled = |(text, count): (&str, u64)| (vec![(label, text.to_owned())], figure(count));
        values.into_iter().map(labelled).collect::<Vec<_>>()
    };
    let deliveries = vec![("queued", stats.queued), ("delivered", stats.delivered), ("failed", stats.failed), ("unregistered", stats.unregistered)];
    let failures = stats.failures.iter().map(|(reason, count)| (reason.text(), *count));
    let attempts = std::iter::once(("delivered", stats.delivered)).chain(failures);
    vec![
        Metric::labelled(
            "agent_runtime_webhook_deliveries_total",
            "Deliveries of webhooks that came to a state in this process.",
            Counter,
            by("state", deliveries),
        ),
        Metric::labelled(
            "agent_runtime_webhook_attempts_total",
            "Attempts at deliveries, by why they failed.",
            Counter,
            by("reason", attempts.collect()),
        ),
        Metric::single("agent_runtime_webhook_attempts_in_flight", "Attempts at deliveries that are under way.", Gauge, figure(stats.in_flight)),
        Metric::single("agent_runtime_webhook_deliveries_due", "Deliveries that are due and wait, in all processes: as it was within the last minute.", Gauge, figure(stats.due)),
        Metric::single("agent_runtime_webhook_endpoints_failing", "Webhook endpoints at which nothing has succeeded for an hour and a delivery has failed for as long, of all tenants: as it was within the last minute.", Gauge, figure(stats.failing)),
    ]
}
