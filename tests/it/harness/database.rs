//! One private Postgres a test process; a database of its own for each test.

use agent_runtime::dev::cluster::{Cluster, Options};
use agent_runtime::secret::Secret;
use agent_runtime::store::{self, connect::Manager, migrations};
use postgres::{Client, NoTls};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A database that is dropped with its last user.
#[derive(Clone)]
pub(crate) struct Database(Arc<Named>);

struct Named {
    name: String,
}

/// Where the cluster's files stand: in memory where the caller says so, since a database is some 850 files.
fn place() -> PathBuf {
    std::env::var_os("AGENT_RUNTIME_TEST_DATA")
        .map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from)
}

/// The cluster ends with the process.
fn cluster() -> &'static Mutex<Cluster> {
    static CLUSTER: OnceLock<Mutex<Cluster>> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let started = Cluster::start(Options {
            data_dir: place().join(format!("it-{}", std::process::id())),
            durable: false,
            bin_dir: std::env::var_os("AGENT_RUNTIME_TEST_POSTGRES_BIN").map(Into::into),
            search_path: std::env::var_os("PATH"),
            runtime_dir: None,
            log: super::log(),
        });
        Mutex::new(started.unwrap_or_else(|failure| panic!("{failure}")))
    })
}

fn url_of(name: &str) -> String {
    cluster().lock().unwrap().url_of(name)
}

fn admin() -> Client {
    Client::connect(&url_of("postgres"), NoTls).unwrap()
}

/// A migrated database that others are copied from.
fn template() -> &'static str {
    static TEMPLATE: OnceLock<&str> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        admin()
            .batch_execute("create database template_migrated")
            .unwrap();
        let options = store::Options {
            url: Secret::new(url_of("template_migrated")),
            pool_size: 1,
            checkout_timeout: Duration::from_secs(5),
            outage: Default::default(),
            statement_timeout: Duration::from_secs(30),
        };
        migrations::migrate(&Manager::new(&options).unwrap(), &super::log()).unwrap();
        "template_migrated"
    })
}

impl Database {
    /// A database with the schema.
    pub(crate) fn migrated() -> Self {
        Self::create(&format!("template {}", template()))
    }

    /// A database with nothing in it.
    pub(crate) fn empty() -> Self {
        Self::create("")
    }

    fn create(how: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // A template may be copied by one at a time.
        static COPYING: Mutex<()> = Mutex::new(());
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let copying = COPYING
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        admin()
            .batch_execute(&format!("create database {name} {how}"))
            .unwrap();
        drop(copying);
        Self(Arc::new(Named { name }))
    }

    pub(crate) fn url(&self) -> String {
        url_of(&self.0.name)
    }

    /// Ends every connection to it, and lets no other come about until this is dropped.
    pub(crate) fn away(&self) -> Away {
        let name = &self.0.name;
        let mut admin = admin();
        let shut = format!("alter database {name} allow_connections false");
        admin.batch_execute(&shut).unwrap();
        // One that was let in before is shown as soon as it gives back its lock on the database.
        let cut = "select (select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = $1)
             + (select count(*) from pg_locks l join pg_database d on d.oid = l.objid
                where l.classid = 'pg_database'::regclass and d.datname = $1)";
        super::eventually("its connections to end", || {
            let left: i64 = admin.query_one(cut, &[name]).unwrap().get(0);
            (left == 0).then_some(())
        });
        Away(self.clone())
    }

    /// How often a word stands in all of it.
    pub(crate) fn count_of(&self, word: &str) -> usize {
        let dumped = Command::new("pg_dump").arg(self.url()).output().unwrap();
        assert!(dumped.status.success(), "{dumped:?}");
        String::from_utf8_lossy(&dumped.stdout)
            .matches(word)
            .count()
    }

    /// A connection of the test's own.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.url(), NoTls).unwrap()
    }
}

/// A database that is away as long as this stands.
pub(crate) struct Away(Database);

impl Drop for Away {
    fn drop(&mut self) {
        let back = format!("alter database {} allow_connections true", self.0.0.name);
        admin().batch_execute(&back).unwrap();
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        // Best effort: the whole cluster is removed at the end.
        if let Ok(mut client) = Client::connect(&url_of("postgres"), NoTls) {
            let _ = client.batch_execute(&format!("drop database {} with (force)", self.name));
        }
    }
}

/// Rows that a plan takes from such relations, and those that it drops there.
pub(crate) fn plan_rows(plan: &Value, is_of: &dyn Fn(&str) -> bool) -> f64 {
    let figure = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let here = match is_of(plan["Relation Name"].as_str().unwrap_or_default()) {
        true => (figure("Actual Rows") + figure("Rows Removed by Filter")) * figure("Actual Loops"),
        false => 0.0,
    };
    let parts = plan["Plans"].as_array().into_iter().flatten();
    here + parts.map(|part| plan_rows(part, is_of)).sum::<f64>()
}
