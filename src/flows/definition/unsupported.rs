//! Parts of the language that are not supported, each with a sentence, and slips that are usual.
//!
//! The page `docs/flows.md` lists the same sentences; a test compares them.

/// Which object a field stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole definition.
    Definition,
    /// `use`.
    Use,
    /// A schema.
    Schema,
    /// A task.
    Task,
    /// An error of `raise`.
    Error,
    /// `fork`.
    Fork,
    /// `with` of `call: http`.
    Http,
    /// The endpoint of an HTTP call.
    Endpoint,
    /// `with` of `call: approval`.
    Approval,
    /// A guardrail of `call: guardrail`.
    Guardrail,
    /// `run`.
    Run,
    /// Any other.
    Other,
}

impl Part {
    /// Where a field stands, for the page.
    #[cfg(test)]
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Definition => " of a definition",
            Self::Use => " of `use`",
            Self::Schema => " of a schema",
            Self::Task => " of a task",
            Self::Error => " of an error of `raise`",
            Self::Fork => " of `fork`",
            Self::Http => " of `call: http`",
            Self::Endpoint => " of an endpoint",
            Self::Approval => " of `call: approval`",
            Self::Guardrail => " of a guardrail of `call: guardrail`",
            Self::Run => " of `run`",
            Self::Other => "",
        }
    }
}

/// The fields that are not supported.
pub const FIELDS: &[(Part, &str, &str)] = &[
    (
        Part::Definition,
        "schedule",
        "`schedule` is not supported: start the flow over the API, from a timer of your own.",
    ),
    (
        Part::Use,
        "authentications",
        "`use.authentications` is not supported: register a tool, which names its secrets.",
    ),
    (
        Part::Use,
        "catalogs",
        "`use.catalogs` is not supported: nothing is fetched when a flow runs.",
    ),
    (
        Part::Use,
        "extensions",
        "`use.extensions` is not supported: write the tasks where they run.",
    ),
    (
        Part::Schema,
        "resource",
        "`resource` is not supported: nothing is fetched. Write the schema in `document`.",
    ),
    (
        Part::Task,
        "emit",
        "`emit` is not supported: call a tool that sends the event.",
    ),
    (
        Part::Task,
        "listen",
        "`listen` is not supported: a flow waits for a time (`wait`) or a person (`call: approval`).",
    ),
    (
        Part::Error,
        "instance",
        "`instance` is not supported: it is the task that raises the error.",
    ),
    (
        Part::Fork,
        "compete",
        "`fork.compete` is not supported: every branch runs to its end.",
    ),
    (
        Part::Http,
        "authentication",
        "Authentication of a request is not supported: register a tool, which names its secrets.",
    ),
    (
        Part::Endpoint,
        "authentication",
        "Authentication of an endpoint is not supported: register a tool, which names its secrets.",
    ),
    (
        Part::Approval,
        "quorum",
        "`quorum` is not supported: one reviewer decides.",
    ),
    (
        Part::Approval,
        "reminders",
        "`reminders` is not supported: escalate to another role.",
    ),
    (
        Part::Guardrail,
        "onBlock",
        "`onBlock` is not supported in `call: guardrail`: the flow reads the verdict, and goes on as it says.",
    ),
    (
        Part::Guardrail,
        "answer",
        "`answer` is not supported in `call: guardrail`: the flow reads the verdict, and answers as it says.",
    ),
    (
        Part::Guardrail,
        "retries",
        "`retries` is not supported in `call: guardrail`: it asks no model. Write a `try`, or lead back with `then`.",
    ),
    (
        Part::Guardrail,
        "approval",
        "`approval` is not supported in `call: guardrail`: ask a person with `call: approval`.",
    ),
    (
        Part::Run,
        "container",
        "`run.container` is not supported: tools run code, and flows call them.",
    ),
    (
        Part::Run,
        "script",
        "`run.script` is not supported: tools run code, and flows call them.",
    ),
    (
        Part::Run,
        "shell",
        "`run.shell` is not supported: tools run code, and flows call them.",
    ),
    (
        Part::Run,
        "return",
        "`run.return` is not supported: it chooses a stream of a process, and processes are not run.",
    ),
];

/// The calls that are not supported.
pub const CALLS: &[(&str, &str)] = &[
    (
        "mcp",
        "`call: mcp` is not supported until tool servers can be registered.",
    ),
    (
        "block",
        "`call: block` is not supported until data blocks can be published.",
    ),
    (
        "openapi",
        "`call: openapi` is not supported: register a tool, or use `call: http`.",
    ),
    (
        "grpc",
        "`call: grpc` is not supported: register a tool that makes the call.",
    ),
    (
        "asyncapi",
        "`call: asyncapi` is not supported: register a tool that makes the call.",
    ),
    (
        "a2a",
        "`call: a2a` is not supported: call an agent of the project with `call: agent`.",
    ),
];

/// What else is refused by a sentence of its own.
pub const OTHERS: &[(&str, &str)] = &[
    (
        "run.await",
        "`await: false` is not supported: the flow waits for the end of the flow that it runs.",
    ),
    (
        "evaluate.language",
        "Expressions are in jq. No other language is supported.",
    ),
    (
        "evaluate.mode",
        "`mode` has to be strict: an expression stands in `${ }`.",
    ),
    (
        "use.secrets",
        "Nothing reads `use.secrets`: a tool names its secrets itself.",
    ),
    (
        "escalation",
        "An approval escalates once: one level is supported.",
    ),
    (
        "guardrail.approve",
        "`action: approve` is not supported in `call: guardrail`: ask a person with `call: approval`.",
    ),
    (
        "guardrail.arguments",
        "`tool.arguments` is not supported in `call: guardrail`: it judges texts, and a flow's calls have none of a model.",
    ),
    (
        "dryRun",
        "`metadata.dryRun` has one field, `output`: what the task answers in a dry run.",
    ),
    (
        "export",
        "`export` is not supported in a branch: branches run beside each other, and none may change what the others read.",
    ),
    (
        "branch",
        "`then` of a branch names no other branch: they run beside each other.",
    ),
    (
        "end",
        "`then: end` is not supported in a branch: it cannot end what runs beside it. Use `exit`, or raise an error.",
    ),
    (
        "while",
        "`while` is not supported with `metadata.concurrency`: the iterations do not follow each other.",
    ),
];

/// The sentence of one of [`OTHERS`].
pub(super) fn other(name: &str) -> &'static str {
    find(OTHERS, name).unwrap_or("This is not supported.")
}

/// Why a call is not supported, if it is part of the language.
pub(super) fn call(name: &str) -> Option<&'static str> {
    find(CALLS, name)
}

/// Why a field is not supported, if it is part of the language.
pub(super) fn field(part: Part, name: &str) -> Option<&'static str> {
    let of_name = |(of, known, _): &&(Part, &str, &str)| *of == part && *known == name;
    FIELDS
        .iter()
        .find(of_name)
        .map(|(_, _, sentence)| *sentence)
}

fn find(all: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, sentence)| *sentence)
}

/// Names that authors write, and what the language calls it.
const SLIPS: &[(&str, &str)] = &[
    ("url", "endpoint"),
    ("uri", "endpoint"),
    ("parallel", "fork"),
    ("delay", "wait"),
    ("sleep", "wait"),
    ("pause", "wait"),
    ("when", "if"),
    ("condition", "if"),
    ("next", "then"),
    ("goto", "then"),
    ("transition", "then"),
    ("foreach", "for"),
    ("steps", "do"),
    ("tasks", "do"),
    ("states", "do"),
    ("args", "arguments"),
    ("input", "arguments"),
    ("parameters", "with"),
    ("arguments", "with"),
    ("throw", "raise"),
    ("assign", "set"),
    ("role", "requiredRole"),
    ("assignee", "assignedTo"),
    ("timeout", "expiresAfter"),
    ("expiresAt", "expiresAfter"),
    ("prompt", "message"),
    ("id", "name"),
    ("attempts", "limit"),
];

/// What an author meant, for each name that stands for something else in this language.
pub(super) fn slip(name: &str) -> Option<(&'static str, &'static str)> {
    SLIPS.iter().find(|(slip, _)| *slip == name).copied()
}
