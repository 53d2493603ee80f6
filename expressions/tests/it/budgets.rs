//! Hostile programs: each ends by its budget, and nothing catches that.

use expressions::{Budget, Error, Expression};
use serde_json::{Value, json};

use crate::{STEPS, evaluate};

/// Programs with what they end with. The benchmark of hostile expressions takes their times and their memory.
const PROGRAMS: &str = include_str!("hostile.txt");

/// Each program that the list says to end so does, alone and where everything is caught.
fn end_with(expected: &Error, named: &str) {
    let lines = PROGRAMS.lines().filter_map(|line| line.split_once(' '));
    let programs: Vec<&str> = lines
        .filter_map(|(ends, program)| (ends == named).then_some(program))
        .collect();
    assert!(programs.len() > 1, "{named}");
    for program in programs {
        for wrapped in [
            program.to_owned(),
            format!("try ({program}) catch 1"),
            format!("({program})? // 2"),
            format!("first(1, ({program}))"),
            format!("[.[]? | ({program})] // 3 | length"),
            format!("path(select(({program})?))"),
        ] {
            let ended = evaluate(&wrapped, &json!([1]));
            assert!(ended.as_ref() == Err(expected), "{wrapped}");
        }
    }
}

#[test]
fn nothing_catches_spent_steps() {
    end_with(&Error::Steps(STEPS), "steps");
}

#[test]
fn nothing_catches_a_weight_that_is_spent() {
    end_with(&Error::Weight, "weight");
}

#[test]
fn nothing_catches_a_depth_that_is_spent() {
    end_with(&Error::Depth, "depth");
    // Ninety levels around twenty.
    let nested = format!("{}1{}", "[".repeat(20), "]".repeat(20));
    let program = format!("setpath([range(90) | 0]; {nested})");
    assert_eq!(evaluate(&program, &json!(null)), Err(Error::Depth));
    let text = format!("{}{}", "[".repeat(101), "]".repeat(101));
    assert_eq!(evaluate("fromjson", &json!(text)), Err(Error::Depth));
}

#[test]
fn evaluations_draw_from_one_total() {
    let expression = Expression::parse("[range(100)] | length", &[]).unwrap();
    let mut budget = Budget::new(1_000, 2_000);
    let mut ended = Ok(vec![]);
    for _ in 0..20 {
        ended = expression.evaluate(&Value::Null, &[], &mut budget);
        if ended.is_err() {
            break;
        }
    }
    assert_eq!(ended, Err(Error::TotalSteps(2_000)));
    assert_eq!(budget.used(), 2_000);
    let sentence = Error::TotalSteps(2_000).to_string();
    assert_eq!(
        sentence,
        "The expressions together used more than 2,000 steps."
    );
}

#[test]
fn outputs_together_are_bounded() {
    assert_eq!(
        evaluate(". as $x | range(5) | $x", &json!("x".repeat(1_000_000))),
        Err(Error::Weight)
    );
    assert_eq!(
        evaluate(".", &json!("x".repeat(5_000_000))),
        Err(Error::Weight)
    );
}

/// The deepest programs.
fn nested_programs() -> Vec<String> {
    let nest = |open: &str, inner: &str, close: &str, levels: usize| {
        format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
    };
    let most = expressions::MAX_NESTING - 2;
    vec![
        nest("[", "..", "]", most),
        nest("(", "..", ")", most),
        nest("map(", ".", ")?", most),
        nest("walk(", ".", ")", most / 2),
        nest("first(", ".[]", ")", most),
        nest("path(", ".[]", ")?", most),
        nest("del(", ".[]", ")?", most),
        nest("{a:", "1", "}", most / 2),
        nest("\"\\(", "1", ")\"", most),
        nest("if . then ", "1", " else 2 end", most / 2),
        nest("try ", "error", "", most / 2),
        nest(". as [$x] | ", "$x", "", most / 2),
        nest("- ", "1", "", most / 2),
        nest("sub(\"a\"; ", "\"b\"", ")", most / 2),
        nest("1 + . as $x | ", "$x", "", most),
        nest("1 // - . as [$x] | ", "$x", "", most / 2),
        nest("try -", "1", "", most / 2),
        nest(".[", "0", "]?", most),
        nest(".[:", "0", "]?", most),
        nest("{\"\\(", "1", ")\": 2}", most / 2),
        nest("{($input): ", "1", "}", most / 2).replace("$input", "\"a\""),
        nest("@json \"\\(", "..", ")\"", most),
        nest("getpath(", "[0]", ")?", most),
        nest("pick(", ".[0]", ")?", most),
        nest("any(", ".", ")", most),
        nest("with_entries(", ".", ")?", most),
        nest("map_values(", ".", ")?", most),
        nest("sort_by(", ".", ")?", most),
        format!(". as {}$x{} | $x", "[".repeat(most), "]".repeat(most)),
        format!(". as {}$x{} | $x", "{a: ".repeat(most), "}".repeat(most)),
        format!("test(\"{}a{}\")", "(".repeat(500), ")".repeat(500)),
        format!("test(\"{}a{}\")", "(".repeat(49), ")".repeat(49)),
        format!("test(\"{}\")", "[".repeat(1_000)),
    ]
}

/// The longest programs.
fn long_programs() -> Vec<String> {
    let mut programs = Vec::new();
    for joint in ["+", "|", ",", "//", " and ", " or ", "-", "*"] {
        programs.push(vec!["1"; 1_000].join(joint));
    }
    programs.push(format!(".{}", "[0]?".repeat(1_500)));
    programs.push("if 1,2 then 1 ".to_owned() + &"elif 1,null then 2 ".repeat(300) + "end");
    programs
}

/// Programs that walk all of their input, or make what is deep.
fn walking_programs() -> Vec<String> {
    [
        "..",
        "tojson | fromjson",
        "[paths] | length",
        "walk(.)",
        "flatten",
        ". == .",
        "[., .] | sort | unique",
        ". * .",
        "[..] | length",
        "contains(.)",
        "getpath([range(100) | 0])",
        "setpath([range(90) | 0]; 1)",
        "delpaths([[range(90) | 0]])",
        "map(., .) | tostring | length",
        "error",
        "try error catch .",
        "path(..)",
        "del(..)",
        "pick(..)",
        "[.] | index(.[0])",
        "inside(.)",
        "[., .] | sort_by(.), group_by(.), min_by(.), unique_by(.)",
        "@json, @text",
        "to_entries",
        "flatten(1000)",
        "fromjson?",
        "pick(getpath([range(10000) | 0]))",
        "del(getpath([range(10000) | 0]))",
        "pick(getpath([range(100) | 0]))",
        "delpaths([[range(10000) | 0]])",
        "paths",
        ". - [.]",
    ]
    .map(str::to_owned)
    .into()
}

/// The deepest and the longest programs, and the deepest data, on a stack of 512 KiB.
#[test]
fn a_small_stack_is_enough() {
    let programs = [nested_programs(), long_programs(), walking_programs()].concat();
    let small = std::thread::Builder::new().stack_size(512 * 1024);
    let ran = small.spawn(move || {
        let mut deepest = json!(1);
        for _ in 0..126 {
            deepest = json!([deepest]);
        }
        let mut object = json!(1);
        for _ in 0..98 {
            object = json!({"a": object});
        }
        for program in &programs {
            for input in [&deepest, &object, &json!(null)] {
                // An outcome of any kind will do.
                drop(evaluate(program, input));
            }
        }
    });
    ran.unwrap().join().unwrap();
}
