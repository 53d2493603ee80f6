//! Pages of decisions, across the slots of all writers, and one decision by its id.
//!
//! The order is by time, then slot, then position. Within a slot, time and position rise together,
//! and commits follow their order. But a slot may commit a decision after another slot has
//! committed later ones. So a cursor holds a position for each slot. A late commit comes on the
//! next page, out of its order in time, and each row comes exactly once. Nothing depends on
//! snapshots.
//!
//! Newest first, a walk covers what was decided until it began. Each part of a slot that is still to
//! be read has a lower and an upper end; what was committed since the last page is a part of its own.

use super::{Outcome, Row};
use crate::error::{Code, Error, Result};
use crate::ids::time_of;
use crate::proof::{Admin, May};
use crate::sql;
use crate::store::page::{Binding, Order};
use crate::store::tenants::Tenant;
use crate::store::{Columns, FromRow, Ordered, Parameter, Sql};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

/// The form of the cursors here.
const VERSION: u8 = 0x41;
/// Slots and parts in one cursor, at most.
const PARTS_MOST: usize = 1000;

/// How much later than its id a decision may have been made. Since ids are given with the time, less than a millisecond; before,
/// as long as it waited for those that were decided before it.
const ID_AGE_MOST: Duration = Duration::milliseconds(100);

/// Which decisions.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Filter {
    /// Of this actor.
    pub actor_subject: Option<String>,
    /// Of this action.
    pub action: Option<String>,
    /// On this resource.
    pub resource: Option<String>,
    /// With this outcome.
    pub outcome: Option<Outcome>,
    /// Decided then or later.
    #[serde(with = "crate::ids::rfc3339::option")]
    pub from: Option<OffsetDateTime>,
    /// Decided before then.
    #[serde(with = "crate::ids::rfc3339::option")]
    pub to: Option<OffsetDateTime>,
    /// About this run.
    pub run_id: Option<Uuid>,
    /// Of this request. Left out of a cursor's binding where it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Uuid>,
}

/// A page of decisions.
#[derive(Debug)]
pub struct Decisions {
    /// The decisions, in their order.
    pub rows: Vec<Row>,
    /// Where the next page goes on, if there is one.
    pub next_cursor: Option<String>,
}

/// A place in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    /// Microseconds since 1970.
    at_us: i64,
    position: i64,
}

const FIRST: Mark = Mark {
    at_us: 0,
    position: 0,
};
const LAST: Mark = Mark {
    // The end of the year 9999.
    at_us: 253_402_300_799_000_000,
    position: i64::MAX,
};

/// What is still to be read of a slot: between the ends, without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    slot: i32,
    low: Mark,
    high: Mark,
}

/// What a cursor holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Cursor {
    /// Newest first: nothing decided after it belongs to the walk.
    until_us: i64,
    /// What of each slot was seen to be there; of slots that are not in it, nothing.
    seen: BTreeMap<i32, Mark>,
    /// Newest first: what of it is still to be read.
    parts: Vec<Part>,
}

fn time(at_us: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at_us) * 1000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Microseconds since 1970, as Postgres keeps times.
pub fn micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// The tenant's decision of this id.
pub fn find(sql: &mut impl Sql, admin: &impl May<Admin, Tenant>, id: Uuid) -> Result<Option<Row>> {
    let Some(from) = time_of(id).filter(|from| from.year() < 9999) else {
        return Ok(None);
    };
    let to = from + ID_AGE_MOST;
    let tenant_id = admin.tenant_id();
    sql.fetch_optional(sql!("audit/find"), &[&tenant_id, &id, &from, &to])
}

/// A page of the tenant's decisions, oldest first or newest first.
///
/// # Errors
/// `invalid-cursor`, `database-unavailable`.
pub fn list(
    sql: &mut impl Sql,
    admin: &impl May<Admin, Tenant>,
    filter: &Filter,
    (order, limit): (Order, u16),
    cursor: Option<&str>,
) -> Result<Decisions> {
    let binding = Binding::new(&("audit", admin.tenant_id(), filter), order)?;
    let mut place = match cursor {
        Some(cursor) => Cursor::read(&binding, cursor)?,
        None => Cursor::default(),
    };
    // Asked before the rows: what stands up to a writer's mark is visible to what follows.
    let writers: BTreeMap<i32, Mark> = super::writers(sql)?
        .into_iter()
        .map(|(slot, position, decided_at)| {
            let at_us = micros(decided_at);
            (slot, Mark { at_us, position })
        })
        .collect();
    let mut parts = match order {
        Order::Asc => place.oldest_first(&writers),
        Order::Desc => place.newest_first(&writers, cursor.is_none()),
    };
    let until_us = (order == Order::Desc).then_some(place.until_us);
    let mut found = page(
        sql,
        admin.tenant_id(),
        filter,
        order,
        until_us,
        limit,
        &parts,
    )?;
    let has_more = found.len() > usize::from(limit);
    found.truncate(usize::from(limit));
    for (row, number) in &found {
        let mark = Mark {
            at_us: micros(row.decided_at),
            position: row.position,
        };
        match order {
            Order::Asc => {
                place.seen.insert(row.slot, mark);
            }
            Order::Desc => parts[*number].high = mark,
        }
    }
    if order == Order::Desc {
        parts.retain(|part| part.low.position + 1 < part.high.position);
        place.parts = parts;
    }
    Ok(Decisions {
        rows: found.into_iter().map(|(row, _)| row).collect(),
        next_cursor: has_more.then(|| place.text(&binding)).transpose()?,
    })
}

fn page(
    sql: &mut impl Sql,
    tenant_id: Uuid,
    filter: &Filter,
    order: Order,
    until_us: Option<i64>,
    limit: u16,
    parts: &[Part],
) -> Result<Vec<(Row, usize)>> {
    fn each<T>(parts: &[Part], take: impl Fn(&Part) -> T) -> Vec<T> {
        parts.iter().map(take).collect()
    }
    let from = filter.from.unwrap_or(time(FIRST.at_us));
    let to = filter.to.unwrap_or(time(LAST.at_us));
    let to = until_us.map_or(to, |until_us| to.min(time(until_us + 1)));
    let slots = each(parts, |part| part.slot);
    let (low_at, low_position) = (
        each(parts, |part| time(part.low.at_us)),
        each(parts, |part| part.low.position),
    );
    let (high_at, high_position) = (
        each(parts, |part| time(part.high.at_us)),
        each(parts, |part| part.high.position),
    );
    let rows = i64::from(limit) + 1;
    let parameters: [Parameter<'_>; 15] = [
        &tenant_id,
        &slots,
        &low_at,
        &low_position,
        &from,
        &to,
        &filter.outcome,
        &filter.action,
        &filter.actor_subject,
        &filter.resource,
        &filter.run_id,
        &rows,
        &high_at,
        &high_position,
        &filter.request_id,
    ];
    let found = sql.query(statement(filter, order), &parameters)?;
    found
        .iter()
        .map(|row| {
            // Numbered from 1.
            let number: i64 = row.column("number")?;
            let number = usize::try_from(number - 1).map_err(Error::internal)?;
            Ok((Row::from_row(row)?, number))
        })
        .collect()
}

/// The list's statement, and the same for each filter that has an index of its own. Those compare their filter without the
/// test for null, so that the planner uses its index whatever the parameters are.
struct Statements {
    list: Ordered,
    by_actor: Ordered,
    by_resource: Ordered,
    by_run: Ordered,
    by_request: Ordered,
}

static STATEMENTS: LazyLock<Statements> = LazyLock::new(|| {
    let list = sql!("audit/list");
    let given = |parameter: &str, comparison: &str| {
        Ordered::of(&list.replace(
            &format!("({parameter} is null or {comparison})"),
            comparison,
        ))
    };
    Statements {
        list: Ordered::of(list),
        by_actor: given("$9::text", "actor_subject = $9"),
        by_resource: given("$10::text", "resource = $10"),
        by_run: given("$11::uuid", "run_id = $11"),
        by_request: given("$15::uuid", "request_id = $15"),
    }
});

/// The statement whose index the filter can use best.
fn statement(filter: &Filter, order: Order) -> &'static str {
    let list = if filter.request_id.is_some() {
        STATEMENTS.by_request
    } else if filter.run_id.is_some() {
        STATEMENTS.by_run
    } else if filter.resource.is_some() {
        STATEMENTS.by_resource
    } else if filter.actor_subject.is_some() {
        STATEMENTS.by_actor
    } else {
        STATEMENTS.list
    };
    list.by(order)
}

impl Cursor {
    fn oldest_first(&self, writers: &BTreeMap<i32, Mark>) -> Vec<Part> {
        writers
            .keys()
            .map(|slot| Part {
                slot: *slot,
                low: self.seen.get(slot).copied().unwrap_or(FIRST),
                high: LAST,
            })
            .collect()
    }

    /// What is still to be read, with what was committed since the page before.
    fn newest_first(&mut self, writers: &BTreeMap<i32, Mark>, begins: bool) -> Vec<Part> {
        if begins {
            self.until_us = writers.values().map(|mark| mark.at_us).max().unwrap_or(0);
        }
        let mut parts = std::mem::take(&mut self.parts);
        for (slot, now) in writers {
            let before = self.seen.get(slot).copied().unwrap_or(FIRST);
            // Time only rises in a slot: past the walk's end, it can add nothing more to it.
            if before.at_us > self.until_us || now.position <= before.position {
                continue;
            }
            parts.push(Part {
                slot: *slot,
                low: before,
                high: Mark {
                    at_us: now.at_us,
                    position: now.position + 1,
                },
            });
            self.seen.insert(*slot, *now);
        }
        parts
    }

    fn text(&self, binding: &Binding) -> Result<String> {
        if self.seen.len() + self.parts.len() > PARTS_MOST {
            return Err(Error::internal("a cursor over too many slots"));
        }
        let mut bytes = self.until_us.to_be_bytes().to_vec();
        let mark = |bytes: &mut Vec<u8>, mark: &Mark| {
            bytes.extend_from_slice(&mark.at_us.to_be_bytes());
            bytes.extend_from_slice(&mark.position.to_be_bytes());
        };
        let seen = u16::try_from(self.seen.len()).map_err(Error::internal)?;
        bytes.extend_from_slice(&seen.to_be_bytes());
        for (slot, at) in &self.seen {
            bytes.extend_from_slice(&slot.to_be_bytes());
            mark(&mut bytes, at);
        }
        for part in &self.parts {
            bytes.extend_from_slice(&part.slot.to_be_bytes());
            mark(&mut bytes, &part.low);
            mark(&mut bytes, &part.high);
        }
        Ok(binding.cursor(VERSION, &bytes))
    }

    fn read(binding: &Binding, cursor: &str) -> Result<Self> {
        let bytes = binding.read(VERSION, cursor)?;
        Self::parse(&bytes).ok_or_else(|| {
            Error::new(
                Code::InvalidCursor,
                "The cursor is damaged. Begin again without it.",
            )
        })
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut place = Self {
            until_us: i64::from_be_bytes(take(&mut rest)?),
            ..Self::default()
        };
        for _ in 0..u16::from_be_bytes(take(&mut rest)?) {
            let slot = i32::from_be_bytes(take(&mut rest)?);
            place.seen.insert(slot, mark(&mut rest)?);
        }
        while !rest.is_empty() {
            place.parts.push(Part {
                slot: i32::from_be_bytes(take(&mut rest)?),
                low: mark(&mut rest)?,
                high: mark(&mut rest)?,
            });
        }
        let fits = place.seen.len() + place.parts.len() <= PARTS_MOST;
        (fits && (0..LAST.at_us).contains(&place.until_us)).then_some(place)
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

fn mark(rest: &mut &[u8]) -> Option<Mark> {
    let mark = Mark {
        at_us: i64::from_be_bytes(take(rest)?),
        position: i64::from_be_bytes(take(rest)?),
    };
    (FIRST <= mark && mark.at_us <= LAST.at_us && mark.position >= 0).then_some(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_us: i64, position: i64) -> Mark {
        Mark { at_us, position }
    }

    #[test]
    fn a_filter_with_an_index_is_compared_without_a_test_for_null() {
        let any = STATEMENTS.list.by(Order::Asc);
        for (filter, parameter) in [
            (STATEMENTS.by_actor, "$9"),
            (STATEMENTS.by_resource, "$10"),
            (STATEMENTS.by_run, "$11"),
            (STATEMENTS.by_request, "$15"),
        ] {
            let test = format!("{parameter}::");
            assert!(any.contains(&test));
            assert!(!filter.by(Order::Asc).contains(&test), "{parameter}");
            assert!(
                filter.by(Order::Asc).contains(&format!("= {parameter}")),
                "{parameter}"
            );
        }
    }

    #[test]
    fn a_cursor_can_be_read_back() {
        let binding = Binding::new(&"a", Order::Desc).unwrap();
        let cursor = Cursor {
            until_us: 70,
            seen: BTreeMap::from([(1, at(50, 5)), (7, at(60, 9))]),
            parts: vec![Part {
                slot: 7,
                low: FIRST,
                high: at(20, 3),
            }],
        };
        let text = cursor.text(&binding).unwrap();
        assert_eq!(Cursor::read(&binding, &text).unwrap(), cursor);
        let other = Binding::new(&"a", Order::Asc).unwrap();
        for bad in [
            Cursor::read(&other, &text),
            Cursor::read(&binding, &text[..text.len() - 2]),
            Cursor::read(&binding, "QQ"),
        ] {
            assert_eq!(bad.unwrap_err().code(), Code::InvalidCursor);
        }
    }

    #[test]
    fn newest_first_takes_in_what_was_committed_late_and_nothing_newer_than_its_beginning() {
        let mut cursor = Cursor::default();
        let begun = BTreeMap::from([(1, at(100, 10)), (2, at(90, 4))]);
        assert_eq!(cursor.newest_first(&begun, true).len(), 2);
        assert_eq!(cursor.until_us, 100);
        // Slot 2 commits something older than the end; slot 1 something newer; slot 3 appears.
        let later = BTreeMap::from([(1, at(120, 11)), (2, at(95, 6)), (3, at(99, 1))]);
        let parts = cursor.newest_first(&later, false);
        let news: Vec<_> = parts.iter().map(|part| (part.slot, part.low)).collect();
        assert_eq!(news, [(1, at(100, 10)), (2, at(90, 4)), (3, FIRST)]);
        // Slot 1 is past the end now: it adds no part any more.
        let last = BTreeMap::from([(1, at(130, 12)), (2, at(96, 7))]);
        let parts = cursor.newest_first(&last, false);
        assert_eq!(parts.iter().map(|part| part.slot).collect::<Vec<_>>(), [2]);
    }
}
