//! The check of a provider: its server is asked as an agent asks it, and each step says in a sentence what was found.
//!
//! Guarantees: at most three short calls of the model, within one time in all. Nothing of a key is in what is said. Not here:
//! who may ask for a check, and how many run at once (`api`).

use super::request::{ChatRequest, Message, Tool};
use super::{Completion, ModelFailure, Piece, Provider, chat};
use crate::ids::Clock;
use crate::outbound::{Client, Method, Outgoing};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How long a list of models may be, in bytes, and how many names of it are kept.
const LIST_MOST_BYTES: u64 = 4 * 1024 * 1024;
const LISTED_MOST: usize = 500;
/// How much of an answer is quoted.
const QUOTED_CHARS: usize = 80;

/// What a step found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `models`, `answer`, `streaming`, `usage`, `tools` or `outputSchema`.
    pub step: &'static str,
    /// Whether it is as an agent needs it. None: it could not be looked at.
    pub is_ok: Option<bool>,
    /// What was found.
    pub value: String,
    /// What to do, if it is not well.
    pub remedy: Option<&'static str>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The models that the server lists.
    pub listed: Vec<String>,
    /// In the order in which they were looked at.
    pub findings: Vec<Finding>,
}

impl Probed {
    /// Whether the model answers.
    pub fn answers(&self) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.step == "answer" && finding.is_ok == Some(true))
    }
}

/// What is checked.
pub struct Probe<'a> {
    /// The time of this process.
    pub clock: &'a Clock,
    /// For all calls of the check. Its limits are those of one call.
    pub client: &'a mut Client,
    /// The provider.
    pub provider: &'a Provider,
    /// The model that is asked.
    pub model: &'a str,
    /// The models that are registered.
    pub registered: &'a [String],
    /// No call begins after this.
    pub until: Instant,
}

/// One call of the model, and how it went.
struct Asked {
    completion: Completion,
    /// In how many pieces its text came.
    pieces: usize,
    took: Duration,
}

impl Probe<'_> {
    /// Looks at all.
    pub fn run(mut self) -> Probed {
        let (listed, models) = self.models();
        let mut findings = vec![models];
        let asked = self.ask("Answer with this one word, and nothing else: ready", |_| {});
        match asked {
            Ok(asked) => {
                findings.extend([answer(&asked), streaming(&asked), usage(&asked)]);
                findings.extend([self.tools(), self.output_schema()]);
            }
            Err(said) => {
                findings.push(bad(
                    "answer",
                    said,
                    "Look at the address, the key and the name of the model.",
                ));
                let steps = ["streaming", "usage", "tools", "outputSchema"];
                findings.extend(
                    steps.map(|step| unseen(step, "The model does not answer.".to_owned())),
                );
            }
        }
        Probed { listed, findings }
    }

    fn models(&mut self) -> (Vec<String>, Finding) {
        let listed = match self.list() {
            Ok(listed) => listed,
            Err(said) => return (Vec::new(), unseen("models", said)),
        };
        let absent = self.registered.iter().filter(|name| !listed.contains(name));
        let absent: Vec<&str> = absent.map(String::as_str).collect();
        let count = listed.len();
        let finding = match absent.as_slice() {
            [] => well(
                "models",
                format!(
                    "The server lists {count} models, and those that are registered are among them."
                ),
            ),
            names => bad(
                "models",
                format!(
                    "The server lists {count} models; not among them: {}.",
                    names.join(", ")
                ),
                "Correct the names of the models, unless the server takes them all the same.",
            ),
        };
        (listed, finding)
    }

    /// The names of the models that the server lists.
    fn list(&mut self) -> Result<Vec<String>, String> {
        let said = |failure: ModelFailure| failure.why.message;
        let url = self.provider.url(&["models"]).map_err(said)?;
        let own = self.provider.own_headers();
        let own = own
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose()));
        let headers: Vec<_> = own.chain([("accept", "application/json")]).collect();
        let outgoing = Outgoing {
            method: Method::GET,
            url: &url,
            headers: &headers,
            body: &[],
            cap: LIST_MOST_BYTES,
        };
        let answer = self.client.send(&outgoing);
        let answer = answer.map_err(|failure| said(ModelFailure::transport(&failure)))?;
        let status = answer.status;
        if status != 200 {
            return Err(format!(
                "The server does not list its models (HTTP {status}). It need not."
            ));
        }
        let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let rows = list["data"].as_array().or(list["models"].as_array());
        let rows =
            rows.ok_or("The server's list of models cannot be read. It need not have one.")?;
        let names = rows
            .iter()
            .filter_map(|row| row["id"].as_str().or(row["name"].as_str()));
        Ok(names
            .take(LISTED_MOST)
            .map(|name| quoted(name).to_owned())
            .collect())
    }

    fn ask(&mut self, text: &str, change: impl FnOnce(&mut ChatRequest)) -> Result<Asked, String> {
        let began = Instant::now();
        if began >= self.until {
            return Err("There was no time left to ask.".to_owned());
        }
        let mut request = ChatRequest {
            model: self.model.to_owned(),
            messages: vec![Message::User {
                content: text.to_owned(),
            }],
            ..ChatRequest::default()
        };
        change(&mut request);
        let mut pieces = 0;
        let mut count = |piece: Piece<'_>| {
            if let Piece::Text(_) = piece {
                pieces += 1;
            }
        };
        let completion = chat(self.clock, self.client, self.provider, &request, &mut count);
        let completion = completion.map_err(|failure| failure.why.message)?;
        Ok(Asked {
            completion,
            pieces,
            took: began.elapsed(),
        })
    }

    fn tools(&mut self) -> Finding {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        });
        let add = Tool {
            name: "add".to_owned(),
            description: Some("Adds two numbers.".to_owned()),
            parameters: schema,
        };
        let remedy = "For agents with tools, take a model that calls them, and let its server do so: vLLM is started with --enable-auto-tool-choice and --tool-call-parser, llama.cpp with --jinja.";
        let asked = self.ask("Add 17 and 25. Call the tool add.", |request| {
            request.tools = vec![add]
        });
        let completion = match asked {
            Ok(asked) => asked.completion,
            Err(said) => return bad("tools", said, remedy),
        };
        let Some(call) = completion.tool_calls.first() else {
            let said = quoted(&completion.text);
            return bad(
                "tools",
                format!("It did not call the tool that it was given. It said: {said}"),
                remedy,
            );
        };
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
        match call.name == "add" && arguments["a"].is_i64() && arguments["b"].is_i64() {
            true => well(
                "tools",
                "It called the tool that it was given, with arguments that fit it.".to_owned(),
            ),
            false => bad(
                "tools",
                format!(
                    "It called {} with {}.",
                    quoted(&call.name),
                    quoted(&call.arguments)
                ),
                remedy,
            ),
        }
    }

    fn output_schema(&mut self) -> Finding {
        let schema = json!({
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": false,
        });
        let remedy = "For agents with an output schema, say in the instructions that the answer is JSON alone, or take a model that follows schemas.";
        let text = "Which city is the capital of France? Answer as JSON with the field city.";
        let asked = self.ask(text, |request| request.output_schema = Some(schema));
        let text = match asked {
            Ok(asked) => asked.completion.text,
            Err(said) => return bad("outputSchema", said, remedy),
        };
        let answer: Value = serde_json::from_str(text.trim_ascii()).unwrap_or_default();
        match answer["city"].is_string() {
            true => well(
                "outputSchema",
                format!("It answered with JSON of the schema: {}", quoted(&text)),
            ),
            false => bad(
                "outputSchema",
                format!("Its answer is no JSON of the schema: {}", quoted(&text)),
                remedy,
            ),
        }
    }
}

fn answer(asked: &Asked) -> Finding {
    let text = quoted(&asked.completion.text);
    let took = asked.took.as_secs_f64();
    let first = asked
        .completion
        .first_byte
        .unwrap_or(asked.took)
        .as_secs_f64();
    let said = format!("It answered in {took:.1} s, the first byte after {first:.1} s: {text}");
    well("answer", said)
}

fn streaming(asked: &Asked) -> Finding {
    match asked.pieces {
        0 | 1 => bad(
            "streaming",
            "Its text came in one piece. A short text may.".to_owned(),
            "Nothing, if readers need not see text while it is written.",
        ),
        pieces => well("streaming", format!("Its text came in {pieces} pieces.")),
    }
}

fn usage(asked: &Asked) -> Finding {
    let usage = asked.completion.usage.unwrap_or_default();
    match (usage.prompt, usage.completion) {
        (Some(prompt), Some(completion)) => well(
            "usage",
            format!("It counts tokens: {prompt} read, {completion} written."),
        ),
        _ => bad(
            "usage",
            "It does not count tokens.".to_owned(),
            "Without counts a run has no cost. Turn them on at the server, if it can.",
        ),
    }
}

fn well(step: &'static str, value: String) -> Finding {
    Finding {
        step,
        is_ok: Some(true),
        value,
        remedy: None,
    }
}

fn bad(step: &'static str, value: String, remedy: &'static str) -> Finding {
    Finding {
        step,
        is_ok: Some(false),
        value,
        remedy: Some(remedy),
    }
}

fn unseen(step: &'static str, value: String) -> Finding {
    Finding {
        step,
        is_ok: None,
        value,
        remedy: None,
    }
}

/// The beginning of what a model or a server said.
fn quoted(text: &str) -> &str {
    let end = text
        .char_indices()
        .nth(QUOTED_CHARS)
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}
