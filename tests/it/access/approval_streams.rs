//! Reviewers' streams: each tells what its reviewer may see at that moment, and ends with the right to it.

use super::world::{Key, Person, World};
use crate::harness::{Stream, end_of, eventually};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

const STREAM: &str = "/v1/approvals/stream";

fn follow(person: &Person) -> Stream {
    let mut stream = person.client.open(STREAM, &[]);
    assert_eq!(stream.next().unwrap().kind, "stream.start");
    stream
}

#[track_caller]
fn comes(stream: &mut Stream, approval: Uuid) {
    let event = stream.next().expect("an event");
    assert_eq!(
        event.data["data"]["approvalId"],
        json!(approval),
        "{event:?}"
    );
}

fn take_role(world: &World, person: &Person, role: &str) {
    let delete = "delete from reviewers where tenant_id = $1 and user_id = $2 and role = $3";
    world.write(delete, &[&world.tenant_id(), &person.user_id, &role]);
}

#[test]
fn who_is_no_reviewer_gets_no_stream() {
    let world = World::start();
    let admin = world.person("admin");
    let answer = admin.client.get(STREAM);
    let rows = world.decisions(&answer);
    assert_eq!((rows.len(), rows[0].stage.as_str()), (1, "not-reviewer"));
    answer.expect_error(403, "permission-denied");
}

#[test]
fn a_stream_tells_what_the_roles_and_the_key_open_as_they_are_by_then() {
    let world = World::start();
    let seed = world.app.seeds.user_id;
    let both = world.reviewer(&["standard", "finance"]);
    let one = world.reviewer(&["standard"]);
    let elsewhere = world.another_project();
    let key = Key {
        project_id: Some(elsewhere),
        ..Key::whole()
    };
    let limited = world.key(both.user_id, &key);
    let (mut to_both, mut to_one, mut to_limited) = (follow(&both), follow(&one), follow(&limited));
    let (finance, standard) = (
        world.approval("finance", seed),
        world.approval("standard", seed),
    );
    comes(&mut to_both, finance);
    comes(&mut to_both, standard);
    comes(&mut to_one, standard);
    // A role that is lost opens nothing from the next event on, a role that is given opens what comes.
    take_role(&world, &both, "finance");
    let give = "insert into reviewers (tenant_id, user_id, role, created_by, created_at) values ($1, $2, 'finance', $2, now())";
    world.write(give, &[&world.tenant_id(), &one.user_id]);
    let (finance, standard) = (
        world.approval("finance", seed),
        world.approval("standard", seed),
    );
    comes(&mut to_both, standard);
    comes(&mut to_one, finance);
    comes(&mut to_one, standard);
    world.app.stop();
    assert_eq!(
        to_limited.rest().len(),
        1,
        "nothing of another project but the end"
    );
}

#[test]
fn a_stream_ends_with_the_last_role_and_with_the_key() {
    let world = World::start_with(|options| {
        options.streams.recheck_every = Duration::from_millis(100);
    });
    let (stays, goes) = (world.reviewer(&["standard"]), world.reviewer(&["standard"]));
    let (mut kept, mut ended) = (follow(&stays), follow(&goes));
    take_role(&world, &goes, "standard");
    let approval = world.approval("standard", world.app.seeds.user_id);
    comes(&mut kept, approval);
    let rest = ended.rest();
    assert_eq!((rest.len(), end_of(&rest)), (1, "permission-denied"));
    let denied = eventually("the refusal to be recorded", || {
        world.rows("key_id = $1", &[&goes.key_id]).pop()
    });
    let found = [&denied.outcome, &denied.stage, &denied.resource].map(String::as_str);
    assert_eq!(found, ["denied", "not-reviewer", "approval:*"]);
    assert_eq!(denied.route.as_deref(), Some("GET /v1/approvals/stream"));
    let revoke = "update tokens set revoked_at = now() where tenant_id = $1 and token_id = $2";
    world.write(revoke, &[&world.tenant_id(), &stays.key_id]);
    assert_eq!(end_of(&kept.rest()), "credential-ended");
}
