//! The rule about how rows are read.

use crate::source::{Source, line_of};

/// Columns that are read by number: `row.get(0)`, `row.try_get(first + 1)`, `row.get::<_, i64>(0)`.
pub(crate) fn columns_by_number(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| is_read_by_name(file)) {
        for call in [".get", ".try_get"] {
            for (at, _) in file.bare.match_indices(call) {
                if is_number(argument(&file.bare[at + call.len()..])) {
                    faults.push(format!("{}:{}", file.path, line_of(&file.bare, at)));
                }
            }
        }
    }
    faults
}

fn is_read_by_name(file: &Source) -> bool {
    let reads_rows = ["src/store/", "jobs/src/"];
    reads_rows.iter().any(|place| file.path.starts_with(place)) && file.path.ends_with(".rs")
}

/// The argument of the call that begins here, behind its type parameters; empty where there is no call.
fn argument(call: &str) -> &str {
    let rest = match call.strip_prefix("::<") {
        Some(types) => types.split_once(">(").map_or("", |(_, rest)| rest),
        None => call.strip_prefix('(').unwrap_or_default(),
    };
    rest.split(')').next().unwrap_or_default().trim()
}

/// A number, or a sum that has one in it.
fn is_number(argument: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    argument.split('+').any(|part| is_digits(part.trim()))
}
