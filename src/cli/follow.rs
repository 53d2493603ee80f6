//! `follow`: watches a run. Also the thread with which every command watches one.
//!
//! If a stream ends before the run does, the thread opens a new one from the last event. So each
//! durable event is seen once, whatever happens to the connection or the server.

use super::client::{self, Server, Which};
use super::display::Display;
use super::{Failure, Outcome, World, names, signals, terminal};
use crate::model::sse;
use crate::outbound::{CancelHandle, Method, Outgoing, Timeouts};
use clap::Args;
use crossbeam_channel::{Receiver, Sender, bounded, select};
use serde_json::Value;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime follow 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime follow 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq -r .kind
  agent-runtime follow assistant       the newest run of this agent

Exits 0 if the run completed, 1 if it failed, was cancelled, or is left running.";

/// A stream that is silent for longer than this is reopened.
const STREAM: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(30),
    idle: None,
    total: Duration::from_secs(300),
};
/// How long to try to reach the server again.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause between attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes of one stream, at most; it is then reopened.
const STREAM_BYTES: u64 = 256 * 1024 * 1024;

/// Arguments of `follow`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The run's id, or the name of an agent: its newest run that no other run began
    run: String,
    /// The project of the agent, by id or name
    #[arg(long)]
    project: Option<String>,
    /// Print each event as JSON, one a line
    #[arg(long)]
    json: bool,
    /// Cancel the run at Ctrl-C, instead of leaving it running
    #[arg(long)]
    cancel_on_interrupt: bool,
    #[command(flatten)]
    which: Which,
}

/// Watches a run to its end.
///
/// # Errors
/// The run did not complete, or the server cannot be asked.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let server = arguments.which.server(world)?;
    let run_id = named(&server, &arguments.run, arguments.project.as_deref())?;
    let endings = signals::endings()?;
    let display = Display::new(&world.vars, arguments.json);
    watch(
        &server,
        run_id,
        display,
        &endings,
        arguments.cancel_on_interrupt,
    )?
    .outcome()
}

/// The run with this id, or the newest one of the agent with this name.
fn named(server: &Server, named: &str, project: Option<&str>) -> Outcome<Uuid> {
    if let Ok(run_id) = named.parse() {
        return Ok(run_id);
    }
    let mut client = server.client();
    let agent_id = names::agent(&mut client, named, project)?;
    let path = format!("/v1/runs?agentId={agent_id}&order=desc");
    let newest = client.first(&path, 1)?.rows;
    let newest = newest.first().map(client::id_of).transpose()?;
    let newest = newest.and_then(|id| id.parse().ok());
    newest.ok_or_else(|| Failure::new(format!(
        "The agent {named} has not run yet, except in runs that began it. To list these: {} runs --children --agent {named}",
        terminal::program()
    )))
}

/// The run's state when the watching ended.
pub(super) struct Seen {
    /// The run, as the API shows it.
    pub(super) run: Value,
    /// Tool calls that were seen to end.
    pub(super) tools: usize,
}

impl Seen {
    pub(super) fn outcome(&self) -> Outcome {
        match self.run["status"].as_str() {
            Some("completed") => Ok(()),
            _ => Err(Failure::said()),
        }
    }
}

/// Shows a run until it ends or the user interrupts.
pub(super) fn watch(
    server: &Server,
    run_id: Uuid,
    mut display: Display,
    endings: &Receiver<()>,
    cancel_on_interrupt: bool,
) -> Outcome<Seen> {
    let mut client = server.client();
    let following = Following::start(server, run_id)?;
    let mut may_cancel = cancel_on_interrupt;
    loop {
        select! {
            recv(following.news()) -> news => match news {
                Ok(News::Event(event)) => display.event(&event)?,
                Ok(News::Lost(why)) => display.lost(&why)?,
                Ok(News::Failed(failure)) => return Err(failure),
                Ok(News::Ended) | Err(_) => {
                    let run = client.get(&format!("/v1/runs/{run_id}"))?;
                    display.end(&run)?;
                    if run["status"] == "completed" && run["agent"].is_null() && !display.is_json() {
                        // A flow says nothing on its way.
                        let payload = client.get(&format!("/v1/runs/{run_id}/payload"))?;
                        terminal::say_json(&payload["output"])?;
                    }
                    let tools = display.tools();
                    return Ok(Seen { run, tools });
                }
            },
            recv(endings) -> _ => {
                if std::mem::take(&mut may_cancel) {
                    display.cancels()?;
                    client.send(Method::POST, &format!("/v1/runs/{run_id}/cancel"), None, &[])?;
                } else {
                    display.close()?;
                    terminal::note(format_args!(
                        "The run goes on. To watch it again: {} follow {run_id}",
                        terminal::program()
                    ));
                    return Err(Failure::said());
                }
            }
        }
    }
}

/// A message of the thread.
enum News {
    /// An event: `kind`, `data`, and for a durable one `seq` and `createdAt`.
    Event(Value),
    /// The stream broke and is being reopened.
    Lost(String),
    /// The run has ended, and every event of it was passed on.
    Ended,
    /// The run cannot be watched.
    Failed(Failure),
}

/// The thread that follows a run; dropping this stops it.
struct Following {
    news: Option<Receiver<News>>,
    stop: Option<Sender<()>>,
    cancel: CancelHandle,
    thread: Option<JoinHandle<()>>,
}

impl Following {
    fn start(server: &Server, run_id: Uuid) -> Outcome<Self> {
        let (sender, news) = bounded(64);
        let (stop, stopped) = bounded(0);
        let mut http = server.connect(STREAM);
        let cancel = http.cancel_handle();
        let mut follower = Follower {
            server: server.clone(),
            http,
            path: format!("/v1/runs/{run_id}/progress/stream"),
            seq: 0,
            sender,
            stopped,
        };
        let thread = std::thread::Builder::new()
            .name("follow".to_owned())
            .spawn(move || follower.run())?;
        Ok(Self {
            news: Some(news),
            stop: Some(stop),
            cancel,
            thread: Some(thread),
        })
    }

    fn news(&self) -> &Receiver<News> {
        static NOTHING: std::sync::LazyLock<Receiver<News>> =
            std::sync::LazyLock::new(crossbeam_channel::never);
        self.news.as_ref().unwrap_or(&NOTHING)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        drop(self.news.take());
        drop(self.stop.take());
        self.cancel.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Follower {
    server: Server,
    http: crate::outbound::Client,
    path: String,
    /// The number of the last durable event that was passed on.
    seq: i64,
    sender: Sender<News>,
    /// Disconnects when nobody follows any more.
    stopped: Receiver<()>,
}

/// How a stream ended.
enum End {
    /// With the run.
    Run,
    /// Before the run: to be reopened. The flag says whether any event came.
    Early { why: String, fruitful: bool },
    /// The run cannot be watched.
    Failed(Failure),
    /// Nobody listens.
    Unwanted,
}

impl Follower {
    fn run(&mut self) {
        let mut since = Instant::now();
        loop {
            let news = match self.stream() {
                End::Run => News::Ended,
                End::Failed(failure) => News::Failed(failure),
                End::Unwanted => return,
                End::Early { why, fruitful } => {
                    if fruitful {
                        since = Instant::now();
                    }
                    if since.elapsed() < PATIENCE {
                        News::Lost(why)
                    } else {
                        News::Failed(Failure::new(why))
                    }
                }
            };
            let lost = matches!(news, News::Lost(_));
            if self.sender.send(news).is_err() || !lost {
                return;
            }
            if self.stopped.recv_timeout(PAUSE) != Err(crossbeam_channel::RecvTimeoutError::Timeout)
            {
                return;
            }
        }
    }

    fn stream(&mut self) -> End {
        let last = self.seq.to_string();
        let authorization = self.server.authorization();
        let url = format!("{}{}", self.server.url(), self.path);
        let mut headers = vec![("accept", "text/event-stream"), ("last-event-id", &*last)];
        headers.extend(
            authorization
                .as_ref()
                .map(|value| ("authorization", value.expose())),
        );
        let opened = self.http.open(&Outgoing {
            method: Method::GET,
            url: &url,
            headers: &headers,
            body: &[],
            cap: STREAM_BYTES,
        });
        let early = |why: String, fruitful| End::Early { why, fruitful };
        let mut stream = match opened {
            Ok(stream) if stream.status == 200 => stream,
            Ok(stream) => {
                let status = stream.status;
                let body = stream.excerpt(16 * 1024, Duration::from_secs(2));
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let failure = client::refused(self.server.url(), status, &body);
                return match status {
                    // `dev` may have been started again, and leaves its token once it is ready.
                    401 if matches!(self.server.renew_token(), Ok(true)) => {
                        early(failure.message, false)
                    }
                    429 | 500.. => early(failure.message, false),
                    _ => End::Failed(failure),
                };
            }
            Err(failure) if failure.is_transient() => {
                return early(
                    client::unreachable(self.server.url(), &failure).message,
                    false,
                );
            }
            Err(failure) => {
                return End::Failed(client::unreachable(self.server.url(), &failure));
            }
        };
        let mut parser = sse::Parser::default();
        let mut buffer = [0; 16 * 1024];
        loop {
            let amount = match stream.read(&mut buffer) {
                Ok(0) => return early("The stream ended before the run did.".to_owned(), true),
                Ok(amount) => amount,
                Err(failure) => return early(failure.message().to_owned(), true),
            };
            let Ok(events) = parser.push(&buffer[..amount]) else {
                return End::Failed(Failure::new("The server sent an event that is too long."));
            };
            for event in &events {
                if let Some(end) = self.take(event) {
                    return end;
                }
            }
        }
    }

    /// Passes an event on; returns the end of the stream if it was the last.
    fn take(&mut self, event: &sse::Event) -> Option<End> {
        let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
        match event.name.as_str() {
            "stream.end" => Some(match data["reason"].as_str() {
                Some("run-finished") => End::Run,
                Some("credential-ended") => {
                    End::Failed(Failure::new("The token has ended or was revoked."))
                }
                _ => End::Early {
                    why: "The server is stopping.".to_owned(),
                    fruitful: true,
                },
            }),
            "stream.reset" => Some(End::Early {
                why: "The server closed the stream because it was read too slowly.".to_owned(),
                fruitful: true,
            }),
            name => {
                let value = match data["seq"].as_i64() {
                    Some(seq) if seq <= self.seq => return None,
                    Some(seq) => {
                        self.seq = seq;
                        data
                    }
                    None => serde_json::json!({"kind": name, "data": data}),
                };
                self.sender
                    .send(News::Event(value))
                    .is_err()
                    .then_some(End::Unwanted)
            }
        }
    }
}
