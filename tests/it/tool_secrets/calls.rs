//! What a tool receives, and what the model is told where the secret cannot be used.

use super::{KEY, Turns, bearer, put, start, start_over};
use crate::harness::kms::{FakeKms, Fault};
use crate::harness::{App, ToolAnswer, ToolServer, kinds, secrets::Keys};
use agent_runtime::secret::Secret;
use agent_runtime::secrets::{AadKey, Options, PostgresOptions};
use agent_runtime::webhooks::sign;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

const SIGNING: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEWER: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd";

#[test]
fn a_call_has_the_secret_in_its_header_and_is_signed() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    put(&app, "SIGNING", SIGNING);
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let mut more = bearer();
    more["signingSecret"] = json!("SIGNING");
    let turn = Turns::of(&app, &server, 1, &more).take(&app);
    assert_eq!(turn.results, ["Here."]);
    let asked = server.asked().remove(0);
    assert_eq!(asked.header("authorization"), format!("Bearer {KEY}"));
    let id = format!("{}-2", turn.id);
    assert_eq!(asked.header("webhook-id"), id);
    assert_eq!(asked.header("idempotency-key"), id);
    let at: i64 = asked.header("webhook-timestamp").parse().unwrap();
    assert!((app.clock.now().unix_timestamp() - at).abs() < 60);
    let signed = sign::header(&[Secret::new(SIGNING)], &id, at, &asked.body.to_string());
    assert_eq!(asked.header("webhook-signature"), signed.unwrap());
}

#[test]
fn a_tool_that_names_no_secret_gets_none() {
    let (app, _) = start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    Turns::of(&app, &server, 1, &json!({})).take(&app);
    let asked = server.asked().remove(0);
    for header in ["authorization", "webhook-id", "webhook-signature"] {
        assert_eq!(asked.header(header), "");
    }
}

#[test]
fn a_value_that_changes_during_a_run_is_used_from_the_next_call_on() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    put(&app, "SIGNING", SIGNING);
    let admin = app.with_token(Some(app.token()));
    let server = ToolServer::start(move |_, before| {
        if before == 0 {
            for (name, value) in [("KEY", "another-key"), ("SIGNING", NEWER)] {
                let path = format!("/v1/secrets/prod/{name}");
                admin.put(&path, &json!({"value": value})).expect(200);
            }
        }
        ToolAnswer::ok("Here.")
    });
    let mut more = bearer();
    more["signingSecret"] = json!("SIGNING");
    Turns::of(&app, &server, 2, &more).take(&app);
    let [first, second]: [_; 2] = server.asked().try_into().unwrap();
    assert_eq!(first.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(second.header("authorization"), "Bearer another-key");
    let at = second.header("webhook-timestamp").parse().unwrap();
    let both = [Secret::new(NEWER), Secret::new(SIGNING)];
    let id = second.header("webhook-id");
    let signed = sign::header(&both, id, at, &second.body.to_string()).unwrap();
    assert_eq!(signed.matches("v1,").count(), 2);
    assert_eq!(second.header("webhook-signature"), signed);
}

#[test]
fn a_redirect_takes_the_secret_nowhere() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    let other = ToolServer::start(|_, _| ToolAnswer::ok("Mine now."));
    let elsewhere = other.url();
    let server = ToolServer::start(move |_, _| ToolAnswer::Redirect(elsewhere.clone()));
    let turn = Turns::of(&app, &server, 1, &bearer()).take(&app);
    assert!(turn.results[0].contains("status 307"), "{:?}", turn.results);
    assert!(other.asked().is_empty());
}

#[test]
fn without_an_environment_a_tool_that_names_secrets_is_not_called() {
    let app = App::start_with(|options| options.secrets = Keys::new().options());
    put(&app, "KEY", KEY);
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let turn = Turns::of(&app, &server, 1, &bearer()).take(&app);
    assert!(
        turn.results[0].contains("SVC_ENVIRONMENT"),
        "{:?}",
        turn.results
    );
    assert!(server.asked().is_empty());
    // Another tool is.
    let turn = Turns::of(&app, &server, 1, &json!({})).take(&app);
    assert_eq!(turn.results, ["Here."]);
}

#[test]
fn a_secret_that_cannot_be_used_fails_the_call_and_says_why() {
    let (app, lines) = start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let turns = Turns::of(&app, &server, 1, &bearer());
    let result_of = |value: Option<&str>| {
        if let Some(value) = value {
            put(&app, "KEY", value);
        }
        turns.take(&app).results.remove(0)
    };
    assert_eq!(
        result_of(None),
        "The tool could not be called: There is no secret KEY in the environment prod."
    );
    for (value, says) in [
        ("1234567", "fewer than 8 bytes"),
        ("a-key-of-the-tool\n", "such as a line end"),
        (" a-key-of-the-tool", "visible ASCII"),
        ("a-key-of-thé-tool", "visible ASCII"),
        (&"a".repeat(8193), "more than 8192 bytes"),
    ] {
        let result = result_of(Some(value));
        assert!(result.contains(says) && result.contains("KEY"), "{result}");
        assert!(!result.contains(value), "{result}");
    }
    assert!(server.asked().is_empty());
    assert!(!lines.with("A tool's secrets cannot be used").is_empty());
    put(&app, "SIGNING", "no-signing-secret");
    let turns = Turns::of(&app, &server, 1, &json!({"signingSecret": "SIGNING"}));
    let result = turns.take(&app).results.remove(0);
    assert!(result.contains("cannot sign the call"), "{result}");
    assert!(!result.contains("no-signing-secret"), "{result}");
    assert!(server.asked().is_empty());
}

#[test]
fn a_call_waits_while_the_key_management_service_is_away() {
    let service = FakeKms::start();
    let (app, _) = start_over(Options::Postgres(Box::new(PostgresOptions {
        kms: service.options(),
        aad_key: AadKey::new(&[7; 32]),
        kept_for: Duration::ZERO,
    })));
    put(&app, "KEY", KEY);
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let turns = Turns::of(&app, &server, 1, &bearer());
    // The tool is not idempotent: nothing was sent, so it is tried again all the same.
    service.fault(Fault::Refuse(503, "UNAVAILABLE"), 1);
    let turn = turns.take(&app);
    assert_eq!(turn.results, ["Here."]);
    let events = app.events(&turn.id);
    let failed = kinds(&events)
        .into_iter()
        .filter(|kind| *kind == "step.failed");
    assert_eq!(failed.count(), 1, "{events:?}");
    assert_eq!(server.asked().len(), 1);
    service.fault(Fault::Refuse(503, "UNAVAILABLE"), usize::MAX);
    let result = turns.take(&app).results.remove(0);
    assert!(
        result.contains("3 times") && result.contains("KMS"),
        "{result}"
    );
    assert_eq!(server.asked().len(), 1);
}

/// Level and sentence of one check of the doctor, with files of its own in the directory.
fn doctor_of(app: &App, directory: &Path, code: &str, environment: &str) -> (String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_agent-runtime"));
    command.args(["doctor", "--json"]).env_clear();
    for (setting, name, byte) in [
        ("SVC_SECRETS_AAD_KEY_PATH", "aad", 7),
        ("SVC_SECRETS_LOCAL_KEY_PATH", "local", 8),
    ] {
        let path = directory.join(name);
        std::fs::write(&path, [byte; 32]).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).unwrap();
        command.env(setting, &path);
    }
    let output = command
        .env("SVC_DEV", "true")
        .env("SVC_STATE_DIR", directory)
        .env("SVC_DATABASE_URL", app.database.url())
        .env("SVC_SECRETS_BACKEND", "postgres")
        .env("SVC_SECRETS_BACKEND_KMS", "local")
        .env("SVC_ENVIRONMENT", environment)
        .output()
        .unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap().iter();
    let mut found = checks.filter(|check| check["code"] == code);
    let found = found.next().unwrap();
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    (text("level"), text("sentence"))
}

/// A program of its own, as an operator runs it.
#[test]
fn the_doctor_names_the_tools_whose_secrets_are_missing() {
    let keys = Keys {
        aad: [7; 32],
        local: [8; 32],
        ..Keys::new()
    };
    let (app, _) = start_over(keys.options());
    let directory = tempfile::tempdir().unwrap();
    let doctor = |environment: &str| doctor_of(&app, directory.path(), "tool-secrets", environment);
    let uses = || doctor_of(&app, directory.path(), "secret-uses", "prod");
    let none = ("ok".to_owned(), "0 uses of secrets were found.".to_owned());
    assert_eq!(uses(), none);
    let (level, sentence) = doctor("prod");
    assert_eq!(
        (level.as_str(), sentence.as_str()),
        ("ok", "No tool names a secret.")
    );
    put(&app, "KEY", KEY);
    let mut more = bearer();
    more["signingSecret"] = json!("SIGNING");
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    Turns::of(&app, &server, 1, &more);
    let (level, sentence) = doctor("prod");
    assert_eq!(level, "warning");
    assert!(
        sentence.contains("no secret SIGNING (tool look_up, project "),
        "{sentence}"
    );
    assert!(!sentence.contains("KEY"), "{sentence}");
    assert_eq!(doctor("other").0, "warning");
    let (level, sentence) = uses();
    let origin = server.url();
    let origin = &origin[..origin.rfind('/').unwrap()];
    let empty =
        format!("Uses without a secret in the environment prod: SIGNING for origin:{origin}.");
    assert_eq!((level.as_str(), sentence), ("warning", empty));
    put(&app, "SIGNING", SIGNING);
    let (level, sentence) = doctor("prod");
    assert_eq!(level, "ok", "{sentence}");
    let all = ("ok".to_owned(), "2 uses of secrets were found.".to_owned());
    assert_eq!(uses(), all);
    app.sql("delete from secret_uses where name = 'KEY'");
    let (level, sentence) = uses();
    assert_eq!(level, "warning");
    let said = format!(
        "Calls of tools are not made, for want of a use: KEY for {origin} (tool look_up, project "
    );
    assert!(sentence.starts_with(&said), "{sentence}");
    assert!(!sentence.contains("SIGNING"), "{sentence}");
}
