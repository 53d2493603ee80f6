//! The definition of a flow: a subset of the Open Workflow DSL 1.0 in its JSON form.
//!
//! Guarantees:
//!
//! - A definition is pure data. It names tools, agents and flows, and knows nothing of the rows behind the names.
//!
//! - Whoever holds a [`tree::Definition`] holds one that was checked: expressions are parsed, schemas are compiled, a target
//!   of `then` exists, and everything named in `use` stands where it is used.
//!
//! Not here: running it (`runtime::flow`).

pub mod tree;
