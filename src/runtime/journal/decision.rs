//! A program's decision on what a run does next.

use super::ToolRequest;
use super::call::AskedAgain;
use crate::runtime::progress::events::Event;
use crate::store::approvals::NewApproval;
use crate::store::flow_states::FlowState;
use crate::store::runs::{Agent, End};
use crate::store::steps::StepKind;
use crate::store::tools::TargetKind;
use serde_json::Value;
use std::time::Duration;
use time::OffsetDateTime;

/// Flows and turns that begin each other, from the root of a tree of runs: so many levels at most.
pub(in crate::runtime) const LEVELS_MOST: i64 = 8;

/// What comes next, and of a flow where its run stands with it.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runtime) struct Decision {
    pub(in crate::runtime) next: Next,
    /// Of a flow whose run does not end.
    pub(in crate::runtime) flow_state: Option<FlowState>,
    /// Of a flow: the events of the tasks before it.
    pub(in crate::runtime) events: Vec<Event>,
    /// Of a turn: what is asked for steps from the next one on.
    pub(in crate::runtime) asked: Vec<Asked>,
}

/// An approval to be opened.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runtime) struct Asked {
    /// The step that waits for it.
    pub(in crate::runtime) step: i32,
    /// Where that stands in the program.
    pub(in crate::runtime) path: String,
    /// Of a call of a model: the model's id of the call.
    pub(in crate::runtime) call_id: Option<String>,
    /// What is asked.
    pub(in crate::runtime) new: Box<NewApproval>,
}

impl From<Next> for Decision {
    fn from(next: Next) -> Self {
        Self {
            next,
            flow_state: None,
            events: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// A step that has an effect.
    Begin(NewStep),
    /// A step that waits so long. The run holds no thread and no lease meanwhile.
    Wait {
        /// Where it stands in the program.
        path: String,
        /// How long, from its beginning.
        duration: Duration,
    },
    /// A step that begins child runs, all or as many as have places, and waits until all have ended. The run holds no thread and no lease
    /// meanwhile.
    Spawn(Family),
    /// A step that asks a reviewer, and waits until the approval is closed. The run holds no thread and no lease
    /// meanwhile. The result of the step is an [`ApprovalResult`](super::wait::ApprovalResult).
    Ask {
        /// Where it stands in the program.
        path: String,
        /// What is asked. A dry run opens nothing, and goes on as if it was approved.
        approval: Box<NewApproval>,
        /// Of a flow: the call that is made again once it is approved.
        again: Option<Box<AskedAgain>>,
    },
    /// The run ends.
    End(End),
}

/// A step to be begun. Its number and its attempt are the driver's.
#[derive(Debug, Clone, PartialEq)]
pub struct NewStep {
    /// What it is.
    pub kind: StepKind,
    /// The model's or the tool's name.
    pub name: String,
    /// Where it stands in the program; empty in an agent's turn.
    pub path: String,
    /// What it is asked.
    pub request: Value,
}

/// Child runs that one step begins.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Family {
    /// Where the step stands in the program.
    pub path: String,
    /// Those that begin with the step; together with `later` 1 to [`CHILDREN_AT_ONCE`](crate::store::runs::CHILDREN_AT_ONCE).
    pub children: Vec<ChildRun>,
    /// Of a flow: how many begin after them, each when a place comes free.
    pub later: usize,
    /// How many run at once, where that is bounded.
    pub places: Option<i32>,
    /// Which branch or iteration of the task the first one is.
    pub first_index: i32,
    /// When those that have not ended are cancelled.
    pub until: Option<OffsetDateTime>,
    /// Those that have not ended are cancelled once one has failed or was cancelled.
    pub is_fail_fast: bool,
    /// Of a call of a tool: which. There is one child then.
    pub call: Option<FamilyCall>,
}

/// The call of a tool that a child run is.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilyCall {
    /// The tool's name.
    pub tool: String,
    /// What it is.
    pub target: TargetKind,
    /// Of a call by a model: which of its calls.
    pub(in crate::runtime) request: Option<ToolRequest>,
}

/// A child run to be begun. Project, creator and `dryRun` are its parent's.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildRun {
    /// What runs.
    pub flow_id: String,
    /// Its version.
    pub flow_version: String,
    /// For an agent's turn. One in a conversation fails unless that takes it.
    pub agent: Option<Agent>,
    /// What it is given.
    pub input: Value,
    /// The parallel branch of its parent's program that it is.
    pub branch: Option<String>,
}
