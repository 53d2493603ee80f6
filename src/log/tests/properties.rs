//! What holds of every record, whatever is logged.

use super::*;
use proptest::prelude::*;

/// Logs a text in every place that a text can be in.
fn everywhere(log: &Logger, text: &str) {
    let context = log.new(slog::o!("context" => text.to_owned()));
    slog::info!(context, "before {} after", text; "field" => text, "shown" => %text);
    let nested = json!({ "a": [{ "b": text, text: 1 }], "c": [[text]] });
    slog::info!(log, "nested"; "value" => slog::Serde(nested));
    let outer = Error::internal(std::io::Error::other(text)).detail("x", text);
    let other = std::io::Error::other(text);
    slog::error!(log, "an error"; ErrorValue(&outer), "other" => #&other);
}

fn secret_text() -> impl Strategy<Value = String> {
    let tail = "[A-Za-z0-9]{8,40}";
    let token = (
        prop::sample::select(vec!["svc_bt_", "svc_pt_", "svc_lk_", "whsec_"]),
        "[A-Za-z0-9_-]{0,20}",
        tail,
    )
        .prop_map(|(prefix, head, tail)| format!("{prefix}{head}{MARK}{tail}"));
    let bearer = (
        prop::sample::select(vec!["Bearer", "bearer", "BEARER", "Authorization: bEaReR"]),
        "[ \t]{1,3}",
        "[!#-~]{0,12}",
        tail,
    )
        .prop_map(|(word, blank, head, tail)| format!("{word}{blank}{head}{MARK}{tail}"));
    let password = "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2}){0,12}";
    let url = (
        prop::sample::select(vec!["postgres", "https", "redis", "jdbc:x", "amqps"]),
        "[a-z]{0,6}",
        password,
        password,
        "[a-z.]{1,8}(:[0-9]{1,5})?(/[a-z@:/]{0,8})?",
    )
        .prop_map(|(scheme, user, a, b, host)| format!("{scheme}://{user}:{a}{MARK}{b}@{host}"));
    let unencoded = ("[a-z]{1,6}", "[a-z][a-z/?#]{1,6}", "[a-z.]{1,8}")
        .prop_map(|(user, a, host)| format!("mysql://{user}:{a}{MARK}@{host}"));
    let encoded = ("[a-z]{1,6}", "[a-z0-9]{0,8}").prop_map(|(user, a)| {
        format!("to=https%3A%2F%2F{user}%3A{a}{MARK}%40host.test%2Fpath&x=1")
    });
    prop_oneof![token, bearer, url, unencoded, encoded]
}

proptest! {
    #[test]
    fn no_listed_form_reaches_the_output(
        before in "(\\PC{0,30}[ \n(])?",
        secrets in prop::collection::vec(secret_text(), 1..4),
        after in "( \\PC{0,30})?",
        pretty: bool,
    ) {
        let text = format!("{before}{}{after}", secrets.join(" "));
        let (log, lines) = with_format(if pretty { PRETTY } else { JSON });
        everywhere(&log, &text);
        let written = lines.text();
        prop_assert!(!written.contains(MARK), "{text:?}: {written}");
    }

    #[test]
    fn no_value_under_a_listed_key_reaches_the_output(
        key in listed_key(),
        path in prop::collection::vec(("[a-z]{1,5}", 0..3), 0..6),
        pretty: bool,
    ) {
        let mut value = json!({ key.clone(): { "deep": [MARK, { "x": MARK }] }, "also": { key: MARK } });
        for (name, kind) in path {
            value = match kind {
                0 => json!({ name: value }),
                1 => json!([1, value]),
                _ => json!([{ "before": 1, name: value, "after": 2 }]),
            };
        }
        let (log, lines) = with_format(if pretty { PRETTY } else { JSON });
        slog::info!(log, "keys"; "value" => slog::Serde(value), "x-Api_Key" => MARK,
            "sessionCookie" => slog::Serde(json!([MARK])), "PASSWORD" => ?MARK);
        let written = lines.text();
        prop_assert!(!written.contains(MARK), "{written}");
        prop_assert!(written.contains("[redacted]"));
    }

    #[test]
    fn ids_and_harmless_fields_come_through(
        id: u128,
        hex in "[0-9a-f]{16,64}",
        tokens: u32,
        name in "[a-z-]{1,20}",
        path in "[a-z0-9/@.]{0,20}",
    ) {
        let id = uuid::Uuid::from_u128(id).to_string();
        let request = format!("req-{id}");
        let url = format!("http://127.0.0.1:4000/v1/{path}");
        let value = json!({
            "promptTokens": tokens,
            "secretRef": { "envName": name, "name": name },
            "ids": [id, hex, request],
            "tokenType": hex, "costUsd": 0.25, "url": url, "none": null, "yes": true,
        });
        let (log, lines) = with_format(JSON);
        slog::info!(log, "run {} of {}", id, hex; "runId" => &id, "requestId" => &request,
            "promptTokens" => tokens, "secretRef" => slog::Serde(value["secretRef"].clone()),
            "value" => slog::Serde(value.clone()));
        let record = lines.record();
        prop_assert_eq!(&record["message"], &json!(format!("run {id} of {hex}")));
        prop_assert_eq!(&record["runId"], &json!(id));
        prop_assert_eq!(&record["requestId"], &json!(request));
        prop_assert_eq!(&record["promptTokens"], &json!(tokens));
        prop_assert_eq!(&record["secretRef"], &value["secretRef"]);
        prop_assert_eq!(&record["value"], &value);
    }

    #[test]
    fn every_record_is_one_line_of_json_with_unique_keys(
        text in any::<String>(),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        number: f64,
        value in any_json(),
    ) {
        let (log, lines) = with_format(JSON);
        let log = log.new(slog::o!("level" => text.clone(), "x" => 1));
        slog::warn!(log, "{}", text; "message" => &text, "time" => number, "x" => 2,
            "bytes" => String::from_utf8_lossy(&bytes).into_owned(), "raw" => ?bytes,
            "value" => slog::Serde(value), "char" => text.chars().next().unwrap_or('x'));
        let record = lines.record();
        prop_assert_eq!(&record["level"], "warn");
        prop_assert_eq!(&record["x"], 2);
        prop_assert!(record["time_"].is_number() || record["time_"].is_string());
    }

    #[test]
    fn no_text_forges_a_pretty_record(text in any::<String>(), value in any_json()) {
        let (log, lines) = with_format(PRETTY);
        slog::info!(log, "{}", text; "field" => &text, "value" => slog::Serde(value));
        let written = lines.text();
        prop_assert!(written.ends_with('\n'));
        let line = &written[..written.len() - 1];
        prop_assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
    }
}

fn listed_key() -> impl Strategy<Value = String> {
    let ends = [
        "authorization",
        "cookie",
        "token",
        "password",
        "secret",
        "secrets",
        "apikey",
        "privatekey",
        "passphrase",
        "credential",
        "credentials",
    ];
    let shapes = prop::collection::vec((any::<bool>(), "[-_]{0,2}"), 16);
    (
        "[A-Za-z0-9_-]{0,8}",
        prop::sample::select(ends.to_vec()),
        shapes,
    )
        .prop_map(|(start, end, shapes)| {
            let mut key = start;
            for (c, (upper, dash)) in end.chars().zip(shapes) {
                key.push(if upper { c.to_ascii_uppercase() } else { c });
                key.push_str(&dash);
            }
            key
        })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|pairs| Value::from(Map::from_iter(pairs))),
        ]
    })
}
