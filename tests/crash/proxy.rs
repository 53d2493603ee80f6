//! The program behind nginx, with the very settings that `docs/proxy.md` shows.

use crate::eventually;
use crate::follow::Follower;
use crate::server::{Client, free_port};
use crate::world::{Agents, Pace, config, shared_database};
use rustix::process::geteuid;
use serde_json::json;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const DOCUMENT: &str = include_str!("../../docs/proxy.md");

fn program() -> &'static str {
    let paths = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
    let found = paths.into_iter().find(|path| Path::new(path).exists());
    found.expect("nginx; tests/setup/nginx installs it")
}

/// What stands in the document, for these ports and with a certificate of its own.
fn settings(directory: &Path, server: u16, [tls, plain]: [u16; 2]) -> String {
    let (_, shown) = DOCUMENT.split_once("```nginx\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let directory = directory.display();
    let mut text = shown.to_owned();
    for (from, to) in [
        ("127.0.0.1:4000", format!("127.0.0.1:{server}")),
        (
            "listen 443 ssl http2;",
            format!("listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{plain};"),
        ),
        ("/etc/ssl/agent-runtime", directory.to_string()),
    ] {
        assert!(text.contains(from), "{from} is not in docs/proxy.md");
        text = text.replace(from, &to);
    }
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
        .concat();
    let user = if geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    format!(
        "{user} daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/errors;
         events {{}} http {{ access_log off; {temporary} {text} }}"
    )
}

/// A running nginx. It ends with this value.
struct Proxy {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Proxy {
    fn start(server: u16, ports: [u16; 2]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-days", "2", "-subj", "/CN=runtime.example.com"])
            .arg("-keyout")
            .arg(path.join("key.pem"))
            .arg("-out")
            .arg(path.join("fullchain.pem"))
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{made:?}");
        let file = path.join("nginx.conf");
        std::fs::write(&file, settings(path, server, ports)).unwrap();
        let nginx = || {
            let mut command = Command::new(program());
            command
                .arg("-c")
                .arg(&file)
                .arg("-e")
                .arg(path.join("errors"));
            command
        };
        let checked = nginx().arg("-t").output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
        let child = nginx().stdin(Stdio::null()).spawn().unwrap();
        Self {
            child,
            _directory: directory,
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let pid = i32::try_from(self.child.id()).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // Its worker ends with it, which a kill would leave behind.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// The answer to a request over TLS, to a certificate that nobody trusts.
fn over_tls(port: u16, path: &str) -> String {
    let mut child = Command::new("openssl")
        .args([
            "s_client",
            "-quiet",
            "-connect",
            &format!("127.0.0.1:{port}"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: runtime.example.com\r\nconnection: close\r\n\r\n");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(request.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_stream_passes_the_proxy_event_by_event() {
    let config = config(shared_database());
    let _server = config.start();
    let ports = [free_port(), free_port()];
    let _proxy = Proxy::start(config.port, ports);
    let through = Client::new(ports[1], &config.token);
    eventually("the proxy", || {
        let answer = through.get("/readyz").ok()?;
        (answer.status == 200).then_some(())
    });
    let pace = Pace {
        tool: Duration::from_secs(8),
        ..Pace::default()
    };
    let agents = Agents::make(&config.client(), pace);
    let run_id = agents.start_turn(&through, agents.repeatable);
    let follower = Follower::of(through.clone(), agents.repeatable, run_id);
    agents.tool.wait_for(run_id);
    // The tool takes its time: what came before is here already, not at the end.
    eventually("what happened before the tool was called", || {
        follower.look(|seen| (seen.events.len() >= 3).then_some(()))
    });
    assert!(!follower.is_over());
    let seen = follower.finish();
    assert_eq!(seen.connections, 1, "{:?}", seen.ends);

    let answer = over_tls(ports[0], "/readyz");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("ready"),
        "{answer}"
    );
    assert_eq!(
        through.get("/metrics").unwrap().status,
        200,
        "from this host"
    );
    let message = "x".repeat(3 << 20);
    let body = json!({"agentId": agents.repeatable, "message": message});
    // nginx says it, or closes while the body is on its way.
    let answer = through.post("/v1/runs", &body);
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 413));
}
