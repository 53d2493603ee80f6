//! What jobs that are over leave behind in the tables is vacuumed away.

use super::*;
use crate::harness::{hear_statements, holds_within};
use jobs::protocol::claim;

/// After so many there is something to do.
const MANY: u32 = 5_000;
/// Rows of another queue, with which the table of jobs has more pages than that, and less than twice as many.
const OTHERS: i64 = 200_000;
const LONG: Duration = Duration::from_secs(120);

/// How often tables were vacuumed by somebody who was told to: that of jobs, and the least vacuumed of the others.
fn vacuumed(client: &mut Client) -> (i64, i64) {
    let row = client.query_one(
        "SELECT min(vacuum_count) FILTER (WHERE relname = 'job_jobs'),
                min(vacuum_count) FILTER (WHERE relname IN ('job_key_moves', 'job_keys', 'job_leases'))
         FROM pg_stat_user_tables WHERE schemaname = current_schema()",
        &[],
    );
    let row = row.unwrap();
    (row.get(0), row.get(1))
}

/// A queue beside these rows of another one, which nobody else vacuums.
fn schema_beside(others: &str) -> Schema {
    let schema = schema();
    let mut client = schema.client();
    for table in ["job_jobs", "job_key_moves", "job_keys", "job_leases"] {
        let left_alone = format!("ALTER TABLE {table} SET (autovacuum_enabled = false)");
        client.batch_execute(&left_alone).unwrap();
    }
    client.batch_execute(others).unwrap();
    schema
}

/// Runs so many jobs of twenty keys.
fn work(schema: &Schema, runner: &Runner, count: u32) {
    let mut client = schema.client();
    let one = |number| {
        let key = format!("k{}", number % 20);
        NewJob::of(&Task(number)).unwrap().key(key, 100)
    };
    for first in (0..count).step_by(1_000) {
        let jobs: Vec<NewJob> = (first..count.min(first + 1_000)).map(one).collect();
        enqueue_many(&mut client, &jobs).unwrap();
    }
    runner.handle().wake("q");
    until("all are done", || {
        let left = "SELECT count(*) FROM job_jobs WHERE queue = 'q'";
        schema.count(&mut client, left) == 0
    });
}

fn quick(schema: &Schema) -> Runner {
    let options = QueueOptions {
        batch: 500,
        prefetch: 1_000,
        ..options()
    };
    Runner::builder(schema.database(6))
        .queue("q", options)
        .lease(Duration::from_secs(3))
        .handle(|_, _: Task| Outcome::Done)
        .start()
        .unwrap()
}

#[test]
fn what_many_jobs_leave_is_vacuumed_and_a_larger_table_less_often() {
    let others = format!(
        "INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload)
         SELECT 'other', 'n', 0, now(), 5, '{{}}' FROM generate_series(1, {OTHERS})"
    );
    let schema = schema_beside(&others);
    let mut client = schema.client();
    let pages = "SELECT pg_total_relation_size('job_jobs') / 8192";
    let pages = schema.count(&mut client, pages);
    assert!((5_500..9_000).contains(&pages), "{pages} pages");
    let runner = quick(&schema);
    work(&schema, &runner, MANY / 2);
    assert_eq!(vacuumed(&mut client), (0, 0));
    work(&schema, &runner, MANY / 2);
    until("what is left is vacuumed away", || {
        vacuumed(&mut client) == (0, 1)
    });
    work(&schema, &runner, MANY);
    until("the larger table is too", || {
        vacuumed(&mut client) == (1, 2)
    });
    runner.stop(SOON);
}

#[test]
fn a_role_that_does_not_own_the_tables_vacuums_nothing_and_goes_on() {
    let mut schema = schema_beside("");
    let mut owner = schema.client();
    let (name, role) = (schema.name.clone(), format!("{}_guest", schema.name));
    owner
        .batch_execute(&format!(
            "CREATE ROLE {role};
             GRANT USAGE ON SCHEMA {name} TO {role};
             GRANT ALL ON ALL TABLES IN SCHEMA {name} TO {role};
             GRANT ALL ON ALL SEQUENCES IN SCHEMA {name} TO {role}"
        ))
        .unwrap();
    let heard = hear_statements(&mut schema, Some(&role));
    let count = |word: &str| {
        let heard = heard.lock().unwrap();
        heard.iter().filter(|said| said.contains(word)).count()
    };
    let guests = format!("SELECT count(*) WHERE current_user = '{role}'");
    assert_eq!(schema.count(&mut schema.client(), &guests), 1);
    let runner = quick(&schema);
    work(&schema, &runner, 2 * MANY);
    until("it has looked at all four tables", || {
        count("pg_total_relation_size") >= 4
    });
    work(&schema, &runner, 1);
    assert_eq!(vacuumed(&mut owner), (0, 0));
    // Nor does it ask for what it would be refused.
    assert_eq!((count("VACUUM"), count("permission denied")), (0, 0));
    let stopped = runner.stop(SOON);
    assert!(!stopped.leases_left, "{stopped:?}");
    owner
        .batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .unwrap();
}

/// Has a VACUUM wait for a reader of an index alone, which keeps its page from being vacuumed.
fn waiting_vacuum(schema: &Schema, runner: &Runner, reader: &mut Client, waiting: &str) -> bool {
    let mut client = schema.client();
    let started = Instant::now();
    // Where another test's transaction is older than what is left, nothing can be vacuumed while this reader reads.
    while started.elapsed() < LONG {
        work(schema, runner, MANY / 2);
        reader
            .batch_execute(
                "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
                 DECLARE rows CURSOR FOR SELECT queue, id FROM job_key_moves ORDER BY queue, id;
                 FETCH FROM rows",
            )
            .unwrap();
        work(schema, runner, MANY / 2);
        if holds_within(SOON, || schema.count(&mut client, waiting) == 1) {
            return true;
        }
        reader.batch_execute("ROLLBACK").unwrap();
    }
    false
}

#[test]
fn a_vacuum_that_waits_holds_up_no_rescue_and_no_stop() {
    let schema = schema_beside("INSERT INTO job_key_moves (queue, key) VALUES ('other', 'k')");
    let (mut client, mut reader) = (schema.client(), schema.client());
    let runner = quick(&schema);
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = '{}' AND query LIKE 'VACUUM%' AND wait_event = 'BufferPin'",
        schema.name
    );
    assert!(waiting_vacuum(&schema, &runner, &mut reader, &waiting));
    enqueue(&mut client, NewJob::named("other", "n", "1")).unwrap();
    claim(&mut client, "other", "w", 1, Duration::from_millis(1), true).unwrap();
    let lost = "SELECT count(*) FROM job_jobs WHERE lease_id IS NOT NULL";
    until("the job is rescued", || {
        schema.count(&mut client, lost) == 0
    });
    let stopped = runner.stop(SOON);
    assert!(
        !stopped.leases_left && stopped.unfinished == 0,
        "{stopped:?}"
    );
    assert_eq!(schema.count(&mut client, &waiting), 1);
    reader.batch_execute("ROLLBACK").unwrap();
}
