//! Names and arguments of calls as they were meant: without the marks that models and their servers leave in them.
//!
//! What cannot be read is left as it is, for the step of the tool to say so.

use super::super::json;
use serde_json::{Map, Value};

/// Marks around a name.
const PREFIXES: [&str; 6] = [
    "functions.",
    "function.",
    "tools.",
    "tool.",
    "default_api.",
    "functions:",
];

/// The name of the tool that was meant. An exact name is always it.
pub(super) fn meant_name(name: &str, tools: &[String]) -> String {
    let is_tool = |name: &str| tools.iter().any(|tool| tool == name);
    if is_tool(name) {
        return name.to_owned();
    }
    let trimmed = name.trim().trim_matches(['"', '\'', '`']).trim();
    // Markers of a chat template, a number as in `functions.weather:0`, and parentheses.
    let unmarked = trimmed.split("<|").next().unwrap_or(trimmed).trim();
    let numbered = unmarked.trim_end_matches(|c: char| c.is_ascii_digit());
    let unnumbered = numbered.strip_suffix(':').unwrap_or(unmarked);
    let bare = unnumbered.strip_suffix("()").unwrap_or(unnumbered);
    let mut candidates = vec![trimmed, unmarked, unnumbered, bare];
    for prefix in PREFIXES {
        let stripped: Vec<&str> = candidates
            .iter()
            .filter_map(|c| c.strip_prefix(prefix))
            .collect();
        candidates.extend(stripped);
    }
    if let Some(found) = candidates.iter().find(|candidate| is_tool(candidate)) {
        return (*found).to_owned();
    }
    let alike = |tool: &&String| candidates.iter().any(|c| c.eq_ignore_ascii_case(tool));
    let mut alike = tools.iter().filter(alike);
    match (alike.next(), alike.next()) {
        (Some(tool), None) => tool.clone(),
        _ => trimmed.to_owned(),
    }
}

/// Whether a text begins an object that is not empty.
pub(super) fn begins(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('{') && text != "{}"
}

/// The arguments that were meant.
pub(super) fn meant(written: String) -> String {
    let mut text = written;
    // Encoded twice, or more often.
    for _ in 0..3 {
        match json::parse(&text) {
            Ok(Value::String(inner)) => text = inner,
            Ok(Value::Null) => return "{}".to_owned(),
            // PHP writes an object without fields as a list; some models put the object into one.
            Ok(Value::Array(list)) if list.is_empty() => return "{}".to_owned(),
            Ok(Value::Array(list)) if list.len() == 1 && list[0].is_object() => {
                return list[0].to_string();
            }
            Ok(_) if is_json(&text) => return text,
            Ok(mended) => return mended.to_string(),
            Err(_) => break,
        }
        if text.trim().is_empty() {
            return "{}".to_owned();
        }
    }
    match first_object(&text) {
        Some(object) => object,
        None => text,
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok()
}

/// The object with which a text begins, if what follows it is no more than the model's closing tag, a bracket too many, or the same
/// object again; or if it is empty and another one follows.
fn first_object(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .unwrap_or(text);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>();
    let mut first = values.next()?.ok()?;
    let mut end = values.byte_offset();
    let mut begin = 0;
    while let Some(Ok(next)) = values.next() {
        if first.is_empty() {
            begin = end;
            first = next;
        } else if next != first {
            return None;
        } else {
            let rest = text[values.byte_offset()..].trim();
            return is_leftover(rest).then(|| text[begin..end].trim().to_owned());
        }
        end = values.byte_offset();
    }
    is_leftover(text[end..].trim()).then(|| text[begin..end].trim().to_owned())
}

fn is_leftover(rest: &str) -> bool {
    rest.starts_with("</")
        || rest.starts_with("<|")
        || rest.starts_with("```")
        || rest
            .chars()
            .all(|c| matches!(c, '}' | ']' | ')' | ';' | ',') || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_was_meant() {
        let paris = r#"{"city":"Paris"}"#;
        for (written, expected) in [
            (paris, paris),
            ("", ""),
            ("null", "{}"),
            (r#""""#, "{}"),
            (r#""{\"city\":\"Paris\"}""#, paris),
            (r#""\"{\\\"city\\\":\\\"Paris\\\"}\"""#, paris),
            ("{\"city\":\"Paris\"}\n</tool_call>", paris),
            (r#"{"city":"Paris"}<|im_end|>"#, paris),
            (r#"{"city":"Paris"}}"#, paris),
            ("```json\n{\"city\":\"Paris\"}\n```", paris),
            (r#"{}{"city":"Paris"}"#, paris),
            (r#"{"city":"Paris"}{"city":"Paris"}"#, paris),
            (r#"{"city":"Pa"#, r#"{"city":"Pa"#),
            (r#"{"a":1}{"a":2}"#, r#"{"a":1}{"a":2}"#),
            (r#"{"city":"\ud83d"}"#, "{\"city\":\"\u{fffd}\"}"),
            (r#"{"degrees":NaN}"#, r#"{"degrees":null}"#),
            ("[1]", "[1]"),
        ] {
            assert_eq!(meant(written.to_owned()), expected, "{written:?}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(meant(deep.clone()), deep);
    }

    #[test]
    fn names_are_those_of_tools() {
        let tools = ["weather", "functions.odd", "now"].map(str::to_owned);
        for (name, expected) in [
            ("weather", "weather"),
            ("weather ", "weather"),
            ("functions.weather", "weather"),
            ("functions.weather:0", "weather"),
            ("functions.odd", "functions.odd"),
            ("weather<|channel|>commentary", "weather"),
            ("weather()", "weather"),
            ("\"weather\"", "weather"),
            ("Weather", "weather"),
            (" other ", "other"),
        ] {
            assert_eq!(meant_name(name, &tools), expected);
        }
    }
}
