//! The earlier turns of a conversation as a model is told of them: what was said, and the calls of tools with their results.
//!
//! A call without its result is left out, because all servers refuse it: that of a turn that was cut short, or whose result was
//! erased. So are answers that did not fit, and reasoning. What of it fits the model's context window is decided elsewhere
//! (`context`).

use crate::model::{Kept, Message, ToolCall};
use crate::runtime::journal::{self, CallDecision, ModelResult, ToolRequest};
use crate::store::conversations::MessageRole;
use crate::store::steps::StepKind;
use crate::store::turns::{PastStep, Turn};
use crate::tools::Answer;
use std::collections::HashMap;
use uuid::Uuid;

/// What was said and done before this turn, and its own message.
pub(super) fn messages(turn: &Turn) -> Vec<Message> {
    let mut steps: HashMap<Uuid, Vec<&PastStep>> = HashMap::new();
    // Some servers refuse calls in a request that has no tools.
    let past = turn.past.iter().filter(|_| !turn.tools.is_empty());
    for step in past {
        steps.entry(step.run_id).or_default().push(step);
    }
    let mut messages = Vec::with_capacity(turn.history.len() + turn.past.len());
    for said in &turn.history {
        let content = said.content.clone();
        match said.role {
            MessageRole::Assistant => messages.push(Message::Assistant {
                content: Some(content),
                tool_calls: Vec::new(),
                kept: Kept::default(),
            }),
            MessageRole::User => {
                messages.push(Message::User { content });
                let steps = steps.remove(&said.run_id).unwrap_or_default();
                calls(&steps, said.position, &mut messages);
            }
        }
    }
    messages
}

/// Adds the calls of one turn. What another version of this program wrote and cannot be read is left out.
fn calls(steps: &[&PastStep], place: i64, messages: &mut Vec<Message>) {
    let mut results: HashMap<(i32, usize), String> = HashMap::new();
    for step in steps.iter().filter(|step| step.kind != StepKind::Model) {
        let request = journal::read::<ToolRequest>(Some(&step.request));
        let answer = journal::read::<Answer>(Some(&step.result));
        if let (Ok(request), Ok(answer)) = (request, answer) {
            let output = output_of(request.decided.as_ref(), answer.output);
            results.insert((request.model_step, request.call), output);
        }
    }
    for step in steps.iter().filter(|step| step.kind == StepKind::Model) {
        let Ok(said) = journal::read::<ModelResult>(Some(&step.result)) else {
            continue;
        };
        let asked = said.tool_calls.into_iter().enumerate();
        let answered = asked.filter_map(|(index, call)| {
            let id = call_id(place, step.step, index);
            let content = results.remove(&(step.step, index))?;
            let call = ToolCall {
                id: id.clone(),
                name: call.name,
                arguments: call.arguments,
            };
            let result = Message::Tool {
                tool_call_id: id,
                content,
            };
            Some((call, result))
        });
        let (tool_calls, results): (Vec<ToolCall>, Vec<Message>) = answered.unzip();
        if !tool_calls.is_empty() {
            messages.push(Message::Assistant {
                content: Some(said.text).filter(|text| !text.is_empty()),
                tool_calls,
                kept: Kept::default(),
            });
            messages.extend(results);
        }
    }
}

/// The id by which the model is told of a call. Servers repeat ids and leave them out, and others refuse them: Mistral's takes
/// nine letters and digits alone, which all take. So calls have ids of the service's own, which say where the call stands: in
/// which exchange of the conversation, in which step, which of its calls.
pub(in crate::runtime) fn call_id(place: i64, step: i32, call: usize) -> String {
    let digits = |number: u64, count: u32| {
        let digit = |at: u32| (number / 36_u64.pow(at) % 36) as u32;
        let digits = (0..count).rev().map(digit);
        digits
            .filter_map(|digit| char::from_digit(digit, 36))
            .collect::<String>()
    };
    let (place, step) = (place.unsigned_abs(), u64::from(step.unsigned_abs()));
    format!(
        "c{}{}{}",
        digits(place, 3),
        digits(step, 3),
        digits(call as u64, 2)
    )
}

/// What the model gets of a call that asked a reviewer. It sees other arguments in its own call than were used.
pub(super) fn output_of(decided: Option<&CallDecision>, output: String) -> String {
    let Some(CallDecision::Approved {
        arguments: Some(arguments),
        is_edited: true,
        comment,
        ..
    }) = decided
    else {
        return output;
    };
    let said = comment.as_ref();
    let said = said.map_or_else(String::new, |comment| {
        format!(" The reviewer said: {comment}")
    });
    format!(
        "A reviewer changed the arguments of this call. It was made with {arguments}.{said}\n\n{output}"
    )
}

#[cfg(test)]
mod tests;
