//! Links to hosts that are not listed: the usual way in which data leaves through an answer, since a browser that shows an image
//! asks its host for it.

use super::finding::Finding;
use regex::Regex;
use std::sync::LazyLock;
use url::{Host, Url};

/// With a scheme, or as a browser reads a link without one: `//host/…` behind a bracket, a quote or an equals sign.
static LINKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)[a-z][a-z0-9+.-]{1,20}:[/\\]{2}[^\s<>"'`)\]]+|[("'=]\s*[/\\]{2}[^\s<>"'`)\]]+"#,
    )
    .unwrap_or_else(|fault| panic!("{fault}"))
});

/// The hosts that links may have: `example.com`, or `*.example.com` for those below it.
#[derive(Debug, Clone, Default)]
pub struct Links(Vec<String>);

impl Links {
    /// Hosts as an author wrote them. None: one of them is no host.
    pub fn new(hosts: &[String]) -> Option<Self> {
        let host = |text: &String| {
            let (star, name) = match text.strip_prefix("*.") {
                Some(name) => ("*.", name),
                None => ("", text.as_str()),
            };
            Some(format!("{star}{}", Host::parse(name).ok()?))
        };
        hosts.iter().map(host).collect::<Option<_>>().map(Self)
    }

    fn takes(&self, host: &str) -> bool {
        self.0.iter().any(|listed| match listed.strip_prefix("*.") {
            Some(below) => host
                .strip_suffix(below)
                .is_some_and(|name| name.ends_with('.')),
            None => host == listed,
        })
    }

    pub(super) fn find(&self, text: &str, found: &mut Vec<Finding>) {
        for one in LINKS.find_iter(text) {
            let behind = one
                .as_str()
                .trim_start_matches(['(', '"', '\'', '=', ' ', '\t', '\n', '\r']);
            let start = one.end() - behind.len();
            let whole = match behind.starts_with(['/', '\\']) {
                true => format!("https:{behind}"),
                false => behind.to_owned(),
            };
            let is_listed = Url::parse(&whole)
                .ok()
                .and_then(|url| url.host_str().map(|host| self.takes(host)));
            if is_listed != Some(true) {
                found.push(Finding {
                    range: start..one.end(),
                    kind: "link",
                });
            }
        }
    }
}

#[cfg(feature = "bench")]
pub(super) fn expressions() -> Vec<&'static str> {
    vec![LINKS.as_str()]
}
