//! Who may do what, with a real OpenFGA: roles, keys, lists, the order of record and effect, open
//! streams, changes that were not told yet, and an authorization server that is slow or away; and what `/metrics` says of it.

mod approval_streams;
mod approvals;
mod away;
mod change_streams;
mod checker;
mod environments;
mod hosts;
mod keys;
mod lists;
mod metrics;
mod order;
mod roles;
mod streams;
mod tool_secrets;
mod untold;
mod world;
