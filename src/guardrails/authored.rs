//! A check as its author writes it: in an agent's version, in a policy, in a task of a flow.

use super::check::{Check, Personal};
use super::judge::{Action, Compiled, OnBlock};
use super::links::Links;
use super::patterns::Patterns;
use crate::store::run_checks::{OnError, Point};
use crate::store::tool_approvals::ToolApproval;
use crate::texts;
use crate::tools::{is_tool_name, schema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Checks of one list at most.
pub const GUARDRAILS_MOST: usize = 20;

/// Hosts of one check at most.
const HOSTS_MOST: usize = 200;

/// The longest text that is answered in the place of what was blocked, in characters.
const ANSWER_CHARACTERS_MOST: usize = 4_000;

/// How often a model is asked again at most.
const RETRIES_MOST: u8 = 3;

texts! {
    /// What a check looks for.
    #[schemars(rename = "BuiltInGuardrail")]
    BuiltIn {
        /// Texts that match patterns of the author, or match none.
        Pattern = "pattern",
        /// Personal data that has a form of its own.
        Pii = "pii",
        /// Credentials, by their form.
        Secrets = "secrets",
        /// Arguments of calls that do not fit a schema.
        ToolArguments = "tool-arguments",
        /// Links to hosts that are not listed.
        Links = "links",
        /// Characters that a reader does not see and a model reads.
        HiddenText = "hidden-text",
    }
}

/// A check of what goes into a run or comes out of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Guardrail {
    /// What it looks for.
    pub builtin: BuiltIn,
    /// What it is called in records and by those who are told of a verdict; the name of what it looks for if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9-]{0,63}$"))]
    pub name: Option<String>,
    /// Where it stands, each place once.
    #[schemars(length(min = 1, max = 4))]
    pub at: Vec<Point>,
    /// What becomes of what it finds.
    pub action: Action,
    /// What it looks for in particular.
    #[serde(default, skip_serializing_if = "Config::is_empty")]
    pub config: Config,
    /// What becomes of what it blocks. If absent, the run fails at `input` and `output`, and the model is told at the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_block: Option<OnBlock>,
    /// With `onBlock` `answer`: the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = ANSWER_CHARACTERS_MOST))]
    pub answer: Option<String>,
    /// With `onBlock` `retry`: how often the model is asked again; once if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = RETRIES_MOST))]
    pub retries: Option<u8>,
    /// What becomes of a text if the check itself fails.
    #[serde(default = "blocks", skip_serializing_if = "is_block")]
    pub on_error: OnError,
    /// With `action` `approve`: what a reviewer is asked. A tool that asks for an approval itself gets that one for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ToolApproval>,
}

/// What a check looks for in particular. Each kind of check has its own fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "GuardrailConfig")]
pub struct Config {
    /// `pattern`: regular expressions that take linear time, as the crate regex of Rust reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 50), inner(length(min = 1, max = 1000)))]
    pub patterns: Option<Vec<String>>,
    /// `pattern`: a text that matches none is found, whole. Otherwise what matches is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_match: Option<bool>,
    /// `pii`: which kinds; all if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 5))]
    pub kinds: Option<Vec<Personal>>,
    /// `links`: the hosts that links may have, `example.com`, or `*.example.com` for those below it. None if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = HOSTS_MOST))]
    pub hosts: Option<Vec<String>>,
    /// `tool-arguments`: the name of the tool; every tool if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub tool: Option<String>,
    /// `tool-arguments`: the JSON Schema that arguments fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub schema: Option<Value>,
}

impl Config {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn blocks() -> OnError {
    OnError::Block
}

fn is_block(on_error: &OnError) -> bool {
    *on_error == OnError::Block
}

/// What is wrong with checks as they were written.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where, as the end of a JSON path: `[0].config.patterns[1]`.
    pub path: String,
    /// What is expected there.
    pub expected: String,
}

impl Fault {
    fn at(path: &str, expected: &str) -> Self {
        Self {
            path: path.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Compiles the checks of a list.
///
/// # Errors
/// The first fault.
pub fn compile_all(guardrails: &[Guardrail]) -> Result<Vec<Compiled>, Fault> {
    if guardrails.len() > GUARDRAILS_MOST {
        return Err(Fault::at(
            "",
            &format!("at most {GUARDRAILS_MOST} guardrails"),
        ));
    }
    let compile = |(index, guardrail): (usize, &Guardrail)| {
        guardrail.compile().map_err(|fault| Fault {
            path: format!("[{index}]{}", fault.path),
            ..fault
        })
    };
    guardrails.iter().enumerate().map(compile).collect()
}

impl Guardrail {
    /// Its name for records and for those who are told of a verdict.
    pub fn shown_name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.builtin.text())
    }

    /// Makes it ready to judge.
    ///
    /// # Errors
    /// What does not fit.
    pub fn compile(&self) -> Result<Compiled, Fault> {
        self.check_words()?;
        self.check_block()?;
        Ok(Compiled {
            name: self.shown_name().to_owned(),
            evaluator: format!("builtin:{}", self.builtin.text()),
            at: self.at.clone(),
            action: self.action,
            on_block: self.on_block,
            answer: self.answer.clone(),
            retries: self.retries.unwrap_or(1),
            on_error: self.on_error,
            approval: self.approval.clone(),
            check: Some(self.check()?),
        })
    }

    fn check_words(&self) -> Result<(), Fault> {
        if self.name.as_deref().is_some_and(|name| !is_name(name)) {
            let expected = "1 to 64 lowercase letters, digits and hyphens, no hyphen first";
            return Err(Fault::at(".name", expected));
        }
        let is_repeated = |(index, point): (usize, &Point)| self.at[..index].contains(point);
        if self.at.is_empty() || self.at.iter().enumerate().any(is_repeated) {
            return Err(Fault::at(".at", "1 to 4 points, each once"));
        }
        let is_at_arguments = self.at == [Point::ToolArguments];
        if self.action == Action::Approve && !is_at_arguments {
            return Err(Fault::at(
                ".at",
                "tool.arguments alone, where the action is approve",
            ));
        }
        if self.builtin == BuiltIn::ToolArguments && !is_at_arguments {
            return Err(Fault::at(".at", "tool.arguments alone, for tool-arguments"));
        }
        let has_no_place =
            self.builtin == BuiltIn::ToolArguments || self.config.must_match == Some(true);
        if self.action == Action::Redact && has_no_place {
            let expected = "block or approve: what does not fit has no place in the text to redact";
            return Err(Fault::at(".action", expected));
        }
        if self.approval.is_some() && self.action != Action::Approve {
            return Err(Fault::at(
                ".approval",
                "nothing, unless the action is approve",
            ));
        }
        Ok(())
    }

    fn check_block(&self) -> Result<(), Fault> {
        if let Some(on_block) = self.on_block {
            let is_taken = |point: &Point| match (on_block, point) {
                (OnBlock::Fail, Point::ToolResult) => false,
                (OnBlock::Fail, _) => true,
                (OnBlock::Answer, point) => matches!(point, Point::Input | Point::Output),
                (OnBlock::Tell, point) => matches!(point, Point::ToolArguments | Point::ToolResult),
                (OnBlock::Retry, point) => *point == Point::Output,
            };
            if !self.at.iter().all(is_taken) {
                let expected = "fail at input, tool.arguments and output; answer at input and output; tell at tool.arguments and \
                                tool.result; retry at output: one that all points of the check take";
                return Err(Fault::at(".onBlock", expected));
            }
        }
        let answers = self.on_block == Some(OnBlock::Answer);
        let is_answer = |text: &String| {
            (1..=ANSWER_CHARACTERS_MOST).contains(&text.chars().count()) && !text.contains('\0')
        };
        match &self.answer {
            Some(_) if !answers => {
                return Err(Fault::at(".answer", "nothing, unless onBlock is answer"));
            }
            None if answers => return Err(Fault::at(".answer", "the text that is answered")),
            Some(text) if !is_answer(text) => {
                let expected = format!("1 to {ANSWER_CHARACTERS_MOST} characters without NUL");
                return Err(Fault::at(".answer", &expected));
            }
            _ => {}
        }
        match self.retries {
            Some(_) if self.on_block != Some(OnBlock::Retry) => {
                Err(Fault::at(".retries", "nothing, unless onBlock is retry"))
            }
            Some(retries) if !(1..=RETRIES_MOST).contains(&retries) => {
                Err(Fault::at(".retries", &format!("1 to {RETRIES_MOST}")))
            }
            _ => Ok(()),
        }
    }

    fn check(&self) -> Result<Check, Fault> {
        let config = &self.config;
        self.check_fields()?;
        match self.builtin {
            BuiltIn::Pattern => {
                let patterns = config.patterns.as_deref().unwrap_or_default();
                let compiled = Patterns::new(patterns, config.must_match == Some(true));
                compiled.map(Check::Pattern).map_err(|fault| {
                    let index = fault.index.map(|index| format!("[{index}]"));
                    let path = format!(".config.patterns{}", index.unwrap_or_default());
                    Fault::at(&path, &fault.expected)
                })
            }
            BuiltIn::Pii => {
                let kinds = config.kinds.clone();
                match kinds {
                    Some(kinds) if kinds.is_empty() => Err(Fault::at(
                        ".config.kinds",
                        "at least one kind, or none for all",
                    )),
                    kinds => Ok(Check::Pii(kinds.unwrap_or_else(|| Personal::ALL.to_vec()))),
                }
            }
            BuiltIn::Secrets => Ok(Check::Secrets),
            BuiltIn::Links => {
                let hosts = config.hosts.as_deref().unwrap_or_default();
                let expected =
                    format!("at most {HOSTS_MOST} hosts, such as example.com or *.example.com");
                let links = Links::new(hosts).filter(|_| hosts.len() <= HOSTS_MOST);
                links
                    .map(Check::Links)
                    .ok_or_else(|| Fault::at(".config.hosts", &expected))
            }
            BuiltIn::HiddenText => Ok(Check::HiddenText),
            BuiltIn::ToolArguments => {
                let written = config.schema.as_ref();
                let written =
                    written.ok_or_else(|| Fault::at(".config.schema", "a JSON Schema"))?;
                let schema = schema::compile_any(written).map_err(|fault| Fault {
                    path: format!(".config.schema{}", fault.path),
                    expected: fault.expected,
                })?;
                if !config.tool.as_deref().is_none_or(is_tool_name) {
                    let expected =
                        "the name of a tool: 1 to 64 letters, digits, underscores and hyphens";
                    return Err(Fault::at(".config.tool", expected));
                }
                Ok(Check::ToolArguments {
                    tool: config.tool.clone(),
                    schema: Box::new(schema),
                })
            }
        }
    }

    /// No field of another kind of check.
    fn check_fields(&self) -> Result<(), Fault> {
        let config = &self.config;
        for (name, is_there, of) in [
            ("patterns", config.patterns.is_some(), BuiltIn::Pattern),
            ("mustMatch", config.must_match.is_some(), BuiltIn::Pattern),
            ("kinds", config.kinds.is_some(), BuiltIn::Pii),
            ("hosts", config.hosts.is_some(), BuiltIn::Links),
            ("tool", config.tool.is_some(), BuiltIn::ToolArguments),
            ("schema", config.schema.is_some(), BuiltIn::ToolArguments),
        ] {
            if is_there && self.builtin != of {
                let expected = format!("nothing: {name} belongs to {}", of.text());
                return Err(Fault::at(&format!(".config.{name}"), &expected));
            }
        }
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits) && !name.starts_with('-')
}
