//! Approvals, written straight into the database, as a run opens them.

use agent_runtime::ids::Clock;
use postgres::Client;
use uuid::Uuid;

/// An approval that waits.
pub(crate) struct NewApproval {
    pub(crate) tenant_id: Uuid,
    pub(crate) project_id: Uuid,
    pub(crate) run_id: Uuid,
    pub(crate) requested_by: Uuid,
    pub(crate) role: &'static str,
    /// How long it waits yet.
    pub(crate) seconds: i32,
}

impl NewApproval {
    /// Writes it; its id.
    pub(crate) fn insert(&self, client: &mut Client, clock: &Clock) -> Uuid {
        let approval_id = clock.new_id();
        let insert = "with subject as (
               insert into approval_subjects (tenant_id, approval_id, run_id, context) values ($1, $2, $4, '{\"amount\": 50}')
             ), opened as (
               insert into approval_log (tenant_id, approval_id, kind, at) values ($1, $2, 'opened', now())
             )
             insert into approvals (tenant_id, approval_id, project_id, run_id, root_run_id, step, path, source,
               required_role, title, status, requested_by, created_at, expires_at, subject_digest)
             values ($1, $2, $3, $4, $4, 1, '/do/0', 'flow', $5, 'Pay a refund', 'waiting', $6, now(),
               now() + $7 * interval '1 second', sha256('subject'))";
        let (tenant_id, project_id, run_id) = (&self.tenant_id, &self.project_id, &self.run_id);
        let seconds = f64::from(self.seconds);
        let parameters: [&(dyn postgres::types::ToSql + Sync); 7] = [
            tenant_id,
            &approval_id,
            project_id,
            run_id,
            &self.role,
            &self.requested_by,
            &seconds,
        ];
        client.execute(insert, &parameters).unwrap();
        approval_id
    }
}
