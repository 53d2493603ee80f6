//! How a connection to Postgres is made: libpq's connection string, TLS up to `verify-full`, and
//! deadlines that the kernel keeps where the protocol has none.

use super::{Connection, Options};
use crate::error::{Code, Error, Result};
use postgres::config::SslMode;
use postgres::{Config, NoTls};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Makes connections for the pool and for the watchdog.
#[derive(Clone)]
pub struct Manager {
    config: Config,
    tls: Option<MakeRustlsConnect>,
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
            tls: tls.connector()?,
        })
    }

    /// One connection, outside the pool.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn client(&self) -> Result<postgres::Client, postgres::Error> {
        match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        }
    }

    /// Asks the server to end what the connection of `token` is doing.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub(super) fn cancel(&self, token: &postgres::CancelToken) -> Result<(), postgres::Error> {
        match &self.tls {
            Some(tls) => token.cancel_query(tls.clone()),
            None => token.cancel_query(NoTls),
        }
    }
}

impl r2d2::ManageConnection for Manager {
    type Connection = Connection;
    type Error = postgres::Error;

    fn connect(&self) -> Result<Connection, postgres::Error> {
        Ok(Connection {
            client: self.client()?,
            statements: std::collections::HashMap::new(),
            used_at: Instant::now(),
        })
    }

    fn is_valid(&self, connection: &mut Connection) -> Result<(), postgres::Error> {
        connection.client.is_valid(Duration::from_secs(1))
    }

    fn has_broken(&self, connection: &mut Connection) -> bool {
        connection.client.is_closed()
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
            Some(("sslrootcert", path)) if path != "system" => {
                let decoded: String = url::form_urlencoded::parse(pair.as_bytes())
                    .map(|(_, value)| value.into_owned())
                    .collect();
                tls.roots = Some(if decoded.is_empty() {
                    path.to_owned()
                } else {
                    decoded
                });
            }
            Some(("sslrootcert", _)) => {}
            _ => kept.push(pair),
        }
    }
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

/// libpq's modes: `require` encrypts and judges nothing, `verify-ca` judges the chain,
/// `verify-full` the name as well.
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
    }
}
