//! A whole sign-in in Chromium, and what a page of another site can do about it.

use super::providers::{OidcProvider, SECRET, Site, node};
use super::register_client;
use crate::harness::page::part;
use serde_json::{Value, json};
use std::process::{Command, Stdio};

/// How long the browser may take.
const MOST_S: &str = "120";

#[test]
fn a_person_signs_in_with_a_browser_and_another_site_does_nothing_in_it() {
    let (site, mut provider) = (Site::start(), OidcProvider::start());
    let client = ("agent-runtime", SECRET);
    let id = register_client(&site.app, (&provider.issuer, "npm"), client, json!({}));
    provider.serve(&site.callback(&id));
    let profile = tempfile::tempdir().unwrap();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/provider_sign_in/browser.mjs"
    );
    let told = json!({
        "browser": part("chromium/browser"),
        "profile": profile.path(),
        "isRoot": rustix::process::geteuid().is_root(),
        "origin": format!("http://{}", site.app.address()),
        "provider": id,
        "token": site.app.token(),
        "cookie": site.app.cookie(),
    });
    let run = Command::new("timeout")
        .args(["-k", "5", MOST_S])
        .arg(node())
        .arg(script)
        .arg(told.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&run.stdout),
        String::from_utf8_lossy(&run.stderr),
    );
    assert!(
        run.status.success(),
        "{out}\n{err}\n{:?}",
        site.log.with("identity provider")
    );
    let seen: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(seen["email"], json!("ada@plant.example"), "{seen}");
    let session = &seen["session"];
    let kept = json!({
        "path": "/", "secure": true, "httpOnly": true, "sameSite": "Strict", "session": true,
    });
    for (name, value) in kept.as_object().unwrap() {
        assert_eq!(&session[name], value, "{name}: {session}");
    }
    assert_eq!(
        seen["cookies"],
        json!([site.app.cookie()]),
        "the flow's cookie is gone"
    );
    assert_eq!(seen["readable"], json!(""), "no page reads a cookie");
    // Another site: what it sends is refused, and what it reads has nothing in it.
    assert_eq!(
        seen["attack"],
        json!({"start": "refused", "me": "refused", "form": 403, "image": "refused"}),
        "{seen}"
    );
    assert_eq!(
        seen["after"],
        json!("ada@plant.example"),
        "the session goes on"
    );
    assert_eq!(seen["back"], json!("flow-expired"), "{seen}");
}
