//! What the form of an approval asks for, in words: for whoever approves without an answer that fits it.

use super::terminal;
use crate::tools::forms;
use serde_json::{Map, Value, json};

/// Which answer the form of an approval wants, if the body does not have one that fits. Whether it does is the server's to say;
/// this is told where it refused.
pub(super) fn wanted(form: &Value, body: &Value) -> Option<String> {
    let fields = form["properties"].as_object()?;
    if body["decision"] != "approve" {
        return None;
    }
    let fits = forms::answer_faults(form, body.get("answer"), 1);
    if fits.is_ok_and(|faults| faults.is_empty()) {
        return None;
    }
    let is_required = |name: &str| {
        let required = form["required"].as_array().into_iter().flatten();
        required.filter_map(Value::as_str).any(|one| one == name)
    };
    let mut text =
        "The approval has a form. Its fields, for the JSON object that --answer names:".to_owned();
    let mut example = Map::new();
    for (name, field) in fields {
        let needed = if is_required(name) {
            "required"
        } else {
            "optional"
        };
        text += &format!(
            "\n  {name}: {}, {needed}{}",
            kind_of(field),
            title_of(field)
        );
        if is_required(name) {
            example.insert(name.clone(), example_of(field));
        }
    }
    text += &format!(
        "\nFor example: echo '{}' | {} approve ID --answer -",
        Value::Object(example).to_string().replace('\'', "'\\''"),
        terminal::program()
    );
    Some(terminal::printable(&text))
}

/// What a field of a form takes, in words.
fn kind_of(field: &Value) -> String {
    if let Some(choices) = field["enum"].as_array() {
        let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    let bound = |word: &str, name: &str, unit: &str| {
        let bound = &field[name];
        match bound.is_null() {
            true => String::new(),
            false => format!(" {word} {bound}{unit}"),
        }
    };
    let (kind, bounds) = match field["type"].as_str() {
        Some("string") => (
            "text",
            bound("from", "minLength", " characters") + &bound("to", "maxLength", " characters"),
        ),
        Some("boolean") => ("true or false", String::new()),
        Some("integer") => (
            "whole number",
            bound("from", "minimum", "") + &bound("to", "maximum", ""),
        ),
        _ => (
            "number",
            bound("from", "minimum", "") + &bound("to", "maximum", ""),
        ),
    };
    format!("{kind}{bounds}")
}

fn title_of(field: &Value) -> String {
    match field["title"].as_str().or(field["description"].as_str()) {
        Some(title) => format!(" ({title})"),
        None => String::new(),
    }
}

/// A value for an example.
fn example_of(field: &Value) -> Value {
    let given = [&field["default"], &field["enum"][0], &field["minimum"]];
    let given = given.into_iter().find(|value| !value.is_null());
    match (given, field["type"].as_str()) {
        (Some(given), _) => given.clone(),
        (None, Some("string")) => json!("…"),
        (None, Some("boolean")) => json!(true),
        (None, _) => json!(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_that_a_form_wants_is_told_where_it_is_missing_or_does_not_fit() {
        let form = json!({"type": "object", "required": ["amount"], "properties": {
            "amount": {"type": "number", "title": "Amount in EUR", "minimum": 5, "maximum": 500},
            "reason": {"type": "string", "enum": ["late", "it's damaged"]},
            "notify": {"type": "boolean", "default": true}}});
        let approve = json!({"decision": "approve"});
        let said = wanted(&form, &approve).unwrap();
        for part in [
            "\n  amount: number from 5 to 500, required (Amount in EUR)",
            "\n  reason: one of \"late\", \"it's damaged\", optional",
            "\n  notify: true or false, optional",
            "echo '{\"amount\":5}' | ",
            "approve ID --answer -",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let bad = json!({"decision": "approve", "answer": {"amount": "5"}});
        assert!(wanted(&form, &bad).is_some());
        let good = json!({"decision": "approve", "answer": {"amount": 5}});
        assert_eq!(
            wanted(&form, &good),
            None,
            "it was refused for something else"
        );
        assert_eq!(wanted(&form, &json!({"decision": "reject"})), None);
        assert_eq!(wanted(&Value::Null, &approve), None);
    }
}
