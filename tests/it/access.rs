//! Who may do what, with a real OpenFGA: roles, keys, lists, the order of record and effect, open
//! streams, and an authorization server that is slow or away.

mod asker;
mod away;
mod keys;
mod lists;
mod order;
mod roles;
mod streams;
mod world;
