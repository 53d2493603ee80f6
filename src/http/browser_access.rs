//! Access checks of routes that are for browsers alone: signing in, sessions, and the console in development.

use super::access::{Access, Rule};
use super::context::Cx;
use super::origin::Own;
use super::pipeline::nothing_here;
use crate::authn::Credential;
use crate::error::{Code, Error, Result};
use crate::proof::Caller;

/// Somebody signs in from a page of this server: the handler takes what the body has, and refuses any other.
#[derive(Debug)]
pub struct SigningIn {
    /// The server's own origin, as the request names it.
    pub(crate) own: Own,
}

impl Access for SigningIn {
    fn rule() -> Rule {
        Rule::SigningIn
    }
    fn codes() -> Vec<Code> {
        vec![
            Code::Unauthenticated,
            Code::CsrfOriginMismatch,
            Code::NotConfigured,
        ]
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        cx.signing_in().map(|own| Self { own })
    }
}

/// A browser that comes back from an identity provider: the handler finds the sign-in that it began, and refuses any other.
#[derive(Debug)]
pub struct Returning {
    /// The server's own origin, as the request names it.
    pub(crate) own: Own,
}

impl Access for Returning {
    fn rule() -> Rule {
        Rule::Returning
    }
    fn codes() -> Vec<Code> {
        vec![Code::CsrfOriginMismatch, Code::NotConfigured]
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        cx.returning().map(|own| Self { own })
    }
}

/// A session, and nothing else.
#[derive(Debug)]
pub struct OfSession {
    /// Whose.
    pub caller: Caller,
    /// The server's own origin, as the request names it.
    pub(crate) own: Own,
}

impl Access for OfSession {
    fn rule() -> Rule {
        Rule::Session
    }
    fn codes() -> Vec<Code> {
        vec![Code::Unauthenticated, Code::CsrfOriginMismatch]
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        let refused = || {
            Error::new(
                Code::Unauthenticated,
                "This is about the session of a browser, and the request has none.",
            )
        };
        match (cx.credential()?, cx.own_origin()) {
            (Credential::Session(known), Some(own)) => Ok(Self {
                caller: cx.identify(known.caller),
                own,
            }),
            _ => Err(refused()),
        }
    }
}

/// A page of this very host, in development: to anybody else the route is not there.
#[derive(Debug)]
pub struct DevelopmentLoopback(());

impl Access for DevelopmentLoopback {
    fn rule() -> Rule {
        Rule::DevelopmentLoopback
    }
    fn codes() -> Vec<Code> {
        vec![Code::RouteNotFound]
    }
    fn check(cx: &Cx<'_>) -> Result<Self> {
        cx.is_loopback_page()
            .then_some(Self(()))
            .ok_or_else(nothing_here)
    }
}
