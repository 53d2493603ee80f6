//! The console's files: what is served, under which headers, that nothing that a page loads is missing, and how much is sent.

use crate::harness::{Answer, App, Client};
use agent_runtime::http::console;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// What the browser gets before its first view, what a page adds to it, and all that there is: bytes as they are sent.
const FIRST_VIEW: usize = 45_000;
const PAGE: usize = 8_000;
const ALL: usize = 240_000;

/// The import map of the page, as it stands there.
fn import_map(page: &str) -> &str {
    let (_, rest) = page
        .split_once("<script type=\"importmap\">")
        .expect("this build has no console. Run tests/setup/console files, and build again");
    rest.split_once("</script>").unwrap().0
}

fn compressed(client: &Client, path: &str) -> usize {
    let answer = client.send("HEAD", path, None, &[("accept-encoding", "gzip")]);
    assert_eq!(answer.header("content-encoding"), Some("gzip"), "{path}");
    answer.header("content-length").unwrap().parse().unwrap()
}

/// What stands in quotes after this, which ends with a quote.
fn quoted_after<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let quote = &before[before.len() - 1..];
    let found = text.split(before).skip(1);
    found
        .map(|rest| rest.split(quote).next().unwrap())
        .collect()
}

/// What a file names: at once, and later.
fn named_by(path: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let own = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    if path.starts_with("/console/parts/") {
        // Some are in one line.
        let names = ["from\"", "from '"].map(|before| quoted_after(text, before));
        return (own(names.concat()), Vec::new());
    }
    let statements = text.lines().filter(|line| {
        ["import ", "export ", "} from "]
            .iter()
            .any(|word| line.starts_with(word))
            && line.ends_with("\";")
    });
    let at_once = statements.map(|line| line.trim_end_matches("\";").rsplit('"').next().unwrap());
    (own(at_once.collect()), own(quoted_after(text, "import(\"")))
}

/// The path of what a file names.
fn resolved(map: &Value, from: &str, named: &str) -> String {
    if named.starts_with('.') || named.starts_with('/') {
        let url = url::Url::parse("http://a/").unwrap().join(from).unwrap();
        return url.join(named).unwrap().path().to_owned();
    }
    let map = map["imports"].as_object().unwrap();
    let folder = map.iter().find(|(name, _)| {
        *name == named || name.ends_with('/') && named.starts_with(name.as_str())
    });
    let (name, to) =
        folder.unwrap_or_else(|| panic!("{from} names {named}: not in the import map"));
    named.replacen(name, to.as_str().unwrap(), 1)
}

#[test]
fn the_page_runs_its_own_scripts_alone() {
    let app = App::start();
    let nobody = app.with_token(None);
    let page = nobody.get("/console/");
    assert_eq!(page.status, 200);
    let digest = STANDARD.encode(Sha256::digest(import_map(&page.text)));
    let policy = format!(
        "default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    for (name, value) in [
        ("content-security-policy", policy.as_str()),
        ("content-type", "text/html; charset=utf-8"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-cache"),
        (
            "permissions-policy",
            "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        ),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    assert!(
        !page.text.contains("style="),
        "the policy refuses styles in the page"
    );
    for attribute in ["href=\"", "src=\"", "data-later=\""] {
        let named = quoted_after(&page.text, attribute);
        assert!(!named.is_empty(), "{attribute}");
        for path in named {
            assert_eq!(nobody.get(path).status, 200, "{path}");
        }
    }
}

#[test]
fn every_address_below_the_console_is_its_page_and_a_missing_file_is_none() {
    let app = App::start();
    let nobody = app.with_token(None);
    let page = nobody.get("/console/").text;
    for path in [
        "/console/runs",
        "/console/runs/0199?status=failed&status=queued&more",
        "/console/a/b/c/d",
        "/console/index.html",
    ] {
        assert_eq!(nobody.get(path).text, page, "{path}");
    }
    for path in ["/", "/console", "/?from=a-bookmark"] {
        let answer = nobody.get(path);
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some("/console/")),
            "{path}"
        );
    }
    for path in [
        "/console/assets/",
        "/console/assets",
        "/console/assets/none.js",
        "/console/assets/package.json",
        "/console/assets/tsconfig.json",
        "/console/assets/child.d.ts",
        "/console/assets/../index.html",
        "/console/assets/%ff.js",
        "/console/assets/..%2findex.html",
        "/console/client/types.d.ts",
        "/console/parts/preact/package.json",
    ] {
        nobody.get(path).expect_error(404, "route-not-found");
    }
}

#[test]
fn a_browser_gets_the_bytes_once() {
    let app = App::start();
    let nobody = app.with_token(None);
    let get = |path: &str, headers: &[(&str, &str)]| nobody.send("GET", path, None, headers);
    for path in ["/console/", "/console/assets/app.js"] {
        let plain = get(path, &[]);
        let gzip = get(path, &[("accept-encoding", "br, gzip")]);
        let tag = |answer: &Answer| answer.header("etag").unwrap().to_owned();
        assert_eq!(gzip.header("content-encoding"), Some("gzip"));
        assert_ne!(tag(&plain), tag(&gzip));
        for (first, more) in [(&plain, None), (&gzip, Some(("accept-encoding", "gzip")))] {
            assert_eq!(first.header("vary"), Some("accept-encoding"));
            let own = tag(first);
            let mut headers = vec![("if-none-match", own.as_str())];
            headers.extend(more);
            let again = get(path, &headers);
            assert_eq!((again.status, again.text.as_str()), (304, ""), "{path}");
            assert_eq!(again.header("etag"), Some(own.as_str()));
        }
        let other = get(path, &[("if-none-match", "\"other\"")]);
        assert_eq!((other.status, other.text), (200, plain.text));
    }
}

#[test]
fn nothing_that_a_page_loads_is_missing() {
    let app = App::start();
    let nobody = app.with_token(None);
    let map: Value = serde_json::from_str(import_map(&nobody.get("/console/").text)).unwrap();
    let paths: BTreeSet<String> = console::paths()
        .map(|path| format!("/console/{path}"))
        .collect();
    for path in paths.iter().filter(|path| path.ends_with("js")) {
        let answer = nobody.get(path);
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("text/javascript; charset=utf-8"), "{path}");
        let (at_once, later) = named_by(path, &answer.text);
        for named in at_once.iter().chain(&later) {
            let named = resolved(&map, path, named);
            assert!(paths.contains(&named), "{path} loads {named}");
        }
    }
}

/// What the page loads: what its attributes name, and what each script names, at once or whenever.
fn loaded(client: &Client, attributes: &[&str], is_later: bool) -> BTreeSet<String> {
    let page = client.get("/console/").text;
    let map: Value = serde_json::from_str(import_map(&page)).unwrap();
    let mut found = BTreeSet::from(["/console/".to_owned()]);
    let named = attributes
        .iter()
        .flat_map(|attribute| quoted_after(&page, attribute));
    let mut waiting: Vec<String> = named.map(str::to_owned).collect();
    while let Some(path) = waiting.pop() {
        if found.insert(path.clone()) && path.ends_with("js") {
            let (mut named, later) = named_by(&path, &client.get(&path).text);
            named.extend(later.into_iter().filter(|_| is_later));
            waiting.extend(named.iter().map(|named| resolved(&map, &path, named)));
        }
    }
    found
}

#[test]
fn the_first_view_is_small_and_so_is_all() {
    let app = App::start();
    let nobody = app.with_token(None);
    let sum = |paths: BTreeSet<String>| -> usize {
        let bytes = paths.iter().map(|path| {
            let bytes = compressed(&nobody, path);
            let is_page = path.starts_with("/console/assets/pages/");
            assert!(!is_page || bytes <= PAGE, "{path} has {bytes} bytes");
            bytes
        });
        bytes.sum()
    };
    // The list of runs is in the file that the page loads: nothing more is asked for.
    let start = nobody.get("/console/assets/app.js").text;
    assert!(
        !start.contains("pages/runs.js"),
        "the runs are loaded later"
    );
    let first = sum(loaded(&nobody, &["href=\"", "src=\""], false));
    let all = sum(loaded(
        &nobody,
        &["href=\"", "src=\"", "data-later=\""],
        true,
    ));
    assert!(first <= FIRST_VIEW, "{first} bytes for the first view");
    assert!(all <= ALL, "{all} bytes in all");
}

#[test]
fn answers_say_which_build_they_are_of() {
    let app = App::start();
    let build = console::BUILD;
    for path in ["/v1/sign-in", "/console/", "/nothing"] {
        assert_eq!(
            app.get(path).header("x-agent-runtime-build"),
            Some(build),
            "{path}"
        );
    }
}

#[test]
fn without_the_console_nothing_is_there_and_the_api_is() {
    let app = App::start_with(|options| options.console = false);
    for path in [
        "/",
        "/console",
        "/console/",
        "/console/runs",
        "/console/assets/app.js",
    ] {
        app.with_token(None)
            .get(path)
            .expect_error(404, "route-not-found");
    }
    app.get("/v1/projects").expect(200);
}
