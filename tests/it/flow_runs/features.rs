//! The features of the Open Workflow DSL 1.0, `features.jsonl`: each that is taken runs and gives what its line says, each
//! that is refused is refused by the sentence of its line.

use super::world::Flows;
use crate::runtime::world::{HttpServer, Process, World};
use agent_runtime::flows::definition::check;
use serde_json::{Value, json};

fn features() -> Vec<Value> {
    let lines = include_str!("features.jsonl").lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text<'v>(feature: &'v Value, field: &str) -> Option<&'v str> {
    feature.get(field).map(|value| value.as_str().unwrap())
}

/// Runs one feature, and compares its end with its line.
fn runs(world: &World, process: &Process, at: usize, feature: &Value) {
    let mut answers = Vec::new();
    for answer in feature["answers"].as_array().into_iter().flatten() {
        let body = answer[1].as_str().unwrap();
        answers.push((u16::try_from(answer[0].as_u64().unwrap()).unwrap(), body));
    }
    let server = HttpServer::start(&answers);
    for (name, tasks) in feature["flows"].as_object().into_iter().flatten() {
        world.flow(name, tasks.clone());
    }
    let tasks = feature["do"].to_string().replace("SERVER", &server.url(""));
    let name = format!("feature-{at}");
    let more = feature.get("more").cloned().unwrap_or(json!({}));
    world.whole_flow(&name, serde_json::from_str(&tasks).unwrap(), more);
    let run = world.ends(process, &name, feature["input"].clone());
    let said = format!("{} / {}", feature["feature"], feature["case"]);
    assert_eq!(
        run.failure_message.as_deref(),
        text(feature, "error"),
        "{said}"
    );
    if run.failure_message.is_none() {
        assert_eq!(world.output(run.run_id), feature["output"], "{said}");
    }
    assert!(server.is_spent(), "{said}: it asked less than it should");
}

#[test]
fn each_feature_of_the_language_that_is_taken_does_what_it_should() {
    let world = World::new();
    let process = world.process(3, true);
    for (at, feature) in features().iter().enumerate() {
        if feature.get("refused").is_none() {
            runs(&world, &process, at, feature);
        }
    }
}

#[test]
fn each_feature_of_the_language_that_is_not_taken_is_refused_by_its_sentence() {
    for feature in features() {
        let Some(sentence) = text(&feature, "refused") else {
            continue;
        };
        let mut definition = json!({
            "document": {"dsl": "1.0.3", "namespace": "test", "name": "refused", "version": "1.0.0"},
            "do": feature["do"],
        });
        let more = feature["more"].as_object().cloned().unwrap_or_default();
        definition.as_object_mut().unwrap().extend(more);
        let faults = check(&definition).unwrap_err();
        let said: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(said, [sentence], "{feature}");
    }
}
