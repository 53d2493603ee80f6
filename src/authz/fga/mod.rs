//! A small blocking client of OpenFGA's HTTP API: only what this service needs.
//!
//! Every check names its model and asks for higher consistency. Every call has a deadline and uses
//! at most one connection of a bounded pool. After a broken connection a call is repeated once if
//! that does no harm. Answers are distinguished by status and code, never by their text. OpenFGA
//! 1.9 and 1.22 both behave as expected here.
//!
//! OpenFGA does not report a lost store: it reads an unknown store as an empty one. It also answers
//! and writes for a store that was deleted, or lost while OpenFGA remembers the model. Only
//! [`Client::store_exists`] and [`Client::model_exists`] detect that.
//!
//! Not here: which store is a tenant's, which model is this program's, which tuples there should
//! be.

mod failure;
mod pool;

pub use failure::Failure;

use crate::error::{Code, Error};
use crate::outbound::{Method, Outbound, Policy};
use pool::{Pool, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tuples in a write, and in a page of a read: OpenFGA takes and gives no more.
const PAGE: usize = 100;
/// Pages of one object's tuples that are read at the most: 100,000 tuples.
const MAX_OBJECT_PAGES: usize = 1000;
/// Models in a page: they come whole, newest first.
const MODELS_PAGE: usize = 20;
/// The first pause after a write that met another, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause between two tries of a write.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// How to reach OpenFGA.
#[derive(Debug, Clone)]
pub struct Options {
    /// `SVC_AUTHZ_API_URL`: its base URL, with or without a path.
    pub url: String,
    /// How long one question, one page of a read or one write of 100 tuples may take, the wait for
    /// a connection and the repeats included.
    pub timeout: Duration,
    /// Connections at once.
    pub connections: usize,
}

/// A client of one OpenFGA. Clones share its connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
    until: Option<Instant>,
}

struct Inner {
    pool: Pool,
    timeout: Duration,
}

/// A store, and the model that questions to it are answered by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The store's id.
    pub store_id: String,
    /// The id of a model in it.
    pub model_id: String,
}

/// A fact: the user has the relation to the object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tuple {
    /// `user:<id>`, an object's name, or `team:<id>#member`.
    pub user: String,
    /// The name of a relation of the object's type.
    pub relation: String,
    /// `<type>:<id>`.
    pub object: String,
}

/// Whether a user has a relation to an object.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// `user:<id>`.
    pub user: &'a str,
    /// The name of a relation of the object's type.
    pub relation: &'a str,
    /// `<type>:<id>`.
    pub object: &'a str,
    /// Tuples that hold for this question alone.
    pub contextual: &'a [Tuple],
}

#[derive(Deserialize)]
struct Checked {
    allowed: bool,
}

#[derive(Deserialize)]
struct Page {
    tuples: Vec<Keyed>,
    continuation_token: String,
}

#[derive(Deserialize)]
struct Keyed {
    key: Tuple,
}

#[derive(Deserialize)]
struct Stores {
    stores: Vec<Store>,
    continuation_token: String,
}

#[derive(Deserialize)]
struct Store {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Created {
    id: String,
}

#[derive(Deserialize)]
struct Models {
    authorization_models: Vec<Created>,
    continuation_token: String,
}

#[derive(Deserialize)]
struct Healthy {
    status: String,
}

#[derive(Deserialize)]
struct Modelled {
    authorization_model_id: String,
}

impl Client {
    /// A client; nothing is connected yet.
    ///
    /// # Errors
    /// `invalid-request`: the URL is not one of HTTP, or has a query.
    pub fn new(outbound: &Outbound, options: &Options) -> crate::error::Result<Self> {
        let url = outbound.check_url(Policy::Operator, &options.url)?;
        if url.query().is_some() {
            return Err(Error::new(
                Code::InvalidRequest,
                "The URL of the authorization server must not have a query (?).",
            ));
        }
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            inner: Arc::new(Inner {
                pool: Pool::new(outbound.clone(), base, options.connections),
                timeout: options.timeout,
            }),
            until: None,
        })
    }

    /// The same client, of which all calls together end by then. Each has its own deadline too.
    #[must_use]
    pub fn until(&self, deadline: Instant) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            until: Some(deadline),
        }
    }

    /// How long its calls have waited without an answer to any of them, in this process. A server that
    /// is slow interrupts that with each answer; one that hangs does not.
    pub fn silent_for(&self) -> Duration {
        self.inner.pool.silent_for()
    }

    /// Whether the log has told that it is away.
    pub fn is_away(&self) -> bool {
        self.inner.pool.is_away()
    }

    /// Whether it serves, what keeps its data included. That is all it tells of itself: no route of its
    /// API has its version.
    ///
    /// # Errors
    /// Any [`Failure`] but those of a store.
    pub fn is_serving(&self) -> Result<bool, Failure> {
        let healthy: Healthy = parse(&self.get("/healthz")?)?;
        Ok(healthy.status == "SERVING")
    }

    /// Whether the model and the stored tuples say yes.
    ///
    /// # Errors
    /// Any [`Failure`] but `Contended`; none of them means no.
    pub fn check(&self, on: &Pinned, question: &Question<'_>) -> Result<bool, Failure> {
        let mut body = json!({
            "tuple_key": {
                "user": question.user, "relation": question.relation, "object": question.object,
            },
            "authorization_model_id": model_id(on)?,
            "consistency": "HIGHER_CONSISTENCY",
        });
        if !question.contextual.is_empty() {
            body["contextual_tuples"] = keys(question.contextual);
        }
        let path = format!("/stores/{}/check", store_id(&on.store_id)?);
        let answer = self.post(&path, &body, self.deadline());
        let checked: Checked = parse(&self.explain(answer, &on.store_id)?)?;
        Ok(checked.allowed)
    }

    /// Every tuple of one object. A store that is not there reads as an object without tuples.
    ///
    /// # Errors
    /// Any [`Failure`] but `ModelUnknown` and `Contended`.
    pub fn read_object(&self, store_id: &str, object: &str) -> Result<BTreeSet<Tuple>, Failure> {
        let mut found = BTreeSet::new();
        let narrowed = json!({ "object": object });
        self.read(store_id, Some(&narrowed), MAX_OBJECT_PAGES, &mut |tuple| {
            found.insert(tuple);
            true
        })?;
        Ok(found)
    }

    /// The tuples of a store, in the server's order, as they are read, until `each` says false.
    ///
    /// # Errors
    /// Any [`Failure`] but `ModelUnknown` and `Contended`; `StoreUnknown` if there is no such store.
    pub fn read_all(
        &self,
        store_id: &str,
        each: &mut dyn FnMut(Tuple) -> bool,
    ) -> Result<(), Failure> {
        if !self.store_exists(store_id)? {
            return Err(Failure::StoreUnknown);
        }
        self.read(store_id, None, usize::MAX, each)
    }

    fn read(
        &self,
        store: &str,
        narrowed: Option<&Value>,
        max_pages: usize,
        each: &mut dyn FnMut(Tuple) -> bool,
    ) -> Result<(), Failure> {
        let path = format!("/stores/{}/read", store_id(store)?);
        let mut body = json!({ "page_size": PAGE, "consistency": "HIGHER_CONSISTENCY" });
        if let Some(narrowed) = narrowed {
            body["tuple_key"] = narrowed.clone();
        }
        let mut token = String::new();
        for _ in 0..max_pages {
            let page: Page = parse(&self.post(&path, &body, self.deadline())?)?;
            let goes_on = page.tuples.into_iter().all(|tuple| each(tuple.key));
            if !goes_on || page.continuation_token.is_empty() {
                return Ok(());
            }
            if page.continuation_token == token {
                return Err(Failure::Answer("its pages do not end"));
            }
            token = page.continuation_token;
            body["continuation_token"] = json!(token);
        }
        Err(Failure::Answer("the object has too many tuples"))
    }

    /// Removes and adds tuples, the removals first, at most 100 at once: what fits into one write
    /// takes effect as a whole. What is gone or there already is as wanted, also when another
    /// process wrote it meanwhile. A tuple that is to be removed and added is added.
    ///
    /// # Errors
    /// Any [`Failure`]. What was written before it stands; the same call may be made again.
    pub fn write(&self, on: &Pinned, deletes: &[Tuple], writes: &[Tuple]) -> Result<(), Failure> {
        let writes: BTreeSet<&Tuple> = writes.iter().collect();
        let deletes: BTreeSet<&Tuple> = deletes.iter().filter(|t| !writes.contains(t)).collect();
        let removals = deletes.into_iter().map(|tuple| (tuple, false));
        let additions = writes.into_iter().map(|tuple| (tuple, true));
        let changes: Vec<(&Tuple, bool)> = removals.chain(additions).collect();
        for chunk in changes.chunks(PAGE) {
            self.write_chunk(on, chunk.to_vec(), self.deadline())?;
        }
        Ok(())
    }

    /// Writes at most 100 changes, whatever of them is done already.
    fn write_chunk(
        &self,
        on: &Pinned,
        mut changes: Vec<(&Tuple, bool)>,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let path = format!("/stores/{}/write", store_id(&on.store_id)?);
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = self.post(&path, &write_body(on, &changes)?, deadline);
            match self.explain(answer, &on.store_id) {
                Ok(_) => return Ok(()),
                // Another write of the same tuples came between.
                Err(Failure::Refused { status: 409, .. }) => {}
                Err(Failure::Refused { status: 400, code })
                    if code == "write_failed_due_to_invalid_input" =>
                {
                    self.keep_undone(&on.store_id, &mut changes)?;
                    if changes.is_empty() {
                        return Ok(());
                    }
                }
                Err(failure) => return Err(failure),
            }
            if Instant::now() + pause >= deadline {
                return Err(Failure::Contended);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reads what is there and leaves the changes that are not done.
    fn keep_undone(
        &self,
        store_id: &str,
        changes: &mut Vec<(&Tuple, bool)>,
    ) -> Result<(), Failure> {
        let objects: BTreeSet<&str> = changes.iter().map(|(t, _)| t.object.as_str()).collect();
        let mut there = BTreeSet::new();
        for object in objects {
            there.extend(self.read_object(store_id, object)?);
        }
        changes.retain(|(tuple, wanted)| there.contains(*tuple) != *wanted);
        Ok(())
    }

    /// Makes a store and gives its id. Names are not unique: look before and after.
    ///
    /// # Errors
    /// Any [`Failure`]. After `Unreachable` the store may have been made.
    pub fn create_store(&self, name: &str) -> Result<String, Failure> {
        let body = json!({ "name": name }).to_string();
        let request = Request {
            method: Method::POST,
            path: "/stores",
            body: body.as_bytes(),
            // A second one would be a second store.
            repeatable: false,
        };
        let answer = self.inner.pool.exchange(&request, self.deadline())?;
        let created: Created = parse(&answer)?;
        Ok(created.id)
    }

    /// The ids of the stores of exactly this name, the oldest first. Deleted ones are not among them.
    ///
    /// # Errors
    /// Any [`Failure`] but those of a store.
    pub fn stores_named(&self, name: &str) -> Result<Vec<String>, Failure> {
        let mut found = Vec::new();
        self.list("/stores", &[("name", name)], PAGE, &mut |page: Stores| {
            // A server that does not know the filter gives every store.
            let named = page.stores.into_iter().filter(|store| store.name == name);
            found.extend(named.map(|store| store.id));
            page.continuation_token
        })?;
        // The ids are ULIDs, which begin with the time of their making.
        found.sort();
        Ok(found)
    }

    /// Whether there is such a store, not deleted.
    ///
    /// # Errors
    /// Any [`Failure`] but those of a store.
    pub fn store_exists(&self, id: &str) -> Result<bool, Failure> {
        let answer = store_id(id).and_then(|id| self.get(&format!("/stores/{id}")));
        match answer {
            Ok(_) => Ok(true),
            Err(Failure::StoreUnknown) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Removes a store with all that is in it; one that is not there is as wanted.
    ///
    /// # Errors
    /// Any [`Failure`] but those of a store.
    pub fn delete_store(&self, id: &str) -> Result<(), Failure> {
        let path = format!("/stores/{}", store_id(id)?);
        let request = Request {
            method: Method::DELETE,
            path: &path,
            body: &[],
            repeatable: true,
        };
        match self.inner.pool.exchange(&request, self.deadline()) {
            Ok(_) | Err(Failure::StoreUnknown) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Adds a model to a store and gives its id; the same model written twice has two. OpenFGA takes
    /// a model for a store that is not there.
    ///
    /// # Errors
    /// Any [`Failure`]; `Refused` with `invalid_authorization_model` for a model that is none.
    pub fn write_model(&self, store: &str, model: &Value) -> Result<String, Failure> {
        let path = format!("/stores/{}/authorization-models", store_id(store)?);
        let written: Modelled = parse(&self.post(&path, model, self.deadline())?)?;
        Ok(written.authorization_model_id)
    }

    /// Whether the store has the model. A deleted store still has its models.
    ///
    /// # Errors
    /// Any [`Failure`] but those of a store or a model.
    pub fn model_exists(&self, on: &Pinned) -> Result<bool, Failure> {
        let (Ok(store), Ok(model)) = (store_id(&on.store_id), model_id(on)) else {
            return Ok(false);
        };
        // Asked for the one model, a server answers from memory, also when it is no longer there.
        let path = format!("/stores/{store}/authorization-models");
        let mut found = false;
        self.list(&path, &[], MODELS_PAGE, &mut |page: Models| {
            found |= page.authorization_models.iter().any(|one| one.id == model);
            page.continuation_token
        })?;
        Ok(found)
    }

    /// Reads every page of a list. `each` gives the token of the next one.
    fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        parameters: &[(&str, &str)],
        page_size: usize,
        each: &mut dyn FnMut(T) -> String,
    ) -> Result<(), Failure> {
        let mut token = String::new();
        loop {
            let mut query = url::form_urlencoded::Serializer::new(String::new());
            query.append_pair("page_size", &page_size.to_string());
            query.extend_pairs(parameters);
            if !token.is_empty() {
                query.append_pair("continuation_token", &token);
            }
            let page = parse(&self.get(&format!("{path}?{}", query.finish()))?)?;
            let next = each(page);
            if next.is_empty() {
                return Ok(());
            }
            if next == token {
                return Err(Failure::Answer("its pages do not end"));
            }
            token = next;
        }
    }

    fn deadline(&self) -> Instant {
        let of_a_call = Instant::now() + self.inner.timeout;
        self.until.map_or(of_a_call, |until| until.min(of_a_call))
    }

    fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        let request = Request {
            method: Method::GET,
            path,
            body: &[],
            repeatable: true,
        };
        self.inner.pool.exchange(&request, self.deadline())
    }

    fn post(&self, path: &str, body: &Value, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let body = body.to_string();
        let request = Request {
            method: Method::POST,
            path,
            body: body.as_bytes(),
            repeatable: true,
        };
        self.inner.pool.exchange(&request, deadline)
    }

    /// OpenFGA says "no such model" also where there is no such store: asks which it is.
    fn explain(
        &self,
        answer: Result<Vec<u8>, Failure>,
        store_id: &str,
    ) -> Result<Vec<u8>, Failure> {
        match answer {
            Err(Failure::ModelUnknown) if !self.store_exists(store_id)? => {
                Err(Failure::StoreUnknown)
            }
            answer => answer,
        }
    }
}

fn keys(tuples: &[Tuple]) -> Value {
    let all: Vec<Value> = tuples.iter().map(key).collect();
    json!({ "tuple_keys": all })
}

fn key(tuple: &Tuple) -> Value {
    json!({ "user": tuple.user, "relation": tuple.relation, "object": tuple.object })
}

/// One request holds removals and additions; a list without any would be refused.
fn write_body(on: &Pinned, changes: &[(&Tuple, bool)]) -> Result<Value, Failure> {
    let mut body = json!({ "authorization_model_id": model_id(on)? });
    for (name, wanted) in [("deletes", false), ("writes", true)] {
        let of_kind = changes.iter().filter(|(_, kind)| *kind == wanted);
        let all: Vec<Value> = of_kind.map(|(tuple, _)| key(tuple)).collect();
        if !all.is_empty() {
            body[name] = json!({ "tuple_keys": all });
        }
    }
    Ok(body)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|_| Failure::Answer("it is not what was asked for"))
}

/// Ids stand in paths, and OpenFGA has no others than ULIDs.
fn is_ulid(id: &str) -> bool {
    id.len() == 26
        && id
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
}

fn store_id(id: &str) -> Result<&str, Failure> {
    is_ulid(id).then_some(id).ok_or(Failure::StoreUnknown)
}

fn model_id(on: &Pinned) -> Result<&str, Failure> {
    let id = on.model_id.as_str();
    is_ulid(id).then_some(id).ok_or(Failure::ModelUnknown)
}
