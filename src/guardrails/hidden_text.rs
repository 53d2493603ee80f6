//! Characters that a reader does not see and a model reads: tags, overrides of the direction of writing, runs of characters
//! without width.
//!
//! One character without width is part of many scripts and of emoji, and is none. Tags are part of the flags of regions.

use super::finding::Finding;

/// Characters without width in a row, from which on they are a text.
const RUN: usize = 3;

pub(super) fn find(text: &str, found: &mut Vec<Finding>) {
    let mut characters = text.char_indices().peekable();
    let mut before = None;
    while let Some((start, c)) = characters.next() {
        let Some(kind) = kind_of(c) else {
            before = Some(c);
            continue;
        };
        let (mut end, mut count, mut last) = (start + c.len_utf8(), 1, c);
        while let Some((at, next)) = characters.next_if(|(_, next)| kind_of(*next) == Some(kind)) {
            (end, count, last) = (at + next.len_utf8(), count + 1, next);
        }
        let is_flag =
            kind == "tags" && before == Some('\u{1F3F4}') && last == '\u{E007F}' && count <= 7;
        let is_script = kind == "zero width" && count < RUN;
        if !is_flag && !is_script {
            found.push(Finding {
                range: start..end,
                kind,
            });
        }
        before = Some(last);
    }
}

fn kind_of(c: char) -> Option<&'static str> {
    match c {
        '\u{E0000}'..='\u{E007F}' => Some("tags"),
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Some("direction override"),
        '\u{200B}'..='\u{200F}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}' | '\u{180E}' => {
            Some("zero width")
        }
        _ => None,
    }
}
