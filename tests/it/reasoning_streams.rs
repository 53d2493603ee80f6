//! Reasoning while a model thinks: on every replica, for those who join late, and in the table that carries it. What is the same
//! for text is in `streams` and `stream_faults`.

use crate::harness::{App, Event, Puppet, Stream, check_order, end_of, eventually, text_of};
use serde_json::json;

/// The reasoning of the first attempt of the first step. Each piece follows the one before it.
#[track_caller]
fn thoughts_of(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events.iter().filter(|one| one.kind == "reasoning.delta") {
        assert_eq!(event.id, None);
        assert_eq!(
            (&event.data["step"], &event.data["attempt"]),
            (&json!(1), &json!(1))
        );
        assert_eq!(event.data["offset"], text.chars().count(), "{events:?}");
        text += event.data["text"].as_str().unwrap();
    }
    text
}

/// The events until the reader has this reasoning.
#[track_caller]
fn until_thought(reader: &mut Stream, events: &mut Vec<Event>, whole: &str) {
    while thoughts_of(events) != whole {
        assert!(whole.starts_with(&thoughts_of(events)), "{events:?}");
        events.extend(reader.until("reasoning.delta"));
    }
}

/// Pieces that are stored.
fn stored(app: &App) -> i64 {
    let count = "select count(*) from run_reasoning";
    app.database.client().query_one(count, &[]).unwrap().get(0)
}

#[test]
fn reasoning_comes_to_every_replica_and_to_those_who_join_late() {
    let app = App::start();
    let other = app.onlooker();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut call = puppet.call();
    let body = json!({"runIds": [id], "expiresInSeconds": 60});
    let public = app.post("/v1/tokens/public", &body).expect(201);
    let mut public = app.with_token(public["token"].as_str()).follow(&id);
    let mut readers: Vec<(Stream, Vec<Event>)> = [&app, &other]
        .map(|replica| {
            let mut reader = replica.follow(&id);
            let events = reader.until("step.started");
            (reader, events)
        })
        .into();
    call.think("grün ");
    for (reader, events) in &mut readers {
        until_thought(reader, events, "grün ");
    }
    call.think("und ").think("blau");
    for (reader, events) in &mut readers {
        until_thought(reader, events, "grün und blau");
    }
    for replica in [&app, &other] {
        readers.push((replica.follow(&id), Vec::new()));
    }
    for (reader, events) in &mut readers {
        until_thought(reader, events, "grün und blau");
    }
    call.say("Ja.");
    for (reader, events) in &mut readers {
        events.extend(reader.until("text.delta"));
    }
    call.finish();
    for (mut reader, mut events) in readers {
        events.extend(reader.rest());
        check_order(&events, 1);
        assert_eq!(thoughts_of(&events), "grün und blau");
        assert_eq!(text_of(&events, 1, 1), "Ja.");
        assert_eq!(end_of(&events), "run-finished");
    }
    let shown = public.rest();
    assert_eq!(thoughts_of(&shown), "", "for the public");
    assert_eq!(text_of(&shown, 1, 1), "Ja.");
    eventually("the pieces to be gone", || {
        (stored(&app) == 0).then_some(())
    });
}

#[test]
fn reasoning_of_an_attempt_that_is_over_is_void_and_none_is_left_by_a_cancel() {
    let app = App::start();
    let other = app.onlooker();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut call = puppet.call();
    call.think("Void.");
    eventually("it to be stored", || (stored(&app) > 0).then_some(()));
    // The connection breaks, and the call is made again.
    drop(call);
    let mut call = puppet.call();
    let mut reader = other.follow(&id);
    let mut events = reader.until("step.failed");
    events.extend(reader.until("step.started"));
    call.think("Found.");
    let piece = reader.until("reasoning.delta").pop().unwrap();
    let expected = json!({"step": 1, "attempt": 2, "offset": 0, "text": "Found."});
    assert_eq!(piece.data, expected);
    app.cancel(&id);
    let run = app.finished(&id);
    assert_eq!(run["status"], json!("cancelled"));
    let sweep = include_str!("../../sql/queries/deltas/sweep.sql");
    // A piece may be written in the very moment of the cancel; the upkeep removes it.
    eventually("the pieces to be gone", || {
        app.database.client().execute(sweep, &[&1000_i64]).unwrap();
        (stored(&app) == 0).then_some(())
    });
    drop(call);
}
