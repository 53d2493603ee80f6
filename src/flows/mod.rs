//! Flows: what their authors write.
//!
//! Not here: how a flow runs (`runtime`), and the rows that hold flows (`store`).

pub mod definition;
