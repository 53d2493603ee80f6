//! A request to a model: its types and their JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Fields that [`Parameters::extra`] may not set, because the service sets them.
const RESERVED: [&str; 5] = ["model", "messages", "tools", "stream", "n"];

/// A request for one chat completion.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// The provider's name of the model.
    pub model: String,
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// Tools that the model may call.
    pub tools: Vec<Tool>,
    /// The JSON Schema that the answer is to fit. The provider is told; whether it does is the caller's to check.
    pub output_schema: Option<Value>,
    /// Parameters of the answer.
    pub parameters: Parameters,
    /// A `traceparent` header (W3C Trace Context), if the call is part of a trace.
    pub traceparent: Option<String>,
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum Message {
    /// Instructions.
    System {
        /// The text.
        content: String,
    },
    /// A message of the user.
    User {
        /// The text.
        content: String,
    },
    /// A message of the model.
    #[serde(rename_all = "camelCase")]
    Assistant {
        /// The text; none if the model only called tools.
        content: Option<String>,
        /// The calls it made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// What it is handed back.
        #[serde(default, skip_serializing_if = "Kept::is_empty")]
        kept: Kept,
    },
    /// The result of a tool.
    #[serde(rename_all = "camelCase")]
    Tool {
        /// The call that it belongs to.
        tool_call_id: String,
        /// The result.
        content: String,
    },
}

/// Fields of a model's message that the service does not know, such as a provider's signed reasoning. They are handed back to
/// the provider and model that wrote them, in the same turn, as they came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kept {
    /// Of the message.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub message: Map<String, Value>,
    /// Of its calls, in their order; shorter where the last ones have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Map<String, Value>>,
}

impl Kept {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.message.is_empty() && self.calls.is_empty()
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id in the conversation.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them. They should be JSON; this module does not check it.
    pub arguments: String,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// How a model is to answer. What is absent is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "ModelParameters")]
pub struct Parameters {
    /// Sampling temperature.
    #[schemars(range(min = 0.0, max = 2.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schemars(range(min = 0.0, max = 1.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The longest answer, in tokens. Sent as `max_tokens`, which most servers know; put
    /// `max_completion_tokens` into `extra` for those that want it.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// Texts that end the answer.
    #[schemars(length(max = 16), inner(length(min = 1, max = 200)))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// A seed for repeatable sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Further fields of the request, passed on as they are; a null takes a field out.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Message {
    /// Its length in a request, in bytes.
    pub fn wire_bytes(&self) -> usize {
        wire_message(self).to_string().len()
    }
}

impl Tool {
    /// The length of its description in a request, in bytes.
    pub fn wire_bytes(&self) -> usize {
        wire_tool(self).to_string().len()
    }
}

impl Parameters {
    /// The longest answer in tokens, by whichever name it is sent.
    pub fn answer_tokens(&self) -> Option<u64> {
        let extra = self.extra.get("max_completion_tokens");
        extra
            .and_then(Value::as_u64)
            .or(self.max_tokens.map(u64::from))
    }

    /// The first field of `extra` that is reserved.
    pub fn reserved_extra(&self) -> Option<&str> {
        let mut names = self.extra.keys().map(String::as_str);
        names.find(|name| RESERVED.contains(name))
    }
}

impl ChatRequest {
    /// The length of the output schema in a request, in bytes.
    pub fn schema_bytes(&self) -> usize {
        let schema = self.output_schema.as_ref();
        schema.map_or(0, |schema| response_format(schema).to_string().len())
    }

    /// The request's JSON.
    pub(super) fn body(&self) -> Value {
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", json!(self.model));
        set("messages", self.messages.iter().map(wire_message).collect());
        if !self.tools.is_empty() {
            set("tools", self.tools.iter().map(wire_tool).collect());
        }
        if let Some(schema) = &self.output_schema {
            set("response_format", response_format(schema));
        }
        set("stream", json!(true));
        set("stream_options", json!({"include_usage": true}));
        let parameters = &self.parameters;
        set("temperature", json!(parameters.temperature));
        set("top_p", json!(parameters.top_p));
        set("max_tokens", json!(parameters.max_tokens));
        set("seed", json!(parameters.seed));
        if !parameters.stop.is_empty() {
            set("stop", json!(parameters.stop));
        }
        for (name, value) in &parameters.extra {
            if name == "max_completion_tokens" {
                body.shift_remove("max_tokens");
            }
            if value.is_null() {
                body.shift_remove(name);
            } else {
                body.insert(name.clone(), value.clone());
            }
        }
        Value::Object(body)
    }
}

/// Not strict: a provider that is takes a part of JSON Schema alone, and refuses the rest.
fn response_format(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
}

fn wire_message(message: &Message) -> Value {
    match message {
        Message::System { content } => json!({"role": "system", "content": content}),
        Message::User { content } => json!({"role": "user", "content": content}),
        Message::Assistant {
            content,
            tool_calls,
            ..
        } if tool_calls.is_empty() => {
            json!({"role": "assistant", "content": content.as_deref().unwrap_or("")})
        }
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            let calls: Vec<Value> = tool_calls.iter().map(wire_call).collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::Tool {
            tool_call_id,
            content,
        } => json!({"role": "tool", "tool_call_id": tool_call_id, "content": content}),
    }
}

fn wire_call(call: &ToolCall) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

fn wire_tool(tool: &Tool) -> Value {
    let mut function = json!({"name": tool.name, "parameters": tool.parameters});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    json!({"type": "function", "function": function})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_shape_of_the_api() {
        let request = ChatRequest {
            model: "m".to_owned(),
            messages: vec![
                Message::System {
                    content: "be brief".to_owned(),
                },
                Message::User {
                    content: "hi".to_owned(),
                },
                Message::Assistant {
                    content: None,
                    tool_calls: vec![ToolCall {
                        id: "c1".to_owned(),
                        name: "clock".to_owned(),
                        arguments: "{}".to_owned(),
                    }],
                    kept: Kept::default(),
                },
                Message::Tool {
                    tool_call_id: "c1".to_owned(),
                    content: "noon".to_owned(),
                },
            ],
            tools: vec![Tool {
                name: "clock".to_owned(),
                description: None,
                parameters: json!({"type": "object"}),
            }],
            output_schema: Some(json!({"type": "object", "required": ["a"]})),
            parameters: Parameters {
                temperature: Some(0.5),
                max_tokens: Some(9),
                stop: vec!["END".to_owned()],
                ..Parameters::default()
            },
            traceparent: None,
        };
        assert_eq!(
            request.body(),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "noon"},
                ],
                "tools": [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}],
                "response_format": {"type": "json_schema", "json_schema": {
                    "name": "answer", "schema": {"type": "object", "required": ["a"]},
                }},
                "stream": true,
                "stream_options": {"include_usage": true},
                "temperature": 0.5,
                "max_tokens": 9,
                "stop": ["END"],
            })
        );
    }

    #[test]
    fn extra_fields_add_replace_and_take_out() {
        let mut request = ChatRequest::default();
        request.parameters.max_tokens = Some(9);
        request.parameters.extra = serde_json::from_value(json!({
            "max_completion_tokens": 7, "reasoning_effort": "low", "stream_options": null,
        }))
        .unwrap();
        let body = request.body();
        assert_eq!(body["max_completion_tokens"], 7);
        assert_eq!(body["reasoning_effort"], "low");
        assert!(body.get("max_tokens").is_none() && body.get("stream_options").is_none());
        assert_eq!(request.parameters.reserved_extra(), None);
        request
            .parameters
            .extra
            .insert("stream".to_owned(), json!(false));
        assert_eq!(request.parameters.reserved_extra(), Some("stream"));
    }
}
