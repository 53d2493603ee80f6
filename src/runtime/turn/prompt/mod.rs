//! The prompt of an agent's turn.

use super::answer::ModelRequest;
use super::context;
use super::definition::Definition;
use super::history::{self, call_id, output_of};
use crate::model::{
    ChatRequest, Kept, Message, Parameters, TooLong, Tool, ToolCall, schema_instruction,
};
use crate::runtime::journal::{self, AskedModel, ModelResult, PromptSize, ToolRequest};
use crate::store::steps::{Step, StepKind};
use crate::store::turns::Turn;
use crate::tools::{Answer, Origin};
use serde::Deserialize;

/// What a model is asked.
pub(in crate::runtime) struct Prompt {
    /// The request.
    pub(in crate::runtime) request: ChatRequest,
    /// Its size, if the model has a context window or its server found a prompt of the turn too long.
    pub(in crate::runtime) size: Option<PromptSize>,
    /// More exchanges were sent with the prompt before it in this turn, or there was none and some are left out.
    pub(in crate::runtime) leaves_out_more: bool,
    /// The context window that it was made for, if one is known.
    pub(in crate::runtime) window: Option<u32>,
}

/// What the model is asked: the instructions, what was said, and the steps of this turn so far. Of what was said, as
/// much as fits the model's context window, if it is known.
///
/// # Errors
/// A sentence: another version of this program wrote something that cannot be read, or the newest exchange alone is too
/// long.
pub(in crate::runtime) fn prompt(
    definition: &Definition,
    journal: &[Step],
    origin: &Origin,
) -> Result<Prompt, String> {
    let (mut request, said) = request(definition, journal, origin)?;
    let turn = &definition.turn;
    let before = size_before(journal, origin.step)?;
    let most = before.and_then(|size| size.exchanges_sent);
    if turn.context_window.is_none() && most.is_none() {
        return Ok(Prompt {
            request,
            size: None,
            leaves_out_more: false,
            window: None,
        });
    }
    let counted = before.or_else(|| {
        turn.last_prompt
            .as_ref()
            .and_then(|size| PromptSize::deserialize(size).ok())
    });
    let window = turn.context_window.unwrap_or(u32::MAX);
    let size = context::fit(&mut request, said, window, counted, most)?;
    let leaves_out_more = match most {
        Some(most) => size.exchanges_sent.is_some_and(|sent| sent < most),
        None => size.exchanges_left_out > 0,
    };
    Ok(Prompt {
        request,
        size: Some(size),
        leaves_out_more,
        window: turn.context_window,
    })
}

/// The prompt again, for a server that found it too long: with as many exchanges as the server says that it takes, or with half
/// of them. None: there is nothing older to leave out, or what always stays is too long.
pub(in crate::runtime) fn prompt_within(
    definition: &Definition,
    journal: &[Step],
    origin: &Origin,
    (refused, told): (&Prompt, TooLong),
) -> Option<Prompt> {
    let (mut request, said) = request(definition, journal, origin).ok()?;
    let all = context::exchanges(&request.messages[..said]).len();
    let sent = refused.size.and_then(|size| size.exchanges_sent);
    let sent = sent.unwrap_or(all).min(all);
    let window = told.limit.and_then(|limit| u32::try_from(limit).ok());
    let most = match window {
        Some(_) => sent.checked_sub(1)?,
        None => sent / 2,
    };
    if most == 0 {
        return None;
    }
    let bytes = refused.request.wire_bytes();
    let counted = told.sent.map(|tokens| PromptSize {
        bytes,
        tokens: Some(tokens),
        exchanges_left_out: 0,
        exchanges_sent: None,
    });
    let fitted = context::fit(
        &mut request,
        said,
        window.unwrap_or(u32::MAX),
        counted,
        Some(most),
    );
    Some(Prompt {
        request,
        size: Some(fitted.ok()?),
        leaves_out_more: true,
        window: window.or(definition.turn.context_window),
    })
}

/// The size of the prompt before this step in the same turn.
fn size_before(journal: &[Step], step: i32) -> Result<Option<PromptSize>, String> {
    let asked = |row: &&Step| row.step < step && row.kind == StepKind::Model;
    let Some(newest) = journal.iter().rfind(asked) else {
        return Ok(None);
    };
    let result: ModelResult = journal::read(newest.result.as_ref())?;
    Ok(result.prompt)
}

/// What is asked, and how many of its messages stand before the first step of the turn.
fn request(
    definition: &Definition,
    journal: &[Step],
    origin: &Origin,
) -> Result<(ChatRequest, usize), String> {
    let turn = &definition.turn;
    let mut parameters = Parameters::deserialize(&turn.parameters)
        .map_err(|_| "The version's model parameters cannot be read.".to_owned())?;
    choose(&mut parameters, turn, journal)?;
    if let Some(limit) = definition.limits.max_output_tokens {
        let wanted = parameters.max_tokens.unwrap_or(limit);
        parameters.max_tokens = Some(wanted.min(limit));
    }
    let mut messages = Vec::with_capacity(turn.history.len() + 2 * journal.len() + 1);
    // An author who says how the request names the schema, or that it cannot, says so here.
    let is_in_request = !parameters.extra.contains_key("response_format");
    let mut instructions = turn.instructions.clone();
    if let Some(schema) = turn.output_schema.as_ref().filter(|_| !is_in_request) {
        let gap = if instructions.is_empty() { "" } else { "\n\n" };
        instructions += &format!("{gap}{}", schema_instruction(schema));
    }
    if !instructions.is_empty() {
        messages.push(Message::System {
            content: instructions,
        });
    }
    messages.extend(history::messages(turn));
    if let Some(input) = &turn.input {
        let content = input["message"].as_str().unwrap_or_default().to_owned();
        messages.push(Message::User { content });
    }
    let said = messages.len();
    let place = turn.history.last().map_or(0, |said| said.position);
    for step in journal.iter().filter(|step| step.step <= origin.step) {
        if step.kind == StepKind::Model {
            let asked: ModelRequest = journal::read(Some(&step.request))?;
            let correction = asked.correction.map(|content| Message::User { content });
            messages.extend(correction);
        }
        // What became of an approval, the step of its call says.
        if step.step < origin.step && step.kind != StepKind::Approval {
            messages.extend(message(turn, step, place)?);
        }
    }
    let request = ChatRequest {
        model: turn.model.clone(),
        messages,
        tools: turn
            .tools
            .iter()
            .map(|tool| Tool {
                name: tool.name.clone(),
                description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
                parameters: tool.arguments_schema.clone(),
            })
            .collect(),
        output_schema: turn.output_schema.clone().filter(|_| is_in_request),
        parameters,
        traceparent: Some(origin.traceparent()),
    };
    Ok((request, said))
}

/// Leaves the choice of a tool to the model once the turn has called one: it could never answer otherwise.
fn choose(parameters: &mut Parameters, turn: &Turn, journal: &[Step]) -> Result<(), String> {
    let Some(choice) = &parameters.tool_choice else {
        return Ok(());
    };
    let is_free = ["auto", "none"].contains(&choice.as_str());
    let is_known = choice == "required" || turn.tools.iter().any(|tool| tool.name == *choice);
    if !is_free && !is_known {
        return Err(format!(
            "The version's toolChoice names {choice}, which is none of its tools. Make a version that names one of them."
        ));
    }
    let has_called = journal.iter().any(|step| step.kind != StepKind::Model);
    if !is_free && has_called {
        parameters.tool_choice = None;
    }
    Ok(())
}

/// The message that a step of the turn is, in a conversation at this place. None: a guardrail blocked the answer.
fn message(turn: &Turn, step: &Step, place: i64) -> Result<Option<Message>, String> {
    match step.kind {
        StepKind::Model => {
            let result: ModelResult = journal::read(step.result.as_ref())?;
            if result.checked.blocked.is_some() {
                return Ok(None);
            }
            let asked = result.tool_calls.into_iter().enumerate();
            let tool_calls = asked.map(|(index, call)| ToolCall {
                id: call_id(place, step.step, index),
                name: call.name,
                arguments: call.arguments,
            });
            let is_same = result.kept_for == Some(AskedModel::of(turn));
            Ok(Some(Message::Assistant {
                content: Some(result.text).filter(|text| !text.is_empty()),
                tool_calls: tool_calls.collect(),
                kept: if is_same {
                    result.kept
                } else {
                    Kept::default()
                },
            }))
        }
        StepKind::Tool | StepKind::Child => {
            let result: Answer = journal::read(step.result.as_ref())?;
            let request: ToolRequest = journal::read(Some(&step.request))?;
            Ok(Some(Message::Tool {
                tool_call_id: call_id(place, request.model_step, request.call),
                content: output_of(request.decided.as_ref(), result.output),
            }))
        }
        _ => Err(journal::unreadable()),
    }
}

#[cfg(test)]
pub(in crate::runtime::turn) mod tests;
