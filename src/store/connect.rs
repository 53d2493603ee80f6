//! How a connection to Postgres is made: libpq's connection string, TLS up to `verify-full`, and
//! deadlines that the kernel keeps where the protocol has none.

mod libpq;

pub use libpq::Environment;

use super::watchdog::Watchdog;
use super::{Connection, Desk, Options};
use crate::error::{self, Code, Error, Result};
use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
use postgres::{Config, NoTls};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections.
#[derive(Clone)]
pub struct Manager {
    config: Config,
    canceller: Canceller,
    watchdog: Arc<Watchdog>,
    refusal: Refusal,
}

/// Asks for the end of statements.
#[derive(Clone)]
pub(super) struct Canceller(Option<MakeRustlsConnect>);

impl Canceller {
    /// Asks the server to end what the connection of `token` is doing. It may hang on a server that
    /// stands still.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) fn cancel(&self, token: &postgres::CancelToken) -> Result<(), postgres::Error> {
        match &self.0 {
            Some(tls) => token.cancel_query(tls.clone()),
            None => token.cancel_query(NoTls),
        }
    }
}

/// Why the last connection was refused for good, if it was.
#[derive(Clone, Default)]
pub(super) struct Refusal(Arc<Mutex<Option<String>>>);

impl Refusal {
    pub(super) fn reason(&self) -> Option<String> {
        let reason = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone()
    }

    fn note(&self, error: Option<&postgres::Error>) {
        let reason = error.filter(|error| !error::is_away(error)).map(describe);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }
}

/// Logs, without the connection string, that a connection could not be made.
#[derive(Debug)]
pub(super) struct LogFailures(pub(super) slog::Logger);

impl r2d2::HandleError<postgres::Error> for LogFailures {
    fn handle_error(&self, error: postgres::Error) {
        slog::warn!(self.0, "The database cannot be reached; trying again"; "error" => describe(&error));
    }
}

fn describe(error: &postgres::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Closes connections that were given up on threads of their own: the client library waits there
/// for an answer that may never come.
#[derive(Debug)]
pub(super) struct CloseAside;

impl r2d2::CustomizeConnection<Connection, postgres::Error> for CloseAside {
    fn on_release(&self, connection: Connection) {
        if connection.desk.place.is_broken() {
            // Without a thread it is closed here: the closure is dropped.
            let _ = std::thread::Builder::new()
                .name("store-close".to_owned())
                .stack_size(256 * 1024)
                .spawn(move || drop(connection));
        }
    }
}

impl Manager {
    /// Reads the connection string.
    ///
    /// # Errors
    /// It is malformed, or the file that `sslrootcert` names cannot be read.
    pub fn new(options: &Options) -> Result<Self> {
        let (url, tls) = split_tls(options.url.expose())?;
        let mut config: Config = url.parse().map_err(|_| {
            invalid(
                "it is not a PostgreSQL connection string, such as postgres://user@host:5432/name",
            )
        })?;
        config
            .application_name("agent-runtime")
            .connect_timeout(Duration::from_secs(5))
            .keepalives(true)
            .keepalives_idle(Duration::from_secs(10))
            .keepalives_interval(Duration::from_secs(5))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(15));
        let own = format!(
            "-c statement_timeout={} -c lock_timeout={} -c idle_in_transaction_session_timeout=60000 -c jit=off -c timezone=UTC",
            options.statement_timeout.as_millis(),
            options.statement_timeout.as_millis() / 2,
        );
        let all = match config.get_options() {
            Some(given) => format!("{own} {given}"),
            None => own,
        };
        config.options(&all).ssl_mode(tls.mode);
        Ok(Self {
            config,
            canceller: Canceller(tls.connector()?),
            watchdog: Arc::default(),
            refusal: Refusal::default(),
        })
    }

    /// One connection, outside the pool.
    ///
    /// # Errors
    /// `database-unavailable` when the server cannot be reached; `invalid-request` with its reason
    /// when it refuses for good.
    pub fn client(&self) -> Result<postgres::Client> {
        self.open().map_err(|error| {
            if error::is_away(&error) {
                return Error::from(error);
            }
            let reason = describe(&error);
            invalid(&format!("the database cannot be used: {reason}")).because(error)
        })
    }

    fn open(&self) -> Result<postgres::Client, postgres::Error> {
        match &self.canceller.0 {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        }
    }

    pub(super) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    pub(super) fn refusal(&self) -> Refusal {
        self.refusal.clone()
    }

    pub(super) fn watchdog(&self) -> &Arc<Watchdog> {
        &self.watchdog
    }
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = postgres::Error;

    fn connect(&self) -> Result<Connection, postgres::Error> {
        let opened = self.open();
        self.refusal.note(opened.as_ref().err());
        let client = opened?;
        Ok(Connection {
            desk: Desk {
                statements: std::collections::HashMap::new(),
                place: self.watchdog.place(client.cancel_token()),
            },
            client,
            used_at: Instant::now(),
        })
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), postgres::Error> {
        connection.client.is_valid(Duration::from_secs(1))
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        // The pool asks when a connection comes back: a loan to the job queue ends here.
        connection.desk.place.end(false);
        let lost = connection.client.is_closed() || connection.desk.place.is_lost();
        if lost {
            self.watchdog.note_loss();
        }
        lost || connection.desk.place.is_broken()
    }
}

/// What the connection string says of TLS.
struct Tls {
    mode: SslMode,
    verify_chain: bool,
    verify_name: bool,
    roots: Option<String>,
}

fn invalid(what: &str) -> Error {
    Error::new(Code::InvalidRequest, format!("SVC_DATABASE_URL: {what}"))
}

/// Takes `sslmode` and `sslrootcert` out of a URL: the client library knows neither `verify-ca` nor
/// `verify-full`. A string in key=value form may carry only the modes that the library knows.
fn split_tls(text: &str) -> Result<(String, Tls)> {
    let mut tls = Tls {
        mode: SslMode::Prefer,
        verify_chain: false,
        verify_name: false,
        roots: None,
    };
    let Some((before, query)) = text.split_once('?') else {
        return Ok((text.to_owned(), tls));
    };
    let mut kept = Vec::new();
    let mut rooted = false;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", mode)) => match mode {
                "disable" => tls.mode = SslMode::Disable,
                "allow" | "prefer" => tls.mode = SslMode::Prefer,
                "require" => tls.mode = SslMode::Require,
                "verify-ca" | "verify-full" => {
                    tls.mode = SslMode::Require;
                    tls.verify_chain = true;
                    tls.verify_name = mode == "verify-full";
                }
                _ => {
                    return Err(invalid(
                        "sslmode is one of disable, prefer, require, verify-ca, verify-full",
                    ));
                }
            },
            Some(("sslrootcert", path)) => {
                let path = percent_decode_str(path).decode_utf8_lossy().into_owned();
                rooted = true;
                tls.roots = (path != "system").then_some(path);
            }
            _ => kept.push(pair),
        }
    }
    // As libpq has it: who names roots wants them asked.
    tls.verify_chain |= rooted && tls.mode == SslMode::Require;
    let url = if kept.is_empty() {
        before.to_owned()
    } else {
        format!("{before}?{}", kept.join("&"))
    };
    Ok((url, tls))
}

impl Tls {
    fn connector(&self) -> Result<Option<MakeRustlsConnect>> {
        if self.mode == SslMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let inner = if self.verify_chain {
            let roots = Arc::new(self.roots()?);
            Some(
                WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                    .build()
                    .map_err(|error| {
                        invalid(&format!("its root certificates are no use: {error}"))
                    })?,
            )
        } else {
            None
        };
        let verifier = Verifier {
            inner,
            verify_name: self.verify_name,
            provider: provider.clone(),
        };
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::internal)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(config)))
    }

    fn roots(&self) -> Result<rustls::RootCertStore> {
        let mut store = rustls::RootCertStore::empty();
        if let Some(path) = &self.roots {
            let certificates = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| invalid(&format!("sslrootcert {path} cannot be read: {error}")))?;
            store.add_parsable_certificates(certificates);
        } else {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        if store.is_empty() {
            return Err(invalid(
                "no root certificate was found for sslmode=verify-ca or verify-full",
            ));
        }
        Ok(store)
    }
}

/// libpq's modes: `require` encrypts and judges nothing unless roots are named, `verify-ca` judges
/// the chain, `verify-full` the name as well.
#[derive(Debug)]
struct Verifier {
    inner: Option<Arc<WebPkiServerVerifier>>,
    verify_name: bool,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use rustls::CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(inner) = &self.inner else {
            return Ok(ServerCertVerified::assertion());
        };
        match inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                NotValidForName | NotValidForNameContext { .. },
            )) if !self.verify_name => Ok(ServerCertVerified::assertion()),
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, rest: &str, mode: SslMode, chain: bool, name: bool) {
        let (kept, tls) = split_tls(url).unwrap();
        assert_eq!(kept, rest);
        assert_eq!(
            (tls.mode, tls.verify_chain, tls.verify_name),
            (mode, chain, name),
            "{url}"
        );
    }

    #[test]
    fn tls_is_read_as_libpq_writes_it() {
        let plain = "postgres://a@b/c";
        check(plain, plain, SslMode::Prefer, false, false);
        check(
            "postgres://a@b/c?sslmode=disable",
            plain,
            SslMode::Disable,
            false,
            false,
        );
        check(
            "postgres://a@b/c?sslmode=require",
            plain,
            SslMode::Require,
            false,
            false,
        );
        check(
            "postgres://a@b/c?sslmode=verify-ca",
            plain,
            SslMode::Require,
            true,
            false,
        );
        check(
            "postgres://a@b/c?host=/run/x&sslmode=verify-full",
            "postgres://a@b/c?host=/run/x",
            SslMode::Require,
            true,
            true,
        );
        assert!(split_tls("postgres://a@b/c?sslmode=strict").is_err());
    }

    #[test]
    fn a_root_file_may_be_percent_encoded() {
        let (_, tls) =
            split_tls("postgres://a@b/c?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem").unwrap();
        assert_eq!(tls.roots.as_deref(), Some("/etc/ca.pem"));
        let (_, tls) = split_tls("postgres://a@b/c?sslrootcert=/etc/a+b%20c.pem").unwrap();
        assert_eq!(tls.roots.as_deref(), Some("/etc/a+b c.pem"));
    }

    #[test]
    fn roots_are_asked_as_soon_as_tls_is_required() {
        let rest = "postgres://a@b/c";
        for (mode, asked) in [("prefer", false), ("require", true), ("verify-ca", true)] {
            let (_, tls) = split_tls(&format!("{rest}?sslmode={mode}&sslrootcert=x")).unwrap();
            assert_eq!(
                (tls.verify_chain, tls.verify_name),
                (asked, false),
                "{mode}"
            );
        }
        let (_, tls) = split_tls(&format!("{rest}?sslrootcert=system&sslmode=require")).unwrap();
        assert!(tls.verify_chain && tls.roots.is_none());
    }
}
