//! Model servers that refuse what others take: conversations stay valid, and what is refused by name is left out.

use crate::harness::{App, Call, NewTool, Puppet, ToolAnswer, ToolServer};
use serde_json::{Value, json};
use std::collections::HashSet;
use uuid::Uuid;

struct World {
    puppet: Puppet,
    app: App,
    agent: Uuid,
    conversation: Uuid,
    tool: ToolServer,
}

impl World {
    /// An agent with a tool `weather`, which says `sun` and much more, and a conversation.
    fn start(limits: Value) -> Self {
        let (puppet, app) = (Puppet::start(), App::start());
        let tool =
            ToolServer::start(|_, _| ToolAnswer::ok(format!("sun{}", " and sun".repeat(900))));
        let maker = app.maker();
        let project = maker.project();
        let url = tool.url();
        let weather = maker.tool(project, &NewTool::new("weather", &url));
        let agent = maker.agent_of(project, &puppet.base_url(), |version| {
            version.tools = vec![weather];
            version.limits = limits;
        });
        let conversation = maker.conversation(agent, None);
        Self {
            puppet,
            app,
            agent,
            conversation,
            tool,
        }
    }

    fn say(&self, message: &str) -> String {
        let body =
            json!({"agentId": self.agent, "message": message, "conversationId": self.conversation});
        let started = self.app.post("/v1/runs", &body).expect(202);
        started["run"]["id"].as_str().unwrap().to_owned()
    }

    /// The next call, which a strict server would take.
    fn call(&self) -> Call {
        let call = self.puppet.call();
        check_strict(&call.body);
        call
    }
}

/// Asks for the weather, under the same id each time.
fn ask_for_weather(mut call: Call, arguments: &str) {
    let asked = json!({"index": 0, "id": "call_0", "type": "function", "function": {"name": "weather", "arguments": arguments}});
    call.event(&json!({"choices": [{"index": 0, "delta": {"tool_calls": [asked]}}]}));
    call.finish_for("tool_calls");
}

fn answer(mut call: Call, text: &str) {
    call.say(text);
    call.finish();
}

/// Roles alternate, nothing is empty, calls have results, arguments are objects and ids are those that Mistral takes.
#[track_caller]
fn check_strict(body: &Value) {
    let messages = body["messages"].as_array().unwrap();
    let (mut before, mut ids, mut open) = ("system", HashSet::new(), HashSet::new());
    for message in messages {
        let role = message["role"].as_str().unwrap();
        match role {
            "system" => assert_eq!(message, &messages[0]),
            "user" => assert!(["system", "assistant"].contains(&before), "{body:#}"),
            "assistant" => assert!(["user", "tool"].contains(&before), "{body:#}"),
            _ => assert!(open.remove(&message["tool_call_id"]), "{body:#}"),
        }
        if role != "tool" {
            assert!(open.is_empty(), "{body:#}");
        }
        let calls = message["tool_calls"].as_array();
        assert!(
            calls.is_some() || !message["content"].as_str().unwrap().is_empty(),
            "{body:#}"
        );
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap();
            assert!(
                id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()),
                "{id}"
            );
            assert!(ids.insert(id), "{id} twice");
            open.insert(&call["id"]);
            let arguments = call["function"]["arguments"].as_str().unwrap();
            assert!(
                serde_json::from_str::<Value>(arguments)
                    .unwrap()
                    .is_object()
            );
        }
        before = role;
    }
    assert!(open.is_empty(), "{body:#}");
    assert!(["user", "tool"].contains(&before), "{body:#}");
}

#[test]
fn ten_turns_of_which_one_fails_stay_valid() {
    let world = World::start(json!({}));
    let run = world.say("turn 0");
    world.puppet.call().refuse(400, "System role not supported");
    for turn in 0..10 {
        let run = match turn {
            0 => run.clone(),
            _ => world.say(&format!("turn {turn}")),
        };
        let call = world.call();
        // It was refused once, and is remembered.
        assert_eq!(call.body["messages"][0]["role"], "user");
        let start = call.body["messages"][0]["content"].as_str().unwrap();
        assert!(start.starts_with("Be brief.\n\nturn 0"), "{start}");
        let arguments = ["{\"city\":\"Paris\"}", "", "{\"city\":\"Pa", "null"][turn % 4];
        ask_for_weather(call, arguments);
        let call = world.call();
        match turn {
            // It fails after its call.
            4 => call.refuse(400, "no"),
            // Before it, and after it in the same turn.
            5 => {
                ask_for_weather(call, "{}");
                answer(world.call(), "done");
            }
            _ => answer(call, "done"),
        }
        let expected = if turn == 4 { "failed" } else { "completed" };
        let finished = world.app.finished(&run);
        assert_eq!(finished["status"], expected, "{finished}");
    }
    assert!(world.puppet.is_idle());
}

#[test]
fn what_a_turn_did_is_known_in_the_next() {
    let world = World::start(json!({}));
    let run = world.say("Paris?");
    ask_for_weather(world.call(), "{\"city\":\"Paris\"}");
    answer(world.call(), "Sun.");
    world.app.finished(&run);
    assert_eq!(world.tool.asked().len(), 1);
    let run = world.say("Sure?");
    let call = world.call();
    let messages = call.body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|said| said["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    let function = &messages[2]["tool_calls"][0]["function"];
    assert_eq!(
        function,
        &json!({"name": "weather", "arguments": "{\"city\":\"Paris\"}"})
    );
    let result = messages[3]["content"].as_str().unwrap();
    assert!(
        result.starts_with("sun and sun") && result.ends_with("[… shortened]"),
        "{result}"
    );
    assert!(result.len() < 5000);
    answer(call, "Yes.");
    world.app.finished(&run);
}

#[test]
fn a_version_may_leave_out_what_earlier_turns_did() {
    let world = World::start(json!({"historyCalls": false}));
    let run = world.say("Paris?");
    ask_for_weather(world.call(), "{\"city\":\"Paris\"}");
    answer(world.call(), "Sun.");
    world.app.finished(&run);
    let run = world.say("Sure?");
    let call = world.call();
    let messages = call.body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4, "{messages:?}");
    answer(call, "Yes.");
    world.app.finished(&run);
}

#[test]
fn events_show_ids_that_differ_and_the_servers_own_where_it_can() {
    let world = World::start(json!({}));
    let run = world.say("Paris?");
    ask_for_weather(world.call(), "{}");
    ask_for_weather(world.call(), "{}");
    answer(world.call(), "Sun.");
    world.app.finished(&run);
    let events = world.app.events(&run);
    let calls = events
        .iter()
        .filter_map(|event| event["data"]["toolCalls"].as_array());
    let ids: Vec<&str> = calls
        .flatten()
        .map(|call| call["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["call_0", "c00000300"]);
}

#[test]
fn a_format_that_is_refused_is_asked_for_in_words() {
    let puppet = Puppet::start();
    let app = App::start();
    let schema =
        json!({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]});
    let agent = app.agent_with(&puppet.base_url(), |version| version.output_schema = schema);
    let run = app.start_turn(agent, "hi");
    let refused = "This response_format type is unavailable now";
    puppet.call().refuse(400, refused);
    let call = puppet.call();
    assert_eq!(call.body["response_format"], json!({"type": "json_object"}));
    call.refuse(400, refused);
    let call = puppet.call();
    assert_eq!(call.body.get("response_format"), None);
    let told = call.body["messages"][0]["content"].as_str().unwrap();
    assert!(told.starts_with("Be brief.\n\nAnswer with JSON"), "{told}");
    answer(call, "Here it is:\n```json\n{\"ok\": true}\n```");
    assert_eq!(app.finished(&run)["status"], "completed");
    assert_eq!(app.output(&run)["json"], json!({"ok": true}));
    assert_eq!(app.run(&run)["usage"]["calls"], 1);
    // Remembered.
    let run = app.start_turn(agent, "hi");
    let call = puppet.call();
    assert_eq!(call.body.get("response_format"), None);
    answer(call, "{\"ok\": false}");
    app.finished(&run);
}

#[test]
fn a_refusal_and_a_cut_answer_fail_at_once() {
    let puppet = Puppet::start();
    let app = App::start();
    let schema = json!({"type": "object"});
    let agent = app.agent_with(&puppet.base_url(), |version| version.output_schema = schema);
    for (delta, reason, says) in [
        (
            json!({"refusal": "I cannot do this."}),
            "stop",
            "I cannot do this.",
        ),
        (
            json!({"content": "{\"ok\":tr"}),
            "length",
            "finish_reason length",
        ),
    ] {
        let run = app.start_turn(agent, "hi");
        let mut call = puppet.call();
        call.event(&json!({"choices": [{"index": 0, "delta": delta}]}));
        call.finish_for(reason);
        let run = app.finished(&run);
        assert_eq!(run["status"], "failed");
        let why = run["failureMessage"].as_str().unwrap();
        assert!(why.contains(says), "{why}");
        assert_eq!(run["usage"]["calls"], 1);
    }
}

#[test]
fn parameters_reach_the_server() {
    let puppet = Puppet::start();
    let app = App::start();
    let maker = app.maker();
    let project = maker.project();
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("sun"));
    let url = tool.url();
    let weather = maker.tool(project, &NewTool::new("weather", &url));
    let agent = maker.agent_of(project, &puppet.base_url(), |version| {
        version.tools = vec![weather];
        version.parameters = json!({"reasoningEffort": "low", "toolChoice": "weather", "parallelToolCalls": false,
            "presencePenalty": 0.5, "frequencyPenalty": -0.5, "seed": 7, "stop": ["END"]});
    });
    let run = app.start_turn(agent, "hi");
    let call = puppet.call();
    for (field, value) in [
        ("reasoning_effort", json!("low")),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "weather"}}),
        ),
        ("parallel_tool_calls", json!(false)),
        ("presence_penalty", json!(0.5)),
        ("frequency_penalty", json!(-0.5)),
        ("seed", json!(7)),
        ("stop", json!(["END"])),
    ] {
        assert_eq!(call.body[field], value, "{field}");
    }
    ask_for_weather(call, "{}");
    let call = puppet.call();
    assert_eq!(call.body.get("tool_choice"), None);
    answer(call, "Sun.");
    app.finished(&run);
}
