//! Pages of runs, by id (so by creation time), in either order.
//!
//! One statement for each index that can lead: the narrowest filter given leads, the others are
//! looked at row by row. A tree of runs leads before all else. Of labels the first one given leads, project by project, unless
//! a tree or a conversation does. So do runs that failed or were cancelled, a flow of the tenant's own, and dry runs; an agent
//! leads before these. Runs that have not ended are found by their jobs, unless the tenant has more than [`UNFINISHED_MOST`] of
//! them. Without any of these, runs that no run began have an index of their own. A time is a bound on the ids whatever leads, so
//! what lies outside it is not read.

use super::count::{Counted, count};
use super::labels::LabelFilter;
use super::rows::{Origin, Run, Status, Via, WaitingFor, run_of};
use crate::error::Result;
use crate::ids::{first_of, time_of};
use crate::proof::Listing;
use crate::store::agents::Agent;
use crate::store::conversations::Conversation;
use crate::store::page::{Order, Request};
use crate::store::readable::{Readable, readable};
use crate::store::{Columns, Find, Ordered, Parameter, Sql};
use crate::{list_sql, sql};
use postgres::Row;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::LazyLock;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// The `flowId` of an agent's turn (specification section 2.7), whose runs are in no index of flows.
pub const AGENT_TURN: &str = "agent.turn";

/// How long before it is created a run may have been given its id.
const ID_AGE_MOST: Duration = Duration::minutes(1);

/// How long after its request's id a run may be given its own: longer than any request takes.
const REQUEST_MOST: Duration = Duration::minutes(10);

/// Unfinished runs of a tenant that are all read to find those of a page, at most. With more of them, many runs of any list
/// have not ended, and it is read in order.
const UNFINISHED_MOST: u64 = 10_000;

/// Which runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filters {
    /// Of this project.
    pub project_id: Option<Uuid>,
    /// Turns of this agent.
    pub agent_id: Option<Uuid>,
    /// Turns of this conversation.
    pub conversation_id: Option<Uuid>,
    /// That stand there.
    pub status: Option<Status>,
    /// Begun by these.
    pub origin: Option<Origin>,
    /// Of this flow, in any version.
    pub flow_id: Option<String>,
    /// Below this root, at any depth.
    pub root_run_id: Option<Uuid>,
    /// Begun by this run.
    pub parent_run_id: Option<Uuid>,
    /// That wait for this.
    pub waiting_for: Option<WaitingFor>,
    /// Turns whose version was chosen so.
    pub via: Option<Via>,
    /// That are dry runs, or that are none.
    pub dry_run: Option<bool>,
    /// Created then or later.
    pub from: Option<OffsetDateTime>,
    /// Created before then.
    pub to: Option<OffsetDateTime>,
    /// That have these labels.
    pub labels: Option<LabelFilter>,
    /// That this request created.
    pub request_id: Option<Uuid>,
    /// That no run began.
    pub roots_only: bool,
}

impl Filters {
    fn status(&self) -> Option<&'static str> {
        self.status.map(Status::text)
    }

    fn origin(&self) -> Option<&'static str> {
        self.origin.map(Origin::text)
    }

    fn waiting_for(&self) -> Option<&'static str> {
        self.waiting_for.map(WaitingFor::text)
    }

    fn via(&self) -> Option<&'static str> {
        self.via.map(Via::text)
    }

    /// The ids between which the page lies, without them.
    fn bounds(&self, page: &Request) -> (Uuid, Uuid) {
        let (from, to) = ids_between(self.from, self.to);
        match (page.after, page.order) {
            (None, _) => (from, to),
            (Some(after), Order::Asc) => (from.max(after), to),
            (Some(after), Order::Desc) => (from, to.min(after)),
        }
    }

    /// The filter other than a label that has an index of its own in each project.
    fn leads(&self) -> Option<Lead> {
        match (self.status, self.flow_id.as_deref(), self.dry_run) {
            // Few runs fail or are cancelled, of whichever flow.
            (Some(Status::Failed), ..) => Some(Lead::Failed),
            (Some(Status::Cancelled), ..) => Some(Lead::Cancelled),
            (_, Some(flow_id), _) if flow_id != AGENT_TURN => Some(Lead::Flow),
            (_, _, Some(true)) => Some(Lead::Dry),
            _ => None,
        }
    }

    /// True, or null where the statement does not ask.
    fn roots(&self) -> Option<bool> {
        self.roots_only.then_some(true)
    }

    /// Whether all runs that it finds have not ended.
    fn is_of_unfinished(&self) -> bool {
        self.waiting_for.is_some() || self.status.is_some_and(|status| !status.is_finished())
    }
}

/// The ids between which those of runs lie, without them, that were created at a time or later and before another. Some more lie
/// there: an id is made before its run, up to [`ID_AGE_MOST`].
pub fn ids_between(from: Option<OffsetDateTime>, to: Option<OffsetDateTime>) -> (Uuid, Uuid) {
    let from = from.and_then(|from| from.checked_sub(ID_AGE_MOST));
    let from = from.map_or(Uuid::nil(), |from| {
        Uuid::from_u128(first_of(from).as_u128().saturating_sub(1))
    });
    let to = to.and_then(|to| to.checked_add(Duration::MILLISECOND));
    (from, to.map_or(Uuid::max(), first_of))
}

/// What leads the search in each project.
#[derive(Debug, Clone, Copy)]
enum Lead {
    /// Runs that failed.
    Failed,
    /// Runs that were cancelled.
    Cancelled,
    /// A flow of the tenant's own.
    Flow,
    /// Dry runs.
    Dry,
}

/// A statement with the filters that have an index of their own in each project. They are compared without a test for null, and
/// with the condition of the index, so that the planner uses it whatever the parameters are.
struct Led {
    all: Ordered,
    failed: Ordered,
    cancelled: Ordered,
    flow: Ordered,
    dry: Ordered,
    roots: Ordered,
}

/// The parameters of a statement for the filters that can lead, such as `$5`.
struct Places {
    status: &'static str,
    flow: &'static str,
    dry: &'static str,
    roots: &'static str,
}

impl Led {
    fn of(list: &str, places: &Places) -> Self {
        let Places {
            status, flow, dry, ..
        } = places;
        let given = |old: String, new: String| Ordered::of(&list.replace(&old, &new));
        let any_status = format!("({status}::text is null or status = {status})");
        Self {
            all: Ordered::of(list),
            failed: given(
                any_status.clone(),
                format!("status = {status} and failure_message is not null"),
            ),
            cancelled: given(
                any_status,
                format!("status = {status} and cancel_requested_at is not null"),
            ),
            flow: given(
                format!("({flow}::text is null or flow_id = {flow})"),
                format!("flow_id = {flow} and flow_id <> '{AGENT_TURN}'"),
            ),
            dry: given(
                format!("({dry}::boolean is null or dry_run = {dry})"),
                format!("dry_run and {dry}::boolean"),
            ),
            roots: roots(list, places.roots),
        }
    }

    fn by(&self, lead: Lead) -> Ordered {
        match lead {
            Lead::Failed => self.failed,
            Lead::Cancelled => self.cancelled,
            Lead::Flow => self.flow,
            Lead::Dry => self.dry,
        }
    }
}

/// A statement for runs that no run began, with the condition of their index.
fn roots(list: &str, place: &str) -> Ordered {
    Ordered::of(&list.replace(
        &format!("({place}::boolean is null or parent_run_id is null)"),
        &format!("parent_run_id is null and {place}::boolean"),
    ))
}

static EACH_PROJECT: LazyLock<Led> = LazyLock::new(|| {
    let places = Places {
        status: "$5",
        flow: "$9",
        dry: "$13",
        roots: ROOTS,
    };
    Led::of(sql!("runs/list_each_project"), &places)
});
static READER: LazyLock<Led> = LazyLock::new(|| {
    let places = Places {
        status: "$5",
        flow: "$7",
        dry: "$11",
        roots: "$14",
    };
    Led::of(sql!("runs/list_reader"), &places)
});

/// The parameter for roots alone, of the statements without a reader.
const ROOTS: &str = "$16";

/// A statement that reads all runs in order, or those that no run began.
struct InOrder {
    all: Ordered,
    roots: Ordered,
}

impl InOrder {
    fn of(list: &str) -> Self {
        Self {
            all: Ordered::of(list),
            roots: roots(list, ROOTS),
        }
    }

    fn by(&self, roots_only: bool) -> Ordered {
        match roots_only {
            true => self.roots,
            false => self.all,
        }
    }
}

static OF_TENANT: LazyLock<InOrder> = LazyLock::new(|| InOrder::of(sql!("runs/list_all")));
static OF_PROJECT: LazyLock<InOrder> = LazyLock::new(|| InOrder::of(sql!("runs/list_project")));

/// A page of the tenant's runs.
pub fn list(
    sql: &mut impl Sql,
    listing: &Listing<Run>,
    filters: &Filters,
    page: &Request,
) -> Result<Vec<Run>> {
    let tenant_id = listing.caller().tenant_id;
    let Some(named) = named(sql, listing, filters)? else {
        return Ok(Vec::new());
    };
    let mut of = Within {
        tenant_id,
        project_id: None,
        reader_id: None,
        are_few_unfinished: false,
    };
    match readable(sql, listing, named.project_id)? {
        Readable::Nothing => return Ok(Vec::new()),
        Readable::All => {}
        Readable::OfProject(project_id) => of.project_id = Some(project_id),
        Readable::By(user_id) => of.reader_id = Some(user_id),
    }
    if filters.is_of_unfinished() {
        let unfinished = count(sql, Counted::Unfinished(tenant_id), UNFINISHED_MOST + 1)?;
        of.are_few_unfinished = unfinished <= UNFINISHED_MOST;
    }
    match of.reader_id {
        Some(user_id) if filters.labels.is_some() || !of.are_few_unfinished => {
            list_reader(sql, (tenant_id, user_id), filters, page, &named)
        }
        _ => list_within(sql, &of, filters, page, &named),
    }
}

/// What a list shows of a run in addition to its row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The number of its child runs. Of a retry also those that it takes over from the run that it continues.
    pub child_count: i64,
    /// Of a run that its parent began for a branch or an iteration: which.
    pub branch: Option<Branch>,
}

/// A branch of a fork, or an iteration of a parallel loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RunBranch")]
pub struct Branch {
    /// The task of the flow that has the branches or iterations.
    pub path: String,
    /// Which of them, from 0.
    pub index: u32,
}

impl Branch {
    /// From the text that is stored.
    fn of(text: &str) -> Option<Self> {
        let (path, index) = text.rsplit_once('/')?;
        Some(Self {
            path: path.to_owned(),
            index: index.parse().ok()?,
        })
    }
}

/// The details of these runs, by id.
pub fn details(
    sql: &mut impl Sql,
    listing: &Listing<Run>,
    of: &[Run],
) -> Result<HashMap<Uuid, Details>> {
    let ids: Vec<Uuid> = of.iter().map(|run| run.run_id).collect();
    let tenant_id = listing.caller().tenant_id;
    let rows = sql.query(sql!("runs/list_details"), &[&tenant_id, &ids])?;
    let read = |row: &Row| {
        let branch: Option<String> = row.column("branch")?;
        let details = Details {
            child_count: row.column("child_count")?,
            branch: branch.as_deref().and_then(Branch::of),
        };
        Ok((row.column("run_id")?, details))
    };
    rows.iter().map(read).collect()
}

/// Where a list looks.
struct Within {
    tenant_id: Uuid,
    /// In this project alone.
    project_id: Option<Uuid>,
    /// In the projects that this user has a way into.
    reader_id: Option<Uuid>,
    /// The list is of unfinished runs, and the tenant has few of these.
    are_few_unfinished: bool,
}

fn list_within(
    sql: &mut impl Sql,
    of: &Within,
    filters: &Filters,
    page: &Request,
    named: &Named,
) -> Result<Vec<Run>> {
    let (status, origin, via) = (filters.status(), filters.origin(), filters.via());
    let (waiting_for, rows) = (filters.waiting_for(), page.rows());
    let (low, high) = named.narrowed(filters.bounds(page));
    let only_roots = filters.roots();
    let mut parameters: Vec<Parameter<'_>> = vec![
        &of.tenant_id,
        &of.project_id,
        &filters.agent_id,
        &filters.conversation_id,
        &status,
        &origin,
        &low,
        &rows,
        &filters.flow_id,
        &waiting_for,
        &high,
        &via,
        &filters.dry_run,
        &filters.from,
        &filters.to,
        &only_roots,
    ];
    let labels = filters.labels.as_ref();
    let all = labels.map(LabelFilter::all);
    let statement = if named.root_run_id.is_some() {
        parameters.push(&all);
        parameters.push(&named.root_run_id);
        parameters.push(&filters.parent_run_id);
        list_sql!("runs/list_tree")
    } else if filters.conversation_id.is_some() {
        parameters.push(&all);
        list_sql!("runs/list_conversation")
    } else if let Some(labels) = labels {
        parameters.push(&all);
        parameters.extend(labels.first());
        list_sql!("runs/list_label")
    } else if of.are_few_unfinished {
        parameters.push(&of.reader_id);
        list_sql!("runs/list_unfinished")
    } else if filters.agent_id.is_some() {
        list_sql!("runs/list_agent")
    } else if let Some(lead) = filters.leads() {
        EACH_PROJECT.by(lead)
    } else if of.project_id.is_some() {
        OF_PROJECT.by(filters.roots_only)
    } else {
        OF_TENANT.by(filters.roots_only)
    };
    let rows = sql.query(statement.by(page.order), &parameters)?;
    rows.iter().map(run_of).collect()
}

/// Of the projects that the user has a way into.
fn list_reader(
    sql: &mut impl Sql,
    (tenant_id, user_id): (Uuid, Uuid),
    filters: &Filters,
    page: &Request,
    named: &Named,
) -> Result<Vec<Run>> {
    let (status, origin, via) = (filters.status(), filters.origin(), filters.via());
    let (waiting_for, rows) = (filters.waiting_for(), page.rows());
    let (low, high) = named.narrowed(filters.bounds(page));
    let only_roots = filters.roots();
    let mut parameters: Vec<Parameter<'_>> = vec![
        &tenant_id,
        &user_id,
        &low,
        &rows,
        &status,
        &origin,
        &filters.flow_id,
        &waiting_for,
        &high,
        &via,
        &filters.dry_run,
        &filters.from,
        &filters.to,
        &only_roots,
    ];
    let labels = filters.labels.as_ref();
    let all = labels.map(LabelFilter::all);
    let statement = match (labels, filters.leads()) {
        (None, None) if filters.roots_only => READER.roots,
        (None, None) => READER.all,
        (None, Some(lead)) => READER.by(lead),
        (Some(labels), _) => {
            parameters.push(&all);
            parameters.extend(labels.first());
            list_sql!("runs/list_label_reader")
        }
    };
    let rows = sql.query(statement.by(page.order), &parameters)?;
    rows.iter().map(run_of).collect()
}

/// What the filters name, by themselves or by an object that they name.
struct Named {
    project_id: Option<Uuid>,
    root_run_id: Option<Uuid>,
    /// The one run that the request created.
    run_id: Option<Uuid>,
}

impl Named {
    /// The bounds of a page's ids, narrowed to the run that is named, if one is.
    fn narrowed(&self, (low, high): (Uuid, Uuid)) -> (Uuid, Uuid) {
        match self.run_id {
            None => (low, high),
            Some(run_id) => {
                let id = run_id.as_u128();
                let before = Uuid::from_u128(id.saturating_sub(1));
                let after = Uuid::from_u128(id.saturating_add(1));
                (low.max(before), high.min(after))
            }
        }
    }
}

/// The run that a request created. A request creates one run at most, beside those below it.
fn of_request(sql: &mut impl Sql, tenant_id: Uuid, request_id: Uuid) -> Result<Option<Uuid>> {
    let Some(at) = time_of(request_id).filter(|at| at.year() < 9999) else {
        return Ok(None);
    };
    let (low, high) = ids_between(Some(at), Some(at + REQUEST_MOST));
    let row = sql.query_opt(
        sql!("runs/of_request"),
        &[&tenant_id, &request_id, &low, &high],
    )?;
    row.map(|row| row.column("run_id")).transpose()
}

/// What the filters name: an agent, a conversation and a run name their project too, a parent its root. None: they fit
/// no run.
fn named(sql: &mut impl Sql, listing: &Listing<Run>, filters: &Filters) -> Result<Option<Named>> {
    let tenant_id = listing.caller().tenant_id;
    let mut named = Named {
        project_id: filters.project_id,
        root_run_id: filters.root_run_id,
        run_id: None,
    };
    if let Some(request_id) = filters.request_id {
        named.run_id = of_request(sql, tenant_id, request_id)?;
        if named.run_id.is_none() {
            return Ok(None);
        }
    }
    let mut projects = Vec::new();
    if let Some(id) = filters.agent_id {
        projects.push(Agent::find(sql, tenant_id, id)?.map(|agent| agent.project_id));
    }
    if let Some(id) = filters.conversation_id {
        projects.push(Conversation::find(sql, tenant_id, id)?.map(|found| found.project_id));
    }
    if let Some(id) = filters.root_run_id {
        projects.push(Run::find(sql, tenant_id, id)?.map(|root| root.project_id));
    }
    if let Some(id) = filters.parent_run_id {
        let parent = Run::find(sql, tenant_id, id)?;
        let root_id = parent.as_ref().map(|parent| parent.root_run_id);
        if !agrees(&mut named.root_run_id, root_id) {
            return Ok(None);
        }
        projects.push(parent.map(|parent| parent.project_id));
    }
    let agree = projects
        .into_iter()
        .all(|found| agrees(&mut named.project_id, found));
    Ok(agree.then_some(named))
}

/// Whether this was found, and is what is named so far; it is named from then on.
fn agrees(named: &mut Option<Uuid>, found: Option<Uuid>) -> bool {
    found.is_some_and(|found| *named.get_or_insert(found) == found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_with_an_index_is_compared_with_the_condition_of_its_index() {
        let each = (&*EACH_PROJECT, "$9", "$13", "$16");
        for (led, flow, dry, roots) in [each, (&*READER, "$7", "$11", "$14")] {
            let (flows, dries) = (led.flow.by(Order::Asc), led.dry.by(Order::Desc));
            assert!(flows.contains(&format!("and flow_id = {flow} and flow_id <> 'agent.turn'")));
            assert!(!flows.contains(&format!("{flow}::text is null")));
            assert!(dries.contains(&format!("and dry_run and {dry}::boolean")));
            assert!(!dries.contains(&format!("{dry}::boolean is null")));
            let failed = led.failed.by(Order::Asc);
            assert!(failed.contains("and status = $5 and failure_message is not null"));
            assert!(!failed.contains("$5::text is null"));
            let cancelled = led.cancelled.by(Order::Asc);
            assert!(cancelled.contains("and status = $5 and cancel_requested_at is not null"));
            let only_roots = led.roots.by(Order::Desc);
            assert!(
                only_roots.contains(&format!("and parent_run_id is null and {roots}::boolean"))
            );
        }
    }

    #[test]
    fn a_branch_is_read_from_its_text() {
        let branch = Branch::of("/do/0/each/3").unwrap();
        assert_eq!((&*branch.path, branch.index), ("/do/0/each", 3));
        assert_eq!(Branch::of("/do/0/each"), None);
    }

    #[test]
    fn roots_in_order_are_read_by_the_condition_of_their_index() {
        for list in [&*OF_TENANT, &*OF_PROJECT] {
            let (all, roots) = (list.by(false), list.by(true));
            assert!(
                roots
                    .by(Order::Desc)
                    .contains("and parent_run_id is null and $16::boolean")
            );
            assert!(all.by(Order::Desc).contains("$16::boolean is null or"));
        }
    }

    #[test]
    fn a_time_and_a_cursor_bound_the_ids_that_are_read() {
        let at = |text| crate::ids::rfc3339::parse(text).unwrap();
        let (from, to) = (at("2026-03-01T00:00:00Z"), at("2026-03-02T00:00:00Z"));
        let filters = Filters {
            from: Some(from),
            to: Some(to),
            ..Filters::default()
        };
        let page = |order, after| {
            let mut page = Request::new(None, None, Some(order), &"runs").unwrap();
            page.after = after;
            page
        };
        let (low, high) = filters.bounds(&page(Order::Asc, None));
        assert!(low < first_of(from) && first_of(to) < high);
        let slack = Duration::minutes(2);
        assert!(low > first_of(from - slack) && high < first_of(to + slack));
        let middle = first_of(from + Duration::hours(1));
        let later = filters.bounds(&page(Order::Asc, Some(middle)));
        assert_eq!(later, (middle, high));
        let earlier = filters.bounds(&page(Order::Desc, Some(middle)));
        assert_eq!(earlier, (low, middle));
        let all = Filters::default().bounds(&page(Order::Desc, None));
        assert_eq!(all, (Uuid::nil(), Uuid::max()));
    }
}
