//! Enums that are stored and sent as texts, with the same words in the database and in the API.

/// Declares an enum by its texts: its columns, its JSON and its JSON Schema have these words. Further attributes of the
/// enum, such as `#[schemars(rename = "…")]`, stand before its name.
///
/// ```ignore
/// texts! {
///     /// Who began a run.
///     Origin {
///         /// An app, through the API.
///         App = "app",
///         /// Another run.
///         Run = "run",
///     }
/// }
/// let origin: Origin = row.column("origin")?;
/// ```
#[macro_export]
macro_rules! texts {
    ($(#[$about:meta])* $name:ident { $($(#[$about_one:meta])* $variant:ident = $text:literal,)* }) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
            schemars::JsonSchema,
        )]
        $(#[$about])*
        pub enum $name {
            $($(#[$about_one])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in the order of their declaration.
            pub const ALL: [Self; [$($text,)*].len()] = [$(Self::$variant,)*];

            /// The text in the API and in the database.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value of a text.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)* _ => None }
            }
        }

        $crate::text_column!($name, text, parse);
    };
}

/// Lets a text column be read as this type and written from it: `text` gives its text, `parse` its value, if it has one.
#[macro_export]
macro_rules! text_column {
    ($name:ident, $text:ident, $parse:ident) => {
        impl<'a> postgres::types::FromSql<'a> for $name {
            fn from_sql(
                column: &postgres::types::Type,
                bytes: &'a [u8],
            ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
                let text = <&str as postgres::types::FromSql>::from_sql(column, bytes)?;
                Self::$parse(text)
                    .ok_or_else(|| concat!("a text that is no ", stringify!($name)).into())
            }

            fn accepts(column: &postgres::types::Type) -> bool {
                <&str as postgres::types::FromSql>::accepts(column)
            }
        }

        impl postgres::types::ToSql for $name {
            fn to_sql(
                &self,
                column: &postgres::types::Type,
                bytes: &mut bytes::BytesMut,
            ) -> Result<postgres::types::IsNull, Box<dyn std::error::Error + Sync + Send>> {
                <&str as postgres::types::ToSql>::to_sql(&self.$text(), column, bytes)
            }

            fn accepts(column: &postgres::types::Type) -> bool {
                <&str as postgres::types::ToSql>::accepts(column)
            }

            postgres::types::to_sql_checked!();
        }
    };
}
