//! What browsers get from elsewhere is checked for known faults, as the crates are: the check itself,
//! with an npm that says what the test wants.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const NOT_CHECKED: &str = "KNOWN FAULTS OF BROWSER FILES NOT CHECKED";

/// Runs the check with an npm that answers so; whether it passed, and what it said.
fn check(audit: &str, newest: &str, ci: &str) -> (bool, String) {
    let root = env!("CARGO_MANIFEST_DIR");
    let dir = tempfile::tempdir().unwrap();
    let npm = dir.path().join("npm");
    let script =
        format!("#!/bin/sh\ncase $1 in\naudit) {audit} ;;\nview) {newest} ;;\nci) {ci} ;;\nesac\n");
    std::fs::write(&npm, script).unwrap();
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let output = Command::new(format!("{root}/tests/setup/browser-files"))
        .env("PATH", path)
        .env("FILES", format!("{root}/static/docs/swagger-ui"))
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}

const CLEAN: &str = r#"echo '{"auditReportVersion": 2}'"#;
const SAME: &str = r#"mkdir node_modules && cp -r "$FILES" node_modules/swagger-ui-dist"#;

#[test]
fn a_known_fault_of_a_browser_file_fails() {
    let faulty = r#"echo '{"auditReportVersion": 2, "vulnerabilities": {}}'; exit 1"#;
    let (passed, said) = check(faulty, "echo 1.0.0", SAME);
    assert!(!passed && said.contains("has known faults"), "{said}");
    let (passed, said) = check(CLEAN, "echo 1.0.0", SAME);
    assert!(passed && said.contains("no known faults"), "{said}");
    assert!(said.contains("SWAGGER UI 1.0.0 IS OUT"), "{said}");
}

#[test]
fn a_database_that_cannot_be_reached_is_told() {
    let (passed, said) = check("echo '{}'; exit 1", "exit 1", "exit 1");
    assert!(passed && said.contains(NOT_CHECKED), "{said}");
    assert!(said.contains("BROWSER FILES NOT COMPARED"), "{said}");
}

#[test]
fn a_browser_file_that_is_not_its_packages_own_fails() {
    let other = format!("{SAME} && echo >>node_modules/swagger-ui-dist/swagger-ui-bundle.js");
    let (passed, said) = check(CLEAN, "echo 1.0.0", &other);
    let names = said.contains("swagger-ui-bundle.js is not the one of");
    assert!(!passed && names, "{said}");
}
