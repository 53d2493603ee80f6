//! A tenant with one of everything, and one caller of each kind.
//!
//! People, teams and roles are written into the database before the server starts, which is when
//! OpenFGA is told of them; the rest is made over the API.

use crate::harness::approvals::NewApproval;
use crate::harness::identity_provider::IdentityProvider;
use crate::harness::openfga::OpenFga;
use crate::harness::{App, Client, Database, NewTool, decisions, made, secrets, seeds, webhooks};
use agent_runtime::authn::bearer;
use agent_runtime::authz::permissions;
use agent_runtime::dev::provider::{Provider, Script, Step};
use agent_runtime::ids::Clock;
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use uuid::Uuid;

/// A code that a person turns into a key.
const CODE: &str = "svc_en_of-the-sweep";

/// Callers who may not read the project.
const BLIND: [&str; 4] = ["other", "member", "review", "keyelse"];

/// Callers whose keys sign in, each with a session of it.
pub(super) const SIGNED_IN: [&str; 9] = [
    "admin", "member", "owner", "padmin", "editor", "viewer", "review", "nocap", "memkey",
];

/// The callers who are somebody with nothing more than a key that may do whatever they may.
const PEOPLE: [&str; 14] = [
    "member", "org", "owner", "padmin", "editor", "viewer", "tadmin", "tedit", "tview", "lead",
    "legacy", "review", "gone", "stranger",
];

/// The world.
pub(crate) struct World {
    pub(crate) app: App,
    pub(crate) enforced: bool,
    pub(crate) tenant_id: Uuid,
    pub(crate) other_tenant_id: Uuid,
    ids: HashMap<&'static str, Uuid>,
    /// By caller: who, and by which key.
    callers: HashMap<&'static str, (Uuid, Uuid)>,
    clients: HashMap<&'static str, Client>,
    /// By caller: the value, and the id.
    sessions: HashMap<&'static str, (String, Uuid)>,
    database: std::cell::RefCell<Option<postgres::Client>>,
    _provider: Provider,
    _identity_provider: IdentityProvider,
}

/// Writes the tenant.
struct Writer {
    clock: Clock,
    tenant_id: Uuid,
    sql: String,
    ids: HashMap<&'static str, Uuid>,
    callers: HashMap<&'static str, (Uuid, Uuid)>,
    tokens: HashMap<&'static str, String>,
    sessions: HashMap<&'static str, (String, Uuid)>,
}

/// How the server reaches the OpenFGA of the test run.
pub(crate) fn authorization() -> permissions::Options {
    permissions::Options {
        url: OpenFga::shared().url(),
        timeout: Duration::from_secs(10),
        connections: 8,
        model: permissions::Model::own(),
    }
}

impl World {
    pub(crate) fn start(enforced: bool) -> Self {
        let clock = Clock::system();
        let own = seeds(&clock);
        let (database, mut writer) = (Database::migrated(), Writer::new(&clock, own.tenant_id));
        writer.tenant(own.user_id);
        let mut client = database.client();
        client.batch_execute(&writer.sql).unwrap();
        writer.sql.clear();
        let app = App::start_on(database, clock.clone(), own, |options| {
            options.authorization = enforced.then(authorization);
            options.denials_per_minute = 1_000_000;
            options.secrets = secrets::Keys::new().options();
            options.webhooks.development = true;
        });
        let provider = Provider::start(Script {
            queue: Vec::new(),
            then: Step::text("an answer"),
        })
        .unwrap();
        let identity_provider = IdentityProvider::start();
        let moved = "update identity_providers set issuer = $1";
        client
            .execute(moved, &[&identity_provider.issuer()])
            .unwrap();
        let other = seeds(&clock);
        let store = &app.server().shared().store;
        agent_runtime::server::seed(store, &clock, &other).unwrap();
        writer.objects(&app, &provider);
        writer.other_keys(&mut client, &app, &other);
        writer.webhooks(&mut client, &app);
        let public = app
            .post(
                "/v1/tokens/public",
                &json!({"runIds": [writer.ids["runId"]]}),
            )
            .expect(201);
        let mut clients: HashMap<_, _> = writer
            .tokens
            .iter()
            .map(|(caller, token)| (*caller, app.with_token(Some(token))))
            .collect();
        clients.insert("none", app.with_token(None));
        clients.insert("public", app.with_token(public["token"].as_str()));
        Self {
            enforced,
            tenant_id: app.seeds.tenant_id,
            other_tenant_id: other.tenant_id,
            app,
            ids: writer.ids,
            callers: writer.callers,
            clients,
            sessions: writer.sessions,
            database: std::cell::RefCell::new(Some(client)),
            _provider: provider,
            _identity_provider: identity_provider,
        }
    }

    /// The id of an object, by the name of its path parameter, or of a person.
    #[track_caller]
    pub(crate) fn id(&self, name: &str) -> Uuid {
        let known = self.ids.get(name);
        *known.unwrap_or_else(|| panic!("say in the world what {name} is an id of"))
    }

    #[track_caller]
    pub(crate) fn client(&self, caller: &str) -> &Client {
        let known = self.clients.get(caller);
        known.unwrap_or_else(|| panic!("say in the world who {caller} is"))
    }

    /// The user behind a caller.
    #[track_caller]
    pub(crate) fn user(&self, caller: &str) -> Uuid {
        self.callers[caller].0
    }

    /// The key of a caller who has one that lasts.
    pub(crate) fn key(&self, caller: &str) -> Option<Uuid> {
        self.callers.get(caller).map(|(_, key)| *key)
    }

    /// The session of a caller, and its id.
    #[track_caller]
    pub(super) fn session(&self, caller: &str) -> (String, Uuid) {
        self.sessions[caller].clone()
    }

    /// One that its person ended.
    pub(super) fn ended_session(&self) -> &str {
        &self.sessions["ended"].0
    }

    pub(crate) fn code(&self) -> &'static str {
        CODE
    }

    pub(crate) fn cannot_read(&self, caller: &str) -> bool {
        BLIND.contains(&caller)
    }

    /// A connection of the test's own, the same each time.
    pub(crate) fn database(&self) -> Borrowed<'_> {
        Borrowed(self, self.database.borrow_mut().take())
    }
}

/// The world's connection; it is given back when dropped.
pub(crate) struct Borrowed<'a>(&'a World, Option<postgres::Client>);

impl std::ops::Deref for Borrowed<'_> {
    type Target = postgres::Client;
    fn deref(&self) -> &postgres::Client {
        self.1.as_ref().unwrap()
    }
}

impl std::ops::DerefMut for Borrowed<'_> {
    fn deref_mut(&mut self) -> &mut postgres::Client {
        let database = || self.0.app.database.client();
        self.1.get_or_insert_with(database)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        *self.0.database.borrow_mut() = self.1.take();
    }
}

impl Writer {
    fn new(clock: &Clock, tenant_id: Uuid) -> Self {
        Self {
            clock: clock.clone(),
            tenant_id,
            sql: String::new(),
            ids: HashMap::new(),
            callers: HashMap::new(),
            tokens: HashMap::new(),
            sessions: HashMap::new(),
        }
    }

    fn say(&mut self, statement: &str) {
        self.sql += &format!("{statement};\n");
    }

    fn new_id(&mut self, name: &'static str) -> Uuid {
        let id = self.clock.new_id();
        self.ids.insert(name, id);
        id
    }

    fn user(&mut self, name: &'static str, kind: &str) -> Uuid {
        let (tenant, id) = (self.tenant_id, self.new_id(name));
        let email = match kind {
            "person" => format!("'{name}@example.test'"),
            _ => "null".to_owned(),
        };
        self.say(&format!(
            "insert into users (tenant_id, user_id, display_name, created_at, kind, email, email_key, tenant_role)
             values ('{tenant}', '{id}', '{name}', now(), '{kind}', {email}, {email}, 'member')"
        ));
        id
    }

    /// A key by which a caller comes.
    fn key(&mut self, caller: &'static str, user_id: Uuid, set: &str) {
        let (tenant, id, token) = (self.tenant_id, self.clock.new_id(), bearer::mint().unwrap());
        let digest: String = bearer::digest(token.expose())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.say(&format!(
            "insert into tokens (tenant_id, token_id, user_id, name, digest, last_four, created_at)
             values ('{tenant}', '{id}', '{user_id}', '{caller}', '\\x{digest}', 'last', now())"
        ));
        if !set.is_empty() {
            self.say(&format!("update tokens set {set} where token_id = '{id}'"));
        }
        self.callers.insert(caller, (user_id, id));
        self.tokens.insert(caller, token.expose().to_owned());
    }

    /// A session of a caller's key. It counts as used a day ahead, so that no use of it is written.
    fn session(&mut self, name: &'static str, caller: &str) {
        let (user_id, key) = self.callers[caller];
        let (tenant, id) = (self.tenant_id, self.clock.new_id());
        let value = bearer::mint_session().unwrap();
        let digest: String = bearer::digest(value.expose())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.say(&format!(
            "insert into sessions (tenant_id, session_id, user_id, digest, method, token_id, role, capabilities,
               client_address, created_at, active_at, expires_at)
             select '{tenant}', '{id}', '{user_id}', '\\x{digest}', 'token', token_id, role, capabilities,
               '127.0.0.1', now(), now() + interval '1 day', now() + interval '2 days'
             from tokens where token_id = '{key}'"
        ));
        self.sessions.insert(name, (value.expose().to_owned(), id));
    }

    /// Those who signed in; one who signed out, and one of the person whom paths name.
    fn all_sessions(&mut self) {
        for caller in SIGNED_IN {
            self.session(caller, caller);
        }
        self.session("other of admin", "spare");
        self.ids
            .insert("sessionId", self.sessions["other of admin"].1);
        self.session("ended", "admin");
        let ended = self.sessions["ended"].1;
        self.say(&format!(
            "update sessions set ended_at = now() where session_id = '{ended}'"
        ));
        // It was open when its person was deactivated.
        self.session("gone", "gone");
        let subject = self.ids["userId"];
        self.key("userId", subject, "");
        self.session("of the person", "userId");
    }

    /// A row whose first column is the tenant.
    fn row(&mut self, table: &str, columns: &str, values: &str) {
        let tenant = self.tenant_id;
        self.say(&format!(
            "insert into {table} (tenant_id, {columns}) values ('{tenant}', {values})"
        ));
    }

    fn tenant(&mut self, seed: Uuid) {
        let tenant = self.tenant_id;
        self.say(&format!(
            "insert into tenants values ('{tenant}', 'tenant', now())"
        ));
        self.row(
            "users",
            "user_id, display_name, created_at, tenant_role",
            &format!("'{seed}', 'seed user', now(), 'admin'"),
        );
        for person in PEOPLE {
            let id = self.user(person, "person");
            self.key(person, id, "");
        }
        let service = self.user("serviceAccountId", "service-account");
        self.key("service", service, "");
        self.key("serviceSpare", service, "");
        self.ids
            .insert("serviceTokenId", self.callers["serviceSpare"].1);
        self.key("admin", seed, "");
        self.key("spare", seed, "");
        self.ids.insert("tokenId", self.callers["spare"].1);
        let stamps = format!("'{seed}', now(), now()");
        let org = self.new_id("orgId");
        self.row(
            "orgs",
            "org_id, name, created_by, created_at, updated_at",
            &format!("'{org}', 'org', {stamps}"),
        );
        for name in ["projectId", "otherProjectId"] {
            let id = self.new_id(name);
            let columns = "project_id, name, created_by, created_at, updated_at";
            self.row("projects", columns, &format!("'{id}', '{name}', {stamps}"));
        }
        let project = self.ids["projectId"];
        self.say(&format!(
            "update projects set org_id = '{org}' where project_id = '{project}'"
        ));
        self.roles(project, &stamps);
        self.standings(org, seed);
        let padmin = self.ids["padmin"];
        let elsewhere = self.ids["otherProjectId"];
        self.key("keyhere", padmin, &format!("project_id = '{project}'"));
        self.key("keyelse", padmin, &format!("project_id = '{elsewhere}'"));
        self.key("nocap", seed, "capabilities = '{}'");
        self.key("memkey", seed, "role = 'member'");
        self.all_sessions();
        self.identity();
    }

    /// A provider, and whom the person of the paths is there.
    fn identity(&mut self) {
        let (provider, seed) = (self.new_id("identityProviderId"), self.callers["admin"].0);
        self.row(
            "identity_providers",
            "identity_provider_id, managed_by, name, issuer, client_id, scopes, email_trust, creates_people,
               created_by, created_at, updated_at",
            &format!(
                "'{provider}', 'tenant', 'provider', 'https://id.example.test', 'a', '{{}}', 'claim', false,
                   '{seed}', now(), now()"
            ),
        );
        let (identity, person) = (self.new_id("identityId"), self.ids["userId"]);
        self.row(
            "identities",
            "identity_id, identity_provider_id, subject, user_id, email_then, bound_at, last_used_at",
            &format!("'{identity}', '{provider}', 's-1', '{person}', 'a@b', now(), now()"),
        );
    }

    /// Roles on the project, direct and through teams.
    fn roles(&mut self, project: Uuid, stamps: &str) {
        let subject = self.user("userId", "person");
        let service = self.ids["serviceAccountId"];
        let elsewhere = self.ids["otherProjectId"];
        for (project, user, role) in [
            (project, self.ids["owner"], "owner"),
            (project, self.ids["padmin"], "admin"),
            (project, self.ids["editor"], "editor"),
            (project, self.ids["viewer"], "viewer"),
            (project, self.ids["legacy"], "member"),
            (project, self.ids["gone"], "admin"),
            (project, service, "editor"),
            (project, subject, "viewer"),
            (elsewhere, self.ids["padmin"], "admin"),
        ] {
            let values = format!("'{project}', '{user}', '{role}', now()");
            self.row(
                "project_memberships",
                "project_id, user_id, role, joined_at",
                &values,
            );
        }
        for (name, slug, grant, members) in [
            (
                "adminTeamId",
                "admins",
                "admin",
                &[("tadmin", "member")][..],
            ),
            (
                "teamId",
                "editors",
                "editor",
                &[("tedit", "member"), ("lead", "admin"), ("userId", "member")],
            ),
            ("viewTeamId", "viewers", "viewer", &[("tview", "member")]),
            ("grantedTeamId", "granted", "", &[("tadmin", "member")]),
        ] {
            let team = self.new_id(name);
            let columns = "team_id, name, slug, created_by, created_at, updated_at";
            self.row(
                "teams",
                columns,
                &format!("'{team}', '{slug}', '{slug}', {stamps}"),
            );
            for (member, role) in members {
                let values = format!("'{team}', '{}', '{role}', now()", self.ids[member]);
                self.row(
                    "team_memberships",
                    "team_id, user_id, role, joined_at",
                    &values,
                );
            }
            if !grant.is_empty() {
                let columns = "project_id, team_id, role, created_by, created_at, updated_at";
                self.row(
                    "team_grants",
                    columns,
                    &format!("'{project}', '{team}', '{grant}', {stamps}"),
                );
            }
        }
    }

    /// Org admins, reviewers, who was deactivated, and a code.
    fn standings(&mut self, org: Uuid, seed: Uuid) {
        let (subject, gone) = (self.ids["userId"], self.ids["gone"]);
        for user in [self.ids["org"], subject] {
            let values = format!("'{org}', '{user}', now()");
            self.row("org_admins", "org_id, user_id, joined_at", &values);
        }
        for user in [self.ids["review"], subject] {
            let values = format!("'{user}', 'standard', '{seed}', now()");
            self.row(
                "reviewers",
                "user_id, role, created_by, created_at",
                &values,
            );
        }
        self.say(&format!(
            "update users set deactivated_at = now() where user_id = '{gone}'"
        ));
        let newcomer = self.user("newcomer", "person");
        let (id, digest) = (self.clock.new_id(), bearer::digest(CODE));
        let made_with = self.callers["admin"].1;
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.row(
            "enrolments",
            "enrolment_id, user_id, digest, created_by, created_with, created_at, expires_at, key_role, key_capabilities",
            &format!(
                "'{id}', '{newcomer}', '\\x{digest}', '{seed}', '{made_with}', now(), now() + interval '1 day', 'admin', '{{}}'"
            ),
        );
    }

    /// What lies in the project, and the tenant's model providers.
    fn objects(&mut self, admin: &Client, provider: &Provider) {
        let (maker, project) = (admin.maker(), self.ids["projectId"]);
        let url = provider.base_url();
        let model_provider = maker.provider(&url, None);
        let spare = maker.provider(&url, None);
        let tool = maker.tool(project, &NewTool::new("tool", &url));
        let agent = maker.agent_of(project, &url, |_| {});
        let conversation = maker.conversation(agent, None);
        let definition = json!({
            "document": {"dsl": "1.0.3", "namespace": "billing", "name": "refund", "version": "1.0.0"},
            "do": [{"one": {"set": {"a": 1}}}],
        });
        let body = json!({"projectId": project, "definition": definition});
        let flow = admin.post("/v1/flows", &body).expect(201);
        let body = json!({"agentId": agent, "message": "a", "conversationId": conversation});
        admin
            .put("/v1/secrets/local/SECRET", &json!({"value": "a"}))
            .expect(201);
        admin
            .put(
                "/v1/environments/local/variables/VARIABLE",
                &json!({"value": "a"}),
            )
            .expect(201);
        let of_secret = json!({"name": "SECRET", "target": "origin:http://127.0.0.1:9"});
        let of_secret = admin.post("/v1/secret-uses", &of_secret).expect(201);
        let run = admin.post("/v1/runs", &body).expect(202);
        let run = run["run"]["id"].as_str().unwrap().to_owned();
        admin.finished(&run);
        let failed = admin.start_turn(agent, "a");
        admin.finished(&failed);
        self.say(&format!(
            "update runs set status = 'failed', failure_message = 'It failed.' where run_id = '{failed}'"
        ));
        // Who began it is asked for less to erase it, and is none of the callers.
        self.say(&format!(
            "update conversations set created_by = '{}' where conversation_id = '{conversation}'",
            self.ids["newcomer"]
        ));
        self.ids.extend([
            ("modelProviderId", model_provider),
            ("spareProviderId", spare),
            ("toolId", tool),
            ("agentId", agent),
            ("flowId", made::id(&flow).parse().unwrap()),
            ("conversationId", conversation),
            ("secretUseId", made::id(&of_secret).parse().unwrap()),
            ("runId", run.parse().unwrap()),
            ("failedRunId", failed.parse().unwrap()),
        ]);
    }

    /// An approval that waits, and an access decision. A webhook endpoint with a delivery that failed, and in both tenants a secret that signs.
    fn webhooks(&mut self, client: &mut postgres::Client, app: &App) {
        for caller in ["admin", "other"] {
            app.with_token(Some(&self.tokens[caller]))
                .put(
                    "/v1/secrets/local/SIGNING",
                    &json!({"value": webhooks::SIGNING}),
                )
                .expect(201);
        }
        let body = json!({"url": "http://127.0.0.1:9/", "events": ["approval.requested"],
            "secretRef": {"envName": "local", "name": "SIGNING"}});
        let made = app.post(webhooks::ENDPOINTS, &body).expect(201);
        let endpoint: Uuid = webhooks::endpoint_id(&made).parse().unwrap();
        self.ids.insert("webhookEndpointId", endpoint);
        let (delivery, event) = (self.new_id("webhookDeliveryId"), self.clock.new_id());
        self.row(
            "webhook_events",
            "event_id, type, body, created_at",
            &format!("'{event}', 'approval.requested', '{{}}', now()"),
        );
        self.row(
            "webhook_deliveries",
            "delivery_id, endpoint_id, event_id, type, state, attempts, created_at, ended_at",
            &format!(
                "'{delivery}', '{endpoint}', '{event}', 'approval.requested', 'failed', 10, now(), now()"
            ),
        );
        client.batch_execute(&self.sql).unwrap();
        self.sql.clear();
        let approval = NewApproval {
            tenant_id: self.tenant_id,
            project_id: self.ids["projectId"],
            run_id: self.ids["runId"],
            requested_by: self.ids["newcomer"],
            role: "standard",
            seconds: 86_400,
        };
        let approval = approval.insert(client, &self.clock);
        self.ids.insert("approvalId", approval);
        let decision = decisions::insert(client, &self.clock, self.tenant_id);
        self.ids.insert("decisionId", decision);
    }

    /// A key of another tenant's admin, beside the one that they were seeded with.
    fn other_keys(
        &mut self,
        client: &mut postgres::Client,
        app: &App,
        other: &agent_runtime::server::Seeds,
    ) {
        let own = std::mem::replace(&mut self.tenant_id, other.tenant_id);
        self.key("other", other.user_id, "");
        let values = format!("'{0}', 'standard', '{0}', now()", other.user_id);
        let columns = "user_id, role, created_by, created_at";
        self.row("reviewers", columns, &values);
        client.batch_execute(&self.sql).unwrap();
        self.sql.clear();
        self.tenant_id = own;
        // Its store is made by the time that it is asked for the first time.
        app.with_token(Some(&self.tokens["other"]))
            .get("/v1/projects")
            .expect(200);
    }
}
