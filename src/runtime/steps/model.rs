//! A step that asks a model.

use super::attempt::{Attempt, Outcome, Performed};
use super::checks::{Checker, Said};
use super::model_calls;
use crate::error::Result;
use crate::failure::Failure;
use crate::guardrails::{Blocked, Point};
use crate::model::{self, Completion, Finish, Kept, ModelFailure, ProviderOptions};
use crate::runtime::counts::CountedCall;
use crate::runtime::journal::{AskedModel, Checked, ModelResult, PromptSize, read, wait};
use crate::runtime::model_provider::{ProviderRow, Refused};
use crate::runtime::program::Program;
use crate::runtime::progress::events::{Event, StepAnswer, ToolCall};
use crate::runtime::progress::text::{Publication, Text};
use crate::runtime::services::Services;
use crate::runtime::turn::history::call_id;
use crate::runtime::turn::prompt::Prompt;
use crate::store::model_calls::Line;
use crate::store::retry::retry_while_away;
use crate::store::runs::Lease;
use crate::store::steps::{Begun, Counts, ModelCall, ModelCallOutcome, Step, StepKind, StepStatus};
use crate::store::turns::Turn;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashSet;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Asks the model, and publishes its text as it comes.
///
/// # Errors
/// The database's, when the policies that judge cannot be read.
pub(super) fn perform(
    attempt: &mut Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
) -> Result<Performed> {
    let mut checker = Checker::new(attempt, begun)?;
    let changed = match checked_input(attempt.program, journal, &mut checker) {
        Input::AsItIs => None,
        Input::Changed(program) => Some(program),
        Input::Refused(outcome) => {
            return Ok(Performed {
                events: checker.events,
                checks: checker.checks,
                ..Performed::from(outcome)
            });
        }
    };
    let program = changed.as_ref().unwrap_or(attempt.program);
    let mut attempt = attempt.of_program(program);
    let asked = ask(&mut attempt, journal, begun, &mut checker)?;
    if matches!(asked.outcome, Outcome::Waits(_)) {
        // The attempt goes on later, and judges anew.
        return Ok(asked);
    }
    let mut events = asked.events;
    events.append(&mut checker.events);
    Ok(Performed {
        events,
        checks: checker.checks,
        ..asked
    })
}

/// What becomes of the input of a turn.
enum Input {
    AsItIs,
    /// The model is asked something else, of this program.
    Changed(Program),
    /// No model is asked.
    Refused(Outcome),
}

/// Has the input judged before a model is asked for the first time.
fn checked_input(program: &Program, journal: &[Step], checker: &mut Checker<'_>) -> Input {
    let is_answer =
        |step: &Step| step.kind == StepKind::Model && step.status == StepStatus::Completed;
    let definition = program.turn().filter(|_| !journal.iter().any(is_answer));
    let Some((definition, input)) = definition.and_then(|of| Some((of, of.input()?))) else {
        return Input::AsItIs;
    };
    let outcome = checker.check_input(input);
    if let Some(blocked) = outcome.blocked {
        return Input::Refused(refused(blocked));
    }
    let Some(text) = outcome.text else {
        return Input::AsItIs;
    };
    let mut definition = definition.clone();
    definition.set_input(&text);
    Input::Changed(Program::Turn(Box::new(definition)))
}

/// The end of a step whose input a guardrail refuses.
fn refused(blocked: Blocked) -> Outcome {
    let checked = Checked {
        blocked: Some((Point::Input, blocked)),
        ..Checked::default()
    };
    let result = ModelResult {
        checked,
        ..ModelResult::default()
    };
    Outcome::Done {
        result: json!(result),
        answer: StepAnswer::Model {
            text: String::new(),
            tool_calls: Vec::new(),
            finish_reason: None,
            has_reasoning: false,
            tokens: Counts::default().into(),
        },
    }
}

fn ask(
    attempt: &mut Attempt<'_>,
    journal: &[Step],
    begun: &Begun,
    checker: &mut Checker<'_>,
) -> Result<Performed> {
    let started_at = attempt.services.clock.now();
    let (program, services) = (attempt.program, attempt.services);
    let tenant_id = attempt.lease.tenant_id();
    let Some(turn) = program.model() else {
        return Ok(Outcome::refused("This program asks no model.").into());
    };
    // Before anything is read for the call: a run that waits in line reads it anew.
    let place = match line(turn).map(|line| Place::take(attempt, line)) {
        None => None,
        Some(Some(place)) => Some(place),
        Some(None) => return Ok(Outcome::Waits(wait::model(services.clock.now())).into()),
    };
    let prepared = program
        .prompt(journal, &attempt.origin(begun))
        .map_err(|said| Refused::from(Failure::quoting(said, "The model could not be asked.")))
        .and_then(|prompt| Ok((provider(services, tenant_id, turn)?, prompt)));
    let (provider, prompt) = match prepared {
        Ok(prepared) => prepared,
        Err(refused) => return Ok(not_asked(refused).into()),
    };
    let publication = match checker.holds_text() {
        true => Publication::Held,
        false => Publication::Live,
    };
    let mut text = Text::new(
        (&services.feed, &services.text),
        (attempt.lease, begun.step, begun.attempt),
        publication,
    );
    let (answer, prompt) =
        model_calls::ask(attempt, (journal, begun), &provider, prompt, &mut text);
    drop(place);
    let answer = match answer {
        Ok(completion) => {
            checker.refresh(attempt)?;
            let checked = judged(completion, checker, (journal, begun.step));
            text.release_as(&checked.text);
            Ok(checked)
        }
        Err(failure) => {
            text.discard();
            Err(failure)
        }
    };
    let has_text = services.text.forget(&attempt.lease);
    let first_byte = answer.as_ref().ok().and_then(|answer| answer.first_byte);
    let (outcome, failure, usage, ended) = match answer {
        Ok(answer) => {
            let usage = answer.usage;
            let ended = answered(answer, prompt.size, turn);
            (ModelCallOutcome::Completed, None, usage, ended)
        }
        Err(failure) => failed(attempt, failure),
    };
    let call = ModelCall {
        outcome,
        failure,
        counts: usage.map(counts).unwrap_or_default(),
        ..call(turn, (begun.step, begun.attempt), started_at)
    };
    let counted = CountedCall::of(Some(turn), &call, first_byte);
    services.counts.model_call(&counted);
    Ok(Performed {
        call: Some(call),
        has_text,
        events: trimmed(&prompt, begun).into_iter().collect(),
        ..Performed::from(ended)
    })
}

/// How the provider of a turn's model is asked. None: its row cannot be read, which asking it says.
fn options(turn: &Turn) -> Option<ProviderOptions> {
    ProviderOptions::deserialize(&turn.provider_options).ok()
}

/// The line in which runs wait for a provider that takes so many calls at once.
fn line(turn: &Turn) -> Option<Line> {
    options(turn)?.calls_at_once.map(|at_once| Line {
        model_provider_id: turn.model_provider_id,
        at_once,
    })
}

/// A call that the provider takes. The next run in line makes its own when this is dropped.
struct Place<'a> {
    services: &'a Services,
    log: &'a slog::Logger,
    lease: Lease,
    line: Line,
}

impl<'a> Place<'a> {
    /// None: the provider takes no further call now, or nobody can tell, and the run waits in line.
    fn take(attempt: &Attempt<'a>, line: Line) -> Option<Self> {
        let (services, lease) = (attempt.services, attempt.lease);
        let is_over = || attempt.interrupt.reason().is_some();
        let taken = retry_while_away(is_over, |_| {
            line.take(&mut services.store.session()?, &lease, services.clock.now())
        });
        // Not made where none was taken: dropping it would leave the line.
        taken.unwrap_or(false).then(|| Self {
            services,
            log: attempt.log,
            lease,
            line,
        })
    }
}

impl Drop for Place<'_> {
    /// Where it fails, the run's next call or its end lets the next run go on.
    fn drop(&mut self) {
        let (services, now) = (self.services, self.services.clock.now());
        let session = services.store.session();
        let given =
            session.and_then(|mut session| self.line.give_back(&mut session, &self.lease, now));
        if let Err(error) = given {
            crate::warn_unless!(services.store.is_away(), self.log, "The call of a model provider could not be given back"; crate::log::ErrorValue(&error));
        }
        services.wake_queue();
    }
}

/// The event of a prompt that leaves out more than the one before it.
fn trimmed(prompt: &Prompt, begun: &Begun) -> Option<Event> {
    let size = prompt.size.filter(|_| prompt.leaves_out_more)?;
    Some(Event::ContextTrimmed {
        step: begun.step,
        attempt: begun.attempt,
        exchanges: size.exchanges_left_out,
        context_window: prompt.window,
    })
}

/// How often a step is tried whose model's provider has a number of its own.
pub(super) fn tries(program: &Program) -> Option<i32> {
    options(program.model()?)?.tries.map(i32::from)
}

fn failed(
    attempt: &Attempt<'_>,
    failure: ModelFailure,
) -> (
    ModelCallOutcome,
    Option<String>,
    Option<model::Usage>,
    Outcome,
) {
    let usage = failure.usage.as_deref().copied();
    if failure.cancelled {
        return (
            ModelCallOutcome::Cancelled,
            None,
            usage,
            Outcome::Interrupted,
        );
    }
    if let Some(why) = model_calls::out_of_time(attempt, &failure) {
        let outcome = Outcome::refused(why);
        return (ModelCallOutcome::Cancelled, None, usage, outcome);
    }
    let reason = failure.why.message.clone();
    let why = model_calls::beyond_turn(attempt, &failure).unwrap_or(failure.why);
    let outcome = Outcome::Failed {
        failure: why,
        retryable: failure.retryable,
        retry_after: failure.retry_after,
        is_unknown: false,
    };
    (ModelCallOutcome::Failed, Some(reason), usage, outcome)
}

/// The call of an attempt that a process that died had begun.
pub(super) fn lost_call(lost: &Step, program: &Program) -> Option<ModelCall> {
    let turn = program.model()?;
    Some(call(turn, (lost.step, lost.attempt), lost.started_at))
}

/// A call of which nothing is known yet but that it was begun.
fn call(turn: &Turn, (step, attempt): (i32, i32), started_at: OffsetDateTime) -> ModelCall {
    ModelCall {
        step,
        attempt,
        model_provider_id: turn.model_provider_id,
        model: turn.model.clone(),
        outcome: ModelCallOutcome::Lost,
        failure: None,
        counts: Counts::default(),
        prices: turn.prices.clone(),
        started_at,
    }
}

/// A count beyond what the database holds is no count.
fn counts(usage: model::Usage) -> Counts {
    let count = |tokens: Option<u64>| {
        tokens
            .and_then(|tokens| u32::try_from(tokens).ok())
            .map(i64::from)
    };
    Counts {
        prompt_tokens: count(usage.prompt),
        completion_tokens: count(usage.completion),
        cache_read_tokens: count(usage.cache_read),
        cache_write_tokens: count(usage.cache_write),
        reasoning_tokens: count(usage.reasoning),
    }
}

/// An answer after its verdict.
struct Answered {
    text: String,
    reasoning: String,
    tool_calls: Vec<ToolCall>,
    is_refusal: bool,
    finish: Finish,
    kept: Kept,
    usage: Option<model::Usage>,
    first_byte: Option<Duration>,
    checked: Checked,
}

/// Has an answer judged: what a model wrote, and the calls that it asks for.
fn judged(
    completion: Completion,
    checker: &mut Checker<'_>,
    (journal, step): (&[Step], i32),
) -> Answered {
    let is_refusal = completion.text.is_empty() && completion.refusal.is_some();
    let mut answer = Answered {
        text: match is_refusal {
            true => completion.refusal.unwrap_or_default(),
            false => completion.text,
        },
        reasoning: completion.reasoning,
        tool_calls: calls(completion.tool_calls, journal, step),
        is_refusal,
        finish: completion.finish,
        kept: completion.kept,
        usage: completion.usage,
        first_byte: completion.first_byte,
        checked: Checked::default(),
    };
    checker.check_output(&mut Said {
        text: &mut answer.text,
        reasoning: &mut answer.reasoning,
        has_calls: !answer.tool_calls.is_empty(),
        checked: &mut answer.checked,
    });
    checker.check_calls(&mut answer.tool_calls, &mut answer.checked);
    if answer.checked.blocked.is_some() {
        // It may have what was blocked, and nobody is handed it back.
        answer.kept = Kept::default();
    }
    answer
}

fn answered(answer: Answered, prompt: Option<PromptSize>, turn: &Turn) -> Outcome {
    let prompt_tokens = answer.usage.and_then(|usage| usage.prompt);
    let tokens = answer.usage.map(counts).unwrap_or_default().into();
    let finish_reason = match answer.finish {
        Finish::Stop => "stop".to_owned(),
        Finish::Length => "length".to_owned(),
        Finish::ToolCalls => "tool_calls".to_owned(),
    };
    let has_reasoning = !answer.reasoning.is_empty();
    let result = ModelResult {
        text: answer.text.clone(),
        tool_calls: answer.tool_calls.clone(),
        finish_reason: Some(finish_reason.clone()),
        reasoning: answer.reasoning,
        kept_for: (!answer.kept.is_empty()).then(|| AskedModel::of(turn)),
        kept: answer.kept,
        is_refusal: answer.is_refusal,
        prompt: prompt.map(|size| PromptSize {
            tokens: prompt_tokens,
            ..size
        }),
        checked: answer.checked,
    };
    Outcome::Done {
        result: json!(result),
        answer: StepAnswer::Model {
            text: answer.text,
            tool_calls: answer.tool_calls,
            finish_reason: Some(finish_reason),
            has_reasoning,
            tokens,
        },
    }
}

/// The longest id of a call that is shown, in bytes.
const CALL_ID_BYTES_MOST: usize = 128;

/// The calls of an answer. An id that another call of the turn has too is replaced, so that readers can tell them apart, and so
/// is a long one.
fn calls(asked: Vec<model::ToolCall>, journal: &[Step], step: i32) -> Vec<ToolCall> {
    let before = journal.iter().filter(|row| row.kind == StepKind::Model);
    let before = before.filter_map(|row| read::<ModelResult>(row.result.as_ref()).ok());
    let mut seen: HashSet<String> = before
        .flat_map(|said| said.tool_calls)
        .map(|call| call.id)
        .collect();
    let asked = asked.into_iter().enumerate();
    let calls = asked.map(|(index, call)| ToolCall {
        id: match call.id.len() <= CALL_ID_BYTES_MOST && seen.insert(call.id.clone()) {
            true => call.id,
            false => call_id(0, step, index),
        },
        name: call.name,
        arguments: call.arguments,
    });
    calls.collect()
}

/// The provider of a turn's model, with its keys.
fn provider(
    services: &Services,
    tenant_id: Uuid,
    turn: &Turn,
) -> std::result::Result<model::Provider, Refused> {
    let row = ProviderRow {
        tenant_id,
        base_url: &turn.base_url,
        api_key_name: turn.api_key_name.as_deref(),
        api_key_secret: turn.api_key_secret.as_ref(),
        options: &turn.provider_options,
        model_provider_id: turn.model_provider_id,
    };
    row.resolve(services)
}

/// Nothing was sent.
fn not_asked(refused: Refused) -> Outcome {
    Outcome::Failed {
        failure: refused.failure,
        retryable: refused.retryable,
        retry_after: None,
        is_unknown: false,
    }
}
