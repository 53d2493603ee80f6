//! Who may call a route: the words of an access check, for the API description, the route snapshot and the sweep.
//!
//! Not here: the checks themselves (`access`, `browser_access`).

/// Who may call a route, for the API description, the route snapshot and the sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Anybody; the reason says why.
    Open(&'static str),
    /// The holder of an enrolment code, which the body has.
    Enrolling,
    /// Who has something in the body to sign in with, from a page of this server.
    SigningIn,
    /// A browser that began to sign in and comes back from an identity provider.
    Returning,
    /// A page of this host's own browser, in development.
    DevelopmentLoopback,
    /// A session.
    Session,
    /// The user in the path, or who decides about the tenant.
    GrantsReader,
    /// Any bearer token or session.
    Authenticated,
    /// A bearer token or a public token of the run in the path.
    RunReader,
    /// Who began the conversation in the path and may write there, or who may decide about it.
    ConversationEraser,
    /// A reviewer.
    Reviewer,
    /// A reviewer with the role of the approval in the path.
    ApprovalReviewer {
        /// Not the one who started the run.
        decides: bool,
    },
    /// The caller may do this to the tenant.
    OnTenant(&'static str),
    /// The caller may do this to the object whose id is in the path.
    OnPath {
        /// What kind of object.
        kind: &'static str,
        /// What is done.
        action: &'static str,
    },
    /// The caller may do this to the object that the body names.
    OnBody {
        /// What kind of object.
        kind: &'static str,
        /// What is done.
        action: &'static str,
    },
    /// A list: it holds what the caller may read.
    List(&'static str),
    /// Both, the first one first.
    Both(Box<Rule>, Box<Rule>),
    /// One of them: the body has one of two forms.
    Either(Box<Rule>, Box<Rule>),
}

impl Rule {
    /// The path parameters that the rule needs.
    pub fn parameters(&self) -> Vec<String> {
        match self {
            Self::OnPath { kind, .. } => vec![parameter_of(kind)],
            Self::RunReader => vec![parameter_of("run")],
            Self::GrantsReader => vec![parameter_of("user")],
            Self::ConversationEraser => vec![parameter_of("conversation")],
            Self::ApprovalReviewer { .. } => vec![parameter_of("approval")],
            Self::Both(first, second) | Self::Either(first, second) => {
                [first.parameters(), second.parameters()].concat()
            }
            _ => Vec::new(),
        }
    }

    /// A bearer token or a session is needed.
    pub fn needs_bearer(&self) -> bool {
        match self {
            Self::RunReader => false,
            Self::Both(first, second) | Self::Either(first, second) => {
                first.needs_bearer() || second.needs_bearer()
            }
            _ => self.reads_credential(),
        }
    }

    /// The request's credential is looked at.
    pub fn reads_credential(&self) -> bool {
        !matches!(
            self,
            Self::Open(_)
                | Self::Enrolling
                | Self::SigningIn
                | Self::Returning
                | Self::DevelopmentLoopback
        )
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(why) => write!(f, "open: {why}"),
            Self::Enrolling => f.write_str("an enrolment code in the body"),
            Self::SigningIn => {
                f.write_str("what the body has to sign in with, from a page of this server")
            }
            Self::Returning => f.write_str(
                "a browser that began to sign in and comes back from its identity provider",
            ),
            Self::DevelopmentLoopback => f.write_str("a page of this very host, in development"),
            Self::Session => f.write_str("a session"),
            Self::GrantsReader => f.write_str("the user in path, or admin on tenant"),
            Self::ConversationEraser => {
                f.write_str("admin on conversation in path, or write on it by who began it")
            }
            Self::Reviewer => f.write_str("a reviewer"),
            Self::ApprovalReviewer { decides: false } => {
                f.write_str("a reviewer with the role of approval in path")
            }
            Self::ApprovalReviewer { decides: true } => f.write_str(
                "a reviewer with the role of approval in path who did not start the run",
            ),
            Self::Authenticated => f.write_str("any bearer token or session"),
            Self::RunReader => f.write_str("read on run, or a public token of the run"),
            Self::OnTenant(action) => write!(f, "{action} on tenant"),
            Self::OnPath { kind, action } => write!(f, "{action} on {kind} in path"),
            Self::OnBody { kind, action } => write!(f, "{action} on {kind} in body"),
            Self::List(kind) => write!(f, "readable {kind}s"),
            Self::Both(first, second) => write!(f, "{first}, and {second}"),
            Self::Either(first, second) => write!(f, "{first}, or {second}"),
        }
    }
}

/// The path parameter of a kind: `model-provider` is `modelProviderId`. That of a flow is `id`: `flowId` is `namespace.name`
/// everywhere.
pub(super) fn parameter_of(kind: &str) -> String {
    if kind == "flow" {
        return "id".to_owned();
    }
    let mut name = String::with_capacity(kind.len() + 2);
    let mut upper = false;
    for letter in kind.chars() {
        if letter == '-' {
            upper = true;
        } else if upper {
            name.push(letter.to_ascii_uppercase());
            upper = false;
        } else {
            name.push(letter);
        }
    }
    name.push_str("Id");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_lower_camel_case() {
        assert_eq!(parameter_of("run"), "runId");
        assert_eq!(parameter_of("flow"), "id");
        assert_eq!(parameter_of("model-provider"), "modelProviderId");
    }
}
