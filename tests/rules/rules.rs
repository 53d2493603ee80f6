//! The rules, each a function from files to faults, so that each can be shown to fail.

use crate::source::{Source, line_of, lines_with_word};

const FILE_MAX_LINES: usize = 620;

/// Files to which every new part adds, so that they have a limit of their own.
const GATHERING: [&str; 5] = [
    "src/config/read/mod.rs",
    "src/config/settings.rs",
    "src/http/sse/shard.rs",
    "src/server/mod.rs",
    "src/server/options.rs",
];

const GATHERING_MAX_LINES: usize = 449;

pub(crate) fn long_files(files: &[Source]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.is_product())
        .filter_map(|file| {
            let lines = file.text.lines().count();
            let limit = if GATHERING.contains(&file.path.as_str()) {
                GATHERING_MAX_LINES
            } else {
                FILE_MAX_LINES
            };
            (lines > limit).then(|| format!("{}: {lines} lines, at most {limit}", file.path))
        })
        .collect()
}

/// Paths of [`GATHERING`] that no file has: the limit would hold nothing there.
pub(crate) fn missing_gathering_files(files: &[Source]) -> Vec<String> {
    GATHERING
        .iter()
        .filter(|path| files.iter().all(|file| file.path != **path))
        .map(ToString::to_string)
        .collect()
}

pub(crate) fn files_without_opening(files: &[Source]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.is_product() && !file.text.trim_start().starts_with("//!"))
        .map(|file| file.path.clone())
        .collect()
}

/// SQL in a string of the service: a statement's first words right after the opening quote.
pub(crate) fn sql_in_source(files: &[Source]) -> Vec<String> {
    let starts = [
        "select ",
        "insert into ",
        "delete from ",
        "create table ",
        "create index ",
        "create database ",
        "alter table ",
        "drop table ",
        "drop database ",
    ];
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with("src/")) {
        for (at, _) in file.code.match_indices('"') {
            let inside: String = file.code[at + 1..]
                .trim_start()
                .chars()
                .take(80)
                .collect::<String>()
                .to_lowercase()
                .replace(['\n', '\t'], " ");
            let update = inside
                .strip_prefix("update ")
                .and_then(|rest| rest.split_once(' '))
                .is_some_and(|(_, rest)| rest.trim_start().starts_with("set "));
            if update || starts.iter().any(|start| inside.starts_with(start)) {
                faults.push(format!("{}:{}", file.path, line_of(&file.code, at)));
            }
        }
    }
    faults
}

/// Comparisons with what calls of a tool go to. A new target would be on one side of each without anybody having decided it; a
/// match that names each target does not compile until somebody has.
pub(crate) fn compared_targets(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        for (at, line) in (1..).zip(file.code.lines()) {
            let compares = |name: &str| {
                let pieces = ["==", "!="].map(|sign| format!("{sign} {name}::"));
                pieces.iter().any(|piece| line.contains(piece))
                    || line.contains(&format!("matches!({name}"))
            };
            if compares("TargetKind") || compares("Target") {
                faults.push(format!("{}:{at}", file.path));
            }
        }
    }
    faults
}

pub(crate) fn marks_of_unfinished_work(files: &[Source]) -> Vec<String> {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("X", "XX"),
    ];
    files
        .iter()
        .flat_map(|file| {
            marks.iter().flat_map(move |mark| {
                lines_with_word(&file.text, mark)
                    .into_iter()
                    .map(move |line| format!("{}:{line}: {mark}", file.path))
            })
        })
        .collect()
}

/// Files that a merge or an editor leaves beside the one it changed.
pub(crate) fn left_over_files(files: &[Source]) -> Vec<String> {
    let is_left_over = |path: &str| {
        [".orig", ".rej", ".bak", ".swp", "~"]
            .iter()
            .any(|ending| path.ends_with(ending))
    };
    files
        .iter()
        .filter(|file| is_left_over(&file.path))
        .map(|file| file.path.clone())
        .collect()
}

pub(crate) fn ignored_tests(files: &[Source]) -> Vec<String> {
    let mark = concat!("#[", "ignore");
    files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
        .flat_map(|file| {
            file.text
                .match_indices(mark)
                .map(|(at, _)| format!("{}:{}", file.path, line_of(&file.text, at)))
        })
        .collect()
}

/// Words that belong to one place: the word, the paths that may say it, why.
const PLACED: [(&str, &[&str], &str); 10] = [
    (
        "Authorized::mint",
        &["src/authz"],
        "only authz mints proofs, after the check",
    ),
    (
        "Listing::mint",
        &["src/authz"],
        "only authz mints proofs, after the check",
    ),
    ("async", &["src/http/door"], "only the door is asynchronous"),
    ("await", &["src/http/door"], "only the door is asynchronous"),
    (
        "tokio::",
        &["src/http/door"],
        "only the door is asynchronous",
    ),
    (
        "TcpStream",
        &["src/outbound", "src/http/door", "src/dev", "src/cli"],
        "src/outbound is the only way out of the process",
    ),
    (
        "ureq",
        &["src/outbound", "src/dev", "src/cli"],
        "src/outbound is the only way out of the process",
    ),
    ("rouille", &["src/http"], "rouille's types stay in src/http"),
    (
        "get_multipart_input",
        &[],
        "rouille's multipart reader is unmaintained (deny.toml)",
    ),
    (
        "multipart",
        &[],
        "rouille's multipart reader is unmaintained (deny.toml)",
    ),
];

/// Where a proof of access may be made.
const PROOFS: [&str; 3] = ["src/proof.rs", "src/authz", "src/store/runs/lease.rs"];

/// Implementations of `May` where no check stands behind them.
pub(crate) fn proofs_made_elsewhere(files: &[Source]) -> Vec<String> {
    files
        .iter()
        .filter(|file| file.is_product())
        .filter(|file| !PROOFS.iter().any(|place| file.path.starts_with(place)))
        .flat_map(|file| {
            file.bare.lines().enumerate().filter_map(|(index, line)| {
                let made = line.contains("May<") && line.contains("> for ");
                made.then(|| format!("{}:{}", file.path, index + 1))
            })
        })
        .collect()
}

/// Transactions that a request could commit before its decisions are on disk.
pub(crate) fn commits_past_the_record(files: &[Source]) -> Vec<String> {
    let in_a_request = |file: &&Source| {
        file.is_product()
            && ["src/api", "src/http"]
                .iter()
                .any(|place| file.path.starts_with(place))
            && file.path != "src/http/context.rs"
    };
    let mut faults = Vec::new();
    for file in files.iter().filter(in_a_request) {
        for (at, _) in file.bare.match_indices("transact(") {
            let before = file.bare[..at].trim_end();
            let by = before.strip_suffix('.').map(str::trim_end);
            if !by.is_some_and(|by| by.ends_with("cx")) {
                faults.push(format!("{}:{}", file.path, line_of(&file.bare, at)));
            }
        }
    }
    faults
}

pub(crate) fn misplaced_words(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        for (word, places, why) in PLACED {
            if places.iter().any(|place| file.path.starts_with(place)) {
                continue;
            }
            for line in lines_with_word(&file.bare, word) {
                faults.push(format!("{}:{line}: {word} ({why})", file.path));
            }
        }
    }
    faults
}

fn query_files(files: &[Source]) -> impl Iterator<Item = (&Source, &str)> {
    files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("sql/queries/")?;
        name.ends_with(".sql").then_some((file, name))
    })
}

/// Queries that are not included by exactly one file of `src/store`.
pub(crate) fn stray_queries(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, name) in query_files(files) {
        // The name alone, or the first of what a macro takes.
        let included = format!("sql!(\"{}\"", name.trim_end_matches(".sql"));
        let users: Vec<&str> = files
            .iter()
            .filter(|user| user.path.starts_with("src/"))
            .filter(|user| user.code.contains(&included))
            .map(|user| user.path.as_str())
            .collect();
        let in_store = users.iter().all(|user| user.starts_with("src/store"));
        if users.len() != 1 || !in_store {
            faults.push(format!("{}: included by {users:?}", file.path));
        }
    }
    faults
}

pub(crate) fn queries_of_several_statements(files: &[Source]) -> Vec<String> {
    query_files(files)
        .filter(|(file, _)| statements(&file.text) != 1)
        .map(|(file, _)| format!("{}: {} statements", file.path, statements(&file.text)))
        .collect()
}

/// How many statements an SQL text holds; semicolons in comments and quotes do not count.
fn statements(sql: &str) -> usize {
    let mut bare = String::new();
    let mut rest = sql;
    while let Some(c) = rest.chars().next() {
        let skip = match c {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '\'' | '"' => rest[1..].find(c).map_or(rest.len(), |at| at + 2),
            _ => 0,
        };
        if skip == 0 {
            bare.push(c);
        } else {
            bare.push(if rest.starts_with(['\'', '"']) {
                'q'
            } else {
                ' '
            });
        }
        rest = &rest[skip.max(c.len_utf8())..];
    }
    bare.split(';')
        .filter(|part| !part.trim().is_empty())
        .count()
}

/// Lines of documentation and scripts that put a token or a secret's value into a process's arguments.
pub(crate) fn secrets_in_arguments(files: &[Source]) -> Vec<String> {
    let is_shown = |file: &&Source| {
        ["", "md", "sh", "py"].contains(
            &file
                .path
                .rsplit('/')
                .next()
                .map_or("", |name| name.rsplit_once('.').map_or("", |(_, end)| end)),
        )
    };
    let mut faults = Vec::new();
    for file in files.iter().filter(is_shown) {
        for (index, line) in file.text.lines().enumerate() {
            let line = line.replace('\\', "");
            let body = ["-d ", "--data ", "--data-raw ", "--json "]
                .iter()
                .filter_map(|option| line.split_once(option))
                .any(|(_, body)| body.contains("\"value\""));
            let header = line.contains("-H \"") && line.contains("Bearer $");
            if body || header {
                faults.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    faults
}

/// Modules that have a file beside their directory instead of `mod.rs` in it.
pub(crate) fn modules_beside_their_directory(files: &[Source]) -> Vec<String> {
    let is_inside = |directory: &str| files.iter().any(|file| file.path.starts_with(directory));
    files
        .iter()
        .filter_map(|file| {
            let directory = format!("{}/", file.path.strip_suffix(".rs")?);
            is_inside(&directory).then(|| format!("{}: move it to {directory}mod.rs", file.path))
        })
        .collect()
}

/// What a section `# Errors` says that says only that the database may be away.
const DATABASE_ALONE: [&str; 7] = [
    "`database-unavailable`.",
    "The database cannot be reached.",
    "The database cannot be read.",
    "The database is away.",
    "The database's error.",
    "The database's.",
    "What Postgres says.",
];

/// Sections `# Errors` that say no more than every function that takes a session or a transaction would have to say.
pub(crate) fn errors_of_the_database_alone(files: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        let lines: Vec<Option<&str>> = file.text.lines().map(documentation).collect();
        for (index, _) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| **line == Some("# Errors"))
        {
            let section: Vec<&str> = lines[index + 1..]
                .iter()
                .map_while(|line| line.filter(|text| !text.is_empty()))
                .collect();
            if DATABASE_ALONE.contains(&section.join(" ").as_str()) {
                faults.push(format!("{}:{}", file.path, index + 1));
            }
        }
    }
    faults
}

/// What a line of documentation says.
fn documentation(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let said = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))?;
    Some(said.trim())
}
