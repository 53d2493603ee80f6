//! docs/webhooks-receiver.md: its programs take real deliveries and refuse altered ones, its examples
//! have the shape of what is sent, its list of reasons is whole.

mod examples;
mod page;
mod program;

use crate::harness::{App, Client, eventually, secrets::Keys};
use agent_runtime::dev::provider::{Provider, Script, Step};
use base64::Engine;
use crossbeam_channel::{Receiver, unbounded};
use program::{Language, Program};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
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

/// A request as it came.
struct Tapped {
    headers: Vec<(String, String)>,
    body: String,
}

/// A receiver that takes everything, to look at.
struct Tap {
    url: String,
    requests: Receiver<Tapped>,
}

impl Tap {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}/tap", listener.local_addr().unwrap());
        let (sender, requests) = unbounded();
        // It waits for the next one until the process ends.
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let tapped = tap(connection.unwrap());
                if tapped.is_none_or(|tapped| sender.send(tapped).is_err()) {
                    return;
                }
            }
        });
        Self { url, requests }
    }

    #[track_caller]
    fn next(&self) -> Tapped {
        let came = self.requests.recv_timeout(crate::harness::PATIENCE);
        came.expect("something was sent")
    }
}

fn tap(mut connection: TcpStream) -> Option<Tapped> {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length")?;
    let mut body = vec![0; length.1.parse().unwrap()];
    reader.read_exact(&mut body).ok()?;
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    connection.write_all(answer.as_bytes()).ok()?;
    let body = String::from_utf8(body).unwrap();
    Some(Tapped { headers, body })
}

impl Tapped {
    /// The same request, to a receiver; the status of its answer.
    fn replayed(&self, program: &Program, change: impl Fn(&str, &str) -> Option<String>) -> u16 {
        let headers: Vec<(&str, String)> = self
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("webhook-") || name == "content-type")
            .filter_map(|(name, value)| Some((name.as_str(), change(name, value)?)))
            .collect();
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let body = change("body", &self.body);
        let client = Client::new(program.address(), None);
        client.send("POST", "/", body, &headers).status
    }
}

/// Every way to alter a delivery, each of which is refused.
#[track_caller]
fn check_altered(tapped: &Tapped, program: &Program) {
    let altered = |field: &'static str, change: fn(&str) -> Option<String>| {
        let status = tapped.replayed(program, |name, value| match name == field {
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
    let directory = language.prepare();
    let program = Program::start(&directory, &first);
    let endpoint = register(&app, &program.url());
    let tap = Tap::start();
    register(&app, &tap.url);

    let run = finish_run(&app);
    let delivery = newest(&app, &endpoint, 1);
    assert_eq!(delivery["summary"], "delivered after 1 attempt");
    let tapped = tap.next();
    let event: Value = serde_json::from_str(&tapped.body).unwrap();
    assert_eq!(event["data"]["run"]["id"], run["id"]);
    assert_eq!(delivery["eventId"], event["id"]);
    let id = event["id"].as_str().unwrap().to_owned();
    let kept = [(id, tapped.body.clone())];
    assert_eq!(directory.kept(), kept);

    check_altered(&tapped, &program);
    assert_eq!(directory.kept(), kept);
    let same = |_: &str, value: &str| Some(value.to_owned());
    assert_eq!(tapped.replayed(&program, same), 204);
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
