//! The forward proxy as the server uses it: for model providers and the collector of traces at the origins that the
//! operator lists, and for nothing that tenants choose beyond them.

use crate::harness::{App, Collector, NewTool, ToolAnswer, ToolServer, eventually};
use agent_runtime::config::Origin;
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use agent_runtime::outbound::{self, ForwardProxy, Outbound};
use agent_runtime::traces;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A proxy that forwards what names its whole URL. It remembers the request lines.
struct Proxy {
    listener: TcpListener,
    lines: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (accepting, kept) = (listener.try_clone().unwrap(), Arc::clone(&lines));
        let is_over = Arc::<AtomicBool>::default();
        let ends = Arc::clone(&is_over);
        let serving = std::thread::spawn(move || {
            for client in accepting.incoming() {
                let client = client.unwrap();
                if ends.load(Ordering::Acquire) {
                    return;
                }
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || forward(client, &kept));
            }
        });
        Self {
            listener,
            lines,
            is_over,
            serving: Some(serving),
        }
    }

    fn origin(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        drop(TcpStream::connect(self.listener.local_addr().unwrap()));
        let _ = self.serving.take().unwrap().join();
    }
}

/// Forwards one request after another, and remembers their request lines.
fn forward(mut client: TcpStream, lines: &Mutex<Vec<String>>) {
    let mut there: Option<TcpStream> = None;
    while let Some((line, rest)) = request(&mut client) {
        let (method, target) = line.split_once(" http://").unwrap();
        let (authority, path) = target.split_once('/').unwrap();
        let there = there.get_or_insert_with(|| {
            let there = TcpStream::connect(authority).unwrap();
            let (mut answers, mut back) = (there.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut answers, &mut back);
                let _ = back.shutdown(Shutdown::Both);
            });
            there
        });
        let line_there = format!("{method} /{path}");
        there.write_all(line_there.as_bytes()).unwrap();
        there.write_all(&rest).unwrap();
        lines.lock().unwrap().push(line);
    }
    if let Some(there) = there {
        let _ = there.shutdown(Shutdown::Both);
    }
}

/// The request line, and the rest of the request. None: nothing more comes.
fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let lower = head.to_ascii_lowercase();
    let length = lower.split("content-length: ").nth(1).unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    client.read_exact(&mut body).ok()?;
    let end = head.find("\r\n").unwrap() + 2;
    let rest = [&head.as_bytes()[end..], &body].concat();
    Some((head[..end].to_owned(), rest))
}

fn proxied(proxy: &str, origins: &[&str]) -> Outbound {
    Outbound::new(outbound::Options {
        forward_proxy: Some(ForwardProxy {
            origin: Origin::parse(proxy).unwrap(),
            origins: origins.iter().map(|o| Origin::parse(o).unwrap()).collect(),
            credentials: None,
        }),
        ..outbound::Options::default()
    })
    .unwrap()
}

fn origin_of(url: &str) -> &str {
    let end = url["http://".len()..].find('/');
    end.map_or(url, |end| &url[.."http://".len() + end])
}

fn provider() -> Provider {
    Provider::start(Script {
        queue: vec![Step::new(Reply::ToolCalls(vec![(
            "look_up".to_owned(),
            json!({}),
        )]))],
        then: Step::text("Well."),
    })
    .unwrap()
}

#[test]
fn providers_and_the_collector_on_the_list_go_through_the_proxy_and_nothing_else_does() {
    let proxy = Proxy::start();
    let (listed, other, collector) = (provider(), provider(), Collector::start());
    let tool = ToolServer::start(|_, _| ToolAnswer::ok("found"));
    let (listed_url, tool_url, collector_url) = (listed.base_url(), tool.url(), collector.url());
    // The tool's origin is on the list, and tools never go through the proxy.
    let origins = [
        origin_of(&listed_url),
        origin_of(&tool_url),
        collector_url.as_str(),
    ];
    let app = App::start_with(|options| {
        options.outbound = proxied(&proxy.origin(), &origins);
        options.traces = Some(traces::Options::new(&collector_url));
    });
    let maker = app.maker();
    let project = maker.project();
    let tool_id = maker.tool(project, &NewTool::new("look_up", &tool_url));
    for base_url in [listed.base_url(), other.base_url()] {
        let agent = maker.agent_of(project, &base_url, |version| {
            version.tools = vec![tool_id];
        });
        let run = app.finished(&app.start_turn(agent, "a"));
        assert_eq!(run["status"], "completed", "{run}");
    }
    eventually("spans through the proxy", || {
        (!collector.named("invoke_agent").is_empty()).then_some(())
    });
    assert_eq!(
        (listed.count(), other.count(), tool.asked().len()),
        (2, 2, 2)
    );
    let lines = proxy.lines();
    let to = |origin: &str| {
        let start = format!("POST {origin}/");
        lines.iter().any(|line| line.starts_with(&start))
    };
    assert!(
        to(origin_of(&listed_url)) && to(&collector_url),
        "{lines:?}"
    );
    assert!(
        !to(origin_of(&other.base_url())) && !to(origin_of(&tool_url)),
        "{lines:?}"
    );
}

#[test]
fn a_proxy_that_is_away_fails_the_run_with_its_name() {
    let away = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = format!("http://{}", away.local_addr().unwrap());
    drop(away);
    let listed = provider();
    let base_url = listed.base_url();
    let app = App::start_with(|options| {
        options.outbound = proxied(&proxy, &[origin_of(&base_url)]);
        options.runs.model_attempts = 1;
    });
    let run = app.finished(&app.start_turn(app.agent(&base_url), "a"));
    assert_eq!(run["status"], "failed");
    let why = run["failureMessage"].as_str().unwrap();
    assert!(why.contains(&format!("the forward proxy {proxy}")), "{why}");
    assert_eq!(listed.count(), 0);
}
