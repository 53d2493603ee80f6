//! `/v1/approvals` and `/v1/inbox` with authorization off, where whoever holds a token of the tenant decides. Who may is in
//! `access::approvals`, what becomes of the run in `waiting::approvals`.

use crate::harness::approvals::NewApproval;
use crate::harness::{App, Client, eventually, made, plan_rows};
use serde_json::{Value, json};
use std::sync::Barrier;
use uuid::Uuid;

const ALL: &str = "/v1/approvals";

pub(crate) struct World {
    pub(crate) app: App,
    project_id: Uuid,
    pub(crate) run_id: Uuid,
}

impl World {
    /// A run that has ended is enough for what is asked here.
    pub(crate) fn start() -> Self {
        let app = App::start();
        let (project_id, run_id) = (app.maker().project(), app.clock.new_id());
        let run = format!(
            "insert into runs (tenant_id, run_id, root_run_id, project_id, flow_id, flow_version, origin, status, dry_run,
               created_by, created_at, completed_at, last_seq)
             values ('{}', '{run_id}', '{run_id}', '{project_id}', 'refunds.pay', '1.0.0', 'app', 'cancelled', false, '{}',
               now(), now(), 1)",
            app.seeds.tenant_id, app.seeds.user_id
        );
        app.sql(&run);
        Self {
            app,
            project_id,
            run_id,
        }
    }

    pub(crate) fn approval(&self, role: &'static str, seconds: i32) -> Uuid {
        let new = NewApproval {
            tenant_id: self.app.seeds.tenant_id,
            project_id: self.project_id,
            run_id: self.run_id,
            requested_by: self.app.seeds.user_id,
            role,
            seconds,
        };
        new.insert(&mut self.app.database.client(), &self.app.clock)
    }

    fn listed(&self, query: &str) -> Vec<Value> {
        let found = self.app.get(&format!("{ALL}{query}")).expect(200);
        let rows = found["data"].as_array().unwrap().iter();
        rows.map(|row| row["id"].clone()).collect()
    }
}

#[test]
fn an_approval_is_read_decided_once_and_told_with_its_log() {
    let world = World::start();
    let (app, seed) = (&world.app, world.app.seeds.user_id);
    let id = world.approval("finance", 3600);
    let one = format!("{ALL}/{id}");
    let read = app.get(&one).expect(200);
    assert_eq!(read["subject"]["context"], json!({"amount": 50}));
    assert_eq!(
        read["mayDecide"],
        json!(true),
        "the requester too, without authorization"
    );
    let digest = read["subject"]["digest"].as_str().unwrap();
    let decide = format!("{one}/decide");
    let other = json!({"decision": "approve", "expectedDigest": "sha256:00"});
    let changed = app
        .post(&decide, &other)
        .expect_error(409, "approval-changed");
    assert_eq!(changed["details"]["digest"], json!(digest));
    let large = json!({"decision": "approve", "answer": "x".repeat(70_000)});
    let large = app.post(&decide, &large).expect_error(400, "invalid-body");
    assert_eq!(large["details"]["path"], json!("$.answer"));
    let body = json!({"decision": "approve", "comment": "Fine.", "answer": {"until": "Friday"}, "expectedDigest": digest});
    let decided = app.post(&decide, &body).expect(200);
    assert_eq!(decided["status"], json!("approved"));
    assert_eq!(decided["decidedBy"], json!(seed));
    assert_eq!(decided["comment"], json!("Fine."));
    assert_eq!(decided["subject"]["answer"], json!({"until": "Friday"}));
    assert_eq!(decided["mayNotBecause"], json!("approval-closed"));
    let kinds: Vec<_> = decided["log"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["kind"].clone())
        .collect();
    assert_eq!(kinds, ["opened", "approved"]);
    assert_eq!(decided["log"][1]["userId"], json!(seed));
    assert!(decided["log"][1]["keyId"].is_string());
    // An answer that was lost is asked for again; another decision is none.
    assert_eq!(app.post(&decide, &body).expect(200), decided);
    for comment in [json!("Fine!"), json!(null)] {
        let mut other = body.clone();
        other["comment"] = comment;
        app.post(&decide, &other)
            .expect_error(409, "approval-closed");
    }
    let closed = app
        .post(&decide, &json!({"decision": "reject"}))
        .expect_error(409, "approval-closed");
    assert_eq!(closed["details"]["status"], json!("approved"));
    assert_eq!(closed["details"]["decidedBy"], json!(seed));
    assert_eq!(closed["details"]["decidedAt"], decided["closedAt"]);
    app.post(&format!("{one}/assign"), &json!({}))
        .expect_error(409, "approval-closed");
    app.post(
        &format!("{one}/escalate"),
        &json!({"requiredRole": "board"}),
    )
    .expect_error(409, "approval-closed");
    let other_tenant = app.other_tenant();
    other_tenant.get(&one).expect_error(404, "not-found");
    other_tenant
        .post(&decide, &body)
        .expect_error(404, "not-found");
}

#[test]
fn without_authorization_a_member_decides_who_has_no_role() {
    let world = World::start();
    let app = &world.app;
    let person = made::person(app, "ann@b", "member");
    let ann = made::enrolled(app, &person);
    let keys = ann.get("/v1/tokens").expect(200);
    assert_eq!(made::column(&keys, "role"), ["member"]);
    assert_eq!(app.get("/v1/reviewers").expect(200)["data"], json!([]));
    let decide = format!("{ALL}/{}/decide", world.approval("finance", 3600));
    let decided = ann
        .post(&decide, &json!({"decision": "approve"}))
        .expect(200);
    assert_eq!(decided["status"], json!("approved"));
    assert_eq!(decided["decidedBy"], person["id"]);
}

#[test]
fn an_answer_fits_the_form_or_all_that_does_not_is_named() {
    let world = World::start();
    let app = &world.app;
    let form = json!({"type": "object", "required": ["amount", "reason"], "properties": {
        "amount": {"type": "number", "maximum": 500}, "reason": {"type": "string", "enum": ["late", "damaged"]},
        "notify": {"type": "boolean"}}});
    let asked = || {
        let id = world.approval("finance", 3600);
        let keep =
            format!("update approval_subjects set form = '{form}' where approval_id = '{id}'");
        app.sql(&keep);
        format!("{ALL}/{id}")
    };
    let one = asked();
    let read = app.get(&one).expect(200);
    assert_eq!(read["subject"]["form"], form);
    let decide = |decision: &str, answer: Value| {
        let body = json!({"decision": decision, "answer": answer});
        app.post(&format!("{one}/decide"), &body)
    };
    let wrong = json!({"amount": 501, "notify": "yes", "who": 1});
    for decision in ["approve", "reject"] {
        let refused = decide(decision, wrong.clone()).expect_error(400, "invalid-body");
        let faults = refused["details"]["faults"].as_array().unwrap().iter();
        let mut paths: Vec<&str> = faults
            .map(|fault| fault["path"].as_str().unwrap())
            .collect();
        paths.sort_unstable();
        let all = [
            "$.answer.amount",
            "$.answer.notify",
            "$.answer.reason",
            "$.answer.who",
        ];
        assert_eq!(paths, all, "{refused}");
    }
    let deep = (0..65).fold(json!(1), |inner, _| json!([inner]));
    for unfit in [json!("yes"), deep] {
        let refused = decide("approve", unfit).expect_error(400, "invalid-body");
        assert_eq!(refused["details"]["path"], json!("$.answer"));
    }
    // Two readers of such a body could see two decisions.
    for (body, path) in [
        (
            r#"{"decision":"approve","answer":{"amount":1,"reason":"late","amount":500}}"#,
            "$.answer.amount",
        ),
        (
            r#"{"decision":"approve","answer":{"amount":1},"answer":{"amount":5}}"#,
            "$.answer",
        ),
        (
            r#"{"decision":"approve","arguments":{"a":[{"b":1,"b":2}]}}"#,
            "$.arguments.a[0].b",
        ),
    ] {
        let refused = app.send("POST", &format!("{one}/decide"), Some(body.to_owned()), &[]);
        let refused = refused.expect_error(400, "invalid-body");
        assert_eq!(refused["details"]["path"], json!(path));
    }
    assert_eq!(app.get(&one).expect(200), read, "nothing was decided");
    let answer = json!({"amount": 500, "reason": "late"});
    let decided = decide("approve", answer.clone()).expect(200);
    assert_eq!(decided["subject"]["answer"], answer);
    // The same again is an answer that was lost; another answer is another decision.
    decide("approve", answer).expect(200);
    let another = json!({"amount": 5, "reason": "late"});
    decide("approve", another).expect_error(409, "approval-closed");
    // Who rejects need not fill it in.
    let no = json!({"decision": "reject"});
    let rejected = app.post(&format!("{}/decide", asked()), &no).expect(200);
    assert_eq!(rejected["subject"]["answer"], json!(null));
}

#[test]
fn an_approval_that_another_replica_closed_is_closed_here() {
    let world = World::start();
    let (here, there) = (&world.app, world.app.replica(|_| {}));
    let decide = |client: &Client, id: Uuid, decision: &str| {
        let body = json!({"decision": decision});
        client.post(&format!("{ALL}/{id}/decide"), &body)
    };
    let id = world.approval("finance", 3600);
    decide(&there, id, "reject").expect(200);
    let refused = decide(here, id, "approve").expect_error(409, "approval-closed");
    let details = &refused["details"];
    assert_eq!(details["status"], json!("rejected"));
    assert_eq!(details["decidedBy"], json!(here.seeds.user_id));
    assert!(details["decidedAt"].is_string(), "{refused}");
    decide(here, id, "reject").expect(200);
    // At the same moment.
    for _ in 0..8 {
        let id = world.approval("finance", 3600);
        let start = Barrier::new(2);
        let mut statuses = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                start.wait();
                decide(&there, id, "reject").status
            });
            start.wait();
            [decide(here, id, "approve").status, other.join().unwrap()]
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409]);
    }
}

#[test]
fn an_escalation_opens_another_one_and_there_is_one_level() {
    let world = World::start();
    let app = &world.app;
    let first = world.approval("standard", 3600);
    let escalate = |id: &Value, body: &Value| {
        app.post(&format!("{ALL}/{}/escalate", id.as_str().unwrap()), body)
    };
    for nothing in [json!({}), json!({"requiredRole": "Board"})] {
        let refused = escalate(&json!(first), &nothing).expect_error(400, "invalid-body");
        assert_eq!(refused["details"]["path"], json!("$.requiredRole"));
    }
    let ann = made::id(&made::person(app, "ann@b", "member"));
    let body = json!({"requiredRole": "board", "email": "Ann@b", "comment": "Over my limit."});
    let second = escalate(&json!(first), &body).expect(201);
    assert_eq!(second["requiredRole"], json!("board"));
    assert_eq!(second["assignedTo"], json!(ann));
    assert_eq!(second["escalatedFrom"], json!(first));
    let old = app.get(&format!("{ALL}/{first}")).expect(200);
    assert_eq!(old["status"], json!("escalated"));
    assert_eq!(old["escalatedTo"], second["id"]);
    assert_eq!(old["expiresAt"], second["expiresAt"]);
    let decide = format!("{ALL}/{first}/decide");
    let closed = app
        .post(&decide, &json!({"decision": "approve"}))
        .expect_error(409, "approval-closed");
    assert_eq!(closed["details"]["escalatedTo"], second["id"]);
    escalate(&second["id"], &body).expect_error(409, "conflict");
    assert_eq!(world.listed(""), [second["id"].clone()]);
    assert_eq!(world.listed("?status=escalated"), [json!(first)]);
}

#[test]
fn an_escalation_that_names_nobody_goes_to_whom_the_approval_names() {
    let world = World::start();
    let app = &world.app;
    let ann = made::id(&made::person(app, "ann@b", "member"));
    let named = |assignee: &str| {
        let id = world.approval("standard", 3600);
        app.sql(&format!(
            "update approvals set escalate_at = expires_at - interval '1 minute', escalate_role = 'board',
               escalate_assignee = '{assignee}' where approval_id = '{id}'"
        ));
        format!("{ALL}/{id}/escalate")
    };
    let to_the_named = app.post(&named("Ann@b"), &json!({})).expect(201);
    assert_eq!(to_the_named["requiredRole"], json!("board"));
    assert_eq!(to_the_named["assignedTo"], json!(ann));
    let to_nobody = app.post(&named("bo@b"), &json!({})).expect(201);
    assert_eq!(to_nobody["assignedTo"], json!(null));
    let role = json!({"requiredRole": "board"});
    let elsewhere = app.post(&named("ann@b"), &role).expect(201);
    assert_eq!(elsewhere["assignedTo"], json!(null), "the reviewer chose");
}

#[test]
fn a_list_shows_what_waits_unless_asked_otherwise() {
    let world = World::start();
    let app = &world.app;
    let (late, soon, over) = (
        world.approval("standard", 7200),
        world.approval("finance", 3600),
        world.approval("finance", 0),
    );
    assert_eq!(world.listed(""), [json!(soon), json!(late)]);
    assert_eq!(world.listed("?order=asc&limit=1"), [json!(late)]);
    assert_eq!(world.listed("?role=finance"), [json!(soon)]);
    assert_eq!(
        world.listed("?status=expired"),
        [json!(over)],
        "nobody has written it yet"
    );
    let read = app.get(&format!("{ALL}/{over}")).expect(200);
    assert_eq!(
        (&read["status"], &read["closedAt"]),
        (&json!("expired"), &read["expiresAt"])
    );
    let decide = json!({"decision": "approve"});
    app.post(&format!("{ALL}/{over}/decide"), &decide)
        .expect_error(409, "approval-closed");
    assert_eq!(world.listed(&format!("?runId={}", world.run_id)).len(), 2);
    assert_eq!(world.listed(&format!("?runId={late}")).len(), 0);
    assert_eq!(
        world
            .listed(&format!("?projectId={}", world.project_id))
            .len(),
        2
    );
    app.get(&format!("{ALL}?assignedTo=you"))
        .expect_error(400, "invalid-request");
}

#[test]
fn a_list_reads_no_more_of_what_is_closed_than_it_shows() {
    let world = World::start();
    let mut database = world.app.database.client();
    let tenant_id = world.app.seeds.tenant_id;
    // The ids of those that wait come last.
    let fill = "insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source, required_role,
          title, status, requested_by, created_at, expires_at, subject_digest, closed_at)
        select $1, overlay(gen_random_uuid()::text placing lpad(to_hex(number), 8, '0') from 1)::uuid, gen_random_uuid(), id, id, 1,
          '/do/0/ask', 'flow', 'finance', 't', status, id, now(), now() + interval '1 day', decode(repeat('00', 32), 'hex'),
          case when status <> 'waiting' then now() end
        from generate_series(1, 6000) as number, lateral (select gen_random_uuid() as id, case when number > 5900 then 'waiting'
          when number % 100 = 0 then 'voided' else 'approved' end as status) as given";
    database.execute(fill, &[&tenant_id]).unwrap();
    database.batch_execute("vacuum analyze approvals").unwrap();
    let waiting = include_str!("../../sql/queries/approvals/list_waiting.sql");
    let closed = include_str!("../../sql/queries/approvals/list_closed.sql");
    for plans in ["force_custom_plan", "force_generic_plan"] {
        for order in ["asc", "desc"] {
            // Of one status a plan is made for its value: nearly all are approved, so the index of all ids may be taken, and what
            // waits be passed.
            for (statement, types, status, most) in [
                (waiting, "", "", 10.0),
                (closed, ", text", ", 'voided'", 10.0),
                (closed, ", text", ", 'approved'", 120.0),
            ] {
                if plans == "force_generic_plan" && !status.is_empty() {
                    continue;
                }
                let (before, after) = if order == "asc" {
                    (">", "asc")
                } else {
                    ("<", "desc")
                };
                let statement = statement
                    .replace("{{>|<}}", before)
                    .replace("{{asc|desc}}", after);
                database.batch_execute(&format!(
                    "set plan_cache_mode = {plans}; prepare list (uuid, text[], uuid, uuid, uuid, boolean, uuid, bigint{types}) as {statement}"
                )).unwrap();
                let explain = format!(
                    "explain (analyze, format json) execute list ('{tenant_id}', null, null, null, null, false, null, 10{status})"
                );
                let said: Value = database.query_one(&explain, &[]).unwrap().get(0);
                let rows = plan_rows(&said[0]["Plan"], &|relation| relation == "approvals");
                assert!(rows <= most, "{plans} {order}{status}: {rows} rows: {said}");
                database.batch_execute("deallocate list").unwrap();
            }
        }
    }
}

#[test]
fn the_inbox_shows_what_is_mine_before_what_is_nobodys() {
    let world = World::start();
    let app = &world.app;
    let (late, soon) = (
        world.approval("standard", 7200),
        world.approval("finance", 3600),
    );
    let inbox = || app.get("/v1/inbox").expect(200)["data"].clone();
    let ids = |inbox: &Value| {
        inbox
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        ids(&inbox()),
        [json!(soon), json!(late)],
        "what ends first leads"
    );
    let assign = |id: Uuid, body: &Value| app.post(&format!("{ALL}/{id}/assign"), body);
    let assigned = assign(late, &json!({"userId": app.seeds.user_id})).expect(200);
    assert_eq!(assigned["assignedTo"], json!(app.seeds.user_id));
    assert_eq!(
        ids(&inbox()),
        [json!(late), json!(soon)],
        "what is mine leads"
    );
    assert_eq!(inbox()[0]["isAssigned"], json!(true));
    let ann = made::id(&made::person(app, "ann@b", "member"));
    assign(soon, &json!({"email": "ann@b"})).expect(200);
    assert_eq!(
        ids(&inbox()),
        [json!(late)],
        "what is another's is not mine"
    );
    assert_eq!(world.listed(&format!("?assignedTo={ann}")), [json!(soon)]);
    assert_eq!(world.listed("?assignedTo=me"), [json!(late)]);
    assert_eq!(world.listed("?assignedTo=none").len(), 0);
    let deactivate = format!("/v1/identity/users/{ann}/deactivate");
    app.send("POST", &deactivate, None, &[]).expect(200);
    assert_eq!(
        world.listed("?assignedTo=none"),
        [json!(soon)],
        "nobody's once Ann is gone"
    );
    assign(soon, &json!({"email": "ann@b"})).expect_error(409, "conflict");
    assign(late, &json!({})).expect(200);
    assert_eq!(world.listed("?assignedTo=none").len(), 2);
}

#[test]
fn the_inbox_is_counted_and_paged_and_asked_for_again_for_nothing() {
    let world = World::start();
    let app = &world.app;
    let ids: Vec<Uuid> = (1..=5)
        .map(|hours| world.approval("standard", hours * 3600))
        .collect();
    let mine = format!("{ALL}/{}/assign", ids[4]);
    app.post(&mine, &json!({"userId": app.seeds.user_id}))
        .expect(200);
    let order = [ids[4], ids[0], ids[1], ids[2], ids[3]];
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/v1/inbox?limit=2{cursor}")).expect(200);
        assert_eq!(page["counts"], json!({"assigned": 1, "unassigned": 4}));
        let summary = app.get("/v1/inbox/summary").expect(200);
        assert_eq!(summary, json!({"approvals": 5}));
        found.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["id"].clone()),
        );
        assert_eq!(page["hasMore"], json!(page["nextCursor"].is_string()));
        let Some(next) = page["nextCursor"].as_str() else {
            break;
        };
        // What is decided meanwhile neither hides a row nor brings one twice.
        if found.len() == 2 {
            let decide = format!("{ALL}/{}/decide", ids[4]);
            app.post(&decide, &json!({"decision": "approve"}))
                .expect(200);
            let again = world.approval("standard", 5 * 3600);
            let mine = format!("{ALL}/{again}/assign");
            app.post(&mine, &json!({"userId": app.seeds.user_id}))
                .expect(200);
        }
        cursor = format!("&cursor={next}");
    }
    assert_eq!(found, order.map(|id| json!(id)));
    app.get("/v1/inbox?limit=0")
        .expect_error(400, "invalid-request");
    app.get("/v1/inbox?cursor=AQ")
        .expect_error(400, "invalid-cursor");
    let first = app.get("/v1/inbox");
    let tag = first.header("etag").unwrap().to_owned();
    let named = |tag: &str| app.send("GET", "/v1/inbox", None, &[("if-none-match", tag)]);
    let again = named(&tag);
    assert_eq!((again.status, again.header("etag")), (304, Some(&*tag)));
    assert_eq!(again.text, "");
    world.approval("standard", 3600);
    let changed = named(&tag);
    assert_eq!(changed.status, 200);
    assert_ne!(changed.header("etag"), Some(&*tag));
    // Nobody writes that a time is over, and the answer changes all the same.
    let tag = changed.header("etag").unwrap();
    app.sql(&format!(
        "update approvals set expires_at = now() where approval_id = '{}'",
        ids[0]
    ));
    assert_eq!(named(tag).status, 200);
}

#[test]
fn metrics_tell_what_waits_how_it_was_closed_and_after_how_long() {
    let world = World::start();
    let decided = world.approval("finance", 3600);
    world.approval("standard", 3600);
    world.approval("finance", 3600);
    world.approval("finance", 0);
    let figure = |series: &str| {
        let metrics = world.app.get("/metrics").text;
        let line = metrics
            .lines()
            .find(|line| line.starts_with(&format!("{series} ")));
        let line = line.unwrap_or_else(|| panic!("no {series} in {metrics}"));
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let decide = |id: Uuid, decision: &str| {
        let path = format!("{ALL}/{id}/decide");
        world
            .app
            .post(&path, &json!({"decision": decision}))
            .expect(200);
    };
    let age = "update approvals set created_at = now() - interval '2 hours'";
    world.app.sql(age);
    decide(decided, "reject");
    decide(decided, "reject");
    assert_eq!(
        figure("agent_runtime_approvals_closed_total{outcome=\"rejected\"}"),
        1.0
    );
    assert_eq!(
        figure("agent_runtime_approvals_closed_total{outcome=\"approved\"}"),
        0.0
    );
    let bucket = |bound: &str| {
        figure(&format!(
            "agent_runtime_approval_decision_seconds_bucket{{le=\"{bound}\"}}"
        ))
    };
    assert_eq!((bucket("3600"), bucket("14400")), (0.0, 1.0));
    // What waits is read when a process starts, and again in a while.
    let replica = world.app.replica(|_| {});
    let figure = |series: &str| {
        let metrics = replica.get("/metrics").text;
        let found = metrics
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{series} ")));
        found.map(|text| text.parse::<f64>().unwrap())
    };
    eventually("what waits to be read", || {
        (figure("agent_runtime_approvals_waiting{role=\"standard\"}") == Some(1.0)).then_some(())
    });
    assert_eq!(
        figure("agent_runtime_approvals_waiting{role=\"other\"}"),
        Some(1.0)
    );
    assert_eq!(figure("agent_runtime_approvals_overdue"), Some(1.0));
    let oldest = figure("agent_runtime_approvals_oldest_seconds").unwrap();
    assert!((7200.0..7400.0).contains(&oldest), "{oldest}");
}
