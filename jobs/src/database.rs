//! How the threads of a runner reach Postgres: any r2d2 pool whose connections hold a `postgres::Client`.

use crate::Result;
use postgres::Client;
use std::sync::Arc;

type Work<'a> = &'a mut dyn FnMut(&mut Client) -> Result<()>;

/// A pool, with its type left behind. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    run: Arc<dyn Fn(Work<'_>) -> Result<()> + Send + Sync>,
}

impl Database {
    /// `client` finds the Postgres client in one of the pool's connections: `|connection| connection` when the
    /// connection is the client, `|connection| &mut connection.client` when it is wrapped.
    pub fn new<M, F>(pool: r2d2::Pool<M>, client: F) -> Self
    where
        M: r2d2::ManageConnection,
        F: Fn(&mut M::Connection) -> &mut Client + Send + Sync + 'static,
    {
        Self {
            run: Arc::new(move |work| {
                let mut connection = pool.get()?;
                work(client(&mut connection))
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
