//! `dev` from an empty home directory on, and the commands that find it there.

use crate::harness::{Running, call, command, directory, run};
use crate::page::free_port;
use agent_runtime::dev::provider::{Fault, Provider, Script, Step};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

#[test]
fn dev_demonstrates_runs_agents_and_leaves_no_database_server_behind() {
    let dir = directory();
    // A place that is not there yet.
    let home = dir.path().join("data/home");
    let variables = [
        ("XDG_DATA_HOME", home.to_str().unwrap()),
        ("HOME", "/nonexistent"),
    ];
    let data = home.join("agent-runtime");

    let said = run(&["dev", "--demo", "--exit", "--port", "0"], &variables).expect(0);
    for part in ["I asked the tool", "What happened", "/console/"] {
        assert!(said.out.contains(part), "{}", said.out);
    }
    assert!(said.err.contains("← clock"), "{}", said.err);
    assert!(
        said.err.contains("completed · 3 steps · 2 model calls"),
        "{}",
        said.err
    );
    let token = fs::read_to_string(data.join("token")).unwrap();
    assert!(!format!("{}{}", said.out, said.err).contains(token.trim()));
    keeps_private(&data);
    assert!(!data.join("pgdata/postmaster.pid").exists());

    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    runs(&variables);
    let postmaster = postmaster(&data);
    dev.signal(Signal::KILL);
    dev.wait();

    // The next start finds the same tenant, and the agent gets a version with another model.
    let provider = provider_elsewhere();
    let port = free_port();
    let provider_url = provider.base_url();
    let with_another_model = [
        "dev",
        "--port",
        &port,
        "--provider-url",
        &provider_url,
        "--model",
        "other",
    ];
    let quick = [variables[0], variables[1], ("SVC_RUN_LEASE_MS", "5000")];
    let mut dev = Running::start(command(&with_another_model, &quick));
    dev.line_with("Ctrl-C stops everything.");
    assert!(!alive(&postmaster), "{postmaster} was left behind");
    // Each start has its own token, and the commands find it.
    let newer = fs::read_to_string(data.join("token")).unwrap();
    assert_ne!(newer, token);
    is_without_authorization(&port, newer.trim());
    let said = run(&["run", "assistant", "--json", "Hello"], &variables).expect(0);
    let seen = last(&said.out);
    assert_eq!(seen["data"]["agent"]["version"], json!("0.1.1"));
    assert!(said.out.contains("From elsewhere."), "{}", said.out);

    // A crash of the server in the middle of a run: whoever follows sees each event once.
    let mut follower = Running::start(command(&["run", "assistant", "--json", "Hi"], &variables));
    let mut events = vec![follower.line_with("run.created")];
    events.push(follower.line_with("run.started"));
    events.push(follower.line_with("step.started"));
    // The answer that hangs is this attempt's: the next one gets another.
    follower.line_with("text.delta");
    dev.signal(Signal::KILL);
    dev.wait();
    let mut dev = Running::start(command(&with_another_model, &quick));
    for kind in ["step.restarted", "step.completed", "run.completed"] {
        events.push(follower.line_with(&format!("\"{kind}\"")));
    }
    assert!(follower.line_with("\"kind\":\"run\"").contains("completed"));
    assert_eq!(follower.wait(), Some(0));
    assert!(events[4].contains("At last."), "{}", events[4]);
    dev.line_with("Ctrl-C stops everything.");
    interrupts(&provider, &variables);
    as_if_another_program_made_it(&data);
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
    refuses(&data, &variables);
}

/// Nothing decides who may do what: a list of who may is not to be had.
fn is_without_authorization(port: &str, token: &str) {
    let projects = format!("http://127.0.0.1:{port}/v1/projects");
    let (status, listed) = call("GET", &projects, token, None);
    assert_eq!(status, 200, "{listed}");
    let project = listed["data"][0]["id"].as_str().unwrap();
    let (status, answer) = call("GET", &format!("{projects}/{project}/access"), token, None);
    let code = &answer["error"]["code"];
    assert_eq!((status, code), (501, &json!("project-access-unsupported")));
}

/// What `dev` keeps, the user alone may read; of root's the server's account may pass through.
/// The example goes on under the rule of a server, and the rule holds for everything else on this host.
#[test]
fn dev_works_where_tenants_may_not_reach_this_host() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [
        ("XDG_DATA_HOME", home),
        ("HOME", "/nonexistent"),
        ("SVC_HOST_ACCESS", "deployed"),
    ];
    let demo = ["dev", "--demo", "--exit", "--port", "0"];
    let said = run(&demo, &variables).expect(0);
    assert!(said.out.contains("I asked the tool"), "{}", said.out);
    // The scripted provider has another port at the next start.
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    let said = run(&["run", "assistant", "What time is it?"], &variables).expect(0);
    assert!(said.out.contains("I asked the tool"), "{}", said.out);
    let agents = run(&["tools", "--json"], &variables).expect(0);
    let project = last(&agents.out)["projectId"].clone();
    let port = free_port();
    let tool = dir.path().join("tool.json");
    let body = json!({"name": "other", "description": "a", "argumentsSchema": {"type": "object"},
        "url": format!("http://127.0.0.1:{port}/")});
    fs::write(&tool, body.to_string()).unwrap();
    let project = project.as_str().unwrap();
    let push = [
        "tools",
        "push",
        tool.to_str().unwrap(),
        "--project",
        project,
    ];
    let said = run(&push, &variables).expect(1);
    for part in ["host-access-denied", &port, "SVC_HOST_ACCESS_ORIGINS"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

fn keeps_private(data: &Path) {
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
    for name in [
        "token",
        "authorization",
        "dev.json",
        "secrets.key",
        "aad.key",
    ] {
        assert_eq!(mode(&data.join(name)), 0o600, "{name}");
    }
    let directory = match rustix::process::geteuid().is_root() {
        true => 0o711,
        false => 0o700,
    };
    assert_eq!(mode(data), directory);
}

/// A database that another program made is not used, and what to do is said. No server is left behind, before and after.
fn refuses(data: &Path, variables: &[(&str, &str)]) {
    assert!(!data.join("pgdata/postmaster.pid").exists());
    let said = run(&["dev", "--port", "0"], variables).expect(1);
    for part in ["another text", data.to_str().unwrap(), "--data-dir"] {
        assert!(said.err.contains(part), "{}", said.err);
    }
    assert!(!data.join("pgdata/postmaster.pid").exists());
}

/// Changes what the private database says of a migration.
fn as_if_another_program_made_it(data: &Path) {
    let status = fs::read_to_string(data.join("pgdata/postmaster.pid")).unwrap();
    let lines: Vec<&str> = status.lines().collect();
    let mut config = postgres::Config::new();
    config.port(lines[3].parse().unwrap()).host_path(lines[4]);
    config.user("agent_runtime").dbname("postgres");
    let mut client = config.connect(postgres::NoTls).unwrap();
    let changed = client.execute(
        "update agent_runtime_migrations set digest = sha256(digest)
         where name = (select max(name) from agent_runtime_migrations)",
        &[],
    );
    assert_eq!(changed.unwrap(), 1);
}

/// A provider that answers, then hangs, then answers again.
fn provider_elsewhere() -> Provider {
    let script = Script {
        queue: vec![Step::text("From elsewhere."), hanging()],
        then: Step::text("At last."),
    };
    Provider::start(script).unwrap()
}

/// Ctrl-C leaves a run running, or cancels it where that was asked for.
fn interrupts(provider: &Provider, variables: &[(&str, &str)]) {
    provider.push(hanging());
    let mut left = Running::start(command(&["run", "assistant", "--json", "Hi"], variables));
    let begun: Value = serde_json::from_str(&left.line_with("\"kind\":\"run\"")).unwrap();
    let id = begun["data"]["id"].as_str().unwrap();
    left.line_with("step.started");
    left.signal(Signal::INT);
    left.line_with(&format!("agent-runtime follow {id}"));
    assert_eq!(left.wait(), Some(1));
    let cancel = ["follow", id, "--json", "--cancel-on-interrupt"];
    let mut watcher = Running::start(command(&cancel, variables));
    watcher.line_with("step.started");
    watcher.signal(Signal::INT);
    watcher.line_with("run.cancelled");
    assert_eq!(watcher.wait(), Some(1));
}

fn hanging() -> Step {
    Step::text("One two three.").fault(2, Fault::Hang)
}

/// `run` and `follow` against the running `dev`, which they find by themselves.
fn runs(variables: &[(&str, &str)]) {
    let said = run(&["run", "assistant", "What time is it?"], variables).expect(0);
    assert!(said.out.starts_with("I asked the tool"), "{}", said.out);
    let said = run(
        &[
            "run",
            "assistant",
            "--json",
            "--dry-run",
            "--label",
            "channel=mail",
            "--label=ticket=a=b",
            "Hello",
        ],
        variables,
    )
    .expect(0);
    let events: Vec<Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = events
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .filter(|kind| *kind != "text.delta")
        .collect();
    assert_eq!(
        kinds,
        [
            "run",
            "run.created",
            "run.started",
            "step.started",
            "step.completed",
            "run.completed",
            "run"
        ]
    );
    let run_shown = &last(&said.out)["data"];
    assert_eq!(run_shown["status"], json!("completed"));
    assert_eq!(run_shown["origin"], json!("command-line"));
    assert_eq!(run_shown["dryRun"], json!(true));
    assert_eq!(
        run_shown["labels"],
        json!({"channel": "mail", "ticket": "a=b"})
    );
    bad_labels_are_refused(variables);
    let id = run_shown["id"].as_str().unwrap();
    let said = run(&["follow", id], variables).expect(0);
    assert!(said.out.contains("You wrote: \"Hello\""), "{}", said.out);
    let said = run(&["run", "no-such-agent", "Hello"], variables).expect(1);
    assert!(said.err.contains("no-such-agent"), "{}", said.err);
    let said = run(
        &["follow", "01993c5e-7c1f-7d2a-9c55-0242ac120002"],
        variables,
    )
    .expect(1);
    assert!(said.err.contains("not-found"), "{}", said.err);
}

fn bad_labels_are_refused(variables: &[(&str, &str)]) {
    for (label, says) in [
        ("channel", "expected KEY=VALUE"),
        ("channel=b", "given twice"),
    ] {
        let twice = [
            "run",
            "assistant",
            "--label",
            "channel=a",
            "--label",
            label,
            "Hi",
        ];
        let said = run(&twice, variables).expect(2);
        assert!(said.err.contains(says), "{}", said.err);
    }
}

fn last(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

/// The process id of the private PostgreSQL.
fn postmaster(data: &Path) -> String {
    let text = fs::read_to_string(data.join("pgdata/postmaster.pid")).unwrap();
    text.lines().next().unwrap().to_owned()
}

fn alive(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
