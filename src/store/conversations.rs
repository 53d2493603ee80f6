//! Conversations with an agent, and their messages.
//!
//! Messages are numbered within their conversation. They are read here, and written with the turns
//! that produce them (`store::runs`).

use super::agents::{Agent, BACK_AGAIN, not_started};
use super::page::Request;
use super::readable::{Readable, readable};
use super::{Columns, Find, Finding, FromRow, Sql, Tx, on_violation};
use crate::error::{Code, Error, Result};
use crate::proof::{Caller, Kind, Listing, May, Read, Scope, Write};
use crate::{find_sql, from_row, list_sql, sql, texts};
use postgres::Row;
use postgres::error::SqlState;
use std::collections::HashSet;
use time::OffsetDateTime;
use uuid::Uuid;

/// A page of messages ends with the one that takes it past this many bytes of text.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// A conversation.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// Its id.
    pub conversation_id: Uuid,
    /// The agent's project.
    pub project_id: Uuid,
    /// Whom it is with.
    pub agent_id: Uuid,
    /// The version that it was begun with, if it was begun with one.
    pub version: Option<String>,
    /// Its title, which may be empty.
    pub title: String,
    /// The turn that is under way.
    pub active_run_id: Option<Uuid>,
    /// Who began it.
    pub created_by: Uuid,
    /// When it was begun.
    pub created_at: OffsetDateTime,
    /// When it was asked to be erased: no run starts in it since.
    pub erasure_requested_at: Option<OffsetDateTime>,
    /// When all of it was erased.
    pub erased_at: Option<OffsetDateTime>,
}

texts! {
    /// Who said a message.
    MessageRole {
        /// The person, or the app for them.
        User = "user",
        /// The agent.
        Assistant = "assistant",
    }
}

/// What was said.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its number in the conversation, from 1.
    pub position: i64,
    /// Who said it.
    pub role: MessageRole,
    /// The text.
    pub content: String,
    /// The turn in which it was said.
    pub run_id: Uuid,
    /// When it was said.
    pub created_at: OffsetDateTime,
}

/// A conversation to begin.
#[derive(Debug)]
pub struct New<'a> {
    /// See [`Conversation`].
    pub conversation_id: Uuid,
    /// The agent's project.
    pub project_id: Uuid,
    /// See [`Conversation`].
    pub version: Option<&'a str>,
    /// See [`Conversation`].
    pub title: &'a str,
}

/// Which conversations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// With this agent alone.
    pub agent_id: Option<Uuid>,
    /// Of this project alone.
    pub project_id: Option<Uuid>,
}

impl Kind for Conversation {
    const NAME: &'static str = "conversation";
    fn id(&self) -> Uuid {
        self.conversation_id
    }
    fn scope(&self) -> Scope {
        Scope::InProject(self.project_id)
    }
}

impl Find for Conversation {
    const FINDING: Finding = find_sql!("conversations/find", "project", "project_id");
    fn read(row: &Row) -> Result<Option<Self>> {
        Self::from_row(row).map(Some)
    }
}

from_row!(Conversation {
    conversation_id,
    project_id,
    agent_id,
    version,
    title,
    active_run_id,
    created_by,
    created_at,
    erasure_requested_at,
    erased_at
});

from_row!(Message {
    position,
    role,
    content,
    run_id,
    created_at
});

/// Begins a conversation with the agent.
///
/// # Errors
/// `project-archived`, `agent-archived`. `not-found`: the agent has no such version. `database-unavailable`.
pub fn insert(
    tx: &mut Tx<'_>,
    may: &impl May<Write, Agent>,
    creator: &Caller,
    new: &New<'_>,
    now: OffsetDateTime,
) -> Result<Conversation> {
    let inserted = tx.query_opt(
        sql!("conversations/insert"),
        &[
            &may.tenant_id(),
            &new.conversation_id,
            &new.project_id,
            &may.object_id(),
            &new.version,
            &new.title,
            &creator.user_id,
            &now,
        ],
    );
    // The agent, its project and its tenant stand: the version alone can be missing.
    let row = on_violation(inserted, &SqlState::FOREIGN_KEY_VIOLATION, || {
        Error::not_found("agent version", new.version.unwrap_or_default())
    })?;
    match row {
        Some(row) => Conversation::from_row(&row),
        None => {
            let of = (new.project_id, Some(may.object_id()), None);
            Err(not_started(tx, may.tenant_id(), of, BACK_AGAIN)?)
        }
    }
}

/// Marks a conversation as one to be erased, and whether it was not marked before.
///
/// # Errors
/// `conflict` while a run is under way in it. `database-unavailable`.
pub fn request_erasure(
    tx: &mut Tx<'_>,
    may: &impl May<Write, Conversation>,
    now: OffsetDateTime,
) -> Result<(Conversation, bool)> {
    let (tenant_id, id) = (may.tenant_id(), may.object_id());
    let found = tx.query_one(sql!("conversations/lock"), &[&tenant_id, &id])?;
    let conversation = Conversation::from_row(&found)?;
    if let Some(run_id) = conversation.active_run_id {
        let message = format!(
            "Run {run_id} is under way in this conversation. Cancel it, or wait until it has ended; then erase the conversation."
        );
        return Err(Error::new(Code::Conflict, message).detail("activeRunId", run_id.to_string()));
    }
    if conversation.erasure_requested_at.is_some() {
        return Ok((conversation, false));
    }
    let marked = tx.query_one(
        sql!("conversations/request_erasure"),
        &[&tenant_id, &id, &now],
    )?;
    Ok((Conversation::from_row(&marked)?, true))
}

/// Deletes the messages that are left, and says that all of the conversation is erased.
pub fn finish_erasure(
    tx: &mut Tx<'_>,
    tenant_id: Uuid,
    conversation_id: Uuid,
    now: OffsetDateTime,
) -> Result<()> {
    tx.execute(
        sql!("conversations/finish_erasure"),
        &[&tenant_id, &conversation_id, &now],
    )?;
    Ok(())
}

/// A page of the conversations that the caller may read.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Conversation>,
    filter: Filter,
    page: &Request,
) -> Result<Vec<Conversation>> {
    let tenant_id = listing.caller().tenant_id;
    let limit = page.rows();
    let Some(named) = named_project(sql, listing, filter)? else {
        return Ok(Vec::new());
    };
    let project_id = match readable(sql, listing, named)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => None,
        Readable::OfProject(project_id) => Some(project_id),
        Readable::By(user_id) => {
            let statement = list_sql!("conversations/list_reader").by(page.order);
            return sql.fetch_all(statement, &[&tenant_id, &user_id, &page.after, &limit]);
        }
    };
    let rows = match (filter.agent_id, project_id) {
        (Some(agent_id), project_id) => sql.query(
            list_sql!("conversations/list_agent").by(page.order),
            &[&tenant_id, &page.after, &limit, &agent_id, &project_id],
        )?,
        (None, Some(project_id)) => sql.query(
            list_sql!("conversations/list_project").by(page.order),
            &[&tenant_id, &page.after, &limit, &project_id],
        )?,
        (None, None) => sql.query(
            list_sql!("conversations/list").by(page.order),
            &[&tenant_id, &page.after, &limit],
        )?,
    };
    rows.iter().map(Conversation::from_row).collect()
}

/// Those of these conversations whose newest message is an answer that was cut at its maximum length.
pub fn cut_answers(
    sql: &mut impl Sql,
    listing: &Listing<Conversation>,
    of: &[Conversation],
) -> Result<HashSet<Uuid>> {
    let ids: Vec<Uuid> = of.iter().map(|one| one.conversation_id).collect();
    let tenant_id = listing.caller().tenant_id;
    let rows = sql.query(sql!("conversations/cut_answers"), &[&tenant_id, &ids])?;
    rows.iter().map(Columns::only).collect()
}

/// The project that the filters name, which an agent names too. None: they fit no conversation.
fn named_project(
    sql: &mut impl Sql,
    listing: &Listing<Conversation>,
    filter: Filter,
) -> Result<Option<Option<Uuid>>> {
    let Some(agent_id) = filter.agent_id else {
        return Ok(Some(filter.project_id));
    };
    let agent = Agent::find(sql, listing.caller().tenant_id, agent_id)?;
    let fits = |agent: &Agent| filter.project_id.is_none_or(|id| id == agent.project_id);
    Ok(agent.filter(fits).map(|agent| Some(agent.project_id)))
}

/// A page of its messages, and whether more follow. A page of long messages holds fewer of them.
pub fn messages(
    sql: &mut impl Sql,
    may: &impl May<Read, Conversation>,
    page: &Request,
) -> Result<(Vec<Message>, bool)> {
    let statement = list_sql!("conversations/messages").by(page.order);
    let rows = sql.query(
        statement,
        &[
            &may.tenant_id(),
            &may.object_id(),
            &page.after_position(),
            &i64::from(page.limit),
            &PAGE_BYTES,
        ],
    )?;
    let has_more = match rows.last() {
        Some(last) => last.column("more")?,
        None => false,
    };
    let messages: Result<Vec<Message>> = rows.iter().map(Message::from_row).collect();
    Ok((messages?, has_more))
}
