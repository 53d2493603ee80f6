//! An env file as lines. One value can be changed; every other line is written back as it was.
//!
//! A line is `NAME=value`, optionally after `export`. A value without quotes ends at the line's
//! end, or at white space followed by `#`; white space around it is dropped. In single quotes every
//! character is literal. In double quotes `\n`, `\r`, `\t`, `\"`, `\\`, `\$` and `` \` `` are
//! escapes, and any other backslash is literal. A quoted value may span lines. Nothing is expanded.
//! Of several lines with one name the last counts. Every other line is ignored.
//!
//! systemd parses such a file (`EnvironmentFile=`) almost the same way. [`EnvFile::foreign`] names
//! the lines that it would parse differently.

use crate::secret::Secret;
use zeroize::Zeroizing;

/// The lines of a file.
#[derive(Default)]
pub struct EnvFile(Vec<Line>);

/// A line, or several if a quoted value spans them.
enum Line {
    /// A line without a value, including its line end.
    Other(Zeroizing<String>),
    Value(ValueLine),
}

struct ValueLine {
    /// Everything up to and including the equals sign.
    before: String,
    name: String,
    /// The value as it is written.
    written: Zeroizing<String>,
    value: Secret,
    /// A comment and the line end, with the white space before them.
    after: Zeroizing<String>,
}

impl EnvFile {
    /// Parses a text. The error is the number of the line whose quote is not closed.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let mut lines = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (line, length) = match value_line(rest) {
                Some(Ok((line, length))) => (Line::Value(line), length),
                Some(Err(())) => {
                    let read = &text[..text.len() - rest.len()];
                    return Err(read.matches('\n').count() + 1);
                }
                None => {
                    let length = line_length(rest);
                    (
                        Line::Other(Zeroizing::new(rest[..length].to_owned())),
                        length,
                    )
                }
            };
            lines.push(line);
            rest = &rest[length..];
        }
        Ok(Self(lines))
    }

    /// The text of the file.
    pub fn text(&self) -> Zeroizing<String> {
        let parts = || {
            self.0.iter().flat_map(|line| match line {
                Line::Other(text) => [text.as_str(), "", ""],
                Line::Value(line) => [&line.before, line.written.as_str(), line.after.as_str()],
            })
        };
        let length = parts().map(str::len).sum();
        let mut text = Zeroizing::new(String::with_capacity(length));
        parts().for_each(|part| text.push_str(part));
        text
    }

    /// The values by name, in the order of the lines.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.0.iter().filter_map(|line| match line {
            Line::Value(line) => Some((line.name.as_str(), &line.value)),
            Line::Other(_) => None,
        })
    }

    /// The value of a name.
    pub fn value(&self, name: &str) -> Option<&Secret> {
        let values = self.values().filter(|(named, _)| *named == name);
        values.last().map(|(_, value)| value)
    }

    /// The names whose lines systemd would parse differently or ignore: `export` before the name, a
    /// comment after a value without quotes, an escape that systemd does not know.
    pub fn foreign(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|line| match line {
            Line::Value(line) => {
                let bare = !line.written.starts_with(['"', '\'']);
                let exported = line.before.trim_start() != format!("{}=", line.name);
                let commented = !line.after.trim().is_empty();
                let escaped = bare && line.written.contains(['\\', '"', '\''])
                    || line.written.starts_with('"')
                        && ["\\n", "\\r", "\\t"]
                            .iter()
                            .any(|e| line.written.contains(e));
                (exported || commented || escaped).then_some(line.name.as_str())
            }
            Line::Other(_) => None,
        })
    }

    /// Sets a name to another value: on the line that counts, else on a new line after the name's
    /// sample (`#NAME=`), else at the end.
    pub fn set(&mut self, name: &str, value: &Secret) {
        let standing = self.0.iter_mut().rev().find_map(|line| match line {
            Line::Value(line) if line.name == name => Some(line),
            _ => None,
        });
        if let Some(line) = standing {
            line.written = written(value.expose());
            line.value = value.clone();
            line.after = set_apart(&line.after);
            return;
        }
        let sample = format!("#{name}=");
        let sampled = self.0.iter().rposition(|line| match line {
            Line::Other(text) => text.starts_with(&sample) && text.ends_with('\n'),
            Line::Value(_) => false,
        });
        self.end_last_line();
        let place = sampled.map_or(self.0.len(), |at| at + 1);
        let line = Line::Value(ValueLine {
            before: format!("{name}="),
            name: name.to_owned(),
            written: written(value.expose()),
            value: value.clone(),
            after: Zeroizing::new("\n".to_owned()),
        });
        self.0.insert(place, line);
    }

    /// Whether its text parses to these values again.
    pub fn reads_back(&self) -> bool {
        Self::parse(&self.text()).is_ok_and(|read| read.values().eq(self.values()))
    }

    fn end_last_line(&mut self) {
        let end = match self.0.last_mut() {
            Some(Line::Other(text)) => text,
            Some(Line::Value(line)) => &mut line.after,
            None => return,
        };
        if !end.ends_with('\n') {
            end.push('\n');
        }
    }

    /// Removes every line of a name. False: there was none.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0
            .retain(|line| !matches!(line, Line::Value(line) if line.name == name));
        self.0.len() < before
    }
}

/// Up to and including the line end.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |end| end + 1)
}

/// White space inside a line.
fn blank_length(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

/// What may follow any value: a line end, or a comment after white space. Anything else would
/// become part of some values, and is dropped.
fn set_apart(after: &str) -> Zeroizing<String> {
    let rest = &after[blank_length(after)..];
    let is_comment = rest.starts_with('#');
    Zeroizing::new(if is_comment && rest.len() == after.len() {
        format!(" {after}")
    } else if is_comment || rest.trim().is_empty() {
        after.to_owned()
    } else {
        after[after.trim_end_matches(['\r', '\n']).len()..].to_owned()
    })
}

/// The line at the start of a text, if it gives a value, and its length.
fn value_line(text: &str) -> Option<Result<(ValueLine, usize), ()>> {
    let mut at = blank_length(text);
    if let Some(rest) = text[at..].strip_prefix("export")
        && blank_length(rest) > 0
    {
        at += "export".len() + blank_length(rest);
    }
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name_length = text[at..].find(|c| !of_name(c)).unwrap_or(text.len() - at);
    let name = &text[at..at + name_length];
    at += name_length;
    at += blank_length(&text[at..]);
    if name.is_empty() || !text[at..].starts_with('=') {
        return None;
    }
    at += 1;
    at += blank_length(&text[at..]);
    let rest = &text[at..];
    let read = match rest.chars().next() {
        Some('\'') => single_quoted(rest),
        Some('"') => double_quoted(rest),
        _ => Some(unquoted(rest)),
    };
    let Some((value, length)) = read else {
        return Some(Err(()));
    };
    let after = &rest[length..][..line_length(&rest[length..])];
    let line = ValueLine {
        before: text[..at].to_owned(),
        name: name.to_owned(),
        written: Zeroizing::new(rest[..length].to_owned()),
        value,
        after: Zeroizing::new(after.to_owned()),
    };
    Some(Ok((line, at + length + after.len())))
}

fn unquoted(text: &str) -> (Secret, usize) {
    let line = &text[..line_length(text)];
    let comment = line.char_indices().find(|(at, c)| {
        let before = line[..*at].chars().next_back();
        *c == '#' && before.is_none_or(|before| before == ' ' || before == '\t')
    });
    let value = line[..comment.map_or(line.len(), |(at, _)| at)].trim_end();
    (Secret::new(value), value.len())
}

fn single_quoted(text: &str) -> Option<(Secret, usize)> {
    let inside = text.strip_prefix('\'')?;
    let end = inside.find('\'')?;
    Some((Secret::new(&inside[..end]), end + 2))
}

fn double_quoted(text: &str) -> Option<(Secret, usize)> {
    let inside = text.strip_prefix('"')?;
    let mut value = Zeroizing::new(String::with_capacity(quoted_length(inside)?));
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Secret::new(value.as_str()), at + 2)),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$' | '`') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            plain => value.push(plain),
        }
    }
    None
}

/// The number of bytes before the quote that ends a double-quoted text.
fn quoted_length(inside: &str) -> Option<usize> {
    let mut is_escaped = false;
    inside.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

/// A value, quoted so that this parser and others read it back.
fn written(value: &str) -> Zeroizing<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&byte);
    // At most two bytes for each character, and the quotes: a buffer that grows would leave copies
    // behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * value.len() + 2));
    if value.bytes().all(plain) && !value.is_empty() {
        text.push_str(value);
    } else if !value.contains(['\'', '\n', '\r']) {
        text.push('\'');
        text.push_str(value);
        text.push('\'');
    } else {
        text.push('"');
        for letter in value.chars() {
            match letter {
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '"' | '\\' | '$' | '`' => text.extend(['\\', letter]),
                plain => text.push(plain),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(text: &str) -> Vec<(String, String)> {
        let file = EnvFile::parse(text).unwrap();
        assert_eq!(file.text().as_str(), text, "it is written as it was read");
        file.values()
            .map(|(name, value)| (name.to_owned(), value.expose().to_owned()))
            .collect()
    }

    #[test]
    fn lines_are_read_as_they_are_written() {
        for (text, name, value) in [
            ("A=b", "A", "b"),
            ("A=b\n", "A", "b"),
            ("A=b\r\n", "A", "b"),
            ("  export  A = b c \t# why\n", "A", "b c"),
            ("A=b#c", "A", "b#c"),
            ("A= #c", "A", ""),
            ("A=", "A", ""),
            ("A=it's", "A", "it's"),
            ("A='b # c' # d", "A", "b # c"),
            ("A='$b\\n\nc'", "A", "$b\\n\nc"),
            ("A=\"b\\n\\\"\\$x\\\\ \\q\nc\"", "A", "b\n\"$x\\ \\q\nc"),
            ("exported=1", "exported", "1"),
            ("export=1", "export", "1"),
            ("A==b=", "A", "=b="),
        ] {
            assert_eq!(
                values(text),
                [(name.to_owned(), value.to_owned())],
                "{text}"
            );
        }
        for text in [
            "", "\n\n", "# A=b\n", "A\n", "A b=c\n", "=b", "ä=b", "\u{feff}",
        ] {
            assert!(values(text).is_empty(), "{text}");
        }
        for (text, line) in [("A='b", 1), ("B=1\n#\nA=\"b\\\"\nC=2\n", 3), ("A=\"\\", 1)] {
            assert_eq!(EnvFile::parse(text).err(), Some(line), "{text}");
        }
    }

    #[test]
    fn a_change_touches_its_own_line() {
        let text = "# first\nA=1 # one\n\nexport B = 'two'\nA=3\nodd line\nC=last";
        let mut file = EnvFile::parse(text).unwrap();
        file.set("B", &Secret::new("it's"));
        file.set("A", &Secret::new("x y"));
        file.set("NEW", &Secret::new("1"));
        let changed =
            "# first\nA=1 # one\n\nexport B = \"it's\"\nA='x y'\nodd line\nC=last\nNEW=1\n";
        assert_eq!(file.text().as_str(), changed);
        assert!(file.remove("A") && !file.remove("A"));
        let removed = "# first\n\nexport B = \"it's\"\nodd line\nC=last\nNEW=1\n";
        assert_eq!(file.text().as_str(), removed);
    }

    #[test]
    fn a_new_value_stands_after_its_sample() {
        let mut file = EnvFile::parse("# A\n#A=\n\n# B\n#B=1\n").unwrap();
        file.set("A", &Secret::new("x"));
        file.set("C", &Secret::new("y"));
        assert_eq!(file.text().as_str(), "# A\n#A=\nA=x\n\n# B\n#B=1\nC=y\n");
        assert_eq!(file.value("A").map(Secret::expose), Some("x"));
        assert!(file.value("B").is_none());
    }

    #[test]
    fn what_systemd_reads_otherwise_is_named() {
        let text = "A=1\nB='x y'\nC=\"x y\"\nexport D=1\nE=1 # why\nF = 1\nG=\"a\\nb\"\nH=it's\n";
        let file = EnvFile::parse(text).unwrap();
        assert_eq!(
            file.foreign().collect::<Vec<_>>(),
            ["D", "E", "F", "G", "H"]
        );
    }

    #[test]
    fn a_value_is_not_joined_with_what_follows_it() {
        for (before, after) in [
            ("A= # fill me in\n", "A= new # fill me in\n"),
            ("A=# fill me in\n", "A=new # fill me in\n"),
            ("A='b'#c\r\n", "A=new #c\r\n"),
            ("A='b'\t#c", "A=new\t#c"),
            ("A=\"b\"x\n", "A=new\n"),
            ("A='b' x # c\r\nB=1", "A=new\r\nB=1"),
            ("A='b''c'", "A=new"),
            ("A='b' \n", "A=new \n"),
        ] {
            let mut file = EnvFile::parse(before).unwrap();
            file.set("A", &Secret::new("new"));
            assert_eq!(file.text().as_str(), after, "{before}");
            assert!(file.reads_back(), "{before}");
        }
        let mut file = EnvFile::parse("A='b'\n").unwrap();
        let Some(Line::Value(line)) = file.0.first_mut() else {
            panic!("a value");
        };
        line.after = Zeroizing::new("c\n".to_owned());
        line.written = Zeroizing::new("b".to_owned());
        assert!(!file.reads_back(), "it is seen");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn any_value_reads_back(
            value in "(?s)[^\u{0}]{0,30}",
            tricky in "[ '\"\\\\$`#=\n\r\tn]{0,12}",
            after in "[A-Z]{1,3}=[a-z]{0,3}\n",
        ) {
            for value in [value, tricky] {
                let mut file = EnvFile::parse(&after).unwrap();
                file.set("_NAME", &Secret::new(&*value));
                file.set("_LATER", &Secret::new("x"));
                let text = file.text();
                let read = EnvFile::parse(&text).unwrap();
                let read: Vec<_> = read.values().collect();
                prop_assert_eq!(read.len(), 3);
                prop_assert_eq!(read[1].0, "_NAME");
                prop_assert_eq!(read[1].1.expose(), &value);
            }
        }

        #[test]
        fn any_value_reads_back_on_a_line_that_stands(
            text in "(?s)([AB][ \t]{0,1}=[ \t]{0,2}[='\"#\\\\\r\n a-z\u{3000}]{0,8}\n?){1,4}",
            value in "[ '\"\\\\$`#=\n\r\tn\u{3000}]{1,6}|[a-z]{1,3}",
        ) {
            if let Ok(mut file) = EnvFile::parse(&text) {
                let of = |file: &EnvFile, name: &str| {
                    let value = file.values().filter(|(of, _)| *of == name).last();
                    value.map(|(_, value)| value.expose().to_owned())
                };
                let before = of(&file, "B");
                file.set("A", &Secret::new(&*value));
                let read = EnvFile::parse(&file.text()).unwrap();
                prop_assert_eq!(of(&read, "A"), Some(value));
                prop_assert_eq!(of(&read, "B"), before);
                prop_assert!(file.reads_back());
            }
        }

        #[test]
        fn any_text_is_kept(text in "(?s)([A-Z ]{0,2}[='\"#\\\\\n a-z]{0,6}){0,12}") {
            if let Ok(file) = EnvFile::parse(&text) {
                let kept = file.text();
                prop_assert_eq!(kept.as_str(), text);
            }
        }
    }
}
