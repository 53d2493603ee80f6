//! Tasks whose effect is other runs: turns of agents, other flows, branches of a `fork`, iterations of a parallel loop.
//!
//! A branch is a run of the same flow that begins at a place of its parent's stack. Its parent waits meanwhile, so the branch
//! reads where that stands. What it exports ends with it.

use super::machine::{Machine, Move, Moved, unreadable_state};
use super::raised::Raised;
use super::state::At;
use crate::flows::definition::tree::{
    AgentCall, For, OnError, PARALLEL_ITEMS_MOST, Parallel, Subflow, Task, TaskKind,
};
use crate::runtime::journal::decision::{ChildRun, Family, Next};
use crate::runtime::journal::wait::ChildResult;
use crate::runtime::turn::definition::{AGENT_TURN, AGENT_TURN_VERSION};
use crate::store::runs::{Agent, ChildState};
use crate::store::steps::Step;
use serde_json::{Value, json};

impl<'a> Machine<'a> {
    pub(super) fn begin_agent(&mut self, task: &'a Task, agent: &'a AgentCall) -> Moved<'a> {
        if agent.conversation.is_some() {
            return Err(Raised::not_yet(&task.path));
        }
        let Some(found) = self.about.agent(&agent.agent, agent.version.as_deref()) else {
            let said = match &agent.version {
                Some(version) => format!("The agent {} has no version {version}", agent.agent),
                None => format!("There is no agent {} with a version", agent.agent),
            };
            let kind = ("runtime", 404, "The agent cannot run");
            return Err(Raised::of(kind, said, &task.path));
        };
        let message = self.of_innermost(task, |scope, input, budget| {
            scope.fill(&agent.message, input, budget)
        })?;
        let message = match message {
            Value::String(text) => text,
            value => value.to_string(),
        };
        let child = ChildRun {
            flow_id: AGENT_TURN.to_owned(),
            flow_version: AGENT_TURN_VERSION.to_owned(),
            agent: Some(Agent {
                id: found.agent_id,
                version: found.version.clone(),
                conversation_id: None,
                via: found.via,
            }),
            input: json!({"message": message}),
            branch: None,
        };
        Ok(self.spawn(task, vec![child], (0, false)))
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
        let child = ChildRun {
            flow_id: flow.flow_id.clone(),
            flow_version: version,
            agent: None,
            input,
            branch: None,
        };
        Ok(self.spawn(task, vec![child], (0, false)))
    }

    pub(super) fn begin_fork(&mut self, task: &'a Task, branches: &'a [Task]) -> Move<'a> {
        let children = (0..branches.len()).map(|at| self.branch(task, at, Value::Null));
        let children = children.collect();
        self.spawn(task, children, (0, true))
    }

    pub(super) fn begin_parallel(&mut self, task: &'a Task, of: &'a For) -> Moved<'a> {
        let items = self.items(task, of, PARALLEL_ITEMS_MOST)?;
        self.spawn_part(task, of, (items, 0, Vec::new()))
    }

    /// Begins as many iterations of a parallel loop as may run at once, or ends it.
    fn spawn_part(
        &mut self,
        task: &'a Task,
        of: &'a For,
        (items, first, outputs): (Vec<Value>, usize, Vec<Value>),
    ) -> Moved<'a> {
        let Some(parallel) = of.parallel else {
            return Err(unreadable_state());
        };
        if first >= items.len() {
            let output = Value::Array(outputs);
            return Ok(Move::Leave { output, then: None });
        }
        let part = items.iter().enumerate().skip(first).take(at_once(parallel));
        let children = part.map(|(at, item)| self.branch(task, at, item.clone()));
        let children = children.collect();
        if let Some(frame) = self.state.frames.last_mut() {
            frame.at = At::Parallel {
                items,
                first,
                outputs,
            };
        }
        let is_fail_fast = parallel.on_error == OnError::FailFast;
        Ok(self.spawn(task, children, (first, is_fail_fast)))
    }

    /// A part of a parallel loop has ended.
    pub(super) fn gathered(&mut self, task: &'a Task, of: &'a For, ended: &Step) -> Moved<'a> {
        let results = results(task, ended)?;
        let Some(frame) = self.state.frames.last_mut() else {
            return Err(unreadable_state());
        };
        let (
            At::Parallel {
                items,
                first,
                outputs,
            },
            Some(parallel),
        ) = (std::mem::replace(&mut frame.at, At::Effect), of.parallel)
        else {
            return Err(unreadable_state());
        };
        let first = first + at_once(parallel);
        let mut outputs = outputs;
        match parallel.on_error {
            OnError::FailFast => outputs.extend(all_outputs(task, results)?),
            OnError::Collect => outputs.extend(results.into_iter().map(|result| {
                output_of(task, result).unwrap_or_else(|raised| json!({"error": raised.value()}))
            })),
        }
        self.spawn_part(task, of, (items, first, outputs))
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

    fn branch(&self, task: &Task, at: usize, input: Value) -> ChildRun {
        ChildRun {
            flow_id: self.about.flow_id.clone(),
            flow_version: self.about.flow_version.clone(),
            agent: None,
            input,
            branch: Some(format!("{}/{at}", task.path)),
        }
    }

    fn spawn(
        &mut self,
        task: &'a Task,
        children: Vec<ChildRun>,
        (first, is_fail_fast): (usize, bool),
    ) -> Move<'a> {
        let count = i32::try_from(children.len()).unwrap_or(i32::MAX);
        self.state.slots = self.state.slots.saturating_add(count);
        let family = Family {
            path: task.path.clone(),
            children,
            first_index: i32::try_from(first).unwrap_or(i32::MAX),
            until: self.nearest_deadline(),
            is_fail_fast,
        };
        Move::Effect(task, Next::Spawn(family))
    }
}

fn at_once(parallel: Parallel) -> usize {
    usize::try_from(parallel.concurrency).unwrap_or(1).max(1)
}

fn results(task: &Task, ended: &Step) -> Result<Vec<ChildResult>, Raised> {
    Raised::answer(ended, &task.path)
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
