//! Tasks that have guardrails judge a text.
//!
//! Guarantees: the text stands in no row of the step. Both the transition that begins it and whoever performs it compute it from
//! where the run stands.

use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use crate::flows::definition::tree::{GuardrailCall, Task};
use crate::guardrails::Point;
use crate::runtime::journal::decision::{NewStep, Next};
use crate::runtime::journal::judged::JudgedText;
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

    pub(super) fn judged_text(
        &mut self,
        task: &'a Task,
        call: &'a GuardrailCall,
    ) -> Result<String, Raised> {
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
