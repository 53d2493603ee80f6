//! The JSON of a request to a model.

use super::messages;
use super::names::Names;
use super::options::Quirk;
use super::quirks::Quirks;
use super::request::{ChatRequest, Message, Parameters, Tool};
use serde_json::{Map, Value, json};

impl Tool {
    /// The length of its description in a request, in bytes.
    pub fn wire_bytes(&self) -> usize {
        tool(self, &self.name).to_string().len()
    }
}

impl ChatRequest {
    /// The length of its messages, its tools and its output schema in a request, in bytes.
    pub fn wire_bytes(&self) -> u64 {
        let messages = self.messages.iter().map(Message::wire_bytes);
        let tools = self.tools.iter().map(Tool::wire_bytes);
        messages.chain(tools).sum::<usize>() as u64 + self.schema_bytes() as u64
    }

    /// The length of the output schema in a request, in bytes.
    pub fn schema_bytes(&self) -> usize {
        let schema = self.output_schema.as_ref();
        schema.map_or(0, |schema| json_schema(schema).to_string().len())
    }

    /// The request's JSON, without what its server refuses.
    pub(super) fn body(&self, names: &Names, quirks: &Quirks) -> Value {
        let has = |quirk| quirks.contains(&quirk);
        let mut body = Map::new();
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                body.insert(name.to_owned(), value);
            }
        };
        set("model", json!(self.model));
        let in_words = has(Quirk::NoJsonSchema) || has(Quirk::NoResponseFormat);
        set(
            "messages",
            match self.output_schema.as_ref().filter(|_| in_words) {
                Some(schema) => messages::sent(&instructed(&self.messages, schema), names, quirks),
                None => messages::sent(&self.messages, names, quirks),
            }
            .into(),
        );
        if !self.tools.is_empty() {
            let sent = |of: &Tool| tool(of, &names.sent(&of.name));
            set("tools", self.tools.iter().map(sent).collect());
        }
        if let Some(schema) = self
            .output_schema
            .as_ref()
            .filter(|_| !has(Quirk::NoResponseFormat))
        {
            set(
                "response_format",
                match has(Quirk::NoJsonSchema) {
                    true => json!({"type": "json_object"}),
                    false => json_schema(schema),
                },
            );
        }
        set("stream", json!(!has(Quirk::NoStreaming)));
        if !has(Quirk::NoStreaming) && !has(Quirk::NoStreamOptions) {
            set("stream_options", json!({"include_usage": true}));
        }
        self.set_parameters(names, quirks, &mut set);
        self.add_extra(&mut body, quirks);
        Value::Object(body)
    }

    fn set_parameters(&self, names: &Names, quirks: &Quirks, set: &mut dyn FnMut(&str, Value)) {
        let parameters = &self.parameters;
        let mut unless = |quirk, name: &str, value: Value| {
            if !quirks.contains(&quirk) {
                set(name, value);
            }
        };
        unless(
            Quirk::NoTemperature,
            "temperature",
            json!(parameters.temperature),
        );
        unless(Quirk::NoTopP, "top_p", json!(parameters.top_p));
        unless(Quirk::NoSeed, "seed", json!(parameters.seed));
        unless(
            Quirk::NoReasoningEffort,
            "reasoning_effort",
            json!(parameters.reasoning_effort),
        );
        unless(
            Quirk::NoPenalties,
            "presence_penalty",
            json!(parameters.presence_penalty),
        );
        unless(
            Quirk::NoPenalties,
            "frequency_penalty",
            json!(parameters.frequency_penalty),
        );
        // Servers refuse both where there are no tools.
        if !self.tools.is_empty() {
            unless(
                Quirk::NoToolChoice,
                "tool_choice",
                tool_choice(parameters, names),
            );
            unless(
                Quirk::NoParallelToolCalls,
                "parallel_tool_calls",
                json!(parameters.parallel_tool_calls),
            );
        }
        let max_tokens = match quirks.contains(&Quirk::MaxCompletionTokens) {
            true => "max_completion_tokens",
            false => "max_tokens",
        };
        set(max_tokens, json!(parameters.max_tokens));
        if !parameters.stop.is_empty() {
            set("stop", json!(parameters.stop));
        }
    }

    /// The author's own fields. They stay even where the server refuses them, whose words say so; but for `strict`.
    fn add_extra(&self, body: &mut Map<String, Value>, quirks: &Quirks) {
        for (name, value) in &self.parameters.extra {
            if name == "max_completion_tokens" {
                body.shift_remove("max_tokens");
            }
            if value.is_null() {
                body.shift_remove(name);
            } else {
                body.insert(name.clone(), value.clone());
            }
        }
        let format = body.get_mut("response_format");
        let schema = format.and_then(|format| format.pointer_mut("/json_schema")?.as_object_mut());
        if let Some(schema) = schema.filter(|_| quirks.contains(&Quirk::NoStrict)) {
            schema.shift_remove("strict");
        }
    }
}

/// What the instructions say of the schema where the request does not name it.
pub fn schema_instruction(schema: &Value) -> String {
    format!("Answer with JSON alone and no text around it, that fits this JSON Schema: {schema}")
}

/// The messages with the schema in their instructions.
fn instructed(messages: &[Message], schema: &Value) -> Vec<Message> {
    let system = |content| Message::System { content };
    // Instructions in a row are joined.
    let at = messages
        .iter()
        .take_while(|message| matches!(message, Message::System { .. }))
        .count();
    let mut instructed = messages.to_vec();
    instructed.insert(at, system(schema_instruction(schema)));
    instructed
}

/// Not strict: a provider that is takes a part of JSON Schema alone, and refuses the rest.
fn json_schema(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
}

fn tool_choice(parameters: &Parameters, names: &Names) -> Value {
    match parameters.tool_choice.as_deref() {
        None => Value::Null,
        Some(choice @ ("auto" | "none" | "required")) => json!(choice),
        Some(name) => json!({"type": "function", "function": {"name": names.sent(name)}}),
    }
}

fn tool(tool: &Tool, name: &str) -> Value {
    let mut function = json!({"name": name, "parameters": parameters(&tool.parameters)});
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    json!({"type": "function", "function": function})
}

/// The schema of a tool's arguments. Servers refuse an object without `properties`.
fn parameters(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let fields = schema
        .as_object_mut()
        .filter(|fields| !fields.contains_key("$ref"));
    if let Some(fields) = fields {
        fields.entry("type").or_insert_with(|| json!("object"));
        fields.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::{Kept, ToolCall};

    #[test]
    fn a_request_has_the_shape_of_the_api() {
        let request = ChatRequest {
            model: "m".to_owned(),
            messages: vec![
                Message::System {
                    content: "be brief".to_owned(),
                },
                Message::User {
                    content: "hi".to_owned(),
                },
                Message::Assistant {
                    content: None,
                    tool_calls: vec![ToolCall {
                        id: "c1".to_owned(),
                        name: "clock".to_owned(),
                        arguments: "{}".to_owned(),
                    }],
                    kept: Kept::default(),
                },
                Message::Tool {
                    tool_call_id: "c1".to_owned(),
                    content: "noon".to_owned(),
                },
            ],
            tools: vec![Tool {
                name: "clock".to_owned(),
                description: None,
                parameters: json!({"type": "object"}),
            }],
            output_schema: Some(json!({"type": "object", "required": ["a"]})),
            parameters: Parameters {
                temperature: Some(0.5),
                max_tokens: Some(9),
                stop: vec!["END".to_owned()],
                ..Parameters::default()
            },
            traceparent: None,
        };
        assert_eq!(
            request.body(&Names::default(), &Quirks::new()),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}
                    ]},
                    {"role": "tool", "tool_call_id": "c1", "content": "noon"},
                ],
                "tools": [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}],
                "response_format": {"type": "json_schema", "json_schema": {
                    "name": "answer", "schema": {"type": "object", "required": ["a"]},
                }},
                "stream": true,
                "stream_options": {"include_usage": true},
                "temperature": 0.5,
                "max_tokens": 9,
                "stop": ["END"],
            })
        );
    }

    #[test]
    fn extra_fields_add_replace_and_take_out() {
        let mut request = ChatRequest::default();
        request.parameters.max_tokens = Some(9);
        request.parameters.extra = serde_json::from_value(json!({
            "max_completion_tokens": 7, "reasoning_effort": "low", "stream_options": null,
        }))
        .unwrap();
        let body = request.body(&Names::default(), &Quirks::new());
        assert_eq!(body["max_completion_tokens"], 7);
        assert_eq!(body["reasoning_effort"], "low");
        assert!(body.get("max_tokens").is_none() && body.get("stream_options").is_none());
        assert_eq!(request.parameters.reserved_extra(), None);
        request
            .parameters
            .extra
            .insert("stream".to_owned(), json!(false));
        assert_eq!(request.parameters.reserved_extra(), Some("stream"));
    }

    #[test]
    fn what_a_server_refuses_is_left_out() {
        let tool = Tool {
            name: "2nd".to_owned(),
            description: None,
            parameters: json!({}),
        };
        let mut request = ChatRequest {
            messages: vec![Message::User {
                content: "hi".to_owned(),
            }],
            tools: vec![tool],
            output_schema: Some(json!({"type": "object"})),
            ..ChatRequest::default()
        };
        request.parameters = serde_json::from_value(json!({
            "temperature": 0.5, "topP": 0.5, "seed": 1, "maxTokens": 9, "reasoningEffort": "low", "toolChoice": "2nd",
            "parallelToolCalls": false, "presencePenalty": 1, "frequencyPenalty": -1,
        }))
        .unwrap();
        let names = Names::of(&request.tools);
        let whole = request.body(&names, &Quirks::new());
        let choice = json!({"type": "function", "function": {"name": "_2nd"}});
        assert_eq!(whole["tool_choice"], choice);
        assert_eq!(whole["tools"][0]["function"]["name"], "_2nd");
        assert_eq!(whole["presence_penalty"], 1.0);
        for (quirk, field, left) in [
            (Quirk::NoStreamOptions, "stream_options", None),
            (Quirk::NoStreaming, "stream_options", None),
            (Quirk::NoStreaming, "stream", Some(json!(false))),
            (Quirk::NoParallelToolCalls, "parallel_tool_calls", None),
            (Quirk::NoToolChoice, "tool_choice", None),
            (
                Quirk::NoJsonSchema,
                "response_format",
                Some(json!({"type": "json_object"})),
            ),
            (Quirk::NoResponseFormat, "response_format", None),
            (Quirk::MaxCompletionTokens, "max_tokens", None),
            (Quirk::NoTemperature, "temperature", None),
            (Quirk::NoTopP, "top_p", None),
            (Quirk::NoPenalties, "presence_penalty", None),
            (Quirk::NoPenalties, "frequency_penalty", None),
            (Quirk::NoSeed, "seed", None),
            (Quirk::NoReasoningEffort, "reasoning_effort", None),
        ] {
            assert!(whole.get(field).is_some(), "{field}");
            let less = request.body(&names, &Quirks::from([quirk]));
            assert_eq!(less.get(field), left.as_ref(), "{quirk:?}");
        }
        let renamed = request.body(&names, &Quirks::from([Quirk::MaxCompletionTokens]));
        assert_eq!(renamed["max_completion_tokens"], 9);
        request.tools.clear();
        let without = request.body(&names, &Quirks::new());
        assert!(without.get("tool_choice").is_none());
    }

    #[test]
    fn a_format_is_asked_for_in_words_and_the_authors_own_is_not_strict() {
        let mut request = ChatRequest {
            messages: vec![Message::User {
                content: "hi".to_owned(),
            }],
            output_schema: Some(json!({"type": "object"})),
            ..ChatRequest::default()
        };
        let body = |request: &ChatRequest, quirks: &[Quirk]| {
            request.body(&Names::default(), &quirks.iter().copied().collect())
        };
        let in_words = body(&request, &[Quirk::NoResponseFormat]);
        assert_eq!(in_words["messages"][0]["role"], "system");
        let in_words = body(&request, &[Quirk::NoResponseFormat, Quirk::NoSystemRole]);
        let said = format!("{}\n\nhi", schema_instruction(&json!({"type": "object"})));
        assert_eq!(
            in_words["messages"],
            json!([{"role": "user", "content": said}])
        );
        let strict = json!({"type": "json_schema", "json_schema": {"strict": true, "name": "a"}});
        for (own, sent) in [
            (json!("text"), json!("text")),
            (
                strict,
                json!({"type": "json_schema", "json_schema": {"name": "a"}}),
            ),
        ] {
            let extra = &mut request.parameters.extra;
            extra.insert("response_format".to_owned(), own);
            let body = body(&request, &[Quirk::NoStrict]);
            assert_eq!(body["response_format"], sent);
        }
    }
}
