//! The door's metrics, which its parts count.

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

/// What the door does just now, and has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections open now.
    pub connections: usize,
    /// Connections taken since the start.
    pub connections_accepted: u64,
    /// Connections closed at once because too many were open.
    pub connections_refused: u64,
    /// Failed accepts, such as those without a file descriptor left.
    pub accept_failures: u64,
    /// Answers by the first digit of their status, 1 to 5, at index 0 to 4.
    pub answers_by_class: [u64; 5],
    /// Answers that came after the door had given up on their request.
    pub answers_discarded: u64,
    /// Bytes of whole answers now that their clients have not taken, those apart that answers share.
    pub answer_bytes: u64,
    /// Answers that were cut off since the start, because the budget was used up and their clients were the slowest.
    pub answers_cut: u64,
    /// Requests that wait for a thread now.
    pub queue_length: usize,
    /// Requests between their header block and the beginning of their answer now.
    pub in_flight: usize,
    /// Bytes of bodies held now.
    pub body_bytes: u64,
    /// Streams open now.
    pub streams: usize,
    /// Request threads that take work now.
    pub request_threads: usize,
    /// Request threads held by one request beyond its deadline now.
    pub stuck_threads: usize,
    /// Request threads started in place of stuck ones since the start.
    pub threads_replaced: u64,
    /// Panics caught in handlers since the start.
    pub panics: u64,
    /// How long ago the door's thread last looked after the request threads: a second at most, unless
    /// it is held up.
    pub still: Duration,
}

/// Counters that every part of the door writes.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) connections: AtomicUsize,
    pub(super) connections_accepted: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) accept_failures: AtomicU64,
    pub(super) answers_by_class: [AtomicU64; 5],
    pub(super) answers_discarded: AtomicU64,
    pub(super) in_flight: AtomicUsize,
    pub(super) body_bytes: AtomicU64,
    pub(super) answer_bytes: AtomicU64,
    pub(super) answers_cut: AtomicU64,
    pub(super) streams: AtomicUsize,
    pub(super) stuck_threads: AtomicUsize,
    pub(super) request_threads: AtomicUsize,
    pub(super) threads_replaced: AtomicU64,
    pub(super) panics: AtomicU64,
}
