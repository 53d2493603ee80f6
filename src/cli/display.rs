//! Shows a run. For a person: its text on stdout, its steps and its end on stderr. For a program:
//! its events as JSON on stdout.
//!
//! On a terminal text appears as it arrives. Otherwise it is written when its step has ended, so
//! that a pipe never gets text that a crash made void.

use super::Outcome;
use super::terminal::{self, Style, printable};
use crate::config::Vars;
use serde_json::{Value, json};
use std::io::IsTerminal;

/// How many characters of a tool's answer are shown.
const SHOWN_CHARS: usize = 200;

/// What a step says that a dry run simulates.
const SIMULATED: &str = "not performed in a dry run";

pub(super) struct Display {
    json: bool,
    live: bool,
    style: Style,
    /// Step, attempt and length of the text on the terminal.
    shown: (i64, i64, usize),
    /// The cursor is behind text, not at the start of a line.
    open: bool,
    /// The step and attempt whose failure was shown: what waits for its retry says no more.
    failed: Option<(i64, i64)>,
    /// It was shown that the run is to cancel.
    cancels: bool,
    /// Why the stream broke, until it brings something again: each attempt to reopen it has the same reason.
    lost: Option<String>,
    steps: usize,
    tools: usize,
}

impl Display {
    pub(super) fn new(vars: &Vars, json: bool) -> Self {
        Self {
            json,
            live: std::io::stdout().is_terminal(),
            style: Style::of_stderr(vars),
            shown: (0, 0, 0),
            open: false,
            failed: None,
            cancels: false,
            lost: None,
            steps: 0,
            tools: 0,
        }
    }

    /// Announces the run.
    pub(super) fn begin(&self, run: &Value) -> Outcome {
        if self.json {
            return terminal::say_json(&json!({"kind": "run", "data": run}));
        }
        let text = |value: &Value| printable(value.as_str().unwrap_or("?"));
        let what = match &run["agent"] {
            Value::Null => format!("{} {}", text(&run["flowId"]), text(&run["flowVersion"])),
            agent => format!(
                "version {} ({})",
                text(&agent["version"]),
                text(&agent["via"])
            ),
        };
        let line = format!("run {} · {what}", text(&run["id"]));
        terminal::note(self.style.dim(&line));
        Ok(())
    }

    /// Shows one event, durable or not.
    pub(super) fn event(&mut self, event: &Value) -> Outcome {
        self.lost = None;
        if self.json {
            return terminal::say_json(event);
        }
        let data = &event["data"];
        let attempt = || Some((data["step"].as_i64()?, data["attempt"].as_i64()?));
        match event["kind"].as_str().unwrap_or_default() {
            "text.delta" if self.live => self.delta(data),
            "step.completed" if data["type"] == "model" => self.model_done(data),
            "step.completed" if data["type"] == "tool" => self.tool_done(data),
            "step.completed" => self.flow_step_done(data),
            "approval.requested" => self.note(&format!(
                "It asks for approval: {}, by {}. To decide: {} approve {}",
                text(&data["title"]),
                text(&data["requiredRole"]),
                terminal::program(),
                text(&data["approvalId"])
            )),
            "approval.escalated" => self.note(&format!(
                "The approval is for {} now. To decide: {} approve {}",
                text(&data["requiredRole"]),
                terminal::program(),
                text(&data["to"])
            )),
            "approval.unassigned" => self.note(&format!(
                "It is assigned to nobody: the named person is no active user with the role {}.",
                text(&data["requiredRole"])
            )),
            "step.failed" => {
                self.failed = attempt();
                let again = match data["willRetry"].as_bool() {
                    Some(true) => " It will be tried again.",
                    _ => "",
                };
                self.step(data, &format!("{}{again}", text(&data["reason"])))
            }
            "step.restarted" => self.step(data, "A crash interrupted this step; it runs again."),
            "run.waiting" if data["reason"].is_null() || self.failed == attempt() => Ok(()),
            "run.waiting" => self.note(&text(&data["reason"])),
            "run.retried" => {
                let steps = data["steps"].as_i64().unwrap_or_default();
                self.note(&format!(
                    "It continues the failed run {}; {steps} steps are already done.",
                    text(&data["retryOf"])
                ))
            }
            "run.cancelRequested" => self.cancels(),
            kind => match note_of(kind, data) {
                Some(line) => self.note(&line),
                None => Ok(()),
            },
        }
    }

    /// Shows that the run is to cancel, once.
    pub(super) fn cancels(&mut self) -> Outcome {
        match std::mem::replace(&mut self.cancels, true) {
            true => Ok(()),
            false => self.note("The run was asked to cancel."),
        }
    }

    /// Shows that the stream broke, once until it brings something again.
    pub(super) fn lost(&mut self, why: &str) -> Outcome {
        if self.lost.as_deref() == Some(why) {
            return Ok(());
        }
        self.lost = Some(why.to_owned());
        self.note(why)
    }

    fn delta(&mut self, data: &Value) -> Outcome {
        let number = |name: &str| data[name].as_i64().unwrap_or(0);
        let (step, attempt) = (number("step"), number("attempt"));
        if (step, attempt) != (self.shown.0, self.shown.1) {
            self.close()?;
            self.shown = (step, attempt, 0);
        }
        let offset = usize::try_from(number("offset")).unwrap_or(0);
        let text = data["text"].as_str().unwrap_or_default();
        let known = self.shown.2.saturating_sub(offset);
        let fresh: String = text.chars().skip(known).collect();
        self.text(&fresh)
    }

    /// Shows the whole text of a step, as far as it was not shown yet.
    fn model_done(&mut self, data: &Value) -> Outcome {
        let step = data["step"].as_i64().unwrap_or(0);
        let attempt = data["attempt"].as_i64().unwrap_or(0);
        self.steps += 1;
        let shown = match self.shown {
            (s, a, shown) if (s, a) == (step, attempt) => shown,
            _ => {
                self.close()?;
                self.shown = (step, attempt, 0);
                0
            }
        };
        let text = data["text"].as_str().unwrap_or_default();
        let rest: String = text.chars().skip(shown).collect();
        self.text(&rest)?;
        self.close()?;
        let calls = data["toolCalls"].as_array();
        for call in calls.into_iter().flatten() {
            terminal::note(self.style.dim(&format!(
                "→ {} {}",
                text_of(&call["name"]),
                shortened(call["arguments"].as_str().unwrap_or_default())
            )));
        }
        Ok(())
    }

    /// The number of tool calls shown as done.
    pub(super) fn tools(&self) -> usize {
        self.tools
    }

    fn tool_done(&mut self, data: &Value) -> Outcome {
        self.steps += 1;
        self.tools += 1;
        let output = shortened(data["output"].as_str().unwrap_or_default());
        if data["simulated"] == json!(true) {
            self.step(data, SIMULATED)
        } else if data["isError"] == json!(true) {
            self.step(data, &self.style.red(&output))
        } else {
            self.step(data, &output)
        }
    }

    /// A step that only flows have.
    fn flow_step_done(&mut self, data: &Value) -> Outcome {
        self.steps += 1;
        let ended = |status: &str| {
            let children = data["children"].as_array();
            let children = children.map(Vec::as_slice).unwrap_or_default();
            let ended = children.iter().filter(|child| child["status"] == status);
            ended.count()
        };
        let what = match data["type"].as_str() {
            _ if data["simulated"] == json!(true) => SIMULATED.to_owned(),
            Some("http") => data["statusCode"].to_string(),
            Some("approval") => text(&data["decision"]),
            Some("guardrail") if data["blockedBy"].is_string() => {
                format!("{} by {}", text(&data["verdict"]), text(&data["blockedBy"]))
            }
            Some("guardrail") => text(&data["verdict"]),
            Some("child") => format!(
                "{} completed, {} failed, {} cancelled",
                ended("completed"),
                ended("failed"),
                ended("cancelled")
            ),
            _ => "its wait is over".to_owned(),
        };
        let has_failed = matches!(data["outcome"].as_str(), Some("failed" | "unknown"));
        match has_failed {
            true => self.step(data, &self.style.red(&what)),
            false => self.step(data, &what),
        }
    }

    /// Whether it prints JSON alone.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// A line about a step.
    fn step(&mut self, data: &Value, what: &str) -> Outcome {
        self.close()?;
        let name = self.style.dim(&format!("← {}", step_of(data)));
        terminal::note(format_args!("{name} {what}"));
        Ok(())
    }

    /// A line about the run or the connection.
    pub(super) fn note(&mut self, what: &str) -> Outcome {
        self.close()?;
        terminal::note(self.style.dim(&printable(what)));
        Ok(())
    }

    fn text(&mut self, text: &str) -> Outcome {
        if text.is_empty() {
            return Ok(());
        }
        self.shown.2 += text.chars().count();
        self.open = !text.ends_with('\n');
        terminal::write(printable(text))
    }

    /// Ends the current line of text.
    pub(super) fn close(&mut self) -> Outcome {
        if std::mem::take(&mut self.open) {
            terminal::say("")?;
        }
        Ok(())
    }

    /// Shows how the run ended, and its usage.
    pub(super) fn end(&mut self, run: &Value) -> Outcome {
        self.close()?;
        if self.json {
            return terminal::say_json(&json!({"kind": "run", "data": run}));
        }
        let status = run["status"].as_str().unwrap_or("unknown");
        let ending = match status {
            "completed" => self.style.green(status),
            _ => self.style.red(status),
        };
        let why = match run["failureMessage"].as_str() {
            Some(why) => format!(": {}", printable(why)),
            None => String::new(),
        };
        terminal::note(format_args!(
            "{ending}{why}{}",
            self.style.dim(&format!(" · {}", usage(self.steps, run)))
        ));
        Ok(())
    }
}

/// What is said of a task of a flow, or of a run below it. Tasks that go well are seen by their steps.
fn note_of(kind: &str, data: &Value) -> Option<String> {
    let task = || task_of(&text(&data["path"]));
    let error = || format!("{} (status {})", text_of(&data["title"]), data["status"]);
    // Of a fork or a loop there are several.
    let below = || {
        let number = data["index"].as_i64().unwrap_or_default() + 1;
        format!("{}: child run {number}", task())
    };
    Some(match kind {
        "task.skipped" => format!("{} is skipped: its `if` is false.", task()),
        "task.faulted" if data["willRetry"] == true => {
            format!("{} failed: {}. It will be tried again.", task(), error())
        }
        "task.caught" => format!("{} handles an error: {}.", task(), error()),
        "events.omitted" => format!("{} task events are not stored here.", data["count"]),
        "child.started" => format!("{} started: {}.", below(), text(&data["runId"])),
        "child.completed" => format!("{} {}.", below(), text(&data["status"])),
        "step.simulated" => format!(
            "{} is not performed in a dry run: {}",
            step_of(data),
            shortened(&data["request"].to_string())
        ),
        _ => return None,
    })
}

/// A step by its names: of a task of a flow also what the task does, where the name does not say that already.
pub(super) fn step_of(data: &Value) -> String {
    let name = text_of(&data["name"]);
    let path = text(&data["path"]);
    let says_more = matches!(data["type"].as_str(), Some("tool" | "http" | "model"));
    match path.starts_with(TASKS) {
        true if says_more => format!("{} ({name})", task_of(&path)),
        true => task_of(&path),
        false => name,
    }
}

/// The path of a task of a flow begins with it. Any other path is that of a call in a turn.
const TASKS: &str = "/do/";

/// A task of a flow, by the names on its path from the outermost: `/do/0/pay/try/1/charge` is `pay/charge`. A name follows a
/// number.
pub(super) fn task_of(path: &str) -> String {
    let mut parts = path.split('/');
    let mut names = Vec::new();
    while path.starts_with(TASKS)
        && let Some(part) = parts.next()
    {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            names.extend(parts.next());
        }
    }
    match names.is_empty() {
        true => path.to_owned(),
        false => names.join("/").replace("~1", "/").replace("~0", "~"),
    }
}

/// Steps and usage in a line.
pub(super) fn usage(steps: usize, run: &Value) -> String {
    let usage = &run["usage"];
    let tokens = &usage["tokens"];
    let number = |value: &Value| value.as_i64().unwrap_or(0);
    let calls = number(&usage["calls"]);
    format!(
        "{steps} {} · {calls} model {} · {} prompt and {} completion tokens · ${}",
        plural(steps, "step"),
        plural(usize::try_from(calls).unwrap_or(0), "call"),
        number(&tokens["prompt"]),
        number(&tokens["completion"]),
        usage["costUsd"].as_f64().unwrap_or(0.0)
    )
}

/// The word for so many.
pub(super) fn plural(count: usize, word: &str) -> String {
    match count {
        1 => word.to_owned(),
        _ => format!("{word}s"),
    }
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default())
}

fn text_of(value: &Value) -> String {
    shortened(value.as_str().unwrap_or("?"))
}

/// The start of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let line = printable(text).replace(['\n', '\t'], " ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_in_a_flow_is_said_in_a_line_each() {
        let caught = json!({"path": "/do/0/a", "type": "try", "status": 503, "title": "Busy"});
        let said = note_of("task.caught", &caught).unwrap();
        assert_eq!(said, "a handles an error: Busy (status 503).");
        let below = json!({"path": "/do/0/a", "index": 2, "runId": "r", "status": "failed"});
        let said = note_of("child.started", &below).unwrap();
        assert_eq!(said, "a: child run 3 started: r.");
        let said = note_of("child.completed", &below).unwrap();
        assert_eq!(said, "a: child run 3 failed.");
        assert_eq!(note_of("task.completed", &caught), None);
        assert_eq!(note_of("task.faulted", &caught), None, "its end says so");
    }

    #[test]
    fn a_task_is_called_by_the_names_on_its_path() {
        let nested = "/do/1/known/fork/branches/1/terms/do/0/agreed/catch/do/0/usual";
        assert_eq!(task_of(nested), "known/terms/agreed/usual");
        assert_eq!(task_of("/do/0/2"), "2", "a name may be a number");
        assert_eq!(task_of("/do/0/a~1b~0c"), "a/b~c");
        assert_eq!(task_of("/3/calls/0"), "/3/calls/0", "a call in a turn");
        let tool = json!({"type": "tool", "name": "orders_get", "path": "/do/0/order"});
        assert_eq!(step_of(&tool), "order (orders_get)");
        let wait = json!({"type": "wait", "name": "wait", "path": "/do/0/night"});
        assert_eq!(step_of(&wait), "night");
        assert_eq!(step_of(&json!({"type": "tool", "name": "look"})), "look");
    }

    #[test]
    fn usage_is_one_line() {
        let run = json!({"usage": {"calls": 1, "costUsd": 0.0012, "tokens": {"prompt": 12, "completion": 3}}});
        assert_eq!(
            usage(2, &run),
            "2 steps · 1 model call · 12 prompt and 3 completion tokens · $0.0012"
        );
    }

    #[test]
    fn a_tool_s_answer_stays_on_its_line() {
        assert_eq!(shortened("a\nb\x1b[1m"), "a b\u{fffd}[1m");
        assert_eq!(shortened(&"x".repeat(300)).chars().count(), SHOWN_CHARS + 1);
    }
}
