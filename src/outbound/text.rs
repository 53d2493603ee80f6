//! The text of an answer: its bytes in the charset that they have.
//!
//! A byte order mark says the charset, else `charset` of the content type does, else it is UTF-8. What a charset has no
//! character for becomes U+FFFD. Charsets have the names and tables of the WHATWG Encoding Standard.

use super::client::Response;
use super::failure::{Failure, Kind};
use crate::text::beginning;
use encoding_rs::{Encoding, UTF_8};

/// How much of a name from outside a message has, in bytes.
const NAME_BYTES: usize = 40;

impl Response {
    /// The body as text that PostgreSQL takes, at most `most` bytes of UTF-8.
    ///
    /// # Errors
    /// The body has a coding or a charset that cannot be read, or is too long.
    pub fn text(&self, most: u64) -> Result<String, Failure> {
        let unreadable = |said: String| Failure::new(Kind::Protocol, said).at(self.address);
        if let Some(coding) = self.coding() {
            let coding = shown(&coding);
            return Err(unreadable(format!(
                "The answer is compressed as `{coding}`, which cannot be read. gzip and deflate can."
            )));
        }
        let encoding = match self.charset() {
            None => UTF_8,
            Some(name) => match Encoding::for_label_no_replacement(name.as_bytes()) {
                Some(encoding) => encoding,
                None if std::str::from_utf8(&self.body).is_ok() => UTF_8,
                None => {
                    let name = shown(&name);
                    return Err(unreadable(format!(
                        "The answer says that its charset is `{name}`, which is not known."
                    )));
                }
            },
        };
        let (text, _, _) = encoding.decode(&self.body);
        let text = text.replace('\0', "\u{fffd}");
        match text.len() as u64 > most {
            true => Err(Failure::new(
                Kind::TooLarge,
                format!("The text of the answer is longer than {most} bytes of UTF-8."),
            )
            .at(self.address)),
            false => Ok(text),
        }
    }

    /// The content coding that was not undone.
    fn coding(&self) -> Option<String> {
        let values = self.headers.get_all("content-encoding").iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let mut codings = values.flat_map(|value| value.split(','));
        let coding = codings.find_map(|coding| {
            let coding = coding.trim_matches([' ', '\t']);
            let is_none = coding.is_empty() || coding.eq_ignore_ascii_case("identity");
            (!is_none).then(|| coding.to_owned())
        });
        coding.filter(|_| !self.body.is_empty())
    }

    /// The charset of the content type.
    fn charset(&self) -> Option<String> {
        let kind = self.headers.get("content-type")?.to_str().ok()?;
        kind.split(';').skip(1).find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let is_charset = name
                .trim_matches([' ', '\t'])
                .eq_ignore_ascii_case("charset");
            is_charset.then(|| value.trim_matches([' ', '\t', '"', '\'']).to_owned())
        })
    }
}

fn shown(name: &str) -> String {
    beginning(name, NAME_BYTES).escape_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ureq::http::HeaderMap;

    fn response(headers: &[(&'static str, &'static str)], body: &[u8]) -> Response {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, value.parse().unwrap());
        }
        Response {
            status: 200,
            headers: all,
            body: body.to_vec(),
            address: None,
        }
    }

    #[test]
    fn a_text_has_the_charset_that_the_answer_says() {
        for (kind, body, expected) in [
            ("text/plain", b"caf\xc3\xa9".as_slice(), "café"),
            ("text/plain", b"caf\xe9", "caf\u{fffd}"),
            ("text/plain; charset=iso-8859-1", b"caf\xe9", "café"),
            ("text/plain;CHARSET = \"Latin1\"", b"caf\xe9", "café"),
            ("text/plain; a=b; charset=windows-1252", b"5 \x80", "5 €"),
            (
                "text/plain; charset=utf-8",
                b"\xef\xbb\xbfcaf\xc3\xa9",
                "café",
            ),
            ("application/json", b"\xef\xbb\xbf{}", "{}"),
            ("application/json", b"\xff\xfe{\0}\0", "{}"),
            ("application/json", b"\xfe\xff\0{\0}", "{}"),
            ("text/plain; charset=utf-16le", b"a\0\xe9\0", "aé"),
            ("text/plain; charset=UTF-16BE", b"\0a\0\xe9", "aé"),
            ("text/plain; charset=shift_jis", b"\x93\xfa\x96\x7b", "日本"),
            ("text/plain; charset=koi8-r", b"\xc4\xc1", "да"),
            ("text/plain; charset=gb18030", b"\xc4\xe3", "你"),
            // The mark says more than the name.
            (
                "text/plain; charset=iso-8859-1",
                b"\xef\xbb\xbf\xc3\xa9",
                "é",
            ),
            ("text/plain; charset=nonsense", b"caf\xc3\xa9", "café"),
            ("text/plain", b"a\0b", "a\u{fffd}b"),
            ("text/plain; charset=utf-8", b"", ""),
        ] {
            let text = response(&[("content-type", kind)], body).text(100);
            assert_eq!(text.unwrap(), expected, "{kind} {body:?}");
        }
        assert_eq!(response(&[], b"caf\xc3\xa9").text(5).unwrap(), "café");
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let of = |headers: &[(&'static str, &'static str)], body: &[u8]| {
            response(headers, body).text(4).unwrap_err()
        };
        let unknown = of(&[("content-type", "text/plain; charset=x-mine")], b"\xe9");
        assert!(unknown.message().contains("`x-mine`"), "{unknown}");
        assert!(unknown.may_have_arrived() && !unknown.is_transient());
        let coded = of(&[("content-encoding", "br")], b"\x8b");
        assert!(coded.message().contains("`br`"), "{coded}");
        // Three bytes of UTF-8 for each one that came.
        let long = of(
            &[("content-type", "text/plain; charset=cp1252")],
            b"\x80\x80",
        );
        assert_eq!(long.kind(), Kind::TooLarge);
        let fine = response(&[("content-encoding", "identity")], b"a").text(4);
        assert_eq!(fine.unwrap(), "a");
        assert!(response(&[("content-encoding", "br")], b"").text(4).is_ok());
    }
}
