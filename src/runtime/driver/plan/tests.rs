//! A turn run against random scripts, with crashes at every point at which a process can die.

use super::*;
use crate::model::Kept;
use crate::runtime::journal::ModelResult;
use crate::runtime::progress::events::ToolCall;
use crate::runtime::turn::definition::{Definition, Limits};
use crate::store::steps::Prices;
use crate::store::tools::ToolDryRun;
use crate::store::turns::{HttpTarget, Target, Tool, Turn};
use crate::tools::Answer;
use proptest::prelude::*;
use std::collections::HashMap;
use time::OffsetDateTime;
use uuid::Uuid;

fn program(max_steps: u16) -> Program {
    let tool = |name: &str, idempotent| Tool {
        id: Uuid::nil(),
        name: name.to_owned(),
        description: String::new(),
        arguments_schema: json!({}),
        target: Target::Http(HttpTarget {
            url: "http://127.0.0.1:1/".to_owned(),
            timeout_ms: 1000,
            idempotent,
            dry_run: ToolDryRun::Simulate,
            headers: Vec::new(),
            signing_secret: None,
        }),
        approval: None,
    };
    Program::Turn(Box::new(Definition {
        turn: Turn {
            instructions: String::new(),
            model: "m".to_owned(),
            parameters: json!({}),
            limits: json!({}),
            output_schema: None,
            guardrails: json!([]),
            streaming: crate::guardrails::Streaming::Held,
            policies: Vec::new(),
            model_provider_id: Uuid::nil(),
            base_url: "http://127.0.0.1:1".to_owned(),
            api_key_name: None,
            api_key_secret: None,
            provider_options: json!({}),
            prices: Prices::default(),
            context_window: None,
            last_prompt: None,
            tools: vec![tool("safe", true), tool("once", false)],
            history: Vec::new(),
            past: Vec::new(),
            journal: Vec::new(),
            input: None,
            levels: 1,
        },
        limits: Limits {
            max_steps,
            ..Limits::default()
        },
        asked: Default::default(),
        is_dry_run: false,
        read_at: std::time::Instant::now(),
    }))
}

/// What comes next, which does not depend on the moment.
fn decide(journal: &[Step], program: &Program) -> Plan {
    let clocks = (OffsetDateTime::UNIX_EPOCH, DatabaseAhead::default());
    next(journal, program, clocks).plan
}

/// The journal as the database would hold it, and what was done outside.
#[derive(Default)]
struct World {
    journal: Vec<Step>,
    /// How often the effect of a step began, by (step, attempt).
    effects: HashMap<(i32, i32), u32>,
    lost: u32,
}

impl World {
    fn begin(&mut self, begun: Begun, lost_attempt: Option<i32>) {
        self.lost += u32::from(lost_attempt.is_some());
        let row = Step {
            step: begun.step,
            kind: begun.kind,
            name: begun.name,
            path: begun.path,
            status: StepStatus::Running,
            attempt: begun.attempt,
            failures: begun.failures,
            request: begun.request,
            result: None,
            started_at: OffsetDateTime::UNIX_EPOCH,
            completed_at: None,
        };
        match self.journal.last_mut() {
            Some(last) if last.step == row.step => {
                assert_ne!(
                    last.status,
                    StepStatus::Completed,
                    "a finished step was done again"
                );
                assert_eq!(last.attempt + 1, row.attempt);
                *last = row;
            }
            last => {
                assert_eq!(last.map_or(0, |last| last.step) + 1, row.step);
                self.journal.push(row);
            }
        }
    }

    fn perform(&mut self) {
        let step = self.journal.last().unwrap();
        let times = self.effects.entry((step.step, step.attempt)).or_default();
        *times += 1;
        assert_eq!(*times, 1, "one attempt, one call");
    }

    /// What the step answers: the model asks for the tools that the script gives it.
    fn commit(&mut self, tools: &[&str], fails: bool) {
        let step = self.journal.last_mut().unwrap();
        if fails {
            step.status = StepStatus::Failed;
            step.failures += 1;
            return;
        }
        step.status = StepStatus::Completed;
        step.result = Some(match step.kind {
            StepKind::Model => json!(ModelResult {
                text: format!("text of {}", step.step),
                tool_calls: tools
                    .iter()
                    .enumerate()
                    .map(|(n, name)| ToolCall {
                        id: n.to_string(),
                        name: (*name).to_owned(),
                        arguments: "{}".to_owned(),
                    })
                    .collect(),
                finish_reason: None,
                reasoning: String::new(),
                kept: Kept::default(),
                kept_for: None,
                is_refusal: false,
                prompt: None,
                checked: Default::default(),
            }),
            StepKind::Tool => json!(Answer::of("ok")),
            StepKind::Http
            | StepKind::Wait
            | StepKind::Child
            | StepKind::Approval
            | StepKind::Guardrail => {
                panic!("a turn has no such step")
            }
        });
    }
}

/// What happens at one turn of the wheel.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    Done,
    Fails,
    DiesBeforeTheRow,
    DiesBeforeTheEffect,
    DiesAfterTheEffect,
    DiesAfterTheResult,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        5 => Just(Fate::Done),
        1 => Just(Fate::Fails),
        1 => Just(Fate::DiesBeforeTheRow),
        1 => Just(Fate::DiesBeforeTheEffect),
        1 => Just(Fate::DiesAfterTheEffect),
        1 => Just(Fate::DiesAfterTheResult),
    ]
}

fn tools() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(
        prop_oneof![Just("safe"), Just("once"), Just("unknown")],
        0..3,
    )
}

proptest! {
    #[test]
    fn every_journal_ends_and_no_finished_step_runs_again(
        max_steps in 1..12_u16,
        script in proptest::collection::vec((fate(), tools()), 0..60),
    ) {
        let program = program(max_steps);
        let mut world = World::default();
        let mut script = script.into_iter();
        // Beyond its script the world is kind, so that a turn which does not end by itself shows.
        for _ in 0..200 {
            let decided = decide(&world.journal, &program);
            prop_assert_eq!(&decided, &decide(&world.journal, &program));
            let (fate, tools) = script.next().unwrap_or((Fate::Done, Vec::new()));
            let (begun, lost) = match decided {
                Plan::Begin { begun, lost_attempt, .. } => (begun, lost_attempt),
                Plan::Resume(_) => panic!("an effect goes on"),
                Plan::End(end) => return judge(&world, &end, max_steps),
            };
            if fate == Fate::DiesBeforeTheRow {
                continue;
            }
            world.begin(begun, lost);
            if fate == Fate::DiesBeforeTheEffect {
                continue;
            }
            world.perform();
            if fate != Fate::DiesAfterTheEffect {
                world.commit(&tools, fate == Fate::Fails);
            }
        }
        prop_assert!(false, "the turn did not end");
    }
}

fn judge(world: &World, end: &End, max_steps: u16) -> Result<(), TestCaseError> {
    let once_lost = world
        .journal
        .last()
        .is_some_and(|step| step.status == StepStatus::Running && step.name == "once");
    match end {
        End::Completed { .. } => {
            prop_assert!(!once_lost);
            let last = world.journal.last().unwrap();
            prop_assert_eq!(last.kind, StepKind::Model);
        }
        End::Failed { failure, .. } => prop_assert!(
            once_lost || world.journal.len() == usize::from(max_steps),
            "{}",
            failure.message
        ),
        End::Cancelled => prop_assert!(false, "nobody cancelled"),
    }
    // A tool that is not idempotent was called at most once for each call that did not fail.
    for step in world.journal.iter().filter(|step| step.name == "once") {
        let calls = world
            .effects
            .keys()
            .filter(|(number, _)| *number == step.step)
            .count();
        prop_assert!(calls <= 1 + usize::try_from(step.failures).unwrap());
    }
    Ok(())
}

#[test]
fn a_call_that_a_dry_run_simulates_goes_on_after_a_crash() {
    for (dry_run, is_again) in [(ToolDryRun::Simulate, true), (ToolDryRun::Call, false)] {
        let Program::Turn(mut definition) = program(8) else {
            panic!("a turn")
        };
        definition.is_dry_run = true;
        for tool in &mut definition.turn.tools {
            let Target::Http(http) = &mut tool.target else {
                panic!("an HTTP server")
            };
            http.dry_run = dry_run;
        }
        let program = Program::Turn(definition);
        let mut world = World::default();
        let begin = |world: &mut World| match decide(&world.journal, &program) {
            Plan::Begin {
                begun,
                lost_attempt,
                ..
            } => {
                world.begin(begun, lost_attempt);
                true
            }
            _ => false,
        };
        assert!(begin(&mut world));
        world.commit(&["once"], false);
        assert!(begin(&mut world), "the call");
        assert_eq!(begin(&mut world), is_again, "{dry_run:?}, after a crash");
    }
}

#[test]
fn a_process_that_dies_again_and_again_in_one_step_fails_the_run() {
    let program = program(4);
    let mut world = World::default();
    for _ in 0..=LOST_ATTEMPTS {
        match decide(&world.journal, &program) {
            Plan::Begin {
                begun,
                lost_attempt,
                ..
            } => world.begin(begun, lost_attempt),
            other => panic!("ended early: {other:?}"),
        }
    }
    let Plan::End(End::Failed { failure, .. }) = decide(&world.journal, &program) else {
        panic!("it goes on for ever");
    };
    assert!(failure.message.contains("stopped 51 times"), "{failure:?}");
    assert_eq!(world.lost, 50);
}
