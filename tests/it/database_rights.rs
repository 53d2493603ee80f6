//! A database that takes rights away from a running server, or stops to let it in or to write, and
//! gives all of it back.

use crate::database_faults::cluster;
use crate::harness::{App, Client, Puppet, eventually};
use agent_runtime::dev::cluster::Cluster;
use agent_runtime::ids::Clock;
use agent_runtime::secret::Secret;
use agent_runtime::server::Server;
use postgres::NoTls;
use serde_json::{Value, json};
use std::time::Duration;

/// A server that connects as a role of its own, with a password, to a database of its own.
struct Served {
    client: Client,
    server: Option<Server>,
    admin: postgres::Client,
    _cluster: Cluster,
    _place: tempfile::TempDir,
}

impl Served {
    fn start() -> Self {
        let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let cluster = cluster(&place.path().join("d"));
        let mut admin = postgres::Client::connect(&cluster.url(), NoTls).unwrap();
        admin
            .batch_execute("create role served login password 'first'")
            .unwrap();
        admin
            .batch_execute("create database served owner served")
            .unwrap();
        let rules = "local all agent_runtime trust\nlocal all all scram-sha-256\n";
        std::fs::write(place.path().join("d/pgdata/pg_hba.conf"), rules).unwrap();
        admin.batch_execute("select pg_reload_conf()").unwrap();
        // What follows is done inside that database.
        let inside = cluster.url_of("served");
        let url = inside.replacen("agent_runtime@", "served:first@", 1);
        eventually("the rules to count", || {
            let wrong = inside.replacen("agent_runtime@", "served:wrong@", 1);
            postgres::Client::connect(&wrong, NoTls).err()
        });
        let clock = Clock::system();
        let seeds = crate::harness::seeds(&clock);
        let mut options = crate::harness::options(&inside, &seeds);
        options.store.url = Secret::new(url);
        // Who is not let in waits so long at each request.
        options.store.checkout_timeout = Duration::from_secs(1);
        let server = Server::start(options, &clock, &crate::harness::log()).unwrap();
        let ready = server.ready().recv_timeout(crate::harness::PATIENCE);
        ready.unwrap().unwrap();
        Self {
            client: Client::new(server.local_addr(), Some(seeds.token.expose())),
            server: Some(server),
            admin: postgres::Client::connect(&inside, NoTls).unwrap(),
            _cluster: cluster,
            _place: place,
        }
    }

    fn sql(&mut self, text: &str) {
        self.admin.batch_execute(text).unwrap();
    }

    /// Ends the server's connections, so that it has to make new ones. Not those that are being made,
    /// which nothing in the database names yet: who relies on all being gone cuts again.
    fn cut(&mut self) {
        self.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'served'");
    }

    fn write(&self) -> crate::harness::Answer {
        self.client.post("/v1/projects", &json!({"name": "a"}))
    }

    /// A write is refused with a 503 that says this.
    #[track_caller]
    fn refused(&mut self, what: &str) {
        // Just after a cut, what is said is that no connection answers.
        eventually(what, || {
            let answer = self.write();
            if answer.status == 201 {
                self.cut();
                return None;
            }
            let body: Value = answer.json();
            answer.expect_error(503, "database-unavailable");
            body["error"]["message"]
                .as_str()
                .unwrap()
                .contains(what)
                .then_some(())
        });
        assert_eq!(self.client.get("/healthz").status, 200);
    }

    /// It serves again, without a restart.
    #[track_caller]
    fn serves_again(&self) {
        eventually("a write", || (self.write().status == 201).then_some(()));
        eventually("readiness", || {
            (self.client.get("/readyz").status == 200).then_some(())
        });
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(crate::harness::PATIENCE);
        }
    }
}

#[test]
fn rights_that_are_taken_away_are_named_and_cost_no_run() {
    let mut served = Served::start();
    let puppet = Puppet::start();
    let agent = served.client.agent(&puppet.base_url());
    let id = served.client.start_turn(agent, "a");
    let mut call = puppet.call();
    call.say("Still here.");
    served.sql("revoke insert, update on all tables in schema public from served");
    served.refused("does not let the server do that");
    served.client.get("/v1/projects").expect(200);
    // The answer that cannot be written is kept until it can.
    call.finish();
    served.refused("does not let the server do that");
    assert_eq!(served.client.run(&id)["status"], "running");
    served.sql("grant insert, update on all tables in schema public to served");
    served.serves_again();
    let run = served.client.finished(&id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["usage"]["calls"], 1, "nothing was asked twice: {run}");
}

#[test]
fn a_role_that_is_let_in_no_more_or_has_another_password_is_waited_for() {
    let mut served = Served::start();
    for (away, back) in [
        (
            "alter role served password 'second'",
            "alter role served password 'first'",
        ),
        ("alter role served nologin", "alter role served login"),
        (
            "alter role served connection limit 0",
            "alter role served connection limit -1",
        ),
    ] {
        served.sql(away);
        served.cut();
        served.refused("does not answer");
        eventually("the probe to say so", || {
            served.cut();
            (served.client.get("/readyz").status == 503).then_some(())
        });
        served.sql(back);
        served.serves_again();
    }
}

#[test]
fn a_database_that_becomes_read_only_is_read_on() {
    let mut served = Served::start();
    served.sql("alter database served set default_transaction_read_only = on");
    served.cut();
    served.refused("read-only");
    eventually("a read", || {
        (served.client.get("/v1/projects").status == 200).then_some(())
    });
    served.sql("alter database served reset default_transaction_read_only");
    served.cut();
    served.serves_again();
}

#[test]
fn a_server_without_rights_does_not_start_and_says_which() {
    let app = App::start();
    let (database, clock, seeds) = app.stop();
    let role = format!("readers_{}", clock.new_id().simple());
    database
        .client()
        .batch_execute(&format!(
            "create role {role} login; grant select on all tables in schema public to {role}"
        ))
        .unwrap();
    let mut options = crate::harness::options(&database.url(), &seeds);
    let url = database
        .url()
        .replacen("agent_runtime@", &format!("{role}@"), 1);
    options.store.url = Secret::new(url);
    let server = Server::start(options, &clock, &crate::harness::log()).unwrap();
    let ready = server
        .ready()
        .recv_timeout(crate::harness::PATIENCE)
        .unwrap();
    let error = ready.unwrap_err();
    assert!(error.is_lack_of_right(), "{error}");
    assert!(error.to_string().contains("permission denied"), "{error}");
    server.stop(crate::harness::PATIENCE);
}
