//! The typed tree of a definition.
//!
//! What `use` declares (functions, retries, errors, timeouts) is put in where it is used: the tree has no names to look up.
//! Lists are in the order of the text. A task is named by its index in its list where one task names another.
//!
//! Not here: reading the tree from JSON.

use super::references::Reference;
use crate::guardrails::Point;
use expressions::Expression;
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::time::Duration;

/// The longest definition, in bytes of JSON.
pub const DEFINITION_BYTES: usize = 256 * 1024;
/// The most tasks of a definition, nested ones and those of functions included.
pub const TASKS_MOST: usize = 500;
/// The deepest nesting of lists of tasks. A call of a function of `use` is a list too.
pub const NESTING_MOST: usize = 16;
/// The longest time that a flow or a task may take or wait: 400 days.
pub const LONGEST: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// The most branches of a `fork`.
pub const BRANCHES_MOST: usize = 32;
/// The most items of a sequential `for`.
pub const ITEMS_MOST: usize = 10_000;
/// The most iterations of a parallel `for` at one time.
pub const CONCURRENCY_MOST: u32 = 64;
/// The most tries of a `try`, the first included.
pub const TRIES_MOST: u32 = 100;
/// The longest delay before a retry, as written: one day.
pub const DELAY_LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A flow.
#[derive(Debug)]
pub struct Definition {
    /// What it is called.
    pub document: Document,
    /// `input`: the schema holds for the run's input; the template makes of it what the first task gets.
    pub input: Shape,
    /// `output`: the template makes the run's output of what the last task answers; the schema holds for that.
    pub output: Shape,
    /// How long a run may take, waits included.
    pub timeout: Option<Time>,
    /// Its tasks, at least one.
    pub tasks: Vec<Task>,
    /// See [`Definition::references`].
    pub(super) references: Vec<Reference>,
    /// As its author wrote it, if an expression reads it.
    pub source: Option<Value>,
    /// What its expressions read.
    pub needs: Needs,
}

/// What the expressions of a definition read, so that no run keeps or copies what none of them does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// `$workflow.definition`.
    pub definition: bool,
    /// `$task.definition`.
    pub task_definition: bool,
    /// `$task.input`: the data before `input.from`.
    pub task_input: bool,
    /// `$runtime.metadata`: the variables of the environment.
    pub environment: bool,
}

impl Definition {
    /// The tools, agents and flows that it names, in the order of the text. A caller looks up whether they are there.
    pub fn references(&self) -> &[Reference] {
        &self.references
    }

    /// The paths of the tasks that a dry run may take an answer for: calls, and runs of flows.
    pub fn steps(&self) -> Vec<&str> {
        let mut steps = Vec::new();
        add_steps(&self.tasks, &mut steps);
        steps
    }
}

fn add_steps<'a>(tasks: &'a [Task], steps: &mut Vec<&'a str>) {
    for task in tasks {
        match &task.kind {
            TaskKind::Do(tasks) | TaskKind::Fork(tasks) => add_steps(tasks, steps),
            TaskKind::For(of) => add_steps(&of.tasks, steps),
            TaskKind::Try(of) => {
                add_steps(&of.tasks, steps);
                add_steps(of.catch.tasks.as_deref().unwrap_or_default(), steps);
            }
            TaskKind::Call(_) | TaskKind::Run(_) => steps.push(&task.path),
            TaskKind::Set(_) | TaskKind::Switch(_) | TaskKind::Raise(_) | TaskKind::Wait(_) => {}
        }
    }
}

/// What a flow is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The version of the language, such as `1.0.3`.
    pub dsl: String,
    /// The first half of the flow id.
    pub namespace: String,
    /// The second half of the flow id.
    pub name: String,
    /// The version of the flow: semantic, without build metadata.
    pub version: String,
    /// A short name for people.
    pub title: Option<String>,
    /// What the flow does, for people, in Markdown.
    pub summary: Option<String>,
}

impl Document {
    /// `namespace.name`, which the API calls `flowId`.
    pub fn flow_id(&self) -> String {
        format!("{}.{}", self.namespace, self.name)
    }
}

/// What data has to be, and what is made of it. Empty, it lets everything pass as it is.
#[derive(Debug, Default)]
pub struct Shape {
    /// What the data has to fit. Of `input` it is asked of the raw data, of `output` and `export` of what the template made.
    pub schema: Option<Schema>,
    /// `from` or `as`.
    pub template: Option<Template>,
}

/// A JSON Schema that was compiled within the bounds of those of tools.
#[derive(Debug)]
pub struct Schema {
    /// As its author wrote it.
    pub document: Value,
    /// What checks data.
    pub validator: Validator,
}

/// JSON with expressions in it.
#[derive(Debug)]
pub enum Template {
    /// A value without any expression in it.
    Literal(Value),
    /// A string that is wholly an expression: its first output, null without one.
    Expression(Expression),
    /// An array with an expression somewhere in it.
    Array(Vec<Template>),
    /// An object with an expression somewhere in it, in the author's order.
    Object(Vec<(String, Template)>),
}

/// A time that passes.
#[derive(Debug)]
pub enum Time {
    /// As written, at most [`LONGEST`].
    Fixed(Duration),
    /// Computed: an ISO 8601 duration or an object of units.
    Computed(Expression),
}

/// One task.
#[derive(Debug)]
pub struct Task {
    /// Its name, which its list has once.
    pub name: String,
    /// Its place, a JSON pointer: `/do/2/small`. Of a function's task: `/use/functions/NAME`.
    pub path: String,
    /// `if`: it is skipped unless this is true. It sees the raw input.
    pub condition: Option<Expression>,
    /// `input`.
    pub input: Shape,
    /// `output`.
    pub output: Shape,
    /// `export`: the template makes the new `$context` of the output.
    pub export: Shape,
    /// How long it may take, retries and waits included.
    pub timeout: Option<Time>,
    /// What follows it if it runs. A skipped task leads to the next one.
    pub then: Then,
    /// As its author wrote it.
    pub metadata: Map<String, Value>,
    /// `metadata.dryRun.output`: what a dry run takes for the answer of an effect that it does not perform.
    pub simulated: Option<Template>,
    /// What it does.
    pub kind: TaskKind,
}

impl Task {
    /// Where it can lead, and by what: the case of a `switch`, `catch` after a handled error, `skipped` past a task whose
    /// condition is false.
    pub fn followers(&self) -> Vec<(Then, Option<&str>)> {
        let mut followers = Vec::new();
        let always_leads_elsewhere = match &self.kind {
            TaskKind::Raise(_) => true,
            TaskKind::Switch(cases) => {
                followers.extend(
                    cases
                        .iter()
                        .map(|case| (case.then, Some(case.name.as_str()))),
                );
                cases.iter().any(|case| case.when.is_none())
            }
            TaskKind::Try(tries) => {
                followers.extend(tries.catch.then.map(|then| (then, Some("catch"))));
                false
            }
            _ => false,
        };
        if !always_leads_elsewhere {
            followers.push((self.then, None));
        }
        let also_continues = always_leads_elsewhere || self.then != Then::Continue;
        if self.condition.is_some() && also_continues {
            followers.push((Then::Continue, Some("skipped")));
        }
        followers
    }
}

/// Where a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Then {
    /// With the next task; after the last one the list is over.
    #[default]
    Continue,
    /// Nowhere: the list is over, and the task that holds it has ended.
    Exit,
    /// Nowhere: the run is over.
    End,
    /// With the task of this index in the same list.
    Task(usize),
}

/// What a task does.
#[derive(Debug)]
pub enum TaskKind {
    /// Runs a list. A call of a function of `use.functions` is one too: a `set` that makes the arguments, if there are any,
    /// and the function's task.
    Do(Vec<Task>),
    /// Answers a value.
    Set(Template),
    /// Chooses what follows: the first case that holds; without one, the task's `then`.
    Switch(Vec<Case>),
    /// Runs a list for each item.
    For(For),
    /// Runs tasks beside each other and answers their outputs in order.
    Fork(Vec<Task>),
    /// Runs a list, and handles its errors.
    Try(Box<Try>),
    /// Raises an error.
    Raise(ErrorTemplate),
    /// Waits.
    Wait(Time),
    /// Calls something outside of the flow.
    Call(Call),
    /// Runs another flow and waits for its end.
    Run(Subflow),
}

/// A case of `switch`.
#[derive(Debug)]
pub struct Case {
    /// Its name.
    pub name: String,
    /// Whether it holds; without one it always does.
    pub when: Option<Expression>,
    /// What follows then.
    pub then: Then,
}

/// A loop.
#[derive(Debug)]
pub struct For {
    /// The variable that holds the item, without `$`: `item` if not named.
    pub each: String,
    /// The items: an array.
    pub items: Expression,
    /// The variable that holds the index, from 0, without `$`: `index` if not named.
    pub at: String,
    /// `while`: asked before each iteration; the loop ends when it is not true. Absent of a parallel loop.
    pub condition: Option<Expression>,
    /// The list of each iteration.
    pub tasks: Vec<Task>,
    /// `metadata.concurrency`: the iterations are independent, each gets the task's input, and the output is the array of
    /// their outputs in item order. Without it each iteration gets the output of the one before, and the last one's is the
    /// output.
    pub parallel: Option<Parallel>,
}

/// How iterations run beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallel {
    /// At one time, 1 to [`CONCURRENCY_MOST`].
    pub concurrency: u32,
    /// `metadata.onError`.
    pub on_error: OnError,
}

/// What a failed iteration does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// The others are cancelled, and the error is that of the loop.
    #[default]
    FailFast,
    /// The others go on, and the error takes the place of the output.
    Collect,
}

/// A list whose errors are handled.
#[derive(Debug)]
pub struct Try {
    /// What is tried.
    pub tasks: Vec<Task>,
    /// Which errors are handled, and how.
    pub catch: Catch,
}

/// What handles an error. An error is caught if it fits `errors`, `when` is true or absent, and `except_when` is not true.
#[derive(Debug)]
pub struct Catch {
    /// `errors.with`: fields that the error must have.
    pub errors: ErrorFilter,
    /// `as`: the variable that holds the error, without `$`: `error` if not named.
    pub variable: String,
    /// `when`.
    pub when: Option<Expression>,
    /// `exceptWhen`.
    pub except_when: Option<Expression>,
    /// Whether and when the list is tried again from its first task.
    pub retry: Option<Retry>,
    /// `do`: what runs if there is no retry, or none is left. Absent: the task's input is its output, or with `retry` and
    /// without `then` the error goes on.
    pub tasks: Option<Vec<Task>>,
    /// What follows a caught error, in the list of the `try`; absent: the task's `then`.
    pub then: Option<Then>,
}

/// Fields that an error must have; an absent one is not asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorFilter {
    /// The URI of its type.
    pub kind: Option<String>,
    /// Its status.
    pub status: Option<u16>,
    /// The JSON pointer of the task that raised it.
    pub instance: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its detail.
    pub detail: Option<String>,
}

/// When a list is tried again.
#[derive(Debug)]
pub struct Retry {
    /// `when`: asked with the error.
    pub when: Option<Expression>,
    /// `exceptWhen`: asked with the error.
    pub except_when: Option<Expression>,
    /// The delay before the first retry; absent: none.
    pub delay: Option<Time>,
    /// How the delay grows.
    pub backoff: Backoff,
    /// The random part of a delay, from and to.
    pub jitter: Option<(Time, Time)>,
    /// `limit.attempt.count`: the most tries, the first included, at most [`TRIES_MOST`], which holds if absent.
    pub tries_most: u32,
    /// `limit.attempt.duration`: how long one try may take.
    pub try_timeout: Option<Time>,
    /// `limit.duration`: how long all tries may take, delays included.
    pub timeout: Option<Time>,
}

/// How the delay of a retry grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backoff {
    /// It stays.
    #[default]
    Constant,
    /// It is multiplied by the number of the retry.
    Linear,
    /// It doubles each time, to one hour at most.
    Exponential,
}

/// An error as RFC 7807 writes it, to be raised.
#[derive(Debug)]
pub struct ErrorTemplate {
    /// The URI of its type, or an expression for it.
    pub kind: Template,
    /// A number, or an expression for it.
    pub status: Template,
    /// Text or an expression for it.
    pub title: Option<Template>,
    /// Text or an expression for it.
    pub detail: Option<Template>,
}

/// A call.
#[derive(Debug)]
pub enum Call {
    /// An HTTP request.
    Http(Box<HttpCall>),
    /// A turn of an agent of the project.
    Agent(AgentCall),
    /// A tool of the project.
    Tool(ToolCall),
    /// A person's decision.
    Approval(Box<ApprovalCall>),
    /// Guardrails judge a text.
    Guardrail(GuardrailCall),
}

/// An HTTP request.
#[derive(Debug)]
pub struct HttpCall {
    /// Its method.
    pub method: Method,
    /// Where it goes.
    pub endpoint: Endpoint,
    /// An object: names and values.
    pub headers: Option<Template>,
    /// An object: what is appended to the URL.
    pub query: Option<Template>,
    /// A string goes as it is, anything else as JSON.
    pub body: Option<Template>,
    /// What it answers.
    pub output: HttpOutput,
    /// Whether a status of 300 to 399 is an answer; otherwise it is an error.
    pub redirect: bool,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
    /// OPTIONS.
    Options,
}

/// Where a request goes.
#[derive(Debug)]
pub enum Endpoint {
    /// A URI template of RFC 6570, level 1.
    Uri(Vec<UriPart>),
    /// An expression for the URL.
    Expression(Expression),
}

/// A part of a URI template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UriPart {
    /// As it stands.
    Literal(String),
    /// `{name}`: that field of the task's input, percent-encoded.
    Variable(String),
}

/// What an HTTP call answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpOutput {
    /// The body: parsed if it is JSON, else text.
    #[default]
    Content,
    /// An object with `request`, `statusCode`, `headers` and `content`.
    Response,
    /// The body in base64.
    Raw,
}

/// A turn of an agent: `{text, runId, usage}`.
#[derive(Debug)]
pub struct AgentCall {
    /// Its name in the project, or its id.
    pub agent: String,
    /// A version; absent: the live one, else the latest, when the step begins.
    pub version: Option<String>,
    /// What it is told.
    pub message: Template,
    /// The conversation that it goes on with.
    pub conversation: Option<Template>,
}

/// A call of a tool: parsed JSON, else text.
#[derive(Debug)]
pub struct ToolCall {
    /// Its name in the project.
    pub tool: String,
    /// An object that fits the tool's schema.
    pub arguments: Option<Template>,
    /// What the tool is sent instead of the key of the step.
    pub idempotency_key: Option<Template>,
}

/// A person's decision: `{decision, comment, decidedBy, answer, approvalId}`.
#[derive(Debug)]
pub struct ApprovalCall {
    /// What it is about, at most 200 characters. Never computed: events carry it.
    pub title: String,
    /// The role that may decide.
    pub required_role: String,
    /// Whom it is assigned to, by id or email. Never computed.
    pub assigned_to: Option<String>,
    /// What reviewers are shown.
    pub context: Option<Template>,
    /// What a reviewer who approves fills in: the JSON Schema of the answer.
    pub form: Option<Value>,
    /// How long it waits, at most 30 days.
    pub expires_after: Duration,
    /// The one step up.
    pub escalation: Option<Escalation>,
    /// After a rejection.
    pub on_reject: OnRefusal,
    /// After its time is over.
    pub on_expire: OnRefusal,
}

/// Guardrails judge a text: `{verdict, text, name, code}`.
#[derive(Debug)]
pub struct GuardrailCall {
    /// What they judge.
    pub text: Template,
    /// The list as its author wrote it, never computed. Those judge that stand at the point.
    pub guardrails: Value,
    /// What the text is taken for.
    pub point: Point,
}

/// Who is asked when nobody decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// How long after the opening.
    pub after: Duration,
    /// The role that may decide then.
    pub required_role: String,
    /// Whom it is assigned to then, by id or email.
    pub assigned_to: Option<String>,
}

/// What follows an approval that was not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnRefusal {
    /// An error, which `try` can catch.
    #[default]
    Raise,
    /// The task ends, and its output has the decision.
    Continue,
}

/// Another flow of the project.
#[derive(Debug)]
pub struct Subflow {
    /// `namespace.name`.
    pub flow_id: String,
    /// A version; absent (`latest`): the live one, else the latest, when the step begins.
    pub version: Option<String>,
    /// Its input; absent: the task's.
    pub input: Option<Template>,
}
