//! An access decision, written straight into the database, as a server records one.

use agent_runtime::ids::{self, Clock};
use postgres::Client;
use uuid::Uuid;

/// The slot of a writer that is no server's.
const SLOT: i32 = 999;

/// Writes a decision of the tenant's; its id. The server has to have recorded one before, or to record none.
pub(crate) fn insert(client: &mut Client, clock: &Clock, tenant_id: Uuid) -> Uuid {
    let id = clock.new_id();
    let at = ids::time_of(id).unwrap();
    let mut tx = client.transaction().unwrap();
    let writer = "insert into audit_writers (slot, epoch, position, decided_at, allowed_digest, denied_digest)
         values ($1, 1, 1, $2, sha256('a'), sha256('b'))
         on conflict (slot) do update set position = audit_writers.position + 1, decided_at = $2
         returning position";
    let position: i64 = tx.query_one(writer, &[&SLOT, &at]).unwrap().get(0);
    let decision = "insert into audit_decisions (tenant_id, slot, position, decided_at, outcome, id, actor_subject,
           action, resource, reason, stage, duration_us)
         values ($1, $2, $3, $4, 'denied', $5, 'user:secret', 'read', 'project:' || $5::uuid, 'secret', 'model', 1500)";
    tx.execute(decision, &[&tenant_id, &SLOT, &position, &at, &id])
        .unwrap();
    tx.commit().unwrap();
    id
}
