//! The alert rules and the dashboard of the packages: each series that they name is in the page of the
//! metrics and in a real `/metrics`, and each alert has an entry that says what to do.

use crate::harness::openfga::OpenFga;
use crate::harness::webhooks::deployed;
use crate::harness::{App, NewTool, ToolAnswer, ToolServer, authorization, license};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const PREFIX: &str = "agent_runtime_";
/// Labels that Prometheus adds or makes.
const OF_PROMETHEUS: [&str; 3] = ["instance", "job", "le"];

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// A series that an expression names: its metric, and the values that it wants of labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Selected {
    metric: String,
    labels: Vec<(String, Vec<String>)>,
}

/// The series of an expression.
fn selected(expression: &str) -> Vec<Selected> {
    let starts = expression.match_indices(PREFIX);
    let selected = starts.map(|(at, _)| {
        let rest = &expression[at..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let matchers = rest[end..].strip_prefix('{');
        let matchers = matchers.and_then(|rest| rest.split_once('}'));
        let labels = matchers.map_or_else(Vec::new, |(inside, _)| {
            inside.split("\",").map(matcher).collect()
        });
        Selected {
            metric: rest[..end].to_owned(),
            labels: labels
                .into_iter()
                .filter(|(name, _)| name != "instance")
                .collect(),
        }
    });
    selected.collect()
}

fn matcher(text: &str) -> (String, Vec<String>) {
    let (name, value) = text.split_once('=').unwrap();
    let value = value.trim_start_matches('~').trim_matches('"');
    (
        name.to_owned(),
        value.split('|').map(str::to_owned).collect(),
    )
}

/// The labels by which an expression groups.
fn grouped(expression: &str) -> Vec<String> {
    let groups = expression.split(" by (").skip(1);
    let inside = groups.filter_map(|rest| rest.split_once(')'));
    let names = inside.flat_map(|(names, _)| names.split(','));
    names.map(|name| name.trim().to_owned()).collect()
}

/// A rule of the file of alerts.
#[derive(Debug, Default)]
struct Rule {
    name: String,
    fields: BTreeMap<String, String>,
}

/// Reads the file of alerts, which has one form alone: a line for each field, and texts in single quotes.
fn rules() -> Vec<Rule> {
    let text = read("packaging/monitoring/alerts.yml");
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    for expected in ["groups:", "  - name: agent-runtime", "    rules:"] {
        assert_eq!(lines.next(), Some(expected));
    }
    let mut rules: Vec<Rule> = Vec::new();
    let mut section = "";
    for line in lines {
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("{line}"));
        let value = value.trim();
        let quoted = value
            .strip_prefix('\'')
            .and_then(|value| value.strip_suffix('\''));
        assert!(
            !value.contains('\'') || quoted.is_some_and(|value| !value.contains('\'')),
            "{line}"
        );
        let value = quoted.unwrap_or(value).to_owned();
        if let Some(key) = key.strip_prefix("      - ") {
            assert_eq!(key, "alert", "{line}");
            rules.push(Rule {
                name: value,
                ..Rule::default()
            });
            continue;
        }
        let indent = key.len() - key.trim_start().len();
        let key = match (indent, key.trim()) {
            (8, "labels") => {
                section = "labels.";
                continue;
            }
            (8, "annotations") => {
                section = "annotations.";
                continue;
            }
            (8, key) => key.to_owned(),
            (10, key) => format!("{section}{key}"),
            _ => panic!("the indent of {line:?}"),
        };
        let rule = rules.last_mut().unwrap();
        assert!(rule.fields.insert(key, value).is_none(), "{line}");
    }
    rules
}

/// The expressions of the dashboard's panels, each with the labels that its legend shows.
fn panels() -> Vec<(String, Vec<String>)> {
    let dashboard: Value =
        serde_json::from_str(&read("packaging/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap());
    let target = |target: &Value| {
        let legend = target["legendFormat"].as_str().unwrap();
        let shown = legend
            .split("{{")
            .skip(1)
            .filter_map(|rest| rest.split_once("}}"));
        let shown = shown.map(|(name, _)| name.to_owned()).collect();
        (target["expr"].as_str().unwrap().to_owned(), shown)
    };
    let mut all: Vec<_> = targets.map(target).collect();
    let ids: BTreeSet<i64> = panels
        .iter()
        .map(|panel| panel["id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids.len(), panels.len(), "ids of panels");
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            all.push((query.to_owned(), Vec::new()));
        }
    }
    all
}

/// Each expression, with what is shown of it.
fn expressions() -> Vec<(String, Vec<String>)> {
    let rules = rules().into_iter().map(|rule| {
        let summary = &rule.fields["annotations.summary"];
        let shown = summary.split("$labels.").skip(1);
        let shown = shown.map(|rest| rest.split(' ').next().unwrap_or_default().to_owned());
        (rule.fields["expr"].clone(), shown.collect())
    });
    rules.chain(panels()).collect()
}

/// The name of a metric without what a histogram's series add.
fn family(metric: &str) -> &str {
    let parts = ["_seconds_bucket", "_seconds_count", "_seconds_sum"];
    let part = parts.iter().find(|part| metric.ends_with(**part));
    part.map_or(metric, |part| {
        &metric[..metric.len() - part.len() + "_seconds".len()]
    })
}

/// The metrics of the page, each with its labels and their values.
fn documented() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let page = read("docs/metrics.md");
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let labels = cells.nth(2)?.split("; ").filter_map(|label| {
            let (name, values) = label.split_once(": ")?;
            let values = values.split(", ").map(str::to_owned).collect();
            Some((name.trim_matches('`').to_owned(), values))
        });
        Some((name, labels.collect()))
    });
    rows.collect()
}

#[test]
fn alerts_and_panels_use_series_that_the_page_of_the_metrics_has() {
    let documented = documented();
    let expressions = expressions();
    assert!(expressions.len() > 40, "{}", expressions.len());
    for (expression, shown) in expressions {
        let selected = selected(&expression);
        assert!(
            !selected.is_empty() || expression.starts_with("up{"),
            "{expression}"
        );
        let mut labels: BTreeSet<&str> = OF_PROMETHEUS.into();
        for series in &selected {
            let known = documented.get(family(&series.metric));
            let known = known.unwrap_or_else(|| panic!("{} in {expression}", series.metric));
            labels.extend(known.keys().map(String::as_str));
            for (label, values) in &series.labels {
                let all = known
                    .get(label)
                    .unwrap_or_else(|| panic!("{label} in {expression}"));
                for value in values {
                    assert!(all.contains(value), "{label}={value} in {expression}");
                }
            }
        }
        for label in grouped(&expression).iter().chain(&shown) {
            assert!(labels.contains(label.as_str()), "{label} in {expression}");
        }
    }
}

#[test]
fn alerts_and_panels_use_series_that_a_server_has() {
    let openfga = OpenFga::shared().url();
    let app = App::start_with(|options| {
        deployed(options);
        options.webhooks.development = true;
        options.runs.host_access = agent_runtime::outbound::HostAccess::Local;
        options.authorization = Some(authorization(&openfga));
        options.license = Some(license(60));
    });
    app.is_in_step();
    let call = Reply::ToolCalls(vec![("look_up".to_owned(), json!({}))]);
    let provider = Provider::start(Script {
        queue: vec![Step::new(call)],
        then: Step::text("Found."),
    })
    .unwrap();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("found"));
    let maker = app.maker();
    let project = maker.project();
    let tool_id = maker.tool(project, &NewTool::new("look_up", &tool.url()));
    let agent = maker.agent_of(project, &provider.base_url(), |version| {
        version.tools = vec![tool_id];
    });
    let run = app.finished(&app.start_turn(agent, "Look."));
    assert_eq!(run["status"], "completed", "{run}");
    let text = app.get("/metrics").text;
    let series: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let has = |metric: &str, label: Option<(&str, &str)>| {
        series.iter().any(|line| {
            let rest = line.strip_prefix(metric);
            rest.is_some_and(|rest| {
                let is_it = rest.starts_with(['{', ' ']);
                is_it
                    && label
                        .is_none_or(|(name, value)| rest.contains(&format!("{name}=\"{value}\"")))
            })
        })
    };
    for (expression, _) in expressions() {
        for Selected { metric, labels } in selected(&expression) {
            assert!(has(&metric, None), "{metric} of {expression}");
            for (name, value) in labels
                .iter()
                .flat_map(|(name, values)| values.iter().map(move |value| (name, value)))
            {
                assert!(
                    has(&metric, Some((name, value))),
                    "{metric}{{{name}={value}}}"
                );
            }
        }
    }
}

#[test]
fn a_server_says_when_its_license_expires_and_one_without_says_nothing() {
    const NAME: &str = "agent_runtime_license_expiry_timestamp_seconds";
    let figure = |app: &App| -> Option<f64> {
        let text = app.get("/metrics").text;
        let line = text.lines().find(|line| line.starts_with(NAME))?;
        Some(line.rsplit_once(' ').unwrap().1.parse().unwrap())
    };
    assert_eq!(figure(&App::start()), None);
    let claims = license(60);
    let expires_at = claims.expires_at.unix_timestamp();
    let app = App::start_with(|options| options.license = Some(claims));
    let figure = figure(&app).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "the metric is a double")]
    let expected = expires_at as f64;
    assert!((figure - expected).abs() < 1.0, "{figure} {expected}");
}

#[test]
fn each_alert_has_an_entry_that_says_what_to_do_and_each_entry_an_alert() {
    let page = read("docs/alerts.md");
    let mut entries: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in page.split("\n## ").skip(1) {
        let (name, text) = entry.split_once('\n').unwrap();
        for part in [
            "**What it means.** ",
            "**How to look.** ",
            "**What to do.** ",
        ] {
            assert!(text.contains(part), "{part} of {name}");
        }
        entries.insert(name, text);
    }
    let rules = rules();
    let known = [
        "annotations.runbook",
        "annotations.summary",
        "expr",
        "for",
        "labels.severity",
    ];
    for rule in &rules {
        let name = rule.name.as_str();
        assert_eq!(rule.fields.keys().collect::<Vec<_>>(), known, "{name}");
        let entry = entries
            .get(name)
            .unwrap_or_else(|| panic!("docs/alerts.md lacks {name}"));
        let anchor = format!("docs/alerts.md#{}", name.to_lowercase());
        assert_eq!(rule.fields["annotations.runbook"], anchor);
        let severity = rule.fields["labels.severity"].as_str();
        assert!(
            ["critical", "warning"].contains(&severity),
            "{name}: {severity}"
        );
        let wait = rule.fields["for"].strip_suffix('m').unwrap();
        assert!(wait.parse::<u32>().is_ok(), "{name}: {wait}");
        let opening = match wait {
            "0" => "at once".to_owned(),
            "1" => "after 1 minute".to_owned(),
            minutes => format!("after {minutes} minutes"),
        };
        let opening = format!("`{severity}`, {opening}");
        assert!(
            entry.trim_start().starts_with(&opening),
            "{name}: {opening}"
        );
    }
    let named: BTreeSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(named.len(), rules.len(), "names of alerts");
    assert_eq!(named, entries.keys().copied().collect());
}

/// The journal of the unit has lines of systemd among the records, at which jq stops where it expects JSON.
#[test]
fn documented_filters_of_the_journal_pass_over_lines_that_are_not_json() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = std::fs::read_dir(root.join("docs")).unwrap();
    let pages = pages.map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    let mut filters = Vec::new();
    for page in pages.chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        let of_page = text
            .lines()
            .filter(|line| line.contains("journalctl ") && line.contains("| jq "));
        filters.extend(of_page.map(str::to_owned));
    }
    assert!(filters.len() >= 4, "{filters:?}");
    for line in filters {
        assert!(line.contains("| jq -R 'fromjson?"), "{line}");
    }
}

/// A part that is stuck is not fed to systemd, which ends the process: a rule that waited for longer would never fire.
#[test]
fn the_alert_of_a_stuck_part_fires_before_the_watchdog_ends_the_process() {
    let unit = read("packaging/agent-runtime.service");
    let watchdog = unit
        .lines()
        .find_map(|line| line.strip_prefix("WatchdogSec="))
        .and_then(|wait| wait.strip_suffix('s'));
    let watchdog: u32 = watchdog.unwrap().parse().unwrap();
    let stuck = rules()
        .into_iter()
        .find(|rule| rule.name == "AgentRuntimeStuck");
    let minutes = stuck.unwrap().fields["for"].replace('m', "");
    assert!(minutes.parse::<u32>().unwrap() * 60 < watchdog);
}
