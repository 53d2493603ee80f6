//! Where a run of a flow stands: a stack of the tasks under way, what the innermost was given, and what tasks have exported.
//!
//! This is a persisted program counter. Nothing is replayed: whoever takes the run up reads it and the newest step. Its form
//! has a version, which is the oldest one that says all of it, so that earlier builds go on with what they understand:
//!
//! 1. All but the following.
//! 2. In a parallel loop whose iterations begin as places come free. An earlier build would miss those that have not begun.
//! 3. With calls of earlier tries that nobody answered. An earlier build would make them with other keys.
//!
//! A task is named by its index in its list. A version of a flow never changes, so an index means the same for ever.
//!
//! Not here: the table (`store::flow_states`), and what follows (`next`).

use super::limits::FlowLimits;
use super::raised::Raised;
use crate::error::{Error, Result};
use crate::ids::rfc3339;
use crate::json::is_nested_deeper;
use crate::runtime::journal::call::Unanswered;
use crate::store::flow_states::{FORMAT, FlowState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;

/// How many levels of a part are kept. A reader of JSON takes 127, and what shows the part puts it into values of its own.
/// Expressions alone make no more than 100, but a template may set their values into levels of its own.
const KEPT_NESTING_MOST: usize = 96;
/// What the stack of tasks puts around what a task was given.
const STACK_LEVELS: usize = 4;

/// Checks that what is kept, such as a run's input or output, can be read again.
///
/// # Errors
/// It nests too deep.
pub(super) fn check_kept(named: (&str, &Value), path: &str) -> std::result::Result<(), Raised> {
    check_nesting(named, KEPT_NESTING_MOST, path)
}

fn check_nesting(
    (name, part): (&str, &Value),
    most: usize,
    path: &str,
) -> std::result::Result<(), Raised> {
    if !is_nested_deeper(part, most) {
        return Ok(());
    }
    let said = format!(
        "{name} nests deeper here than {most} levels of arrays and objects, the most that are kept"
    );
    Err(Raised::too_large(said, path))
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct State {
    /// The tasks under way, outermost first.
    pub(super) frames: Vec<Frame>,
    /// What the last task answered, or what the innermost list was given.
    pub(super) data: Value,
    /// `$context`.
    pub(super) context: Value,
    /// Tasks entered so far.
    pub(super) tasks: i32,
    /// Slots given to child runs so far.
    pub(super) slots: i32,
}

/// A task under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Frame {
    /// Which task of its list.
    #[serde(rename = "task")]
    pub(super) index: usize,
    /// `$input`: what it was given, after `input.from`.
    pub(super) input: Value,
    /// `$task.input`, where `input.from` made another value of it and an expression of the flow reads it. A build that does
    /// not know the field does not know `$task.input` either, so the form of the state is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) raw: Option<Value>,
    #[serde(with = "rfc3339")]
    pub(super) began: OffsetDateTime,
    /// When its time is over.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) until: Option<OffsetDateTime>,
    /// Of a list that may be tried again: calls of earlier tries that nobody answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unanswered: Vec<CallBefore>,
    pub(super) at: At,
}

/// A call of an earlier try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CallBefore {
    /// Which call it is: a digest of its task and what that asked.
    #[serde(rename = "call")]
    pub(super) digest: String,
    #[serde(flatten)]
    pub(super) unanswered: Unanswered,
}

/// Where a task under way stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum At {
    /// In its effect, or at its begin.
    Effect,
    /// To begin again, in a run that takes up a failed one. With the key of a call whose answer was never recorded: whoever
    /// got that call knows it again.
    Again {
        #[serde(flatten, default)]
        unanswered: Option<Unanswered>,
        /// Of a list that failed between two tries: the try that comes next.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tries: Option<Tries>,
    },
    /// In its list.
    Do,
    /// In this iteration of a loop.
    For {
        items: Vec<Value>,
        #[serde(rename = "item")]
        at: usize,
    },
    /// In the list that is tried.
    Try(Tries),
    /// Between two tries.
    Pause(Tries),
    /// In the list that handles the error.
    Catch { error: Value },
    /// In a parallel loop, whose iterations are runs of their own.
    Parallel {
        items: Vec<Value>,
        /// The first item of the step under way: not the first of all where a build before form 2 began the loop, part by part.
        first: usize,
        /// What the iterations before it answered.
        outputs: Vec<Value>,
    },
    /// In the branch that this run is: a branch of a `fork`, or an iteration of a parallel loop with its item.
    Branch {
        #[serde(rename = "branch")]
        at: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<Value>,
    },
}

/// How often a list was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Tries {
    /// This try, from 1.
    pub(super) attempt: u32,
    /// When the first began.
    #[serde(with = "rfc3339")]
    pub(super) first: OffsetDateTime,
    /// When the time of this try is over.
    #[serde(
        default,
        with = "rfc3339::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) until: Option<OffsetDateTime>,
}

impl State {
    /// Reads the row.
    ///
    /// # Errors
    /// Internal, when it cannot be read.
    pub(super) fn of_row(row: &FlowState) -> Result<Self> {
        Ok(Self {
            frames: Vec::deserialize(&row.frames).map_err(Error::internal)?,
            data: row.data.clone(),
            context: row.context.clone(),
            tasks: row.tasks,
            slots: row.slots,
        })
    }

    /// Moves the times that tasks have, so that what was left of them when the run failed is left now.
    pub(super) fn move_deadlines(&mut self, by: time::Duration) {
        for frame in &mut self.frames {
            frame.until = frame.until.map(|until| until + by);
            if let At::Try(tries)
            | At::Pause(tries)
            | At::Again {
                tries: Some(tries), ..
            } = &mut frame.at
            {
                tries.first += by;
                tries.until = tries.until.map(|until| until + by);
            }
        }
    }

    /// Whether the innermost task is to begin again.
    pub(super) fn begins_again(&self) -> bool {
        let innermost = self.frames.last();
        innermost.is_some_and(|frame| matches!(frame.at, At::Again { .. }))
    }

    fn format(&self) -> i16 {
        if self.frames.iter().any(|frame| !frame.unanswered.is_empty()) {
            return FORMAT;
        }
        match self.frames.last().map(|frame| &frame.at) {
            Some(At::Parallel { .. }) => 2,
            _ => 1,
        }
    }

    /// The row, within its bounds.
    ///
    /// # Errors
    /// What is too large, as an error of the task at `path`.
    pub(super) fn row(
        &self,
        limits: &FlowLimits,
        path: &str,
    ) -> std::result::Result<FlowState, Raised> {
        let frames = json!(self.frames);
        // At a step the data is what its task was given, which stands in the stack.
        let given = self.frames.last().map(|frame| &frame.input);
        let parts = [
            ("The data of the flow", &self.data, limits.data_bytes, 0),
            (
                "The data of the flow",
                given.unwrap_or(&Value::Null),
                limits.data_bytes,
                0,
            ),
            (
                "The context of the flow",
                &self.context,
                limits.data_bytes,
                0,
            ),
            (
                "The stack of tasks",
                &frames,
                limits.stack_bytes(),
                STACK_LEVELS,
            ),
        ];
        for (name, part, most, more) in parts {
            let bytes = bytes_of(part);
            if bytes > most {
                let said = format!(
                    "{name} has {bytes} bytes of JSON here, and at most {most} are kept (SVC_MAX_FLOW_DATA_BYTES)"
                );
                return Err(Raised::too_large(said, path));
            }
            check_nesting((name, part), KEPT_NESTING_MOST + more, path)?;
        }
        Ok(FlowState {
            format: self.format(),
            frames,
            data: self.data.clone(),
            context: self.context.clone(),
            tasks: self.tasks,
            slots: self.slots,
        })
    }
}

/// The length of a value as JSON.
pub(super) fn bytes_of(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}
