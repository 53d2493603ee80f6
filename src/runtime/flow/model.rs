//! The machine beside a model of it: an interpreter that is recursive, keeps nothing and reads the JSON of the definition.
//!
//! Random definitions give the same output or the same error in both, although the machine is made anew from its row at
//! each transition and decides some of them twice, as after a crash.
//!
//! Not here: calls, forks, timeouts and bounds.

use super::next;
use super::tests::{about, waited};
use crate::flows::definition::check;
use crate::flows::definition::tree::Definition;
use crate::runtime::journal::decision::Next;
use crate::store::flow_states::FlowState;
use crate::store::runs::End;
use expressions::{Budget, Expression};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// How a run ends: its output, or the status and the task of its error.
type Ended = Result<Value, (u64, String)>;

/// How a list ends, with the data.
enum Left {
    /// After its last task.
    Over(Value),
    /// By `exit`.
    Exited(Value),
    /// By `end`, which ends the run.
    Ended(Value),
}

/// The model: `$context` is all that outlives a task.
struct Model {
    context: Value,
    input: Value,
}

/// The variables of loops and of errors, outermost first.
type Named = Vec<(String, Value)>;

impl Model {
    fn evaluate(&self, source: &str, on: &Value, of: (&Named, &Value), path: &str) -> Ended {
        let (named, input) = of;
        let workflow = json!({"input": self.input});
        let known = [
            ("context", &self.context),
            ("input", input),
            ("workflow", &workflow),
        ];
        let inner = named.iter().rev();
        let all = inner.map(|(name, value)| (name.as_str(), value));
        let all: Vec<_> = all.chain(known).collect();
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let expression = Expression::parse(source, &names).unwrap();
        let mut budget = Budget::new(1_000_000, 5_000_000);
        match expression.evaluate(on, &all, &mut budget) {
            Ok(outputs) => Ok(outputs.into_iter().next().unwrap_or_default()),
            Err(_) => Err((400, path.to_owned())),
        }
    }

    fn is_true(
        &self,
        source: &str,
        on: &Value,
        of: (&Named, &Value),
        path: &str,
    ) -> Result<bool, (u64, String)> {
        let value = self.evaluate(source, on, of, path)?;
        Ok(value != Value::Null && value != Value::Bool(false))
    }

    /// Texts in `${ }` at any depth are expressions.
    fn fill(&self, template: &Value, on: &Value, of: (&Named, &Value), path: &str) -> Ended {
        match template {
            Value::String(text) if text.starts_with("${") => {
                self.evaluate(&text[2..text.len() - 1], on, of, path)
            }
            Value::Object(fields) => {
                let mut filled = Map::new();
                for (name, field) in fields {
                    filled.insert(name.clone(), self.fill(field, on, of, path)?);
                }
                Ok(Value::Object(filled))
            }
            literal => Ok(literal.clone()),
        }
    }

    fn list(
        &mut self,
        tasks: &Value,
        mut data: Value,
        named: &Named,
        path: &str,
    ) -> Result<Left, (u64, String)> {
        let tasks = tasks.as_array().unwrap();
        let mut at = 0;
        while let Some(entry) = tasks.get(at) {
            let (name, task) = entry.as_object().unwrap().iter().next().unwrap();
            let path = format!("{path}/{at}/{name}");
            let (output, then) = match self.task(task, data, named, &path)? {
                (Left::Ended(data), _) => return Ok(Left::Ended(data)),
                (Left::Over(output) | Left::Exited(output), then) => (output, then),
            };
            data = output;
            match then.as_str() {
                "continue" => at += 1,
                "exit" => return Ok(Left::Exited(data)),
                "end" => return Ok(Left::Ended(data)),
                name => {
                    at = tasks
                        .iter()
                        .position(|task| task.get(name).is_some())
                        .unwrap()
                }
            }
        }
        Ok(Left::Over(data))
    }

    /// What a task answers, and what follows it.
    fn task(
        &mut self,
        task: &Value,
        data: Value,
        named: &Named,
        path: &str,
    ) -> Result<(Left, String), (u64, String)> {
        let mut then = task["then"].as_str().unwrap_or("continue").to_owned();
        if let Some(condition) = task["if"].as_str()
            && !self.is_true(condition, &data, (named, &data), path)?
        {
            return Ok((Left::Over(data), "continue".to_owned()));
        }
        let input = match task["input"]["from"].as_str() {
            Some(from) => self.evaluate(from, &data, (named, &data), path)?,
            None => data,
        };
        let answer = if let Some(cases) = task["switch"].as_array() {
            for case in cases {
                let case = case.as_object().unwrap().values().next().unwrap();
                let when = case["when"].as_str().unwrap_or("true");
                if self.is_true(when, &input, (named, &input), path)? {
                    case["then"].as_str().unwrap().clone_into(&mut then);
                    break;
                }
            }
            input.clone()
        } else {
            match self.does(task, &input, named, path)? {
                Left::Ended(data) => return Ok((Left::Ended(data), then)),
                Left::Over(answer) | Left::Exited(answer) => answer,
            }
        };
        let output = match task["output"]["as"].as_str() {
            Some(shape) => self.evaluate(shape, &answer, (named, &input), path)?,
            None => answer,
        };
        if let Some(export) = task["export"]["as"].as_str() {
            self.context = self.evaluate(export, &output, (named, &input), path)?;
        }
        Ok((Left::Over(output), then))
    }

    fn does(
        &mut self,
        task: &Value,
        input: &Value,
        named: &Named,
        path: &str,
    ) -> Result<Left, (u64, String)> {
        let of = (named, input);
        if let Some(template) = task.get("set") {
            return Ok(Left::Over(self.fill(template, input, of, path)?));
        }
        if task.get("wait").is_some() {
            return Ok(Left::Over(input.clone()));
        }
        if let Some(raise) = task.get("raise") {
            let status = raise["error"]["status"].as_u64().unwrap();
            return Err((status, path.to_owned()));
        }
        if task.get("try").is_some() {
            return self.tries(task, input, named, path);
        }
        if task.get("for").is_some() {
            return self.repeats(task, input, named, path);
        }
        self.list(&task["do"], input.clone(), named, &format!("{path}/do"))
    }

    fn tries(
        &mut self,
        task: &Value,
        input: &Value,
        named: &Named,
        path: &str,
    ) -> Result<Left, (u64, String)> {
        let catch = &task["catch"];
        let most = catch["retry"]["limit"]["attempt"]["count"].as_u64();
        for attempt in 1.. {
            let tried = self.list(&task["try"], input.clone(), named, &format!("{path}/try"));
            let (status, instance) = match tried {
                Err(error) => error,
                Ok(left) => return Ok(left),
            };
            let wanted = catch["errors"]["with"]["status"].as_u64();
            if wanted.is_some_and(|wanted| wanted != status) {
                return Err((status, instance));
            }
            let mut named = named.clone();
            let error = json!({"status": status, "instance": instance});
            named.push(("error".to_owned(), error));
            if let Some(when) = catch["when"].as_str()
                && !self.is_true(when, input, (&named, input), path)?
            {
                return Err((status, instance));
            }
            if most.is_some_and(|most| attempt < most) {
                continue;
            }
            return match catch.get("do") {
                Some(tasks) => self.list(tasks, input.clone(), &named, &format!("{path}/catch/do")),
                None if most.is_some() && catch.get("then").is_none() => Err((status, instance)),
                None => Ok(Left::Over(input.clone())),
            };
        }
        unreachable!("tries end")
    }

    fn repeats(
        &mut self,
        task: &Value,
        input: &Value,
        named: &Named,
        path: &str,
    ) -> Result<Left, (u64, String)> {
        let items = task["for"]["in"].as_str().unwrap();
        let Value::Array(items) = self.evaluate(items, input, (named, input), path)? else {
            return Err((400, path.to_owned()));
        };
        let mut data = input.clone();
        for (at, item) in items.into_iter().enumerate() {
            let mut named = named.clone();
            named.push(("item".to_owned(), item));
            named.push(("index".to_owned(), json!(at)));
            if let Some(condition) = task["while"].as_str()
                && !self.is_true(condition, &data, (&named, &data), path)?
            {
                break;
            }
            match self.list(&task["do"], data, &named, &format!("{path}/do"))? {
                Left::Over(output) => data = output,
                left => return Ok(left),
            }
        }
        Ok(Left::Over(data))
    }
}

fn of_model(definition: &Value, input: &Value) -> Ended {
    let (context, input) = (Value::Null, input.clone());
    let mut model = Model { context, input };
    let data = model.input.clone();
    match model.list(&definition["do"], data, &Vec::new(), "/do")? {
        Left::Over(data) | Left::Exited(data) | Left::Ended(data) => Ok(data),
    }
}

/// Runs the machine. `crashes`: whether each transition is decided twice, the second time later, from a row that was written.
fn of_machine(definition: &Definition, input: &Value, crashes: &[bool]) -> Ended {
    let about = about(input.clone());
    let mut now = about.started_at;
    let mut state: Option<FlowState> = None;
    for transition in 0.. {
        let step = state.is_some().then(waited);
        let mut decision = next::next(definition, &about, (state.as_ref(), step.as_ref()), now);
        if crashes.get(transition % crashes.len().max(1)) == Some(&true) {
            now += Duration::from_secs(3);
            decision = next::next(definition, &about, (state.as_ref(), step.as_ref()), now);
        }
        match decision.next {
            Next::Wait { duration, .. } => {
                now += duration;
                state = decision.flow_state.map(written);
            }
            Next::End(End::Completed { output, .. }) => return Ok(output),
            Next::End(End::Failed {
                error: Some(error), ..
            }) => {
                let instance = error["instance"].as_str().unwrap().to_owned();
                return Err((error["status"].as_u64().unwrap(), instance));
            }
            other => panic!("{other:?}"),
        }
    }
    unreachable!("a run ends")
}

/// A row as it comes back from the database.
fn written(row: FlowState) -> FlowState {
    let again = |value: &Value| serde_json::from_str(&value.to_string()).unwrap();
    FlowState {
        frames: again(&row.frames),
        data: again(&row.data),
        context: again(&row.context),
        ..row
    }
}

/// Makes definitions from bytes: fewer and smaller bytes make a simpler one.
struct Maker {
    bytes: std::vec::IntoIter<u8>,
    tasks: usize,
}

/// How deep a task stands, and in what.
#[derive(Clone, Copy)]
struct Nesting {
    depth: usize,
    is_in_loop: bool,
    is_in_catch: bool,
}

impl Maker {
    fn pick(&mut self, of: usize) -> usize {
        usize::from(self.bytes.next().unwrap_or_default()) % of
    }

    fn value(&mut self, at: Nesting) -> &'static str {
        let mut all = vec![
            ".",
            ".n",
            "{n: 1}",
            "{n: ((.n? // 0) | numbers + 1)}",
            ".n + 1",
            "$context",
            "$workflow.input",
            "[.n?]",
        ];
        if at.is_in_loop {
            all.extend(["$item", "{n: $item}", "{n: $index}"]);
        }
        if at.is_in_catch {
            all.extend(["$error.instance", "{n: $error.status}"]);
        }
        all[self.pick(all.len())]
    }

    fn condition(&mut self, at: Nesting) -> &'static str {
        let mut all = vec![
            "true",
            "false",
            ".n? == 1",
            ".n > 1",
            "$context",
            "$workflow.input.n == .n?",
        ];
        if at.is_in_loop {
            all.extend(["$index < 1", "$item == 2"]);
        }
        if at.is_in_catch {
            all.push("$error.status == 409");
        }
        all[self.pick(all.len())]
    }

    fn list(&mut self, at: Nesting) -> Value {
        let names: Vec<String> = (0..=self.pick(4))
            .map(|_| {
                self.tasks += 1;
                format!("t{}", self.tasks)
            })
            .collect();
        let inner = Nesting {
            depth: at.depth + 1,
            ..at
        };
        let tasks = names.iter().enumerate().map(|(index, name)| {
            let mut task = self.task(&names[index + 1..], inner);
            for (field, inside) in [("input", "from"), ("output", "as"), ("export", "as")] {
                if self.pick(6) == 5 {
                    task[field] = json!({inside: self.value(at)});
                }
            }
            if self.pick(5) == 4 {
                task["if"] = json!(self.condition(at));
            }
            if self.pick(8) == 7 && task.get("switch").is_none() {
                task["then"] = json!(self.then(&names[index + 1..]));
            }
            json!({name: task})
        });
        Value::Array(tasks.collect())
    }

    fn then(&mut self, later: &[String]) -> String {
        let at = self.pick(later.len() + 3);
        let words = ["continue", "exit", "end"].map(str::to_owned);
        later.iter().chain(&words).nth(at).unwrap().clone()
    }

    fn task(&mut self, later: &[String], at: Nesting) -> Value {
        let kinds = if at.depth > 3 { 5 } else { 8 };
        match self.pick(kinds) {
            0 => json!({"set": {"n": self.pick(4)}}),
            1 => json!({"set": format!("${{ {} }}", self.value(at))}),
            2 => json!({"wait": {"seconds": 1}}),
            3 => {
                let status = [409, 503][self.pick(2)];
                json!({"if": self.condition(at), "raise": {"error": {"type": "https://example.com/no", "status": status}}})
            }
            4 => {
                let first = json!({"when": self.condition(at), "then": self.then(later)});
                json!({"switch": [{"first": first}, {"second": {"when": self.condition(at), "then": self.then(later)}}]})
            }
            5 => json!({"do": self.list(at)}),
            6 => {
                let items = ["[1, 2, 3]", "[.n?, 2]", ".n", "[]"][self.pick(4)];
                let inner = Nesting {
                    is_in_loop: true,
                    ..at
                };
                let mut task = json!({"for": {"in": items}, "do": self.list(inner)});
                if self.pick(3) == 2 {
                    task["while"] = json!(self.condition(inner));
                }
                task
            }
            _ => self.tries(at),
        }
    }

    fn tries(&mut self, at: Nesting) -> Value {
        let inner = Nesting {
            is_in_catch: true,
            ..at
        };
        let tasks = self.list(at);
        let mut catch = json!({});
        if self.pick(2) == 1 {
            let status = [400, 409, 503][self.pick(3)];
            catch["errors"] = json!({"with": {"status": status}});
        }
        if self.pick(4) == 3 {
            catch["when"] = json!(self.condition(inner));
        }
        if self.pick(2) == 1 {
            let count = 1 + self.pick(3);
            catch["retry"] =
                json!({"delay": {"seconds": 1}, "limit": {"attempt": {"count": count}}});
        }
        if self.pick(2) == 1 {
            catch["do"] = self.list(inner);
        }
        json!({"try": tasks, "catch": catch})
    }
}

fn definition(bytes: Vec<u8>) -> (Value, Definition) {
    let mut maker = Maker {
        bytes: bytes.into_iter(),
        tasks: 0,
    };
    let outermost = Nesting {
        depth: 0,
        is_in_loop: false,
        is_in_catch: false,
    };
    let document = json!({"dsl": "1.0.3", "namespace": "test", "name": "flow", "version": "1.0.0"});
    let whole = json!({"document": document, "do": maker.list(outermost)});
    let taken = check(&whole).unwrap_or_else(|faults| panic!("{whole}: {faults:?}"));
    (whole, taken)
}

fn cases() -> u32 {
    let vars = crate::config::Vars::from_environment();
    match vars.text("AGENT_RUNTIME_TEST_SOAK") {
        Some(_) => 100_000,
        None => 2_000,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_machine_ends_as_its_model_ends_whatever_crashes(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        crashes in prop::collection::vec(any::<bool>(), 1..6),
        n in 0..4,
    ) {
        let (whole, taken) = definition(bytes);
        let input = json!({"n": n});
        let expected = of_model(&whole, &input);
        prop_assert_eq!(of_machine(&taken, &input, &crashes), expected, "{}", whole);
    }
}
