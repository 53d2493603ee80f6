//! A provider's keys: kept, fetched again where one is not known, and no more often than that.

use super::Fixture;
use crate::harness::identity_provider::{Instead, Signer};
use agent_runtime::oidc::Code;
use serde_json::json;
use std::time::Duration;

fn rotate(fixture: &Fixture, id: &str) {
    fixture.says(|says| {
        says.signer = Signer::ec(id);
        says.keys = vec![says.signer.listed()];
    });
}

#[test]
fn a_rotation_refuses_nobody() {
    let fixture = Fixture::start();
    fixture.sign_in().unwrap();
    rotate(&fixture, "key-2");
    fixture.clock.advance(Duration::from_secs(31));
    fixture.sign_in().unwrap();
    assert_eq!(fixture.provider.asked("/keys"), 2);
    fixture.sign_in().unwrap();
    assert_eq!(fixture.provider.asked("/keys"), 2);
}

#[test]
fn an_old_key_serves_for_a_day() {
    let fixture = Fixture::start();
    fixture.sign_in().unwrap();
    // The provider lists another key, and still signs with the first.
    fixture.says(|says| says.keys = vec![Signer::ec("key-2").listed()]);
    for _ in 0..2 {
        fixture.clock.advance(Duration::from_secs(3601));
        fixture.says(|says| {
            let moved = fixture.clock.now().unix_timestamp();
            says.claims.extend(
                json!({"iat": moved, "exp": moved + 300})
                    .as_object()
                    .unwrap()
                    .clone(),
            );
        });
        fixture.sign_in().unwrap();
    }
    assert_eq!(fixture.provider.asked("/keys"), 3);
    fixture.clock.advance(Duration::from_secs(24 * 3600));
    let moved = fixture.clock.now().unix_timestamp();
    fixture.says(|says| {
        says.claims.extend(
            json!({"iat": moved, "exp": moved + 300})
                .as_object()
                .unwrap()
                .clone(),
        );
    });
    let fault = fixture.sign_in().unwrap_err();
    assert_eq!(fault.code(), Code::KeyUnknown, "{fault}");
}

#[test]
fn made_up_key_ids_make_nobody_ask_more_than_twice_a_minute() {
    let fixture = Fixture::start();
    fixture.sign_in().unwrap();
    for number in 0..40 {
        fixture.says(|says| {
            drop(
                says.header
                    .insert("kid".to_owned(), json!(format!("made-up-{number}"))),
            )
        });
        let fault = fixture.sign_in().unwrap_err();
        assert_eq!(fault.code(), Code::KeyUnknown, "{fault}");
    }
    // The first sign-in asked, and the flood within 30 s of it did not.
    assert_eq!(fixture.provider.asked("/keys"), 1);
    fixture.clock.advance(Duration::from_secs(31));
    for _ in 0..40 {
        fixture.sign_in().unwrap_err();
    }
    assert_eq!(fixture.provider.asked("/keys"), 2);
    // Those who sign with a key that is listed go on meanwhile.
    fixture.says(|says| drop(says.header.remove("kid")));
    fixture.sign_in().unwrap();
}

#[test]
fn a_list_of_keys_that_is_none_is_refused_and_the_known_one_serves() {
    let fresh = |change: Instead| {
        let fixture = Fixture::with_timeout(Duration::from_millis(2000));
        fixture.says(|says| drop(says.instead.insert("/keys", change)));
        fixture.sign_in().unwrap_err().code()
    };
    let answer = |status, body: &str| Instead::Answer(status, None, body.to_owned());
    assert_eq!(fresh(Instead::Huge), Code::AnswerMalformed);
    assert_eq!(fresh(Instead::Hang), Code::Unavailable);
    assert_eq!(fresh(answer(200, "[]")), Code::AnswerMalformed);
    assert_eq!(fresh(answer(200, r#"{"keys": {}}"#)), Code::AnswerMalformed);
    assert_eq!(fresh(answer(404, "")), Code::AnswerMalformed);
    assert_eq!(fresh(answer(500, "")), Code::Unavailable);
    assert_eq!(
        fresh(Instead::Answer(
            302,
            Some("/other".to_owned()),
            String::new()
        )),
        Code::Redirected
    );
    // Keys that are no keys are passed over.
    for keys in [
        json!([]),
        json!([7, {}, {"kty": "RSA"}, {"kty": "oct", "k": "AAAA", "kid": "key-1"}]),
    ] {
        assert_eq!(
            fresh(answer(200, &json!({"keys": keys}).to_string())),
            Code::KeyUnknown
        );
    }
    // What is known serves while the list cannot be read, for a day at most.
    let fixture = Fixture::start();
    fixture.sign_in().unwrap();
    fixture.says(|says| drop(says.instead.insert("/keys", answer(500, ""))));
    let later = |hours: u64| {
        fixture.clock.advance(Duration::from_secs(hours * 3600));
        let moved = fixture.clock.now().unix_timestamp();
        fixture.says(|says| {
            says.claims.extend(
                json!({"iat": moved, "exp": moved + 300})
                    .as_object()
                    .unwrap()
                    .clone(),
            );
        });
        fixture.sign_in()
    };
    later(2).unwrap();
    assert_eq!(later(24).unwrap_err().code(), Code::Unavailable);
}

#[test]
fn a_token_without_a_key_id_is_tried_with_the_keys_that_are_listed() {
    let fixture = Fixture::start();
    fixture.says(|says| {
        says.header
            .insert("kid".to_owned(), serde_json::Value::Null);
        let further = [
            Signer::ec("key-2").listed(),
            Signer::rsa("key-3", false).listed(),
        ];
        says.keys.splice(0..0, further);
    });
    fixture.sign_in().unwrap();
    // A list without ids that rotated is read again.
    fixture.says(|says| {
        says.signer = Signer::ec("key-4");
        let mut key = says.signer.listed();
        key.as_object_mut().unwrap().remove("kid");
        says.keys = vec![key];
    });
    assert_eq!(fixture.sign_in().unwrap_err().code(), Code::KeyUnknown);
    fixture.clock.advance(Duration::from_secs(31));
    fixture.sign_in().unwrap();
}

#[test]
fn those_who_sign_in_at_once_ask_once() {
    let fixture = Fixture::start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| fixture.sign_in().unwrap());
        }
    });
    assert_eq!(
        fixture.provider.asked("/.well-known/openid-configuration"),
        1
    );
    assert_eq!(fixture.provider.asked("/keys"), 1);
    assert_eq!(fixture.provider.asked("/token"), 8);
}
