//! How a provider's server is asked: what its row says beside where it is.
//!
//! Every field has a default that fits a server which keeps to the API. Not here: what the service finds out about a server by
//! itself.

use crate::outbound::Timeouts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Bounds of a time limit.
pub const TIMEOUT_MS_LEAST: u32 = 10;
pub const TIMEOUT_MS_MOST: u32 = 3_600_000;
pub const CALL_MS_MOST: u32 = 86_400_000;
/// How often a call is tried, and how many calls are made at once, at most.
pub const TRIES_MOST: u8 = 20;
pub const CALLS_AT_ONCE_MOST: u32 = 10_000;
/// Headers at most, and the longest value of one and the longest API version, in bytes.
pub const HEADERS_MOST: usize = 20;
pub const HEADER_VALUE_MOST: usize = 1000;
pub const API_VERSION_MOST: usize = 100;

/// Time limits of a call, in milliseconds. What is absent is the service's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "ModelTimeouts")]
pub struct ProviderTimeouts {
    /// From the request to the first byte of the answer; 120000 by default. A server that says that it loads its model is
    /// waited for as long in all.
    #[schemars(range(min = TIMEOUT_MS_LEAST, max = TIMEOUT_MS_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u32>,
    /// Between two bytes of the answer; 120000 by default. Comments and pings count.
    #[schemars(range(min = TIMEOUT_MS_LEAST, max = TIMEOUT_MS_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u32>,
    /// The whole call; 600000 by default.
    #[schemars(range(min = TIMEOUT_MS_LEAST, max = CALL_MS_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ms: Option<u32>,
}

impl ProviderTimeouts {
    /// The limits of a call of this provider, of the service's own where it has none.
    pub fn or(&self, own: Timeouts) -> Timeouts {
        let given = |limit: Option<u32>| limit.map(|ms| Duration::from_millis(u64::from(ms)));
        Timeouts {
            first_byte: given(self.first_byte_ms).unwrap_or(own.first_byte),
            idle: given(self.idle_ms).or(own.idle),
            total: given(self.call_ms).unwrap_or(own.total),
            ..own
        }
    }
}

/// A header of each request to a provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ModelProviderHeader")]
pub struct ProviderHeader {
    /// Its name.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Its value; or `keyName` says which it is.
    #[schemars(length(min = 1, max = HEADER_VALUE_MOST))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The name of one of the operator's keys (`SVC_MODEL_KEYS`), which is its value.
    #[schemars(length(min = 1, max = 100))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
}

/// What a server does not take, or wants in another way. The service finds out most of them by itself, by a call that is
/// refused.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ModelQuirk")]
pub enum Quirk {
    /// It refuses `stream_options`.
    NoStreamOptions,
    /// It does not stream.
    NoStreaming,
    /// It refuses `parallel_tool_calls`.
    NoParallelToolCalls,
    /// It refuses `tool_choice`.
    NoToolChoice,
    /// It refuses `strict`.
    NoStrict,
    /// It refuses a message whose `content` is null.
    NoNullContent,
    /// It has no system role: the instructions stand before the first message of the user.
    NoSystemRole,
    /// It refuses `response_format` of type `json_schema`: it is asked for `json_object`.
    NoJsonSchema,
    /// It refuses every `response_format`: it is asked in words.
    NoResponseFormat,
    /// It takes `max_completion_tokens` in place of `max_tokens`.
    MaxCompletionTokens,
    /// It takes its own default of `temperature` alone.
    NoTemperature,
    /// It refuses `top_p`.
    NoTopP,
    /// It refuses `presence_penalty` or `frequency_penalty`.
    NoPenalties,
    /// It refuses `seed`.
    NoSeed,
    /// It refuses `reasoning_effort`.
    NoReasoningEffort,
    /// It refuses fields of its own messages that it is handed back, such as its reasoning.
    NoKept,
}

/// How a provider's server is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(rename = "ModelProviderOptions")]
pub struct ProviderOptions {
    /// Time limits of a call.
    pub timeouts: ProviderTimeouts,
    /// How often a call that may pass is tried in all; 4 by default.
    #[schemars(range(min = 1, max = TRIES_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u8>,
    /// Calls at once at most; further ones wait in order, without a thread and without being counted as slow. No bound by
    /// default.
    #[schemars(range(min = 1, max = CALLS_AT_ONCE_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_at_once: Option<u32>,
    /// Headers of each request.
    #[schemars(length(max = HEADERS_MOST))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<ProviderHeader>,
    /// The header that has the API key, such as Azure's `api-key`, in place of `Authorization: Bearer`.
    #[schemars(length(min = 1, max = 64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_header: Option<String>,
    /// Sent as the query parameter `api-version`, which Azure asks for.
    #[schemars(length(min = 1, max = API_VERSION_MOST))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// What the server does not take, or wants in another way.
    #[schemars(length(max = 20))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}
