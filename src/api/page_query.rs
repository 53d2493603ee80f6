//! The query parameters of lists.
//!
//! A list takes `cursor`, `limit` and `order` after its filters. One without filters takes a [`PageQuery`]; one with
//! filters declares them with [`page_query!`]. A list that has one order alone takes a [`FixedOrderQuery`]. The cursor that an
//! answer gives is bound to the list, its filters and its order.
//!
//! [`times`] reads the `from` and `to` of those that have them.
//!
//! Not here: lists whose pages are of another kind. Secrets are paged by name, and decisions by a position in each slot.

use crate::error::{Code, Error, Result};
use crate::ids::Timestamp;
use crate::store::page::{LIMIT_DEFAULT, LIMIT_MOST, TextRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// Declares the query parameters of a list by its filters. What it says of `limit` beside the usual stands after the
/// filters.
macro_rules! page_query {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[$about_filter:meta])* $filter:ident: $type:ty,)* }
        $(limit: { $(#[$limit:meta])* })?
    ) => {
        $(#[$about])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name {
            $($(#[$about_filter])* pub(super) $filter: $type,)*
            /// The `nextCursor` of the page before; left out for the first page.
            #[schemars(length(min = 1))]
            pub(super) cursor: Option<String>,
            /// Rows at most.
            $($(#[$limit])*)?
            #[schemars(
                range(min = 1, max = $crate::store::page::LIMIT_MOST),
                extend("default" = $crate::store::page::LIMIT_DEFAULT)
            )]
            pub(super) limit: Option<u16>,
            /// The direction.
            #[schemars(extend("default" = $crate::store::page::Order::default()))]
            pub(super) order: Option<$crate::store::page::Order>,
        }

        impl $name {
            /// The page that is asked for. `binding` is the list's name and its filters.
            ///
            /// # Errors
            /// As [`Request::new`](crate::store::page::Request::new).
            pub(super) fn page(
                &self,
                binding: &impl serde::Serialize,
            ) -> crate::error::Result<crate::store::page::Request> {
                crate::store::page::Request::new(
                    self.cursor.as_deref(),
                    self.limit,
                    self.order,
                    binding,
                )
            }
        }
    };
}

pub(super) use page_query;

/// The times of the query parameters `from` and `to`.
///
/// # Errors
/// `invalid-request`: a year that no row is of, or an end before the beginning.
pub(super) fn times(
    (from, to): (Option<Timestamp>, Option<Timestamp>),
) -> Result<(Option<OffsetDateTime>, Option<OffsetDateTime>)> {
    let (from, to) = (from.map(|at| at.0), to.map(|at| at.0));
    for (name, at) in [("from", from), ("to", to)] {
        if at.is_some_and(|at| !(1970..=9999).contains(&at.year())) {
            return Err(invalid(name, "a time between the years 1970 and 9999"));
        }
    }
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        return Err(invalid("to", "a time that is not before from"));
    }
    Ok((from, to))
}

/// A query parameter has the route's shape, and is still wrong.
pub(super) fn invalid(parameter: &str, expected: &str) -> Error {
    Error::new(
        Code::InvalidRequest,
        format!("Query parameter {parameter}: expected {expected}."),
    )
    .detail("parameter", parameter)
}

page_query! {
    /// Which page of a list.
    PageQuery {}
}

/// Which page of a list that has one order alone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FixedOrderQuery {
    /// The `nextCursor` of the page before; left out for the first page.
    #[schemars(length(min = 1))]
    pub(super) cursor: Option<String>,
    /// Rows at most.
    #[schemars(range(min = 1, max = LIMIT_MOST), extend("default" = LIMIT_DEFAULT))]
    pub(super) limit: Option<u16>,
}

impl FixedOrderQuery {
    /// The page that is asked for, of a list whose rows are found by a text and an id. `binding` is the list's name
    /// and its filters.
    ///
    /// # Errors
    /// As [`TextRequest::new`].
    pub(super) fn text_page(&self, binding: &impl Serialize) -> Result<TextRequest> {
        TextRequest::new(self.cursor.as_deref(), self.limit, binding)
    }
}
