//! How a runner's threads reach PostgreSQL: any r2d2 pool whose connections hold a
//! `postgres::Client`.

use crate::{Error, Result};
use postgres::Client;
use std::sync::Arc;
use std::time::Duration;

/// How long the end of a connection is waited for of which the server has said that it ends.
const END: Duration = Duration::from_secs(1);

type Work<'a> = &'a mut dyn FnMut(&mut Client) -> Result<()>;

/// A pool, with its type left behind. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    run: Arc<dyn Fn(Work<'_>) -> Result<()> + Send + Sync>,
}

impl Database {
    /// As [`Database::confirmed`], where every answer of a connection counts.
    ///
    /// `client` finds the Postgres client in one of the pool's connections: `|connection| connection` when the
    /// connection is the client, `|connection| &mut connection.client` when it is wrapped.
    pub fn new<M, F>(pool: r2d2::Pool<M>, client: F) -> Self
    where
        M: r2d2::ManageConnection,
        F: Fn(&mut M::Connection) -> &mut Client + Send + Sync + 'static,
    {
        Self::confirmed(pool, move |connection| Some(client(connection)), |_| true)
    }

    /// `lend` finds the client as in [`Database::new`]. None: the connection takes no more, and the work is not begun; it
    /// ends with [`Error::Unconfirmed`].
    ///
    /// `confirms` is asked once the work is done. False: the connection was given up meanwhile, and what it answered,
    /// commits included, does not count; the work ends with [`Error::Unconfirmed`].
    pub fn confirmed<M, F, C>(pool: r2d2::Pool<M>, lend: F, confirms: C) -> Self
    where
        M: r2d2::ManageConnection,
        F: Fn(&mut M::Connection) -> Option<&mut Client> + Send + Sync + 'static,
        C: Fn(&mut M::Connection) -> bool + Send + Sync + 'static,
    {
        Self {
            run: Arc::new(move |work| {
                let mut connection = pool.get()?;
                let on_loan = lend(&mut connection).ok_or(Error::Unconfirmed)?;
                let outcome = work(on_loan);
                if outcome.as_ref().err().is_some_and(Error::ends_connection) {
                    // The connection's end comes after the word of it. The pool, which drops what is closed, is to see it.
                    let _ = on_loan.is_valid(END);
                }
                let counts = confirms(&mut connection);
                outcome.and_then(|()| {
                    if counts {
                        Ok(())
                    } else {
                        Err(Error::Unconfirmed)
                    }
                })
            }),
        }
    }

    pub(crate) fn with<T>(&self, mut work: impl FnMut(&mut Client) -> Result<T>) -> Result<T> {
        let mut answer = None;
        (self.run)(&mut |client| {
            answer = Some(work(client)?);
            Ok(())
        })?;
        // `run` either failed above or called `work` once.
        answer.ok_or_else(|| crate::Error::Invalid("the pool did not run the work".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Connections of no use.
    struct Manager;

    impl r2d2::ManageConnection for Manager {
        type Connection = ();
        type Error = Error;

        fn connect(&self) -> Result<()> {
            Ok(())
        }

        fn is_valid(&self, (): &mut ()) -> Result<()> {
            Ok(())
        }

        fn has_broken(&self, (): &mut ()) -> bool {
            false
        }
    }

    #[test]
    fn no_work_begins_on_a_connection_that_takes_no_more() {
        let pool = r2d2::Pool::builder().max_size(1).build_unchecked(Manager);
        let database = Database::confirmed(pool, |()| None, |()| true);
        let outcome = database.with(|_| Ok(()));
        assert!(matches!(outcome, Err(Error::Unconfirmed)), "{outcome:?}");
    }
}
