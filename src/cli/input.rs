//! What a command reads from a file, or from standard input where the file is `-`: text in UTF-8 up to a bound.

use super::client::Which;
use super::terminal::printable;
use super::{Failure, Outcome};
use crate::json::repeated_key;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// What stands for standard input.
pub(super) const STDIN: &str = "-";

/// What the file is called in a sentence.
pub(super) fn name(file: &Path) -> String {
    match file.to_str() {
        Some(STDIN) => "Standard input".to_owned(),
        _ => printable(&file.to_string_lossy()),
    }
}

/// The text, without a byte order mark, of a command that asks a server.
///
/// # Errors
/// It cannot be read, is too long, or the token comes from standard input, too.
pub(super) fn read_beside(which: &Which, file: &Path, most: u64) -> Outcome<String> {
    check_beside(which, file)?;
    read(file, most)
}

/// Whether the file can be read beside the token.
///
/// # Errors
/// Both come from standard input.
pub(super) fn check_beside(which: &Which, file: &Path) -> Outcome {
    match which.takes_stdin() && file.as_os_str() == STDIN {
        true => Err(Failure::usage(
            "What is sent and the token cannot both come from standard input.",
        )),
        false => Ok(()),
    }
}

/// The text, without a byte order mark.
///
/// # Errors
/// It cannot be read, or is longer than so many bytes.
pub(super) fn read(file: &Path, most: u64) -> Outcome<String> {
    let cannot = |error| {
        let hint = match file.to_string_lossy().starts_with(['{', '[']) {
            true => {
                " This names a file. To pass JSON itself, write it to standard input and name `-`."
            }
            false => "",
        };
        Failure::new(format!("{} cannot be read: {error}.{hint}", name(file)))
    };
    let mut from: Box<dyn Read> = match file.as_os_str() == STDIN {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(std::fs::File::open(file).map_err(cannot)?),
    };
    let mut bytes = Vec::new();
    from.by_ref()
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(cannot)?;
    if bytes.len() as u64 > most {
        let said = format!("{} has more than {most} bytes.", name(file));
        return Err(Failure::new(said));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::new(format!("{} is no text in UTF-8.", name(file))))?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The JSON of a text. `what` begins the sentence of a fault.
///
/// # Errors
/// It is no JSON, or an object has a field twice, of which the server would see one.
pub(super) fn json(text: &str, what: &str) -> Outcome<Value> {
    let value = serde_json::from_str(text)
        .map_err(|error| Failure::new(format!("{what} is no JSON: {error}.")))?;
    match repeated_key(text.as_bytes()) {
        None => Ok(value),
        Some(place) => Err(Failure::new(format!(
            "{what} has the field {} twice. Leave one out.",
            printable(&place)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_field_stands_once() {
        assert!(json(r#"{"a": {"b": 1}}"#, "It").is_ok());
        let twice = json(r#"{"a": {"b": 1, "b": 2}}"#, "It")
            .unwrap_err()
            .message;
        assert_eq!(twice, "It has the field $.a.b twice. Leave one out.");
        let none = json("{", "It").unwrap_err().message;
        assert!(none.starts_with("It is no JSON: "), "{none}");
    }

    #[test]
    fn a_file_is_read_up_to_its_bound_and_every_fault_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.json");
        let said = read(&file, 4).unwrap_err().message;
        assert!(said.contains("a.json cannot be read"), "{said}");
        let json = Path::new(r#"{"orderId": "1"}"#);
        let said = read(json, 4).unwrap_err().message;
        assert!(said.contains("standard input"), "{said}");
        for (bytes, expected) in [
            (&b"1234"[..], Ok("1234")),
            (b"12345", Err("a.json has more than 4 bytes.")),
            (b"\xff", Err("a.json is no text in UTF-8.")),
            (b"\xef\xbb\xbf1", Ok("1")),
        ] {
            fs::write(&file, bytes).unwrap();
            match (read(&file, 4), expected) {
                (Ok(text), Ok(expected)) => assert_eq!(text, expected),
                (Err(failure), Err(expected)) => assert!(failure.message.ends_with(expected)),
                (read, _) => panic!("{bytes:?}: {read:?}"),
            }
        }
    }
}
