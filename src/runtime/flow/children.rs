//! Tasks whose effect is other runs: turns of agents, other flows, branches of a `fork`, iterations of a parallel loop.
//!
//! A branch is a run of the same flow that begins at a place of its parent's stack. Its parent waits meanwhile, so the branch
//! reads where that stands. What it exports ends with it.

use super::about::About;
use super::machine::{Machine, Move, Moved, unreadable_state};
use super::raised::Raised;
use super::state::{At, check_kept};
use crate::failure::Failure;
use crate::flows::definition::tree::{AgentCall, For, OnError, Subflow, Task, TaskKind};
use crate::runtime::journal::call::UnbegunRun;
use crate::runtime::journal::decision::{ChildRun, Family, FamilyCall, NewStep, Next};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::{ChildResult, ChildrenRequest, REFUSED};
use crate::runtime::turn::definition::{self, MESSAGE_BYTES};
use crate::store::runs::{Agent, ChildState, End};
use crate::store::steps::{Step, StepKind, StepStatus};
use crate::text::beginning;
use serde_json::{Value, json};
use uuid::Uuid;

impl<'a> Machine<'a> {
    pub(super) fn begin_agent(&mut self, task: &'a Task, agent: &'a AgentCall) -> Moved<'a> {
        let Some(found) = self.about.agent(&agent.agent, agent.version.as_deref()) else {
            let said = match &agent.version {
                Some(version) => format!("The agent {} has no version {version}", agent.agent),
                None => format!("There is no agent {} with a version", agent.agent),
            };
            let kind = ("runtime", 404, "The agent cannot run");
            return Err(Raised::of(kind, said, &task.path));
        };
        let (message, conversation) = self.of_innermost(task, |scope, input, budget| {
            let message = scope.fill(&agent.message, input, budget)?;
            let conversation = scope.fill_some(agent.conversation.as_ref(), input, budget)?;
            Ok((message, conversation))
        })?;
        let message = match message {
            Value::String(text) => text,
            value => value.to_string(),
        };
        if message.len() > MESSAGE_BYTES {
            let bytes = message.len();
            let said = format!("The message has {bytes} bytes, and a turn takes {MESSAGE_BYTES}");
            return Err(Raised::too_large(said, &task.path));
        }
        if message.trim().is_empty() {
            let said = "The message to the agent is blank";
            return Err(Raised::validation(said, &task.path));
        }
        let conversation_id = conversation_of(&conversation, &task.path)?;
        let agent = Agent {
            id: found.agent_id,
            version: found.version.clone(),
            // A dry run changes nothing.
            conversation_id: conversation_id.filter(|_| !self.about.is_dry_run),
            via: found.via,
        };
        let child = definition::child(agent, &json!(message));
        Ok(self.run_of(task, child, None))
    }

    pub(super) fn begin_subflow(&mut self, task: &'a Task, flow: &'a Subflow) -> Moved<'a> {
        let Some(version) = self.about.flow(&flow.flow_id, flow.version.as_deref()) else {
            let said = match &flow.version {
                Some(version) => format!("The flow {} has no version {version}", flow.flow_id),
                None => format!("There is no flow {} with a version", flow.flow_id),
            };
            let kind = ("runtime", 404, "The flow cannot run");
            return Err(Raised::of(kind, said, &task.path));
        };
        let input = self.of_innermost(task, |scope, input, budget| match &flow.input {
            Some(template) => scope.fill(template, input, budget),
            None => Ok(input.clone()),
        })?;
        let named = ("The input of the flow that it runs", &input);
        check_kept(named, &task.path)?;
        let child = ChildRun {
            flow_id: flow.flow_id.clone(),
            flow_version: version,
            agent: None,
            input,
            branch: None,
        };
        Ok(self.run_of(task, child, None))
    }

    /// Begins a run whose failure is the task's own, unless a dry run takes an answer for it. `call`: of a tool that it is.
    pub(super) fn run_of(
        &mut self,
        task: &'a Task,
        child: ChildRun,
        call: Option<FamilyCall>,
    ) -> Move<'a> {
        let is_skipped = child.agent.is_some() && self.about.skips_models;
        if !is_skipped && !self.about.fixtures.contains_key(&task.path) {
            let family = Family {
                children: vec![child],
                call,
                ..Family::default()
            };
            return self.spawn(task, family);
        }
        let request = UnbegunRun {
            flow_id: child.flow_id,
            flow_version: child.flow_version,
            agent: child.agent,
            input: child.input,
        };
        let step = NewStep {
            kind: StepKind::Child,
            name: call.map_or_else(|| StepKind::Child.text().to_owned(), |call| call.tool),
            path: task.path.clone(),
            request: json!(request),
        };
        Move::Effect(task, Next::Begin(step))
    }

    pub(super) fn begin_fork(&mut self, task: &'a Task, branches: &'a [Task]) -> Move<'a> {
        let children = (0..branches.len())
            .map(|at| branch(self.about, &task.path, at, Value::Null))
            .collect();
        let family = Family {
            children,
            is_fail_fast: true,
            ..Family::default()
        };
        self.spawn(task, family)
    }

    pub(super) fn begin_parallel(&mut self, task: &'a Task, of: &'a For) -> Moved<'a> {
        let items = self.items(task, of)?;
        self.begin_iterations(task, of, (items, Vec::new()))
    }

    /// Begins the iterations of a parallel loop after those that have answered, or ends it.
    fn begin_iterations(
        &mut self,
        task: &'a Task,
        of: &'a For,
        (items, outputs): (Vec<Value>, Vec<Value>),
    ) -> Moved<'a> {
        let Some(parallel) = of.parallel else {
            return Err(unreadable_state());
        };
        let first = outputs.len();
        if first >= items.len() {
            let output = Value::Array(outputs);
            return Ok(Move::Leave { output, then: None });
        }
        let places = usize::try_from(parallel.concurrency).unwrap_or(1).max(1);
        let at_once = items.iter().enumerate().skip(first).take(places);
        let children: Vec<ChildRun> = at_once
            .map(|(at, item)| branch(self.about, &task.path, at, item.clone()))
            .collect();
        let family = Family {
            later: items.len() - first - children.len(),
            children,
            places: Some(i32::try_from(places).unwrap_or(i32::MAX)),
            first_index: i32::try_from(first).unwrap_or(i32::MAX),
            is_fail_fast: parallel.on_error == OnError::FailFast,
            ..Family::default()
        };
        if let Some(frame) = self.state.frames.last_mut() {
            frame.at = At::Parallel {
                items,
                first,
                outputs,
            };
        }
        Ok(self.spawn(task, family))
    }

    /// The iterations of a step of a parallel loop have ended.
    pub(super) fn gathered(&mut self, task: &'a Task, of: &'a For, ended: &Step) -> Moved<'a> {
        let results = results(task, ended)?;
        let request: ChildrenRequest =
            read(Some(&ended.request)).map_err(|_| unreadable_state())?;
        let is_cut = i32::try_from(results.len()) != Ok(request.count);
        let Some(frame) = self.state.frames.last_mut() else {
            return Err(unreadable_state());
        };
        let (
            At::Parallel {
                items, mut outputs, ..
            },
            Some(parallel),
        ) = (std::mem::replace(&mut frame.at, At::Effect), of.parallel)
        else {
            return Err(unreadable_state());
        };
        match parallel.on_error {
            OnError::FailFast => outputs.extend(all_outputs(task, results)?),
            OnError::Collect => outputs.extend(results.into_iter().map(|result| {
                output_of(task, result).unwrap_or_else(|raised| json!({"error": raised.value()}))
            })),
        }
        if is_cut {
            // By the clock of another process.
            let said = "It took longer than its timeout";
            return Err(Raised::timeout(said, &task.path));
        }
        self.begin_iterations(task, of, (items, outputs))
    }

    /// All branches of a `fork` have ended.
    pub(super) fn joined(&mut self, task: &'a Task, ended: &Step) -> Moved<'a> {
        let outputs = all_outputs(task, results(task, ended)?)?;
        let output = Value::Array(outputs);
        Ok(Move::Leave { output, then: None })
    }

    /// Another flow has ended.
    pub(super) fn ran(&mut self, task: &'a Task, ended: &Step) -> Moved<'a> {
        let output = output_of(task, only(task, ended)?)?;
        Ok(Move::Leave { output, then: None })
    }

    /// A turn of an agent has ended.
    pub(super) fn of_agent(&mut self, task: &'a Task, ended: &Step) -> Moved<'a> {
        let result = only(task, ended)?;
        let (run_id, usage) = (result.run_id, result.usage.unwrap_or_default());
        let output = output_of(task, result)?;
        let mut said = json!({"text": output["text"], "runId": run_id, "usage": usage});
        // Of a version with an output schema.
        if let Some(answer) = output.get("json") {
            said["json"] = answer.clone();
        }
        let output = said;
        Ok(Move::Leave { output, then: None })
    }

    /// The begin of a run that is a branch.
    pub(super) fn start_branch(&mut self) -> Moved<'a> {
        let Some(branch) = &self.about.branch else {
            return Err(unreadable_state());
        };
        self.state.frames = branch.frames.clone();
        self.state.context = branch.context.clone();
        let task = self.innermost()?;
        let frame = self.state.frames.last_mut().ok_or_else(unreadable_state)?;
        let item = match (&task.kind, &frame.at) {
            (TaskKind::Fork(_), At::Effect) => None,
            (TaskKind::For(_), At::Parallel { items, .. }) => {
                Some(items.get(branch.at).cloned().ok_or_else(unreadable_state)?)
            }
            _ => return Err(unreadable_state()),
        };
        let first = match item {
            Some(_) => 0,
            None => branch.at,
        };
        frame.at = At::Branch {
            at: branch.at,
            item,
        };
        self.state.data = frame.input.clone();
        Ok(Move::Enter(first))
    }

    fn spawn(&mut self, task: &'a Task, family: Family) -> Move<'a> {
        let count = family.children.len() + family.later;
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        self.state.slots = self.state.slots.saturating_add(count);
        let family = Family {
            path: task.path.clone(),
            // The time of the whole run is asked for at each look: another run, which takes up this one, has its own.
            until: self.deadline_of_tasks(),
            ..family
        };
        Move::Effect(task, Next::Spawn(family))
    }
}

/// The conversation of a turn; none where null is named.
fn conversation_of(named: &Value, path: &str) -> Result<Option<Uuid>, Raised> {
    match named {
        Value::Null => Ok(None),
        Value::String(id) => id.parse().map(Some).map_err(|_| {
            let said = format!("The conversation id {} is no UUID", beginning(id, 64));
            Raised::validation(said, path)
        }),
        _ => {
            let said = "The conversation id is no text";
            Err(Raised::validation(said, path))
        }
    }
}

/// How a turn ends that its conversation does not take: while another turn is under way there, and where there is none.
pub(in crate::runtime) fn refusals(conversation_id: Uuid) -> [End; 2] {
    let of = |kind, said: String| {
        let raised = Raised::of(kind, said.clone(), "");
        End::Failed {
            failure: Failure::quoting(format!("{said}."), raised.failure().summary),
            error: Some(raised.kept()),
        }
    };
    [
        of(
            ("runtime", 409, "The conversation is busy"),
            format!("A turn of the conversation {conversation_id} is under way"),
        ),
        of(
            ("runtime", 404, "There is no such conversation"),
            format!("The agent has no conversation {conversation_id}, or it was erased"),
        ),
    ]
}

/// A branch or an iteration of the task at `path`.
pub(super) fn branch(about: &About, path: &str, at: usize, input: Value) -> ChildRun {
    ChildRun {
        flow_id: about.flow_id.clone(),
        flow_version: about.flow_version.clone(),
        agent: None,
        input,
        branch: Some(format!("{path}/{at}")),
    }
}

fn results(task: &Task, ended: &Step) -> Result<Vec<ChildResult>, Raised> {
    Raised::answer(ended, &task.path).map_err(|raised| match raised.status {
        REFUSED if ended.status == StepStatus::Failed => {
            let said = raised.detail.unwrap_or_default();
            Raised::of(("runtime", REFUSED, "Too many runs"), said, &task.path)
        }
        _ => raised,
    })
}

fn only(task: &Task, ended: &Step) -> Result<ChildResult, Raised> {
    let first = results(task, ended)?.into_iter().next();
    first.ok_or_else(unreadable_state)
}

/// What all runs answered, or the error of the first that failed.
fn all_outputs(task: &Task, results: Vec<ChildResult>) -> Result<Vec<Value>, Raised> {
    let failed = |result: &ChildResult| result.status == ChildState::Failed.text();
    if let Some(first) = results.iter().find(|result| failed(result)) {
        return Err(raised_of(task, first));
    }
    results
        .into_iter()
        .map(|result| output_of(task, result))
        .collect()
}

fn output_of(task: &Task, result: ChildResult) -> Result<Value, Raised> {
    if result.status == ChildState::Completed.text() {
        return Ok(result.output.unwrap_or_default());
    }
    Err(raised_of(task, &result))
}

fn raised_of(task: &Task, result: &ChildResult) -> Raised {
    if result.status == ChildState::Cancelled.text() {
        let said = format!("The run {} was cancelled", result.run_id);
        return Raised::of(("runtime", 500, "Child run cancelled"), said, &task.path);
    }
    let error = result.error.as_ref();
    error
        .and_then(|error| Raised::of_value(error, &task.path))
        .unwrap_or_else(|| {
            let said = result.failure_message.clone().unwrap_or_default();
            Raised::of(("runtime", 500, "Child run failed"), said, &task.path)
        })
}
