//! Undoes the content coding of an answer. Requests ask for none, and some servers and proxies compress all the same.
//!
//! Guarantees: the caller's bound holds for the bytes that arrive here, and for those that they become in the client.

use flate2::read::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, Chain, Cursor, Read};
use ureq::http::HeaderMap;
use ureq::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};

/// What is read of a compressed answer before its decoder is made, at most.
const FIRST_BYTES: usize = 4 * 1024;

/// A coding that is undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
}

/// The body of an answer, as it was before its coding.
pub(super) enum Body<R> {
    Plain(R),
    Coded(Box<Coded<R>>),
}

/// A compressed body.
pub(super) struct Coded<R> {
    coding: Coding,
    decoder: Decoder<R>,
}

enum Decoder<R> {
    /// A decoder reads as soon as it is made, so it is made when the caller reads. None: the body is over.
    Before(Option<Arriving<R>>),
    Gzip(MultiGzDecoder<Begun<R>>),
    Deflate(ZlibDecoder<Begun<R>>),
}

type Begun<R> = Chain<Cursor<Vec<u8>>, Arriving<R>>;

/// The bytes as they arrive.
struct Arriving<R> {
    body: R,
    left: u64,
    /// The connection or the bound ended it, not the decoder.
    has_failed: bool,
}

/// More bytes arrived than the caller allows.
#[derive(Debug)]
pub(super) struct TooLong;

/// The body is not what its coding says, or breaks off.
#[derive(Debug)]
pub(super) struct Undecodable(pub(super) &'static str);

impl Coding {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let value = value.to_str().ok()?.trim_matches([' ', '\t']);
        match value.to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

impl<R: Read> Body<R> {
    /// Of at most `most` bytes that arrive. The headers no longer tell of a coding that is undone.
    pub(super) fn of(headers: &mut HeaderMap, body: R, most: u64) -> Self {
        let Some(coding) = Coding::of(headers) else {
            return Self::Plain(body);
        };
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        let arriving = Arriving {
            body,
            left: most,
            has_failed: false,
        };
        Self::Coded(Box::new(Coded {
            coding,
            decoder: Decoder::Before(Some(arriving)),
        }))
    }
}

impl<R: Read> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(body) => body.read(buffer),
            Self::Coded(coded) => coded.read(buffer),
        }
    }
}

impl<R: Read> Coded<R> {
    /// Reads the first bytes, and makes the decoder. A body without any is no fault.
    fn begin(&mut self, mut arriving: Arriving<R>) -> io::Result<()> {
        let mut first = vec![0; FIRST_BYTES];
        let amount = arriving.read(&mut first)?;
        if amount == 0 {
            return Ok(());
        }
        first.truncate(amount);
        let begun = Cursor::new(first).chain(arriving);
        self.decoder = match self.coding {
            Coding::Gzip => Decoder::Gzip(MultiGzDecoder::new(begun)),
            Coding::Deflate => Decoder::Deflate(ZlibDecoder::new(begun)),
        };
        Ok(())
    }
}

impl<R: Read> Read for Coded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Decoder::Before(before) = &mut self.decoder
            && let Some(arriving) = before.take()
        {
            self.begin(arriving)?;
        }
        let (read, begun) = match &mut self.decoder {
            Decoder::Before(_) => return Ok(0),
            Decoder::Gzip(decoder) => (decoder.read(buffer), decoder.get_ref()),
            Decoder::Deflate(decoder) => (decoder.read(buffer), decoder.get_ref()),
        };
        let (_, arriving) = begun.get_ref();
        read.map_err(|error| match arriving.has_failed {
            true => error,
            false => io::Error::other(Undecodable(self.coding.name())),
        })
    }
}

impl<R: Read> Read for Arriving<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.body.read(buffer);
        let read = read.and_then(|amount| match self.left.checked_sub(amount as u64) {
            Some(left) => {
                self.left = left;
                Ok(amount)
            }
            None => Err(io::Error::other(TooLong)),
        });
        self.has_failed |= read.is_err();
        read
    }
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("more bytes arrived than are allowed")
    }
}

impl std::error::Error for TooLong {}

impl std::fmt::Display for Undecodable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the body is no {}", self.0)
    }
}

impl std::error::Error for Undecodable {}
