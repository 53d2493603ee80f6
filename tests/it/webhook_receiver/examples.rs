//! What else the page says: examples of events, the statement that keeps one, the reasons.

use super::{SECRET, app, finish_run, page, register, secret};
use crate::harness::page::shape;
use crate::harness::{Database, Receiver};
use agent_runtime::webhooks::event::{Approval, Event, ImprovementPass, PassOutcome, PassStatus};
use agent_runtime::webhooks::reason::Reason;
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// The page's example of a kind.
#[track_caller]
fn example(kind: &str) -> Value {
    let examples = page::blocks("json").into_iter();
    let mut examples = examples.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    let found = examples.find(|example| example["type"] == kind);
    found.unwrap_or_else(|| panic!("the page has no example of {kind}"))
}

#[test]
fn the_examples_have_the_shape_of_what_is_sent() {
    let app = app();
    app.put(SECRET, &json!({"value": secret()})).expect(201);
    let receiver = Receiver::good();
    let endpoint = register(&app, &receiver.url());
    finish_run(&app);
    let sent = receiver.once(1)[0].json();
    assert_eq!(shape(&sent), shape(&example("run.finished")));
    let path = format!("{endpoint}/test");
    app.send("POST", &path, None, &[]).expect(202);
    let sent = receiver.once(2)[1].json();
    let example = example("webhook.test");
    assert_eq!(shape(&sent), shape(&example));
    assert_eq!(sent["data"]["message"], example["data"]["message"]);
}

/// The kinds that nothing emits yet, as they will be written.
#[test]
fn the_examples_of_passes_and_approvals_have_the_shape_of_their_types() {
    let (id, at) = (Uuid::from_u128(7), OffsetDateTime::UNIX_EPOCH.into());
    let pass = Event::ImprovementPassFinished {
        pass: ImprovementPass {
            id,
            project_id: id,
            status: PassStatus::Completed,
            outcome: Some(PassOutcome {
                proposal_id: Some(id),
            }),
            created_at: at,
            completed_at: at,
        },
    };
    let approval = Event::ApprovalRequested {
        approval: Approval {
            approval_id: id,
            project_id: id,
            required_role: "admin".to_owned(),
            title: "a title".to_owned(),
            assigned_to: Some(id),
            created_at: at,
            expires_at: at,
            url: Some("https://console.example.com".to_owned()),
        },
    };
    for event in [pass, approval] {
        let example = example(event.kind());
        let written = serde_json::to_value(&event).unwrap();
        assert_eq!(shape(&written["data"]), shape(&example["data"]));
    }
    let approval = example("approval.requested");
    assert_eq!(approval["id"], approval["data"]["approval"]["approvalId"]);
}

#[test]
fn the_statement_keeps_an_event_once() {
    let database = Database::empty();
    let mut client = database.client();
    let made = "create temporary table webhook_events (id text primary key, body text not null)";
    client.batch_execute(made).unwrap();
    let statement = &page::blocks("sql")[0];
    let keep = |client: &mut postgres::Client| client.execute(statement, &[&"an id", &"a body"]);
    assert_eq!(keep(&mut client).unwrap(), 1);
    assert_eq!(keep(&mut client).unwrap(), 0);
}

#[test]
fn the_reasons_are_all_of_them() {
    let text = page::text();
    for reason in Reason::ALL {
        let words = match reason {
            Reason::HttpStatus => "HTTP and the status".to_owned(),
            _ => reason.sentence(None),
        };
        let row = format!("\n| `{}` | {words} | ", reason.text());
        assert!(text.contains(&row), "the page has no row {row}");
    }
}
