//! `/healthz`, `/readyz` and `/metrics`, answered by the door itself. Nothing here blocks, so they
//! answer even if the database and every request thread are stuck.
//!
//! Healthy: a restart would not help. Ready: the server can take work; otherwise the answer names
//! the reasons. Metrics: Prometheus text, from values that their owners keep in memory.

use rouille::{Response, ResponseBody};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError, RwLock};

/// What Prometheus calls the type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts how often something was how large.
    Histogram,
}

/// The labels of one series.
pub type Labels = Vec<(&'static str, String)>;

/// One series of a histogram.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Distribution {
    /// Upper bounds, rising, and how many values each bucket has that are not in the ones before it.
    pub buckets: Vec<(f64, u64)>,
    /// How many values are beyond the last bound.
    pub beyond: u64,
    /// All values together.
    pub sum: f64,
}

/// One family of figures, with a label set each.
#[derive(Debug, Clone)]
pub struct Metric {
    /// The name, with its unit last.
    pub name: &'static str,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Its type.
    pub kind: MetricKind,
    /// Its figures; none of a histogram.
    pub values: Vec<(Labels, f64)>,
    /// The figures of a histogram.
    pub distributions: Vec<(Labels, Distribution)>,
}

impl Metric {
    /// A metric with one figure and no labels.
    pub fn single(
        name: &'static str,
        help: &'static str,
        kind: MetricKind,
        value: impl Into<f64>,
    ) -> Self {
        Self::labelled(name, help, kind, vec![(Vec::new(), value.into())])
    }

    /// A metric with a figure for each set of labels.
    pub fn labelled(
        name: &'static str,
        help: &'static str,
        kind: MetricKind,
        values: Vec<(Labels, f64)>,
    ) -> Self {
        Self {
            name,
            help,
            kind,
            values,
            distributions: Vec::new(),
        }
    }

    /// A histogram.
    pub fn histogram(
        name: &'static str,
        help: &'static str,
        distributions: Vec<(Labels, Distribution)>,
    ) -> Self {
        Self {
            name,
            help,
            kind: MetricKind::Histogram,
            values: Vec::new(),
            distributions,
        }
    }
}

type Source = Box<dyn Fn() -> Vec<Metric> + Send + Sync>;

/// The probes of one server.
pub struct Probes {
    /// What is stuck, so that a restart would help.
    stuck: Mutex<Option<&'static str>>,
    /// What is not ready, and why.
    missing: Mutex<BTreeMap<&'static str, String>>,
    sources: RwLock<Vec<Source>>,
}

impl Default for Probes {
    fn default() -> Self {
        Self::new()
    }
}

impl Probes {
    /// Not ready: the server is starting.
    pub fn new() -> Self {
        let starting = BTreeMap::from([("server", "The server is starting.".to_owned())]);
        Self {
            stuck: Mutex::default(),
            missing: Mutex::new(starting),
            sources: RwLock::default(),
        }
    }

    /// Says that a part is ready, or why it is not.
    pub fn set(&self, part: &'static str, state: Result<(), String>) {
        let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        match state {
            Ok(()) => missing.remove(part),
            Err(reason) => missing.insert(part, reason),
        };
    }

    /// Says that the process is healthy, or which part is stuck.
    pub fn set_stuck(&self, part: Option<&'static str>) {
        *self.stuck.lock().unwrap_or_else(PoisonError::into_inner) = part;
    }

    /// What is missing of a part, if it is not ready.
    pub fn missing(&self, part: &'static str) -> Option<String> {
        self.missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(part)
            .cloned()
    }

    /// Adds figures. The source is asked at every scrape and must not wait for anything.
    pub fn add(&self, source: impl Fn() -> Vec<Metric> + Send + Sync + 'static) {
        self.sources
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(source));
    }

    /// Whether the path is a probe's.
    pub(super) fn has(path: &str) -> bool {
        ["/healthz", "/readyz", "/metrics"].contains(&path)
    }

    /// The answer to a probe; none for any other path.
    pub(super) fn answer(&self, method: &str, path: &str) -> Option<Response> {
        if !Self::has(path) || !["GET", "HEAD"].contains(&method) {
            return None;
        }
        Some(match path {
            "/healthz" => self.health(),
            "/readyz" => self.readiness(),
            _ => respond(
                200,
                "text/plain; version=0.0.4; charset=utf-8",
                self.metrics(),
            ),
        })
    }

    fn health(&self) -> Response {
        let stuck = *self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, body) = match stuck {
            None => (200, json!({"status": "healthy"})),
            Some(part) => (503, json!({"status": "stuck", "part": part})),
        };
        respond(status, "application/json", body.to_string())
    }

    fn readiness(&self) -> Response {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if missing.is_empty() {
            return respond(200, "application/json", r#"{"status":"ready"}"#.to_owned());
        }
        let body = json!({"status": "not-ready", "missing": *missing});
        respond(503, "application/json", body.to_string())
    }

    fn metrics(&self) -> String {
        let ready = self
            .missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty();
        let mut text = String::new();
        write_metric(&mut text, &self::ready(ready));
        for source in self
            .sources
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            for metric in source() {
                write_metric(&mut text, &metric);
            }
        }
        text
    }
}

/// The probes' own figure.
pub fn ready(is_ready: bool) -> Metric {
    Metric::single(
        "agent_runtime_ready",
        "1 when the server can take work.",
        MetricKind::Gauge,
        u8::from(is_ready),
    )
}

fn respond(status: u16, content_type: &'static str, body: String) -> Response {
    Response {
        status_code: status,
        headers: vec![
            ("content-type".into(), content_type.into()),
            ("cache-control".into(), "no-store".into()),
        ],
        data: ResponseBody::from_string(body),
        upgrade: None,
    }
}

fn write_metric(text: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "# HELP {} {}", metric.name, metric.help);
    let _ = writeln!(text, "# TYPE {} {kind}", metric.name);
    for (labels, value) in &metric.values {
        write_sample(text, (metric.name, ""), labels, *value);
    }
    for (labels, distribution) in &metric.distributions {
        write_distribution(text, metric.name, labels, distribution);
    }
}

fn write_distribution(
    text: &mut String,
    name: &str,
    labels: &[(&'static str, String)],
    distribution: &Distribution,
) {
    let bounds = distribution
        .buckets
        .iter()
        .map(|(bound, _)| bound.to_string());
    let counts = distribution.buckets.iter().map(|(_, count)| *count);
    let mut total = 0;
    for (bound, count) in bounds
        .chain(["+Inf".to_owned()])
        .zip(counts.chain([distribution.beyond]))
    {
        total += count;
        let labels = [labels, &[("le", bound)]].concat();
        write_sample(text, (name, "_bucket"), &labels, total);
    }
    write_sample(text, (name, "_sum"), labels, distribution.sum);
    write_sample(text, (name, "_count"), labels, total);
}

fn write_sample(
    text: &mut String,
    (name, suffix): (&str, &str),
    labels: &[(&'static str, String)],
    value: impl std::fmt::Display,
) {
    let _ = write!(text, "{name}{suffix}");
    if !labels.is_empty() {
        let pairs: Vec<String> = labels
            .iter()
            .map(|(name, value)| {
                let escaped = value
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('\n', "\\n");
                format!("{name}=\"{escaped}\"")
            })
            .collect();
        let _ = write!(text, "{{{}}}", pairs.join(","));
    }
    let _ = writeln!(text, " {value}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(response: Response) -> String {
        let mut text = String::new();
        let (mut reader, _) = response.data.into_reader_and_size();
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
        text
    }

    #[test]
    fn readiness_names_what_is_missing() {
        let probes = Probes::new();
        probes.set("database", Err("no answer".to_owned()));
        let answer = probes.answer("GET", "/readyz").unwrap();
        assert_eq!(answer.status_code, 503);
        assert!(body(answer).contains("no answer"));
        probes.set("database", Ok(()));
        probes.set("server", Ok(()));
        assert_eq!(probes.answer("GET", "/readyz").unwrap().status_code, 200);
        assert!(probes.answer("POST", "/readyz").is_none());
        assert!(probes.answer("GET", "/v1/runs").is_none());
    }

    #[test]
    fn a_stuck_part_is_named() {
        let probes = Probes::new();
        assert_eq!(probes.answer("GET", "/healthz").unwrap().status_code, 200);
        probes.set_stuck(Some("the audit writer"));
        let answer = probes.answer("GET", "/healthz").unwrap();
        assert_eq!(answer.status_code, 503);
        assert!(body(answer).contains("the audit writer"));
        probes.set_stuck(None);
        assert_eq!(probes.answer("GET", "/healthz").unwrap().status_code, 200);
    }

    #[test]
    fn metrics_are_prometheus_text() {
        let probes = Probes::new();
        probes.add(|| {
            vec![
                Metric::labelled(
                    "agent_runtime_answers_total",
                    "Answers by class.",
                    MetricKind::Counter,
                    vec![(vec![("class", "a\"b".to_owned())], 3.0)],
                ),
                Metric::histogram(
                    "agent_runtime_waits_seconds",
                    "Waits.",
                    vec![(
                        vec![("kind", "a".to_owned())],
                        Distribution {
                            buckets: vec![(0.5, 2), (1.0, 3)],
                            beyond: 1,
                            sum: 7.5,
                        },
                    )],
                ),
            ]
        });
        let text = body(probes.answer("GET", "/metrics").unwrap());
        assert!(text.contains("# TYPE agent_runtime_answers_total counter\n"));
        assert!(text.contains("agent_runtime_answers_total{class=\"a\\\"b\"} 3\n"));
        assert!(text.contains("agent_runtime_ready 0\n"));
        assert!(
            text.ends_with(
                "# TYPE agent_runtime_waits_seconds histogram\n\
                 agent_runtime_waits_seconds_bucket{kind=\"a\",le=\"0.5\"} 2\n\
                 agent_runtime_waits_seconds_bucket{kind=\"a\",le=\"1\"} 5\n\
                 agent_runtime_waits_seconds_bucket{kind=\"a\",le=\"+Inf\"} 6\n\
                 agent_runtime_waits_seconds_sum{kind=\"a\"} 7.5\n\
                 agent_runtime_waits_seconds_count{kind=\"a\"} 6\n"
            ),
            "{text}"
        );
    }
}
