//! The key-management service `cloud-a` behind the routes: what fails is told, and nothing is lost.

use super::*;
use crate::harness::kms::{FakeKms, Fault};
use agent_runtime::error::Code;
use agent_runtime::secrets::{AadKey, KEPT_FOR, Options, PostgresOptions};

fn over(service: &FakeKms) -> Options {
    Options::Postgres(Box::new(PostgresOptions {
        kms: service.options(),
        aad_key: AadKey::new(&[7; 32]),
        kept_for: KEPT_FOR,
    }))
}

#[test]
fn while_the_service_fails_nothing_changes_and_after_it_all_goes_on() {
    let service = FakeKms::start();
    let app = App::start_with(|options| options.secrets = over(&service));
    put(&app, "prod", "A", "a value");
    let secret = path("prod", "A");
    let before = app.get(&secret).expect(200);
    for (fault, says) in [
        (Fault::Refuse(403, "PERMISSION_DENIED"), "KMS"),
        (Fault::Refuse(503, "UNAVAILABLE"), "KMS"),
        (Fault::Cut, "KMS"),
        (Fault::AnsweredOther, "checksum"),
        (Fault::Nonsense, "KMS"),
    ] {
        service.fault(fault, usize::MAX);
        let answer = app.put(&secret, &json!({"value": "s3cret-two"}));
        assert!(!answer.text.contains("s3cret"), "{}", answer.text);
        let error = answer.expect_error(503, "secrets-unavailable");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(says), "{fault:?}: {message}");
        // One that has read nothing yet.
        let replica = app.replica(|_| {});
        let read = resolve(&replica, "prod", "A");
        let Err(Unreadable::Unavailable(sentence)) = read else {
            panic!("{fault:?}: {read:?}");
        };
        assert!(sentence.contains(says), "{fault:?}: {sentence}");
        assert_eq!(app.get(&secret).expect(200), before, "{fault:?}");
        service.mend();
        assert_eq!(resolve(&replica, "prod", "A").unwrap(), "a value");
    }
    service.set_state(1, "DISABLED");
    let error = app
        .put(&secret, &json!({"value": "s3cret-two"}))
        .expect_error(503, "secrets-unavailable");
    let message = error["message"].as_str().unwrap().to_lowercase();
    assert!(message.contains("disabled"), "{message}");
    service.set_state(1, "ENABLED");
    put(&app, "prod", "A", "another");
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "another");
}

#[test]
fn a_row_that_was_altered_is_told_apart_from_a_service_that_is_away() {
    let service = FakeKms::start();
    let app = App::start_with(|options| options.secrets = over(&service));
    put(&app, "prod", "A", "a value");
    put(&app, "prod", "B", "b value");
    let copy = "update secret_versions v set (nonce, ciphertext, wrapping_key, wrapped_data_key) =
        (select nonce, ciphertext, wrapping_key, wrapped_data_key from secret_versions where name = 'A')
        where name = 'B'";
    app.database.client().execute(copy, &[]).unwrap();
    let sentence = is_altered(resolve(&app, "prod", "B"));
    assert!(sentence.contains("moved, copied or altered"), "{sentence}");
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "a value");
}

#[test]
fn a_rotation_at_the_service_is_followed() {
    let service = FakeKms::start();
    let app = App::start_with(|options| options.secrets = over(&service));
    put(&app, "prod", "A", "a value");
    service.rotate();
    // One that does not know the old primary version yet.
    let replica = app.replica(|_| {});
    let told = backend(&replica).rewrap(false, |_| {}).unwrap();
    assert_eq!((told.versions, told.current, told.rewrapped), (1, 0, 1));
    service.set_state(1, "DISABLED");
    let replica = app.replica(|_| {});
    assert_eq!(resolve(&replica, "prod", "A").unwrap(), "a value");
    service.fault(Fault::Refuse(503, "UNAVAILABLE"), usize::MAX);
    service.rotate();
    let failed = app.replica(|_| {});
    let error = backend(&failed).rewrap(false, |_| {}).unwrap_err();
    assert_eq!(error.code(), Code::SecretsUnavailable, "{error}");
}

#[test]
fn an_earlier_value_that_cannot_be_read_costs_its_time_once() {
    let service = FakeKms::start();
    let app = App::start_with(|options| options.secrets = over(&service));
    put(&app, "prod", "A", "first");
    put(&app, "prod", "A", "second");
    put(&app, "prod", "B", "of another");
    let replica = app.replica(|_| {});
    assert_eq!(resolve(&replica, "prod", "A").unwrap(), "second");
    service.fault(Fault::Hang, usize::MAX);
    let began = Instant::now();
    const LONG: Duration = Duration::from_secs(60);
    let within = |time: Duration| {
        let (tenant_id, secrets) = (app.seeds.tenant_id, backend(&replica));
        let until = || Instant::now() + time;
        let signing = secrets.signing(tenant_id, &at("prod", "A"), None, until());
        let beside = secrets.beside(tenant_id, &at("prod", "B"), until());
        let signing = signing.unwrap();
        (signing.len(), beside.unwrap().is_some())
    };
    assert_eq!(within(Duration::from_millis(300)), (1, false));
    let asked = service.counts().decrypt;
    assert_eq!(within(LONG), (1, false));
    assert_eq!(service.counts().decrypt, asked, "it just failed");
    assert!(began.elapsed() < LONG, "it is asked again");
    service.mend();
    // A put forgets what failed.
    put(&replica, "prod", "A", "third");
    assert_eq!(signing(&replica, "A"), ["third", "second"]);
}
