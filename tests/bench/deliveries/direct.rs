//! The same POSTs without a queue: the service's own way out, under its own policy for webhooks, a client and so a
//! connection for each POST as the service has it, signed alike. The body is that of an event which the service sent.

use crate::Outcome;
use crate::hooks::{Endpoint, Group, Hooks};
use crate::load::{Load, Work};
use agent_runtime::outbound::{Method, Outbound, Outgoing, Policy, Timeouts};
use agent_runtime::webhooks::Options;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use crossbeam_channel::unbounded;
use ring::hmac;
use std::time::Duration;
use uuid::Uuid;

/// As much of an answer as the service takes, and for as long.
const ANSWER_BYTES: usize = 16 * 1024;
const ANSWER_TIME: Duration = Duration::from_secs(1);

pub(super) struct Direct<'a> {
    hooks: &'a Hooks,
    outbound: Outbound,
    policy: Policy,
    timeouts: Timeouts,
    key: hmac::Key,
    body: String,
}

impl<'a> Direct<'a> {
    /// Takes the body of an event that was emitted before.
    pub(super) fn of(hooks: &'a Hooks) -> Outcome<Self> {
        let row = hooks
            .world
            .database()?
            .query_one("select body from webhook_events limit 1", &[])?;
        let shared = hooks.shared()?;
        let timeout = Options::default().timeout;
        Ok(Self {
            hooks,
            outbound: shared.outbound.clone(),
            policy: shared.webhooks.policy(),
            timeouts: Timeouts {
                connect: timeout,
                first_byte: timeout,
                idle: None,
                total: timeout,
            },
            key: hmac::Key::new(hmac::HMAC_SHA256, &hooks.secret),
            body: row.get(0),
        })
    }

    /// Makes one; the id that it had.
    pub(super) fn post(&self, endpoint: &Endpoint) -> Outcome<Uuid> {
        let clock = &self.hooks.world.clock;
        let (event_id, timestamp) = (clock.new_id(), clock.now().unix_timestamp());
        let mut context = hmac::Context::with_key(&self.key);
        context.update(format!("{event_id}.{timestamp}.").as_bytes());
        context.update(self.body.as_bytes());
        let signature = format!("v1,{}", STANDARD.encode(context.sign().as_ref()));
        let mut client = self.outbound.client(self.policy, self.timeouts);
        client.set_well(true);
        let answer = client
            .open(&Outgoing {
                method: Method::POST,
                url: &self.hooks.url(endpoint),
                headers: &[
                    ("content-type", "application/json"),
                    ("user-agent", "Svc-Webhooks/1"),
                    ("webhook-id", &event_id.to_string()),
                    ("webhook-timestamp", &timestamp.to_string()),
                    ("webhook-signature", &signature),
                ],
                body: self.body.as_bytes(),
                cap: u64::MAX,
            })
            .map_err(|failure| failure.message().to_owned())?;
        let status = answer.status;
        answer.excerpt(ANSWER_BYTES, ANSWER_TIME);
        match status {
            204 => Ok(event_id),
            other => Err(format!("a receiver answered {other}").into()),
        }
    }

    /// So many threads at once, each sending this often, to the endpoints in turn. All must arrive.
    pub(super) fn load(&self, group: &Group, threads: usize, each: usize) -> Outcome<Load> {
        let (sender, sent) = unbounded();
        let client = |number: usize| -> Outcome<Work<'_>> {
            let sender = sender.clone();
            let endpoint = group.endpoints.get(number % group.endpoints.len());
            let endpoint = endpoint.ok_or("no endpoint")?;
            Ok(Box::new(move || {
                let sent = sender.send((self.post(endpoint)?, endpoint));
                sent.map_err(|_| "nobody counts".into())
            }))
        };
        let load = Load::of(threads, each, &client)?;
        let sent: Vec<_> = sent.try_iter().collect();
        // Each thread sent one before the clock ran.
        if sent.len() != threads * (each + 1) {
            return Err("POSTs are missing".into());
        }
        self.hooks.received_once(&sent)?;
        Ok(load)
    }
}
