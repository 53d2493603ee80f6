//! Commands to a stream thread from other threads.

use super::reader::Reader;
use crate::runtime::progress::feed::Delta;
use uuid::Uuid;

pub(super) enum Command {
    /// A reader comes.
    Join(Box<Reader>),
    /// A run has events up to this number, as the tail saw.
    Moved { run_id: Uuid, seq: i64 },
    /// The tail saw text or reasoning.
    Text(Delta),
    /// The holder of this token may not read the run any more.
    Refused { run_id: Uuid, token_id: Uuid },
    /// The tail begins to look: what came before is to be read again.
    ReadAgain,
    /// The thread is to end.
    Stop,
}

/// Which thread serves a run: all its readers are served together.
pub(super) fn shard_of(run_id: Uuid, shards: usize) -> usize {
    let bytes = run_id.as_bytes();
    usize::from(u16::from_le_bytes([bytes[14], bytes[15]])) % shards
}
