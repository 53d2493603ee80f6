//! The names of tools in a request, and back.
//!
//! Servers take names of at most 64 letters, digits, underscores and hyphens; some want a letter or an underscore first. A
//! name that has this form is sent as it is. Any other one is replaced, so that no two tools of a request have the same name.

use super::request::{Tool, ToolCall};
use std::collections::BTreeMap;

const CHARACTERS_MOST: usize = 64;
/// Sent in place of a name without characters.
const NAMELESS: &str = "tool";

/// The names of a request's tools which are not sent as they are.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    pub(super) fn of(tools: &[Tool]) -> Self {
        let mut taken: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let mut names = BTreeMap::new();
        for tool in tools.iter().filter(|tool| fitted(&tool.name) != tool.name) {
            let first = fitted(&tool.name);
            let numbered = (2..).map(|number: usize| {
                let end = format!("_{number}");
                format!(
                    "{}{end}",
                    &first[..first.len().min(CHARACTERS_MOST - end.len())]
                )
            });
            let mut candidates = std::iter::once(first.clone()).chain(numbered);
            if let Some(name) = candidates.find(|name| !taken.contains(name)) {
                taken.push(name.clone());
                names.insert(tool.name.clone(), name);
            }
        }
        Self(names)
    }

    /// As it is sent. A name that no tool has, which only a model may have written, is sent in the form of one.
    pub(super) fn sent(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| fitted(name))
    }

    /// Gives the calls of an answer the names of the tools that they mean.
    pub(super) fn back(&self, calls: &mut [ToolCall]) {
        for call in calls {
            if let Some((name, _)) = self.0.iter().find(|(_, sent)| **sent == call.name) {
                call.name.clone_from(name);
            }
        }
    }
}

fn fitted(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut fitted: String = name
        .chars()
        .take(CHARACTERS_MOST)
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    if fitted.is_empty() {
        return NAMELESS.to_owned();
    }
    if !fitted.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        fitted.insert(0, '_');
        fitted.truncate(CHARACTERS_MOST);
    }
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn tools(names: &[&str]) -> Vec<Tool> {
        let tool = |name: &&str| Tool {
            name: (*name).to_owned(),
            description: None,
            parameters: json!({}),
        };
        names.iter().map(tool).collect()
    }

    fn back(names: &Names, name: &str) -> String {
        let mut calls = [ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: String::new(),
        }];
        names.back(&mut calls);
        let [call] = calls;
        call.name
    }

    #[test]
    fn names_that_no_server_takes_are_replaced_and_found_again() {
        let names = Names::of(&tools(&["clock", "2nd", "_2nd", "a.b", "a b"]));
        for (name, sent) in [
            ("clock", "clock"),
            ("2nd", "_2nd_2"),
            ("_2nd", "_2nd"),
            ("a.b", "a_b"),
            ("a b", "a_b_2"),
        ] {
            assert_eq!(names.sent(name), sent);
            assert_eq!(back(&names, sent), name);
        }
        assert_eq!(names.sent("no such tool"), "no_such_tool");
        assert_eq!(names.sent(""), "tool");
        assert_eq!(back(&names, "other"), "other");
    }

    proptest! {
        #[test]
        fn no_two_names_are_the_same(wanted in proptest::collection::btree_set("[a-c.0-]{1,3}|[ab]{63,70}", 0..12)) {
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let names = Names::of(&tools(&wanted));
            let sent: BTreeSet<String> = wanted.iter().map(|name| names.sent(name)).collect();
            prop_assert_eq!(sent.len(), wanted.len());
            for name in wanted {
                let sent = names.sent(name);
                prop_assert_eq!(fitted(&sent), sent.clone());
                prop_assert_eq!(back(&names, &sent), name);
            }
        }
    }
}
