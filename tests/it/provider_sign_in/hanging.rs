//! A provider that hangs: it holds its own sign-ins up, and nothing else.

use super::{Scene, register_client, session_of};
use crate::harness::identity_provider::{CLIENT_ID, CLIENT_SECRET, IdentityProvider, Instead};
use crate::harness::webhooks::{ENDPOINTS, SIGNING};
use serde_json::json;
use std::sync::mpsc;
use std::time::Duration;

const DOCUMENT: &str = "/.well-known/openid-configuration";

/// Longer than the test takes: nobody gives up by itself.
const FOR_EVER: Duration = Duration::from_secs(300);
/// As long as a busy machine may take for an answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// Browsers that begin a sign-in at once. The server has eight request threads.
const BROWSERS: usize = 8;

#[test]
fn a_provider_that_hangs_holds_up_its_own_sign_ins_alone() {
    let scene = Scene::start_with(|options| {
        options.sign_in.provider_timeout = FOR_EVER;
        options.webhooks.development = true;
    });
    let hanging = IdentityProvider::start();
    hanging.says().instead.insert(DOCUMENT, Instead::Hang);
    let (named, client) = (
        (hanging.issuer(), "Hanging accounts"),
        (CLIENT_ID, CLIENT_SECRET),
    );
    let id = register_client(&scene.app, named, client, json!({"emailDomains": []}));
    let start = format!("/v1/sign-in/providers/{id}/start");
    scene.app.put_secret("SIGNING", SIGNING);
    let (answered, answers) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..BROWSERS {
            let (answered, page) = (answered.clone(), scene.app.with_token(None));
            let start = &start;
            scope.spawn(move || {
                let _ = answered.send(page.post_from_page(start, &json!({})));
            });
        }
        // Somebody finds no room: as many as there is room for wait for the provider.
        let refused = answers.recv_timeout(DEADLINE).unwrap();
        refused.expect_error(503, "overloaded");
        session_of(&scene.sign_in());
        let receiver = json!({"url": "http://127.0.0.1:9/", "events": ["approval.requested"],
            "secretRef": {"envName": "live", "name": "SIGNING"}});
        scene.app.post(ENDPOINTS, &receiver).expect(201);
        scene.app.put_secret("ANOTHER", "a");
        let early: Vec<_> = answers.try_iter().collect();
        let mut early = early.iter().map(|answer| answer.status);
        assert!(early.all(|status| status == 503), "somebody was let in");
        assert_eq!(hanging.asked(DOCUMENT), 1, "they wait for one answer");
        // Its connections end.
        drop(hanging);
    });
    drop(answered);
    let told = |answer: crate::harness::Answer| answer.json()["error"]["code"].clone();
    let rest: Vec<_> = answers.iter().map(told).collect();
    assert!(rest.contains(&json!("provider-unavailable")), "{rest:?}");
}
