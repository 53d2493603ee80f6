//! Calls of tools and of HTTP servers: what their steps are asked, and what the answers mean.

use super::approvals::{ask, refused};
use super::evaluate::Scope;
use super::machine::{Machine, Move, Moved};
use super::raised::Raised;
use super::unanswered::keep_key;
use crate::flows::definition::tree::{
    Endpoint, HttpCall, HttpOutput, Method, Task, ToolCall, UriPart,
};
use crate::runtime::journal::call::{
    AskedAgain, FlowToolRequest, HttpAnswer, HttpRequest, Simulated,
};
use crate::runtime::journal::decision::{FamilyCall, NewStep, Next};
use crate::runtime::journal::wait::ApprovalResult;
use crate::runtime::{tool_approvals, tool_children};
use crate::store::approvals::ApprovalStatus;
use crate::store::steps::{Step, StepKind};
use crate::tools::Answer;
use crate::uri::percent_encoded;
use expressions::Budget;
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
            tool_approvals::of_call(called, &request.arguments.to_string(), None)
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
            Some((child, called.target))
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

    pub(super) fn tool_request(
        &mut self,
        task: &'a Task,
        tool: &'a ToolCall,
    ) -> Result<FlowToolRequest, Raised> {
        let until = self.nearest_deadline();
        self.of_innermost(task, |scope, input, budget| {
            let arguments = scope.fill_some(tool.arguments.as_ref(), input, budget)?;
            let key = scope.fill_some(tool.idempotency_key.as_ref(), input, budget)?;
            Ok(FlowToolRequest {
                arguments: match arguments {
                    Value::Null => json!({}),
                    arguments => arguments,
                },
                idempotency_key: match key {
                    Value::Null => None,
                    key => Some(header_value(&key, "The idempotency key", &task.path)?),
                },
                until,
                is_approved: false,
                is_edited: false,
                is_repeated: false,
            })
        })
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

    pub(super) fn http_request(
        &mut self,
        task: &'a Task,
        http: &'a HttpCall,
    ) -> Result<HttpRequest, Raised> {
        let until = self.nearest_deadline();
        let is_simulated = self.about.fixtures.contains_key(&task.path);
        self.of_innermost(task, |scope, input, budget| {
            Ok(HttpRequest {
                until,
                is_simulated,
                ..asked(http, scope, input, budget)?
            })
        })
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
        let output = of_http(http, answer, task)?;
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
    let most = if http.redirect { 399 } else { 299 };
    if !(200..=most).contains(&answer.status) {
        let said = match http.output {
            HttpOutput::Raw => String::new(),
            HttpOutput::Content | HttpOutput::Response => beginning(&answer.body),
        };
        let said = format!("The server answered with status {}: {said}", answer.status);
        return Err(Raised::communication(answer.status, said, &task.path));
    }
    let is_json = answer.headers.iter().any(|(name, value)| {
        let kind = value.split(';').next().unwrap_or_default().trim();
        name == "content-type" && (kind == "application/json" || kind.ends_with("+json"))
    });
    let content = match http.output {
        HttpOutput::Raw => return Ok(Value::String(answer.body)),
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

/// The request, but for its time.
fn asked(
    http: &HttpCall,
    scope: &Scope<'_>,
    input: &Value,
    budget: &mut Budget,
) -> Result<HttpRequest, Raised> {
    let url = match &http.endpoint {
        Endpoint::Uri(parts) => expanded(parts, input, scope.path)?,
        Endpoint::Expression(expression) => match scope.evaluate(expression, input, budget)? {
            Value::String(url) => url,
            _ => return Err(Raised::validation("The URL is no text", scope.path)),
        },
    };
    let query = scope.fill_some(http.query.as_ref(), input, budget)?;
    let headers = scope.fill_some(http.headers.as_ref(), input, budget)?;
    let body = scope.fill_some(http.body.as_ref(), input, budget)?;
    let mut sent = Vec::new();
    for (name, value) in fields(&headers, "The headers", scope.path)? {
        let of = format!("The header {name}");
        sent.push((name.to_lowercase(), header_value(value, &of, scope.path)?));
    }
    let has_type = sent.iter().any(|(name, _)| name == "content-type");
    let body = match (&http.body, body) {
        (None, _) => None,
        (Some(_), Value::String(text)) => Some(text),
        (Some(_), value) => {
            if !has_type {
                sent.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            Some(value.to_string())
        }
    };
    Ok(HttpRequest {
        method: method(http.method).to_owned(),
        url: with_query(url, &query, scope.path)?,
        headers: sent,
        body,
        idempotency_key: None,
        is_simulated: false,
        is_repeated: false,
        is_raw: http.output == HttpOutput::Raw,
        until: None,
    })
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
        Method::Options => "OPTIONS",
    }
}

/// The fields of an object; null has none.
fn fields<'v>(
    value: &'v Value,
    what: &str,
    path: &str,
) -> Result<Vec<(&'v String, &'v Value)>, Raised> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Object(fields) => Ok(fields.iter().collect()),
        _ => Err(Raised::validation(format!("{what} are no object"), path)),
    }
}

/// A text, a number or a truth value as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn header_value(value: &Value, what: &str, path: &str) -> Result<String, Raised> {
    let text = plain(value).filter(|text| text.chars().all(|c| (' '..='~').contains(&c)));
    text.ok_or_else(|| {
        let said = format!("{what} is no text of printable ASCII characters");
        Raised::validation(said, path)
    })
}

fn expanded(parts: &[UriPart], input: &Value, path: &str) -> Result<String, Raised> {
    let mut url = String::new();
    for part in parts {
        match part {
            UriPart::Literal(text) => url.push_str(text),
            UriPart::Variable(name) => {
                let value = input.get(name).and_then(plain).ok_or_else(|| {
                    let said = format!(
                        "The URL needs {name}, and the task's input has no such text or number"
                    );
                    Raised::validation(said, path)
                })?;
                url.extend(percent_encoded(value.as_bytes()));
            }
        }
    }
    Ok(url)
}

fn with_query(mut url: String, query: &Value, path: &str) -> Result<String, Raised> {
    for (name, value) in fields(query, "The query parameters", path)? {
        let value = plain(value).ok_or_else(|| {
            let said = format!("The query parameter {name} is no text, number or truth value");
            Raised::validation(said, path)
        })?;
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(percent_encoded(name.as_bytes()));
        url.push('=');
        url.extend(percent_encoded(value.as_bytes()));
    }
    Ok(url)
}

fn beginning(text: &str) -> String {
    text.chars().take(DETAIL_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_filled_and_encoded() {
        let parts = [
            UriPart::Literal("https://api.example.com/orders/".to_owned()),
            UriPart::Variable("id".to_owned()),
        ];
        let url = expanded(&parts, &json!({"id": "a/b c"}), "/do/0/a").unwrap();
        assert_eq!(url, "https://api.example.com/orders/a%2Fb%20c");
        let query = json!({"q": "é&x", "n": 5});
        let url = with_query(url, &query, "/do/0/a").unwrap();
        assert!(url.ends_with("?q=%C3%A9%26x&n=5"), "{url}");
        assert!(expanded(&parts, &json!({"id": {}}), "/do/0/a").is_err());
        assert!(with_query(url, &json!({"q": []}), "/do/0/a").is_err());
        assert!(header_value(&json!("a\r\nb: c"), "It", "").is_err());
    }
}
