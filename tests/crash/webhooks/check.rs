//! What must hold of webhooks once everything has ended, whatever happened on the way.
//!
//! Every event that was committed was accepted by every endpoint that it matches, except one that was
//! unregistered and the one that refuses everything. Nothing came after its endpoint was said to be
//! unregistered. Deliveries, attempts, the endpoints' figures and the queue agree with each other and
//! with what the receivers saw.

use super::receivers::{Answered, Receipt};
use super::scene::{DEAD, Emitted, Scene};
use crate::wait::eventually_within;
use postgres::{Client, NoTls};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

/// Attempts of a delivery at most.
const ATTEMPTS_MOST: i32 = 10;
const LONGEST_REST: Duration = Duration::from_secs(180);
/// As the worker words it.
const HIDDEN: &str = "The server stopped during the attempt.";

/// What the checks counted.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) events: usize,
    pub(crate) deliveries: usize,
    pub(crate) failed: usize,
    pub(crate) attempts: usize,
    /// Those whose outcome a fault hid.
    pub(crate) hidden: usize,
    pub(crate) receipts: usize,
    /// Accepted though an earlier attempt had been.
    pub(crate) repeated: usize,
}

impl std::ops::AddAssign for Figures {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.deliveries += other.deliveries;
        self.failed += other.failed;
        self.attempts += other.attempts;
        self.hidden += other.hidden;
        self.receipts += other.receipts;
        self.repeated += other.repeated;
    }
}

/// A row with its attempts.
#[derive(Debug)]
struct Delivery {
    endpoint: usize,
    event_id: Uuid,
    state: String,
    attempts: i32,
    last_error: Option<String>,
    made: Vec<Attempt>,
}

#[derive(Debug)]
struct Attempt {
    number: i32,
    has_ended: bool,
    reason: Option<String>,
    status: Option<i16>,
    message: Option<String>,
}

impl Attempt {
    fn hidden(&self) -> bool {
        self.message.as_deref() == Some(HIDDEN)
    }
}

/// Waits until nothing is being sent any more, and no run is under way.
pub(crate) fn come_to_rest(scene: &Scene) {
    let mut sql = Client::connect(&scene.config.database_url, NoTls).unwrap();
    let runs = "select count(*) from runs where status in ('queued', 'running', 'waiting')";
    let waiting = "select count(*) from webhook_deliveries where state = 'being-sent'";
    for (what, query) in [("runs", runs), ("deliveries", waiting)] {
        eventually_within(LONGEST_REST, &format!("the end of all {what}"), || {
            let left: i64 = sql.query_one(query, &[]).unwrap().get(0);
            (left == 0).then_some(())
        });
    }
}

/// Checks all of it; `emitted` was committed.
pub(crate) fn check(scene: &Scene, emitted: &[Emitted]) -> Figures {
    scene.receivers.check();
    let mut sql = Client::connect(&scene.config.database_url, NoTls).unwrap();
    let receipts = scene.receivers.receipts();
    check_arrived(scene, &receipts, emitted);
    check_none_after(scene, &receipts);
    let deliveries = deliveries(scene, &mut sql);
    let mut figures = check_deliveries(scene, &deliveries, &receipts);
    check_events(&mut sql, emitted, &mut figures);
    check_counts(scene, &deliveries);
    check_queue(&mut sql);
    figures
}

fn check_arrived(scene: &Scene, receipts: &[Receipt], emitted: &[Emitted]) {
    let accepted = receipts
        .iter()
        .filter(|receipt| receipt.answered == Answered::Accepted);
    let accepted: HashSet<Emitted> = accepted
        .map(|receipt| (receipt.subject, receipt.endpoint))
        .collect();
    let came: HashSet<Emitted> = receipts
        .iter()
        .map(|receipt| (receipt.subject, receipt.endpoint))
        .collect();
    let unregistered = scene.unregistered.lock().unwrap();
    let lost: Vec<&Emitted> = emitted
        .iter()
        .filter(|(_, endpoint)| !unregistered.contains_key(endpoint))
        .filter(|event| match event.1 {
            DEAD => !came.contains(event),
            _ => !accepted.contains(event),
        })
        .collect();
    assert!(
        lost.is_empty(),
        "{} events never arrived (subject, endpoint): {lost:?}",
        lost.len()
    );
    let known: HashSet<&Emitted> = emitted.iter().collect();
    let strange: Vec<&Emitted> = came.iter().filter(|one| !known.contains(one)).collect();
    assert!(
        strange.is_empty(),
        "at endpoints that they do not match: {strange:?}"
    );
}

fn check_none_after(scene: &Scene, receipts: &[Receipt]) {
    let unregistered = scene.unregistered.lock().unwrap();
    let late: Vec<&Receipt> = receipts
        .iter()
        .filter(|receipt| {
            let at = unregistered.get(&receipt.endpoint);
            at.is_some_and(|at| receipt.at > *at)
        })
        .collect();
    assert!(
        late.is_empty(),
        "after their endpoint was unregistered: {late:?}"
    );
}

fn deliveries(scene: &Scene, sql: &mut Client) -> Vec<Delivery> {
    let numbers: HashMap<Uuid, usize> = (scene.endpoints.iter().copied()).zip(0..).collect();
    let mut attempts: HashMap<Uuid, Vec<Attempt>> = HashMap::new();
    let rows = sql.query(
        "select delivery_id, attempt, ended_at is not null, reason, status, message \
         from webhook_attempts order by delivery_id, attempt",
        &[],
    );
    for row in rows.unwrap() {
        attempts.entry(row.get(0)).or_default().push(Attempt {
            number: row.get(1),
            has_ended: row.get(2),
            reason: row.get(3),
            status: row.get(4),
            message: row.get(5),
        });
    }
    let rows = sql.query(
        "select delivery_id, endpoint_id, event_id, state, attempts, last_error \
         from webhook_deliveries",
        &[],
    );
    let rows = rows.unwrap();
    let all = rows.iter().map(|row| Delivery {
        endpoint: numbers[&row.get::<_, Uuid>(1)],
        event_id: row.get(2),
        state: row.get(3),
        attempts: row.get(4),
        last_error: row.get(5),
        made: attempts.remove(&row.get(0)).unwrap_or_default(),
    });
    let all = all.collect();
    assert!(attempts.is_empty(), "attempts at no delivery: {attempts:?}");
    all
}

fn check_deliveries(scene: &Scene, all: &[Delivery], receipts: &[Receipt]) -> Figures {
    let mut came: HashMap<(Uuid, usize), Vec<Answered>> = HashMap::new();
    for receipt in receipts {
        let key = (receipt.event_id, receipt.endpoint);
        came.entry(key).or_default().push(receipt.answered);
    }
    let mut figures = Figures {
        deliveries: all.len(),
        receipts: receipts.len(),
        ..Figures::default()
    };
    let unregistered = scene.unregistered.lock().unwrap();
    for delivery in all {
        let seen = came.remove(&(delivery.event_id, delivery.endpoint));
        let seen = seen.unwrap_or_default();
        check_attempts(delivery, &seen);
        match delivery.state.as_str() {
            "delivered" => {}
            "failed" if delivery.last_error.as_deref() == Some("endpoint-unregistered") => {
                assert!(
                    unregistered.contains_key(&delivery.endpoint),
                    "{delivery:?}"
                );
            }
            "failed" => assert_eq!(delivery.attempts, ATTEMPTS_MOST, "{delivery:?}"),
            _ => panic!("{delivery:?}"),
        }
        if delivery.endpoint == DEAD {
            assert_eq!(delivery.state, "failed");
        }
        let accepted = seen.iter().filter(|one| **one == Answered::Accepted);
        figures.repeated += accepted.count().saturating_sub(1);
        figures.failed += usize::from(delivery.state == "failed");
        figures.attempts += delivery.made.len();
        let count = |of: fn(&Attempt) -> bool| delivery.made.iter().filter(|one| of(one)).count();
        figures.hidden += count(Attempt::hidden);
    }
    assert!(came.is_empty(), "receipts of no delivery: {came:?}");
    figures
}

/// Attempts are 1 to n, each over; the last one alone succeeded, if the delivery did; and each request
/// that came was one of them.
fn check_attempts(delivery: &Delivery, seen: &[Answered]) {
    let numbers = delivery.made.iter().map(|attempt| attempt.number);
    assert!(numbers.eq(1..=delivery.attempts), "{delivery:?}");
    for attempt in &delivery.made {
        assert!(attempt.has_ended, "{delivery:?}");
        let succeeded = delivery.state == "delivered" && attempt.number == delivery.attempts;
        assert_eq!(attempt.reason.is_none(), succeeded, "{delivery:?}");
        let status = match attempt.reason.as_deref() {
            None => Some(204),
            Some("http-status") => Some(500),
            Some("connection-failed" | "no-answer") => None,
            Some(_) => panic!("{delivery:?}"),
        };
        assert_eq!(attempt.status, status, "{delivery:?}");
    }
    let of = |answered| seen.iter().filter(move |one| **one == answered).count();
    let refused = delivery.made.iter();
    let refused = refused
        .filter(|attempt| attempt.status == Some(500))
        .count();
    assert!(seen.len() <= delivery.made.len(), "{seen:?} {delivery:?}");
    assert!(refused <= of(Answered::Refused), "{seen:?} {delivery:?}");
    if delivery.state == "delivered" {
        assert!(of(Answered::Accepted) > 0, "{seen:?} {delivery:?}");
    }
}

/// One event for each subject, and none besides.
fn check_events(sql: &mut Client, emitted: &[Emitted], figures: &mut Figures) {
    let query = "select coalesce(data -> 'approval' ->> 'approvalId', data -> 'pass' ->> 'id', \
         data -> 'run' ->> 'id')::uuid from (select body::json -> 'data' as data from webhook_events) v";
    let rows = sql.query(query, &[]).unwrap();
    let subjects: HashSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(subjects.len(), rows.len(), "an event stands twice");
    let known: HashSet<Uuid> = emitted.iter().map(|(subject, _)| *subject).collect();
    assert!(subjects.is_subset(&known), "an event of nothing");
    figures.events = rows.len();
}

/// What the API says of each endpoint.
fn check_counts(scene: &Scene, deliveries: &[Delivery]) {
    let client = scene.config.client();
    let unregistered = scene.unregistered.lock().unwrap();
    for (number, id) in scene.endpoints.iter().enumerate() {
        let answer = client.get(&format!("/v1/webhook-endpoints/{id}")).unwrap();
        if unregistered.contains_key(&number) {
            assert_eq!(answer.status, 404);
            continue;
        }
        let of = |state: &str| {
            let mine = deliveries.iter().filter(|one| one.endpoint == number);
            mine.filter(|one| one.state == state).count()
        };
        let expected = serde_json::json!({"delivered": of("delivered"), "failed": of("failed"),
            "beingSent": 0});
        assert_eq!(answer.body["deliveries"], expected, "endpoint {number}");
    }
}

fn check_queue(sql: &mut Client) {
    for what in ["job_jobs", "job_leases"] {
        crate::eventually(&format!("no {what} to be left"), || {
            let left: i64 = sql
                .query_one(&format!("select count(*) from {what}"), &[])
                .unwrap()
                .get(0);
            (left == 0).then_some(())
        });
    }
    let dead = sql.query("select reason from job_dead", &[]).unwrap();
    let dead: Vec<String> = dead.iter().map(|row| row.get(0)).collect();
    assert!(dead.is_empty(), "{dead:?}");
}
