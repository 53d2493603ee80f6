//! Why an attempt failed: the reasons, and their texts in the API and in the database
//! (specification section 6.4).

use crate::outbound::{Failure, Kind, Phase};
use crate::texts;

texts! {
    /// Why an attempt failed.
    #[schemars(rename = "WebhookFailure")]
    Reason {
        /// No answer in time.
        NoAnswer = "no-answer",
        /// The host name does not resolve.
        HostNotResolved = "host-not-resolved",
        /// Nothing is listening.
        NothingListening = "nothing-listening",
        /// The address is one that webhooks may not go to.
        UrlRefused = "url-refused",
        /// The TLS certificate was not accepted.
        TlsRefused = "tls-refused",
        /// The connection failed; so too an attempt whose outcome a crash hid.
        ConnectionFailed = "connection-failed",
        /// The receiver answered with a status other than 2xx.
        HttpStatus = "http-status",
        /// The signing secret cannot be read or cannot sign.
        SecretUnavailable = "secret-unavailable",
        /// The endpoint was unregistered before the delivery went out.
        EndpointUnregistered = "endpoint-unregistered",
    }
}

impl Reason {
    /// For a person; `status` is the receiver's.
    pub fn sentence(self, status: Option<i16>) -> String {
        let words = match self {
            Self::NoAnswer => "no answer in time",
            Self::HostNotResolved => "the host name does not resolve",
            Self::NothingListening => "nothing listening",
            Self::UrlRefused => "the address is one webhooks may not go to",
            Self::TlsRefused => "TLS certificate not accepted",
            Self::ConnectionFailed => "connection failed",
            Self::HttpStatus => return status.map_or("HTTP".to_owned(), |s| format!("HTTP {s}")),
            Self::SecretUnavailable => "the signing secret cannot be used",
            Self::EndpointUnregistered => "the endpoint was unregistered",
        };
        words.to_owned()
    }
}

impl From<&Failure> for Reason {
    fn from(failure: &Failure) -> Self {
        match failure.kind() {
            Kind::Refused | Kind::Invalid => Self::UrlRefused,
            Kind::Resolve | Kind::Busy | Kind::Timeout(Phase::Resolve) => Self::HostNotResolved,
            Kind::ConnectRefused => Self::NothingListening,
            Kind::Timeout(_) => Self::NoAnswer,
            Kind::Tls => Self::TlsRefused,
            Kind::Proxy
            | Kind::Connect
            | Kind::Reset
            | Kind::TooLarge
            | Kind::Cancelled
            | Kind::Protocol => Self::ConnectionFailed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_in_the_database_and_in_json() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.text());
            assert_eq!(Reason::parse(reason.text()), Some(reason));
        }
        assert_eq!(Reason::parse("other"), None);
        assert_eq!(Reason::HttpStatus.sentence(Some(429)), "HTTP 429");
    }
}
