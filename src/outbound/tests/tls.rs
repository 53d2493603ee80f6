//! TLS to a server of the test's own, with a certificate of the test's own.

use super::waits::cancelled;
use super::*;
use rustls_pki_types::PrivateKeyDer;
use std::process::Command;

/// A self-signed certificate for `api.test`, made by the openssl command.
fn certificate() -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let (key, cert) = (directory.path().join("key"), directory.path().join("cert"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-days", "2", "-subj", "/CN=api.test"])
        .args(["-addext", "subjectAltName=DNS:api.test"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .expect("the openssl command makes the test's certificate: apt install openssl");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let read = |path| std::fs::read_to_string(path).unwrap();
    (read(&key), read(&cert))
}

fn tls_server(key: &str, cert: &str) -> (Server, Arc<Mutex<Vec<String>>>) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let config = Arc::new(config);
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    let server = Server::start(move |socket| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, socket);
        while !read_request(&mut stream).is_empty() {
            let name = stream.conn.server_name().unwrap_or("none").to_owned();
            seen.lock().unwrap().push(name);
            stream.write_all(HELLO.as_bytes()).unwrap();
        }
    });
    (server, names)
}

#[test]
fn a_certificate_must_be_trusted_and_fit_the_name() {
    let (key, cert) = certificate();
    let (server, names) = tls_server(&key, &cert);
    let url = |host: &str| format!("https://{host}:{}/", server.address.port());
    let make = |extra_roots_pem: Vec<u8>| {
        let lookup = |_: &str| Ok(vec![IpAddr::from([127, 0, 0, 1])]);
        let options = Options {
            extra_roots_pem,
            lookup: Some(Arc::new(lookup)),
            ..Options::default()
        };
        Outbound::new(options)
            .unwrap()
            .client(Policy::Operator, timeouts())
    };
    let message = fails(post(&mut make(Vec::new()), &url("api.test")), Kind::Tls);
    assert!(message.contains("api.test"), "{message}");
    let mut trusting = make(cert.clone().into_bytes());
    // A run thread's stack holds a handshake too.
    let address = url("api.test");
    let thread = std::thread::Builder::new().name("small".to_owned());
    let thread = thread.stack_size(256 * 1024).spawn(move || {
        post(&mut trusting, &address).unwrap();
        trusting
    });
    let mut trusting = thread.unwrap().join().unwrap();
    post(&mut trusting, &url("api.test")).unwrap();
    assert_eq!(*names.lock().unwrap(), ["api.test", "api.test"]);
    // The server serves one connection at a time, and this client has kept its one.
    drop(trusting);
    let mut trusting = make(cert.into_bytes());
    fails(post(&mut trusting, &url("other.test")), Kind::Tls);
}

#[test]
fn a_silent_handshake_ends_at_the_connect_deadline_and_at_a_cancel() {
    let server = Server::start(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let url = format!("https://{}/", server.address);
    let mut short = timeouts();
    short.connect = ms(100);
    let mut client = outbound().client(Policy::Operator, short);
    fails(post(&mut client, &url), Kind::Timeout(Phase::Tls));
    let client = outbound().client(Policy::Operator, timeouts());
    let (_, took) = cancelled(client, url, || {});
    assert!(took < AT_ONCE, "{took:?}");
}

#[test]
fn plain_text_where_tls_was_expected_is_a_tls_failure() {
    let server = Server::start(|mut connection| {
        let _ = connection.write_all(HELLO.as_bytes());
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let mut client = outbound().client(Policy::Operator, timeouts());
    fails(
        post(&mut client, &format!("https://{}/", server.address)),
        Kind::Tls,
    );
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    for bundle in [
        "no certificate",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    ] {
        let options = Options {
            extra_roots_pem: bundle.as_bytes().to_vec(),
            ..Options::default()
        };
        assert!(Outbound::new(options).is_err(), "{bundle}");
    }
}
