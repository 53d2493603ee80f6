//! What readers of a run see: its events, hints that there are new ones, and text as it is written.

pub mod events;
pub mod feed;
pub mod text;
