//! Section 5.3: each role on each route, against a table that a person can read.

use super::world::{Person, Row, World};
use crate::harness::{Answer, NewTool};
use agent_runtime::server;
use serde_json::{Value, json};

/// What a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// A key; nothing is decided.
    Key,
    /// A role on the project, at least.
    Viewer,
    Editor,
    Admin,
    /// Any member of the tenant.
    Member,
    /// A tenant admin.
    TenantAdmin,
}

/// Method, path, what it takes, the action that is asked for, and on what.
const ROUTES: [(&str, &str, Needs, &str, &str); 54] = {
    use Needs::{Admin, Editor, Key, Member, TenantAdmin, Viewer};
    [
        ("POST", "/v1/tokens", Key, "", ""),
        ("GET", "/v1/tokens", Key, "", ""),
        ("DELETE", "/v1/tokens/{tokenId}", Key, "", ""),
        ("POST", "/v1/tokens/public", Viewer, "read", "run"),
        ("POST", "/v1/projects", TenantAdmin, "write", "tenant"),
        ("GET", "/v1/projects", Member, "read", "tenant"),
        ("GET", "/v1/projects/{projectId}", Viewer, "read", "project"),
        (
            "PATCH",
            "/v1/projects/{projectId}",
            Admin,
            "admin",
            "project",
        ),
        (
            "POST",
            "/v1/model-providers",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        ("GET", "/v1/model-providers", Member, "read", "tenant"),
        (
            "GET",
            "/v1/model-providers/{modelProviderId}",
            Member,
            "read",
            "tenant",
        ),
        (
            "PATCH",
            "/v1/model-providers/{modelProviderId}",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        (
            "POST",
            "/v1/model-providers/{modelProviderId}/check",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        (
            "DELETE",
            "/v1/model-providers/{modelProviderId}",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        ("POST", "/v1/secret-uses", TenantAdmin, "admin", "tenant"),
        ("GET", "/v1/secret-uses", TenantAdmin, "admin", "tenant"),
        (
            "DELETE",
            "/v1/secret-uses/{secretUseId}",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        ("GET", "/v1/environments", Member, "read", "tenant"),
        (
            "GET",
            "/v1/environments/{environment}/variables",
            Member,
            "read",
            "tenant",
        ),
        (
            "PUT",
            "/v1/environments/{environment}/variables/{name}",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        (
            "GET",
            "/v1/environments/{environment}/variables/{name}",
            Member,
            "read",
            "tenant",
        ),
        (
            "DELETE",
            "/v1/environments/{environment}/variables/{name}",
            TenantAdmin,
            "admin",
            "tenant",
        ),
        ("GET", "/v1/policies", Member, "read", "tenant"),
        ("PUT", "/v1/policies", TenantAdmin, "admin", "tenant"),
        ("POST", "/v1/guardrails/try", Editor, "write", "project"),
        ("POST", "/v1/tools", Admin, "admin", "project"),
        ("GET", "/v1/tools", Member, "read", "tenant"),
        ("GET", "/v1/tools/{toolId}", Viewer, "read", "tool"),
        ("DELETE", "/v1/tools/{toolId}", Admin, "admin", "tool"),
        ("POST", "/v1/agents", Admin, "admin", "project"),
        ("GET", "/v1/agents", Member, "read", "tenant"),
        ("GET", "/v1/agents/{agentId}", Viewer, "read", "agent"),
        ("PATCH", "/v1/agents/{agentId}", Admin, "admin", "agent"),
        (
            "POST",
            "/v1/agents/{agentId}/versions",
            Editor,
            "write",
            "agent",
        ),
        (
            "POST",
            "/v1/agents/{agentId}/archive",
            Admin,
            "admin",
            "agent",
        ),
        (
            "POST",
            "/v1/agents/{agentId}/unarchive",
            Admin,
            "admin",
            "agent",
        ),
        (
            "GET",
            "/v1/agents/{agentId}/versions",
            Viewer,
            "read",
            "agent",
        ),
        (
            "GET",
            "/v1/agents/{agentId}/versions/{version}",
            Viewer,
            "read",
            "agent",
        ),
        (
            "POST",
            "/v1/agents/{agentId}/promote",
            Admin,
            "admin",
            "agent",
        ),
        ("POST", "/v1/conversations", Editor, "write", "agent"),
        ("GET", "/v1/conversations", Member, "read", "tenant"),
        (
            "GET",
            "/v1/conversations/{conversationId}",
            Viewer,
            "read",
            "conversation",
        ),
        (
            "DELETE",
            "/v1/conversations/{conversationId}",
            Admin,
            "admin",
            "conversation",
        ),
        (
            "GET",
            "/v1/conversations/{conversationId}/messages",
            Viewer,
            "read",
            "conversation",
        ),
        ("POST", "/v1/runs", Editor, "write", "agent"),
        ("GET", "/v1/runs", Member, "read", "tenant"),
        ("GET", "/v1/runs/{runId}", Viewer, "read", "run"),
        ("GET", "/v1/runs/{runId}/payload", Viewer, "read", "run"),
        ("GET", "/v1/runs/{runId}/steps", Viewer, "read", "run"),
        ("GET", "/v1/runs/{runId}/checks", Viewer, "read", "run"),
        ("GET", "/v1/runs/{runId}/state", Viewer, "read", "run"),
        ("POST", "/v1/runs/{runId}/cancel", Editor, "write", "run"),
        ("POST", "/v1/runs/{runId}/retry", Editor, "write", "run"),
        ("GET", "/v1/runs/{runId}/progress", Viewer, "read", "run"),
    ]
};

/// A caller and the way by which they have their rights: on the project 0 nothing, 1 viewer, 2
/// editor, 3 admin; and whether they are tenant admin.
struct Caller {
    name: &'static str,
    person: Person,
    level: u8,
    tenant_admin: bool,
}

fn callers(world: &World) -> Vec<Caller> {
    let member = |name, level, give: &dyn Fn(&Person)| {
        let person = world.person("member");
        give(&person);
        Caller {
            name,
            person,
            level,
            tenant_admin: false,
        }
    };
    let direct = |role: &'static str| move |p: &Person| world.grant(world.project, p.user_id, role);
    let team =
        |role: &'static str| move |p: &Person| world.grant_by_team(world.project, p.user_id, role);
    let mut callers = vec![
        member("tenant member", 0, &|_| {}),
        member("owner", 3, &direct("owner")),
        member("admin", 3, &direct("admin")),
        member("editor", 2, &direct("editor")),
        member("viewer", 1, &direct("viewer")),
        member("legacy member", 1, &direct("member")),
        member("admin by team", 3, &team("admin")),
        member("editor by team", 2, &team("editor")),
        member("viewer by team", 1, &team("viewer")),
        member("org admin", 3, &|p| {
            world.grant_by_org(world.project, p.user_id)
        }),
    ];
    let account = world.service_account();
    world.grant(world.project, account.user_id, "editor");
    callers.push(Caller {
        name: "service account, editor",
        person: account,
        level: 2,
        tenant_admin: false,
    });
    callers.push(Caller {
        name: "tenant admin",
        person: world.person("admin"),
        level: 3,
        tenant_admin: true,
    });
    callers
}

impl Caller {
    fn may(&self, needs: Needs) -> bool {
        match needs {
            Needs::Key | Needs::Member => true,
            Needs::Viewer => self.level >= 1,
            Needs::Editor => self.level >= 2,
            Needs::Admin => self.level >= 3,
            Needs::TenantAdmin => self.tenant_admin,
        }
    }
}

fn send(world: &World, caller: &Caller, number: usize, method: &str, path: &str) -> Answer {
    let name = format!("{}-{number}", caller.name.replace([' ', ','], "-"));
    let tool = match (method, path) {
        ("DELETE", "/v1/tools/{toolId}") => {
            let url = world.provider.base_url();
            world
                .app
                .maker()
                .tool(world.project, &NewTool::new(&name, &url))
        }
        _ => world.tool,
    };
    let of_secret = match path {
        "/v1/secret-uses/{secretUseId}" => {
            let origin = format!("origin:http://host-{name}.example");
            let body = json!({"name": "KEY", "target": origin});
            world.app.post("/v1/secret-uses", &body).expect(201)["id"].clone()
        }
        _ => json!(""),
    };
    let variable = "/v1/environments/local/variables/MODE";
    if path.contains("/variables/") {
        let put = world.app.put(variable, &json!({"value": "a"}));
        assert!([200, 201].contains(&put.status), "{put:?}");
    }
    let body = match (method, path) {
        ("PUT", "/v1/policies") => Some(json!({"guardrails": []})),
        ("PUT", _) => Some(json!({"value": "b"})),
        ("POST", "/v1/guardrails/try") => {
            Some(json!({"projectId": world.project, "point": "output", "text": "a"}))
        }
        ("GET" | "DELETE", _) | (_, "/v1/runs/{runId}/cancel") => None,
        ("POST", "/v1/runs") => Some(json!({"agentId": world.agent, "message": "a"})),
        ("POST", "/v1/tokens/public") => Some(json!({"runIds": [world.run]})),
        ("POST", "/v1/agents") => Some(json!({"projectId": world.project, "name": name})),
        ("POST", "/v1/agents/{agentId}/versions") => {
            Some(json!({"version": format!("9.{number}.0-a{}", name.len()),
            "instructions": "", "model": "none", "modelProviderId": world.model_provider}))
        }
        ("POST", "/v1/agents/{agentId}/promote") => Some(json!({"version": "1.0.0"})),
        ("POST", "/v1/tools") => Some(
            json!({"projectId": world.project, "name": name, "description": "",
            "argumentsSchema": {"type": "object"}, "url": "http://127.0.0.1:9/"}),
        ),
        ("POST", "/v1/secret-uses") => Some(
            json!({"name": format!("KEY_{number}"), "target": "origin:https://api.example.com"}),
        ),
        ("POST", "/v1/conversations") => Some(json!({"agentId": world.agent})),
        ("POST", "/v1/model-providers") => Some(json!({"name": name,
            "baseUrl": "http://127.0.0.1:9/v1", "models": [{"name": "m"}]})),
        ("POST", "/v1/model-providers/{modelProviderId}/check") => Some(json!({})),
        _ => Some(json!({"name": name})),
    };
    let token = uuid::Uuid::nil();
    let filled = path
        .replace("{projectId}", &world.project.to_string())
        .replace("{modelProviderId}", &world.model_provider.to_string())
        .replace("{environment}", "local")
        .replace("{name}", "MODE")
        .replace("{toolId}", &tool.to_string())
        .replace("{secretUseId}", of_secret.as_str().unwrap_or_default())
        .replace("{agentId}", &world.agent.to_string())
        .replace("{conversationId}", &world.conversation.to_string())
        .replace("{runId}", &world.run)
        .replace("{version}", "1.0.0")
        .replace("{tokenId}", &token.to_string());
    let body = body.map(|body: Value| body.to_string());
    caller.person.client.send(method, &filled, body, &[])
}

fn check_row(world: &World, caller: &Caller, row: &Row, denied: bool, entry: usize) {
    let (method, path, _, action, kind) = ROUTES[entry];
    assert_eq!(row.actor, format!("user:{}", caller.person.user_id));
    assert_eq!(row.action, action);
    let (found, _) = row.resource.split_once(':').unwrap();
    assert_eq!(found, kind);
    assert_eq!(row.outcome, if denied { "denied" } else { "allowed" });
    assert_eq!(row.stage, "model");
    let relation = format!("can_{action}");
    let check = [row.actor.clone(), relation.clone(), row.resource.clone()];
    assert_eq!(row.check.as_ref(), Some(&check));
    assert_eq!(row.failing_part, denied.then_some(relation));
    assert_eq!(row.key_id, Some(caller.person.key_id));
    assert_eq!(
        row.route.as_deref(),
        Some(format!("{method} {path}").as_str())
    );
    let run = (kind == "run").then(|| world.run.parse().unwrap());
    assert_eq!(row.run_id, run);
    assert_eq!(row.client_address.as_deref(), Some("127.0.0.1"));
    assert_eq!(row.trace_id.as_ref().map(String::len), Some(32));
}

#[test]
fn each_role_may_what_section_5_3_says_and_each_decision_is_recorded_once() {
    let world = World::start();
    let callers = callers(&world);
    for caller in &callers {
        for (entry, (method, path, needs, action, _)) in ROUTES.into_iter().enumerate() {
            let told = format!("{} {method} {path}", caller.name);
            let answer = send(&world, caller, entry, method, path);
            let rows = world.decisions(&answer);
            if needs == Needs::Key {
                assert_ne!(answer.status, 403, "{told}: {answer:?}");
                assert_eq!(rows, [], "{told}");
                continue;
            }
            let denied = !caller.may(needs);
            assert_eq!(rows.len(), 1, "{told}: {rows:?} {answer:?}");
            check_row(&world, caller, &rows[0], denied, entry);
            if denied {
                let reason = format!(
                    "permission denied, actor user:{} lacks can_{action} on {}",
                    caller.person.user_id, rows[0].resource
                );
                let about = rows[0].reason.strip_prefix(&reason);
                let about = about.unwrap_or_else(|| panic!("{told}: {}", rows[0].reason));
                match path {
                    path if path.contains("{modelProviderId}") => {
                        let expected = format!(", for model-provider:{}", world.model_provider);
                        assert_eq!(about, expected);
                    }
                    path if path.contains("{secretUseId}") => {
                        assert!(about.starts_with(", for secret-use:"), "{about}");
                    }
                    _ => assert_eq!(about, "", "{told}"),
                }
                let error = answer.expect_error(403, "permission-denied");
                assert_eq!(error["message"], json!(reason), "{told}");
                let details =
                    json!({"action": action, "resource": rows[0].resource, "reason": reason});
                assert_eq!(error["details"], details, "{told}");
            } else {
                let fine = [200, 201, 202, 204, 400, 409].contains(&answer.status);
                assert!(fine, "{told}: {answer:?}");
            }
        }
    }
}

#[test]
fn the_table_above_misses_no_route_of_its_nouns() {
    let nouns = [
        "projects",
        "model-providers",
        "secret-uses",
        "environments",
        "policies",
        "guardrails",
        "tools",
        "agents",
        "conversations",
        "runs",
    ];
    for route in server::table(true, true).routes() {
        let noun = route.path.split('/').nth(2).unwrap_or_default();
        let streams = route.path.ends_with("/stream");
        let own = route.path.split('/').nth(4).unwrap_or_default();
        // Of projects, the routes of who works in them are another table's.
        let of_access = noun == "projects" && !own.is_empty();
        if !nouns.contains(&noun) || streams || of_access {
            continue;
        }
        let is_it = |(method, path, ..): &(&str, &str, Needs, &str, &str)| {
            (*method, *path) == (route.method.text(), route.path)
        };
        assert!(
            ROUTES.iter().any(is_it),
            "{} {}",
            route.method.text(),
            route.path
        );
    }
}

#[test]
fn what_is_not_there_is_not_found_and_no_decision() {
    let world = World::start();
    let member = world.person("member");
    let nobody = world.app.clock.new_id();
    for path in [
        "projects",
        "model-providers",
        "tools",
        "agents",
        "conversations",
        "runs",
    ] {
        let answer = member.client.get(&format!("/v1/{path}/{nobody}"));
        assert_eq!(world.decisions(&answer), []);
        answer.expect_error(404, "not-found");
    }
    let answer = member.client.get(&format!("/v1/runs/{nobody}/progress"));
    assert_eq!(world.decisions(&answer), []);
    answer.expect_error(404, "not-found");
    // Of another tenant, likewise; and nobody decides about who is not known.
    let other = world.app.other_tenant();
    let answer = other.get(&format!("/v1/projects/{}", world.project));
    assert_eq!(world.decisions(&answer), []);
    answer.expect_error(404, "not-found");
    let stranger = world.app.with_token(Some("svc_bt_unknown"));
    let answer = stranger.get(&format!("/v1/projects/{}", world.project));
    assert_eq!(world.decisions(&answer), []);
    answer.expect_error(401, "unauthenticated");
}

#[test]
fn a_public_token_follows_its_run_and_nothing_is_decided() {
    let world = World::start();
    let body = json!({"runIds": [world.run]});
    let minted = world.app.post("/v1/tokens/public", &body).expect(201);
    let public = world.app.with_token(minted["token"].as_str());
    let answer = public.get(&format!("/v1/runs/{}/progress", world.run));
    assert_eq!(world.decisions(&answer), []);
    answer.expect(200);
    let other = world.app.start_turn(world.agent, "again");
    let answer = public.get(&format!("/v1/runs/{other}/progress"));
    assert_eq!(world.decisions(&answer), [], "it has no principal");
    answer.expect_error(403, "public-run-token-not-allowed");
    let answer = public.get(&format!("/v1/runs/{}", world.run));
    assert_eq!(world.decisions(&answer), [], "it has no principal");
    answer.expect_error(403, "public-run-token-not-allowed");
}
