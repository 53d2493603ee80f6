//! Texts cut to a bound, and the form of an email.

/// As much of a text as has so many bytes at most: it ends between characters.
pub fn beginning(text: &str, bytes_most: usize) -> &str {
    let mut end = text.len().min(bytes_most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
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
