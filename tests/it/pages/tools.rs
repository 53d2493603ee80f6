//! docs/tools.md. What the model is told when a call goes wrong is in `tool_calls`.

use crate::harness::page::{Page, shape};
use crate::harness::program::{Language, Program};
use crate::harness::{App, ToolAnswer, ToolServer, made, secrets::Keys};
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

const SECRETS: [&str; 3] = [
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd",
    "whsec_HRwbGhkYFxYVFBMSERAPDg0MCwoJCAcGBQQDAgEA",
];

/// The page's own tool takes calls of the service, while a secret takes the other one's place as well, and no others.
#[track_caller]
fn check_signed_tool(language: Language) {
    let page = Page::read("tools.md");
    let blocks = page.blocks("json");
    let mut tool: Value = serde_json::from_str(&blocks[0]).unwrap();
    let named: Value = serde_json::from_str(&blocks[2]).unwrap();
    let app = App::start_with(|options| {
        options.secrets = Keys::new().options();
        options.runs.environment = Some("local".to_owned());
    });
    let put = |name: &Value, value: &str| {
        let path = format!("/v1/secrets/local/{}", name.as_str().unwrap());
        let answer = app.put(&path, &json!({"value": value}));
        assert!(answer.status < 300, "{}", answer.text);
    };
    put(&named["headers"][0]["secret"], "a-key-of-an-api");
    put(&named["signingSecret"], SECRETS[0]);
    let directory = language.prepare("tools.md", "tool");
    // A tool never changes, so each program has one of its own.
    let answered = |program: &Program, tool: &mut Value| {
        let project = made::project(&app);
        tool["projectId"] = json!(project);
        tool["url"] = json!(program.url());
        let more = named.as_object().unwrap().clone();
        tool.as_object_mut().unwrap().extend(more);
        let made = app.post("/v1/tools", tool).expect(201);
        let call = ("order_status".to_owned(), json!({"orderId": "A-1001"}));
        let provider = Provider::start(Script {
            queue: vec![Step::new(Reply::ToolCalls(vec![call]))],
            then: Step::text("It is shipped."),
        })
        .unwrap();
        let maker = app.maker();
        let project = project.parse().unwrap();
        let agent = maker.agent_of(project, &provider.base_url(), |version| {
            version.tools = vec![made::id(&made).parse().unwrap()];
        });
        let run = app.finished(&app.start_turn(agent, "Where is A-1001?"));
        assert_eq!(run["status"], "completed", "{run}");
        let told = provider.requests()[1].body["messages"].clone();
        let told = told.as_array().unwrap().last().unwrap()["content"].clone();
        told.as_str().unwrap().to_owned()
    };
    let well = "Order A-1001 is on its way.";
    let first = Program::start(&directory, SECRETS[0]);
    assert_eq!(answered(&first, &mut tool), well);
    put(&named["signingSecret"], SECRETS[1]);
    let second = Program::start(&directory, SECRETS[1]);
    assert_eq!(answered(&first, &mut tool), well);
    assert_eq!(answered(&second, &mut tool), well);
    let other = Program::start(&directory, SECRETS[2]);
    let told = answered(&other, &mut tool);
    assert!(
        told.contains("status 401: The signature is not right."),
        "{told}"
    );
    let unsigned = crate::harness::Client::new(first.address(), None);
    let call = blocks[1].clone();
    assert_eq!(unsigned.send("POST", "/", Some(call), &[]).status, 401);
    for header in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        page.check_row(&format!("`{header}`"));
    }
}

#[test]
fn the_tool_in_python_takes_calls_of_the_service_alone() {
    check_signed_tool(Language::Python);
}

#[test]
fn the_tool_in_typescript_takes_calls_of_the_service_alone() {
    check_signed_tool(Language::TypeScript);
}
