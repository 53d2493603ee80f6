//! What calls of tools and of HTTP servers ask, as their tasks say it.

use super::evaluate::Scope;
use super::machine::Machine;
use super::raised::Raised;
use super::state::check_kept;
use crate::flows::definition::tree::{
    Endpoint, HttpCall, HttpOutput, Method, Task, ToolCall, UriPart,
};
use crate::runtime::journal::call::{FlowToolRequest, HttpRequest};
use crate::uri::percent_encoded;
use expressions::Budget;
use serde_json::{Value, json};

impl<'a> Machine<'a> {
    pub(super) fn tool_request(
        &mut self,
        task: &'a Task,
        tool: &'a ToolCall,
    ) -> Result<FlowToolRequest, Raised> {
        let until = self.nearest_deadline();
        self.of_innermost(task, |scope, input, budget| {
            let arguments = scope.fill_some(tool.arguments.as_ref(), input, budget)?;
            let named = ("What the tool is called with", &arguments);
            check_kept(named, &task.path)?;
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
    let mut filled = Vec::new();
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
                filled.push((url.len(), name));
                url.extend(percent_encoded(value.as_bytes()));
            }
        }
    }
    for (at, name) in filled {
        if is_step_of_path(&url, at) {
            let said = format!(
                "The value of {name} makes a part of the URL's path empty, `.` or `..`, so that it leads elsewhere"
            );
            return Err(Raised::validation(said, path));
        }
    }
    Ok(url)
}

/// Whether what stands between the slashes around a place of a URL leads to another path: nothing, `.` or `..`.
fn is_step_of_path(url: &str, at: usize) -> bool {
    let (before, after) = url.split_at(at);
    if before.contains(['?', '#']) {
        return false;
    }
    let begin = before.rfind('/').map_or(0, |slash| slash + 1);
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let segment = format!("{}{}", &before[begin..], &after[..end]).to_lowercase();
    matches!(segment.replace("%2e", ".").as_str(), "" | "." | "..")
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
        assert!(expanded(&parts, &json!({"id": "..."}), "/do/0/a").is_ok());
        let of = |text: &str, variables: &[&str], rest: &str| {
            let variables = variables.iter().map(|name| (*name).to_owned());
            let mut parts = vec![UriPart::Literal(text.to_owned())];
            parts.extend(variables.map(UriPart::Variable));
            parts.push(UriPart::Literal(rest.to_owned()));
            parts
        };
        let input = json!({"up": "..", "dot": ".", "none": "", "id": "7"});
        for (text, variables, rest) in [
            ("https://a.example/orders/", ["up"].as_slice(), "/pay"),
            ("https://a.example/orders/", &["dot", "dot"], "?x=1"),
            ("https://a.example/orders/.", &["dot"], ""),
            ("https://a.example/orders/%2E", &["dot"], "/pay"),
            ("https://a.example/orders/", &["none"], ""),
            ("https://a.example/orders/", &["none", "none"], "#x"),
        ] {
            let raised = expanded(&of(text, variables, rest), &input, "/do/0/a").unwrap_err();
            assert_eq!(raised.status, 400, "{text}{variables:?}{rest}");
        }
        for (text, variables, rest) in [
            ("https://a.example/orders/", ["id", "dot"].as_slice(), ""),
            ("https://a.example/orders/a", &["none"], "/pay"),
            ("https://a.example/orders?of=", &["none"], ""),
            ("https://a.example/orders?of=", &["up"], "&x=/"),
        ] {
            assert!(expanded(&of(text, variables, rest), &input, "").is_ok());
        }
        assert!(with_query(url, &json!({"q": []}), "/do/0/a").is_err());
        assert!(header_value(&json!("a\r\nb: c"), "It", "").is_err());
    }
}
