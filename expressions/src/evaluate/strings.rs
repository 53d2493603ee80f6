//! Functions of texts and numbers, and the formats.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

use super::{Done, Evaluator, Spent, Stop, shown};
use crate::budget::MAX_WEIGHT;
use crate::functions::Function as F;
use crate::number;
use crate::tree::Format;
use crate::value::{Fields, Text, Value};

/// As jq takes it: padding may be missing, and the bits that fill no byte may be anything.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl<'a> Evaluator<'a> {
    pub(super) fn of_text(
        &mut self,
        function: F,
        input: &Value<'a>,
        argument: &Value<'a>,
    ) -> Done<'a, Value<'a>> {
        match (function, input, argument) {
            (F::ToJson, ..) => self.formatted(Format::Json, input),
            (F::ToText, ..) => self.formatted(Format::Text, input),
            (F::Join, ..) => self.join(input, argument),
            (F::Implode, ..) => self.implode(input),
            (F::LeftTrimText | F::RightTrimText, Value::Text(text), Value::Text(affix)) => {
                let (text, affix) = (text.as_str(), affix.as_str());
                let cut = match function {
                    F::LeftTrimText => text.strip_prefix(affix),
                    _ => text.strip_suffix(affix),
                };
                self.text(cut.unwrap_or(text).to_owned())
            }
            (F::Split, Value::Text(text), Value::Text(by)) => {
                self.split(text.as_str(), by.as_str())
            }
            (F::StartsWith, Value::Text(text), Value::Text(affix)) => {
                self.charge_bytes(affix.as_str().len())?;
                Ok(Value::Bool(text.as_str().starts_with(affix.as_str())))
            }
            (F::EndsWith, Value::Text(text), Value::Text(affix)) => {
                self.charge_bytes(affix.as_str().len())?;
                Ok(Value::Bool(text.as_str().ends_with(affix.as_str())))
            }
            (F::LeftTrimText | F::RightTrimText | F::Split | F::StartsWith | F::EndsWith, ..) => {
                self.raise(format!(
                    "{} and {} must be strings",
                    shown(input),
                    shown(argument)
                ))
            }
            (_, Value::Text(text), _) => self.changed(function, text.as_str()),
            _ => self.raise(format!("{} is not a string", shown(input))),
        }
    }

    fn changed(&mut self, function: F, text: &str) -> Done<'a, Value<'a>> {
        self.charge_bytes(text.len())?;
        match function {
            F::AsciiDowncase => self.text(text.to_ascii_lowercase()),
            F::AsciiUpcase => self.text(text.to_ascii_uppercase()),
            F::LeftTrim => self.text(text.trim_start().to_owned()),
            F::RightTrim => self.text(text.trim_end().to_owned()),
            F::Trim => self.text(text.trim().to_owned()),
            F::Utf8ByteLength => Ok(Value::from(text.len())),
            F::Explode => {
                self.charge(2 * text.len() as u64)?;
                let points = text
                    .chars()
                    .map(|letter| Value::Number(u32::from(letter).into()));
                self.array(points.collect())
            }
            _ => self.parsed(text),
        }
    }

    /// Parsing costs by the byte what the smallest values take.
    fn parsed(&mut self, text: &str) -> Done<'a, Value<'a>> {
        self.charge(4 * text.len() as u64)?;
        match serde_json::from_str(text) {
            Ok(json) => self.made(json),
            Err(error) => self.raise(format!("{} is no JSON: {error}", shown(&Value::text(text)))),
        }
    }

    fn made(&mut self, json: Json) -> Done<'a, Value<'a>> {
        match json {
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                let mut made = Vec::with_capacity(items.len());
                for item in items {
                    made.push(self.made(item)?);
                }
                self.array(made)
            }
            Json::Object(entries) => {
                let mut fields = Fields::with_capacity(entries.len());
                for (key, value) in entries {
                    fields.insert(Text::Made(key.into()), self.made(value)?);
                }
                self.fields(fields)
            }
            Json::Null => Ok(Value::Null),
            Json::Bool(value) => Ok(Value::Bool(value)),
            Json::Number(number) => Ok(Value::Number(number)),
        }
    }

    pub(super) fn formatted(&mut self, format: Format, value: &Value<'a>) -> Done<'a, Value<'a>> {
        let text = match value {
            Value::Text(text) if format != Format::Json => text.clone(),
            _ => Text::Made(self.json_text(value)?.into()),
        };
        let text = match format {
            Format::Text | Format::Json => return Ok(Value::Text(text)),
            _ => text.as_str(),
        };
        self.charge_bytes(4 * text.len())?;
        match format {
            Format::Base64 => self.text(BASE64.encode(text)),
            Format::Base64Decoded => {
                // jq reads up to the first sign of padding, wherever that stands.
                let before = text.split_once('=').map_or(text, |(before, _)| before);
                let decoded = BASE64.decode(before).ok();
                match decoded.and_then(|bytes| String::from_utf8(bytes).ok()) {
                    Some(decoded) => self.text(decoded),
                    None => self.raise(format!("{} is no text in base64", shown(value))),
                }
            }
            _ => self.text(in_uri(text)),
        }
    }

    /// A value as JSON. Escapes can make it longer than the value.
    fn json_text(&mut self, value: &Value<'a>) -> Done<'a, String> {
        let size = self.size(value)?;
        self.within_bounds(size)?;
        self.charge_bytes(2 * size.weight)?;
        let text = value.to_json().to_string();
        self.charge_bytes(text.len())?;
        match text.len() > MAX_WEIGHT {
            true => Err(Stop::Spent(Spent::Weight)),
            false => Ok(text),
        }
    }

    pub(super) fn split(&mut self, text: &str, by: &str) -> Done<'a, Value<'a>> {
        // To search for a text begins with reading all of it.
        self.charge_bytes(text.len() + by.len())?;
        let mut parts = Vec::new();
        if by.is_empty() {
            for letter in text.chars() {
                self.charge(4)?;
                parts.push(Value::text(letter.to_string()));
            }
        } else if !text.is_empty() {
            for part in text.split(by) {
                self.charge(4)?;
                parts.push(Value::text(part));
            }
        }
        self.array(parts)
    }

    fn join(&mut self, input: &Value<'a>, by: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut joined = String::new();
        for (at, item) in self.each(input)?.iter().enumerate() {
            match by {
                Value::Text(by) if at > 0 => self.append(&mut joined, by.as_str())?,
                Value::Text(_) => {}
                _ => return self.raise(format!("{} is not a string", shown(by))),
            }
            match item {
                Value::Null => {}
                Value::Text(text) => self.append(&mut joined, text.as_str())?,
                Value::Bool(_) | Value::Number(_) => {
                    self.append(&mut joined, &item.to_json().to_string())?;
                }
                _ => return self.raise(format!("{} cannot be joined", shown(item))),
            }
        }
        self.text(joined)
    }

    fn implode(&mut self, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let mut text = String::new();
        for point in self.each(input)? {
            let letter = match &point {
                Value::Number(point) => point.as_u64().and_then(|point| u32::try_from(point).ok()),
                _ => None,
            };
            match letter.and_then(char::from_u32) {
                Some(letter) => text.push(letter),
                None => return self.raise(format!("{} is no code point", shown(&point))),
            }
        }
        self.text(text)
    }

    pub(super) fn number(&mut self, function: F, input: &Value<'a>) -> Done<'a, Value<'a>> {
        let number = match input {
            Value::Number(number) => number,
            Value::Text(text) if function == F::ToNumber => {
                self.charge(text.as_str().len() as u64 / 4)?;
                return match number::parse(text.as_str()) {
                    Some(number) => Ok(Value::Number(number)),
                    None => self.raise(format!("{} is no number", shown(input))),
                };
            }
            // As in jq: what stands behind numbers in the order of values is not below zero.
            Value::Text(_) | Value::Array(_) | Value::Object(_) if function == F::Abs => {
                return Ok(input.clone());
            }
            _ => return self.raise(format!("{} is not a number", shown(input))),
        };
        let float = number::float(number);
        let changed = match function {
            F::ToNumber => return Ok(input.clone()),
            F::Abs if float < 0.0 => number::negate(number),
            F::Sqrt => number::of_float(float.sqrt()),
            _ if number.is_i64() || number.is_u64() => return Ok(input.clone()),
            F::Abs => return Ok(input.clone()),
            F::Ceil => number::of_float(float.ceil()),
            F::Floor => number::of_float(float.floor()),
            _ => number::of_float(float.round()),
        };
        match changed {
            Some(changed) => Ok(Value::Number(changed)),
            None => self.raise(format!("{} has no such number", shown(input))),
        }
    }
}

/// Every byte that is not unreserved as `%XX`.
fn in_uri(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => {
                for digit in [byte >> 4, byte & 15] {
                    let digit = char::from_digit(digit.into(), 16).unwrap_or('0');
                    encoded.push(digit.to_ascii_uppercase());
                }
                encoded.insert(encoded.len() - 2, '%');
            }
        }
    }
    encoded
}
