//! A small browser: it follows links and redirects, fills forms in, keeps cookies, and sends them as the standard says.
//!
//! Of RFC 6265bis it knows what a sign-in is about: hosts, paths, the attributes `SameSite` and `Max-Age`, and the prefix
//! `__Host-`. A host of loopback counts as secure. Of Fetch Metadata it sends `Sec-Fetch-Site`.

use super::client::agent;
use std::collections::HashMap;
use url::Url;

/// Redirects that are followed, at most.
const REDIRECTS: usize = 20;

/// A browser.
pub(crate) struct Web {
    agent: ureq::Agent,
    cookies: Vec<Cookie>,
    /// Every address that it was at, in order.
    pub(crate) history: Vec<Url>,
}

#[derive(Debug, Clone)]
struct Cookie {
    /// Name and port: unlike a browser's, for each server here has a port and no name of its own.
    host: String,
    name: String,
    value: String,
    path: String,
    is_strict: bool,
}

/// A page that it shows.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) url: Url,
    pub(crate) status: u16,
    pub(crate) text: String,
}

fn host_of(url: &Url) -> String {
    format!(
        "{}:{}",
        url.host_str().unwrap(),
        url.port_or_known_default().unwrap()
    )
}

impl Web {
    pub(crate) fn new() -> Self {
        Self {
            agent: agent(),
            cookies: Vec::new(),
            history: Vec::new(),
        }
    }

    /// The value of a cookie of this server.
    pub(crate) fn cookie(&self, url: &Url, name: &str) -> Option<String> {
        let host = host_of(url);
        let mut cookies = self.cookies.iter();
        let found = cookies.find(|cookie| cookie.host == host && cookie.name == name);
        found.map(|cookie| cookie.value.clone())
    }

    /// Puts another value into the cookie of this server that begins so.
    #[track_caller]
    pub(crate) fn change_cookie(
        &mut self,
        url: &Url,
        begin: &str,
        change: impl FnOnce(&str) -> String,
    ) {
        let host = host_of(url);
        let mut cookies = self.cookies.iter_mut();
        let cookie = cookies.find(|cookie| cookie.host == host && cookie.name.starts_with(begin));
        let cookie = cookie.expect("the browser keeps the cookie");
        cookie.value = change(&cookie.value);
    }

    /// How many cookies of this server begin so.
    pub(crate) fn cookies(&self, url: &Url, begin: &str) -> usize {
        let host = host_of(url);
        let cookies = self.cookies.iter();
        cookies
            .filter(|cookie| cookie.host == host && cookie.name.starts_with(begin))
            .count()
    }

    /// A request, with the cookies that go with it, and no redirect followed. `from`: the page that makes it; none: a
    /// person does.
    pub(crate) fn send(
        &mut self,
        from: Option<&Url>,
        method: &str,
        url: &Url,
        body: Option<(&str, &str)>,
    ) -> (ureq::http::HeaderMap, Shown) {
        // Another port is the same site to a browser; here it stands for another host.
        let site = match from {
            None => "none",
            Some(from) if from.origin() == url.origin() => "same-origin",
            Some(_) => "cross-site",
        };
        let is_foreign = site == "cross-site";
        let host = host_of(url);
        let fits = |cookie: &&Cookie| {
            cookie.host == host
                && url.path().starts_with(&cookie.path)
                && !(cookie.is_strict && is_foreign)
        };
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .filter(fits)
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(url.as_str())
            .header("sec-fetch-site", site);
        if !cookies.is_empty() {
            request = request.header("cookie", cookies.join("; "));
        }
        let answer = match body {
            Some((content_type, text)) => {
                let request = request.header("content-type", content_type);
                self.agent.run(request.body(text.to_owned()).unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut answer = answer.unwrap_or_else(|error| panic!("{method} {url}: {error}"));
        let headers = answer.headers().clone();
        for cookie in headers.get_all("set-cookie") {
            self.keep(url, cookie.to_str().unwrap());
        }
        let shown = Shown {
            url: url.clone(),
            status: answer.status().as_u16(),
            text: answer.body_mut().read_to_string().unwrap(),
        };
        (headers, shown)
    }

    fn keep(&mut self, url: &Url, text: &str) {
        let mut parts = text.split(';').map(str::trim);
        let (name, value) = parts.next().unwrap().split_once('=').unwrap();
        let attributes: HashMap<String, String> = parts
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let own = |name: &str| attributes.get(name).map(String::as_str);
        if name.starts_with("__Host-") {
            let is_kept =
                own("secure").is_some() && own("path") == Some("/") && own("domain").is_none();
            assert!(is_kept, "no browser keeps {text}");
        }
        let cookie = Cookie {
            host: host_of(url),
            name: name.to_owned(),
            value: value.to_owned(),
            path: own("path").unwrap_or("/").to_owned(),
            is_strict: own("samesite").is_some_and(|site| site.eq_ignore_ascii_case("strict")),
        };
        self.cookies.retain(|known| {
            (&known.host, &known.name, &known.path) != (&cookie.host, &cookie.name, &cookie.path)
        });
        let is_over =
            own("max-age") == Some("0") || own("expires").is_some_and(|at| at.contains(" 1970 "));
        if !is_over {
            self.cookies.push(cookie);
        }
    }

    /// Opens an address from a page, and follows redirects until one shows something.
    pub(crate) fn open(&mut self, from: Option<&Url>, url: &Url) -> Shown {
        self.go(from, "GET", url, None)
    }

    fn go(
        &mut self,
        from: Option<&Url>,
        method: &str,
        url: &Url,
        body: Option<(&str, &str)>,
    ) -> Shown {
        let mut from = from.cloned();
        let (mut method, mut url, mut body) = (method.to_owned(), url.clone(), body);
        for _ in 0..REDIRECTS {
            self.history.push(url.clone());
            let (headers, shown) = self.send(from.as_ref(), &method, &url, body);
            let Some(to) = headers
                .get("location")
                .filter(|_| (300..400).contains(&shown.status))
            else {
                return shown;
            };
            let to = url.join(to.to_str().unwrap()).unwrap();
            from = Some(std::mem::replace(&mut url, to));
            "GET".clone_into(&mut method);
            body = None;
        }
        panic!("more than {REDIRECTS} redirects: {:?}", self.history);
    }

    /// Sends the first form of a page, with these fields filled in.
    #[track_caller]
    pub(crate) fn submit(&mut self, page: &Shown, fields: &[(&str, &str)]) -> Shown {
        let form = page.text.split("<form").nth(1);
        let form = form.unwrap_or_else(|| panic!("{} shows no form: {}", page.url, page.text));
        let form = form.split("</form>").next().unwrap();
        let action = attribute(form.split('>').next().unwrap(), "action").unwrap();
        let mut filled = url::form_urlencoded::Serializer::new(String::new());
        let inputs = form.split("<input").skip(1);
        let hidden = inputs.filter(|input| attribute(input, "type") == Some("hidden"));
        for input in hidden {
            filled.append_pair(
                attribute(input, "name").unwrap(),
                attribute(input, "value").unwrap(),
            );
        }
        filled.extend_pairs(fields);
        let to = page.url.join(action).unwrap();
        let form = filled.finish();
        self.go(
            Some(&page.url),
            "POST",
            &to,
            Some(("application/x-www-form-urlencoded", &form)),
        )
    }
}

/// The value of an attribute in a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let tag = tag.split('>').next().unwrap();
    let begin = format!(" {name}=\"");
    let rest = tag.split(&begin).nth(1)?;
    rest.split('"').next()
}
