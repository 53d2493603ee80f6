//! `/v1/environments`: variables are put, read, listed and deleted; their names are nobody else's; and flows read them.

mod runs;

use crate::harness::{App, secrets::Keys};
use agent_runtime::secrets::{DotenvOptions, Options};
use serde_json::{Value, json};

fn start() -> App {
    App::start_with(|options| {
        options.secrets = Keys::new().options();
        options.runs.environment = Some("prod".to_owned());
    })
}

fn path(environment: &str, name: &str) -> String {
    format!("/v1/environments/{environment}/variables/{name}")
}

#[track_caller]
fn put(app: &App, environment: &str, name: &str, value: &str) -> Value {
    let answer = app.put(&path(environment, name), &json!({"value": value}));
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
    answer.json()
}

fn secret(environment: &str, name: &str) -> String {
    format!("/v1/secrets/{environment}/{name}")
}

#[test]
fn a_variable_is_put_read_listed_and_deleted() {
    let app = start();
    let one = path("prod", "API_URL");
    let first = app
        .put(&one, &json!({"value": "https://a.example"}))
        .expect(201);
    assert_eq!(first["environment"], "prod");
    assert_eq!(first["name"], "API_URL");
    assert_eq!(first["value"], "https://a.example");
    assert_eq!(first["createdBy"], json!(app.seeds.user_id));
    assert_eq!(app.get(&one).expect(200), first);
    let second = app.put(&one, &json!({"value": ""})).expect(200);
    assert_eq!(second["value"], "");
    assert_eq!(second["createdAt"], first["createdAt"]);
    assert_ne!(second["updatedAt"], first["updatedAt"]);
    let other = put(&app, "prod", "_b2", "é \"quoted\"\n");
    put(&app, "test", "API_URL", "elsewhere");
    let list = |query: &str| {
        let path = format!("/v1/environments/prod/variables{query}");
        app.get(&path).expect(200)
    };
    assert_eq!(list("")["data"], json!([second, other]));
    let page = list("?limit=1");
    assert_eq!(page["data"], json!([second]));
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(list(&format!("?cursor={cursor}"))["data"], json!([other]));
    let elsewhere = format!("/v1/environments/test/variables?cursor={cursor}");
    app.get(&elsewhere).expect_error(400, "invalid-cursor");
    app.delete(&one).expect(204);
    app.delete(&one).expect_error(404, "not-found");
    app.get(&one).expect_error(404, "not-found");
    assert_eq!(list("")["data"], json!([other]));
    assert_eq!(
        app.get(&path("test", "API_URL")).expect(200)["value"],
        "elsewhere"
    );
}

#[test]
fn environments_are_those_that_something_names() {
    let app = start();
    put(&app, "test", "A", "1");
    put(&app, "test", "B", "1");
    app.put(&secret("eu-west.1_a", "KEY"), &json!({"value": "k"}))
        .expect(201);
    let list = |query: &str| app.get(&format!("/v1/environments{query}")).expect(200);
    let of = |name: &str, is_served: bool| json!({"name": name, "isServed": is_served});
    let all = [
        of("eu-west.1_a", false),
        of("prod", true),
        of("test", false),
    ];
    assert_eq!(list("")["data"], json!(all));
    let page = list("?limit=2");
    assert_eq!(page["data"], json!(all[..2]));
    let cursor = page["nextCursor"].as_str().unwrap();
    assert_eq!(list(&format!("?cursor={cursor}"))["data"], json!(all[2..]));
    // Another tenant has the one that is served, and no variable.
    let other = app.other_tenant();
    assert_eq!(
        other.get("/v1/environments").expect(200)["data"],
        json!([all[1]])
    );
    let theirs = other.get("/v1/environments/test/variables").expect(200);
    assert_eq!(theirs["data"], json!([]));
    other.get(&path("test", "A")).expect_error(404, "not-found");
    other
        .delete(&path("test", "A"))
        .expect_error(404, "not-found");
    other
        .put(&path("test", "A"), &json!({"value": "theirs"}))
        .expect(201);
    assert_eq!(app.get(&path("test", "A")).expect(200)["value"], "1");
}

#[test]
fn what_is_wrong_with_a_variable_is_named() {
    let app = start();
    let value = json!({"value": "a"});
    let long = "a".repeat(129);
    for name in [
        "1A", "A-B", "A.B", "%C3%A9", "SVC_A", "svc_a", "Svc_A", &long,
    ] {
        app.put(&path("prod", name), &value)
            .expect_error(400, "invalid-request");
        app.get(&path("prod", name)).expect_error(404, "not-found");
    }
    for environment in ["-a", ".a", "a%20b", &"a".repeat(101)] {
        app.put(&path(environment, "A"), &value)
            .expect_error(400, "invalid-request");
    }
    for (value, code) in [
        (json!({"value": "a\0"}), "invalid-body"),
        (json!({"value": "a".repeat(32 * 1024 + 1)}), "invalid-body"),
        (json!({"value": 1}), "invalid-body"),
        (json!({}), "invalid-body"),
        (json!({"value": "a", "more": 1}), "invalid-body"),
    ] {
        app.put(&path("prod", "A"), &value).expect_error(400, code);
    }
    // The longest name and value, each character of several bytes.
    put(&app, "prod", &"a".repeat(128), &"é".repeat(16 * 1024));
    assert_eq!(
        app.get("/v1/environments/prod/variables").expect(200)["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_environment_has_64_kib_of_names_and_values() {
    let app = start();
    put(&app, "prod", "A", &"a".repeat(32 * 1024));
    put(&app, "prod", "B", &"a".repeat(32 * 1024 - 2));
    let error = app
        .put(&path("prod", "C"), &json!({"value": ""}))
        .expect_error(409, "conflict");
    assert_eq!(error["details"]["mostBytes"], json!(65536));
    // What stands does not count twice, and another environment has its own.
    put(&app, "prod", "B", &"b".repeat(32 * 1024 - 2));
    put(&app, "test", "C", &"a".repeat(32 * 1024));
    put(&app, "prod", "A", "");
    put(&app, "prod", "C", "");
}

#[test]
fn a_name_is_a_variable_or_a_secret() {
    let app = start();
    let value = json!({"value": "a-value"});
    put(&app, "prod", "MODE", "fast");
    let said = app
        .put(&secret("prod", "MODE"), &value)
        .expect_error(409, "already-exists");
    let said = said["message"].as_str().unwrap();
    assert!(said.contains("has a variable MODE"), "{said}");
    app.put(&secret("prod", "KEY"), &value).expect(201);
    let said = app
        .put(&path("prod", "KEY"), &value)
        .expect_error(409, "already-exists");
    let said = said["message"].as_str().unwrap();
    assert!(
        said.contains("has a secret KEY") && !said.contains("a-value"),
        "{said}"
    );
    // In another environment, and after the other one is gone.
    app.put(&secret("test", "MODE"), &value).expect(201);
    put(&app, "test", "KEY", "a");
    app.delete(&secret("prod", "KEY")).expect(204);
    put(&app, "prod", "KEY", "a");
    app.delete(&path("prod", "MODE")).expect(204);
    app.put(&secret("prod", "MODE"), &value).expect(201);
}

#[test]
fn names_that_differ_in_case_alone_are_refused() {
    let app = start();
    let value = json!({"value": "a-value"});
    put(&app, "prod", "Mode", "fast");
    for name in ["MODE", "mode"] {
        app.put(&path("prod", name), &value)
            .expect_error(409, "conflict");
        app.put(&secret("prod", name), &value)
            .expect_error(409, "conflict");
    }
    app.put(&secret("prod", "KEY"), &value).expect(201);
    app.put(&path("prod", "key"), &value)
        .expect_error(409, "conflict");
    // Secrets that stood so before stay, and either stands in the way.
    app.put(&secret("prod", "key"), &value).expect(201);
    for name in ["KEY", "key"] {
        app.put(&path("prod", name), &value)
            .expect_error(409, "already-exists");
    }
    app.put(&path("prod", "Key"), &value)
        .expect_error(409, "conflict");
    put(&app, "prod", "Mode", "slow");
}

/// Of two requests at once, one for each kind, one is refused.
#[test]
fn a_name_that_is_put_twice_at_once_becomes_one_of_both() {
    let app = start();
    let value = json!({"value": "a-value"});
    for round in 0..20 {
        let (variable, of_secret) = (
            path("prod", &format!("NAME_{round}")),
            secret("prod", &format!("name_{round}")),
        );
        let (mut first, mut second) = (0, 0);
        std::thread::scope(|scope| {
            let one = scope.spawn(|| app.put(&variable, &value).status);
            let two = scope.spawn(|| app.put(&of_secret, &value).status);
            (first, second) = (one.join().unwrap(), two.join().unwrap());
        });
        let mut both = [first, second];
        both.sort_unstable();
        assert_eq!(both, [201, 409], "{round}");
    }
}

#[test]
fn names_of_env_files_are_looked_at_too() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".env"), "KEY=a-value\nSVC_X=hidden\n").unwrap();
    let files = directory.path().to_owned();
    let app = App::start_with(|options| {
        options.runs.environment = Some("local".to_owned());
        options.secrets = Options::Dotenv(DotenvOptions {
            directory: files,
            files: vec![".env".to_owned()],
            environment: "local".to_owned(),
            tenant_id: options.seeds.tenant_id,
        });
    });
    let value = json!({"value": "another"});
    app.put(&path("local", "KEY"), &value)
        .expect_error(409, "already-exists");
    app.put(&path("local", "key"), &value)
        .expect_error(409, "conflict");
    put(&app, "local", "MODE", "fast");
    app.put(&secret("local", "MODE"), &value)
        .expect_error(409, "already-exists");
    app.put(&secret("local", "Mode"), &value)
        .expect_error(409, "conflict");
    app.put(&secret("local", "KEY"), &value).expect(200);
    app.put(&secret("local", "OTHER"), &value).expect(201);
    let text = std::fs::read_to_string(directory.path().join(".env")).unwrap();
    assert!(
        !text.contains("MODE") && text.contains("OTHER=another"),
        "{text}"
    );
    let all = app.get("/v1/environments").expect(200);
    assert_eq!(all["data"], json!([{"name": "local", "isServed": true}]));
}
