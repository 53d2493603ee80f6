//! Ways in for a person with a browser: each is listed here, and none goes round the one function that opens a session.

use crate::source::Source;
use crate::{found, hold, source};

/// The statement that makes the row of a session, and the one function that runs it.
const ROW: (&str, &str) = ("sql!(\"sessions/insert\")", "src/store/sessions.rs open");

/// The one function that opens a session: it ends the browser's session before, keeps the bounds and records it.
const DOOR: &str = "src/api/sign_in.rs open";

/// The ways in, each with what decides that it lets somebody in. Whoever adds one looks whether it asks the settings of sign-in,
/// whether its person is active, and what the session may do at most.
const WAYS: [&str; 3] = [
    // `of_token`: a token that holds; `may_sign_in`: the settings, people alone, no limit to a project.
    "src/api/sign_in.rs by_token",
    // `enrolments::take`: a code that holds, once.
    "src/api/sign_in.rs by_enrolment",
    // `arrivals::arrive`: a subject that is a person's, or an email for which the provider may speak.
    "src/api/sign_in.rs by_provider",
];

/// Who runs the statement, who opens the row, and who opens a session, where that is not listed; and what is listed and is not so.
fn unlisted_ways_in(files: &[Source]) -> Vec<String> {
    let product = || files.iter().filter(|file| file.is_product());
    let mut rows = Vec::new();
    let mut doors = Vec::new();
    let mut ways = Vec::new();
    for file in product() {
        let callers = |what: &str| -> Vec<String> {
            let calls = file.code.match_indices(what);
            let calls = calls.filter(|(at, _)| !file.code[..*at].ends_with("fn"));
            calls.map(|(at, _)| caller(file, at)).collect()
        };
        rows.extend(callers(ROW.0));
        doors.extend(callers("sessions::open("));
        ways.extend(callers("sign_in::open("));
        if file.path == "src/api/sign_in.rs" {
            // Within the file itself: a name with nothing before it.
            ways.extend(callers(" open(cx"));
        }
    }
    let mut faults = differences("makes the row of a session", &rows, &[ROW.1]);
    faults.extend(differences("opens the row of a session", &doors, &[DOOR]));
    faults.extend(differences("lets somebody in", &ways, &WAYS));
    faults
}

/// The file and the function around this place.
fn caller(file: &Source, at: usize) -> String {
    let before = file.code[..at].rsplit("fn ").next().unwrap_or_default();
    let name = before.split(['(', '<']).next().unwrap_or_default();
    format!("{} {name}", file.path)
}

fn differences(does: &str, found: &[String], listed: &[&str]) -> Vec<String> {
    let unlisted = found.iter().filter(|one| !listed.contains(&one.as_str()));
    let unlisted = unlisted.map(|one| format!("{one} {does}, and is not listed"));
    let gone = listed
        .iter()
        .filter(|one| !found.iter().any(|found| found == *one));
    let gone = gone.map(|one| format!("{one} is listed, and does not do it: {does}"));
    unlisted.chain(gone).collect()
}

#[test]
fn every_way_in_is_listed_and_goes_through_one_door() {
    let store = "fn open() { tx.execute(sql!(\"sessions/insert\")) }";
    let door = "fn open(cx: &Cx) { sessions::open(tx) }\nfn by_token(a: B) { cx.transact(|tx| open(cx, tx)) }\nfn by_enrolment() { open(cx) }\nfn by_provider() { open(cx) }";
    let files = [
        ("src/store/sessions.rs", store),
        ("src/api/sign_in.rs", door),
    ];
    assert_eq!(found(unlisted_ways_in, &files), [] as [&str; 0]);
    let around = "// sessions::open(\nfn by_magic<T>(a: T) { sessions::open(tx) }\nfn by_friend() { sign_in::open(cx) }";
    let another = "fn anew() { sql!(\"sessions/insert\") }";
    let files = [
        files[0],
        files[1],
        ("src/api/magic.rs", around),
        ("src/store/magic.rs", another),
    ];
    assert_eq!(
        found(unlisted_ways_in, &files),
        [
            "src/store/magic.rs anew makes the row of a session, and is not listed",
            "src/api/magic.rs by_magic opens the row of a session, and is not listed",
            "src/api/magic.rs by_friend lets somebody in, and is not listed",
        ]
    );
    let files = [
        files[0],
        (
            "src/api/sign_in.rs",
            "fn open(cx: &Cx) { sessions::open(tx) }",
        ),
    ];
    assert_eq!(found(unlisted_ways_in, &files).len(), 3);
    hold(
        &unlisted_ways_in(&source::repository()),
        "Sessions are opened by `open` of src/api/sign_in.rs alone, and each way in stands in the list of tests/rules/sign_ins.rs \
         with what decides that it lets somebody in. Go through that function, and add the way to the list.",
    );
}
