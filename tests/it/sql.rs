//! Every statement is prepared against a migrated database, and names the tenant where its tables
//! have one.

use crate::harness::Database;
use agent_runtime::store::Ordered;
use agent_runtime::store::page::Order;
use std::path::{Path, PathBuf};

/// Statements that look across tenants, each with its reason.
const ACROSS_TENANTS: [(&str, &str); 56] = [
    (
        "tokens/by_digest",
        "a credential is looked up before its tenant is known",
    ),
    (
        "sessions/by_digest",
        "a credential is looked up before its tenant is known",
    ),
    (
        "sessions/end_by_digest",
        "whoever has the value of a session may end it",
    ),
    ("sessions/delete_old", "upkeep of the whole table"),
    (
        "sessions/count",
        "how many are open, for the operator's metrics",
    ),
    (
        "sessions/shorten",
        "what a start allows less, of every session that is open; what a tenant's settings do, of its own",
    ),
    (
        "identity_providers/tenant_of",
        "a browser names the provider before its tenant is known",
    ),
    (
        "tenants/first_two",
        "whether there is one tenant, before one is known",
    ),
    (
        "operator_providers/tenants",
        "the tenants of the operator's file, and those that it named before",
    ),
    (
        "tokens/end_seed",
        "the token that a start made before, perhaps for another tenant",
    ),
    (
        "enrolments/owner",
        "a code is looked up before its tenant is known",
    ),
    (
        "events/moved_since",
        "says which runs moved; readers take events by tenant and run",
    ),
    (
        "deltas/since_position",
        "as events/moved_since; a piece goes to the readers of its run",
    ),
    (
        "deltas/insert",
        "pieces of many runs at once, each joined to its run by tenant and epoch",
    ),
    (
        "approvals/log_since",
        "as events/moved_since; what happened goes to the reviewers of its tenant",
    ),
    (
        "reviewers/roles_of_many",
        "the people whose streams are open here, each by tenant and user",
    ),
    (
        "changes/runs",
        "the runs that moved, of the tenants of the streams that are open here",
    ),
    (
        "changes/admins",
        "the people whose streams are open here, each by tenant and user",
    ),
    (
        "changes/ways",
        "as changes/admins; each way names its tenant",
    ),
    (
        "tokens/note_uses",
        "the tokens that were used here, each by tenant and token",
    ),
    (
        "tokens/revoked_among",
        "the tokens of the streams that are open here, each by tenant and token",
    ),
    (
        "runs/count_unfinished",
        "the jobs of one tenant's runs, whose fairness key is the tenant",
    ),
    (
        "runs/interrupted",
        "the runs that this process holds, each by tenant and run",
    ),
    (
        "audit/write",
        "decisions of many tenants at once, each with its own tenant",
    ),
    ("audit/write_one", "a decision, with its own tenant"),
    (
        "authz/unapplied",
        "what is left to be told to the authorization server, each by tenant and object",
    ),
    (
        "authz/tenants",
        "the tenants whose stores are to be compared",
    ),
    ("authz/storeless", "the tenants whose stores are to be made"),
    (
        "audit/decisions_of",
        "verifies a writer's chain, for the operator",
    ),
    (
        "audit/stray_slot",
        "verifies that no chain lacks its writer, for the operator",
    ),
    (
        "audit/delete_decisions",
        "purges the beginning of a writer's chain",
    ),
    (
        "secrets/versions_after",
        "what is to be wrapped anew, for the operator, each by tenant and place",
    ),
    (
        "secrets/newest",
        "what the doctor tries the keys on, for the operator",
    ),
    (
        "tools/named_secrets",
        "what the doctor looks for, for the operator",
    ),
    (
        "secret_uses/of_operator",
        "what the doctor shows, for the operator",
    ),
    (
        "secret_uses/lacking_of_many",
        "what the doctor looks for, each by its tenant",
    ),
    (
        "backups/tenants",
        "the tenants that a backup holds, for the operator",
    ),
    (
        "backups/secret_versions",
        "how many there are in all, for the operator",
    ),
    (
        "health/tenant_stores",
        "the stores that the doctor looks at, each by its tenant",
    ),
    (
        "health/storeless",
        "how many tenants have no store, for the operator",
    ),
    (
        "health/overdue_approvals",
        "the approvals that nothing will close, for the operator",
    ),
    (
        "health/undecidable_approvals",
        "the roles that nobody has who may decide, for the operator",
    ),
    (
        "approvals/figures",
        "how many wait in all, for the operator",
    ),
    (
        "health/untold",
        "how much is left to be told, for the operator",
    ),
    (
        "health/webhook_endpoints",
        "how many endpoints there are, for the operator",
    ),
    (
        "health/failing_webhook_endpoints",
        "the endpoints that fail, each by its tenant, for the operator",
    ),
    (
        "webhook_endpoints/count_failing",
        "how many endpoints fail in all, for the operator",
    ),
    (
        "webhook_attempts/endpoint_states",
        "attempts of several tenants end together; it names each endpoint and its tenant",
    ),
    (
        "health/stranded_runs",
        "the runs that nothing will carry on, for the operator",
    ),
    (
        "health/has_unerased_conversation",
        "whether any is left, for the operator",
    ),
    (
        "health/has_unerased_run",
        "whether any is left, for the operator",
    ),
    ("deltas/sweep", "upkeep of the whole table"),
    ("runs/forget_keys", "upkeep of the whole table"),
    (
        "webhook_deliveries/unregistered_waiting",
        "what unregistering left behind, each by tenant and endpoint",
    ),
    (
        "webhook_deliveries/months",
        "the months that there are, from the names of partitions",
    ),
    (
        "webhook_deliveries/prune_endpoints",
        "upkeep of the whole table",
    ),
];

fn queries(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            queries(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "sql") {
            found.push(path);
        }
    }
}

#[test]
fn every_statement_is_valid_and_names_the_tenant() {
    let database = Database::migrated();
    let mut client = database.client();
    let tables: Vec<String> = client
        .query(
            "select distinct table_name::text from information_schema.columns
             where table_schema = 'public' and column_name = 'tenant_id'",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/queries");
    let mut files = Vec::new();
    queries(&root, &mut files);
    assert!(files.len() > 10, "the statements were found");
    for file in files {
        let name = file.strip_prefix(&root).unwrap().with_extension("");
        let name = name.to_str().unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let list = Ordered::of(&text);
        for text in [list.by(Order::Asc), list.by(Order::Desc)] {
            if let Err(error) = client.prepare(text) {
                panic!("sql/queries/{name}.sql: {error}: {:?}", error.as_db_error());
            }
        }
        let words: Vec<&str> = text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .collect();
        let of_tenant = words
            .iter()
            .any(|word| tables.iter().any(|table| table == word));
        let excused = ACROSS_TENANTS.iter().any(|(excused, _)| *excused == name);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let bound = [
            "tenant_id = $",
            "values ($1",
            "select $1",
            "(tenant_id) = $",
        ]
        .iter()
        .any(|form| flat.to_lowercase().contains(form));
        assert!(
            !of_tenant || excused != bound,
            "sql/queries/{name}.sql touches a tenant's table: it either binds tenant_id to a \
             parameter, or stands in ACROSS_TENANTS with its reason"
        );
    }
}

/// Runs point to these without a foreign key.
#[test]
fn no_statement_deletes_what_runs_point_to() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/queries");
    let mut files = Vec::new();
    queries(&root, &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            if word == "delete" && words.next() == Some("from") {
                let table = words.next().unwrap_or_default();
                let kept = ["projects", "users", "agent_versions", "conversations"];
                assert!(!kept.contains(&table), "{}: {table}", file.display());
            }
        }
    }
}

/// What limits a step is looked at where it begins.
#[test]
fn an_attempt_of_a_step_begins_in_one_place() {
    // The rows of a retry are copies of steps that began there.
    let writers = [
        "insert_child_retry.sql",
        "insert_retry.sql",
        "run_begin_step.sql",
        "take_over.sql",
    ];
    let mut files = Vec::new();
    for folder in ["sql/queries", "sql/functions"] {
        queries(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join(folder),
            &mut files,
        );
    }
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap().to_lowercase();
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let begins = flat.contains("update run_steps s set status = 'running'");
        if begins || flat.contains("insert into run_steps") {
            found.push(file.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    found.sort();
    assert_eq!(found, writers, "begin steps by run_begin_step");
}

/// What the text passes to each call of a function of this name.
fn calls<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let call = format!("{name}(");
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    text.match_indices(&call)
        .filter(|(at, _)| !text[..*at].ends_with(is_word))
        .map(|(at, _)| &text[at + call.len()..])
        .collect()
}

#[test]
fn functions_are_called_with_named_arguments() {
    assert_eq!(calls("select f(1), g_f(2), f(a => 3)", "f").len(), 2);
    let database = Database::migrated();
    let functions =
        "select proname::text from pg_proc where pronamespace = current_schema()::regnamespace";
    let functions: Vec<String> = database
        .client()
        .query(functions, &[])
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut files = Vec::new();
    for folder in ["sql/queries", "sql/functions", "jobs/sql/functions"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        queries(&root, &mut files);
    }
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for name in &functions {
            let definition = format!("create function {name}(");
            for arguments in calls(&text.to_lowercase().replace(&definition, ""), name) {
                let first = arguments.trim_start();
                let end = first.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let is_named = first[end.unwrap_or(0)..].trim_start().starts_with("=>");
                assert!(
                    is_named || first.starts_with(')'),
                    "{}: call {name} with its arguments by name (name => $1)",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn a_target_that_the_database_does_not_know_is_refused() {
    let database = Database::migrated();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    let read = "select tool_definition(jsonb_populate_record(null::tools, jsonb_build_object('target', $1::text)), 'a')";
    client.query_one(read, &[&"http"]).unwrap();
    client.query_one(read, &[&"flow"]).unwrap();
    let error = client.query_one(read, &[&"other"]).unwrap_err();
    let said = error.as_db_error().unwrap().message();
    assert!(said.contains("target other"), "{said}");
}
