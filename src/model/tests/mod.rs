//! Model calls against the scripted provider, over real sockets.

use super::*;
use crate::dev::provider::{self, Fault, Reply, Script, Step};
use crate::outbound::tests::{AT_ONCE, lasts_less_than, ms, timeouts};
use crate::outbound::{HostAccess, Options, Outbound, Policy, Timeouts};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use std::time::Instant;

mod refusals;

const KEY: &str = "sk-test-0123456789abcdef";

fn client(timeouts: Timeouts) -> Client {
    let outbound = Outbound::new(Options::default()).unwrap();
    outbound.client(Policy::Tenant(HostAccess::Local), timeouts)
}

/// Calls a model; the text alone is shown.
fn chat(
    clock: &Clock,
    client: &mut Client,
    provider: &Provider,
    request: &ChatRequest,
    on_text: &mut dyn FnMut(&str),
) -> Result<Completion, ModelFailure> {
    super::chat(clock, client, provider, request, &mut |piece| {
        if let Piece::Text(text) = piece {
            on_text(text);
        }
    })
}

fn start(queue: Vec<Step>) -> provider::Provider {
    let then = Step::text("end of the script");
    provider::Provider::start(Script { queue, then }).unwrap()
}

fn at(server: &provider::Provider) -> Provider {
    at_url(&server.base_url())
}

fn at_url(base_url: &str) -> Provider {
    Provider {
        id: Uuid::nil(),
        base_url: base_url.to_owned(),
        memory: Arc::default(),
        api_key: Some(Secret::new(KEY)),
        headers: Vec::new(),
        options: ProviderOptions::default(),
    }
}

fn ask(text: &str) -> ChatRequest {
    ChatRequest {
        model: "test-model".to_owned(),
        messages: vec![Message::User {
            content: text.to_owned(),
        }],
        ..ChatRequest::default()
    }
}

/// One call of a server that answers with this step, also where it is asked again without streaming.
fn call(step: Step) -> Result<Completion, ModelFailure> {
    call_within(timeouts(), step)
}

fn call_within(timeouts: Timeouts, step: Step) -> Result<Completion, ModelFailure> {
    let server = start(vec![step.clone(), step]);
    let mut client = client(timeouts);
    chat(
        &Clock::system(),
        &mut client,
        &at(&server),
        &ask("hi"),
        &mut |_| {},
    )
}

fn fails(step: Step, says: &str, retryable: bool) -> ModelFailure {
    let failure = call(step).unwrap_err();
    assert!(
        failure.why.message.contains(says),
        "{}",
        failure.why.message
    );
    assert_eq!(failure.retryable, retryable, "{}", failure.why.message);
    assert!(!failure.why.message.contains(KEY));
    failure
}

fn events(events: &[Value]) -> Step {
    let mut events: Vec<String> = events.iter().map(Value::to_string).collect();
    events.push("[DONE]".to_owned());
    Step::new(Reply::Events(events))
}

#[test]
fn a_text_streams_and_its_usage_is_read() {
    let server = start(vec![Step::text("hello big world")]);
    let mut request = ask("hi");
    request.traceparent =
        Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    let mut pieces = Vec::new();
    let completion = chat(
        &Clock::system(),
        &mut client(timeouts()),
        &at(&server),
        &request,
        &mut |text| pieces.push(text.to_owned()),
    )
    .unwrap();
    assert_eq!(pieces, ["hello ", "big ", "world"]);
    assert_eq!(completion.text, "hello big world");
    assert_eq!(completion.finish, Finish::Stop);
    assert_eq!(completion.model.as_deref(), Some("test-model"));
    let usage = completion.usage.unwrap();
    assert_eq!((usage.completion, usage.cache_read), (Some(3), Some(0)));
    assert_eq!(usage.cache_write, None);
    let seen = &server.requests()[0];
    let header = |name: &str| {
        seen.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.clone())
    };
    assert_eq!(header("authorization"), Some(format!("Bearer {KEY}")));
    assert_eq!(header("traceparent"), request.traceparent);
    assert_eq!(seen.body, request.body(&Names::default(), &Quirks::new()));
}

#[test]
fn tool_calls_are_put_together() {
    let calls = vec![
        ("clock".to_owned(), json!({"zone": "UTC"})),
        ("weather".to_owned(), json!({"city": "Kyiv"})),
    ];
    let completion = call(Step::new(Reply::ToolCalls(calls))).unwrap();
    assert_eq!(completion.finish, Finish::ToolCalls);
    let arguments: Vec<_> = completion
        .tool_calls
        .iter()
        .map(|c| c.arguments.as_str())
        .collect();
    assert_eq!(arguments, [r#"{"zone":"UTC"}"#, r#"{"city":"Kyiv"}"#]);
    assert_ne!(completion.tool_calls[0].id, completion.tool_calls[1].id);
}

#[test]
fn a_second_call_reuses_the_connection() {
    let server = start(vec![]);
    let mut client = client(timeouts());
    for _ in 0..5 {
        chat(
            &Clock::system(),
            &mut client,
            &at(&server),
            &ask("hi"),
            &mut |_| {},
        )
        .unwrap();
        assert_eq!(server.connections(), 1);
    }
    assert_eq!(server.count(), 5);
}

#[test]
fn a_whole_json_answer_to_a_stream_request_is_accepted() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "whole"}}]});
    let completion = call(Step::json(200, &body)).unwrap();
    assert_eq!(
        (completion.text.as_str(), completion.usage),
        ("whole", None)
    );
    let odd = Step::plain(200, "text/event-stream", format!("\u{feff} {body}"));
    assert_eq!(call(odd).unwrap().text, "whole");
}

#[test]
fn each_fault_of_a_provider_is_a_clear_failure() {
    fails(
        Step::plain(200, "text/html", "<html>hi"),
        "web page (HTTP 200)",
        false,
    );
    fails(
        Step::plain(502, "text/html", "<html>hi"),
        "web page (HTTP 502)",
        true,
    );
    let error = json!({"error": {"message": format!("bad key {KEY}"), "type": "server_error"}});
    fails(
        Step::json(200, &error),
        "inside its answer: bad key [redacted]",
        true,
    );
    fails(
        Step::json(401, &error),
        "does not accept the API key (HTTP 401)",
        false,
    );
    fails(Step::json(403, &error), "does not allow", false);
    fails(Step::json(404, &error), "does not know", false);
    fails(Step::json(500, &error), "has a fault (HTTP 500)", true);
    fails(
        Step::plain(200, "application/json", "{\"choices\": ["),
        "not valid JSON",
        true,
    );
    fails(Step::plain(200, "application/json", ""), "cut off", true);
    fails(
        Step::plain(200, "text/plain", "all good"),
        "it is text: all good",
        true,
    );
    fails(
        Step::plain(200, "text/plain", " ".repeat(70_000)),
        "blanks",
        true,
    );
    fails(
        Step::new(Reply::Events(vec!["not json".to_owned()])),
        "not JSON",
        true,
    );
    let moved = Step::json(307, &json!({})).header("location", "http://127.0.0.1:9/v1");
    fails(moved, "redirects, which are not followed (HTTP 307)", false);
}

#[test]
fn an_error_inside_a_stream_keeps_the_usage_so_far() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "so"}}],
        "usage": {"prompt_tokens": 4, "completion_tokens": 1}});
    let error = json!({"error": {"message": "overloaded", "code": 503}});
    let failure = fails(
        events(&[piece, error]),
        "inside its answer: overloaded",
        true,
    );
    assert_eq!(failure.usage.unwrap().prompt, Some(4));
    assert_eq!(failure.status, Some(200));
}

#[test]
fn a_wait_that_the_provider_asks_for_is_kept() {
    let busy = Step::json(429, &json!({"error": {"message": "slow down"}}));
    let failure = fails(busy.header("retry-after", "12"), "asked too much", true);
    assert_eq!(failure.retry_after, Some(Duration::from_secs(12)));
    let dated = Step::json(503, &json!({}))
        .header("date", "Sun, 06 Nov 1994 08:49:37 GMT")
        .header("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT");
    assert_eq!(
        fails(dated, "fault", true).retry_after,
        Some(Duration::from_secs(60))
    );
}

#[test]
fn cut_streams_are_failures_unless_the_answer_was_whole() {
    for after in [0, 1, 3] {
        let step = Step::text("one two three four").fault(after, Fault::Cut);
        let failure = call(step).unwrap_err();
        assert!(failure.retryable, "{}", failure.why.message);
        assert!(
            failure.why.message.contains("broke"),
            "{}",
            failure.why.message
        );
    }
    // Events of "one two": role, two words, the end, usage, [DONE].
    let whole = call(Step::text("one two").fault(4, Fault::Cut)).unwrap();
    assert_eq!((whole.text.as_str(), whole.usage), ("one two", None));
    // An orderly end of the body without an end of the answer.
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "so"}}]});
    let ended = Step::new(Reply::Events(vec![piece.to_string()]));
    fails(ended, "cut off", true);
}

#[test]
fn an_answer_that_ends_before_it_begins_is_asked_for_once_more_without_streaming() {
    let silent = || Step::new(Reply::Events(Vec::new()));
    let server = start(vec![silent(), Step::text("two"), silent(), silent()]);
    let mut client = client(timeouts());
    let provider = at(&server);
    let mut ask = || {
        chat(
            &Clock::system(),
            &mut client,
            &provider,
            &ask("hi"),
            &mut |_| {},
        )
    };
    assert_eq!(ask().unwrap().text, "two");
    let failure = ask().unwrap_err();
    assert!(failure.retryable, "{}", failure.why.message);
    let streams = server.requests();
    let streams: Vec<&Value> = streams
        .iter()
        .map(|request| &request.body["stream"])
        .collect();
    // It is not remembered: a connection may break for other reasons.
    assert_eq!(
        streams,
        [&json!(true), &json!(false), &json!(true), &json!(false)]
    );
}

/// Reads one request with a body, of a client that sends its length.
fn read_request(connection: &mut TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        connection.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap();
    let length = length.split("\r\n").next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    connection.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

#[test]
fn a_connection_whose_answer_was_empty_is_not_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = thread::Builder::new().name("server".to_owned());
    let server = server.spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        let asked = read_request(&mut first);
        first
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            )
            .unwrap();
        // It stays open until the next request has come, wherever that comes.
        let (mut second, _) = listener.accept().unwrap();
        let again = read_request(&mut second);
        let answer = r#"{"choices":[{"message":{"content":"two"},"finish_reason":"stop"}]}"#;
        let length = answer.len();
        write!(
            second,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{answer}"
        )
        .unwrap();
        (asked, again)
    })
    .unwrap();
    let answer = chat(
        &Clock::system(),
        &mut client(timeouts()),
        &at_url(&base_url),
        &ask("hi"),
        &mut |_| {},
    );
    assert_eq!(answer.unwrap().text, "two");
    let (asked, again) = server.join().unwrap();
    assert!(asked.contains("\"stream\":true") && again.contains("\"stream\":false"));
}

#[test]
fn a_provider_that_hangs_ends_at_a_deadline() {
    let mut short = timeouts();
    short.first_byte = ms(100);
    short.total = ms(250);
    for after in [0, 3] {
        lasts_less_than(ms(1000), || {
            let step = Step::text("one two three four").fault(after, Fault::Hang);
            let began = Instant::now();
            let failure = call_within(short, step).unwrap_err();
            let took = began.elapsed();
            assert!(
                failure.retryable && failure.why.message.contains("within"),
                "{}",
                failure.why.message
            );
            assert!(took >= ms(100), "{took:?}");
            took
        });
    }
    // A slow drip of an error is not waited for beyond the deadline.
    lasts_less_than(ms(1000), || {
        let slow = Step::text("one two three four five six seven").between(ms(100));
        let began = Instant::now();
        call_within(short, slow).unwrap_err();
        began.elapsed()
    });
    // Slow, but within its time.
    short.first_byte = ms(10_000);
    short.total = ms(20_000);
    let slow = Step::text("one two").before(ms(50)).between(ms(10));
    assert_eq!(call_within(short, slow).unwrap().text, "one two");
}

#[test]
fn nobody_there_and_a_refused_host_are_failures() {
    let gone = at(&start(vec![]));
    let failure = chat(
        &Clock::system(),
        &mut client(timeouts()),
        &gone,
        &ask("hi"),
        &mut |_| {},
    );
    let failure = failure.unwrap_err();
    assert!(
        failure.retryable && failure.status.is_none(),
        "{}",
        failure.why.message
    );
    let outbound = Outbound::new(Options::default()).unwrap();
    let mut client = outbound.client(Policy::Tenant(HostAccess::Deployed), timeouts());
    let failure = chat(
        &Clock::system(),
        &mut client,
        &gone,
        &ask("hi"),
        &mut |_| {},
    )
    .unwrap_err();
    assert!(
        !failure.retryable && failure.why.message.contains("loopback"),
        "{}",
        failure.why.message
    );
}

#[test]
fn a_cancel_ends_a_stream_at_once() {
    lasts_less_than(AT_ONCE, cancel_a_stream);
}

/// How long it took.
fn cancel_a_stream() -> Duration {
    let server = start(vec![Step::text("one two three").fault(2, Fault::Hang)]);
    let mut client = client(timeouts());
    let handle = client.cancel_handle();
    let mut cancelled_at = None;
    let mut cancel = |_: &str| {
        let handle = handle.clone();
        let thread = std::thread::Builder::new().name("cancel".to_owned());
        let thread = thread.spawn(move || {
            std::thread::park_timeout(ms(50));
            let now = Instant::now();
            handle.cancel();
            now
        });
        cancelled_at = thread.ok();
    };
    let failure = chat(
        &Clock::system(),
        &mut client,
        &at(&server),
        &ask("hi"),
        &mut cancel,
    );
    let took = cancelled_at.unwrap().join().unwrap().elapsed();
    let failure = failure.unwrap_err();
    assert!(
        failure.cancelled && !failure.retryable,
        "{}",
        failure.why.message
    );
    let _next = client.cancel_handle();
    let again = chat(
        &Clock::system(),
        &mut client,
        &at(&server),
        &ask("hi"),
        &mut |_| {},
    );
    assert_eq!(again.unwrap().text, "end of the script");
    took
}

#[test]
fn an_answer_without_end_meets_its_bound() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "a".repeat(1 << 20)}}]});
    let endless = Step::new(Reply::Events(vec![piece.to_string(); 20]));
    fails(endless, "longer than 8 MiB", false);
    let line = Step::new(Reply::Events(vec!["a".repeat(17 << 20)]));
    fails(line, "longer than 16 MiB", false);
}

#[test]
fn the_content_filter_is_a_failure() {
    let filtered =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]});
    fails(events(&[filtered]), "content filter", false);
}

#[test]
fn the_base_url_takes_its_route() {
    for (base, url) in [
        ("http://h/v1", "http://h/v1/chat/completions"),
        ("http://h/v1/", "http://h/v1/chat/completions"),
        ("http://h", "http://h/chat/completions"),
        (
            "http://h/d?api-version=1",
            "http://h/d/chat/completions?api-version=1",
        ),
    ] {
        assert_eq!(completions_url(base).unwrap(), url);
    }
    assert!(completions_url("mailto:a@b").is_err() && completions_url("").is_err());
    let mut azure = at_url("https://h/openai/deployments/d");
    azure.options.api_version = Some("2024-10-21".to_owned());
    let url = "https://h/openai/deployments/d/chat/completions?api-version=2024-10-21";
    assert_eq!(azure.url(&["chat", "completions"]).unwrap(), url);
}

fn completions_url(base_url: &str) -> Result<String, ModelFailure> {
    at_url(base_url).url(&["chat", "completions"])
}

#[test]
fn a_reserved_parameter_is_refused_before_anything_is_sent() {
    let server = start(vec![]);
    let mut request = ask("hi");
    request
        .parameters
        .extra
        .insert("messages".to_owned(), json!([]));
    let failure = chat(
        &Clock::system(),
        &mut client(timeouts()),
        &at(&server),
        &request,
        &mut |_| {},
    );
    assert!(failure.unwrap_err().why.message.contains("messages"));
    assert_eq!(server.count(), 0);
}

#[test]
fn the_scripted_answer_calls_a_tool_once_and_then_says_what_it_said() {
    let server = provider::Provider::start(Script::default()).unwrap();
    let mut client = client(timeouts());
    let mut request = ask("What is the weather in Lisbon?");
    request.tools = vec![Tool {
        name: "get_weather".to_owned(),
        description: None,
        parameters: json!({"type": "object", "required": ["city", "days"],
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}),
    }];
    let mut turn = |request: &ChatRequest| {
        chat(
            &Clock::system(),
            &mut client,
            &at(&server),
            request,
            &mut |_| {},
        )
        .unwrap()
    };
    let first = turn(&request);
    assert_eq!(first.tool_calls[0].name, "get_weather");
    assert_eq!(
        first.tool_calls[0].arguments,
        r#"{"city":"lisbon","days":1}"#
    );
    request.messages.push(Message::Assistant {
        content: None,
        tool_calls: first.tool_calls.clone(),
        kept: Kept::default(),
    });
    request.messages.push(Message::Tool {
        tool_call_id: first.tool_calls[0].id.clone(),
        content: "sunny".to_owned(),
    });
    let second = turn(&request);
    assert!(second.text.contains("sunny") && second.tool_calls.is_empty());
    request.messages.push(Message::User {
        content: "Thank you".to_owned(),
    });
    assert!(turn(&request).text.contains("Thank you"));
}
