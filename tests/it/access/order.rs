//! `audit-before-commit`: a decision is on disk before its effect commits and before its answer leaves.

use super::world::World;
use crate::harness::eventually;
use serde_json::json;
use std::time::Duration;

/// While it lives, no decision can be written; everything else goes on.
pub(super) struct Held(postgres::Client);

impl Held {
    pub(super) fn of(world: &World) -> Self {
        let mut client = world.app.database.client();
        client
            .batch_execute("begin; lock table audit_decisions in exclusive mode")
            .unwrap();
        Self(client)
    }

    pub(super) fn release(mut self) {
        self.0.batch_execute("rollback").unwrap();
    }
}

#[test]
fn nothing_is_changed_or_shown_that_cannot_be_recorded() {
    let world = World::start_with(|options| options.limits.request_threads = 32);
    let member = world.person("member");
    let project = format!("/v1/projects/{}", world.project);
    let name = || world.app.get(&project).expect(200)["name"].clone();
    let before = name();
    let held = Held::of(&world);
    let stream = format!("/v1/runs/{}/progress/stream", world.run);
    let cancel = format!("/v1/runs/{}/cancel", world.run);
    let run = json!({"agentId": world.agent, "message": "unheard"});
    // A change, a read, a list, a refusal, a cancel, a run, all of which wait at once; and a stream.
    let (answers, refused) = std::thread::scope(|scope| {
        let asking = [
            scope.spawn(|| world.app.patch(&project, &json!({"name": "changed"}))),
            scope.spawn(|| world.app.get(&project)),
            scope.spawn(|| world.app.get("/v1/projects")),
            scope.spawn(|| member.client.get(&project)),
            scope.spawn(|| world.app.send("POST", &cancel, None, &[])),
            scope.spawn(|| world.app.post("/v1/runs", &run)),
        ];
        let refused = world.app.try_open(&stream, &[]).err().unwrap();
        (asking.map(|one| one.join().unwrap()), refused)
    });
    for answer in answers {
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert!(answer.header("traceresponse").is_some());
        assert!(!answer.text.contains(&world.run), "{}", answer.text);
        let error = answer.expect_error(503, "audit-unavailable");
        assert!(error["message"].as_str().unwrap().contains("audit"));
    }
    refused.expect_error(503, "audit-unavailable");
    held.release();
    assert_eq!(name(), before, "it was not changed");
    let runs = world.app.get("/v1/runs").expect(200);
    assert_eq!(runs["data"].as_array().unwrap().len(), 1);
}

#[test]
fn an_answer_waits_for_its_record_and_holds_no_thread() {
    let world = World::start_with(|options| {
        options.limits.request_threads = 4;
        options.audit.patience = Duration::from_secs(15);
    });
    let project = format!("/v1/projects/{}", world.project);
    let ask = || {
        loop {
            let answer = world.app.get(&project);
            // Checks may be slow on a busy machine, and have fewer places than there are requests.
            if answer.json_code().as_deref() != Some("overloaded") {
                return answer;
            }
        }
    };
    let held = Held::of(&world);
    std::thread::scope(|scope| {
        let mut asked = vec![scope.spawn(ask)];
        // The writer has taken the first, and stands still with it.
        eventually("the writer to wait", || {
            let waiting = "select count(*) from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock'";
            let row = world.app.database.client().query_one(waiting, &[]);
            (row.unwrap().get::<_, i64>(0) > 0).then_some(())
        });
        asked.extend((0..11).map(|_| scope.spawn(ask)));
        // Three times as many as there are threads wait; what is not checked is answered.
        eventually("answers to wait for their records", || {
            let waiting = world.app.server().shared().audit.stats().queued;
            (waiting == 11).then_some(())
        });
        world.app.get("/openapi.json").expect(200);
        assert!(asked.iter().all(|thread| !thread.is_finished()));
        held.release();
        for thread in asked {
            thread.join().unwrap().expect(200);
        }
    });
}
