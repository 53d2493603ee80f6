//! Files of the repository that are generated from tables in the code: the tests of those tables compare them.
//!
//! Each comparison fails if the file differs, and says which command writes it. With `UPDATE_GENERATED=1` it writes
//! the file instead. This module exists in tests alone.

use super::Vars;
use std::path::Path;

/// Compares a whole file with `text`. `filter` names the test that compares it.
pub(crate) fn file(path: &str, text: &str, filter: &str) {
    compare(path, filter, |_| text.to_owned());
}

/// Compares the part of a file between the comments `<!-- NAME: generated -->` and `<!-- NAME: end -->`.
pub(crate) fn part(path: &str, name: &str, text: &str, filter: &str) {
    let (begin, end) = (
        format!("<!-- {name}: generated -->\n"),
        format!("<!-- {name}: end -->"),
    );
    compare(path, filter, |stored| {
        let (before, rest) = stored.split_once(&begin).expect(&begin);
        let (_, after) = rest.split_once(&end).expect(&end);
        format!("{before}{begin}{text}{end}{after}")
    });
}

fn compare(path: &str, filter: &str, wanted: impl FnOnce(&str) -> String) {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let stored = std::fs::read_to_string(&full).unwrap_or_default();
    let wanted = wanted(&stored);
    if Vars::from_environment().text("UPDATE_GENERATED") == Some("1") {
        std::fs::write(&full, wanted).unwrap();
        return;
    }
    assert!(
        stored == wanted,
        "{path} is not what the code says; run: UPDATE_GENERATED=1 cargo test --lib {filter}"
    );
}
