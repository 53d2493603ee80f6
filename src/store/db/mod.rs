//! The database layer that every noun uses.
//!
//! | file | what is in it |
//! |---|---|
//! | `connect`, `failure`, `tls`, `libpq` | how a connection is made, why none was, here and by PostgreSQL's own programs |
//! | `connection`, `statement_timeout` | one connection with its prepared statements; the monitor that cancels a statement which outlives its limit |
//! | `primary` | which of several hosts is the primary, and leaving an old one |
//! | `pool`, `transaction` | sessions on loan, and transactions on them |
//! | `statement`, `find` | what runs a statement, and how the row is found that access is checked on |
//! | `row`, `texts` | columns by name, and enums that are texts |
//! | `page`, `ordered`, `clock` | pages of lists; a list's statement in both directions; what time it is where the rows are |
//! | `group_commit`, `retry`, `partitions` | many writes in one transaction; a write that outlasts a database that is away; the loop that keeps monthly partitions |
//! | `migrations`, `functions` | the schema: its tables, its SQL functions |
//!
//! Guarantees: a checkout ends after its timeout, and a statement after the server's own limit. A statement that outlives that
//! limit is cancelled. A connection that a restart of the database broke is not handed out again after it has rested, nor once
//! another was found dead. A connection is closed if its ping got no answer, if its statement was cancelled, or if the
//! server no longer has its prepared statements.
//!
//! Not here: the statements of any noun.

pub mod clock;
pub mod connect;
mod connection;
mod failure;
mod find;
mod functions;
pub mod group_commit;
pub mod libpq;
pub mod migrations;
mod ordered;
pub mod page;
pub mod partitions;
mod pool;
pub mod primary;
pub mod retry;
mod row;
mod shares;
mod statement;
mod statement_timeout;
mod texts;
mod tls;
mod transaction;

pub use connect::Options;
pub use connection::Connection;
pub use find::{Find, Finding};
pub use ordered::Ordered;
pub use pool::{Session, Store};
pub use row::{Columns, FromRow};
pub use shares::working_for;
pub(super) use statement::on_violation;
pub use statement::{Parameter, Sql, queue_error, sql_state};
pub use transaction::Tx;
