//! Files that are lost while the database that they belong to stands.

use super::{CREDENTIALS, ENV_FILE, Host, KEYS, cluster, has_role};
use crate::harness::run;
use postgres::{Client, NoTls};
use std::fs;
use uuid::Uuid;

const FIRST: &str = "0197f3c2-5d0e-7cc3-b7a5-0d6f2b1f9e11";
const SECOND: &str = "0197f3c2-5d0e-7cc3-b7a5-0d6f2b1f9e12";

/// A host that was set up, whose database has its schema.
fn in_use() -> (Host, Client) {
    let host = Host::new();
    host.setup(&[]).expect(0);
    let url = cluster().lock().unwrap().url_of(&host.database);
    run(
        &["migrate"],
        &[("SVC_DEV", "true"), ("SVC_DATABASE_URL", &url)],
    )
    .expect(0);
    // Rows stand without those that they belong to.
    let mut sql = Client::connect(&url, NoTls).unwrap();
    sql.batch_execute("set session_replication_role = replica")
        .unwrap();
    (host, sql)
}

fn tenant(sql: &mut Client, id: &str) {
    let id = Uuid::parse_str(id).unwrap();
    let statement = "insert into tenants (tenant_id, name, created_at) values ($1, 'One', now())";
    sql.execute(statement, &[&id]).unwrap();
}

fn value(host: &Host, name: &str) -> Option<String> {
    let settings = host.read(ENV_FILE);
    let mut lines = settings.lines();
    lines.find_map(|line| Some(line.strip_prefix(&format!("{name}="))?.to_owned()))
}

#[test]
fn a_lost_key_of_secrets_is_not_made_anew_where_something_is_sealed() {
    let (host, mut sql) = in_use();
    let key = host.path(CREDENTIALS).join(KEYS[2]);
    let first = fs::read(&key).unwrap();
    // Nothing is sealed yet: a new one is as good.
    fs::remove_file(&key).unwrap();
    host.setup(&[]).expect(0);
    assert_ne!(fs::read(&key).unwrap(), first);

    sql.batch_execute(
        "insert into secret_versions (tenant_id, environment, name, version, format, nonce,
           ciphertext, wrapping_key, wrapped_data_key, created_by, created_at, wrapped_at)
         select gen_random_uuid(), 'prod', 'NAME', 1, 1, decode(repeat('00', 12), 'hex'),
           decode(repeat('00', 40), 'hex'), 'local', decode(repeat('00', 60), 'hex'),
           gen_random_uuid(), now(), now()
         from generate_series(1, 3)",
    )
    .unwrap();
    fs::remove_file(&key).unwrap();
    let before = host.tree();
    for more in [&[][..], &["--dry-run"]] {
        let said = host.setup(more).expect(1);
        for word in [KEYS[2], &host.database, "3 sealed values", "--new-keys"] {
            assert!(said.err.contains(word), "{word}: {}", said.err);
        }
        assert_eq!(host.tree(), before);
    }
    let said = host.setup(&["--new-keys"]).expect(0);
    assert_eq!(Host::state_of(&said, KEYS[2]).as_deref(), Some("made"));
    assert_eq!(Host::state_of(&said, KEYS[3]).as_deref(), Some("kept"));
    host.setup(&[]).expect(0);
}

#[test]
fn a_lost_tenant_id_is_found_again_in_the_database() {
    let (host, mut sql) = in_use();
    tenant(&mut sql, FIRST);
    fs::remove_file(host.path(ENV_FILE)).unwrap();
    let said = host.setup(&[]).expect(0);
    assert_eq!(value(&host, "SVC_TENANT_ID").as_deref(), Some(FIRST));
    let from = format!(
        "={FIRST}, the tenant that the database {} holds",
        host.database
    );
    assert!(said.out.contains(&from), "{}", said.out);

    tenant(&mut sql, SECOND);
    host.setup(&[]).expect(0);
    fs::remove_file(host.path(ENV_FILE)).unwrap();
    let before = host.tree();
    let said = host.setup(&[]).expect(1);
    for word in [FIRST, SECOND, "2 tenants", "set SVC_TENANT_ID", ENV_FILE] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert_eq!(host.tree(), before);
    host.put(ENV_FILE, &format!("SVC_TENANT_ID={SECOND}\n"), 0o640);
    host.setup(&[]).expect(0);
    assert_eq!(value(&host, "SVC_TENANT_ID").as_deref(), Some(SECOND));
}

#[test]
fn what_the_role_made_of_its_database_does_nothing_as_the_superuser() {
    let host = Host::new();
    host.setup(&[]).expect(0);
    let url = cluster().lock().unwrap().url_of(&host.database);
    let mut sql = Client::connect(&url, NoTls).unwrap();
    let probe = format!("probe_of_{}", host.database);
    sql.batch_execute(&format!(
        "create function trap() returns uuid language plpgsql as $$
           begin execute 'create role {probe}'; return gen_random_uuid(); end $$;
         create view tenants as select trap() as tenant_id;
         create view secret_versions as select 1 as version from trap();
         alter database {} set search_path = public",
        host.database
    ))
    .unwrap();
    fs::remove_file(host.path(ENV_FILE)).unwrap();
    fs::remove_file(host.path(CREDENTIALS).join(KEYS[2])).unwrap();
    host.setup(&[]).expect(0);
    assert!(!has_role(&probe), "setup ran what the role laid out");
}
