//! What a run of a flow knows of itself, beside where it stands.

use super::limits::FlowLimits;
use super::state::{Frame, State};
use crate::error::{Error, Result};
use crate::flows::definition::tree::Definition;
use crate::ids::rfc3339;
use crate::store::flow_parts::{NamedAgent, NamedFlow, Scope};
use crate::store::turns::Tool;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

/// What a run of a flow knows of itself.
pub(super) struct About {
    pub(super) limits: FlowLimits,
    /// The run itself: the keys of its calls follow from it.
    pub(super) own_run_id: Uuid,
    /// Of a branch: of the flow that it is a part of. As its input and its begin.
    pub(super) run_id: Uuid,
    pub(super) flow_id: String,
    pub(super) flow_version: String,
    pub(super) input: Value,
    pub(super) started_at: OffsetDateTime,
    pub(super) is_dry_run: bool,
    /// Of a dry run: what steps answer that are not performed, by the paths of their tasks.
    pub(super) fixtures: Map<String, Value>,
    /// A dry run that asks no model.
    pub(super) skips_models: bool,
    /// The variables of the environment as they were when the root was created, if the definition reads them.
    pub(super) env: Map<String, Value>,
    /// The branch that the run is.
    pub(super) branch: Option<Branch>,
    /// How many flows are nested, this one included.
    pub(super) flows: i64,
    pub(super) tools: Vec<Tool>,
    pub(super) agents: Vec<NamedAgent>,
    pub(super) subflows: Vec<NamedFlow>,
}

/// A branch of a flow, as its run begins: which it is, and where its parent stands.
pub(super) struct Branch {
    pub(super) at: usize,
    pub(super) frames: Vec<Frame>,
    pub(super) context: Value,
}

impl About {
    /// `$workflow`.
    pub(super) fn workflow(&self, definition: &Definition) -> Value {
        let mut workflow =
            json!({"id": self.run_id, "input": self.input, "startedAt": moment(self.started_at)});
        if definition.needs.definition {
            workflow["definition"] = definition.source.clone().unwrap_or_default();
        }
        workflow
    }

    /// `$runtime`.
    pub(super) fn runtime(&self) -> Value {
        json!({
            "name": "agent-runtime",
            "version": env!("CARGO_PKG_VERSION"),
            "metadata": {"env": self.env},
        })
    }

    /// The tool that a definition names so.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The agent that a definition names so.
    pub(super) fn agent(&self, name: &str, version: Option<&str>) -> Option<&NamedAgent> {
        let mut agents = self.agents.iter();
        agents.find(|agent| agent.name == name && agent.named.as_deref() == version)
    }

    /// The version of a flow that a definition names so.
    pub(super) fn flow(&self, flow_id: &str, version: Option<&str>) -> Option<String> {
        let mut flows = self.subflows.iter();
        let found = flows.find(|flow| flow.flow_id == flow_id && flow.named.as_deref() == version);
        found.map(|flow| flow.version.clone())
    }
}

/// The branch that a run is, from the begin of its parent's step.
pub(super) fn branch_of(scope: &Scope) -> Result<Option<Branch>> {
    let Some(branch) = &scope.branch else {
        return Ok(None);
    };
    let at = branch.rsplit_once('/').and_then(|(_, at)| at.parse().ok());
    let (Some(at), Some(parent)) = (at, &scope.parent) else {
        return Err(Error::internal("the parent of a branch has no state"));
    };
    let stands = State::of_row(parent)?;
    Ok(Some(Branch {
        at,
        frames: stands.frames,
        context: stands.context,
    }))
}

/// A time as expressions read it.
pub(super) fn moment(at: OffsetDateTime) -> Value {
    let milliseconds = i64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or_default();
    let epoch = json!({"seconds": at.unix_timestamp(), "milliseconds": milliseconds});
    json!({"iso8601": rfc3339::text(at), "epoch": epoch})
}
