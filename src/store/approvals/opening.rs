//! What a run asks a reviewer, and how it is opened: with its digest, and assigned to the person whom its definition names.
//!
//! Not here: what becomes of it.

use super::{ARGUMENTS_BYTES, ApprovalSource, CONTEXT_BYTES, FORM_BYTES, LONGEST, TITLE_MOST};
use crate::error::{Error, Result};
use crate::json::{SENT_NESTING_MOST, is_nested_deeper};
use crate::sql;
use crate::store::Sql;
use crate::store::principals::{Named, email_key};
use crate::store::reviewers::is_role;
use crate::store::runs::{Lease, storable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// What a run asks a reviewer.
#[derive(Debug, Clone, PartialEq)]
pub struct NewApproval {
    /// What asks.
    pub source: ApprovalSource,
    /// The role that may decide.
    pub required_role: String,
    /// Whom it is assigned to when it is opened, by id or email: see [`assign_named`].
    pub assigned_to: Option<String>,
    /// What a reviewer reads first, and what events carry: a literal of a definition, never computed from a run.
    pub title: String,
    /// How long it waits.
    pub expires_after: Duration,
    /// When another role is asked in its place.
    pub escalation: Option<Escalation>,
    /// What reviewers are shown.
    pub context: Option<Value>,
    /// What a reviewer who approves fills in: the JSON Schema of the answer.
    pub form: Option<Value>,
    /// Of a tool call: the call.
    pub call: Option<AskedCall>,
    /// Of a tool call: an earlier one with the same content, which may have taken effect.
    pub earlier: Option<EarlierCall>,
}

/// An earlier call with the same content, whose answer nobody got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierCall {
    /// The approval that allowed it; null if nobody was asked.
    pub approval_id: Option<Uuid>,
    /// The reviewer of that approval changed its arguments.
    pub is_edited: bool,
}

/// A call of a tool that is made once it is approved.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The tool.
    pub tool_id: Uuid,
    /// Its name.
    pub tool: String,
    /// What it is to be called with.
    pub arguments: Value,
}

/// The one step up of an approval that nobody decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// How long after the opening.
    pub after: Duration,
    /// The role that may decide then.
    pub required_role: String,
    /// Whom the approval is assigned to then, by id or email.
    pub assigned_to: Option<String>,
}

/// An approval that is opened in the commit that begins its step, or in one that begins a step before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// Its id, which is also that of its webhook event.
    pub approval_id: Uuid,
    /// The step that waits for it.
    pub step: i32,
    /// Where that stands in the run's program.
    pub path: String,
    /// What is asked.
    pub new: Box<NewApproval>,
    /// Whether reviewers need roles: not while authorization is off.
    pub needs_role: bool,
}

impl NewApproval {
    /// Why it cannot be opened, as the second half of a sentence.
    pub fn fault(&self) -> Option<String> {
        let roles = [Some(&self.required_role), self.escalation_role()];
        if let Some(role) = roles.into_iter().flatten().find(|role| !is_role(role)) {
            let shown: String = role.chars().take(64).collect();
            return Some(format!(
                "{shown:?} is no reviewer role (1 to 40 lowercase letters, digits and hyphens, no hyphen first)"
            ));
        }
        let named = [self.assigned_to.as_ref(), self.escalation_assignee()];
        if let Some(named) = named.into_iter().flatten().find(|text| !is_assignee(text)) {
            let shown: String = named.chars().take(64).collect();
            return Some(format!("{shown:?} is no user's id or email address"));
        }
        if !is_title(&self.title) {
            return Some(format!(
                "its title has to be 1 to {TITLE_MOST} characters without control characters"
            ));
        }
        if self.expires_after.is_zero() || self.expires_after > LONGEST {
            return Some("it has to expire after at most 30 days".to_owned());
        }
        let escalation = self.escalation.as_ref();
        if escalation.is_some_and(|escalation| escalation.after >= self.expires_after) {
            return Some("it would expire before it is escalated".to_owned());
        }
        let context = self.context.as_ref().map_or(0, bytes);
        let call = self.call.as_ref();
        let arguments = call.map_or(0, |call| bytes(&call.arguments));
        if context > CONTEXT_BYTES || arguments > ARGUMENTS_BYTES {
            return Some(format!(
                "its context has {context} bytes and its arguments {arguments}, and {} and {} are the most",
                CONTEXT_BYTES, ARGUMENTS_BYTES
            ));
        }
        let shown = [self.context.as_ref(), call.map(|call| &call.arguments)];
        let is_too_deep = |value: &Value| is_nested_deeper(value, SENT_NESTING_MOST);
        if shown.into_iter().flatten().any(is_too_deep) {
            return Some(format!(
                "what it is about is JSON of more than {SENT_NESTING_MOST} levels"
            ));
        }
        let form = self.form.as_ref().map_or(0, bytes);
        (form > FORM_BYTES)
            .then(|| format!("its form has {form} bytes, and {FORM_BYTES} are the most"))
    }

    fn escalation_role(&self) -> Option<&String> {
        let escalation = self.escalation.as_ref();
        escalation.map(|escalation| &escalation.required_role)
    }

    fn escalation_assignee(&self) -> Option<&String> {
        self.escalation.as_ref()?.assigned_to.as_ref()
    }

    /// SHA-256 of what it is about, as it is stored.
    fn digest(&self) -> Vec<u8> {
        let (tool, arguments) = self.call.as_ref().map_or((None, None), |call| {
            (Some(&call.tool), Some(storable::value(&call.arguments)))
        });
        let context = self.context.as_ref().map(storable::value);
        let form = self.form.as_ref().map(storable::value);
        let mut subject = json!({"source": self.source, "tool": tool, "arguments": arguments, "context": context, "form": form});
        if let Some(earlier) = &self.earlier {
            subject["earlierCall"] = json!(earlier);
        }
        Sha256::digest(subject.to_string()).to_vec()
    }
}

/// Whether a text is the title of an approval.
pub fn is_title(text: &str) -> bool {
    (1..=TITLE_MOST).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// Whether a text names somebody to whom an approval may be assigned: a user's id or an email.
pub fn is_assignee(text: &str) -> bool {
    Named::of(text).is_some()
}

fn bytes(value: &Value) -> usize {
    value.to_string().len()
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Opens an approval in the transaction of its run's commit, after it, and assigns it to whom its definition names.
pub(in crate::store) fn open(
    sql: &mut impl Sql,
    lease: &Lease,
    opening: &Opening,
    now: OffsetDateTime,
) -> Result<()> {
    let new = &opening.new;
    let call = new.call.as_ref();
    let escalation = new.escalation.as_ref();
    let context = new.context.as_ref().map(storable::value);
    let arguments = call.map(|call| storable::value(&call.arguments));
    let form = new.form.as_ref().map(storable::value);
    let written = sql.execute(
        sql!("approvals/insert"),
        &[
            &lease.tenant_id(),
            &lease.run_id(),
            &opening.approval_id,
            &opening.step,
            &opening.path,
            &new.source.text(),
            &new.required_role,
            &new.title,
            &milliseconds(new.expires_after),
            &escalation.map(|escalation| milliseconds(escalation.after)),
            &new.escalation_role(),
            &new.digest(),
            &context.as_deref(),
            &call.map(|call| &call.tool),
            &arguments.as_deref(),
            &call.map(|call| call.tool_id),
            &new.escalation_assignee(),
            &form.as_deref(),
            &new.earlier.as_ref().map(|earlier| json!(earlier)),
        ],
    )?;
    if written != 1 {
        return Err(Error::internal("an approval was not opened"));
    }
    let Some(named) = &new.assigned_to else {
        return Ok(());
    };
    let approval = (lease.tenant_id(), opening.approval_id);
    assign_named(sql, approval, named, opening.needs_role, now)
}

/// Assigns an approval that this transaction has opened to the person whom its definition names. A definition stays while people
/// come and go: if the person is not active or, with `needs_role`, lacks the role, the approval is nobody's, and an event of the
/// run says so.
pub fn assign_named(
    sql: &mut impl Sql,
    (tenant_id, approval_id): (Uuid, Uuid),
    text: &str,
    needs_role: bool,
    now: OffsetDateTime,
) -> Result<()> {
    let (user_id, email) = match Named::of(text) {
        Some(Named::Id(user_id)) => (Some(user_id), None),
        Some(Named::Email(email)) => (None, Some(email_key(&email))),
        None => (None, None),
    };
    sql.execute(
        sql!("approvals/assign_named"),
        &[
            &tenant_id,
            &approval_id,
            &user_id,
            &email,
            &needs_role,
            &now,
        ],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn asks(source: ApprovalSource, context: Value, call: Option<(&str, Value)>) -> NewApproval {
        NewApproval {
            source,
            required_role: "standard".to_owned(),
            title: "Pay a refund".to_owned(),
            expires_after: LONGEST,
            escalation: None,
            assigned_to: None,
            form: None,
            earlier: None,
            context: Some(context),
            call: call.map(|(tool, arguments)| AskedCall {
                tool_id: Uuid::nil(),
                tool: tool.to_owned(),
                arguments,
            }),
        }
    }

    /// A decision names the digest of what was read, so another subject has another one.
    #[test]
    fn a_digest_is_that_of_one_subject() {
        let tool = ApprovalSource::Tool;
        let pay = |amount: Value| Some(("pay", amount));
        let one = asks(tool, json!({"order": "A-17"}), pay(json!({"amount": 50})));
        let same = asks(tool, json!({"order": "A-17"}), pay(json!({"amount": 50})));
        assert_eq!(one.digest(), same.digest());
        assert_eq!(one.digest().len(), 32);
        let context = json!({"order": "A-17", "advice": null});
        let swapped = json!({"advice": null, "order": "A-17"});
        let others = [
            asks(
                ApprovalSource::Flow,
                json!({"order": "A-17"}),
                pay(json!({"amount": 50})),
            ),
            asks(tool, json!({"order": "A-18"}), pay(json!({"amount": 50}))),
            asks(
                tool,
                json!({"order": "A-17"}),
                Some(("refund", json!({"amount": 50}))),
            ),
            asks(tool, json!({"order": "A-17"}), pay(json!({"amount": 51}))),
            asks(tool, json!({"order": "A-17"}), pay(json!({"amount": "50"}))),
            asks(tool, json!({"order": "A-17"}), None),
            // The order of fields is what the reviewer reads, too.
            asks(tool, context, pay(json!({"amount": 50}))),
            asks(tool, swapped, pay(json!({"amount": 50}))),
            NewApproval {
                earlier: Some(EarlierCall {
                    approval_id: None,
                    is_edited: false,
                }),
                ..asks(tool, json!({"order": "A-17"}), pay(json!({"amount": 50})))
            },
            NewApproval {
                form: Some(json!({"type": "object"})),
                ..asks(tool, json!({"order": "A-17"}), pay(json!({"amount": 50})))
            },
        ];
        let all = others.iter().chain([&one]);
        let digests: BTreeSet<Vec<u8>> = all.map(NewApproval::digest).collect();
        assert_eq!(digests.len(), others.len() + 1);
    }
}
