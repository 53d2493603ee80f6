//! Numbers: 64-bit integers stay exact, everything else is a double.
//!
//! JSON has neither NaN nor infinite numbers, and there are none here. An integer that leaves 2^53 by
//! arithmetic is an error and no rounding, since many readers of JSON know doubles alone.

use std::cmp::Ordering;

use serde_json::Number;

use crate::tree::Operator;

/// The largest integer up to which all integers are doubles, too.
const MAX_EXACT: i128 = 1 << 53;

/// A finite double as a number; a whole one that is exact becomes an integer.
pub(crate) fn of_float(value: f64) -> Option<Number> {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is whole and at most 2^53"
    )]
    if value.fract() == 0.0 && value.abs() <= MAX_EXACT as f64 {
        return Some(Number::from(value as i64));
    }
    Number::from_f64(value)
}

/// The number as an integer, if it was written as one.
fn integer(number: &Number) -> Option<i128> {
    let small = number.as_i64().map(i128::from);
    small.or_else(|| number.as_u64().map(i128::from))
}

pub(crate) fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// The order of numbers by their exact values: an integer is not rounded to be compared, so that the order
/// is one, and what is equal to the same is equal.
pub(crate) fn compare(a: &Number, b: &Number) -> Ordering {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(a), None) => compare_to_float(a, float(b)),
        (None, Some(b)) => compare_to_float(b, float(a)).reverse(),
        (None, None) => float(a).partial_cmp(&float(b)).unwrap_or(Ordering::Equal),
    }
}

fn compare_to_float(integer: i128, float: f64) -> Ordering {
    let whole = float.floor();
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is whole; what an i128 does not hold is cut to its ends, which no integer here reaches"
    )]
    let order = integer.cmp(&(whole as i128));
    order.then(match float > whole {
        true => Ordering::Less,
        false => Ordering::Equal,
    })
}

/// The number that a text is, as jq reads it: with leading zeros, with a plus, and with no digit on one side
/// of the point. White space is no part of a number.
pub(crate) fn parse(text: &str) -> Option<Number> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    // A reader of JSON checks the exponent.
    let written = match fraction {
        "" => format!("{sign}{whole}{exponent}"),
        fraction => format!("{sign}{whole}.{fraction}{exponent}"),
    };
    let is_bare = !exponent.ends_with(|letter: char| letter.is_whitespace());
    serde_json::from_str(&written).ok().filter(|_| is_bare)
}

/// Arithmetic on two numbers, or why there is no result.
pub(crate) fn calculate(
    operator: Operator,
    a: &Number,
    b: &Number,
) -> Result<Number, &'static str> {
    if matches!(operator, Operator::Divide | Operator::Remainder) && float(b) == 0.0 {
        return Err("cannot be divided because the divisor is zero");
    }
    if let (Some(a), Some(b)) = (integer(a), integer(b)) {
        // The product of two 64-bit integers fits.
        let exact = match operator {
            Operator::Add => Some(a + b),
            Operator::Subtract => Some(a - b),
            Operator::Multiply => a.checked_mul(b),
            Operator::Remainder => Some(a % b),
            _ => (a % b == 0).then(|| a / b),
        };
        if let Some(exact) = exact {
            let in_range = i64::try_from(exact)
                .ok()
                .filter(|_| exact.abs() <= MAX_EXACT);
            return in_range
                .map(Number::from)
                .ok_or("leave the integers that doubles hold exactly");
        }
    }
    let (a, b) = (float(a), float(b));
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Remainder if b.trunc() == 0.0 => {
            return Err("cannot be divided because the divisor is zero");
        }
        Operator::Remainder => a.trunc() % b.trunc(),
        _ => a / b,
    };
    of_float(result).ok_or("leave the range of doubles")
}

pub(crate) fn negate(number: &Number) -> Option<Number> {
    match integer(number) {
        Some(integer) => i64::try_from(-integer).ok().map(Number::from),
        None => of_float(-float(number)),
    }
}

/// The place that a number names in a list of this length; negative ones count from its end.
pub(crate) fn place(number: &Number, length: usize) -> Option<usize> {
    let at = float(number).floor();
    let at = if at < 0.0 { at + length as f64 } else { at };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within the list"
    )]
    (at >= 0.0 && at < length as f64).then_some(at as usize)
}

/// A bound of a slice, cut to a list of this length.
pub(crate) fn bound(number: f64, length: usize) -> usize {
    let at = if number < 0.0 {
        number + length as f64
    } else {
        number
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and within the list"
    )]
    let at = at.clamp(0.0, length as f64) as usize;
    at
}
