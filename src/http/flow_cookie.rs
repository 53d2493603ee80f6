//! The cookie of a sign-in through an identity provider: what its browser keeps from the start until it comes back.
//!
//! A cookie with this prefix is set by this host alone, and no page reads it. A person who changes their own only spoils
//! their own sign-in. So it is neither sealed nor is anything stored of a request that has no caller. It is sent when the
//! provider sends the browser back (`Lax`), unlike a session's. Each sign-in has one of its own, so tabs do not disturb each
//! other: at most [`MOST`], the oldest goes.
//!
//! Not here: what a sign-in is (`oidc`, `api::provider_sign_in`).

use super::origin::Own;
use crate::ids;
use crate::oidc;
use crate::secret::Secret;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

/// Sign-ins that a browser may have begun and not ended.
pub(crate) const MOST: usize = 5;
/// How long one may take, in seconds.
pub(crate) const LIFE_S: i64 = 600;
/// Characters of a state that name its cookie.
const NAME_LENGTH: usize = 6;

/// A sign-in that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    /// Where.
    pub(crate) identity_provider_id: Uuid,
    /// What binds the answer to it.
    pub(crate) flow: oidc::Flow,
    /// The page to go on to: a path of this server.
    pub(crate) return_to: String,
    /// The digest of the session that the browser had. It ends with the new one, and the browser that comes back from another
    /// site does not send it.
    pub(crate) session: Option<[u8; 32]>,
    /// When.
    pub(crate) begun_at: OffsetDateTime,
}

/// As the cookie has it.
#[derive(Serialize, Deserialize)]
struct Kept {
    p: String,
    s: String,
    n: String,
    v: String,
    r: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    d: Option<String>,
    t: i64,
}

/// A cookie of a sign-in, by its name, and what it holds if that can be read.
pub(crate) struct Cookie {
    name: String,
    pub(crate) begun: Option<Begun>,
}

impl Begun {
    fn text(&self) -> String {
        let kept = Kept {
            p: self.identity_provider_id.to_string(),
            s: self.flow.state.clone(),
            n: self.flow.nonce.expose().to_owned(),
            v: self.flow.verifier.expose().to_owned(),
            r: self.return_to.clone(),
            d: self.session.map(|digest| URL_SAFE_NO_PAD.encode(digest)),
            t: self.begun_at.unix_timestamp(),
        };
        // Texts and a number: it cannot fail.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&kept).unwrap_or_default())
    }

    fn read(text: &str) -> Option<Self> {
        let kept = URL_SAFE_NO_PAD.decode(text).ok()?;
        let kept: Kept = serde_json::from_slice(&kept).ok()?;
        Some(Self {
            identity_provider_id: ids::parse(&kept.p)?,
            flow: oidc::Flow {
                state: kept.s,
                nonce: Secret::new(kept.n),
                verifier: Secret::new(kept.v),
            },
            return_to: kept.r,
            session: match kept.d {
                Some(digest) => Some(URL_SAFE_NO_PAD.decode(digest).ok()?.try_into().ok()?),
                None => None,
            },
            begun_at: OffsetDateTime::from_unix_timestamp(kept.t).ok()?,
        })
    }

    /// Whether it may still end.
    pub(crate) fn is_open(&self, now: OffsetDateTime) -> bool {
        (now - self.begun_at).whole_seconds() <= LIFE_S
    }
}

/// The name of a state's cookie.
fn name_of(own: &Own, state: &str) -> String {
    let id = state.get(..NAME_LENGTH).unwrap_or(state);
    format!("{}{id}", own.flow_prefix())
}

impl Cookie {
    /// Makes a browser forget it.
    pub(crate) fn clear(&self) -> String {
        format!(
            "{}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax",
            self.name
        )
    }
}

/// Every cookie of a sign-in that the browser keeps for this address.
pub(crate) fn all<'c>(own: &Own, cookies: impl Iterator<Item = (&'c str, &'c str)>) -> Vec<Cookie> {
    let prefix = own.flow_prefix();
    cookies
        .filter(|(name, _)| name.starts_with(&prefix))
        .map(|(name, value)| Cookie {
            name: name.to_owned(),
            begun: Begun::read(value),
        })
        .collect()
}

/// Makes a browser keep a sign-in, and forget those for which there is no room: what cannot be read, what is over, and the
/// oldest.
pub(crate) fn keep(own: &Own, begun: &Begun, mut others: Vec<Cookie>) -> Vec<String> {
    let now = begun.begun_at;
    let open = |cookie: &Cookie| {
        let begun = cookie.begun.as_ref().filter(|begun| begun.is_open(now));
        begun.map(|begun| begun.begun_at)
    };
    others.sort_by_key(|cookie| std::cmp::Reverse(open(cookie)));
    let kept = others
        .iter()
        .take_while(|cookie| open(cookie).is_some())
        .count();
    let gone = &others[kept.min(MOST - 1)..];
    let name = name_of(own, &begun.flow.state);
    let new = format!(
        "{name}={}; Path=/; Max-Age={LIFE_S}; Secure; HttpOnly; SameSite=Lax",
        begun.text()
    );
    gone.iter().map(Cookie::clear).chain([new]).collect()
}

/// The cookie of the sign-in with this state. Of two of the name, one is not ours: then there is none.
pub(crate) fn of_state(own: &Own, state: &str, cookies: Vec<Cookie>) -> Option<Cookie> {
    let name = name_of(own, state);
    let mut named = cookies.into_iter().filter(|cookie| cookie.name == name);
    match (named.next(), named.next()) {
        (Some(cookie), None) => Some(cookie),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(state: &str, at: i64) -> Begun {
        Begun {
            identity_provider_id: Uuid::from_u128(7),
            flow: oidc::Flow {
                state: state.to_owned(),
                nonce: Secret::new("n"),
                verifier: Secret::new("v"),
            },
            return_to: "/console/runs/1?a=b#c".to_owned(),
            session: (at % 2 == 0).then_some([7; 32]),
            begun_at: OffsetDateTime::from_unix_timestamp(at).unwrap(),
        }
    }

    fn pair(cookie: &str) -> (&str, &str) {
        cookie.split(';').next().unwrap().split_once('=').unwrap()
    }

    #[test]
    fn a_sign_in_is_kept_as_it_is_and_named_by_its_state() {
        let own = Own::for_tests("https://agents.example.com");
        let one = begun("abcdef-and-more", 1_000);
        let kept = keep(&own, &one, Vec::new());
        let [cookie] = &kept[..] else {
            panic!("{kept:?}")
        };
        let (name, value) = pair(cookie);
        assert_eq!(name, "__Host-agent-runtime-flow-abcdef");
        let rest = "; Path=/; Max-Age=600; Secure; HttpOnly; SameSite=Lax";
        assert!(cookie.ends_with(rest), "{cookie}");
        assert_eq!(Begun::read(value), Some(one));
        let own = Own::for_tests("http://localhost:4000");
        assert_eq!(own.flow_prefix(), "__Host-agent-runtime-4000-flow-");
        let other = all(&own, [pair(cookie)].into_iter());
        assert!(other.is_empty(), "the cookie of another port is not ours");
    }

    #[test]
    fn there_are_five_and_the_oldest_goes() {
        let own = Own::for_tests("https://agents.example.com");
        let made = |number: i64| {
            keep(
                &own,
                &begun(&format!("state{number}"), 1_000 + number),
                Vec::new(),
            )
            .remove(0)
        };
        let texts: Vec<String> = (1..=6).map(made).collect();
        let mut pairs: Vec<(&str, &str)> = texts.iter().map(|text| pair(text)).collect();
        pairs.push(("__Host-agent-runtime-flow-odd", "not one"));
        pairs.push(("__Host-agent-runtime", "svc_ss_1"));
        let now = keep(
            &own,
            &begun("state7", 1_007),
            all(&own, pairs.iter().copied()),
        );
        let cleared: Vec<&str> = now
            .iter()
            .filter(|text| text.contains("Max-Age=0"))
            .map(|text| pair(text).0)
            .collect();
        let prefix = "__Host-agent-runtime-flow-";
        let expected = ["state2", "state1", "odd"].map(|name| format!("{prefix}{name}"));
        assert_eq!(cleared, expected);
        assert_eq!(now.len(), 4);
        // Of those that are over none is kept.
        let later = keep(
            &own,
            &begun("state8", 1_000 + LIFE_S + 6),
            all(&own, pairs.into_iter()),
        );
        let kept = later
            .iter()
            .filter(|text| text.contains("Max-Age=0"))
            .count();
        assert_eq!(kept, 6, "{later:?}");
    }

    #[test]
    fn a_cookie_is_found_by_its_state_alone() {
        let own = Own::for_tests("https://agents.example.com");
        let one = begun("abcdef-1", 1_000);
        let text = keep(&own, &one, Vec::new()).remove(0);
        let found = |state: &str, times: usize| {
            let cookies = all(&own, std::iter::repeat_n(pair(&text), times));
            of_state(&own, state, cookies).and_then(|cookie| cookie.begun)
        };
        assert_eq!(found("abcdef-1", 1), Some(one.clone()));
        // Its whole state is compared by whoever asks.
        assert_eq!(found("abcdef-2", 1), Some(one));
        assert_eq!(found("abcdeg-1", 1), None);
        assert_eq!(found("é", 1), None);
        assert_eq!(found("", 1), None);
        assert_eq!(found("abcdef-1", 2), None, "one of two is not ours");
    }
}
