//! The companion package's OpenFGA.

use super::{ENV_FILE, Host, cluster, has_role, socket};
use postgres::{Client, NoTls};

const OPENFGA_ENV_FILE: &str = "etc/agent-runtime-openfga/openfga.env";

fn env_file(place: &str) -> String {
    format!(
        "OPENFGA_DATASTORE_ENGINE=postgres
OPENFGA_DATASTORE_URI=postgres:///agent_runtime_openfga?{place}&user=agent-runtime-openfga
OPENFGA_HTTP_ADDR=127.0.0.1:8280
"
    )
}

#[test]
fn the_companion_s_openfga_gets_role_and_database() {
    let host = Host::new();
    let packaged = env_file("host=/var/run/postgresql");
    host.put(OPENFGA_ENV_FILE, &packaged, 0o640);
    let before = host.tree();
    // It would be made here, and OpenFGA would ask there.
    let said = host.setup(&[]).expect(1);
    let wanted = env_file(&format!("host={}&port=5432", socket()));
    let wanted = wanted.lines().nth(1).unwrap();
    for word in ["/var/run/postgresql", "--no-openfga", wanted] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert_eq!(host.tree(), before);
    assert!(!has_role(&host.user));
    let left_alone = host.setup(&["--no-openfga"]).expect(0);
    assert!(!left_alone.out.contains("openfga"));

    let here = env_file(&format!("host={}&port=5432", socket()));
    host.put(OPENFGA_ENV_FILE, &here, 0o640);
    let said = host.setup(&[]).expect(0);
    let owner = ("agent-runtime-openfga".to_owned(), "UTF8".to_owned());
    assert_eq!(Host::database("agent_runtime_openfga"), Some(owner));
    let settings = host.read(ENV_FILE);
    assert!(
        settings.contains("\nSVC_AUTHZ_API_URL=http://127.0.0.1:8280\n"),
        "{settings}"
    );
    assert!(settings.contains("/agent_runtime_openfga\n"), "{settings}");
    // What the service makes there, as a restore does, is OpenFGA's own.
    let url = cluster().lock().unwrap().url_of("agent_runtime_openfga");
    let url = url.replace("agent_runtime@", &format!("{}@", host.user));
    let mut service = Client::connect(&url, NoTls).unwrap();
    service
        .batch_execute("create table restored (x int)")
        .unwrap();
    let owner = "select tableowner::text from pg_tables where tablename = 'restored'";
    let owner: String = service.query_one(owner, &[]).unwrap().get(0);
    assert_eq!(owner, "agent-runtime-openfga");
    assert!(
        said.json()["next"]
            .to_string()
            .contains("agent-runtime-openfga agent-runtime")
    );
    let before = host.tree();
    host.setup(&[]).expect(0);
    assert_eq!(host.tree(), before);
}

#[test]
fn a_database_elsewhere_with_openfga_s_own_here_is_told_what_to_set() {
    let host = Host::new();
    let mine = "SVC_DATABASE_URL=postgres://me@db.example.com/runs\n";
    host.put(ENV_FILE, mine, 0o640);
    let place = env_file("host=/nonexistent");
    host.put(OPENFGA_ENV_FILE, &place, 0o640);
    let said = host.setup(&["--socket", "/nonexistent"]).expect(1);
    for word in ["OPENFGA_DATASTORE_URI", "--no-openfga"] {
        assert!(said.err.contains(word), "{word}: {}", said.err);
    }
    assert!(!said.err.contains("SVC_DATABASE_URL"), "{}", said.err);
    let said = host.setup(&["--socket", "/nonexistent", "--no-openfga"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
}
