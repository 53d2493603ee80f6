//! Tasks that have guardrails judge a text.
//!
//! Guarantees: the text stands in no row of the step. Both the transition that begins it and whoever performs it compute it from
//! where the run stands.

use super::Flow;
use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use super::state::State;
use crate::flows::definition::tree::{Call, GuardrailCall, Task, TaskKind};
use crate::guardrails::Point;
use crate::runtime::journal::decision::{NewStep, Next};
use crate::runtime::journal::judged::JudgedText;
use crate::runtime::journal::unreadable;
use crate::store::steps::{Step, StepKind};
use serde_json::{Value, json};

/// The longest text that is judged, in bytes.
const TEXT_BYTES_MOST: usize = 1024 * 1024;

/// What guardrails judge.
pub(in crate::runtime) struct JudgedSubject<'a> {
    pub(in crate::runtime) point: Point,
    pub(in crate::runtime) text: String,
    pub(in crate::runtime) guardrails: &'a Value,
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
}

impl<'a> Machine<'a> {
    pub(super) fn begin_guardrail(&mut self, task: &'a Task, call: &'a GuardrailCall) -> Moved<'a> {
        self.judged_text(task, call)?;
        let step = NewStep {
            kind: StepKind::Guardrail,
            name: StepKind::Guardrail.text().to_owned(),
            path: task.path.clone(),
            request: json!({"point": call.point}),
        };
        Ok(Move::Effect(task, Next::Begin(step)))
    }

    fn judged_text(&mut self, task: &'a Task, call: &'a GuardrailCall) -> Result<String, Raised> {
        let text = self.of_innermost(task, |scope, input, budget| {
            scope.fill(&call.text, input, budget)
        })?;
        let Value::String(text) = text else {
            let said = "What the guardrails are to judge is no text";
            return Err(Raised::validation(said, &task.path));
        };
        if text.len() > TEXT_BYTES_MOST {
            let said = format!(
                "The text that the guardrails are to judge has {} bytes, and may have at most {TEXT_BYTES_MOST}",
                text.len()
            );
            return Err(Raised::too_large(said, &task.path));
        }
        Ok(text)
    }
}

/// What the task answers: a block is data.
pub(super) fn judged<'a>(task: &Task, ended: &Step) -> Moved<'a> {
    let judged: JudgedText = Raised::answer(ended, &task.path)?;
    let output = json!(judged);
    Ok(Move::Leave { output, then: None })
}
