//! Who a subject is.

use super::{claims, come, provider, session};
use crate::harness::{App, made};
use agent_runtime::api::arrivals::Problem;
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;
use uuid::Uuid;

fn person(app: &App, email: &str) -> Uuid {
    made::id(&made::person(app, email, "member"))
        .parse()
        .unwrap()
}

fn identities(app: &App, user_id: Uuid) -> Vec<Value> {
    let path = format!("/v1/identity/users/{user_id}/identities");
    let page = app.get(&path).expect(200);
    page["data"].as_array().unwrap().clone()
}

#[test]
fn a_subject_is_bound_once_by_its_email_and_is_its_person_from_then_on() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let ann = person(&app, "Ann@Plant.example");
    let first = come(&app, plant, &claims("s-1", "aNN@plant.EXAMPLE")).unwrap();
    assert_eq!(first.user_id, ann);
    assert!(first.binding.is_some_and(|binding| !binding.was_added));
    let listed = identities(&app, ann);
    assert_eq!(listed[0]["subject"], json!("s-1"));
    assert_eq!(listed[0]["emailThen"], json!("aNN@plant.EXAMPLE"));
    assert_eq!(listed[0]["providerName"], json!("Plant"));
    assert_eq!(listed[0]["identityProviderId"], json!(plant));
    // Neither the provider's email nor the person's counts any more.
    app.clock.advance(Duration::from_secs(60));
    let bob = person(&app, "bob@plant.example");
    let again = come(&app, plant, &claims("s-1", "bob@plant.example")).unwrap();
    assert_eq!(again.user_id, ann);
    assert_eq!(again.binding, None);
    let mut silent = claims("s-1", "");
    silent.email = None;
    silent.email_vouched = false;
    assert_eq!(come(&app, plant, &silent).unwrap().user_id, ann);
    assert_ne!(
        identities(&app, ann)[0]["lastUsedAt"],
        listed[0]["lastUsedAt"]
    );
    assert!(identities(&app, bob).is_empty());
    // The same subject at another provider is somebody else.
    let lab = provider(&app, "Lab", &["lab.example"], &json!({}));
    assert_eq!(
        come(&app, lab, &claims("s-1", "ann@plant.example")).unwrap_err(),
        Problem::EmailNotCovered
    );
}

#[test]
fn whoever_is_nobody_here_is_told_why() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let ann = person(&app, "ann@plant.example");
    person(&app, "eve@other.example");
    let why = |claims| come(&app, plant, &claims).unwrap_err();
    let mut unsaid = claims("s-1", "ann@plant.example");
    unsaid.email = None;
    assert_eq!(why(unsaid), Problem::NoEmail);
    let mut unvouched = claims("s-1", "ann@plant.example");
    unvouched.email_vouched = false;
    assert_eq!(why(unvouched.clone()), Problem::EmailNotVouched);
    assert_eq!(
        why(claims("s-1", "eve@other.example")),
        Problem::EmailNotCovered
    );
    assert_eq!(why(claims("s-1", "kim@plant.example")), Problem::NotAPerson);
    come(&app, plant, &claims("s-1", "ann@plant.example")).unwrap();
    assert_eq!(
        why(claims("s-2", "ann@plant.example")),
        Problem::AlreadyBound
    );
    let path = format!("/v1/identity/users/{ann}/deactivate");
    app.send("POST", &path, None, &[]).expect(200);
    assert_eq!(
        why(claims("s-1", "ann@plant.example")),
        Problem::PersonDeactivated
    );
    let gone = person(&app, "gone@plant.example");
    app.deactivate(gone);
    assert_eq!(
        why(claims("s-3", "gone@plant.example")),
        Problem::PersonDeactivated
    );
    // Where nobody chooses an email of their own, the provider's word is enough.
    let trusted = json!({"emailTrust": "provider"});
    let lab = provider(&app, "Lab", &["lab.example"], &trusted);
    let lea = person(&app, "lea@lab.example");
    unvouched.email = Some("lea@lab.example".to_owned());
    assert_eq!(come(&app, lab, &unvouched).unwrap().user_id, lea);
}

#[test]
fn an_email_of_other_letters_is_nobodys() {
    let app = App::start();
    let adds = json!({"createsPeople": true});
    let plant = provider(&app, "Plant", &["plant.example"], &adds);
    person(&app, "kim@plant.example");
    person(&app, "i@plant.example");
    for (email, problem) in [
        ("\u{212a}im@plant.example", Problem::NotAPerson),
        ("kim@plant.example.", Problem::EmailNotCovered),
        ("kim@p\u{131}ant.example", Problem::EmailNotCovered),
        ("kim@plant.example@plant.example", Problem::NoEmail),
        (" kim@plant.example", Problem::NoEmail),
        ("kim\u{0}@plant.example", Problem::NoEmail),
    ] {
        let refused = come(&app, plant, &claims("s-1", email)).unwrap_err();
        assert_eq!(refused, problem, "{email:?}");
    }
    // A capital I with a dot is another letter than i, so this is a new person.
    let dotted = come(&app, plant, &claims("s-2", "İ@plant.example")).unwrap();
    assert!(dotted.binding.unwrap().was_added);
    let upper = come(&app, plant, &claims("s-3", "KIM@PLANT.EXAMPLE")).unwrap();
    assert!(!upper.binding.unwrap().was_added);
}

#[test]
fn people_are_added_only_where_that_is_switched_on() {
    let app = App::start();
    let adds = json!({"createsPeople": true});
    let plant = provider(&app, "Plant", &["plant.example"], &adds);
    let mut new = claims("s-1", "kim@plant.example");
    new.name = Some("Kim\u{7} \n Lee".to_owned());
    let kim = come(&app, plant, &new).unwrap();
    assert!(kim.binding.unwrap().was_added);
    assert_eq!(kim.objects.len(), 1);
    let shown = app
        .get(&format!("/v1/identity/users/{}", kim.user_id))
        .expect(200);
    assert_eq!(shown["email"], json!("kim@plant.example"));
    assert_eq!(shown["displayName"], json!("Kim    Lee"));
    assert_eq!(shown["tenantRole"], json!("member"));
    assert_eq!(shown["createdBy"], Value::Null);
    let mut unnamed = claims("s-2", "lee@plant.example");
    unnamed.name = None;
    let lee = come(&app, plant, &unnamed).unwrap();
    let shown = app
        .get(&format!("/v1/identity/users/{}", lee.user_id))
        .expect(200);
    assert_eq!(shown["displayName"], json!("lee@plant.example"));
    // What it does not speak for it adds to nobody.
    let refused = come(&app, plant, &claims("s-3", "eve@other.example"));
    assert_eq!(refused.unwrap_err(), Problem::EmailNotCovered);
    let people = app
        .get("/v1/identity/users?email=eve@other.example")
        .expect(200);
    assert_eq!(people["data"], json!([]));
    app.patch(
        &format!("{}/{plant}", super::PROVIDERS),
        &json!({"createsPeople": false}),
    )
    .expect(200);
    let refused = come(&app, plant, &claims("s-4", "new@plant.example"));
    assert_eq!(refused.unwrap_err(), Problem::NotAPerson);
}

#[test]
fn browsers_of_one_new_subject_at_once_are_one_person() {
    const BROWSERS: usize = 6;
    let app = App::start();
    let team = made::team(&app, "ops");
    let adds = json!({"createsPeople": true, "groupsClaim": "groups",
        "groups": [{"group": "ops", "teamId": team, "role": "member"}]});
    let plant = provider(&app, "Plant", &["plant.example"], &adds);
    for round in 0..10 {
        let email = format!("new{round}@plant.example");
        let barrier = Barrier::new(BROWSERS);
        let arrived: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..BROWSERS)
                .map(|_| {
                    scope.spawn(|| {
                        let claims = super::with_groups(&format!("s-{round}"), &email, &["ops"]);
                        barrier.wait();
                        come(&app, plant, &claims).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let first = arrived[0].user_id;
        assert!(arrived.iter().all(|one| one.user_id == first));
        let bound = arrived.iter().filter(|one| one.binding.is_some()).count();
        assert_eq!(bound, 1);
        assert_eq!(identities(&app, first).len(), 1);
        assert_eq!(super::memberships(&app, first).len(), 1);
    }
}

#[test]
fn of_two_subjects_with_one_email_at_once_one_is_the_person() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    for round in 0..10 {
        let email = format!("p{round}@plant.example");
        let ann = person(&app, &email);
        let barrier = Barrier::new(2);
        let come_as = |subject: String| {
            barrier.wait();
            come(&app, plant, &claims(&subject, &email)).map(|arrived| arrived.user_id)
        };
        let (one, other) = std::thread::scope(|scope| {
            let one = scope.spawn(|| come_as(format!("a-{round}")));
            let other = scope.spawn(|| come_as(format!("b-{round}")));
            (one.join().unwrap(), other.join().unwrap())
        });
        let mut both = [one, other];
        both.sort_by_key(Result::is_err);
        assert_eq!(both, [Ok(ann), Err(Problem::AlreadyBound)]);
    }
}

#[test]
fn an_identity_that_is_unlinked_ends_the_sessions_that_it_opened() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let lab = provider(&app, "Lab", &["lab.example"], &json!({}));
    let ann = person(&app, "ann@plant.example");
    come(&app, plant, &claims("s-1", "ann@plant.example")).unwrap();
    let (by_plant, by_lab) = (session(&app, plant, ann), session(&app, lab, ann));
    let me = |value: &str| app.browser(value).get("/v1/identity/me").status;
    assert_eq!((me(&by_plant), me(&by_lab)), (200, 200));
    let id = made::id(&identities(&app, ann)[0]);
    let path = format!("/v1/identity/users/{ann}/identities/{id}");
    app.delete(&path).expect(204);
    assert_eq!((me(&by_plant), me(&by_lab)), (401, 200));
    app.delete(&path).expect_error(404, "not-found");
    let nobody = format!("/v1/identity/users/{ann}/identities/none");
    app.delete(&nobody).expect_error(404, "not-found");
    // Another person's is not reached by this one's path.
    let bob = person(&app, "bob@plant.example");
    come(&app, plant, &claims("s-2", "bob@plant.example")).unwrap();
    let id = made::id(&identities(&app, bob)[0]);
    let crossed = format!("/v1/identity/users/{ann}/identities/{id}");
    app.delete(&crossed).expect_error(404, "not-found");
    // The person may be bound anew, also as another subject.
    let anew = come(&app, plant, &claims("s-3", "ann@plant.example")).unwrap();
    assert_eq!(anew.user_id, ann);
}

#[test]
fn a_provider_that_is_deleted_takes_its_identities_and_sessions_with_it() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let ann = person(&app, "ann@plant.example");
    come(&app, plant, &claims("s-1", "ann@plant.example")).unwrap();
    let value = session(&app, plant, ann);
    app.browser(&value).get("/v1/identity/me").expect(200);
    app.delete(&format!("{}/{plant}", super::PROVIDERS))
        .expect(204);
    app.browser(&value)
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
    assert!(identities(&app, ann).is_empty());
    let gone = super::try_to_come(&app, plant, &claims("s-1", "ann@plant.example"));
    assert_eq!(gone.unwrap_err().code().text(), "not-found");
}

#[test]
fn deactivating_a_person_ends_their_sessions() {
    let app = App::start();
    let plant = provider(&app, "Plant", &["plant.example"], &json!({}));
    let ann = person(&app, "ann@plant.example");
    let value = session(&app, plant, ann);
    app.browser(&value).get("/v1/identity/me").expect(200);
    let path = format!("/v1/identity/users/{ann}/deactivate");
    app.send("POST", &path, None, &[]).expect(200);
    app.browser(&value)
        .get("/v1/identity/me")
        .expect_error(401, "unauthenticated");
}
