//! `call`: HTTP requests, the functions of this service, and those that `use.functions` declares.

use super::around::{Around, Targets};
use super::fault::{Code, Fault};
use super::references::{Reference, ReferenceKind};
use super::tree::{
    AgentCall, ApprovalCall, Call, Escalation, OnRefusal, Shape, Task, TaskKind, Template, Then,
    ToolCall,
};
use super::unsupported::{self, Part};
use super::values::{Moment, Scope};
use super::walk::{Fields, Location, Walk, with_nearest};
use crate::store::approvals::is_assignee;
use crate::tools::forms;
use serde_json::{Map, Value};
use std::time::Duration;

/// What `call` takes without a declaration.
pub(super) const FUNCTIONS: [&str; 5] = ["http", "agent", "tool", "approval", "guardrail"];

/// How a function of this service is named in the catalog of the language.
const CATALOG: &str = ":1.0.0@default";

/// The longest time that an approval waits.
const APPROVAL_LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long it waits if its author does not say.
const APPROVAL_TIME: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest name of a tool or an agent.
const NAME_MOST: usize = 200;
/// The longest title of an approval.
const TITLE_MOST: usize = 200;
/// The longest text that names a person: an email.
const ASSIGNEE_MOST: usize = 320;

impl<'a> Walk<'a> {
    pub(super) fn call(
        &mut self,
        fields: &mut Fields<'a>,
        (value, location): (&'a Value, &Location),
        (task, around): (&str, &Around<'a>),
    ) -> Option<TaskKind> {
        let with = fields.take("with");
        let name = self.text(value, location)?;
        let own = name.strip_suffix(CATALOG).unwrap_or(name);
        let is_own = FUNCTIONS.contains(&own);
        if self.declared_names("functions").contains(&name) {
            if is_own {
                let said = format!(
                    "`use.functions` declares `{name}`, which takes the place of the service's own."
                );
                self.warn(Fault::new(&location.path, Code::BadValue, said));
            }
            return self.custom((task, name), location, (with, fields), around);
        }
        if !is_own {
            if let Some(sentence) = unsupported::call(own) {
                self.tell(location, Code::Unsupported, sentence);
                return None;
            }
            let said = format!("There is no function `{name}`.");
            let known: Vec<&str> = FUNCTIONS
                .into_iter()
                .chain(self.declared_names("functions"))
                .collect();
            let fault = Fault::new(&location.path, Code::UnknownReference, said);
            self.fault(with_nearest(fault, name, &known));
            return None;
        }
        let Some((with, with_place)) = with else {
            self.tell(
                &fields.location,
                Code::MissingField,
                format!("`with` is missing beside `call: {own}`."),
            );
            return None;
        };
        let with = self.object(with, &with_place)?;
        self.own_call(own, with, &around.scope).map(TaskKind::Call)
    }

    /// A call of a function of this service. Apart from [`Walk::call`], of which many stand on the stack at a time.
    #[inline(never)]
    fn own_call(&mut self, own: &str, with: Fields<'a>, scope: &Scope) -> Option<Call> {
        match own {
            "http" => self
                .http(with, scope)
                .map(|call| Call::Http(Box::new(call))),
            "agent" => self.agent(with, scope).map(Call::Agent),
            "tool" => self.tool(with, scope).map(Call::Tool),
            "guardrail" => self.guardrail(with, scope).map(Call::Guardrail),
            _ => self
                .approval(with, scope)
                .map(|call| Call::Approval(Box::new(call))),
        }
    }

    /// A call of what `use.functions` declares: a list that makes the arguments and then runs the function's task.
    fn custom(
        &mut self,
        (task, name): (&str, &'a str),
        location: &Location,
        (with, fields): (Option<(&'a Value, Location)>, &Fields<'a>),
        around: &Around<'a>,
    ) -> Option<TaskKind> {
        let (value, at) = self.find_declared("functions", name, location)?;
        if around.functions.contains(&name) {
            let said = format!("The function `{name}` calls itself.");
            self.tell(location, Code::BadValue, said);
            return None;
        }
        if !self.is_within_nesting(around.levels + 1, location) {
            return None;
        }
        let arguments = match with {
            Some((value, location)) => self
                .arguments((task, fields), (value, &location), &around.scope)
                .map(Some),
            None => Some(None),
        };
        let function = self.function((name, value), &at, around);
        let mut tasks = Vec::new();
        tasks.extend(arguments?);
        tasks.push(function?);
        Some(TaskKind::Do(tasks))
    }

    /// The task of a function.
    pub(super) fn function(
        &mut self,
        (name, value): (&'a str, &'a Value),
        location: &Location,
        around: &Around<'a>,
    ) -> Option<Task> {
        let inside = around.function(name);
        self.task((name, value), location, (&inside, Targets::Function))
    }

    /// The task that makes a function's arguments.
    fn arguments(
        &mut self,
        (task, fields): (&str, &Fields<'a>),
        (value, location): (&'a Value, &Location),
        scope: &Scope,
    ) -> Option<Task> {
        let template = self.object_template(value, location, (scope, Moment::Within))?;
        Some(Task {
            name: task.to_owned(),
            path: format!("{}/with", fields.location.pointer),
            condition: None,
            input: Shape::default(),
            output: Shape::default(),
            export: Shape::default(),
            timeout: None,
            then: Then::Continue,
            metadata: Map::new(),
            simulated: None,
            kind: TaskKind::Set(template),
        })
    }

    fn agent(&mut self, mut fields: Fields<'a>, scope: &Scope) -> Option<AgentCall> {
        let at = (scope, Moment::Within);
        let agent = fields.need(self, "agent");
        let agent = agent.and_then(|(value, location)| {
            Some((self.literal(value, &location, NAME_MOST)?, location))
        });
        let version = match fields.take("version") {
            Some((value, location)) => self.version(value, &location).map(Some),
            None => Some(None),
        };
        let message = fields.need(self, "message");
        let message =
            message.and_then(|(value, location)| self.text_or_expression((value, &location), at));
        let conversation = self.optional_text(&mut fields, "conversationId", at);
        fields.close(self, Part::Other);
        let ((agent, location), version) = (agent?, version?);
        self.refer(Reference {
            kind: ReferenceKind::Agent,
            name: agent.clone(),
            version: version.clone(),
            path: location.path,
        });
        Some(AgentCall {
            agent,
            version,
            message: message?,
            conversation: conversation?,
        })
    }

    fn tool(&mut self, mut fields: Fields<'a>, scope: &Scope) -> Option<ToolCall> {
        let at = (scope, Moment::Within);
        let tool = fields.need(self, "tool");
        let tool = tool.and_then(|(value, location)| {
            Some((self.literal(value, &location, NAME_MOST)?, location))
        });
        let arguments = match fields.take("arguments") {
            Some((value, location)) => self.object_template(value, &location, at).map(Some),
            None => Some(None),
        };
        let idempotency_key = self.optional_text(&mut fields, "idempotencyKey", at);
        fields.close(self, Part::Other);
        let (tool, location) = tool?;
        self.refer(Reference {
            kind: ReferenceKind::Tool,
            name: tool.clone(),
            version: None,
            path: location.path,
        });
        Some(ToolCall {
            tool,
            arguments: arguments?,
            idempotency_key: idempotency_key?,
        })
    }

    fn optional_text(
        &mut self,
        fields: &mut Fields<'a>,
        name: &'static str,
        at: (&Scope, Moment),
    ) -> Option<Option<Template>> {
        match fields.take(name) {
            Some((value, location)) => self.text_or_expression((value, &location), at).map(Some),
            None => Some(None),
        }
    }

    fn approval(&mut self, mut fields: Fields<'a>, scope: &Scope) -> Option<ApprovalCall> {
        let title = fields.need(self, "title");
        let title = title.and_then(|(value, location)| self.literal(value, &location, TITLE_MOST));
        let required_role = match fields.take("requiredRole") {
            Some((value, location)) => self.role(value, &location),
            None => Some("standard".to_owned()),
        };
        let assigned_to = self.assignee(&mut fields);
        let context = match fields.take("context") {
            Some((value, location)) => self
                .template(value, &location, (scope, Moment::Within))
                .map(Some),
            None => Some(None),
        };
        let form = match fields.take("form") {
            Some((value, place)) => self.form(value, &place).map(Some),
            None => Some(None),
        };
        let expires_after = match fields.take("expiresAfter") {
            Some((value, location)) => self.fixed(value, &location),
            None => Some(APPROVAL_TIME),
        };
        let escalation = match fields.take("escalation") {
            Some((value, location)) => self.escalation(value, &location, expires_after),
            None => Some(None),
        };
        let choices = [
            ("raise", OnRefusal::Raise),
            ("continue", OnRefusal::Continue),
        ];
        let mut refusal = |walk: &mut Self, name| match fields.take(name) {
            Some((value, location)) => walk.choice(value, &location, &choices),
            None => Some(OnRefusal::Raise),
        };
        let (on_reject, on_expire) = (refusal(self, "onReject"), refusal(self, "onExpire"));
        fields.close(self, Part::Approval);
        Some(ApprovalCall {
            title: title?,
            required_role: required_role?,
            assigned_to: assigned_to?,
            context: context?,
            form: form?,
            expires_after: expires_after?,
            escalation: escalation?,
            on_reject: on_reject?,
            on_expire: on_expire?,
        })
    }

    /// A time of an approval, which is never computed.
    fn fixed(&mut self, value: &Value, location: &Location) -> Option<Duration> {
        if let Some(text) = value.as_str() {
            self.literal(value, location, text.chars().count().max(1))?;
        }
        let found = self.duration(value, location, APPROVAL_LONGEST)?;
        if found.is_zero() {
            self.tell(
                location,
                Code::BadValue,
                "This time must be greater than zero.",
            );
            return None;
        }
        Some(found)
    }

    fn role(&mut self, value: &Value, location: &Location) -> Option<String> {
        let text = self.text(value, location)?;
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_role = (1..=40).contains(&text.len()) && text.bytes().all(is_part);
        if !is_role || text.starts_with('-') {
            let said = "A role has 1 to 40 lowercase letters, digits and hyphens, and no hyphen first. It cannot be computed.";
            self.tell(location, Code::BadValue, said);
            return None;
        }
        Some(text.to_owned())
    }

    /// What a reviewer fills in, which is never computed.
    fn form(&mut self, value: &Value, location: &Location) -> Option<Value> {
        let faults = forms::faults(value);
        let is_sound = faults.is_empty() && self.is_written_out(value, location);
        for fault in faults {
            let path = format!("{}{}", location.path, fault.path);
            let said = format!("Expected {}.", fault.expected);
            self.fault(Fault::new(&path, Code::BadSchema, said));
        }
        is_sound.then(|| value.clone())
    }

    /// Whether no text of a value is an expression.
    pub(super) fn is_written_out(&mut self, value: &Value, location: &Location) -> bool {
        match value {
            Value::String(text) if text.contains("${") => {
                let most = text.chars().count();
                self.literal(value, location, most).is_some()
            }
            Value::Array(items) => {
                let each = items.iter().enumerate();
                each.fold(true, |all, (at, item)| {
                    self.is_written_out(item, &location.index(at)) && all
                })
            }
            Value::Object(fields) => fields.iter().fold(true, |all, (name, field)| {
                self.is_written_out(field, &location.key(name)) && all
            }),
            _ => true,
        }
    }

    /// `assignedTo`: a person, who is looked up when the approval is opened.
    fn assignee(&mut self, fields: &mut Fields<'a>) -> Option<Option<String>> {
        let Some((value, location)) = fields.take("assignedTo") else {
            return Some(None);
        };
        let text = self.literal(value, &location, ASSIGNEE_MOST)?;
        if !is_assignee(&text) {
            let said = "A user's id or email address is expected.";
            self.tell(&location, Code::BadValue, said);
            return None;
        }
        Some(Some(text))
    }

    fn escalation(
        &mut self,
        value: &'a Value,
        location: &Location,
        expires_after: Option<Duration>,
    ) -> Option<Option<Escalation>> {
        let Some(array) = value.as_array() else {
            let fault = Fault::new(
                &location.path,
                Code::BadValue,
                "A list of one escalation is expected.",
            );
            self.fault(fault.hint("[{\"after\": \"PT8H\", \"requiredRole\": \"finance-lead\"}]"));
            return None;
        };
        if array.len() > 1 {
            self.tell(
                location,
                Code::Unsupported,
                unsupported::other("escalation"),
            );
            return None;
        }
        let Some(value) = array.first() else {
            return Some(None);
        };
        let mut fields = self.object(value, &location.index(0))?;
        let after = fields.need(self, "after");
        let after =
            after.and_then(|(value, location)| Some((self.fixed(value, &location)?, location)));
        let role = fields.need(self, "requiredRole");
        let role = role.and_then(|(value, location)| self.role(value, &location));
        let assigned_to = self.assignee(&mut fields);
        fields.close(self, Part::Approval);
        let (after, location) = after?;
        if expires_after.is_some_and(|expires| after >= expires) {
            let said = "The approval would expire before it is escalated.";
            self.fault(
                Fault::new(&location.path, Code::BadValue, said)
                    .hint("`after` has to be shorter than `expiresAfter`."),
            );
            return None;
        }
        Some(Some(Escalation {
            after,
            required_role: role?,
            assigned_to: assigned_to?,
        }))
    }
}
