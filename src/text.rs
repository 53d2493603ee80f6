//! Texts cut to a bound, bytes as text, the form of an email, and the white space of protocols.
//!
//! A protocol names its characters: HTTP's optional white space is the space and the tab, and letters differ in case in ASCII
//! alone. What Rust calls white space or lowercase is Unicode's, so another reader of the same text sees another text.
//! `tests/rules/wire.rs` refuses those functions on what came over the wire.

/// A text of HTTP without the optional white space around it (RFC 9110, section 5.6.3): spaces and tabs, and nothing else.
pub fn trim_ows(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// A media type without its parameters.
pub fn media_type_essence(media_type: &str) -> &str {
    trim_ows(media_type.split(';').next().unwrap_or_default())
}

/// As much of a text as has so many bytes at most: it ends between characters.
pub fn beginning(text: &str, bytes_most: usize) -> &str {
    let mut end = text.len().min(bytes_most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A text that others may follow: it ends with a full stop, unless it ends a sentence already.
pub fn sentence(text: &str) -> String {
    let text = text.trim_end();
    let end = text.trim_end_matches(['"', '\'', ')', '”', '’', '»']);
    match end.is_empty() || end.ends_with(['.', '!', '?', '…', ':', ';', '。', '！', '？']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// Bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One `@` between two texts, nothing that is blank or a control character, 3 to 320 characters.
pub fn is_email(text: &str) -> bool {
    let parts: Vec<&str> = text.split('@').collect();
    let has_form = parts.len() == 2 && parts.iter().all(|part| !part.is_empty());
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    has_form && text.chars().count() <= 320 && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_one_at_between_two_texts() {
        for good in ["a@b", "ada@example.com", "ädä@example.com", "a+b@c"] {
            assert!(is_email(good), "{good}");
        }
        let long = format!("{}@b", "a".repeat(319));
        for bad in [
            "", "a", "@b", "a@", "a@b@c", "a @b", "a@b\0", "a@b\n", &long,
        ] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn a_sentence_ends_with_one_full_stop() {
        for (text, expected) in [
            ("No receipt", "No receipt."),
            ("No receipt.", "No receipt."),
            ("Why?\n", "Why?"),
            ("See \"A.\"", "See \"A.\""),
            ("See (A)", "See (A)."),
            ("", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }

    #[test]
    fn a_protocol_has_two_blanks() {
        assert_eq!(trim_ows(" \t a b\t "), "a b");
        for other in [
            '\u{a0}', '\u{2028}', '\u{3000}', '\u{85}', '\u{b}', '\n', '\r',
        ] {
            let text = format!("{other}a{other}");
            assert_eq!(trim_ows(&text), text, "{other:?}");
            assert_ne!(media_type_essence(&text), "a", "{other:?}");
        }
        assert_eq!(media_type_essence("text/html ;charset=x;y"), "text/html");
        assert_eq!(media_type_essence(""), "");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        for (most, cut) in [
            (0, ""),
            (1, "a"),
            (2, "a"),
            (3, "aé"),
            (4, "aéb"),
            (9, "aéb"),
        ] {
            assert_eq!(beginning("aéb", most), cut);
        }
    }
}
