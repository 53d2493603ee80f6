//! What a run does next, as its program decides it from the journal.

use crate::store::runs::End;
use crate::store::steps::Begun;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runtime) enum Next {
    /// A step begins. Its row is to be written first.
    Begin {
        /// The row.
        begun: Begun,
        /// The attempt that was lost to a crash, if one was.
        lost_attempt: Option<i32>,
    },
    /// The run ends.
    End(End),
}
