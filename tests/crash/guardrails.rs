//! `kill -9` of the server between a guardrail's verdict and what follows from it: a call that is blocked is never made, and a call
//! that a reviewer is to approve asks once, and is made once, after the approval.

use crate::random::Random;
use crate::server::{Client, Server, ServerConfig};
use crate::world::{Agents, Pace, config, id_of, shared_database};
use crate::{eventually, report};
use postgres::NoTls;
use serde_json::{Value, json};
use uuid::Uuid;

/// Each round kills twice: before the approval, and after the decision.
const ROUNDS: usize = 5;

/// An agent that may charge lamps once a reviewer has approved it, and bombs never.
fn guarded(client: &Client, agents: &Agents) -> Uuid {
    let project = id_of(&client.made("/v1/projects", &json!({"name": "guarded"}), 201));
    let model = json!({"name": "guarded", "baseUrl": agents.provider.base_url(), "models": [{"name": "scripted"}]});
    let model_provider = id_of(&client.made("/v1/model-providers", &model, 201));
    let tool = json!({"projectId": project, "name": "charge", "description": "Does it.",
        "argumentsSchema": {"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}},
        "url": agents.tool.url(), "timeoutMs": 20_000, "idempotent": true});
    let tool_id = id_of(&client.made("/v1/tools", &tool, 201));
    let agent = json!({"projectId": project, "name": "guarded"});
    let agent_id = id_of(&client.made("/v1/agents", &agent, 201));
    let check = |name: &str, action: &str| json!({"builtin": "pattern", "name": name, "at": ["tool.arguments"], "action": action, "config": {"patterns": [name]}});
    let version = json!({"instructions": "Be exact.", "modelProviderId": model_provider, "model": "scripted",
        "toolIds": [tool_id], "guardrails": [check("bomb", "block"), check("lamp", "approve")]});
    client.made(&format!("/v1/agents/{agent_id}/versions"), &version, 201);
    agent_id
}

fn start(client: &Client, agent_id: Uuid, item: &str) -> Uuid {
    let turn = json!({"agentId": agent_id, "message": format!("Please charge the item {item}")});
    id_of(&client.made("/v1/runs", &turn, 202)["run"])
}

fn ended(client: &Client, run_id: Uuid) -> Value {
    eventually("the run to end", || {
        let run = client.run(run_id);
        run["completedAt"].is_string().then_some(run)
    })
}

/// One turn of each kind, over two kills. The runs, and the next server.
fn round(
    config: &ServerConfig,
    agent_id: Uuid,
    server: Server,
    random: &mut Random,
) -> ([Uuid; 2], Server) {
    let client = config.client();
    let runs = ["lamp", "bomb"].map(|item| start(&client, agent_id, item));
    random.let_pass(0, 160);
    server.kill();
    let server = config.start();
    let approval = eventually("the approval", || {
        let waiting = client
            .get(&format!("/v1/approvals?runId={}", runs[0]))
            .ok()?;
        let first = waiting.body["data"].as_array()?.first()?.clone();
        (client.run(runs[0])["status"] == "waiting").then_some(first)
    });
    let decide = format!("/v1/approvals/{}/decide", approval["id"].as_str().unwrap());
    client.made(&decide, &json!({"decision": "approve"}), 200);
    random.let_pass(0, 80);
    server.kill();
    (runs, config.start())
}

#[test]
fn what_a_guardrail_decided_holds_although_the_server_dies_before_it_took_effect() {
    let config = config(shared_database());
    let mut random = Random::seeded("guardrails");
    let mut server = config.start();
    let agents = Agents::make(&config.client(), Pace::default());
    let agent_id = guarded(&config.client(), &agents);
    let mut sql = postgres::Client::connect(&config.database_url, NoTls).unwrap();
    for _ in 0..ROUNDS {
        let runs;
        (runs, server) = round(&config, agent_id, server, &mut random);
        let client = config.client();
        for (run_id, verdict, opened) in [(runs[0], "approve", 1), (runs[1], "block", 0)] {
            let ended = ended(&client, run_id);
            assert_eq!(ended["status"], "completed", "{ended}");
            let calls = agents.tool.calls();
            let steps: std::collections::BTreeSet<i32> = calls
                .iter()
                .filter(|call| call.run_id == run_id)
                .map(|call| call.step)
                .collect();
            assert_eq!(steps.len(), usize::try_from(opened).unwrap(), "{ended}");
            let count = "select (select count(*) from approvals where run_id = $1),
                (select count(*) from run_checks where run_id = $1 and verdict = $2)";
            let row = sql.query_one(count, &[&run_id, &verdict]).unwrap();
            assert_eq!(row.get::<_, i64>(0), opened, "approvals of {ended}");
            assert_eq!(
                row.get::<_, i64>(1),
                1,
                "a verdict for each answer: {ended}"
            );
        }
    }
    report(
        "guardrails",
        &format!("kills={} runs={}", 2 * ROUNDS, 2 * ROUNDS),
    );
    server.kill();
}
