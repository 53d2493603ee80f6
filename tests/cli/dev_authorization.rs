//! `dev --authorization`: roles are checked, whatever was killed before.

use crate::harness::{Running, command, directory, eventually, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

/// OpenFGA as `make setup` built it.
fn openfga() -> PathBuf {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/setup");
    let parts = Command::new(setup.join("where")).output().unwrap();
    let parts = PathBuf::from(String::from_utf8(parts.stdout).unwrap().trim());
    let version = fs::read_to_string(setup.join("openfga.txt")).unwrap();
    let directory = format!("openfga-{}", version.lines().next().unwrap());
    let program = parts.join(directory).join("openfga");
    assert!(
        program.exists(),
        "OpenFGA is not set up: run tests/setup/openfga"
    );
    program
}

/// What the last start of `dev` noted of itself.
fn kept(data: &Path, what: &str) -> String {
    let kept = fs::read_to_string(data.join("dev.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    kept[what].as_str().unwrap().to_owned()
}

/// Status and body of an answer, to the caller with this token.
#[track_caller]
fn ask(data: &Path, token: Option<&str>, path: &str, body: Option<&Value>) -> (String, Value) {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-w", "\\n%{http_code}"])
        .arg(format!("{}{path}", kept(data, "url")));
    if let Some(token) = token {
        curl.args(["-H", &format!("authorization: Bearer {}", token.trim())]);
    }
    if let Some(body) = body {
        curl.args(["-H", "content-type: application/json"])
            .args(["--data", &body.to_string()]);
    }
    let answer = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    let (body, status) = answer.rsplit_once('\n').unwrap();
    let body = serde_json::from_str(body).unwrap_or(Value::Null);
    (status.to_owned(), body)
}

#[test]
fn a_person_without_a_role_is_refused_and_let_in_with_one() {
    let dir = directory();
    let data = dir.path().join("dev");
    let variables = [("HOME", "/nonexistent")];
    let (home, program) = (data.to_str().unwrap(), openfga());
    let start = || {
        let dev = ["dev", "--port", "0", "--data-dir", home, "--authorization"];
        let with = ["--openfga", program.to_str().unwrap()];
        let mut dev = Running::start(command(&[&dev[..], &with].concat(), &variables));
        dev.line_with("authorization is on");
        dev.line_with("Ctrl-C stops everything.");
        dev
    };
    let mut dev = start();
    let admin = fs::read_to_string(data.join("token")).unwrap();
    let admin = Some(admin.as_str());
    let person = json!({"email": "ann@example.org", "displayName": "Ann", "tenantRole": "member"});
    let (status, added) = ask(&data, admin, "/v1/identity/users", Some(&person));
    assert_eq!(status, "201", "{added}");
    let code = json!({"code": added["enrolment"]["code"], "name": "laptop"});
    let (_, key) = ask(&data, None, "/v1/identity/enrolments", Some(&code));
    let ann = key["token"].as_str().unwrap_or_else(|| panic!("{key}"));

    let (_, projects) = ask(&data, admin, "/v1/projects", None);
    let project = projects["data"][0]["id"].as_str().unwrap();
    let path = format!("/v1/projects/{project}");
    let (status, refused) = ask(&data, Some(ann), &path, None);
    assert_eq!(status, "403", "{refused}");
    let role = json!({"email": "ann@example.org", "role": "viewer"});
    let members = format!("{path}/memberships");
    let (status, member) = ask(&data, admin, &members, Some(&role));
    assert_eq!(status, "201", "{member}");
    assert_eq!(ask(&data, Some(ann), &path, None).0, "200");

    let verify = ["authz", "verify", "--data-dir", home];
    let said = run(&verify, &variables).expect(0);
    assert!(
        said.err.contains("Using the database of dev"),
        "{}",
        said.err
    );
    run(&["doctor", "--data-dir", home], &variables).expect(0);

    // OpenFGA goes with a `dev` that is killed; the next one has every role.
    let openfga = kept(&data, "authorizationUrl");
    dev.signal(Signal::KILL);
    dev.wait();
    eventually("OpenFGA's end", || {
        let address = openfga.trim_start_matches("http://");
        TcpStream::connect(address).is_err().then_some(())
    });
    let mut dev = start();
    assert_eq!(ask(&data, Some(ann), &path, None).0, "200");
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

#[test]
fn a_binary_that_is_not_there_is_named() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let dev = ["dev", "--port", "0", "--data-dir", home, "--authorization"];
    let said = run(&[&dev[..], &["--openfga", "/no/openfga"]].concat(), &[]).expect(1);
    assert!(said.err.contains("/no/openfga"), "{}", said.err);
    let variables = [("SVC_AUTHZ_API_URL", "http://127.0.0.1:1")];
    let said = run(&dev, &variables).expect(2);
    assert!(said.err.contains("given twice"), "{}", said.err);
    run(&["dev", "--openfga", "/no/openfga"], &[]).expect(2);
}
