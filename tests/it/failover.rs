//! Several hosts in the connection string, of which an old primary lives on beside the new one.

use crate::database_faults::cluster;
use crate::harness::eventually;
use agent_runtime::dev::cluster::Cluster;
use agent_runtime::error::Code;
use agent_runtime::secret::Secret;
use agent_runtime::store::primary::Said;
use agent_runtime::store::{Options, Sql, Store, connect::Manager};
use postgres::config::Host;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn socket(cluster: &Cluster) -> String {
    let config: postgres::Config = cluster.url().parse().unwrap();
    match &config.get_hosts()[0] {
        Host::Unix(path) => path.to_str().unwrap().to_owned(),
        Host::Tcp(name) => panic!("{name} is no socket"),
    }
}

fn execute(cluster: &Cluster, sql: &str) {
    let mut client = postgres::Client::connect(&cluster.url(), postgres::NoTls).unwrap();
    for statement in sql.split(';') {
        client.batch_execute(statement).unwrap();
    }
}

/// A copy that begins a new timeline when it is started, as a standby does that is promoted.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.unwrap().success());
    let data = to.join("pgdata");
    let signal = Command::new("cp")
        .arg("-a")
        .args([data.join("PG_VERSION"), data.join("recovery.signal")])
        .status();
    assert!(signal.unwrap().success());
    let settings = data.join("postgresql.auto.conf");
    let before = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(settings, format!("{before}restore_command = 'false'\n")).unwrap();
}

/// The old primary's writes wait for a standby that is no longer one, as they do where replication is synchronous. The
/// server takes the setting up a moment later: until then a commit is confirmed.
const WAIT_FOR_NOBODY: &str =
    "alter system set synchronous_standby_names = 'promoted'; select pg_reload_conf()";

fn options(url: String) -> Options {
    Options {
        url: Secret::new(url),
        pool_size: 4,
        checkout_timeout: Duration::from_secs(5),
        outage: Default::default(),
        // Longer than any test: what ends before has another reason.
        statement_timeout: Duration::from_secs(24 * 3600),
    }
}

fn timeline(store: &Store) -> Result<String, Code> {
    let asked = || {
        let mut session = store.session()?;
        session.query_one("select pg_walfile_name(pg_current_wal_lsn())", &[])
    };
    let row = asked().map_err(|error| error.code())?;
    Ok(row.get::<_, String>(0)[..8].to_owned())
}

/// As the metrics have it, once the hosts were asked.
#[track_caller]
fn is_primary(store: &Store, expected: [bool; 2], timeline: i64) {
    let status = eventually("the hosts to be asked", || {
        let status = store.manager().primary_status().unwrap();
        (status.timeline == timeline).then_some(status)
    });
    let hosts = status.hosts.iter().map(|(_, is_primary)| *is_primary);
    assert_eq!(hosts.collect::<Vec<_>>(), expected);
}

#[test]
fn an_old_primary_that_lives_on_is_left_and_what_it_confirms_late_does_not_count() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (first, second) = (place.path().join("a"), place.path().join("b"));
    let old = cluster(&first);
    execute(&old, "create table things (thing text)");
    old.stop();
    copy(&first, &second);
    let old = cluster(&first);
    let socket = socket(&old);
    let hosts = format!(
        "host={socket},{} user=agent_runtime dbname=postgres",
        socket.replace(first.to_str().unwrap(), second.to_str().unwrap())
    );
    let store = Store::open(&options(hosts), crate::harness::log()).unwrap();
    assert_eq!(timeline(&store), Ok("00000001".to_owned()));
    is_primary(&store, [true, false], 1);
    execute(&old, WAIT_FOR_NOBODY);
    let waiting = {
        let store = store.clone();
        std::thread::spawn(move || {
            loop {
                let written =
                    store.transact(|tx| tx.execute("insert into things values ('a')", &[]));
                if let Err(unconfirmed) = written {
                    break unconfirmed;
                }
            }
        })
    };
    let mut watched = postgres::Client::connect(&old.url(), postgres::NoTls).unwrap();
    eventually("a commit that waits for a standby", || {
        let waits = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
        (watched.query_one(waits, &[]).unwrap().get::<_, i64>(0) == 1).then_some(())
    });
    // An idle connection to the old one beside it.
    assert_eq!(timeline(&store), Ok("00000001".to_owned()));
    let new = cluster(&second);
    eventually("the new primary", || {
        (timeline(&store).ok()? == "00000002").then_some(())
    });
    is_primary(&store, [false, true], 2);
    let said = store.manager().ask_hosts().unwrap();
    let said = said.iter().map(|host| match &host.said {
        Said::Primary(seen) => seen.timeline,
        other => panic!("{other:?}"),
    });
    assert_eq!(said.collect::<Vec<_>>(), [1, 2], "both say so");
    // The statement's own limit is a day away.
    eventually("the end of the commit that nobody confirms", || {
        waiting.is_finished().then_some(())
    });
    let unconfirmed = waiting.join().unwrap();
    assert_eq!(unconfirmed.code(), Code::DatabaseUnavailable);
    let kept = store
        .session()
        .unwrap()
        .query_one("select count(*) from things", &[]);
    assert_eq!(kept.unwrap().get::<_, i64>(0), 0);
    drop(new);
    // The newest is away, and the old one is no primary to go back to.
    let refused = eventually("a refusal", || timeline(&store).err());
    assert_eq!(refused, Code::DatabaseUnavailable);
    assert_eq!(timeline(&store), Err(Code::DatabaseUnavailable));
    let beside = store.manager().client().err().unwrap();
    assert_eq!(beside.code(), Code::DatabaseUnavailable);
}

/// The other one may be the primary soon.
#[test]
fn a_refusal_is_final_only_if_every_host_refuses() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cluster = cluster(&place.path().join("d"));
    let (socket, nowhere) = (socket(&cluster), place.path().join("nowhere"));
    let refused = |other: &str| {
        let url = format!("host={socket},{other} user=nobody_knows dbname=postgres");
        let manager = Manager::new(&options(url)).unwrap();
        manager.client().err().unwrap()
    };
    let by_one = refused(nowhere.to_str().unwrap());
    assert_eq!(by_one.code(), Code::DatabaseUnavailable);
    // What the other one said is not lost.
    let mut cause = std::error::Error::source(&by_one);
    let causes = std::iter::from_fn(|| {
        let this = cause?;
        cause = this.source();
        Some(this.to_string())
    });
    let said = causes.collect::<Vec<_>>().join(": ");
    assert!(said.contains("nobody_knows"), "{said}");
    assert_eq!(refused(&socket).code(), Code::InvalidRequest);
}

#[test]
fn a_commit_that_is_answered_because_it_was_cancelled_is_not_confirmed() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cluster = cluster(&place.path().join("d"));
    execute(&cluster, "create table things (thing text)");
    execute(&cluster, WAIT_FOR_NOBODY);
    let mut options = options(cluster.url());
    options.checkout_timeout = Duration::from_secs(1);
    options.statement_timeout = Duration::from_secs(1);
    let store = Store::open(&options, crate::harness::log()).unwrap();
    let mut tried = 0;
    let unconfirmed = eventually("a commit that is not confirmed", || {
        drop(store.session().ok()?);
        tried += 1;
        let written = store.transact(|tx| tx.execute("insert into things values ('a')", &[]));
        written.err()
    });
    assert_eq!(unconfirmed.code(), Code::DatabaseUnavailable);
    // The server had answered: this commit is there too, as far as this server knows.
    let mut client = postgres::Client::connect(&cluster.url(), postgres::NoTls).unwrap();
    let there = client
        .query_one("select count(*) from things", &[])
        .unwrap();
    assert_eq!(there.get::<_, i64>(0), tried);
}
