//! What holds of a step by its kind alone, for code that performs no steps: flows, spans, sentences of errors.
//!
//! Not here: what depends on the step itself, or on its program (`steps`).

use crate::failure::{Failure, Summary};
use crate::store::steps::StepKind;

/// What gives the span of an attempt its name.
pub(in crate::runtime) enum SpanName {
    /// The model that is called.
    Model,
    /// The tool that is called.
    Tool,
    /// The method of the request.
    Http,
    /// The kind alone.
    Fixed(&'static str),
}

/// The name of the span of an attempt.
pub(in crate::runtime) fn span_name(kind: StepKind) -> SpanName {
    match kind {
        StepKind::Model => SpanName::Model,
        StepKind::Tool => SpanName::Tool,
        StepKind::Http => SpanName::Http,
        StepKind::Wait => SpanName::Fixed("wait"),
        StepKind::Child => SpanName::Fixed("run_children"),
        StepKind::Approval => SpanName::Fixed("approval"),
        StepKind::Guardrail => SpanName::Fixed("guardrail"),
    }
}

/// Whether an attempt that was lost with its process has a span.
pub(in crate::runtime) fn has_lost_span(kind: StepKind) -> bool {
    match kind {
        StepKind::Model | StepKind::Tool | StepKind::Http => true,
        StepKind::Wait | StepKind::Child | StepKind::Approval | StepKind::Guardrail => false,
    }
}

/// The call of a step that may be left unanswered, so that nobody knows whether it took effect.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::runtime) enum OpenCall {
    /// It has none. A model may be called again, and guardrails may judge again.
    None,
    /// Its own.
    Own,
    /// One of the runs below.
    OfChildren,
    /// One that an earlier step made: a reviewer is asked whether it is made again.
    AskedAbout,
}

/// The call of a step that may be left unanswered.
pub(in crate::runtime) fn open_call(kind: StepKind) -> OpenCall {
    match kind {
        StepKind::Tool | StepKind::Http => OpenCall::Own,
        StepKind::Child => OpenCall::OfChildren,
        StepKind::Approval => OpenCall::AskedAbout,
        StepKind::Model | StepKind::Wait | StepKind::Guardrail => OpenCall::None,
    }
}

/// Said of a call that may have taken effect.
pub(in crate::runtime) const UNKNOWN: &str =
    "Nobody knows whether the call took effect. Look there before it is made again.";

/// Why a call got no answer. One that may have taken effect is not said to have failed. Only of an attempt that was not sent it
/// is said that the tool could not be called. `may_have_arrived`: the other side may have got the newest attempt; an earlier one.
pub(in crate::runtime) fn unanswered(
    kind: StepKind,
    name: &str,
    why: &Failure,
    may_have_arrived: (bool, bool),
) -> Failure {
    let said = why.message.trim_end_matches('.');
    let (call, noun) = match kind {
        StepKind::Tool => (format!("call of the tool {name}"), "call of a tool"),
        StepKind::Http => (format!("request {name}"), "request"),
        StepKind::Model
        | StepKind::Wait
        | StepKind::Child
        | StepKind::Approval
        | StepKind::Guardrail => {
            return why.clone();
        }
    };
    let not_sent = match kind {
        StepKind::Tool => "The tool could not be called",
        _ => "The request failed",
    };
    match may_have_arrived {
        (true, _) => Failure::quoting(
            format!("The {call} got no answer that can be used: {said}. {UNKNOWN}"),
            Summary::of(&[&"A ", &noun, &" got no answer that can be used. ", &UNKNOWN]),
        ),
        (false, true) => Failure::quoting(
            format!("{not_sent}: {said}. {EARLIER}"),
            Summary::of(&[&not_sent, &". ", &EARLIER]),
        ),
        (false, false) => Failure::quoting(
            format!("{not_sent}: {said}."),
            Summary::of(&[&not_sent, &"."]),
        ),
    }
}

/// Said of a call of which an earlier attempt may have taken effect.
const EARLIER: &str =
    "An earlier attempt may have arrived, and nobody knows whether it took effect.";

/// The words for a call of which nobody knows whether it took effect.
pub(in crate::runtime) struct UnknownCall {
    /// What was called.
    pub(in crate::runtime) what: String,
    /// What went on when the process died, without a full stop.
    pub(in crate::runtime) during: String,
    /// Why it is not made again.
    pub(in crate::runtime) why: &'static str,
}

/// The words for the call of a step of this kind and name.
pub(in crate::runtime) fn unknown_call(kind: StepKind, name: &str) -> UnknownCall {
    match kind {
        StepKind::Http => UnknownCall {
            what: format!("the request {name}"),
            during: format!("an HTTP request, {name}, was being made"),
            why: "such a request may do its work twice",
        },
        // Of the others, a tool alone has a call whose outcome may be unknown.
        StepKind::Tool
        | StepKind::Model
        | StepKind::Wait
        | StepKind::Child
        | StepKind::Approval
        | StepKind::Guardrail => UnknownCall {
            what: format!("the tool {name}"),
            during: format!("the tool {name} was being called"),
            why: "the tool is not declared idempotent",
        },
    }
}
