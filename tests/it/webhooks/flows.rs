//! What a receiver is told of a flow's run whose steps are turns of agents.

use super::world::World;
use crate::harness::{Receiver, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use serde_json::{Value, json};

/// A filter names flows, and takes each of their versions and no other flow.
#[test]
fn a_filter_of_flows_takes_any_version_of_them() {
    let world = World::new();
    let app = &world.app;
    let project = made::project(app);
    let definition = |name: &str, version: &str| {
        json!({
            "document": {"dsl": "1.0.3", "namespace": "billing", "name": name, "version": version},
            "do": [{"say": {"set": {"version": version}}}],
        })
    };
    let push = |name: &str| {
        let body = json!({"projectId": project, "definition": definition(name, "1.0.0")});
        made::id(&app.post("/v1/flows", &body).expect(201))
    };
    push("refund");
    let next = json!({"definition": definition("assess", "2.1.0")});
    app.post(&format!("/v1/flows/{}/versions", push("assess")), &next)
        .expect(201);
    let receiver = Receiver::good();
    world.endpoint_with(
        &receiver.url(),
        &["run.finished"],
        &json!({"flowIds": ["billing.assess"]}),
    );
    let start = |body: Value| {
        let run = made::id(&app.post("/v1/runs", &body).expect(202)["run"]);
        assert_eq!(app.finished(&run)["status"], "completed");
    };
    start(json!({"flowId": "billing.assess", "flowVersion": "1.0.0", "input": {}}));
    start(json!({"flowId": "billing.refund", "input": {}}));
    start(json!({"flowId": "billing.assess", "flowVersion": "2.1.0", "input": {}}));
    let told: Vec<Value> = receiver
        .once(2)
        .iter()
        .map(|one| {
            let run = &one.json()["data"]["run"];
            json!([run["flowId"], run["flowVersion"]])
        })
        .collect();
    assert_eq!(told.len(), 2);
    for version in ["1.0.0", "2.1.0"] {
        assert!(
            told.contains(&json!(["billing.assess", version])),
            "{told:?}"
        );
    }
}

/// Asks an agent whose answers fit a schema, branches on what it answered, and asks another one.
fn definition(clerk: &Value, writer: &Value) -> Value {
    let ask = |agent: &Value| json!({"call": "agent", "with": {"agent": agent, "version": "1.0.0", "message": "${ .order }"}});
    let mut assess = ask(clerk);
    assess["output"] = json!({"as": "{ order: $workflow.input.order, assessed: .json }"});
    json!({
        "document": {"dsl": "1.0.3", "namespace": "billing", "name": "assess", "version": "1.0.0"},
        "do": [
            {"assess": assess},
            {"which": {"switch": [
                {"refund": {"when": ".assessed.decision == \"refund\"", "then": "tell"}},
                {"other": {"then": "refuse"}},
            ]}},
            {"refuse": {"set": {"said": "refused"}, "then": "end"}},
            {"tell": ask(writer)},
        ],
    })
}

#[test]
fn a_flow_branches_on_an_agents_json_and_its_receiver_gets_the_usage_of_every_call() {
    let world = World::new();
    let app = &world.app;
    let provider = Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("nobody asks for this"),
    })
    .unwrap();
    let maker = app.maker();
    let project = maker.project();
    let schema = json!({"type": "object", "required": ["decision"],
        "properties": {"decision": {"enum": ["refund", "refuse"]}}});
    let clerk = maker.agent_of(project, &provider.base_url(), |version| {
        version.output_schema = schema;
    });
    let writer = maker.agent_of(project, &provider.base_url(), |_| {});
    let name = |agent| app.get(&format!("/v1/agents/{agent}")).expect(200)["name"].clone();
    let definition = definition(&name(clerk), &name(writer));
    let body = json!({"projectId": project, "definition": definition});
    app.post("/v1/flows", &body).expect(201);
    let receiver = Receiver::good();
    world.endpoint(&receiver.url());
    let unavailable = || Step::json(503, &json!({"error": {"message": "Busy."}}));
    let start = |answers: Vec<Step>| {
        answers.into_iter().for_each(|step| provider.push(step));
        let body = json!({"flowId": "billing.assess", "input": {"order": "A-1"}});
        let run = made::id(&app.post("/v1/runs", &body).expect(202)["run"]);
        assert_eq!(
            app.finished(&run)["status"],
            "completed",
            "{}",
            app.run(&run)
        );
        run
    };
    // A call that fails, an answer that does not fit, one that does; then the other agent, whose first call fails.
    let refunded = start(vec![
        unavailable(),
        Step::text(r#"{"decision": "perhaps"}"#),
        Step::text(r#"{"decision": "refund"}"#),
        unavailable(),
        Step::text("Paid."),
    ]);
    assert_eq!(app.output(&refunded)["text"], "Paid.");
    let refused = start(vec![Step::text(r#"{"decision": "refuse"}"#)]);
    assert_eq!(app.output(&refused), json!({"said": "refused"}));
    let received = receiver.once(2);
    assert_eq!(received.len(), 2, "turns inside a flow are not told");
    let told: Vec<Value> = received
        .iter()
        .map(|one| one.json()["data"]["run"].clone())
        .collect();
    for (run, calls) in [(&refunded, 5), (&refused, 1)] {
        let told = told.iter().find(|told| told["id"] == json!(run)).unwrap();
        assert_eq!(told["flowId"], "billing.assess");
        assert!(told.get("agent").is_none(), "{told}");
        let usage = &told["usage"];
        assert_eq!(usage, &app.run(run)["usage"]);
        assert_eq!(usage["calls"], calls, "failed ones included");
        let summed = format!(
            "select coalesce(sum(c.prompt_tokens), 0)::int8 from run_model_calls c join runs r using (run_id)
             where r.root_run_id = '{run}'"
        );
        assert_eq!(usage["tokens"]["prompt"], world.number(&summed));
    }
}
