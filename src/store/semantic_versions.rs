//! Which of two versions is the higher one, for whatever has versions.
//!
//! A release is above every pre-release. Otherwise Semantic Versioning 2.0.0 decides.

use crate::error::{Error, Result};
use semver::Version;
use std::cmp::Ordering;

/// A version as a row has it.
///
/// # Errors
/// Internal: the service wrote no such row.
pub(super) fn parse(stored: Option<&str>) -> Result<Option<Version>> {
    stored
        .map(Version::parse)
        .transpose()
        .map_err(Error::internal)
}

/// Whether the version is the higher one.
pub(super) fn is_above(version: &Version, other: &Version) -> bool {
    let is_release = |version: &Version| version.pre.is_empty();
    match is_release(version).cmp(&is_release(other)) {
        Ordering::Equal => version.cmp_precedence(other).is_gt(),
        decided => decided.is_gt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_the_highest_release_or_else_the_highest_pre_release() {
        let parse = |text| Version::parse(text).unwrap();
        for (higher, lower) in [
            ("1.0.1", "1.0.0"),
            ("1.10.0", "1.9.9"),
            ("1.0.0", "1.0.0-rc.1"),
            ("1.0.0", "2.0.0-rc.1"),
            ("1.0.0-rc.11", "1.0.0-rc.2"),
            ("1.0.0-rc.1", "1.0.0-beta"),
        ] {
            assert!(is_above(&parse(higher), &parse(lower)), "{higher} {lower}");
            assert!(!is_above(&parse(lower), &parse(higher)), "{lower} {higher}");
            assert!(!is_above(&parse(lower), &parse(lower)), "{lower}");
        }
    }
}
