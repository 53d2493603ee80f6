//! Certificates in PEM. Not here: private keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;

/// Certificates as the way out takes them (RFC 7468).
pub(super) fn pem(certificates: &[CertificateDer<'_>]) -> Vec<u8> {
    let mut text = String::new();
    for certificate in certificates {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls_pki_types::pem::PemObject;

    #[test]
    fn certificates_come_back_from_their_text() {
        for length in [0, 1, 47, 48, 49, 2000] {
            let certificate = CertificateDer::from(vec![7; length]);
            let text = pem(&[certificate.clone(), certificate.clone()]);
            let back: Vec<_> = CertificateDer::pem_slice_iter(&text)
                .collect::<std::result::Result<_, _>>()
                .unwrap();
            assert_eq!(back, [certificate.clone(), certificate]);
        }
    }
}
