//! Steps that wait, as the journal keeps them, and what each waits for.
//!
//! A run that waits is parked: its row says what for and until when, its job is due then, and it
//! holds no thread and no lease. What it waits for makes the job due before (`no-lost-wake-up`).
//! Whoever takes it up looks again, so a wake that comes early or twice does no harm.

use super::ToolRequest;
use crate::guardrails::Blocked;
use crate::ids::rfc3339;
use crate::store::approvals::ApprovalStatus;
use crate::store::runs::{DatabaseAhead, Usage, Wait, WaitingFor};
use crate::store::steps::{Step, StepKind};
use crate::store::tools::TargetKind;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// When a run that waits for its children is taken up at the latest, although none has ended.
const CHILDREN_LOOK: time::Duration = time::Duration::days(400);

/// When a run that waits for a call of its model is taken up at the latest, although nobody made it due.
const MODEL_LOOK: time::Duration = time::Duration::minutes(1);

/// The status of the error of a step whose child runs may not begin, since there are too many runs.
pub(in crate::runtime) const REFUSED: u16 = 429;

/// What a step `wait` is asked. It is over once either clock says so. The run is not taken up before PostgreSQL's does, so a
/// server's clock that is set forward ends no wait early, and one that is set back makes none longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct TimerRequest {
    /// When it is over by the clock of the server that began it.
    #[serde(with = "rfc3339")]
    pub until: OffsetDateTime,
    /// When it is over by PostgreSQL's clock. Unknown where an older program began it.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    database_until: Option<OffsetDateTime>,
}

/// What a step `child` is asked. The children stand beside the run, by slot, once they have begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct ChildrenRequest {
    /// The slot of the first child.
    pub first_slot: i32,
    /// How many there are.
    pub count: i32,
    /// Which branch or iteration of its task the first one is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_index: i32,
    /// When those that have not ended are cancelled, if the time of the whole run is not over before.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub until: Option<OffsetDateTime>,
    /// Those that have not ended are cancelled once one has failed or was cancelled, and no other begins.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fail_fast: bool,
    /// Of a parallel loop: how many run at once. The others begin as places come free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<i32>,
    /// Why no children begin, as a sentence: a bound on the number of runs was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The child is a call of a tool that is this. The step's result is an [`Answer`](crate::tools::Answer) then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetKind>,
    /// Of a call by a model: which of its calls.
    #[serde(flatten)]
    pub call: Option<ToolRequest>,
}

/// How one child run ended, in the result of its step: an array in the order of the slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::runtime) struct ChildResult {
    /// The child.
    pub run_id: Uuid,
    /// `completed`, `failed` or `cancelled`.
    pub status: String,
    /// What it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_message: Option<String>,
    /// Of a flow: the error that it failed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<serde_json::Value>,
    /// What its model calls used, those of runs below it included; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How an approval was closed, in the result of its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalResult {
    /// `approved`, `rejected` or `expired`.
    pub decision: ApprovalStatus,
    /// What the reviewer said.
    pub comment: Option<String>,
    /// The reviewer; null where nobody decided.
    pub decided_by: Option<Uuid>,
    /// What the reviewer answered.
    pub answer: Option<serde_json::Value>,
    /// The approval; null in a dry run, which opens none.
    pub approval_id: Option<Uuid>,
    /// Of a tool call that was approved: what it is to be made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// The arguments are the reviewer's, not those that were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edited: bool,
    /// A guardrail refuses the reviewer's arguments, which stand nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl TimerRequest {
    /// A wait that begins now, with PostgreSQL's clock so far ahead of this server's.
    pub(in crate::runtime) fn new(
        (now, database_ahead): (OffsetDateTime, DatabaseAhead),
        duration: Duration,
    ) -> Self {
        Self {
            until: now + duration,
            database_until: Some(now + database_ahead.at_least + duration),
        }
    }

    /// How long it lasts yet. None: it is over. A run that is taken up when PostgreSQL's clock says so finds it over, however
    /// long the statements took that read that clock.
    pub(in crate::runtime) fn left(
        &self,
        (now, database_ahead): (OffsetDateTime, DatabaseAhead),
    ) -> Option<time::Duration> {
        let left = |ahead: time::Duration| {
            let here = self.until - now;
            let there = self.database_until.map(|until| until - (now + ahead));
            there.map_or(here, |there| there.min(here))
        };
        left(database_ahead.at_most)
            .is_positive()
            .then(|| left(database_ahead.at_least))
    }
}

impl ChildrenRequest {
    /// Which branch or iteration of the task the child of a slot is.
    pub(in crate::runtime) fn index(&self, slot: i32) -> i32 {
        slot.saturating_sub(self.first_slot)
            .saturating_add(self.first_index)
    }

    /// The slots of the step's children.
    pub(in crate::runtime) fn slots(&self) -> Range<i32> {
        self.first_slot..self.first_slot.saturating_add(self.count)
    }

    /// Whether the error of a child is an answer, as that of an iteration of a loop that collects them.
    pub(in crate::runtime) fn takes_failed(&self) -> bool {
        self.places.is_some() && !self.is_fail_fast
    }
}

/// The first slot that no step of the journal has given to a child.
///
/// # Errors
/// A sentence, when another version of this program wrote the journal.
pub(in crate::runtime) fn free_slot(journal: &[Step]) -> Result<i32, String> {
    let newest = journal.iter().rfind(|step| step.kind == StepKind::Child);
    newest.map_or(Ok(0), |step| {
        let request: ChildrenRequest = super::read(Some(&step.request))?;
        Ok(request.first_slot.saturating_add(request.count))
    })
}

/// Until another attempt of a step.
pub(in crate::runtime) fn retry(until: OffsetDateTime) -> Wait {
    Wait {
        until,
        on: WaitingFor::Retry,
        approval_id: None,
    }
}

/// Until a time that the program named.
pub(in crate::runtime) fn timer(until: OffsetDateTime) -> Wait {
    Wait {
        until,
        on: WaitingFor::Timer,
        approval_id: None,
    }
}

/// Until a child run has ended, or their time is over.
pub(in crate::runtime) fn children(now: OffsetDateTime, until: Option<OffsetDateTime>) -> Wait {
    Wait {
        until: until
            .filter(|until| *until > now)
            .unwrap_or(now + CHILDREN_LOOK),
        on: WaitingFor::Children,
        approval_id: None,
    }
}

/// Until the model provider takes a call.
pub(in crate::runtime) fn model(now: OffsetDateTime) -> Wait {
    Wait {
        until: now + MODEL_LOOK,
        on: WaitingFor::Model,
        approval_id: None,
    }
}

/// Until an approval is closed, or in so many milliseconds to look after its time.
pub(in crate::runtime) fn approval(now: OffsetDateTime, approval_id: Uuid, due_in_ms: i64) -> Wait {
    Wait {
        until: now + time::Duration::milliseconds(due_in_ms),
        on: WaitingFor::Approval,
        approval_id: Some(approval_id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far the database is ahead by a claim that took so long, and read its clock after a part of that.
    fn ahead(clocks_differ: time::Duration, read_after_ms: i64, took_ms: i64) -> DatabaseAhead {
        let at_most = clocks_differ + time::Duration::milliseconds(read_after_ms);
        DatabaseAhead {
            at_least: at_most - time::Duration::milliseconds(took_ms),
            at_most,
        }
    }

    #[test]
    fn a_wait_is_over_when_postgresql_says_so_however_long_the_claims_took() {
        let began = OffsetDateTime::UNIX_EPOCH;
        let duration = time::Duration::seconds(2);
        let hours = time::Duration::hours(3);
        for (first, second) in [((40, 80), (0, 1)), ((0, 1), (40, 80)), ((1, 1), (80, 80))] {
            let first = ahead(time::Duration::ZERO, first.0, first.1);
            let timer = TimerRequest::new((began, first), Duration::from_secs(2));
            assert_eq!(timer.left((began, first)), Some(duration));
            // This server's clock is set back meanwhile, and its run taken up at the time by PostgreSQL's.
            let second = ahead(hours, second.0, second.1);
            assert_eq!(timer.left((began - hours + duration, second)), None);
        }
    }
}
