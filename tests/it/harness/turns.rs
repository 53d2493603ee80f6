//! Turns as a client starts and awaits them.

use super::{Client, eventually};
use agent_runtime::dev::provider::{Provider, Reply, Step};
use serde_json::{Value, json};
use uuid::Uuid;

/// Whether a run's status is one that never changes.
pub(crate) fn is_finished(run: &Value) -> bool {
    ["completed", "failed", "cancelled"].contains(&run["status"].as_str().unwrap())
}

/// Calls that a model asks for in one answer.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Step {
    let calls = calls.iter();
    let calls = calls.map(|(name, arguments)| ((*name).to_owned(), arguments.clone()));
    Step::new(Reply::ToolCalls(calls.collect()))
}

/// What a model got as results of its calls before its last answer.
pub(crate) fn tool_results(model: &Provider) -> Vec<String> {
    let requests = model.requests();
    let messages = requests.last().unwrap().body["messages"].clone();
    let messages = messages.as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

impl Client {
    /// Starts a turn; its run id.
    #[track_caller]
    pub(crate) fn start_turn(&self, agent_id: Uuid, message: &str) -> String {
        let body = json!({"agentId": agent_id, "message": message});
        let started = self.post("/v1/runs", &body).expect(202);
        started["run"]["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn run(&self, run_id: &str) -> Value {
        self.get(&format!("/v1/runs/{run_id}")).expect(200)
    }

    /// The run, once it has finished.
    #[track_caller]
    pub(crate) fn finished(&self, run_id: &str) -> Value {
        eventually("the run to finish", || {
            Some(self.run(run_id)).filter(is_finished)
        })
    }

    /// The run, once it has finished, whatever the database does meanwhile.
    #[track_caller]
    pub(crate) fn survived(&self, run_id: &str) -> Value {
        eventually("the run to finish", || {
            let answer = self.get(&format!("/v1/runs/{run_id}"));
            if answer.status != 200 {
                assert!([503, 504].contains(&answer.status), "{answer:?}");
                return None;
            }
            Some(answer.json()).filter(is_finished)
        })
    }

    /// The run, once it stands there.
    #[track_caller]
    pub(crate) fn run_once(&self, run_id: &str, status: &str) -> Value {
        eventually(status, || {
            Some(self.run(run_id)).filter(|run| run["status"] == status)
        })
    }

    /// Every event of the run, by pages.
    #[track_caller]
    pub(crate) fn events(&self, run_id: &str) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), 0);
        loop {
            let path = format!("/v1/runs/{run_id}/progress?after={after}");
            let page = self.get(&path).expect(200);
            events.extend(page["data"].as_array().unwrap().iter().cloned());
            if page["hasMore"] == json!(false) {
                return events;
            }
            after = events.last().unwrap()["seq"].as_i64().unwrap();
        }
    }

    #[track_caller]
    pub(crate) fn cancel(&self, run_id: &str) -> Value {
        self.send("POST", &format!("/v1/runs/{run_id}/cancel"), None, &[])
            .expect(202)
    }

    /// What the run answered.
    #[track_caller]
    pub(crate) fn output(&self, run_id: &str) -> Value {
        self.get(&format!("/v1/runs/{run_id}/payload")).expect(200)["output"].clone()
    }
}

/// The kinds of events, in order; numbered from 1 without gaps.
#[track_caller]
pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["seq"], json!(number), "{events:?}");
    }
    events
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect()
}
