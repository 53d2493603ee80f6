//! What is sent of a conversation, whatever stands in it.

use super::*;
use crate::model::request::Tool;
use proptest::prelude::*;

fn user(content: &str) -> Message {
    Message::User {
        content: content.to_owned(),
    }
}

fn system(content: &str) -> Message {
    Message::System {
        content: content.to_owned(),
    }
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "clock".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn calls(content: Option<&str>, tool_calls: Vec<ToolCall>) -> Message {
    Message::Assistant {
        content: content.map(str::to_owned),
        tool_calls,
        kept: Kept::default(),
    }
}

fn result(id: &str, content: &str) -> Message {
    Message::Tool {
        tool_call_id: id.to_owned(),
        content: content.to_owned(),
    }
}

fn plain(messages: &[Message]) -> Vec<Value> {
    sent(messages, &Names::default(), &Quirks::new())
}

#[test]
fn what_the_server_gave_is_handed_back_and_replaces_nothing() {
    let message = Message::Assistant {
        content: None,
        tool_calls: vec![call("c1", "{}"), call("c2", "{}")],
        kept: serde_json::from_value(json!({
            "message": {"reasoning_content": "hm", "role": "user", "content": "x", "tool_calls": []},
            "calls": [{"extra_content": {"google": {"thought_signature": "SIG"}}, "id": "x", "type": "y", "function": {}}],
        }))
        .unwrap(),
    };
    let messages = [user("hi"), message];
    let function = json!({"name": "clock", "arguments": "{}"});
    assert_eq!(
        plain(&messages)[1],
        json!({"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": function, "extra_content": {"google": {"thought_signature": "SIG"}}},
            {"id": "c2", "type": "function", "function": function},
        ]})
    );
    let quirks = Quirks::from([Quirk::NoKept, Quirk::NoNullContent]);
    let less = &sent(&messages, &Names::default(), &quirks)[1];
    assert_eq!(less["content"], "");
    assert!(less.get("reasoning_content").is_none());
    assert!(less["tool_calls"][0].get("extra_content").is_none());
}

#[test]
fn arguments_that_are_no_object_are_sent_as_an_empty_one() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(500), "]".repeat(500));
    for (arguments, expected) in [
        ("{\"city\": \"Paris\"}", "{\"city\": \"Paris\"}"),
        ("", "{}"),
        ("{\"city\":\"Pa", "{}"),
        ("null", "{}"),
        ("\"text\"", "{}"),
        ("[1]", "{}"),
        ("{\"a\": NaN}", "{}"),
        (deep.as_str(), "{}"),
    ] {
        let messages = [user("hi"), calls(None, vec![call("c", arguments)])];
        let sent = &plain(&messages)[1]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(sent, expected);
    }
}

#[test]
fn a_failed_turn_leaves_messages_that_are_joined() {
    let messages = [
        system("be brief"),
        calls(Some("cut off from its question"), vec![]),
        result("old", "of a call that is not sent"),
        user("one"),
        calls(None, vec![]),
        user("two"),
        calls(Some("a"), vec![]),
        calls(Some("b"), vec![call("c", "{}")]),
        result("c", ""),
        user("three"),
    ];
    let function = json!({"name": "clock", "arguments": "{}"});
    assert_eq!(
        plain(&messages),
        [
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": "one\n\ntwo"}),
            json!({"role": "assistant", "content": "a\n\nb", "tool_calls": [{"id": "c", "type": "function", "function": function}]}),
            json!({"role": "tool", "tool_call_id": "c", "content": "(no output)"}),
            json!({"role": "assistant", "content": UNANSWERED}),
            json!({"role": "user", "content": "three"}),
        ]
    );
    let quirks = Quirks::from([Quirk::NoSystemRole]);
    let without = sent(&messages, &Names::default(), &quirks);
    assert_eq!(
        without[0],
        json!({"role": "user", "content": "be brief\n\none\n\ntwo"})
    );
    assert_eq!(without[1..], plain(&messages)[2..]);
}

#[test]
fn names_of_tools_are_those_of_the_request() {
    let tools = [Tool {
        name: "2nd".to_owned(),
        description: None,
        parameters: json!({}),
    }];
    let mut made = call("c", "{}");
    made.name = "2nd".to_owned();
    let messages = [user("hi"), calls(None, vec![made, call("d", "{}")])];
    let sent = sent(&messages, &Names::of(&tools), &Quirks::new());
    assert_eq!(sent[1]["tool_calls"][0]["function"]["name"], "_2nd");
    assert_eq!(sent[1]["tool_calls"][1]["function"]["name"], "clock");
}

fn any_message() -> impl Strategy<Value = Message> {
    let text = "|[ab ]{0,3}";
    prop_oneof![
        text.prop_map(|text| user(&format!("u{text}"))),
        text.prop_map(|text| calls(Some(&text), vec![])),
        text.prop_map(|text| calls(Some(&text), vec![call("c", &text)])),
        text.prop_map(|text| result("c", &text)),
    ]
}

proptest! {
    #[test]
    fn roles_alternate_and_nothing_is_empty(
        messages in proptest::collection::vec(any_message(), 0..12), has_system: bool, no_system_role: bool,
    ) {
        let mut all = Vec::from_iter(has_system.then(|| system("be brief")));
        all.extend(messages);
        all.push(user("last"));
        let quirks = Quirks::from_iter(no_system_role.then_some(Quirk::NoSystemRole));
        let sent = sent(&all, &Names::default(), &quirks);
        let mut before = "system";
        for message in &sent {
            let role = message["role"].as_str().unwrap();
            match role {
                "system" => prop_assert!(!no_system_role && before == "system"),
                "user" => prop_assert!(["system", "assistant"].contains(&before)),
                "assistant" => prop_assert!(before == "user" || before == "tool" || before == "assistant"),
                _ => prop_assert!(["assistant", "tool"].contains(&before)),
            }
            let is_empty = message["content"].as_str().is_none_or(|text| text.trim().is_empty());
            prop_assert!(!is_empty || message.get("tool_calls").is_some() || role == "tool");
            before = role;
        }
        prop_assert_eq!(before, "user");
    }
}
