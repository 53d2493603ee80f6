//! `kill -9` of the server after a reviewer has approved a call, and before the call is made or has been answered.

use crate::random::Random;
use crate::server::{Client, Server, ServerConfig};
use crate::world::{Agents, Pace, config, id_of, shared_database};
use crate::{eventually, report};
use serde_json::{Value, json};
use uuid::Uuid;

/// How often the server is killed. At every other time all runs are held, so that the kill comes before the call for certain.
const ROUNDS: usize = 6;

/// An agent whose tool may not be called twice, and asks first.
pub(crate) fn asking(client: &Client, agents: &Agents) -> Uuid {
    let project = id_of(&client.made("/v1/projects", &json!({"name": "asking"}), 201));
    let model = json!({"name": "asking", "baseUrl": agents.provider.base_url(), "models": [{"name": "scripted"}]});
    let model_provider = id_of(&client.made("/v1/model-providers", &model, 201));
    let tool = json!({"projectId": project, "name": "charge", "description": "Does it.",
        "argumentsSchema": {"type": "object", "required": ["item"], "properties": {"item": {"type": "string"}}},
        "url": agents.tool.url(), "timeoutMs": 20_000, "approval": {"title": "Charge"}});
    let tool_id = id_of(&client.made("/v1/tools", &tool, 201));
    let agent = json!({"projectId": project, "name": "asking"});
    let agent_id = id_of(&client.made("/v1/agents", &agent, 201));
    let version = json!({"instructions": "Be exact.", "modelProviderId": model_provider, "model": "scripted",
        "toolIds": [tool_id]});
    client.made(&format!("/v1/agents/{agent_id}/versions"), &version, 201);
    agent_id
}

fn operator(config: &ServerConfig, command: &str) {
    let ran = config.run(&["runs", command]);
    assert!(ran.status.success(), "{ran:?}");
}

/// Starts a turn, approves its call, and kills the server. The run, and the next server.
fn round(
    config: &ServerConfig,
    agent_id: Uuid,
    server: Server,
    holds: bool,
    random: &mut Random,
) -> (Uuid, Server) {
    let client = config.client();
    let turn = json!({"agentId": agent_id, "message": "Please charge the item lamp"});
    let run_id = id_of(&client.made("/v1/runs", &turn, 202)["run"]);
    let approval = eventually("the approval", || {
        let waiting = client.get(&format!("/v1/approvals?runId={run_id}")).ok()?;
        let first = waiting.body["data"].as_array()?.first()?.clone();
        (client.run(run_id)["status"] == "waiting").then_some(first)
    });
    if holds {
        operator(config, "hold");
    }
    let decide = format!("/v1/approvals/{}/decide", approval["id"].as_str().unwrap());
    client.made(&decide, &json!({"decision": "approve"}), 200);
    if !holds {
        random.let_pass(0, 80);
    }
    server.kill();
    let server = config.start();
    if holds {
        operator(config, "release");
    }
    (run_id, server)
}

#[test]
fn an_approved_call_is_made_once_although_the_server_dies_after_the_decision() {
    let config = config(shared_database());
    let mut random = Random::seeded("approvals");
    let mut server = config.start();
    let agents = Agents::make(&config.client(), Pace::default());
    let agent_id = asking(&config.client(), &agents);
    let (mut once, mut unknown) = (0, 0);
    for number in 0..ROUNDS {
        let holds = number % 2 == 0;
        let run_id;
        (run_id, server) = round(&config, agent_id, server, holds, &mut random);
        let client = config.client();
        let ended: Value = eventually("the run to end", || {
            let run = client.run(run_id);
            run["completedAt"].is_string().then_some(run)
        });
        let calls = agents.tool.calls();
        let calls = calls.iter().filter(|call| call.run_id == run_id).count();
        if ended["status"] == "completed" {
            assert_eq!(calls, 1, "{ended}");
            once += 1;
        } else {
            let message = ended["failureMessage"].as_str().unwrap_or_default();
            assert!(!holds && message.contains("Nobody knows"), "{ended}");
            assert!(calls <= 1, "{ended}");
            unknown += 1;
        }
    }
    report(
        "approvals",
        &format!("kills={ROUNDS} calledOnce={once} outcomeUnknown={unknown}"),
    );
    server.kill();
}
