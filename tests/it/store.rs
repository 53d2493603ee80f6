//! Connections: how they are taken, watched and given up.

use crate::database_faults::{cluster, signal, stop_answering};
use crate::harness::Database;
use agent_runtime::error::Code;
use agent_runtime::secret::Secret;
use agent_runtime::store::{Options, Sql, Store};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// What a statement may take before the watchdog cancels it: 7 s.
fn options(url: &str) -> Options {
    Options {
        url: Secret::new(url),
        pool_size: 1,
        checkout_timeout: Duration::from_secs(3),
        outage: Default::default(),
        statement_timeout: Duration::from_secs(4),
    }
}

fn store(options: &Options) -> Store {
    Store::open(options, crate::harness::log()).unwrap()
}

fn backend(store: &Store) -> i32 {
    let mut session = store.session().unwrap();
    session
        .query_one("select pg_backend_pid()", &[])
        .unwrap()
        .get(0)
}

#[test]
fn a_checkout_ends_although_the_database_stands_still() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cluster = cluster(&place.path().join("d"));
    let mut options = options(&cluster.url());
    options.pool_size = 3;
    let store = store(&options);
    let sessions: Vec<_> = (0..3).map(|_| store.session().unwrap()).collect();
    drop(sessions);
    // Then a connection is asked before it is lent.
    crate::harness::let_time_pass(Duration::from_millis(1100));
    let stopped = stop_answering(cluster.pid().unwrap());
    let refused = store.session().err().map(|error| error.code());
    let checked = store.check(Duration::from_millis(1)).err();
    signal(&stopped, Signal::CONT);
    assert_eq!(refused, Some(Code::DatabaseUnavailable));
    assert_eq!(
        checked.map(|error| error.code()),
        Some(Code::DatabaseUnavailable)
    );
    // What was asked in vain is not lent again: its late answer would be taken for another's.
    crate::harness::eventually("a connection", || {
        let mut session = store.session().ok()?;
        let row = session.query_one("select 42", &[]).ok()?;
        assert_eq!(row.get::<_, i32>(0), 42);
        Some(())
    });
    store.check(Duration::from_millis(1)).unwrap();
}

#[test]
fn a_statement_that_outlives_every_limit_is_cancelled_and_its_connection_closed() {
    let database = Database::empty();
    let store = store(&options(&database.url()));
    let first = backend(&store);
    let mut session = store.session().unwrap();
    session.execute("set statement_timeout = 0", &[]).unwrap();
    let error = session.execute("select pg_sleep(600)", &[]).unwrap_err();
    assert_eq!(error.code(), Code::DatabaseUnavailable);
    // A late cancel could hit what comes next.
    let error = session.query("select 1", &[]).unwrap_err();
    assert_eq!(error.code(), Code::DatabaseUnavailable);
    drop(session);
    let second = crate::harness::eventually("a fresh connection", || {
        store.session().ok().map(drop)?;
        Some(backend(&store))
    });
    assert_ne!(first, second);
}

#[test]
fn many_statements_on_one_loan_may_take_longer_than_one_may() {
    let database = Database::empty();
    let store = store(&options(&database.url()));
    let counted: i64 = store
        .transact(|tx| {
            for _ in 0..10 {
                tx.execute("select pg_sleep(0.8)", &[])?;
            }
            Ok(tx.query_one("select count(*) from pg_class", &[])?.get(0))
        })
        .unwrap();
    assert!(counted > 0);
}

#[test]
fn a_connection_without_its_prepared_statements_is_given_up() {
    let database = Database::empty();
    let store = store(&options(&database.url()));
    let mut client = database.client();
    client.batch_execute("create table things (a int)").unwrap();
    let read = || -> Result<usize, Code> {
        let mut session = store.session().map_err(|error| error.code())?;
        let rows = session.query("select * from things", &[]);
        rows.map(|rows| rows.len()).map_err(|error| error.code())
    };
    assert_eq!(read(), Ok(0));
    // A statement gives something else than it was prepared for.
    client
        .batch_execute("alter table things add column b int")
        .unwrap();
    assert_eq!(read(), Err(Code::DatabaseUnavailable));
    crate::harness::eventually("a fresh connection", || read().ok());
    // A pooler forgot them.
    let mut session = store.session().unwrap();
    session.execute("deallocate all", &[]).unwrap();
    drop(session);
    assert_eq!(read(), Err(Code::DatabaseUnavailable));
    crate::harness::eventually("a fresh connection", || read().ok());
}

#[test]
fn a_refusal_says_its_reason() {
    let database = Database::empty();
    let url = database.url();
    let (server, _) = url.rsplit_once('/').unwrap();
    let store = store(&options(&format!("{server}/nowhere")));
    let error = crate::harness::eventually("the refusal's reason", || {
        let error = store.session().map(drop).unwrap_err();
        error.to_string().contains("nowhere").then_some(error)
    });
    assert_eq!(error.code(), Code::DatabaseUnavailable);
    assert!(!error.message().contains("nowhere"));
}

#[test]
fn what_broke_with_another_connection_is_not_lent_again() {
    let database = Database::empty();
    let mut options = options(&database.url());
    options.pool_size = 4;
    options.checkout_timeout = Duration::from_secs(5);
    let store = store(&options);
    let mut client = database.client();
    let others = "from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid()";
    let cut = format!("select count(pg_terminate_backend(pid)) {others}");
    let left = format!("select count(*) {others}");
    // The first learns it; the others are used within the second that needs no question. On a busy
    // machine that second may be over.
    let answers = (0..10).find_map(|_| {
        let sessions: Vec<_> = (0..4).map(|_| store.session().unwrap()).collect();
        let began = Instant::now();
        drop(sessions);
        client.query_one(&cut, &[]).unwrap();
        crate::harness::eventually("the ends of all", || {
            let left: i64 = client.query_one(&left, &[]).unwrap().get(0);
            (left == 0).then_some(())
        });
        let answers: Vec<_> = (0..4)
            .map(|_| store.session()?.query_one("select 1", &[]).map(drop))
            .collect();
        (began.elapsed() < Duration::from_millis(900)).then_some(answers)
    });
    let answers = answers.expect("no try within the second");
    assert!(answers[0].is_err(), "none was cut");
    for answer in &answers[1..] {
        assert!(answer.is_ok(), "{answer:?}");
    }
}

#[test]
fn what_broke_under_a_statement_is_not_lent_again() {
    let database = Database::empty();
    let mut options = options(&database.url());
    options.pool_size = 1;
    options.checkout_timeout = Duration::from_secs(5);
    options.statement_timeout = Duration::from_secs(30);
    let store = store(&options);
    let mut client = database.client();
    let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity
         where datname = current_database() and query like '%pg_sleep(20)' and state = 'active'";
    for _ in 0..20 {
        let mut session = store.session().unwrap();
        let sleeper = std::thread::spawn(move || session.query_one("select pg_sleep(20)", &[]));
        crate::harness::eventually("a statement to cut", || {
            let cut: i64 = client.query_one(cut, &[]).unwrap().get(0);
            (cut > 0).then_some(())
        });
        let ended = sleeper.join().unwrap().map(drop).unwrap_err();
        assert_eq!(ended.code(), Code::DatabaseUnavailable);
        let next = store
            .session()
            .unwrap()
            .query_one("select 1", &[])
            .map(drop);
        assert!(next.is_ok(), "{next:?}");
    }
}

#[test]
fn a_part_takes_its_share_of_the_connections() {
    let database = Database::migrated();
    let mut options = options(&database.url());
    options.pool_size = 3;
    let store = store(&options);
    let part = store.limited(2);
    let first = part.session().unwrap();
    let _second = part.clone().session().unwrap();
    let refused = part.session().map(drop).unwrap_err();
    assert_eq!(refused.code(), Code::DatabaseUnavailable);
    backend(&store);
    drop(first);
    backend(&part);
}
