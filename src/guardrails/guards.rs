//! The checks that apply to a run, in the order in which they judge: the tenant's, the project's, the agent version's own.

use super::authored::Guardrail;
use super::judge::{Action, Compiled, OnBlock, Subject};
use super::judged_text::Text;
use crate::store::policies::{Standing, Streaming};
use crate::store::run_checks::{CheckOrigin, Made, OnError, Point, Verdict};
use crate::store::tool_approvals::ToolApproval;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Lists of checks that are kept compiled, at most.
const KEPT_MOST: usize = 256;

/// Checks of one origin as they are stored.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// Whose they are.
    pub origin: CheckOrigin,
    /// The version of the policy; none: they are part of something that never changes.
    pub version: Option<i32>,
    /// The list.
    pub guardrails: &'a Value,
    /// When readers see text.
    pub streaming: Streaming,
}

impl<'a> Policy<'a> {
    /// Those of an agent's version, of a task of a flow, or given to be tried.
    pub fn own(guardrails: &'a Value, streaming: Streaming) -> Self {
        Self {
            origin: CheckOrigin::Agent,
            version: None,
            guardrails,
            streaming,
        }
    }

    /// Those of the policies that stand, and then these.
    pub fn all(standing: &'a [Standing], own: Self) -> Vec<Self> {
        let standing = standing.iter().map(|policy| Self {
            origin: policy.origin,
            version: Some(policy.version),
            guardrails: &policy.guardrails,
            streaming: policy.streaming,
        });
        standing.chain([own]).collect()
    }
}

/// The checks that apply, ready to judge.
#[derive(Debug, Default)]
pub struct Guards {
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
    origin: CheckOrigin,
    version: Option<i32>,
    streaming: Streaming,
    checks: Arc<Vec<Compiled>>,
}

/// What was blocked, for whoever goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// The check.
    pub name: String,
    /// What becomes of it.
    pub on_block: OnBlock,
    /// What is answered in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// How often the model is asked again.
    #[serde(default)]
    pub retries: u8,
}

/// What the checks of a text came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Each check that was made, in order.
    pub made: Vec<Made>,
    /// The text that goes on, where it is another one.
    pub text: Option<String>,
    /// It goes no further.
    pub blocked: Option<Blocked>,
    /// A reviewer decides, and is asked this.
    pub approval: Option<ToolApproval>,
}

impl Outcome {
    /// Whether the text goes on as it was.
    pub fn is_as_it_was(&self) -> bool {
        self.blocked.is_none() && self.text.is_none()
    }
}

impl Guards {
    /// Reads the checks that apply, in this order.
    pub fn new(compiled: &Cache, policies: &[Policy<'_>]) -> Self {
        let group = |policy: &Policy<'_>| Group {
            origin: policy.origin,
            version: policy.version,
            streaming: policy.streaming,
            checks: compiled.of(policy.guardrails),
        };
        Self {
            groups: policies.iter().map(group).collect(),
        }
    }

    /// Whether any check stands at this point.
    pub fn has(&self, point: Point) -> bool {
        let mut checks = self.groups.iter().flat_map(|group| group.checks.iter());
        checks.any(|check| check.at.contains(&point))
    }

    /// Whether text of the model is held back until its verdict. Each origin decides for its own checks.
    pub fn holds_text(&self) -> bool {
        self.groups.iter().any(|group| {
            let mut checks = group.checks.iter();
            group.streaming == Streaming::Held
                && checks.any(|check| check.at.contains(&Point::Output))
        })
    }

    /// Has every check that applies judge a text, each what the one before left, until one blocks it.
    pub fn judge(&self, subject: &Subject<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let mut text = Text::from(subject.text);
        for group in &self.groups {
            let checks = group.checks.iter();
            for check in checks.filter(|check| check.applies(subject.point, subject.tool)) {
                group.judge(check, (subject.point, &mut text), &mut outcome);
                if outcome.blocked.is_some() {
                    outcome.approval = None;
                    return outcome;
                }
            }
        }
        outcome.text = text.changed();
        outcome
    }
}

impl Group {
    fn judge(
        &self,
        check: &Compiled,
        (point, text): (Point, &mut Text<'_>),
        outcome: &mut Outcome,
    ) {
        let began = Instant::now();
        let judged = check.judge(text);
        let mut made = Made {
            point,
            name: check.name.clone(),
            evaluator: check.evaluator.clone(),
            origin: self.origin,
            policy_version: self.version,
            verdict: Verdict::Allow,
            code: None,
            reason: None,
            on_error: None,
            duration_us: i64::try_from(began.elapsed().as_micros()).unwrap_or(i64::MAX),
            digest: text.digest().to_owned(),
        };
        match judged {
            Ok(judged) => {
                made.code = judged.kinds.first().map(|kind| (*kind).to_owned());
                made.reason = (!judged.kinds.is_empty())
                    .then(|| format!("Found: {}.", judged.kinds.join(", ")));
                match judged.action {
                    None => {}
                    Some(Action::Block) => {
                        made.verdict = Verdict::Block;
                        outcome.blocked = Some(check.blocked(point));
                    }
                    Some(Action::Redact) => {
                        made.verdict = Verdict::Redact;
                        if let Some(changed) = judged.text {
                            *text = changed;
                        }
                    }
                    Some(Action::Approve) => {
                        made.verdict = Verdict::Approve;
                        let asks = || check.approval.clone().unwrap_or_default();
                        outcome.approval.get_or_insert_with(asks);
                    }
                }
            }
            Err(why) => {
                made.verdict = Verdict::Failed;
                made.code = Some("failed".to_owned());
                made.reason = Some(why.to_owned());
                made.on_error = Some(check.on_error);
                if check.on_error == OnError::Block {
                    outcome.blocked = Some(check.blocked(point));
                }
            }
        }
        outcome.made.push(made);
    }
}

impl Compiled {
    /// Reads a check as it is stored.
    fn of_stored(stored: &Value) -> Self {
        let read = serde_json::from_value::<Guardrail>(stored.clone()).ok();
        let compiled = read.and_then(|guardrail| guardrail.compile().ok());
        compiled.unwrap_or_else(|| Self::unreadable(stored))
    }

    fn blocked(&self, point: Point) -> Blocked {
        let usual = match point {
            Point::Input | Point::Output => OnBlock::Fail,
            Point::ToolArguments | Point::ToolResult => OnBlock::Tell,
        };
        Blocked {
            name: self.name.clone(),
            on_block: self.on_block.unwrap_or(usual),
            answer: self.answer.clone(),
            retries: self.retries,
        }
    }
}

/// Lists of checks that were compiled, by what was written: compiling takes many times as long as judging.
#[derive(Default)]
pub struct Cache(Mutex<HashMap<String, Arc<Vec<Compiled>>>>);

impl Cache {
    fn of(&self, guardrails: &Value) -> Arc<Vec<Compiled>> {
        let stored = guardrails.as_array().map(Vec::as_slice).unwrap_or_default();
        if stored.is_empty() {
            return Arc::default();
        }
        let written = guardrails.to_string();
        let kept = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&written)
            .cloned();
        if let Some(kept) = kept {
            return kept;
        }
        let compiled = Arc::new(stored.iter().map(Compiled::of_stored).collect());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT_MOST {
            all.clear();
        }
        Arc::clone(all.entry(written).or_insert(compiled))
    }
}
