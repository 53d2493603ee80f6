//! Every route that has an operation name is a call of both clients, under that name, and nothing else is. The calls that
//! the specification names are among them.

use super::file;
use agent_runtime::http::route::Operation;
use agent_runtime::server;
use std::collections::BTreeSet;
use std::process::Command;

/// The client calls that the specification names (sections 4.3 to 4.7).
const SPECIFIED: [&str; 10] = [
    "audit.authz",
    "projects.access.list",
    "projects.memberships.add",
    "projects.memberships.remove",
    "projects.memberships.updateRole",
    "projects.teamGrants.add",
    "projects.teamGrants.list",
    "projects.teamGrants.remove",
    "projects.teamGrants.updateRole",
    "teams.projectGrants.list",
];

/// The operation names of routes, and the faults of those that have none.
fn named(operations: impl Iterator<Item = (String, Operation)>) -> (BTreeSet<String>, Vec<String>) {
    let mut faults = Vec::new();
    let names = operations.filter_map(|(route, operation)| {
        match operation {
            Operation::Named(name) => return Some(name.to_owned()),
            // Shorter is no reason.
            Operation::Unnamed(why) if why.split_whitespace().count() < 2 => {
                faults.push(format!("{route} is no call, and gives no reason"));
            }
            Operation::Unnamed(_) => {}
        }
        None
    });
    (names.collect(), faults)
}

/// What is wrong with a client that has these calls.
fn faults(client: &str, calls: &BTreeSet<String>, routes: &BTreeSet<String>) -> Vec<String> {
    let missing = routes.difference(calls);
    let missing = missing.map(|name| format!("{client} has no call {name}"));
    let without = calls.difference(routes);
    let without = without.map(|name| format!("{client}: no route has the name {name}"));
    let specified = SPECIFIED.into_iter().chain(["webhookEndpoints.create"]);
    let specified = specified.filter(|name| !calls.contains(*name));
    let specified =
        specified.map(|name| format!("{client} has no {name}, which the specification names"));
    missing.chain(without).chain(specified).collect()
}

/// The calls in the generated nouns of the TypeScript client: a class for each noun, whose methods stand in it.
fn in_typescript(text: &str) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    let mut noun = String::new();
    for line in text.lines() {
        if let Some(class) = line.strip_prefix("export class ") {
            noun = class.trim_end_matches(" {").to_owned();
        }
        let method = line.strip_prefix("  async ").or(line.strip_prefix("  "));
        let method = method.and_then(|rest| rest.split_once('('));
        if let Some((verb, _)) = method
            && verb != "constructor"
            && !verb.is_empty()
            && verb.chars().all(|letter| letter.is_ascii_alphabetic())
        {
            calls.insert(format!("{noun}.{verb}"));
        }
    }
    calls
}

/// The calls in the generated nouns of a Python client, as `in_typescript`; a `prefix` of classes is left out.
fn in_python(text: &str, prefix: &str) -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    let mut noun = String::new();
    for line in text.lines() {
        if let Some((class, _)) = line
            .strip_prefix("class ")
            .and_then(|rest| rest.split_once('('))
        {
            class
                .strip_prefix(prefix)
                .unwrap_or(class)
                .clone_into(&mut noun);
        }
        let method = line
            .strip_prefix("    async def ")
            .or(line.strip_prefix("    def "));
        if let Some((verb, _)) = method.and_then(|rest| rest.split_once('('))
            && !verb.starts_with('_')
        {
            calls.insert(format!("{noun}.{}", camel(verb)));
        }
    }
    calls
}

/// `update_role` is `updateRole`.
fn camel(verb: &str) -> String {
    let mut words = verb.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    // `try_` is `try`, which is a word of Python's own.
    words
        .filter(|word| !word.is_empty())
        .fold(first, |all, word| {
            let (letter, rest) = word.split_at(1);
            all + &letter.to_ascii_uppercase() + rest
        })
}

/// `projects.teamGrants.list` is `ProjectsTeamGrants.list`, as the classes have it.
fn by_class(name: &str) -> String {
    let (noun, verb) = name.rsplit_once('.').unwrap();
    let words = noun.split('.').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    format!("{}.{verb}", words.collect::<String>())
}

fn routes() -> BTreeSet<String> {
    let table = server::table(true, true);
    let operations = table.routes().iter().map(|route| {
        let route_name = format!("{} {}", route.method.text(), route.path);
        (route_name, route.operation)
    });
    let (names, faults) = named(operations);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    names
}

#[test]
fn every_route_with_a_name_is_a_call_of_the_typescript_client_and_nothing_else_is() {
    let text = std::fs::read_to_string(file("typescript/src/resources.js")).unwrap();
    are_the_routes("the TypeScript client", &in_typescript(&text));
}

#[test]
fn every_route_with_a_name_is_a_call_of_both_python_clients_and_nothing_else_is() {
    let listed = std::fs::read_dir(file("python/agent_runtime/resources")).unwrap();
    let (mut found, mut found_async) = (BTreeSet::new(), BTreeSet::new());
    for entry in listed {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.ends_with(".py") || name == "__init__.py" {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if name.starts_with("async_") {
            found_async.extend(in_python(&text, "Async"));
        } else {
            found.extend(in_python(&text, ""));
        }
    }
    are_the_routes("the Python client", &found);
    are_the_routes("the asynchronous Python client", &found_async);
}

/// The calls of a client, by class and method.
fn are_the_routes(client: &str, found: &BTreeSet<String>) {
    let routes = routes();
    let of_class = |class: &String| {
        let name = routes.iter().find(|name| by_class(name) == *class);
        name.cloned().unwrap_or_else(|| class.clone())
    };
    let calls = found.iter().map(of_class).collect();
    let faults = faults(client, &calls, &routes);
    assert!(
        faults.is_empty(),
        "\n\nRun clients/generate after a change of the routes; see clients/README.md.\n\n  {}\n",
        faults.join("\n  ")
    );
}

#[test]
fn what_is_wrong_is_found() {
    let some = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let routes: BTreeSet<String> = some(&SPECIFIED);
    let mut with_own = routes.clone();
    with_own.insert("webhookEndpoints.create".to_owned());
    assert_eq!(
        faults("c", &with_own, &routes),
        ["c: no route has the name webhookEndpoints.create"]
    );
    assert_eq!(
        faults("c", &routes, &with_own),
        [
            "c has no call webhookEndpoints.create",
            "c has no webhookEndpoints.create, which the specification names"
        ]
    );
    let operations = [
        ("GET /a".to_owned(), Operation::Named("a.list")),
        ("GET /b".to_owned(), Operation::Unnamed("page")),
        ("GET /c".to_owned(), Operation::Unnamed("a page for people")),
    ];
    let (names, faults) = named(operations.into_iter());
    assert_eq!(names, some(&["a.list"]));
    assert_eq!(faults, ["GET /b is no call, and gives no reason"]);
    let text = "export class ProjectsAccess {\n  #transport;\n\n  constructor(transport) {\n    this.a(b);\n  }\n\n  \
                list(query) {\n    return f();\n  }\n\n  async add(a) {\n";
    let found = in_typescript(text);
    assert_eq!(found, some(&["ProjectsAccess.add", "ProjectsAccess.list"]));
    assert_eq!(by_class("projects.access.list"), "ProjectsAccess.list");
    let text = "class AsyncProjectsTeamGrants(AsyncResource):\n    def __init__(self) -> None:\n    def list(self):\n    async def \
                update_role(\n        self,\n";
    let found = in_python(text, "Async");
    assert_eq!(
        found,
        some(&["ProjectsTeamGrants.list", "ProjectsTeamGrants.updateRole"])
    );
}

#[test]
fn what_is_generated_is_what_the_api_description_says() {
    let mut check = Command::new("python3");
    let checked = check.arg(file("generate")).arg("--check").output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}

#[test]
fn the_generator_reads_small_descriptions_and_says_what_it_does_not_know() {
    let mut tests = Command::new("python3");
    let tests = tests.args(["-B", "-m", "unittest", "generator.tests"]);
    let tried = tests.current_dir(file("")).output().unwrap();
    let said = String::from_utf8_lossy(&tried.stderr);
    assert!(tried.status.success(), "{said}");
    assert!(said.contains("Ran ") && !said.contains("Ran 0"), "{said}");
}
