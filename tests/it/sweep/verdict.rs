//! Whether a cell is as the table says: status, body and records.

use super::table::{Cell, Line};
use super::world::World;
use crate::harness::Answer;
use postgres::Client;
use serde_json::{Value, json};
use uuid::Uuid;

/// How many decisions are recorded in all.
pub(super) fn count(database: &mut Client) -> i64 {
    let counted = database.query_one("select count(*) from audit_decisions", &[]);
    counted.unwrap().get(0)
}

/// A cell, and what it was asked with.
pub(super) struct Verdict<'a> {
    pub(super) world: &'a World,
    pub(super) line: &'a Line,
    pub(super) caller: &'a str,
    /// The id of the credential.
    pub(super) key: Option<Uuid>,
    pub(super) expected: &'a Cell,
}

/// A record, as far as a cell determines it.
type Record = (String, String, String, String, String);

fn check(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(fault()) }
}

impl Verdict<'_> {
    /// The answer has the status and the body.
    pub(super) fn answer(&self, answer: &Answer) -> Result<(), String> {
        let expected = self.expected.status();
        check(answer.status == expected, || {
            format!(
                "expected {expected}: {} {}",
                answer.status,
                brief(&answer.text)
            )
        })?;
        match self.expected {
            Cell::Denied(at) => self.denial(answer, *at),
            Cell::Key(_) => self.denial(answer, 0),
            _ if expected == 303 => check(answer.header("location").is_some(), || {
                format!("it sends nobody on: {answer:?}")
            }),
            _ if expected >= 300 => {
                let code = match expected {
                    401 => "unauthenticated",
                    403 => "public-run-token-not-allowed",
                    501 => "project-access-unsupported",
                    _ => "not-found",
                };
                let error = &answer.json()["error"];
                check(error["code"] == json!(code), || brief(&answer.text))
            }
            _ => self.success(answer),
        }
    }

    /// It shows nothing of the project to who may not read it, or is of another tenant.
    fn success(&self, answer: &Answer) -> Result<(), String> {
        let typed = answer.header("content-type").unwrap_or_default();
        if answer.status == 204 {
            return check(answer.text.is_empty(), || brief(&answer.text));
        }
        if typed.starts_with("application/json") {
            let body = answer.json();
            check(body.get("error").is_none(), || brief(&answer.text))?;
        }
        let blind = match self.expected {
            Cell::Allowed(_) => self.world.enforced && self.world.cannot_read(self.caller),
            _ => self.caller == "other",
        };
        // A list by a key that is limited to the project holds nothing of its owner's other one.
        let is_list = self.line.checks.contains(&("read", "tenant"));
        let elsewhere = self.world.id("otherProjectId").to_string();
        let is_beyond = self.world.enforced && is_list && self.caller == "keyhere";
        check(!is_beyond || !answer.text.contains(&elsewhere), || {
            "it shows another project than the key's".to_owned()
        })?;
        let hidden = ["projectId", "toolId", "agentId", "conversationId", "runId"];
        let shown = hidden
            .iter()
            .find(|name| answer.text.contains(&self.world.id(name).to_string()));
        check(!blind || shown.is_none(), || {
            format!("it shows the {}", shown.unwrap())
        })
    }

    /// The body of section 7. Of the two codes, one is for who names another project than the key's.
    fn denial(&self, answer: &Answer, at: usize) -> Result<(), String> {
        let (action, resource) = self.asked(at);
        let user = self.world.user(self.caller);
        let error = answer.json()["error"].clone();
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        let (code, sentence) = match self.expected {
            Cell::Key("key-project-mismatch") => {
                let own = self.world.id("otherProjectId");
                let sentence = format!(
                    "The key is limited to project:{own}, and the request names {resource}. Use a key of that project, or one without a limit."
                );
                ("key-project-mismatch", sentence)
            }
            expected => {
                let lacks = format!("actor user:{user} lacks can_{action} on {resource}");
                let role = match expected {
                    Cell::Key("not-reviewer") => {
                        ": it takes a reviewer role, and this person has none. Ask a tenant admin for one."
                    }
                    _ => "",
                };
                let sentence = format!("permission denied, {lacks}{role}");
                ("permission-denied", sentence)
            }
        };
        check(message == sentence, || {
            format!("expected {sentence:?}: {message:?}")
        })?;
        let request_id = answer.header("x-request-id").unwrap_or_default();
        let whole = json!({
            "code": code,
            "message": message,
            "details": {"action": action, "resource": resource, "reason": message},
            "requestId": request_id,
        });
        check(error == whole, || format!("expected {whole}: {error}"))
    }

    fn asked(&self, at: usize) -> (&str, String) {
        let (action, kind) = match self.line.checks.get(at) {
            Some(check) => *check,
            None => self.line.named.expect("what a refusal names"),
        };
        let kind = match self.expected {
            Cell::Key("key-project-mismatch") => "project",
            _ => kind,
        };
        // Of all approvals, no id.
        if kind == "approvals" {
            return (action, "approval:*".to_owned());
        }
        let resource = match (kind, self.caller) {
            ("tenant", "other") if !matches!(self.expected, Cell::ByBody(..)) => {
                self.world.other_tenant_id
            }
            ("tenant", _) => self.world.tenant_id,
            ("team", _) if at == 1 => self.world.id("grantedTeamId"),
            _ => {
                let name = format!("{kind}Id");
                self.world.id(self.line.id(&name).unwrap_or(&name))
            }
        };
        (action, format!("{kind}:{resource}"))
    }

    /// The request's records are the table's, one a decision.
    pub(super) fn records(&self, request_id: &str) -> Result<(), String> {
        let recorded = self.recorded(request_id);
        let expected: Vec<Record> = match self.expected {
            Cell::Unrecorded(_) => Vec::new(),
            Cell::Allowed(_) => (0..self.line.checks.len())
                .map(|at| self.record(at, "allowed", "model"))
                .collect(),
            Cell::Key(stage) => vec![self.record(0, "denied", stage)],
            Cell::Reviewer(_) => vec![self.record(0, "allowed", "reviewer")],
            Cell::ByBody(_, stage) => vec![self.record(0, "allowed", stage)],
            Cell::Denied(last) => (0..=*last)
                .map(|at| {
                    let outcome = if at == *last { "denied" } else { "allowed" };
                    self.record(at, outcome, "model")
                })
                .collect(),
        };
        check(recorded == expected, || {
            format!("expected the records {expected:?}: {recorded:?}")
        })
    }

    fn record(&self, at: usize, outcome: &str, stage: &str) -> Record {
        let (action, resource) = self.asked(at);
        (
            format!("user:{}", self.actor()),
            action.to_owned(),
            resource,
            outcome.to_owned(),
            stage.to_owned(),
        )
    }

    fn actor(&self) -> Uuid {
        match self.expected {
            Cell::ByBody(..) if self.line.route().ends_with("/token") => self.world.user("admin"),
            Cell::ByBody(..) => self.world.id("newcomer"),
            _ => self.world.user(self.caller),
        }
    }

    fn recorded(&self, request_id: &str) -> Vec<Record> {
        let id: Uuid = request_id
            .trim_start_matches("req-")
            .parse()
            .expect("every answer has a request id");
        let rows = self.world.database().query(
            "select to_jsonb(d) from audit_decisions d where request_id = $1 order by slot, position",
            &[&id],
        );
        let rows = rows.unwrap();
        let rows = rows.iter().map(|row| row.get::<_, Value>(0));
        rows.map(|row| {
            self.explains(&row);
            let text = |name: &str| row[name].as_str().unwrap().to_owned();
            (
                text("actor_subject"),
                text("action"),
                text("resource"),
                text("outcome"),
                text("stage"),
            )
        })
        .collect()
    }

    /// What an operator needs to understand the record stands in it.
    fn explains(&self, row: &Value) {
        assert_eq!(row["route"], json!(self.line.route()), "{row}");
        assert_eq!(row["client_address"], json!("127.0.0.1"), "{row}");
        if !matches!(self.expected, Cell::ByBody(..)) {
            assert_eq!(row["key_id"], json!(self.key), "{row}");
        }
        let id: Uuid = row["key_id"].as_str().unwrap().parse().unwrap();
        let is_session = "select exists (select from sessions where session_id = $1)";
        let mut database = self.world.database();
        let kind = match database.query_one(is_session, &[&id]).unwrap().get(0) {
            true => "session",
            false => "token",
        };
        assert_eq!(row["credential_kind"], json!(kind), "{row}");
        assert!(
            row["trace_id"].is_string() && row["reason"] != json!(""),
            "{row}"
        );
        // A check on the tenant says for which of the tenant's own objects it was.
        let named = [
            "identity/users",
            "identity-providers",
            "reviewers",
            "service-accounts",
            "secret-uses",
            "model-providers",
            "webhook-endpoints",
        ];
        let mut named = named.iter().map(|noun| format!("/v1/{noun}/{{"));
        let is_named = named.any(|path| self.line.route().contains(&path));
        let reason = row["reason"].as_str().unwrap();
        assert_eq!(reason.contains(", for "), is_named, "{row}");
        if row["stage"] == json!("model") {
            let relation = format!("can_{}", row["action"].as_str().unwrap());
            assert_eq!(row["check_user"], row["actor_subject"], "{row}");
            assert_eq!(row["check_relation"], json!(relation), "{row}");
            assert_eq!(row["check_object"], row["resource"], "{row}");
            assert!(
                row["store_id"].is_string() && row["model_id"].is_string(),
                "{row}"
            );
        } else {
            let is_denied = row["outcome"] == json!("denied");
            // The record alone says which check refused.
            let stage = format!("{}: ", row["stage"].as_str().unwrap());
            assert_eq!(reason.starts_with(&stage), is_denied, "{row}");
            assert!(row["check_object"].is_null(), "{row}");
            assert_eq!(row["failing_part"].is_string(), is_denied, "{row}");
        }
    }
}

fn brief(text: &str) -> String {
    text.chars().take(400).collect()
}
