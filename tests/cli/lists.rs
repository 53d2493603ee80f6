//! `agents`, `tools`, `secrets uses`, `environments`, `policies`, `guardrails try`, `runs` and `conversations`: what they list and show, names that several have, and what a person sees of retries and cancels.

use crate::arguments::ask;
use crate::harness::{Running, command, directory, eventually, run};
use agent_runtime::dev::provider::{Fault, Provider, Script, Step};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;

type Variables<'v> = [(&'v str, &'v str); 2];

#[test]
fn agents_and_runs_are_listed_shown_and_named() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let data = dir.path().join("agent-runtime");
    let busy = json!({"error": {"message": "busy"}});
    let provider = Provider::start(Script {
        queue: vec![Step::json(503, &busy), Step::text("First.")],
        then: Step::text("Later."),
    })
    .unwrap();
    let url = provider.base_url();
    let dev = [
        "dev",
        "--port",
        "0",
        "--provider-url",
        &url,
        "--model",
        "other",
    ];
    let mut dev = Running::start(command(&dev, &variables));
    dev.line_with("Ctrl-C stops everything.");
    let first = a_retry_is_shown_once(&variables);
    lists(&variables, &first);
    tools(&variables);
    uses_of_secrets(&variables);
    variables_of_environments(&variables);
    policies_and_tries(dir.path(), &variables);
    usage_is_summed(&variables);
    a_conversation_is_erased(&data, &variables);
    a_cancel_is_shown_once(&provider, &variables);
    names(&data, &variables);
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

fn lines(out: &str) -> Vec<Value> {
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

fn hanging() -> Step {
    Step::text("One two three.").fault(2, Fault::Hang)
}

/// The run's id.
fn a_retry_is_shown_once(variables: &Variables<'_>) -> String {
    let said = run(&["run", "assistant", "Hello"], variables).expect(0);
    assert_eq!(said.out, "First.\n");
    assert_eq!(said.err.matches("503").count(), 1, "{}", said.err);
    assert_eq!(said.err.matches("tried again").count(), 1, "{}", said.err);
    let listed = run(&["runs", "--json"], variables).expect(0);
    let runs = lines(&listed.out);
    assert_eq!(runs.len(), 1);
    runs[0]["id"].as_str().unwrap().to_owned()
}

fn lists(variables: &Variables<'_>, first: &str) {
    let labelled = ["run", "assistant", "--label", "channel=a&b", "Again"];
    run(&labelled, variables).expect(0);
    let agents = run(&["agents"], variables).expect(0).out;
    assert!(agents.starts_with("NAME "), "{agents}");
    assert!(agents.contains("\nassistant "), "{agents}");
    let agent = &lines(&run(&["agents", "--json"], variables).expect(0).out)[0];
    let agent_id = agent["id"].as_str().unwrap();
    let shown = run(&["agents", "show", "assistant"], variables)
        .expect(0)
        .out;
    for part in ["assistant", agent_id, "other", "clock"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let by_id = run(&["agents", "show", agent_id, "--json"], variables).expect(0);
    assert_eq!(by_id.json()["name"], "assistant");

    let table = run(&["runs"], variables).expect(0).out;
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("STATUS"), "{table}");
    assert!(!table.contains('\x1b'), "{table}");
    assert!(rows[1].starts_with("completed") && rows[1].contains(" assistant "));
    assert!(rows[2].contains(first), "the newest is first: {table}");
    let of = |arguments: &[&str]| {
        let arguments = [&["runs", "--json"], arguments].concat();
        lines(&run(&arguments, variables).expect(0).out).len()
    };
    let is_past = "2020-01-01T00:00:00Z";
    assert_eq!(of(&["--agent", "assistant", "--status", "completed"]), 2);
    assert_eq!(of(&["--agent", agent_id, "--since", "1h"]), 2);
    assert_eq!(of(&["--label", "channel=a&b"]), 1);
    assert_eq!(of(&["--label", "channel=a"]), 0);
    assert_eq!(of(&["--since", is_past, "--limit", "1"]), 1);
    assert_eq!(of(&["--since", "2099-01-01T00:00:00Z"]), 0);
    let more = run(&["runs", "--limit", "1"], variables).expect(0);
    assert!(more.err.contains("There are more runs"), "{}", more.err);
    let none = run(&["runs", "--status", "failed"], variables).expect(0);
    assert!(none.err.contains("There are no runs"), "{}", none.err);

    let shown = run(&["runs", "show", first], variables).expect(0).out;
    for part in [
        "completed\n",
        first,
        "STEP",
        "503",
        "done",
        "1 step · 2 model calls",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let whole = run(&["runs", "show", first, "--json"], variables)
        .expect(0)
        .json();
    assert_eq!(whole["run"]["id"], first);
    assert_eq!(whole["events"][0]["kind"], "run.created");
    let ended = run(&["runs", "cancel", first], variables).expect(1);
    assert!(
        ended.err.contains("had ended already: completed"),
        "{}",
        ended.err
    );
    let unknown = "01993c5e-7c1f-7d2a-9c55-0242ac120002";
    for command in ["show", "cancel"] {
        let said = run(&["runs", command, unknown], variables).expect(1);
        assert!(said.err.contains("not-found"), "{}", said.err);
    }
}

fn tools(variables: &Variables<'_>) {
    let table = run(&["tools"], variables).expect(0).out;
    assert!(table.starts_with("NAME "), "{table}");
    assert!(table.contains("\nclock "), "{table}");
    let tool = &lines(&run(&["tools", "--json"], variables).expect(0).out)[0];
    let id = tool["id"].as_str().unwrap();
    let shown = run(&["tools", "show", "clock"], variables).expect(0).out;
    for part in [
        "clock\n",
        id,
        tool["url"].as_str().unwrap(),
        "yes",
        "\"type\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let by_id = run(&["tools", "show", id, "--json"], variables).expect(0);
    assert_eq!(&by_id.json(), tool);
    let said = run(&["tools", "show", "nothing"], variables).expect(1);
    assert!(said.err.contains("no tool named nothing"), "{}", said.err);
}

fn uses_of_secrets(variables: &Variables<'_>) {
    let list = run(&["secrets", "uses"], variables).expect(0);
    assert!(
        list.err.contains("There are no uses of secrets here."),
        "{}",
        list.err
    );
    let add = [
        "secrets",
        "uses",
        "add",
        "KEY",
        "https://API.example.com:443",
    ];
    let said = run(&add, variables).expect(0).out;
    let begin = "The secret KEY may be sent to origin:https://api.example.com now: ";
    let id = said.strip_prefix(begin).unwrap_or_else(|| panic!("{said}"));
    let id = id.trim_end().trim_end_matches('.');
    let again = run(&add, variables).expect(1);
    assert!(again.err.contains("already-exists"), "{}", again.err);
    let project = lines(&run(&["tools", "--json"], variables).expect(0).out);
    let project = project[0]["projectId"].as_str().unwrap().to_owned();
    let more = [
        "secrets",
        "uses",
        "add",
        "OTHER",
        "origin:http://127.0.0.1:9",
        "--project",
        &project,
        "--json",
    ];
    let made = run(&more, variables).expect(0).json();
    assert_eq!(made["projectId"], json!(project));
    let list = run(&["secrets", "uses"], variables).expect(0).out;
    assert!(list.starts_with("SECRET"), "{list}");
    assert!(
        list.contains("every project") && list.contains(id),
        "{list}"
    );
    let of_one = run(&["secrets", "uses", "--name", "OTHER", "--json"], variables).expect(0);
    assert_eq!(lines(&of_one.out), [made]);
    let said = run(&["secrets", "uses", "delete", id], variables)
        .expect(0)
        .out;
    assert_eq!(said, "The use is deleted.\n");
    let gone = run(&["secrets", "uses", "delete", id], variables).expect(1);
    assert!(gone.err.contains("not-found"), "{}", gone.err);
}

fn variables_of_environments(variables: &Variables<'_>) {
    let set = |value| run(&["environments", "set", "local", "MODE", value], variables).expect(0);
    assert_eq!(set("-fast").out, "MODE is set in the environment local.\n");
    set("");
    set("slow and steady");
    let list = run(&["environments"], variables).expect(0).out;
    assert!(list.contains("local") && list.contains("served"), "{list}");
    let all = run(&["environments", "--json"], variables).expect(0).out;
    let served = json!({"name": "local", "isServed": true});
    assert!(lines(&all).contains(&served), "{all}");
    let list = run(&["environments", "variables", "local"], variables)
        .expect(0)
        .out;
    assert!(
        list.contains("MODE") && list.contains("slow and steady"),
        "{list}"
    );
    let rows = run(&["environments", "variables", "local", "--json"], variables)
        .expect(0)
        .out;
    assert_eq!(lines(&rows)[0]["value"], "slow and steady");
    let refused = run(&["environments", "set", "local", "SVC_X", "a"], variables).expect(1);
    assert!(refused.err.contains("SVC_"), "{}", refused.err);
    let said = run(&["environments", "unset", "local", "MODE"], variables)
        .expect(0)
        .out;
    assert_eq!(said, "MODE is deleted from the environment local.\n");
    run(&["environments", "unset", "local", "MODE"], variables).expect(1);
}

fn policies_and_tries(dir: &Path, variables: &Variables<'_>) {
    let project = ["--project", "example"];
    let none = run(&["policies", "show"], variables).expect(0).out;
    assert_eq!(none, "The tenant has no policy yet.\n");
    let file = dir.join("policy.yaml");
    let file = file.to_str().unwrap();
    let written = "guardrails:\n- builtin: pii\n  at: [output]\n  action: redact\n";
    std::fs::write(file, written).unwrap();
    let put = [
        &["policies", "put", file, "--expected-version", "0"],
        &project[..],
    ]
    .concat();
    let said = run(&put, variables).expect(0).out;
    assert_eq!(
        said,
        "The project's policy is version 1 now, with 1 guardrail.\n"
    );
    let late = run(&put, variables).expect(1);
    assert!(late.err.contains("newest version is 1"), "{}", late.err);
    let shown = run(&[&["policies", "show"], &project[..]].concat(), variables)
        .expect(0)
        .out;
    assert!(shown.contains("pii") && shown.contains("redact"), "{shown}");
    let shown = run(
        &[&["policies", "show", "--json"], &project[..]].concat(),
        variables,
    )
    .expect(0);
    assert_eq!(shown.json()["version"], json!(1));
    std::fs::write(file, written.replace("redact", "approve")).unwrap();
    let refused = run(&["policies", "put", file], variables).expect(1);
    let place = "policy.yaml:3:3: $.guardrails[0].at";
    assert!(refused.err.contains(place), "{}", refused.err);

    let text = dir.join("text");
    let text = text.to_str().unwrap();
    std::fs::write(text, "Write to ada@example.com.").unwrap();
    let own = dir.join("guardrails.json");
    let own = own.to_str().unwrap();
    std::fs::write(
        own,
        r#"[{"builtin": "links", "at": ["output"], "action": "block"}]"#,
    )
    .unwrap();
    let tried = [
        &["guardrails", "try", text, "--point", "output"],
        &project[..],
    ]
    .concat();
    let said = run(&tried, variables).expect(0).out;
    assert!(
        said.contains("pii") && said.contains("Write to [email]."),
        "{said}"
    );
    let alone = [&tried[..], &["--without-policies", "--json"]].concat();
    let answer = run(&alone, variables).expect(0).json();
    assert_eq!(answer["verdict"], json!("allow"));
    std::fs::write(text, "See https://evil.example/.").unwrap();
    let both = [&tried[..], &["--guardrails", own]].concat();
    let said = run(&both, variables).expect(0).out;
    assert!(said.contains("links blocked it."), "{said}");
    assert!(!said.contains("evil.example"), "{said}");
    // What follows is judged by none.
    std::fs::write(file, "guardrails: []\n").unwrap();
    let put = [&["policies", "put", file], &project[..]].concat();
    let said = run(&put, variables).expect(0).out;
    assert!(said.contains("version 2 now, with 0 guardrails"), "{said}");
}

fn usage_is_summed(variables: &Variables<'_>) {
    let all = run(&["usage", "--json"], variables).expect(0);
    let sums = lines(&all.out);
    assert_eq!(sums.len(), 1, "{}", all.out);
    assert!(sums[0]["calls"].as_i64() > Some(0), "{}", all.out);
    let by_agent = run(
        &["usage", "--by", "agent", "--by", "model", "--since", "1d"],
        variables,
    );
    let table = by_agent.expect(0).out;
    assert!(
        table.contains("assistant, ") && table.contains('$'),
        "{table}"
    );
    let future = run(&["usage", "--since", "2999-01-01T00:00:00Z"], variables).expect(1);
    assert!(future.err.contains("from"), "{}", future.err);
}

fn a_conversation_is_erased(data: &Path, variables: &Variables<'_>) {
    let none = run(&["conversations"], variables).expect(0);
    assert!(
        none.err.contains("There are no conversations"),
        "{}",
        none.err
    );
    let agents = run(&["agents", "--json"], variables).expect(0);
    let body = json!({"agentId": lines(&agents.out)[0]["id"], "title": "Order 7"});
    let begun = ask(data, "POST", "/v1/conversations", &body);
    let id = begun["id"].as_str().unwrap();
    let table = || {
        let of_agent = ["conversations", "--agent", "assistant"];
        run(&of_agent, variables).expect(0).out
    };
    let before = table();
    for part in [id, "assistant", "open", "Order 7"] {
        assert!(before.contains(part), "{part}: {before}");
    }
    let erase = ["conversations", "erase", id];
    let said = run(&erase, variables).expect(0);
    assert!(said.err.contains("erased"), "{}", said.err);
    eventually("it to be erased", || {
        let said = run(&erase, variables).expect(0);
        said.err.contains("is erased").then_some(())
    });
    let after = table();
    assert!(
        after.contains(" erased") && !after.contains("Order 7"),
        "{after}"
    );
    let as_json = run(&["conversations", "erase", id, "--json"], variables).expect(0);
    assert_eq!(as_json.json()["title"], "");
    let unknown = "01993c5e-7c1f-7d2a-9c55-0242ac120002";
    let said = run(&["conversations", "erase", unknown], variables).expect(1);
    assert!(said.err.contains("not-found"), "{}", said.err);
}

fn a_cancel_is_shown_once(provider: &Provider, variables: &Variables<'_>) {
    let running = || {
        eventually("the run to run", || {
            let said = run(&["runs", "--status", "running", "--json"], variables).expect(0);
            let runs = lines(&said.out);
            runs.first()
                .map(|run| run["id"].as_str().unwrap().to_owned())
        })
    };
    provider.push(hanging());
    let watching = command(&["run", "assistant", "Hi"], variables)
        .spawn()
        .unwrap();
    let id = running();
    let said = run(&["runs", "cancel", &id], variables).expect(0);
    assert!(said.err.contains("cancel"), "{}", said.err);
    let watched = watching.wait_with_output().unwrap();
    let err = String::from_utf8(watched.stderr).unwrap();
    assert_eq!(watched.status.code(), Some(1));
    assert_eq!(err.matches("asked to cancel").count(), 1, "{err}");
    assert_eq!(err.matches("cancelled").count(), 1, "{err}");

    // The newest run of an agent is followed by the agent's name.
    provider.push(hanging());
    let begun = command(&["run", "assistant", "Hi"], variables)
        .spawn()
        .unwrap();
    let id = running();
    let follow = ["follow", "assistant", "--json", "--cancel-on-interrupt"];
    let mut follower = Running::start(command(&follow, variables));
    follower.line_with("step.started");
    follower.signal(Signal::INT);
    follower.line_with("run.cancelled");
    assert!(follower.line_with("\"kind\":\"run\"").contains(&id));
    assert_eq!(begun.wait_with_output().unwrap().status.code(), Some(1));
}

/// A name that agents of two projects have is refused, with both ids, until the project is named.
fn names(data: &Path, variables: &Variables<'_>) {
    let first = run(&["agents", "show", "assistant", "--json"], variables).expect(0);
    let first = first.json()["id"].as_str().unwrap().to_owned();
    let project = ask(data, "POST", "/v1/projects", &json!({"name": "other"}));
    let body = json!({"projectId": project["id"], "name": "assistant"});
    let second = ask(data, "POST", "/v1/agents", &body);
    let second = second["id"].as_str().unwrap();
    for arguments in [
        &["run", "assistant", "Hi"][..],
        &["follow", "assistant"],
        &["agents", "show", "assistant"],
        &["runs", "--agent", "assistant"],
    ] {
        let said = run(arguments, variables).expect(2);
        for part in [&first, second, "other", "--project"] {
            assert!(said.err.contains(part), "{arguments:?}: {}", said.err);
        }
    }
    let of_other = ["agents", "show", "assistant", "--project", "other"];
    let said = run(&of_other, variables).expect(0);
    assert!(said.out.contains(second), "{}", said.out);
    assert!(said.err.contains("no version"), "{}", said.err);
    let said = run(&["follow", "assistant", "--project", "other"], variables).expect(1);
    assert!(said.err.contains("has not run yet"), "{}", said.err);
    let listed = run(&["agents", "--project", "other", "--json"], variables).expect(0);
    assert_eq!(lines(&listed.out).len(), 1);
    let of_both = |project: &str| {
        let both = ["runs", "--json", "--agent", &first, "--project", project];
        lines(&run(&both, variables).expect(0).out).len()
    };
    let its_own = run(&["agents", "show", &first, "--json"], variables).expect(0);
    assert!(of_both(its_own.json()["projectId"].as_str().unwrap()) > 0);
    assert_eq!(of_both("other"), 0, "the agent is of another project");
    // Two projects of one name.
    ask(data, "POST", "/v1/projects", &json!({"name": "other"}));
    let said = run(&of_other, variables).expect(2);
    assert!(said.err.contains("2 projects named other"), "{}", said.err);
    // All that is wrong with a request is told.
    let said = run(&["agents", "show", "nobody"], variables).expect(1);
    assert!(said.err.contains("no agent named nobody"), "{}", said.err);
}
