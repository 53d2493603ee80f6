//! `/v1/approvals` and `/v1/inbox` with authorization off, where whoever holds a token of the tenant decides. Who may is in
//! `access::approvals`, what becomes of the run in `waiting::approvals`.

use crate::harness::approvals::NewApproval;
use crate::harness::{App, made};
use serde_json::{Value, json};
use uuid::Uuid;

const ALL: &str = "/v1/approvals";

struct World {
    app: App,
    project_id: Uuid,
    run_id: Uuid,
}

impl World {
    /// A run that has ended is enough for what is asked here.
    fn start() -> Self {
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

    fn approval(&self, role: &'static str, seconds: i32) -> Uuid {
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
