//! Definitions and answers as other runtimes of the language, and servers of all kinds, write them.

use super::world::Flows;
use crate::runtime::world::World;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Answers each path with its bytes, on a connection of its own; `/echo` with what was asked.
struct Server(SocketAddr);

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            for connection in listener.incoming().map_while(Result::ok) {
                answer(connection);
            }
        };
        let thread = std::thread::Builder::new().name("foreign".to_owned());
        thread.spawn(serve).unwrap();
        Self(address)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.0)
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn answer(mut connection: TcpStream) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let (mut line, mut kind, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut line).unwrap();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        match header.trim_end().split_once(": ") {
            None => break,
            Some(("content-type", value)) => value.clone_into(&mut kind),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let target = line.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let (status, headers, body): (u16, &str, Vec<u8>) = match path {
        "/latin" => (
            200,
            "content-type: text/plain; charset=iso-8859-1\r\n",
            b"caf\xe9".to_vec(),
        ),
        "/wide" => (
            200,
            "content-type: application/json\r\n",
            b"\xff\xfe{\0}\0".to_vec(),
        ),
        "/mark" => (
            200,
            "content-type: application/json\r\n",
            b"\xef\xbb\xbf{\"a\": 1}".to_vec(),
        ),
        "/gzip" => (
            200,
            "content-type: application/json\r\ncontent-encoding: gzip\r\n",
            gzip(b"{\"a\": 1}"),
        ),
        "/bomb" => (
            200,
            "content-encoding: gzip\r\n",
            gzip(&vec![b'a'; 4 * 1024 * 1024]),
        ),
        "/brotli" => (200, "content-encoding: br\r\n", b"\x8b\x01".to_vec()),
        "/broken" => (500, "content-encoding: br\r\n", b"\x8b\x01".to_vec()),
        "/missing" => (404, "", b"none".to_vec()),
        _ => {
            let body = String::from_utf8(body).unwrap();
            let said = json!({"body": body, "type": kind, "target": target});
            (
                200,
                "content-type: application/json\r\n",
                said.to_string().into_bytes(),
            )
        }
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = connection.write_all(head.as_bytes());
    let _ = connection.write_all(&body);
}

/// A request, with more of its fields.
fn http(method: &str, url: String, more: Value) -> Value {
    let mut with = json!({"method": method, "endpoint": url});
    let fields = with.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    json!({"call": "http", "with": with})
}

fn get(url: String) -> Value {
    http("get", url, json!({}))
}

/// Answers the error of a task, or what that answers.
fn caught(task: Value) -> Value {
    json!([{"outer": {"try": [{"it": task}], "catch": {"do": [{"tell": {"set": "${ $error }"}}]}}}])
}

#[test]
fn an_answer_is_read_in_the_charset_and_the_coding_that_it_has() {
    let (world, server) = (World::new(), Server::start());
    let paths = ["latin", "wide", "mark", "gzip", "bomb", "brotli", "broken"];
    for path in paths {
        world.flow(path, caught(get(server.url(&format!("/{path}")))));
    }
    let raw = http("get", server.url("/gzip"), json!({"output": "raw"}));
    world.flow("raw", json!([{"it": raw}]));
    let process = world.process(1, true);
    for (path, expected) in [
        ("latin", json!("café")),
        ("wide", json!({})),
        ("mark", json!({"a": 1})),
        ("gzip", json!({"a": 1})),
        ("raw", json!("eyJhIjogMX0=")),
    ] {
        assert_eq!(world.answers(&process, path, json!({})), expected, "{path}");
    }
    for (path, status, said) in [
        ("bomb", 503, "is longer than 1048576 bytes"),
        ("brotli", 503, "compressed as `br`"),
        // The status is told all the same.
        ("broken", 500, "compressed as `br`"),
    ] {
        let error = world.answers(&process, path, json!({}));
        assert_eq!(error["status"], status, "{error}");
        assert!(error["detail"].as_str().unwrap().contains(said), "{error}");
        assert_eq!(error.get("outcome"), None, "it reads alone");
    }
}

#[test]
fn a_tool_is_read_in_the_charset_and_the_coding_that_its_answer_has() {
    let (world, server) = (World::new(), Server::start());
    let tool = json!({"call": "tool", "with": {"tool": "weather", "arguments": {"city": "Rome"}}});
    world.flow("asks", caught(tool));
    let process = world.process(1, true);
    for (path, expected) in [
        ("latin", json!("café")),
        ("mark", json!({"a": 1})),
        ("gzip", json!({"a": 1})),
    ] {
        world.batch(&format!(
            "update tools set url = '{}'",
            server.url(&format!("/{path}"))
        ));
        assert_eq!(
            world.answers(&process, "asks", json!({})),
            expected,
            "{path}"
        );
    }
    world.batch(&format!("update tools set url = '{}'", server.url("/bomb")));
    let error = world.answers(&process, "asks", json!({}));
    assert!(
        error["detail"].as_str().unwrap().contains("longer than"),
        "{error}"
    );
}

#[test]
fn a_response_tells_of_its_request_without_secrets() {
    let (world, server) = (World::new(), Server::start());
    let headers = json!({"X-Order": "7", "Authorization": "Bearer canary",
        "x-api-key": "canary", "X-Session-Token": "canary"});
    let asks = http(
        "post",
        server.url("/echo"),
        json!({"output": "response", "query": {"q": "a b"},
        "headers": headers, "body": {"n": 1}}),
    );
    world.flow("asks", json!([{"it": asks}]));
    let process = world.process(1, true);
    let output = world.answers(&process, "asks", json!({}));
    assert_eq!(output["statusCode"], 200);
    let expected = json!({
        "method": "POST",
        "uri": server.url("/echo?q=a%20b"),
        "headers": {"x-order": "7", "content-type": "application/json"},
    });
    assert_eq!(output["request"], expected);
    assert!(!output.to_string().contains("canary"), "{output}");
}

#[test]
fn forms_lists_and_what_is_null_are_sent_as_other_programs_send_them() {
    let (world, server) = (World::new(), Server::start());
    let kind = json!({"Content-Type": "application/x-www-form-urlencoded"});
    let form = |body: Value| {
        http(
            "post",
            server.url("/echo"),
            json!({"headers": kind, "body": body}),
        )
    };
    let body = json!({"a": "1 2", "list": "${ .list }", "none": "${ .none }"});
    world.flow("form", json!([{"it": form(body)}]));
    world.flow("text", json!([{"it": form(json!("a=b"))}]));
    world.flow("wrong", caught(form(json!("${ [1] }"))));
    let query = json!({"query": {"a": "${ .none }", "b": "1", "list": "${ .list }"}});
    world.flow(
        "query",
        json!([{"it": http("get", server.url("/echo"), query)}]),
    );
    let process = world.process(1, true);
    let of = |name: &str| world.answers(&process, name, json!({"list": ["x", 2]}));
    let sent = of("form");
    assert_eq!(sent["body"], "a=1+2&list=x&list=2");
    assert_eq!(sent["type"], "application/x-www-form-urlencoded");
    assert_eq!(of("text")["body"], "a=b");
    assert_eq!(of("wrong")["status"], 400);
    assert_eq!(of("query")["target"], "/echo?b=1&list=x&list=2");
}

#[test]
fn a_guard_as_the_language_shows_it_lets_the_flow_go_on() {
    let world = World::new();
    let guard = json!({"if": ".bad", "raise": {"error": {"type": "t", "status": 400, "title": "bad"}}, "then": "end"});
    let work = json!({"work": {"set": {"done": true}}});
    world.flow("guarded", json!([{"guard": guard}, work]));
    let chosen = json!({"s": {"switch": [{"one": {"when": ".v == 1", "then": "work"}}]}});
    world.flow("chosen", json!([chosen, {"guard": guard}, work]));
    let process = world.process(1, true);
    for (flow, input) in [
        ("guarded", json!({"bad": false})),
        ("chosen", json!({"v": 2, "bad": false})),
    ] {
        assert_eq!(
            world.answers(&process, flow, input),
            json!({"done": true}),
            "{flow}"
        );
        let failed = world.ends(&process, flow, json!({"bad": true}));
        let said = failed.failure_message.unwrap();
        assert!(said.contains("bad (status 400)"), "{said}");
    }
}

#[test]
fn a_flow_reads_its_definition_and_the_raw_input_in_a_branch_and_after_a_wait() {
    let world = World::new();
    let read = json!({"read": {"input": {"from": "{ n: .n }"}, "set": {
        "name": "${ $workflow.definition.document.name }", "raw": "${ $task.input }",
        "own": "${ $task.definition.input.from }"}}});
    let each =
        json!({"each": {"for": {"in": "[1]"}, "metadata": {"concurrency": 1}, "do": [read]}});
    world.flow(
        "reads",
        json!([{"sleep": {"wait": {"milliseconds": 1}}}, each]),
    );
    let process = world.process(1, true);
    let output = world.answers(&process, "reads", json!({"n": 1, "m": 2}));
    let expected = json!([{"name": "reads", "raw": {"n": 1, "m": 2}, "own": "{ n: .n }"}]);
    assert_eq!(output, expected);
}

#[test]
fn an_error_is_caught_by_the_older_name_of_its_type() {
    let (world, server) = (World::new(), Server::start());
    let kind = "https://serverlessworkflow.io/dsl/errors/types/communication";
    let catch = json!({"errors": {"with": {"type": kind, "status": 404}}, "do": [{"h": {"set": {"ok": true}}}]});
    let tasks = json!([{"t": {"try": [{"c": get(server.url("/missing"))}], "catch": catch}}]);
    world.flow("older", tasks);
    let process = world.process(1, true);
    assert_eq!(
        world.answers(&process, "older", json!({})),
        json!({"ok": true})
    );
}

#[test]
fn a_source_of_as_is_all_that_stands_before_it() {
    let world = World::new();
    let total = "${ .price * .qty as $sum | $sum + .ship }";
    world.flow("total", json!([{"it": {"set": {"total": total}}}]));
    let process = world.process(1, true);
    let order = json!({"price": 10, "qty": 3, "ship": 5});
    assert_eq!(
        world.answers(&process, "total", order),
        json!({"total": 35})
    );
}
