//! The bytes that a client sends, on their way to hyper.
//!
//! hyper cuts a fragment off a request target and says nothing of it, so request lines are looked at here. Bytes pass no
//! further than the end of a header block, or of a body of known length; what came with them waits. So each request line
//! is seen at its beginning, also where a client sends several requests at once.
//!
//! Not seen: the request line that came in one read with the end of a chunked body.

use tokio::io::ReadBuf;

/// Where in a request the next byte stands.
enum Part {
    Head {
        /// The request line is over.
        has_line: bool,
        /// Bytes of the present line, its end apart.
        line_bytes: usize,
    },
    Body {
        left_bytes: u64,
    },
    /// A body whose length its chunks say.
    Chunks,
}

const START: Part = Part::Head {
    has_line: false,
    line_bytes: 0,
};

pub(super) struct Wire {
    part: Part,
    /// What came, and belongs to later.
    held: Vec<u8>,
    has_fragment: bool,
}

impl Wire {
    pub(super) fn new() -> Self {
        Self {
            part: START,
            held: Vec::new(),
            has_fragment: false,
        }
    }

    /// hyper has read a header block, whose body has this length. Says whether its target had a fragment.
    pub(super) fn begin(&mut self, body_bytes: Option<u64>) -> bool {
        self.part = match body_bytes {
            Some(0) => START,
            Some(left_bytes) => Part::Body { left_bytes },
            None => Part::Chunks,
        };
        std::mem::take(&mut self.has_fragment)
    }

    /// The request is answered.
    pub(super) fn end(&mut self) {
        if matches!(self.part, Part::Chunks) {
            self.part = START;
        }
    }

    /// Gives what came before and may pass now. False: there is nothing.
    pub(super) fn take_held(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let mut held = std::mem::take(&mut self.held);
        let fits = held.len().min(buffer.remaining());
        let passed = self.pass(&held[..fits]);
        buffer.put_slice(&held[..passed]);
        held.drain(..passed);
        if !held.is_empty() {
            self.held = held;
        }
        true
    }

    /// Holds back what came behind `before` and may not pass yet.
    pub(super) fn hold(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let passed = before + self.pass(&buffer.filled()[before..]);
        self.held.extend_from_slice(&buffer.filled()[passed..]);
        buffer.set_filled(passed);
    }

    /// How many of these bytes may pass: at least one, if there is one.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        match &mut self.part {
            Part::Chunks => bytes.len(),
            Part::Body { left_bytes } => {
                let passed =
                    usize::try_from(*left_bytes).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left_bytes -= passed as u64;
                if *left_bytes == 0 {
                    self.part = START;
                }
                passed
            }
            Part::Head {
                has_line,
                line_bytes,
            } => {
                for (index, byte) in bytes.iter().enumerate() {
                    match byte {
                        b'\n' if *has_line && *line_bytes == 0 => {
                            self.part = START;
                            return index + 1;
                        }
                        b'\n' => {
                            *has_line |= *line_bytes > 0;
                            *line_bytes = 0;
                        }
                        b'\r' => {}
                        _ => {
                            self.has_fragment |= *byte == b'#' && !*has_line;
                            *line_bytes += 1;
                        }
                    }
                }
                bytes.len()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What passes in one read of these bytes.
    fn read(wire: &mut Wire, bytes: &[u8]) -> String {
        let mut space = [0; 256];
        let mut buffer = ReadBuf::new(&mut space);
        if !wire.take_held(&mut buffer) {
            buffer.put_slice(bytes);
            wire.hold(&mut buffer, 0);
        }
        String::from_utf8(buffer.filled().to_vec()).unwrap()
    }

    #[test]
    fn each_request_line_is_seen_however_the_bytes_come() {
        let (plain, marked) = (
            "\r\nGET /a HTTP/1.1\r\nX: #\r\n\r\n",
            "GET /a#b HTTP/1.1\n\n",
        );
        for size in [1, 2, 7, 200] {
            let sent = [plain, "body#", marked, plain].concat();
            let mut pieces = sent.as_bytes().chunks(size);
            let mut wire = Wire::new();
            let mut next = |wire: &mut Wire, until: &str| {
                let mut passed = String::new();
                while passed != until {
                    let piece = if wire.held.is_empty() {
                        pieces.next().unwrap()
                    } else {
                        b""
                    };
                    passed += &read(wire, piece);
                    assert!(until.starts_with(&passed), "{passed:?}");
                }
            };
            next(&mut wire, plain);
            assert!(!wire.begin(Some(5)));
            next(&mut wire, "body#");
            next(&mut wire, marked);
            assert!(wire.begin(Some(0)));
            next(&mut wire, plain);
            assert!(!wire.begin(Some(0)));
            assert!(wire.held.is_empty());
        }
    }

    #[test]
    fn chunks_pass_and_the_next_request_begins_after_the_answer() {
        let mut wire = Wire::new();
        read(
            &mut wire,
            b"POST / HTTP/1.1\r\n\r\n5\r\n#\n\n#\n\r\n0\r\n\r\n",
        );
        assert!(!wire.begin(None));
        assert_eq!(read(&mut wire, b""), "5\r\n#\n\n#\n\r\n0\r\n\r\n");
        wire.end();
        read(&mut wire, b"GET /#a HTTP/1.1\r\n\r\n");
        assert!(wire.begin(Some(0)));
    }
}
