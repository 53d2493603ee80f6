//! The session of a browser: the cookie that carries it, and the rule that a request with one comes from a page of this
//! server.
//!
//! A browser sends its cookies with whatever any site makes it send. So a request with a session has two conditions. It is
//! sent to the server's own address: this keeps out names that an attacker points at this host. And it comes from the
//! server's own pages: browsers say so in `Sec-Fetch-Site` (Fetch Metadata), older ones in `Origin`. Forwarded headers are
//! not read: the address is a setting. A request with an `Authorization` header needs none of that, and its cookies are not
//! looked at.
//!
//! Not here: what the value stands for (`authn`).

use super::door::Context;
use crate::authn::{Authn, Credential, session};
use crate::config::loopback_name;
use crate::error::{Code, Error, Result};
use crate::text::trim_ows;

/// A request of a page that asks by itself says so: it does not keep its session open.
const BACKGROUND: &str = "svc-background";

/// The server's own origin, as this request names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own(String);

impl Own {
    /// The origin in which the request names this server; none if its `Host` is not one of the server's.
    ///
    /// The public address is known by its name: proxies drop its port.
    pub(crate) fn of(options: &session::Options, context: &Context) -> Option<Self> {
        let host = context.header("host")?;
        if let Some(public) = &options.public_url
            && name_of(host).eq_ignore_ascii_case(name_of(authority(public.text())))
        {
            return Some(Self(public.text().to_owned()));
        }
        (options.development && loopback_name(host).is_some())
            .then(|| Self(format!("http://{}", host.to_ascii_lowercase())))
    }

    /// The name of its cookie.
    fn cookie(&self) -> String {
        let port = authority(&self.0).strip_prefix(name_of(authority(&self.0)));
        match port.and_then(|port| port.strip_prefix(':')) {
            Some(port) if !port.is_empty() => format!("{}-{port}", session::COOKIE),
            _ => session::COOKIE.to_owned(),
        }
    }

    /// The origin itself.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// What the names of its cookies of sign-ins begin with (`flow_cookie`).
    pub(super) fn flow_prefix(&self) -> String {
        format!("{}-flow-", self.cookie())
    }

    /// An origin without a request.
    #[cfg(test)]
    pub(crate) fn for_tests(origin: &str) -> Self {
        Self(origin.to_owned())
    }

    /// Makes a browser keep a session.
    pub(crate) fn keep(&self, value: &str) -> String {
        format!(
            "{}={value}; Path=/; Secure; HttpOnly; SameSite=Strict",
            self.cookie()
        )
    }

    /// Makes a browser forget its session: when its person signs out alone. An answer that a session has ended may come
    /// late, and the browser may keep another one by then.
    pub(crate) fn clear(&self) -> String {
        format!(
            "{}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict",
            self.cookie()
        )
    }

    /// The value of the session that the browser keeps. Two are none: one of them is not ours.
    pub(crate) fn session<'c>(&self, context: &'c Context) -> Option<&'c str> {
        let name = self.cookie();
        let mut values = cookies(context).filter(|(known, _)| *known == name);
        match (values.next(), values.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// The request comes from a page of this server, or is a person's own look at an address.
    fn is_asked_by(&self, context: &Context, is_stream: bool) -> bool {
        let (site, origin) = (context.header("sec-fetch-site"), context.header("origin"));
        let is_own = origin.map(|origin| origin.eq_ignore_ascii_case(&self.0));
        let only_reads = ["GET", "HEAD"].contains(&context.method()) && !is_stream;
        match site {
            Some("same-origin") => true,
            Some("none") => only_reads && is_own != Some(false),
            Some(_) => false,
            None if only_reads => is_own != Some(false),
            None => is_own == Some(true),
        }
    }
}

fn authority(origin: &str) -> &str {
    origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority)
}

/// The name in a `host[:port]`.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Each cookie of the request (RFC 6265, section 5.4). Several `Cookie` headers are one list: proxies from HTTP/2 may leave
/// them so. Browsers let a host beside this one set a cookie whose name begins with a blank of Unicode, so its name is
/// compared byte by byte.
pub(super) fn cookies(context: &Context) -> impl Iterator<Item = (&str, &str)> {
    let headers = context.headers("cookie");
    headers
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| trim_ows(pair).split_once('='))
}

fn has_session(context: &Context) -> bool {
    let is_ours = |name: &str| {
        let port = name.strip_prefix(session::COOKIE);
        port.is_some_and(|port| {
            let digits = port.strip_prefix('-');
            port.is_empty()
                || digits.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        })
    };
    cookies(context).any(|(name, _)| is_ours(name))
}

fn mismatch(options: &session::Options) -> Error {
    let address = match &options.public_url {
        Some(url) => format!("Open {} and use its pages", url.text()),
        None => "Use the pages of this server".to_owned(),
    };
    Error::new(
        Code::CsrfOriginMismatch,
        format!(
            "The request did not come from a page of this server. {address}; a program sends Authorization: Bearer <token>."
        ),
    )
}

/// The credential of a request, of whichever kind. A header wins, and then no cookie is looked at.
///
/// # Errors
/// `unauthenticated`, `csrf-origin-mismatch`, `database-unavailable`.
pub(super) fn credential(authn: &Authn, context: &Context, is_stream: bool) -> Result<Credential> {
    let header = context.header("authorization");
    if header.is_some() || !has_session(context) {
        return authn.credential(header);
    }
    let options = authn.sign_in();
    let elsewhere = || {
        Error::new(
            Code::Unauthenticated,
            "A session is taken at the server's own address alone. Sign in there.",
        )
    };
    let own = Own::of(options, context).ok_or_else(elsewhere)?;
    let value = own.session(context).ok_or_else(elsewhere)?;
    if !own.is_asked_by(context, is_stream) {
        return Err(mismatch(options));
    }
    let is_used = !is_stream && context.header(BACKGROUND) != Some("1");
    authn.session(value, is_used)
}

/// A request to sign in comes from a page of this server.
///
/// # Errors
/// `csrf-origin-mismatch`; `not-configured`: the server has no address for browsers.
pub(super) fn signing_in(options: &session::Options, context: &Context) -> Result<Own> {
    let own = returning(options, context)?;
    match own.is_asked_by(context, false) {
        true => Ok(own),
        false => Err(mismatch(options)),
    }
}

/// A browser comes back from an identity provider to the server's own address. Any page may send it there: what it brings is
/// judged by the cookie of its sign-in.
///
/// # Errors
/// `csrf-origin-mismatch`: at another address; `not-configured`: the server has no address for browsers.
pub(super) fn returning(options: &session::Options, context: &Context) -> Result<Own> {
    if options.public_url.is_none() && !options.development {
        return Err(Error::new(
            Code::NotConfigured,
            "Nobody signs in with a browser on this server: it does not know its own address. Set SVC_PUBLIC_URL.",
        ));
    }
    Own::of(options, context).ok_or_else(|| mismatch(options))
}

/// What proxies add: a request with one of them came from elsewhere, whatever its `Host` says.
const FORWARDED: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "via"];

/// The request is addressed to this very host, not by a proxy that says so, and comes from a page that was, or from none.
pub(super) fn is_loopback_page(context: &Context) -> bool {
    if FORWARDED.into_iter().any(|name| context.has_header(name)) {
        return false;
    }
    let Some(host) = context.header("host") else {
        return false;
    };
    let (site, origin) = (context.header("sec-fetch-site"), context.header("origin"));
    let own = format!("http://{}", host.to_ascii_lowercase());
    loopback_name(host).is_some()
        && site.is_none_or(|site| site == "same-origin")
        && origin.is_none_or(|origin| origin == own)
}
