//! Development mode.

pub mod provider;
