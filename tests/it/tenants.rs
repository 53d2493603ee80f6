//! No tenant sees or touches another's: route by route, for an object of each kind.

use crate::harness::approvals::NewApproval;
use crate::harness::secrets::Keys;
use crate::harness::{Answer, App, Client, NewTool, decisions, eventually, made};
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::http::access::Rule;
use agent_runtime::http::route::Route;
use agent_runtime::server;
use serde_json::{Value, json};

/// What a tenant has, one of each kind, by the name of the path's parameter.
struct Objects(Value);

const SIGNING: &str = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz";

/// The id of a session that this client's key opens.
fn session_of(client: &Client) -> Value {
    let page = client.post_from_page("/v1/sign-in/token", &json!({"token": client.token()}));
    let me = client.browser(&page.session()).get("/v1/identity/me");
    me.expect(200)["credential"]["id"].clone()
}

/// An endpoint whose secret stands, and a delivery to it.
fn delivered(client: &Client) -> (String, String) {
    let receiver = json!({"url": "http://127.0.0.1:9/secret", "events": ["run.finished"],
            "secretRef": {"envName": "prod", "name": "SIGNING"}});
    let endpoint = client.post("/v1/webhook-endpoints", &receiver).expect(201);
    let endpoint = endpoint["endpointId"].as_str().unwrap().to_owned();
    let one = format!("/v1/webhook-endpoints/{endpoint}");
    let delivery = client.post(&format!("{one}/test"), &json!({})).expect(202);
    let delivery = delivery["id"].as_str().unwrap().to_owned();
    eventually("the first attempt to fail", || {
        let now = client
            .get(&format!("{one}/deliveries/{delivery}"))
            .expect(200);
        (now["attemptCount"] == json!(1)).then_some(())
    });
    (endpoint, delivery)
}

impl Objects {
    fn of(client: &Client, provider: &Provider) -> Self {
        let maker = client.maker();
        let project = maker.project();
        let model_provider = maker.provider(&provider.base_url(), None);
        let tool = maker.tool(project, &NewTool::new("tool", &provider.base_url()));
        let agent = maker.agent_of(project, &provider.base_url(), |_| {});
        let conversation = maker.conversation(agent, None);
        let body = json!({"agentId": agent, "message": "secret", "conversationId": conversation});
        let run = client.post("/v1/runs", &body).expect(202);
        let run = run["run"]["id"].as_str().unwrap().to_owned();
        client.finished(&run);
        let flow = json!({"projectId": project, "definition": definition("1.0.0")});
        let flow = made::id(&client.post("/v1/flows", &flow).expect(201));
        let token = client
            .post("/v1/tokens", &json!({"name": "second"}))
            .expect(201);
        let person =
            json!({"email": "a@b.example", "displayName": "secret", "tenantRole": "member"});
        let user = client.post("/v1/identity/users", &person).expect(201);
        let made =
            |path: &str| made::id(&client.post(path, &json!({"name": "secret"})).expect(201));
        let (account, org) = (made("/v1/service-accounts"), made("/v1/orgs"));
        for path in [&format!("/v1/orgs/{org}/admins"), "/v1/reviewers"] {
            let mut body = json!({"userId": user["id"]});
            if path.ends_with("reviewers") {
                body["role"] = json!("standard");
            }
            client.post(path, &body).expect(201);
        }
        let body = json!({"name": "secret", "slug": "secret"});
        let team = client.post("/v1/teams", &body).expect(201);
        let team = team["id"].clone();
        let grant = json!({"teamId": team, "role": "viewer"});
        client
            .post(&format!("/v1/projects/{project}/team-grants"), &grant)
            .expect(201);
        client
            .put("/v1/secrets/prod/SIGNING", &json!({"value": SIGNING}))
            .expect(201);
        let of_secret = json!({"name": "SIGNING", "target": "origin:https://secret.example"});
        let of_secret = client.post("/v1/secret-uses", &of_secret).expect(201);
        let policy = json!({"guardrails": [{"builtin": "pii", "name": "secret", "at": ["output"], "action": "block"}]});
        client
            .put(&format!("/v1/projects/{project}/policies"), &policy)
            .expect(200);
        client.put("/v1/policies", &policy).expect(200);
        let (endpoint, delivery) = delivered(client);
        Self(json!({
            "webhookEndpointId": endpoint,
            "webhookDeliveryId": delivery,
            "secretUseId": of_secret["id"],
            "projectId": project,
            "userId": user["id"],
            "serviceAccountId": account,
            "orgId": org,
            "role": "standard",
            "modelProviderId": model_provider,
            "toolId": tool,
            "agentId": agent,
            // Of a flow: `flowId` is what its author calls it.
            "id": flow,
            "conversationId": conversation,
            "runId": run,
            "tokenId": token["id"],
            "sessionId": session_of(client),
            "version": "1.0.0",
            "teamId": team,
        }))
    }

    /// Those of the app's own tenant, and beside what is written into the database: an approval, an access decision.
    fn with_written(mut self, app: &App) -> Self {
        let uuid = |name: &str| self.id(name).parse().unwrap();
        let approval = NewApproval {
            tenant_id: app.seeds.tenant_id,
            project_id: uuid("projectId"),
            run_id: uuid("runId"),
            requested_by: app.seeds.user_id,
            role: "standard",
            seconds: 3600,
        };
        let mut client = app.database.client();
        let approval_id = approval.insert(&mut client, &app.clock);
        self.0["approvalId"] = json!(approval_id);
        let provider =
            json!({"name": "secret", "issuer": "https://secret.example", "clientId": "secret"});
        let provider = app.post("/v1/identity-providers", &provider).expect(201);
        self.0["identityProviderId"] = json!(made::id(&provider));
        let identity = json!(app.clock.new_id());
        app.sql(&format!(
            "insert into identities (tenant_id, identity_id, identity_provider_id, subject, user_id, email_then, bound_at,
               last_used_at) values ('{}', {identity}, '{}', 'secret', '{}', 'a@b', now(), now())",
            app.seeds.tenant_id,
            self.id("identityProviderId"),
            self.id("userId"),
        ).replace('"', "'"));
        self.0["identityId"] = identity;
        let decision_id = decisions::insert(&mut client, &app.clock, app.seeds.tenant_id);
        self.0["decisionId"] = json!(decision_id);
        self
    }

    fn id(&self, parameter: &str) -> &str {
        let known = self.0[parameter].as_str();
        known.unwrap_or_else(|| panic!("say above what {parameter} is an id of"))
    }

    /// The route's path with these objects' ids.
    fn path(&self, route: &Route) -> String {
        let parts = route.path.split('/').map(|part| {
            match part
                .strip_prefix('{')
                .and_then(|part| part.strip_suffix('}'))
            {
                Some(parameter) => self.id(parameter).to_owned(),
                None => part.to_owned(),
            }
        });
        parts.collect::<Vec<_>>().join("/")
    }

    /// A body that a route takes, with these objects' ids.
    fn body(&self, route: &Route) -> Value {
        let id = |name: &str| self.id(name);
        match (route.method.text(), route.path) {
            ("POST", "/v1/runs") => json!({"agentId": id("agentId"), "message": "a"}),
            ("POST", "/v1/runs/{runId}/retry") => json!({}),
            ("POST", "/v1/tokens/public") => json!({"runIds": [id("runId")]}),
            ("POST", "/v1/agents") => json!({"projectId": id("projectId"), "name": "new"}),
            ("POST", "/v1/agents/{agentId}/versions") => {
                json!({"version": "9.0.0", "instructions": "", "model": "m",
                    "modelProviderId": id("modelProviderId")})
            }
            ("POST", "/v1/agents/{agentId}/promote" | "/v1/flows/{id}/promote") => {
                json!({"version": "1.0.0"})
            }
            ("POST", "/v1/flows" | "/v1/flows/validate") => {
                json!({"projectId": id("projectId"), "definition": definition("9.0.0")})
            }
            ("POST", "/v1/flows/{id}/versions") => json!({"definition": definition("9.0.0")}),
            ("PATCH", "/v1/flows/{id}") => json!({"title": "new"}),
            ("POST", "/v1/tools") => json!({"projectId": id("projectId"), "name": "new",
                "description": "", "argumentsSchema": {"type": "object"}, "url": "http://127.0.0.1:9/"}),
            ("POST", "/v1/conversations") => json!({"agentId": id("agentId")}),
            ("PATCH", "/v1/identity/users/{userId}") => json!({"tenantRole": "admin"}),
            ("POST", "/v1/teams") => json!({"name": "new", "slug": "new"}),
            ("POST", "/v1/projects/{projectId}/team-grants") => {
                json!({"teamId": id("teamId"), "role": "viewer"})
            }
            ("POST", "/v1/projects/{projectId}/memberships") => {
                json!({"userId": id("userId"), "role": "viewer"})
            }
            ("POST", "/v1/teams/{teamId}/memberships") => {
                json!({"userId": id("userId"), "role": "member"})
            }
            ("POST", "/v1/webhook-endpoints/{webhookEndpointId}/resend") => {
                json!({"failedSince": "2026-01-01T00:00:00Z"})
            }
            ("PUT", "/v1/projects/{projectId}/policies") => json!({"guardrails": []}),
            ("POST", "/v1/guardrails/try") => {
                json!({"projectId": id("projectId"), "point": "output", "text": "a"})
            }
            ("PATCH", path) if path.contains("/memberships/") => json!({"role": "admin"}),
            ("PATCH", path) if path.contains("/team-grants/") => json!({"role": "admin"}),
            ("PATCH", _) => json!({"name": "new"}),
            ("POST", "/v1/projects" | "/v1/tokens" | "/v1/service-accounts" | "/v1/orgs") => {
                json!({"name": "new"})
            }
            (
                "POST",
                "/v1/service-accounts/{serviceAccountId}/tokens" | "/v1/orgs/{orgId}/projects",
            ) => json!({"name": "new"}),
            ("POST", "/v1/orgs/{orgId}/admins") => json!({"userId": id("userId")}),
            ("POST", "/v1/reviewers") => json!({"userId": id("userId"), "role": "strict"}),
            ("POST", "/v1/approvals/{approvalId}/decide") => json!({"decision": "approve"}),
            ("POST", "/v1/approvals/{approvalId}/assign") => json!({"userId": id("userId")}),
            ("POST", "/v1/approvals/{approvalId}/escalate") => json!({"requiredRole": "board"}),
            ("POST", "/v1/model-providers") => json!({"name": "new",
                "baseUrl": "http://127.0.0.1:9/v1", "models": [{"name": "m"}]}),
            ("POST", "/v1/model-providers/{modelProviderId}/check") => json!({}),
            (_, path) => panic!("say above what body {path} takes"),
        }
    }
}

/// A flow's definition.
fn definition(version: &str) -> Value {
    json!({
        "document": {"dsl": "1.0.3", "namespace": "test", "name": "flow", "version": version, "title": "secret"},
        "do": [{"say": {"set": {"said": "secret"}}}],
    })
}

/// With a secrets store, and receivers of webhooks on this host.
fn start() -> App {
    App::start_with(|options| {
        options.secrets = Keys::new().options();
        options.webhooks.development = true;
    })
}

/// A provider whose answers nobody else may see.
fn secretive() -> Provider {
    Provider::start(Script {
        queue: Vec::new(),
        then: Step::text("secret"),
    })
    .unwrap()
}

/// Everything that a tenant has, as text, without what changes by itself.
fn rows_of(app: &App, tenant_id: uuid::Uuid) -> Vec<String> {
    let mut client = app.database.client();
    let tables: Vec<String> = client
        .query(
            "select c.table_name::text from information_schema.columns c
             join pg_class t on t.relname = c.table_name and not t.relispartition
             where c.table_schema = 'public' and c.column_name = 'tenant_id' order by 1",
            &[],
        )
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(tables.len() > 12, "{tables:?}");
    let mut rows = Vec::new();
    for table in tables {
        let all = format!(
            "select (to_jsonb(t) - 'last_used_at')::text from {table} t where tenant_id = $1 order by 1"
        );
        for row in client.query(&all, &[&tenant_id]).unwrap() {
            rows.push(format!("{table} {}", row.get::<_, String>(0)));
        }
    }
    rows
}

fn send(client: &Client, route: &Route, path: &str, body: Option<Value>) -> Answer {
    client.send(
        route.method.text(),
        path,
        body.map(|body| body.to_string()),
        &[],
    )
}

/// What another tenant is answered that names the victim's objects; none where a route names none.
fn trespass(other: &Client, route: &Route, victim: &Objects, own: &Objects) -> Option<Answer> {
    let takes_body = route.body_bytes > 0;
    let body = match &route.rule {
        Rule::Open(_)
        | Rule::Enrolling
        | Rule::SigningIn
        | Rule::Returning
        | Rule::DevelopmentLoopback
        | Rule::Session => return None,
        Rule::OnPath { .. }
        | Rule::RunReader
        | Rule::GrantsReader
        | Rule::ConversationEraser
        | Rule::ApprovalReviewer { .. }
        | Rule::Both(..) => takes_body.then(|| own.body(route)),
        Rule::OnBody { .. } | Rule::Either(..) => Some(victim.body(route)),
        Rule::List(_) | Rule::Reviewer => None,
        // Of the tenant or the user of the credential: an id in it may be another's.
        Rule::Authenticated | Rule::OnTenant(_) => match (route.method.text(), route.path) {
            ("POST", "/v1/tokens/public") => Some(victim.body(route)),
            (
                "DELETE",
                "/v1/tokens/{tokenId}"
                | "/v1/identity/me/sessions/{sessionId}"
                | "/v1/reviewers/{userId}/{role}",
            ) => None,
            ("POST", "/v1/reviewers") => Some(victim.body(route)),
            ("GET", "/v1/audit/authz/{decisionId}") => None,
            // Names, which each tenant has for itself: see tests/it/secrets and tests/it/environments.
            (_, path) if path.starts_with("/v1/environments/") => return None,
            (_, "/v1/secrets/{environment}/{name}") => return None,
            (_, path) => {
                assert!(!path.contains('{'), "say above what {path} is");
                return None;
            }
        },
    };
    Some(send(other, route, &victim.path(route), body))
}

fn is_list(route: &Route) -> bool {
    matches!(route.rule, Rule::List(_) | Rule::Reviewer)
}

#[test]
fn no_route_shows_or_changes_what_is_another_tenants() {
    let app = start();
    let provider = secretive();
    let victim = Objects::of(&app, &provider).with_written(&app);
    let other = app.other_tenant();
    let own = Objects::of(&other, &provider);
    let before = rows_of(&app, app.seeds.tenant_id);
    assert!(before.len() > 15, "{before:?}");
    let mut tried = Vec::new();
    for route in server::table(true, true).routes() {
        let Some(answer) = trespass(&other, route, &victim, &own) else {
            continue;
        };
        tried.push(route.path);
        for (parameter, id) in victim.0.as_object().unwrap() {
            let shown = is_list(route) && answer.text.contains(id.as_str().unwrap());
            assert!(
                !shown || ["version", "role"].contains(&parameter.as_str()),
                "{}: {answer:?}",
                route.path
            );
        }
        if is_list(route) {
            assert_eq!(answer.status, 200, "{answer:?}");
        } else {
            // The kind of the object is in the answer, too.
            let text = answer.text.replace("secret-use", "");
            assert!(!text.contains("secret"), "{answer:?}");
            answer.expect_error(404, "not-found");
        }
    }
    assert!(tried.len() > 20, "{tried:?}");
    let after = rows_of(&app, app.seeds.tenant_id);
    assert_eq!(after, before, "nothing was changed");
}

#[test]
fn an_object_cannot_be_tied_to_another_tenants() {
    let app = start();
    let provider = secretive();
    let victim = Objects::of(&app, &provider);
    let other = app.other_tenant();
    let own = Objects::of(&other, &provider);
    let before = rows_of(&app, app.seeds.tenant_id);
    let (agent, versions) = (own.id("agentId"), "/v1/agents/{}/versions");
    let versions = versions.replace("{}", agent);
    let version = |provider: &str, tools: &[&str]| {
        json!({"version": "9.0.0", "instructions": "", "model": "m",
            "modelProviderId": provider, "toolIds": tools})
    };
    let own_provider = own.id("modelProviderId");
    for (path, body) in [
        (
            "/v1/runs",
            json!({"agentId": agent, "message": "a", "conversationId": victim.id("conversationId")}),
        ),
        (
            "/v1/runs",
            json!({"agentId": victim.id("agentId"), "message": "a", "conversationId": own.id("conversationId")}),
        ),
        (&versions, version(victim.id("modelProviderId"), &[])),
        (&versions, version(own_provider, &[victim.id("toolId")])),
        (
            "/v1/tokens/public",
            json!({"runIds": [own.id("runId"), victim.id("runId")]}),
        ),
    ] {
        let answer = other.post(path, &body);
        assert!(
            [400, 404, 409].contains(&answer.status),
            "{path} {body}: {answer:?}"
        );
    }
    let filters = ["projectId", "agentId", "conversationId"];
    for filter in filters {
        let path = format!("/v1/runs?{filter}={}", victim.id(filter));
        assert_eq!(other.get(&path).expect(200)["data"], json!([]));
    }
    assert_eq!(
        rows_of(&app, app.seeds.tenant_id),
        before,
        "nothing was changed"
    );
}
