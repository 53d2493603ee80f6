//! The query parameters of lists.
//!
//! A list takes `cursor`, `limit` and `order` after its filters. One without filters takes a [`PageQuery`]; one with
//! filters declares them with [`page_query!`]. The cursor that an answer gives is bound to the list, its filters and its
//! order.
//!
//! Not here: lists whose pages are of another kind. Secrets are paged by name, those with access by role, grants in one order
//! alone, and decisions by a position in each slot.

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

page_query! {
    /// Which page of a list.
    PageQuery {}
}
