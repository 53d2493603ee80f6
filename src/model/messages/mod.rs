//! The messages of a request, in a form that every server takes.
//!
//! Servers and the templates of models differ in what they refuse. So what is sent satisfies the strictest of them: a user
//! speaks first; users and assistants alternate, and an assistant speaks between the result of a tool and the user; no message
//! is empty; the arguments of a call are a JSON object. Not here: which messages are sent, and the pairs of calls and results,
//! which are the caller's.

use super::names::Names;
use super::options::Quirk;
use super::quirks::Quirks;
use super::request::{Kept, Message, ToolCall};
use serde_json::{Map, Value, json};

/// Stands between two messages that are joined.
const GAP: &str = "\n\n";
/// What an assistant says whose turn ended after a call and before its answer.
const UNANSWERED: &str = "(The turn ended before an answer.)";
/// The result of a tool that gave none.
const NO_RESULT: &str = "(no output)";
/// Fields that the service sets itself.
const OF_MESSAGES: [&str; 3] = ["role", "content", "tool_calls"];
const OF_CALLS: [&str; 3] = ["id", "type", "function"];

/// The messages as they are sent.
pub(super) fn sent(messages: &[Message], names: &Names, quirks: &Quirks) -> Vec<Value> {
    let mut valid = valid(messages);
    if quirks.contains(&Quirk::NoSystemRole) {
        valid = without_system(valid);
    }
    let wire = Wire { names, quirks };
    valid.iter().map(|message| wire.message(message)).collect()
}

impl Message {
    /// Its length in a request, in bytes.
    pub fn wire_bytes(&self) -> usize {
        let (names, quirks) = Default::default();
        let wire = Wire {
            names: &names,
            quirks: &quirks,
        };
        wire.message(self).to_string().len()
    }
}

fn valid(messages: &[Message]) -> Vec<Message> {
    let mut valid: Vec<Message> = Vec::with_capacity(messages.len());
    let mut has_user = false;
    for message in messages {
        match message {
            Message::System { content } if content.is_empty() => continue,
            Message::System { .. } => {}
            Message::User { .. } => {
                has_user = true;
                if matches!(valid.last(), Some(Message::Tool { .. })) {
                    valid.push(said(UNANSWERED));
                }
            }
            Message::Assistant {
                content,
                tool_calls,
                ..
            } if is_blank(content.as_deref()) && tool_calls.is_empty() => continue,
            // What an older message asked for that is not sent.
            _ if !has_user => continue,
            Message::Tool { .. } if !may_follow(valid.last()) => continue,
            _ => {}
        }
        match valid.last_mut().map(|last| join(last, message)) {
            Some(true) => {}
            _ => valid.push(message.clone()),
        }
    }
    valid
}

/// Whether a result may stand behind this message.
fn may_follow(last: Option<&Message>) -> bool {
    match last {
        Some(Message::Assistant { tool_calls, .. }) => !tool_calls.is_empty(),
        Some(Message::Tool { .. }) => true,
        _ => false,
    }
}

fn said(content: &str) -> Message {
    Message::Assistant {
        content: Some(content.to_owned()),
        tool_calls: Vec::new(),
        kept: Kept::default(),
    }
}

fn is_blank(content: Option<&str>) -> bool {
    content.is_none_or(|content| content.trim_ascii().is_empty())
}

/// Adds a message to the one before it if both have the same role; `false`: it stands alone.
fn join(last: &mut Message, next: &Message) -> bool {
    match (last, next) {
        (Message::System { content: last }, Message::System { content: next })
        | (Message::User { content: last }, Message::User { content: next }) => {
            add(last, next);
            true
        }
        (
            Message::Assistant {
                content,
                tool_calls,
                kept,
            },
            Message::Assistant {
                content: next,
                tool_calls: calls,
                kept: next_kept,
            },
        ) if tool_calls.is_empty() => {
            let mut joined = content.take().unwrap_or_default();
            add(&mut joined, next.as_deref().unwrap_or_default());
            *content = Some(joined);
            tool_calls.clone_from(calls);
            kept.clone_from(next_kept);
            true
        }
        _ => false,
    }
}

fn add(text: &mut String, more: &str) {
    if !is_blank(Some(text)) && !is_blank(Some(more)) {
        text.push_str(GAP);
    }
    text.push_str(more);
}

/// The instructions stand before the first message of the user.
fn without_system(messages: Vec<Message>) -> Vec<Message> {
    let as_user = |message| match message {
        Message::System { content } => Message::User { content },
        other => other,
    };
    let messages: Vec<Message> = messages.into_iter().map(as_user).collect();
    valid(&messages)
}

struct Wire<'a> {
    names: &'a Names,
    quirks: &'a Quirks,
}

impl Wire<'_> {
    fn message(&self, message: &Message) -> Value {
        match message {
            Message::System { content } => json!({"role": "system", "content": content}),
            Message::User { content } => json!({"role": "user", "content": content}),
            Message::Tool {
                tool_call_id,
                content,
            } => {
                let content = if content.is_empty() {
                    NO_RESULT
                } else {
                    content
                };
                json!({"role": "tool", "tool_call_id": tool_call_id, "content": content})
            }
            Message::Assistant {
                content,
                tool_calls,
                kept,
            } => {
                let content = content.as_deref().filter(|text| !is_blank(Some(text)));
                let content = match content {
                    None if self.quirks.contains(&Quirk::NoNullContent) => Some(""),
                    content => content,
                };
                let mut sent = json!({"role": "assistant", "content": content});
                if !tool_calls.is_empty() {
                    let nothing = Map::new();
                    let kept = kept.calls.iter().chain(std::iter::repeat(&nothing));
                    let calls = tool_calls.iter().zip(kept);
                    sent["tool_calls"] = calls.map(|(call, kept)| self.call(call, kept)).collect();
                }
                self.hand_back(&mut sent, &kept.message, &OF_MESSAGES);
                sent
            }
        }
    }

    fn call(&self, call: &ToolCall, kept: &Map<String, Value>) -> Value {
        let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
        let arguments = if is_object { &call.arguments } else { "{}" };
        let mut sent = json!({
            "id": call.id,
            "type": "function",
            "function": {"name": self.names.sent(&call.name), "arguments": arguments},
        });
        self.hand_back(&mut sent, kept, &OF_CALLS);
        sent
    }

    /// Adds what the server is handed back, and never over what the service sets.
    fn hand_back(&self, sent: &mut Value, kept: &Map<String, Value>, own: &[&str]) {
        if self.quirks.contains(&Quirk::NoKept) {
            return;
        }
        for (name, value) in kept
            .iter()
            .filter(|(name, _)| !own.contains(&name.as_str()))
        {
            sent[name.as_str()] = value.clone();
        }
    }
}

#[cfg(test)]
mod tests;
