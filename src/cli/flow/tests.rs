//! JSON and YAML give the same value, and each part is found where it stands.

use super::source::{Format, Source};
use crate::flows::definition::examine;
use crate::flows::definition::fault::{Code, Fault, Span};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(text: &str, format: Format) -> Source {
    let (source, fault) = Source::read(text, format);
    assert!(fault.is_none(), "{fault:?}: {text}");
    source
}

/// The characters that a fault with this path and these characters of its text is shown at.
fn shown(source: &Source, path: &str, span: Option<(usize, usize)>) -> String {
    let at = source.line_column(&Fault {
        path: path.to_owned(),
        code: Code::BadExpression,
        message: String::new(),
        span: span.map(|(start, end)| Span { start, end }),
        hint: None,
    });
    let text = at.text.chars().skip(at.column - 1);
    text.take(at.width).collect()
}

#[test]
fn the_example_of_the_page_is_valid_and_so_is_its_json() {
    let page = include_str!("../../../docs/flows.md");
    let examples = page.split("```yaml\n").skip(1);
    let examples = examples.map(|rest| read(rest.split("```").next().unwrap(), Format::Yaml));
    let examples: Vec<Value> = examples.map(|source| source.value).collect();
    for example in &examples {
        let report = examine(example);
        assert!(
            report.faults.is_empty() && report.warnings.is_empty(),
            "{report:?}"
        );
    }
    let refund: Value =
        serde_json::from_str(include_str!("../../flows/definition/tests/refund.json")).unwrap();
    assert_eq!(examples.last(), Some(&refund));
    assert_eq!(examples.len(), 2);
}

#[test]
fn a_scalar_of_yaml_has_the_type_of_its_core_schema() {
    let yaml = "[~, null, , true, False, 12, -3, +4, 0x1f, 0o17, 1.5, -2e3, 1.0.3, 0x, '12', \"a\\tb\", no, 2026-01-01, -, 18446744073709551615, 1e]";
    let expected = json!([
        null,
        null,
        null,
        true,
        false,
        12,
        -3,
        4,
        31,
        15,
        1.5,
        -2000.0,
        "1.0.3",
        "0x",
        "12",
        "a\tb",
        "no",
        "2026-01-01",
        "-",
        18_446_744_073_709_551_615_u64,
        "1e"
    ]);
    let yaml = yaml.replace(", , ", ", ~, ").replace(" -,", " '-',");
    assert_eq!(read(&yaml, Format::Yaml).value, expected);
}

#[test]
fn characters_of_a_text_are_found_however_it_is_written() {
    for (text, format) in [
        (
            r#"{"a": "ö\" x\u00e4\ud83d\ude00\\ $nobody"}"#,
            Format::Json,
        ),
        ("a: \"ö\\\" x\\xe4\\U0001f600\\\\ $nobody\"", Format::Yaml),
    ] {
        let source = read(text, format);
        let value = source.value["a"].as_str().unwrap();
        let start = value.chars().position(|c| c == '$').unwrap();
        assert_eq!(
            shown(&source, "$.a", Some((start, start + 7))),
            "$nobody",
            "{text}"
        );
    }
    let source = read(
        "a: 'it''s $nobody'\nb: x $nobody\nc: |\n  x\n\n  $nobody\nd: >\n  x\n  $nobody\n",
        Format::Yaml,
    );
    for (field, start) in [("a", 5), ("b", 2), ("c", 3)] {
        let path = format!("$.{field}");
        assert_eq!(
            shown(&source, &path, Some((start, start + 7))),
            "$nobody",
            "{field}"
        );
    }
    // The lines of a folded text are joined: the text is shown from its begin.
    assert!(!shown(&source, "$.d", Some((2, 9))).is_empty());
    // What is missing at the end is shown behind the last character.
    let source = read("{\"a\": \"${ 1 +}\"}", Format::Json);
    assert_eq!(shown(&source, "$.a", Some((6, 6))), "}");
}

#[test]
fn a_fault_whose_part_is_unknown_is_shown_at_what_is_around_it() {
    let source = read("a:\n  b: {c: 1}\n", Format::Yaml);
    assert_eq!(shown(&source, "$.a.b.c", None), "1");
    assert_eq!(shown(&source, "$.a.b.d.e", None), "b");
    assert_eq!(shown(&source, "$.x", None), "a");
}

/// The reader goes down level by level, and a stack that overflows ends the command without a word.
#[test]
fn what_nests_without_an_end_is_a_fault() {
    for open in ["[", "{a: ", "- ", "[{\"a\": "] {
        let text = open.repeat(2_000);
        let (_, fault) = Source::read(&text, Format::Yaml);
        assert!(fault.is_some(), "{open}");
    }
    for open in ["[", "{\"a\":"] {
        let (_, fault) = Source::read(&open.repeat(50_000), Format::Json);
        assert!(fault.is_some(), "{open}");
    }
    let whole = format!("{}1{}", "[".repeat(128), "]".repeat(128));
    let (_, fault) = Source::read(&whole, Format::Yaml);
    let said = fault.unwrap().message;
    assert!(said.contains("127 deep"), "{said}");
}

proptest! {
    /// Every value that JSON can say is read the same from its text in both formats, and no text ends the program.
    #[test]
    fn json_is_yaml_and_its_parts_are_found(value in values()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let source = read(&text, Format::Json);
        prop_assert_eq!(&source.value, &value);
        prop_assert_eq!(&read(&text, Format::Yaml).value, &value);
    }

    #[test]
    fn any_text_is_read_or_has_a_fault(text in "[\\[\\]{}:,\"'\\\\ \n#|>&*!a1-]{0,40}") {
        for format in [Format::Json, Format::Yaml] {
            if let (source, Some(fault)) = Source::read(&text, format) {
                prop_assert!(source.line_column(&fault).column > 0);
            }
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-zäß \"\\\\$.{}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-zä .]{1,6}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
