//! A check judges a text.

use super::check::Check;
use super::finding::{Finding, redacted};
use super::json_parts::Part;
use super::judged_text::Text;
use crate::store::run_checks::{OnError, Point};
use crate::store::tool_approvals::ToolApproval;
use crate::texts;
use serde_json::Value;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

texts! {
    /// What becomes of what a check finds.
    #[schemars(rename = "GuardrailAction")]
    Action {
        /// It goes no further: see `onBlock`.
        Block = "block",
        /// Its kind stands in its place, in brackets.
        Redact = "redact",
        /// A reviewer decides on the call, at `tool.arguments` alone.
        Approve = "approve",
    }
}

texts! {
    /// What becomes of what a check blocks.
    #[schemars(rename = "GuardrailOnBlock")]
    OnBlock {
        /// The run fails.
        Fail = "fail",
        /// The run is completed with `answer`, at `input` and `output`.
        Answer = "answer",
        /// The model is told, at `tool.arguments` and `tool.result`.
        Tell = "tell",
        /// The model is asked again, `retries` times at most, at `output`; then the run fails.
        Retry = "retry",
    }
}

/// The longest text that is judged, in bytes.
const JUDGED_BYTES_MOST: usize = 4 * 1024 * 1024;

/// A check, ready to judge.
#[derive(Debug)]
pub struct Compiled {
    /// What it is called.
    pub name: String,
    /// What judges, for records: `builtin:pii`.
    pub evaluator: String,
    pub(super) at: Vec<Point>,
    pub(super) action: Action,
    pub(super) on_block: Option<OnBlock>,
    pub(super) answer: Option<String>,
    pub(super) retries: u8,
    pub(super) on_error: OnError,
    pub(super) approval: Option<ToolApproval>,
    /// None: this program cannot read what another one stored, and every judgement fails.
    pub(super) check: Option<Check>,
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Where.
    pub point: Point,
    /// The text; of arguments, their JSON.
    pub text: &'a str,
    /// The tool whose arguments or result it is.
    pub tool: Option<&'a str>,
}

/// What a check found, and what it does about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    /// None: nothing was found.
    pub action: Option<Action>,
    /// Where the action is to redact: the text with what was found replaced.
    pub text: Option<Text<'static>>,
    /// The kinds of what was found, each once.
    pub kinds: Vec<&'static str>,
}

/// Why a check could not judge, as a sentence without the text.
pub(super) type Failed = &'static str;

impl Compiled {
    /// A check whose code is at fault.
    #[cfg(test)]
    pub(super) fn crashing() -> Self {
        Self {
            check: Some(Check::Crash),
            ..Self::unreadable(&Value::Null)
        }
    }

    /// A check that this program cannot read. What can be told of it is told.
    pub(super) fn unreadable(stored: &Value) -> Self {
        let text = |name: &str| stored[name].as_str().map(ToOwned::to_owned);
        let points = stored["at"].as_array();
        let at = points.map_or_else(
            || Point::ALL.to_vec(),
            |points| {
                let is_named = |point: &Point| points.iter().any(|named| named == point.text());
                Point::ALL.into_iter().filter(is_named).collect()
            },
        );
        let is_unsafe = stored["onError"] == OnError::AllowUnsafely.text();
        let kind = text("builtin").unwrap_or_else(|| "unknown".to_owned());
        Self {
            name: text("name").unwrap_or_else(|| kind.clone()),
            evaluator: format!("builtin:{kind}"),
            at,
            action: Action::Block,
            on_block: None,
            answer: None,
            retries: 1,
            on_error: match is_unsafe {
                true => OnError::AllowUnsafely,
                false => OnError::Block,
            },
            approval: None,
            check: None,
        }
    }

    /// Whether it judges what stands at this point.
    pub(super) fn applies(&self, point: Point, tool: Option<&str>) -> bool {
        let is_of_tool = match &self.check {
            Some(Check::ToolArguments {
                tool: Some(named), ..
            }) => tool == Some(named),
            _ => true,
        };
        self.at.contains(&point) && is_of_tool
    }

    /// Judges a text: the one door to what decides.
    pub(super) fn judge(&self, text: &Text<'_>) -> Result<Judged, Failed> {
        let Some(check) = &self.check else {
            return Err("This version of the service cannot read the check.");
        };
        if text.as_str().len() > JUDGED_BYTES_MOST {
            return Err("The text is longer than 4 MiB, which is as much as a check reads.");
        }
        // A fault in a check must not end the run's thread, nor let a text pass.
        let judged = catch_unwind(AssertUnwindSafe(|| self.judged(check, text)));
        judged.unwrap_or(Err("The check crashed."))
    }

    fn judged(&self, check: &Check, text: &Text<'_>) -> Result<Judged, Failed> {
        let found = Found::of(check, text);
        let kinds = found.kinds();
        let is_found = !kinds.is_empty();
        let redacts = is_found && self.action == Action::Redact;
        let text = redacts.then(|| found.redacted(check, text)).transpose()?;
        Ok(Judged {
            action: is_found.then_some(self.action),
            text,
            kinds,
        })
    }
}

/// What a check finds in a text, and in the strings and numbers of one that is JSON: those may be written in another way.
struct Found<'a> {
    whole: Vec<Finding>,
    parts: Option<Vec<(&'a Part, Vec<Finding>)>>,
}

impl<'a> Found<'a> {
    fn of(check: &Check, text: &'a Text<'_>) -> Self {
        let parts = match check {
            Check::ToolArguments { .. } => None,
            // A text as a whole is to match.
            Check::Pattern(patterns) if patterns.must_match() => None,
            _ => text.parts(),
        };
        let parts = parts.map(|parts| {
            let found = parts.iter().map(|part| {
                let found = check.find(&part.value);
                (part, found)
            });
            found.filter(|(_, found)| !found.is_empty()).collect()
        });
        Self {
            whole: check.find(text.as_str()),
            parts,
        }
    }

    fn kinds(&self) -> Vec<&'static str> {
        let parts = self.parts.iter().flatten().flat_map(|(_, found)| found);
        let kinds: BTreeSet<&'static str> =
            self.whole.iter().chain(parts).map(|one| one.kind).collect();
        kinds.into_iter().collect()
    }

    /// The text with what was found replaced. JSON stays JSON.
    fn redacted(&self, check: &Check, text: &Text<'_>) -> Result<Text<'static>, Failed> {
        let text = text.as_str();
        let Some(parts) = &self.parts else {
            return Ok(redacted(text, &self.whole).into());
        };
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for (part, found) in parts {
            out.push_str(&text[at..part.range.start]);
            let value = redacted(&part.value, found);
            out.push_str(&Value::String(value).to_string());
            at = part.range.end;
        }
        out.push_str(&text[at..]);
        let out = Text::from(out);
        let has_more = !Found::of(check, &out).kinds().is_empty();
        match has_more {
            false => Ok(out),
            // It stands across several parts.
            true => Err("What was found cannot be redacted so that the JSON stays JSON."),
        }
    }
}
