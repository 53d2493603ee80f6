//! Checks settings together: two forms of one value, and bounds that depend on each other.

use super::{Origination, Reader, Row, value};
use crate::config::parse::Value;
use crate::config::table;
use crate::config::types::Origin;

impl Reader<'_> {
    /// Two forms of one value, both given.
    pub(super) fn variants(&mut self, rows: &[Row]) {
        let given = |name: &str| {
            rows.iter().any(|row| {
                row.setting.name == name
                    && !matches!(row.from, Origination::Default | Origination::Unset)
            })
        };
        for setting in table::settings() {
            if let Some(other) = setting.variant_of
                && given(setting.name)
                && given(other)
            {
                let problem = format!("and {other} give the same thing, and both are set");
                self.fault(setting.name, problem, "Keep one of them");
            }
        }
    }

    pub(super) fn body_limits(&mut self, rows: &[Row]) {
        let number = |name: &str| match value(rows, name) {
            Some(Value::Integer(number)) => Some(*number),
            _ => None,
        };
        let one = number("SVC_MAX_BODY_BYTES");
        let all = number("SVC_MAX_BODY_BYTES_IN_FLIGHT");
        if let (Some(one), Some(all)) = (one, all)
            && one > all
        {
            self.fault(
                "SVC_MAX_BODY_BYTES_IN_FLIGHT",
                "is less than SVC_MAX_BODY_BYTES, so the longest body could never be taken",
                "Raise it, or lower SVC_MAX_BODY_BYTES",
            );
        }
    }

    /// What browsers take for an origin, and keep the cookie of a session for.
    pub(super) fn public_url(&mut self, rows: &[Row]) {
        let Some(Value::Text(text)) = value(rows, "SVC_PUBLIC_URL") else {
            return;
        };
        let url = url::Url::parse(text).ok();
        if url.as_ref().is_some_and(|url| url.path() != "/") {
            self.fault(
                "SVC_PUBLIC_URL",
                "has a path, and browsers are told apart by scheme, host and port alone",
                "Give it as in https://agents.example.com",
            );
            return;
        }
        let origin = url.as_ref().and_then(Origin::of);
        if origin.is_some_and(|origin| !origin.keeps_secure_cookies()) {
            self.fault(
                "SVC_PUBLIC_URL",
                "is plain http, and browsers do not keep the sign-in cookie over plain http but on this very host",
                "Put a proxy with TLS in front (docs/proxy.md), and give its https address",
            );
        }
    }

    /// Who logs in by itself has to be there.
    pub(super) fn console(&mut self, rows: &[Row]) {
        let is =
            |name, wanted| matches!(value(rows, name), Some(Value::Boolean(is)) if *is == wanted);
        if is("SVC_DEV_CONSOLE_LOGIN", true) && is("SVC_CONSOLE", false) {
            self.fault(
                "SVC_DEV_CONSOLE_LOGIN",
                "lets the console log in by itself, and SVC_CONSOLE=false leaves the console out",
                "Turn one of them off, or the console on",
            );
        }
    }

    pub(super) fn traces(&mut self, rows: &[Row]) {
        let endpoint = match value(rows, "SVC_OTLP_ENDPOINT") {
            Some(Value::Text(endpoint)) => Some(endpoint.trim_end_matches('/')),
            _ => None,
        };
        if endpoint.is_some_and(|endpoint| endpoint.ends_with("/v1/traces")) {
            self.fault(
                "SVC_OTLP_ENDPOINT",
                "ends with /v1/traces, which the server adds itself",
                "Give the base URL, as in http://127.0.0.1:4318",
            );
        }
        if endpoint.is_none() && value(rows, "SVC_OTLP_HEADERS").is_some() {
            self.fault(
                "SVC_OTLP_HEADERS",
                "is set without a valid SVC_OTLP_ENDPOINT, so nothing is sent the headers",
                "Set SVC_OTLP_ENDPOINT, or remove it",
            );
        }
    }

    pub(super) fn forward_proxy(&mut self, rows: &[Row]) {
        let proxy = match value(rows, "SVC_FORWARD_PROXY") {
            Some(Value::Text(proxy)) => Some(proxy),
            _ => None,
        };
        let has_faults =
            |reader: &Self, name: &str| reader.faults.iter().any(|f| f.setting == name);
        let origins = value(rows, "SVC_FORWARD_PROXY_ORIGINS");
        if let Some(proxy) = proxy {
            let url = url::Url::parse(proxy).ok();
            if !url.is_some_and(|url| url.scheme() == "http" && url.path() == "/") {
                self.fault(
                    "SVC_FORWARD_PROXY",
                    "must be an http URL without a path; TLS to the proxy itself is not supported",
                    "Give it as in http://proxy:3128",
                );
            }
            if origins.is_none() && !has_faults(self, "SVC_FORWARD_PROXY_ORIGINS") {
                self.fault(
                    "SVC_FORWARD_PROXY",
                    "is set without SVC_FORWARD_PROXY_ORIGINS, so nothing goes through it",
                    "List the origins that are reached through it, or remove it",
                );
            }
        }
        for name in ["SVC_FORWARD_PROXY_ORIGINS", "SVC_FORWARD_PROXY_CREDENTIALS"] {
            if proxy.is_none()
                && value(rows, name).is_some()
                && !has_faults(self, "SVC_FORWARD_PROXY")
            {
                self.fault(
                    name,
                    "is set without SVC_FORWARD_PROXY",
                    "Set SVC_FORWARD_PROXY, or remove it",
                );
            }
        }
        if let Some(Value::Secret(credentials)) = value(rows, "SVC_FORWARD_PROXY_CREDENTIALS")
            && !credentials.expose().contains(':')
        {
            self.fault(
                "SVC_FORWARD_PROXY_CREDENTIALS",
                "has no : between the user and the password",
                "Give it as user:password",
            );
        }
    }
}
