//! Numbers: 64-bit integers stay exact, everything else is a double.
//!
//! JSON has neither NaN nor infinite numbers, and there are none here.

use serde_json::Number;

/// The largest integer up to which all integers are doubles, too.
pub(crate) const MAX_EXACT: i128 = 1 << 53;

/// A finite double as a number; a whole one that is exact becomes an integer.
pub(crate) fn of_float(value: f64) -> Option<Number> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is whole and below 2^53"
    )]
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT as f64 {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}
