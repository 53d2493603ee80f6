//! Guardrails: checks of what goes into a run and of what comes out.
//!
//! [`Guardrail`] is a check as its author writes it, [`Compiled`] is ready to judge, and [`Guards`] are those that apply to a run,
//! in the order in which they judge.
//!
//! Guarantees: the built-in checks read a text once or a few times, in time that grows with its length alone. They keep nothing of
//! it, and what they say names what kind of thing was found, and never quotes it. A check that fails counts as its author said,
//! and blocks if nothing was said.
//!
//! Not here: when checks are made, what becomes of a verdict, and its record (`runtime`); checks of packs, for which
//! [`Compiled::judge`] is the door.

mod arguments;
mod authored;
mod bank;
mod check;
mod contacts;
mod credentials;
mod finding;
mod guards;
mod hidden_text;
mod json_parts;
mod judge;
mod judged_text;
mod links;
mod patterns;

pub use crate::store::policies::Streaming;
pub use crate::store::run_checks::{CheckOrigin, Made, OnError, Point, Verdict};
pub use authored::{BuiltIn, Config, Fault, GUARDRAILS_MOST, Guardrail, compile_all};
pub use check::{Check, Personal};
pub use finding::Finding;
pub use guards::{Blocked, Cache, Guards, Outcome, Policy};
pub use judge::{Action, Compiled, OnBlock, Subject};
pub use links::Links;
pub use patterns::{PatternFault, Patterns};

/// The expressions of the built-in checks, for a benchmark that looks for all of them in one pass.
#[cfg(feature = "bench")]
pub fn expressions() -> Vec<&'static str> {
    let each = [
        bank::expressions(),
        contacts::expressions(),
        links::expressions(),
    ];
    each.concat()
        .into_iter()
        .chain(credentials::expressions())
        .collect()
}

#[cfg(test)]
mod authored_tests;
#[cfg(test)]
mod judge_tests;
#[cfg(test)]
mod tests;
