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
                approval_id: None,
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
        sent.push((
            name.to_ascii_lowercase(),
            header_value(value, &of, scope.path)?,
        ));
    }
    let kind = sent.iter().find(|(name, _)| name == "content-type");
    let kind = kind.map(|(_, value)| value.clone());
    let body = match (&http.body, body) {
        (None, _) => None,
        (Some(_), Value::String(text)) => Some(text),
        (Some(_), value) if kind.as_deref().is_some_and(is_form) => Some(form(&value, scope.path)?),
        (Some(_), value) => {
            if kind.is_none() {
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
        takes_redirects: http.redirect,
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
    let segment = format!("{}{}", &before[begin..], &after[..end]).to_ascii_lowercase();
    matches!(segment.replace("%2e", ".").as_str(), "" | "." | "..")
}

fn with_query(mut url: String, query: &Value, path: &str) -> Result<String, Raised> {
    for (name, value) in pairs(query, ("The query parameters", "query parameter"), path)? {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(percent_encoded(name.as_bytes()));
        url.push('=');
        url.extend(percent_encoded(value.as_bytes()));
    }
    Ok(url)
}

/// Names with their values, to be sent in this order. A list has its name once for each item; null is left out.
fn pairs<'v>(
    value: &'v Value,
    (all, one): (&str, &str),
    path: &str,
) -> Result<Vec<(&'v str, String)>, Raised> {
    let mut pairs = Vec::new();
    for (name, value) in fields(value, all, path)? {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            value => std::slice::from_ref(value),
        };
        for item in items.iter().filter(|item| !item.is_null()) {
            let text = plain(item).ok_or_else(|| {
                let said = format!(
                    "The {one} {name} is no text, number or truth value, and no list of them"
                );
                Raised::validation(said, path)
            })?;
            pairs.push((name.as_str(), text));
        }
    }
    Ok(pairs)
}

/// Whether this is the media type of an HTML form.
fn is_form(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default();
    let kind = kind.trim_matches([' ', '\t']);
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// A body as the fields of a form.
fn form(body: &Value, path: &str) -> Result<String, Raised> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(pairs(body, ("The fields of the form", "field"), path)?);
    Ok(form.finish())
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
        let of = |query: Value| with_query("https://a.example".to_owned(), &query, "/do/0/a");
        let sent = of(json!({"q": ["a b", 2, null, true], "none": null, "empty": [], "last": ""}));
        assert_eq!(sent.unwrap(), "https://a.example?q=a%20b&q=2&q=true&last=");
        for wrong in [json!({"q": {"a": 1}}), json!({"q": [[1]]}), json!([1])] {
            assert_eq!(of(wrong.clone()).unwrap_err().status, 400, "{wrong}");
        }
        assert!(header_value(&json!("a\r\nb: c"), "It", "").is_err());
    }

    #[test]
    fn a_form_has_the_fields_of_an_object() {
        assert!(is_form("application/x-www-form-urlencoded"));
        assert!(is_form("Application/X-WWW-Form-URLEncoded ; charset=utf-8"));
        assert!(!is_form("application/json") && !is_form("text/x-www-form-urlencoded"));
        let body = json!({"a": "1 2", "b": ["é&", 5], "none": null, "yes": true});
        assert_eq!(form(&body, "").unwrap(), "a=1+2&b=%C3%A9%26&b=5&yes=true");
        for wrong in [json!([1]), json!(5), json!({"a": {"b": 1}})] {
            assert_eq!(form(&wrong, "/do/0/a").unwrap_err().status, 400, "{wrong}");
        }
    }
}
