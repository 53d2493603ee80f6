//! The backend `dotenv`.

use super::*;
use crate::harness::Client;
use agent_runtime::secrets::{DotenvOptions, Options};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A server over these files of a directory, lowest precedence first.
fn over(files: &[(&str, &str)]) -> (App, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let path = directory.path().to_owned();
    let app = App::start_with(|options| {
        options.secrets = Options::Dotenv(DotenvOptions {
            directory: path,
            files: vec![".env".to_owned(), ".env.local".to_owned()],
            environment: "local".to_owned(),
            tenant_id: options.seeds.tenant_id,
        });
    });
    (app, directory)
}

fn text(directory: &TempDir, name: &str) -> String {
    std::fs::read_to_string(directory.path().join(name)).unwrap()
}

fn names(client: &Client) -> Vec<String> {
    let page = client.get("/v1/secrets").expect(200);
    let rows = page["data"].as_array().unwrap();
    rows.iter()
        .map(|row| row["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_later_file_comes_first_and_our_own_names_are_not_seen() {
    let (app, _directory) = over(&[
        (
            ".env",
            "# shared\nONE=1\nTWO=2\nBLANK=x\nSVC_LICENSE_KEY=hidden\nsvc_x=hidden\n",
        ),
        (".env.local", "TWO='two'\nBLANK=\nTHREE=3\nnot.a-name=4\n"),
    ]);
    assert_eq!(names(&app), ["ONE", "THREE", "TWO"]);
    for (name, value) in [("ONE", "1"), ("TWO", "two"), ("THREE", "3")] {
        assert_eq!(resolve(&app, "local", name).unwrap(), value);
    }
    for name in ["SVC_LICENSE_KEY", "svc_x", "BLANK", "FOUR"] {
        assert_eq!(resolve(&app, "local", name), Err(Unreadable::NotFound));
        app.get(&path("local", name)).expect_error(404, "not-found");
    }
    assert_eq!(resolve(&app, "prod", "ONE"), Err(Unreadable::NotFound));
    let answer = app.get("/v1/secrets?limit=2");
    assert!(!answer.text.contains("hidden"));
    let cursor = answer.expect(200)["nextCursor"]
        .as_str()
        .unwrap()
        .to_owned();
    let rest = app.get(&format!("/v1/secrets?cursor={cursor}")).expect(200);
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
    let view = app.get(&path("local", "ONE")).expect(200);
    assert_eq!(view["createdBy"], Value::Null);
    assert_eq!(view["version"], 1);
}

#[test]
fn a_put_changes_its_line_in_the_last_file_and_a_delete_every_file() {
    let env = "# shared\nONE=1\n";
    let local = "# mine\n\nexport TWO=2 # second\nodd line\n";
    let (app, directory) = over(&[(".env", env), (".env.local", local)]);
    let file = directory.path().join(".env.local");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let put = |name: &str, value: &str| app.put(&path("local", name), &json!({"value": value}));
    put("TWO", "it's two").expect(200);
    put("ONE", "another").expect(200);
    put("NEW", "new").expect(201);
    let changed = "# mine\n\nexport TWO=\"it's two\" # second\nodd line\nONE=another\nNEW=new\n";
    assert_eq!(text(&directory, ".env.local"), changed);
    assert_eq!(text(&directory, ".env"), env);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(resolve(&app, "local", "ONE").unwrap(), "another");
    app.delete(&path("local", "ONE")).expect(204);
    app.delete(&path("local", "ONE"))
        .expect_error(404, "not-found");
    assert_eq!(text(&directory, ".env"), "# shared\n");
    assert_eq!(names(&app), ["NEW", "TWO"]);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing is left beside the files");
}

#[test]
fn what_it_does_not_serve_is_refused_by_name() {
    let (app, directory) = over(&[(".env", "ONE=1\n")]);
    let value = json!({"value": "x"});
    let refused = app.put(&path("prod", "ONE"), &value);
    let error = refused.expect_error(400, "invalid-request");
    assert!(
        error["message"].as_str().unwrap().contains("prod"),
        "{error}"
    );
    app.get("/v1/secrets?environment=prod")
        .expect_error(400, "invalid-request");
    app.put(&path("local", "SVC_X"), &value)
        .expect_error(400, "invalid-request");
    let other = app.other_tenant();
    assert!(names(&other).is_empty());
    other
        .get(&path("local", "ONE"))
        .expect_error(404, "not-found");
    other
        .delete(&path("local", "ONE"))
        .expect_error(404, "not-found");
    other
        .put(&path("local", "ONE"), &value)
        .expect_error(501, "not-configured");
    assert_eq!(text(&directory, ".env"), "ONE=1\n");
    let (tenant, _) = other_tenant(&app);
    let read = backend(&app).resolve(tenant, &at("local", "ONE"));
    assert_eq!(read.map(drop), Err(Unreadable::NotFound));
    let unwrapped = backend(&app).rewrap(false, |_| {}).unwrap_err();
    assert!(unwrapped.message().contains("SVC_SECRETS_BACKEND=postgres"));
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_named() {
    let (app, directory) = over(&[(".env", "ONE=1\nTWO='x\n")]);
    let read = resolve(&app, "local", "ONE");
    let Err(Unreadable::Unavailable(sentence)) = read else {
        panic!("{read:?}");
    };
    assert!(
        sentence.contains(".env") && sentence.contains("line 2"),
        "{sentence}"
    );
    assert!(!sentence.contains("'x"), "{sentence}");
    app.get("/v1/secrets")
        .expect_error(503, "secrets-unavailable");
    std::fs::write(directory.path().join(".env"), "ONE=1\n").unwrap();
    assert_eq!(resolve(&app, "local", "ONE").unwrap(), "1");
    // A directory in the file's place takes no file.
    let place = directory.path().join(".env.local");
    std::fs::create_dir(&place).unwrap();
    let error = app
        .put(&path("local", "ONE"), &json!({"value": "s3cret"}))
        .expect_error(503, "secrets-unavailable");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(".env.local") && !message.contains("s3cret"),
        "{message}"
    );
}

#[test]
fn puts_at_once_lose_nothing() {
    let (app, directory) = over(&[]);
    std::thread::scope(|scope| {
        for n in 0..16 {
            let app = &app;
            scope.spawn(move || {
                put(app, "local", &format!("S{n}"), &format!("value {n}"));
            });
        }
    });
    assert_eq!(names(&app).len(), 16);
    for n in 0..16 {
        let value = resolve(&app, "local", &format!("S{n}")).unwrap();
        assert_eq!(value, format!("value {n}"));
    }
    let mode = std::fs::metadata(directory.path().join(".env.local")).unwrap();
    assert_eq!(
        mode.permissions().mode() & 0o777,
        0o600,
        "a new file is its owner's"
    );
}

#[test]
fn a_link_stays_one() {
    let (app, directory) = over(&[("shared", "ONE=1\n")]);
    let link = directory.path().join(".env.local");
    std::os::unix::fs::symlink(Path::new("shared"), &link).unwrap();
    put(&app, "local", "TWO", "2");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(text(&directory, "shared"), "ONE=1\nTWO=2\n");
}

#[test]
fn a_directory_that_is_none_is_told_at_the_start() {
    let database = crate::harness::Database::migrated();
    let clock = agent_runtime::ids::Clock::system();
    let seeds = crate::harness::seeds(&clock);
    let mut options = crate::harness::options(&database.url(), &seeds);
    options.secrets = Options::Dotenv(DotenvOptions {
        directory: "/nowhere/at/all".into(),
        files: vec![".env".to_owned()],
        environment: "local".to_owned(),
        tenant_id: seeds.tenant_id,
    });
    let started = agent_runtime::server::Server::start(options, &clock, &crate::harness::log());
    let error = started.err().expect("it did not start");
    assert!(
        error.message().contains("SVC_SECRETS_DOTENV_DIR"),
        "{error}"
    );
}

#[test]
fn a_put_that_would_make_the_file_unreadable_is_refused() {
    let most = 4 * 1024 * 1024;
    let comment = format!("#{}\n", "x".repeat(most - 100));
    let (app, directory) = over(&[(".env.local", &format!("ONE=1\n{comment}"))]);
    let error = app
        .put(
            &path("local", "TWO"),
            &json!({"value": "s3cret".repeat(20)}),
        )
        .expect_error(409, "conflict");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains(".env.local") && !message.contains("s3cret"),
        "{message}"
    );
    assert_eq!(names(&app), ["ONE"]);
    put(&app, "local", "TWO", "2");
    assert_eq!(names(&app), ["ONE", "TWO"]);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside the file");
}

#[test]
fn a_pipe_in_a_files_place_is_told_and_holds_nobody_up() {
    let (app, directory) = over(&[(".env", "ONE=1\n")]);
    let pipe = directory.path().join(".env.local");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let read = resolve(&app, "local", "ONE");
    let Err(Unreadable::Unavailable(sentence)) = read else {
        panic!("{read:?}");
    };
    assert!(sentence.contains("no plain file"), "{sentence}");
    app.put(&path("local", "ONE"), &json!({"value": "x"}))
        .expect_error(503, "secrets-unavailable");
}
