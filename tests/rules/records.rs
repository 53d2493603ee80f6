//! Errors in log records: an error is an object with name, message and code, so no record writes one as text.

use crate::source::{Source, line_of, lines_with_word};
use crate::{found, hold, source};

/// What makes a record, or a logger with fields.
const MACROS: [&str; 9] = [
    "trace!(",
    "debug!(",
    "info!(",
    "warn!(",
    "error!(",
    "crit!(",
    "warn_unless!(",
    "warn_unless_away!(",
    "slog::o!(",
];

/// What errors are called.
const NAMES: [&str; 9] = [
    "cause",
    "err",
    "error",
    "exception",
    "failure",
    "fault",
    "panic",
    "problem",
    "unreadable",
];

fn errors_as_text(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        // Strings are blank in one and not in the other; characters stand where they are in both.
        let (code, bare): (Vec<char>, Vec<char>) =
            (file.code.chars().collect(), file.bare.chars().collect());
        for (at, name) in MACROS.iter().flat_map(|name| file.bare.match_indices(name)) {
            let from = file.bare[..at].chars().count() + name.chars().count();
            let fields = code[from..end_of(&bare, from)].iter().collect::<String>();
            if fields
                .split("=>")
                .zip(fields.split("=>").skip(1))
                .any(|(before, after)| is_error_as_text(before, after))
            {
                faults.push(format!("{}:{}", file.path, line_of(&file.bare, at)));
            }
        }
    }
    faults
}

/// The closing bracket of what was opened just before.
fn end_of(bare: &[char], from: usize) -> usize {
    let mut depth = 1;
    for (at, c) in bare.iter().enumerate().skip(from) {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    bare.len()
}

/// Whether a field that is called an error, or whose value names one, is not in slog's form of errors.
fn is_error_as_text(before: &str, after: &str) -> bool {
    let key = before.trim_end().strip_suffix('"');
    let key = key
        .and_then(|text| text.rsplit('"').next())
        .unwrap_or_default();
    let value = after.split([',', ';']).next().unwrap_or_default().trim();
    let names_one = |name: &str| key == name || !lines_with_word(value, name).is_empty();
    !value.starts_with('#') && NAMES.into_iter().any(names_one)
}

#[test]
fn an_error_in_a_record_is_an_object() {
    let files = [
        (
            "src/a.rs",
            "slog::warn!(log, \"an error: {}\", 1; \"error\" => %error, \"failures\" => failures);\n\
             warn!(log, \"a\"; \"why\" => error.to_string());\n\
             log.new(slog::o!(\"cause\" => text));\n\
             info!(log, \"a\";\n \"failures\" => 1, \"panic\" => text(x));",
        ),
        (
            "src/b.rs",
            "warn!(log, \"error => x\"; \"error\" => #error, ErrorValue(&error));\n\
             match text { \"error\" => Level::Error, _ => error }\n\
             warn!(log, \"a\"; \"jobId\" => id(x), \"queue\" => &queue.name, ErrorValue(&problem));",
        ),
    ];
    assert_eq!(
        found(errors_as_text, &files),
        ["src/a.rs:4", "src/a.rs:1", "src/a.rs:2", "src/a.rs:3"]
    );
    hold(
        &errors_as_text(&source::repository()),
        "These records write an error as text. Write it with log::ErrorValue(&error), or in the crate jobs as \
         \"error\" => #error: a record has its name, message and code, and where it is wanted its stack.",
    );
}
