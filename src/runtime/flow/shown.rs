//! Where a run of a flow stands, as people read it.
//!
//! The path of the newest step leads through all tasks under way, so the definition is not needed.
//!
//! Not here: the engine's form of the same (`state`).

use super::state::{At, Frame, State, bytes_of};
use crate::error::Result;
use crate::ids::Timestamp;
use crate::store::flow_states::FlowState;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A longer value is not shown.
const SHOWN_BYTES: usize = 16 * 1024;

/// A value, if it is not too long.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ShownValue")]
pub(super) struct Shown {
    /// Its length as JSON.
    bytes: usize,
    /// Null if it has more than 16 KiB.
    value: Value,
}

/// Where a task under way stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "TaskPosition")]
enum Position {
    /// In its effect.
    Effect,
    /// In its list.
    Do,
    /// In an iteration of a loop.
    For,
    /// In the list that is tried.
    Try,
    /// Between two tries.
    Pause,
    /// In the list that handles the error.
    Catch,
    /// In iterations that run beside each other, as runs of their own.
    Parallel,
    /// In the branch that this run is.
    Branch,
}

/// A task under way.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TaskUnderWay")]
pub(super) struct TaskUnderWay {
    /// The JSON pointer of the task in the definition.
    path: String,
    position: Position,
    /// When it began.
    started_at: Timestamp,
    /// When its time is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    /// The iteration or the branch, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    /// Of a loop, how many items it goes over.
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<usize>,
    /// The try, from 1; between two tries the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    /// The error that is handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Shown>,
    /// What the task was given, after `input.from`.
    input: Shown,
}

/// Where a run of a flow stood as its newest step began.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowPosition {
    /// The version of the form in which it is kept.
    format: i16,
    /// The tasks under way, outermost first.
    tasks: Vec<TaskUnderWay>,
    /// What the last task answered, or what the innermost list was given.
    data: Shown,
    /// What tasks have exported: `$context`.
    context: Shown,
    /// How many tasks were entered so far.
    tasks_entered: i32,
}

impl FlowPosition {
    /// Of a run whose newest step stands at `path`.
    ///
    /// # Errors
    /// Internal, when the row cannot be read.
    pub fn of(row: &FlowState, path: &str) -> Result<Self> {
        let state = State::of_row(row)?;
        let tasks = paths(path, &state.frames).zip(&state.frames);
        Ok(Self {
            format: row.format,
            tasks: tasks.map(|(path, frame)| under_way(path, frame)).collect(),
            data: shown(&state.data),
            context: shown(&state.context),
            tasks_entered: state.tasks,
        })
    }
}

fn shown(value: &Value) -> Shown {
    let bytes = bytes_of(value);
    let value = match bytes {
        0..=SHOWN_BYTES => value.clone(),
        _ => Value::Null,
    };
    Shown { bytes, value }
}

/// The path of each task: the part of the innermost one's that ends with the task's index and name. Where the path is another
/// program's, less than all of it.
fn paths<'p>(path: &'p str, frames: &'p [Frame]) -> impl Iterator<Item = &'p str> {
    let mut rest = 0;
    frames.iter().map(move |frame| {
        let index = format!("/{}/", frame.index);
        let name = path[rest..].find(&index).map(|at| rest + at + index.len());
        let name = name.unwrap_or(path.len());
        let end = path[name..].find('/').map_or(path.len(), |at| name + at);
        rest = end;
        &path[..end]
    })
}

fn under_way(path: &str, frame: &Frame) -> TaskUnderWay {
    let none = (None, None, None, None);
    let (position, (index, items, attempt, error)) = match &frame.at {
        At::Effect | At::Again { .. } => (Position::Effect, none),
        At::Do => (Position::Do, none),
        At::For { items, at } => (Position::For, (Some(*at), Some(items.len()), None, None)),
        At::Try(tries) => (Position::Try, (None, None, Some(tries.attempt), None)),
        At::Pause(tries) => (Position::Pause, (None, None, Some(tries.attempt), None)),
        At::Catch { error } => (Position::Catch, (None, None, None, Some(shown(error)))),
        At::Parallel { items, .. } => (Position::Parallel, (None, Some(items.len()), None, None)),
        At::Branch { at, .. } => (Position::Branch, (Some(*at), None, None, None)),
    };
    TaskUnderWay {
        path: path.to_owned(),
        position,
        started_at: frame.began.into(),
        until: frame.until.map(Into::into),
        index,
        items,
        attempt,
        error,
        input: shown(&frame.input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::OffsetDateTime;

    fn frame(index: usize) -> Frame {
        Frame {
            index,
            input: Value::Null,
            raw: None,
            began: OffsetDateTime::UNIX_EPOCH,
            until: None,
            unanswered: Vec::new(),
            at: At::Do,
        }
    }

    #[test]
    fn each_task_under_way_has_its_path() {
        let frames = [frame(2), frame(0), frame(12)];
        let path = "/do/2/0/try/0/nap/do/12/a~1b";
        let found: Vec<&str> = paths(path, &frames).collect();
        assert_eq!(found, ["/do/2/0", "/do/2/0/try/0/nap", path]);
        let none: Vec<&str> = paths("", &frames[..1]).collect();
        assert_eq!(none, [""]);
    }

    #[test]
    fn a_long_value_is_not_shown() {
        let long = json!("x".repeat(SHOWN_BYTES));
        assert_eq!(
            (shown(&long).bytes, shown(&long).value),
            (SHOWN_BYTES + 2, Value::Null)
        );
        assert_eq!(shown(&json!([1])).value, json!([1]));
    }
}
