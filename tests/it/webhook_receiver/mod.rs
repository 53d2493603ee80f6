//! docs/webhooks-receiver.md: its programs take real deliveries and refuse altered ones, its examples
//! have the shape of what is sent, its list of reasons is whole.

mod examples;
mod page;

use crate::harness::program::{Language, Program};
use crate::harness::{App, Client, Received, Receiver, eventually, secrets::Keys};
use agent_runtime::dev::provider::{Provider, Script, Step};
use base64::Engine;
use serde_json::{Value, json};
use uuid::Uuid;

const SECRET: &str = "/v1/secrets/prod/RECEIVER";

/// A server that may post to loopback.
fn app() -> App {
    App::start_with(|options| {
        options.secrets = Keys::new().options();
        options.webhooks.development = true;
    })
}

/// A secret that is strong enough.
fn secret() -> String {
    let mut key = [0; 32];
    getrandom::fill(&mut key).unwrap();
    let text = base64::engine::general_purpose::STANDARD.encode(key);
    format!("whsec_{text}")
}

/// Registers a receiver of finished runs; its path.
#[track_caller]
fn register(client: &Client, url: &str) -> String {
    let body = json!({
        "url": url,
        "events": ["run.finished"],
        "secretRef": {"envName": "prod", "name": "RECEIVER"},
    });
    let made = client.post("/v1/webhook-endpoints", &body).expect(201);
    let id = made["endpointId"].as_str().unwrap();
    format!("/v1/webhook-endpoints/{id}")
}

/// A run that has finished.
#[track_caller]
fn finish_run(app: &App) -> Value {
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Done."),
    })
    .unwrap();
    let agent: Uuid = app.agent(&provider.base_url());
    app.finished(&app.start_turn(agent, "a"))
}

/// The newest delivery to an endpoint, once its first attempt has ended.
#[track_caller]
fn newest(client: &Client, endpoint: &str, number: usize) -> Value {
    eventually("the delivery's first attempt", || {
        let path = format!("{endpoint}/deliveries");
        let rows = client.get(&path).expect(200)["data"].take();
        let rows = rows.as_array().unwrap();
        let newest = rows.first().filter(|_| rows.len() == number)?;
        (newest["attemptCount"] != json!(0)).then(|| newest.clone())
    })
}

/// Sends a test to an endpoint; what became of its first attempt.
#[track_caller]
fn send_test(client: &Client, endpoint: &str, number: usize) -> Value {
    let path = format!("{endpoint}/test");
    client.send("POST", &path, None, &[]).expect(202);
    newest(client, endpoint, number)
}

/// A request as it came, to a program of the page; the status of its answer.
fn replayed(
    received: &Received,
    program: &Program,
    change: impl Fn(&str, &str) -> Option<String>,
) -> u16 {
    let headers: Vec<(&str, String)> = received
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("webhook-") || name == "content-type")
        .filter_map(|(name, value)| Some((name.as_str(), change(name, value)?)))
        .collect();
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let body = change("body", &received.body);
    let client = Client::new(program.address(), None);
    client.send("POST", "/", body, &headers).status
}

/// Every way to alter a delivery, each of which is refused.
#[track_caller]
fn check_altered(received: &Received, program: &Program) {
    let altered = |field: &'static str, change: fn(&str) -> Option<String>| {
        let status = replayed(received, program, |name, value| match name == field {
            true => change(value),
            false => Some(value.to_owned()),
        });
        assert_eq!(status, 400, "{field}");
    };
    altered("body", |body| {
        Some(body.replacen("completed", "cancelled", 1))
    });
    altered("body", |body| Some(format!("{body} ")));
    altered("body", |_| Some(String::new()));
    altered("webhook-id", |_| Some(Uuid::nil().to_string()));
    altered("webhook-timestamp", |at| {
        Some((at.parse::<i64>().unwrap() + 1).to_string())
    });
    altered("webhook-timestamp", |_| Some("1614265330".to_owned()));
    altered("webhook-timestamp", |_| Some("soon".to_owned()));
    altered("webhook-signature", |_| None);
    altered("webhook-signature", |_| Some("v1".to_owned()));
    altered("webhook-signature", |signature| {
        Some(signature.replacen("v1,", "v2,", 1))
    });
    altered("webhook-signature", |_| {
        Some("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned())
    });
}

#[track_caller]
fn check_receiver(language: Language) {
    let app = app();
    let (first, second) = (secret(), secret());
    app.put(SECRET, &json!({"value": first})).expect(201);
    let directory = language.prepare("webhooks-receiver.md", "receiver");
    let program = Program::start(&directory, &first);
    let endpoint = register(&app, &program.url());
    let seen = Receiver::good();
    register(&app, &seen.url());

    let run = finish_run(&app);
    let delivery = newest(&app, &endpoint, 1);
    assert_eq!(delivery["summary"], "delivered after 1 attempt");
    let received = seen.once(1).remove(0);
    let event = received.json();
    assert_eq!(event["data"]["run"]["id"], run["id"]);
    assert_eq!(delivery["eventId"], event["id"]);
    let id = event["id"].as_str().unwrap().to_owned();
    let kept = [(id, received.body.clone())];
    assert_eq!(directory.kept(), kept);

    check_altered(&received, &program);
    assert_eq!(directory.kept(), kept);
    let same = |_: &str, value: &str| Some(value.to_owned());
    assert_eq!(replayed(&received, &program, same), 204);
    assert_eq!(directory.kept(), kept, "an event is kept once");

    // A secret rotates: the receiver goes on with the old one, and with the new one.
    app.put(SECRET, &json!({"value": second})).expect(200);
    let told = send_test(&app, &endpoint, 2);
    assert_eq!(told["summary"], "delivered after 1 attempt");
    drop(program);
    let program = Program::start(&directory, &second);
    let path = endpoint.as_str();
    app.patch(path, &json!({"url": program.url()})).expect(200);
    let told = send_test(&app, &endpoint, 3);
    assert_eq!(told["summary"], "delivered after 1 attempt");
    assert_eq!(directory.kept().len(), 3);

    // With a secret that is neither, it takes nothing.
    drop(program);
    let program = Program::start(&directory, &secret());
    app.patch(path, &json!({"url": program.url()})).expect(200);
    let told = send_test(&app, &endpoint, 4);
    assert_eq!(told["lastStatus"], 400, "{told}");
    assert_eq!(directory.kept().len(), 3);
}

#[test]
fn the_receiver_in_python_takes_deliveries_and_refuses_altered_ones() {
    check_receiver(Language::Python);
}

#[test]
fn the_receiver_in_typescript_takes_deliveries_and_refuses_altered_ones() {
    check_receiver(Language::TypeScript);
}
