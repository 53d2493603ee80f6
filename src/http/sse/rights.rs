//! Which readers of open streams must be re-checked, and whose streams end.

use super::followed::Followed;
use super::followers::revoked;
use super::format::End;
use super::reader::Reader;
use crate::authz::Again;
use crate::error::Result;
use crate::proof::{May, Read};
use crate::store::Store;
use crate::store::open_sessions::Moment;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// Each reader whose access is to be checked again: one for each run and token.
pub(super) fn to_check_again<'a>(runs: impl Iterator<Item = &'a Followed>) -> Vec<Again> {
    let mut seen = HashSet::new();
    runs.flat_map(|followed| &followed.readers)
        .filter(|reader| !reader.out.is_ending())
        .filter_map(|reader| reader.may.again())
        .filter(|again| seen.insert((again.run_id(), again.token_id())))
        .collect()
}

/// Ends the streams of a run that this token reads.
pub(super) fn end_refused(followed: &mut Followed, token_id: Uuid) {
    for reader in &mut followed.readers {
        if reader.may.token_id() == Some(token_id) {
            reader.out.end(End::Access);
        }
    }
}

/// Ends the streams whose tokens were revoked since, and whose sessions are over, and gives their runs.
pub(super) fn end_revoked(
    store: &Store,
    runs: &mut HashMap<Uuid, Followed>,
    moment: Moment,
) -> Result<Vec<Uuid>> {
    let readers = runs.values().flat_map(|followed| &followed.readers);
    let revoked = revoked(store, readers.filter_map(token_of).collect(), moment)?;
    let mut ended = Vec::new();
    for (run_id, followed) in runs {
        for reader in &mut followed.readers {
            if token_of(reader).is_some_and(|token| revoked.contains(&token)) {
                reader.out.end(End::Credential);
                ended.push(*run_id);
            }
        }
    }
    Ok(ended)
}

/// The bearer token that a reader came with, and its tenant.
fn token_of(reader: &Reader) -> Option<(Uuid, Uuid)> {
    let tenant_id = May::<Read, _>::tenant_id(&reader.may);
    Some((tenant_id, reader.may.token_id()?))
}
