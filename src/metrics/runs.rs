//! The metrics of runs, and of the calls of models and tools that they make.

use super::{
    Metric,
    MetricKind::{Counter, Gauge},
    figure,
};
use crate::http::probes::{Distribution, Labels};
use crate::runtime::{
    ApprovalStats, BOUNDS, Durations, ModelCalls, Stats, ToolOutcome, WAIT_BOUNDS,
};
use crate::store::approvals::ApprovalStatus;
use crate::store::run_checks::{Point, Verdict};
use crate::store::runs::{Status, Tokens};
use crate::store::steps::{ModelCallOutcome, StepKind};
use crate::store::tools::TargetKind;

/// What runs did in this process.
pub(super) fn of_runs(stats: &Stats) -> Vec<Metric> {
    let ended = Status::ALL.iter().zip(stats.ended);
    let ended = ended.filter(|(status, _)| status.is_finished());
    let steps = StepKind::ALL.iter().zip(&stats.steps);
    vec![
        Metric::labelled(
            "agent_runtime_runs_ended_total",
            "Runs that ended.",
            Counter,
            ended
                .map(|(status, count)| (label("status", status.text()), figure(count)))
                .collect(),
        ),
        Metric::single(
            "agent_runtime_runs_given_up_total",
            "Runs that this process ended because the processes that carried them on had died SVC_MAX_RUN_DEATHS times in a row.",
            Counter,
            figure(stats.given_up),
        ),
        Metric::labelled(
            "agent_runtime_model_calls_total",
            "Calls of models that ended. A provider is known by the name of its key in SVC_MODEL_KEYS; tenant-key stands for all calls with a secret of a tenant, no-key for those without a key.",
            Counter,
            stats.models.iter().flat_map(calls).collect(),
        ),
        Metric::labelled(
            "agent_runtime_model_tokens_total",
            "Tokens that model providers counted. Those of a cache are part of the prompt, reasoning is part of the completion.",
            Counter,
            tokens(stats.tokens).to_vec(),
        ),
        Metric::single(
            "agent_runtime_model_cost_usd_total",
            "What calls of models cost, as far as their models have prices.",
            Counter,
            stats.cost_usd,
        ),
        Metric::histogram(
            "agent_runtime_model_first_byte_seconds",
            "How long answers of models took to begin.",
            of_each(
                "provider",
                stats.models.iter().map(|of| (&*of.key, &of.first_byte)),
            ),
        ),
        Metric::histogram(
            "agent_runtime_step_seconds",
            "How long attempts at steps took.",
            of_each(
                "kind",
                steps.map(|(kind, durations)| (kind.text(), durations)),
            ),
        ),
        calls_of_tools(stats),
        checks_of_guardrails(stats),
    ]
}

fn calls_of_tools(stats: &Stats) -> Metric {
    let tools = TargetKind::ALL.iter().zip(stats.tools);
    let tools = tools.flat_map(|(target, counts)| {
        let of_each = ToolOutcome::ALL.iter().zip(counts);
        of_each.map(|(outcome, count)| (*target, *outcome, count))
    });
    Metric::labelled(
        "agent_runtime_tool_calls_total",
        "Attempts at calls of tools that ended. unreachable: no connection, or no answer in time. error: another status than success, or an answer that cannot be taken; the agent or the flow failed. refused: the model called it wrongly.",
        Counter,
        tools
            .map(|(target, outcome, count)| {
                let labels = [
                    label("kind", target.text()),
                    label("outcome", outcome.text()),
                ];
                (labels.concat(), figure(count))
            })
            .collect(),
    )
}

fn checks_of_guardrails(stats: &Stats) -> Metric {
    let points = Point::ALL.iter().zip(stats.guardrails);
    let points = points.flat_map(|(point, counts)| {
        let of_each = Verdict::ALL.iter().zip(counts);
        of_each.map(|(verdict, count)| (*point, *verdict, count))
    });
    Metric::labelled(
        "agent_runtime_guardrails_total",
        "Checks that guardrails made in runs. failed: the check itself failed, and blocked unless its author said otherwise.",
        Counter,
        points
            .map(|(point, verdict, count)| {
                let labels = [
                    label("point", point.text()),
                    label("verdict", verdict.text()),
                ];
                (labels.concat(), figure(count))
            })
            .collect(),
    )
}

/// Approvals. The roles are a tenant's words, so all but `standard` count together.
pub(super) fn of_approvals(stats: &ApprovalStats) -> Vec<Metric> {
    let figures = stats.figures;
    let size = |count: i64| figure(u64::try_from(count).unwrap_or(0));
    let waiting = [("standard", figures.standard), ("other", figures.other)];
    let closed = ApprovalStatus::ALL.iter().zip(stats.closed);
    let closed = closed
        .filter(|(status, _)| !matches!(status, ApprovalStatus::Waiting | ApprovalStatus::Voided));
    vec![
        Metric::labelled(
            "agent_runtime_approvals_waiting",
            "Approvals that wait for a reviewer, in all tenants, as the database had them at most 15 s before. All roles but standard count together.",
            Gauge,
            waiting
                .map(|(role, count)| (label("role", role), size(count)))
                .to_vec(),
        ),
        Metric::single(
            "agent_runtime_approvals_overdue",
            "Approvals whose time is over and that were not closed yet, as above: their runs have not gone on.",
            Gauge,
            size(figures.overdue),
        ),
        Metric::single(
            "agent_runtime_approvals_oldest_seconds",
            "How long the oldest approval that waits has waited, as above.",
            Gauge,
            figures.oldest_seconds,
        ),
        Metric::labelled(
            "agent_runtime_approvals_closed_total",
            "Approvals that this process closed. Those that end with their run are not counted.",
            Counter,
            closed
                .map(|(status, count)| (label("outcome", status.text()), figure(count)))
                .collect(),
        ),
        Metric::histogram(
            "agent_runtime_approval_decision_seconds",
            "How long approvals waited that reviewers decided.",
            vec![(
                Labels::new(),
                Distribution {
                    buckets: WAIT_BOUNDS.into_iter().zip(stats.waits).collect(),
                    beyond: stats.waits[WAIT_BOUNDS.len()],
                    sum: stats.waited_seconds,
                },
            )],
        ),
    ]
}

fn label(name: &'static str, text: &str) -> Labels {
    vec![(name, text.to_owned())]
}

fn calls(of_key: &ModelCalls) -> impl Iterator<Item = (Labels, f64)> + '_ {
    let outcomes = ModelCallOutcome::ALL.iter().zip(of_key.outcomes);
    outcomes.map(|(outcome, count)| {
        let labels = [
            label("provider", &of_key.key),
            label("outcome", outcome.text()),
        ];
        (labels.concat(), figure(count))
    })
}

fn tokens(tokens: Tokens) -> [(Labels, f64); 5] {
    let by_kind = [
        ("prompt", tokens.prompt),
        ("completion", tokens.completion),
        ("cache-read", tokens.cache_read),
        ("cache-write", tokens.cache_write),
        ("reasoning", tokens.reasoning),
    ];
    by_kind.map(|(kind, count)| {
        let count = u64::try_from(count).unwrap_or(0);
        (label("kind", kind), figure(count))
    })
}

fn of_each<'a>(
    name: &'static str,
    all: impl Iterator<Item = (&'a str, &'a Durations)>,
) -> Vec<(Labels, Distribution)> {
    let distribution = |durations: &Durations| Distribution {
        buckets: BOUNDS.into_iter().zip(durations.counts).collect(),
        beyond: durations.counts[BOUNDS.len()],
        sum: durations.sum,
    };
    all.map(|(text, durations)| (label(name, text), distribution(durations)))
        .collect()
}
