//! Browsers: what they keep of an answer, and send with each request from the server's own pages.

use super::{Answer, App, Client};
use serde_json::json;

/// What a browser says of a request from a page of the same origin.
pub(crate) const OWN_PAGE: (&str, &str) = ("sec-fetch-site", "same-origin");

impl Client {
    /// A browser at this server that keeps this session.
    pub(crate) fn browser(&self, session: &str) -> Self {
        let cookie = format!("{}={session}", self.cookie());
        let (name, value) = OWN_PAGE;
        let mut browser = Self::new(self.address(), None);
        browser.standing = [("cookie", cookie.as_str()), (name, value)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        browser
    }

    /// The name of the server's cookie.
    pub(crate) fn cookie(&self) -> String {
        format!("__Host-agent-runtime-{}", self.address().port())
    }

    /// Sends this token beside.
    pub(crate) fn set_token(&mut self, token: &str) {
        self.token = Some(token.to_owned());
    }

    /// Sends this header with each request, in place of the one it has.
    pub(crate) fn standing_is(&mut self, name: &str, value: &str) {
        self.standing.retain(|(known, _)| known != name);
        self.standing.push((name.to_owned(), value.to_owned()));
    }

    /// Posts from a page of the server.
    pub(crate) fn post_from_page(&self, path: &str, body: &serde_json::Value) -> Answer {
        self.send("POST", path, Some(body.to_string()), &[OWN_PAGE])
    }
}

impl Answer {
    /// The session that a browser keeps of this answer.
    #[track_caller]
    pub(crate) fn session(&self) -> String {
        let cookie = self.header("set-cookie");
        let cookie = cookie.unwrap_or_else(|| panic!("no cookie: {self:?}"));
        let (pair, _) = cookie.split_once(';').unwrap();
        pair.split_once('=').unwrap().1.to_owned()
    }
}

impl App {
    /// Signs in with a token, and gives the session.
    #[track_caller]
    pub(crate) fn sign_in(&self, token: &str) -> String {
        let answer = self
            .with_token(None)
            .post_from_page("/v1/sign-in/token", &json!({"token": token}));
        assert_eq!(answer.status, 204, "{answer:?}");
        answer.session()
    }

    /// A browser in which the owner of a token signed in.
    #[track_caller]
    pub(crate) fn signed_in(&self, token: &str) -> Client {
        self.browser(&self.sign_in(token))
    }
}

impl Client {
    /// The session that it keeps.
    pub(crate) fn cookie_value(&self) -> String {
        let mut standing = self.standing.iter();
        let (_, cookie) = standing.find(|(name, _)| name == "cookie").unwrap();
        cookie.split_once('=').unwrap().1.to_owned()
    }

    /// Sends this header no more.
    pub(crate) fn standing_clear(&mut self, name: &str) {
        self.standing.retain(|(known, _)| known != name);
    }
}
