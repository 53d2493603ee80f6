//! Why an answer ended: the words of model servers for it.
//!
//! An answer is complete only if it says so. What is unknown is no end that this service relies on.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Finish {
    /// The model finished.
    Stop,
    /// The answer reached its maximum length and is cut off.
    Length,
    /// The model called tools.
    ToolCalls,
}

/// What a server's `finish_reason` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The answer is complete.
    Complete(Finish),
    /// The provider's content filter stopped it.
    Filtered,
    /// The model wrote a call that its server could not read.
    MalformedCall,
    /// It failed, or nobody knows.
    Failed,
}

const STOP: &str = "stop stopped end_turn end eos eos_token stop_sequence stop_token stop_word end_of_text end_of_turn eot complete \
    completed finish finished done success </s> <|im_end|> <|eot_id|> <|end|> <|endoftext|>";
const LENGTH: &str = "length max_tokens max_length max_output_tokens max_completion_tokens max_new_tokens model_length token_limit limit \
    context_length model_context_window_exceeded incomplete";
const TOOL_CALLS: &str =
    "tool_calls tool_call tool_use tool function_call function_calls <|tool_call_end|> <|eom_id|>";
const FILTERED: &str = "content_filter content_filtered content_filtering safety recitation blocklist prohibited_content spii \
    image_safety sensitive refusal guardrail_intervened guardrails moderation error_toxic";

impl End {
    /// Of a choice's field, which some servers send as an object with its type.
    pub(super) fn word(reason: &Value) -> Option<&str> {
        reason.as_str().or_else(|| reason["type"].as_str())
    }

    /// `None`: nothing has ended.
    pub(super) fn of(reason: &str) -> Option<Self> {
        let word = reason.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let word = word.strip_prefix("finish_reason_").unwrap_or(&word);
        let is_in = |words: &str| words.split_ascii_whitespace().any(|known| known == word);
        if matches!(word, "" | "null" | "none" | "unspecified") {
            None
        } else if is_in(STOP) {
            Some(Self::Complete(Finish::Stop))
        } else if is_in(LENGTH) {
            Some(Self::Complete(Finish::Length))
        } else if is_in(TOOL_CALLS) {
            Some(Self::Complete(Finish::ToolCalls))
        } else if is_in(FILTERED) {
            Some(Self::Filtered)
        } else if word.contains("malformed") || word.contains("unexpected_tool_call") {
            Some(Self::MalformedCall)
        } else {
            Some(Self::Failed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_servers_are_told_apart() {
        for (reason, end) in [
            ("", None),
            ("null", None),
            ("stop", Some(End::Complete(Finish::Stop))),
            ("STOP", Some(End::Complete(Finish::Stop))),
            ("FINISH_REASON_STOP", Some(End::Complete(Finish::Stop))),
            ("end_turn", Some(End::Complete(Finish::Stop))),
            ("max_tokens", Some(End::Complete(Finish::Length))),
            ("tool_use", Some(End::Complete(Finish::ToolCalls))),
            ("function_call", Some(End::Complete(Finish::ToolCalls))),
            ("content_filter", Some(End::Filtered)),
            ("SAFETY", Some(End::Filtered)),
            (
                "function_call_filter: MALFORMED_FUNCTION_CALL",
                Some(End::MalformedCall),
            ),
            ("error", Some(End::Failed)),
            ("abort", Some(End::Failed)),
            ("network_error", Some(End::Failed)),
            ("insufficient_system_resource", Some(End::Failed)),
            ("whatever", Some(End::Failed)),
        ] {
            assert_eq!(End::of(reason), end, "{reason}");
        }
    }
}
