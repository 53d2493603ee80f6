//! Doing one attempt of a step: asking the model, or calling a tool. Nothing here is written to the
//! journal; what came of it is.

use super::Inner;
use super::clients::Clients;
use super::definition::{Definition, tool_of};
use super::events::{StepAnswer, ToolCall};
use super::journal::{self, ModelResult, ToolResult};
use super::running::Switch;
use super::text::Text;
use super::tools::{self, Called, Place, Schemas};
use crate::model::{self, ChatRequest, Completion, Finish, Message, ModelFailure, Parameters};
use crate::secret::Secret;
use crate::secrets::{SecretRef, Unreadable};
use crate::store::runs::{Lease, Run};
use crate::store::steps::{Begun, CallOutcome, Counts, ModelCall, Step, StepKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Of a tool's output, what readers of the stream are shown, in bytes. The journal holds it whole.
const SHOWN_BYTES: usize = 16 * 1024;

/// What came of an attempt.
pub(super) struct Acted {
    /// The model call that it was.
    pub(super) call: Option<ModelCall>,
    /// Text of it may have been written.
    pub(super) has_text: bool,
    /// How it ended.
    pub(super) outcome: Outcome,
}

/// How an attempt ended.
pub(super) enum Outcome {
    /// With an answer.
    Done {
        /// For the journal.
        result: Value,
        /// For readers.
        answer: StepAnswer,
    },
    /// With a fault of the other side.
    Failed {
        /// A sentence.
        reason: String,
        /// Whether another try may help.
        retryable: bool,
        /// How long the other side asks to wait.
        retry_after: Option<Duration>,
    },
    /// Its switch was turned.
    Interrupted,
}

/// What an attempt needs.
pub(super) struct Actor<'a> {
    pub(super) inner: &'a Inner,
    pub(super) run: &'a Run,
    pub(super) lease: Lease,
    pub(super) definition: &'a Definition,
    pub(super) switch: &'a Switch,
    pub(super) clients: &'a mut Clients,
    pub(super) schemas: &'a mut Schemas,
}

impl Actor<'_> {
    /// Does the attempt that `begun` says, over the finished steps of `journal`.
    pub(super) fn act(&mut self, journal: &[Step], begun: &Begun) -> Acted {
        match begun.kind {
            StepKind::Model => self.ask(journal, begun),
            StepKind::Tool => Acted {
                call: None,
                has_text: false,
                outcome: self.call(journal, begun),
            },
        }
    }

    fn ask(&mut self, journal: &[Step], begun: &Begun) -> Acted {
        let started_at = self.inner.clock.now();
        let (definition, inner) = (self.definition, self.inner);
        let tenant_id = self.lease.tenant_id();
        let prepared = request(self.run, definition, journal, begun)
            .map_err(Refused::from)
            .and_then(|request| Ok((provider(inner, tenant_id, definition)?, request)));
        let (provider, request) = match prepared {
            Ok(prepared) => prepared,
            Err(refused) => return refused.acted(),
        };
        let mut text = Text::new(inner, self.lease, begun.step, begun.attempt);
        let client = self.clients.model(inner, self.switch);
        let mut say = |said: &str| text.say(said);
        let answer = model::chat(&inner.clock, client, &provider, &request, &mut say);
        let has_text = inner.pending.forget(&self.lease);
        let call = |outcome, failure, usage| {
            Some(model_call(
                definition, begun, started_at, outcome, failure, usage,
            ))
        };
        match answer {
            Ok(completion) => Acted {
                call: call(CallOutcome::Completed, None, completion.usage),
                has_text,
                outcome: answered(completion),
            },
            Err(failure) if failure.cancelled => Acted {
                call: call(
                    CallOutcome::Cancelled,
                    None,
                    failure.usage.map(|usage| *usage),
                ),
                has_text,
                outcome: Outcome::Interrupted,
            },
            Err(failure) => {
                let ModelFailure {
                    message,
                    retryable,
                    retry_after,
                    usage,
                    ..
                } = failure;
                Acted {
                    call: call(
                        CallOutcome::Failed,
                        Some(message.clone()),
                        usage.map(|usage| *usage),
                    ),
                    has_text,
                    outcome: Outcome::Failed {
                        reason: message,
                        retryable,
                        retry_after,
                    },
                }
            }
        }
    }

    fn call(&mut self, journal: &[Step], begun: &Begun) -> Outcome {
        let call = match journal::call_of(journal, &begun.request) {
            Ok(call) => call,
            Err(reason) => return given_up(reason).outcome,
        };
        let Some(tool) = tool_of(self.definition, &call.name) else {
            return told(tools::mistake(format!(
                "There is no tool {:?}.",
                call.name.chars().take(100).collect::<String>()
            )));
        };
        let arguments = match self.schemas.check(tool, &call) {
            Ok(arguments) => arguments,
            Err(mistake) => return told(mistake),
        };
        let place = Place {
            run_id: self.run.run_id,
            step: begun.step,
            attempt: begun.attempt,
            dry_run: self.run.dry_run,
        };
        let client = self.clients.tool(self.inner, self.switch, tool.timeout_ms);
        let answer_bytes = self.inner.options.tool_answer_bytes;
        match tools::call(client, tool, &arguments, &place, answer_bytes) {
            Called::Answered(result) => told(result),
            Called::Unreachable(reason)
                if begun.failures + 1 < self.inner.options.tool_attempts =>
            {
                Outcome::Failed {
                    reason,
                    retryable: true,
                    retry_after: None,
                }
            }
            Called::Unreachable(reason) => told(tools::mistake(format!(
                "The tool could not be called, {} times: {reason}",
                begun.failures + 1
            ))),
            Called::Interrupted => Outcome::Interrupted,
        }
    }
}

/// A fault that no other try mends, met before anything was sent.
fn given_up(reason: String) -> Acted {
    Refused::from(reason).acted()
}

/// The call of an attempt that a process that died had begun.
pub(super) fn lost_call(
    definition: &Definition,
    lost: &Begun,
    began_at: OffsetDateTime,
) -> ModelCall {
    model_call(definition, lost, began_at, CallOutcome::Lost, None, None)
}

fn model_call(
    definition: &Definition,
    begun: &Begun,
    started_at: OffsetDateTime,
    outcome: CallOutcome,
    failure: Option<String>,
    usage: Option<model::Usage>,
) -> ModelCall {
    ModelCall {
        step: begun.step,
        attempt: begun.attempt,
        model_provider_id: definition.turn.model_provider_id,
        model: definition.turn.model.clone(),
        outcome,
        failure,
        counts: usage.map(counts).unwrap_or_default(),
        prices: definition.turn.prices.clone(),
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

fn answered(completion: Completion) -> Outcome {
    let tokens = completion.usage.map(counts).unwrap_or_default().into();
    let finish_reason = match completion.finish {
        Finish::Stop => "stop".to_owned(),
        Finish::Length => "length".to_owned(),
        Finish::ToolCalls => "tool_calls".to_owned(),
        Finish::Other(reason) => reason,
    };
    let mut text = completion.text;
    if text.is_empty() {
        text = completion.refusal.unwrap_or_default();
    }
    let tool_calls: Vec<ToolCall> = completion
        .tool_calls
        .into_iter()
        .map(|call| ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
        })
        .collect();
    let result = ModelResult {
        text: text.clone(),
        tool_calls: tool_calls.clone(),
        finish_reason: Some(finish_reason.clone()),
    };
    Outcome::Done {
        result: json!(result),
        answer: StepAnswer::Model {
            text,
            tool_calls,
            finish_reason: Some(finish_reason),
            tokens,
        },
    }
}

fn told(result: ToolResult) -> Outcome {
    let end = (0..=result.output.len().min(SHOWN_BYTES))
        .rev()
        .find(|end| result.output.is_char_boundary(*end))
        .unwrap_or(0);
    Outcome::Done {
        answer: StepAnswer::Tool {
            is_error: result.is_error,
            output: result.output[..end].to_owned(),
            output_truncated: end < result.output.len(),
        },
        result: json!(result),
    }
}

/// Why nothing can be asked.
struct Refused {
    reason: String,
    /// Another try may help.
    retryable: bool,
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self {
            reason,
            retryable: false,
        }
    }
}

impl Refused {
    /// Nothing was sent.
    fn acted(self) -> Acted {
        Acted {
            call: None,
            has_text: false,
            outcome: Outcome::Failed {
                reason: self.reason,
                retryable: self.retryable,
                retry_after: None,
            },
        }
    }
}

/// The provider with its key as it is at this moment.
fn provider(
    inner: &Inner,
    tenant_id: Uuid,
    definition: &Definition,
) -> Result<model::Provider, Refused> {
    let turn = &definition.turn;
    let base_url = turn.base_url.clone();
    let api_key = match (&turn.api_key_name, &turn.api_key_secret) {
        (Some(name), _) => Some(inner.keys.of(name, &base_url)?.clone()),
        (None, Some(at)) => Some(secret_key(inner, tenant_id, at)?),
        (None, None) => None,
    };
    Ok(model::Provider { base_url, api_key })
}

fn secret_key(inner: &Inner, tenant_id: Uuid, at: &SecretRef) -> Result<Secret, Refused> {
    let read = inner.secrets.resolve(tenant_id, at);
    let key = read.map_err(|unreadable| Refused {
        reason: format!(
            "The model provider's API key cannot be read: {}",
            unreadable.sentence(at)
        ),
        retryable: matches!(
            unreadable,
            Unreadable::Unavailable(_) | Unreadable::DatabaseAway(_)
        ),
    })?;
    let fits = key.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if !fits {
        let reason = format!(
            "The secret {at} is no API key: one has visible ASCII characters alone, without spaces and line ends."
        );
        return Err(reason.into());
    }
    Ok(key)
}

/// What the model is asked: the instructions, what was said, and the steps of this turn so far.
fn request(
    run: &Run,
    definition: &Definition,
    journal: &[Step],
    begun: &Begun,
) -> Result<ChatRequest, String> {
    let turn = &definition.turn;
    let mut parameters = Parameters::deserialize(&turn.parameters)
        .map_err(|_| "The version's model parameters cannot be read.".to_owned())?;
    if let Some(limit) = definition.limits.max_output_tokens {
        let wanted = parameters.max_tokens.unwrap_or(limit);
        parameters.max_tokens = Some(wanted.min(limit));
    }
    let mut messages = Vec::with_capacity(turn.history.len() + 2 * journal.len() + 1);
    if !turn.instructions.is_empty() {
        messages.push(Message::System {
            content: turn.instructions.clone(),
        });
    }
    messages.extend(turn.history.iter().map(|said| {
        let content = said.content.clone();
        match said.role.as_str() {
            "assistant" => Message::Assistant {
                content: Some(content),
                tool_calls: Vec::new(),
            },
            _ => Message::User { content },
        }
    }));
    if let Some(input) = &turn.input {
        let content = input["message"].as_str().unwrap_or_default().to_owned();
        messages.push(Message::User { content });
    }
    for step in journal.iter().filter(|step| step.step < begun.step) {
        messages.push(message(journal, step)?);
    }
    let place = Place {
        run_id: run.run_id,
        step: begun.step,
        attempt: begun.attempt,
        dry_run: run.dry_run,
    };
    Ok(ChatRequest {
        model: turn.model.clone(),
        messages,
        tools: turn
            .tools
            .iter()
            .map(|tool| model::Tool {
                name: tool.name.clone(),
                description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
                parameters: tool.arguments_schema.clone(),
            })
            .collect(),
        parameters,
        traceparent: Some(tools::traceparent(&place)),
    })
}

fn message(journal: &[Step], step: &Step) -> Result<Message, String> {
    match step.kind {
        StepKind::Model => {
            let result: ModelResult = journal::read(step.result.as_ref())?;
            let tool_calls = result.tool_calls.into_iter().map(|call| model::ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments,
            });
            Ok(Message::Assistant {
                content: Some(result.text).filter(|text| !text.is_empty()),
                tool_calls: tool_calls.collect(),
            })
        }
        StepKind::Tool => {
            let result: ToolResult = journal::read(step.result.as_ref())?;
            Ok(Message::Tool {
                tool_call_id: journal::call_of(journal, &step.request)?.id,
                content: result.output,
            })
        }
    }
}
