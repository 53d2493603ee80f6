//! `webhooks`: what an operator sees of an endpoint that fails, and how a delivery is sent again.

use crate::arguments::ask;
use crate::harness::{Running, command, directory, eventually, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

/// Answers one request with this status, and returns its headers.
fn answer(listener: &TcpListener, status: &str) -> Vec<String> {
    let (mut stream, _) = listener.accept().unwrap();
    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let head: Vec<String> = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .collect();
    let body = "It is full.";
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).unwrap();
    head
}

fn webhook_id(head: &[String]) -> String {
    let is_id = |line: &&String| line.starts_with("webhook-id:");
    head.iter().find(is_id).unwrap().clone()
}

#[test]
fn endpoints_and_deliveries_are_listed_shown_and_sent_again() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let data = dir.path().join("agent-runtime");
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    let none = run(&["webhooks"], &variables).expect(0);
    assert!(none.err.contains("no webhook endpoints"), "{}", none.err);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/events", listener.local_addr().unwrap());
    let secret = json!({"value": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"});
    ask(&data, "PUT", "/v1/secrets/prod/RECEIVER", &secret);
    let register = || {
        let body = json!({"url": url, "events": ["run.finished"],
            "secretRef": {"envName": "prod", "name": "RECEIVER"}});
        let endpoint = ask(&data, "POST", "/v1/webhook-endpoints", &body);
        endpoint["endpointId"].as_str().unwrap().to_owned()
    };
    let endpoint = register();
    run(&["run", "assistant", "Hello"], &variables).expect(0);
    let first = answer(&listener, "503 Service Unavailable");

    // It is failing, with its reason, within the next look.
    let table = eventually("the endpoint to be failing", || {
        let table = run(&["webhooks"], &variables).expect(0).out;
        table.contains("\nfailing ").then_some(table)
    });
    for part in [endpoint.as_str(), &url, "HTTP 503"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let listed = run(&["webhooks", "--json"], &variables).expect(0).json();
    assert_eq!(listed["endpointId"], json!(endpoint));
    let of = |arguments: &[&str]| {
        let arguments = [&["webhooks", "deliveries", &url, "--json"], arguments].concat();
        let out = run(&arguments, &variables).expect(0).out;
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let deliveries = of(&[]);
    assert_eq!(deliveries.len(), 1);
    let delivery = deliveries[0]["id"].as_str().unwrap();
    assert_eq!(of(&["--state", "being-sent"]).len(), 1);
    assert_eq!(of(&["--state", "delivered"]).len(), 0);
    let table = run(&["webhooks", "deliveries", &endpoint], &variables).expect(0);
    for part in [delivery, "being-sent", "retrying after 1 attempt: HTTP 503"] {
        assert!(table.out.contains(part), "{part}: {}", table.out);
    }
    let shown = run(&["webhooks", "show", &url, delivery], &variables).expect(0);
    for part in ["run.finished", "503", "127.0.0.1", "It is full."] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    sent_again(&variables, &listener, (&url, delivery, &first));

    // Two endpoints with one URL are told apart by their ids.
    let second = register();
    let said = run(&["webhooks", "deliveries", &url], &variables).expect(2);
    for part in [&endpoint, &second] {
        assert!(said.err.contains(part), "{}", said.err);
    }
    let unknown = run(&["webhooks", "deliveries", "https://a.example"], &variables);
    let unknown = unknown.expect(1);
    assert!(
        unknown.err.contains("no webhook endpoint"),
        "{}",
        unknown.err
    );
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

/// The same event arrives again, in a delivery of its own.
fn sent_again(
    variables: &[(&str, &str)],
    listener: &TcpListener,
    (url, delivery, first): (&str, &str, &[String]),
) {
    let resend = ["webhooks", "resend", url, delivery];
    let said = run(&resend, variables).expect(0);
    assert!(said.err.contains("sent again"), "{}", said.err);
    let again = answer(listener, "204 No Content");
    assert_eq!(webhook_id(&again), webhook_id(first));
    let list = ["webhooks", "deliveries", url, "--state", "delivered"];
    let list = [&list[..], &["--json"]].concat();
    let delivered = eventually("the delivery to be delivered", || {
        let said = run(&list, variables).expect(0);
        let newest = said.out.lines().next()?;
        Some(serde_json::from_str::<Value>(newest).unwrap())
    });
    assert_eq!(delivered["resends"], json!(delivery));
    let none = ["webhooks", "resend", url, "--failed-since", "1h", "--json"];
    let none = run(&none, variables).expect(0).json();
    assert_eq!(none["count"], json!(0), "none failed for good");
    let unknown = "01993c5e-7c1f-7d2a-9c55-0242ac120002";
    for command in ["show", "resend"] {
        let said = run(&["webhooks", command, url, unknown], variables).expect(1);
        assert!(said.err.contains("not-found"), "{}", said.err);
    }
}
