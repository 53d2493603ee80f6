//! README.md: the key pair that its commands make signs license keys that a build of it takes.

use crate::harness::run;
use std::process::Command;

const PAGE: &str = include_str!("../../README.md");

#[test]
fn the_readme_makes_a_key_pair_that_signs_license_keys() {
    let make_pair = PAGE
        .lines()
        .find(|line| line.contains("openssl genpkey"))
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("bash")
        .args(["-euo", "pipefail", "-c", make_pair])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let keys = std::fs::read_to_string(directory.path().join("license-keys.pub")).unwrap();
    let is_hexadecimal = keys.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(keys.len() == 64 && is_hexadecimal, "{keys:?}");

    // The command of the page, with this pair.
    let issuer = directory.path().join("issuer.pem");
    let sign = "agent-runtime license sign --key issuer.pem --licensee \"Example Ltd\" --days 365";
    assert!(PAGE.contains(sign));
    let issuer = issuer.to_str().unwrap();
    let arguments = ["license", "sign", "--key", issuer];
    let more = ["--licensee", "Example Ltd", "--days", "365"];
    let signed = run(&[arguments, more].concat(), &[]).expect(0);
    assert!(signed.out.starts_with("svc_lk_"), "{}", signed.out);
}
