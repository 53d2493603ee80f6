//! Commands on the database find the private one of `dev` by themselves; what `dev` keeps serves
//! nothing else.

use crate::harness::{Running, command, database, directory, run};
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::Path;

const FOUND: &str = "Using the database of dev in ";

#[test]
fn commands_find_the_database_of_dev_and_say_so() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let variables = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("authorization is off");
    dev.line_with("on, and so are webhooks");
    dev.line_with("Ctrl-C stops everything.");

    let backup = dir.path().join("backup");
    let backup = backup.to_str().unwrap();
    for arguments in [
        &["migrate", "--check", "--json"][..],
        &["tenant", "create", "--name", "Another", "--json"],
        &["audit", "verify", "--json"],
        &["backup", backup, "--json"],
        &["doctor", "--json"],
    ] {
        let said = run(arguments, &variables).expect(0);
        assert_eq!(said.err.lines().count(), 1, "{arguments:?}: {}", said.err);
        assert!(said.err.contains(FOUND), "{arguments:?}: {}", said.err);
        said.json();
    }
    let said = run(&["authz", "verify"], &variables).expect(1);
    assert!(said.err.contains("Authorization is off"), "{}", said.err);

    // What replaces the content of a database never finds one.
    let said = run(&["restore", "--dry-run", backup], &variables).expect(1);
    assert!(said.err.contains("SVC_DATABASE_URL"), "{}", said.err);
    assert!(!said.err.contains(FOUND), "{}", said.err);

    // Settings win, and so does production.
    let other = [
        variables[0],
        ("SVC_DEV", "true"),
        ("SVC_DATABASE_URL", "postgres://127.0.0.1:1/other"),
    ];
    let said = run(&["migrate", "--check"], &other).expect(1);
    assert!(!said.err.contains(FOUND), "{}", said.err);
    let named = ["migrate", "--check", "--data-dir", home];
    let said = run(&named, &other).expect(2);
    assert!(said.err.contains("given twice"), "{}", said.err);
    let said = run(&["migrate"], &[variables[0], ("SVC_DEV", "false")]).expect(1);
    assert!(
        said.err.contains("SVC_DATABASE_URL is required"),
        "{}",
        said.err
    );

    refuses_keys(&dir.path().join("agent-runtime"));
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
    let said = run(&["migrate", "--check"], &variables).expect(1);
    for part in ["is not running", "agent-runtime dev", "SVC_DATABASE_URL"] {
        assert!(said.err.contains(part), "{}", said.err);
    }
}

/// A server outside development does not take the keys of `dev`.
fn refuses_keys(data: &Path) {
    let (wrapping, binding) = (data.join("secrets.key"), data.join("aad.key"));
    let given = [
        ("SVC_SECRETS_BACKEND", "postgres"),
        ("SVC_SECRETS_BACKEND_KMS", "local"),
        ("SVC_SECRETS_LOCAL_KEY_PATH", wrapping.to_str().unwrap()),
        ("SVC_SECRETS_AAD_KEY_PATH", binding.to_str().unwrap()),
    ];
    let told = "names a key that agent-runtime dev made";
    let said = run(&["serve"], &given).expect(78);
    assert_eq!(said.err.matches(told).count(), 2, "{}", said.err);
    let development = [&given[..], &[("SVC_DEV", "true")]].concat();
    run(&["check-config"], &development).expect(0);
}

/// Others may use that database, and could not read what is wrapped with keys that are here alone.
#[test]
fn a_database_that_is_not_of_dev_gets_no_secret_under_its_keys() {
    let dir = directory();
    let variables = [
        ("XDG_DATA_HOME", dir.path().to_str().unwrap()),
        ("HOME", "/nonexistent"),
        ("SVC_DATABASE_URL", &database()),
    ];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &variables));
    dev.line_with("off, and so are webhooks");
    dev.line_with("Ctrl-C stops everything.");
    assert!(!dir.path().join("agent-runtime/secrets.key").exists());
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

#[test]
fn a_directory_and_a_port_are_taken_as_named() {
    let dir = directory();
    let home = dir.path().join("one");
    let home = home.to_str().unwrap();
    let variables = [("HOME", "/nonexistent")];
    let named = |arguments: &[&str]| {
        let all = [arguments, &["--data-dir", home]].concat();
        run(&all, &variables)
    };
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = named(&["dev", "--port", &port]).expect(1);
    let told = format!("Port {port} is taken");
    assert!(said.err.contains(&told), "{}", said.err);
    assert!(!Path::new(home).exists(), "nothing was started");
    let said = named(&["migrate", "--check"]).expect(1);
    let told = format!("agent-runtime dev --data-dir {home}");
    assert!(said.err.contains(&told), "{}", said.err);

    let dev = ["dev", "--port", "0", "--data-dir", home];
    let mut dev = Running::start(command(&dev, &variables));
    dev.line_with(&format!(" run --data-dir {home} assistant"));
    dev.line_with("Ctrl-C stops everything.");
    let said = named(&["run", "assistant", "Hello"]).expect(0);
    assert!(said.out.contains("Hello"), "{}", said.out);
    named(&["doctor"]).expect(0);
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}
