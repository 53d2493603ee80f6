//! A request to a model: its types. Not here: its JSON (`body`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// The longest answer, in tokens. Sent as `max_tokens`, which most servers know, or as `max_completion_tokens` to those
    /// that want it.
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
    /// How much the model thinks before it answers: `low`, `medium` or `high`; some servers know others.
    #[schemars(length(min = 1, max = 32))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Whether the model calls tools: `auto`, `none`, `required`, or the name of the one that it calls. `required` and a name
    /// hold until the turn has called a tool; then the model may answer.
    #[schemars(length(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<String>,
    /// Whether the model may call several tools at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Above 0: the model repeats subjects less.
    #[schemars(range(min = -2.0, max = 2.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Above 0: the model repeats words less.
    #[schemars(range(min = -2.0, max = 2.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Further fields of the request, passed on as they are; a null takes a field out.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

impl Message {
    /// What the model is handed back with it.
    pub(super) fn kept(&self) -> Option<&Kept> {
        match self {
            Self::Assistant { kept, .. } => Some(kept),
            _ => None,
        }
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
