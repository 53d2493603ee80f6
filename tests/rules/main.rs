//! Rules about the text of the repository, which the compiler and clippy cannot check. Each rule is
//! tried on the repository, and on a small example that breaks it.

#![allow(
    clippy::unwrap_used,
    reason = "this is a test throughout, its helpers included"
)]

mod browser_files;
mod bundle;
mod circles;
mod imports;
mod invariants;
mod layers;
mod packages;
mod pages;
mod records;
mod rules;
mod settings;
mod sign_ins;
mod sleeps;
mod source;
mod sql;
mod wire;

use source::Source;

/// Fails with what is wrong, where, and what to do.
fn hold(faults: &[String], advice: &str) {
    assert!(
        faults.is_empty(),
        "\n\n{advice}\n\n  {}\n",
        faults.join("\n  ")
    );
}

/// The faults that a rule finds in these files.
fn found(rule: fn(&[Source]) -> Vec<String>, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<Source> = files.iter().map(|(p, t)| Source::new(p, t)).collect();
    rule(&files)
}

#[test]
fn a_file_fits_a_head() {
    let (long, half) = ("\n".repeat(621), "\n".repeat(450));
    let files = [
        ("src/a.rs", long.as_str()),
        ("tests/b.rs", long.as_str()),
        ("src/c.rs", half.as_str()),
        ("src/server/mod.rs", half.as_str()),
    ];
    assert_eq!(
        found(rules::long_files, &files),
        [
            "src/a.rs: 621 lines, at most 620",
            "src/server/mod.rs: 450 lines, at most 449",
        ]
    );
    let repository = source::repository();
    hold(
        &rules::missing_gathering_files(&repository),
        "GATHERING of tests/rules/rules.rs names these files, but there are none. Write their new paths there.",
    );
    hold(
        &rules::long_files(&repository),
        "These files are longer than their limit. Look for the second thing that the file is about and \
         give it a file of its own; do not cut at a line number.",
    );
}

#[test]
fn a_module_opens_with_what_it_is() {
    let files = [
        ("src/a.rs", "use x;\n//! late"),
        ("jobs/src/b.rs", "\n//! Fine."),
    ];
    assert_eq!(found(rules::files_without_opening, &files), ["src/a.rs"]);
    hold(
        &rules::files_without_opening(&source::repository()),
        "These files do not open with `//!`. Say in a few lines what the module is, what it \
         guarantees and what is deliberately not in it.",
    );
}

#[test]
fn a_module_with_a_directory_is_its_mod_file() {
    let files = [
        ("src/a.rs", ""),
        ("src/a/b.rs", ""),
        ("src/c/mod.rs", ""),
        ("src/c/d.rs", ""),
    ];
    assert_eq!(
        found(rules::modules_beside_their_directory, &files),
        ["src/a.rs: move it to src/a/mod.rs"]
    );
    hold(
        &rules::modules_beside_their_directory(&source::repository()),
        "These modules have a file beside their directory. There is one style: `name/mod.rs`.",
    );
}

#[test]
fn sql_lives_in_sql_files() {
    let files = [
        ("src/store/a.rs", "q(\"SELECT 1\");\nq(\"Nothing.\");"),
        (
            "src/b.rs",
            "q(r#\"\n  update runs\n  set x = 1\"#); // \"select \"",
        ),
        ("tests/it/c.rs", "q(\"select 1\")"),
    ];
    assert_eq!(
        found(rules::sql_in_source, &files),
        ["src/store/a.rs:1", "src/b.rs:1"]
    );
    hold(
        &rules::sql_in_source(&source::repository()),
        "These strings hold SQL. Put the statement into sql/queries/NOUN/VERB.sql and include it in \
         src/store/NOUN.rs, so that the test that prepares every query sees it.",
    );
}

#[test]
fn nothing_is_left_for_later() {
    let text = concat!("a // TO", "DO later\nTODOS and XXXL are words\n");
    assert_eq!(
        found(rules::marks_of_unfinished_work, &[("src/a.rs", text)]).len(),
        1
    );
    hold(
        &rules::marks_of_unfinished_work(&source::repository()),
        "These lines put work off. Do it now, or open an issue and take the mark out.",
    );
}

#[test]
fn what_calls_of_a_tool_go_to_is_matched_and_not_compared() {
    let text =
        "if tool.target.kind() != TargetKind::Http {}\nmatch target {}\na == Target::tenant(b)";
    let files = [("src/a.rs", text)];
    assert_eq!(
        found(rules::compared_targets, &files),
        ["src/a.rs:1", "src/a.rs:3"]
    );
    hold(
        &rules::compared_targets(&source::repository()),
        "These lines compare the target of a tool. Match it, and name each target.",
    );
}

#[test]
fn no_file_is_left_over() {
    let files = [("src/a.rs.orig", ""), ("src/a.rs", ""), ("docs/b.md~", "")];
    assert_eq!(
        found(rules::left_over_files, &files),
        ["src/a.rs.orig", "docs/b.md~"]
    );
    hold(
        &rules::left_over_files(&source::repository()),
        "A merge or an editor left these files behind. Remove them.",
    );
}

#[test]
fn every_test_runs() {
    let text = concat!("#[test]\n#[", "ignore = \"slow\"]\nfn a() {}");
    assert_eq!(
        found(rules::ignored_tests, &[("tests/it/a.rs", text)]),
        ["tests/it/a.rs:2"]
    );
    hold(
        &rules::ignored_tests(&source::repository()),
        "These tests are switched off. A test that is too slow belongs into `make soak` or \
         `make bench`; one that fails is to be mended; one that needs a part gets it from tests/setup.",
    );
}

#[test]
fn effects_stay_in_their_place() {
    let files = [
        ("src/http/door/mod.rs", "async fn f() { tokio::x().await }"),
        (
            "src/api/a.rs",
            "// async\nlet asynchronous = \"await\";\nasync fn f() {}",
        ),
        (
            "jobs/src/a.rs",
            "use tokio::sync;\nuse my_tokio::x; use tokio_postgres::Row;",
        ),
        ("src/model/a.rs", "use std::net::TcpStream;\nureq::get(x);"),
        ("src/outbound/a.rs", "use std::net::TcpStream; use ureq::A;"),
        ("src/http/a.rs", "use rouille::input::multipart;"),
        ("src/store/a.rs", "rouille::Response::text(x);"),
    ];
    let faults = found(rules::misplaced_words, &files);
    let places: Vec<&str> = faults
        .iter()
        .map(|fault| fault.split(" (").next().unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "src/api/a.rs:3: async",
            "jobs/src/a.rs:1: tokio::",
            "src/model/a.rs:1: TcpStream",
            "src/model/a.rs:2: ureq",
            "src/http/a.rs:1: multipart",
            "src/store/a.rs:1: rouille",
        ]
    );
    hold(
        &rules::misplaced_words(&source::repository()),
        "These words stand where they must not (ARCHITECTURE.md, Invariants and The door).",
    );
}

#[test]
fn proofs_are_made_where_the_check_is() {
    let files = [
        ("src/authz/mod.rs", "impl May<Read, Run> for RunReader {"),
        ("src/store/a.rs", "fn f(may: &impl May<Read, Run>) {}"),
        ("src/api/a.rs", "impl<A> May<A, Run> for Anybody {"),
    ];
    assert_eq!(
        found(rules::proofs_made_elsewhere, &files),
        ["src/api/a.rs:1"]
    );
    hold(
        &rules::proofs_made_elsewhere(&source::repository()),
        "A proof of access is made by authz after its check, or by claiming a run. Ask authz for one.",
    );
}

#[test]
fn a_request_commits_behind_its_record() {
    let files = [
        (
            "src/api/a.rs",
            "cx.transact(|tx| f(tx)); cx\n    .transact(g)",
        ),
        ("src/api/b.rs", "fn f() {\n    cx.store().transact(g)\n}"),
        ("src/http/a.rs", "session.transact(g)"),
        ("src/http/context.rs", "self.shared.store.transact(work)"),
        ("src/runtime/a.rs", "store.transact(g)"),
    ];
    assert_eq!(
        found(rules::commits_past_the_record, &files),
        ["src/api/b.rs:2", "src/http/a.rs:1"]
    );
    hold(
        &rules::commits_past_the_record(&source::repository()),
        "A handler changes nothing before its decisions are on disk (ARCHITECTURE.md, `audit-before-commit`): \
         use cx.transact.",
    );
}

#[test]
fn a_query_has_one_home_and_one_statement() {
    let files = [
        (
            "sql/queries/runs/read.sql",
            "-- a; b\nSELECT ';', \"c;\" FROM runs;\n",
        ),
        ("sql/queries/runs/stray.sql", "SELECT 1; SELECT 2"),
        ("src/store/runs.rs", "sql!(\"runs/read\")"),
        (
            "src/store/a.rs",
            "// sql!(\"runs/stray\")\nsql!(\"subruns/read\")",
        ),
    ];
    assert_eq!(
        found(rules::stray_queries, &files),
        ["sql/queries/runs/stray.sql: included by []"]
    );
    assert_eq!(
        found(rules::queries_of_several_statements, &files),
        ["sql/queries/runs/stray.sql: 2 statements"]
    );
    let repository = source::repository();
    hold(
        &rules::stray_queries(&repository),
        "Each file in sql/queries is included by exactly one file of src/store. One that nobody uses \
         goes; one that two use belongs to the noun whose rows it touches, behind one function.",
    );
    hold(
        &rules::queries_of_several_statements(&repository),
        "Each file in sql/queries holds one statement, so that it can be prepared.",
    );
}

#[test]
fn no_secret_is_an_argument() {
    let text = "curl -H \"Authorization: Bearer $TOKEN\" x\n\
        curl x -d \"{\\\"value\\\": \\\"$SECRET\\\"}\"\n\
        curl x --data '{\"value\": 1}'\n\
        printf '{\"value\": \"%s\"}' > file; curl -H @authorization --data @file\n";
    let files = [
        ("docs/a.md", text),
        ("tests/show/a", text),
        ("src/a.rs", text),
    ];
    let lines = |path| [1, 2, 3].map(|line| format!("{path}:{line}"));
    assert_eq!(
        found(rules::secrets_in_arguments, &files),
        [lines("docs/a.md"), lines("tests/show/a")].concat()
    );
    hold(
        &rules::secrets_in_arguments(&source::repository()),
        "These lines put a token or a secret's value into the arguments of a process, which every \
         user of the host can read. Put it into a file (umask 077): `-H @file`, `--data @file`.",
    );
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_found() {
    let files = [
        (
            "docs/README.md",
            "[a](a.md) [b](../src/b.rs#x)\n[c](https://c.test/d)",
        ),
        (
            "docs/a.md",
            "[up](../README.md), [in](#here)\n[gone](b/gone.md)",
        ),
        ("docs/lost.md", "[folder](../src)"),
        ("README.md", "[docs](docs/README.md)"),
        ("src/b.rs", "//! B."),
    ];
    assert_eq!(
        found(pages::broken_links, &files),
        ["docs/a.md:2: docs/b/gone.md"]
    );
    assert_eq!(found(pages::lost_pages, &files), ["docs/lost.md"]);
    let repository = source::repository();
    hold(
        &pages::broken_links(&repository),
        "These links lead to no file of the repository. Links are relative to the page they stand on.",
    );
    hold(
        &pages::lost_pages(&repository),
        "No line of docs/README.md names these pages. Say there in a few words what each is for.",
    );
}

#[test]
fn pages_speak_to_people_who_have_the_program_alone() {
    let files = [
        ("docs/a.md", "Plain.\nAs the specification says."),
        (
            "docs/README.md",
            "| [open-details.md](open-details.md) | what the specification leaves open |",
        ),
        (
            "docs/open-details.md",
            "The specification leaves this open.",
        ),
        ("CONTRIBUTING.md", "`cargo test` runs it."),
    ];
    assert_eq!(
        found(pages::asides, &files),
        ["docs/a.md:2: As the specification says."]
    );
    hold(
        &pages::asides(&source::repository()),
        "Pages of docs/ are for people who run the program and have nothing else: say what it does, not where it is \
         specified or how the page is made. What the specification leaves open belongs to docs/open-details.md.",
    );
}

#[test]
fn columns_are_read_by_name() {
    let text = "row.get(0); row.get::<_, Option<i64>>(3)\nrow.try_get(first + 1); row.column(\"a\"); map.get(key)";
    let files = [
        ("src/store/a.rs", text),
        ("src/api/a.rs", text),
        ("jobs/src/a.rs", "row.get(1)"),
        ("jobs/tests/it/a.rs", text),
    ];
    assert_eq!(
        found(sql::columns_by_number, &files),
        [
            "src/store/a.rs:1",
            "src/store/a.rs:1",
            "src/store/a.rs:2",
            "jobs/src/a.rs:1",
        ]
    );
    hold(
        &sql::columns_by_number(&source::repository()),
        "These lines read a column by its number. Read it by its name, with the helpers of \
         src/store/db/row.rs or jobs/src/row.rs.",
    );
}

#[test]
fn errors_say_more_than_that_the_database_may_be_away() {
    let text = "/// Reads it.\n///\n/// # Errors\n/// `database-unavailable`.\nfn a() {}\n\n\
        /// # Errors\n/// `not-found`. `database-unavailable`.\nfn b() {}\n\n\
        impl C {\n    /// # Errors\n    /// The database's.\n    ///\n    /// # Panics\n    fn c() {}\n}\n\n\
        /// # Errors\n/// The database's.\n/// Also `conflict`.\nfn d() {}\n";
    let files = [("src/store/a.rs", text), ("tests/it/b.rs", text)];
    assert_eq!(
        found(rules::errors_of_the_database_alone, &files),
        ["src/store/a.rs:3", "src/store/a.rs:12"]
    );
    hold(
        &rules::errors_of_the_database_alone(&source::repository()),
        "These sections say only that the database may be away, which is so wherever it is asked. Remove them, or say \
         what else can go wrong.",
    );
}

#[test]
fn a_setting_is_read() {
    let files = [
        (
            "src/config/table/limits.rs",
            "count(\"SVC_A\", 1); count(\"SVC_B\", 2);",
        ),
        ("src/config/table/unbuilt.rs", "not_built(\"SVC_C\");"),
        (
            "src/a.rs",
            "values.number::<u32>(\"SVC_A\"); env(\"SVC_B\")",
        ),
        ("tests/a.rs", "set(\"SVC_B\")"),
    ];
    assert_eq!(
        found(settings::unread, &files),
        ["SVC_B is in the table, and no part reads it"]
    );
    hold(
        &settings::unread(&source::repository()),
        "Read the setting in the options of its part (`from_settings`), or take it out of the table.",
    );
}
