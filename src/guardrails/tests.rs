//! What the built-in checks find, what they leave, and that they end.

use super::finding::redacted;
use super::*;
use proptest::prelude::*;

fn kinds(check: &Check, text: &str) -> Vec<(String, &'static str)> {
    let found = check.find(text);
    let said = |one: &Finding| (text[one.range.clone()].to_owned(), one.kind);
    found.iter().map(said).collect()
}

#[track_caller]
fn finds(check: &Check, cases: &[(&str, &str, &'static str)]) {
    for (text, found, kind) in cases {
        assert_eq!(kinds(check, text), [((*found).to_owned(), *kind)], "{text}");
    }
}

#[track_caller]
fn leaves(check: &Check, texts: &[&str]) {
    for text in texts {
        assert_eq!(kinds(check, text), [], "{text}");
        assert_eq!(redacted(text, &check.find(text)), *text);
    }
}

fn pii(kind: Personal) -> Check {
    Check::Pii(vec![kind])
}

#[test]
fn cards_have_an_issuer_and_a_check_digit() {
    let card = pii(Personal::Card);
    finds(
        &card,
        &[
            ("4111 1111 1111 1111.", "4111 1111 1111 1111", "card"),
            ("pay 4111111111111111 now", "4111111111111111", "card"),
            ("5500-0000-0000-0004", "5500-0000-0000-0004", "card"),
            ("3400 000000 00009", "3400 000000 00009", "card"),
            ("(2223 0031 2200 3222)", "2223 0031 2200 3222", "card"),
            ("{\"n\":\"6011000990139424\"}", "6011000990139424", "card"),
        ],
    );
    leaves(
        &card,
        &[
            "4111 1111 1111 1112",
            "order 1234567890123456",
            "1759312345678901",
            "a4111111111111111",
            "41111111111111111111111",
            "2026-11-28 19:50:31 0000",
            "0000 0000 0000 0000",
            "",
        ],
    );
}

#[test]
fn accounts_have_the_length_of_their_country_and_a_check() {
    let iban = pii(Personal::Iban);
    finds(
        &iban,
        &[
            (
                "DE89 3704 0044 0532 0130 00",
                "DE89 3704 0044 0532 0130 00",
                "iban",
            ),
            (
                "to GB82WEST12345698765432.",
                "GB82WEST12345698765432",
                "iban",
            ),
            ("NO93 8601 1117 947 IS PAID", "NO93 8601 1117 947", "iban"),
            (
                "FR1420041010050500013M02606",
                "FR1420041010050500013M02606",
                "iban",
            ),
        ],
    );
    leaves(
        &iban,
        &[
            "DE89 3704 0044 0532 0130 01",
            "DE89 3704 0044",
            "XX89370400440532013000",
            "ORDER AB12 3456 7890 1234 5678",
        ],
    );
}

#[test]
fn telephone_numbers_are_none_of_the_other_numbers() {
    let phone = pii(Personal::Phone);
    finds(
        &phone,
        &[
            ("+49 30 1234567", "+49 30 1234567", "phone"),
            ("call +1 (555) 010-9999!", "+1 (555) 010-9999", "phone"),
            ("555-234-5678", "555-234-5678", "phone"),
            ("(030) 1234-567", "(030) 1234-567", "phone"),
            ("030 / 1234567", "030 / 1234567", "phone"),
        ],
    );
    leaves(
        &phone,
        &[
            "order 20261128-1234567",
            "#0301234567",
            "2026-11-28",
            "19:50:31",
            "version 10.12.3456",
            "192.168.100.200",
            "0.123456789",
            "123456789012",
            "id 7f3e9c9e-0123-4567-8901-234567890123",
            "1,234,567.89",
        ],
    );
}

#[test]
fn addresses_of_email_and_of_computers() {
    finds(
        &pii(Personal::Email),
        &[
            ("<ada@example.com>", "ada@example.com", "email"),
            (
                "Ada.L+x@mail.example.co.uk,",
                "Ada.L+x@mail.example.co.uk",
                "email",
            ),
            (
                "schreib an jürgen@bücher.example bitte",
                "jürgen@bücher.example",
                "email",
            ),
        ],
    );
    leaves(
        &pii(Personal::Email),
        &["@ada", "ada@", "a @ b.com", "ada@localhost", "git@"],
    );
    finds(
        &pii(Personal::Ip),
        &[
            ("from 10.0.0.5:80", "10.0.0.5", "ip"),
            ("2001:db8::ff00:42:8329", "2001:db8::ff00:42:8329", "ip"),
        ],
    );
    leaves(
        &pii(Personal::Ip),
        &[
            "1.2.3",
            "1.2.3.4.5",
            "300.1.1.1",
            "v1.2.3.4",
            "19:50:31",
            "std::net",
            "::",
            "a::b",
        ],
    );
}

#[test]
fn credentials_are_known_by_their_forms() {
    finds(
        &Check::Secrets,
        &[
            ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "cloud key"),
            (
                "token svc_bt_0123456789abcdef.",
                "svc_bt_0123456789abcdef",
                "token",
            ),
            ("whsec_MfKQ9r8GKYqr", "whsec_MfKQ9r8GKYqr", "signing secret"),
            (
                "postgres://ada:pass@db/x",
                "postgres://ada:pass@",
                "password in a URL",
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
                "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
                "private key",
            ),
            // Cut in the middle.
            (
                "-----BEGIN PRIVATE KEY-----\nMIIE",
                "-----BEGIN PRIVATE KEY-----\nMIIE",
                "private key",
            ),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                "signed token",
            ),
        ],
    );
    leaves(
        &Check::Secrets,
        &[
            "the prefix svc_bt_ alone",
            "https://example.com:8080/path",
            "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----",
            "sk-short",
            "disk-0123456789",
        ],
    );
}

#[test]
fn links_go_to_listed_hosts_alone() {
    let hosts = ["example.com".to_owned(), "*.example.org".to_owned()];
    let links = Check::Links(Links::new(&hosts).unwrap());
    finds(
        &links,
        &[
            (
                "![x](https://evil.example/?d=1)",
                "https://evil.example/?d=1",
                "link",
            ),
            ("<img src=\"//evil.example/a\">", "//evil.example/a", "link"),
            (
                "http://example.com.evil.example",
                "http://example.com.evil.example",
                "link",
            ),
            (
                "https://example.com@evil.example/",
                "https://example.com@evil.example/",
                "link",
            ),
            (
                "https:\\\\evil.example\\a",
                "https:\\\\evil.example\\a",
                "link",
            ),
            ("HTTPS://EVIL.EXAMPLE", "HTTPS://EVIL.EXAMPLE", "link"),
            ("https://example.org", "https://example.org", "link"),
        ],
    );
    leaves(
        &links,
        &[
            "https://example.com/a",
            "[a](https://www.example.org/b)",
            "HTTPS://EXAMPLE.com",
            "5 // 2 and a//b",
        ],
    );
    assert!(Links::new(&["not a host".to_owned()]).is_none());
    let none = Check::Links(Links::default());
    assert_eq!(none.find("https://example.com").len(), 1);
}

#[test]
fn text_that_a_reader_does_not_see() {
    let check = Check::HiddenText;
    finds(
        &check,
        &[
            ("a\u{E0041}\u{E0042}b", "\u{E0041}\u{E0042}", "tags"),
            ("a\u{202E}b", "\u{202E}", "direction override"),
            (
                "a\u{200B}\u{200C}\u{200B}b",
                "\u{200B}\u{200C}\u{200B}",
                "zero width",
            ),
        ],
    );
    leaves(
        &check,
        &[
            "👩\u{200D}👩\u{200D}👧",
            "می\u{200C}خواهم",
            // The flag of Scotland.
            "\u{1F3F4}\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            "\u{FEFF}text",
        ],
    );
}

#[test]
fn patterns_of_an_author_are_bounded() {
    let patterns = |texts: &[&str], must_match| {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Patterns::new(&texts, must_match)
    };
    let check = Check::Pattern(patterns(&["(?i)secret [a-z]+", "x{3}"], false).unwrap());
    assert_eq!(
        kinds(&check, "a Secret plan, xxx"),
        [
            ("Secret plan".to_owned(), "pattern"),
            ("xxx".to_owned(), "pattern")
        ]
    );
    leaves(&check, &["nothing"]);
    let check = Check::Pattern(patterns(&["^[0-9]+$"], true).unwrap());
    leaves(&check, &["123"]);
    assert_eq!(kinds(&check, "12a"), [("12a".to_owned(), "text")]);
    for bad in [
        "(",
        "(?=a)",
        r"(a)\1",
        "",
        &"a".repeat(1001),
        "((a{1000}){1000}){1000}",
    ] {
        let fault = patterns(&["a", bad], false).unwrap_err();
        assert_eq!(fault.index, Some(1), "{bad:.40}");
        assert!(!fault.expected.is_empty());
    }
    assert_eq!(patterns(&[], false).unwrap_err().index, None);
    assert_eq!(patterns(&["a"; 51], false).unwrap_err().index, None);
    // An empty match is nothing to redact.
    let check = Check::Pattern(patterns(&["b*"], false).unwrap());
    assert_eq!(redacted("abba", &check.find("abba")), "a[pattern]a");
}

fn all() -> Vec<Check> {
    vec![
        Check::Pii(Personal::ALL.to_vec()),
        Check::Secrets,
        Check::Links(Links::default()),
        Check::HiddenText,
    ]
}

#[test]
fn a_mebibyte_of_hostile_text_is_read_once() {
    const MIB: usize = 1 << 20;
    for piece in [
        "4",
        "4 ",
        "+1",
        "a@a.",
        "a.",
        ":",
        "1.",
        "DE89",
        "-----BEGIN PRIVATE KEY-----",
        "https://",
        "//",
        "eyJ.",
        "\u{E0041}",
        "\u{200B}",
        "ü",
        "bearer ",
        "x://a:",
        "(0",
        "0/",
    ] {
        let text = piece.repeat(MIB / piece.len());
        for check in all() {
            let found = check.find(&text);
            let ends = found
                .windows(2)
                .all(|two| two[0].range.end <= two[1].range.start);
            assert!(ends, "{piece}");
        }
    }
}

proptest! {
    #[test]
    fn what_is_found_stands_in_the_text_in_order(text in "\\PC{0,200}") {
        for check in all() {
            let found = check.find(&text);
            for one in &found {
                prop_assert!(!one.range.is_empty() && text.get(one.range.clone()).is_some());
            }
            prop_assert!(found.windows(2).all(|two| two[0].range.end <= two[1].range.start));
            if found.is_empty() {
                prop_assert_eq!(redacted(&text, &found), text.clone());
            }
        }
    }
}
