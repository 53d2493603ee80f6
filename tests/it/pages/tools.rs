//! docs/tools.md. What the model is told when a call goes wrong is in `tool_calls`.

use crate::harness::page::{Page, shape};
use crate::harness::{App, ToolAnswer, ToolServer, made};
use agent_runtime::dev::provider::{Provider, Reply, Script, Step};
use serde_json::{Value, json};

#[test]
fn the_tool_of_the_page_is_registered_and_called_with_the_body_of_the_page() {
    let page = Page::read("tools.md");
    let blocks = page.blocks("json");
    let mut tool: Value = serde_json::from_str(&blocks[0]).unwrap();
    let body: Value = serde_json::from_str(&blocks[1]).unwrap();
    assert_eq!(body["tool"], tool["name"]);

    let app = App::start();
    let server = ToolServer::start(|_, _| ToolAnswer::ok("Shipped."));
    let project = made::project(&app);
    tool["projectId"] = json!(project);
    // As it stands, and then where something listens.
    let first = app.post("/v1/tools", &tool).expect(201);
    app.delete(&format!("/v1/tools/{}", made::id(&first)));
    tool["url"] = json!(server.url());
    let tool = app.post("/v1/tools", &tool).expect(201);

    let call = Step::new(Reply::ToolCalls(vec![(
        body["tool"].as_str().unwrap().to_owned(),
        body["arguments"].clone(),
    )]));
    let provider = Provider::start(Script {
        queue: vec![call],
        then: Step::text("It is shipped."),
    })
    .unwrap();
    let project = project.parse().unwrap();
    let agent = app
        .maker()
        .agent_of(project, &provider.base_url(), |version| {
            version.tools = vec![made::id(&tool).parse().unwrap()];
        });
    let run = app.finished(&app.start_turn(agent, "Where is A-1001?"));
    assert_eq!(run["status"], "completed", "{run}");

    let asked = server.asked().remove(0);
    assert_eq!(shape(&asked.body), shape(&body));
    assert_eq!(asked.body["step"], body["step"]);
    assert_eq!(asked.body["arguments"], body["arguments"]);
    for field in asked.body.as_object().unwrap().keys() {
        assert!(page.text.contains(&format!("`{field}`")), "{field}");
    }
    for header in ["Content-Type", "Idempotency-Key", "traceparent"] {
        page.check_row(&format!("`{header}`"));
        assert_ne!(asked.header(&header.to_lowercase()), "");
    }
    let key = format!("{}-2", run["id"].as_str().unwrap());
    assert_eq!(asked.header("idempotency-key"), key);
}
