//! A client of the service's API, for the commands that talk to a running server: its URL, the
//! token, and its errors. It knows no route.

use super::kept_keys::KeptKeys;
use super::{Failure, Outcome, World, dev, private_file, terminal};
use crate::outbound::{self, Method, Outbound, Outgoing, Policy, Timeouts};
use crate::secret::Secret;
use clap::Args;
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// The server's default URL.
const DEFAULT_URL: &str = "http://127.0.0.1:4000";
/// The longest answer accepted, in bytes; large enough for a run's output.
const MAX_ANSWER_BYTES: u64 = 16 * 1024 * 1024;
/// The longest token, in bytes.
const MAX_TOKEN_BYTES: u64 = 4096;
/// Pages of a list read at most.
const MAX_PAGES: usize = 50;
/// Rows of a page, at most.
const PAGE_MOST: usize = 200;

const REQUEST: Timeouts = Timeouts {
    connect: Duration::from_secs(10),
    first_byte: Duration::from_secs(60),
    idle: None,
    total: Duration::from_secs(90),
};

/// The options for server and token.
#[derive(Args)]
pub(super) struct Which {
    /// The server's URL [default: AGENT_RUNTIME_URL, else a running `dev`, else that of `login` where its key is used, else http://127.0.0.1:4000]
    #[arg(long)]
    url: Option<String>,
    /// The file of the bearer token, `-` for standard input [default: AGENT_RUNTIME_TOKEN_FILE, AGENT_RUNTIME_TOKEN, else that of `login` or `dev`]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The server and the token of the `dev` that was started with this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["url", "token_file"])]
    data_dir: Option<PathBuf>,
}

impl Which {
    /// Whether the token is read from standard input.
    pub(super) fn takes_stdin(&self) -> bool {
        self.token_file
            .as_ref()
            .is_some_and(|file| file.as_os_str() == "-")
    }

    /// The server that the options mean.
    pub(super) fn server(&self, world: &World) -> Outcome<Server> {
        if let Some(directory) = &self.data_dir {
            return Server::of_dev(dev::Home::at(directory)?, None);
        }
        let home = dev::Home::find(&world.vars);
        let dev_url = home.as_ref().and_then(dev::Home::url);
        let given = self.url.as_deref().or(world.vars.text("AGENT_RUNTIME_URL"));
        let known = given.or(dev_url.as_deref());
        // The server of `login` takes no other token than the one that was kept for it.
        let url = known.unwrap_or(DEFAULT_URL);
        if let Some(token) = self.token(world)? {
            return Server::new(url, token);
        }
        if let Some(keys) = KeptKeys::find(&world.vars) {
            let only = keys.only_server();
            let url = known.or(only.as_deref()).unwrap_or(DEFAULT_URL);
            if let Some(token) = keys.read(&base_of(url)?)? {
                return Server::new(url, token);
            }
        }
        // The token of `dev` is only for the server of `dev`.
        let of_dev = given.is_none() || given == dev_url.as_deref();
        let home = home.filter(|_| of_dev).ok_or_else(no_token)?;
        Server::of_dev(home, Some(url))
    }

    fn token(&self, world: &World) -> Outcome<Option<Secret>> {
        if self.takes_stdin() {
            let mut text = zeroize::Zeroizing::new(String::new());
            std::io::stdin()
                .take(MAX_TOKEN_BYTES)
                .read_to_string(&mut text)?;
            return Ok(Some(Secret::new(text.trim())));
        }
        let of_environment = world.vars.text("AGENT_RUNTIME_TOKEN_FILE");
        let file = self.token_file.clone();
        let file = file.or_else(|| of_environment.map(PathBuf::from));
        let Some(file) = file else {
            return Ok(world.vars.text("AGENT_RUNTIME_TOKEN").map(Secret::new));
        };
        match private_file::read(&file)? {
            Some(text) => Ok(Some(Secret::new(text.trim()))),
            None => Err(Failure::new(format!(
                "There is no token file {}.",
                file.display()
            ))),
        }
    }
}

fn no_token() -> Failure {
    Failure::usage(
        "There is no token. Keep one with agent-runtime login. Or put it into a file that only you can read, and name the \
         file with --token-file or AGENT_RUNTIME_TOKEN_FILE, or set AGENT_RUNTIME_TOKEN.",
    )
}

/// A server and the token for it. Cheap to clone; clones share the token.
#[derive(Clone)]
pub(super) struct Server {
    outbound: Outbound,
    base: String,
    /// The value of the authorization header.
    authorization: Arc<Mutex<Option<Secret>>>,
    /// Where `dev` put the token, if it is that of `dev`.
    home: Option<Arc<dev::Home>>,
}

/// The authorization header of this token.
fn header(token: &Secret) -> Secret {
    Secret::new(format!("Bearer {}", token.expose()))
}

fn way_out() -> Outcome<Outbound> {
    Ok(Outbound::new(outbound::Options {
        operator_resolver_threads: 1,
        resolver_queue: 8,
        ..outbound::Options::default()
    })?)
}

/// A server's URL in the one form in which commands know it, without a final slash.
pub(super) fn base_of(url: &str) -> Outcome<String> {
    checked(&way_out()?, url)
}

fn checked(outbound: &Outbound, url: &str) -> Outcome<String> {
    let base = outbound
        .check_url(Policy::Operator, url)
        .map_err(|error| Failure::usage(format!("{url}: {}", error.message())))?;
    Ok(base.as_str().trim_end_matches('/').to_owned())
}

impl Server {
    pub(super) fn new(url: &str, token: Secret) -> Outcome<Self> {
        Self::with(url, Some(header(&token)))
    }

    /// For what takes no token.
    pub(super) fn anonymous(url: &str) -> Outcome<Self> {
        Self::with(url, None)
    }

    fn with(url: &str, authorization: Option<Secret>) -> Outcome<Self> {
        let outbound = way_out()?;
        Ok(Self {
            base: checked(&outbound, url)?,
            outbound,
            authorization: Arc::new(Mutex::new(authorization)),
            home: None,
        })
    }

    /// The server of `dev`, at the URL of its last start unless another one is given.
    fn of_dev(home: dev::Home, url: Option<&str>) -> Outcome<Self> {
        let own = home.url();
        let (Some(url), Some(token)) = (url.or(own.as_deref()), home.token()?) else {
            return Err(no_token());
        };
        let mut server = Self::new(url, token)?;
        server.home = Some(Arc::new(home));
        Ok(server)
    }

    /// Reads the token of `dev` again, because each start of `dev` has another one. False: the token is of
    /// another kind.
    pub(super) fn renew_token(&self) -> Outcome<bool> {
        let Some(home) = &self.home else {
            return Ok(false);
        };
        if let Some(token) = home.token()? {
            *self.lock() = Some(header(&token));
        }
        Ok(true)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Secret>> {
        self.authorization
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The URL without a final slash.
    pub(super) fn url(&self) -> &str {
        &self.base
    }

    /// A client with its own deadlines.
    pub(super) fn connect(&self, timeouts: Timeouts) -> outbound::Client {
        self.outbound.client(Policy::Operator, timeouts)
    }

    /// The value of the authorization header.
    pub(super) fn authorization(&self) -> Option<Secret> {
        self.lock().clone()
    }

    /// For requests that are answered promptly.
    pub(super) fn client(&self) -> Client {
        Client {
            http: self.connect(REQUEST),
            server: self.clone(),
        }
    }
}

/// The first rows of a list.
pub(super) struct First {
    pub(super) rows: Vec<Value>,
    has_more: bool,
}

impl First {
    /// Tells a person that the list goes on, or that it is empty.
    pub(super) fn say_what_is_left(&self, what: &str, filters: &str) {
        if self.has_more {
            terminal::note(format_args!(
                "There are more {what}: raise --limit, or use {filters}."
            ));
        } else if self.rows.is_empty() {
            terminal::note(format_args!("There are no {what} here."));
        }
    }
}

/// A client that makes one request at a time.
pub(super) struct Client {
    server: Server,
    http: outbound::Client,
}

impl Client {
    pub(super) fn get(&mut self, path: &str) -> Outcome<Value> {
        self.send(Method::GET, path, None, &[])
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> Outcome<Value> {
        self.send(Method::POST, path, Some(body), &[])
    }

    pub(super) fn patch(&mut self, path: &str, body: &Value) -> Outcome<Value> {
        self.send(Method::PATCH, path, Some(body), &[])
    }

    pub(super) fn put(&mut self, path: &str, body: &Value) -> Outcome<Value> {
        self.send(Method::PUT, path, Some(body), &[])
    }

    pub(super) fn delete(&mut self, path: &str) -> Outcome<Value> {
        self.send(Method::DELETE, path, None, &[])
    }

    /// The first row of a list for which `wanted` is true, over all pages.
    pub(super) fn find(
        &mut self,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Outcome<Option<Value>> {
        Ok(self.all(path, wanted)?.into_iter().next())
    }

    /// Every row of a list for which `wanted` is true.
    pub(super) fn all(
        &mut self,
        path: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Outcome<Vec<Value>> {
        let join = if path.contains('?') { '&' } else { '?' };
        let mut rows = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let after = cursor.map_or_else(String::new, |cursor| format!("&cursor={cursor}"));
            let mut page = self.get(&format!("{path}{join}limit={PAGE_MOST}{after}"))?;
            if let Value::Array(more) = page["data"].take() {
                rows.extend(more.into_iter().filter(&wanted));
            }
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(rows);
            }
        }
        Err(Failure::new(format!(
            "The list {path} is longer than this command reads."
        )))
    }

    /// The first rows of a list. `path` has a query.
    pub(super) fn first(&mut self, path: &str, most: usize) -> Outcome<First> {
        let mut rows = Vec::new();
        let mut after = String::new();
        loop {
            let limit = (most - rows.len()).min(PAGE_MOST);
            let mut page = self.get(&format!("{path}&limit={limit}{after}"))?;
            let Value::Array(more) = page["data"].take() else {
                return Err(Failure::new(format!(
                    "The server's list {path} has no rows."
                )));
            };
            rows.extend(more);
            let cursor = page["nextCursor"].as_str();
            if cursor.is_none() || rows.len() >= most {
                let has_more = cursor.is_some();
                return Ok(First { rows, has_more });
            }
            after = format!("&cursor={}", cursor.unwrap_or_default());
        }
    }

    /// A run with all its events.
    pub(super) fn progress(&mut self, run_id: Uuid) -> Outcome<(Value, Vec<Value>)> {
        let mut events: Vec<Value> = Vec::new();
        for _ in 0..MAX_PAGES {
            let last = events.last().and_then(|event| event["seq"].as_i64());
            let last = last.unwrap_or(0);
            let path = format!("/v1/runs/{run_id}/progress?limit={PAGE_MOST}&after={last}");
            let mut page = self.get(&path)?;
            if let Value::Array(more) = page["data"].take() {
                events.extend(more);
            }
            if page["hasMore"] != true {
                return Ok((page["run"].take(), events));
            }
        }
        Err(Failure::new(
            "The run has more events than this command reads.",
        ))
    }

    /// The server's URL.
    pub(super) fn url(&self) -> &str {
        &self.server.base
    }

    /// Sends a request, and returns the body of a successful answer.
    pub(super) fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Outcome<Value> {
        match self.exchange(method, path, body, headers)? {
            (200..300, value) => Ok(value),
            (status, value) => Err(refused(&self.server.base, status, &value)),
        }
    }

    /// Sends a request, and returns the status and the body of the answer; null where that is no JSON.
    pub(super) fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Outcome<(u16, Value)> {
        let url = format!("{}{path}", self.server.base);
        let body = body.map(Value::to_string);
        let authorization = self.server.authorization();
        let authorization = authorization.as_ref().map(Secret::expose);
        let mut all: Vec<_> = authorization
            .map(|value| ("authorization", value))
            .into_iter()
            .collect();
        if body.is_some() {
            all.push(("content-type", "application/json"));
        }
        all.extend_from_slice(headers);
        let answer = self
            .http
            .send(&Outgoing {
                method,
                url: &url,
                headers: &all,
                body: body.as_deref().unwrap_or_default().as_bytes(),
                cap: MAX_ANSWER_BYTES,
            })
            .map_err(|failure| unreachable(&self.server.base, &failure))?;
        let value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        Ok((answer.status, value))
    }
}

/// The server was not reached.
pub(super) fn unreachable(base: &str, failure: &outbound::Failure) -> Failure {
    Failure::new(format!(
        "{base} does not answer: {failure} Is the server running (agent-runtime dev)?"
    ))
}

/// The server's error body (specification section 7) as a sentence.
pub(super) fn refused(base: &str, status: u16, body: &Value) -> Failure {
    let error = &body["error"];
    Failure::new(match (error["message"].as_str(), error["code"].as_str()) {
        (Some(message), Some(code)) => {
            let request = error["requestId"].as_str().unwrap_or("without an id");
            let mut text = format!("{message} ({code}, request {request})");
            let faults = error["details"]["faults"].as_array();
            for fault in faults.filter(|all| all.len() > 1).into_iter().flatten() {
                // A body's fault has a path, a query's its parameter.
                let place = fault["path"].as_str().or(fault["parameter"].as_str());
                let message = fault["message"].as_str().unwrap_or_default();
                text += &format!("\n  {}: {message}", place.unwrap_or_default());
            }
            // The message tells of the first fault.
            let hints = faults
                .into_iter()
                .flatten()
                .filter_map(|fault| fault["hint"].as_str());
            for hint in hints {
                text += &format!("\n  {hint}");
            }
            terminal::printable(&text)
        }
        _ => format!(
            "{base} answered with status {status} and without this service's error body. Is the URL right?"
        ),
    })
}

/// A UUID as part of a path.
pub(super) fn id_of(row: &Value) -> Outcome<String> {
    row["id"]
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("The server's answer has no id: {}", json!(row))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Vars;
    use crate::ids::Clock;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_goes_to_no_server_for_which_it_is_not() {
        let home = tempfile::tempdir().unwrap();
        // Where root runs the test, the account of PostgreSQL is to pass.
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let place = home.path().to_str().unwrap();
        let vars = Vars::from_pairs([("HOME", place)]);
        let kept = KeptKeys::find(&vars).unwrap();
        let remote = "https://agents.example.com";
        let file = kept.keep(remote, &Secret::new("of-login")).unwrap();
        let asked = |vars: Vars, token_file: Option<PathBuf>| {
            let clock = Clock::system();
            let which = Which {
                url: None,
                token_file,
                data_dir: None,
            };
            let server = which.server(&World { vars, clock }).ok()?;
            let token = server.authorization()?.expose().to_owned();
            Some((server.url().to_owned(), token))
        };
        let to = |url: &str, token: &str| Some((url.to_owned(), format!("Bearer {token}")));
        assert_eq!(asked(vars.clone(), None), to(remote, "of-login"));
        // A token that is given goes where it went before the `login`.
        let given = vars.clone().with("AGENT_RUNTIME_TOKEN", "given");
        assert_eq!(asked(given.clone(), None), to(DEFAULT_URL, "given"));
        let given = given.with("AGENT_RUNTIME_URL", remote);
        assert_eq!(asked(given, None), to(remote, "given"));
        let local = home.path().join("token");
        private_file::write(&local, "local", private_file::IfExists::Replace).unwrap();
        let of_file = vars
            .clone()
            .with("AGENT_RUNTIME_TOKEN_FILE", local.to_str().unwrap());
        assert_eq!(asked(of_file, None), to(DEFAULT_URL, "local"));
        assert_eq!(asked(vars.clone(), Some(local)), to(DEFAULT_URL, "local"));
        // Nor does the token of `dev` go there, where the key is gone and the name of its file is left.
        let data = home.path().join(".local/share/agent-runtime");
        std::fs::create_dir_all(&data).unwrap();
        let of_dev = data.join("token");
        private_file::write(&of_dev, "of-dev", private_file::IfExists::Replace).unwrap();
        assert_eq!(asked(vars.clone(), None), to(remote, "of-login"));
        std::fs::rename(
            &file,
            file.with_file_name("HTTPS%3A%2F%2Fagents%2Eexample%2Ecom"),
        )
        .unwrap();
        assert_eq!(asked(vars, None), to(DEFAULT_URL, "of-dev"));
    }

    #[test]
    fn each_fault_is_told_with_its_path_or_its_parameter() {
        let faults = json!([
            {"path": "$.name", "message": "is required."},
            {"parameter": "limit", "message": "is 200 at most."},
        ]);
        let error = json!({"message": "No.", "code": "invalid-request", "requestId": "r", "details": {"faults": faults}});
        let message = refused("http://a", 400, &json!({ "error": error })).message;
        let lines: Vec<&str> = message.lines().skip(1).collect();
        assert_eq!(
            lines,
            ["  $.name: is required.", "  limit: is 200 at most."]
        );
    }
}
