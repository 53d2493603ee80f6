//! The kinds of tasks that a flow performs by itself, and the flows that it runs.

use super::around::{Around, Targets};
use super::fault::{Code, Fault};
use super::references::{Reference, ReferenceKind};
use super::tree::{
    BRANCHES_MOST, CONCURRENCY_MOST, Case, ErrorTemplate, For, OnError, Parallel, Subflow,
    TaskKind, Template,
};
use super::unsupported::{self, Part};
use super::values::{Moment, RESERVED, Scope};
use super::walk::{Fields, Location, Walk, kind_of};
use serde_json::Value;

impl<'a> Walk<'a> {
    pub(super) fn set(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<TaskKind> {
        self.object_template(value, location, at).map(TaskKind::Set)
    }

    /// An object with expressions in it, or one expression for the whole.
    pub(super) fn object_template(
        &mut self,
        value: &Value,
        location: &Location,
        at: (&Scope, Moment),
    ) -> Option<Template> {
        let found = self.template(value, location, at)?;
        let is_taken = value.is_object() || matches!(found, Template::Expression(_));
        if !is_taken {
            let said = format!(
                "An object is expected, or an expression for one, not {}.",
                kind_of(value)
            );
            let fault = Fault::new(&location.path, Code::BadValue, said);
            self.fault(match value.is_string() {
                true => fault.hint("An expression stands in `${ }` here."),
                false => fault,
            });
            return None;
        }
        Some(found)
    }

    /// A text that may be an expression as a whole.
    pub(super) fn text_or_expression(
        &mut self,
        (value, location): (&Value, &Location),
        at: (&Scope, Moment),
    ) -> Option<Template> {
        self.text(value, location)?;
        self.template(value, location, at)
    }

    /// The name of a variable, without the dollar.
    pub(super) fn variable(
        &mut self,
        found: Option<(&'a Value, Location)>,
        name: &str,
    ) -> Option<String> {
        let Some((value, location)) = found else {
            return Some(name.to_owned());
        };
        let text = self.text(value, &location)?;
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            let first = bytes
                .next()
                .is_some_and(|first| first.is_ascii_alphabetic() || first == b'_');
            first
                && text.len() <= 100
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if RESERVED.contains(&text) {
            let said = format!("`{text}` is a variable of the language. Choose another name.");
            self.tell(&location, Code::BadValue, said);
            return None;
        }
        if !is_name(text) {
            let said = "A variable's name has letters, digits and underscores, at most 100, and no digit first.";
            let fault = Fault::new(&location.path, Code::BadValue, said);
            let bare = text.strip_prefix('$').filter(|bare| is_name(bare));
            self.fault(match bare {
                Some(bare) => fault.hint(format!("Write `{bare}` without the dollar.")),
                None => fault,
            });
            return None;
        }
        Some(text.to_owned())
    }

    pub(super) fn switch(
        &mut self,
        value: &'a Value,
        location: &Location,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<TaskKind> {
        let Some(array) = value.as_array().filter(|array| !array.is_empty()) else {
            let said = "A list of cases is expected, one at least.";
            let fault = Fault::new(&location.path, Code::BadValue, said);
            self.fault(fault.hint("[{\"large\": {\"when\": \".amount > 50\", \"then\": \"ask\"}}, {\"else\": {\"then\": \"pay\"}}]"));
            return None;
        };
        let cases: Vec<Option<Case>> = array
            .iter()
            .enumerate()
            .map(|(index, item)| self.case(item, &location.index(index), (around, targets)))
            .collect();
        let cases: Vec<Case> = cases.into_iter().collect::<Option<_>>()?;
        let defaults = cases.iter().filter(|case| case.when.is_none()).count();
        if defaults > 1 {
            self.tell(
                location,
                Code::BadValue,
                "A switch has one case without `when` at most.",
            );
            return None;
        }
        let first_default = cases.iter().position(|case| case.when.is_none());
        if first_default.is_some_and(|index| index + 1 < cases.len()) {
            let said = "The case without `when` always holds. Put it last.";
            self.tell(location, Code::BadValue, said);
            return None;
        }
        Some(TaskKind::Switch(cases))
    }

    fn case(
        &mut self,
        item: &'a Value,
        location: &Location,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<Case> {
        let (name, value) = self.named(item, location)?;
        let mut fields = self.object(value, &location.key(name))?;
        let when = match fields.take("when") {
            Some((value, location)) => {
                let at = (&around.scope, Moment::Within);
                self.expression(value, &location, at).map(Some)
            }
            None => Some(None),
        };
        let then = fields.need(self, "then");
        let then =
            then.and_then(|(value, location)| self.then(value, &location, (around, targets)));
        fields.close(self, Part::Other);
        Some(Case {
            name: name.to_owned(),
            when: when?,
            then: then?,
        })
    }

    /// `for`, with `while` and `do` beside it.
    pub(super) fn loops(
        &mut self,
        fields: &mut Fields<'a>,
        (value, location, tasks): (&'a Value, &Location, Option<(&'a Value, Location)>),
        (metadata, around): (Option<(&'a Value, Location)>, &Around<'a>),
    ) -> Option<TaskKind> {
        let condition = fields.take("while");
        let parallel = self.parallel(metadata);
        let mut of = self.object(value, location)?;
        let each = self.variable(of.take("each"), "item");
        let at = self.variable(of.take("at"), "index");
        let items = of.need(self, "in").and_then(|(value, location)| {
            self.expression(value, &location, (&around.scope, Moment::Within))
        });
        of.close(self, Part::Other);
        let names = (
            each.as_deref().unwrap_or("item"),
            at.as_deref().unwrap_or("index"),
        );
        if names.0 == names.1 {
            self.tell(
                location,
                Code::BadValue,
                "`each` and `at` name two variables, so they differ.",
            );
            return None;
        }
        let is_parallel = matches!(parallel, Some(Some(_)));
        let inside = match is_parallel {
            true => around.beside(&[names.0, names.1]),
            false => around.within(&[names.0, names.1]),
        };
        let condition = match condition {
            Some((_, location)) if is_parallel => {
                self.tell(&location, Code::Unsupported, unsupported::other("while"));
                None
            }
            Some((value, location)) => self
                .expression(value, &location, (&inside.scope, Moment::Within))
                .map(Some),
            None => Some(None),
        };
        let Some((tasks, tasks_place)) = tasks else {
            self.tell(
                &fields.location,
                Code::MissingField,
                "`do` is missing beside `for`.",
            );
            return None;
        };
        let tasks = self.list(tasks, &tasks_place, &inside);
        Some(TaskKind::For(For {
            each: each?,
            items: items?,
            at: at?,
            condition: condition?,
            tasks: tasks?,
            parallel: parallel?,
        }))
    }

    /// `metadata.concurrency` and `metadata.onError` of a loop.
    fn parallel(&mut self, metadata: Option<(&'a Value, Location)>) -> Option<Option<Parallel>> {
        let Some((metadata, location)) = metadata else {
            return Some(None);
        };
        let of = |name| metadata.get(name).map(|value| (value, location.key(name)));
        let choices = [
            ("fail-fast", OnError::FailFast),
            ("collect", OnError::Collect),
        ];
        let on_error = match of("onError") {
            Some((value, location)) => self.choice(value, &location, &choices),
            None => Some(OnError::FailFast),
        };
        let Some((value, location)) = of("concurrency") else {
            if let Some((_, location)) = of("onError") {
                let said =
                    "`onError` is for loops with `metadata.concurrency`, and does nothing here.";
                self.warn(Fault::new(&location.path, Code::BadValue, said));
            }
            return on_error.map(|_| None);
        };
        let concurrency = self.whole(value, &location, (1, CONCURRENCY_MOST));
        Some(Some(Parallel {
            concurrency: concurrency?,
            on_error: on_error?,
        }))
    }

    pub(super) fn fork(
        &mut self,
        value: &'a Value,
        location: &Location,
        around: &Around<'a>,
    ) -> Option<TaskKind> {
        let mut fields = self.object(value, location)?;
        if let Some((value, location)) = fields.take("compete")
            && value != &Value::Bool(false)
        {
            let said = unsupported::field(Part::Fork, "compete").unwrap_or_default();
            self.tell(&location, Code::Unsupported, said);
        }
        let branches = fields.need(self, "branches");
        fields.close(self, Part::Fork);
        let (value, location) = branches?;
        let count = value.as_array().map_or(0, Vec::len);
        if count > BRANCHES_MOST {
            let said =
                format!("A `fork` has {BRANCHES_MOST} branches at most, and this one {count}.");
            let fault = Fault::new(&location.path, Code::TooLarge, said);
            self.fault(fault.hint("A `for` with `metadata.concurrency` takes more."));
            return None;
        }
        let branches = self.branches(value, &location, &around.beside(&[]));
        branches.map(TaskKind::Fork)
    }

    pub(super) fn raise(
        &mut self,
        value: &'a Value,
        location: &Location,
        scope: &Scope,
    ) -> Option<TaskKind> {
        let mut fields = self.object(value, location)?;
        let error = fields.need(self, "error");
        fields.close(self, Part::Other);
        let (value, location) = error?;
        let (value, location) = match value.as_str() {
            Some(name) => self.find_declared("errors", name, &location)?,
            None => (value, location),
        };
        self.error(value, &location, scope).map(TaskKind::Raise)
    }

    /// An error that is raised.
    pub(super) fn error(
        &mut self,
        value: &Value,
        location: &Location,
        scope: &Scope,
    ) -> Option<ErrorTemplate> {
        let at = (scope, Moment::Within);
        let mut fields = self.object(value, location)?;
        let kind = fields.need(self, "type");
        let kind =
            kind.and_then(|(value, location)| self.text_or_expression((value, &location), at));
        match &kind {
            Some(Template::Literal(Value::String(kind))) => {
                self.types.raised.insert(kind.clone());
            }
            _ => self.types.may_raise_others = true,
        }
        let status =
            fields
                .need(self, "status")
                .and_then(|(value, location)| match value.is_string() {
                    true => self.template(value, &location, at).filter(|found| {
                        let is_expression = matches!(found, Template::Expression(_));
                        if !is_expression {
                            let said =
                                "A number from 400 to 599 is expected, or an expression in `${ }`.";
                            self.tell(&location, Code::BadValue, said);
                        }
                        is_expression
                    }),
                    false => {
                        let status = self.whole(value, &location, (400, 599))?;
                        Some(Template::Literal(Value::from(status)))
                    }
                });
        let mut optional = |walk: &mut Self, name| match fields.take(name) {
            Some((value, location)) => walk.text_or_expression((value, &location), at).map(Some),
            None => Some(None),
        };
        let (title, detail) = (optional(self, "title"), optional(self, "detail"));
        fields.close(self, Part::Error);
        Some(ErrorTemplate {
            kind: kind?,
            status: status?,
            title: title?,
            detail: detail?,
        })
    }

    /// `run`.
    pub(super) fn subflow(
        &mut self,
        value: &'a Value,
        location: &Location,
        scope: &Scope,
    ) -> Option<TaskKind> {
        let mut fields = self.object(value, location)?;
        if let Some((value, location)) = fields.take("await")
            && value != &Value::Bool(true)
        {
            self.tell(
                &location,
                Code::Unsupported,
                unsupported::other("run.await"),
            );
        }
        let workflow = fields.take("workflow");
        if workflow.is_none() && !fields.has_unknown() {
            self.tell(location, Code::MissingField, "`workflow` is missing.");
        }
        fields.close(self, Part::Run);
        let (value, location) = workflow?;
        let mut fields = self.object(value, &location)?;
        let namespace = fields.need(self, "namespace");
        let namespace = namespace.and_then(|(value, location)| self.label(value, &location));
        let name = fields.need(self, "name");
        let name = name.and_then(|(value, location)| self.label(value, &location));
        let version = match fields.take("version") {
            Some((value, location)) => match value.as_str() {
                Some("latest") => Some(None),
                _ => self.version(value, &location).map(Some),
            },
            None => Some(None),
        };
        let input = match fields.take("input") {
            Some((value, location)) => self
                .template(value, &location, (scope, Moment::Within))
                .map(Some),
            None => Some(None),
        };
        fields.close(self, Part::Other);
        let flow_id = format!("{}.{}", namespace?, name?);
        let version = version?;
        // An error of that flow arrives as it was raised there.
        self.types.may_raise_others = true;
        self.refer(Reference {
            kind: ReferenceKind::Flow,
            name: flow_id.clone(),
            version: version.clone(),
            path: location.path,
        });
        Some(TaskKind::Run(Subflow {
            flow_id,
            version,
            input: input?,
        }))
    }
}
