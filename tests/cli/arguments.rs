//! What every user of the host can read of running processes: no secret is among their arguments.

use crate::harness::{Running, command, directory, eventually};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

/// The arguments of every process that has one of these texts among them.
fn shown(secrets: &[&str]) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    // A process that has ended has no arguments.
    let arguments = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    arguments
        .map(|arguments| String::from_utf8_lossy(&arguments).replace('\0', " "))
        .filter(|arguments| secrets.iter().any(|secret| arguments.contains(secret)))
        .collect()
}

/// What the server answers to a request that is made as the pages make it.
#[track_caller]
pub(crate) fn ask(data: &Path, method: &str, path: &str, body: &Value) -> Value {
    let kept = fs::read_to_string(data.join("dev.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let file = data.join("body.json");
    fs::write(&file, body.to_string()).unwrap();
    let header = |path: &Path| format!("@{}", path.display());
    let answer = Command::new("curl")
        .args(["-s", "--fail-with-body", "-X", method])
        .arg(format!("{}{path}", kept["url"].as_str().unwrap()))
        .args(["-H", &header(&data.join("authorization"))])
        .args(["-H", "content-type: application/json"])
        .args(["--data", &header(&file)])
        .output()
        .unwrap();
    let text = String::from_utf8(answer.stdout).unwrap();
    assert!(answer.status.success(), "{method} {path}: {text}");
    serde_json::from_str(&text).unwrap()
}

/// The next connection.
#[track_caller]
fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    eventually("somebody to come", || {
        listener.accept().ok().map(|(stream, _)| stream)
    })
}

#[test]
fn no_process_has_a_secret_among_its_arguments_while_it_is_used() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [
        ("XDG_DATA_HOME", home),
        ("HOME", "/nonexistent"),
        ("SVC_SECRETS_BACKEND", "dotenv"),
        ("SVC_SECRETS_DOTENV_DIR", home),
    ];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("Ctrl-C stops everything.");
    let data = dir.path().join("agent-runtime");
    let token = fs::read_to_string(data.join("token")).unwrap();
    let mut key = [0; 32];
    getrandom::fill(&mut key).unwrap();
    let key = STANDARD.encode(key);
    let secrets = [token.trim(), &key];

    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks", receiver.local_addr().unwrap());
    let value = json!({"value": format!("whsec_{key}")});
    ask(&data, "PUT", "/v1/secrets/local/HOOKS", &value);
    let endpoint = json!({
        "url": url,
        "events": ["run.finished"],
        "secretRef": {"envName": "local", "name": "HOOKS"},
    });
    let endpoint = ask(&data, "POST", "/v1/webhook-endpoints", &endpoint);
    let id = endpoint["endpointId"].as_str().unwrap();
    let mut run = Running::start(command(&["run", "assistant", "--json", "Hi"], &variables));
    run.line_with("run.created");
    let path = format!("/v1/webhook-endpoints/{id}/test");
    ask(&data, "POST", &path, &json!({}));
    // It was signed, and its receiver does not answer yet.
    let _attempt = accept(&receiver);
    assert_eq!(shown(&secrets), Vec::<String>::new());

    let careless = Command::new("sh")
        .args(["-c", "echo ready; read line", "sh", &key])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut careless = careless.unwrap();
    // Its parent goes on a moment before the kernel shows its arguments.
    let mut ready = [0; "ready\n".len()];
    careless
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut ready)
        .unwrap();
    assert_eq!(shown(&secrets).len(), 1, "it would be seen");
    careless.kill().unwrap();
    careless.wait().unwrap();
}
