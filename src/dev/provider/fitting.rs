//! A value that fits a JSON Schema, for an agent with an output schema.
//!
//! It tries a few candidates and returns the first that the schema's own validator accepts. So what it returns fits; there may
//! be none for a schema with unusual patterns or conditions. Depth and size of a candidate are bounded.

use crate::tools::schema;
use serde_json::{Map, Value, json};

/// Candidates that are tried: each takes another alternative, and another text.
const CANDIDATES: usize = 24;
/// The deepest nesting of a candidate. A schema may refer to itself.
const DEPTH_MOST: usize = 12;
/// Values of one candidate at most.
const VALUES_MOST: usize = 2_000;
/// Elements of an array that a schema asks for, at most.
const ITEMS_MOST: u64 = 100;
/// Characters of a text that a schema asks for, at most.
const CHARACTERS_MOST: u64 = 10_000;

/// Texts for formats, patterns, and neither.
const TEXTS: [&str; 12] = [
    "scripted",
    "2026-01-31",
    "2026-01-31T08:00:00Z",
    "08:00:00Z",
    "someone@example.com",
    "https://example.com/",
    "018f0000-0000-7000-8000-000000000000",
    "A-1",
    "A1",
    "12345",
    "AB",
    "1.0.0",
];

/// A value that fits, if one of the candidates does.
pub(super) fn value(schema: &Value) -> Option<Value> {
    let validator = schema::compile_any(schema).ok()?;
    let candidates = (0..CANDIDATES).map(|number| {
        let mut candidate = Candidate {
            root: schema,
            number,
            values: 0,
        };
        candidate.value(schema, 0)
    });
    candidates.into_iter().find(|one| validator.is_valid(one))
}

struct Candidate<'s> {
    root: &'s Value,
    number: usize,
    values: usize,
}

impl Candidate<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        self.values += 1;
        if depth > DEPTH_MOST || self.values > VALUES_MOST {
            return Value::Null;
        }
        let schema = self.resolved(schema);
        for named in ["const", "default"] {
            if let Some(value) = schema.get(named) {
                return value.clone();
            }
        }
        for listed in ["enum", "examples"] {
            if let Some(value) = self.choice(&schema[listed]) {
                return value.clone();
            }
        }
        match self.type_of(&schema) {
            "object" => self.object(&schema, depth),
            "array" => self.array(&schema, depth),
            "integer" => number(&schema, true),
            "number" => number(&schema, false),
            "boolean" => json!(self.number.is_multiple_of(2)),
            "null" => Value::Null,
            _ => self.text(&schema),
        }
    }

    /// The schema with what it refers to, all that it is made of, and one of its alternatives.
    fn resolved(&self, schema: &Value) -> Value {
        let mut merged = schema.clone();
        for _ in 0..DEPTH_MOST {
            let Some(fields) = merged.as_object_mut() else {
                return json!({});
            };
            let mut parts: Vec<Value> = Vec::new();
            if let Some(reference) = fields.remove("$ref") {
                let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
                parts.extend(pointer.and_then(|at| self.root.pointer(at)).cloned());
            }
            if let Some(Value::Array(all)) = fields.remove("allOf") {
                parts.extend(all);
            }
            for alternatives in ["anyOf", "oneOf"] {
                if let Some(of) = fields.remove(alternatives) {
                    parts.extend(self.choice(&of).cloned());
                }
            }
            if parts.is_empty() {
                break;
            }
            for part in parts {
                merge(fields, part);
            }
        }
        merged
    }

    fn choice<'v>(&self, of: &'v Value) -> Option<&'v Value> {
        let all = of.as_array().filter(|all| !all.is_empty())?;
        all.get(self.number % all.len())
    }

    fn type_of<'v>(&self, schema: &'v Value) -> &'v str {
        let named = match &schema["type"] {
            Value::Array(_) => self.choice(&schema["type"]).unwrap_or(&Value::Null),
            one => one,
        };
        match named.as_str() {
            Some(named) => named,
            None if schema["properties"].is_object() || schema["required"].is_array() => "object",
            None if schema["items"].is_object() || schema["prefixItems"].is_array() => "array",
            None if schema["minimum"].is_number() || schema["maximum"].is_number() => "number",
            None => "string",
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut filled = Map::new();
        let properties = &schema["properties"];
        let of = |name: &str| match (&properties[name], &schema["additionalProperties"]) {
            (Value::Null, Value::Object(rest)) => Value::Object(rest.clone()),
            (Value::Null, _) => json!({}),
            (own, _) => own.clone(),
        };
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            let value = self.value(&of(name), depth + 1);
            filled.insert(name.to_owned(), value);
        }
        let least = schema["minProperties"]
            .as_u64()
            .unwrap_or(0)
            .min(ITEMS_MOST);
        let optional = properties.as_object().into_iter().flat_map(Map::keys);
        let more: Vec<String> = optional.cloned().collect();
        let invented = (1..=least).map(|number| format!("field{number}"));
        for name in more.into_iter().chain(invented) {
            if filled.len() as u64 >= least {
                break;
            }
            if !filled.contains_key(&name) {
                let value = self.value(&of(&name), depth + 1);
                filled.insert(name, value);
            }
        }
        Value::Object(filled)
    }

    fn array(&mut self, schema: &Value, depth: usize) -> Value {
        let listed = schema["prefixItems"].as_array().map(Vec::as_slice);
        let listed = listed.unwrap_or_default();
        let least = schema["minItems"].as_u64().unwrap_or(0).min(ITEMS_MOST);
        let contains = schema.get("contains");
        let least = usize::try_from(least).unwrap_or(0);
        let least = least.max(listed.len()).max(usize::from(contains.is_some()));
        let first = self.number;
        let items = (0..least).map(|index| {
            let own = listed.get(index).or(contains).or(schema.get("items"));
            // Elements differ where they can: they may have to.
            self.number = first + index;
            self.value(own.unwrap_or(&json!({})), depth + 1)
        });
        let items: Vec<Value> = items.collect();
        self.number = first;
        Value::Array(items)
    }

    fn text(&self, schema: &Value) -> Value {
        let fits_format = match schema["format"].as_str() {
            Some("date") => 1,
            Some("date-time") => 2,
            Some("time") => 3,
            Some("email" | "idn-email") => 4,
            Some("uri" | "uri-reference" | "iri") => 5,
            Some("uuid") => 6,
            _ => self.number,
        };
        let round = self.number / TEXTS.len();
        let mut text = TEXTS[fits_format % TEXTS.len()].to_owned();
        if round > 0 {
            text = format!("{text}{round}");
        }
        let bound = |name: &str| schema[name].as_u64().map(|most| most.min(CHARACTERS_MOST));
        let least = bound("minLength").unwrap_or(0);
        while (text.chars().count() as u64) < least {
            text.push('x');
        }
        if let Some(most) = bound("maxLength") {
            text = text
                .chars()
                .take(usize::try_from(most).unwrap_or(0))
                .collect();
        }
        json!(text)
    }
}

/// Adds to a schema what another one says that has to hold, too.
fn merge(into: &mut Map<String, Value>, part: Value) {
    let Value::Object(part) = part else {
        return;
    };
    for (name, value) in part {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(own)), Value::Object(more)) if name == "properties" => {
                own.extend(more);
            }
            (Some(Value::Array(own)), Value::Array(more)) if name == "required" => {
                own.extend(more);
            }
            (Some(_), _) => {}
            (None, value) => {
                into.insert(name, value);
            }
        }
    }
}

/// A number within the bounds.
fn number(schema: &Value, whole: bool) -> Value {
    let bound = |name: &str| schema[name].as_f64();
    let step = bound("multipleOf").filter(|step| *step > 0.0);
    let step = step.unwrap_or(if whole { 1.0 } else { 0.5 });
    let low = match (bound("minimum"), bound("exclusiveMinimum")) {
        (least, Some(above)) => Some(least.unwrap_or(above).max(above + step)),
        (least, None) => least,
    };
    let high = match (bound("maximum"), bound("exclusiveMaximum")) {
        (most, Some(below)) => Some(most.unwrap_or(below).min(below - step)),
        (most, None) => most,
    };
    let wanted = match (low, high) {
        (Some(low), _) => (low / step).ceil() * step,
        (None, Some(high)) => (high / step).floor() * step,
        (None, None) => step.max(1.0),
    };
    // Written without a fraction where it has none: a validator may want an integer.
    match wanted.fract() == 0.0 && wanted.abs() < 9_007_199_254_740_992.0 {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "it is whole, and within 2^53"
        )]
        true => json!(wanted as i64),
        false => json!(wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_makes_fits() {
        for schema in [
            json!({"type": "object", "required": ["decision", "amount"], "additionalProperties": false,
                "properties": {"decision": {"enum": ["refund", "refuse"]}, "amount": {"type": "number"}}}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "minItems": 3, "uniqueItems": true,
                "items": {"type": "string", "maxLength": 5}}}}),
            json!({"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 4, "maximum": 6}},
                "required": ["n"]}),
            json!({"$ref": "#/$defs/line", "$defs": {"sku": {"type": "string", "pattern": "^[A-Z]-[0-9]$"},
                "line": {"type": "object", "required": ["sku", "parts"], "properties": {"sku": {"$ref": "#/$defs/sku"},
                    "parts": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/sku"}}}}}}),
            json!({"anyOf": [{"type": "string", "minLength": 30}, {"type": "null"}]}),
            json!({"type": "object", "required": ["at", "by", "id"], "properties": {
                "at": {"type": "string", "format": "date-time"}, "by": {"type": "string", "format": "email"},
                "id": {"type": "string", "format": "uuid"}}}),
            json!({"allOf": [{"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]},
                {"properties": {"b": {"type": "boolean"}}, "required": ["b"]}]}),
            json!({"type": ["null", "object"], "minProperties": 2}),
            json!({"type": "number", "multipleOf": 0.25, "minimum": 0.3}),
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        ] {
            let made = value(&schema).unwrap_or_else(|| panic!("{schema}"));
            assert!(
                schema::compile_any(&schema).unwrap().is_valid(&made),
                "{schema}: {made}"
            );
        }
    }

    #[test]
    fn what_nothing_fits_or_has_no_end_is_not_made() {
        let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["a"],
            "properties": {"a": {"$ref": "#/$defs/a"}}}}});
        assert_eq!(value(&endless), None);
        let pattern = json!({"type": "string", "pattern": "^never [0-9]{7} made$"});
        assert_eq!(value(&pattern), None);
    }
}
