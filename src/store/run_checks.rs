//! The checks that guardrails made of a run. A row says what was decided, and never the text.
//!
//! Not here: writing them, which a commit of the run does (`runs::commit`).

use super::page::Request;
use super::runs::Run;
use super::{Columns, FromRow, Sql};
use crate::error::Result;
use crate::proof::{May, Read};
use crate::{from_row, list_sql, texts};
use postgres::Row;
use serde::Serialize;
use time::OffsetDateTime;
use uuid::Uuid;

texts! {
    /// Where a check stands.
    #[schemars(rename = "GuardrailPoint")]
    Point {
        /// What the run is asked, before a model is.
        Input = "input",
        /// The arguments of a call, before the tool gets them.
        ToolArguments = "tool.arguments",
        /// What a tool answers, before the model reads it.
        ToolResult = "tool.result",
        /// Each text that a model writes.
        Output = "output",
    }
}

texts! {
    /// Whose a check is.
    #[schemars(rename = "GuardrailOrigin")]
    CheckOrigin {
        /// The tenant's.
        Tenant = "tenant",
        /// The project's.
        Project = "project",
        /// Of the agent's version, or of the task of a flow.
        Agent = "agent",
    }
}

texts! {
    /// What a check decided.
    #[schemars(rename = "GuardrailVerdict")]
    Verdict {
        /// Nothing was found.
        Allow = "allow",
        /// What was found goes no further.
        Block = "block",
        /// What was found was replaced.
        Redact = "redact",
        /// A reviewer decides.
        Approve = "approve",
        /// The check itself failed: see `onError`.
        Failed = "failed",
    }
}

texts! {
    /// What becomes of a text if its check fails.
    #[schemars(rename = "GuardrailOnError")]
    OnError {
        /// It is blocked.
        Block = "block",
        /// It goes on unchecked.
        AllowUnsafely = "allow-unsafely",
    }
}

/// What a check decided: never the text, nor what matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Where.
    pub point: Point,
    /// What the check is called.
    pub name: String,
    /// What judged.
    pub evaluator: String,
    /// Whose check it is.
    pub origin: CheckOrigin,
    /// The version of the policy that it is part of.
    pub policy_version: Option<i32>,
    /// What it decided.
    pub verdict: Verdict,
    /// What was found, in a word; of a check that failed, `failed`.
    pub code: Option<String>,
    /// What was found, or why the check failed, in a sentence. None where the run was erased, too.
    pub reason: Option<String>,
    /// Of a check that failed: what became of the text.
    pub on_error: Option<OnError>,
    /// Microseconds that it took.
    pub duration_us: i64,
    /// SHA-256 of the text, in hexadecimal; empty where the run was erased.
    pub digest: String,
}

from_row!(Made {
    point,
    name,
    evaluator,
    origin,
    policy_version,
    verdict,
    code,
    reason,
    on_error,
    duration_us,
    digest
});

/// A check to record, as the commit's statement reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewCheck {
    /// The step that it belongs to.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// Which of the attempt's checks, from 0.
    pub ordinal: i32,
    /// Of the arguments of a call: which of the answer's, from 0.
    pub call: Option<i32>,
    /// What it decided.
    #[serde(flatten)]
    pub made: Made,
}

/// What guardrails decided in an attempt of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// The checks that were made.
    pub made: Vec<NewCheck>,
    /// What became of the run's input, if they judged it.
    pub input: Option<CheckedInput>,
}

/// What checks made of the run's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedInput {
    /// What takes its place.
    pub text: Option<String>,
    /// No model is told it, now or later.
    pub is_refused: bool,
}

/// A check that was made of a run.
#[derive(Debug, Clone)]
pub struct RunCheck {
    /// The step that it belongs to.
    pub step: i32,
    /// Its attempt.
    pub attempt: i32,
    /// Which of the attempt's checks, from 0.
    pub ordinal: i32,
    /// Of the arguments of a call: which of the answer's, from 0.
    pub call: Option<i32>,
    /// What it decided.
    pub made: Made,
    /// When it was written.
    pub created_at: OffsetDateTime,
}

impl FromRow for RunCheck {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            step: row.column("step")?,
            attempt: row.column("attempt")?,
            ordinal: row.column("ordinal")?,
            call: row.column("call")?,
            made: Made::from_row(row)?,
            created_at: row.column("created_at")?,
        })
    }
}

impl RunCheck {
    /// The id that stands for its place in cursors: a row has none of its own.
    pub fn position_id(&self) -> Uuid {
        let of = |number: i32| u128::from(number.unsigned_abs());
        Uuid::from_u128(of(self.step) << 64 | of(self.attempt) << 32 | of(self.ordinal))
    }
}

/// A place in the order of a run's checks: its step, attempt and ordinal.
fn place(id: Uuid) -> Option<[i32; 3]> {
    let id = id.as_u128();
    let of = |shift: u32| i32::try_from((id >> shift) & u128::from(u32::MAX)).ok();
    Some([of(64)?, of(32)?, of(0)?])
}

/// A page of the run's checks, in the order of steps, attempts and checks.
pub fn list(
    sql: &mut impl Sql,
    may: &impl May<Read, Run>,
    page: &Request,
) -> Result<Vec<RunCheck>> {
    let after = page.after.and_then(place);
    let part = |index: usize| after.map(|place| place[index]);
    sql.fetch_all(
        list_sql!("run_checks/list").by(page.order),
        &[
            &may.tenant_id(),
            &may.object_id(),
            &part(0),
            &part(1),
            &part(2),
            &page.rows(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_cursor_is_the_rows() {
        let row = RunCheck {
            step: 201,
            attempt: i32::MAX,
            ordinal: 0,
            call: None,
            made: Made {
                point: Point::Input,
                name: String::new(),
                evaluator: String::new(),
                origin: CheckOrigin::Agent,
                policy_version: None,
                verdict: Verdict::Allow,
                code: None,
                reason: None,
                on_error: None,
                duration_us: 0,
                digest: String::new(),
            },
            created_at: OffsetDateTime::UNIX_EPOCH,
        };
        assert_eq!(place(row.position_id()), Some([201, i32::MAX, 0]));
        assert_eq!(place(Uuid::max()), None);
    }
}
