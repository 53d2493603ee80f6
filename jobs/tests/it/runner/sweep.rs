//! What jobs that are over leave behind in the tables is vacuumed away.

use super::*;

/// So many are swept up after.
const MANY: u32 = 5_000;

/// How often tables were vacuumed by somebody who was told to: of jobs, and of the least vacuumed of the others.
fn swept(client: &mut Client) -> (i64, i64) {
    let row = client.query_one(
        "SELECT min(vacuum_count) FILTER (WHERE relname = 'job_jobs'),
                min(vacuum_count) FILTER (WHERE relname IN ('job_key_moves', 'job_keys', 'job_leases'))
         FROM pg_stat_user_tables WHERE schemaname = current_schema()",
        &[],
    );
    let row = row.unwrap();
    (row.get(0), row.get(1))
}

#[test]
fn what_many_jobs_leave_is_swept_up_and_a_far_larger_table_less_often() {
    let schema = schema();
    let mut client = schema.client();
    // As if far more waited than come and go; no other vacuum counts them anew, or is in the way.
    client
        .batch_execute(
            "ALTER TABLE job_jobs SET (autovacuum_enabled = false);
             ALTER TABLE job_key_moves SET (autovacuum_enabled = false);
             ALTER TABLE job_keys SET (autovacuum_enabled = false);
             ALTER TABLE job_leases SET (autovacuum_enabled = false);
             UPDATE pg_class SET reltuples = 75000 WHERE oid = 'job_jobs'::regclass",
        )
        .unwrap();
    let options = QueueOptions {
        batch: 500,
        prefetch: 1_000,
        ..options()
    };
    let runner = Runner::builder(schema.database(6))
        .queue("q", options)
        .handle(|_, _: Task| Outcome::Done)
        .start()
        .unwrap();
    let mut run = |count: u32| {
        let one = |number| {
            let key = format!("k{}", number % 20);
            NewJob::of(&Task(number)).unwrap().key(key, 100)
        };
        for first in (0..count).step_by(1_000) {
            let jobs: Vec<NewJob> = (first..count.min(first + 1_000)).map(one).collect();
            enqueue_many(&mut client, &jobs).unwrap();
        }
        runner.handle().wake("q");
        until("all are done", || rows(&schema) == 0);
    };
    run(MANY / 2);
    assert_eq!(swept(&mut schema.client()), (0, 0));
    run(MANY / 2);
    until("what is left is swept up", || {
        swept(&mut schema.client()) == (0, 1)
    });
    run(MANY);
    until("the jobs' table is among it", || {
        swept(&mut schema.client()) == (1, 2)
    });
    runner.stop(SOON);
}
