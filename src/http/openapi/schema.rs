//! The form of schemas that generators of clients read: one pass over what the types say of themselves.
//!
//! - Any JSON is `{}`, where JSON Schema also allows `true`.
//! - An enum of texts is `enum`, its texts' meanings are a list in the description.
//! - A variant that has a title is a schema of that name, with the fields around its union in it. The union refers to its
//!   variants, and names the field that tells them apart as its discriminator.
//! - A default of null is left out: it says no more than that the field may be left out.
//!
//! A query parameter is there or left out, never null, and its text is the parameter's.

use serde_json::{Map, Value, json};

/// The keywords that hold one schema, several, and several by name.
const ONE: [&str; 2] = ["items", "additionalProperties"];
const SEVERAL: [&str; 3] = ["oneOf", "anyOf", "allOf"];
const BY_NAME: &str = "properties";

/// Puts named schemas into that form.
///
/// # Panics
/// Two variants of different shapes share a title, or one has the name of another schema.
pub(in crate::http) fn finish(schemas: &mut Map<String, Value>) {
    let mut variants = Map::new();
    for schema in schemas.values_mut() {
        walk(schema, &mut variants);
    }
    for (name, variant) in variants {
        let known = schemas.insert(name.clone(), variant);
        assert!(known.is_none(), "two types have the schema name {name}");
    }
}

/// A query parameter's description and schema, from the property that stands for it.
pub(super) fn parameter(property: &Value) -> (Option<Value>, Value) {
    let mut property = property.clone();
    walk(&mut property, &mut Map::new());
    let Value::Object(schema) = &mut property else {
        return (None, property);
    };
    let description = schema.shift_remove("description");
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            schema["type"] = one.clone();
        }
    }
    if let Some(Value::Array(mut given)) = schema.shift_remove("anyOf") {
        given.retain(|one| one["type"] != "null");
        match (given.pop(), given.is_empty()) {
            (Some(Value::Object(one)), true) => {
                let around = std::mem::replace(schema, one);
                schema.extend(around);
            }
            (last, _) => {
                given.extend(last);
                schema.insert("anyOf".to_owned(), given.into());
            }
        }
    }
    (description, property)
}

fn walk(schema: &mut Value, variants: &mut Map<String, Value>) {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Value::Object(fields) = schema else {
        return;
    };
    for keyword in ONE {
        if let Some(one) = fields.get_mut(keyword) {
            walk(one, variants);
        }
    }
    for keyword in SEVERAL {
        let several = fields.get_mut(keyword).and_then(Value::as_array_mut);
        several
            .into_iter()
            .flatten()
            .for_each(|one| walk(one, variants));
    }
    let named = fields.get_mut(BY_NAME).and_then(Value::as_object_mut);
    named
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(|one| walk(one, variants));
    if fields.get("default") == Some(&Value::Null) {
        fields.shift_remove("default");
    }
    name_texts(fields);
    name_variants(fields, variants);
}

/// Turns a choice of constant texts into an `enum`.
fn name_texts(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("oneOf") else {
        return;
    };
    let texts: Option<Vec<&str>> = choices.iter().map(|one| one["const"].as_str()).collect();
    let Some(texts) = texts else { return };
    let meanings: Vec<String> = choices
        .iter()
        .zip(&texts)
        .map(|(one, text)| match one["description"].as_str() {
            Some(meaning) => format!("- `{text}`: {meaning}"),
            None => format!("- `{text}`"),
        })
        .collect();
    let about = schema.get("description").and_then(Value::as_str);
    let about = format!("{}\n\n{}", about.unwrap_or_default(), meanings.join("\n"));
    let texts = json!(texts);
    schema.shift_remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), texts);
    schema.insert("description".to_owned(), about.trim_ascii_start().into());
}

/// Moves titled variants out of their union.
fn name_variants(schema: &mut Map<String, Value>, variants: &mut Map<String, Value>) {
    let is_titled = |keyword: &&str| match schema.get(*keyword) {
        Some(Value::Array(all)) => all.iter().all(|one| one["title"].is_string()),
        _ => false,
    };
    let Some(keyword) = ["oneOf", "anyOf"].into_iter().find(is_titled) else {
        return;
    };
    let Some(Value::Array(inner)) = schema.shift_remove(keyword) else {
        return;
    };
    let about = schema.shift_remove("description");
    let around = std::mem::take(schema);
    let mut named: Vec<(String, Map<String, Value>)> = Vec::with_capacity(inner.len());
    for variant in inner {
        let Value::Object(mut variant) = variant else {
            continue;
        };
        let title = variant.shift_remove("title");
        let name = title.as_ref().and_then(Value::as_str).unwrap_or_default();
        named.push((name.to_owned(), whole(&around, variant)));
    }
    schema.extend(about.map(|about| ("description".to_owned(), about)));
    let reference = |name: &str| format!("#/components/schemas/{name}");
    let references = named
        .iter()
        .map(|(name, _)| json!({"$ref": reference(name)}));
    schema.insert("oneOf".to_owned(), references.collect());
    if let Some(field) = telling_field(&named) {
        let mapping: Map<String, Value> = named
            .iter()
            .filter_map(|(name, variant)| Some((constant(variant, &field)?, reference(name))))
            .map(|(text, reference)| (text.to_owned(), reference.into()))
            .collect();
        schema.insert(
            "discriminator".to_owned(),
            json!({"propertyName": field, "mapping": mapping}),
        );
    }
    for (name, variant) in named {
        let variant = Value::Object(variant);
        let known = variants.insert(name.clone(), variant.clone());
        assert!(
            known.is_none_or(|known| known == variant),
            "two variants have the title {name}"
        );
    }
}

/// A variant with the fields that stand around it.
fn whole(around: &Map<String, Value>, variant: Map<String, Value>) -> Map<String, Value> {
    let mut whole = around.clone();
    for (keyword, value) in variant {
        match (whole.get_mut(&keyword), value) {
            (Some(Value::Object(all)), Value::Object(more)) => all.extend(more),
            (Some(Value::Array(all)), Value::Array(more)) => {
                for one in more {
                    if !all.contains(&one) {
                        all.push(one);
                    }
                }
            }
            (_, value) => {
                whole.insert(keyword, value);
            }
        }
    }
    whole
}

fn constant<'a>(variant: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    variant.get(BY_NAME)?.get(field)?.get("const")?.as_str()
}

/// The field that is a constant in every variant.
fn telling_field(variants: &[(String, Map<String, Value>)]) -> Option<String> {
    let (_, first) = variants.first()?;
    let fields = first.get(BY_NAME)?.as_object()?.keys();
    fields
        .into_iter()
        .find(|field| {
            variants
                .iter()
                .all(|(_, variant)| constant(variant, field).is_some())
        })
        .cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(schemas: Value) -> Value {
        let Value::Object(mut schemas) = schemas else {
            panic!("schemas are an object")
        };
        finish(&mut schemas);
        Value::Object(schemas)
    }

    #[test]
    fn any_json_is_an_empty_schema_wherever_it_stands() {
        let any = json!({"A": {"properties": {"a": true, "b": {"items": true}, "c": {"additionalProperties": true}}}});
        assert_eq!(
            finished(any),
            json!({"A": {"properties": {"a": {}, "b": {"items": {}}, "c": {"additionalProperties": {}}}}})
        );
        let none = json!({"A": {"additionalProperties": false}});
        assert_eq!(finished(none.clone()), none);
    }

    #[test]
    fn a_choice_of_texts_is_an_enum() {
        let order = json!({"Order": {"description": "The direction.", "oneOf": [
            {"type": "string", "const": "asc", "description": "Oldest first."},
            {"type": "string", "const": "desc"},
        ]}});
        assert_eq!(
            finished(order)["Order"],
            json!({"type": "string", "enum": ["asc", "desc"],
                "description": "The direction.\n\n- `asc`: Oldest first.\n- `desc`"})
        );
    }

    #[test]
    fn titled_variants_are_schemas_with_what_stands_around_them() {
        let event = json!({"Event": {
            "type": "object", "description": "An event.",
            "properties": {"seq": {"type": "integer"}, "kind": {"type": "string"}}, "required": ["seq", "kind"],
            "oneOf": [
                {"title": "Begun", "type": "object", "properties": {"kind": {"const": "begun"}}, "required": ["kind"]},
                {"title": "Ended", "type": "object", "properties": {"kind": {"const": "ended"}, "why": true},
                    "required": ["kind", "why"]},
            ],
        }});
        assert_eq!(
            finished(event),
            json!({
                "Event": {
                    "description": "An event.",
                    "oneOf": [{"$ref": "#/components/schemas/Begun"}, {"$ref": "#/components/schemas/Ended"}],
                    "discriminator": {"propertyName": "kind", "mapping": {
                        "begun": "#/components/schemas/Begun", "ended": "#/components/schemas/Ended",
                    }},
                },
                "Begun": {"type": "object",
                    "properties": {"seq": {"type": "integer"}, "kind": {"const": "begun"}},
                    "required": ["seq", "kind"]},
                "Ended": {"type": "object",
                    "properties": {"seq": {"type": "integer"}, "kind": {"const": "ended"}, "why": {}},
                    "required": ["seq", "kind", "why"]},
            })
        );
    }

    #[test]
    fn a_query_parameter_is_never_null() {
        let limit = json!({"type": ["integer", "null"], "maximum": 200, "description": "Rows.", "default": null});
        assert_eq!(
            parameter(&limit),
            (
                Some(json!("Rows.")),
                json!({"type": "integer", "maximum": 200})
            )
        );
        let order = json!({"anyOf": [{"$ref": "#/a"}, {"type": "null"}], "default": "desc"});
        assert_eq!(
            parameter(&order),
            (None, json!({"$ref": "#/a", "default": "desc"}))
        );
    }
}
