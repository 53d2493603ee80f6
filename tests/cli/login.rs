//! `sign-in-code`, `login` and `logout`: from a code that the operator makes to a key that commands use.

use crate::harness::{Running, Said, command, directory, run};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Runs a command to its end with a text on its standard input.
fn fed(arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Said {
    let mut command = command(arguments, variables);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_code_of_the_operator_becomes_a_key_that_commands_use_until_it_is_revoked() {
    let dir = directory();
    let home = dir.path().to_str().unwrap();
    let operator = [("XDG_DATA_HOME", home), ("HOME", "/nonexistent")];
    let mut dev = Running::start(command(&["dev", "--port", "0"], &operator));
    dev.line_with("Ctrl-C stops everything.");
    let kept = fs::read_to_string(dir.path().join("agent-runtime/dev.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    let url = kept["url"].as_str().unwrap();
    let person = tempfile::tempdir().unwrap();
    // Somebody on a host where no `dev` is.
    let variables = [("HOME", person.path().to_str().unwrap())];

    // The first admin has no email.
    let (user, tenant) = whose(dir.path(), url);
    let unknown = run(
        &["sign-in-code", "--email", "nobody@example.com"],
        &operator,
    )
    .expect(1);
    assert!(
        unknown.err.contains("There is no such person"),
        "{}",
        unknown.err
    );
    run(&["sign-in-code"], &operator).expect(2);
    has_a_link_where_people_can_open_it(&user, &operator);
    let code = run(&["sign-in-code", "--user-id", &user, "--json"], &operator);
    let code = code.expect(0).json();
    assert_eq!(code["link"], serde_json::Value::Null);
    assert_eq!(code["tenantId"].as_str(), Some(tenant.as_str()));
    let code = code["code"].as_str().unwrap().to_owned();
    assert!(code.starts_with("svc_en_"));

    let login = ["login", "--url", url, "--enrol", "--json"];
    fed(&login, &variables, "svc_en_other").expect(1);
    fed(&login, &variables, " ").expect(2);
    let said = fed(&login, &variables, &format!("{code}\n")).expect(0);
    assert!(
        !said.out.contains("svc_") && !said.err.contains("svc_"),
        "{said:?}"
    );
    let said = said.json();
    assert_eq!(said["userId"].as_str(), Some(user.as_str()));
    let file = said["keyFile"].as_str().unwrap().to_owned();
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(fs::read_to_string(&file).unwrap().starts_with("svc_bt_"));
    fed(&login, &variables, &code).expect(1);

    // The one server with a key is asked without --url; a wrong key takes no place.
    run(&["agents", "--json"], &variables).expect(0);
    let refused = fed(&["login", "--url", url], &variables, "svc_bt_wrong").expect(1);
    assert!(refused.err.contains("unauthenticated"), "{}", refused.err);
    run(&["agents", "--json"], &variables).expect(0);
    let elsewhere = ["agents", "--url", "http://127.0.0.1:1"];
    let none = run(&elsewhere, &variables).expect(2);
    assert!(none.err.contains("agent-runtime login"), "{}", none.err);

    let kept = fs::read_to_string(&file).unwrap();
    run(&["logout", "--revoke"], &variables).expect(0);
    run(&["logout"], &variables).expect(2);
    let gone = fed(&["login", "--url", url], &variables, &kept).expect(1);
    assert!(gone.err.contains("unauthenticated"), "{}", gone.err);
    dev.signal(Signal::INT);
    assert_eq!(dev.wait(), Some(0));
}

/// The code is all of the output, whatever the link says beside it.
fn has_a_link_where_people_can_open_it(user: &str, operator: &[(&str, &str)]) {
    let asked = |further: &[&str], settings: &[(&str, &str)]| {
        let whom = ["sign-in-code", "--user-id", user];
        let variables = [operator, settings].concat();
        run(&[&whom[..], further].concat(), &variables).expect(0)
    };
    let here = ("SVC_PUBLIC_URL", "https://agents.example.com");
    let said = asked(&[], &[here]);
    let code = said.out.trim();
    assert!(
        code.starts_with("svc_en_") && !code.contains('\n'),
        "{code}"
    );
    let link = format!("\nhttps://agents.example.com/console/sign-in#code={code}\n");
    assert!(said.err.contains(&link), "{}", said.err);
    let said = asked(&["--json"], &[here]).json();
    let code = said["code"].as_str().unwrap();
    let link = format!("https://agents.example.com/console/sign-in#code={code}");
    assert_eq!(said["link"].as_str(), Some(link.as_str()));
    for without in [&[][..], &[here, ("SVC_CONSOLE", "false")]] {
        let said = asked(&[], without);
        assert!(said.out.starts_with("svc_en_"), "{}", said.out);
        assert!(!said.err.contains("://"), "{}", said.err);
    }
}

/// A command at a terminal of its own, from which a shell reads afterwards what the terminal is set to.
fn at_a_terminal(arguments: &str) -> Running {
    let program = env!("CARGO_BIN_EXE_agent-runtime");
    // The shell goes on after Ctrl-C, which the terminal sends to both.
    let story =
        format!("trap : INT; {program} {arguments}; echo \"ended with $?\"; stty -a; read -r next");
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--command", &story, "/dev/null"])
        .env("HOME", "/nonexistent")
        .env("SHELL", "/bin/sh")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Running::start(command)
}

#[test]
fn a_terminal_shows_nothing_of_a_pasted_key_and_is_as_before_afterwards() {
    let login = "login --url http://127.0.0.1:1";
    for (kind, prompt) in [
        ("", "Paste the key"),
        ("--enrol", "Paste the enrolment code"),
    ] {
        let mut running = at_a_terminal(&format!("{login} {kind}"));
        let mut keyboard = running.stdin();
        running.line_with(prompt);
        keyboard.write_all(b"svc_pasted\x1a\x1csecret\n").unwrap();
        running.line_with("ended with 1");
        shows_what_is_typed(&mut running);
        let seen = running.seen();
        assert!(
            !seen.contains("svc_pasted") && !seen.contains("secret"),
            "{seen}"
        );
        // As a shell has it afterwards.
        keyboard.write_all(b"typed afterwards\n").unwrap();
        running.line_with("typed afterwards");
    }
}

#[test]
fn a_terminal_shows_again_what_is_typed_after_ctrl_c() {
    let mut running = at_a_terminal("login --url http://127.0.0.1:1");
    let mut keyboard = running.stdin();
    running.line_with("Paste the key");
    keyboard.write_all(b"svc_half\x03").unwrap();
    running.line_with("ended with 130");
    shows_what_is_typed(&mut running);
    assert!(!running.seen().contains("svc_half"));
    // Nothing was pasted at all.
    let mut running = at_a_terminal("login --url http://127.0.0.1:1");
    let mut keyboard = running.stdin();
    running.line_with("Paste the key");
    keyboard.write_all(b"\n").unwrap();
    running.line_with("There is no code or key");
    running.line_with("ended with 2");
    shows_what_is_typed(&mut running);
}

/// What `stty` says of the terminal.
fn shows_what_is_typed(running: &mut Running) {
    running.line_with("susp = ^Z");
    running.line_with(" echo ");
}

/// The user of `dev`, and the tenant.
fn whose(dev: &std::path::Path, url: &str) -> (String, String) {
    let token = fs::read_to_string(dev.join("agent-runtime/token")).unwrap();
    let mut answer = ureq::get(&format!("{url}/v1/identity/me"))
        .header("authorization", format!("Bearer {}", token.trim()))
        .call()
        .unwrap();
    let me: serde_json::Value =
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap();
    let text = |name: &str| me[name].as_str().unwrap().to_owned();
    (text("id"), text("tenantId"))
}
