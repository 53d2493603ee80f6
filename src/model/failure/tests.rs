//! What failures say, and whether they are tried again.

use super::*;
use serde_json::json;

fn status(status: u16, body: &str) -> ModelFailure {
    ModelFailure::status(status, body.as_bytes(), Hidden::default())
}

#[test]
fn each_status_says_what_it_is_and_whether_to_try_again() {
    for (code, says, retryable) in [
        (302, "not followed", false),
        (400, "refuses the request", false),
        (401, "does not accept the API key", false),
        (403, "does not allow", false),
        (404, "does not know", false),
        (408, "refuses", true),
        (413, "too large", false),
        (422, "refuses", false),
        (429, "asked too much", true),
        (500, "has a fault", true),
        (503, "has a fault", true),
        (529, "has a fault", true),
    ] {
        let failure = status(code, r#"{"error":{"message":"because"}}"#);
        assert!(
            failure.why.message.contains(says),
            "{}",
            failure.why.message
        );
        assert!(
            failure
                .why
                .message
                .contains(&format!("(HTTP {code}): because."))
        );
        assert_eq!(failure.retryable, retryable, "{code}");
        assert_eq!(failure.status, Some(code));
    }
    let quota = r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#;
    assert!(!status(429, quota).retryable);
    assert!(status(502, "<html>").retryable && !status(404, " <!DOCTYPE").retryable);
}

#[test]
fn a_prompt_that_is_too_long_is_explained_and_not_sent_again() {
    for (code, body) in [
        (
            400,
            r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens."}}"#,
        ),
        (
            400,
            r#"{"error":{"type":"exceed_context_size_error","message":"x"}}"#,
        ),
        (
            500,
            r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        ),
        (
            400,
            r#"{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
        ),
    ] {
        let failure = status(code, body);
        assert!(failure.why.message.contains("contextWindow"), "{body}");
        assert!(!failure.retryable, "{body}");
    }
    let inside = json!({"error": {"message": "x", "code": "context_length_exceeded"}});
    let failure = ModelFailure::inside(&inside, Hidden::default()).unwrap();
    assert!(failure.why.message.contains("contextWindow") && !failure.retryable);
    assert!(!status(400, "words").why.message.contains("contextWindow"));
}

#[test]
fn words_are_found_in_every_form() {
    for body in [
        json!({"error": {"message": "words"}}),
        json!({"error": "words"}),
        json!({"object": "error", "message": "words"}),
        json!({"detail": "words"}),
        json!({"detail": [{"msg": "words"}]}),
        json!([{"error": {"message": "words"}}]),
        json!({"message": {"detail": [{"msg": "words"}]}}),
        json!({"errors": [{"message": "words"}]}),
        json!({"error": {"metadata": {"raw": "{\"error\":{\"message\":\"words\"}}"}}}),
        json!({"base_resp": {"status_code": 1, "status_msg": "words"}}),
        json!({"msg": "words"}),
        json!("words"),
    ] {
        assert!(
            status(400, &body.to_string())
                .why
                .message
                .ends_with(": words.")
        );
    }
    assert!(status(400, "words").why.message.ends_with(": words."));
    assert!(status(400, "").why.message.ends_with("(HTTP 400)."));
    let empty = r#"{"error":{"message":""}}"#;
    assert!(status(400, empty).why.message.ends_with("(HTTP 400)."));
}

#[test]
fn words_are_one_bounded_line_without_the_key() {
    let key = Secret::new("sk-0123456789abcdef");
    let body = json!({"error": {"message":
        format!("bad\r\nkey {} or\u{0} sk-01234****cdef, {}", key.expose(), "é".repeat(1200))}});
    let hidden = Hidden {
        key: Some(&key),
        ..Hidden::default()
    };
    let failure = ModelFailure::status(401, body.to_string().as_bytes(), hidden);
    assert!(
        failure
            .why
            .message
            .contains("bad key [redacted] or [redacted] é"),
        "{}",
        failure.why.message
    );
    assert!(failure.why.message.chars().count() < 1100);
    assert!(!failure.why.message.contains("sk-"));
}

#[test]
fn an_error_inside_is_seen() {
    let inside = |value: Value| ModelFailure::inside(&value, Hidden::default());
    assert_eq!(inside(json!({"choices": [], "error": null})), None);
    for (value, retryable) in [
        (
            json!({"error": {"message": "x", "type": "server_error"}}),
            true,
        ),
        (json!({"error": {"message": "x", "code": 429}}), true),
        (json!({"error": {"message": "x", "code": "400"}}), false),
        (
            json!({"error": {"message": "x", "type": "invalid_request_error"}}),
            false,
        ),
        (json!({"error": "x"}), true),
        (
            json!({"object": "error", "message": "x", "code": 404}),
            false,
        ),
        (json!({"error": {}}), true),
    ] {
        let failure = inside(value.clone()).unwrap();
        assert_eq!(failure.retryable, retryable, "{value}");
    }
}

#[test]
fn all_that_an_error_says_is_shown_with_its_place() {
    for (body, said) in [
        (
            json!({"detail": [
                {"loc": ["body", "seed"], "msg": "extra fields not permitted"},
                {"loc": ["body", "messages", 0, "content"], "msg": "none is not allowed"},
            ]}),
            "extra fields not permitted (body.seed); none is not allowed (body.messages.0.content).",
        ),
        (
            json!({"error": {"message": "Provider returned error", "metadata": {"raw": "rate-limited upstream", "provider_name": "P"}}}),
            "Provider returned error; rate-limited upstream.",
        ),
        (
            json!({"error": {"message": "Invalid value.", "param": "tools[0].name", "code": "bad"}}),
            "Invalid value. (tools[0].name).",
        ),
        (
            json!({"error": {"message": "Failed to call.", "failed_generation": "<function=weather>"}}),
            "Failed to call.; failed_generation: <function=weather>.",
        ),
        (
            json!({"error": "Bad Request", "message": "no such field", "status": 400}),
            "Bad Request; no such field.",
        ),
        (
            json!({"error": {"message": "Invalid.", "details": [{"fieldViolations": [{"field": "a.b", "description": "unknown"}]}]}}),
            "Invalid.; unknown (a.b).",
        ),
        (
            json!({"errors": {"model": ["is not known"]}}),
            "model: is not known.",
        ),
        (
            json!({"error": {"code": "x_1", "status": 7}}),
            "code: x_1; status: 7.",
        ),
        (json!({"nothing": {"known": 1}, "why": "so"}), "why: so."),
    ] {
        let message = status(400, &body.to_string()).why.message;
        assert_eq!(
            message,
            format!("The model provider refuses the request (HTTP 400): {said}")
        );
    }
    let event = status(
        500,
        "event: error\ndata: {\"error\": {\"message\": \"words\"}}\n\n",
    );
    assert!(
        event.why.message.ends_with(": words."),
        "{}",
        event.why.message
    );
}

#[test]
fn a_web_page_is_named_by_its_title() {
    let page = status(
        502,
        "<!DOCTYPE html><html><head><TITLE class=x>502 Bad\nGateway</TITLE>",
    );
    assert_eq!(
        page.why.message,
        "The model provider answered with a web page (HTTP 502): 502 Bad Gateway."
    );
    assert!(!page.why.summary.as_str().contains("Gateway"));
    let page = status(404, "\u{feff}<html><h1>Not here</h1>");
    assert!(
        page.why
            .message
            .ends_with("Not here. Is its base URL right?"),
        "{}",
        page.why.message
    );
}

#[test]
fn what_may_pass_is_tried_again() {
    let groq = json!({"error": {"message": "x", "type": "invalid_request_error", "code": "tool_use_failed"}});
    let moonshot = json!({"error": {"message": "x", "type": "exceeded_current_quota_error"}});
    for (code, body, retryable) in [
        (400, &groq, true),
        (424, &json!({}), true),
        (
            498,
            &json!({"error": {"message": "x", "type": "capacity"}}),
            true,
        ),
        (501, &json!({}), false),
        (520, &json!({}), true),
        (429, &moonshot, false),
        (
            429,
            &json!({"error": {"message": "Insufficient balance"}}),
            false,
        ),
    ] {
        assert_eq!(
            status(code, &body.to_string()).retryable,
            retryable,
            "{code} {body}"
        );
    }
}

#[test]
fn a_server_that_loads_its_model_is_recognised() {
    for (code, body, loads) in [
        (
            503,
            json!({"error": {"message": "Loading model", "code": 503}}),
            true,
        ),
        (500, json!({"error": "llm server loading model"}), true),
        (
            503,
            json!({"error": "Model x is currently loading", "estimated_time": 20.0}),
            true,
        ),
        (503, json!({"error": "x", "estimated_time": 20.0}), true),
        (
            500,
            json!({"error": "error loading model: out of memory"}),
            false,
        ),
        (500, json!({"error": "model loading failed"}), false),
        (503, json!({"error": "busy"}), false),
        (400, json!({"error": "the model is loading"}), false),
    ] {
        assert_eq!(status(code, &body.to_string()).is_loading, loads, "{body}");
    }
    let inside = json!({"error": {"message": "Loading model", "code": 503}});
    assert!(
        ModelFailure::inside(&inside, Hidden::default())
            .unwrap()
            .is_loading
    );
}

#[test]
fn an_error_inside_is_seen_in_other_forms() {
    let inside = |value: Value| ModelFailure::inside(&value, Hidden::default());
    for value in [
        json!({"type": "ping"}),
        json!({"choices": [], "error": ""}),
        json!({"id": "x", "choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}}),
        json!({"message": "keep-alive"}),
        json!({"id": "x", "detail": "of an answer"}),
    ] {
        assert_eq!(inside(value.clone()), None, "{value}");
    }
    for (value, says, retryable) in [
        (
            json!({"id": "x", "choices": null, "base_resp": {"status_code": 1004, "status_msg": "login fail"}}),
            "login fail",
            false,
        ),
        (
            json!({"base_resp": {"status_code": 1002, "status_msg": "slow"}}),
            "slow",
            true,
        ),
        (
            json!([{"error": {"code": 503, "message": "away"}}]),
            "away",
            true,
        ),
        (json!({"code": 400, "msg": "wrong"}), "wrong", false),
        (json!({"detail": "gone"}), "gone", true),
        (
            json!({"error": {"message": "x", "code": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "3s"}]}}),
            "x",
            true,
        ),
    ] {
        let failure = inside(value.clone()).unwrap();
        assert!(
            failure.why.message.contains(says),
            "{}",
            failure.why.message
        );
        assert_eq!(failure.retryable, retryable, "{value}");
    }
}

#[test]
fn a_long_conversation_is_told_by_how_much() {
    let failure = status(
        400,
        r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
    );
    assert!(
        failure.why.message.contains("by 10000 tokens"),
        "{}",
        failure.why.message
    );
    assert!(failure.why.summary.as_str().contains("by 10000 tokens"));
    assert_eq!(
        failure.too_long.as_deref(),
        Some(&TooLong {
            limit: Some(200_000),
            sent: Some(210_000)
        })
    );
    assert!(!failure.retryable);
}

#[test]
fn the_values_of_headers_are_hidden() {
    let header = |value: &str| ("x-key".to_owned(), Secret::new(value));
    let headers = [header("abcdefghijklmnopqrst"), header("on")];
    let hidden = Hidden {
        key: None,
        headers: &headers,
    };
    let body = r#"{"error": "no abcdefghijklmnopqrst nor abcdefgh***, go on"}"#;
    let failure = ModelFailure::status(403, body.as_bytes(), hidden);
    assert!(
        failure
            .why
            .message
            .ends_with(": no [redacted] nor [redacted] go on."),
        "{}",
        failure.why.message
    );
}

#[test]
fn what_a_server_says_is_found_wherever_it_stands() {
    for body in [
        r#"{"fault":{"faultstring":"no room","detail":{"errorcode":"policies.ratelimit"}}}"#,
        r#"{"response":{"error":{"message":"no room"}}}"#,
        r#"{"data":{"message":"no room"}}"#,
        r#"{"error":{"body":{"text":"no room"}}}"#,
        r#"{"error":{"message":{"en":"no room"}}}"#,
        r#"{"choices":[{"error":{"message":"no room"}}]}"#,
        r#"<?xml version="1.0"?><Error><Code>Denied</Code><Message>no room</Message></Error>"#,
        "<html><body>no room here</body></html>",
        "<html><head><title></title><style>p { color: red }</style></head><body><p>no room</p></body></html>",
        "<html><body><script>if (a < b) no()</script><h2>no room</h2></body></html>",
    ] {
        let message = status(400, body).why.message;
        assert!(message.contains("no room"), "{body}: {message}");
        assert!(
            !message.contains("color") && !message.contains("if ("),
            "{message}"
        );
    }
}

#[test]
fn a_server_that_is_starting_is_waited_for() {
    for (words, is_loading) in [
        ("Initializing model", true),
        ("The server is starting", true),
        ("The model is being downloaded", true),
        ("Waiting for the model to load", true),
        ("Failed to start: the engine is initializing", false),
        ("Error loading model", false),
    ] {
        let body = json!({"error": {"message": words}}).to_string();
        assert_eq!(status(503, &body).is_loading, is_loading, "{words}");
    }
}

#[test]
fn a_hostile_error_is_bounded() {
    let many = json!({"errors": vec![json!({"message": "x".repeat(50)}); 5000]});
    let deep = format!("{}1{}", r#"{"error":"#.repeat(120), "}".repeat(120));
    let list = Value::Array(
        (0..5000)
            .map(|n| json!({"msg": format!("{n} wrong")}))
            .collect(),
    );
    for body in [
        many.to_string(),
        deep,
        list.to_string(),
        "[".repeat(60_000),
        "\"".repeat(999),
    ] {
        let message = status(400, &body).why.message;
        assert!(message.chars().count() < 1100, "{}", message.len());
    }
}
