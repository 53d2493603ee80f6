//! `call: guardrail`: the checks of the task, which are its own and never computed.
//!
//! Not here: how checks judge (`guardrails`).

use super::fault::{Code, Fault};
use super::tree::GuardrailCall;
use super::unsupported::{self, Part};
use super::values::{Moment, Scope};
use super::walk::{Fields, Location, Walk, kind_of};
use crate::guardrails::{Action, Guardrail, Point, compile_all};
use serde_json::{Value, json};

impl<'a> Walk<'a> {
    pub(super) fn guardrail(
        &mut self,
        mut fields: Fields<'a>,
        scope: &Scope,
    ) -> Option<GuardrailCall> {
        let text = fields.need(self, "text");
        let text = text.and_then(|(value, location)| {
            self.text_or_expression((value, &location), (scope, Moment::Within))
        });
        let point = match fields.take("point") {
            Some((value, location)) => self.point(value, &location),
            None => Some(Point::Output),
        };
        let guardrails = fields.need(self, "guardrails");
        let guardrails =
            guardrails.and_then(|(value, location)| self.guardrails(value, &location, point));
        fields.close(self, Part::Other);
        Some(GuardrailCall {
            text: text?,
            guardrails: guardrails?,
            point: point?,
        })
    }

    /// What the text is taken for. One that is computed would change which checks judge.
    fn point(&mut self, value: &Value, location: &Location) -> Option<Point> {
        if *value == json!(Point::ToolArguments) {
            let said = unsupported::other("guardrail.arguments");
            self.tell(location, Code::Unsupported, said);
            return None;
        }
        let choices = [Point::Input, Point::ToolResult, Point::Output];
        self.choice(value, location, &choices.map(|point| (point.text(), point)))
    }

    /// The list, in the form that is kept of guardrails.
    fn guardrails(
        &mut self,
        value: &'a Value,
        location: &Location,
        point: Option<Point>,
    ) -> Option<Value> {
        let Some(items) = value.as_array() else {
            let said = format!("A list of guardrails is expected, not {}.", kind_of(value));
            self.tell(location, Code::BadValue, said);
            return None;
        };
        let items = items.iter().enumerate();
        let read: Vec<Option<Guardrail>> = items
            .map(|(index, item)| self.one_guardrail(item, &location.index(index)))
            .collect();
        let read = read.into_iter().collect::<Option<Vec<Guardrail>>>()?;
        if let Err(fault) = compile_all(&read) {
            let path = format!("{}{}", location.path, fault.path);
            let said = format!("Expected {}.", fault.expected);
            self.fault(Fault::new(&path, Code::BadValue, said));
            return None;
        }
        let point = point?;
        // Otherwise nothing would be checked, and the verdict would say that it is allowed.
        if !read.iter().any(|guardrail| guardrail.at.contains(&point)) {
            let said = format!(
                "None of these guardrails stands at `{}`, so nothing would be checked.",
                point.text()
            );
            self.tell(location, Code::BadValue, said);
            return None;
        }
        Some(json!(read))
    }

    fn one_guardrail(&mut self, value: &'a Value, location: &Location) -> Option<Guardrail> {
        let before = self.faults.len();
        let mut fields = self.object(value, location)?;
        for name in ["builtin", "at", "action"] {
            fields.need(self, name);
        }
        for name in ["name", "config", "onError"] {
            fields.take(name);
        }
        self.refuse_action(value, location);
        fields.close(self, Part::Guardrail);
        let is_written_out = self.is_written_out(value, location);
        if self.faults.len() > before || !is_written_out {
            return None;
        }
        match serde_path_to_error::deserialize(value) {
            Ok(guardrail) => Some(guardrail),
            Err(error) => {
                let path = format!("{}.{}", location.path, error.path());
                let said = format!("This cannot be read: {}.", error.inner());
                self.fault(Fault::new(&path, Code::BadValue, said));
                None
            }
        }
    }

    /// What a flow does by other tasks.
    fn refuse_action(&mut self, value: &Value, location: &Location) {
        if value["action"] == json!(Action::Approve) {
            let said = unsupported::other("guardrail.approve");
            self.tell(&location.key("action"), Code::Unsupported, said);
        }
        let at = value["at"].as_array().map(Vec::as_slice);
        for (index, point) in at.unwrap_or_default().iter().enumerate() {
            if *point == json!(Point::ToolArguments) {
                let said = unsupported::other("guardrail.arguments");
                self.tell(&location.key("at").index(index), Code::Unsupported, said);
            }
        }
    }
}
