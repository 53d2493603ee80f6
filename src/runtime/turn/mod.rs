//! An agent's turn: its definition, and what it does next. Pure: no database, no clock, no network.

pub(super) mod answer;
mod approvals;
mod context;
pub mod definition;
pub(super) mod history;
pub(super) mod next;
pub(super) mod prompt;
