//! What authors are told about their slips: the place, the sentence, the hint.

use expressions::{Expression, MAX_NESTING, MAX_SOURCE_BYTES};

/// The faults of a text, each with the piece of text that it names.
fn faults(source: &str) -> Vec<String> {
    let Err(faults) = Expression::parse(source, &["context", "input"]) else {
        panic!("{source}: taken");
    };
    let found = faults.iter().map(|fault| {
        let place = &source[fault.span.clone()];
        let hint = fault.hint.as_deref().unwrap_or("-");
        format!("[{place}] {} | {hint}", fault.message)
    });
    found.collect()
}

fn check(source: &str, expected: &[&str]) {
    assert_eq!(faults(source), expected, "{source}");
}

fn taken(source: &str) {
    if let Err(faults) = Expression::parse(source, &["context", "input"]) {
        panic!("{source}: {faults:?}");
    }
}

#[test]
fn the_language_is_taken() {
    for source in [
        ".",
        "..",
        ".a.b.c",
        ".\"a b\"[0][-1]?",
        ".a[\"b\"].[0]",
        ".[1:2], .[:3], .[4:]",
        ".[]?",
        ". .a",
        ".and.or.if",
        "..|.a?",
        "1, 2.5, .5, 1e3, -1 # a comment\n, 2",
        ".a - 1 | -.a",
        "\"a\\u00e9\\ud83d\\ude00\\n\\\"\"",
        "\"Assess \\($context.order.id): \\(.a | \"x\\(.)\")\"",
        "@base64 \"a\\(.)\", @uri, @text, @json, @base64d",
        "{a, $context, \"b\", \"c\\(1)\", (\"d\"): 1, \"e\": .a | length, if: 2, \"f\": -1}",
        "[]",
        "{}",
        "[.[] | select(.ok and (.n > 1 or .m <= 2)) | {n}]",
        "if .a then 1 elif .b then 2 else 3 end",
        "if .a then 1 end",
        "try error(\"x\") catch .",
        "(.a, .b)?",
        "(1)????",
        ".a // .b // error",
        ". as $x | [$x, $input]",
        ". as [$a, {b: $c, $d, \"e\": [$e], (\"f\"): $f, $g: [$h]}] | $a + $h",
        "1 + . as $x | $x",
        "range(3), range(1; 3), limit(2; .[])",
        "$context.a[0].b?",
    ] {
        taken(source);
    }
}

#[test]
fn slips_of_other_languages_have_hints() {
    check(
        ".a && .b",
        &["[&&] Expected an operator or the end, found `&&`. | Write `and`."],
    );
    check(
        ".a || .b",
        &["[||] Expected an operator or the end, found `||`. | Write `or`."],
    );
    check(
        "!.a",
        &["[!] Expected a value, found `!`. | Write `… | not`."],
    );
    check(
        ".a === 1",
        &["[===] Expected an operator or the end, found `===`. | Write `==`."],
    );
    check(
        ".a ?? 1",
        &[
            "[1] Expected an operator or the end, found `1`. | Write `if A then B else C end` for a choice, `A // B` for a default.",
        ],
    );
    check(
        "'a'",
        &["['] Expected a value, found `'`. | A string stands in double quotes."],
    );
    check(
        "${ .a }",
        &["[${] Expected a value, found `${`. | An expression is not set in braces once more."],
    );
    check(
        ".a ? 1 : 2",
        &[
            "[1] Expected an operator or the end, found `1`. | Write `if A then B else C end` for a choice, `A // B` for a default.",
        ],
    );
    check(
        ".items.length()",
        &[
            "[(] Expected an operator or the end, found `(`. | A field is not called. Write `.items | length`.",
        ],
    );
    check(
        ".items.0",
        &[
            "[.0] Expected an operator or the end, found `.0`. | Write `.items[0]` for an item of an array.",
        ],
    );
    check(
        ".a = 1",
        &[
            "[=] `=` is an assignment, and assignments are not supported. | Compare with `==`. \
           Set a field with `. + {name: value}`.",
        ],
    );
    check(
        "1 < 2 < 3",
        &["[<] Comparisons are not chained. | Write `A < B and B < C`."],
    );
}

#[test]
fn an_arrow_function_has_a_hint() {
    for source in ["[.a[] | (x => x.price)]", ".a | map(x => x.price)"] {
        let found = faults(source);
        let last = found.last().unwrap();
        let hint = "Write what is done with one item, which is `.`: `map(.price)` for `map(x => x.price)`.";
        assert!(last.starts_with("[=>] ") && last.ends_with(hint), "{last}");
    }
}

/// The warnings of a text, each with the piece of text that it names.
fn warnings(source: &str) -> Vec<String> {
    let expression = Expression::parse(source, &["context", "input"]).unwrap();
    let told = expression.warnings().iter().map(|warning| {
        let hint = warning.hint.as_deref().unwrap_or("-");
        format!(
            "[{}] {} | {hint}",
            &source[warning.span.clone()],
            warning.message
        )
    });
    told.collect()
}

#[test]
fn a_source_of_as_that_older_versions_of_jq_read_otherwise_is_a_warning() {
    assert_eq!(
        warnings(".price * .qty as $sum | $sum + .ship"),
        [
            "[.price * .qty] `as` binds all of `.price * .qty`, not `.qty` alone as up to jq 1.7. | Parentheses say \
             which is meant: `(.price * .qty) as $sum | …` or `(.qty as $sum | …)`."
        ]
    );
    for source in [
        "-1 as $x | $x",
        ".a // .b as [$x] | $x",
        "[1, 2 + 3 as $x | $x]",
    ] {
        assert_eq!(warnings(source).len(), 1, "{source}");
    }
    for source in [
        ".a[1 + 2].b? as $x | $x",
        "(1 + 2) as $x | $x",
        "1 + (2 as $x | $x)",
        "1, try -1 as $x | $x",
        "if 1 + 1 then 2 end as $x | $x + 1",
        "\"\\(1 + 2)\" as $x | 1 + $x",
    ] {
        assert!(warnings(source).is_empty(), "{source}");
    }
    let many = format!("{}1", "[1 + 2 as $x | $x], ".repeat(30));
    assert_eq!(warnings(&many).len(), 20);
}

#[test]
fn unknown_names_are_told_together() {
    check(
        "$nope + foo + contxt(.) + filter(.a) + context + \"\\(lenght)\"",
        &[
            "[$nope] There is no variable `$nope`. | Defined here: $context, $input.",
            "[foo] There is no function `foo`. | A field is `.foo`, a string `\"foo\"`.",
            "[contxt] There is no function `contxt`. | -",
            "[filter] There is no function `filter`. | Did you mean `select`?",
            "[context] There is no function `context`. | The variable is `$context`.",
            "[lenght] There is no function `lenght`. | Did you mean `length`?",
        ],
    );
    check(
        "limit(2, .[]) + range(1, 2; 3; 4; 5)",
        &[
            "[limit] `limit` takes 2 arguments, not 1. | Arguments are separated by `;`.",
            "[range] `range` takes 1, 2 or 3 arguments, not 4. | -",
        ],
    );
}

#[test]
fn what_is_no_pure_function_is_refused_by_name() {
    for name in [
        "now",
        "localtime",
        "env",
        "input",
        "inputs",
        "debug",
        "stderr",
        "halt",
        "halt_error",
        "infinite",
        "nan",
    ] {
        let found = faults(name);
        assert!(
            found[0].starts_with(&format!("[{name}] `{name}` is not supported here.")),
            "{found:?}"
        );
        assert!(!found[0].ends_with("| -"), "{found:?}");
    }
    for source in [
        "recurse(.a)",
        "repeat(.)",
        "while(true; .)",
        "until(true; .)",
        "def f: 1; f",
        "label $x | 1",
    ] {
        let found = faults(source);
        assert!(found[0].contains("is not supported here."), "{found:?}");
        assert!(!found[0].ends_with("| -"), "{found:?}");
    }
    for source in [
        "reduce .[] as $x (0; .)",
        "foreach .[] as $x (0; .)",
        "import \"a\" as b; 1",
        "$ENV",
        "$secrets",
    ] {
        assert!(!faults(source)[0].ends_with("| -"), "{source}");
    }
    check(
        "$authorization",
        &[
            "[$authorization] There is no variable `$authorization`. | What an expression sees is kept with the \
           run, so it sees no secret.",
        ],
    );
}

#[test]
fn faults_of_grammar_name_their_place() {
    check(
        "",
        &["[] The expression is empty. | Write `.` for the input itself."],
    );
    check(
        "  # only a comment",
        &["[] The expression is empty. | Write `.` for the input itself."],
    );
    check(".a +", &["[] Expected a value, found the end. | -"]);
    check("(.a", &["[] Expected `)`, found the end. | -"]);
    check(".a | then", &["[then] Expected a value, found `then`. | -"]);
    check(
        "\"abc",
        &[
            "[\"] The string that begins here has no end. | A quote inside a string is written `\\\"`.",
        ],
    );
    check(
        "\"a\\qb\"",
        &["[\\q] This is no escape of a string. | A backslash is written `\\\\`."],
    );
    check(
        "\"\\ud800\"",
        &["[\\u] This is no escape of a string. | A backslash is written `\\\\`."],
    );
    check(
        "{1: 2}",
        &[
            "[1] Expected a key, found `1`. | A key is a name, a string, or an expression in parentheses.",
        ],
    );
    check(
        "1e999",
        &["[1e999] The number is too large for a double. | -"],
    );
    check(
        "@csv",
        &[
            "[@csv] There is no format `@csv`. | Taken are `@text`, `@json`, `@base64`, `@base64d`, `@uri`.",
        ],
    );
    check(
        ". as $x ?// $y | 1",
        &["[?] Expected `|`, found `?`. | Alternative patterns are not supported."],
    );
    check("a§", &["[§] '§' is not part of the language. | -"]);
    check("§a", &["[§] '§' is not part of the language. | -"]);
    check(". as $x", &["[] Expected `|`, found the end. | -"]);
    check(
        ". as $x | 1, $x | (. as $y | $y) + $y",
        &["[$y] There is no variable `$y`. | Defined here: $context, $input, $x."],
    );
}

#[test]
fn the_bounds_of_a_text_are_faults() {
    let long = format!("\"{}\"", "a".repeat(MAX_SOURCE_BYTES));
    assert!(faults(&long)[0].contains("at most 8192 are taken."));
    let deepest = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    taken(&deepest(MAX_NESTING - 1));
    for deep in [
        deepest(MAX_NESTING),
        "(".repeat(8_000),
        "-".repeat(8_000),
        "try ".repeat(2_000),
        "{a:".repeat(2_000),
        "\"\\(".repeat(2_000),
        format!("{}1", ". as $x | ".repeat(800)),
        format!(". as {}", "[".repeat(8_000)),
        "if ".repeat(2_000),
        "1|1,1//1 or 1 and 1==1+1*(".repeat(300),
        "f(".repeat(2_000),
        ".[".repeat(2_000),
    ] {
        let found = faults(&deep);
        let last = found.last().unwrap();
        assert!(last.contains("nests more than 48 levels."), "{last}");
    }
    // Chains are wide, not deep.
    for joint in ["+", "|", ",", "//", " and "] {
        taken(&vec!["1"; 1_000].join(joint));
    }
    taken(&format!(".a{}", "?".repeat(8_000)));
    taken(&format!("(1){}", "?".repeat(8_000)));
}

#[test]
fn a_fault_of_grammar_behind_many_unknown_names_is_told_as_one_of_twenty() {
    let told = faults(&format!("{}]", "unknown,".repeat(30)));
    assert_eq!(told.len(), 20);
    assert!(told[18].contains("unknown"), "{}", told[18]);
    assert!(!told[19].contains("unknown"), "{}", told[19]);
}
