//! Pages of a list, by key. No page is cut short.
//!
//! A list is ordered by its rows' ids (UUIDv7, so by time), newest first unless the request says
//! otherwise. A cursor holds the last id. It is bound to the list, its filters and its direction,
//! and is refused with any other. It is opaque and begins with a format version. If a list is
//! ordered by a text and then by id, the cursor holds both, so it stays valid if the row changes.

use crate::error::{Code, Error, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

const CURSOR_VERSION: u8 = 1;
/// Rows on a page, unless the request says otherwise.
pub const LIMIT_DEFAULT: u16 = 50;
/// Rows on a page at most.
pub const LIMIT_MOST: u16 = 200;

/// What binds a cursor to its list, filters and direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding([u8; 8]);

impl Binding {
    /// `of` is the list's name and its filters.
    ///
    /// # Errors
    /// Never in practice: the filters are always JSON.
    pub fn new(of: &impl Serialize, order: Order) -> Result<Self> {
        let text = serde_json::to_string(&(of, order)).map_err(Error::internal)?;
        let mut bound = [0; 8];
        bound.copy_from_slice(&Sha256::digest(text)[..8]);
        Ok(Self(bound))
    }

    /// A cursor that holds this.
    pub fn cursor(&self, version: u8, content: &[u8]) -> String {
        let mut bytes = vec![version];
        bytes.extend_from_slice(&self.0);
        bytes.extend_from_slice(content);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a cursor holds.
    ///
    /// # Errors
    /// `invalid-cursor`: it is of another list, filter, direction or version.
    pub fn read(&self, version: u8, cursor: &str) -> Result<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| refused())?;
        let (found, rest) = bytes.split_first().ok_or_else(refused)?;
        let (bound, content) = rest.split_at_checked(8).ok_or_else(refused)?;
        if *found != version || *bound != self.0 {
            return Err(refused());
        }
        Ok(content.to_vec())
    }
}

fn refused() -> Error {
    Error::new(
        Code::InvalidCursor,
        "The cursor is not of this list with these filters and this order. Begin again without it.",
    )
}

/// The number of rows on a page: as asked for, or [`LIMIT_DEFAULT`].
///
/// # Errors
/// `invalid-request` outside 1 to 200.
pub fn limit(asked: Option<u16>) -> Result<u16> {
    let limit = asked.unwrap_or(LIMIT_DEFAULT);
    if limit == 0 || limit > LIMIT_MOST {
        return Err(Error::new(
            Code::InvalidRequest,
            format!("Query parameter limit: expected 1 to {LIMIT_MOST}, got {limit}."),
        )
        .detail("parameter", "limit"));
    }
    Ok(limit)
}

/// The direction of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    #[default]
    Desc,
}

/// Which page is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Rows at most.
    pub limit: u16,
    /// The direction.
    pub order: Order,
    /// The id after which the page begins.
    pub after: Option<Uuid>,
    binding: Binding,
}

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub struct Page<T> {
    /// The rows.
    pub data: Vec<T>,
    /// More rows follow.
    pub has_more: bool,
    /// Give it as `cursor` to read on; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// The id that stands in cursors for a row which has a position inside its owner and no id.
pub fn position_id(position: i64) -> Uuid {
    Uuid::from_u128(u128::from(position.unsigned_abs()))
}

impl Request {
    /// Reads the paging parameters of a list. `binding` is the list's name and its filters.
    ///
    /// # Errors
    /// `invalid-request` for a limit outside 1 to 200; `invalid-cursor` for a cursor of another
    /// list, filter or direction.
    pub fn new(
        cursor: Option<&str>,
        limit: Option<u16>,
        order: Option<Order>,
        binding: &impl Serialize,
    ) -> Result<Self> {
        let order = order.unwrap_or_default();
        let binding = Binding::new(binding, order)?;
        let read = |cursor| {
            let id = binding.read(CURSOR_VERSION, cursor)?;
            Uuid::from_slice(&id).map_err(|_| refused())
        };
        Ok(Self {
            limit: self::limit(limit)?,
            order,
            after: cursor.map(read).transpose()?,
            binding,
        })
    }

    /// The position after which the page begins, for a list whose ids come from [`position_id`].
    pub fn after_position(&self) -> Option<i64> {
        self.after
            .map(|id| i64::try_from(id.as_u128()).unwrap_or(i64::MAX))
    }

    /// How many rows to ask for: one more than the page holds tells whether more follow.
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// The page from at most [`Self::rows`] rows.
    pub fn page<R, T>(
        &self,
        mut rows: Vec<R>,
        id: impl Fn(&R) -> Uuid,
        show: impl Fn(R) -> T,
    ) -> Page<T> {
        let has_more = rows.len() > usize::from(self.limit);
        rows.truncate(usize::from(self.limit));
        self.ended_page(rows, has_more, id, show)
    }

    /// The page of exactly these rows, where the list itself knew where to end it.
    pub fn ended_page<R, T>(
        &self,
        rows: Vec<R>,
        has_more: bool,
        id: impl Fn(&R) -> Uuid,
        show: impl Fn(R) -> T,
    ) -> Page<T> {
        let next_cursor = rows
            .last()
            .filter(|_| has_more)
            .map(|last| self.binding.cursor(CURSOR_VERSION, id(last).as_bytes()));
        Page {
            data: rows.into_iter().map(show).collect(),
            has_more,
            next_cursor,
        }
    }
}

/// Which page is asked for, of a list that has one order: by a text of each row, and then by id.
#[derive(Debug, Clone)]
pub struct TextRequest {
    limit: u16,
    /// The text and the id after which the page begins.
    pub after: Option<(String, Uuid)>,
    binding: Binding,
}

impl TextRequest {
    /// Reads the paging parameters of a list. `binding` is the list's name and its filters.
    ///
    /// # Errors
    /// As [`Request::new`].
    pub fn new(cursor: Option<&str>, limit: Option<u16>, binding: &impl Serialize) -> Result<Self> {
        let binding = Binding::new(binding, Order::Asc)?;
        let read = |cursor| {
            let content = binding.read(CURSOR_VERSION, cursor)?;
            let (id, text) = content.split_at_checked(16).ok_or_else(refused)?;
            let id = Uuid::from_slice(id).map_err(|_| refused())?;
            let text = std::str::from_utf8(text).map_err(|_| refused())?;
            // The database takes no NUL.
            match text.contains('\0') {
                true => Err(refused()),
                false => Ok((text.to_owned(), id)),
            }
        };
        Ok(Self {
            limit: self::limit(limit)?,
            after: cursor.map(read).transpose()?,
            binding,
        })
    }

    /// As [`Request::rows`].
    pub fn rows(&self) -> i64 {
        i64::from(self.limit) + 1
    }

    /// As [`Request::page`].
    pub fn page<R, T>(
        &self,
        mut rows: Vec<R>,
        key: impl Fn(&R) -> (&str, Uuid),
        show: impl Fn(R) -> T,
    ) -> Page<T> {
        let has_more = rows.len() > usize::from(self.limit);
        rows.truncate(usize::from(self.limit));
        let next_cursor = rows.last().filter(|_| has_more).map(|last| {
            let (text, id) = key(last);
            let content = [id.as_bytes(), text.as_bytes()].concat();
            self.binding.cursor(CURSOR_VERSION, &content)
        });
        Page {
            data: rows.into_iter().map(show).collect(),
            has_more,
            next_cursor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_bound_to_its_list() {
        let first = Request::new(None, Some(2), None, &("runs", "p1")).unwrap();
        let ids: Vec<Uuid> = (1..=3).map(Uuid::from_u128).collect();
        let page = first.page(ids.clone(), |id| *id, |id| id);
        assert_eq!((page.data.len(), page.has_more), (2, true));
        let cursor = page.next_cursor.unwrap();
        let next = Request::new(Some(&cursor), Some(2), None, &("runs", "p1")).unwrap();
        assert_eq!(next.after, Some(ids[1]));
        let other = Request::new(Some(&cursor), None, None, &("runs", "p2")).unwrap_err();
        assert_eq!(other.code(), Code::InvalidCursor);
        assert!(Request::new(Some(&cursor), None, Some(Order::Asc), &("runs", "p1")).is_err());
        assert!(Request::new(Some("AQ"), None, None, &("runs", "p1")).is_err());
        assert!(Request::new(None, Some(0), None, &()).is_err());
        let last = next.page(vec![ids[2]], |id| *id, |id| id);
        assert_eq!((last.has_more, last.next_cursor), (false, None));
    }

    #[test]
    fn a_position_comes_back_from_its_cursor() {
        let first = Request::new(None, Some(5), None, &"messages").unwrap();
        let page = first.ended_page(vec![9, 8], true, |at| position_id(*at), |at| at);
        let cursor = page.next_cursor.unwrap();
        let next = Request::new(Some(&cursor), None, None, &"messages").unwrap();
        assert_eq!(next.after_position(), Some(8));
        assert_eq!(first.after_position(), None);
        let ended = first.ended_page(vec![1], false, |at| position_id(*at), |at| at);
        assert_eq!(ended.next_cursor, None);
    }

    #[test]
    fn a_text_and_an_id_come_back_from_their_cursor() {
        let of = |cursor: Option<&str>| TextRequest::new(cursor, Some(1), &"access");
        let first = of(None).unwrap();
        let rows = vec![("2zoë", Uuid::from_u128(7)), ("3", Uuid::from_u128(1))];
        let page = first.page(rows, |row| *row, |row| row);
        let cursor = page.next_cursor.unwrap();
        let next = of(Some(&cursor)).unwrap();
        assert_eq!(next.after, Some(("2zoë".to_owned(), Uuid::from_u128(7))));
        assert!(TextRequest::new(Some(&cursor), None, &"other").is_err());
        let nul = [Uuid::nil().as_bytes(), "a\0".as_bytes()].concat();
        for content in [&nul[..], b"short", &[0xff; 20]] {
            assert!(of(Some(&first.binding.cursor(CURSOR_VERSION, content))).is_err());
        }
    }
}
