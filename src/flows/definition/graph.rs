//! A flow as a picture: boxes in boxes, and what leads from one box to another.
//!
//! Not here: where the boxes stand on a screen. They nest as the lists do, so a reader lays them out by itself.

use super::tree::{Call, Definition, Task, TaskKind, Then};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A flow, a list of tasks, or a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlowNode")]
pub struct Node {
    /// Its place in the definition, a JSON pointer, such as `/do/2/small`. A run's events and steps have the same path.
    pub path: String,
    /// The name of the task; of the flow its id; of a list the field that has it.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: NodeKind,
    /// The tool, the agent or the flow that it calls by name, the title of the approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What stands in it. The first one is where it begins, except in a `fork`, whose branches begin together.
    pub children: Vec<Node>,
    /// What leads from one of the children to another, in order.
    pub edges: Vec<Edge>,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FlowNodeType")]
pub enum NodeKind {
    /// The whole flow.
    Flow,
    /// A list of a `try`: what is tried, or what handles an error.
    List,
    /// A list of tasks.
    Do,
    /// Answers a value.
    Set,
    /// Chooses what follows.
    Switch,
    /// A list for each item.
    For,
    /// Branches beside each other.
    Fork,
    /// A list whose errors are handled.
    Try,
    /// Raises an error.
    Raise,
    /// Waits.
    Wait,
    /// An HTTP request.
    Http,
    /// A turn of an agent.
    Agent,
    /// A call of a tool.
    Tool,
    /// A person's decision.
    Approval,
    /// Guardrails judge a text.
    Guardrail,
    /// Another flow.
    Run,
}

/// What leads from a node to one beside it, or out of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "FlowEdge")]
pub struct Edge {
    /// The name of the node from which it leads.
    pub from: String,
    /// The name of the node to which it leads; `exit`: out of the list; `end`: to the end of the run.
    pub to: String,
    /// The case of a `switch` that leads there; `catch`: after a handled error; `skipped`: if the task's `if` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The picture of a flow.
pub fn of(definition: &Definition) -> Node {
    Node {
        path: String::new(),
        name: definition.document.flow_id(),
        kind: NodeKind::Flow,
        target: None,
        children: definition.tasks.iter().map(node).collect(),
        edges: edges(&definition.tasks),
    }
}

fn node(task: &Task) -> Node {
    let (kind, target) = kind_of(&task.kind);
    let (children, edges) = match &task.kind {
        TaskKind::Do(tasks) => (tasks.iter().map(node).collect(), edges(tasks)),
        TaskKind::For(of) => (of.tasks.iter().map(node).collect(), edges(&of.tasks)),
        TaskKind::Fork(branches) => (branches.iter().map(node).collect(), Vec::new()),
        TaskKind::Try(of) => {
            let mut lists = vec![list(task, "try", &of.tasks)];
            let handler = of.catch.tasks.as_ref();
            lists.extend(handler.map(|tasks| list(task, "catch/do", tasks)));
            (lists, Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    };
    Node {
        path: task.path.clone(),
        name: task.name.clone(),
        kind,
        target,
        children,
        edges,
    }
}

/// A list of a `try`.
fn list(task: &Task, field: &str, tasks: &[Task]) -> Node {
    Node {
        path: format!("{}/{field}", task.path),
        name: field.split('/').next().unwrap_or(field).to_owned(),
        kind: NodeKind::List,
        target: None,
        children: tasks.iter().map(node).collect(),
        edges: edges(tasks),
    }
}

impl NodeKind {
    /// What a task is.
    pub fn of(task: &Task) -> Self {
        kind_of(&task.kind).0
    }
}

fn kind_of(kind: &TaskKind) -> (NodeKind, Option<String>) {
    match kind {
        TaskKind::Do(_) => (NodeKind::Do, None),
        TaskKind::Set(_) => (NodeKind::Set, None),
        TaskKind::Switch(_) => (NodeKind::Switch, None),
        TaskKind::For(_) => (NodeKind::For, None),
        TaskKind::Fork(_) => (NodeKind::Fork, None),
        TaskKind::Try(_) => (NodeKind::Try, None),
        TaskKind::Raise(_) => (NodeKind::Raise, None),
        TaskKind::Wait(_) => (NodeKind::Wait, None),
        TaskKind::Call(Call::Http(_)) => (NodeKind::Http, None),
        TaskKind::Call(Call::Agent(call)) => (NodeKind::Agent, Some(call.agent.clone())),
        TaskKind::Call(Call::Tool(call)) => (NodeKind::Tool, Some(call.tool.clone())),
        TaskKind::Call(Call::Approval(call)) => (NodeKind::Approval, Some(call.title.clone())),
        TaskKind::Call(Call::Guardrail(_)) => (NodeKind::Guardrail, None),
        TaskKind::Run(run) => (NodeKind::Run, Some(run.flow_id.clone())),
    }
}

fn edges(tasks: &[Task]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let to = |then: Then| {
            let beside = |index: usize| tasks.get(index).map(|task| task.name.clone());
            match then {
                Then::Continue => beside(index + 1).unwrap_or_else(|| "exit".to_owned()),
                Then::Task(target) => beside(target).unwrap_or_default(),
                Then::Exit => "exit".to_owned(),
                Then::End => "end".to_owned(),
            }
        };
        edges.extend(task.followers().into_iter().map(|(then, label)| Edge {
            from: task.name.clone(),
            to: to(then),
            label: label.map(str::to_owned),
        }));
    }
    edges
}
