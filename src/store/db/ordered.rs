//! The statement of a list in both directions, from one file.
//!
//! A file `sql/queries/NOUN/VERB.sql` marks where the directions differ with
//! `{{ascending|descending}}`, such as `team_id {{>|<}} $2` and `order by team_id {{asc|desc}}`.
//! [`list_sql!`](crate::list_sql) includes it. The text of each direction is made once, at its
//! first use, because statements are prepared by their text.

use super::page::Order;

/// The texts of a list's statement.
#[derive(Debug, Clone, Copy)]
pub struct Ordered {
    ascending: &'static str,
    descending: &'static str,
}

/// The [`Ordered`] of the statement `NOUN/VERB`: `list_sql!("teams/list").by(page.order)`.
#[macro_export]
macro_rules! list_sql {
    ($name:literal) => {{
        static TEXTS: std::sync::LazyLock<$crate::store::Ordered> =
            std::sync::LazyLock::new(|| $crate::store::Ordered::of($crate::sql!($name)));
        *TEXTS
    }};
}

impl Ordered {
    /// From a file's text. The two texts stay for the life of the process.
    pub fn of(template: &str) -> Self {
        Self {
            ascending: chosen(template, Order::Asc).leak(),
            descending: chosen(template, Order::Desc).leak(),
        }
    }

    /// The text in this direction.
    pub const fn by(self, order: Order) -> &'static str {
        match order {
            Order::Asc => self.ascending,
            Order::Desc => self.descending,
        }
    }
}

/// The template with each `{{ascending|descending}}` replaced by one of its sides. What is not closed stays, and is no SQL.
fn chosen(template: &str, order: Order) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, marked)) = rest.split_once("{{") {
        let Some((marked, after)) = marked.split_once("}}") else {
            break;
        };
        let (ascending, descending) = marked.split_once('|').unwrap_or((marked, marked));
        text.push_str(before);
        text.push_str(match order {
            Order::Asc => ascending,
            Order::Desc => descending,
        });
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_side_of_every_marker() {
        let list =
            Ordered::of("where id {{>|<}} $1 and a <@ '{b,c}' order by id {{asc|desc}} limit 2");
        let ascending = "where id > $1 and a <@ '{b,c}' order by id asc limit 2";
        assert_eq!(list.by(Order::Asc), ascending);
        let descending = "where id < $1 and a <@ '{b,c}' order by id desc limit 2";
        assert_eq!(list.by(Order::Desc), descending);
        assert_eq!(Ordered::of("a {{> b").by(Order::Asc), "a {{> b");
    }
}
