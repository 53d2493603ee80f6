//! Tokens as model servers count them, in each server's own form.
//!
//! Counts may come in several parts, and again and again: of each count the last one that is not 0 holds. What nobody counted is
//! `None`, never 0.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens of a call, as the provider counts them. A count that is missing is `None`, never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, cached ones included.
    pub prompt: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub completion: Option<u64>,
    /// Tokens of the request read from the provider's cache.
    pub cache_read: Option<u64>,
    /// Tokens of the request written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
}

/// The counts so far.
#[derive(Debug, Default)]
pub(super) struct Counted {
    usage: Usage,
    total: Option<u64>,
    /// Cached tokens are counted beside the prompt's, as Anthropic does.
    cache_is_beside: bool,
}

impl Counted {
    /// Adds the counts of a chunk, wherever its server puts them.
    pub(super) fn take(&mut self, chunk: &Value) {
        self.add(&chunk["usage"]);
        self.add(&chunk["x_groq"]["usage"]);
        self.add(&chunk["usageMetadata"]);
        if let Some(choice) = chunk["choices"].get(0) {
            self.add(&choice["usage"]);
        }
    }

    fn add(&mut self, value: &Value) {
        if !value.is_object() {
            return;
        }
        let input = &value["input_tokens"];
        self.cache_is_beside |= value["prompt_tokens"].is_null()
            && !input.is_null()
            && value["input_tokens_details"].is_null();
        let before = self.usage;
        let usage = &mut self.usage;
        hold(
            &mut usage.prompt,
            &[
                &value["prompt_tokens"],
                input,
                &value["promptTokenCount"],
                &value["inputTokens"],
            ],
        );
        hold(
            &mut usage.completion,
            &[
                &value["completion_tokens"],
                &value["output_tokens"],
                &value["candidatesTokenCount"],
                &value["outputTokens"],
            ],
        );
        hold(
            &mut usage.cache_read,
            &[
                &value["prompt_tokens_details"]["cached_tokens"],
                &value["input_tokens_details"]["cached_tokens"],
                &value["prompt_cache_hit_tokens"],
                &value["cache_read_input_tokens"],
                &value["cache_read_tokens"],
                &value["cached_tokens"],
                &value["cachedContentTokenCount"],
                &value["cacheReadInputTokens"],
            ],
        );
        hold(
            &mut usage.cache_write,
            &[
                &value["prompt_tokens_details"]["cache_write_tokens"],
                &value["prompt_tokens_details"]["cache_creation_tokens"],
                &value["cache_creation_input_tokens"],
                &value["cache_write_tokens"],
                &value["cacheWriteInputTokens"],
            ],
        );
        hold(
            &mut usage.reasoning,
            &[
                &value["completion_tokens_details"]["reasoning_tokens"],
                &value["output_tokens_details"]["reasoning_tokens"],
                &value["reasoning_tokens"],
                &value["thoughtsTokenCount"],
            ],
        );
        // The total of an estimate is none of the counts that replace it.
        if (before.prompt, before.completion) != (usage.prompt, usage.completion) {
            self.total = None;
        }
        hold(
            &mut self.total,
            &[
                &value["total_tokens"],
                &value["totalTokenCount"],
                &value["totalTokens"],
            ],
        );
    }

    /// The tokens of the call; `None` if nothing was counted.
    pub(super) fn usage(&self) -> Option<Usage> {
        let mut usage = self.usage;
        let cached = usage.cache_read.unwrap_or(0) + usage.cache_write.unwrap_or(0);
        if let (Some(prompt), true) = (&mut usage.prompt, self.cache_is_beside) {
            *prompt = prompt.saturating_add(cached);
        }
        if let (Some(prompt), None, Some(total)) = (usage.prompt, usage.completion, self.total) {
            // A server that leaves out a count of 0, but counts thoughts in the total.
            usage.completion = total.checked_sub(prompt).filter(|rest| *rest > 0);
        }
        if let (Some(prompt), Some(completion), Some(total)) =
            (&mut usage.prompt, &mut usage.completion, self.total)
        {
            let beside = total.saturating_sub(prompt.saturating_add(*completion));
            let reasoning = usage.reasoning.unwrap_or(0);
            if beside > 0 && beside == cached && beside != reasoning {
                *prompt = prompt.saturating_add(beside);
            } else if reasoning > 0 && beside >= reasoning {
                // Reasoning is not in the completion, as xAI counts.
                *completion = completion.saturating_add(reasoning);
            } else if reasoning == 0 {
                // Gemini counts its thoughts in the total alone.
                *completion = completion.saturating_add(beside);
            }
        }
        (usage != Usage::default()).then_some(usage)
    }
}

/// Holds the greatest of these places, which name the same count. A 0 does not replace what is known.
fn hold(known: &mut Option<u64>, places: &[&Value]) {
    let Some(count) = places.iter().filter_map(|place| number(place)).max() else {
        return;
    };
    if count > 0 || known.is_none() {
        *known = Some(count);
    }
}

/// A count. Some servers write it with a decimal point. What is beyond what can be counted is no count.
fn number(value: &Value) -> Option<u64> {
    const MOST: f64 = 4_294_967_295.0;
    let count = value.as_u64().or_else(|| {
        let count = value.as_f64()?;
        let is_count = (0.0..=MOST).contains(&count) && count.fract() == 0.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a whole number of this range"
        )]
        is_count.then_some(count as u64)
    });
    count.filter(|count| *count <= u64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn usage(chunks: &[Value]) -> Option<[Option<u64>; 5]> {
        let mut counted = Counted::default();
        for chunk in chunks {
            counted.take(chunk);
        }
        let u = counted.usage()?;
        Some([
            u.prompt,
            u.completion,
            u.cache_read,
            u.cache_write,
            u.reasoning,
        ])
    }

    fn check(chunks: &[Value], expected: [Option<u64>; 5]) {
        assert_eq!(usage(chunks), Some(expected), "{chunks:?}");
    }

    #[test]
    fn an_absent_count_is_none_and_never_zero() {
        for nothing in [
            json!(null),
            json!({}),
            json!([]),
            json!({"prompt_tokens": -1, "completion_tokens": "2"}),
            json!({"prompt_tokens": 1.5, "completion_tokens": 1e300}),
            json!({"total_tokens": 18}),
        ] {
            assert_eq!(usage(&[json!({"usage": nothing})]), None, "{nothing}");
        }
        let zero = json!({"usage": {"prompt_tokens": 0}});
        check(&[zero], [Some(0), None, None, None, None]);
    }

    #[test]
    fn each_vendors_form_is_read() {
        let all = |usage: Value| json!({"usage": usage});
        let base = json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18});
        let with = |more: Value| {
            let mut usage = base.as_object().unwrap().clone();
            usage.extend(more.as_object().unwrap().clone());
            all(Value::Object(usage))
        };
        let read = [Some(11), Some(7), Some(8), None, None];
        for cached in [
            json!({"prompt_tokens_details": {"cached_tokens": 8}}),
            json!({"prompt_cache_hit_tokens": 8, "prompt_cache_miss_tokens": 3}),
            json!({"cache_read_input_tokens": 8}),
            json!({"cached_tokens": 8}),
            json!({"cached_tokens": 8, "prompt_tokens_details": {"cached_tokens": 0}}),
        ] {
            check(&[with(cached)], read);
        }
        let written = with(json!({"cache_read_input_tokens": 8, "cache_creation_input_tokens": 2}));
        check(&[written], [Some(11), Some(7), Some(8), Some(2), None]);
        let floats = all(json!({"prompt_tokens": 11.0, "completion_tokens": 7.0}));
        check(&[floats], [Some(11), Some(7), None, None, None]);
        let plain = [Some(11), Some(7), None, None, None];
        check(&[json!({"x_groq": {"usage": base}})], plain);
        check(&[json!({"choices": [{"usage": base}]})], plain);
        // Anthropic's own names count the cached tokens beside the others.
        let anthropic =
            all(json!({"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 8}));
        check(&[anthropic], read);
    }

    #[test]
    fn parts_are_joined_and_zeros_at_the_end_erase_nothing() {
        let part = |usage: Value| json!({"usage": usage});
        check(
            &[
                part(json!({"prompt_tokens": 11, "completion_tokens": 0})),
                part(json!({"completion_tokens": 3})),
                part(json!({"completion_tokens": 7})),
                part(json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})),
                part(json!(null)),
            ],
            [Some(11), Some(7), None, None, None],
        );
    }

    #[test]
    fn what_stands_in_the_total_alone_is_added() {
        let counted = |more: Value, expected: [Option<u64>; 5]| {
            let mut usage = json!({"prompt_tokens": 11, "completion_tokens": 7});
            let fields = usage.as_object_mut().unwrap();
            fields.extend(more.as_object().unwrap().clone());
            check(&[json!({"usage": usage})], expected);
        };
        let thought = |tokens: u64, total: u64| json!({"total_tokens": total, "completion_tokens_details": {"reasoning_tokens": tokens}});
        counted(thought(5, 18), [Some(11), Some(7), None, None, Some(5)]);
        counted(thought(5, 23), [Some(11), Some(12), None, None, Some(5)]);
        counted(
            json!({"total_tokens": 40}),
            [Some(11), Some(29), None, None, None],
        );
        counted(
            json!({"total_tokens": 26, "cache_read_input_tokens": 8}),
            [Some(19), Some(7), Some(8), None, None],
        );
    }
}
