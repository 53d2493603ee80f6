//! TLS to a server of the test's own, with a certificate of the test's own.

use super::waits::cancelled;
use super::*;
use rustls_pki_types::PrivateKeyDer;
use std::process::Command;

/// A self-signed certificate for `api.test`, and its key, made by the openssl command.
pub(super) fn certificate() -> (String, String) {
    certificate_of("critical,CA:FALSE", "20200101000000Z", "20991231000000Z")
}

/// As [`certificate`], with these basic constraints and times.
fn certificate_of(constraints: &str, from: &str, until: &str) -> (String, String) {
    let directory = tempfile::tempdir().unwrap();
    let within = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (key, request, cert) = (within("key"), within("request"), within("cert"));
    let config = format!(
        "[ca]\ndefault_ca=own\n[own]\ndatabase={}\nnew_certs_dir={}\nrand_serial=yes\n\
         default_md=sha256\npolicy=any\nx509_extensions=extensions\n[any]\n\
         commonName=supplied\n[extensions]\nsubjectAltName=DNS:api.test\n\
         basicConstraints={constraints}\n[req]\ndistinguished_name=any\n",
        within("index"),
        within("")
    );
    std::fs::write(within("config"), config).unwrap();
    std::fs::write(within("index"), "").unwrap();
    let config = within("config");
    openssl(&[
        "req",
        "-new",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-config",
        &config,
        "-subj",
        "/CN=api.test",
        "-keyout",
        &key,
        "-out",
        &request,
    ]);
    openssl(&[
        "ca",
        "-batch",
        "-notext",
        "-selfsign",
        "-config",
        &config,
        "-keyfile",
        &key,
        "-startdate",
        from,
        "-enddate",
        until,
        "-in",
        &request,
        "-out",
        &cert,
    ]);
    let read = |path| std::fs::read_to_string(path).unwrap();
    (read(&key), read(&cert))
}

fn openssl(arguments: &[&str]) {
    let made = Command::new("openssl")
        .args(arguments)
        .output()
        .expect("the openssl command makes the test's certificate: apt install openssl");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

fn tls_server(key: &str, cert: &str) -> (Server, Arc<Mutex<Vec<String>>>) {
    tls_server_at("127.0.0.1", key, cert)
}

/// A server that notes the names that it is asked for.
pub(super) fn tls_server_at(
    address: &str,
    key: &str,
    cert: &str,
) -> (Server, Arc<Mutex<Vec<String>>>) {
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
    let at = SocketAddr::new(address.parse().unwrap(), 0);
    let server = Server::at(at, move |socket| {
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

/// A client for which every name is this host, and which trusts this certificate.
fn trusting(cert: &str) -> Client {
    let lookup = |_: &str| Ok(vec![IpAddr::from([127, 0, 0, 1])]);
    let options = Options {
        extra_roots_pem: cert.as_bytes().to_vec(),
        lookup: Some(Arc::new(lookup)),
        ..Options::default()
    };
    Outbound::new(options)
        .unwrap()
        .client(Policy::Operator, timeouts())
}

#[test]
fn what_is_wrong_with_a_certificate_is_said() {
    let leaf = "critical,CA:FALSE";
    let (long_ago, far_off) = ("20200101000000Z", "20991231000000Z");
    let fine = certificate();
    let expired = certificate_of(leaf, long_ago, "20200102030400Z");
    let future = certificate_of(leaf, "20980102030400Z", far_off);
    let authority = certificate_of("critical,CA:TRUE", long_ago, far_off);
    for ((key, cert), host, trusted, says) in [
        (
            &fine,
            "api.test",
            false,
            "self-signed or signed by an authority",
        ),
        (
            &fine,
            "other.test",
            true,
            "its certificate is for api.test and not for other.test",
        ),
        (
            &expired,
            "api.test",
            true,
            "its certificate expired on 2020-01-02 at 03:04 UTC",
        ),
        (
            &future,
            "api.test",
            true,
            "its certificate is not valid before 2098-01-02 at 03:04 UTC",
        ),
        (
            &authority,
            "api.test",
            false,
            "self-signed and an authority's (CA:TRUE)",
        ),
    ] {
        let (server, names) = tls_server(key, cert);
        let mut client = trusting(if trusted { cert } else { "" });
        let url = format!("https://{host}:{}/", server.address.port());
        let failure = post(&mut client, &url).unwrap_err();
        assert_eq!(failure.kind(), Kind::Tls, "{failure}");
        let message = failure.message();
        assert!(
            message.contains(says) && message.contains(host),
            "{message}"
        );
        assert_eq!(failure.address(), Some(server.address.ip()));
        assert!(!failure.is_transient() && names.lock().unwrap().is_empty());
    }
}

#[test]
fn a_certificate_must_be_trusted_and_fit_the_name() {
    let (key, cert) = certificate();
    let (server, names) = tls_server(&key, &cert);
    let url = |host: &str| format!("https://{host}:{}/", server.address.port());
    let message = fails(post(&mut trusting(""), &url("api.test")), Kind::Tls);
    assert!(message.contains("api.test"), "{message}");
    let mut client = trusting(&cert);
    // A run thread's stack holds a handshake too.
    let address = url("api.test");
    let thread = std::thread::Builder::new().name("small".to_owned());
    let thread = thread.stack_size(256 * 1024).spawn(move || {
        post(&mut client, &address).unwrap();
        client
    });
    let mut client = thread.unwrap().join().unwrap();
    post(&mut client, &url("api.test")).unwrap();
    assert_eq!(*names.lock().unwrap(), ["api.test", "api.test"]);
    // The server serves one connection at a time, and this client has kept its one.
    drop(client);
    fails(post(&mut trusting(&cert), &url("other.test")), Kind::Tls);
}

#[test]
fn a_silent_handshake_ends_at_the_connect_deadline_and_at_a_cancel() {
    let server = Server::start(|mut connection| {
        let _ = connection.read_to_end(&mut Vec::new());
    });
    let url = format!("https://{}/", server.address);
    let mut short = timeouts();
    short.connect = ms(100);
    let mut kinds = (0..6).map(|_| {
        let mut client = outbound().client(Policy::Operator, short);
        post(&mut client, &url).unwrap_err().kind()
    });
    // A busy machine may not come to the handshake in time.
    let kind = kinds.find(|kind| *kind != Kind::Timeout(Phase::Connect));
    assert_eq!(kind, Some(Kind::Timeout(Phase::Tls)));
    lasts_less_than(AT_ONCE, || {
        let client = outbound().client(Policy::Operator, timeouts());
        cancelled(client, url.clone(), || {}).1
    });
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
