//! Why an exchange with an identity provider came to nothing: a code for programs, a sentence for the log, and what to do.
//!
//! None holds a secret: of what a provider sent, at most names and short texts without a space are repeated.

use crate::outbound::{self, Kind};
use std::fmt;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The provider cannot be reached, or not in time.
    Unavailable,
    /// The server may not connect there.
    AddressRefused,
    /// It answers something else than what was asked for.
    AnswerMalformed,
    /// It answers with a redirect where none is followed.
    Redirected,
    /// Its document names another issuer, or the issuer is no address that may be one.
    IssuerDiffers,
    /// A URL in its document is not one to use.
    EndpointRefused,
    /// It does not take this client.
    ClientRefused,
    /// It does not take the code: it was used, or is another's.
    CodeRefused,
    /// The answer that the browser brought is not from this provider.
    IssDiffers,
    /// The ID token is signed in a way that is not taken.
    AlgorithmRefused,
    /// The ID token is signed with a key that the provider does not list.
    KeyUnknown,
    /// The signature does not fit.
    SignatureWrong,
    /// A claim of the ID token is missing, or not what it has to be.
    ClaimWrong,
    /// The ID token is not of now: the clocks differ, or it is old.
    TimeWrong,
    /// The system gives no random bytes.
    NoRandomness,
}

impl Code {
    /// As it stands in the log and in answers.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Unavailable => "provider-unavailable",
            Self::AddressRefused => "provider-address-refused",
            Self::AnswerMalformed => "provider-answer-malformed",
            Self::Redirected => "provider-redirected",
            Self::IssuerDiffers => "provider-issuer-differs",
            Self::EndpointRefused => "provider-endpoint-refused",
            Self::ClientRefused => "provider-client-refused",
            Self::CodeRefused => "provider-code-refused",
            Self::IssDiffers => "provider-iss-differs",
            Self::AlgorithmRefused => "provider-algorithm-refused",
            Self::KeyUnknown => "provider-key-unknown",
            Self::SignatureWrong => "provider-signature-wrong",
            Self::ClaimWrong => "provider-claim-wrong",
            Self::TimeWrong => "provider-time-wrong",
            Self::NoRandomness => "no-randomness",
        }
    }

    /// What whoever runs the server, or registered the provider, can do about it.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Unavailable => {
                "See that the provider runs and that this host reaches it. A certificate of a private authority is \
                 trusted by SVC_OUTBOUND_CA_PATH."
            }
            Self::AddressRefused => {
                "The deployment does not let a tenant reach this address (SVC_HOST_ACCESS). The operator can open it, \
                 or register the provider."
            }
            Self::AnswerMalformed => {
                "See that the issuer is an OpenID Connect provider, and look into the provider's own log."
            }
            Self::Redirected => {
                "Register the issuer by the address that answers itself, without a redirect."
            }
            Self::IssuerDiffers => {
                "Register the issuer exactly as the provider's document names it: a slash at the end, a port and the \
                 case of letters count."
            }
            Self::EndpointRefused => {
                "The provider's document names an address of another scheme, or one that the deployment does not \
                 reach. Mend it at the provider."
            }
            Self::ClientRefused => {
                "See that the client id and the client secret are those that the provider gave, and that the secret \
                 has not expired there."
            }
            Self::CodeRefused => {
                "Sign in again. If it stays so, see that the provider knows the callback address exactly as it is."
            }
            Self::IssDiffers => {
                "Sign in again. If it stays so, somebody mixes two providers up: see who sent the browser here."
            }
            Self::AlgorithmRefused => {
                "Let the provider sign ID tokens for this client with RS256, PS256, ES256 or EdDSA."
            }
            Self::KeyUnknown => {
                "See that the provider lists the key it signs with, and sign in again in half a minute."
            }
            Self::SignatureWrong => {
                "Nobody but the provider can sign an ID token. See who answers at its address."
            }
            Self::ClaimWrong => "See how the provider is set to fill the ID token of this client.",
            Self::TimeWrong => {
                "Set the clocks of this host and of the provider by the same time server."
            }
            Self::NoRandomness => "See why the system gives no random bytes.",
        }
    }
}

/// A fault of an exchange with a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    code: Code,
    sentence: String,
}

impl Fault {
    pub(super) fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self {
            code,
            sentence: sentence.into(),
        }
    }

    /// An exchange that failed. `what` is the subject of a sentence, as in "The provider's keys".
    pub(super) fn of_failure(what: &str, failure: &outbound::Failure) -> Self {
        let code = match failure.kind() {
            Kind::Refused => Code::AddressRefused,
            Kind::Invalid => Code::EndpointRefused,
            Kind::TooLarge | Kind::Protocol => Code::AnswerMalformed,
            _ => Code::Unavailable,
        };
        Self::new(code, format!("{what} cannot be read: {failure}"))
    }

    /// What went wrong.
    pub fn code(&self) -> Code {
        self.code
    }

    /// A plain sentence without secrets, for the log and for whoever may see how the provider is registered.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        self.code.remedy()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Fault {}

/// What may be repeated of a text that a provider sent: its beginning, if it is a word.
pub fn shown(text: &str) -> String {
    let is_word = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_word {
        true => crate::text::beginning(text, 200).to_owned(),
        false => "something that is no word".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_sent_a_word_is_shown_and_no_more() {
        assert_eq!(shown("RS384"), "RS384");
        assert_eq!(shown(&"a".repeat(300)).len(), 200);
        for text in ["", "two words", "line\nbreak", "é"] {
            assert_eq!(shown(text), "something that is no word", "{text:?}");
        }
    }
}
