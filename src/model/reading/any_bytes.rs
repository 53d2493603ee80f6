//! What is read of any bytes whatever: for the test below, and for the fuzz target (`tests/fuzz`).

use super::{Completion, Hidden, ModelFailure, Piece, Reading};
use crate::model::quirks;
use serde_json::json;

/// The longest failure message: what a server says has a bound of 1000 characters.
const MESSAGE_BYTES_MOST: usize = 8 * 1024;
/// What is kept of an answer, as JSON, for each byte of it: one byte that is no UTF-8 becomes three, and a control character six.
const KEPT_FOR_A_BYTE: usize = 8;

/// What became of bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    answer: Result<Completion, String>,
    text: String,
    reasoning: String,
}

/// Reads bytes as the body of an answer, at once and in pieces of `size` bytes, and as the body of a refusal.
///
/// # Panics
/// The pieces change what is read, or what is kept of the bytes is beyond its bound.
pub(in crate::model) fn check(body: &[u8], size: usize) {
    let whole = read([body]);
    let pieces = read(body.chunks(size.max(1)));
    assert_eq!(whole, pieces, "pieces of {size} bytes change the answer");
    match &whole.answer {
        Ok(answer) => {
            assert!(
                !answer.text.is_empty()
                    || !answer.tool_calls.is_empty()
                    || answer.refusal.is_some(),
                "an empty answer is none: {answer:?}"
            );
            let kept = json!(answer).to_string().len();
            assert!(kept <= 1024 + KEPT_FOR_A_BYTE * body.len(), "{kept} bytes");
        }
        Err(message) => {
            assert!(
                (1..=MESSAGE_BYTES_MOST).contains(&message.len()),
                "{message}"
            );
        }
    }
    let shown = whole.text.len() + whole.reasoning.len();
    assert!(
        shown <= 1024 + KEPT_FOR_A_BYTE * body.len(),
        "{shown} bytes"
    );
    for status in [400, 429, 500] {
        let failure = ModelFailure::status(status, body, Hidden::default());
        let length = failure.why.message.len();
        assert!(length <= MESSAGE_BYTES_MOST, "{length} bytes");
        quirks::words(body);
    }
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let answer = answer_to(pieces, &mut |piece| match piece {
        Piece::Text(piece) => text.push_str(piece),
        Piece::Reasoning(piece) => reasoning.push_str(piece),
    });
    Outcome {
        answer: answer.map_err(|failure| failure.why.message),
        text,
        reasoning,
    }
}

/// The answer that a body has which comes in these pieces.
pub(super) fn answer_to<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    on_piece: &mut dyn FnMut(Piece<'_>),
) -> Result<Completion, ModelFailure> {
    let mut reading = Reading::new(Hidden::default(), 200, vec!["weather".to_owned()]);
    for piece in pieces {
        if reading.take(piece, on_piece)? {
            return reading.complete(on_piece);
        }
    }
    reading.end(on_piece)?;
    reading.complete(on_piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Changed recordings, of each of the cases.
    const CHANGES: usize = 60;

    /// What decides how bodies are read.
    const WORDS: [&[u8]; 28] = [
        b"data: ",
        b"\n\n",
        b"\r",
        b"\n",
        b"[DONE]",
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b"null",
        b"NaN",
        b"1e999",
        b"\\ud83d",
        b"\xef\xbb\xbf",
        b"\xff",
        b"<think>",
        b"</think>",
        b"\"choices\":[",
        b"\"delta\":{",
        b"\"message\":{",
        b"\"content\":",
        b"\"tool_calls\":[",
        b"\"function\":{\"arguments\":",
        b"\"index\":9999999999,",
        b"\"finish_reason\":\"stop\"",
        b"\"error\":",
    ];

    /// Random numbers that are the same in each run.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }

        /// One below `most`, or 0.
        fn below(&mut self, most: usize) -> usize {
            let most = u64::try_from(most.max(1)).unwrap();
            usize::try_from(self.next() % most).unwrap()
        }
    }

    /// The bodies of the recorded answers, without their heads and the lengths of their chunks.
    fn recorded() -> Vec<Vec<u8>> {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/models");
        let mut paths: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let texts = paths.iter().map(|path| fs::read_to_string(path).unwrap());
        texts.flat_map(|text| bodies(&text)).collect()
    }

    fn bodies(recording: &str) -> Vec<Vec<u8>> {
        let parts = recording.split("--- request ").skip(1);
        let parts = parts.filter_map(|part| part.split_once("\r\n\r\n"));
        parts
            .map(|(_, body)| {
                let is_length = |line: &str| {
                    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit())
                };
                let lines = body.split_inclusive('\n');
                let lines = lines.filter(|line| !is_length(line.trim_end_matches(['\r', '\n'])));
                lines.collect::<String>().into_bytes()
            })
            .collect()
    }

    /// Changes a body in one place.
    fn change(body: &mut Vec<u8>, other: &[u8], numbers: &mut Numbers) {
        let at = numbers.below(body.len() + 1);
        let end = (at + numbers.below(40)).min(body.len());
        match numbers.below(7) {
            0 if at < body.len() => body[at] ^= 1 << numbers.below(8),
            1 => drop(body.drain(at..end)),
            2 => {
                let again = body[at..end].to_vec();
                body.splice(at..at, again);
            }
            3 => body.truncate(at),
            4 => {
                let from = numbers.below(other.len());
                let end = (from + numbers.below(400)).min(other.len());
                body.splice(at..at, other[from..end].iter().copied());
            }
            5 => {
                let lines: Vec<&[u8]> = body.split_inclusive(|byte| *byte == b'\n').collect();
                let line = lines
                    .get(numbers.below(lines.len()))
                    .map(|line| line.to_vec());
                body.splice(at..at, line.unwrap_or_default());
            }
            _ => drop(body.splice(at..end, WORDS[numbers.below(WORDS.len())].iter().copied())),
        }
    }

    #[test]
    fn any_bytes_are_read_the_same_in_any_pieces_and_within_bounds() {
        let bodies = recorded();
        assert!(bodies.len() >= 146, "{} bodies", bodies.len());
        let mut numbers = Numbers(43);
        for body in &bodies {
            check(body, 1 + numbers.below(200));
            for _ in 0..CHANGES {
                let other = &bodies[numbers.below(bodies.len())];
                let mut changed = body.clone();
                for _ in 0..=numbers.below(6) {
                    change(&mut changed, other, &mut numbers);
                }
                check(&changed, 1 + numbers.below(100));
            }
        }
    }
}
