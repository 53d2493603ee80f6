//! Restarts, rotation of values and of keys, and keys that are away.

use super::*;
use crate::harness::eventually;

#[test]
fn a_restart_and_a_replica_read_what_was_put() {
    let app = App::start_with_secrets();
    put(&app, "prod", "A", "a value");
    let replica = app.replica(|_| {});
    assert_eq!(resolve(&replica, "prod", "A").unwrap(), "a value");
    put(&replica, "prod", "A", "another");
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "another", "at once");
    app.delete(&path("prod", "A")).expect(204);
    put(&app, "prod", "A", "of a new one, again version 1");
    let read = resolve(&replica, "prod", "A").unwrap();
    assert_eq!(read, "of a new one, again version 1");
}

#[test]
fn the_value_before_signs_for_a_day() {
    let app = App::start_with_secrets();
    put(&app, "prod", "A", "first");
    assert_eq!(signing(&app, "A"), ["first"]);
    app.clock.advance(Duration::from_secs(30 * 3600));
    put(&app, "prod", "A", "second");
    assert_eq!(signing(&app, "A"), ["second", "first"]);
    app.clock.advance(Duration::from_secs(24 * 3600 - 60));
    assert_eq!(signing(&app, "A"), ["second", "first"]);
    put(&app, "prod", "A", "third");
    assert_eq!(signing(&app, "A"), ["third", "second"], "two at most");
    app.clock.advance(Duration::from_secs(24 * 3600));
    assert_eq!(signing(&app, "A"), ["third"]);
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "third");
}

#[test]
fn a_key_that_is_gone_is_told_at_a_read_and_returns() {
    let keys = Keys::new();
    let app = start(&keys);
    put(&app, "prod", "A", "a value");
    put(&app, "prod", "B", "first");
    let rotated = keys.rotated();
    let replica = app.replica(|options| options.secrets = rotated.options());
    assert_eq!(resolve(&replica, "prod", "A").unwrap(), "a value");
    let without = Keys {
        previous: None,
        ..rotated
    };
    let replica = app.replica(|options| options.secrets = without.options());
    let Err(Unreadable::Unavailable(sentence)) = resolve(&replica, "prod", "A") else {
        panic!("the key is gone");
    };
    assert!(
        sentence.contains("SVC_SECRETS_LOCAL_PREVIOUS_KEY_PATH"),
        "{sentence}"
    );
    let found = backend(&replica).exists(app.seeds.tenant_id, &at("prod", "A"));
    assert_eq!(found, Ok(true), "it stands");
    replica.get(&path("prod", "A")).expect(200);
    // A new value is wrapped by the key that is there; the one before it cannot sign beside it.
    put(&replica, "prod", "B", "second");
    assert_eq!(signing(&replica, "B"), ["second"]);
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "a value");
}

#[test]
fn data_keys_are_wrapped_anew_and_the_previous_key_is_dispensable() {
    let keys = Keys::new();
    let app = start(&keys);
    let (other_tenant, other_user) = other_tenant(&app);
    for n in 0..105 {
        put(&app, "prod", &format!("S{n}"), &format!("value {n}"));
    }
    put(&app, "prod", "S0", "value 0, the second");
    put(&app, "prod", "LOST", "lost");
    let mut client = app.database.client();
    let damage =
        "update secret_versions set ciphertext = ciphertext || '\\x00' where name = 'LOST'";
    client.execute(damage, &[]).unwrap();
    let rotated = keys.rotated();
    let replica = app.replica(|options| options.secrets = rotated.options());
    let mut steps = 0;
    let dry = backend(&replica).rewrap(true, |_| steps += 1).unwrap();
    assert_eq!((dry.versions, dry.current, dry.rewrapped), (107, 0, 106));
    assert_eq!(steps, 107);
    let told = backend(&replica).rewrap(false, |_| {}).unwrap();
    assert_eq!((told.versions, told.current, told.rewrapped), (107, 0, 106));
    assert_eq!(told.unreadable.len(), 1);
    assert!(told.unreadable[0].contains("LOST"), "{told:?}");
    assert!(told.unreadable[0].contains(&app.seeds.tenant_id.to_string()));
    let again = backend(&replica).rewrap(false, |_| {}).unwrap();
    assert_eq!(
        (again.versions, again.current, again.rewrapped),
        (107, 106, 0)
    );
    let without = Keys {
        previous: None,
        ..rotated
    };
    let after = app.replica(|options| options.secrets = without.options());
    let dry = backend(&after).rewrap(true, |_| {}).unwrap();
    assert_eq!((dry.versions, dry.current, dry.rewrapped), (107, 106, 0));
    assert!(dry.unreadable[0].contains("LOST"), "{dry:?}");
    assert_eq!(resolve(&after, "prod", "S104").unwrap(), "value 104");
    assert_eq!(signing(&after, "S0"), ["value 0, the second", "value 0"]);
    let nothing = backend(&after).resolve(other_tenant, &at("prod", "S1"));
    assert_eq!(nothing.map(drop), Err(Unreadable::NotFound), "{other_user}");
}

#[test]
fn a_value_leaves_memory_after_its_time_though_nobody_asks() {
    let keys = Keys {
        kept_for: Duration::from_millis(10),
        ..Keys::new()
    };
    let app = start(&keys);
    put(&app, "prod", "A", "a value");
    resolve(&app, "prod", "A").unwrap();
    eventually("the value is wiped", || {
        (backend(&app).kept() == 0).then_some(())
    });
}

#[test]
fn a_value_that_was_replaced_or_deleted_leaves_memory_at_once() {
    let app = App::start_with_secrets();
    for name in ["A", "B"] {
        put(&app, "prod", name, "a value");
        resolve(&app, "prod", name).unwrap();
    }
    let metrics = app.get("/metrics").text;
    assert!(metrics.contains("agent_runtime_secrets_in_memory 2"));
    put(&app, "prod", "A", "another");
    assert_eq!(backend(&app).kept(), 1);
    app.delete(&path("prod", "B")).expect(204);
    assert_eq!(backend(&app).kept(), 0);
}
