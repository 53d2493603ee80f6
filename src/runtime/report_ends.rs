//! Says in the log, in the metrics and in a span that runs have ended.
//!
//! Every end passes here once: of a run that is carried on here, of one that a cancel ended because
//! nobody held it, and of those below either. To be called after the commit. The end of a process
//! between the two loses the record, never the end.

use super::services::Services;
use super::spans;
use crate::log::trace::TraceContext;
use crate::store::runs::{EndedRun, Run, Status, StepCommit, Written};
use time::OffsetDateTime;
use uuid::Uuid;

/// The runs that a commit of this run's holder ended: the run itself, and runs below it.
pub(super) fn of_commit(
    run: &Run,
    commit: &StepCommit,
    written: Written,
    now: OffsetDateTime,
) -> Vec<EndedRun> {
    let own = commit.end.as_ref().zip(written.totals);
    let own = own.map(|(end, totals)| EndedRun {
        run: Run {
            status: end.status(),
            failure_message: end.failure().map(|failure| failure.message.clone()),
            failure_summary: end
                .failure()
                .map(|failure| failure.summary.as_str().to_owned()),
            completed_at: Some(now),
            usage: totals.usage,
            ..run.clone()
        },
        steps: totals.steps,
    });
    own.into_iter().chain(written.ended_below).collect()
}

/// Writes a record of each, and counts it. `log`: of the run that was carried on or cancelled, whose request the
/// others come from too. `own`: that run and its span, if it is known.
pub(super) fn report(
    services: &Services,
    log: &slog::Logger,
    own: Option<(Uuid, &TraceContext)>,
    ended: &[EndedRun],
) {
    for one in ended {
        if let Some(own) = own.filter(|(_, trace)| services.traces.takes(trace)) {
            services.traces.record(spans::of_run(own, &one.run));
        }
        services.counts.run_ended(one.run.status);
        match one.run.status {
            Status::Failed => slog::warn!(log, "A run ended"; Record(one)),
            _ => slog::info!(log, "A run ended"; Record(one)),
        }
    }
}

/// The fields of the record. Those of OpenTelemetry's have its names.
struct Record<'a>(&'a EndedRun);

impl slog::KV for Record<'_> {
    fn serialize(&self, _: &slog::Record<'_>, out: &mut dyn slog::Serializer) -> slog::Result {
        let EndedRun { run, steps } = self.0;
        out.emit_arguments("tenantId", &format_args!("{}", run.tenant_id))?;
        out.emit_arguments("projectId", &format_args!("{}", run.project_id))?;
        out.emit_arguments("runId", &format_args!("{}", run.run_id))?;
        out.emit_str("flowId", &run.flow_id)?;
        out.emit_str("flowVersion", &run.flow_version)?;
        if let Some(agent) = &run.agent {
            out.emit_arguments("agentId", &format_args!("{}", agent.id))?;
            out.emit_str("agentVersion", &agent.version)?;
        }
        out.emit_str("status", run.status.text())?;
        if let Some(summary) = run.summary_of_failure() {
            out.emit_str("failureMessage", summary)?;
        }
        if !run.labels.is_empty() {
            out.emit_serde("labels", &slog::Serde(run.labels.clone()))?;
        }
        out.emit_i32("steps", *steps)?;
        out.emit_i64("durationMs", duration_ms(run))?;
        out.emit_i64("modelCalls", run.usage.calls)?;
        out.emit_f64("costUsd", run.usage.cost_usd)?;
        out.emit_i64("gen_ai.usage.input_tokens", run.usage.tokens.prompt)?;
        out.emit_i64("gen_ai.usage.output_tokens", run.usage.tokens.completion)
    }
}

/// From its creation to its end. Nothing where the clock was set back meanwhile.
fn duration_ms(run: &Run) -> i64 {
    let ended = run.completed_at.unwrap_or(run.created_at);
    let duration = (ended - run.created_at).whole_milliseconds();
    i64::try_from(duration).unwrap_or(i64::MAX).max(0)
}
