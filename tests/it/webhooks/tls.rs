//! Certificates that are not accepted, through a delivery.

use super::world::World;
use crate::harness::eventually;
use crate::harness::receiver::read;
use agent_runtime::outbound::{self, Outbound};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use serde_json::json;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;

/// A self-signed certificate for `api.test` and its key, in PEM.
pub(super) fn certificate(until: &str) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let within = |name: &str| directory.path().join(name).display().to_string();
    let [key, request, cert, config] = ["key", "request", "cert", "config"].map(within);
    let text = format!(
        "[ca]\ndefault_ca=own\n[own]\ndatabase={}\nnew_certs_dir={}\nrand_serial=yes\n\
         default_md=sha256\npolicy=any\nx509_extensions=extensions\n[any]\n\
         commonName=supplied\n[extensions]\nsubjectAltName=DNS:api.test\n\
         basicConstraints=critical,CA:FALSE\n[req]\ndistinguished_name=any\n",
        within("index"),
        within("")
    );
    std::fs::write(&config, text).unwrap();
    std::fs::write(within("index"), "").unwrap();
    let asked = format!(
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config {config} \
         -subj /CN=api.test -keyout {key} -out {request}"
    );
    let signed = format!(
        "ca -batch -notext -selfsign -config {config} -keyfile {key} -startdate 20200101000000Z \
         -enddate {until} -in {request} -out {cert}"
    );
    for arguments in [asked, signed] {
        let openssl = Command::new("openssl").args(arguments.split(' ')).output();
        let made = openssl.expect("the openssl command: apt install openssl");
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{said}");
    }
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    (read(&key), read(&cert))
}

/// Answers each request with 200, and ends with the process.
pub(super) fn serve(ip: IpAddr, key: &str, cert: &str) -> SocketAddr {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let tls = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut connection = rustls::StreamOwned::new(tls, connection.unwrap());
            // The other side may end it before it has sent anything.
            if read(&mut connection).is_some() {
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
            }
        }
    });
    address
}

#[track_caller]
fn check(name: &str, until: &str, is_trusted: bool, says: &str) {
    let (key, cert) = certificate(until);
    let trusted = if is_trusted {
        cert.clone()
    } else {
        String::new()
    };
    let world = World::with(move |options| {
        options.outbound = Outbound::new(outbound::Options {
            extra_roots_pem: trusted.into_bytes(),
            lookup: Some(Arc::new(|_: &str| {
                Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)])
            })),
            ..outbound::Options::default()
        })
        .unwrap();
    });
    let port = serve(IpAddr::V4(Ipv4Addr::LOCALHOST), &key, &cert).port();
    let endpoint = world.endpoint(&format!("https://{name}:{port}/"));
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    world
        .app
        .post(&format!("{path}/test"), &json!({}))
        .expect(202);
    let delivery = world.attempted(&endpoint, 1);
    assert_eq!(delivery["state"], "being-sent", "{delivery}");
    assert_eq!(delivery["lastError"], "tls-refused", "{delivery}");
    let attempt = &delivery["attempts"][0];
    assert_eq!(attempt["reason"], "tls-refused");
    assert_eq!(attempt["address"], "127.0.0.1");
    let message = attempt["message"].as_str().unwrap();
    assert!(message.contains(says), "{message}");
    eventually("the endpoint to fail", || {
        (world.app.get(&path).expect(200)["state"] == "failing").then_some(())
    });
}

#[test]
fn a_certificate_that_is_over_is_not_accepted() {
    check("api.test", "20200102030400Z", true, "expired on 2020-01-02");
}

#[test]
fn a_certificate_of_another_name_is_not_accepted() {
    check(
        "other.test",
        "20991231000000Z",
        true,
        "for api.test and not for other.test",
    );
}

#[test]
fn a_certificate_that_nobody_else_has_signed_is_not_accepted() {
    check("api.test", "20991231000000Z", false, "self-signed");
}
