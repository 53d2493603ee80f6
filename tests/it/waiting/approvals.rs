//! Runs that ask a reviewer and wait, through the whole driver.

use super::world::{HOUR_MS, Scripts, built_in, scripted};
use crate::harness::webhooks::{SIGNING, deployed};
use crate::harness::{App, Receiver, eventually};
use crate::runtime::world::{Process, Root, World, YES, started_by};
use agent_runtime::runtime::journal::wait::ApprovalResult;
use agent_runtime::runtime::progress::events::Event;
use agent_runtime::store::approvals::{self, Actor, Decided, Decision, EscalatedTo, Handed};
use agent_runtime::store::runs::{
    self, Labels, NewRun, Origin, Run, StartOptions, Status, WaitingFor,
};
use agent_runtime::store::{Sql, Store, Tx};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Barrier;
use uuid::Uuid;

/// A run that waits for its approval, and the approval.
pub(super) fn asked(world: &World, process: &Process, ask: &Value) -> (Uuid, Uuid) {
    let run_id = world.start(process, &json!({"steps": [{"ask": ask}]}));
    let run = world.until(process, run_id, |run| run.status == Status::Waiting);
    assert_eq!(run.waiting_for, Some(WaitingFor::Approval));
    (run_id, newest(&world.store, run_id))
}

pub(super) fn newest(store: &Store, run_id: Uuid) -> Uuid {
    let newest =
        "select approval_id from approvals where run_id = $1 order by created_at desc limit 1";
    let mut session = store.session().unwrap();
    session.query_one(newest, &[&run_id]).unwrap().get(0)
}

pub(super) fn decide(world: &World, approval_id: Uuid, decision: &Decision<'_>) -> Decided {
    world.decide(approval_id, decision).unwrap()
}

fn statuses(store: &Store, run_id: Uuid) -> Vec<String> {
    let query = "select a.status, array_agg(l.kind order by l.position) from approvals a
         join approval_log l using (tenant_id, approval_id) where a.run_id = $1 group by a.approval_id, a.status, a.created_at
         order by a.created_at";
    let mut session = store.session().unwrap();
    let rows = session.query(query, &[&run_id]).unwrap();
    let each = rows.iter().map(|row| {
        let (status, log): (String, Vec<String>) = (row.get(0), row.get(1));
        assert_eq!(log[0], "opened");
        let last = if status == "waiting" {
            "opened"
        } else {
            &status
        };
        assert_eq!(log.last().unwrap(), last, "the log tells how it was closed");
        status
    });
    each.collect()
}

fn result(world: &World, run_id: Uuid) -> ApprovalResult {
    serde_json::from_value(world.output(run_id)[0].clone()).unwrap()
}

#[test]
fn a_run_waits_for_a_reviewer_and_goes_on_with_the_decision() {
    let world = World::scripted();
    let process = world.process(1, true);
    let (run_id, approval_id) = asked(&world, &process, &json!({"context": {"amount": 50}}));
    world.holds_nothing(run_id);
    let answer = json!({"until": "Friday"});
    let decision = Decision {
        comment: Some("Well argued."),
        answer: Some(&answer),
        ..YES
    };
    let decided = decide(&world, approval_id, &decision);
    assert_eq!(decided, Decided::Written { run_id });
    process.runtime.wake();
    let run = world.finished(&process, run_id);
    assert_eq!(run.status, Status::Completed, "{:?}", run.failure_message);
    assert_eq!(
        world.output(run_id),
        json!([{"decision": "approved", "comment": "Well argued.", "decidedBy": world.user_id,
            "answer": {"until": "Friday"}, "approvalId": approval_id}])
    );
    assert_eq!(
        world.kinds(run_id),
        [
            "run.created",
            "run.started",
            "step.started",
            "approval.requested",
            "run.waiting",
            "approval.decided",
            "step.completed",
            "run.completed"
        ]
    );
    let events = world.events(run_id);
    assert_eq!(
        events[3].data,
        json!({"step": 1, "path": "/steps/0", "approvalId": approval_id, "title": "Pay a refund",
            "requiredRole": "standard", "expiresAfterMs": 86_400_000})
    );
    assert_eq!(
        events[5].data,
        json!({"step": 1, "approvalId": approval_id, "status": "approved"}),
        "who decided and why is for reviewers"
    );
    assert_eq!(decide(&world, approval_id, &YES), Decided::Closed);
    assert_eq!(statuses(&world.store, run_id), ["approved"]);
}

/// Each commit is waited for before what follows from it: the call of a tool, say.
#[test]
fn a_decision_is_taken_up_and_what_follows_begins_in_one_transaction() {
    let world = World::scripted();
    let process = world.process(1, true);
    let script = json!({"steps": [{"ask": {}}, {"wait": HOUR_MS}]});
    let run_id = world.start(&process, &script);
    world.until(&process, run_id, |run| run.status == Status::Waiting);
    world.batch(
        "create table written (transaction bigint not null);
         create function note_write() returns trigger language plpgsql as $$
         begin
           insert into written values (pg_current_xact_id()::text::bigint);
           return null;
         end $$;
         create trigger note_write after update on runs for each statement execute function note_write();",
    );
    decide(&world, newest(&world.store, run_id), &YES);
    process.runtime.wake();
    let is_next = |run: &Run| run.waiting_for == Some(WaitingFor::Timer);
    world.until(&process, run_id, is_next);
    let transactions = "select count(distinct transaction) from written";
    let message = "the claim, which ends the step and begins the next one, and the park";
    assert_eq!(world.number(transactions), 2, "{message}");
    let ends = world.kinds(run_id).into_iter().skip(5);
    let after = [
        "approval.decided",
        "step.completed",
        "step.started",
        "run.waiting",
    ];
    assert_eq!(ends.collect::<Vec<_>>(), after);
}

#[test]
fn an_approval_that_nobody_decides_in_time_expires_and_is_never_an_approval() {
    let world = World::scripted();
    let process = world.process(1, true);
    let run_id = world.start(&process, &json!({"steps": [{"ask": {"expiresMs": 200}}]}));
    world.finished(&process, run_id);
    let result = result(&world, run_id);
    assert_eq!(result.decision.text(), "expired");
    assert_eq!(result.decided_by, None);
    assert_eq!(statuses(&world.store, run_id), ["expired"]);
}

#[test]
fn a_decision_after_the_time_is_refused_although_nobody_wrote_that_it_expired() {
    let world = World::scripted();
    let process = world.process(1, true);
    let (run_id, approval_id) = asked(&world, &process, &json!({}));
    world.batch("update approvals set expires_at = clock_timestamp()");
    assert_eq!(decide(&world, approval_id, &YES), Decided::Closed);
    world.wake_all(&process);
    world.finished(&process, run_id);
    assert_eq!(result(&world, run_id).decision.text(), "expired");
}

#[test]
fn an_escalation_closes_the_approval_and_opens_another() {
    let world = World::scripted();
    let process = world.process(1, true);
    let ask = json!({"escalate": [200, "finance"], "context": "why", "tool": "pay", "arguments": {"amount": 1}});
    let (run_id, first) = asked(&world, &process, &ask);
    world.eventually(|| statuses(&world.store, run_id) == ["escalated", "waiting"]);
    let second = newest(&world.store, run_id);
    assert_eq!(decide(&world, first, &YES), Decided::Closed);
    let copied = "select count(*) from approvals a join approvals b on b.approval_id = a.escalated_to
           and b.escalated_from = a.approval_id and b.expires_at = a.expires_at and b.required_role = 'finance'
           and b.subject_digest = a.subject_digest
         join approval_subjects s on s.approval_id = a.approval_id join approval_subjects t on t.approval_id = b.approval_id
           and t.context::text = s.context::text and t.tool = s.tool and t.arguments::text = s.arguments::text";
    assert_eq!(world.number(copied), 1);
    world.eventually(|| world.run(run_id).status == Status::Waiting);
    let no = Decision {
        is_approved: false,
        comment: Some("No receipt."),
        ..YES
    };
    assert_eq!(decide(&world, second, &no), Decided::Written { run_id });
    process.runtime.wake();
    world.finished(&process, run_id);
    let result = result(&world, run_id);
    assert_eq!(result.decision.text(), "rejected");
    assert_eq!(result.comment.as_deref(), Some("No receipt."));
    assert_eq!(result.approval_id, Some(second));
    assert_eq!(statuses(&world.store, run_id), ["escalated", "rejected"]);
    assert_eq!(
        approval_events(&world, run_id),
        [
            json!(["approval.requested", first]),
            json!(["approval.escalated", first, second, "finance"]),
            json!(["approval.decided", second]),
        ]
    );
}

/// The run's events of its approvals; their numbers have no gaps, and the last is the run's end.
pub(super) fn approval_events(world: &World, run_id: Uuid) -> Vec<Value> {
    let events = world.events(run_id);
    let numbers: Vec<i64> = events.iter().map(|event| event.seq).collect();
    let all: Vec<i64> = (1..).take(events.len()).collect();
    assert_eq!(numbers, all);
    assert!(Event::is_last(&events.last().unwrap().kind));
    let of_approvals = events
        .iter()
        .filter(|event| event.kind.starts_with("approval."));
    let each = of_approvals.map(|event| {
        let whole = json!({"kind": event.kind, "data": event.data});
        serde_json::from_value::<Event>(whole).unwrap();
        let data = &event.data;
        match event.kind.as_str() {
            "approval.escalated" => {
                let names: Vec<&String> = data.as_object().unwrap().keys().collect();
                assert_eq!(names, ["step", "approvalId", "to", "requiredRole"]);
                json!([
                    event.kind,
                    data["approvalId"],
                    data["to"],
                    data["requiredRole"]
                ])
            }
            _ => json!([event.kind, data["approvalId"]]),
        }
    });
    each.collect()
}

#[test]
fn a_reviewer_escalates_once_and_the_run_waits_for_the_new_one() {
    let world = World::scripted();
    let process = world.process(1, true);
    let (run_id, first) = asked(&world, &process, &json!({}));
    let actor = Actor {
        user_id: world.user_id,
        token_id: Uuid::nil(),
    };
    let escalate = |approval_id| {
        let to = EscalatedTo {
            approval_id: world.clock.new_id(),
            required_role: "finance",
            user_id: Some(world.user_id),
        };
        let approval = (world.tenant_id, approval_id);
        let (by, now) = (Some((actor, false)), world.clock.now());
        let escalated = world.store.transact(|tx| {
            approvals::escalate(tx, approval, to, by, Some("Too much for me."), now)
        });
        (escalated.unwrap() == Handed::Written).then_some(to.approval_id)
    };
    let second = escalate(first).unwrap();
    assert_eq!(escalate(first), None, "it is closed");
    assert_eq!(escalate(second), None, "there is one level");
    decide(&world, second, &YES);
    process.runtime.wake();
    world.finished(&process, run_id);
    assert_eq!(result(&world, run_id).approval_id, Some(second));
    let escalated = json!(["approval.escalated", first, second, "finance"]);
    assert_eq!(approval_events(&world, run_id)[1], escalated);
}

#[test]
fn the_end_of_a_run_voids_what_it_and_the_runs_below_it_wait_for() {
    let world = World::scripted();
    let process = world.process(2, true);
    let asks = json!({"script": {"steps": [{"ask": {}}]}});
    let root = world.start(&process, &json!({"steps": [{"children": [asks, asks]}]}));
    world.eventually(|| {
        world.number("select count(*) from runs where waiting_for = 'approval'") == 2
    });
    world.eventually(|| world.run(root).status == Status::Waiting);
    let below = world.runs_below(root);
    let approval_id = newest(&world.store, below[0]);
    process
        .runtime
        .cancel(&world.root(root), || Ok(()))
        .unwrap();
    for run_id in below {
        assert_eq!(world.run(run_id).status, Status::Cancelled);
        assert_eq!(statuses(&world.store, run_id), ["voided"]);
    }
    assert_eq!(decide(&world, approval_id, &YES), Decided::Closed);
    // A run whose time is over by a wall clock that jumped ends as its own holder.
    let (run_id, _) = asked(&world, &process, &json!({}));
    world.batch("update runs set cancel_requested_at = now(), last_seq = last_seq + 1 where status = 'waiting';
        insert into run_events (tenant_id, run_id, seq, kind, data, created_at)
        select tenant_id, run_id, last_seq, 'run.cancelRequested', '{}', now() from runs where status = 'waiting'");
    world.wake_all(&process);
    world.finished(&process, run_id);
    assert_eq!(statuses(&world.store, run_id), ["voided"]);
}

#[test]
fn an_approval_that_cannot_be_opened_fails_its_run_with_the_reason() {
    let world = World::scripted();
    let process = world.process(1, true);
    for (ask, reason) in [
        (json!({"title": ""}), "1 to 200 characters"),
        (json!({"title": "a\nb"}), "control characters"),
        (json!({"role": "Finance"}), "no reviewer role"),
        (json!({"expiresMs": 0}), "at most 30 days"),
        (json!({"expiresMs": 2_592_000_001_u64}), "at most 30 days"),
        (
            json!({"escalate": [HOUR_MS, "finance"], "expiresMs": 5}),
            "before it is escalated",
        ),
        (json!({"escalate": [1, "-"]}), "no reviewer role"),
        (
            json!({"context": "x".repeat(70_000)}),
            "context has 70002 bytes",
        ),
    ] {
        let run_id = world.start(&process, &json!({"steps": [{"ask": ask}]}));
        let run = world.finished(&process, run_id);
        let message = run.failure_message.unwrap();
        assert!(
            message.contains(reason) && message.contains("/steps/0"),
            "{message}"
        );
    }
    assert_eq!(world.number("select count(*) from approvals"), 0);
}

#[test]
fn one_of_many_reviewers_decides() {
    let world = World::scripted();
    let process = world.process(1, true);
    let (run_id, approval_id) = asked(&world, &process, &json!({}));
    let start = Barrier::new(16);
    let written = std::thread::scope(|scope| {
        let each: Vec<_> = (0..16)
            .map(|n| {
                let (start, world) = (&start, &world);
                scope.spawn(move || {
                    start.wait();
                    let decision = Decision {
                        is_approved: n % 2 == 0,
                        ..YES
                    };
                    decide(world, approval_id, &decision) == Decided::Written { run_id }
                })
            })
            .collect();
        let each = each.into_iter().map(|thread| thread.join().unwrap());
        each.filter(|is_written| *is_written).count()
    });
    assert_eq!(written, 1);
    process.runtime.wake();
    world.finished(&process, run_id);
    assert_eq!(statuses(&world.store, run_id).len(), 1);
}

/// What reviewers are shown, which no event may carry.
const CANARY: &str = "canary-7431";

/// A server whose runs follow scripts, with an endpoint that gets events of approvals.
pub(super) struct Scene {
    pub(super) app: App,
    pub(super) receiver: Receiver,
    project_id: Uuid,
    tenant_id: Uuid,
    pub(super) user_id: Uuid,
}

impl Scene {
    pub(super) fn new() -> Self {
        let app = App::start_with(|options| {
            deployed(options);
            options.webhooks.development = true;
            options.webhooks.console = Some("https://agents.example.com/console/".to_owned());
            options.runs.built_in = built_in();
        });
        app.put_secret("signing", SIGNING);
        let (receiver, project_id) = (Receiver::good(), app.maker().project());
        app.endpoint(&receiver.url());
        let mut session = app.server().shared().store.session().unwrap();
        let row = session.query_one("select tenant_id, user_id from users limit 1", &[]);
        let row = row.unwrap();
        Self {
            receiver,
            project_id,
            tenant_id: row.get(0),
            user_id: row.get(1),
            app,
        }
    }

    pub(super) fn start(&self, ask: &Value, dry_run: bool) -> Uuid {
        let run = NewRun {
            run_id: self.app.clock.new_id(),
            project_id: self.project_id,
            flow_id: String::new(),
            flow_version: "1.0.0".to_owned(),
            origin: Origin::App,
            dry_run,
            agent: None,
            labels: Labels::default(),
            options: StartOptions::default(),
            input: json!({}),
            message: None,
            created_by: self.user_id,
            request_id: Uuid::nil(),
            created_at: self.app.clock.now(),
        };
        let run = scripted(run, &json!({"steps": [{"ask": ask}]}));
        let may = Root(self.tenant_id, self.project_id);
        let shared = self.app.server().shared();
        let created = |tx: &mut Tx<'_>| {
            let runtime = &shared.runtime;
            runtime.create::<Run>(tx, &may, &run, started_by())
        };
        shared.store.transact(created).unwrap();
        shared.runtime.wake();
        run.run_id
    }

    fn finished(&self, run_id: Uuid) {
        eventually("the run to end", || {
            let mut session = self.app.server().shared().store.session().unwrap();
            let run = runs::find(&mut session, self.tenant_id, run_id).unwrap();
            run.status.is_finished().then_some(())
        });
    }
}

#[test]
fn an_endpoint_is_told_of_each_approval_once_and_of_nothing_that_it_is_about() {
    let scene = Scene::new();
    let dry = scene.start(&json!({}), true);
    let ask = json!({"context": CANARY, "tool": CANARY, "arguments": [CANARY], "escalate": [300, "finance"],
        "expiresMs": 800});
    let run_id = scene.start(&ask, false);
    scene.finished(dry);
    scene.finished(run_id);
    let received = eventually("both to be delivered", || {
        let received = scene.receiver.received();
        (received.len() >= 2).then_some(received)
    });
    let store = &scene.app.server().shared().store;
    assert_eq!(statuses(store, run_id), ["escalated", "expired"]);
    assert_eq!(received.len(), 2, "the dry run asks nobody");
    let mut roles: Vec<String> = Vec::new();
    for one in received {
        let body = one.json();
        assert!(!body.to_string().contains(CANARY), "{body}");
        let approval = &body["data"]["approval"];
        assert_eq!(body["id"], approval["approvalId"]);
        assert_eq!(approval["title"], "Pay a refund");
        assert_eq!(approval["projectId"], json!(scene.project_id));
        let names: Vec<&String> = approval.as_object().unwrap().keys().collect();
        let expected = [
            "approvalId",
            "projectId",
            "requiredRole",
            "title",
            "createdAt",
            "expiresAt",
            "url",
        ];
        assert_eq!(names, expected);
        let id = approval["approvalId"].as_str().unwrap();
        let page = format!("https://agents.example.com/console/approvals/{id}");
        assert_eq!(approval["url"], json!(page));
        roles.push(approval["requiredRole"].as_str().unwrap().to_owned());
    }
    roles.sort_unstable();
    assert_eq!(roles, ["finance", "standard"]);
}

/// The transaction of the first opening does all its work and fails as it commits.
#[test]
fn an_opening_that_is_rolled_back_is_told_to_no_endpoint() {
    let scene = Scene::new();
    scene.app.sql(
        "create sequence openings;
         create function fail_first_opening() returns trigger language plpgsql as $$
         begin
           if nextval('openings') = 1 then
             raise exception 'the process is dead' using errcode = '57P01';
           end if;
           return null;
         end $$;
         create constraint trigger fail_first_opening after insert on approvals
           deferrable initially deferred for each row execute function fail_first_opening();",
    );
    let run_id = scene.start(&json!({}), false);
    let received = scene.receiver.once(1);
    let store = &scene.app.server().shared().store;
    assert_eq!(statuses(store, run_id), ["waiting"]);
    let mut client = scene.app.database.client();
    let row = client.query_one(
        "select last_value, (select count(*) from webhook_events) from openings",
        &[],
    );
    let row = row.unwrap();
    assert_eq!(row.get::<_, i64>(0), 2, "the first opening failed");
    assert_eq!(row.get::<_, i64>(1), 1);
    assert_eq!(received.len(), 1);
}

#[test]
fn a_decision_over_the_api_carries_the_run_on() {
    let scene = Scene::new();
    let run_id = scene.start(&json!({"context": {"amount": 50}}), false);
    let waiting = |role: &str| {
        eventually("the approval to wait", || {
            let found = scene
                .app
                .get(&format!("/v1/approvals?role={role}"))
                .expect(200);
            found["data"].as_array().unwrap().first().cloned()
        })
    };
    let first = waiting("standard");
    assert_eq!(first["runId"], json!(run_id));
    let assign = format!("/v1/approvals/{}/assign", first["id"].as_str().unwrap());
    scene
        .app
        .post(&assign, &json!({"userId": scene.user_id}))
        .expect(200);
    let escalate = format!("/v1/approvals/{}/escalate", first["id"].as_str().unwrap());
    let body = json!({"requiredRole": "finance", "userId": scene.user_id});
    let second = scene.app.post(&escalate, &body).expect(201);
    let decide = format!("/v1/approvals/{}/decide", second["id"].as_str().unwrap());
    let body = json!({"decision": "approve", "answer": 7});
    let decided = scene.app.post(&decide, &body).expect(200);
    assert_eq!(decided["subject"]["context"], json!({"amount": 50}));
    scene.finished(run_id);
    let output = &scene
        .app
        .get(&format!("/v1/runs/{run_id}/payload"))
        .expect(200)["output"];
    assert_eq!(output[0]["decision"], json!("approved"));
    assert_eq!(output[0]["answer"], json!(7));
    assert_eq!(output[0]["approvalId"], second["id"]);
    let assigned = eventually("both to be delivered", || {
        let received = scene.receiver.received();
        let each = received.iter().map(|one| {
            let (event, text) = (one.json(), |value: &Value| {
                value.as_str().map(str::to_owned)
            });
            let approval = &event["data"]["approval"];
            (text(&event["id"]).unwrap(), text(&approval["assignedTo"]))
        });
        let assigned: BTreeMap<String, Option<String>> = each.collect();
        (assigned.len() == 2).then_some(assigned)
    });
    let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
    let both = [
        (id(&first), None),
        (id(&second), Some(scene.user_id.to_string())),
    ];
    assert_eq!(assigned, BTreeMap::from(both), "one event for each");
    let mut session = scene.app.server().shared().store.session().unwrap();
    let deliveries = session.query_one("select count(*) from webhook_deliveries", &[]);
    let deliveries: i64 = deliveries.unwrap().get(0);
    assert_eq!(deliveries, 2, "assigning an approval later sends nothing");
}
