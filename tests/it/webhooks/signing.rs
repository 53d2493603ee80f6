//! Signatures, checked by an implementation of the test's own, and secrets that come and go.

use super::world::{SECRET, World};
use crate::harness::{Received, Receiver};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;

/// HMAC (RFC 2104) with SHA-256.
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let pad = |with: u8| -> Vec<u8> {
        (0..64)
            .map(|place| key.get(place).unwrap_or(&0) ^ with)
            .collect()
    };
    let inner = Sha256::digest([pad(0x36), message.to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

fn signature(secret: &str, one: &Received) -> String {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let signed = format!(
        "{}.{}.{}",
        one.header("webhook-id"),
        one.header("webhook-timestamp"),
        one.body
    );
    format!("v1,{}", STANDARD.encode(hmac(&key, signed.as_bytes())))
}

fn secret(byte: u8) -> String {
    format!("whsec_{}", STANDARD.encode([byte; 32]))
}

#[track_caller]
fn check_signed(one: &Received, secrets: &[&str]) {
    let expected: Vec<String> = secrets
        .iter()
        .map(|secret| signature(secret, one))
        .collect();
    assert_eq!(one.header("webhook-signature"), expected.join(" "));
}

#[test]
fn the_signature_is_the_standards() {
    let world = World::new();
    let receiver = Receiver::good();
    world.endpoint(&receiver.url());
    world.run();
    let all = receiver.once(1);
    check_signed(&all[0], &[SECRET]);
    let sent: i64 = all[0].header("webhook-timestamp").parse().unwrap();
    assert!((world.app.clock.now().unix_timestamp() - sent).abs() < 20);
}

#[test]
fn two_secrets_sign_while_one_takes_the_others_place() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    let newer = secret(1);
    world.secret("hook", &newer);
    world.run();
    check_signed(&receiver.once(1)[0], &[&newer, SECRET]);
    // Another reference: the earlier one's value signs beside it.
    let newest = secret(2);
    world.secret("other", &newest);
    let body = json!({"secretRef": {"envName": "test", "name": "other"}});
    world
        .app
        .patch(&format!("/v1/webhook-endpoints/{endpoint}"), &body)
        .expect(200);
    world.run();
    check_signed(&receiver.once(2)[1], &[&newest, &newer]);
    world.app.clock.advance(Duration::from_secs(25 * 3600));
    world.run();
    check_signed(&receiver.once(3)[2], &[&newest]);
}

#[test]
fn the_secret_that_a_receiver_has_signs_however_often_the_next_one_was_put() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    let newest = secret(2);
    world.secret("other", &secret(1));
    world.secret("other", &newest);
    let body = json!({"secretRef": {"envName": "test", "name": "other"}});
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    world.app.patch(&path, &body).expect(200);
    world.run();
    check_signed(&receiver.once(1)[0], &[&newest, SECRET]);
    // One that cannot be read any more leaves its place.
    world.app.delete("/v1/secrets/test/hook").expect(204);
    world.run();
    check_signed(&receiver.once(2)[1], &[&newest, &secret(1)]);
}

#[test]
fn a_secret_that_is_gone_or_broken_holds_deliveries_back_until_it_is_mended() {
    let world = World::new();
    let receiver = Receiver::good();
    let endpoint = world.endpoint(&receiver.url());
    world.app.delete("/v1/secrets/test/hook").expect(204);
    world.run();
    let delivery = world.attempted(&endpoint, 1);
    assert_eq!(delivery["lastError"], "secret-unavailable");
    let message = delivery["attempts"][0]["message"].as_str().unwrap();
    assert!(message.contains("hook"), "{message}");
    world.secret("hook", "not-a-signing-secret");
    world.run_now();
    let delivery = world.attempted(&endpoint, 2);
    assert_eq!(delivery["lastError"], "secret-unavailable");
    assert!(!delivery.to_string().contains("not-a-signing-secret"));
    assert_eq!(receiver.received().len(), 0);
    let mended = secret(3);
    world.secret("hook", &mended);
    world.run_now();
    let delivery = world.delivered(&endpoint);
    assert_eq!(delivery["attemptCount"], 3);
    // The broken one before it is left out.
    check_signed(&receiver.once(1)[0], &[&mended]);
}
