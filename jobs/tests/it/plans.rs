//! What a claim reads and writes beside a million waiting rows, by Postgres's own counters (which hold for functions,
//! where EXPLAIN cannot look), and what the plan of its scan is.

use crate::harness::{Schema, schema};
use jobs::protocol::{claim, complete};
use postgres::{Client, Transaction};
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_secs(30);

/// 500,000 for later and of another priority, 500,000 due of one key at its cap of 3, and 2,000 to be claimed.
fn million() -> Schema {
    let schema = schema();
    schema
        .client()
        .batch_execute(
            "INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload)
                 SELECT 'q', 'n', 0, now() + interval '1 h', 5, '{}' FROM generate_series(1, 500000);
             INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload, key, key_cap)
                 SELECT 'q', 'n', 1, now() - interval '1 h', 5, '{}', 'big', 3 FROM generate_series(1, 500000);
             INSERT INTO job_key_moves (queue, key, cap) VALUES ('q', 'big', 3);
             INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload, key, key_cap)
                 SELECT 'q', 'n', 1, now(), 5, '{}', 'small' || i % 50, 10 FROM generate_series(1, 500) i;
             INSERT INTO job_key_moves (queue, key, cap) SELECT 'q', 'small' || i, 10 FROM generate_series(0, 49) i;
             INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload)
                 SELECT 'q', 'n', 2, now(), 5, '{}' FROM generate_series(1, 2000);
             ANALYZE job_jobs",
        )
        .unwrap();
    schema
}

/// Rows of `job_jobs` that this backend has read in full scans, fetched by index, updated, updated on their page.
struct Work([i64; 4]);

impl Work {
    /// So far; within a transaction the difference of two is what happened between them.
    fn so_far(tx: &mut Transaction<'_>) -> Self {
        let row = tx
            .query_one(
                "SELECT seq_tup_read, coalesce(idx_tup_fetch, 0), n_tup_upd, n_tup_hot_upd
                 FROM pg_stat_xact_user_tables WHERE relid = 'job_jobs'::regclass",
                &[],
            )
            .unwrap();
        Self([0, 1, 2, 3].map(|column| row.get(column)))
    }

    fn since(self, tx: &mut Transaction<'_>) -> [i64; 4] {
        let now = Self::so_far(tx).0;
        [0, 1, 2, 3].map(|column| now[column] - self.0[column])
    }
}

fn claimed(client: &mut Client, limit: usize, keyed_first: bool) -> Vec<Option<String>> {
    let mut tx = client.transaction().unwrap();
    let before = Work::so_far(&mut tx);
    let rows = claim(&mut tx, "q", "w", limit, LEASE, keyed_first).unwrap();
    let [read_in_full, fetched, updated, on_page] = before.since(&mut tx);
    let got = rows.len() as i64;
    assert_eq!(read_in_full, 0, "a claim read the table in full");
    assert!(
        fetched <= 3 * got + 800,
        "a claim of {got} fetched {fetched}"
    );
    assert_eq!(updated, got);
    // The bulk insert left more than half of every page free.
    assert_eq!(on_page, got, "a claim's update left its page");
    tx.commit().unwrap();
    rows.into_iter().map(|row| row.key).collect()
}

#[test]
fn a_claim_reads_little_and_touches_no_index_beside_a_million_waiting_rows() {
    let schema = million();
    let mut client = schema.client();
    let keys = claimed(&mut client, 200, true);
    let of = |name: &str| {
        keys.iter()
            .flatten()
            .filter(|key| key.starts_with(name))
            .count()
    };
    assert_eq!(
        (of("big"), of("small")),
        (3, 196),
        "the even share of 51 keys is 3 or 4, and the one that waits longest has 3 at most"
    );
    let plain = claimed(&mut client, 500, false);
    assert_eq!(plain.iter().filter(|key| key.is_none()).count(), 500);
    let mut times = Vec::new();
    for turn in 0..20 {
        let started = Instant::now();
        claimed(&mut client, 20, turn % 2 == 0);
        times.push(started.elapsed());
    }
    // What else the machine does only adds to a claim: the calmest ones tell.
    times.sort();
    assert!(
        times[2] < Duration::from_millis(50),
        "a claim of 20 takes {:?}",
        times[2]
    );
    let rows = client
        .query(
            "SELECT id, lease_id FROM job_jobs WHERE lease_id IS NOT NULL",
            &[],
        )
        .unwrap();
    let ids: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let leases: Vec<i64> = rows.iter().map(|row| row.get(1)).collect();
    let mut tx = client.transaction().unwrap();
    let before = Work::so_far(&mut tx);
    assert_eq!(complete(&mut tx, &ids, &leases).unwrap().len(), ids.len());
    assert_eq!(before.since(&mut tx), [0, ids.len() as i64, 0, 0]);
    tx.commit().unwrap();
    plans_use_their_index(&mut client);
}

/// The scans of the two picks, under the settings that the claim sets for itself.
fn plans_use_their_index(client: &mut Client) {
    let scan = |condition: &str| {
        format!(
            "SELECT id FROM job_jobs WHERE queue = 'q' AND {condition} AND run_at <= now() AND lease_id IS NULL
             ORDER BY run_at, id LIMIT 500 FOR UPDATE SKIP LOCKED"
        )
    };
    let plain = format!(
        "SELECT due.id FROM unnest('{{0,1,2,3}}'::smallint[]) p (priority), LATERAL ({}) due LIMIT 500",
        scan("priority = p.priority AND key IS NULL")
    );
    let cases = [
        (plain, "job_jobs_plain"),
        (scan("key = 'big'"), "job_jobs_keyed"),
        (scan("fairness_key = 'big'"), "job_jobs_fair"),
    ];
    for (sql, index) in cases {
        let mut tx = client.transaction().unwrap();
        tx.batch_execute(
            "SET LOCAL jit = off; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;
             SET LOCAL enable_sort = off",
        )
        .unwrap();
        let lines: Vec<String> = tx
            .query(&format!("EXPLAIN {sql}"), &[])
            .unwrap()
            .iter()
            .map(|row| row.get(0))
            .collect();
        let plan = lines.join("\n");
        assert!(
            plan.contains(&format!("Index Scan using {index}")) && !plan.contains("Sort"),
            "{plan}"
        );
    }
}

#[test]
fn moves_that_have_piled_up_are_read_once_also_by_a_plan_that_was_made_for_few() {
    const MOVES: i64 = 1500;
    let schema = schema();
    let mut client = schema.client();
    let come = "INSERT INTO job_key_moves (queue, key, cap) SELECT 'q', 'k', 1 FROM generate_series(1, $1::bigint)";
    // The plan is made for a table that is known to hold one.
    client.execute(come, &[&1i64]).unwrap();
    client
        .batch_execute("VACUUM (ANALYZE) job_key_moves")
        .unwrap();
    assert!(
        claim(&mut client, "q", "w", 10, LEASE, true)
            .unwrap()
            .is_empty()
    );
    client.execute(come, &[&MOVES]).unwrap();
    let mut tx = client.transaction().unwrap();
    let so_far = |tx: &mut Transaction<'_>| -> [i64; 2] {
        let row = tx
            .query_one(
                "SELECT coalesce(idx_tup_fetch, 0) + seq_tup_read, n_tup_del FROM pg_stat_xact_user_tables
                 WHERE relid = 'job_key_moves'::regclass",
                &[],
            )
            .unwrap();
        [0, 1].map(|column| row.get(column))
    };
    let before = so_far(&mut tx);
    let claimed = claim(&mut tx, "q", "w", 10, LEASE, true).unwrap();
    assert!(claimed.is_empty());
    let after = so_far(&mut tx);
    assert_eq!(after[1] - before[1], MOVES);
    let read = after[0] - before[0];
    assert!(read < 4 * MOVES, "{read} rows were read to move {MOVES}");
}

#[test]
fn jobs_are_completed_and_ended_by_their_ids_also_by_a_plan_that_was_made_for_few() {
    const JOBS: usize = 100;
    let schema = schema();
    let mut client = schema.client();
    let come = "INSERT INTO job_jobs (queue, name, priority, run_at, max_attempts, payload)
        SELECT 'q', 'n', 1, now(), 5, '{}' FROM generate_series(1, $1::bigint)";
    let held = |tx: &mut Transaction<'_>| -> (Vec<i64>, Vec<i64>) {
        let rows = claim(tx, "q", "w", JOBS, LEASE, true).unwrap();
        rows.iter().map(|row| (row.id, row.lease_id)).unzip()
    };
    let end = "SELECT id FROM job_end($1::bigint[], $2, array_fill('retry'::text, ARRAY[cardinality($1::bigint[])]),
        array_fill(1000::bigint, ARRAY[cardinality($1::bigint[])]), array_fill('why'::text, ARRAY[cardinality($1::bigint[])]))";
    // The plans are made for a table that is known to hold one.
    client.execute(come, &[&1i64]).unwrap();
    client.batch_execute("VACUUM (ANALYZE) job_jobs").unwrap();
    for statement in ["SELECT job_complete($1, $2)", end] {
        let mut tx = client.transaction().unwrap();
        let (ids, leases) = held(&mut tx);
        assert_eq!(tx.query(statement, &[&ids, &leases]).unwrap().len(), 1);
        tx.rollback().unwrap();
    }
    client.execute(come, &[&20_000i64]).unwrap();
    for statement in ["SELECT job_complete($1, $2)", end] {
        let mut tx = client.transaction().unwrap();
        let (ids, leases) = held(&mut tx);
        let before = Work::so_far(&mut tx);
        assert_eq!(tx.query(statement, &[&ids, &leases]).unwrap().len(), JOBS);
        let [read_in_full, fetched, ..] = before.since(&mut tx);
        // Each with each other at worst, whatever else waits.
        assert!(
            read_in_full == 0 && fetched <= (JOBS * JOBS) as i64,
            "{statement}: {read_in_full} and {fetched} rows were read"
        );
        tx.commit().unwrap();
    }
}

#[test]
fn a_job_that_comes_under_the_lease_it_lost_and_the_one_it_has_is_completed() {
    let schema = schema();
    let mut client = schema.client();
    jobs::enqueue(&mut client, jobs::NewJob::named("q", "n", "1")).unwrap();
    let row = claim(&mut client, "q", "w", 1, LEASE, true)
        .unwrap()
        .remove(0);
    let leases = [row.lease_id - 1, row.lease_id];
    assert_eq!(
        complete(&mut client, &[row.id, row.id], &leases[..1].repeat(2)).unwrap(),
        [0i64; 0]
    );
    assert_eq!(
        complete(&mut client, &[row.id, row.id], &leases).unwrap(),
        [row.id]
    );
}
