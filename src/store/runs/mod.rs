//! Runs: the narrow row that is fenced, its payload, its children, and the lists.
//!
//! A run is carried on by whoever claimed it last: [`claim`] raises the row's lease epoch, and every later [`commit`] of the
//! holder carries that epoch and expects the run to be `running`. A commit that meets another epoch changes nothing, and its
//! holder stops. A finished state never changes, and a run that was asked to cancel ends in no other way (`fenced-run`).
//!
//! # Locks
//!
//! Every transaction takes the locks that it needs in one order (`locks-from-root-to-leaf`): runs from the root to the
//! leaves, runs of one level by id; then the rows of their children; then approvals; then jobs by id. A run's job is older
//! than those of the runs below it. So no two of them wait for each other.
//!
//! | who | locks |
//! |---|---|
//! | a holder's commit | the run's row; rows of children that it takes; approvals that wait, if the run ends; its job, if the run waits or ends; the conversation of a turn that ends, or that it begins |
//! | a child's end | a share of the parent's row; the child's row; its row among the parent's children; the parent's job, if the parent waits for children, and the child's |
//! | a decision about an approval | the run's row; the approval; the run's job, if the run waits for an approval |
//! | a cancel | a share of the parent's row; the run's row; rows of the runs below it, level by level, if they are few; the jobs of all |
//! | a batch of a large cancel | the row of the run at the top; rows of parents on one level; rows of their children; the jobs of these |
//!
//! # Parking
//!
//! Parking and waking look at each other under the parent's row lock (`no-lost-wake-up`). The commit that parks a run takes
//! that lock, looks for children that have ended and that the run has not seen, and says [`Outcome::NewsArrived`] instead of
//! waiting if there are any. A child's end takes a share of the lock, writes its state, and makes the parent's job due if the
//! parent waits. Whichever comes second sees what the first has done. A wake that meets a running parent is not lost: the
//! parent looks before it waits. Approvals are the same: a decision takes the run's row, which a run that is about to wait for
//! it has locked.
//!
//! Not here: what a run does (`runtime`), and the queue of jobs (`jobs`).

mod cancel;
mod child_turns;
mod children;
mod claim;
mod commit;
mod count;
mod create;
mod end;
mod ended;
mod erase;
mod hold;
mod labels;
mod lease;
mod lists;
mod new_child;
mod partitions;
mod payload;
mod request_key;
mod retry;
mod rows;
mod start_options;
pub(super) mod storable;

pub use cancel::{Cancelled, cancel, cancel_batch, has_many_below, job_payload};
pub use children::{
    CHILDREN_AT_ONCE, Child, ChildJob, ChildState, OUTPUTS_BYTES, Unseen, UnseenChild, children,
    unseen_children,
};
pub(super) use claim::begun_of;
pub use claim::{claim, deaths_in_a_row, interrupted, is_claimed};
pub use commit::{Announce, Outcome, StepCommit, Wait, Written, commit, commit_in};
pub use count::{Counted, count};
pub use create::{Begins, NewJob, NewRun, insert};
pub use end::End;
pub use ended::{EndedRun, Totals};
pub use erase::{ended_before, erase_payloads, note_webhook_event, unerased_of_conversation};
pub use hold::{hold, is_held, release};
pub use labels::{LABELS_MOST, LabelFilter, Labels};
pub use lease::{DatabaseAhead, Held, HeldJob, Lease, OwnChild, job_lost};
pub use lists::{AGENT_TURN, Branch, Details, Filters, details, ids_between, list};
pub use new_child::{ConversationTurn, NewChild, Refusal};
pub use partitions::attach_partitions;
pub use payload::{Payload, payload};
pub use request_key::{RequestKey, forget_keys, remember_key};
pub use retry::{
    NewChildRetry, NewRetry, TakenOver, Waits, insert_child_retry, insert_retry, take_over,
};
pub(super) use rows::usage_of;
pub use rows::{Agent, Origin, Parent, Run, Status, Tokens, Usage, Via, WaitingFor, find};
pub(in crate::store) use start_options::overridden;
pub use start_options::{Models, Overrides, Root, StartOptions, overrides, start_options};
