//! Whether an error says that a conversation is longer than the model takes, in the words of each vendor, and by how much.

use serde_json::Value;

/// A conversation that is longer than the model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TooLong {
    /// The tokens that the server takes, if it says so.
    pub limit: Option<u64>,
    /// The tokens that it was sent, if it says so. More than `limit`, where both are known.
    pub sent: Option<u64>,
}

/// Numbers below are no counts of tokens; nor are those above.
const LEAST: u64 = 16;
const MOST: u64 = 1_000_000_000;
/// Numbers of a message that are looked at.
const NUMBERS_MOST: usize = 32;

/// Texts that by themselves say it. In lower case.
const PHRASES: [&str; 37] = [
    "context length",
    "context_length",
    "contextlength",
    "context window",
    "context_window",
    "context size",
    "context_size",
    "context limit",
    "max_prompt_tokens",
    "max_model_len",
    "max_seq_len",
    "max message tokens",
    "max sequence length",
    "maximum sequence length",
    "maximum prompt length",
    "maximum input length",
    "maximum allowed input length",
    "maximum allowed number of input tokens",
    "model token limit",
    "prompt is too long",
    "prompt too long",
    "prompt_too_long",
    "prompt exceeds max length",
    "input is too long",
    "input too long",
    "input_too_long",
    "conversation is too long",
    "range of input length",
    "too many input tokens",
    "reduce the length of the messages",
    "reduce the length of the prompt",
    "reduce your prompt",
    "request too large for",
    "fit in the context",
    "token limit exceeded",
    "tokens_limit_reached",
    "exceeds context",
];
/// Otherwise one of each group.
const SUBJECTS: [&str; 6] = [
    "prompt",
    "input",
    "context",
    "conversation",
    "messages",
    "request",
];
const UNITS: [&str; 2] = ["token", "context"];
const EXCESSES: [&str; 10] = [
    "exceed",
    "too long",
    "too large",
    "too many",
    "longer than",
    "overflow",
    "must be <=",
    "must have less than",
    "larger than",
    "greater than",
];
/// Texts of errors that are about something else.
const OTHERS: [&str; 8] = [
    "string too long",
    "array too long",
    "string_above_max_length",
    "array_above_max_length",
    "completion tokens, whereas",
    "output tokens",
    "per minute",
    "per day",
];

/// Whether an error says it. `text`: what it says.
pub(super) fn of(status: Option<u16>, value: &Value, text: &str) -> Option<TooLong> {
    let names = names(value);
    let said = format!("{names} {text}").to_ascii_lowercase();
    let says = |list: &[&str]| list.iter().any(|one| said.contains(one));
    // Tokens a minute. Only a request that is larger than all of them will never be taken.
    let is_found = match status {
        Some(429) => said.contains("request too large"),
        Some(413) => true,
        _ => says(&PHRASES) || says(&SUBJECTS) && says(&UNITS) && says(&EXCESSES) && !says(&OTHERS),
    };
    if !is_found {
        return None;
    }
    let error = match &value["error"] {
        Value::Object(_) => &value["error"],
        _ => value,
    };
    let counted = TooLong {
        limit: count(&error["n_ctx"]),
        sent: count(&error["n_prompt_tokens"]),
    };
    let worded = numbers_of(&text.to_ascii_lowercase());
    Some(match counted {
        TooLong { limit: None, .. } => worded,
        counted => counted,
    })
}

fn count(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .filter(|count| (LEAST..=MOST).contains(count))
}

/// The error's names of itself.
fn names(value: &Value) -> String {
    let error = &value["error"];
    let places = [
        &error["code"],
        &error["type"],
        &value["code"],
        &value["type"],
    ];
    let names: Vec<&str> = places.into_iter().filter_map(Value::as_str).collect();
    names.join(" ")
}

/// A number of a text, and where it begins and ends.
struct Number {
    count: u64,
    start: usize,
    end: usize,
}

fn numbers_of(text: &str) -> TooLong {
    let all = numbers(text);
    let mut counts: Vec<u64> = Vec::new();
    for number in &all {
        if !counts.contains(&number.count) {
            counts.push(number.count);
        }
    }
    let by_words = || {
        let starts = std::iter::once(0).chain(all.iter().map(|number| number.end));
        let mut between = starts.zip(&all);
        let found = between.find(|(before, number)| names_limit(&text[*before..number.start]));
        found.map(|(_, number)| number.count)
    };
    let limit = match counts.len() {
        0 => return TooLong::default(),
        2 => counts.iter().min().copied(),
        _ => above(text, &all).or_else(by_words),
    };
    let Some(limit) = limit else {
        let sent = counts.first().copied().filter(|_| counts.len() == 1);
        return TooLong { limit: None, sent };
    };
    let others = counts.iter().filter(|count| **count != limit);
    // The parts of what was sent, or all of it among them.
    let (most, sum) = others.fold((0, 0), |(most, sum), count| {
        (count.max(&most).to_owned(), sum + count)
    });
    let sent = [most, sum].into_iter().find(|sent| *sent > limit);
    TooLong {
        limit: Some(limit),
        sent,
    }
}

/// The number after a `>`.
fn above(text: &str, all: &[Number]) -> Option<u64> {
    let is_above = |number: &&Number| text[..number.start].trim_ascii_end().ends_with('>');
    all.iter().find(is_above).map(|number| number.count)
}

/// Whether the words before a number call it a limit.
fn names_limit(words: &str) -> bool {
    const LIMITS: [&str; 12] = [
        "limit",
        "maximum",
        "max ",
        "max_",
        "<=",
        "less than",
        "length is",
        "length of",
        "window",
        "at most",
        "should be",
        "exceed ",
    ];
    LIMITS.iter().any(|limit| words.contains(limit))
}

/// The whole numbers of a text that stand by themselves, such as `131072`, `131,072` and not `gpt-4-32768`.
fn numbers(text: &str) -> Vec<Number> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() && found.len() < NUMBERS_MOST {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes, at) {
            at += 1;
        }
        let before = start.checked_sub(1).map(|before| bytes[before]);
        let joins = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/' | b'@')
        };
        let is_alone = !before.is_some_and(joins)
            && !bytes
                .get(at)
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let digits: String = text[start..at]
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        let number = digits
            .parse()
            .ok()
            .filter(|count| (LEAST..=MOST).contains(count));
        if let (Some(count), true) = (number, is_alone) {
            found.push(Number {
                count,
                start,
                end: at,
            });
        }
    }
    found
}

/// Whether a number goes on: with a digit, or with a comma before three of them.
fn is_part(bytes: &[u8], at: usize) -> bool {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    is_digit(at) || bytes[at] == b',' && (1..4).all(|next| is_digit(at + next)) && !is_digit(at + 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Option<(Option<u64>, Option<u64>)> {
        let found = of(Some(400), &Value::Null, text);
        found.map(|found| (found.limit, found.sent))
    }

    /// What each vendor says, the limit and what was sent.
    const SAID: &[(&str, Option<u64>, Option<u64>)] = &[
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000.",
            Some(8192),
            Some(9000),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the \
                 messages, 1000 in the completion). Please reduce the length of the messages or completion.",
            Some(8192),
            Some(9000),
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 8192 \
                 tokens and your request has 4000 input tokens (5000 > 8192 - 4000).",
            Some(8192),
            Some(9000),
        ),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
            Some(1_200_000),
        ),
        (
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            Some(1_048_576),
            None,
        ),
        ("Input is too long for requested model.", None, None),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            Some(200_000),
            Some(210_000),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
            Some(131_072),
            Some(140_000),
        ),
        (
            "Your request exceeded model token limit: 262144",
            Some(262_144),
            None,
        ),
        (
            "the request exceeds the available context size. try increasing the context size",
            None,
            None,
        ),
        (
            "Prompt contains 50000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32_768),
            Some(50_000),
        ),
        (
            "prompt is too long: 210,000 tokens > 200,000 maximum",
            Some(200_000),
            Some(210_000),
        ),
        (
            "prompt token count of 70000 exceeds the limit of 64000",
            Some(64_000),
            Some(70_000),
        ),
        (
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
            Some(131_040),
            Some(131_393),
        ),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 100 `max_new_tokens`",
            Some(4096),
            Some(5000),
        ),
        (
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
            Some(1024),
            Some(2000),
        ),
        (
            "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
            Some(4096),
            Some(5000),
        ),
        (
            "too many tokens: total number of tokens in the prompt cannot exceed 4081",
            Some(4081),
            None,
        ),
        (
            "prompt too long; exceeded max context length by 4 tokens",
            None,
            None,
        ),
        (
            "Range of input length should be [1, 30720]",
            Some(30_720),
            None,
        ),
        (
            "Total tokens of image and text exceed max message tokens",
            None,
            None,
        ),
        (
            "Request too large for model `mixtral-8x7b-32768` in organization `o` on tokens per minute (TPM): Limit 6000, \
                 Requested 7000",
            Some(6000),
            Some(7000),
        ),
        (
            "Current length is 9000 while limit is 8192. Please reduce the length of the messages",
            Some(8192),
            Some(9000),
        ),
    ];

    #[test]
    fn each_vendors_words_and_numbers_are_read() {
        for (text, limit, sent) in SAID {
            assert_eq!(read(text), Some((*limit, *sent)), "{text}");
        }
    }

    #[test]
    fn names_and_counts_of_the_error_are_read() {
        for said in [
            "the prompt (9000 tokens) does not fit in the context (8192)",
            "Input exceeds context",
            "Token limit exceeded",
            "tokens_limit_reached",
        ] {
            assert!(read(said).is_some(), "{said}");
        }
        let error = json!({"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 5000, "n_ctx": 4096}});
        let found = TooLong {
            limit: Some(4096),
            sent: Some(5000),
        };
        assert_eq!(of(Some(400), &error, "x"), Some(found));
        let error = json!({"error": {"code": "context_length_exceeded"}});
        assert_eq!(of(None, &error, ""), Some(TooLong::default()));
    }

    #[test]
    fn other_errors_are_others() {
        for text in [
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40.",
            "max_tokens is too large: 32768. This model supports at most 16384 completion tokens, whereas you provided 32768.",
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens",
            "extra fields not permitted",
            "The model does not exist.",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let busy =
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.";
        assert_eq!(of(Some(429), &Value::Null, busy), None);
        assert_eq!(
            of(
                Some(429),
                &Value::Null,
                "Too many input tokens, please wait"
            ),
            None
        );
    }
}
