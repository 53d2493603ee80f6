//! The front door against raw sockets: what a network can send it, and what it does meanwhile.
//!
//! Each test opens a door of its own on a free loopback port. Nothing here needs a database.

mod descriptors;
mod harness;
mod input;
mod limits;
mod serving;
mod stop;
mod streams;
mod threads;
