//! A table for people: columns as wide as their widest cell, a head, and text that is safe for a terminal.

use super::display::shortened;
use super::terminal::{self, Style};
use super::{Failure, Outcome};
use crate::ids::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;

/// Prints a table on stdout. The first column is the one that is painted.
pub(super) fn print<const N: usize>(
    style: Style,
    head: [&str; N],
    rows: &[[String; N]],
    paint: impl Fn(&str, &str) -> String,
) -> Outcome {
    let rows: Vec<[String; N]> = rows
        .iter()
        .map(|row| std::array::from_fn(|column| shortened(&row[column])))
        .collect();
    let width = |text: &str| text.chars().count();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.chain([width(head[column])]).max().unwrap_or(0)
    });
    let padded = |text: &str, column: usize| match column + 1 == N {
        true => text.to_owned(),
        false => format!("{text}{}  ", " ".repeat(widths[column] - width(text))),
    };
    let line: String = (0..N).map(|column| padded(head[column], column)).collect();
    terminal::say(style.dim(line.trim_end()))?;
    for row in &rows {
        let mut line = paint(&row[0], &padded(&row[0], 0));
        line.extend((1..N).map(|column| padded(&row[column], column)));
        terminal::say(line.trim_end())?;
    }
    Ok(())
}

/// A time of the API, in UTC to the second; `-` where there is none.
pub(super) fn time(at: &Value) -> String {
    let text = at.as_str().unwrap_or("-");
    text.get(..19).unwrap_or(text).replace('T', " ")
}

/// From one time of the API to another.
pub(super) fn between(from: &Value, to: &Value) -> String {
    match (read(from), read(to)) {
        (Some(from), Some(to)) => duration(to - from),
        _ => "-".to_owned(),
    }
}

/// A time of the API.
fn read(at: &Value) -> Option<OffsetDateTime> {
    Timestamp::deserialize(at).ok().map(|at| at.0)
}

fn duration(time: time::Duration) -> String {
    let seconds = time.as_seconds_f64().max(0.0);
    match time.whole_seconds() {
        ..60 => format!("{seconds:.1} s"),
        60..3600 => format!(
            "{} min {} s",
            time.whole_minutes(),
            time.whole_seconds() % 60
        ),
        _ => format!("{} h {} min", time.whole_hours(), time.whole_minutes() % 60),
    }
}

/// How long before now, or when: `90s`, `30m`, `2h`, `7d`, or a time as the API writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Since {
    Ago(time::Duration),
    At(OffsetDateTime),
}

impl Since {
    /// Reads it from a command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(at) = read(&Value::from(text)) {
            return Ok(Self::At(at));
        }
        let said = || "expected a time such as 2h, 7d or 2026-01-31T08:00:00Z".to_owned();
        let unit = text.chars().last().ok_or_else(said)?;
        let seconds: i64 = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            _ => return Err(said()),
        };
        let count: i64 = text[..text.len() - 1].parse().map_err(|_| said())?;
        match count.checked_mul(seconds) {
            Some(seconds @ 0..) => Ok(Self::Ago(time::Duration::seconds(seconds))),
            _ => Err(said()),
        }
    }

    /// The time that is meant.
    pub(super) fn time(self, now: OffsetDateTime) -> Outcome<OffsetDateTime> {
        match self {
            Self::At(at) => Ok(at),
            Self::Ago(ago) => now
                .checked_sub(ago)
                .ok_or_else(|| Failure::usage("--since is too long ago.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use time::macros::datetime;

    #[test]
    fn times_are_short() {
        assert_eq!(
            time(&json!("2026-01-31T08:05:12.345Z")),
            "2026-01-31 08:05:12"
        );
        assert_eq!(time(&json!(null)), "-");
        let from = json!("2026-01-31T08:00:00.000Z");
        for (to, shown) in [
            (json!("2026-01-31T08:00:01.250Z"), "1.2 s"),
            (json!("2026-01-31T08:02:05.000Z"), "2 min 5 s"),
            (json!("2026-02-01T09:30:00.000Z"), "25 h 30 min"),
            (json!(null), "-"),
        ] {
            assert_eq!(between(&from, &to), shown);
        }
    }

    #[test]
    fn since_is_a_time_or_how_long_ago() {
        let now = datetime!(2026-01-31 08:00 UTC);
        for (text, at) in [
            ("90s", datetime!(2026-01-31 07:58:30 UTC)),
            ("2h", datetime!(2026-01-31 06:00 UTC)),
            ("7d", datetime!(2026-01-24 08:00 UTC)),
            ("2026-01-30T00:00:00Z", datetime!(2026-01-30 00:00 UTC)),
        ] {
            assert_eq!(Since::parse(text).unwrap().time(now).unwrap(), at, "{text}");
        }
        for bad in [
            "",
            "h",
            "2",
            "-1h",
            "2 weeks",
            "2w",
            "99999999999999999d",
            "é",
        ] {
            assert!(Since::parse(bad).is_err(), "{bad}");
        }
        assert!(Since::parse("9999999999d").unwrap().time(now).is_err());
    }
}
