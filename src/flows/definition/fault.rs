//! What is wrong with a definition, for its author.

use serde::Serialize;
use serde_json::Value;

/// The most faults that are told at once, and the most warnings.
pub const FAULTS_MOST: usize = 20;

/// One fault, or one warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// Where, as a JSON path: `$.do[2].small.switch[0].yes.then`.
    pub path: String,
    /// What kind of fault.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// Which characters of the string at `path` are wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A part of a string, in Unicode code points. It is empty if something is missing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The first code point, from 0.
    pub start: usize,
    /// The first one after it.
    pub end: usize,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The text is no JSON.
    BadSyntax,
    /// No field has this name here.
    UnknownField,
    /// A field is missing.
    MissingField,
    /// A value is not what is expected.
    BadValue,
    /// A part of the language that is not supported.
    Unsupported,
    /// `then` names no task of its list.
    UnknownTarget,
    /// A name that stands for nothing.
    UnknownReference,
    /// An expression cannot be read.
    BadExpression,
    /// A JSON Schema that is not supported.
    BadSchema,
    /// A bound is passed.
    TooLarge,
    /// No path leads to this task. A warning.
    Unreachable,
}

/// The JSON path of a field: `$.do`, `$["a b"]`.
pub fn key_path(path: &str, key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = !key.is_empty() && key.chars().all(is_plain);
    match is_plain && !key.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("{path}.{key}"),
        false => format!("{path}[{}]", Value::from(key)),
    }
}

impl Code {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadSyntax => "bad-syntax",
            Self::UnknownField => "unknown-field",
            Self::MissingField => "missing-field",
            Self::BadValue => "bad-value",
            Self::Unsupported => "unsupported",
            Self::UnknownTarget => "unknown-target",
            Self::UnknownReference => "unknown-reference",
            Self::BadExpression => "bad-expression",
            Self::BadSchema => "bad-schema",
            Self::TooLarge => "too-large",
            Self::Unreachable => "unreachable",
        }
    }
}

impl Fault {
    pub(super) fn new(path: &str, code: Code, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            code,
            message: message.into(),
            span: None,
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
