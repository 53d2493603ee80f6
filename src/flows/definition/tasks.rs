//! Lists of tasks, and what all kinds of tasks have in common.

use super::around::{Around, Targets};
use super::fault::{Code, Fault};
use super::tree::{NESTING_MOST, Shape, TASKS_MOST, Task, TaskKind, Template, Then, Time};
use super::unsupported::{self, Part};
use super::values::Moment;
use super::walk::{Fields, Location, Walk, kind_of, with_nearest};
use expressions::Expression;
use serde_json::{Map, Value};

/// What a task can do, by the field that says so. `for`, `try` and `call` come first: the other fields beside them are theirs.
const KINDS: [&str; 11] = [
    "for", "try", "call", "do", "fork", "raise", "run", "set", "switch", "wait", "catch",
];

/// The words of `then` that name no task.
const WORDS: [(&str, Then); 3] = [
    ("continue", Then::Continue),
    ("exit", Then::Exit),
    ("end", Then::End),
];

const LIST: &str = "A list of tasks is an array of objects with one field each, the task's name: [{\"first\": {…}}, {\"second\": {…}}].";

/// What a task has whatever it does.
struct Common {
    condition: Option<Expression>,
    input: Shape,
    output: Shape,
    export: Shape,
    timeout: Option<Time>,
    then: Then,
    simulated: Option<Template>,
}

impl<'a> Walk<'a> {
    /// A list of tasks.
    pub(super) fn list(
        &mut self,
        value: &'a Value,
        location: &Location,
        around: &Around<'a>,
    ) -> Option<Vec<Task>> {
        let items = self.items(value, location, around)?;
        let names: Vec<&str> = items.iter().map(|(name, _, _)| *name).collect();
        let is_whole = value.as_array().is_some_and(|all| all.len() == items.len());
        let tasks: Vec<Option<Task>> = items
            .iter()
            .map(|(name, value, location)| {
                self.task((name, value), location, (around, Targets::List(&names)))
            })
            .collect();
        let tasks: Vec<Task> = tasks.into_iter().collect::<Option<_>>()?;
        self.unreachable(&tasks, &items);
        is_whole.then_some(tasks)
    }

    /// The branches of a `fork`.
    pub(super) fn branches(
        &mut self,
        value: &'a Value,
        location: &Location,
        around: &Around<'a>,
    ) -> Option<Vec<Task>> {
        let items = self.items(value, location, around)?;
        let is_whole = value.as_array().is_some_and(|all| all.len() == items.len());
        let tasks: Vec<Option<Task>> = items
            .iter()
            .map(|(name, value, location)| {
                self.task((name, value), location, (around, Targets::Branch))
            })
            .collect();
        let tasks: Vec<Task> = tasks.into_iter().collect::<Option<_>>()?;
        is_whole.then_some(tasks)
    }

    /// The tasks of a list by name. What is none is told and left out.
    fn items(
        &mut self,
        value: &'a Value,
        location: &Location,
        around: &Around<'a>,
    ) -> Option<Vec<(&'a str, &'a Value, Location)>> {
        let Some(array) = value.as_array() else {
            let said = format!("A list of tasks is expected, not {}.", kind_of(value));
            self.fault(Fault::new(&location.path, Code::BadValue, said).hint(LIST));
            return None;
        };
        if array.is_empty() {
            self.tell(location, Code::BadValue, "A list has one task at least.");
            return None;
        }
        if !self.is_within_nesting(around.levels, location) {
            return None;
        }
        let mut items: Vec<(&str, &Value, Location)> = Vec::new();
        for (index, item) in array.iter().enumerate() {
            let location = location.index(index);
            let Some((name, task)) = self.named(item, &location) else {
                continue;
            };
            let location = location.key(name);
            if items.iter().any(|(known, _, _)| *known == name) {
                let said = format!("The list has two tasks with the name `{name}`.");
                self.tell(&location, Code::BadValue, said);
                continue;
            }
            items.push((name, task, location));
        }
        Some(items)
    }

    /// Whether a list may stand in so many others. What reads, draws and runs a definition goes down list by list, and a call
    /// of a function is one more.
    pub(super) fn is_within_nesting(&mut self, levels: usize, location: &Location) -> bool {
        let is_within = levels < NESTING_MOST;
        if !is_within {
            let said = format!(
                "Lists of tasks nest {NESTING_MOST} deep at most. A call of a function of `use.functions` counts as a list."
            );
            self.tell(location, Code::TooLarge, said);
        }
        is_within
    }

    /// An object with one field, whose name is that of a task or a case.
    pub(super) fn named(
        &mut self,
        item: &'a Value,
        location: &Location,
    ) -> Option<(&'a str, &'a Value)> {
        let entries = item.as_object();
        let entry = entries
            .filter(|map| map.len() == 1)
            .and_then(|map| map.iter().next());
        let Some((name, value)) = entry else {
            let found = match entries {
                Some(map) => format!("an object with {} fields", map.len()),
                None => kind_of(item).to_owned(),
            };
            let said = format!("An object with one field, a name, is expected, not {found}.");
            self.fault(Fault::new(&location.path, Code::BadValue, said).hint(LIST));
            return None;
        };
        let is_word = WORDS.iter().any(|(word, _)| word == name);
        let length = name.chars().count();
        if is_word || !(1..=100).contains(&length) || name.chars().any(char::is_control) {
            let said = match is_word {
                true => format!("`{name}` is a word of `then`, and cannot be a name."),
                false => "A name has 1 to 100 characters, none a control character.".to_owned(),
            };
            self.tell(location, Code::BadValue, said);
            return None;
        }
        Some((name, value))
    }

    /// A task.
    pub(super) fn task(
        &mut self,
        (name, value): (&str, &'a Value),
        location: &Location,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<Task> {
        self.tasks += 1;
        if self.tasks > TASKS_MOST {
            let said = format!(
                "A definition has {TASKS_MOST} tasks at most, those of functions counted at each call."
            );
            self.fault(Fault::new("$", Code::TooLarge, said));
            return None;
        }
        let mut fields = self.object(value, location)?;
        let metadata = match fields.take("metadata") {
            Some((value, location)) => self
                .object(value, &location)
                .map(|_| Some((value, location))),
            None => Some(None),
        };
        let metadata_map = metadata.clone().flatten();
        let common = self.common(&mut fields, metadata_map.clone(), (around, targets));
        let kind = self.kind(&mut fields, (name, metadata_map), (around, targets));
        fields.close(self, Part::Task);
        let metadata = metadata?.and_then(|(value, _)| value.as_object().cloned());
        let (common, kind) = (common?, kind?);
        Some(Task {
            name: name.to_owned(),
            path: location.pointer.clone(),
            condition: common.condition,
            input: common.input,
            output: common.output,
            export: common.export,
            timeout: common.timeout,
            then: common.then,
            metadata: metadata.unwrap_or_default(),
            simulated: common.simulated,
            kind,
        })
    }

    fn common(
        &mut self,
        fields: &mut Fields<'a>,
        metadata: Option<(&'a Value, Location)>,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<Common> {
        let scope = &around.scope;
        let before = (scope, Moment::Before);
        let condition = match fields.take("if") {
            Some((value, location)) => self.expression(value, &location, before).map(Some),
            None => Some(None),
        };
        let input = self.shape(fields.take("input"), "from", before);
        let timeout = self.timeout(fields.take("timeout"), before);
        let output = self.shape(fields.take("output"), "as", (scope, Moment::Within));
        let export = fields.take("export");
        if let Some((_, location)) = export.as_ref().filter(|_| around.in_branch) {
            self.tell(location, Code::Unsupported, unsupported::other("export"));
        }
        let export = self.shape(export, "as", (scope, Moment::After));
        let then = match fields.take("then") {
            Some((value, location)) => self.then(value, &location, (around, targets)),
            None => Some(Then::Continue),
        };
        let simulated = self.simulated(metadata, around);
        Some(Common {
            condition: condition?,
            input: input?,
            output: output?,
            export: export?,
            timeout: timeout?,
            then: then?,
            simulated: simulated?,
        })
    }

    /// `metadata.dryRun`.
    fn simulated(
        &mut self,
        metadata: Option<(&'a Value, Location)>,
        around: &Around<'a>,
    ) -> Option<Option<Template>> {
        let found = metadata
            .and_then(|(value, location)| Some((value.get("dryRun")?, location.key("dryRun"))));
        let Some((value, location)) = found else {
            return Some(None);
        };
        let only: Option<&Map<String, Value>> = value.as_object().filter(|map| map.len() == 1);
        let Some(output) = only.and_then(|map| map.get("output")) else {
            self.tell(&location, Code::Unsupported, unsupported::other("dryRun"));
            return None;
        };
        let at = (&around.scope, Moment::Within);
        self.template(output, &location.key("output"), at).map(Some)
    }

    /// `then`.
    pub(super) fn then(
        &mut self,
        value: &Value,
        location: &Location,
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<Then> {
        let text = self.text(value, location)?;
        if let Some((_, then)) = WORDS.iter().find(|(word, _)| *word == text) {
            if *then == Then::End && around.in_branch {
                self.tell(location, Code::Unsupported, unsupported::other("end"));
                return None;
            }
            return Some(*then);
        }
        let names = match targets {
            Targets::List(names) => names,
            Targets::Function => &[],
            Targets::Branch => {
                self.tell(location, Code::UnknownTarget, unsupported::other("branch"));
                return None;
            }
        };
        if let Some(index) = names.iter().position(|name| *name == text) {
            return Some(Then::Task(index));
        }
        let words = WORDS.iter().map(|(word, _)| *word);
        let known: Vec<&str> = words.chain(names.iter().copied()).collect();
        let said =
            format!("`then` leads to a task of the same list, and this one has no `{text}`.");
        let fault = Fault::new(&location.path, Code::UnknownTarget, said);
        self.fault(with_nearest(fault, text, &known));
        None
    }

    /// What a task does.
    fn kind(
        &mut self,
        fields: &mut Fields<'a>,
        (name, metadata): (&str, Option<(&'a Value, Location)>),
        (around, targets): (&Around<'a>, Targets<'_>),
    ) -> Option<TaskKind> {
        let found = KINDS.map(|kind| fields.take(kind));
        let mut present = KINDS
            .iter()
            .zip(found)
            .filter_map(|(kind, found)| Some((*kind, found?)));
        let Some((kind, (value, location))) = present.next() else {
            // A field that is not known is told, and is probably what it should do.
            if !fields.has_unknown() {
                let known = KINDS.split_last().map(|(_, known)| known.join(", "));
                let fault = Fault::new(
                    &fields.location.path,
                    Code::MissingField,
                    "The task does nothing.",
                );
                self.fault(fault.hint(format!("It has one of: {}.", known.unwrap_or_default())));
            }
            return None;
        };
        let beside: Vec<(&str, (&'a Value, Location))> = present.collect();
        let own = match kind {
            "for" => Some("do"),
            "try" => Some("catch"),
            _ => None,
        };
        for (other, (_, location)) in &beside {
            if Some(*other) != own {
                let said = format!("A task does one thing: this one has `{kind}` and `{other}`.");
                let fault = Fault::new(&location.path, Code::BadValue, said);
                self.fault(fault.hint("Make two tasks of it, or put them into a list with `do`."));
            }
        }
        let own = beside.into_iter().find(|(other, _)| Some(*other) == own);
        let own = own.map(|(_, found)| found);
        let at = (&around.scope, Moment::Within);
        match kind {
            "for" => self.loops(fields, (value, &location, own), (metadata, around)),
            "try" => self.tries((value, &location, own), fields, (around, targets)),
            "call" => self.call(fields, (value, &location), (name, around)),
            "do" => self
                .list(value, &location, &around.within(&[]))
                .map(TaskKind::Do),
            "fork" => self.fork(value, &location, around),
            "raise" => self.raise(value, &location, &around.scope),
            "run" => self.subflow(value, &location, &around.scope),
            "set" => self.set(value, &location, at),
            "switch" => self.switch(value, &location, (around, targets)),
            "wait" => {
                let longest = super::tree::LONGEST;
                self.time(value, &location, (at, longest))
                    .map(TaskKind::Wait)
            }
            _ => {
                self.tell(
                    &location,
                    Code::BadValue,
                    "`catch` stands beside `try`, which is missing.",
                );
                None
            }
        }
    }

    /// Warns of tasks that no path leads to.
    fn unreachable(&mut self, tasks: &[Task], items: &[(&str, &Value, Location)]) {
        let mut reached = vec![false; tasks.len()];
        let mut next = vec![0];
        while let Some(index) = next.pop() {
            let (Some(mark), Some(task)) = (reached.get_mut(index), tasks.get(index)) else {
                continue;
            };
            if std::mem::replace(mark, true) {
                continue;
            }
            next.extend(
                task.followers()
                    .into_iter()
                    .filter_map(|(then, _)| match then {
                        Then::Continue => Some(index + 1),
                        Then::Task(target) => Some(target),
                        Then::Exit | Then::End => None,
                    }),
            );
        }
        for ((_, _, location), _) in items.iter().zip(reached).filter(|(_, reached)| !reached) {
            let fault = Fault::new(
                &location.path,
                Code::Unreachable,
                "Nothing leads to this task, so it never runs.",
            );
            self.warn(fault.hint("Remove it, or name it in a `then`."));
        }
    }
}
