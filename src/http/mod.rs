//! What speaks HTTP to clients.

pub mod door;
