//! Values where we differ from `jq` on purpose, and what errors say.

use expressions::Error;
use serde_json::{Value, json};

use crate::evaluate;

fn check(source: &str, input: Value, expected: Value) {
    let put_out = evaluate(source, &input).unwrap();
    assert_eq!(Value::from(put_out), expected, "{source}");
}

fn raised(source: &str, input: Value) -> String {
    match evaluate(source, &input) {
        Err(Error::Raised(message)) => message,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn integers_are_exact_or_an_error() {
    check(
        ".",
        json!(9_007_199_254_740_993_i64),
        json!([9_007_199_254_740_993_i64]),
    );
    check(
        ". == 9007199254740992",
        json!(9_007_199_254_740_993_i64),
        json!([false]),
    );
    check("[.] | sort", json!(u64::MAX), json!([[u64::MAX]]));
    check(
        "9007199254740991 + 1",
        json!(null),
        json!([9_007_199_254_740_992_i64]),
    );
    assert_eq!(
        raised("9007199254740992 + 1", json!(null)),
        "number (9007199254740992) and number (1) leave the integers that doubles hold exactly"
    );
    assert_eq!(
        raised("1e308 * 10", json!(null)),
        "number (1e+308) and number (10) leave the range of doubles"
    );
    check(
        "try (. + 1) catch \"caught\"",
        json!(i64::MAX),
        json!(["caught"]),
    );
    check(".5 + .5, 6 / 2, 7 / 2", json!(null), json!([1, 3, 3.5]));
}

#[test]
fn integers_and_doubles_have_one_order() {
    check(
        "[2, 1, 100000000000000002, (range(13) | 1e17), 100000000000000001, (range(15) | 1e17)] | sort | .[:3], .[-2:]",
        json!(null),
        json!([
            [1, 2, 1e17],
            [100_000_000_000_000_001_i64, 100_000_000_000_000_002_i64]
        ]),
    );
    check(
        "[100000000000000001, 1e17, 100000000000000000] | (unique | length), (group_by(.) | map(length)), (. - [1e17])",
        json!(null),
        json!([2, [2, 1], [100_000_000_000_000_001_i64]]),
    );
    check(
        "100000000000000001 == 1e17, 1e17 < 100000000000000001, 3 < 3.5, -3 < -3.5, -4 < -3.5, 1e300 > 1, -1e300 < 1, 2 == 2.0",
        json!(null),
        json!([false, true, true, false, true, true, true, true]),
    );
    check(". < 1.8446744073709552e19", json!(u64::MAX), json!([true]));
}

#[test]
fn the_order_of_keys_is_that_of_insertion() {
    let ordered = |value: Vec<Value>| Value::from(value).to_string();
    let put_out = evaluate(
        "{b: 1, a: 2}, ({b: 1, a: 2} | del(.b) + {c: 3, b: 4})",
        &json!(null),
    )
    .unwrap();
    assert_eq!(ordered(put_out), r#"[{"b":1,"a":2},{"a":2,"c":3,"b":4}]"#);
    let put_out = evaluate(
        "del(.m) | ., keys, to_entries[0].key",
        &json!({"z": 1, "m": 2, "a": 3}),
    )
    .unwrap();
    assert_eq!(ordered(put_out), r#"[{"z":1,"a":3},["a","z"],"z"]"#);
    let put_out = evaluate("{b: 1} + {a: 2} | tojson", &json!(null)).unwrap();
    assert_eq!(ordered(put_out), r#"["{\"b\":1,\"a\":2}"]"#);
}

#[test]
fn functions_of_newer_jq_are_there() {
    check(
        "pick(.a.b, .c)",
        json!({"a": {"b": 1, "x": 2}, "c": [3]}),
        json!([{"a": {"b": 1}, "c": [3]}]),
    );
    check("ltrim, rtrim, trim", json!(" x "), json!(["x ", " x", "x"]));
    check("map(abs)", json!([-1, 2, -2.5]), json!([[1, 2, 2.5]]));
    check("if . then 1 end", json!(false), json!([false]));
}

#[test]
fn only_null_and_booleans_have_no_absolute_value() {
    let others = json!(["-1", [-1], {"a": -1}]);
    check("map(abs)", others.clone(), json!([others]));
    check(
        "map(try abs catch \"none\")",
        json!([null, true]),
        json!([["none", "none"]]),
    );
}

#[test]
fn base64_ends_at_its_padding() {
    for (text, decoded) in [
        ("=", ""),
        ("====", ""),
        ("aGk", "hi"),
        ("aGk==", "hi"),
        ("aG=k", "h"),
        ("aGk=aGk=", "hi"),
        ("aGl", "hi"),
        ("aGk=!", "hi"),
    ] {
        check("@base64d", json!(text), json!([decoded]));
    }
    for text in ["a", "a=", "aGkaG", "!=", "aG k", "-_-_", "/w=="] {
        check("try @base64d catch 0", json!(text), json!([0]));
    }
}

#[test]
fn as_binds_all_operators_before_it() {
    let order = json!({"price": 10, "qty": 3, "ship": 5});
    check(".price * .qty as $sum | $sum + .ship", order, json!([35]));
    check("1 + 2 as $x | -$x", json!(null), json!([-3]));
    check("1 + 2 * 3 as $x | $x * 10", json!(null), json!([70]));
    check("-1 as $x | 2 - $x", json!(null), json!([3]));
    check("null // (1, 2) as $x | $x + 1", json!(null), json!([2, 3]));
    check("1 == 1 and true as $x | [$x]", json!(null), json!([[true]]));
    check("1, 2 + 3 as $x | $x, 4", json!(null), json!([1, 5, 4]));
    check("3 | . + 1 as $x | [., $x]", json!(null), json!([[3, 4]]));
    check("1 + (2 as $x | $x * 5)", json!(null), json!([11]));
    check(
        "[1, 2] | first as $a | .[1] * 2 as $b | $a + $b",
        json!(null),
        json!([5]),
    );
    check(
        "[try -1, try error(\"x\") catch -1]",
        json!(null),
        json!([[-1, -1]]),
    );
    check(
        "\"k\" as $x | {$x: 1, \"b\": 2,}",
        json!(null),
        json!([{"k": 1, "b": 2}]),
    );
}

#[test]
fn an_empty_match_may_follow_another_match() {
    check(
        "gsub(\"[^a-z]*(?<x>[a-z]*)\"; \"Z\\(.x)\")",
        json!("123foo456bar"),
        json!(["ZfooZbarZ"]),
    );
    check("gsub(\"a*\"; \"x\")", json!("aab"), json!(["xxbx"]));
    check(
        "[match(\"a*\"; \"g\") | [.offset, .length]]",
        json!("baab"),
        json!([[[0, 0], [1, 2], [3, 0], [4, 0]]]),
    );
    check("gsub(\"\"; \"-\")", json!("aéb"), json!(["-a-é-b-"]));
    check("gsub(\"a*\"; \"x\"; \"n\")", json!("aab"), json!(["xb"]));
}

#[test]
fn a_pattern_and_its_flags_may_be_one_array() {
    check(
        "test([\"B\", \"i\"]), test([\"B\"]), [match([\"b\", \"gi\"]).offset], capture([\"(?<x>B)\", \"i\"])",
        json!("abB"),
        json!([true, true, [1, 2], {"x": "b"}]),
    );
    assert_eq!(
        raised("test([])", json!("a")),
        "array (of 0 items) is no regular expression"
    );
    raised("gsub([\"b\", \"i\"]; \"x\")", json!("b"));
}

#[test]
fn outputs_before_an_error_stand() {
    for (source, expected) in [
        ("first(.[(0, error(\"x\"))])", json!([7])),
        ("[limit((1, error(\"x\")); 1, 2)?]", json!([[1]])),
        ("[limit(1; .[(0, error(\"x\")):])]", json!([[[7, [8]]]])),
        ("[limit(1; path(.[0, error(\"x\")]))]", json!([[[0]]])),
        ("[limit(1; path(.[0] | (., error(\"x\"))))]", json!([[[0]]])),
        (
            "[limit(1; path(getpath([0], error(\"x\"))))]",
            json!([[[0]]]),
        ),
        (
            "[limit(1; {a: 1} | . as {(\"a\", error(\"x\")): $q} | $q)]",
            json!([[1]]),
        ),
        (
            "[limit(1; \"ab\" | sub((\"a\", error(\"x\")); \"z\"))]",
            json!([["zb"]]),
        ),
        ("[(error(\"x\"))[empty]]", json!([[]])),
        ("try error(\"x\")[error(\"y\")] catch .", json!(["y"])),
        ("[path((.[0], .[1])[0, 1]?)]", json!([[[1, 0], [1, 1]]])),
    ] {
        check(source, json!([7, [8]]), expected);
    }
    assert_eq!(
        raised("[limit(2; ([1, 2], error(\"x\"))[0, 1])]", json!(null)),
        "x"
    );
}

#[test]
fn a_path_too_deep_is_an_error() {
    check("getpath([range(10000) | 0])", json!(null), json!([null]));
    for source in [
        "getpath([range(10001) | 0])",
        "path(getpath([range(10001) | 0]))",
        "setpath([range(10001) | 0]; 1)",
        "delpaths([[range(10001) | 0]])",
        "pick(getpath([range(10001) | 0]))",
    ] {
        assert_eq!(raised(source, json!(null)), "Path too deep", "{source}");
    }
    // What it would make nests too deep.
    assert_eq!(
        evaluate("pick(getpath([range(10000) | 0]))", &json!(null)),
        Err(Error::Depth)
    );
}

#[test]
fn where_versions_of_jq_differ_the_newest_counts() {
    check("try error(null) catch .", json!(1), json!([null]));
    check(
        "[limit(0; error)], [limit(0.5; 1, 2)], [limit(1.5; 1, 2, 3)]",
        json!(1),
        json!([[], [1], [1, 2]]),
    );
    assert_eq!(
        raised("limit(-1; 1)", json!(1)),
        "`limit` takes no negative count"
    );
    assert_eq!(
        raised("nth(-1; 1, 2)", json!(1)),
        "`nth` takes no negative count"
    );
    check(
        "\"x\" | indices(\"\"), index(\"\"), rindex(\"\")",
        json!(1),
        json!([[], null, null]),
    );
    check("[nth(9; range(5))]", json!(1), json!([[]]));
    check(
        "any(true, error(\"x\"); .), all(1, false, error(\"x\"); .)",
        json!(1),
        json!([true, false]),
    );
    check(
        "\"x\" * (0, 0.5, -1, 1.5)",
        json!(1),
        json!(["", "", null, "x"]),
    );
    check("\"'!\" | @uri", json!(1), json!(["%27%21"]));
    check("[sub(\"a\"; empty)]", json!("ba"), json!([["ba"]]));
    check(
        "[gsub(\"a\", \"b\"; \"1\", \"2\")]",
        json!("aba"),
        json!([["1b1", "2b2", "a1a", "a2a"]]),
    );
    check(
        "[sub(\"a\", \"b\"; \"x\"; \"\", \"g\")]",
        json!("aba"),
        json!([["xba", "xbx", "axa", "axa"]]),
    );
    raised("ltrimstr(\"a\")", json!(5));
    for text in [
        " 1", "1 ", "5.43e", "1e2 ", "+-5", "--5", ".", "+", "-", ".e1", "1.2.3", "0x10", "e5",
        "1,0", "",
    ] {
        assert!(
            raised("tonumber", json!(text)).ends_with("is no number"),
            "{text:?}"
        );
    }
    check(
        "map(tonumber)",
        json!([
            "05",
            ".89",
            "-.89",
            "+5.43",
            "5.",
            "-007.50",
            "1E2",
            "1e+2",
            "00",
            "18446744073709551615"
        ]),
        json!([[5, 0.89, -0.89, 5.43, 5, -7.5, 100.0, 100.0, 0, u64::MAX]]),
    );
}

#[test]
fn work_that_is_little_fits_the_budget() {
    check(
        "[range(60000)] as $a | [range(20000) | ($a | indices([]))] | length",
        json!(null),
        json!([20_000]),
    );
    check(
        "[range(400) | {(tostring): .}] | add | length",
        json!(null),
        json!([400]),
    );
    let prose = json!("One of the words, and more; <b>that</b> is all. ".repeat(220));
    assert!(prose.to_string().len() > 10_000);
    for source in [
        "gsub(\" \"; \"_\")",
        "gsub(\"\\\\s+\"; \"_\")",
        "gsub(\"(?<word>[a-z]+)\"; .word)",
        "[scan(\"[a-z]{2,5}\")]",
        "split(\"\\\\s*[,;]\\\\s*\"; null)",
        "gsub(\"<[^>]+>\"; \"\")",
        "[range(101) as $i | test(\"\\\\w@\\\\w\")]",
        "[match(\"[.] \"; \"g\").offset]",
        "[match(\"([a-z]+) ([a-z]+)\"; \"g\").offset]",
        "[scan(\"\\\\pL+\")]",
    ] {
        check(
            &format!("{source} | length > 100"),
            prose.clone(),
            json!([true]),
        );
    }
    let id = json!("0123abcd-0123-0123-0123-0123456789ab");
    let word = "[0-9A-Za-z_]";
    let source =
        format!("test(\"^{word}{{8}}-{word}{{4}}-{word}{{4}}-{word}{{4}}-{word}{{12}}$\")");
    check(&source, id, json!([true]));
}

#[test]
fn there_is_no_number_that_json_has_not() {
    raised("-1 | sqrt", json!(null));
    raised("1e200 * 1e200", json!(null));
    raised("\"1e999\" | tonumber", json!(null));
    raised("\"nan\" | tonumber", json!(null));
}

#[test]
fn errors_say_what_was_met() {
    assert_eq!(
        raised(".a", json!([1])),
        "Cannot index array (of 1 items) with string (\"a\")"
    );
    assert_eq!(raised(".[]", json!(5)), "Cannot iterate over number (5)");
    assert_eq!(
        raised(". + 1", json!("a")),
        "string (\"a\") and number (1) cannot be added"
    );
    assert_eq!(
        raised("error", json!({"a": 1})),
        "The expression raised {\"a\":1}"
    );
    assert_eq!(
        raised("1 / 0", json!(null)),
        "number (1) and number (0) cannot be divided because the divisor is zero"
    );
    assert_eq!(
        raised("test(\"(\")", json!("a")),
        "string (\"(\") is no regular expression: unclosed group"
    );
    assert_eq!(
        raised("test(\"a\" * 1025)", json!("a")),
        "The regular expression has 1025 bytes, and may have at most 1024"
    );
    assert_eq!(
        raised(
            "test(\"^\\\\w{8}-\\\\w{4}-\\\\w{4}-\\\\w{4}-\\\\w{12}$\")",
            json!("a")
        ),
        "The regular expression is too large: compiled, it takes more than 128 KiB. \
         Write `[0-9A-Za-z_]` for `\\w` and `[0-9]` for `\\d`, and repeat less"
    );
    assert_eq!(
        raised("test(\"a\"; \"g\" * 17)", json!("a")),
        "string (\"ggggggggggggggggg\") are no flags"
    );
    assert_eq!(
        raised("test(\"a\"; \"q\")", json!("a")),
        "'q' is no flag of a regular expression"
    );
    assert_eq!(
        raised("path(1)", json!(null)),
        "Only what reads a part, such as `.a[0]` or `.[] | select(…)`, is a path"
    );
    assert_eq!(
        raised("del(.[1:])", json!([1, 2])),
        "A slice is no path: instead of `del(.[1:])` write `.[:1]`"
    );
    let long = raised("error", json!("x".repeat(5_000)));
    assert_eq!(long.chars().count(), 1_001);
}

#[test]
fn variables_are_given_by_name() {
    check("[$n, $context.order.amount]", json!(null), json!([[7, 42]]));
    let expression = expressions::Expression::parse("[$a, $b]", &["a", "b"]).unwrap();
    let mut budget = expressions::Budget::new(100, 100);
    let b = json!(2);
    let put_out = expression.evaluate(&json!(null), &[("b", &b), ("c", &b)], &mut budget);
    assert_eq!(put_out.unwrap(), [json!([null, 2])]);
}
