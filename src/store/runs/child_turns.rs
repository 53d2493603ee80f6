//! Turns that a flow begins in a conversation.
//!
//! Guarantees: such a turn takes its conversation in the transaction that begins it, and by the rule of turns that are started
//! over the API: one at a time. A turn whose conversation does not take it is a run that has failed, so that its parent reads
//! why. The conversation is then as it was, and the run's row does not name it.
//!
//! Not here: turns that are started over the API (`create`), and the end of a turn (`commit`).

use super::end::End;
use super::ended::EndedRun;
use super::lease::Lease;
use super::new_child::{ConversationTurn, NewChild, Refusal};
use super::rows::{self, Via};
use super::storable;
use crate::error::{Error, Result};
use crate::sql;
use crate::store::conversations::Conversation;
use crate::store::{Columns, Find, Sql};
use serde_json::json;
use time::OffsetDateTime;

/// What became of a turn's conversation.
pub(super) enum Taken<'a> {
    /// It is the turn's. The message has this place in it.
    Open(i64),
    /// It does not take the turn.
    Refused(&'a Refusal),
}

/// Takes the conversation of a turn, and changes the turn to what is to be inserted.
pub(super) fn take<'a>(
    sql: &mut impl Sql,
    lease: &Lease,
    child: &mut NewChild,
    turn: &'a ConversationTurn,
) -> Result<Taken<'a>> {
    let lacking = || Error::internal("a turn of a conversation names none");
    let agent = child.agent.as_mut().ok_or_else(lacking)?;
    let conversation_id = agent.conversation_id.ok_or_else(lacking)?;
    let taken = sql.query_opt(
        sql!("runs/take_conversation"),
        &[
            &lease.tenant_id(),
            &conversation_id,
            &child.run_id,
            &agent.id,
        ],
    )?;
    let Some(row) = taken else {
        agent.conversation_id = None;
        let found = Conversation::find(sql, lease.tenant_id(), conversation_id)?;
        let is_there =
            found.is_some_and(|it| it.agent_id == agent.id && it.erasure_requested_at.is_none());
        return Ok(Taken::Refused(match is_there {
            true => &turn.busy,
            false => &turn.gone,
        }));
    };
    let version: Option<String> = row.column("version")?;
    if let Some(version) = version.filter(|_| agent.via != Via::Explicit) {
        agent.version = version;
        agent.via = Via::Conversation;
        if let Some(said) = child.first.data.get_mut("agent") {
            *said = json!(agent);
        }
    }
    Ok(Taken::Open(row.column("position")?))
}

/// Writes what is left of a turn once its run is inserted: its message, or its end.
pub(super) fn finish(
    sql: &mut impl Sql,
    lease: &Lease,
    (child, turn): (&NewChild, &ConversationTurn),
    taken: &Taken<'_>,
    now: OffsetDateTime,
) -> Result<Option<EndedRun>> {
    let (tenant_id, run_id) = (lease.tenant_id(), child.run_id);
    let refusal = match taken {
        Taken::Open(position) => {
            let message = storable::text(&turn.message);
            sql.execute(
                sql!("runs/insert_message"),
                &[&tenant_id, &run_id, position, &message.as_ref(), &now],
            )?;
            return Ok(None);
        }
        Taken::Refused(refusal) => refusal,
    };
    let error = match &refusal.end {
        End::Failed { error, .. } => error.as_ref(),
        End::Completed { .. } | End::Cancelled => None,
    };
    sql.query_one(
        sql!("runs/refuse_child"),
        &[
            &tenant_id,
            &lease.run_id(),
            &child.slot,
            &run_id,
            &now,
            &refusal.end.failure().map(|failure| &failure.message),
            &error,
            &refusal.event.kind,
            &refusal.event.data,
        ],
    )?;
    let run = rows::find(sql, tenant_id, run_id)?;
    Ok(Some(EndedRun { run, steps: 0 }))
}
