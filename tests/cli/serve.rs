//! `serve`: from its first line to its last, and tenants made beside it.

use crate::harness::{PATIENCE, Running, call, command, database, eventually, run};
use rustix::process::Signal;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixDatagram, UnixStream};

const TOKEN: &str = "a-token-of-the-operator";

fn serve(url: &str, more: &[(&str, &str)]) -> Running {
    let mut variables = vec![
        ("SVC_DEV", "1"),
        ("SVC_HTTP_PORT", "0"),
        ("SVC_LOG_FORMAT", "json"),
        ("SVC_DATABASE_URL", url),
    ];
    variables.extend_from_slice(more);
    Running::start(command(&["serve"], &variables))
}

/// The server's address, once it is ready.
fn address(server: &mut Running) -> String {
    let line: Value = serde_json::from_str(&server.line_with("\"Listening\"")).unwrap();
    server.line_with("\"Ready\"");
    format!("http://{}", line["address"].as_str().unwrap())
}

#[test]
fn it_tells_the_service_manager_and_ends_with_0_at_sigterm() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager
        .set_read_timeout(Some(crate::harness::PATIENCE))
        .unwrap();
    let hear = || {
        let mut buffer = [0; 64];
        let length = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let url = database();
    let mut server = serve(
        &url,
        &[
            ("NOTIFY_SOCKET", path.to_str().unwrap()),
            ("WATCHDOG_USEC", "200000"),
        ],
    );
    let mut heard = vec![hear()];
    while heard.last().map(String::as_str) != Some("READY=1") {
        heard.push(hear());
    }
    assert_eq!(hear(), "WATCHDOG=1");
    server.signal(Signal::TERM);
    while hear() != "STOPPING=1" {}
    assert_eq!(server.wait(), Some(0));
}

#[test]
fn a_fresh_tenant_is_printed_with_its_token_in_development() {
    let tenants = [(); 2].map(|()| {
        let mut server = serve(&database(), &[]);
        let line = server.line_with("SVC_TENANT_ID");
        let token = server.line_with("svc_bt_");
        let token = token
            .strip_prefix("token:")
            .expect("on stdout")
            .trim()
            .to_owned();
        let address = address(&mut server);
        let (status, me) = call("GET", &format!("{address}/v1/identity/me"), &token, None);
        assert_eq!(status, 200);
        let tenant = me["tenantId"].as_str().unwrap().to_owned();
        assert!(line.contains(&tenant), "{line}");
        server.signal(Signal::INT);
        assert_eq!(server.wait(), Some(0));
        tenant
    });
    assert_ne!(tenants[0], tenants[1]);
}

#[test]
fn a_further_tenant_sees_nothing_of_the_first() {
    let url = database();
    let mut server = serve(&url, &[("SVC_SEED_TOKEN", TOKEN)]);
    let address = address(&mut server);
    let projects = format!("{address}/v1/projects");
    let (status, project) = call("POST", &projects, TOKEN, Some(&json!({"name": "first"})));
    assert_eq!(status, 201);

    let variables = [("SVC_DEV", "1"), ("SVC_DATABASE_URL", url.as_str())];
    let made = run(
        &["tenant", "create", "--name", "Second", "--json"],
        &variables,
    )
    .expect(0)
    .json();
    let token = made["token"].as_str().unwrap();
    assert!(token.starts_with("svc_bt_"));
    let (status, listed) = call("GET", &projects, token, None);
    assert_eq!((status, &listed["data"]), (200, &json!([])));
    let one = format!("{projects}/{}", project["id"].as_str().unwrap());
    assert_eq!(call("GET", &one, token, None).0, 404);
    assert_eq!(call("GET", &one, TOKEN, None).0, 200);

    let id = made["tenantId"].as_str().unwrap();
    let again = run(
        &["tenant", "create", "--name", "Third", "--id", id],
        &variables,
    )
    .expect(1);
    assert!(again.err.contains(id), "{}", again.err);
    let shown = run(&["tenant", "create", "--name", "Third"], &variables).expect(0);
    assert_eq!(shown.out.matches("svc_bt_").count(), 1);
    assert!(!shown.err.contains("svc_bt_"), "{}", shown.err);
}

#[test]
fn a_token_of_another_tenant_is_refused_with_the_reason() {
    let url = database();
    let mut first = serve(&url, &[("SVC_SEED_TOKEN", TOKEN)]);
    address(&mut first);
    let mut second = serve(&url, &[("SVC_SEED_TOKEN", TOKEN)]);
    second.line_with("SVC_TENANT_ID to the tenant whose token it is");
    assert_eq!(second.wait(), Some(78), "a restart would not help");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let url = database();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = run(
        &["serve"],
        &[
            ("SVC_DEV", "1"),
            ("SVC_DATABASE_URL", &url),
            ("SVC_BIND_ADDRESS", "127.0.0.1"),
            ("SVC_HTTP_PORT", &port),
        ],
    )
    .expect(1);
    assert!(said.err.contains("SVC_HTTP_PORT"), "{}", said.err);
}

/// Section 1.3: the development mode keeps the server off the network on Linux.
#[test]
fn a_development_server_listens_on_loopback_alone() {
    let mut server = serve(&database(), &[]);
    let address = address(&mut server);
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
}

#[test]
fn all_interfaces_means_ipv4_too() {
    let url = database();
    let mut server = serve(
        &url,
        &[("SVC_BIND_ADDRESS", "::"), ("SVC_SEED_TOKEN", TOKEN)],
    );
    let line: Value = serde_json::from_str(&server.line_with("\"Listening\"")).unwrap();
    server.line_with("\"Ready\"");
    let address: std::net::SocketAddr = line["address"].as_str().unwrap().parse().unwrap();
    let url = format!("http://127.0.0.1:{}/v1/projects", address.port());
    assert_eq!(call("GET", &url, TOKEN, None).0, 200);
}

/// A stream as systemd connects stderr to its journal; its name in `JOURNAL_STREAM`.
fn journal() -> (UnixStream, File, String) {
    let (read, write) = UnixStream::pair().unwrap();
    let write = File::from(OwnedFd::from(write));
    let found = write.metadata().unwrap();
    (read, write, format!("{}:{}", found.dev(), found.ino()))
}

#[test]
fn the_journal_learns_as_an_error_why_it_does_not_start() {
    for is_journal in [true, false] {
        let (mut read, write, name) = journal();
        let name = if is_journal { name } else { "1:1".to_owned() };
        let mut command = command(&["serve"], &[("JOURNAL_STREAM", &name)]);
        let mut child = command.stderr(write).spawn().unwrap();
        drop(command);
        assert!(!child.wait().unwrap().success());
        let mut said = String::new();
        read.read_to_string(&mut said).unwrap();
        assert!(said.contains("SVC_LICENSE_KEY is required"), "{said}");
        assert!(said.lines().count() > 1, "{said}");
        for line in said.lines() {
            assert_eq!(line.starts_with("<3>"), is_journal, "{said}");
        }
    }
}

#[test]
fn what_no_restart_would_mend_ends_with_a_code_of_its_own() {
    use postgres::{Client, NoTls};
    let url = database();
    let variables = [("SVC_DEV", "1"), ("SVC_DATABASE_URL", url.as_str())];
    run(&["migrate"], &variables).expect(0);
    let mut admin = Client::connect(&url, NoTls).unwrap();
    let ends = |url: &str, reason: &str| {
        let mut server = serve(url, &[("SVC_SEED_TOKEN", TOKEN)]);
        server.line_with(reason);
        assert_eq!(server.wait(), Some(78), "{reason}");
    };
    admin
        .batch_execute("update agent_runtime_requirements set oldest_binary = '99.0.0'")
        .unwrap();
    ends(&url, "Install 99.0.0 or later.");
    admin
        .batch_execute("update agent_runtime_requirements set oldest_binary = '0.0.1'")
        .unwrap();
    // The mark of a restore that was cut off.
    admin
        .batch_execute("create table agent_runtime_restore ()")
        .unwrap();
    ends(&url, "A restore of this database was begun");
    admin
        .batch_execute("drop table agent_runtime_restore")
        .unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    ends(&format!("{server}/no_such_database"), "no_such_database");
    admin
        .batch_execute(
            "create role without_writes login; grant select on all tables in schema public to without_writes",
        )
        .unwrap();
    let limited = url.replacen("agent_runtime@", "without_writes@", 1);
    ends(&limited, "permission denied");
}

/// What a process holds in memory, in MiB.
fn resident_mib(server: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<u64>().unwrap() / 1024
}

#[test]
fn a_thousand_readers_that_sip_the_reference_hold_no_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let most = getrlimit(Resource::Nofile).maximum;
    let (current, maximum) = (most, most);
    // The server inherits it.
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).unwrap();
    let mut server = serve(&database(), &[("SVC_SEED_TOKEN", TOKEN)]);
    let address = address(&mut server);
    let host: SocketAddr = address.strip_prefix("http://").unwrap().parse().unwrap();
    let request = b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n";
    let sip = |socket: &mut Socket| socket.read_exact(&mut [0; 512]).unwrap();
    let reader = |_| {
        let mut socket = Socket::new(Domain::for_address(host), Type::STREAM, None).unwrap();
        // The kernel keeps little for it, so the rest of the file stays with the server.
        socket.set_recv_buffer_size(4096).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect(&host.into()).unwrap();
        socket.write_all(request).unwrap();
        socket
    };
    drop((0..20).map(reader).collect::<Vec<_>>());
    let before = resident_mib(&server);
    let mut readers: Vec<Socket> = (0..1000).map(reader).collect();
    for _ in 0..3 {
        readers.iter_mut().for_each(sip);
    }
    let beside = resident_mib(&server);
    assert!(
        beside < before + 64,
        "{before} MiB before, {beside} MiB beside the readers"
    );
    drop(readers);
    eventually("the memory to be let go", || {
        (resident_mib(&server) < before + 32).then_some(())
    });
}
