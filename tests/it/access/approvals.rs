//! Who may act on approvals: reviewers with the role, and nobody else, whatever else they are.

use super::world::{Key, Person, World};
use crate::harness::approvals::NewApproval;
use crate::harness::{Answer, eventually, made};
use serde_json::{Value, json};
use std::sync::Barrier;
use uuid::Uuid;

const ALL: &str = "/v1/approvals";

/// The routes of one approval: method, what follows its id, body, the action of a refusal.
fn of_one() -> [(&'static str, &'static str, Option<Value>, &'static str); 4] {
    let decision = json!({"decision": "approve"});
    [
        ("GET", "", None, "read"),
        ("POST", "/assign", Some(json!({})), "write"),
        (
            "POST",
            "/escalate",
            Some(json!({"requiredRole": "board"})),
            "write",
        ),
        ("POST", "/decide", Some(decision), "write"),
    ]
}

impl World {
    pub(super) fn reviewer(&self, roles: &[&str]) -> Person {
        let person = self.person("member");
        for role in roles {
            self.write(
                "insert into reviewers (tenant_id, user_id, role, created_by, created_at) values ($1, $2, $3, $2, now())",
                &[&self.tenant_id(), &person.user_id, role],
            );
        }
        person
    }

    pub(super) fn approval(&self, role: &'static str, requested_by: Uuid) -> Uuid {
        let new = NewApproval {
            tenant_id: self.tenant_id(),
            project_id: self.project,
            run_id: self.run.parse().unwrap(),
            requested_by,
            role,
            seconds: 3600,
        };
        new.insert(&mut self.app.database.client(), &self.app.clock)
    }
}

/// Refused by one recorded decision of this stage, which names this.
#[track_caller]
fn refused(world: &World, answer: Answer, (action, resource): (&str, &str), stage: &str) {
    let rows = world.decisions(&answer);
    assert_eq!(rows.len(), 1, "{rows:?} {answer:?}");
    let row = &rows[0];
    let found = [&row.action, &row.resource, &row.outcome, &row.stage].map(String::as_str);
    assert_eq!(found, [action, resource, "denied", stage]);
    assert_eq!(row.check, None, "the model is not asked");
    assert!(
        row.reason.starts_with(&format!("{stage}: ")),
        "{}",
        row.reason
    );
    let code = match stage {
        "approval-own-request" => stage,
        _ => "permission-denied",
    };
    let error = answer.expect_error(403, code);
    assert_eq!(error["details"]["action"], json!(action));
    assert_eq!(error["details"]["resource"], json!(resource));
    if code == "permission-denied" {
        let actor = &row.actor;
        let sentence = format!("permission denied, actor {actor} lacks can_{action} on {resource}");
        let message = error["message"].as_str().unwrap();
        let more = message
            .strip_prefix(&sentence)
            .unwrap_or_else(|| panic!("{message}"));
        // It says which role is missing: somebody may have every right on the tenant.
        assert_eq!(
            more.contains("reviewer role"),
            stage == "not-reviewer",
            "{message}"
        );
        assert_eq!(error["details"]["reason"], error["message"]);
    }
}

/// What a reviewer may is recorded, too.
#[track_caller]
fn allowed(world: &World, answer: &Answer, (action, resource): (&str, &str)) {
    let rows = world.decisions(answer);
    assert_eq!(rows.len(), 1, "{rows:?} {answer:?}");
    let row = &rows[0];
    let found = [&row.action, &row.resource, &row.outcome, &row.stage].map(String::as_str);
    assert_eq!(found, [action, resource, "allowed", "reviewer"]);
    assert_eq!(row.check, None, "the model is not asked");
}

#[test]
fn who_is_no_reviewer_learns_nothing_of_approvals_owners_and_admins_included() {
    let world = World::start();
    let approval = world.approval("standard", world.app.seeds.user_id);
    let owner = world.person("member");
    world.grant(world.project, owner.user_id, "owner");
    let nothing = world.app.clock.new_id();
    for person in [owner, world.person("admin"), world.service_account()] {
        for list in [ALL, "/v1/inbox", "/v1/inbox/summary"] {
            let answer = person.client.get(list);
            refused(&world, answer, ("read", "approval:*"), "not-reviewer");
        }
        // Whether there is such an approval is not told either.
        for id in [approval, nothing] {
            for (method, rest, body, action) in of_one() {
                let path = format!("{ALL}/{id}{rest}");
                let body = body.map(|body| body.to_string());
                let answer = person.client.send(method, &path, body, &[]);
                let on = format!("approval:{id}");
                refused(&world, answer, (action, &on), "not-reviewer");
            }
        }
    }
    let reviewer = world.reviewer(&["standard"]);
    let read = reviewer
        .client
        .get(&format!("{ALL}/{approval}"))
        .expect(200);
    assert_eq!(read["status"], json!("waiting"));
    assert_eq!(read["log"].as_array().unwrap().len(), 1);
    let summary = reviewer.client.get("/v1/inbox/summary").expect(200);
    assert_eq!(summary, json!({"approvals": 1}));
}

#[test]
fn what_a_reviewer_does_leaves_a_record() {
    let world = World::start();
    let reviewer = world.reviewer(&["standard"]);
    for list in [ALL, "/v1/inbox", "/v1/inbox/summary"] {
        let answer = reviewer.client.get(list);
        allowed(&world, &answer, ("read", "approval:*"));
        answer.expect(200);
    }
    for (method, rest, body, action) in of_one() {
        let approval = world.approval("standard", world.app.seeds.user_id);
        let body = body.map(|body| body.to_string());
        let path = format!("{ALL}/{approval}{rest}");
        let answer = reviewer.client.send(method, &path, body, &[]);
        assert!((200..300).contains(&answer.status), "{answer:?}");
        allowed(&world, &answer, (action, &format!("approval:{approval}")));
    }
}

#[test]
fn a_reviewer_acts_within_the_role_and_within_the_project_of_the_key() {
    let world = World::start();
    let seed = world.app.seeds.user_id;
    let (standard, finance) = (
        world.approval("standard", seed),
        world.approval("finance", seed),
    );
    let reviewer = world.reviewer(&["standard"]);
    let elsewhere = world.another_project();
    let limited = Key {
        project_id: Some(elsewhere),
        ..Key::whole()
    };
    let limited = world.key(reviewer.user_id, &limited);
    for (method, rest, body, action) in of_one() {
        let body = body.map(|body| body.to_string());
        for (person, id, stage) in [
            (&reviewer, finance, "not-reviewer"),
            (&limited, standard, "key-project"),
        ] {
            let path = format!("{ALL}/{id}{rest}");
            let answer = person.client.send(method, &path, body.clone(), &[]);
            refused(&world, answer, (action, &format!("approval:{id}")), stage);
        }
        let nothing = format!("{ALL}/{}{rest}", world.app.clock.new_id());
        let answer = reviewer.client.send(method, &nothing, body, &[]);
        answer.expect_error(404, "not-found");
    }
    for list in [ALL, "/v1/inbox", "/v1/approvals?role=standard"] {
        assert_eq!(listed(&reviewer, list), [json!(standard)], "{list}");
    }
    let none: [Value; 0] = [];
    assert_eq!(listed(&reviewer, "/v1/approvals?role=finance"), none);
    assert_eq!(listed(&limited, ALL), none);
    assert_eq!(listed(&limited, "/v1/inbox"), none);
    let named = format!("{ALL}?projectId={}", world.project);
    let answer = limited.client.get(&named);
    answer.expect_error(403, "key-project-mismatch");
    let decide = format!("{ALL}/{standard}/decide");
    let decided = reviewer
        .client
        .post(&decide, &json!({"decision": "reject"}));
    assert_eq!(decided.expect(200)["status"], json!("rejected"));
}

/// The ids of a page.
#[track_caller]
fn listed(person: &Person, path: &str) -> Vec<Value> {
    let found = person.client.get(path).expect(200);
    let ids = found["data"].as_array().unwrap().iter();
    ids.map(|row| row["id"].clone()).collect()
}

#[test]
fn who_started_the_run_does_not_decide_and_is_told_so_before() {
    let world = World::start();
    let requester = world.reviewer(&["standard"]);
    let approval = world.approval("standard", requester.user_id);
    let one = format!("{ALL}/{approval}");
    let read = requester.client.get(&one).expect(200);
    assert_eq!(read["mayDecide"], json!(false));
    assert_eq!(read["mayNotBecause"], json!("approval-own-request"));
    let body = json!({"decision": "approve"});
    let answer = requester.client.post(&format!("{one}/decide"), &body);
    let on = format!("approval:{approval}");
    refused(&world, answer, ("write", &on), "approval-own-request");
    let other = world.reviewer(&["standard"]);
    // Nor is it for the requester to choose who decides, or by which role.
    let handed = [
        ("assign", json!({"userId": other.user_id})),
        ("assign", json!({"userId": requester.user_id})),
        ("escalate", json!({"requiredRole": "board"})),
    ];
    for (act, body) in handed {
        let answer = requester.client.post(&format!("{one}/{act}"), &body);
        refused(&world, answer, ("write", &on), "approval-own-request");
    }
    assert_eq!(other.client.get(&one).expect(200)["mayDecide"], json!(true));
    let to_nobody = world.person("member").user_id;
    for cannot in [to_nobody, requester.user_id] {
        let to = json!({"userId": cannot});
        let assign = other.client.post(&format!("{one}/assign"), &to);
        assign.expect_error(409, "conflict");
    }
    other
        .client
        .post(&format!("{one}/decide"), &body)
        .expect(200);
}

#[test]
fn what_is_assigned_to_somebody_who_lost_the_role_waits_for_everybody_again() {
    let world = World::start();
    let [gone, other] = [(); 2].map(|()| world.reviewer(&["standard"]));
    let requester = world.person("member").user_id;
    let approval = world.approval("standard", requester);
    let assign = format!("{ALL}/{approval}/assign");
    let to = json!({"userId": gone.user_id});
    other.client.post(&assign, &to).expect(200);
    let none: [Value; 0] = [];
    assert_eq!(listed(&other, "/v1/inbox"), none);
    let role = format!("/v1/reviewers/{}/standard", gone.user_id);
    world.app.delete(&role).expect(204);
    assert_eq!(listed(&other, "/v1/inbox"), [json!(approval)]);
    let inbox = other.client.get("/v1/inbox").expect(200);
    let counts = json!({"assigned": 0, "unassigned": 1});
    assert_eq!(inbox["counts"], counts);
    let summary = other.client.get("/v1/inbox/summary").expect(200);
    assert_eq!(summary["approvals"], json!(1), "{summary}");
}

/// Who decided, and why, is for reviewers.
#[test]
fn the_steps_of_a_run_say_of_an_approval_only_how_it_was_decided() {
    let world = World::start();
    let document = json!({"dsl": "1.0.3", "namespace": "test", "name": "asks", "version": "1.0.0"});
    let ask = json!({"call": "approval", "with": {"title": "Pay"}});
    let tasks = json!([{"ask": ask}, {"tell": {"set": {}}}]);
    let body =
        json!({"projectId": world.project, "definition": {"document": document, "do": tasks}});
    world.app.post("/v1/flows", &body).expect(201);
    let start = json!({"flowId": "test.asks", "input": {}});
    let run = made::id(&world.app.post("/v1/runs", &start).expect(202)["run"]);
    let reviewer = world.reviewer(&["standard"]);
    let approval = eventually("the run to ask", || listed(&reviewer, ALL).first().cloned());
    let decide = format!("{ALL}/{}/decide", approval.as_str().unwrap());
    let canary = json!({"decision": "approve", "comment": "CANARY", "answer": {"is": "CANARY"}});
    reviewer.client.post(&decide, &canary).expect(200);
    world.app.finished(&run);
    let viewer = world.person("member");
    world.grant(world.project, viewer.user_id, "viewer");
    let steps = viewer.client.get(&format!("/v1/runs/{run}/steps"));
    let steps = steps.expect(200);
    let decided = json!({"decision": "approved", "approvalId": approval});
    assert_eq!(steps["data"][0]["result"], decided);
    assert!(!steps.to_string().contains("CANARY"), "{steps}");
}

/// A flow whose child run asks: its approval names the child, and whoever started the root is its requester.
#[test]
fn who_started_the_root_does_not_decide_for_the_runs_below_it() {
    let world = World::start();
    let flow = |name: &str, task: Value| {
        let document =
            json!({"dsl": "1.0.3", "namespace": "test", "name": name, "version": "1.0.0"});
        let definition = json!({"document": document, "do": [{"it": task}]});
        let body = json!({"projectId": world.project, "definition": definition});
        world.app.post("/v1/flows", &body).expect(201);
    };
    flow(
        "pays",
        json!({"call": "approval", "with": {"title": "Pay"}}),
    );
    let pays = json!({"namespace": "test", "name": "pays", "version": "1.0.0"});
    flow("orders", json!({"run": {"workflow": pays}}));
    let requester = world.reviewer(&["standard"]);
    world.grant(world.project, requester.user_id, "editor");
    let start = json!({"flowId": "test.orders", "input": {}});
    let started = requester.client.post("/v1/runs", &start).expect(202);
    let root = made::id(&started["run"]);
    let approval = eventually("the child to ask", || {
        let found = requester.client.get(ALL).expect(200);
        found["data"].as_array().unwrap().first().cloned()
    });
    assert_eq!(approval["rootRunId"], json!(root));
    assert_ne!(approval["runId"], json!(root));
    let on = format!("approval:{}", made::id(&approval));
    let decide = format!("{ALL}/{}/decide", made::id(&approval));
    let body = json!({"decision": "approve"});
    let answer = requester.client.post(&decide, &body);
    refused(&world, answer, ("write", &on), "approval-own-request");
    let other = world.reviewer(&["standard"]);
    other.client.post(&decide, &body).expect(200);
    assert_eq!(world.app.finished(&root)["status"], json!("completed"));
}

#[test]
fn who_started_the_run_that_is_retried_does_not_decide_about_the_retry() {
    let world = World::start();
    let [first, again, retrier, other] = [(); 4].map(|()| world.reviewer(&["standard"]));
    let runs = [
        world.run.clone(),
        world.app.start_turn(world.agent, "again"),
        world.app.start_turn(world.agent, "and again"),
    ];
    let runs = runs.map(|run| {
        world.app.finished(&run);
        run.parse::<Uuid>().unwrap()
    });
    for ((run, retried), by) in runs
        .iter()
        .zip([None, Some(runs[0]), Some(runs[1])])
        .zip([&first, &again, &retrier])
    {
        let change =
            "update runs set created_by = $3, retry_of = $4 where tenant_id = $1 and run_id = $2";
        world.write(change, &[&world.tenant_id(), run, &by.user_id, &retried]);
    }
    let new = NewApproval {
        tenant_id: world.tenant_id(),
        project_id: world.project,
        run_id: runs[2],
        requested_by: retrier.user_id,
        role: "standard",
        seconds: 3600,
    };
    let approval = new.insert(&mut world.app.database.client(), &world.app.clock);
    let body = json!({"decision": "approve"});
    let one = format!("{ALL}/{approval}");
    let on = format!("approval:{approval}");
    for starter in [&first, &again, &retrier] {
        let read = starter.client.get(&one).expect(200);
        assert_eq!(read["mayNotBecause"], json!("approval-own-request"));
        let answer = starter.client.post(&format!("{one}/decide"), &body);
        refused(&world, answer, ("write", &on), "approval-own-request");
    }
    let decided = other.client.post(&format!("{one}/decide"), &body);
    decided.expect(200);
}

#[test]
fn a_role_that_is_lost_after_the_check_decides_assigns_and_escalates_nothing() {
    let world = World::start();
    let acts = of_one()
        .into_iter()
        .filter(|(method, ..)| *method == "POST");
    for (_, rest, body, action) in acts {
        let reviewer = world.reviewer(&["standard"]);
        let approval = world.approval("standard", world.app.seeds.user_id);
        // The route waits for the run's row, after the check. Meanwhile the role is taken away.
        let mut client = world.app.database.client();
        let mut held = client.transaction().unwrap();
        let run: Uuid = world.run.parse().unwrap();
        let lock = "select from runs r join approvals a using (run_id) where r.run_id = $1 and a.approval_id = $2 for update";
        held.query_one(lock, &[&run, &approval]).unwrap();
        let path = format!("{ALL}/{approval}{rest}");
        let answer = std::thread::scope(|scope| {
            let acting = scope.spawn(|| reviewer.client.post(&path, &body.unwrap()));
            eventually("the route to wait for the run", || {
                let waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
                let waiting = world.app.database.client().query(waiting, &[]).unwrap();
                (!waiting.is_empty()).then_some(())
            });
            let lost = "delete from reviewers where tenant_id = $1 and user_id = $2";
            world.write(lost, &[&world.tenant_id(), &reviewer.user_id]);
            held.commit().unwrap();
            acting.join().unwrap()
        });
        let on = format!("approval:{approval}");
        let rows = world.decisions(&answer);
        let outcomes: Vec<_> = rows
            .iter()
            .map(|row| (&*row.outcome, &*row.stage))
            .collect();
        let both = [("allowed", "reviewer"), ("denied", "not-reviewer")];
        assert_eq!(outcomes, both, "{action} {on}");
        answer.expect_error(403, "permission-denied");
        let stands = "select status, (select count(*) from approval_log l where l.approval_id = a.approval_id)
             from approvals a where approval_id = $1";
        let stands = client.query_one(stands, &[&approval]).unwrap();
        let stands: (String, i64) = (stands.get(0), stands.get(1));
        assert_eq!(stands, ("waiting".to_owned(), 1), "{rest}");
    }
}

#[test]
fn of_two_reviewers_at_two_replicas_one_decides_and_the_other_is_told_who() {
    let world = World::start();
    let there = world.app.replica(|_| {});
    let reviewers = [(); 2].map(|()| world.reviewer(&["standard"]));
    let elsewhere = there.with_token(Some(reviewers[1].token.expose()));
    let each = [
        (&reviewers[0].client, reviewers[0].user_id, "approve"),
        (&elsewhere, reviewers[1].user_id, "reject"),
    ];
    for _ in 0..16 {
        let approval = world.approval("standard", world.app.seeds.user_id);
        let path = format!("{ALL}/{approval}/decide");
        let start = Barrier::new(2);
        let answers = std::thread::scope(|scope| {
            let decide = each.map(|(client, _, decision)| {
                let (start, path) = (&start, &path);
                scope.spawn(move || {
                    start.wait();
                    client.post(path, &json!({"decision": decision}))
                })
            });
            decide.map(|thread| thread.join().unwrap())
        });
        let first = usize::from(answers[0].status != 200);
        let (_, winner, decision) = each[first];
        let status = match decision {
            "approve" => "approved",
            _ => "rejected",
        };
        let [won, lost] = match (first, answers) {
            (0, both) => both,
            (_, [lost, won]) => [won, lost],
        };
        let won = won.expect(200);
        assert_eq!(
            (&won["status"], &won["decidedBy"]),
            (&json!(status), &json!(winner))
        );
        let lost = lost.expect_error(409, "approval-closed");
        let details = &lost["details"];
        assert_eq!(details["status"], json!(status));
        assert_eq!(details["decidedBy"], json!(winner));
        assert_eq!(details["decidedAt"], won["closedAt"]);
        let log = won["log"].as_array().unwrap().iter();
        let kinds: Vec<_> = log.map(|entry| entry["kind"].clone()).collect();
        assert_eq!(kinds, [json!("opened"), json!(status)]);
    }
}
