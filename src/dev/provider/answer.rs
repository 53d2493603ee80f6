//! The content of the scripted provider's answers, and its chat-completions shape.

use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Words in a message that ask for a tool, beside a tool's own name.
const TOOL_WORDS: [&str; 9] = [
    "time",
    "date",
    "clock",
    "weather",
    "forecast",
    "temperature",
    "hour",
    "today",
    "tool",
];

/// Numbers the answers and the tool calls.
#[derive(Default)]
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

pub(super) enum Answer {
    Text(String),
    ToolCalls(Vec<(String, Value)>),
}

/// A fitting answer to a conversation, without a model.
pub(super) fn scripted(body: &Value) -> Answer {
    let none = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&none);
    let asked = messages.iter().rposition(|m| m["role"] == "user");
    let question = asked.map_or("", |at| messages[at]["content"].as_str().unwrap_or(""));
    let results: Vec<&str> = messages[asked.unwrap_or(0)..]
        .iter()
        .filter(|m| m["role"] == "tool")
        .filter_map(|m| m["content"].as_str())
        .collect();
    if !results.is_empty() {
        let said = shorten(&results.join("; "), 400);
        return fitting(body).unwrap_or_else(|| Answer::Text(format!(
            "I asked the tool, and it answered: {said} This answer comes from the scripted local provider."
        )));
    }
    if let Some(call) = wanted_tool(&body["tools"], question) {
        return Answer::ToolCalls(vec![call]);
    }
    if let Some(fitting) = fitting(body) {
        return fitting;
    }
    let said = shorten(question, 200);
    Answer::Text(format!(
        "You wrote: \"{said}\". I am the scripted local provider, so no model thought about it. \
         Configure a model provider with its base URL and key, and this agent answers for real."
    ))
}

/// JSON that fits the output schema of the request, if it has one that something fits.
fn fitting(body: &Value) -> Option<Answer> {
    let schema = body.pointer("/response_format/json_schema/schema")?;
    let value = super::fitting::value(schema)?;
    Some(Answer::Text(value.to_string()))
}

/// The tool that a message asks for: the one it names, or the first for a word like "weather".
fn wanted_tool(tools: &Value, question: &str) -> Option<(String, Value)> {
    let question = question.to_lowercase();
    let functions = || {
        tools
            .as_array()
            .into_iter()
            .flatten()
            .map(|t| &t["function"])
    };
    let named = functions().find(|f| {
        let name = f["name"].as_str().unwrap_or("").to_lowercase();
        !name.is_empty() && (question.contains(&name) || question.contains(&name.replace('_', " ")))
    });
    let asks = question
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| TOOL_WORDS.contains(&word));
    let chosen = named.or_else(|| functions().next().filter(|_| asks))?;
    let name = chosen["name"].as_str()?.to_owned();
    Some((name, arguments(&chosen["parameters"], &question)))
}

/// Arguments of the right types for a tool's schema: its required properties.
fn arguments(schema: &Value, question: &str) -> Value {
    let mut filled = Map::new();
    let required = schema["required"].as_array().into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        let property = &schema["properties"][name];
        let given = [
            &property["const"],
            &property["default"],
            &property["enum"][0],
            &property["examples"][0],
        ];
        let value = match given.into_iter().find(|v| !v.is_null()) {
            Some(given) => given.clone(),
            None => match property["type"].as_str() {
                Some("integer" | "number") => property.get("minimum").cloned().unwrap_or(json!(1)),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => arguments(property, question),
                _ => json!(last_word(question)),
            },
        };
        filled.insert(name.to_owned(), value);
    }
    Value::Object(filled)
}

/// In "what is the weather in Kyoto?" the location comes last.
fn last_word(question: &str) -> &str {
    let mut words = question.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.rfind(|word| !word.is_empty()).unwrap_or("anything")
}

fn shorten(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The answer as one JSON object.
pub(super) fn whole(answer: &Answer, body: &Value, numbers: &Numbers) -> Value {
    let message = match answer {
        Answer::Text(text) => json!({"role": "assistant", "content": text}),
        Answer::ToolCalls(calls) => {
            json!({"role": "assistant", "content": null, "tool_calls": tool_calls(calls, numbers)})
        }
    };
    json!({
        "id": format!("chatcmpl-{}", numbers.next()),
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer)}],
        "usage": usage(answer, body),
    })
}

/// The answer as the payloads of a stream, `[DONE]` included.
pub(super) fn events(answer: &Answer, body: &Value, numbers: &Numbers) -> Vec<String> {
    let id = format!("chatcmpl-{}", numbers.next());
    let chunk = |choices: Value| json!({"id": id, "object": "chat.completion.chunk", "created": 0, "model": body["model"], "choices": choices});
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut events = vec![delta(json!({"role": "assistant", "content": ""}))];
    match answer {
        Answer::Text(text) => {
            events.extend(
                text.split_inclusive(' ')
                    .map(|w| delta(json!({"content": w}))),
            );
        }
        Answer::ToolCalls(calls) => {
            for call in tool_calls(calls, numbers) {
                let (head, tail) = split_call(call);
                events.push(delta(json!({"tool_calls": [head]})));
                events.push(delta(json!({"tool_calls": [tail]})));
            }
        }
    }
    events.push(chunk(
        json!([{"index": 0, "delta": {}, "finish_reason": finish(answer)}]),
    ));
    if body["stream_options"]["include_usage"] == Value::Bool(true) {
        let mut last = chunk(json!([]));
        last["usage"] = usage(answer, body);
        events.push(last);
    }
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    events
}

fn tool_calls(calls: &[(String, Value)], numbers: &Numbers) -> Vec<Value> {
    let call = |(index, (name, arguments)): (usize, &(String, Value))| {
        json!({
            "index": index,
            "id": format!("call_{}", numbers.next()),
            "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()},
        })
    };
    calls.iter().enumerate().map(call).collect()
}

/// A call in two fragments, as real providers send it.
fn split_call(mut call: Value) -> (Value, Value) {
    let arguments = call["function"]["arguments"].take();
    let arguments = arguments.as_str().unwrap_or("").to_owned();
    call["function"]["arguments"] = json!("");
    let tail = json!({"index": call["index"], "function": {"arguments": arguments}});
    (call, tail)
}

fn finish(answer: &Answer) -> &'static str {
    match answer {
        Answer::Text(_) => "stop",
        Answer::ToolCalls(_) => "tool_calls",
    }
}

/// About four characters a token.
fn usage(answer: &Answer, body: &Value) -> Value {
    let tokens = |chars: usize| chars.div_ceil(4);
    let prompt = tokens(body["messages"].to_string().chars().count());
    let completion = match answer {
        Answer::Text(text) => text.split_inclusive(' ').count(),
        Answer::ToolCalls(calls) => {
            let text =
                |(name, arguments): &(String, Value)| name.len() + arguments.to_string().len();
            tokens(calls.iter().map(text).sum())
        }
    };
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    })
}
