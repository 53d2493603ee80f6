//! Guardrails over the API: those of an agent's version, texts that are tried, and the checks of a run.

mod checks;
mod tries;
mod versions;
