//! An agent's turn: its definition, and what it does next. Pure: no database, no clock, no network.

mod answer;
mod context;
pub mod definition;
pub(super) mod next;
pub(super) mod prompt;
