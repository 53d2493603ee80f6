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
    let mut counted = counts(date, &[('W', 604_800_000), ('D', 86_400_000)]).ok_or_else(wrong)?;
    let time = counts(time, &[('H', 3_600_000), ('M', 60_000), ('S', 1_000)]).ok_or_else(wrong)?;
    counted.extend(time);
    if counted.iter().rev().skip(1).any(|one| one.part.is_some()) {
        return Err(format!(
            "`{text}` has a fraction of a unit that is not the smallest one. Only the last number may have one."
        ));
    }
    let sum = counted.iter().map(Count::milliseconds);
    Ok(Duration::from_millis(sum.fold(0, u64::saturating_add)))
}

/// A number of one unit.
struct Count<'t> {
    whole: &'t str,
    /// The digits of its fraction.
    part: Option<&'t str>,
    unit: u64,
}

impl Count<'_> {
    /// Below a millisecond it is cut off.
    fn milliseconds(&self) -> u64 {
        // More digits than a number holds are too many milliseconds whatever they are.
        let whole: u64 = self.whole.parse().unwrap_or(u64::MAX);
        let digits = self.part.unwrap_or_default().bytes();
        // Of further digits no unit has a millisecond left.
        let digits = digits.take(12).map(|digit| u64::from(digit - b'0'));
        let (part, scale) = digits.fold((0_u64, 1_u64), |(part, scale), digit| {
            (part * 10 + digit, scale * 10)
        });
        let part = u128::from(part) * u128::from(self.unit) / u128::from(scale);
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        whole.saturating_mul(self.unit).saturating_add(part)
    }
}

/// Counts with their units, each once at most and in this order.
fn counts<'t>(mut text: &'t str, all: &[(char, u64)]) -> Option<Vec<Count<'t>>> {
    let mut counts = Vec::new();
    for (name, unit) in all {
        let Some((count, rest)) = text.split_once(*name) else {
            continue;
        };
        // Both signs are those of ISO 8601.
        let (whole, part) = match count.split_once(['.', ',']) {
            Some((whole, part)) => (whole, Some(part)),
            None => (count, None),
        };
        if !is_digits(whole) || part.is_some_and(|part| !is_digits(part)) {
            return None;
        }
        let unit = *unit;
        counts.push(Count { whole, part, unit });
        text = rest;
    }
    text.is_empty().then_some(counts)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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
            (json!("P0.5D"), 43_200_000),
            (json!("P1DT0.25H"), 87_300_000),
            (json!("PT1.5M"), 90_000),
            (json!("P0,5W"), 302_400_000),
            (json!("PT0.0019S"), 1),
            (json!("PT0.00000000000000000009H"), 0),
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
            (json!("PT1.S"), "no ISO 8601 duration"),
            (json!("PT.5S"), "no ISO 8601 duration"),
            (json!("P0.5DT1H"), "not the smallest"),
            (json!("PT1.5H30M"), "not the smallest"),
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
        let digits = "9".repeat(40);
        for endless in [
            json!({"days": u64::MAX}),
            json!(format!("P{digits}.{digits}D")),
        ] {
            assert!(of(&endless).unwrap() > super::super::tree::LONGEST);
        }
    }
}
