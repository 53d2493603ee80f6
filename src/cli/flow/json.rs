//! JSON with the place of each part.

use super::parts::{Form, Part, Parts, Syntax};
use crate::flows::definition::fault::key_path;
use serde_json::Value;
use std::ops::Range;

/// Reads a text.
///
/// # Errors
/// It is no JSON, or an object has a field twice.
pub(super) fn read(text: &str) -> Result<(Value, Parts), Syntax> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let lines = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1));
        let before: usize = lines.map(|line| line.chars().count()).sum();
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        Syntax {
            at: before + error.column().saturating_sub(1),
            message: format!("This is no JSON: {said}."),
            hint: None,
        }
    })?;
    let mut scan = Scan {
        characters: text.chars().collect(),
        at: 0,
        parts: Parts::new(),
    };
    scan.value("$".to_owned(), None)?;
    Ok((value, scan.parts))
}

/// Goes over a text that was read, so it is JSON within the parser's depth.
struct Scan {
    characters: Vec<char>,
    at: usize,
    parts: Parts,
}

impl Scan {
    fn value(&mut self, path: String, key: Option<Range<usize>>) -> Result<(), Syntax> {
        self.blanks();
        let start = self.at;
        let form = match self.peek() {
            Some('{') => self.object(&path)?,
            Some('[') => self.array(&path)?,
            Some('"') => {
                self.string();
                Form::Double
            }
            _ => {
                while self
                    .peek()
                    .is_some_and(|c| !",]}".contains(c) && !c.is_ascii_whitespace())
                {
                    self.at += 1;
                }
                Form::Word
            }
        };
        let value = start..self.at;
        self.parts.insert(path, Part { key, value, form });
        Ok(())
    }

    fn object(&mut self, path: &str) -> Result<Form, Syntax> {
        while self.goes_on('}') {
            let start = self.at;
            let written = self.string();
            let key = start..self.at;
            let name: String = serde_json::from_str(&written).unwrap_or_default();
            let inner = key_path(path, &name);
            if self.parts.contains_key(&inner) {
                return Err(Syntax {
                    at: start,
                    message: format!("The object has the field `{name}` twice."),
                    hint: None,
                });
            }
            self.blanks();
            // The colon.
            self.at += 1;
            self.value(inner, Some(key))?;
        }
        Ok(Form::Container)
    }

    fn array(&mut self, path: &str) -> Result<Form, Syntax> {
        let mut index = 0;
        while self.goes_on(']') {
            self.value(format!("{path}[{index}]"), None)?;
            index += 1;
        }
        Ok(Form::Container)
    }

    /// Goes over the opening bracket or a comma. False: the closing one was met.
    fn goes_on(&mut self, close: char) -> bool {
        self.blanks();
        let met = self.peek();
        self.at += 1;
        self.blanks();
        let is_empty = met != Some(',') && met != Some(close) && self.peek() == Some(close);
        if is_empty {
            self.at += 1;
        }
        met.is_some() && met != Some(close) && !is_empty
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at += 1;
        while let Some(c) = self.peek().filter(|c| *c != '"') {
            self.at += if c == '\\' { 2 } else { 1 };
        }
        self.at += 1;
        self.characters
            .get(start..self.at)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }
}
