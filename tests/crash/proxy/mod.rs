//! The program behind proxies, with the very settings that `docs/proxy.md` shows.

mod programs;

use crate::eventually;
use crate::follow::{Follower, Seen};
use crate::server::{Client, ServerConfig, free_port};
use crate::wait::until_due;
use crate::world::{Agents, Pace, config, shared_database};
use programs::{Kind, Ports, Proxy};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

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

/// A proxy with a client that goes through it.
struct Front {
    kind: Kind,
    ports: Ports,
    proxy: Proxy,
    through: Client,
}

impl Front {
    /// Starts it in front of a ready server, and waits until it passes requests on.
    fn start(kind: Kind, config: &ServerConfig) -> Self {
        let ports = Ports {
            server: config.port,
            plain: free_port(),
            tls: free_port(),
        };
        let proxy = Proxy::start(kind, ports);
        let through = Client::new(ports.plain, &config.token);
        let patience = Instant::now() + crate::PATIENCE / 2;
        eventually("the proxy", || {
            assert!(Instant::now() < patience, "{kind:?}: {}", proxy.log());
            let answer = through.get("/readyz").ok()?;
            (answer.status == 200).then_some(())
        });
        Self {
            kind,
            ports,
            proxy,
            through,
        }
    }

    /// Sends what finds nobody there: a request for a stream, another one, and one with a body.
    fn ask(&self, run_id: Uuid) -> [Asked; 3] {
        let stream = format!("GET /v1/runs/{run_id}/progress/stream");
        let other = format!("GET /v1/runs/{run_id}");
        [
            Asked::send(&self.through, &stream, ""),
            Asked::send(&self.through, &other, ""),
            Asked::send(&self.through, "POST /v1/projects", "{}"),
        ]
    }
}

/// A request whose answer may take its time.
struct Asked(JoinHandle<Answered>);

struct Answered {
    status: u16,
    /// The server gave it, not the proxy.
    is_of_server: bool,
    at: Instant,
}

impl Asked {
    fn send(client: &Client, request: &str, body: &str) -> Self {
        let connection = TcpStream::connect(client.address).unwrap();
        connection.set_read_timeout(Some(crate::PATIENCE)).unwrap();
        let head = format!(
            "{request} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            client.address,
            client.token,
            body.len()
        );
        (&connection).write_all(head.as_bytes()).unwrap();
        let thread = std::thread::Builder::new().name("asked".to_owned());
        let read = move || {
            let lines = BufReader::new(connection).lines().map(Result::unwrap);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let status = head.first().and_then(|line| line.split(' ').nth(1));
            let status = status.and_then(|status| status.parse().ok());
            Answered {
                status: status.unwrap_or_else(|| panic!("{head:?}")),
                is_of_server: head
                    .iter()
                    .any(|line| line.to_ascii_lowercase().starts_with("x-request-id:")),
                at: Instant::now(),
            }
        };
        Self(thread.spawn(read).unwrap())
    }

    /// The status of the proxy's answer, which came while the server was away.
    fn refused_before(self, back: Instant) -> Option<u16> {
        let answered = self.0.join().unwrap();
        (answered.at < back && !answered.is_of_server).then_some(answered.status)
    }

    /// Whether the answer waited for the server: it has this status, or the server was there before its database and said so.
    fn was_held_until(self, back: Instant, status: u16) -> bool {
        let answered = self.0.join().unwrap();
        answered.at > back && answered.is_of_server && [status, 503].contains(&answered.status)
    }

    /// The status of the proxy's answer, which waited for the server in vain.
    fn refused_after(self, back: Instant) -> Option<u16> {
        let answered = self.0.join().unwrap();
        (answered.at > back && !answered.is_of_server).then_some(answered.status)
    }
}

/// What the page says of each proxy. The last request is a wrong one.
fn check(front: &Front, asked: [Asked; 3], back: Instant) {
    let [stream, other, with_body] = asked;
    let (kind, log) = (front.kind, front.proxy.log());
    match kind {
        Kind::Haproxy => {
            assert!(stream.was_held_until(back, 200), "{log}");
            assert!(other.was_held_until(back, 200), "{log}");
            assert!(with_body.was_held_until(back, 400), "{log}");
        }
        Kind::Caddy => {
            assert!(stream.was_held_until(back, 200), "{log}");
            assert!(other.was_held_until(back, 200), "{log}");
            assert_eq!(with_body.refused_after(back), Some(502), "{log}");
        }
        Kind::Nginx => {
            assert!(stream.was_held_until(back, 200), "{log}");
            assert_eq!(other.refused_before(back), Some(502), "{log}");
            assert_eq!(with_body.refused_before(back), Some(502), "{log}");
        }
        Kind::Apache => {
            assert_eq!(stream.refused_before(back), Some(503), "{log}");
            assert_eq!(other.refused_before(back), Some(503), "{log}");
            assert_eq!(with_body.refused_before(back), Some(503), "{log}");
        }
    }
}

/// Once the server is back, no proxy believes that it is away.
fn check_back(front: &Front) {
    let answer = front.through.get("/readyz").unwrap();
    assert_eq!(answer.status, 200, "{:?}", front.kind);
}

/// A reader that was cut off came back, and has every event once.
fn check_reader(kind: Kind, seen: &Seen) {
    assert!(seen.connections >= 2, "{kind:?}: {seen:?}");
    let seqs: Vec<i64> = seen.events.iter().map(|event| event.seq).collect();
    let all: Vec<i64> = (1..).take(seqs.len()).collect();
    assert_eq!(seqs, all, "{kind:?}");
    let last = seen.events.last().map(|event| event.kind.as_str());
    assert_eq!(last, Some("run.completed"), "{kind:?}");
}

/// How long the server is away.
const GAP: Duration = Duration::from_secs(2);

#[test]
fn requests_meet_a_proxy_whose_server_is_killed_and_readers_miss_nothing() {
    let config = config(shared_database());
    let server = config.start();
    let kinds = [Kind::Nginx, Kind::Caddy, Kind::Haproxy, Kind::Apache];
    let fronts = kinds.map(|kind| Front::start(kind, &config));
    let pace = Pace {
        tool: Duration::from_secs(4),
        ..Pace::default()
    };
    let agents = Agents::make(&config.client(), pace);
    let followers = fronts.each_ref().map(|front| {
        let run_id = agents.start_turn(&front.through, agents.repeatable);
        let follower = Follower::of(front.through.clone(), agents.repeatable, run_id);
        (run_id, follower)
    });
    for (run_id, follower) in &followers {
        agents.tool.wait_for(*run_id);
        eventually("what happened before the tool was called", || {
            follower.look(|seen| (seen.events.len() >= 3).then_some(()))
        });
        assert!(!follower.is_over());
    }

    server.kill();
    let run_id = followers[0].0;
    let killed_at = Instant::now();
    let asked = fronts.each_ref().map(|front| front.ask(run_id));
    until_due(killed_at + GAP);
    let back = Instant::now();
    let mut server = config.spawn();
    for (front, asked) in fronts.iter().zip(asked) {
        check(front, asked, back);
    }
    server.wait_ready();
    fronts.iter().for_each(check_back);
    for (front, (_, follower)) in fronts.iter().zip(followers) {
        check_reader(front.kind, &follower.finish());
    }
}

#[test]
fn a_stream_passes_the_proxy_event_by_event() {
    let config = config(shared_database());
    let _server = config.start();
    let Front {
        through,
        ports,
        proxy: _proxy,
        ..
    } = Front::start(Kind::Nginx, &config);
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

    let answer = over_tls(ports.tls, "/readyz");
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
