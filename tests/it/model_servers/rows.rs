//! The rows: what becomes of a run with each recording.

use super::Row;
use std::time::Duration;

const PARIS: &str = r#"weather {"city":"Paris"}"#;
const ROME: &str = r#"weather {"city":"Rome"}"#;
const NOW: &str = "now {}";
const HELLO: &str = "Hello there.";
/// Once the recording is over.
const LAST: &str = "At last.";

pub(super) fn rows() -> Vec<Row> {
    [calls(), ends(), usage(), framing(), content()]
        .into_iter()
        .flatten()
        .collect()
}

fn calls() -> Vec<Row> {
    let one = |file| Row::calls(file, &[PARIS]);
    vec![
        one("A01-openai"),
        Row::calls("A02-no-index-ids", &[PARIS, ROME]),
        Row::calls("A03-index0-distinct-ids", &[PARIS, ROME]),
        Row::calls("A04-index0-empty-ids", &[PARIS, ROME]),
        one("A06-id-changes-per-fragment"),
        one("A06b-new-id-each-fragment-name-null"),
        one("A07-id-and-name-repeated"),
        one("A08-arguments-object"),
        one("A09-name-null-later"),
        one("A10-all-in-last-chunk"),
        one("A11-finish-stop"),
        one("A13-no-id-two-steps"),
        Row::calls("A15-empty-args", &[NOW]),
        Row::calls("A15b-no-arguments-field", &[NOW]),
        Row::calls("A16-null-text-args", &[NOW]),
        one("A17-double-encoded"),
        Row::calls("A19-second-call-index0", &[PARIS, ROME]),
        one("A20-legacy-function_call").usage(11, 7, 0),
        Row::calls(
            "A22-five-parallel",
            &[
                r#"weather {"city":"A"}"#,
                r#"weather {"city":"B"}"#,
                r#"weather {"city":"C"}"#,
                r#"weather {"city":"D"}"#,
                r#"weather {"city":"E"}"#,
            ],
        ),
        Row::calls(
            "A22b-three-interleaved",
            &[
                r#"weather {"city":"A"}"#,
                r#"weather {"city":"B"}"#,
                r#"weather {"city":"C"}"#,
            ],
        ),
        one("A23-index-from-1"),
        one("A24-index-string"),
        one("A28-text-then-call"),
        one("A29-whole-json"),
        one("A30-null-fields"),
        one("A31-trailing-closing-tag"),
        one("A32-name-functions-prefix"),
        one("X12-name-space"),
        Row::calls("X14-two-calls-same-index-name-starts", &[PARIS, ROME]),
    ]
}

fn ends() -> Vec<Row> {
    let quick = |file, scale| Row {
        scale,
        within: Some(Duration::from_secs(8)),
        ..Row::says(file, HELLO)
    };
    vec![
        Row::says("B30-finish-empty-each", HELLO),
        Row::says("B31-finish-empty-then-reset", LAST).requests(2),
        Row::says("B32-finish-null-done", HELLO),
        Row::says("B33-no-finish-no-done", HELLO).requests(2),
        Row {
            is_cut: true,
            ..Row::says("B34-length", HELLO)
        },
        Row::fails("B35-content-filter", "content filter"),
        Row::says("B36-insufficient_system_resource", LAST).requests(2),
        Row::says("B37-finish-error", LAST).requests(2),
        Row::says("B39-malformed-function-call", LAST).requests(2),
        Row::says("B40-empty-stop", LAST).requests(2),
        Row::says("B51-done-missing", HELLO),
        quick("B52-open-after-finish", 0.2),
        quick("B52b-open-after-finish-pings", 0.25),
        Row::says("B53-data-after-done", HELLO),
        Row::says("C96-reasoning-only", LAST).requests(2),
    ]
}

fn usage() -> Vec<Row> {
    vec![
        Row::says("B42-usage-null-then-chunk", HELLO).usage(11, 7, 0),
        Row::says("B43-usage-each", HELLO).usage(11, 7, 0),
        Row::says("B44-usage-in-parts", HELLO).usage(11, 7, 0),
        Row::says("B45b-total-only-each", HELLO).usage(11, 7, 0),
        Row::says("B46-deepseek-cache", HELLO).usage(11, 7, 8),
        Row::says("B46b-openai-cache", HELLO).usage(11, 7, 8),
        Row::says("B49-usage-floats", HELLO).usage(11, 7, 0),
        Row::says("B50-no-usage", HELLO).usage(0, 0, 0),
        Row::says("B55-anthropic-cache_read", HELLO).usage(11, 7, 8),
        Row::says("Y09-moonshot-choice-usage-cached", HELLO).usage(11, 7, 8),
    ]
}

fn framing() -> Vec<Row> {
    let hello = |file| Row::says(file, HELLO);
    vec![
        hello("C60-crlf").usage(11, 7, 0),
        hello("C60b-cr").usage(11, 7, 0),
        hello("C61-no-space"),
        hello("C62-openrouter-comments"),
        hello("C63-single-newline").usage(11, 7, 0),
        hello("C64-last-without-blank").usage(11, 7, 0),
        Row::says("C65-bytes-one-by-one", "Grüße 😀 日本"),
        Row::says("C66b-lone-surrogate", "Hi \u{fffd} there"),
        hello("C68-gzip").usage(11, 7, 0),
        hello("C69-http10"),
        hello("C70-trailers"),
        hello("C71-bom"),
        hello("C72-big-headers"),
        hello("C72b-120-headers"),
        hello("C73-json-pings"),
        hello("C74-event-names"),
        hello("C75-whole-json").usage(11, 7, 0),
        hello("C76-blanks-before-json"),
        Row::fails("C77-html-200", "web page"),
        hello("C78-ndjson"),
        hello("C80-error-after-text").requests(2),
        hello("C81-tgi-error-event").requests(2),
        hello("C84-reset-mid").requests(2),
        Row::calls("C85-closes-after-answer", &[PARIS]),
        hello("C99-chunk-extension"),
        Row::fails("D132-error-200-json", "model is not ready for you"),
    ]
}

fn content() -> Vec<Row> {
    let hello = |file| Row::says(file, HELLO);
    let thinks = |file, reasoning| Row {
        reasoning: Some(reasoning),
        ..Row::says(file, HELLO)
    };
    vec![
        hello("C87-message-and-delta").usage(11, 7, 0),
        hello("C89-content-parts"),
        thinks("C90-mistral-thinking", "hmm"),
        hello("C91-two-choices"),
        hello("C92-role-empty"),
        Row::says("C93-refusal", "I cannot do this."),
        thinks("C94-reasoning_content", "hmmhmm"),
        thinks("C95-think-tags", "\nsecret plan\n"),
        hello("C97-index-null"),
        hello("C98-azure-filter-chunks"),
    ]
}
