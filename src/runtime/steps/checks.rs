//! Has guardrails judge what an attempt takes in and what it brings, and keeps what they decided for its commit: those of a turn,
//! and those of a task of a flow, whose step is to have them judge.
//!
//! Guarantees: what is judged goes no further before its verdict. The policies that judge stood within the last second.
//!
//! Not here: how checks judge (`guardrails`), and what becomes of what was blocked (`turn::next`).

use super::attempt::Attempt;
use crate::error::Result;
use crate::guardrails::{Guards, Made, Outcome, Point, Policy, Streaming, Subject, Verdict};
use crate::runtime::journal::{Checked, CheckedCall};
use crate::runtime::progress::events::{Event, ToolCall};
use crate::runtime::services::Services;
use crate::runtime::turn::definition::Definition;
use crate::store::policies::{self, Standing};
use crate::store::retry::retry_while_away;
use crate::store::run_checks::{CheckedInput, Checks, NewCheck};
use crate::store::steps::Begun;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How old the policies may be that judge.
const FRESH: Duration = Duration::from_secs(1);

/// Rows of one attempt at most. A model that asks for many calls at once has those left out that allow.
const ROWS_MOST: usize = 1_000;

/// What the guardrails of an attempt decided.
pub(super) struct Checker<'a> {
    services: &'a Services,
    definition: Option<&'a Definition>,
    step: (i32, i32),
    guards: Guards,
    read_at: Instant,
    pub(super) checks: Checks,
    pub(super) events: Vec<Event>,
}

impl<'a> Checker<'a> {
    /// Those that stand now for the attempt's run. Only turns have some.
    pub(super) fn new(attempt: &Attempt<'a>, begun: &Begun) -> Result<Self> {
        let definition = attempt.program.turn();
        let mut checker = Self {
            services: attempt.services,
            definition,
            step: (begun.step, begun.attempt),
            guards: Guards::default(),
            read_at: definition.map_or_else(Instant::now, |definition| definition.read_at),
            checks: Checks::default(),
            events: Vec::new(),
        };
        if let Some(definition) = definition.filter(|_| checker.is_fresh()) {
            checker.guards = checker.guards_of(definition, &definition.turn.policies);
        }
        checker.refresh(attempt)?;
        Ok(checker)
    }

    /// Those of a task of a flow: no policy adds to them.
    pub(super) fn of_task(attempt: &Attempt<'a>, begun: &Begun, guardrails: &Value) -> Self {
        let own = Policy::own(guardrails, Streaming::Held);
        Self {
            services: attempt.services,
            definition: None,
            step: (begun.step, begun.attempt),
            guards: Guards::new(&attempt.services.guardrails, &[own]),
            read_at: Instant::now(),
            checks: Checks::default(),
            events: Vec::new(),
        }
    }

    /// Reads the policies again, unless that was done within the last second.
    ///
    /// # Errors
    /// The database's, where nobody waits for it any longer.
    pub(super) fn refresh(&mut self, attempt: &Attempt<'_>) -> Result<()> {
        let Some(definition) = self.definition else {
            return Ok(());
        };
        if self.is_fresh() {
            return Ok(());
        }
        let run = attempt.run;
        let read_at = Instant::now();
        let standing = retry_while_away(
            || attempt.interrupt.reason().is_some(),
            |_| {
                let mut session = self.services.store.session()?;
                policies::standing(&mut session, run.tenant_id, run.project_id)
            },
        )?;
        self.guards = self.guards_of(definition, &standing);
        self.read_at = read_at;
        Ok(())
    }

    fn is_fresh(&self) -> bool {
        self.read_at.elapsed() < FRESH
    }

    fn guards_of(&self, definition: &Definition, standing: &[Standing]) -> Guards {
        let turn = &definition.turn;
        let own = Policy::own(&turn.guardrails, turn.streaming);
        Guards::new(&self.services.guardrails, &Policy::all(standing, own))
    }

    /// Whether text of the model is held back until its verdict.
    pub(super) fn holds_text(&self) -> bool {
        self.guards.holds_text()
    }

    /// Has the guardrails judge the run's input.
    pub(super) fn check_input(&mut self, text: &str) -> Outcome {
        if !self.guards.has(Point::Input) {
            return Outcome::default();
        }
        let outcome = self.judge(Point::Input, text, None);
        self.checks.input = Some(CheckedInput {
            text: outcome.text.clone(),
            is_refused: outcome.blocked.is_some(),
        });
        outcome
    }

    /// Has them judge what a model wrote: its text and the reasoning, which is dropped where it is not allowed as it is. A text
    /// beside calls that is blocked is dropped, and the calls go on.
    pub(super) fn check_output(&mut self, said: &mut Said<'_>) {
        if !self.guards.has(Point::Output) {
            return;
        }
        let mut is_allowed = true;
        // A model that calls tools may say nothing.
        if !(said.has_calls && said.text.is_empty()) {
            let outcome = self.judge(Point::Output, said.text, None);
            is_allowed = outcome.is_as_it_was();
            if let Some(text) = outcome.text {
                *said.text = text;
            }
            if let Some(blocked) = outcome.blocked {
                said.text.clear();
                if !said.has_calls {
                    said.checked.blocked = Some((Point::Output, blocked));
                }
            }
        }
        if is_allowed && !said.reasoning.is_empty() {
            let outcome = self.counted(&Subject {
                point: Point::Output,
                text: said.reasoning,
                tool: None,
            });
            is_allowed = outcome.is_as_it_was();
            if !is_allowed {
                self.record(&outcome, None);
            }
        }
        if !is_allowed {
            said.reasoning.clear();
        }
    }

    /// Has them judge the calls that a model asks for, all before any is made.
    pub(super) fn check_calls(&mut self, calls: &mut [ToolCall], checked: &mut Checked) {
        if !self.guards.has(Point::ToolArguments) {
            return;
        }
        for (index, call) in calls.iter_mut().enumerate() {
            let outcome = self.check_arguments(&call.name, &call.arguments, Some(index));
            if outcome.blocked.is_some() {
                call.arguments = "{}".to_owned();
            } else if let Some(arguments) = outcome.text {
                call.arguments = arguments;
            }
            if outcome.blocked.is_some() || outcome.approval.is_some() {
                checked.calls.push(CheckedCall {
                    call: index,
                    blocked: outcome.blocked,
                    approval: outcome.approval,
                });
            }
        }
    }

    /// Has them judge the arguments of a call.
    pub(super) fn check_arguments(
        &mut self,
        tool: &str,
        arguments: &str,
        call: Option<usize>,
    ) -> Outcome {
        self.judge_of(Point::ToolArguments, arguments, (Some(tool), call))
    }

    /// Has them judge what a tool answered. The model gets the text that is left in its place.
    pub(super) fn check_result(&mut self, tool: &str, output: &mut String) {
        if !self.guards.has(Point::ToolResult) {
            return;
        }
        let outcome = self.judge(Point::ToolResult, output, Some(tool));
        if let Some(blocked) = outcome.blocked {
            *output = format!(
                "The guardrail {} withheld what the tool answered.",
                blocked.name
            );
        } else if let Some(text) = outcome.text {
            *output = text;
        }
    }

    /// Has them judge a text of a flow.
    pub(super) fn text(&mut self, point: Point, text: &str) -> Outcome {
        self.judge(point, text, None)
    }

    fn judge(&mut self, point: Point, text: &str, tool: Option<&str>) -> Outcome {
        self.judge_of(point, text, (tool, None))
    }

    fn judge_of(
        &mut self,
        point: Point,
        text: &str,
        (tool, call): (Option<&str>, Option<usize>),
    ) -> Outcome {
        let outcome = self.counted(&Subject { point, text, tool });
        self.record(&outcome, call);
        outcome
    }

    fn counted(&self, subject: &Subject<'_>) -> Outcome {
        let outcome = self.guards.judge(subject);
        for made in &outcome.made {
            self.services.counts.guardrail(made.point, made.verdict);
        }
        outcome
    }

    /// Keeps what was decided, for the commit.
    fn record(&mut self, outcome: &Outcome, call: Option<usize>) {
        let (step, attempt) = self.step;
        let call = call.and_then(|call| i32::try_from(call).ok());
        for made in &outcome.made {
            self.events.extend(event(made, self.step, call));
            let is_row = made.verdict != Verdict::Allow || self.checks.made.len() < ROWS_MOST;
            if is_row {
                let ordinal = i32::try_from(self.checks.made.len()).unwrap_or(i32::MAX);
                self.checks.made.push(NewCheck {
                    step,
                    attempt,
                    ordinal,
                    call,
                    made: made.clone(),
                });
            }
        }
    }
}

/// What a model wrote, to be judged.
pub(super) struct Said<'a> {
    pub(super) text: &'a mut String,
    pub(super) reasoning: &'a mut String,
    pub(super) has_calls: bool,
    pub(super) checked: &'a mut Checked,
}

/// Everything but what allows is told to readers of the run, by the check's name alone.
fn event(made: &Made, (step, attempt): (i32, i32), call: Option<i32>) -> Option<Event> {
    let (point, name) = (made.point, made.name.clone());
    match (made.verdict, made.on_error) {
        (Verdict::Allow, _) => None,
        (Verdict::Failed, Some(on_error)) => Some(Event::GuardrailFailed {
            step,
            attempt,
            point,
            call,
            name,
            on_error,
        }),
        (verdict, _) => Some(Event::GuardrailDecided {
            step,
            attempt,
            point,
            call,
            name,
            verdict,
        }),
    }
}
