//! Whether stderr goes to the journal of systemd.

use crate::config::Vars;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

/// Whether stderr still goes to systemd's journal.
pub(super) fn is_journal(vars: &Vars) -> bool {
    let Some(journal) = vars.journal_stream() else {
        return false;
    };
    let stream = std::io::stderr().as_fd().try_clone_to_owned();
    let found = stream.and_then(|stream| File::from(stream).metadata());
    found.is_ok_and(|found| (found.dev(), found.ino()) == journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_known_by_its_stream() {
        let stream = std::io::stderr().as_fd().try_clone_to_owned().unwrap();
        let found = File::from(stream).metadata().unwrap();
        let of = |inode: u64| {
            let name = format!("{}:{inode}", found.dev());
            is_journal(&Vars::from_pairs([("JOURNAL_STREAM", name)]))
        };
        assert!(of(found.ino()));
        assert!(!of(found.ino() + 1));
        assert!(!is_journal(&Vars::default()));
    }
}
