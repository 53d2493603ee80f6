//! The lease on a run: who may write to it, and how far its holder has come.

use super::rows::{Parent, Run, WaitingFor};
use crate::error::{Code, Error};
use crate::proof::{May, Read, Write};
use time::Duration;
use uuid::Uuid;

/// The hold on a run, since one claim: what every write of its holder carries. Only a claim makes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    tenant_id: Uuid,
    run_id: Uuid,
    epoch: i64,
    parent: Option<Parent>,
    /// Of a run below another.
    root: Option<Uuid>,
}

impl Lease {
    pub(super) fn new(run: &Run, epoch: i64) -> Self {
        Self {
            tenant_id: run.tenant_id,
            run_id: run.run_id,
            epoch,
            parent: run.parent,
            root: run.parent.map(|_| run.root_run_id),
        }
    }

    /// A hold that stands for no claim.
    #[cfg(test)]
    pub(crate) fn for_tests(tenant_id: Uuid, run_id: Uuid) -> Self {
        Self {
            tenant_id,
            run_id,
            epoch: 1,
            parent: None,
            root: None,
        }
    }

    /// The tenant.
    pub fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    /// The run.
    pub fn run_id(&self) -> Uuid {
        self.run_id
    }

    /// A run that this one began, as its holder may end it.
    pub fn child(&self, run_id: Uuid) -> OwnChild {
        OwnChild::new(self, run_id)
    }

    /// The claim's number.
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// Of a run below another: the run at the top of their tree.
    pub(in crate::store) fn root(&self) -> Option<Uuid> {
        self.root
    }

    /// The run that began it, which looks at its end.
    pub(in crate::store) fn parent(&self) -> Option<Parent> {
        self.parent
    }
}

impl May<Read, Run> for Lease {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

impl May<Write, Run> for Lease {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

/// A run that another began, whose holder, or whoever may change that one, may do with it what it may with that one.
#[derive(Debug, Clone, Copy)]
pub struct OwnChild {
    tenant_id: Uuid,
    run_id: Uuid,
}

impl OwnChild {
    /// A child of a run that the caller may change.
    pub(super) fn new(parent: &impl May<Write, Run>, run_id: Uuid) -> Self {
        Self {
            tenant_id: parent.tenant_id(),
            run_id,
        }
    }
}

impl May<Read, Run> for OwnChild {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

impl May<Write, Run> for OwnChild {
    fn tenant_id(&self) -> Uuid {
        self.tenant_id
    }

    fn object_id(&self) -> Uuid {
        self.run_id
    }
}

/// The job of a run that is held: its id and its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldJob {
    /// The job.
    pub job_id: i64,
    /// The claim of it.
    pub lease_id: i64,
    /// How often it had been claimed before; claims that were handed back do not count.
    pub attempts_before: i32,
}

/// The run's job is not this holder's any more.
pub fn job_lost() -> Error {
    Error::new(Code::Conflict, "The run's job is another's now.")
}

/// What the holder of a run carries from one commit to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The claim.
    pub lease: Lease,
    /// The job that carries the run on.
    pub job: HeldJob,
    /// How many events the run has, as far as its holder has counted them, the one of a cancel not counted. A repeated
    /// commit and the next one differ in it.
    pub events_written: i64,
    /// Whether the run has begun child runs.
    pub has_children: bool,
    /// What the run had waited for until the claim.
    pub waited_for: Option<WaitingFor>,
    /// How far PostgreSQL's clock was ahead of this process's at the claim.
    pub database_ahead: DatabaseAhead,
}

/// How far PostgreSQL's clock is ahead of this process's. It was read somewhere between the begin and the end of a
/// statement, so it is known as a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DatabaseAhead {
    /// If it was read at the statement's end.
    pub at_least: Duration,
    /// If it was read at the statement's begin.
    pub at_most: Duration,
}
