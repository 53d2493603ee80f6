//! What checks decide, in which order, and what becomes of one that fails.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn judged(guardrails: &Value, point: Point, text: &str) -> Outcome {
    judged_for(
        guardrails,
        &Subject {
            point,
            text,
            tool: Some("send"),
        },
    )
}

fn judged_for(guardrails: &Value, subject: &Subject<'_>) -> Outcome {
    guards(guardrails).judge(subject)
}

fn guards(guardrails: &Value) -> Guards {
    let policy = Policy {
        origin: CheckOrigin::Agent,
        version: None,
        guardrails,
        streaming: Streaming::Held,
    };
    Guards::new(&Cache::default(), &[policy])
}

fn verdicts(outcome: &Outcome) -> Vec<Verdict> {
    outcome.made.iter().map(|made| made.verdict).collect()
}

#[test]
fn json_stays_json_and_the_rest_stays_as_it_is() {
    let redact = json!([{"builtin": "pii", "at": ["tool.result"], "action": "redact"}]);
    for (text, expected) in [
        (
            r#"{"card": "4111 1111 1111 1111",  "n": 1.50}"#,
            Some(r#"{"card": "[card]",  "n": 1.50}"#),
        ),
        (r#"[4111111111111111, 2]"#, Some(r#"["[card]", 2]"#)),
        // Written with escapes.
        (
            r#"{"a\n": "\u0034111111111111111"}"#,
            Some(r#"{"a\n": "[card]"}"#),
        ),
        (
            r#"{"mail ada@example.com": "ü\"\\"}"#,
            Some(r#"{"mail [email]": "ü\"\\"}"#),
        ),
        (" pay 4111111111111111", Some(" pay [card]")),
        (r#"{"n": 41111111, "s": "\ud800"}"#, None),
        ("ünï 1 \"", None),
    ] {
        let outcome = judged(&redact, Point::ToolResult, text);
        assert_eq!(outcome.text.as_deref(), expected, "{text}");
        assert!(outcome.blocked.is_none(), "{text}");
        let verdict = if expected.is_some() {
            Verdict::Redact
        } else {
            Verdict::Allow
        };
        assert_eq!(verdicts(&outcome), [verdict], "{text}");
    }
}

#[test]
fn what_stands_across_the_parts_of_json_is_blocked_and_not_half_redacted() {
    let redact = json!([{"builtin": "pattern", "at": ["output"], "action": "redact", "config": {"patterns": ["a\",\"b"]}}]);
    let outcome = judged(&redact, Point::Output, r#"["a","b"]"#);
    assert_eq!(verdicts(&outcome), [Verdict::Failed]);
    assert!(outcome.blocked.is_some() && outcome.text.is_none());
}

#[test]
fn each_check_judges_what_the_one_before_left_until_one_blocks() {
    let pattern = |name: &str, pattern: &str, action: &str| json!({"builtin": "pattern", "name": name, "at": ["output"], "action": action, "config": {"patterns": [pattern]}});
    let chain = json!([
        pattern("one", "red", "redact"),
        pattern("two", "red", "block"),
        pattern("three", "blue", "block"),
        pattern("four", "x", "block"),
    ]);
    let outcome = judged(&chain, Point::Output, "red");
    assert_eq!(outcome.text.as_deref(), Some("[pattern]"));
    let verdict = verdicts(&outcome);
    assert_eq!(
        verdict,
        [
            Verdict::Redact,
            Verdict::Allow,
            Verdict::Allow,
            Verdict::Allow
        ]
    );
    assert_ne!(outcome.made[0].digest, outcome.made[1].digest);
    let outcome = judged(&chain, Point::Output, "red blue x");
    assert_eq!(outcome.blocked.as_ref().unwrap().name, "three");
    assert_eq!(outcome.made.len(), 3, "the first block ends it");
    assert!(outcome.text.is_none());
    // At another point nothing applies.
    assert!(judged(&chain, Point::Input, "red blue x").made.is_empty());
}

#[test]
fn what_becomes_of_a_block_depends_on_the_point() {
    let blocks = |more: Value| {
        let mut check = json!({"builtin": "secrets", "action": "block"});
        check
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([check])
    };
    let text = "AKIAIOSFODNN7EXAMPLE";
    for (point, usual) in [
        (Point::Input, OnBlock::Fail),
        (Point::Output, OnBlock::Fail),
        (Point::ToolArguments, OnBlock::Tell),
        (Point::ToolResult, OnBlock::Tell),
    ] {
        let outcome = judged(&blocks(json!({"at": [point]})), point, text);
        assert_eq!(outcome.blocked.unwrap().on_block, usual);
        let [made] = &outcome.made[..] else {
            panic!("one check")
        };
        assert_eq!(made.code.as_deref(), Some("cloud key"));
        assert!(!format!("{made:?}").contains("AKIA"), "{made:?}");
    }
    let answer = blocks(json!({"at": ["output"], "onBlock": "answer", "answer": "No."}));
    let blocked = judged(&answer, Point::Output, text).blocked.unwrap();
    assert_eq!(
        (blocked.on_block, blocked.answer.as_deref()),
        (OnBlock::Answer, Some("No."))
    );
    let retry = blocks(json!({"at": ["output"], "onBlock": "retry", "retries": 3}));
    assert_eq!(
        judged(&retry, Point::Output, text).blocked.unwrap().retries,
        3
    );
}

#[test]
fn arguments_fit_a_schema_or_a_reviewer_is_asked() {
    let schema = json!({"properties": {"to": {"pattern": "@example\\.com$"}}, "required": ["to"]});
    let checks = json!([
        {"builtin": "tool-arguments", "at": ["tool.arguments"], "action": "approve",
         "config": {"tool": "send", "schema": schema}, "approval": {"requiredRole": "mail"}},
        {"builtin": "secrets", "at": ["tool.arguments"], "action": "approve"},
    ]);
    let judge = |tool, text| {
        judged_for(
            &checks,
            &Subject {
                point: Point::ToolArguments,
                text,
                tool: Some(tool),
            },
        )
    };
    let fits = r#"{"to": "a@example.com"}"#;
    assert_eq!(
        verdicts(&judge("send", fits)),
        [Verdict::Allow, Verdict::Allow]
    );
    let deep = "[".repeat(300);
    for text in [r#"{"to": "a@evil.example"}"#, "{}", "", "no", &deep] {
        let outcome = judge("send", text);
        assert_eq!(outcome.made[0].verdict, Verdict::Approve, "{text}");
        assert_eq!(outcome.approval.unwrap().required_role, "mail");
    }
    // Of another tool nothing is asked but by the second.
    assert_eq!(verdicts(&judge("read", "{}")), [Verdict::Allow]);
    // One approval, of the first that asks.
    let both = judge("send", r#"{"to": "AKIAIOSFODNN7EXAMPLE"}"#);
    assert_eq!(verdicts(&both), [Verdict::Approve, Verdict::Approve]);
    assert_eq!(both.approval.unwrap().required_role, "mail");
}

#[test]
fn a_check_that_fails_counts_as_its_author_said() {
    let long = "a".repeat(4 * 1024 * 1024 + 1);
    let unknown = json!({"builtin": "of-tomorrow", "at": ["input"], "action": "block"});
    let misread = json!({"builtin": "pattern", "at": ["input"], "action": "block", "config": {"patterns": ["("]}});
    let whole = json!({"builtin": "secrets", "at": ["input"], "action": "block"});
    for (check, text) in [(&unknown, "a"), (&misread, "a"), (&whole, long.as_str())] {
        for (on_error, is_blocked) in [("block", true), ("allow-unsafely", false)] {
            let mut check = check.clone();
            check["onError"] = json!(on_error);
            let outcome = judged(&json!([check]), Point::Input, text);
            assert_eq!(verdicts(&outcome), [Verdict::Failed], "{check}");
            assert_eq!(outcome.blocked.is_some(), is_blocked, "{check}");
            assert_eq!(outcome.made[0].on_error.unwrap().text(), on_error);
            assert!(outcome.made[0].reason.is_some());
        }
        // Where nothing was said, it blocks.
        assert!(
            judged(&json!([check]), Point::Input, text)
                .blocked
                .is_some()
        );
    }
    // At a point that it does not name it is not asked, unless nobody can tell.
    assert!(
        judged(&json!([unknown]), Point::Output, "a")
            .made
            .is_empty()
    );
    let unreadable = json!([{"later": true}]);
    assert!(judged(&unreadable, Point::Output, "a").blocked.is_some());
}

#[test]
fn a_check_that_crashes_blocks() {
    let crashed = Compiled::crashing();
    assert_eq!(crashed.judge(&"a".into()), Err("The check crashed."));
}

#[test]
fn text_is_held_where_one_origin_says_so() {
    let output = json!([{"builtin": "secrets", "at": ["output"], "action": "block"}]);
    let input = json!([{"builtin": "secrets", "at": ["input"], "action": "block"}]);
    let held = |policies: &[(&Value, Streaming)]| {
        let policies: Vec<Policy<'_>> = policies
            .iter()
            .map(|(guardrails, streaming)| Policy {
                origin: CheckOrigin::Tenant,
                version: Some(1),
                guardrails,
                streaming: *streaming,
            })
            .collect();
        Guards::new(&Cache::default(), &policies).holds_text()
    };
    assert!(!held(&[]));
    assert!(held(&[(&output, Streaming::Held)]));
    assert!(!held(&[(&output, Streaming::Unchecked)]));
    assert!(!held(&[(&input, Streaming::Held)]));
    // An agent's word does not count for a policy.
    assert!(held(&[
        (&output, Streaming::Held),
        (&output, Streaming::Unchecked)
    ]));
    assert!(!held(&[
        (&input, Streaming::Held),
        (&output, Streaming::Unchecked)
    ]));
}

fn all() -> Value {
    let check = |builtin: &str| json!({"builtin": builtin, "at": ["output"], "action": "redact"});
    json!([
        check("pii"),
        check("secrets"),
        check("links"),
        check("hidden-text")
    ])
}

proptest! {
    #[test]
    fn a_text_without_a_match_is_left_byte_for_byte_and_json_stays_json(text in json_or_text()) {
        let outcome = judged(&all(), Point::Output, &text);
        let is_json = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if outcome.made.iter().all(|made| made.verdict == Verdict::Allow) {
            prop_assert!(outcome.text.is_none());
        }
        if let Some(changed) = &outcome.text && text.starts_with('{') {
            prop_assert_eq!(is_json(&text), is_json(changed), "{} -> {}", text, changed);
        }
    }
}

fn json_or_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("4111111111111111".to_owned()),
        Just("ada@example.com".to_owned()),
        Just("https://evil.example/ü".to_owned()),
        Just("\u{202E}".to_owned()),
        "\\PC{0,20}",
    ];
    let pieces = proptest::collection::vec(piece, 0..6);
    prop_oneof![
        pieces.clone().prop_map(|pieces| pieces.concat()),
        pieces.prop_map(|pieces| {
            let fields = pieces
                .iter()
                .enumerate()
                .map(|(at, piece)| (format!("{at}{piece}"), json!(piece)));
            Value::Object(fields.collect()).to_string()
        }),
    ]
}
