//! Translates an error of the HTTP client or of TLS into a kind and a sentence that names the host.
//!
//! Text that the other side chose, such as names in its certificate, is cut and escaped.

use super::coding::Undecodable;
use super::failure::{Failure, Kind, Limit, Phase};
use super::proxy::Refusal;
use super::transport::Exchange;
use rustls::{AlertDescription, CertificateError};
use rustls_pki_types::UnixTime;
use std::io;
use time::OffsetDateTime;

/// Names of a certificate in a message, at most.
const MAX_NAMES: usize = 5;
/// Characters of each name, at most: the longest host name (RFC 1035).
const MAX_NAME_CHARACTERS: usize = 253;

pub(super) fn too_large(host: &str, cap: u64) -> Failure {
    Failure::new(
        Kind::TooLarge,
        format!("The answer of {host} is longer than {cap} bytes."),
    )
}

/// Explains an error of the HTTP client at this point of the exchange.
pub(super) fn explain(error: ureq::Error, exchange: &Exchange, host: &str) -> Failure {
    let phase = exchange.phase();
    let through = match (&exchange.way, phase) {
        (Some(way), Phase::Resolve | Phase::Connect) => {
            format!("{} on the way to {host}", way.proxy)
        }
        (Some(way), _) => format!("{host}, through {}", way.proxy),
        (None, _) => host.to_owned(),
    };
    let host = through.as_str();
    if let Some((phase, limit)) = exchange.timed_out() {
        return timeout(phase, limit, host);
    }
    match error {
        ureq::Error::Io(error) => explain_io(&error, exchange, host),
        ureq::Error::Rustls(error) => tls(&error, host),
        ureq::Error::Tls(error) => insecure(host, error),
        ureq::Error::LargeResponseHeader(..) => Failure::new(
            Kind::Protocol,
            format!("The answer of {host} has more than 64 KiB of headers."),
        ),
        ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
            Failure::new(Kind::Invalid, "The request cannot be sent as it is.")
        }
        other => Failure::new(
            Kind::Protocol,
            format!("The answer of {host} is not valid HTTP/1.1: {other}."),
        ),
    }
}

fn explain_io(error: &io::Error, exchange: &Exchange, host: &str) -> Failure {
    if let Some(error) = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<rustls::Error>())
    {
        return tls(error, host);
    }
    if let Some(refusal) = error.get_ref().and_then(|e| e.downcast_ref::<Refusal>()) {
        return refusal.failure();
    }
    if let Some(coding) = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<Undecodable>())
    {
        let coding = coding.0;
        return Failure::new(
            Kind::Protocol,
            format!("The answer of {host} says that it is compressed as {coding}, and is not."),
        );
    }
    match exchange.phase() {
        Phase::Resolve | Phase::Connect if error.kind() == io::ErrorKind::TimedOut => {
            timeout(Phase::Connect, exchange.connect_limit(), host)
        }
        Phase::Resolve | Phase::Connect => {
            let kind = match error.kind() {
                io::ErrorKind::ConnectionRefused => Kind::ConnectRefused,
                _ => Kind::Connect,
            };
            Failure::new(kind, format!("No connection to {host}: {error}."))
        }
        Phase::Tls => Failure::new(
            Kind::Reset,
            format!("The connection to {host} broke during the TLS handshake."),
        ),
        Phase::Send | Phase::FirstByte => Failure::new(
            Kind::Reset,
            format!("The connection to {host} broke before an answer came."),
        ),
        Phase::Body => Failure::new(
            Kind::Reset,
            format!("The connection to {host} broke in the middle of its answer."),
        ),
    }
}

fn timeout(phase: Phase, limit: Limit, host: &str) -> Failure {
    let what = match phase {
        Phase::Resolve => "its name did not resolve",
        Phase::Connect => "it did not accept a connection",
        Phase::Tls => "it did not finish the TLS handshake",
        Phase::Send => "it did not take the request",
        Phase::FirstByte => "it did not begin to answer",
        Phase::Body if matches!(limit, Limit::Idle(_)) => "it did not go on with its answer",
        Phase::Body => "its answer did not end",
    };
    let failure = Failure::new(
        Kind::Timeout(phase),
        format!("{host} took too long: {what} in time."),
    );
    failure.by_limit(limit)
}

/// A failed handshake, most often over the certificate.
fn tls(error: &rustls::Error, host: &str) -> Failure {
    let why = match error {
        rustls::Error::InvalidCertificate(error) => certificate(error, host),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired | AlertDescription::NoCertificate,
        ) => "it asks for a client's certificate, and there is none to show".to_owned(),
        rustls::Error::AlertReceived(alert) => {
            format!("it ended the TLS handshake with the alert {alert:?}")
        }
        rustls::Error::InvalidMessage(_) => "what listens there does not speak TLS".to_owned(),
        rustls::Error::PeerIncompatible(_) => {
            "it offers no TLS 1.2 or 1.3 with a cipher that is accepted".to_owned()
        }
        other => other.to_string(),
    };
    insecure(host, &why)
}

fn insecure(host: &str, why: &str) -> Failure {
    Failure::new(Kind::Tls, format!("No secure connection to {host}: {why}."))
}

/// Why a certificate is refused.
fn certificate(error: &CertificateError, host: &str) -> String {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate expired on {}", date(not_after))
        }
        CertificateError::Expired => "its certificate has expired".to_owned(),
        CertificateError::NotValidYetContext { not_before, .. } => {
            format!("its certificate is not valid before {}", date(not_before))
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!(
                "its certificate is for {} and not for {host}",
                names(presented)
            )
        }
        CertificateError::UnknownIssuer => {
            "its certificate is self-signed or signed by an authority that this server does not \
             trust; the operator can add authorities with SVC_OUTBOUND_CA_PATH"
                .to_owned()
        }
        // What `openssl req -x509` makes by default.
        CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "its certificate is self-signed and an authority's (CA:TRUE), which no server may show"
                .to_owned()
        }
        CertificateError::Other(other) => format!("its certificate is not accepted: {other}"),
        other => format!("its certificate is not accepted: {other}"),
    }
}

fn date(time: &UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(time) => format!(
            "{} at {:02}:{:02} UTC",
            time.date(),
            time.hour(),
            time.minute()
        ),
        Err(_) => "a date beyond the calendar".to_owned(),
    }
}

/// The names of a certificate, parsed from rustls's text: `DnsName("a.example")`.
fn names(presented: &[String]) -> String {
    let name = |name: &String| {
        let bare = name.split('"').nth(1).unwrap_or(name);
        let printable = bare.chars().filter(char::is_ascii_graphic);
        printable.take(MAX_NAME_CHARACTERS).collect()
    };
    let mut listed: Vec<String> = presented.iter().take(MAX_NAMES).map(name).collect();
    if presented.len() > MAX_NAMES {
        listed.push("others".to_owned());
    }
    if listed.is_empty() {
        return "no name".to_owned();
    }
    listed.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_certificate_are_bare_printable_and_few() {
        assert_eq!(names(&[]), "no name");
        assert_eq!(
            names(&[
                "DnsName(\"a.example\")".to_owned(),
                "b\u{1b}[31m\n".to_owned()
            ]),
            "a.example, b[31m"
        );
        let many = vec!["x".repeat(1000); 100];
        let listed = names(&many);
        assert!(
            listed.ends_with(", others") && listed.len() < 6 * 260,
            "{listed}"
        );
    }

    #[test]
    fn dates_are_told_or_said_to_be_far_off() {
        let at = |seconds| {
            date(&UnixTime::since_unix_epoch(std::time::Duration::from_secs(
                seconds,
            )))
        };
        assert_eq!(at(1_577_934_240), "2020-01-02 at 03:04 UTC");
        assert_eq!(at(u64::MAX), "a date beyond the calendar");
    }
}
