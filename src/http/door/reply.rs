//! Answers: converts a handler's [`rouille::Response`] for hyper.

use super::body::Outgoing;
use super::context::Context;
use super::counters::Counters;
use super::stream::StreamBody;
use crate::error::{Error, Result};
use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::{Response, StatusCode};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::sync::oneshot;

/// What a handler answers.
pub enum Reply {
    /// A whole answer.
    Full(rouille::Response),
    /// A whole answer whose bytes are in memory once, whoever asks for it.
    Shared {
        /// Status and headers. The head's own body is not sent.
        head: rouille::Response,
        /// The bytes.
        body: Bytes,
    },
    /// A head, and a body that goes on. The head's own body is not sent.
    Stream {
        /// Status and headers.
        head: rouille::Response,
        /// From [`super::stream()`].
        body: StreamBody,
    },
}

pub(super) type Answer = Result<Response<Outgoing>>;

/// The right to answer one request, once, from any thread. Dropped unused, it answers 500.
pub struct Responder {
    context: Arc<Context>,
    to: oneshot::Sender<Answer>,
    counters: Arc<Counters>,
    answer_bytes: u64,
}

impl Responder {
    pub(super) fn new(
        context: Arc<Context>,
        to: oneshot::Sender<Answer>,
        counters: Arc<Counters>,
        answer_bytes: u64,
    ) -> Self {
        Self {
            context,
            to,
            counters,
            answer_bytes,
        }
    }

    /// The request.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// False: the client has left, or the request's deadline has passed.
    pub fn is_wanted(&self) -> bool {
        !self.to.is_closed()
    }

    /// Keeps an answer until it may go. Whole bodies are read here, on the caller's thread.
    pub fn prepare(self, reply: Reply) -> Ready {
        Ready {
            answer: convert(reply, self.answer_bytes, &self.context),
            responder: self,
        }
    }

    /// Answers. Whole bodies are read here, on the caller's thread. An answer that nobody waits
    /// for any more is dropped and counted.
    pub fn send(self, reply: Reply) {
        let answer = if self.to.is_closed() {
            None
        } else {
            Some(convert(reply, self.answer_bytes, &self.context))
        };
        let sent = answer.is_some_and(|answer| self.to.send(answer).is_ok());
        if !sent {
            self.counters.answers_discarded.fetch_add(1, Relaxed);
        }
    }
}

/// An answer that waits for the word to go. Dropped unused, it answers 500.
pub struct Ready {
    responder: Responder,
    answer: Answer,
}

impl Ready {
    /// Answers; it costs the caller's thread next to nothing.
    pub fn send(self) {
        if self.responder.to.send(self.answer).is_err() {
            self.responder
                .counters
                .answers_discarded
                .fetch_add(1, Relaxed);
        }
    }

    /// Answers something else.
    pub fn send_instead(self, reply: Reply) {
        self.responder.send(reply);
    }
}

/// An answer as hyper takes it.
pub(super) fn convert(reply: Reply, answer_bytes: u64, context: &Context) -> Answer {
    let (head, stream, shared) = match reply {
        Reply::Full(response) => (response, None, None),
        Reply::Shared { head, body } => (head, None, Some(body)),
        Reply::Stream { head, body } => (head, Some(body), None),
    };
    let status = StatusCode::from_u16(head.status_code).map_err(Error::internal)?;
    let mut headers = headers(&head)?;
    let body = match (stream, shared) {
        (Some(body), _) => Outgoing::stream(body),
        (None, Some(bytes)) => Outgoing::shared(bytes),
        (None, None) => Outgoing::whole(whole(head, answer_bytes)?.into()),
    };
    let body = match context.is_head() && !body.is_stream() {
        true => {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(body.bytes().len()));
            Outgoing::whole(Bytes::new())
        }
        false => body,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn headers(head: &rouille::Response) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(head.headers.len() + 2);
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(Error::internal)?;
        if is_the_doors(&name) {
            continue;
        }
        let value = HeaderValue::from_str(value).map_err(Error::internal)?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Fields that say how a message is carried, which is not the handler's to say.
fn is_the_doors(name: &HeaderName) -> bool {
    [
        CONNECTION,
        CONTENT_LENGTH,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ]
    .contains(name)
        || name == "keep-alive"
}

fn whole(head: rouille::Response, most: u64) -> Result<Vec<u8>> {
    let (reader, length) = head.data.into_reader_and_size();
    let length = length
        .unwrap_or(0)
        .min(usize::try_from(most).unwrap_or(usize::MAX));
    let mut bytes = Vec::with_capacity(length);
    reader
        .take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(Error::internal)?;
    if bytes.len() as u64 > most {
        return Err(Error::internal(format!(
            "an answer is longer than {most} bytes"
        )));
    }
    Ok(bytes)
}
