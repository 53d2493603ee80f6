//! Generates `docs/metrics.md` from the metrics as they are at the start. A test fails if the page
//! differs, and rewrites it if `UPDATE_GENERATED=1` is set.

use super::*;
use crate::authz::permissions::TenantCounts;
use crate::http::probes;
use crate::runtime;
use MetricKind::Histogram;
use std::time::Duration;

/// A section of the page: its metrics, and when they exist.
fn sections() -> Vec<(&'static str, &'static str, Vec<Metric>)> {
    let decided = audit::Stats::default();
    let process = vec![probes::ready(false), of_watchdog(false)];
    let mut behind = of_database(0, 0);
    behind.push(of_streams(0));
    behind.push(of_outages(0, |_| 0));
    behind.push(of_sign_ins(&SignIns::default()));
    behind.push(of_sessions(0));
    behind.extend(of_identity_providers((0, Duration::ZERO)));
    behind.push(of_erasures(0));
    behind.push(of_hold(false));
    behind.push(of_refused_runs([0, 0]));
    vec![
        ("The process", "", process),
        (
            "The license",
            "Where `SVC_LICENSE_KEY` has a valid one.",
            vec![of_license(OffsetDateTime::UNIX_EPOCH)],
        ),
        ("The door", "", of_door(&door::Stats::default())),
        ("Dependencies and streams", "", behind),
        (
            "The primary database",
            "Where `SVC_DATABASE_URL` names several hosts.",
            of_primary(&PrimaryStatus {
                hosts: vec![("HOST:PORT".to_owned(), true)],
                timeline: 0,
                since: Duration::ZERO,
            })
            .into(),
        ),
        (
            "Runs",
            "Those of `run_jobs` once the server is ready.",
            [
                runs::of_runs(&runtime::Stats::new(["NAME in SVC_MODEL_KEYS".to_owned()])),
                of_run_jobs(&jobs::Stats::default()).into(),
            ]
            .concat(),
        ),
        (
            "Approvals",
            "",
            runs::of_approvals(&runtime::ApprovalStats::default()),
        ),
        ("The audit", "", of_audit(&decided)),
        (
            "Traces",
            "Where `SVC_OTLP_ENDPOINT` is set.",
            of_traces(&traces::Stats::default()),
        ),
        (
            "Authorization",
            "Where `SVC_AUTHZ_API_URL` is set.",
            [
                of_admission(&authz::Stats::default()),
                of_permissions(TenantCounts::default()).into(),
            ]
            .concat(),
        ),
        (
            "Secrets and webhooks",
            "Where `SVC_SECRETS_BACKEND` is set.",
            [
                vec![of_secrets(0)],
                of_webhooks(&webhooks::Stats::default()),
            ]
            .concat(),
        ),
    ]
}

fn unit(metric: &Metric) -> &'static str {
    let name = metric.name.trim_end_matches("_total");
    match () {
        () if name.ends_with("_seconds") => "seconds",
        () if name.ends_with("_usd") => "US dollars",
        () if name.ends_with("_bytes") => "bytes",
        () if metric.help.starts_with("1 w") => "0 or 1",
        () => "count",
    }
}

/// The label's name and its values. => each replica answers
fn labels(metric: &Metric) -> String {
    let mut seen: Vec<(&str, Vec<&str>)> = Vec::new();
    let values = metric.values.iter().map(|(labels, _)| labels);
    let distributions = metric.distributions.iter().map(|(labels, _)| labels);
    for (label, text) in values.chain(distributions).flatten() {
        match seen.iter_mut().find(|(name, _)| name == label) {
            Some((_, texts)) if texts.contains(&text.as_str()) => {}
            Some((_, texts)) => texts.push(text),
            None => seen.push((label, vec![text])),
        }
    }
    let each = seen
        .iter()
        .map(|(name, texts)| format!("`{name}`: {}", texts.join(", ")));
    each.collect::<Vec<_>>().join("; ")
}

fn markdown() -> String {
    let mut out = vec![
        "# Metrics".to_owned(),
        String::new(),
        "```sh".to_owned(),
        "curl -s http://127.0.0.1:4000/metrics".to_owned(),
        "```".to_owned(),
        String::new(),
        "Prometheus text. Each replica reports its own values, even while the database is away; a scrape \
         waits for nothing. Counters begin at 0 with the process. Everybody who can reach the port can read \
         the metrics, so none contains a tenant, an id, or a name that a tenant chose. Histograms have \
         buckets `le` from 0.1 s to 10 min; that of approvals, from 1 min to 30 days."
            .to_owned(),
    ];
    for (title, when, metrics) in sections() {
        out.push(String::new());
        out.push(format!("## {title}"));
        out.push(String::new());
        if !when.is_empty() {
            out.push(when.to_owned());
            out.push(String::new());
        }
        out.push("| metric | type | unit | labels | meaning |".to_owned());
        out.push("|---|---|---|---|---|".to_owned());
        for metric in metrics {
            let kind = match metric.kind {
                Counter => "counter",
                Gauge => "gauge",
                Histogram => "histogram",
            };
            out.push(format!(
                "| `{}` | {kind} | {} | {} | {} |",
                metric.name,
                unit(&metric),
                labels(&metric),
                metric.help
            ));
        }
    }
    out.join("\n") + "\n"
}

#[test]
fn the_page_equals_the_figures() {
    crate::config::generated::file("docs/metrics.md", &markdown(), "metrics::document");
}

#[test]
fn a_counter_is_called_total_and_nothing_else_is() {
    let all = sections().into_iter().flat_map(|(_, _, metrics)| metrics);
    let mut names: Vec<&str> = all
        .map(|metric| {
            let total = metric.name.ends_with("_total");
            assert_eq!(total, metric.kind == Counter, "{}", metric.name);
            let series = metric.values.len() + metric.distributions.len();
            assert!(series > 0, "{}", metric.name);
            metric.name
        })
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
