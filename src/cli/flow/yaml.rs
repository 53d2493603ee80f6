//! YAML 1.2 as JSON, with the place of each part.
//!
//! A text is taken if it says one thing to everybody: no aliases, no tags, no second document, no field twice. So a file of
//! some lines cannot become a value of many bytes either.

use super::parts::{Form, Part, Parts, Syntax};
use crate::flows::definition::fault::key_path;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::{Map, Number, Value};
use std::ops::Range;

/// The deepest nesting, which is that of the JSON parser.
const DEPTH_MOST: usize = 127;

/// Reads a text.
///
/// # Errors
/// It is no YAML, or has what JSON has not.
pub(super) fn read(text: &str) -> Result<(Value, Parts), Syntax> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        parts: Parts::new(),
    };
    let mut value = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            _ if value.is_some() => return Err(wrong(&span, "The file has a second document.")),
            event => {
                let found = reader.value((event, span), ("$".to_owned(), None), 0)?;
                value = Some(found);
            }
        }
    }
    Ok((value.unwrap_or_default(), reader.parts))
}

struct Reader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    parts: Parts,
}

fn wrong(span: &Span, message: impl Into<String>) -> Syntax {
    Syntax {
        at: span.start.index(),
        message: message.into(),
        hint: None,
    }
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Syntax> {
        let said = |error: ScanError| Syntax {
            at: error.marker().index(),
            message: format!("This is no YAML: {}.", error.info()),
            hint: Some("A text with `: ` or ` #` in it stands in quotes."),
        };
        let next = self.parser.next_event();
        next.unwrap_or(Ok((Event::StreamEnd, Span::default())))
            .map_err(said)
    }

    fn value(
        &mut self,
        (event, span): (Event<'t>, Span),
        (path, key): (String, Option<Range<usize>>),
        depth: usize,
    ) -> Result<Value, Syntax> {
        if depth > DEPTH_MOST {
            let said = format!("Values nest {DEPTH_MOST} deep at most.");
            return Err(wrong(&span, said));
        }
        let (value, form) = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                let said = "Tags (`!name`) are not supported: a definition is plain JSON.";
                return Err(wrong(&span, said));
            }
            Event::Alias(_) => {
                let said = "Aliases (`*name`) are not supported. Declare in `use` what is used several times.";
                return Err(wrong(&span, said));
            }
            Event::Scalar(text, style, _, _) => scalar(&text, style, &span)?,
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        next => {
                            let inner = format!("{path}[{}]", items.len());
                            items.push(self.value(next, (inner, None), depth + 1)?);
                        }
                    }
                }
                (Value::Array(items), Form::Container)
            }
            Event::MappingStart(..) => (self.fields(&path, depth)?, Form::Container),
            _ => return Err(wrong(&span, "A value is expected here.")),
        };
        let value_range = span.start.index()..span.end.index();
        let part = Part {
            key,
            value: value_range,
            form,
        };
        self.parts.insert(path, part);
        Ok(value)
    }

    fn fields(&mut self, path: &str, depth: usize) -> Result<Value, Syntax> {
        let mut fields = Map::new();
        loop {
            let (name, span) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Object(fields)),
                (Event::Scalar(name, _, _, None), span) => (name.into_owned(), span),
                (_, span) => return Err(wrong(&span, "The name of a field is expected, a text.")),
            };
            if fields.contains_key(&name) {
                let said = format!("The object has the field `{name}` twice.");
                return Err(wrong(&span, said));
            }
            let key = span.start.index()..span.end.index();
            let next = self.next()?;
            let inner = (key_path(path, &name), Some(key));
            let value = self.value(next, inner, depth + 1)?;
            fields.insert(name, value);
        }
    }
}

/// The value of a scalar by the core schema of YAML 1.2.
fn scalar(text: &str, style: ScalarStyle, span: &Span) -> Result<(Value, Form), Syntax> {
    let form = match style {
        ScalarStyle::Plain => Form::Bare,
        ScalarStyle::SingleQuoted => Form::Single,
        ScalarStyle::DoubleQuoted => Form::Double,
        // Its place is that of its first line, so empty ones before that are lost.
        ScalarStyle::Literal if !text.starts_with('\n') => Form::Block,
        ScalarStyle::Literal | ScalarStyle::Folded => Form::Folded,
    };
    // A text over several lines is joined.
    let form = match form {
        Form::Bare | Form::Single | Form::Double if span.start.line() != span.end.line() => {
            Form::Folded
        }
        form => form,
    };
    if style != ScalarStyle::Plain {
        return Ok((Value::from(text), form));
    }
    let word = match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(Ok(number)) => Value::Number(number),
            Some(Err(said)) => return Err(wrong(span, said)),
            None => return Ok((Value::from(text), form)),
        },
    };
    Ok((word, Form::Word))
}

/// A number, if a text is one.
fn number(text: &str) -> Option<Result<Number, &'static str>> {
    let unsigned = text.trim_start_matches(['+', '-']);
    if matches!(
        unsigned,
        ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN"
    ) {
        return Some(Err("JSON has no such number."));
    }
    let radix = match unsigned.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        _ => 10,
    };
    if radix != 10 && unsigned.len() == text.len() {
        let digits = unsigned.get(2..).unwrap_or_default();
        let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
        let found = u64::from_str_radix(digits, radix).map(Number::from);
        return is_number.then(|| found.map_err(|_| "This number is too large."));
    }
    let is_part = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
    let has_digit = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !has_digit || !unsigned.chars().all(is_part) || text.len() - unsigned.len() > 1 {
        return None;
    }
    let whole = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = whole.parse::<i64>() {
        return Some(Ok(Number::from(number)));
    }
    if let Ok(number) = whole.parse::<u64>() {
        return Some(Ok(Number::from(number)));
    }
    let found: f64 = whole.parse().ok()?;
    Some(Number::from_f64(found).ok_or("This number is too large."))
}
