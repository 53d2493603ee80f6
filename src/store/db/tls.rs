//! TLS of connections to PostgreSQL, with libpq's `sslmode` (up to `verify-full`) and
//! `sslrootcert`.

use crate::error::{Code, Error, Result};
use percent_encoding::percent_decode_str;
use postgres::config::SslMode;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// What the connection string says of TLS.
pub(super) struct Tls {
    pub(super) mode: SslMode,
    pub(super) verify_chain: bool,
    pub(super) verify_name: bool,
    pub(super) roots: Option<String>,
}

pub(super) fn invalid(what: &str) -> Error {
    Error::new(Code::InvalidRequest, format!("SVC_DATABASE_URL: {what}"))
}

/// Takes `sslmode` and `sslrootcert` out of a URL: the client library knows neither `verify-ca` nor
/// `verify-full`. A string in key=value form may carry only the modes that the library knows.
pub(super) fn split_tls(text: &str) -> Result<(String, Tls)> {
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
    pub(super) fn connector(&self) -> Result<Option<MakeRustlsConnect>> {
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
