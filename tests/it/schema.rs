//! The dump of the schema in the tree is the schema that migrating makes, so that a change of it is a diff that can be read.
//!
//! It is the same from every version of PostgreSQL that is served.

use crate::harness::Database;
use std::path::Path;

const HEAD: &str = "\
-- The schema of a fresh database, written by a test. Change the baseline, a migration or a function instead, and then run:
-- UPDATE_GENERATED=1 cargo test --test it schema::
";

#[test]
fn the_dump_in_the_tree_is_the_schema() {
    let database = Database::migrated();
    let mut dump = HEAD.to_owned();
    for row in database
        .client()
        .query(include_str!("schema.sql"), &[])
        .unwrap()
    {
        let statement: &str = row.get(0);
        dump.push('\n');
        dump.push_str(statement);
        dump.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/schema/dump.sql");
    if std::env::var_os("UPDATE_GENERATED").is_some_and(|value| value == "1") {
        std::fs::write(&path, &dump).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    let differs = kept
        .lines()
        .zip(dump.lines())
        .find(|(kept, made)| kept != made);
    assert!(
        kept == dump,
        "sql/schema/dump.sql is not the schema; run: UPDATE_GENERATED=1 cargo test --test it schema::. \
         The first difference, before and now: {differs:#?}"
    );
}
