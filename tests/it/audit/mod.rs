//! The record of decisions: on disk before it is confirmed, whole, chained, paged and purged.

mod commands;
mod faults;
mod purging;
mod reading;
mod support;
mod verifying;
mod writing;
