//! What a person calls an agent, a tool or a project: its name or its id.
//!
//! A name that several have is refused, with the id of each: nobody guesses which one is meant. An id is taken as it is;
//! the server says if there is none.

use super::client::{Client, id_of};
use super::display::shortened;
use super::{Failure, Outcome, terminal};
use serde_json::Value;
use std::collections::HashMap;
use uuid::Uuid;

/// How many of several with one name are listed.
const LISTED_MOST: usize = 5;

/// The id of the agent with this id or name, in this project or in any.
pub(super) fn agent(client: &mut Client, named: &str, project: Option<&str>) -> Outcome<String> {
    in_project(client, "agent", named, project)
}

/// The id of the tool with this id or name, in this project or in any.
pub(super) fn tool(client: &mut Client, named: &str, project: Option<&str>) -> Outcome<String> {
    in_project(client, "tool", named, project)
}

fn in_project(
    client: &mut Client,
    kind: &str,
    named: &str,
    project: Option<&str>,
) -> Outcome<String> {
    if is_id(named) {
        return Ok(named.to_owned());
    }
    let mut path = format!("/v1/{kind}s");
    if let Some(project) = project {
        path += &format!("?projectId={}", self::project(client, project)?);
    }
    let found = client.all(&path, |one| one["name"] == named)?;
    one_of(kind, named, &found, |one| {
        let project = names_of(client, "projects", [&one["projectId"]]);
        let project = project.values().next().cloned();
        format!(" in project {}", project.unwrap_or_default())
    })
}

/// The id of the project with this id or name.
pub(super) fn project(client: &mut Client, named: &str) -> Outcome<String> {
    if is_id(named) {
        return Ok(named.to_owned());
    }
    let found = client.all("/v1/projects", |project| project["name"] == named)?;
    one_of("project", named, &found, |_| String::new())
}

/// The id of the model provider with this id or name.
pub(super) fn model_provider(client: &mut Client, named: &str) -> Outcome<String> {
    if is_id(named) {
        return Ok(named.to_owned());
    }
    let found = client.all("/v1/model-providers", |provider| provider["name"] == named)?;
    one_of("model-provider", named, &found, |_| String::new())
}

pub(super) fn is_id(named: &str) -> bool {
    named.parse::<Uuid>().is_ok()
}

/// An id as an argument of a command.
pub(super) fn id(text: &str) -> Result<Uuid, String> {
    let expected = "expected an id, such as 0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1; the command that lists shows it";
    text.parse().map_err(|_| expected.to_owned())
}

/// The id of a request as an argument of a command: as errors and logs have it, or the UUID in it.
pub(super) fn request(text: &str) -> Result<Uuid, String> {
    let expected = "expected the id of a request, such as req-0192f0c1-2d3e-7f40-8a5b-6c7d8e9fa0b1; each error has it";
    let id = text.strip_prefix("req-").unwrap_or(text);
    id.parse().map_err(|_| expected.to_owned())
}

fn one_of(
    kind: &str,
    named: &str,
    found: &[Value],
    mut place: impl FnMut(&Value) -> String,
) -> Outcome<String> {
    match found {
        [one] => id_of(one),
        [] => {
            let list = match kind {
                "project" => "GET /v1/projects".to_owned(),
                _ => format!("`agent-runtime {kind}s`"),
            };
            // What a flow is called is `namespace.name`.
            let hint = match kind == "agent" && named.contains('.') {
                true => format!(
                    " If it is a flow: {0} run --flow {named}, or {0} runs --flow {named} for the ids of its runs.",
                    terminal::program()
                ),
                false => String::new(),
            };
            Err(Failure::new(format!(
                "There is no {} named {named} here. {list} lists them.{hint}",
                kind.replace('-', " ")
            )))
        }
        several => {
            let noun = kind.replace('-', " ");
            let mut text = format!("There are {} {noun}s named {named}:", several.len());
            for one in several.iter().take(LISTED_MOST) {
                text += &format!("\n  {}{}", id_of(one)?, place(one));
            }
            if several.len() > LISTED_MOST {
                text += "\n  …";
            }
            let way = match kind {
                "project" | "model-provider" => "Name one by its id.",
                _ => "Name one by its id, or name its project with --project.",
            };
            Err(Failure::usage(format!("{text}\n{way}")))
        }
    }
}

/// The names of these objects of a noun, by id. What cannot be read is called by its id.
pub(super) fn names_of<'v>(
    client: &mut Client,
    noun: &str,
    ids: impl IntoIterator<Item = &'v Value>,
) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for id in ids.into_iter().filter_map(Value::as_str) {
        if !names.contains_key(id) {
            let read = client.get(&format!("/v1/{noun}/{id}"));
            let name = read
                .ok()
                .and_then(|one| one["name"].as_str().map(shortened));
            names.insert(id.to_owned(), name.unwrap_or_else(|| id.to_owned()));
        }
    }
    names
}
