//! Ids and wall-clock time, injected so that tests wait for nothing and can fix both.
//!
//! Row ids are UUIDv7: they sort by time, and partitions are cut along them. Durations and
//! deadlines inside the process use `std::time::Instant`, which is not wall-clock time; leases and
//! run-at use Postgres's clock and never this one.

use crate::text::trim_ows;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};
use uuid::Uuid;

/// Where wall-clock time and ids come from.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Milliseconds that tests have moved the clock by.
    offset_ms: Arc<AtomicI64>,
}

impl Clock {
    /// The machine's own clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// Now, in UTC.
    #[allow(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn now(&self) -> OffsetDateTime {
        let offset = time::Duration::milliseconds(self.offset_ms.load(Ordering::Relaxed));
        OffsetDateTime::now_utc() + offset
    }

    /// The first day of the month that it is in.
    pub fn month(&self) -> time::Date {
        let today = self.now().date();
        today.replace_day(1).unwrap_or(today)
    }

    /// A new row id: UUIDv7 at this clock's time.
    pub fn new_id(&self) -> Uuid {
        let now = self.now();
        let seconds = u64::try_from(now.unix_timestamp()).unwrap_or(0);
        Uuid::new_v7(uuid::Timestamp::from_unix(
            uuid::timestamp::context::NoContext,
            seconds,
            now.nanosecond(),
        ))
    }

    /// Moves every clone of this clock forward (tests).
    pub fn advance(&self, by: std::time::Duration) {
        self.offset_ms.fetch_add(whole_ms(by), Ordering::Relaxed);
    }

    /// Moves every clone of this clock back (tests).
    pub fn set_back(&self, by: std::time::Duration) {
        self.offset_ms.fetch_sub(whole_ms(by), Ordering::Relaxed);
    }
}

/// The lowest id that is made at a time or later (UUIDv7).
pub fn first_of(time: OffsetDateTime) -> Uuid {
    let milliseconds = u128::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    Uuid::from_u128(milliseconds << 80)
}

/// The id, as if it had been made at that time (UUIDv7): what is random in it stays.
pub fn made_at(id: Uuid, time: OffsetDateTime) -> Uuid {
    let random = id.as_u128() & ((1 << 80) - 1);
    Uuid::from_u128(first_of(time).as_u128() | random)
}

/// The millisecond in which an id was made; none of an id that is no UUIDv7 or says no time of these years.
pub fn time_of(id: Uuid) -> Option<OffsetDateTime> {
    let milliseconds = i128::try_from(id.as_u128() >> 80).ok()?;
    let time = OffsetDateTime::from_unix_timestamp_nanos(milliseconds * 1_000_000).ok()?;
    (id.get_version_num() == 7).then_some(time)
}

/// Whole milliseconds, as Postgres counts them: of what is longer than it can count, its most.
pub fn whole_ms(time: std::time::Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// An id from its text: hyphenated hexadecimal (RFC 9562, section 4), in any case. No other form that [`Uuid`] parses:
/// one id has one form, whoever compares it.
pub fn parse(text: &str) -> Option<Uuid> {
    // Only the hyphenated form has this length.
    (text.len() == 36).then(|| Uuid::try_parse(text).ok())?
}

/// An id as bodies and queries of the API give it ([`parse`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Id(pub Uuid);

impl From<Id> for Uuid {
    fn from(id: Id) -> Self {
        id.0
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        parse(&text).map(Self).ok_or_else(|| {
            serde::de::Error::custom(
                "expected an id: 32 hexadecimal digits in five groups with hyphens between",
            )
        })
    }
}

impl JsonSchema for Id {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Uuid::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Uuid::json_schema(generator)
    }
}

/// The id of a request as errors, logs and the header `x-request-id` write it: `req-<uuid>` (specification section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct RequestId(pub Uuid);

impl RequestId {
    /// Reads that form.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text.strip_prefix("req-")?).map(Self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            serde::de::Error::custom(
                "expected the id of a request: req- and 32 hexadecimal digits in five groups with hyphens between",
            )
        })
    }
}

impl JsonSchema for RequestId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RequestId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "pattern": "^req-[0-9a-fA-F-]{36}$"})
    }
}

/// A time as bodies and queries of the API hold it: RFC 3339 in UTC with milliseconds ([`rfc3339`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(pub OffsetDateTime);

impl From<OffsetDateTime> for Timestamp {
    fn from(at: OffsetDateTime) -> Self {
        Self(at)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        rfc3339::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        rfc3339::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// The id that these parts, one after the other, always come to: the same at every start and on every replica.
pub fn derived(parts: &[&[u8]]) -> Uuid {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// The time that a header such as `Date` says (RFC 9110, section 5.6.7).
pub fn http_date(text: &str) -> Option<OffsetDateTime> {
    let format = format_description!(
        "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
    );
    let date = PrimitiveDateTime::parse(trim_ows(text), format).ok()?;
    Some(date.assume_utc())
}

/// RFC 3339 in UTC with milliseconds, the form of every timestamp in the API.
pub mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer};
    use time::format_description::{BorrowedFormatItem, well_known::Rfc3339};
    use time::{OffsetDateTime, UtcOffset, macros::format_description};

    const FORMAT: &[BorrowedFormatItem<'_>] =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

    /// The text of a time.
    pub fn text(at: OffsetDateTime) -> String {
        at.to_offset(UtcOffset::UTC)
            .format(FORMAT)
            .unwrap_or_else(|_| "invalid-time".to_owned())
    }

    /// A time from its text; any RFC 3339 offset is taken.
    pub fn parse(text: &str) -> Option<OffsetDateTime> {
        // A time at the edge of the calendar has no form in UTC.
        OffsetDateTime::parse(text, &Rfc3339)
            .ok()?
            .checked_to_offset(UtcOffset::UTC)
    }

    /// For `#[serde(with = "ids::rfc3339")]`.
    pub fn serialize<S: Serializer>(at: &OffsetDateTime, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&text(*at))
    }

    /// For `#[serde(with = "ids::rfc3339")]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<OffsetDateTime, D::Error> {
        let text = String::deserialize(d)?;
        parse(&text).ok_or_else(|| serde::de::Error::custom("expected an RFC 3339 time"))
    }

    /// For `#[serde(with = "ids::rfc3339::option")]`.
    pub mod option {
        use serde::{Deserialize, Deserializer, Serializer};
        use time::OffsetDateTime;

        /// See the parent module.
        pub fn serialize<S: Serializer>(
            at: &Option<OffsetDateTime>,
            s: S,
        ) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => super::serialize(at, s),
                None => s.serialize_none(),
            }
        }

        /// See the parent module.
        pub fn deserialize<'de, D: Deserializer<'de>>(
            d: D,
        ) -> Result<Option<OffsetDateTime>, D::Error> {
            Option::<String>::deserialize(d)?
                .map(|text| {
                    super::parse(&text)
                        .ok_or_else(|| serde::de::Error::custom("expected an RFC 3339 time"))
                })
                .transpose()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_the_clock() {
        let clock = Clock::system();
        let first = clock.new_id();
        clock.advance(std::time::Duration::from_secs(3600));
        assert!(first < clock.new_id());
    }

    #[test]
    fn an_id_has_one_form() {
        let id = "0190a3c4-5d6e-7f80-9abc-def012345678";
        let read = |text: &str| serde_json::from_value::<Id>(text.into()).map(Uuid::from);
        for text in [id, &id.to_uppercase()] {
            assert_eq!(read(text).unwrap().to_string(), id);
        }
        for text in [
            &id.replace('-', ""),
            &format!("{{{id}}}"),
            &format!("urn:uuid:{id}"),
            &format!("{id} "),
            "",
        ] {
            assert!(read(text).is_err(), "{text:?} is taken");
        }
    }

    #[test]
    fn milliseconds_have_a_most() {
        use std::time::Duration;
        assert_eq!(whole_ms(Duration::from_micros(1_999)), 1);
        assert_eq!(whole_ms(Duration::MAX), i64::MAX);
    }

    #[test]
    fn times_are_utc_with_milliseconds() {
        let at = rfc3339::parse("2026-01-02T03:04:05.6789+02:00").unwrap();
        assert_eq!(rfc3339::text(at), "2026-01-02T01:04:05.678Z");
        assert_eq!(rfc3339::parse("9999-12-31T23:59:59-23:59"), None);
    }
}
