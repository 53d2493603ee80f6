//! Identifiers that are none, that are another tenant's, or that mean something to OpenFGA: in every
//! path parameter of every route and in every field of every body that names something. The answer
//! is a clear refusal, and OpenFGA holds nothing but canonical ids of the tenant afterwards.

use crate::harness::openfga::OpenFga;
use crate::harness::{Answer, Client};
use crate::sweep::requests;
use crate::sweep::rows::Rows;
use crate::sweep::world::World;
use agent_runtime::http::route::Route;
use agent_runtime::server;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use uuid::Uuid;

/// Texts that name nothing.
fn nothing(world: &World) -> Vec<String> {
    let id = world.id("projectId");
    let mut texts: Vec<String> = [
        "*",
        "user:*",
        "#",
        "@",
        "%",
        "%2e%2e",
        "..",
        ".",
        "a:b",
        "team:x#member",
        "\u{1}",
        "\u{7f}",
        "a\nb",
        "a\rb",
        "a\tb",
        "\0",
        "a\0",
        "\u{202e}x\u{2066}",
        "\u{feff}",
        "null",
        "-1",
        "0",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([
        "a".repeat(10_240),
        "é".repeat(2_000),
        Uuid::nil().to_string(),
        Uuid::max().to_string(),
        format!("{id} "),
        format!("{id}#member"),
        format!("{id}:*"),
        format!("{id}@{id}"),
        format!("project:{id}"),
        format!("{id}\0"),
        world.other_tenant_id.to_string(),
        world.user("other").to_string(),
    ]);
    texts
}

/// Other writings of an id, and whether they name it.
fn written_otherwise(id: &str) -> Vec<(String, bool)> {
    vec![
        (id.to_uppercase(), true),
        (id.replace('-', ""), false),
        (format!("{{{id}}}"), false),
        (format!("urn:uuid:{id}"), false),
    ]
}

fn is_id(name: &str) -> bool {
    // What a provider calls this service is an id of the provider.
    name.ends_with("Id") && name != "clientId"
}

/// It has the form of a reviewer's role, which is any short word.
fn is_word(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_part) && text.len() <= 40 && text.chars().all(|c| is_part(c) || c == '-')
}

/// Any such text is a role, which a reviewer need not hold for it to be taken away, or may be what a
/// secret or its environment is called.
fn names_something(parameter: &str, text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match parameter {
        "role" => is_word(text),
        // The page says that there is none. No parameter has a NUL.
        "*page" => !text.contains('\0'),
        "name" => {
            let is_whole = text.len() <= 128 && text.chars().all(is_letter);
            is_whole && !text.starts_with(|c: char| c.is_ascii_digit())
        }
        "environment" => {
            let is_rest = |c: char| is_letter(c) || c == '.' || c == '-';
            let is_whole = text.len() <= 100 && text.chars().all(is_rest);
            is_whole && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        }
        _ => false,
    }
}

/// It is a refusal of the client's, in the form of section 7; of a page that a browser opens, the way to the page that says it.
fn refused(answer: &Answer) -> Result<(), String> {
    let page = answer.header("location").unwrap_or_default();
    if answer.status == 303 && page.starts_with("/console/sign-in?problem=") {
        return Ok(());
    }
    if !(400..500).contains(&answer.status) {
        return Err(format!("{} {:.200}", answer.status, answer.text));
    }
    let body: Option<Value> = serde_json::from_str(&answer.text).ok();
    let error = body.unwrap_or_default()["error"].clone();
    let whole = error["code"].is_string() && error["message"].is_string();
    match whole && answer.text.len() < 2_000 {
        true => Ok(()),
        false => Err(format!(
            "no clear error: {} {:.200}",
            answer.status, answer.text
        )),
    }
}

struct Trial {
    world: World,
    rows: Rows,
    tried: usize,
    faults: Vec<String>,
}

impl Trial {
    fn start(enforced: bool) -> Self {
        let world = World::start(enforced);
        let rows = Rows::read(&mut world.database());
        Self {
            world,
            rows,
            tried: 0,
            faults: Vec::new(),
        }
    }

    /// Sends as the tenant's admin, who is refused nothing else. `is_named`: another writing of an id
    /// may be taken, as the same id.
    fn send(&mut self, route: &Route, path: &str, body: Option<&Value>, is_named: bool) {
        self.tried += 1;
        let body = body.map(Value::to_string);
        let shown: String = format!("{path} {body:?}").chars().take(160).collect();
        let client = self.world.client("admin");
        let answer = client.send(route.method.text(), path, body, &[]);
        let verdict = match is_named && answer.status < 300 {
            true => Ok(()),
            false => refused(&answer),
        };
        if let Err(fault) = verdict {
            let (method, path) = (route.method.text(), route.path);
            self.faults
                .push(format!("{method} {path} as {shown}: {fault}"));
        }
        if answer.status >= 300 || route.method.text() == "GET" {
            return;
        }
        requests::await_end(&self.world, route, &answer);
        let mut database = self.world.database();
        let after = Rows::read(&mut database);
        self.rows.restore(&mut database, &after);
    }

    fn path_parameters(&mut self, route: &Route) {
        for parameter in requests::parameters(route.path) {
            let right = requests::value(&self.world, route, parameter);
            let other = |text: &str| {
                let text = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
                let one = route.path.replace(&format!("{{{parameter}}}"), &text);
                requests::parameters(route.path).fold(one, |path, name| {
                    let value = requests::value(&self.world, route, name);
                    path.replace(&format!("{{{name}}}"), &value)
                })
            };
            let mut paths: Vec<(String, bool)> = nothing(&self.world)
                .iter()
                .map(|text| (other(text), names_something(parameter, text)))
                .collect();
            // The console's own address.
            paths.push((other(""), parameter == "*page"));
            let raw = other("*").replace("%2A", "*:@");
            paths.push((raw, names_something(parameter, "*:@")));
            if is_id(parameter) {
                let same = written_otherwise(&right);
                paths.extend(same.iter().map(|(text, is_named)| (other(text), *is_named)));
            }
            let body = requests::body(&self.world, route);
            for (path, is_named) in paths {
                self.send(route, &path, body.as_ref(), is_named);
            }
        }
    }

    fn body_fields(&mut self, route: &Route) {
        let Some(body) = requests::body(&self.world, route) else {
            return;
        };
        let path = requests::path(&self.world, route);
        for unknown in ["a".repeat(10_240), "\u{202e}".to_owned(), "a\0".to_owned()] {
            let mut other = body.clone();
            other[unknown] = json!(1);
            self.send(route, &path, Some(&other), false);
        }
        for (field, value) in body.as_object().unwrap() {
            let is_list = field.ends_with("Ids");
            let names = is_id(field)
                || is_list
                || ["role", "tenantRole", "version", "code"].contains(&field.as_str());
            if !names {
                continue;
            }
            let right = value.as_str().or_else(|| value[0].as_str());
            let mut values: Vec<(Value, bool)> = nothing(&self.world)
                .into_iter()
                .chain([String::new()])
                .map(|text| (json!(text), false))
                .collect();
            values.extend(
                [json!(null), json!(7), json!({}), json!([[]])].map(|value| (value, false)),
            );
            let same = right
                .filter(|_| is_id(field) || is_list)
                .map(written_otherwise);
            values.extend(
                same.unwrap_or_default()
                    .iter()
                    .map(|(text, is_named)| (json!(text), *is_named)),
            );
            for (value, is_named) in values {
                let mut other = body.clone();
                // A null role or version is one that is left out, where that is allowed.
                let is_role = route.path == "/v1/reviewers" && value.as_str().is_some_and(is_word);
                let is_named = is_named || value.is_null() || is_role;
                other[field] = if is_list { json!([value]) } else { value };
                self.send(route, &path, Some(&other), is_named);
            }
        }
    }
}

/// Every tuple of a tenant's store, as `user relation object`.
pub(crate) fn tuples(tenant_id: Uuid) -> BTreeSet<(String, String, String)> {
    let openfga = Client::new(OpenFga::shared().address(), None);
    let store = format!("/stores?name=tenant-{tenant_id}");
    let mut stores = openfga.get(&store).expect(200);
    let mut stores = stores["stores"].as_array_mut().unwrap().clone();
    // A version that does not know the filter gives every store.
    stores.retain(|store| store["name"] == json!(format!("tenant-{tenant_id}")));
    assert_eq!(stores.len(), 1, "{stores:?}");
    let read = format!("/stores/{}/read", stores[0]["id"].as_str().unwrap());
    let (mut all, mut token) = (BTreeSet::new(), String::new());
    loop {
        let body = json!({"page_size": 100, "continuation_token": token});
        let page = openfga.post(&read, &body).expect(200);
        for tuple in page["tuples"].as_array().unwrap() {
            let text = |name: &str| tuple["key"][name].as_str().unwrap().to_owned();
            all.insert((text("user"), text("relation"), text("object")));
        }
        token = page["continuation_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if token.is_empty() {
            return all;
        }
    }
}

/// `<type>:<id>`, the id written as we write it; a set of a team's members, too.
fn is_canonical(text: &str, types: &[&str], own: &BTreeSet<String>) -> bool {
    let text = text.strip_suffix("#member").unwrap_or(text);
    let Some((kind, id)) = text.split_once(':') else {
        return false;
    };
    let parsed: Option<Uuid> = id.parse().ok();
    types.contains(&kind)
        && parsed.is_some_and(|parsed| parsed.to_string() == id)
        && own.contains(id)
}

/// The ids of everything that the tenant has a role on or for.
fn own_ids(world: &World) -> BTreeSet<String> {
    let rows = world.database().query(
        "select user_id from users where tenant_id = $1 union all
         select project_id from projects where tenant_id = $1 union all
         select team_id from teams where tenant_id = $1 union all
         select org_id from orgs where tenant_id = $1 union all select $1",
        &[&world.tenant_id],
    );
    let ids = rows.unwrap();
    ids.iter()
        .map(|row| row.get::<_, Uuid>(0).to_string())
        .collect()
}

#[test]
fn what_is_no_identifier_is_refused_and_never_told_to_openfga() {
    let mut trial = Trial::start(true);
    let mounted = server::table(true, true);
    for route in mounted.routes() {
        trial.path_parameters(route);
        trial.body_fields(route);
    }
    assert!(trial.tried > 1_500, "{} tried", trial.tried);
    let world = &trial.world;
    // A check tells what is untold, so this is all of it.
    world.client("admin").get("/v1/projects").expect(200);
    let own = own_ids(world);
    let types = ["user", "team", "org", "tenant", "project"];
    for (user, relation, object) in tuples(world.tenant_id) {
        let both = [&user, &object].map(|text| is_canonical(text, &types, &own));
        // What was made and put back is told at its next check, which never comes.
        let is_put_back = !own.contains(object.split_once(':').unwrap().1);
        if both != [true, true] && !is_put_back {
            trial
                .faults
                .push(format!("OpenFGA holds {user} {relation} {object}"));
        }
    }
    let strange = world.database().query(
        "select distinct resource from audit_decisions
         where resource !~ '^[a-z-]+:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'",
        &[],
    );
    for row in strange.unwrap() {
        trial
            .faults
            .push(format!("recorded: {}", row.get::<_, String>(0)));
    }
    assert!(
        trial.faults.is_empty(),
        "{} of {}:\n{}",
        trial.faults.len(),
        trial.tried,
        trial.faults.join("\n")
    );
}
