//! A call needs the use of each secret that its tool names, at each attempt.

use super::{KEY, Turns, bearer, put, start, tool};
use crate::harness::{App, ToolAnswer, ToolServer, made};
use serde_json::{Value, json};

const ALL: &str = "/v1/secret-uses";

#[track_caller]
fn uses(app: &App) -> Vec<Value> {
    let list = app.get(&format!("{ALL}?order=asc")).expect(200);
    list["data"].as_array().unwrap().clone()
}

#[track_caller]
fn delete_all(app: &App) {
    for of_secret in uses(app) {
        app.delete(&format!("{ALL}/{}", made::id(&of_secret)))
            .expect(204);
    }
}

fn target(server: &ToolServer) -> String {
    let url = server.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    format!("origin:{scheme}://{}", rest.split('/').next().unwrap())
}

fn refusal(name: &str, server: &ToolServer) -> String {
    let origin = target(server).replace("origin:", "");
    format!(
        "The tool could not be called: The secret {name} may not be sent to {origin} from this project. A tenant admin can allow it."
    )
}

#[test]
fn a_tool_that_a_tenant_admin_registers_brings_its_uses() {
    let (app, _) = start();
    let project = app.maker().project();
    let mut named = bearer();
    let more = [("X-Other", "OTHER"), ("X-Again", "KEY")];
    let more = more.map(|(name, secret)| json!({"name": name, "secret": secret}));
    named["headers"].as_array_mut().unwrap().extend(more);
    named["signingSecret"] = json!("SIGNING");
    let url = "http://127.0.0.1:9/path?query";
    app.post("/v1/tools", &tool(project, url, &named))
        .expect(201);
    let of = |of_secret: &Value| {
        let text = |key: &str| of_secret[key].as_str().unwrap().to_owned();
        (text("name"), text("target"), text("projectId"))
    };
    let mut found: Vec<_> = uses(&app).iter().map(of).collect();
    found.sort();
    let expected = ["KEY", "OTHER", "SIGNING"].map(|name| {
        (
            name.to_owned(),
            "origin:http://127.0.0.1:9".to_owned(),
            project.to_string(),
        )
    });
    assert_eq!(found, expected);
    // The next one needs no more, and one whose registration is refused writes nothing.
    named["name"] = json!("second");
    app.post("/v1/tools", &tool(project, url, &named))
        .expect(201);
    app.post("/v1/tools", &tool(project, "http://127.0.0.1:10/", &named))
        .expect_error(409, "already-exists");
    assert_eq!(uses(&app).len(), 3);
    // Uses stay when the tools are gone.
    let tools = app.get("/v1/tools").expect(200)["data"].clone();
    for one in tools.as_array().unwrap() {
        app.delete(&format!("/v1/tools/{}", made::id(one)))
            .expect(204);
    }
    assert_eq!(uses(&app).len(), 3);
}

#[test]
fn a_use_that_is_deleted_stops_the_next_call_of_a_run_under_way() {
    let (app, lines) = start();
    put(&app, "KEY", KEY);
    let admin = app.with_token(Some(app.token()));
    let server = ToolServer::start(move |_, before| {
        if before == 0 {
            let list = admin.get(ALL).expect(200);
            let of_secret = &list["data"][0];
            admin
                .delete(&format!("{ALL}/{}", made::id(of_secret)))
                .expect(204);
        }
        ToolAnswer::ok("Here.")
    });
    let turns = Turns::of(&app, &server, 2, &bearer());
    let turn = turns.take(&app);
    assert_eq!(turn.results, ["Here.".to_owned(), refusal("KEY", &server)]);
    assert_eq!(server.asked().len(), 1, "nothing was sent");
    assert!(!lines.with("A tool's secrets cannot be used").is_empty());
    // It is journaled.
    let steps = app.get(&format!("/v1/runs/{}/steps", turn.id)).expect(200);
    assert!(steps.to_string().contains("may not be sent to"), "{steps}");
    // A use for every project lets it go on.
    let again = json!({"name": "KEY", "target": target(&server)});
    app.post(ALL, &again).expect(201);
    assert_eq!(turns.take(&app).results, ["Here.", "Here."]);
}

/// The tool may be called again, and is not once its use is gone.
#[test]
fn a_use_that_is_deleted_between_two_attempts_stops_the_second() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    let admin = app.with_token(Some(app.token()));
    let server = ToolServer::start(move |_, _| {
        for of_secret in admin.get(ALL).expect(200)["data"].as_array().unwrap() {
            let one = format!("{ALL}/{}", made::id(of_secret));
            admin.delete(&one).expect(204);
        }
        ToolAnswer::Cut
    });
    let mut more = bearer();
    more["idempotent"] = json!(true);
    let turn = Turns::of(&app, &server, 1, &more).take(&app);
    assert_eq!(server.asked().len(), 1);
    let result = &turn.results[0];
    assert!(result.contains("may not be sent to"), "{result}");
}

#[test]
fn a_use_is_of_its_origin_its_project_and_its_name() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let turns = Turns::of(&app, &server, 1, &bearer());
    delete_all(&app);
    let another = app.maker().project();
    let own = target(&server);
    for wrong in [
        json!({"name": "KEY", "target": own, "projectId": another}),
        json!({"name": "OTHER", "target": own}),
        json!({"name": "key", "target": own}),
        json!({"name": "KEY", "target": format!("{own}0")}),
        json!({"name": "KEY", "target": own.replace("http:", "https:")}),
        json!({"name": "KEY", "target": own.replace("127.0.0.1", "localhost")}),
    ] {
        // A port of six digits is none.
        let made = app.post(ALL, &wrong);
        assert!([201, 400].contains(&made.status), "{made:?}");
        assert_eq!(
            turns.take(&app).results,
            [refusal("KEY", &server)],
            "{wrong}"
        );
    }
    assert!(server.asked().is_empty());
    app.post(ALL, &json!({"name": "KEY", "target": own}))
        .expect(201);
    assert_eq!(turns.take(&app).results, ["Here."]);
}

#[test]
fn the_secret_that_signs_needs_a_use_too() {
    let (app, _) = start();
    put(&app, "KEY", KEY);
    put(&app, "SIGNING", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Here."));
    let mut more = bearer();
    more["signingSecret"] = json!("SIGNING");
    let turns = Turns::of(&app, &server, 1, &more);
    let signing = uses(&app).into_iter().find(|one| one["name"] == "SIGNING");
    app.delete(&format!("{ALL}/{}", made::id(&signing.unwrap())))
        .expect(204);
    assert_eq!(turns.take(&app).results, [refusal("SIGNING", &server)]);
    assert!(server.asked().is_empty());
}
