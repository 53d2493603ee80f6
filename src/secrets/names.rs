//! The names that secrets may have.

/// Whether a text can name a secret. The prefix `SVC_` is reserved (section 1.3).
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let own = text
        .get(..4)
        .is_some_and(|start| start.eq_ignore_ascii_case("SVC_"));
    (1..=128).contains(&text.len())
        && text.bytes().all(plain)
        && !text.as_bytes()[0].is_ascii_digit()
        && !own
}
