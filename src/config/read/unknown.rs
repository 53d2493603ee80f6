//! Unknown names that begin with `SVC_`, each with the name that was probably meant.

use super::Reader;
use crate::config::table::{self, Setting};
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Reader<'_> {
    /// Variables and credentials with the prefix that belong to no setting.
    pub(super) fn unknown_names(&mut self) {
        let known = |name: &String| {
            table::settings().any(|s| s.name == *name || (s.secret && s.file_name() == *name))
        };
        let variables: Vec<_> = self.vars.names_with_prefix("SVC_").collect();
        for name in variables.into_iter().filter(|name| !known(name)) {
            let remedy = unknown_remedy(&name);
            self.fault(
                &printable(&name),
                "is not a setting of this version",
                remedy,
            );
        }
        let named: Vec<PathBuf> = table::settings()
            .filter(|setting| setting.secret)
            .filter_map(|setting| self.vars.raw(&setting.file_name()).map(PathBuf::from))
            .collect();
        for name in self.credentials.names_with_prefix("SVC_") {
            let known = table::find(&name).is_some_and(Setting::takes_credential);
            let path = self.credentials.find(&name);
            if !known && !path.is_some_and(|path| named.contains(&path)) {
                self.fault(
                    &printable(&name),
                    "is a systemd credential, but no secret setting has this name",
                    unknown_remedy(&name),
                );
            }
        }
    }
}

/// A foreign name made safe for a terminal.
fn printable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
    name.chars().take(100).map(plain).collect()
}

/// Advice for an unknown name.
fn unknown_remedy(name: &str) -> String {
    if let Some(setting) = name.strip_suffix("_FILE").and_then(table::find) {
        return format!(
            "{} is no secret and has no file form; set it itself",
            setting.name
        );
    }
    let mut names: BTreeMap<usize, String> = BTreeMap::new();
    for setting in table::settings() {
        let candidates = [
            Some(setting.name.to_owned()),
            setting.secret.then(|| setting.file_name()),
        ];
        for candidate in candidates.into_iter().flatten() {
            names.entry(distance(name, &candidate)).or_insert(candidate);
        }
    }
    match names.into_iter().next() {
        Some((distance, nearest)) if distance <= 4 && distance * 3 <= name.len() => {
            format!("Did you mean {nearest}? If not, remove it")
        }
        _ => "Remove it; the names that begin with SVC_ are this service's".to_owned(),
    }
}

/// The number of single-character changes between two texts (Levenshtein distance). Foreign names
/// are cut to 100 characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().take(100).enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (j, to) in b.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or_default();
            let cell = (corner + usize::from(from != *to))
                .min(above + 1)
                .min(left + 1);
            corner = above;
            if let Some(place) = row.get_mut(j) {
                *place = left;
            }
            left = cell;
        }
        if let Some(last) = row.last_mut() {
            *last = left;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changes() {
        for (a, b, changes) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(distance(a, b), changes, "{a} {b}");
        }
    }
}
