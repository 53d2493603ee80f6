//! Streams of readers that are slow, and of a database that is slow, late or forgets.

use crate::harness::{
    App, Client, Event, Item, Puppet, Stream, check_order, durable, end_of, eventually, text_of,
};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

/// A finished run whose events are far more than what the kernel keeps for a reader: after the
/// fourth come 40 of 512 KiB each, then the last, number 45.
fn large(app: &App) -> String {
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("Done."),
    })
    .unwrap();
    let id = app.start_turn(app.agent(&provider.base_url()), "a");
    app.finished(&id);
    let run: Uuid = id.parse().unwrap();
    let mut client = app.database.client();
    for statement in [
        "update run_events set seq = 45 where run_id = $1 and seq = 5",
        "insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
         select tenant_id, run_id, n, 'padding', jsonb_build_object('text', repeat('x', 1 << 19)), created_at
         from run_events, generate_series(5, 44) n where run_id = $1 and seq = 4",
        "update runs set last_seq = 45 where run_id = $1",
    ] {
        assert!(client.execute(statement, &[&run]).unwrap() > 0);
    }
    id
}

#[track_caller]
fn check_large(events: &[Event]) {
    check_order(events, 1);
    assert_eq!(durable(events).len(), 45);
    assert_eq!(end_of(events), "run-finished");
}

#[test]
fn a_reader_that_pauses_gets_everything_when_it_reads_on() {
    let app = App::start_with(|options| options.streams.patience = Duration::from_secs(60));
    let id = large(&app);
    let mut paused = app.follow(&id);
    // Another passes it meanwhile, and one has nothing to wait for.
    check_large(&app.follow(&id).rest());
    assert_eq!(app.follow_after(&id, 45).rest().len(), 1);
    check_large(&paused.rest());
    eventually("the streams to be let go", || {
        (app.server().shared().streams.open() == 0).then_some(())
    });
}

#[test]
fn a_reader_that_is_cut_in_the_middle_of_an_event_is_not_given_half_of_it() {
    let app = App::start_with(|options| {
        // It is seen before it is let go.
        options.streams.patience = Duration::from_secs(4);
        // Room for a few bytes is left when no piece fits any more.
        options.streams.buffer_bytes = 70_000;
    });
    let id = large(&app);
    let mut stuck = app.follow(&id);
    for (what, open) in [("taken up", 1), ("let go", 0)] {
        eventually(what, || {
            (app.server().shared().streams.open() == open).then_some(())
        });
    }
    // Every event that comes is whole: half of one would not be JSON.
    let mut events = Vec::new();
    loop {
        match stuck.item() {
            Item::Event(event) => events.push(event),
            Item::End | Item::Cut => break,
            Item::Comment | Item::Retry(_) => {}
        }
    }
    check_order(&events, 1);
    assert!(
        (4..44).contains(&durable(&events).len()),
        "{}",
        events.len()
    );
    assert_ne!(events.last().unwrap().kind, "stream.end");
}

#[test]
fn a_page_of_large_events_is_short_and_says_that_more_follow() {
    let app = App::start();
    let id = large(&app);
    let mut seen = 0;
    loop {
        let path = format!("/v1/runs/{id}/progress?after={seen}&limit=200");
        let answer = app.get(&path);
        assert!(answer.text.len() < 8 << 20, "{} bytes", answer.text.len());
        let page = answer.expect(200);
        for event in page["data"].as_array().unwrap() {
            seen += 1;
            assert_eq!(event["seq"], seen);
        }
        assert_eq!(page["hasMore"], seen < 45);
        if seen == 45 {
            break;
        }
    }
    // A page that ends exactly with the last event says so as well.
    let page = app
        .get(&format!("/v1/runs/{id}/progress?limit=2&after=43"))
        .expect(200);
    assert_eq!(page["hasMore"], false);
    let page = app
        .get(&format!("/v1/runs/{id}/progress?limit=1&after=43"))
        .expect(200);
    assert_eq!(page["hasMore"], true);
}

#[test]
fn what_another_replica_commits_late_is_found() {
    let app = App::start();
    let other = app.onlooker();
    let puppet = Puppet::start();
    let agent = app.agent(&puppet.base_url());
    let id = app.start_turn(agent, "late");
    let mut call = puppet.call();
    // A run's last transaction has taken its positions, and waits before it commits.
    let mut gate = app.database.client();
    gate.batch_execute(&format!(
        "create function wait_at_gate() returns trigger language plpgsql as $$
         begin perform pg_advisory_xact_lock_shared(7); return null; end $$;
         create constraint trigger gate after insert on run_events deferrable initially deferred
         for each row when (new.kind = 'run.completed' and new.run_id = '{id}') execute function wait_at_gate();
         select pg_advisory_lock(7)"
    ))
    .unwrap();
    call.say("Done.");
    call.finish();
    eventually("the transaction to wait", || {
        let waiting = "select 1 from pg_locks where locktype = 'advisory' and not granted
             and database = (select oid from pg_database where datname = current_database())";
        gate.query(waiting, &[]).unwrap().pop()
    });
    // Another run of which the other replica hears only by looking: then it has looked.
    let mut reader = other.follow(&id);
    let mut events = reader.until("step.started");
    let seen = app.start_turn(agent, "seen");
    let mut call = puppet.call();
    let mut seen = other.follow(&seen);
    seen.until("step.started");
    call.say("Done.");
    call.finish();
    assert_eq!(end_of(&seen.rest()), "run-finished");
    gate.batch_execute("select pg_advisory_unlock(7)").unwrap();
    events.extend(reader.rest());
    check_order(&events, 1);
    assert_eq!(durable(&events).len(), 5);
    assert_eq!(end_of(&events), "run-finished");
}

#[test]
fn text_that_could_not_be_written_is_written_later() {
    let app = App::start_with(|options| {
        options.store.statement_timeout = Duration::from_secs(3);
    });
    let other = app.onlooker();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut call = puppet.call();
    let mut reader = other.follow(&id);
    let mut events = reader.until("step.started");
    let mut database = app.database.client();
    let mut holding = database.transaction().unwrap();
    holding
        .batch_execute("lock table run_deltas in share mode")
        .unwrap();
    call.say("Kept.");
    // A statement that waits in vain, and the one that follows it.
    let mut tries = Vec::<String>::new();
    eventually("the text to be written again", || {
        let waiting = "select virtualtransaction from pg_locks
             where relation = 'run_deltas'::regclass and not granted
             and database = (select oid from pg_database where datname = current_database())";
        for row in holding.query(waiting, &[]).unwrap() {
            tries.push(row.get(0));
        }
        tries.dedup();
        (tries.len() > 1).then_some(())
    });
    holding.commit().unwrap();
    events.extend(reader.until("text.delta"));
    assert_eq!(text_of(&events, 1, 1), "Kept.");
    call.finish();
    assert_eq!(end_of(&reader.rest()), "run-finished");
}

#[test]
fn text_that_was_lost_leaves_a_gap_and_the_rest_goes_on() {
    let app = App::start();
    let other = app.onlooker();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let mut call = puppet.call();
    let mut database = app.database.client();
    database
        .batch_execute(
            "create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
             create trigger lose before insert on run_deltas for each row when (new.text_offset = 0)
             execute function lose()",
        )
        .unwrap();
    let mut reader = other.follow(&id);
    reader.until("step.started");
    call.say("Lost.");
    eventually("the text to be lost", || {
        let taken = "select 1 from run_delta_position where is_called";
        database.query_opt(taken, &[]).unwrap()
    });
    // The model goes on and on; its words come although its first were lost.
    let (stop, stopped) = crossbeam_channel::bounded::<()>(0);
    let saying = std::thread::spawn(move || {
        while stopped.recv_timeout(Duration::from_millis(50)).is_err() {
            call.say("More.");
        }
        call.finish();
    });
    let delta = reader.until("text.delta").pop().unwrap();
    assert!(delta.data["offset"].as_i64().unwrap() >= 5, "{delta:?}");
    stop.send(()).unwrap();
    saying.join().unwrap();
    assert_eq!(end_of(&reader.rest()), "run-finished");
}

#[test]
fn text_of_an_attempt_that_is_over_or_has_not_begun_is_not_sent() {
    let app = App::start();
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    puppet.call().say("Void.");
    let mut call = puppet.call();
    // As written by a process that was late, and by one that is early.
    app.database
        .client()
        .execute(
            "insert into run_deltas (tenant_id, run_id, step, attempt, text_offset, text)
             select tenant_id, run_id, step, attempt, 0, 'Stray.'
             from runs, (values (1, 1), (3, 1)) stray (step, attempt) where run_id = $1",
            &[&id.parse::<Uuid>().unwrap()],
        )
        .unwrap();
    let mut reader = app.follow(&id);
    let mut events = reader.until("step.failed");
    events.extend(reader.until("step.started"));
    let begun = events.last().unwrap().id.unwrap();
    let mut again = app.follow_after(&id, begun);
    call.say("Found.");
    let mut later = again.until("text.delta");
    events.extend(reader.until("text.delta"));
    call.finish();
    events.extend(reader.rest());
    later.extend(again.rest());
    check_order(&events, 1);
    for events in [&events, &later] {
        assert_eq!(text_of(events, 1, 2), "Found.");
        assert_eq!(text_of(events, 1, 1), "");
        assert_eq!(text_of(events, 3, 1), "");
        assert_eq!(end_of(events), "run-finished");
    }
}

#[test]
fn streams_of_revoked_tokens_of_many_tenants_end() {
    let app = App::start_with(|options| options.streams.recheck_every = Duration::from_millis(100));
    let puppet = Puppet::start();
    let mut calls = Vec::new();
    let mut follow = |client: &Client| {
        let id = client.start_turn(client.agent(&puppet.base_url()), "a");
        calls.push(puppet.call());
        let minted = client
            .post("/v1/tokens", &json!({"name": "revoked"}))
            .expect(201);
        let open = |client: &Client| {
            let mut stream = client.follow(&id);
            stream.until("step.started");
            stream
        };
        let ending = open(&app.with_token(minted["token"].as_str()));
        let path = format!("/v1/tokens/{}", minted["id"].as_str().unwrap());
        (ending, open(client), path)
    };
    let others = [app.other_tenant(), app.other_tenant()];
    let mut followed: Vec<(Stream, Stream, String)> = others.iter().map(&mut follow).collect();
    for (client, (_, _, path)) in others.iter().zip(&followed) {
        client.delete(path).expect(204);
    }
    for (ending, _, _) in &mut followed {
        assert_eq!(end_of(&ending.rest()), "credential-ended");
    }
    for call in calls {
        call.finish();
    }
    for (_, staying, _) in &mut followed {
        assert_eq!(end_of(&staying.rest()), "run-finished");
    }
}

#[test]
fn a_server_stops_in_time_though_its_streams_wait_for_the_database() {
    let app = App::start_with(|options| {
        options.store.statement_timeout = Duration::from_secs(3600);
    });
    let puppet = Puppet::start();
    let id = app.start_turn(app.agent(&puppet.base_url()), "a");
    let call = puppet.call();
    let mut database = app.database.client();
    let mut holding = database.transaction().unwrap();
    holding
        .batch_execute("lock table run_events in access exclusive mode")
        .unwrap();
    let _stream = app.follow(&id);
    eventually("the stream's thread to wait", || {
        let waiting =
            "select 1 from pg_locks where relation = 'run_events'::regclass and not granted
             and database = (select oid from pg_database where datname = current_database())";
        holding.query(waiting, &[]).unwrap().pop()
    });
    // Its statement would wait for ever: the table is locked until the stop is over.
    app.stop_within(Duration::from_secs(2));
    drop(call);
}
