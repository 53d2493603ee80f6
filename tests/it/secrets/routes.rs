//! What the routes answer.

use super::*;
use crate::harness::{Database, LogLines};
use agent_runtime::ids::Clock;
use std::os::unix::fs::PermissionsExt;

const ALL: &str = "/v1/secrets";

#[test]
fn a_secret_is_put_read_listed_and_deleted_without_its_value() {
    let app = App::start_with_secrets();
    let one = path("prod", "API_KEY");
    let made = app.put(&one, &json!({"value": "first-value"}));
    let view = made.expect(201);
    let user = app.seeds.user_id;
    assert_eq!(view["environment"], "prod");
    assert_eq!(view["name"], "API_KEY");
    assert_eq!(view["version"], 1);
    assert_eq!(view["createdBy"], json!(user));
    assert_eq!(view["createdAt"], view["updatedAt"]);
    assert_eq!(
        view["versions"],
        json!([{"version": 1, "createdAt": view["createdAt"]}])
    );
    assert_eq!(app.get(&one).expect(200), view);
    app.clock.advance(Duration::from_secs(60));
    let changed = app.put(&one, &json!({"value": "second-value"})).expect(200);
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["createdAt"], view["createdAt"]);
    assert_ne!(changed["updatedAt"], view["updatedAt"]);
    let versions = changed["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert!(versions[0].get("expiresAt").is_none());
    assert!(versions[1]["expiresAt"].as_str() > versions[1]["createdAt"].as_str());
    let third = put(&app, "prod", "API_KEY", "third-value");
    let versions = third["versions"].as_array().unwrap().iter();
    let numbers: Vec<_> = versions.map(|version| version["version"].clone()).collect();
    assert_eq!(numbers, [3, 2], "two are kept");
    assert_eq!(resolve(&app, "prod", "API_KEY").unwrap(), "third-value");
    for text in [app.get(&one).text, app.get(ALL).text] {
        assert!(!text.contains("-value"), "{text}");
    }
    app.delete(&one).expect(204);
    app.delete(&one).expect_error(404, "not-found");
    app.get(&one).expect_error(404, "not-found");
    assert_eq!(app.get(ALL).expect(200)["data"], json!([]));
    assert_eq!(resolve(&app, "prod", "API_KEY"), Err(Unreadable::NotFound));
    let again = app.put(&one, &json!({"value": "after"})).expect(201);
    assert_eq!(again["version"], 1);
    assert_eq!(resolve(&app, "prod", "API_KEY").unwrap(), "after");
}

#[test]
fn the_list_is_by_name_and_pages() {
    let app = App::start_with_secrets();
    for (environment, name) in [("b", "B"), ("a", "Z"), ("b", "A"), ("a", "_")] {
        put(&app, environment, name, "x");
    }
    let names = |path: &str| {
        let page = app.get(path).expect(200);
        let data = page["data"].as_array().unwrap().clone();
        let names: Vec<_> = data
            .iter()
            .map(|row| {
                let text = |key: &str| row[key].as_str().unwrap().to_owned();
                format!("{}/{}", text("environment"), text("name"))
            })
            .collect();
        (names, page["nextCursor"].as_str().map(str::to_owned))
    };
    let (all, _) = names(ALL);
    assert_eq!(all.len(), 4);
    assert_eq!(all[2..], ["b/A", "b/B"]);
    let (mut back, _) = names(&format!("{ALL}?order=desc"));
    back.reverse();
    assert_eq!(back, all);
    assert_eq!(names(&format!("{ALL}?environment=b")).0, ["b/A", "b/B"]);
    assert!(names(&format!("{ALL}?environment=none")).0.is_empty());
    for order in ["asc", "desc"] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let (more, next) = names(&format!("{ALL}?limit=1&order={order}{cursor}"));
            paged.extend(more);
            match next {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        if order == "desc" {
            paged.reverse();
        }
        assert_eq!(paged, all);
    }
    let (_, next) = names(&format!("{ALL}?limit=1"));
    let other = format!("{ALL}?environment=a&cursor={}", next.unwrap());
    app.get(&other).expect_error(400, "invalid-cursor");
    app.get(&format!("{ALL}?limit=0"))
        .expect_error(400, "invalid-request");
}

#[test]
fn names_and_values_have_bounds() {
    let app = App::start_with_secrets();
    let value = json!({"value": "x"});
    for (environment, name) in [
        ("prod", "SVC_X"),
        ("prod", "svc_x"),
        ("prod", "1A"),
        ("prod", "a-b"),
        ("prod", "a%20b"),
        (".prod", "A"),
        ("pr%2Fod", "A"),
        (&"a".repeat(101), "A"),
        ("prod", &"A".repeat(129)),
    ] {
        app.put(&path(environment, name), &value)
            .expect_error(400, "invalid-request");
        app.get(&path(environment, name))
            .expect_error(404, "not-found");
        app.delete(&path(environment, name))
            .expect_error(404, "not-found");
    }
    let longest = "\u{1}".repeat(65_536);
    for good in ["x", " \n\"ä\u{1F600}", &longest] {
        put(&app, "prod", "A", good);
        assert_eq!(resolve(&app, "prod", "A").unwrap(), good);
    }
    let too_long = "x".repeat(65_537);
    for bad in [json!(""), json!("a\0b"), json!(too_long)] {
        app.put(&path("prod", "A"), &json!({"value": bad}))
            .expect_error(400, "invalid-body");
    }
}

#[test]
fn a_fault_repeats_nothing_of_the_body() {
    let app = App::start_with_secrets();
    let secret = "hunter2hunter2";
    for body in [
        json!(secret),
        json!([secret]),
        json!([secret, secret]),
        json!({secret: "x"}),
        json!({"value": "x", secret: 1}),
        json!({"value": [secret]}),
        json!({"value": {secret: secret}}),
        json!({"value": null}),
        json!({}),
    ] {
        let answer = app.put(&path("prod", "A"), &body);
        assert!(!answer.text.contains("hunter2"), "{}", answer.text);
        answer.expect_error(400, "invalid-body");
    }
    let broken = format!(r#"{{"value": "{secret}"#);
    let answer = app.send("PUT", &path("prod", "A"), Some(broken), &[]);
    assert!(!answer.text.contains("hunter2"), "{}", answer.text);
    answer.expect_error(400, "invalid-body");
    let plain = [("content-type", "text/plain")];
    let sent = app.send("PUT", &path("prod", "A"), Some(secret.to_owned()), &plain);
    sent.expect_error(415, "unsupported-media-type");
}

#[test]
fn without_a_backend_nothing_is_mounted() {
    let app = App::start();
    for (method, path) in [
        ("GET", ALL),
        ("PUT", "/v1/secrets/a/B"),
        ("DELETE", "/v1/secrets/a/B"),
    ] {
        let body = (method == "PUT").then(|| json!({"value": "x"}).to_string());
        app.send(method, path, body, &[])
            .expect_error(404, "route-not-found");
    }
    let found = backend(&app).resolve(app.seeds.tenant_id, &at("a", "B"));
    let Err(Unreadable::Unavailable(sentence)) = found else {
        panic!("{found:?}");
    };
    assert!(sentence.contains("SVC_SECRETS_BACKEND"));
}

#[test]
fn a_tenant_sees_its_own_alone() {
    let app = App::start_with_secrets();
    put(&app, "prod", "A", "of the first");
    let other = app.other_tenant();
    other.get(&path("prod", "A")).expect_error(404, "not-found");
    other
        .delete(&path("prod", "A"))
        .expect_error(404, "not-found");
    assert_eq!(other.get(ALL).expect(200)["data"], json!([]));
    other
        .put(&path("prod", "A"), &json!({"value": "of the second"}))
        .expect(201);
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "of the first");
    assert_eq!(resolve(&app, "dev", "A"), Err(Unreadable::NotFound));
}

#[test]
fn of_many_puts_at_once_each_is_a_version_or_a_conflict() {
    let app = App::start_with_secrets();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let puts: Vec<_> = (0..8)
            .map(|n| {
                let app = &app;
                scope.spawn(move || {
                    let value = json!({"value": format!("value {n}")});
                    app.put(&path("prod", "A"), &value).status
                })
            })
            .collect();
        puts.into_iter().map(|put| put.join().unwrap()).collect()
    });
    let done = statuses.iter().filter(|status| **status < 300).count();
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    assert!(
        statuses
            .iter()
            .all(|status| [200, 201, 409].contains(status))
    );
    let version = app.get(&path("prod", "A")).expect(200)["version"].clone();
    assert_eq!(version, json!(done));
    assert!(resolve(&app, "prod", "A").unwrap().starts_with("value "));
}

#[test]
fn a_value_is_in_no_log_and_no_table() {
    let (lines, clock) = (LogLines::default(), Clock::system());
    let options = agent_runtime::log::Options {
        level: agent_runtime::log::Level::Trace,
        ..Default::default()
    };
    let log = agent_runtime::log::open(&options, Clock::system(), lines.clone());
    let seeds = crate::harness::seeds(&clock);
    let app = App::start_logged(Database::migrated(), clock, seeds, &log, |options| {
        options.secrets = Keys::new().options();
    });
    let value = "the-quite-secret-value";
    put(&app, "prod", "A", value);
    app.put(&path("prod", "A"), &json!({"value": value, "more": 1}))
        .expect_error(400, "invalid-body");
    let read = backend(&app)
        .resolve(app.seeds.tenant_id, &at("prod", "A"))
        .unwrap();
    assert_eq!(format!("{read:?} {read}"), "[redacted] [redacted]");
    let mut client = app.database.client();
    let rows = crate::sweep::rows::Rows::read(&mut client);
    assert!(!format!("{rows:?}").contains(value));
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!format!("{rows:?}").contains(&hex));
    let decisions: i64 = client
        .query_one(
            "select count(*) from audit_decisions d where to_jsonb(d)::text like '%quite-secret%'",
            &[],
        )
        .unwrap()
        .get(0);
    assert_eq!(decisions, 0);
    let described = app.get("/openapi.json").text;
    assert!(described.contains("writeOnly") && !described.contains("quite-secret"));
    app.stop();
    assert!(!lines.with("A request was refused").is_empty());
    assert_eq!(lines.with("quite-secret"), [""; 0]);
}

#[test]
fn a_tenant_has_a_thousand_secrets_at_most() {
    let app = App::start_with_secrets();
    let fill = "insert into secrets
        select $1, 'prod', 'S' || n, 1, $2, now(), now() from generate_series(1, 999) n";
    let seeds = (&app.seeds.tenant_id, &app.seeds.user_id);
    let mut client = app.database.client();
    client.execute(fill, &[seeds.0, seeds.1]).unwrap();
    let new = |name: &str| app.put(&path("prod", name), &json!({"value": "x"}));
    let answers = std::thread::scope(|scope| {
        let puts = ["A", "B", "C", "D"].map(|name| scope.spawn(|| new(name).status));
        puts.map(|put| put.join().unwrap())
    });
    let made = answers.iter().filter(|status| **status == 201).count();
    assert_eq!(made, 1, "{answers:?}");
    let error = new("E").expect_error(409, "conflict");
    assert_eq!(error["details"]["most"], 1000);
    let stands = ["A", "B", "C", "D"].map(|name| app.get(&path("prod", name)).status);
    let stands = stands.iter().position(|status| *status == 200).unwrap();
    new(["A", "B", "C", "D"][stands]).expect(200);
    app.delete(&path("prod", "S1")).expect(204);
    new("E").expect(201);
}

#[test]
fn the_pages_command_puts_a_secret() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/secrets.md");
    let page = std::fs::read_to_string(page).unwrap();
    let command = page.split("```sh\n").nth(1).unwrap();
    let command = command.split("```").next().unwrap();
    let app = App::start_with_secrets();
    let directory = tempfile::tempdir().unwrap();
    let ran = std::process::Command::new("sh")
        .args(["-e", "-c", command])
        .current_dir(&directory)
        .env("URL", format!("http://{}", app.server().local_addr()))
        .env("TOKEN", app.seeds.token.expose())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let value = resolve(&app, "prod", "WEBHOOK_SECRET").unwrap();
    agent_runtime::webhooks::sign::check_secret(&Secret::new(&*value)).unwrap();
    for file in ["authorization", "secret.json"] {
        let file = std::fs::metadata(directory.path().join(file)).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
}
