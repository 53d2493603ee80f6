//! Guardrails of a body: of an agent's version, of a policy, of a text to try. What of them is refused.

use crate::error::{Error, Result};
use crate::guardrails::{Guardrail, OnBlock, Point, compile_all};
use crate::runtime::tool_approvals;
use serde_json::Value;

/// What is wrong with a list of guardrails: its place, and what is expected there. `at` is the list's place in the body.
pub(super) fn guardrails_fault(guardrails: &[Guardrail], at: &str) -> Option<(String, String)> {
    if let Err(fault) = compile_all(guardrails) {
        return Some((format!("{at}{}", fault.path), fault.expected));
    }
    let mut approvals = guardrails.iter().enumerate().flat_map(|(index, one)| {
        let faults = one.approval.as_ref().map(tool_approvals::faults);
        let of_list = move |(path, expected): (&str, &str)| {
            (format!("{at}[{index}].approval{path}"), expected.to_owned())
        };
        faults.unwrap_or_default().into_iter().map(of_list)
    });
    approvals.next()
}

/// A fixed text cannot be the answer of a version whose answers fit a schema.
pub(super) fn answers_text_fault(guardrails: &[Guardrail], at: &str) -> Option<(String, String)> {
    let answers =
        |one: &Guardrail| one.on_block == Some(OnBlock::Answer) && one.at.contains(&Point::Output);
    let index = guardrails.iter().position(answers)?;
    let expected = "fail or retry: a text is no answer where the version has an outputSchema";
    Some((format!("{at}[{index}].onBlock"), expected.to_owned()))
}

/// The list as it is stored.
pub(super) fn stored(guardrails: &[Guardrail]) -> Result<Value> {
    serde_json::to_value(guardrails).map_err(Error::internal)
}
