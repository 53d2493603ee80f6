//! Streams of hints: each tells what its reader may list at that moment, and ends with its credential.

use super::world::{Key, Person, World};
use crate::change_streams::{STREAM, comes, is_looked_for, run};
use crate::harness::{Stream, end_of};
use serde_json::{Value, json};
use std::time::Duration;

fn follow(person: &Person, query: &str) -> Stream {
    person.client.open(&format!("{STREAM}{query}"), &[])
}

/// The hints of objects that a stream has left, when the server stops.
fn named(stream: &mut Stream) -> Vec<Value> {
    let hints = stream.rest().into_iter().map(|event| event.data);
    hints.filter(|data| data.get("id").is_some()).collect()
}

#[test]
fn a_reader_is_told_of_what_the_lists_show() {
    let world = World::start();
    let elsewhere = world.another_project();
    let url = world.provider.base_url();
    let agent = world.app.maker().agent_of(elsewhere, &url, |_| {});
    let (reader, stranger) = (world.person("member"), world.person("member"));
    world.grant(elsewhere, reader.user_id, "viewer");
    let reviewer = world.reviewer(&["standard"]);
    let admin = world.person("admin");
    let member_key = Key {
        role: "member",
        ..Key::whole()
    };
    let limited = world.key(admin.user_id, &member_key);
    let mut streams: Vec<Stream> = [&reader, &stranger, &admin, &limited]
        .iter()
        .map(|person| follow(person, ""))
        .collect();
    for stream in &mut streams {
        assert_eq!(stream.next().unwrap().data, json!({"kind": "run"}));
    }
    let mut to_reviewer = follow(&reviewer, "");
    // The first of each kind comes at once.
    comes(&mut to_reviewer, &json!({"kind": "approval"}));
    is_looked_for(&mut to_reviewer);
    let (own, other) = (run(&world.app, agent), run(&world.app, world.agent));
    let approval = world.approval("standard", world.app.seeds.user_id);
    world.approval("finance", world.app.seeds.user_id);
    comes(&mut streams[0], &own);
    comes(&mut streams[2], &own);
    comes(&mut streams[2], &other);
    // What moved before this one was told.
    let last = run(&world.app, world.agent);
    comes(&mut streams[2], &last);
    // A role that is taken opens nothing from the next hint on; one that is given opens what comes.
    let take =
        "delete from project_memberships where tenant_id = $1 and project_id = $2 and user_id = $3";
    world.write(take, &[&world.tenant_id(), &elsewhere, &reader.user_id]);
    world.grant(elsewhere, stranger.user_id, "viewer");
    let later = run(&world.app, agent);
    comes(&mut streams[1], &later);
    comes(&mut streams[2], &later);
    let project = json!(world.project);
    comes(
        &mut to_reviewer,
        &json!({"kind": "approval", "id": approval, "projectId": project}),
    );
    world.app.stop();
    let left = named(&mut streams[0]);
    assert!(!left.contains(&other) && !left.contains(&later), "{left:?}");
    let left = named(&mut streams[1]);
    assert!(!left.contains(&other) && !left.contains(&own), "{left:?}");
    assert_eq!(
        named(&mut streams[3]),
        Vec::<Value>::new(),
        "a member key reads no more than its owner's roles"
    );
    let left = named(&mut to_reviewer);
    assert!(
        left.iter().all(|hint| hint["kind"] == "approval"),
        "{left:?}"
    );
    assert!(
        left.iter().all(|hint| hint["id"] == json!(approval)),
        "{left:?}"
    );
}

#[test]
fn one_decision_stands_behind_a_stream_and_naming_approvals_takes_a_reviewer() {
    let world = World::start();
    let member = world.person("member");
    let answer = member.client.get(&format!("{STREAM}?kind=approval"));
    let rows = world.decisions(&answer);
    let stages: Vec<&str> = rows.iter().map(|row| row.stage.as_str()).collect();
    assert_eq!(stages, ["model", "not-reviewer"]);
    answer.expect_error(403, "permission-denied");
    let elsewhere = world.another_project();
    let key = Key {
        project_id: Some(world.project),
        ..Key::whole()
    };
    let limited = world.key(member.user_id, &key);
    let answer = limited
        .client
        .get(&format!("{STREAM}?projectId={elsewhere}"));
    answer.expect_error(403, "key-project-mismatch");
}

#[test]
fn a_stream_of_hints_ends_with_its_credential() {
    let world = World::start_with(|options| {
        options.streams.recheck_every = Duration::from_millis(100);
    });
    let (stays, goes) = (world.person("member"), world.person("member"));
    let (mut kept, mut ended) = (follow(&stays, ""), follow(&goes, ""));
    for stream in [&mut kept, &mut ended] {
        assert_eq!(stream.next().unwrap().data, json!({"kind": "run"}));
    }
    let revoke = "update tokens set revoked_at = now() where tenant_id = $1 and token_id = $2";
    world.write(revoke, &[&world.tenant_id(), &goes.key_id]);
    assert_eq!(end_of(&ended.rest()), "credential-ended");
    let deactivate =
        "update users set deactivated_at = now() where tenant_id = $1 and user_id = $2";
    world.write(deactivate, &[&world.tenant_id(), &stays.user_id]);
    assert_eq!(end_of(&kept.rest()), "credential-ended");
}
