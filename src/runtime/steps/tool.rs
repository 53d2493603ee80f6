//! A step that calls a tool.

use super::attempt::{self, Attempt, Outcome, Performed};
use super::checks::Checker;
use super::{http, kind};
use crate::error::Result;
use crate::failure::Failure;
use crate::log::{Subsystem, subsystem};
use crate::runtime::counts::ToolOutcome;
use crate::runtime::journal::call::FlowToolRequest;
use crate::runtime::journal::{self, CallDecision, ToolRequest, misread, read};
use crate::runtime::program::Program;
use crate::runtime::progress::events::{StepAnswer, ToolCall};
use crate::runtime::tool_children;
use crate::store::steps::{Begun, Step};
use crate::store::tools::TargetKind;
use crate::store::turns::{HttpTarget, Target, Tool};
use crate::text::beginning;
use crate::tools::{self, Answer, Called, Credentials, Input, Refused, Sources};
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;

/// Of a tool's output, what readers of the stream are shown, in bytes. The journal holds it whole.
const SHOWN_BYTES: usize = 16 * 1024;

/// What a model is told of a call that a dry run does not make.
const SIMULATED: &str =
    "This is a dry run. The call was simulated: the tool was not called, and nothing was changed.";

/// Calls the tool that the journal names, and has guardrails judge what it answers.
///
/// # Errors
/// The database's, when the policies that judge cannot be read.
pub(super) fn perform(
    attempt: &mut Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
) -> Result<Performed> {
    let mut answer = match call(attempt, journal, begun) {
        Ok(answer) => answer,
        Err(outcome) => return Ok((*outcome).into()),
    };
    let mut checker = Checker::new(attempt, begun)?;
    checker.check_result(&begun.name, &mut answer.output);
    Ok(Performed {
        events: checker.events,
        checks: checker.checks,
        ..answered(answer).into()
    })
}

/// What the tool answered, or how the step ends without that.
fn call(
    attempt: &mut Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
) -> std::result::Result<Answer, Box<Outcome>> {
    let Asked {
        call,
        key,
        until,
        lacks_approval,
    } = asked(attempt, journal, begun)?;
    let is_simulated = is_simulated(attempt.program, &call.name, &begun.path);
    if is_simulated && attempt.program.is_flow() {
        return Err(Box::new(simulated_in_flow(attempt, &call)));
    }
    let (tool, http, arguments) = checked(attempt, &call, lacks_approval)?;
    if is_simulated {
        return Err(Box::new(simulated()));
    }
    let services = attempt.services;
    let options = &services.options;
    let most = Duration::from_millis(u64::from(http.timeout_ms));
    let deadline = attempt.time_for(most, until)?;
    let credentials = credentials(attempt, begun, (tool, http))?;
    let input = Input {
        name: &tool.name,
        arguments: &arguments,
        idempotency_key: key.unwrap_or_else(|| attempt.origin(begun).idempotency_key()),
        origin: attempt.origin(begun),
        credentials: &credentials,
        timestamp: services.clock.now().unix_timestamp(),
        answer_bytes: options.tool_answer_bytes,
    };
    let switch = &attempt.interrupt.switch;
    let tools = &mut attempt.clients.tools;
    let called = tools::call(tools, &http.url, &input, deadline, switch);
    let outcome = match &called {
        Called::Answered(answer) if answer.is_error => ToolOutcome::Error,
        Called::Answered(_) => ToolOutcome::Answered,
        Called::Unanswered { is_transient, .. } if *is_transient => ToolOutcome::Unreachable,
        Called::Unanswered { .. } => ToolOutcome::Error,
        Called::Interrupted => ToolOutcome::Cancelled,
    };
    services.counts.tool_call(tool.target.kind(), outcome);
    match called {
        Called::Answered(answer) => Ok(answer),
        Called::Unanswered {
            reason,
            is_transient,
            is_unknown,
        } => {
            let is_repeated = is_transient && tool.target.is_repeatable();
            let why = Failure::quoting(reason, "It got no answer.");
            let outcome = unanswered(attempt, begun, (why, is_unknown), is_repeated);
            Err(Box::new(outcome))
        }
        Called::Interrupted => Err(Box::new(Outcome::Interrupted)),
    }
}

/// The outcome of a call of a flow that a dry run does not make, unless its arguments do not fit. A tool that is not there has no
/// schema.
fn simulated_in_flow(attempt: &mut Attempt<'_>, call: &ToolCall) -> Outcome {
    let tool = attempt.program.tool(&call.name);
    match tool.map(|tool| fitted(attempt, tool, call)) {
        Some(Err(unfit)) => *unfit,
        Some(Ok(_)) | None => http::simulated(),
    }
}

/// The HTTP server that a call goes to, with its arguments, or what is answered in place of a call that is not made.
fn checked<'a>(
    attempt: &mut Attempt<'a>,
    call: &ToolCall,
    lacks_approval: bool,
) -> std::result::Result<(&'a Tool, &'a HttpTarget, Value), Box<Outcome>> {
    let services = attempt.services;
    let refused = |target, answer| {
        services.counts.tool_call(target, ToolOutcome::Refused);
        Box::new(answered(answer))
    };
    let program = attempt.program;
    let Some(tool) = program.tool(&call.name) else {
        let name = call.name.chars().take(100).collect::<String>();
        let said = format!("There is no tool {name:?}.");
        return Err(refused(TargetKind::Http, Answer::error(said)));
    };
    let arguments = fitted(attempt, tool, call)?;
    if let Some(answer) = withheld(attempt, tool, lacks_approval) {
        return Err(refused(tool.target.kind(), answer));
    }
    match &tool.target {
        Target::Http(http) => Ok((tool, http, arguments)),
        // What it runs has come back since the step was begun.
        Target::Agent { .. } | Target::Flow { .. } => {
            let said = "The call was not made. Ask for it again.";
            Err(refused(tool.target.kind(), Answer::error(said)))
        }
    }
}

/// The arguments of a call, or what is answered if they do not fit the tool's schema.
fn fitted(
    attempt: &mut Attempt<'_>,
    tool: &Tool,
    call: &ToolCall,
) -> std::result::Result<Value, Box<Outcome>> {
    let schema = &tool.arguments_schema;
    let checked = attempt.schemas.check(&tool.name, schema, &call.arguments);
    checked.map_err(|mistake| {
        let counts = &attempt.services.counts;
        counts.tool_call(tool.target.kind(), ToolOutcome::Refused);
        let is_unfit = true;
        Box::new(answered(Answer {
            is_unfit,
            ..mistake
        }))
    })
}

/// What a step is asked, of a turn or of a flow.
struct Asked {
    call: ToolCall,
    /// In place of the key of the step.
    key: Option<String>,
    until: Option<OffsetDateTime>,
    /// A reviewer was to be asked and was not.
    lacks_approval: bool,
}

/// A dry run does not make the call: it was started with an answer for it, or the tool does not say that it is called then. One
/// that is an agent or a flow begins a run, which is dry itself.
fn is_simulated(program: &Program, tool: &str, path: &str) -> bool {
    let is_made = |tool: &Tool| tool.target.is_called_in_dry_runs();
    let is_made = program.tool(tool).is_some_and(is_made) && !program.has_fixture(path);
    program.is_dry_run() && !is_made
}

/// The outcome of a call by a model that a dry run does not make.
fn simulated() -> Outcome {
    let answer = Answer::of(SIMULATED);
    Outcome::Done {
        answer: StepAnswer::Simulated { simulated: true },
        result: json!(answer),
    }
}

/// Whether a call may be made again when nobody knows whether it was. One that a reviewer refused is not made at all, nor is
/// one that a dry run simulates, of a tool that the program does not have, or that is an agent or a flow: that call is a step of
/// another kind.
pub(super) fn is_repeatable(step: &Step, program: &Program) -> bool {
    let is_refused = || {
        let decided = CallDecision::of(&step.request);
        matches!(decided, Some(CallDecision::Refused { .. }))
    };
    let is_safe = |tool: &Tool| tool.target.is_repeatable();
    program.tool(&step.name).is_none_or(is_safe)
        || is_refused()
        || is_simulated(program, &step.name, &step.path)
}

pub(super) fn is_idempotent(begun: &Begun, program: &Program) -> bool {
    let tool = program.tool(&begun.name);
    tool.is_some_and(|tool| match &tool.target {
        Target::Http(http) => http.idempotent,
        // Such a call is a step of another kind.
        Target::Agent { .. } | Target::Flow { .. } => false,
    })
}

/// Whether the call may have taken effect before its newest attempt. Another attempt of a tool that is not idempotent means
/// that nothing was sent.
pub(super) fn was_made_before(begun: &Begun, program: &Program) -> bool {
    attempt::is_repeated(begun) || begun.attempt > 1 && is_idempotent(begun, program)
}

/// What is answered in place of a call that is not made: there is nothing to run, or nobody was asked to approve it. In a dry
/// run an approval is taken as given.
fn withheld(attempt: &Attempt<'_>, tool: &Tool, lacks_approval: bool) -> Option<Answer> {
    if let Some(why) = tool_children::refusal(tool, attempt.program.level()) {
        return Some(Answer::error(why));
    }
    lacks_approval.then(|| {
        Answer::error(
            "The call was not made: its arguments are too large to be shown to a reviewer.",
        )
    })
}

fn asked(
    attempt: &Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
) -> std::result::Result<Asked, Box<Outcome>> {
    let refused = |reason| Box::new(Outcome::refused(misread(reason)));
    let asks = |name: &str| {
        let tool = attempt.program.tool(name);
        tool.is_some_and(|tool| tool.approval.is_some())
    };
    if attempt.program.is_flow() {
        let request: FlowToolRequest = read(Some(&begun.request)).map_err(refused)?;
        return Ok(Asked {
            call: ToolCall {
                id: String::new(),
                name: begun.name.clone(),
                arguments: request.arguments.to_string(),
            },
            key: request.idempotency_key,
            until: request.until,
            lacks_approval: asks(&begun.name) && !request.is_approved,
        });
    }
    let (mut call, checked) = journal::checked_call_of(journal, &begun.request).map_err(refused)?;
    let request: ToolRequest = read(Some(&begun.request)).map_err(refused)?;
    let asks = asks(&call.name) || checked.is_some_and(|checked| checked.approval.is_some());
    let lacks_approval = asks && request.decided.is_none();
    match request.decided {
        Some(CallDecision::Refused { said }) => {
            let tool = attempt.program.tool(&call.name);
            let target = tool.map_or(TargetKind::Http, |tool| tool.target.kind());
            let counts = &attempt.services.counts;
            counts.tool_call(target, ToolOutcome::Refused);
            return Err(Box::new(answered(Answer::error(said))));
        }
        Some(CallDecision::Approved { arguments, .. }) => {
            let arguments = arguments.map(|arguments| arguments.to_string());
            call.arguments = arguments.unwrap_or(call.arguments);
        }
        None => {}
    }
    Ok(Asked {
        call,
        key: request.idempotency_key,
        until: None,
        lacks_approval,
    })
}

/// What the call proves itself with, or how the step goes on without it: nothing was sent, so a tool that is not
/// idempotent is called later, too.
fn credentials(
    attempt: &Attempt<'_>,
    begun: &Begun,
    (tool, http): (&Tool, &HttpTarget),
) -> std::result::Result<Credentials, Box<Outcome>> {
    let services = attempt.services;
    let options = &services.options;
    let sources = Sources {
        store: &services.store,
        secrets: &services.secrets,
        environment: options.environment.as_deref(),
        tenant_id: attempt.lease.tenant_id(),
        project_id: attempt.run.project_id,
    };
    let read = Credentials::read(&sources, http);
    read.map_err(|refused| Box::new(match refused {
        Refused::Away(reason) => {
            services.counts.tool_call(tool.target.kind(), ToolOutcome::Unreachable);
            let why = Failure::quoting(reason, "Its secrets cannot be read.");
            unanswered(attempt, begun, (why, false), true)
        }
        Refused::Unusable(reason) => {
            let log = subsystem(attempt.log, Subsystem::RuntimeTools);
            slog::warn!(log, "A tool's secrets cannot be used"; "toolId" => %tool.id, "step" => begun.step,
                "reason" => &reason);
            services.counts.tool_call(tool.target.kind(), ToolOutcome::Refused);
            let why = Failure::quoting(reason, "Its secrets cannot be used.");
            unanswered(attempt, begun, (why, false), false)
        }
    }))
}

/// Another try if the call is repeated, or after the last one an error: to the model, or of the flow's step.
fn unanswered(
    attempt: &Attempt<'_>,
    begun: &Begun,
    (why, is_unknown): (Failure, bool),
    is_repeated: bool,
) -> Outcome {
    let tries = begun.failures + 1;
    let retryable = is_repeated && tries < attempt.services.options.tool_attempts;
    if retryable || attempt.program.is_flow() {
        return Outcome::Failed {
            failure: why,
            retryable,
            retry_after: None,
            is_unknown,
        };
    }
    // A call of a turn has a key of its own only if an earlier run made it.
    let was_made =
        begun.request["idempotencyKey"].is_string() || was_made_before(begun, attempt.program);
    let said = kind::unanswered(begun.kind, &begun.name, &why, (is_unknown, was_made));
    let said = match tries {
        1 => said,
        _ => said.then(&[&"It was tried ", &tries, &" times."]),
    };
    answered(Answer {
        is_unknown: is_unknown || was_made,
        ..Answer::error(said.message)
    })
}

fn answered(answer: Answer) -> Outcome {
    let shown = beginning(&answer.output, SHOWN_BYTES);
    Outcome::Done {
        answer: StepAnswer::Tool {
            is_error: answer.is_error,
            output: shown.to_owned(),
            output_truncated: shown.len() < answer.output.len(),
        },
        result: json!(answer),
    }
}
