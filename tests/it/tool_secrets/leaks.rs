//! A tool that tells everything it got: nobody is told the secret, and nothing keeps it.

use super::{Turns, put, start};
use crate::harness::{App, Receiver, ToolAnswer, ToolServer};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use std::fmt::Write;
use std::io::Read;

/// With what has another form in each encoding.
const VALUE: &str = r#"k3y/+"q\ &<u0Te>~'%41?x"#;
const SIGNING: &str = "whsec_+/+/9r8GKYqrTwjUPD8ILPZIo2LaLa/+";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes().fold(String::new(), |mut text, byte| {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => write!(text, "%{byte:02X}").unwrap(),
        }
        text
    })
}

fn all_escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut text, byte| {
        write!(text, "\\u{byte:04X}").unwrap();
        text
    })
}

/// A value in each encoding, with something before and behind it.
fn encoded(value: &str) -> Vec<String> {
    let mut all = vec![
        format!("<{value}>"),
        json!({"value": value}).to_string(),
        json!([json!({"value": value}).to_string()]).to_string(),
        percent(value),
        percent(&json!(value).to_string()),
        all_escaped(value),
        hex(value.as_bytes()),
        hex(value.as_bytes()).to_uppercase(),
    ];
    for before in ["", "a", "ab", "abc"] {
        let whole = format!("{before}{value}after");
        all.push(STANDARD.encode(&whole));
        all.push(URL_SAFE_NO_PAD.encode(&whole));
        all.push(percent(&STANDARD.encode(&whole)));
    }
    all
}

/// What may stand nowhere: the value in each encoding, without the characters that others have a part in.
fn needles(value: &str) -> Vec<String> {
    let mut all = vec![
        value.to_owned(),
        json!(value).to_string().trim_matches('"').to_owned(),
        percent(value),
        all_escaped(value),
        hex(value.as_bytes()),
        hex(value.as_bytes()).to_uppercase(),
    ];
    for before in ["", "a", "ab"] {
        let (start, end) = (8 * before.len(), 8 * (before.len() + value.len()));
        let inside = start.div_ceil(6)..end / 6;
        let whole = format!("{before}{value}a");
        all.push(STANDARD.encode(&whole)[inside.clone()].to_owned());
        all.push(URL_SAFE_NO_PAD.encode(&whole)[inside].to_owned());
    }
    all
}

#[track_caller]
fn check_clean(place: &str, text: &str) {
    let key = SIGNING.trim_start_matches("whsec_");
    for needle in [needles(VALUE), needles(SIGNING), needles(key)].concat() {
        let Some(at) = text.find(&needle) else {
            continue;
        };
        let around = &text.as_bytes()[at.saturating_sub(100)..(at + 100).min(text.len())];
        panic!("{place} has {needle}: {}", String::from_utf8_lossy(around));
    }
}

/// Every row of every table.
fn everything(app: &App) -> String {
    let mut client = app.database.client();
    let tables = "select format('%I.%I', schemaname, tablename) from pg_tables
        where schemaname not in ('pg_catalog', 'information_schema')";
    let mut all = String::new();
    for row in client.query(tables, &[]).unwrap() {
        let table: String = row.get(0);
        let copied = client.copy_out(&format!("copy (select t::text from {table} t) to stdout"));
        copied.unwrap().read_to_string(&mut all).unwrap();
    }
    all
}

#[test]
fn what_a_tool_tells_of_its_secrets_is_kept_and_shown_nowhere() {
    let (app, lines) = start();
    put(&app, "KEY", VALUE);
    put(&app, "SIGNING", SIGNING);
    let receiver = Receiver::good();
    let endpoint = json!({"url": receiver.url(), "events": ["run.finished"],
        "secretRef": {"envName": "prod", "name": "SIGNING"}});
    app.post("/v1/webhook-endpoints", &endpoint).expect(201);
    let server = ToolServer::start(|asked, before| {
        let sent = asked.header("x-key").to_owned();
        assert_eq!(sent, format!("Key {VALUE}"));
        let all = [encoded(&sent), encoded(VALUE), encoded(SIGNING)]
            .concat()
            .join("\n");
        match before {
            // Where an error's text is cut, the value is cut in two.
            0 => ToolAnswer::Status(401, format!("{}{VALUE}{all}", "x".repeat(4090))),
            1 => ToolAnswer::Status(500, all),
            _ => ToolAnswer::ok(all),
        }
    });
    let more = json!({
        "headers": [{"name": "X-Key", "secret": "KEY", "prefix": "Key "}],
        "signingSecret": "SIGNING",
    });
    let turns = Turns::of(&app, &server, 3, &more);
    let turn = turns.take(&app);
    assert_eq!(turn.run["status"], "completed");
    assert_eq!(turn.results.len(), 3);
    for result in &turn.results[1..] {
        assert!(result.contains("[redacted:KEY]"), "{result}");
        assert!(result.contains("[redacted:SIGNING]"), "{result}");
    }
    for request in turns.model.requests() {
        // As the model reads it, and as it was sent.
        let messages = request.body["messages"].as_array().unwrap();
        for message in messages {
            check_clean("a message", message["content"].as_str().unwrap_or_default());
        }
        check_clean("a request to the model", &request.body.to_string());
    }
    for event in app.events(&turn.id) {
        check_clean(
            "an event",
            event["data"]["output"].as_str().unwrap_or_default(),
        );
        check_clean("an event", &event.to_string());
    }
    for event in app.follow(&turn.id).rest() {
        check_clean("the stream", &format!("{event:?}"));
        check_clean("the stream", &event.data.to_string());
    }
    check_clean(
        "the payload",
        &app.get(&format!("/v1/runs/{}/payload", turn.id)).text,
    );
    check_clean("the webhook", &receiver.once(1)[0].body);
    check_clean("the metrics", &app.get("/metrics").text);
    check_clean("the database", &everything(&app));
    let logged = lines.with("").join("\n");
    assert!(logged.contains("A tool call ended"), "{logged}");
    check_clean("the log", &logged);
}
