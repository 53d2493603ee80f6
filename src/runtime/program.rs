//! Programs: what a run executes. Loaded when the run is claimed, and asked for the next step. The
//! only match on kinds of programs.
//!
//! A program is pure: the journal alone decides what comes next, and of a flow its state and its newest step. So every
//! process that takes the run over comes to the same decision.
//!
//! Not here: performing steps (`steps`), and the limits of a run (`driver::plan`).

use super::flow::{Definitions, Flow, JudgedSubject};
use super::journal::decision::{ChildRun, Decision, Next};
use super::journal::unreadable;
use super::turn::definition::{AGENT_TURN, Definition, tool_of};
use super::turn::next;
use super::turn::prompt::{self, Prompt};
use crate::error::Result;
use crate::failure::Failure;
use crate::model::TooLong;
use crate::store::approvals::{self, Opening};
use crate::store::flow_states::FlowState;
use crate::store::runs::{self, Held, HeldJob, Run, StepCommit};
use crate::store::steps::{self, Step};
use crate::store::turns::{self, Tool, Turn};
use crate::store::{Session, Sql};
use crate::tools::Origin;
use serde_json::Value;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// A program that this process has built in, and that no version in the database describes.
#[derive(Debug, Clone, Copy)]
pub struct BuiltIn {
    /// What comes next, from the run's input and its journal, which ends with a completed step if it
    /// has any. Pure: the same input and journal give the same answer.
    pub next: fn(&Value, &[Step]) -> Next,
    /// How long a run of it may be active. Time in which it is parked does not count.
    pub time_limit: Duration,
}

/// What one run runs.
pub(super) enum Program {
    /// A turn of an agent.
    Turn(Box<Definition>),
    /// A built-in program, with the run's input.
    BuiltIn(BuiltIn, Value),
    /// A flow, with where its run stands.
    Flow(Box<Flow>),
}

/// A program, and the journal of its run.
pub(super) type Loaded = (Program, Vec<Step>);

impl Program {
    /// Loads the program of a held run, and the run's journal. `None`: this version of the service
    /// has no such program.
    ///
    /// # Errors
    /// The database's; internal, when it holds what cannot be read.
    pub(super) fn load(
        sql: &mut impl Sql,
        (built_in, definitions): (&HashMap<String, BuiltIn>, &Definitions),
        (run, held): (&Run, &Held),
    ) -> Result<Option<Loaded>> {
        let has_begun = held.events_written > 1;
        if run.flow_id == AGENT_TURN {
            let Some(turn) = turns::load(sql, &held.lease, has_begun)? else {
                return Ok(None);
            };
            let (mut program, journal) = Self::of_turn(turn, run.dry_run)?;
            if let Self::Turn(definition) = &mut program
                && has_begun
                && definition.may_ask()
            {
                definition.asked = approvals::asked_steps(sql, &held.lease)?;
            }
            return Ok(Some((program, journal)));
        }
        let Some(program) = built_in.get(&run.flow_id) else {
            let flow = Flow::load(sql, definitions, (run, &held.lease, has_begun))?;
            return Ok(flow.map(|(flow, journal)| (Self::Flow(Box::new(flow)), journal)));
        };
        let input = runs::payload(sql, &held.lease)?.input;
        let journal = match has_begun {
            true => steps::of_run(sql, &held.lease)?,
            false => Vec::new(),
        };
        Ok(Some((Self::BuiltIn(*program, input), journal)))
    }

    /// Claims and loads a run for the first time, and writes `first` with it, all in
    /// one statement. `None`, and nothing is written, where that does not suit the run.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub(super) fn begin(
        session: &mut Session,
        run: (Uuid, Uuid),
        job: HeldJob,
        first: &StepCommit,
        now: OffsetDateTime,
    ) -> Result<Option<(Run, Held, Loaded)>> {
        let begun = turns::begin(session, run, job, AGENT_TURN, first, now)?;
        let Some((run, held, turn)) = begun else {
            return Ok(None);
        };
        let loaded = Self::of_turn(turn, run.dry_run)?;
        Ok(Some((run, held, loaded)))
    }

    fn of_turn(mut turn: Turn, is_dry_run: bool) -> Result<Loaded> {
        let journal = std::mem::take(&mut turn.journal);
        let definition = Definition::new(turn, is_dry_run)?;
        Ok((Self::Turn(Box::new(definition)), journal))
    }

    /// What comes next, where every step of the journal has ended.
    pub(super) fn next(&self, journal: &[Step], now: OffsetDateTime) -> Decision {
        match self {
            Self::Turn(definition) => next::next(journal, definition),
            Self::BuiltIn(program, input) => (program.next)(input, journal).into(),
            Self::Flow(flow) => flow.next(journal.last(), now),
        }
    }

    /// The children with these indices of the step at `path`, which begins them as places come free.
    ///
    /// # Errors
    /// A sentence, when another version of this program wrote where the run stands.
    pub(super) fn later_children(
        &self,
        path: &str,
        indices: Range<usize>,
    ) -> Result<Vec<ChildRun>, String> {
        match self {
            Self::Flow(flow) => flow.iterations(path, indices),
            Self::Turn(_) | Self::BuiltIn(..) => Err(unreadable()),
        }
    }

    /// These approvals were opened.
    pub(super) fn asked(&mut self, opened: &[Opening]) {
        if let Self::Turn(definition) = self {
            definition.asked.extend(opened.iter().map(|one| one.step));
        }
    }

    /// This has taken the place of the input of a turn.
    pub(super) fn input_became(&mut self, text: &str) {
        if let Self::Turn(definition) = self {
            definition.set_input(text);
        }
    }

    /// A step began with this state: see [`StepCommit::flow_state`].
    pub(super) fn begun_with(&mut self, state: &FlowState) {
        if let Self::Flow(flow) = self {
            flow.begun_with(state);
        }
    }

    /// Whether it is a flow: its decisions need the newest step alone, its calls stand in its own steps, and a step that fails
    /// for good is for it to handle.
    pub(super) fn is_flow(&self) -> bool {
        matches!(self, Self::Flow(_))
    }

    /// Whether its run is dry. A built-in program makes no calls.
    pub(super) fn is_dry_run(&self) -> bool {
        match self {
            Self::Turn(definition) => definition.is_dry_run,
            Self::BuiltIn(..) => false,
            Self::Flow(flow) => flow.is_dry_run(),
        }
    }

    /// Whether its dry run was started with an answer for the step at `path`.
    pub(super) fn has_fixture(&self, path: &str) -> bool {
        matches!(self, Self::Flow(flow) if flow.has_fixture(path))
    }

    /// How long a run of it may be active: see [`Run::active_time`].
    pub(super) fn time_limit(&self) -> Duration {
        match self {
            Self::Turn(definition) => {
                Duration::from_millis(u64::from(definition.limits.turn_timeout_ms))
            }
            Self::BuiltIn(program, _) => program.time_limit,
            // Its timeouts are its own, and waits count in them.
            Self::Flow(flow) => flow.limits().life(),
        }
    }

    /// Why a run of it ends whose time is over, as a sentence.
    pub(super) fn out_of_time(&self) -> Failure {
        match self {
            Self::Turn(definition) => Failure::of(&[
                &"The turn took longer than its limit of ",
                &definition.limits.turn_timeout_ms,
                &" ms (turnTimeoutMs).",
            ]),
            Self::BuiltIn(program, _) => Failure::of(&[
                &"The run took longer than its limit of ",
                &program.time_limit.as_secs(),
                &" s.",
            ]),
            Self::Flow(flow) => Failure::of(&[&flow.limits().out_of_days(), &"."]),
        }
    }

    /// What it is called in a sentence.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Turn(_) => "turn",
            Self::BuiltIn(..) | Self::Flow(_) => "run",
        }
    }

    /// The model that its steps ask, with the model's provider.
    pub(super) fn model(&self) -> Option<&Turn> {
        match self {
            Self::Turn(definition) => Some(&definition.turn),
            Self::BuiltIn(..) | Self::Flow(_) => None,
        }
    }

    /// The turn that it is.
    pub(super) fn turn(&self) -> Option<&Definition> {
        match self {
            Self::Turn(definition) => Some(definition),
            Self::BuiltIn(..) | Self::Flow(_) => None,
        }
    }

    /// What the guardrails of the task under way judge.
    ///
    /// # Errors
    /// A sentence: where the run stands cannot be read, or the program has no such task.
    pub(super) fn judged_text(&self) -> Result<JudgedSubject<'_>, String> {
        match self {
            Self::Flow(flow) => flow.judged_text(),
            Self::Turn(_) | Self::BuiltIn(..) => Err(unreadable()),
        }
    }

    /// What a model step asks.
    ///
    /// # Errors
    /// A sentence: the journal cannot be read, the prompt is too long, or the program asks no model.
    pub(super) fn prompt(&self, journal: &[Step], origin: &Origin) -> Result<Prompt, String> {
        match self {
            Self::Turn(definition) => prompt::prompt(definition, journal, origin),
            Self::BuiltIn(..) | Self::Flow(_) => Err("This program asks no model.".to_owned()),
        }
    }

    /// What a model step asks in place of a prompt that the server found too long. None: it cannot be shortened.
    pub(super) fn prompt_within(
        &self,
        journal: &[Step],
        origin: &Origin,
        refused: &Prompt,
        told: TooLong,
    ) -> Option<Prompt> {
        match self {
            Self::Turn(definition) => {
                prompt::prompt_within(definition, journal, origin, (refused, told))
            }
            Self::BuiltIn(..) | Self::Flow(_) => None,
        }
    }

    /// Whether events are written of the runs that it begins.
    pub(super) fn writes_child_events(&self) -> bool {
        !matches!(self, Self::BuiltIn(..))
    }

    /// When the time of the whole run is over, whatever it waits for. None: it has none.
    pub(super) fn ends_at(&self) -> Option<OffsetDateTime> {
        match self {
            Self::Flow(flow) => flow.ends_at(),
            Self::Turn(_) | Self::BuiltIn(..) => None,
        }
    }

    /// How many flows and turns are nested, from the root to this one.
    pub(super) fn level(&self) -> i64 {
        match self {
            Self::Turn(definition) => definition.turn.levels,
            Self::Flow(flow) => flow.level(),
            Self::BuiltIn(..) => 1,
        }
    }

    /// Its tool of that name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        match self {
            Self::Turn(definition) => tool_of(definition, name),
            Self::Flow(flow) => flow.tool(name),
            Self::BuiltIn(..) => None,
        }
    }
}
