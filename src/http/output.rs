//! A handler's answer.

use super::sse::{ApprovalStreamData, ChangeStreamData, Following, StreamData};
use crate::error::{Error, Result};
use crate::text::{hex, trim_ows};
use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Headers of an answer, beside those that every answer has.
pub type Headers = Vec<(&'static str, String)>;

/// An answer on its way to the door.
pub enum Answer {
    /// A whole answer.
    Full {
        /// The status.
        status: u16,
        /// The content type, unless the answer is empty.
        content_type: Option<&'static str>,
        /// Further headers.
        headers: Headers,
        /// The body.
        body: Vec<u8>,
    },
    /// A whole answer whose bytes are in memory once, whoever asks for it. Its status is 200.
    Shared {
        /// The content type.
        content_type: &'static str,
        /// Further headers.
        headers: Headers,
        /// The body.
        body: Bytes,
    },
    /// A stream of server-sent events.
    Stream(Following),
}

/// What a handler answers.
pub trait Output {
    /// The status of success.
    const STATUS: u16;
    /// The other status of success, if there is one.
    const OTHER_STATUS: Option<u16> = None;
    /// The content type; none when there is no body.
    const CONTENT_TYPE: Option<&'static str>;
    /// The body's schema.
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema>;
    /// Makes the answer.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    fn answer(self) -> Result<Answer>;
}

fn json<T: Serialize>(status: u16, value: &T, headers: Headers) -> Result<Answer> {
    Ok(Answer::Full {
        status,
        content_type: Some("application/json"),
        headers,
        body: serde_json::to_vec(value).map_err(Error::internal)?,
    })
}

macro_rules! json_answer {
    ($(#[$doc:meta])* $name:ident $status:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<T>(pub T);

        impl<T: Serialize + JsonSchema> Output for $name<T> {
            const STATUS: u16 = $status;
            const CONTENT_TYPE: Option<&'static str> = Some("application/json");
            fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
                Some(generator.subschema_for::<T>())
            }
            fn answer(self) -> Result<Answer> {
                json($status, &self.0, Headers::new())
            }
        }
    };
}

json_answer!(
    /// 200 with what was asked for.
    Found 200
);
json_answer!(
    /// 201 with what was made.
    Created 201
);
json_answer!(
    /// 202 with what was accepted: it is on disk, and its work goes on.
    Accepted 202
);

/// 200 with what was changed, or 201 with what was made (RFC 9110, section 9.3.4).
#[derive(Debug)]
pub enum Put<T> {
    /// It stood already.
    Changed(T),
    /// There was none.
    Made(T),
}

impl<T: Serialize + JsonSchema> Output for Put<T> {
    const STATUS: u16 = 200;
    const OTHER_STATUS: Option<u16> = Some(201);
    const CONTENT_TYPE: Option<&'static str> = Some("application/json");
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn answer(self) -> Result<Answer> {
        match self {
            Self::Changed(value) => json(200, &value, Headers::new()),
            Self::Made(value) => json(201, &value, Headers::new()),
        }
    }
}

/// 200 with what was asked for and its entity tag, or 304 if the request named that tag: a client that asks again and again
/// gets the same bytes once (RFC 9110, sections 8.8.3 and 13.1.2).
#[derive(Debug)]
pub struct Tagged<T> {
    /// What was asked for.
    pub value: T,
    /// The request's `If-None-Match`.
    pub if_none_match: Option<String>,
}

/// The first half of a SHA-256 of the body.
fn entity_tag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    format!("\"{}\"", hex(&digest[..16]))
}

/// Whether an `If-None-Match` names this tag. The comparison is weak: a proxy may have weakened it.
fn names_tag(if_none_match: &str, tag: &str) -> bool {
    let mut named = if_none_match.split(',').map(trim_ows);
    named.any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

impl<T: Serialize + JsonSchema> Output for Tagged<T> {
    const STATUS: u16 = 200;
    const OTHER_STATUS: Option<u16> = Some(304);
    const CONTENT_TYPE: Option<&'static str> = Some("application/json");
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn answer(self) -> Result<Answer> {
        let body = serde_json::to_vec(&self.value).map_err(Error::internal)?;
        let tag = entity_tag(&body);
        let is_known = self
            .if_none_match
            .is_some_and(|named| names_tag(&named, &tag));
        let headers = vec![("etag", tag)];
        let (status, content_type, body) = match is_known {
            true => (304, None, Vec::new()),
            false => (200, Some("application/json"), body),
        };
        Ok(Answer::Full {
            status,
            content_type,
            headers,
            body,
        })
    }
}

fn no_content(headers: Headers) -> Answer {
    Answer::Full {
        status: 204,
        content_type: None,
        headers,
        body: Vec::new(),
    }
}

/// 204.
#[derive(Debug)]
pub struct Gone;

impl Output for Gone {
    const STATUS: u16 = 204;
    const CONTENT_TYPE: Option<&'static str> = None;
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn answer(self) -> Result<Answer> {
        Ok(no_content(Vec::new()))
    }
}

/// 204 with what a browser is to do with its session.
#[derive(Debug)]
pub struct Session(pub Headers);

impl Output for Session {
    const STATUS: u16 = 204;
    const CONTENT_TYPE: Option<&'static str> = None;
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn answer(self) -> Result<Answer> {
        Ok(no_content(self.0))
    }
}

/// 200 with what was asked for and what a browser is to do with what it keeps.
#[derive(Debug)]
pub struct FoundWithHeaders<T> {
    /// What was asked for.
    pub value: T,
    /// What the browser is told.
    pub headers: Headers,
}

impl<T: Serialize + JsonSchema> Output for FoundWithHeaders<T> {
    const STATUS: u16 = 200;
    const CONTENT_TYPE: Option<&'static str> = Some("application/json");
    fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
        Some(generator.subschema_for::<T>())
    }
    fn answer(self) -> Result<Answer> {
        json(200, &self.value, self.headers)
    }
}

/// 303: a browser is to go on to another page of this server.
#[derive(Debug)]
pub struct GoOn {
    /// A path of this server.
    pub to: String,
    /// What else the browser is told.
    pub headers: Headers,
}

impl Output for GoOn {
    const STATUS: u16 = 303;
    const CONTENT_TYPE: Option<&'static str> = None;
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn answer(self) -> Result<Answer> {
        let mut headers = self.headers;
        headers.push(("location", self.to));
        // The address that the browser comes from may have the provider's answer.
        headers.push(("referrer-policy", "no-referrer".to_owned()));
        Ok(Answer::Full {
            status: 303,
            content_type: None,
            headers,
            body: Vec::new(),
        })
    }
}

macro_rules! stream_answer {
    ($(#[$doc:meta])* $name:ident $data:ty) => {
        $(#[$doc])*
        pub struct $name(pub Following);

        impl Output for $name {
            const STATUS: u16 = 200;
            const CONTENT_TYPE: Option<&'static str> = Some("text/event-stream");
            fn schema(generator: &mut SchemaGenerator) -> Option<Schema> {
                Some(generator.subschema_for::<$data>())
            }
            fn answer(self) -> Result<Answer> {
                Ok(Answer::Stream(self.0))
            }
        }
    };
}

stream_answer! {
    /// 200 with a stream of server-sent events.
    Events StreamData
}
stream_answer! {
    /// 200 with a stream of what happens to approvals.
    ApprovalEvents ApprovalStreamData
}
stream_answer! {
    /// 200 with a stream of hints.
    Changes ChangeStreamData
}

/// 200 with a file that is part of the program.
#[derive(Debug)]
pub struct Asset {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes, which are in memory once.
    pub body: Bytes,
    /// Headers beside the content type.
    pub headers: Headers,
}

impl Output for Asset {
    const STATUS: u16 = 200;
    const CONTENT_TYPE: Option<&'static str> = Some("*/*");
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn answer(self) -> Result<Answer> {
        Ok(Answer::Shared {
            content_type: self.content_type,
            headers: self.headers,
            body: self.body,
        })
    }
}

/// 200 with a file that is part of the program, or 304 if the request named its tag (see [`Tagged`]).
#[derive(Debug)]
pub struct TaggedAsset {
    /// The file.
    pub asset: Asset,
    /// The entity tag of its bytes.
    pub tag: String,
    /// The request's `If-None-Match`.
    pub if_none_match: Option<String>,
}

impl Output for TaggedAsset {
    const STATUS: u16 = 200;
    const OTHER_STATUS: Option<u16> = Some(304);
    const CONTENT_TYPE: Option<&'static str> = Asset::CONTENT_TYPE;
    fn schema(_: &mut SchemaGenerator) -> Option<Schema> {
        None
    }
    fn answer(self) -> Result<Answer> {
        let mut asset = self.asset;
        let is_known = self
            .if_none_match
            .is_some_and(|named| names_tag(&named, &self.tag));
        asset.headers.push(("etag", self.tag));
        if !is_known {
            return asset.answer();
        }
        // There are no bytes that it could be about.
        asset
            .headers
            .retain(|(name, _)| *name != "content-encoding");
        Ok(Answer::Full {
            status: 304,
            content_type: None,
            headers: asset.headers,
            body: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_named_alone_among_others_weakened_or_by_a_star() {
        let tag = entity_tag(b"{}");
        for named in [
            tag.clone(),
            format!("W/{tag}"),
            format!("\"a\", {tag}"),
            "*".to_owned(),
        ] {
            assert!(names_tag(&named, &tag), "{named}");
        }
        assert!(!names_tag(&entity_tag(b"[]"), &tag));
        assert!(!names_tag(tag.trim_matches('"'), &tag));
    }
}
