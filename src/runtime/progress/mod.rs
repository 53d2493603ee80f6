//! What readers of a run see: its events, hints about new ones, and text while it is written.

pub mod events;
pub mod feed;
pub mod text;
