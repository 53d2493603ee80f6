//! Rows that were moved, copied or altered cannot be read, and say so.

use super::*;

/// A change of the row of secret A, version 1, in SQL.
fn altered(app: &App, change: &str) -> Result<String, Unreadable> {
    let mut client = app.database.client();
    let version = "tenant_id = $1 and environment = 'prod' and name = 'A' and version = 1";
    let sql = format!("update secret_versions set {change} where {version}");
    let touched = client.execute(&sql, &[&app.seeds.tenant_id]).unwrap();
    assert_eq!(touched, 1, "{change}");
    resolve(app, "prod", "A")
}

#[test]
fn each_column_that_is_altered_makes_a_row_unreadable() {
    let app = App::start_with_secrets();
    let flip = |column: &str, at: usize| {
        format!("{column} = set_byte({column}, {at}, get_byte({column}, {at}) # 1)")
    };
    let mut changes = vec![
        flip("nonce", 0),
        flip("ciphertext", 0),
        flip("wrapped_data_key", 0),
        flip("wrapped_data_key", 20),
        flip("wrapped_data_key", 60),
        "ciphertext = ciphertext || '\\x00'".to_owned(),
        "created_at = created_at + interval '1 microsecond'".to_owned(),
    ];
    let (_, other_user) = other_tenant(&app);
    let colleague = "insert into users (tenant_id, user_id, display_name, created_at)
        values ($1, $2, 'Other', now())";
    app.database
        .client()
        .execute(colleague, &[&app.seeds.tenant_id, &other_user])
        .unwrap();
    changes.push(format!("created_by = '{other_user}'"));
    for change in changes {
        put(&app, "prod", "A", "a value");
        assert_eq!(resolve(&app, "prod", "A").unwrap(), "a value");
        // What was read just now is of no use for another row.
        let sentence = is_altered(altered(&app, &change));
        assert!(sentence.contains("moved, copied or altered"), "{sentence}");
        assert!(sentence.contains("A in the environment prod"), "{sentence}");
        assert!(!sentence.contains("a value"), "{sentence}");
        app.delete(&path("prod", "A")).expect(204);
    }
    put(&app, "prod", "A", "a value");
    let Err(Unreadable::Unavailable(sentence)) = altered(&app, "wrapping_key = 'another'") else {
        panic!("a key that is not there");
    };
    assert!(sentence.contains("another"), "{sentence}");
}

#[test]
fn a_row_is_of_no_use_in_another_place() {
    let app = App::start_with_secrets();
    let (other_tenant, other_user) = other_tenant(&app);
    put(&app, "prod", "A", "of A");
    put(&app, "prod", "B", "of B");
    put(&app, "dev", "A", "of A in dev");
    let mut client = app.database.client();
    let sealed = "nonce, ciphertext, wrapping_key, wrapped_data_key";
    for (environment, name) in [("prod", "B"), ("dev", "A")] {
        let copy = format!(
            "update secret_versions v set ({sealed}) = (select {sealed} from secret_versions
                where tenant_id = v.tenant_id and environment = 'prod' and name = 'A')
             where environment = $1 and name = $2"
        );
        assert_eq!(client.execute(&copy, &[&environment, &name]).unwrap(), 1);
        let sentence = is_altered(resolve(&app, environment, name));
        assert!(sentence.contains("moved, copied or altered"), "{sentence}");
    }
    // The whole row, times and all, into another tenant's secret of the same name.
    let head = "insert into secrets
        select $1, environment, name, version, $2, created_at, updated_at from secrets
        where environment = 'prod' and name = 'A'";
    client.execute(head, &[&other_tenant, &other_user]).unwrap();
    let row = "insert into secret_versions
        select $1, environment, name, version, format, nonce, ciphertext, wrapping_key,
            wrapped_data_key, $2, created_at, wrapped_at
        from secret_versions where environment = 'prod' and name = 'A'";
    client.execute(row, &[&other_tenant, &other_user]).unwrap();
    let read = backend(&app).resolve(other_tenant, &at("prod", "A"));
    is_altered(read.map(|value| value.expose().to_owned()));
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "of A");
}

#[test]
fn an_earlier_version_cannot_be_passed_off_as_a_later_one() {
    let app = App::start_with_secrets();
    put(&app, "prod", "A", "old");
    put(&app, "prod", "A", "new");
    let mut client = app.database.client();
    let mut run = |sql: &str| assert!(client.execute(sql, &[]).unwrap() > 0, "{sql}");
    run("update secrets set version = 1");
    is_altered(resolve(&app, "prod", "A"));
    run("update secrets set version = 3");
    is_altered(resolve(&app, "prod", "A"));
    run("update secrets set version = 2");
    assert_eq!(resolve(&app, "prod", "A").unwrap(), "new");
    run("delete from secret_versions where version = 2");
    is_altered(resolve(&app, "prod", "A"));
    run("update secret_versions set version = 2");
    is_altered(resolve(&app, "prod", "A"));
    run("delete from secret_versions");
    is_altered(resolve(&app, "prod", "A"));
}

#[test]
fn another_aad_key_reads_nothing() {
    let keys = Keys::new();
    let app = start(&keys);
    put(&app, "prod", "A", "a value");
    let (database, clock, seeds) = app.stop();
    let other = Keys {
        aad: crate::harness::secrets::key(),
        ..keys.clone()
    };
    let app = App::start_on(database, clock, seeds, |options| {
        options.secrets = other.options();
    });
    let sentence = is_altered(resolve(&app, "prod", "A"));
    assert!(sentence.contains("SVC_SECRETS_AAD_KEY"), "{sentence}");
    let replica = app.replica(|options| options.secrets = keys.options());
    assert_eq!(resolve(&replica, "prod", "A").unwrap(), "a value");
}
