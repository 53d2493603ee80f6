//! Flows: programs whose definitions are data.
//!
//! Guarantees: nothing is replayed. The state of a run is a program counter ([`state`]), written in the transaction that
//! begins a step. So step 5,000 costs the same as step 5.
//!
//! Not here: performing steps (`steps`), and committing (`driver`).

mod about;
mod approvals;
mod begin;
mod calls;
mod children;
mod deadlines;
mod definitions;
mod evaluate;
mod fixtures;
mod guardrails;
mod limits;
mod machine;
#[cfg(test)]
mod model;
mod next;
mod raised;
mod requests;
pub(super) mod retry;
mod shown;
mod state;
mod task_events;
#[cfg(test)]
mod tests;
mod unanswered;
mod unwind;

pub(super) use self::approvals::end_of_refusal;
pub(super) use self::children::refusals;
pub(super) use self::definitions::Definitions;
pub(super) use self::fixtures::fault as fault_of_fixtures;
pub(super) use self::guardrails::JudgedSubject;
pub use self::limits::FlowLimits;
pub use self::shown::FlowPosition;

use self::about::{About, branch_of};
use self::definitions::Known;
use self::machine::Machine;
use self::state::{At, State};
use super::journal::decision::{ChildRun, Decision};
use super::journal::unreadable;
use crate::error::Result;
use crate::flows::definition::tree::{Call, TaskKind};
use crate::proof::{May, Read};
use crate::store::Sql;
use crate::store::flow_parts;
use crate::store::flow_states::FlowState;
use crate::store::flow_versions::UseKind;
use crate::store::runs::{self, Models, Run};
use crate::store::steps::Step;
use crate::store::turns::Tool;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;
use time::OffsetDateTime;

/// A flow, and where its run stands.
pub(super) struct Flow {
    known: Arc<Known>,
    about: About,
    /// With the step under way, or the newest one; none before the first.
    state: Option<FlowState>,
}

impl Flow {
    /// What the guardrails of the task under way judge.
    ///
    /// # Errors
    /// A sentence, when another version of this program wrote where the run stands.
    pub(in crate::runtime) fn judged_text(&self) -> Result<JudgedSubject<'_>, String> {
        let state = self.state.as_ref().map(State::of_row).transpose();
        let state = state.map_err(|_| unreadable())?.unwrap_or_default();
        let (definition, about) = (&self.known.definition, &self.about);
        let mut machine = Machine::new(definition, about, state, about.started_at);
        let task = machine.innermost().map_err(|_| unreadable())?;
        let TaskKind::Call(Call::Guardrail(call)) = &task.kind else {
            return Err(unreadable());
        };
        let text = machine.judged_text(task, call);
        Ok(JudgedSubject {
            point: call.point,
            text: text.map_err(|_| unreadable())?,
            guardrails: &call.guardrails,
        })
    }

    /// Loads where a run stands, and its newest step. `None`: its project has no such version of a flow.
    ///
    /// # Errors
    /// The database's; internal, when it holds what cannot be read.
    pub(super) fn load(
        sql: &mut impl Sql,
        definitions: &Definitions,
        (run, may, has_begun): (&Run, &impl May<Read, Run>, bool),
    ) -> Result<Option<(Self, Vec<Step>)>> {
        let project = (run.tenant_id, run.project_id);
        let version = (run.flow_id.as_str(), run.flow_version.as_str());
        let Some(known) = definitions.of(sql, project, version)? else {
            return Ok(None);
        };
        let tools = known.uses(UseKind::Tool);
        let loaded = flow_parts::load(sql, may, has_begun, &tools)?;
        let (tenant_id, scope) = (run.tenant_id, loaded.scope);
        let agents = match known.uses(UseKind::Agent).as_slice() {
            [] => Vec::new(),
            uses => flow_parts::agents(sql, tenant_id, uses)?,
        };
        let subflows = match known.uses(UseKind::Flow).as_slice() {
            [] => Vec::new(),
            uses => flow_parts::flows(sql, tenant_id, uses)?,
        };
        let reads_environment = known.definition.needs.environment;
        let root = match run.dry_run || reads_environment {
            true => Some(runs::start_options(sql, may, run)?),
            false => None,
        };
        let about = About {
            fixtures: root.as_ref().map_or_else(Map::new, |root| {
                fixtures::of_flow(&root.options.fixtures, &root.flow_id, &run.flow_id)
            }),
            skips_models: root
                .as_ref()
                .is_some_and(|root| root.options.models == Models::Skip),
            env: root.map(|root| root.options.env).unwrap_or_default(),
            branch: branch_of(&scope)?,
            limits: definitions.limits,
            own_run_id: run.run_id,
            run_id: scope.run_id,
            flow_id: run.flow_id.clone(),
            flow_version: run.flow_version.clone(),
            input: scope.input,
            started_at: scope.started_at,
            is_dry_run: run.dry_run,
            flows: scope.levels,
            tools: loaded.tools,
            agents,
            subflows,
        };
        let flow = Self {
            known,
            about,
            state: loaded.state,
        };
        Ok(Some((flow, loaded.newest.into_iter().collect())))
    }

    /// What comes next, once `newest` has ended.
    pub(super) fn next(&self, newest: Option<&Step>, now: OffsetDateTime) -> Decision {
        let stands = (self.state.as_ref(), newest);
        next::next(&self.known.definition, &self.about, stands, now)
    }

    /// A step began with this state.
    pub(super) fn begun_with(&mut self, state: &FlowState) {
        self.state = Some(state.clone());
    }

    /// What its run may take.
    pub(super) fn limits(&self) -> FlowLimits {
        self.about.limits
    }

    /// How many flows and turns are nested, from the root to this one.
    pub(super) fn level(&self) -> i64 {
        self.about.flows
    }

    /// When the time of the whole run is over, whatever it waits for.
    pub(super) fn ends_at(&self) -> Option<OffsetDateTime> {
        let (definition, about) = (&self.known.definition, &self.about);
        let mut machine = Machine::new(definition, about, State::default(), about.started_at);
        // A timeout that has no value fails the next transition.
        let _ = machine.limit_time();
        machine.run_ends()
    }

    /// Whether its run is dry.
    pub(super) fn is_dry_run(&self) -> bool {
        self.about.is_dry_run
    }

    /// Whether its dry run was started with an answer for the step at `path`.
    pub(super) fn has_fixture(&self, path: &str) -> bool {
        self.about.fixtures.contains_key(path)
    }

    /// The tool that the definition calls by this name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.about.tool(name)
    }

    /// The iterations with these indices of the parallel loop at `path`, which is under way.
    ///
    /// # Errors
    /// A sentence, when another version of this program wrote where the run stands.
    pub(in crate::runtime) fn iterations(
        &self,
        path: &str,
        indices: Range<usize>,
    ) -> Result<Vec<ChildRun>, String> {
        let state = self.state.as_ref().map(State::of_row).transpose();
        let state = state.map_err(|_| unreadable())?.unwrap_or_default();
        let innermost = state.frames.last().map(|frame| &frame.at);
        let Some(At::Parallel { items, .. }) = innermost else {
            return Err(unreadable());
        };
        let items = items.get(indices.clone()).ok_or_else(unreadable)?;
        let of_item =
            |(at, item): (usize, &Value)| children::branch(&self.about, path, at, item.clone());
        Ok(indices.zip(items).map(of_item).collect())
    }
}
