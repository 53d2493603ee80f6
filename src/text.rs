//! Texts cut to a bound.

/// As much of a text as has so many bytes at most: it ends between characters.
pub fn beginning(text: &str, bytes_most: usize) -> &str {
    let mut end = text.len().min(bytes_most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

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
