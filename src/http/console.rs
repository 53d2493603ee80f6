//! The console's files below `/console/`, under a strict content security policy.
//!
//! Guarantees: what has no file there is the page, which then shows what its address names; but below `assets`, `client` and
//! `parts` it is not found. A browser asks each time whether its copy is still right and gets the bytes once, so that nothing
//! old is mixed with new files after an upgrade. The page runs scripts of this server alone, none of which comes from text.
//!
//! The files are chosen and packed when the program is built (`build/console.rs`).

use super::access::Open;
use super::context::Cx;
use super::input::Input;
use super::output::{Asset, GoOn, Headers, Output, TaggedAsset};
use super::route::{Method, Mount, Operation, Route, route};
use crate::error::{Code, Result};
use crate::text::trim_ows;
use bytes::Bytes;

/// A file as it is, and compressed.
struct File {
    content_type: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
    /// Changes with the bytes.
    digest: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// The address of a page. Its query is read in the browser: filters, cursors, where a sign-in came to nothing.
struct Address;

impl Input for Address {
    fn read(_: &Cx<'_>) -> Result<Self> {
        Ok(Self)
    }
}

/// Where files are, and nothing else is.
const FOLDERS: [&str; 3] = ["assets", "client", "parts"];

/// What the page has beside what every file has.
const PAGE_HEADERS: [(&str, &str); 4] = [
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("referrer-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    ),
];

/// The paths of the files, below `/console/`; none where the build had no files from npm.
pub fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(path, _)| *path)
}

/// The routes.
pub(crate) fn routes() -> Vec<Route> {
    fn get<O: Output + 'static>(
        path: &'static str,
        summary: &'static str,
        handler: fn(&Cx<'_>, Open, Address) -> Result<O>,
    ) -> Route {
        let for_people = Operation::Unnamed("a page for people, no call of a client");
        route(Method::Get, path, for_people, summary, handler).mounted(Mount::Console)
    }
    vec![
        get("/", "Leads to the console", home),
        get("/console", "Leads to the console", home),
        get("/console/", "The console", page),
        get(
            "/console/{*page}",
            "The console's pages, and its files",
            page_or_file,
        )
        .answers(&[Code::RouteNotFound]),
    ]
}

fn home(_: &Cx<'_>, _: Open, _: Address) -> Result<GoOn> {
    Ok(GoOn {
        to: "/console/".to_owned(),
        headers: Headers::new(),
    })
}

fn page(cx: &Cx<'_>, _: Open, _: Address) -> Result<TaggedAsset> {
    Ok(sent(cx, &PAGE, &PAGE_HEADERS))
}

fn page_or_file(cx: &Cx<'_>, access: Open, address: Address) -> Result<TaggedAsset> {
    let path = cx.parameter("page").map_err(|_| super::nothing_here())?;
    let folder = path.split('/').next().unwrap_or_default();
    if !FOLDERS.contains(&folder) {
        return page(cx, access, address);
    }
    let found = FILES.binary_search_by(|(own, _)| (*own).cmp(&path));
    let index = found.map_err(|_| super::nothing_here())?;
    Ok(sent(cx, &FILES[index].1, &[]))
}

fn sent(cx: &Cx<'_>, file: &File, more: &[(&'static str, &str)]) -> TaggedAsset {
    let common = [("cache-control", "no-cache"), ("vary", "accept-encoding")];
    let is_gzip = takes_gzip(cx.header("accept-encoding"));
    let encoding = is_gzip.then_some(("content-encoding", "gzip"));
    let headers = common.iter().chain(more).chain(&encoding);
    TaggedAsset {
        asset: Asset {
            content_type: file.content_type,
            body: Bytes::from_static(if is_gzip { file.gzip } else { file.plain }),
            headers: headers
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
        },
        // The two have different bytes.
        tag: format!("\"{}{}\"", file.digest, if is_gzip { "-gzip" } else { "" }),
        if_none_match: cx.header("if-none-match").map(str::to_owned),
    }
}

/// Whether an `Accept-Encoding` names gzip, and not with weight 0 (RFC 9110, section 12.5.3).
fn takes_gzip(accepted: Option<&str>) -> bool {
    accepted.unwrap_or_default().split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = trim_ows(weight).strip_prefix("q=").unwrap_or("1");
        trim_ows(name).eq_ignore_ascii_case("gzip") && weight.parse::<f32>().is_ok_and(|q| q > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        for accepted in ["gzip", "br, GZIP", "deflate, gzip;q=0.5", "gzip; q=1"] {
            assert!(takes_gzip(Some(accepted)), "{accepted}");
        }
        for accepted in ["", "br", "gzip;q=0", "x-gzip", "gzip;q=no"] {
            assert!(!takes_gzip(Some(accepted)), "{accepted}");
        }
        assert!(!takes_gzip(None));
    }

    #[test]
    fn the_files_are_in_order_and_have_no_two_of_one_path() {
        assert!(FILES.is_sorted_by(|(one, _), (other, _)| one < other));
    }
}
