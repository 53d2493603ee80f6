//! Durations: ISO 8601 from weeks to seconds, or an object of units from days to milliseconds.
//!
//! Not here: months and years, which have no fixed length.

use serde_json::Value;
use std::time::Duration;

/// The units of an object, in milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("days", 86_400_000),
    ("hours", 3_600_000),
    ("minutes", 60_000),
    ("seconds", 1_000),
    ("milliseconds", 1),
];

/// Reads a duration.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn of(value: &Value) -> Result<Duration, String> {
    match value {
        Value::String(text) => of_text(text),
        Value::Object(units) if !units.is_empty() => {
            let mut sum = 0_u64;
            for (name, count) in units {
                let Some((_, unit)) = UNITS.iter().find(|(known, _)| known == name) else {
                    let known = UNITS.map(|(known, _)| known).join(", ");
                    return Err(format!(
                        "`{name}` is no unit of a duration. Units: {known}."
                    ));
                };
                let Some(count) = count.as_u64() else {
                    return Err(format!("`{name}` has to be a whole number, 0 or more."));
                };
                sum = sum.saturating_add(count.saturating_mul(*unit));
            }
            Ok(Duration::from_millis(sum))
        }
        _ => Err(
            "A duration is a text such as \"PT5M\" or an object such as {\"minutes\": 5}."
                .to_owned(),
        ),
    }
}

fn of_text(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no ISO 8601 duration such as \"P1DT12H\" or \"PT0.5S\".");
    let rest = text.strip_prefix('P').ok_or_else(wrong)?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return Err(wrong()),
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.contains(['Y', 'M']) {
        return Err(format!(
            "`{text}` has years or months, which have no fixed length. Write days."
        ));
    }
    if rest.is_empty() {
        return Err(wrong());
    }
    let date = units(date, &[('W', 604_800_000), ('D', 86_400_000)]).ok_or_else(wrong)?;
    let time = units(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)]).ok_or_else(wrong)?;
    Ok(Duration::from_millis(date.saturating_add(time)))
}

/// Counts with their units, each once at most and in this order, in milliseconds.
fn units(mut text: &str, all: &[(char, u64)]) -> Option<u64> {
    let mut sum = 0_u64;
    for (unit, ms) in all {
        let Some((count, rest)) = text.split_once(*unit) else {
            continue;
        };
        let count = match count.split_once('.') {
            None => digits(count)?.saturating_mul(*ms),
            // Of a second alone, to the millisecond.
            Some((whole, part)) if *unit == 'S' && (1..=3).contains(&part.len()) => {
                let scale = [100, 10, 1].get(part.len() - 1)?;
                let part = digits(part)? * scale;
                digits(whole)?.saturating_mul(*ms).saturating_add(part)
            }
            Some(_) => return None,
        };
        sum = sum.saturating_add(count);
        text = rest;
    }
    text.is_empty().then_some(sum)
}

fn digits(text: &str) -> Option<u64> {
    let all_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number holds are too many milliseconds whatever they are.
    all_digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn durations_have_two_forms() {
        for (value, ms) in [
            (json!("PT1S"), 1_000),
            (json!("PT0.5S"), 500),
            (json!("PT1.025S"), 1_025),
            (json!("P1DT2H3M4S"), 93_784_000),
            (json!("P2W"), 1_209_600_000),
            (json!({"minutes": 1, "milliseconds": 5}), 60_005),
            (json!({"seconds": 0}), 0),
        ] {
            assert_eq!(of(&value), Ok(Duration::from_millis(ms)), "{value}");
        }
    }

    #[test]
    fn what_is_no_duration_is_told() {
        for (value, said) in [
            (json!("5s"), "no ISO 8601 duration"),
            (json!("P"), "no ISO 8601 duration"),
            (json!("PT"), "no ISO 8601 duration"),
            (json!("P1H"), "no ISO 8601 duration"),
            (json!("PT1S2M"), "no ISO 8601 duration"),
            (json!("PT-1S"), "no ISO 8601 duration"),
            (json!("PT1.5M"), "no ISO 8601 duration"),
            (json!("P1M"), "no fixed length"),
            (json!("P1Y2D"), "no fixed length"),
            (json!({"weeks": 1}), "`weeks` is no unit"),
            (json!({"days": 1.5}), "whole number"),
            (json!({"days": -1}), "whole number"),
            (json!({}), "an object such as"),
            (json!(5), "an object such as"),
        ] {
            let fault = of(&value).unwrap_err();
            assert!(fault.contains(said), "{value}: {fault}");
        }
        let endless = json!({"days": u64::MAX});
        assert!(of(&endless).unwrap() > super::super::tree::LONGEST);
    }
}
