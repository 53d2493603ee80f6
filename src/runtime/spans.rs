//! The spans of runs and of the attempts of their steps, with the names of OpenTelemetry's
//! conventions for generative AI where there is one.
//!
//! A span is made by whoever ends what it describes, once that is written. So a run that several
//! processes carried has one span.
//!
//! Not here: what messages, arguments, answers and failures say. A span holds none of it.

use super::program::Program;
use super::progress::events::StepAnswer;
use super::steps::attempt::{Outcome, Performed};
use super::steps::kind::{SpanName, span_name};
use super::steps::outcome::outcome;
use crate::log::trace::TraceContext;
use crate::store::runs::{Run, Status};
use crate::store::steps::{ModelCall, StepKind, StepOutcome, StepStatus};
use crate::traces::{Kind, Span, Value};
use time::OffsetDateTime;
use url::Url;
use uuid::Uuid;

type Attributes = Vec<(&'static str, Value)>;

/// An attempt of a step of a run.
pub(super) struct Attempted<'a> {
    /// The run's span.
    pub(super) trace: &'a TraceContext,
    pub(super) run: &'a Run,
    pub(super) program: &'a Program,
    pub(super) kind: StepKind,
    /// The model's or the tool's name, or the method of a request, as the journal has it.
    pub(super) name: &'a str,
    pub(super) step: i32,
    pub(super) attempt: i32,
    pub(super) began: OffsetDateTime,
    pub(super) ended: OffsetDateTime,
}

/// A run that has ended. `own`: the run that is carried on or cancelled, and its span. Another one is
/// below that, and was cancelled with it: its span is shown below its parent's.
pub(super) fn of_run((own_id, own): (Uuid, &TraceContext), run: &Run) -> Span {
    let trace = match &run.parent {
        Some(parent) if run.run_id != own_id => {
            let parent = TraceContext::of_run(&own.traceparent(), parent.run_id);
            TraceContext::of_run(&parent.traceparent(), run.run_id)
        }
        _ => own.clone(),
    };
    let mut attributes = ids(run);
    let name = match &run.agent {
        Some(agent) => {
            attributes.push(("gen_ai.operation.name", "invoke_agent".into()));
            attributes.push(("gen_ai.agent.id", agent.id.into()));
            attributes.push(("gen_ai.agent.version", agent.version.as_str().into()));
            if let Some(conversation_id) = agent.conversation_id {
                attributes.push(("gen_ai.conversation.id", conversation_id.into()));
            }
            "invoke_agent"
        }
        None => {
            attributes.push(("agent_runtime.flow.id", run.flow_id.as_str().into()));
            "run_flow"
        }
    };
    attributes.push(("agent_runtime.run.status", run.status.text().into()));
    Span {
        trace,
        name: name.to_owned(),
        kind: Kind::Internal,
        began: run.created_at,
        ended: run.completed_at.unwrap_or(run.created_at),
        attributes,
        failure: (run.status == Status::Failed).then(|| "failed".to_owned()),
    }
}

impl Attempted<'_> {
    /// An attempt that was performed; none for one that goes on later.
    pub(super) fn performed(&self, performed: &Performed) -> Option<Span> {
        let (reason, failure) = match &performed.outcome {
            Outcome::Waits(_) => return None,
            Outcome::Done { answer, result } => {
                let came_to = outcome(self.kind, StepStatus::Completed, Some(result));
                let has_failed =
                    matches!(came_to, Some(StepOutcome::Failed | StepOutcome::Unknown));
                match answer {
                    StepAnswer::Model { finish_reason, .. } => (finish_reason.clone(), None),
                    StepAnswer::Tool { .. } => (None, has_failed.then_some("tool_error")),
                    _ => (None, has_failed.then_some("failed")),
                }
            }
            Outcome::Failed { .. } | Outcome::Refused(_) => (None, Some("failed")),
            Outcome::Interrupted => (None, Some("interrupted")),
        };
        let mut span = self.span(failure);
        if let Some(call) = &performed.call {
            span.attributes.extend(usage(call));
        }
        if let Outcome::Done {
            answer: StepAnswer::Http { status_code },
            ..
        } = &performed.outcome
        {
            let status = i64::from(*status_code);
            span.attributes
                .push(("http.response.status_code", status.into()));
        }
        if let Some(reason) = reason {
            let reasons = Value::Texts(vec![reason]);
            span.attributes
                .push(("gen_ai.response.finish_reasons", reasons));
        }
        Some(span)
    }

    /// An attempt whose process died.
    pub(super) fn lost(&self) -> Span {
        self.span(Some("lost"))
    }

    fn span(&self, failure: Option<&str>) -> Span {
        let mut attributes = ids(self.run);
        attributes.push(("agent_runtime.step", self.step.into()));
        attributes.push(("agent_runtime.attempt", self.attempt.into()));
        let (name, kind) = match span_name(self.kind) {
            SpanName::Model => (self.model(&mut attributes), Kind::Client),
            SpanName::Tool => (self.tool(&mut attributes), Kind::Internal),
            SpanName::Http => (self.http(&mut attributes), Kind::Client),
            SpanName::Fixed(name) => (name.to_owned(), Kind::Internal),
        };
        Span {
            trace: self.trace.of_attempt(self.step, self.attempt),
            name,
            kind,
            began: self.began,
            ended: self.ended,
            attributes,
            failure: failure.map(str::to_owned),
        }
    }

    fn model(&self, attributes: &mut Attributes) -> String {
        attributes.push(("gen_ai.operation.name", "chat".into()));
        // The protocol that is spoken; whose model it is, nobody here knows.
        attributes.push(("gen_ai.provider.name", "openai".into()));
        let Some(turn) = self.program.model() else {
            return "chat".to_owned();
        };
        attributes.push(("gen_ai.request.model", turn.model.as_str().into()));
        if let Ok(url) = Url::parse(&turn.base_url)
            && let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default())
        {
            attributes.push(("server.address", host.into()));
            attributes.push(("server.port", i64::from(port).into()));
        }
        format!("chat {}", turn.model)
    }

    fn http(&self, attributes: &mut Attributes) -> String {
        attributes.push(("http.request.method", self.name.into()));
        self.name.to_owned()
    }

    /// A tool that the agent does not have is not named: its name is the model's text.
    fn tool(&self, attributes: &mut Attributes) -> String {
        attributes.push(("gen_ai.operation.name", "execute_tool".into()));
        let Some(tool) = self.program.tool(self.name) else {
            return "execute_tool".to_owned();
        };
        attributes.push(("gen_ai.tool.name", tool.name.as_str().into()));
        attributes.push(("gen_ai.tool.type", "extension".into()));
        attributes.push(("agent_runtime.tool.id", tool.id.into()));
        format!("execute_tool {}", tool.name)
    }
}

/// What names a run.
fn ids(run: &Run) -> Attributes {
    vec![
        ("agent_runtime.tenant.id", run.tenant_id.into()),
        ("agent_runtime.project.id", run.project_id.into()),
        ("agent_runtime.run.id", run.run_id.into()),
    ]
}

/// What the provider counted.
fn usage(call: &ModelCall) -> impl Iterator<Item = (&'static str, Value)> {
    let counts = &call.counts;
    [
        ("gen_ai.usage.input_tokens", counts.prompt_tokens),
        ("gen_ai.usage.output_tokens", counts.completion_tokens),
        (
            "gen_ai.usage.cache_read.input_tokens",
            counts.cache_read_tokens,
        ),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            counts.cache_write_tokens,
        ),
    ]
    .into_iter()
    .filter_map(|(name, count)| Some((name, count?.into())))
}
