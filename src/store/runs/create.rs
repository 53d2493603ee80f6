//! Creates runs for an app or the command line: roots of trees of runs. Child runs are created in a
//! commit of their parent.

use super::labels::Labels;
use super::rows::{Agent, Origin, Run, Status, Usage};
use super::start_options::StartOptions;
use super::storable;
use crate::error::Result;
use crate::ids::rfc3339;
use crate::proof::{Kind, May, Write};
use crate::sql;
use crate::store::agents::{BACK_AGAIN, not_started};
use crate::store::approvals;
use crate::store::conversations::Conversation;
use crate::store::events::NewEvent;
use crate::store::{Find, Parameter, Sql};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run_id: Uuid,
    /// The project that it belongs to.
    pub project_id: Uuid,
    /// What runs: `agent.turn` for an agent's turn.
    pub flow_id: String,
    /// The version of what runs.
    pub flow_version: String,
    /// Who began it.
    pub origin: Origin,
    /// As the caller said; the runtime passes it on to tools.
    pub dry_run: bool,
    /// How it is started.
    pub options: StartOptions,
    /// For an agent's turn.
    pub agent: Option<Agent>,
    /// As the caller gave them.
    pub labels: Labels,
    /// What the caller gave; an agent's turn has its text in `message`.
    pub input: Value,
    /// The user message of an agent's turn, written to its conversation if it has one.
    pub message: Option<String>,
    /// The user that created it.
    pub created_by: Uuid,
    /// The request that created it.
    pub request_id: Uuid,
    /// When.
    pub created_at: OffsetDateTime,
}

impl NewRun {
    /// The run as it is read once it is created.
    fn created(&self, tenant_id: Uuid) -> Run {
        Run {
            tenant_id,
            run_id: self.run_id,
            project_id: self.project_id,
            flow_id: self.flow_id.clone(),
            flow_version: self.flow_version.clone(),
            status: Status::Queued,
            origin: self.origin,
            parent: None,
            root_run_id: self.run_id,
            dry_run: self.dry_run,
            agent: self.agent.clone(),
            retry_of: None,
            labels: self.labels.clone(),
            failure_message: None,
            failure_summary: None,
            cancel_requested_at: None,
            created_by: self.created_by,
            created_at: storable::moment(self.created_at),
            started_at: None,
            completed_at: None,
            waiting_for: None,
            wake_at: None,
            parked_ms: 0,
            last_seq: 1,
            usage: Usage::default(),
            payload_erased_at: None,
        }
    }
}

/// The job that is to carry a new run on.
#[derive(Debug, Clone)]
pub struct NewJob {
    /// Its queue.
    pub queue: &'static str,
    /// Its name.
    pub name: &'static str,
    /// JSON text.
    pub payload: String,
    /// How often it may be tried.
    pub max_attempts: i32,
}

/// What stands beside a new run.
#[derive(Debug)]
pub struct Begins<'a> {
    /// Its first event.
    pub first: NewEvent,
    /// Its job.
    pub job: NewJob,
    /// The environment whose variables it keeps, as they are now.
    pub environment: Option<&'a str>,
}

/// Creates a run with its job, its first event, its user message and its payload, in one statement, and returns it. `may` proves
/// that the caller may start runs in the project or with the agent.
///
/// # Errors
/// `project-archived`, `agent-archived`, `flow-archived`; `conflict` while another turn of the conversation is under way, or where it was erased:
/// nothing is to be committed then.
pub fn insert<K: Kind>(
    sql: &mut impl Sql,
    may: &impl May<Write, K>,
    run: &NewRun,
    begins: &Begins<'_>,
) -> Result<Run> {
    let (first, job) = (&begins.first, &begins.job);
    let agent = run.agent.as_ref();
    let conversation_id = agent.and_then(|agent| agent.conversation_id);
    let tenant_id = may.tenant_id();
    let (origin, via) = (run.origin.text(), agent.map(|agent| agent.via.text()));
    let (agent_id, version) = (
        agent.map(|agent| agent.id),
        agent.map(|agent| &agent.version),
    );
    let labels = run.labels.column();
    let message = run.message.as_deref().unwrap_or_default();
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &run.run_id,
        &run.project_id,
        &run.flow_id,
        &run.flow_version,
        &origin,
        &run.dry_run,
        &agent_id,
        &version,
        &conversation_id,
        &via,
        &run.created_by,
        &run.created_at,
        &run.input,
        &first.kind,
        &first.data,
        &job.queue,
        &job.name,
        &job.payload,
        &job.max_attempts,
        &labels,
    ];
    let options = run.options.column();
    parameters.push(&options);
    parameters.push(&run.request_id);
    parameters.push(&begins.environment);
    let inserted = match conversation_id {
        None => sql.execute(sql!("runs/insert"), &parameters)?,
        Some(_) => {
            parameters.push(&message);
            sql.execute(sql!("runs/insert_in_conversation"), &parameters)?
        }
    };
    if inserted == 0 {
        let otherwise = match conversation_id {
            None => BACK_AGAIN.to_owned(),
            Some(id) => not_taken(sql, tenant_id, id)?,
        };
        let of = (run.project_id, agent_id, Some(&*run.flow_id));
        return Err(not_started(sql, tenant_id, of, &otherwise)?);
    }
    Ok(run.created(tenant_id))
}

/// Why a conversation takes no turn, and what to do.
fn not_taken(sql: &mut impl Sql, tenant_id: Uuid, conversation_id: Uuid) -> Result<String> {
    let conversation = Conversation::find(sql, tenant_id, conversation_id)?;
    let is_erased = |found: &Conversation| found.erasure_requested_at.is_some();
    if conversation.as_ref().is_some_and(is_erased) {
        return Ok("This conversation was erased. Begin another one.".to_owned());
    }
    let active = conversation.and_then(|found| found.active_run_id);
    let waits_for = match active {
        Some(run_id) => approvals::waiting_of_run(sql, tenant_id, run_id)?,
        None => None,
    };
    Ok(match waits_for {
        Some((approval_id, expires_at)) => format!(
            "A turn of this conversation waits for the approval {approval_id} until {}. Have it decided, or cancel the turn.",
            rfc3339::text(expires_at)
        ),
        None => {
            "A turn of this conversation is under way. Wait until it has finished, or cancel it."
                .to_owned()
        }
    })
}
