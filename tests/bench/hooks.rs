//! What the benchmarks of webhooks share: a service that sends them, receivers that answer at once, endpoints in groups
//! that are told of events apart from each other, and events emitted as the service emits its own.
//!
//! What was sent is looked up on both ends: each event at each endpoint of its group, each delivery in the database.

use super::Outcome;
use super::world::World;
use agent_runtime::http::context::Shared;
use agent_runtime::webhooks::event::{Approval, Event};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossbeam_channel::{Receiver, Sender, unbounded};
use serde_json::json;
use std::cell::Cell;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);
/// Threads of the receivers: more than attempts at once.
const THREADS: usize = 40;
/// Of a request. Those of webhooks are far smaller.
const REQUEST_BYTES: usize = 16 * 1024;
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
/// How often it is looked whether all is recorded.
const LOOK: Duration = Duration::from_millis(1);

/// An event that arrived.
pub(crate) struct Receipt {
    pub(crate) event_id: Uuid,
    /// The number of the endpoint.
    pub(crate) endpoint: usize,
    /// Once all of the request was there.
    pub(crate) at: Instant,
}

/// Endpoints that are told of the events of one project, which no others are told of.
pub(crate) struct Group {
    pub(crate) project_id: Uuid,
    pub(crate) endpoints: Vec<Endpoint>,
}

pub(crate) struct Endpoint {
    pub(crate) endpoint_id: Uuid,
    number: usize,
}

/// A service that sends webhooks, and their receiver.
pub(crate) struct Hooks {
    pub(crate) world: World,
    /// What signs.
    pub(crate) secret: [u8; 32],
    receiver: SocketAddr,
    receipts: Receiver<Receipt>,
    endpoints: AtomicUsize,
}

/// Where a measurement began.
pub(crate) struct Mark {
    /// Before the id of every delivery that comes.
    before: Uuid,
    delivered: u64,
}

/// Takes requests and answers each at once; ends with the process.
fn receive(receipts: &Sender<Receipt>) -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    for number in 0..THREADS {
        let (listener, receipts) = (listener.try_clone()?, receipts.clone());
        Builder::new()
            .name(format!("receiver-{number}"))
            .spawn(move || {
                let mut buffer = vec![0; REQUEST_BYTES];
                while let Ok((stream, _)) = listener.accept() {
                    // What did not arrive is missed at the end of the round.
                    let _ = answer(stream, &mut buffer, &receipts);
                }
            })?;
    }
    Ok(address)
}

fn answer(mut stream: TcpStream, buffer: &mut [u8], receipts: &Sender<Receipt>) -> Outcome {
    let mut length = 0;
    let receipt = loop {
        let room = buffer.get_mut(length..).ok_or("too long a request")?;
        match stream.read(room)? {
            0 => return Err("half a request".into()),
            more => length += more,
        }
        if let Some((event_id, endpoint)) = whole(buffer.get(..length).unwrap_or_default())? {
            break Receipt {
                event_id,
                endpoint,
                at: Instant::now(),
            };
        }
    };
    receipts.send(receipt)?;
    stream.write_all(ANSWER)?;
    Ok(())
}

/// The event and the endpoint's number, if this is a whole request.
fn whole(bytes: &[u8]) -> Outcome<Option<(Uuid, usize)>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(bytes.get(..end).unwrap_or_default())?;
    let mut lines = head.lines();
    let path = lines.next().and_then(|line| line.split(' ').nth(1));
    let number = path.and_then(|path| path.rsplit('/').next());
    let (mut length, mut event_id) = (0, None);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse()?;
        } else if name.eq_ignore_ascii_case("webhook-id") {
            event_id = Some(value.parse()?);
        }
    }
    if bytes.len() < end + 4 + length {
        return Ok(None);
    }
    Ok(Some((
        event_id.ok_or("no event")?,
        number.ok_or("no endpoint")?.parse()?,
    )))
}

impl Hooks {
    pub(crate) fn start() -> Outcome<Self> {
        let world = World::start_with_webhooks()?;
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        let value = json!({"value": format!("whsec_{}", STANDARD.encode(secret))});
        let path = "/v1/secrets/bench/HOOKS";
        world.client.send("PUT", path, &value.to_string())?;
        let (sender, receipts) = unbounded();
        Ok(Self {
            world,
            secret,
            receiver: receive(&sender)?,
            receipts,
            endpoints: AtomicUsize::new(0),
        })
    }

    pub(crate) fn shared(&self) -> Outcome<&Arc<Shared>> {
        Ok(self.world.server()?.shared())
    }

    /// Endpoints whose receiver answers at once.
    pub(crate) fn group(&self, count: usize) -> Outcome<Group> {
        let wanted = json!({"name": "bench"});
        let project = self.world.client.post("/v1/projects", &wanted)?;
        let project_id = project["id"].as_str().ok_or("no project")?.parse()?;
        let endpoint = |_| self.register(project_id, self.receiver);
        Ok(Group {
            project_id,
            endpoints: (0..count).map(endpoint).collect::<Outcome<_>>()?,
        })
    }

    /// Registers an endpoint that is told of a project's events.
    pub(crate) fn register(&self, project_id: Uuid, receiver: SocketAddr) -> Outcome<Endpoint> {
        let number = self.endpoints.fetch_add(1, Ordering::Relaxed);
        let wanted = json!({"url": format!("http://{receiver}/hooks/{number}"),
            "events": ["approval.requested"], "filter": {"projectId": project_id},
            "secretRef": {"envName": "bench", "name": "HOOKS"}});
        let made = self.world.client.post("/v1/webhook-endpoints", &wanted)?;
        let id = made["endpointId"].as_str().ok_or("an endpoint has no id")?;
        Ok(Endpoint {
            endpoint_id: id.parse()?,
            number,
        })
    }

    /// Where the receiver of this endpoint takes what is sent.
    pub(crate) fn url(&self, endpoint: &Endpoint) -> String {
        format!("http://{}/hooks/{}", self.receiver, endpoint.number)
    }

    /// Emits events in one transaction and lets them go out; their ids, and when they were committed.
    pub(crate) fn emit(&self, group: &Group, count: usize) -> Outcome<(Vec<Uuid>, Instant)> {
        let (shared, clock) = (self.shared()?, &self.world.clock);
        let approval = |_| Approval {
            approval_id: clock.new_id(),
            project_id: group.project_id,
            required_role: "reviewer".to_owned(),
            title: "Send it".to_owned(),
            assigned_to: None,
            created_at: clock.now().into(),
            expires_at: (clock.now() + Duration::from_secs(3600)).into(),
            url: None,
        };
        let approvals: Vec<_> = (0..count).map(approval).collect();
        let ids = approvals.iter().map(|approval| approval.approval_id);
        let ids = ids.collect();
        let webhooks = &shared.webhooks;
        let committed_at = Rc::new(Cell::new(Instant::now()));
        let committed = Rc::clone(&committed_at);
        shared.store.transact(|tx| {
            // Before what begins with the commit.
            tx.after_commit(move || committed.set(Instant::now()));
            approvals.into_iter().try_for_each(|approval| {
                let event = Event::ApprovalRequested { approval };
                webhooks.emit(tx, self.world.seeds.tenant_id, &event)
            })
        })?;
        Ok((ids, committed_at.get()))
    }

    /// The first receipt of each of these events at each endpoint of the group, once all are there.
    pub(crate) fn received(&self, events: &[Uuid], group: &Group) -> Outcome<Vec<Receipt>> {
        let endpoints = &group.endpoints;
        let of_event = |id: Uuid| endpoints.iter().map(move |endpoint| (id, endpoint));
        self.received_once(
            &events
                .iter()
                .copied()
                .flat_map(of_event)
                .collect::<Vec<_>>(),
        )
    }

    /// The first receipt of each of these, an event at an endpoint, once all are there.
    pub(crate) fn received_once(&self, sent: &[(Uuid, &Endpoint)]) -> Outcome<Vec<Receipt>> {
        let places = sent.iter().map(|(id, endpoint)| (*id, endpoint.number));
        let mut missing: HashSet<_> = places.collect();
        let mut found = Vec::with_capacity(missing.len());
        while !missing.is_empty() {
            let receipt = self.receipts.recv_timeout(PATIENCE);
            let receipt = receipt
                .map_err(|_| format!("{} of {} did not arrive", missing.len(), sent.len()))?;
            if missing.remove(&(receipt.event_id, receipt.endpoint)) {
                found.push(receipt);
            }
        }
        Ok(found)
    }

    /// Before anything is emitted of what is to be measured.
    pub(crate) fn mark(&self) -> Outcome<Mark> {
        let before = self.world.clock.new_id();
        // Ids of one millisecond are in no order.
        std::thread::sleep(Duration::from_millis(2));
        Ok(Mark {
            before,
            delivered: self.shared()?.webhooks.stats().delivered,
        })
    }

    /// Waits until this process has recorded so many deliveries since the mark; when it had.
    pub(crate) fn recorded(&self, mark: &Mark, count: usize) -> Outcome<Instant> {
        let webhooks = &self.shared()?.webhooks;
        let wanted = mark.delivered + u64::try_from(count)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let stats = webhooks.stats();
            if stats.delivered >= wanted {
                return Ok(Instant::now());
            }
            if Instant::now() > deadline {
                return Err(format!("{count} deliveries are not recorded: {stats:?}").into());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// That exactly so many deliveries were queued since the mark, and the database holds each as delivered.
    pub(crate) fn check(&self, mark: &Mark, count: usize) -> Outcome {
        let row = self.world.database()?.query_one(
            "select count(*), count(*) filter (where state = 'delivered') from webhook_deliveries
             where tenant_id = $1 and delivery_id > $2",
            &[&self.world.seeds.tenant_id, &mark.before],
        )?;
        let (all, delivered): (i64, i64) = (row.get(0), row.get(1));
        match i64::try_from(count)? {
            count if all == count && delivered == count => Ok(()),
            count => {
                Err(format!("of {count} deliveries {all} stand, {delivered} delivered").into())
            }
        }
    }

    /// Deliveries a second of events that wait already: from their commit until all are recorded.
    pub(crate) fn drain(&self, group: &Group, events: usize) -> Outcome<f64> {
        let mark = self.mark()?;
        let (ids, committed_at) = self.emit(group, events)?;
        let count = events * group.endpoints.len();
        let ended_at = self.recorded(&mark, count)?;
        self.received(&ids, group)?;
        self.check(&mark, count)?;
        Ok(count as f64 / (ended_at - committed_at).as_secs_f64())
    }
}
