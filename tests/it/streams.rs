//! `GET /v1/runs/{runId}/progress/stream`: what each kind of reader gets.

use crate::harness::{
    App, Client, Event, Item, Puppet, Stream, check_order, durable, end_of, eventually, text_of,
};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

const TEXT: &str = "One, two, drei, 四, 🙂, and an end.";

/// A run that stands before its first word.
fn begun(app: &App, puppet: &Puppet) -> (String, crate::harness::Call) {
    let id = app.start_turn(app.agent(&puppet.base_url()), "Say it.");
    (id, puppet.call())
}

/// Reads until this much of the first step's text has come.
#[track_caller]
fn until_text(stream: &mut Stream, events: &mut Vec<Event>, text: &str) {
    while text_of(events, 1, 1) != text {
        events.push(stream.next().expect("more text"));
    }
}

fn pieces() -> Vec<&'static str> {
    TEXT.split_inclusive(' ').collect()
}

const WHOLE: [&str; 5] = [
    "run.created",
    "run.started",
    "step.started",
    "step.completed",
    "run.completed",
];

#[track_caller]
fn check_whole(events: &[Event], text: &str) {
    check_order(events, 1);
    let kinds: Vec<String> = durable(events).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, WHOLE);
    assert_eq!(text_of(events, 1, 1), text);
    let completed = events.iter().find(|event| event.kind == "step.completed");
    assert_eq!(completed.unwrap().data["data"]["text"], text);
    assert_eq!(end_of(events), "run-finished");
}

#[test]
fn a_reader_gets_every_event_once_and_the_text_as_it_comes() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let mut first = app.follow(&id);
    assert_eq!(first.item(), Item::Retry("2000".to_owned()));
    let mut second = app.follow(&id);
    let (mut one, mut two, mut said) = (Vec::new(), Vec::new(), String::new());
    for piece in pieces() {
        call.say(piece);
        said += piece;
        // It comes before the next is said.
        until_text(&mut first, &mut one, &said);
        until_text(&mut second, &mut two, &said);
    }
    call.finish();
    one.extend(first.rest());
    two.extend(second.rest());
    check_whole(&one, TEXT);
    check_whole(&two, TEXT);
    let shown = app.events(&id);
    let streamed: Vec<&Value> = one
        .iter()
        .filter(|e| e.id.is_some())
        .map(|e| &e.data)
        .collect();
    assert_eq!(
        streamed,
        shown.iter().collect::<Vec<_>>(),
        "both routes show the same"
    );
}

#[test]
fn a_reader_that_joins_in_the_middle_gets_what_was_said() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let mut early = app.follow(&id);
    let mut events = Vec::new();
    call.say("One, ").say("two, ");
    until_text(&mut early, &mut events, "One, two, ");
    let mut late = app.follow(&id);
    let mut later = Vec::new();
    call.say("three.");
    until_text(&mut late, &mut later, "One, two, three.");
    until_text(&mut early, &mut events, "One, two, three.");
    call.finish();
    later.extend(late.rest());
    check_whole(&later, "One, two, three.");
    events.extend(early.rest());
    check_whole(&events, "One, two, three.");
}

#[test]
fn a_reader_begins_where_it_says() {
    let app = App::start();
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text(TEXT),
    })
    .unwrap();
    let id = app.start_turn(app.agent(&provider.base_url()), "a");
    app.finished(&id);
    let path = Client::stream_of(&id);
    for after in 0..=5 {
        for mut stream in [
            app.follow_after(&id, after),
            app.open(&format!("{path}?after={after}"), &[]),
            app.open(
                &format!("{path}?after=1"),
                &[("last-event-id", &after.to_string())],
            ),
            // As polyfills of EventSource ask again, which set no header.
            app.open(&format!("{path}?after=1&lastEventId={after}"), &[]),
            app.open(
                &format!("{path}?lastEventId=1"),
                &[("last-event-id", &after.to_string())],
            ),
        ] {
            let events = stream.rest();
            check_order(&events, after + 1);
            assert_eq!(durable(&events).len(), usize::try_from(5 - after).unwrap());
            assert_eq!(end_of(&events), "run-finished");
        }
    }
    for bad in ["6", "-1", "x", "1.5", "99999999999999999999"] {
        for answer in [
            app.try_open(&path, &[("last-event-id", bad)]),
            app.try_open(&format!("{path}?after={bad}"), &[]),
            app.try_open(&format!("{path}?lastEventId={bad}"), &[]),
        ] {
            let Err(answer) = answer else {
                panic!("{bad} was taken");
            };
            answer.expect_error(400, "invalid-request");
        }
    }
    let empty = app.open(&path, &[("last-event-id", "")]).rest();
    assert_eq!(durable(&empty).len(), 5, "an empty id is none");
}

#[test]
fn a_reader_that_is_cut_goes_on_where_it_was() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let mut stream = app.follow(&id);
    let mut events = stream.until("step.started");
    call.say("One, ");
    until_text(&mut stream, &mut events, "One, ");
    drop(stream);
    let last = events.iter().filter_map(|event| event.id).max().unwrap();
    call.say("two.");
    let mut again = app.follow_after(&id, last);
    let mut rest = Vec::new();
    // The text comes from its beginning: nothing says how much of it the reader had.
    until_text(&mut again, &mut rest, "One, two.");
    call.finish();
    rest.extend(again.rest());
    check_order(&rest, last + 1);
    assert_eq!(end_of(&rest), "run-finished");
    let all: Vec<i64> = events
        .iter()
        .chain(&rest)
        .filter_map(|event| event.id)
        .collect();
    assert_eq!(all, [1, 2, 3, 4, 5]);
}

#[test]
fn a_reader_on_another_replica_gets_the_same() {
    let app = App::start();
    let other = app.replica(|options| options.runs.threads = 1);
    let puppet = Puppet::start();
    // Both replicas look for work: whichever has the run, one reader is on the other.
    let (id, mut call) = begun(&app, &puppet);
    let (mut here, mut there) = (app.follow(&id), other.follow(&id));
    let (mut one, mut two, mut said) = (Vec::new(), Vec::new(), String::new());
    for piece in pieces() {
        call.say(piece);
        said += piece;
        until_text(&mut here, &mut one, &said);
        until_text(&mut there, &mut two, &said);
    }
    call.finish();
    one.extend(here.rest());
    two.extend(there.rest());
    check_whole(&one, TEXT);
    check_whole(&two, TEXT);
}

#[test]
fn a_reader_on_another_replica_misses_nothing_while_its_replica_begins_to_look() {
    let app = App::start_with(|options| options.runs.threads = 8);
    // It carries on no run, and looks seldom: what happens between the reader's coming and the
    // first look must be found all the same.
    let other = app.replica(|options| {
        options.runs.poll = Duration::from_secs(600);
        options.streams.tail_every = Duration::from_millis(300);
    });
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    for _ in 0..4 {
        let id = app.start_turn(agent, "a");
        let mut call = puppet.call();
        let mut reader = other.follow(&id);
        let mut events = reader.until("step.started");
        call.say("Done.");
        call.finish();
        app.finished(&id);
        events.extend(reader.rest());
        check_order(&events, 1);
        assert_eq!(end_of(&events), "run-finished");
    }
}

/// A provider whose one answer is this long.
fn verbose(bytes: usize) -> Provider {
    let piece = "x".repeat(1000);
    let delta = json!({"choices": [{"index": 0, "delta": {"content": piece}}]}).to_string();
    let mut events = vec![delta; bytes / 1000];
    events
        .push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string());
    events.push("[DONE]".to_owned());
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::new(Reply::Events(events)),
    })
    .unwrap()
}

#[test]
fn a_reader_that_stops_reading_is_cut_and_the_others_go_on() {
    let app = App::start_with(|options| {
        // Longer than a busy machine keeps the good reader from reading.
        options.streams.patience = Duration::from_secs(4);
        options.streams.buffer_bytes = 16 * 1024;
        options.limits.write_timeout = Duration::from_secs(5);
    });
    // One event alone is more than what the kernel keeps for a reader that does not read.
    let bytes = 5_000_000;
    let provider = verbose(bytes);
    let agent = app.agent(&provider.base_url());
    let id = app.start_turn(agent, "a");
    let mut stuck = app.follow_narrowly(&id);
    let good = app.follow(&id).rest();
    let completed = good
        .iter()
        .find(|event| event.kind == "step.completed")
        .unwrap();
    assert_eq!(
        completed.data["data"]["text"].as_str().unwrap().len(),
        bytes
    );
    check_order(&good, 1);
    assert_eq!(end_of(&good), "run-finished");
    eventually("the stuck reader to be let go", || {
        (app.server().shared().streams.open() == 0).then_some(())
    });
    // What it finds when it reads at last: a beginning in order, and no claim to be whole.
    let mut events = Vec::new();
    let over = loop {
        match stuck.item() {
            Item::Event(event) => events.push(event),
            Item::End | Item::Cut => break events.last().cloned(),
            Item::Comment | Item::Retry(_) => {}
        }
    };
    check_order(&events, 1);
    assert_ne!(
        over.unwrap().kind,
        "stream.end",
        "it was not given everything"
    );
}

#[test]
fn an_idle_stream_gets_comments() {
    let app = App::start_with(|options| options.streams.comment_every = Duration::from_millis(100));
    let puppet = Puppet::start();
    let (id, call) = begun(&app, &puppet);
    let mut stream = app.follow(&id);
    stream.until("step.started");
    for _ in 0..2 {
        assert_eq!(stream.item(), Item::Comment);
    }
    call.finish();
    assert_eq!(end_of(&stream.rest()), "run-finished");
}

#[test]
fn a_stream_ends_with_its_public_token() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, call) = begun(&app, &puppet);
    let body = json!({"runIds": [id], "expiresInSeconds": 60});
    let short = app.post("/v1/tokens/public", &body).expect(201);
    let short = app.with_token(short["token"].as_str());
    let mut ending = short.follow(&id);
    let mut staying = app.follow(&id);
    ending.until("step.started");
    app.clock.advance(Duration::from_secs(61));
    assert_eq!(end_of(&ending.rest()), "credential-ended");
    let Err(refused) = short.try_open(&Client::stream_of(&id), &[]) else {
        panic!("the token has ended");
    };
    refused.expect_error(401, "unauthenticated");
    call.finish();
    assert_eq!(end_of(&staying.rest()), "run-finished");
}

#[test]
fn a_stream_ends_with_its_bearer_token() {
    let app = App::start_with(|options| options.streams.recheck_every = Duration::from_millis(100));
    let puppet = Puppet::start();
    let (id, call) = begun(&app, &puppet);
    let end = agent_runtime::ids::rfc3339::text(app.clock.now() + Duration::from_secs(60));
    let body = json!({"name": "short", "expiresAt": end});
    let short = app.post("/v1/tokens", &body).expect(201);
    let revoked = app
        .post("/v1/tokens", &json!({"name": "revoked"}))
        .expect(201);
    let open = |minted: &Value| {
        let mut stream = app.with_token(minted["token"].as_str()).follow(&id);
        stream.until("step.started");
        stream
    };
    let (mut of_short, mut of_revoked, mut staying) =
        (open(&short), open(&revoked), app.follow(&id));
    app.delete(&format!("/v1/tokens/{}", revoked["id"].as_str().unwrap()))
        .expect(204);
    assert_eq!(end_of(&of_revoked.rest()), "credential-ended");
    app.clock.advance(Duration::from_secs(61));
    assert_eq!(end_of(&of_short.rest()), "credential-ended");
    call.finish();
    assert_eq!(end_of(&staying.rest()), "run-finished");
}

#[test]
fn a_server_that_stops_tells_its_readers() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, call) = begun(&app, &puppet);
    let mut stream = app.follow(&id);
    let mut events = stream.until("step.started");
    let stopping = std::thread::spawn(move || app.stop());
    events.extend(stream.rest());
    check_order(&events, 1);
    assert_eq!(end_of(&events), "server-stopping");
    drop(call);
    stopping.join().unwrap();
}

#[test]
fn a_hundred_readers_follow_one_run() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let mut readers: Vec<(Stream, Vec<Event>)> = Vec::new();
    for _ in 0..100 {
        let mut stream = app.follow(&id);
        let events = stream.until("step.started");
        readers.push((stream, events));
    }
    assert_eq!(app.get(&format!("/v1/runs/{id}")).status, 200);
    for piece in pieces() {
        call.say(piece);
    }
    // Text that is overtaken by the step's end is left out, since that has all of it.
    for (stream, events) in &mut readers {
        until_text(stream, events, TEXT);
    }
    call.finish();
    for (mut stream, mut events) in readers {
        events.extend(stream.rest());
        check_whole(&events, TEXT);
    }
    eventually("the streams to be let go", || {
        (app.server().shared().streams.open() == 0).then_some(())
    });
}

/// There is no room for another stream.
#[track_caller]
fn check_refused(client: &Client, path: &str) {
    let Err(refused) = client.try_open(path, &[]) else {
        panic!("{path}: there is room");
    };
    refused.expect_error(429, "too-many-requests");
}

#[test]
fn neither_public_tokens_nor_a_tenant_take_every_stream() {
    let app = App::start_with(|options| {
        options.streams.public_run_streams = 2;
        options.streams.tenant_streams = 3;
        // What is written to a reader that has left shows that it has.
        options.streams.comment_every = Duration::from_millis(50);
    });
    let puppet = Puppet::start();
    let (id, call) = begun(&app, &puppet);
    let path = Client::stream_of(&id);
    let public = || {
        let body = json!({"runIds": [id], "expiresInSeconds": 600});
        let minted = app.post("/v1/tokens/public", &body).expect(201);
        app.with_token(minted["token"].as_str())
    };
    let (one, other) = (public(), public());
    let (first, _second) = (one.follow(&id), other.follow(&id));
    check_refused(&one, &path);
    // Another token of the same run gives no further room; a key has its own.
    check_refused(&other, &path);
    let _third = app.follow(&id);
    check_refused(&app, &path);
    check_refused(&app, "/v1/changes/stream");
    // Requests go on, and so do the streams of other tenants.
    one.get(&format!("/v1/runs/{id}/progress")).expect(200);
    app.get(&format!("/v1/runs/{id}")).expect(200);
    let neighbour = app.other_tenant();
    let theirs = neighbour.start_turn(neighbour.agent(&puppet.base_url()), "Say it.");
    let their_call = puppet.call();
    neighbour.follow(&theirs).until("step.started");
    drop(first);
    let mut again = eventually("the reader that left to release its room", || {
        one.try_open(&path, &[]).ok()
    });
    call.finish();
    assert_eq!(end_of(&again.rest()), "run-finished");
    their_call.finish();
}

#[test]
fn public_tokens_of_one_tree_of_runs_share_their_room() {
    let app = App::start_with(|options| options.streams.public_run_streams = 1);
    let puppet = Puppet::start();
    let (child, call) = begun(&app, &puppet);
    call.finish();
    app.finished(&child);
    let (root, call) = begun(&app, &puppet);
    let [root_id, child_id] = [&root, &child].map(|id| id.parse::<Uuid>().unwrap());
    let below = "update runs set root_run_id = $1, parent_run_id = $1, parent_slot = 0, origin = 'run' where run_id = $2";
    let mut client = app.database.client();
    client.execute(below, &[&root_id, &child_id]).unwrap();
    let body = json!({"runIds": [root], "expiresInSeconds": 600});
    let minted = app.post("/v1/tokens/public", &body).expect(201);
    let holder = app.with_token(minted["token"].as_str());
    let mut of_root = holder.follow(&root);
    let path = Client::stream_of(&child);
    check_refused(&holder, &path);
    call.finish();
    assert_eq!(end_of(&of_root.rest()), "run-finished");
    let mut of_child = eventually("the stream that ended to release its room", || {
        holder.try_open(&path, &[]).ok()
    });
    assert_eq!(end_of(&of_child.rest()), "run-finished");
}

#[test]
fn a_failed_attempt_keeps_its_text_apart() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let mut stream = app.follow(&id);
    let mut events = Vec::new();
    call.say("Lost ");
    until_text(&mut stream, &mut events, "Lost ");
    drop(call);
    let mut call = puppet.call();
    call.say("Found.");
    while text_of(&events, 1, 2) != "Found." {
        events.push(stream.next().expect("more text"));
    }
    call.finish();
    events.extend(stream.rest());
    check_order(&events, 1);
    assert_eq!(text_of(&events, 1, 1), "Lost ");
    assert_eq!(text_of(&events, 1, 2), "Found.");
    let run = app.finished(&id);
    assert_eq!(run["usage"]["calls"], 2);
    assert_eq!(app.output(&id), json!({"text": "Found."}));
    let unknown = Uuid::now_v7().to_string();
    let Err(answer) = app.try_open(&Client::stream_of(&unknown), &[]) else {
        panic!("there is no such run");
    };
    answer.expect_error(404, "not-found");
}

#[test]
fn reasoning_is_an_event_of_its_own_and_not_for_public_tokens() {
    let app = App::start();
    let puppet = Puppet::start();
    let (id, mut call) = begun(&app, &puppet);
    let body = json!({"runIds": [id], "expiresInSeconds": 60});
    let public = app.post("/v1/tokens/public", &body).expect(201);
    let mut public = app.with_token(public["token"].as_str()).follow(&id);
    let mut reader = app.follow(&id);
    let mut shown = public.until("step.started");
    let mut events = reader.until("step.started");
    call.think("hmm ").think("é").say("Hi.");
    events.extend(reader.until("text.delta"));
    call.finish();
    events.extend(reader.rest());
    shown.extend(public.rest());
    let thoughts = |events: &[Event]| {
        let thoughts = events
            .iter()
            .filter(|event| event.kind == "reasoning.delta");
        thoughts
            .map(|event| (event.id, event.data.clone()))
            .collect::<Vec<_>>()
    };
    let piece = |offset: i32, text: &str| {
        (
            None,
            json!({"step": 1, "attempt": 1, "offset": offset, "text": text}),
        )
    };
    assert_eq!(thoughts(&events), [piece(0, "hmm "), piece(4, "é")]);
    assert_eq!(thoughts(&shown), []);
    assert_eq!(
        (text_of(&events, 1, 1), text_of(&shown, 1, 1)),
        ("Hi.".to_owned(), "Hi.".to_owned())
    );
    // Erasing takes the step's whole result (`erasure.rs`).
    let steps = app.get(&format!("/v1/runs/{id}/steps")).expect(200);
    assert_eq!(steps["data"][0]["result"]["reasoning"], "hmm é");
}
