//! `GET /v1/approvals/stream`: what reviewers are told, in which order, and where they go on. Who may is in
//! `access::approval_streams`.

use crate::approvals::World;
use crate::harness::{App, Client, Event, Stream, end_of, eventually};
use postgres::Transaction;
use serde_json::{Value, json};
use uuid::Uuid;

const STREAM: &str = "/v1/approvals/stream";

/// A stream, and where it begins.
fn follow(client: &Client) -> (Stream, i64) {
    let mut stream = client.open(STREAM, &[]);
    let start = stream.next().unwrap();
    assert_eq!(start.kind, "stream.start");
    let begins = start.id.unwrap();
    assert_eq!(start.data, json!({"seq": begins}));
    (stream, begins)
}

fn follow_after(client: &Client, id: i64) -> Stream {
    client.open(STREAM, &[("last-event-id", &id.to_string())])
}

/// The next event: its approval, kind and status.
#[track_caller]
fn next(stream: &mut Stream) -> (Value, String, Value) {
    let event = stream.next().expect("an event");
    let data = &event.data["data"];
    (
        data["approvalId"].clone(),
        event.kind.clone(),
        data["status"].clone(),
    )
}

#[track_caller]
fn comes(stream: &mut Stream, id: Uuid, kind: &str, status: &str) {
    let expected = (json!(id), kind.to_owned(), json!(status));
    assert_eq!(next(stream), expected);
}

/// The log of approvals as it stands, by position.
fn logged(app: &App) -> Vec<(i64, Uuid)> {
    let all = "select position, approval_id from approval_log order by position";
    let rows = app.database.client().query(all, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn delivered(events: &[Event]) -> Vec<(i64, Uuid)> {
    let id = |event: &Event| event.data["data"]["approvalId"].as_str()?.parse().ok();
    let delivered = events.iter();
    delivered
        .filter_map(|event| Some((event.id?, id(event)?)))
        .collect()
}

#[test]
fn a_reviewer_is_told_of_all_that_happens_and_goes_on_where_it_was() {
    let world = World::start();
    let app = &world.app;
    let before = world.approval("standard", 3600);
    let (mut stream, begins) = follow(app);
    let id = world.approval("finance", 3600);
    let event = stream.next().unwrap();
    assert_eq!(
        (event.id, event.kind.as_str()),
        (Some(begins + 1), "approval.waiting")
    );
    assert_eq!(event.data["seq"], json!(begins + 1));
    let read = app.get(&format!("/v1/approvals/{id}")).expect(200);
    let data = &event.data["data"];
    for (delivered, shown) in [
        ("approvalId", "id"),
        ("projectId", "projectId"),
        ("runId", "runId"),
        ("title", "title"),
        ("requiredRole", "requiredRole"),
        ("status", "status"),
        ("assignedTo", "assignedTo"),
        ("expiresAt", "expiresAt"),
    ] {
        assert_eq!(data[delivered], read[shown], "{delivered}");
    }
    assert_eq!(
        data.as_object().unwrap().len(),
        8,
        "nothing of what it is about: {data}"
    );
    let act =
        |id: Uuid, what: &str, body: &Value| app.post(&format!("/v1/approvals/{id}/{what}"), body);
    act(id, "assign", &json!({"userId": app.seeds.user_id})).expect(200);
    comes(&mut stream, id, "approval.assigned", "waiting");
    act(id, "decide", &json!({"decision": "reject"})).expect(200);
    comes(&mut stream, id, "approval.closed", "rejected");
    let second = act(before, "escalate", &json!({"requiredRole": "board"})).expect(201);
    comes(&mut stream, before, "approval.closed", "escalated");
    let second: Uuid = second["id"].as_str().unwrap().parse().unwrap();
    comes(&mut stream, second, "approval.waiting", "waiting");
    app.sql(&format!(
        "select approval_void(of_tenant_id => '{}', of_run_id => '{}')",
        app.seeds.tenant_id, world.run_id
    ));
    comes(&mut stream, second, "approval.closed", "voided");
    // Whoever comes back gets the rest, from wherever it was.
    let all: Vec<_> = logged(app)
        .into_iter()
        .filter(|(position, _)| *position > begins)
        .collect();
    for (at, (position, _)) in all.iter().enumerate().take(all.len() - 1) {
        let mut again = follow_after(app, *position);
        for expected in &all[at + 1..] {
            assert_eq!(delivered(&[again.next().unwrap()]), [*expected]);
        }
    }
    let last = all.last().unwrap().0;
    let beyond = app
        .get(&format!("{STREAM}?after={}", last + 1))
        .expect_error(400, "invalid-request");
    assert_eq!(beyond["details"]["lastSeq"], json!(last));
    for nonsense in ["x", "-1"] {
        let refused = app.send("GET", STREAM, None, &[("last-event-id", nonsense)]);
        refused.expect_error(400, "invalid-request");
    }
}

#[test]
fn an_event_that_commits_late_comes_first_and_one_that_is_rolled_back_holds_nothing_up() {
    let world = World::start();
    let (mut stream, _) = follow(&world.app);
    let (mut early, mut lost) = (world.app.database.client(), world.app.database.client());
    let entry = |tx: &mut Transaction<'_>, id: Uuid| {
        // As every statement that writes the log, it has written before.
        let touch = "update approvals set title = title where approval_id = $1";
        tx.execute(touch, &[&id]).unwrap();
        let entry = "insert into approval_log (tenant_id, approval_id, kind, at) values ($1, $2, 'assigned', now())";
        tx.execute(entry, &[&world.app.seeds.tenant_id, &id])
            .unwrap();
    };
    let (one, two) = (
        world.approval("standard", 60),
        world.approval("standard", 60),
    );
    comes(&mut stream, one, "approval.waiting", "waiting");
    comes(&mut stream, two, "approval.waiting", "waiting");
    let mut held = early.transaction().unwrap();
    entry(&mut held, one);
    let mut broken = lost.transaction().unwrap();
    entry(&mut broken, two);
    let third = world.approval("standard", 60);
    // A list shows the third already. The stream does not: its id would pass the first over.
    let list = world.app.get("/v1/approvals").expect(200);
    assert_eq!(list["data"][0]["id"], json!(third));
    let (mut other, begins) = std::thread::scope(|scope| {
        let opening = scope.spawn(|| follow(&world.app));
        eventually("the stream to be open", || {
            (world.app.server().shared().streams.open() == 2).then_some(())
        });
        held.commit().unwrap();
        broken.rollback().unwrap();
        opening.join().unwrap()
    });
    let fourth = world.approval("standard", 60);
    let after: Vec<Event> = (0..3).map(|_| stream.next().unwrap()).collect();
    let ids: Vec<Uuid> = delivered(&after).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, [one, third, fourth]);
    // The other has not begun past what was under way: it is told of all that its start does not stand for.
    for event in after.iter().filter(|event| event.id > Some(begins)) {
        assert_eq!(other.next().as_ref(), Some(event));
    }
    assert!(begins < after[2].id.unwrap());
}

#[test]
fn a_stream_over_replicas_and_restarts_misses_nothing() {
    let world = World::start();
    let replica = world.app.replica(|_| {});
    let (mut here, begins) = follow(&world.app);
    let (mut there, _) = follow(&replica);
    let decide = |client: &Client, id: Uuid| {
        let body = json!({"decision": "approve"});
        client
            .post(&format!("/v1/approvals/{id}/decide"), &body)
            .expect(200);
    };
    let ids: Vec<Uuid> = (0..20).map(|_| world.approval("standard", 3600)).collect();
    for (n, id) in ids.iter().enumerate() {
        decide(if n % 2 == 0 { &world.app } else { &replica }, *id);
    }
    let expected = logged(&world.app);
    let read = |stream: &mut Stream| -> Vec<Event> {
        (0..expected.len())
            .map(|_| stream.next().unwrap())
            .collect()
    };
    assert_eq!(delivered(&read(&mut here)), expected);
    assert_eq!(delivered(&read(&mut there)), expected);
    // One process stops: its streams say so, and go on elsewhere or later.
    let third = world.approval("standard", 3600);
    comes(&mut there, third, "approval.waiting", "waiting");
    comes(&mut here, third, "approval.waiting", "waiting");
    let (database, clock, seeds) = replica.stop();
    assert_eq!(end_of(&there.rest()), "server-stopping");
    let meanwhile = world.approval("standard", 3600);
    let again = App::start_on(database, clock, seeds, |_| {});
    let mut back = follow_after(&again, begins);
    let all = logged(&world.app);
    let events: Vec<Event> = all.iter().map(|_| back.next().unwrap()).collect();
    assert_eq!(delivered(&events), all);
    assert_eq!(all.last().unwrap().1, meanwhile);
}

#[test]
fn another_tenant_is_told_nothing() {
    let world = World::start();
    let other = world.app.other_tenant();
    let (mut own, _) = follow(&world.app);
    let (mut others, begins) = follow(&other);
    let id = world.approval("standard", 3600);
    comes(&mut own, id, "approval.waiting", "waiting");
    let mut resumed = follow_after(&other, begins);
    world.app.stop();
    for stream in [&mut others, &mut resumed] {
        let rest = stream.rest();
        assert_eq!((rest.len(), end_of(&rest)), (1, "server-stopping"));
    }
}
