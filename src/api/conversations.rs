//! `/v1/conversations`: conversations with an agent, and their messages.

use super::page_query::page_query;
use super::request_parts::SOME_ID;
use crate::authz::ConversationEraser;
use crate::error::{Code, Result};
use crate::http::access::{BodyOn, Names};
use crate::http::context::Cx;
use crate::http::input::{Nothing, Query, Text};
use crate::http::output::{Accepted, Created, Found};
use crate::http::route::{Method, Route, route};
use crate::ids::{Id, Timestamp};
use crate::proof::{Authorized, Listing, Read, Write};
use crate::store::agents::Agent;
use crate::store::conversations::{self, Conversation, Filter, Message};
use crate::store::page::{Page, position_id};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub(super) fn routes() -> Vec<Route> {
    use Method::{Delete, Get, Post};
    let (all, one) = ("/v1/conversations", "/v1/conversations/{conversationId}");
    let messages = "/v1/conversations/{conversationId}/messages";
    vec![
        route(
            Post,
            all,
            "conversations.create",
            "Begin a conversation with an agent",
            create,
        )
        .answers(&[Code::ProjectArchived, Code::AgentArchived]),
        route(
            Get,
            all,
            "conversations.list",
            "List the conversations that the caller may read",
            list,
        ),
        route(Get, one, "conversations.get", "Read a conversation", read),
        route(
            Delete,
            one,
            "conversations.erase",
            "Erase a conversation: its messages, and what its runs were given, said and answered. Their rows stay",
            erase,
        )
        .answers(&[Code::Conflict]),
        route(
            Get,
            messages,
            "conversations.messages.list",
            "List the messages of a conversation",
            list_messages,
        ),
    ]
}

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Conversation")]
struct View {
    id: Uuid,
    project_id: Uuid,
    agent_id: Uuid,
    /// The version that its turns run, if it was begun with one.
    version: Option<String>,
    title: String,
    /// The turn that is under way: there is one at a time.
    active_run_id: Option<Uuid>,
    created_by: Uuid,
    created_at: Timestamp,
    /// When it was asked to be erased; null unless it was. No run starts in it since.
    erasure_requested_at: Option<Timestamp>,
    /// When all of it was erased; null until then.
    erased_at: Option<Timestamp>,
    /// True if its newest message is an answer that was cut at its maximum length; left out otherwise. In a list alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_cut: Option<bool>,
}

impl From<Conversation> for View {
    fn from(conversation: Conversation) -> Self {
        Self {
            id: conversation.conversation_id,
            project_id: conversation.project_id,
            agent_id: conversation.agent_id,
            version: conversation.version,
            title: conversation.title,
            active_run_id: conversation.active_run_id,
            created_by: conversation.created_by,
            created_at: conversation.created_at.into(),
            erasure_requested_at: conversation.erasure_requested_at.map(Into::into),
            erased_at: conversation.erased_at.map(Into::into),
            answer_cut: None,
        }
    }
}

/// A message of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ConversationMessage")]
struct MessageView {
    /// Its number in the conversation, from 1.
    position: i64,
    /// `user` or `assistant`.
    role: &'static str,
    content: String,
    /// The turn in which it was said.
    run_id: Uuid,
    created_at: Timestamp,
}

impl From<Message> for MessageView {
    fn from(message: Message) -> Self {
        Self {
            position: message.position,
            role: message.role.text(),
            content: message.content,
            run_id: message.run_id,
            created_at: message.created_at.into(),
        }
    }
}

/// A conversation to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(example = serde_json::json!({"agentId": SOME_ID, "title": "Order 1234"}))]
struct NewConversation {
    agent_id: Id,
    /// The version that its turns are to run; left out: the live one, else the latest, at each turn.
    version: Option<Text<5, 100>>,
    title: Option<Text<0, 200>>,
}

impl Names<Agent> for NewConversation {
    fn named(&self) -> Uuid {
        self.agent_id.0
    }
}

page_query! {
    /// Which conversations.
    ListConversations {
        /// With this agent.
        agent_id: Option<Id>,
        /// In this project.
        project_id: Option<Id>,
    }
}

page_query! {
    /// Which messages.
    ListMessages {}
    limit: {
        /// A page of long messages holds fewer.
    }
}

fn create(
    cx: &Cx<'_>,
    access: BodyOn<NewConversation, Agent, Write>,
    _: Nothing,
) -> Result<Created<View>> {
    let BodyOn { body, on } = access;
    let new = conversations::New {
        conversation_id: cx.new_id(),
        project_id: on.row().project_id,
        version: body.version.as_ref().map(Text::as_str),
        title: body.title.as_ref().map_or("", Text::as_str),
    };
    let now = cx.now();
    let conversation = cx.transact(|tx| conversations::insert(tx, &on, on.caller(), &new, now))?;
    Ok(Created(conversation.into()))
}

fn list(
    cx: &Cx<'_>,
    listing: Listing<Conversation>,
    Query(query): Query<ListConversations>,
) -> Result<Found<Page<View>>> {
    let binding = ("conversations", query.agent_id, query.project_id);
    let page = query.page(&binding)?;
    let filter = Filter {
        agent_id: query.agent_id.map(Uuid::from),
        project_id: query.project_id.map(Uuid::from),
    };
    let mut session = cx.store().session()?;
    let rows = conversations::list(&mut session, &listing, filter, &page)?;
    let cut = conversations::cut_answers(&mut session, &listing, &rows)?;
    let item = |row: Conversation| View {
        answer_cut: cut.contains(&row.conversation_id).then_some(true),
        ..row.into()
    };
    Ok(Found(page.page(rows, |row| row.conversation_id, item)))
}

fn read(
    _: &Cx<'_>,
    conversation: Authorized<Conversation, Read>,
    _: Nothing,
) -> Result<Found<View>> {
    Ok(Found(conversation.into_row().into()))
}

fn erase(cx: &Cx<'_>, eraser: ConversationEraser, _: Nothing) -> Result<Accepted<View>> {
    let ConversationEraser(may) = eraser;
    let marked = cx.transact(|tx| cx.runtime().erase_conversation(tx, &may))?;
    Ok(Accepted(marked.into()))
}

fn list_messages(
    cx: &Cx<'_>,
    conversation: Authorized<Conversation, Read>,
    Query(query): Query<ListMessages>,
) -> Result<Found<Page<MessageView>>> {
    let binding = ("messages", conversation.row().conversation_id);
    let page = query.page(&binding)?;
    let (rows, has_more) =
        conversations::messages(&mut cx.store().session()?, &conversation, &page)?;
    let id = |row: &Message| position_id(row.position);
    Ok(Found(page.ended_page(
        rows,
        has_more,
        id,
        MessageView::from,
    )))
}
