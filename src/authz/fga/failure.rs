//! Why OpenFGA gave no usable answer: a kind for the program, a sentence for a person.
//!
//! Sentences contain hosts, statuses and codes, never a tuple, a body or a header.

use crate::outbound;

/// A call to OpenFGA that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It could not be reached, or the connection broke; what the connection said, in a sentence.
    Unreachable(String),
    /// It did not answer in time; how far that went, in a sentence.
    Silent(String),
    /// Every connection of the client was in use until the call's deadline.
    Busy,
    /// This process was too busy to look its name up; why, in a sentence.
    Unasked(String),
    /// It has no such store, or no longer.
    StoreUnknown,
    /// The store has no such model.
    ModelUnknown,
    /// Others kept changing the same tuples until the call's deadline.
    Contended,
    /// It refused the request.
    Refused {
        /// The HTTP status.
        status: u16,
        /// OpenFGA's own code, such as `validation_error`; empty if the answer holds none.
        code: String,
    },
    /// The answer is not one of OpenFGA's.
    Answer(&'static str),
}

impl Failure {
    /// Whether the same call may succeed later without a change of ours.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Silent(_)
            | Self::Busy
            | Self::Unasked(_)
            | Self::Contended => true,
            Self::Refused { status, .. } => *status >= 500 || matches!(status, 408 | 409 | 429),
            Self::StoreUnknown | Self::ModelUnknown | Self::Answer(_) => false,
        }
    }

    /// Whether the server, or what keeps its data, was gone, and may come back in another state. One
    /// that has much to do is not gone.
    pub fn is_absence(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused { status, .. } => matches!(status, 500 | 502 | 503),
            _ => false,
        }
    }
}

impl From<outbound::Failure> for Failure {
    fn from(failure: outbound::Failure) -> Self {
        match failure.kind() {
            outbound::Kind::TooLarge => Self::Answer("it is too long"),
            outbound::Kind::Protocol => Self::Answer("it is not HTTP/1.1"),
            // It was not asked: nothing is known of it, least of all that it was gone.
            outbound::Kind::Busy => Self::Unasked(failure.message().to_owned()),
            outbound::Kind::Timeout(_) => Self::Silent(failure.message().to_owned()),
            _ => Self::Unreachable(failure.message().to_owned()),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unreachable(why) | Self::Silent(why) | Self::Unasked(why) => f.write_str(why),
            Self::Busy => f.write_str("No connection to the authorization server came free in time."),
            Self::StoreUnknown => f.write_str("The authorization server does not have the store."),
            Self::ModelUnknown => {
                f.write_str("The authorization server does not have the store's model.")
            }
            Self::Contended => f.write_str(
                "The authorization server could not write in time, because the same permissions kept changing.",
            ),
            Self::Refused { status, code } if code.is_empty() => {
                write!(f, "The authorization server answered with status {status}.")
            }
            Self::Refused { status, code } => {
                write!(f, "The authorization server answered with status {status}, {code}.")
            }
            Self::Answer(why) => {
                write!(f, "The answer of the authorization server is not usable: {why}.")
            }
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::{Kind, Options, Outbound, Policy, Timeouts};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_name_that_nobody_had_time_to_look_up_is_no_absence_of_the_server() {
        let (release, blocked) = crossbeam_channel::bounded::<()>(0);
        let outbound = Outbound::new(Options {
            operator_resolver_threads: 1,
            lookup: Some(Arc::new(move |_: &str| {
                let _ = blocked.recv();
                Err(std::io::Error::other("no such name"))
            })),
            ..Options::default()
        })
        .unwrap();
        let short = Duration::from_millis(20);
        let timeouts = Timeouts {
            connect: short,
            first_byte: short,
            idle: None,
            total: short,
        };
        // The first name whose look-up begins occupies the only thread.
        let failures = (0..100).map(|number| {
            let url = format!("http://server{number}.test/");
            let mut client = outbound.client(Policy::Operator, timeouts);
            client.post_json(&url, &[], b"{}", 10).unwrap_err()
        });
        let busy = failures.into_iter().find(|one| one.kind() == Kind::Busy);
        let failure = Failure::from(busy.unwrap());
        assert!(
            failure.to_string().contains("was not looked up"),
            "{failure}"
        );
        assert!(failure.is_transient());
        assert!(!failure.is_absence());
        drop(release);
    }
}
