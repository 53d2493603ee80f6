//! Approvals with a form, which whoever approves fills in.

use super::approvals::{Scene, asked, newest};
use super::world::Scripts;
use crate::harness::eventually;
use crate::runtime::world::World;
use agent_runtime::store::Sql;
use serde_json::{Value, json};
use uuid::Uuid;

fn form() -> Value {
    json!({"type": "object", "required": ["amount"], "properties": {
        "amount": {"type": "number", "minimum": 0, "maximum": 500}, "note": {"type": "string"}}})
}

/// The form of an approval's subject, and the digest that a decision names.
fn kept(world: &World, approval_id: Uuid) -> (Option<Value>, Vec<u8>) {
    let query = "select s.form, a.subject_digest from approvals a join approval_subjects s using (tenant_id, approval_id)
         where a.approval_id = $1";
    world.read(|session| {
        let row = session.query_one(query, &[&approval_id])?;
        Ok((row.get(0), row.get(1)))
    })
}

#[test]
fn a_form_is_kept_with_the_subject_is_part_of_its_digest_and_stays_after_an_escalation() {
    let world = World::scripted();
    let process = world.process(1, true);
    let (_, plain) = asked(&world, &process, &json!({}));
    assert_eq!(kept(&world, plain).0, None);
    let ask = json!({"form": form(), "escalate": [200, "board"]});
    let (run_id, first) = asked(&world, &process, &ask);
    let (given, digest) = kept(&world, first);
    assert_eq!(given, Some(form()));
    assert_ne!(digest, kept(&world, plain).1);
    world.eventually(|| newest(&world.store, run_id) != first);
    let second = newest(&world.store, run_id);
    assert_eq!(kept(&world, second), (given, digest));
}

#[test]
fn a_form_that_is_too_large_fails_the_run() {
    let world = World::scripted();
    let process = world.process(1, true);
    let ask = json!({"form": {"title": "x".repeat(20_000)}});
    let run_id = world.start(&process, &json!({"steps": [{"ask": ask}]}));
    let message = world.finished(&process, run_id).failure_message.unwrap();
    assert!(message.contains("form has 20012 bytes"), "{message}");
}

#[test]
fn who_approves_fills_in_the_form_and_the_run_reads_the_answer() {
    let scene = Scene::new();
    let run_id = scene.start(&json!({"form": form()}), false);
    let id = eventually("the approval to wait", || {
        let found = scene.app.get("/v1/approvals").expect(200);
        found["data"][0]["id"].as_str().map(str::to_owned)
    });
    let path = format!("/v1/approvals/{id}");
    let subject = scene.app.get(&path).expect(200)["subject"].clone();
    assert_eq!(subject["form"], form());
    let decide = |body: Value| scene.app.post(&format!("{path}/decide"), &body);
    let lacking = decide(json!({"decision": "approve"})).expect_error(400, "invalid-body");
    assert_eq!(lacking["details"]["path"], json!("$.answer.amount"));
    let answer = json!({"amount": 180, "note": "As agreed."});
    decide(json!({"decision": "approve", "answer": answer})).expect(200);
    let output = eventually("the run to end", || {
        let payload = scene.app.get(&format!("/v1/runs/{run_id}/payload"));
        Some(payload.expect(200)["output"][0].clone()).filter(|output| !output.is_null())
    });
    assert_eq!(output["decision"], json!("approved"));
    assert_eq!(output["answer"], answer);
}
