//! `/v1/identity/enrolments`: from a code to a first key.

use crate::harness::{App, Client, eventually, made};
use agent_runtime::ids::rfc3339;
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;

const TAKE: &str = "/v1/identity/enrolments";

fn code(person: &Value) -> Value {
    json!({"code": person["enrolment"]["code"]})
}

fn again(app: &App, person: &Value) -> crate::harness::Answer {
    let path = format!("/v1/identity/users/{}/enrolments", made::id(person));
    app.send("POST", &path, None, &[])
}

#[test]
fn a_code_mints_the_first_key_once() {
    let app = App::start();
    let nobody = app.with_token(None);
    for (email, role) in [("a@b", "member"), ("c@d", "admin")] {
        let person = made::person(&app, email, role);
        let end =
            agent_runtime::ids::rfc3339::parse(person["enrolment"]["expiresAt"].as_str().unwrap());
        let life = end.unwrap() - app.clock.now();
        assert!((6.9..=7.0).contains(&(life.as_seconds_f64() / 86_400.0)));
        let mut body = code(&person);
        body["name"] = json!("laptop");
        let minted = nobody.post(TAKE, &body).expect(201);
        assert_eq!(minted["role"], json!(role));
        assert_eq!(minted["name"], json!("laptop"));
        assert_eq!(minted["capabilities"].as_array().unwrap().len(), 4);
        assert_eq!(minted["projectId"], Value::Null);
        let client = app.with_token(minted["token"].as_str());
        let me = client.get("/v1/identity/me/permissions").expect(200);
        assert_eq!(me["userId"], person["id"]);
        assert_eq!(me["key"]["id"], minted["id"]);
        nobody
            .post(TAKE, &body)
            .expect_error(401, "unauthenticated");
    }
}

/// A client with another key of its owner's.
fn limited(app: &App, limits: &Value) -> Client {
    let key = app.post("/v1/tokens", limits).expect(201);
    app.with_token(key["token"].as_str())
}

/// The keys of a new person and of one who stands, by the codes that this client makes.
fn keys_by(app: &App, maker: &Client) -> [Value; 2] {
    let nobody = app.with_token(None);
    let email = format!("{}@b", app.clock.new_id());
    let added = made::person(maker, &email, "admin");
    let first = nobody.post(TAKE, &code(&added)).expect(201);
    let path = format!("/v1/identity/users/{}/enrolments", made::id(&added));
    let another = maker.send("POST", &path, None, &[]).expect(201);
    let body = json!({"code": another["code"]});
    [first, nobody.post(TAKE, &body).expect(201)]
}

#[test]
fn a_code_s_key_does_not_exceed_the_code_s_maker() {
    let app = App::start();
    let project = made::project(&app);
    let end = rfc3339::text(app.clock.now() + Duration::from_secs(3600));
    let limits = json!({"name": "a", "role": "member", "capabilities": ["access:write", "keys:write"],
        "projectId": project, "expiresAt": end});
    for key in keys_by(&app, &limited(&app, &limits)) {
        for field in ["role", "capabilities", "projectId", "expiresAt"] {
            assert_eq!(key[field], limits[field], "{field}");
        }
    }
    // A code ends with the key that made it.
    let maker = limited(&app, &limits);
    let added = made::person(&maker, "late@b", "member");
    assert_eq!(added["enrolment"]["expiresAt"], limits["expiresAt"]);
    app.clock.advance(Duration::from_secs(3601));
    app.with_token(None)
        .post(TAKE, &code(&added))
        .expect_error(401, "unauthenticated");
}

#[test]
fn who_enrols_by_a_limited_key_s_code_is_refused_what_that_key_is() {
    let app = App::start_authorized();
    let limits = json!({"name": "a", "capabilities": ["access:write", "keys:write"]});
    for key in keys_by(&app, &limited(&app, &limits)) {
        assert_eq!(key["role"], json!("admin"));
        let client = app.with_token(key["token"].as_str());
        client.get("/v1/identity/users").expect(200);
        let all = json!({"name": "a", "capabilities": ["keys:write", "secrets:write"]});
        client
            .post("/v1/tokens", &all)
            .expect_error(403, "permission-denied");
    }
}

#[test]
fn making_a_code_takes_what_minting_a_key_takes() {
    let app = App::start_authorized();
    let ann = made::person(&app, "ann@b", "member");
    let codes = format!("/v1/identity/users/{}/enrolments", made::id(&ann));
    for capabilities in [json!(["access:write"]), json!(["keys:write"])] {
        let limits = json!({"name": "a", "capabilities": capabilities});
        let maker = limited(&app, &limits);
        let bob = json!({"email": "bob@b", "displayName": "Bob", "tenantRole": "admin"});
        maker
            .post("/v1/identity/users", &bob)
            .expect_error(403, "permission-denied");
        maker
            .send("POST", &codes, None, &[])
            .expect_error(403, "permission-denied");
    }
    let users = app.get("/v1/identity/users").expect(200);
    assert_eq!(
        users["data"].as_array().unwrap().len(),
        2,
        "nobody was added"
    );
    // The first code holds on.
    app.with_token(None).post(TAKE, &code(&ann)).expect(201);
}

/// A way in which somebody who made a code can no longer mint its key: by the admin, with the maker and
/// the maker's key.
type Loss = fn(&App, &Value, &Value);

#[test]
fn a_code_ends_with_what_its_maker_could_mint() {
    let demote: Loss = |app, maker, _| {
        let path = format!("/v1/identity/users/{}", made::id(maker));
        app.patch(&path, &json!({"tenantRole": "member"}))
            .expect(200);
    };
    let demote_for_a_while: Loss = |app, maker, _| {
        let path = format!("/v1/identity/users/{}", made::id(maker));
        for role in ["member", "admin"] {
            app.patch(&path, &json!({"tenantRole": role})).expect(200);
        }
    };
    let deactivate: Loss = |app, maker, _| {
        let path = format!("/v1/identity/users/{}/deactivate", made::id(maker));
        app.send("POST", &path, None, &[]).expect(200);
    };
    let revoke: Loss = |app, _, key| {
        let revoked = "update tokens set revoked_at = now() where token_id = $1::text::uuid";
        let mut database = app.database.client();
        assert_eq!(database.execute(revoked, &[&made::id(key)]).unwrap(), 1);
    };
    let replace: Loss = |app, _, key| {
        let gone = "delete from tokens where token_id = $1::text::uuid";
        let mut database = app.database.client();
        assert_eq!(database.execute(gone, &[&made::id(key)]).unwrap(), 1);
    };
    let app = App::start_authorized();
    let nobody = app.with_token(None);
    let losses = [demote, demote_for_a_while, deactivate, revoke, replace];
    for (number, lose) in losses.into_iter().enumerate() {
        let maker = made::person(&app, &format!("maker{number}@b"), "admin");
        let key = nobody.post(TAKE, &code(&maker)).expect(201);
        let client = app.with_token(key["token"].as_str());
        let added = |name: &str| made::person(&client, &format!("{name}{number}@b"), "admin");
        let (before, after) = (added("before"), added("after"));
        nobody.post(TAKE, &code(&before)).expect(201);
        lose(&app, &maker, &key);
        let refused = nobody.post(TAKE, &code(&after));
        assert_eq!(refused.status, 401, "way {number}: {refused:?}");
    }
}

#[test]
fn without_authorization_a_code_ends_with_its_maker_s_key_and_takes_no_role() {
    let app = App::start();
    let nobody = app.with_token(None);
    let maker = made::person(&app, "maker@b", "member");
    let client = made::enrolled(&app, &maker);
    let (first, second) = (
        made::person(&client, "first@b", "member"),
        made::person(&client, "second@b", "member"),
    );
    nobody.post(TAKE, &code(&first)).expect(201);
    let keys = client.get("/v1/tokens").expect(200);
    let key = keys["data"][0]["id"].as_str().unwrap();
    client.delete(&format!("/v1/tokens/{key}")).expect(204);
    nobody
        .post(TAKE, &code(&second))
        .expect_error(401, "unauthenticated");
}

#[test]
fn a_code_s_key_is_no_admin_s_whose_person_is_none_any_more() {
    let app = App::start();
    let person = made::person(&app, "p@b", "admin");
    let path = format!("/v1/identity/users/{}", made::id(&person));
    app.patch(&path, &json!({"tenantRole": "member"}))
        .expect(200);
    let key = app.with_token(None).post(TAKE, &code(&person)).expect(201);
    assert_eq!(key["role"], json!("member"));
}

#[test]
fn a_code_and_the_end_of_its_person_come_one_after_another() {
    // Half of it is how long a lock is waited for.
    let app = App::start_with(|options| options.store.statement_timeout = Duration::from_secs(40));
    for (email, code_comes_first) in [("a@b", true), ("b@b", false)] {
        let person = made::person(&app, email, "member");
        let user = format!("/v1/identity/users/{}", made::id(&person));
        let nobody = app.with_token(None);
        let waiting = |number: i64| {
            eventually("the request to wait for the person's row", || {
                let count = "select count(*) from pg_stat_activity
                    where datname = current_database() and wait_event_type = 'Lock'";
                let row = app.database.client().query_one(count, &[]).unwrap();
                (row.get::<_, i64>(0) == number).then_some(())
            });
        };
        let mut database = app.database.client();
        let mut held = database.transaction().unwrap();
        let lock = "select from users where user_id = $1::text::uuid for update";
        held.execute(lock, &[&made::id(&person)]).unwrap();
        let take = || nobody.post(TAKE, &code(&person));
        let end = || app.send("POST", &format!("{user}/deactivate"), None, &[]);
        let (taken, ended) = std::thread::scope(|scope| {
            if code_comes_first {
                let taking = scope.spawn(take);
                waiting(1);
                let ending = scope.spawn(end);
                waiting(2);
                held.commit().unwrap();
                (taking.join().unwrap(), ending.join().unwrap())
            } else {
                let ending = scope.spawn(end);
                waiting(1);
                let taking = scope.spawn(take);
                waiting(2);
                held.commit().unwrap();
                (taking.join().unwrap(), ending.join().unwrap())
            }
        });
        ended.expect(200);
        if code_comes_first {
            let key = taken.expect(201);
            let client = app.with_token(key["token"].as_str());
            client
                .get("/v1/tokens")
                .expect_error(401, "unauthenticated");
        } else {
            taken.expect_error(401, "unauthenticated");
        }
    }
}

#[test]
fn every_code_that_does_not_hold_is_refused_alike() {
    let app = App::start();
    let nobody = app.with_token(None);
    let used = made::person(&app, "used@b", "member");
    nobody.post(TAKE, &code(&used)).expect(201);
    let replaced = made::person(&app, "replaced@b", "member");
    let newer = again(&app, &replaced).expect(201);
    let old = made::person(&app, "old@b", "member");
    app.clock.advance(Duration::from_secs(7 * 86_400));
    let fresh = made::person(&app, "fresh@b", "member");
    let cut = &fresh["enrolment"]["code"].as_str().unwrap()[1..];
    let mut refusals = Vec::new();
    for body in [
        code(&used),
        code(&replaced),
        code(&old),
        json!({"code": newer["code"]}),
        json!({"code": cut}),
        json!({"code": "svc_en_"}),
        json!({"code": "x"}),
        json!({"code": app.token()}),
    ] {
        let mut error = nobody
            .post(TAKE, &body)
            .expect_error(401, "unauthenticated");
        error.as_object_mut().unwrap().remove("requestId");
        refusals.push(error);
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
    nobody.post(TAKE, &code(&fresh)).expect(201);
    for body in [
        json!({}),
        json!({"code": ""}),
        json!({"code": "x".repeat(201)}),
        json!({"code": "x", "userId": fresh["id"]}),
    ] {
        nobody.post(TAKE, &body).expect_error(400, "invalid-body");
    }
    let long = json!({"code": "x", "name": "x".repeat(5000)});
    nobody.post(TAKE, &long).expect_error(413, "body-too-large");
}

#[test]
fn of_two_that_bring_a_code_at_once_one_gets_the_key() {
    let app = App::start();
    let replica = app.replica(|_| {});
    for round in 0..5 {
        let person = made::person(&app, &format!("p{round}@b"), "member");
        let (body, barrier) = (code(&person), Barrier::new(4));
        let mut statuses: Vec<u16> = std::thread::scope(|scope| {
            let taking: Vec<_> = [&app, &replica, &app, &replica]
                .map(|at| {
                    let (nobody, body, barrier) = (at.with_token(None), &body, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        nobody.post(TAKE, body).status
                    })
                })
                .into_iter()
                .collect();
            taking.into_iter().map(|one| one.join().unwrap()).collect()
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 401, 401, 401]);
    }
}

#[test]
fn of_codes_made_at_once_one_holds() {
    let app = App::start();
    let person = made::person(&app, "p@b", "member");
    let (path, barrier) = (
        format!("/v1/identity/users/{}/enrolments", made::id(&person)),
        Barrier::new(4),
    );
    let codes: Vec<Value> = std::thread::scope(|scope| {
        let making: Vec<_> = (0..4)
            .map(|_| {
                let (client, path, barrier) = (app.with_token(Some(app.token())), &path, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    client.send("POST", path, None, &[]).expect(201)
                })
            })
            .collect();
        making.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let nobody = app.with_token(None);
    let taken = codes.iter().filter(|code| {
        let body = json!({"code": code["code"]});
        nobody.post(TAKE, &body).status == 201
    });
    assert_eq!(taken.count(), 1);
}

#[test]
fn a_code_is_not_stored() {
    let app = App::start();
    let person = made::person(&app, "p@b", "member");
    let code = person["enrolment"]["code"].as_str().unwrap();
    let stored: i64 = app
        .database
        .client()
        .query_one(
            "select count(*) from enrolments e where to_jsonb(e)::text like '%' || $1 || '%'",
            &[&&code[7..40]],
        )
        .unwrap()
        .get(0);
    assert_eq!(stored, 0);
    let read = app.get(&format!("/v1/identity/users/{}", made::id(&person)));
    assert!(!read.text.contains("svc_en_"));
    let account = app
        .post("/v1/service-accounts", &json!({"name": "a"}))
        .expect(201);
    again(&app, &account).expect_error(404, "not-found");
}
