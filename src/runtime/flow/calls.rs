//! Calls of tools and of HTTP servers: what their steps are asked, and what the answers mean.

use super::approvals::{ask, refused};
use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use super::unanswered::keep_key;
use crate::flows::definition::is_secret_header;
use crate::flows::definition::tree::{HttpCall, HttpOutput, Task, ToolCall};
use crate::runtime::journal::call::{
    AskedAgain, FlowToolRequest, HttpAnswer, HttpRequest, Simulated, is_http_error,
};
use crate::runtime::journal::decision::{FamilyCall, NewStep, Next};
use crate::runtime::journal::read;
use crate::runtime::journal::wait::ApprovalResult;
use crate::runtime::{tool_approvals, tool_children};
use crate::store::approvals::ApprovalStatus;
use crate::store::steps::{Step, StepKind};
use crate::text::media_type_essence;
use crate::tools::Answer;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// How much of an error's body its detail has, in characters.
const DETAIL_CHARACTERS: usize = 2_000;

impl<'a> Machine<'a> {
    /// Begins the call, or what asks a reviewer first.
    pub(super) fn begin_tool(&mut self, task: &'a Task, tool: &'a ToolCall) -> Moved<'a> {
        let request = self.tool_request(task, tool)?;
        let called = self.about.tool(&tool.tool);
        let level = self.about.flows;
        let called = called.filter(|called| !tool_children::is_too_deep(called, level));
        let asks = called.and_then(|called| {
            let arguments = request.arguments.to_string();
            tool_approvals::of_call((called, called.approval.as_ref()?), &arguments, None)
        });
        let unanswered = self.take_unanswered(task)?;
        let Some(asks) = asks else {
            let mut asked = json!(request);
            if let Some(unanswered) = unanswered {
                keep_key(&mut asked, unanswered, None);
            }
            return Ok(self.call(task, tool, &request, asked));
        };
        let again = unanswered.map(|unanswered| AskedAgain {
            tool: tool.tool.clone(),
            unanswered,
        });
        let asks = self.within_time(asks);
        Ok(ask(task, asks, again))
    }

    /// The approval of the call is closed.
    pub(super) fn tool_decided(
        &mut self,
        task: &'a Task,
        tool: &'a ToolCall,
        ended: &Step,
    ) -> Moved<'a> {
        let result: ApprovalResult = Raised::answer(ended, &task.path)?;
        if result.decision != ApprovalStatus::Approved {
            let said = tool_approvals::refusal(&tool.tool, &result);
            let is_rejected = result.decision == ApprovalStatus::Rejected;
            return Err(refused(is_rejected, said, &task.path));
        }
        // It is made now.
        self.take_unanswered(task)?;
        let mut request = self.tool_request(task, tool)?;
        request.is_approved = true;
        // What was shown, which a later version of the service might compute otherwise.
        request.arguments = result.arguments.unwrap_or(request.arguments);
        request.is_edited = result.is_edited;
        request.approval_id = result.approval_id;
        let edited = Some(&request.arguments).filter(|_| request.is_edited);
        let mut asked = json!(request);
        if let Some(again) = AskedAgain::of(ended) {
            keep_key(&mut asked, again.unanswered, edited);
        }
        Ok(self.call(task, tool, &request, asked))
    }

    /// The call of an HTTP server, as it is `asked`, or the run that the call is. A call that is not to be made is a step as
    /// well, which says why.
    fn call(
        &mut self,
        task: &'a Task,
        tool: &ToolCall,
        request: &FlowToolRequest,
        asked: Value,
    ) -> Move<'a> {
        let called = self.about.tool(&tool.tool);
        let called = called.filter(|called| called.approval.is_none() || request.is_approved);
        let child = called.and_then(|called| {
            let arguments = request.arguments.to_string();
            let child = tool_children::of_call(called, self.about.flows, &arguments)?;
            Some((child, called.target.kind()))
        });
        if let Some((child, target)) = child {
            let call = FamilyCall {
                tool: tool.tool.clone(),
                target,
                request: None,
            };
            return self.run_of(task, child, Some(call));
        }
        let step = NewStep {
            kind: StepKind::Tool,
            name: tool.tool.clone(),
            path: task.path.clone(),
            request: asked,
        };
        Move::Effect(task, Next::Begin(step))
    }

    pub(super) fn begin_http(&mut self, task: &'a Task, http: &'a HttpCall) -> Moved<'a> {
        let request = self.http_request(task, http)?;
        let mut asked = json!(request);
        if let Some(unanswered) = self.take_unanswered(task)? {
            keep_key(&mut asked, unanswered, None);
        }
        let step = NewStep {
            kind: StepKind::Http,
            name: request.method,
            path: task.path.clone(),
            request: asked,
        };
        Ok(Move::Effect(task, Next::Begin(step)))
    }

    /// The step of a tool has ended.
    pub(super) fn tool_answered(&mut self, task: &'a Task, ended: &Step) -> Moved<'a> {
        let answer: Answer = Raised::answer(ended, &task.path)?;
        let output = of_tool(&answer, task)?;
        Ok(Move::Leave { output, then: None })
    }

    /// The step of an HTTP request has ended.
    pub(super) fn http_answered(
        &mut self,
        task: &'a Task,
        http: &HttpCall,
        ended: &Step,
    ) -> Moved<'a> {
        let answer = Raised::answer(ended, &task.path)?;
        let mut output = of_http(http, answer, task)?;
        if let (HttpOutput::Response, Some(response)) = (http.output, output.as_object_mut()) {
            let request: Option<HttpRequest> = read(Some(&ended.request)).ok();
            response.insert("request".to_owned(), json!(request.map(shown)));
        }
        Ok(Move::Leave { output, then: None })
    }

    /// What a dry run takes for the answer of an effect that it did not perform: whoever started it knows best.
    pub(super) fn simulated(&mut self, task: &'a Task) -> Moved<'a> {
        if let Some(fixture) = self.about.fixtures.get(&task.path) {
            let output = fixture.clone();
            return Ok(Move::Leave { output, then: None });
        }
        let said = self.of_innermost(task, |scope, input, budget| {
            scope.fill_some(task.simulated.as_ref(), input, budget)
        })?;
        let schema = task.output.schema.as_ref();
        let example = schema.and_then(|schema| {
            let first = schema.document.pointer("/examples/0");
            first.or_else(|| schema.document.get("default"))
        });
        let output = match (&task.simulated, example) {
            (None, Some(example)) => example.clone(),
            _ => said,
        };
        Ok(Move::Leave { output, then: None })
    }
}

pub(super) fn is_simulated(ended: &Step) -> bool {
    let result = ended.result.as_ref();
    result.is_some_and(|result| Simulated::deserialize(result).is_ok())
}

fn of_tool(answer: &Answer, task: &Task) -> Result<Value, Raised> {
    if answer.is_unfit {
        return Err(Raised::validation(beginning(&answer.output), &task.path));
    }
    if answer.is_error {
        let status = answer.status.unwrap_or(503);
        return Err(Raised::communication(
            status,
            beginning(&answer.output),
            &task.path,
        ));
    }
    let parsed = serde_json::from_str(&answer.output);
    Ok(parsed.unwrap_or_else(|_| Value::String(answer.output.clone())))
}

fn of_http(http: &HttpCall, answer: HttpAnswer, task: &Task) -> Result<Value, Raised> {
    if is_http_error(answer.status, http.redirect) {
        let said = match http.output {
            HttpOutput::Raw => String::new(),
            HttpOutput::Content | HttpOutput::Response => beginning(&answer.body),
        };
        let said = format!("The server answered with status {}: {said}", answer.status);
        return Err(Raised::communication(answer.status, said, &task.path));
    }
    let is_json = answer.headers.iter().any(|(name, value)| {
        let kind = media_type_essence(value).to_ascii_lowercase();
        name == "content-type" && (kind == "application/json" || kind.ends_with("+json"))
    });
    let content = match http.output {
        HttpOutput::Raw => return Ok(Value::String(answer.body)),
        // As of HEAD, or with status 204.
        _ if is_json && answer.body.trim_ascii().is_empty() => Value::Null,
        _ if is_json => serde_json::from_str(&answer.body).map_err(|error| {
            let said = format!("The answer says that it is JSON, and is not: {error}");
            Raised::communication(502, said, &task.path)
        })?,
        _ => Value::String(answer.body),
    };
    if http.output == HttpOutput::Content {
        return Ok(content);
    }
    let headers: Map<String, Value> = answer
        .headers
        .into_iter()
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    Ok(json!({"statusCode": answer.status, "headers": headers, "content": content}))
}

/// A request as `output: response` shows it: without the headers that are secret.
fn shown(request: HttpRequest) -> Value {
    let headers = request.headers.into_iter();
    let headers = headers.filter(|(name, _)| !is_secret_header(name));
    let headers: Map<String, Value> = headers
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    json!({"method": request.method, "uri": request.url, "headers": headers})
}

fn beginning(text: &str) -> String {
    text.chars().take(DETAIL_CHARACTERS).collect()
}
