//! What an error of a model provider says, in whatever form it says it.
//!
//! Guarantees: of a value of any size and depth a bounded text is made. Not here: taking secrets out of it
//! ([`super::plain`]), which its caller does.

use serde_json::{Map, Value};

/// Fields that hold what an error says, or objects and lists with such fields, in the order in which they are shown.
const FIELDS: [&str; 25] = [
    "error",
    "errors",
    "fault",
    "message",
    "msg",
    "detail",
    "details",
    "error_message",
    "error_msg",
    "errormessage",
    "faultstring",
    "error_description",
    "status_msg",
    "reason",
    "reasons",
    "description",
    "title",
    "base_resp",
    "metadata",
    "raw",
    "violations",
    "fieldviolations",
    "innererror",
    "cause",
    "failed_generation",
];
/// Fields that name what a message is about.
const PLACES: [&str; 4] = ["loc", "param", "field", "pointer"];
/// Objects of which each field is shown if they say nothing in a known field.
const TOLD_WHOLE: [&str; 4] = ["error", "errors", "detail", "base_resp"];
/// Texts of one error at most, and characters of each.
const TEXTS_MOST: usize = 20;
const TEXT_CHARS: usize = 2000;
/// Of a web page without a title.
const PAGE_BYTES: usize = 300;
/// How deep a text is looked for. JSON in a text is one level.
const DEPTH_MOST: usize = 10;

/// The texts of an error's JSON, joined; empty if it has none.
pub(super) fn of(value: &Value) -> String {
    let mut words = Words::default();
    words.take(value, 0);
    if let (Value::Object(fields), true) = (value, words.0.is_empty()) {
        words.fields(fields);
    }
    if words.0.is_empty() {
        words.all(value, 0);
    }
    words.0.join("; ")
}

/// The JSON of an error's body, in the forms in which servers send it: one value, several in a row, events. Null if it is
/// none of them.
pub(super) fn json(text: &str) -> Value {
    let first = |text: &str| {
        let begins = text.starts_with(['{', '[', '"']);
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        values.next().filter(|_| begins)?.ok()
    };
    let event = |line: &str| first(line.strip_prefix("data:")?.trim_ascii_start());
    let found = first(text).or_else(|| text.lines().find_map(event));
    found.unwrap_or(Value::Null)
}

/// What a web page or XML says: its title, or else its first heading, its message, its text. Empty if it has none.
pub(super) fn title(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    let between = |tag: &str| {
        let tag_at = lower.find(tag)?;
        let start = tag_at + lower[tag_at..].find('>')? + 1;
        let end = start + lower[start..].find('<')?;
        Some(page[start..end].trim_ascii()).filter(|text| !text.is_empty())
    };
    let said = ["<title", "<h1", "<message", "<faultstring"]
        .into_iter()
        .find_map(between);
    said.map_or_else(|| text_of(page), str::to_owned)
}

/// The beginning of the text between tags, without styles and scripts.
fn text_of(page: &str) -> String {
    let (mut text, mut is_hidden) = (String::new(), false);
    for piece in page.split('<').skip(1) {
        let (tag, after) = piece.split_once('>').unwrap_or((piece, ""));
        let tag = tag.to_ascii_lowercase();
        is_hidden = ["style", "script", "head"]
            .iter()
            .any(|hidden| tag.starts_with(hidden) && !tag.starts_with("header"))
            || is_hidden && !tag.starts_with('/');
        if !is_hidden && !after.trim_ascii().is_empty() {
            text.push(' ');
            text.push_str(after.trim_ascii());
        }
        if text.len() > PAGE_BYTES {
            break;
        }
    }
    crate::text::beginning(&text, PAGE_BYTES).to_owned()
}

#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    fn take(&mut self, value: &Value, depth: usize) {
        if depth > DEPTH_MOST || self.0.len() >= TEXTS_MOST {
            return;
        }
        match value {
            Value::String(text) => self.text(text, depth),
            Value::Array(items) => items
                .iter()
                .take(TEXTS_MOST)
                .for_each(|item| self.take(item, depth + 1)),
            Value::Object(fields) => self.object(fields, depth),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// A text, which may be JSON with a text in it.
    fn text(&mut self, text: &str, depth: usize) {
        let before = self.0.len();
        let inner = json(text.trim_ascii());
        if inner.is_object() || inner.is_array() {
            self.take(&inner, depth + 1);
        }
        if self.0.len() == before {
            self.add(text.chars().take(TEXT_CHARS).collect());
        }
    }

    fn add(&mut self, text: String) {
        if text.trim_ascii().is_empty() {
            return;
        }
        let is_known = self.0.iter().any(|known| known.contains(text.trim_ascii()));
        if !is_known && self.0.len() < TEXTS_MOST {
            self.0.push(text);
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) {
        let before = self.0.len();
        for name in FIELDS {
            let Some((_, value)) = named(fields, name) else {
                continue;
            };
            let until_now = self.0.len();
            self.take(value, depth + 1);
            let Some(found) = self.0.get_mut(until_now) else {
                if let (Value::Object(fields), true) = (value, TOLD_WHOLE.contains(&name)) {
                    self.fields(fields);
                }
                continue;
            };
            if name == "failed_generation" {
                found.insert_str(0, "failed_generation: ");
            }
        }
        if let (Some(place), Some(found)) = (place(fields), self.0.get_mut(before))
            && !found.contains(&place)
        {
            found.push_str(&format!(" ({place})"));
        }
    }

    /// Every text, where no field has a known name: what a gateway wraps an error in, for one.
    fn all(&mut self, value: &Value, depth: usize) {
        if depth > DEPTH_MOST || self.0.len() >= TEXTS_MOST {
            return;
        }
        match value {
            Value::String(_) => self.take(value, depth),
            Value::Array(items) => {
                let items = items.iter().take(TEXTS_MOST);
                items.for_each(|item| self.all(item, depth + 1));
            }
            Value::Object(fields) => {
                let before = self.0.len();
                self.object(fields, depth);
                if self.0.len() == before {
                    let fields = fields.values().take(TEXTS_MOST);
                    fields.for_each(|field| self.all(field, depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Each field with its name, where none has a known one.
    fn fields(&mut self, fields: &Map<String, Value>) {
        for (name, value) in fields.iter().take(TEXTS_MOST) {
            let value = match value {
                Value::Array(items) => items.first().unwrap_or(value),
                _ => value,
            };
            let value = match value {
                Value::String(text) if !text.is_empty() => text.chars().take(TEXT_CHARS).collect(),
                Value::Number(number) => number.to_string(),
                _ => continue,
            };
            let name: String = name.chars().take(TEXT_CHARS).collect();
            self.add(format!("{name}: {value}"));
        }
    }
}

fn named<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<(&'a String, &'a Value)> {
    let is_named = |(key, _): &(&String, &Value)| key.eq_ignore_ascii_case(name);
    fields.iter().find(is_named)
}

/// What a message is about: a path such as `body.messages.0.content`.
fn place(fields: &Map<String, Value>) -> Option<String> {
    let found = PLACES.into_iter().find_map(|name| {
        let part = |part: &Value| match part {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        match named(fields, name)?.1 {
            Value::Array(path) => {
                let parts: Vec<String> = path.iter().take(TEXTS_MOST).filter_map(part).collect();
                Some(parts.join("."))
            }
            value => part(value),
        }
    });
    let found: String = found?.chars().take(TEXT_CHARS).collect();
    Some(found).filter(|place| !place.is_empty())
}
