//! What others are told of a commit: endpoints in its transaction, and after it the queue, whose jobs it may have made due.
//!
//! Not here: the events that readers of the run are shown (`State::committed`), and the records of ends (`report_ends`).

use crate::error::Result;
use crate::runtime::services::Services;
use crate::store::Tx;
use crate::store::runs::{Held, Run, StepCommit};

/// Emits the webhook events of a run's end or of its approvals, last in the transaction that writes it: an endpoint's row may be
/// held from here to the commit.
pub(super) fn announce(
    services: &Services,
    run: &Run,
    commit: &StepCommit,
    tx: &mut Tx<'_>,
) -> Result<()> {
    let webhooks = &services.webhooks;
    if commit.end.is_some() {
        return webhooks.run_finished(tx, run.tenant_id, run.run_id);
    }
    let mut opened = commit.approvals.iter();
    opened
        .try_for_each(|opening| webhooks.approval_requested(tx, run.tenant_id, opening.approval_id))
}

/// Whether a commit makes jobs of other runs due: of children that begin, of a parent that waits, of children that are cancelled.
pub(super) fn makes_others_due((held, run): (&Held, &Run), commit: &StepCommit) -> bool {
    let is_alone = run.parent.is_none() && !held.has_children;
    commit.children.is_some() || commit.end.is_some() && !is_alone
}
