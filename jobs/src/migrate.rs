//! The schema: tables, which migrations change forward only, and functions, which are replaced as a
//! set.
//!
//! An embedding service applies [`MIGRATIONS`] and [`FUNCTIONS`] in its own migrations; others call
//! [`migrate`]. Tables, sequences and functions are in the connection's current schema, and their
//! names begin with `job_`.

use crate::Result;
use postgres::types::Type;
use postgres::{Client, Transaction};

/// Name and SQL of each step, in order; the first makes every table. Each step may run in a transaction.
pub const MIGRATIONS: &[(&str, &str)] = &[("job_0001_baseline", include_str!("../sql/schema.sql"))];

macro_rules! functions {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../sql/functions/", $name, ".sql")))),+]
    };
}

/// Name and definition of each SQL function. No name has two definitions, and the order does not
/// matter. To apply them, first drop the existing ones, in one transaction: a definition may have
/// other parameters than before.
pub const FUNCTIONS: &[(&str, &str)] = functions![
    "job_cancel",
    "job_claim",
    "job_complete",
    "job_done",
    "job_end",
    "job_enqueue",
    "job_enqueue_keyed",
    "job_enqueue_one",
    "job_enqueue_unique",
    "job_hold",
    "job_keep_lease",
    "job_key_standing",
    "job_merge_moves",
    "job_pick_fair",
    "job_pick_keyed",
    "job_rescue",
    "job_revive",
    "job_run_now",
    "job_standing",
];

/// Any fixed number does; it is the crate's own.
const MIGRATION_LOCK: i64 = 0x6a6f_6273;

/// Brings the current schema up to date, all or nothing. Processes may call it concurrently and
/// repeatedly.
pub fn migrate(client: &mut Client) -> Result<()> {
    let mut tx = client.transaction()?;
    tx.query_typed(
        "SELECT pg_advisory_xact_lock($1)",
        &[(&MIGRATION_LOCK, Type::INT8)],
    )?;
    tx.batch_execute(
        "CREATE TABLE IF NOT EXISTS job_migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now());
         CREATE TABLE IF NOT EXISTS job_function_set (digest text NOT NULL)",
    )?;
    for (name, sql) in MIGRATIONS {
        let added = tx.query_typed(
            "INSERT INTO job_migrations (name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING name",
            &[(name, Type::TEXT)],
        )?;
        if !added.is_empty() {
            tx.batch_execute(sql)?;
        }
    }
    replace_functions(&mut tx)?;
    tx.commit()?;
    Ok(())
}

/// Replaces the functions, unless the existing ones were made from the same texts.
fn replace_functions(tx: &mut Transaction<'_>) -> Result<()> {
    let texts: String = FUNCTIONS.iter().map(|(_, text)| *text).collect();
    let standing = tx.query_typed(
        "SELECT FROM job_function_set WHERE digest = md5($1)",
        &[(&texts, Type::TEXT)],
    )?;
    if !standing.is_empty() {
        return Ok(());
    }
    tx.batch_execute(
        r"DO $$ DECLARE v_function regprocedure; BEGIN
              FOR v_function IN SELECT oid FROM pg_proc
                  WHERE pronamespace = current_schema()::regnamespace AND proname LIKE 'job\_%'
              LOOP EXECUTE 'DROP FUNCTION ' || v_function; END LOOP;
          END $$",
    )?;
    tx.batch_execute(&texts)?;
    tx.execute_typed("DELETE FROM job_function_set", &[])?;
    tx.execute_typed(
        "INSERT INTO job_function_set (digest) VALUES (md5($1))",
        &[(&texts, Type::TEXT)],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_has_one_definition_under_its_name_in_its_file() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/functions"));
        assert_eq!(files.unwrap().count(), FUNCTIONS.len());
        for (name, text) in FUNCTIONS {
            assert_eq!(text.matches("FUNCTION job_").count(), 1, "{name}");
            assert!(text.contains(&format!("CREATE FUNCTION {name}(")), "{name}");
        }
    }
}
