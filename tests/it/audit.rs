//! The record of decisions: on disk before it is confirmed, whole, chained, paged and purged.

mod reading;
mod support;
mod writing;
