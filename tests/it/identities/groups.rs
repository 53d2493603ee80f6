//! Groups of a provider, and the teams that they stand for.

use super::{come, memberships, provider, with_groups};
use crate::harness::{App, made};
use serde_json::{Value, json};
use uuid::Uuid;

struct Plant {
    app: App,
    provider: Uuid,
    ops: String,
    lab: String,
    ann: Uuid,
}

/// Leads are admins and ops members of one team, the lab members of another.
fn rows(ops: &str, lab: &str) -> Value {
    json!({"groupsClaim": "groups", "groups": [
        {"group": "leads", "teamId": ops, "role": "admin"},
        {"group": "ops", "teamId": ops, "role": "member"},
        {"group": "lab", "teamId": lab, "role": "member"},
    ]})
}

fn plant() -> Plant {
    let app = App::start();
    let (ops, lab) = (made::team(&app, "ops"), made::team(&app, "lab"));
    let provider = provider(&app, "Plant", &["plant.example"], &rows(&ops, &lab));
    let ann = made::person(&app, "ann@plant.example", "member");
    let ann = made::id(&ann).parse().unwrap();
    Plant {
        app,
        provider,
        ops,
        lab,
        ann,
    }
}

impl Plant {
    /// Arrives with these groups; how many objects are to be told.
    fn come(&self, groups: &[&str]) -> usize {
        let claims = with_groups("s-1", "ann@plant.example", groups);
        come(&self.app, self.provider, &claims)
            .unwrap()
            .objects
            .len()
    }

    /// The role in each of the two teams, and whether a group gave it.
    fn held(&self) -> [Option<(String, bool)>; 2] {
        let held = memberships(&self.app, self.ann);
        [&self.ops, &self.lab].map(|team| {
            let one = held.iter().find(|(of, _, _)| of == team);
            one.map(|(_, role, is_given)| (role.clone(), *is_given))
        })
    }

    fn by_hand(&self, team: &str, role: &str) {
        let body = json!({"userId": self.ann, "role": role});
        let path = format!("/v1/teams/{team}/memberships");
        self.app.post(&path, &body).expect(201);
    }
}

fn given(role: &str) -> Option<(String, bool)> {
    Some((role.to_owned(), true))
}

fn hand(role: &str) -> Option<(String, bool)> {
    Some((role.to_owned(), false))
}

#[test]
fn groups_give_change_and_take_memberships() {
    let plant = plant();
    assert_eq!(plant.come(&["ops", "lab", "unknown"]), 2);
    assert_eq!(plant.held(), [given("member"), given("member")]);
    // As they are already: nothing to write, nothing to tell.
    assert_eq!(plant.come(&["ops", "lab"]), 0);
    assert_eq!(plant.come(&["ops", "leads"]), 2);
    assert_eq!(plant.held(), [given("admin"), None]);
    let path = format!("/v1/teams/{}/memberships", plant.ops);
    let listed = plant.app.get(&path).expect(200);
    let listed = listed["data"].as_array().unwrap();
    let ann = listed
        .iter()
        .find(|row| row["userId"] == json!(plant.ann))
        .unwrap();
    assert_eq!(ann["identityProviderId"], json!(plant.provider));
    assert_eq!(plant.come(&[]), 1);
    assert_eq!(plant.held(), [None, None]);
}

#[test]
fn groups_that_the_provider_did_not_say_change_nothing() {
    let plant = plant();
    plant.come(&["ops"]);
    let mut silent = with_groups("s-1", "ann@plant.example", &[]);
    silent.groups = None;
    silent.groups_left_out = true;
    let come = come(&plant.app, plant.provider, &silent).unwrap();
    assert!(come.objects.is_empty());
    assert_eq!(plant.held(), [given("member"), None]);
}

#[test]
fn what_somebody_gave_no_group_touches() {
    let plant = plant();
    plant.by_hand(&plant.ops, "member");
    plant.by_hand(&plant.lab, "admin");
    assert_eq!(plant.come(&["leads", "lab"]), 0);
    assert_eq!(plant.held(), [hand("member"), hand("admin")]);
    assert_eq!(plant.come(&[]), 0);
    assert_eq!(plant.held(), [hand("member"), hand("admin")]);
    // Given by a group and then by hand: it stays when the group is gone.
    let path = format!("/v1/teams/{}/memberships/{}", plant.ops, plant.ann);
    plant.app.delete(&path).expect(204);
    plant.come(&["ops", "lab"]);
    assert_eq!(plant.held(), [given("member"), hand("admin")]);
    plant.by_hand(&plant.ops, "member");
    plant.come(&[]);
    assert_eq!(plant.held(), [hand("member"), hand("admin")]);
    plant.app.delete(&path).expect(204);
    plant.come(&["ops"]);
    plant
        .app
        .patch(&path, &json!({"role": "admin"}))
        .expect(200);
    plant.come(&[]);
    assert_eq!(plant.held(), [hand("admin"), hand("admin")]);
}

#[test]
fn providers_leave_each_others_memberships_alone() {
    let plant = plant();
    plant.come(&["ops"]);
    let domains = &["lab.example"];
    let other = provider(&plant.app, "Lab", domains, &rows(&plant.ops, &plant.lab));
    // The person has an email of the second one's domain now.
    plant.app.sql(&format!(
        "update users set email = 'ann@lab.example', email_key = 'ann@lab.example' where user_id = '{}'",
        plant.ann
    ));
    let arrive = |groups: &[&str]| {
        let claims = with_groups("l-1", "ann@lab.example", groups);
        come(&plant.app, other, &claims).unwrap();
    };
    arrive(&["leads", "lab"]);
    assert_eq!(plant.held(), [given("member"), given("member")]);
    plant.come(&[]);
    assert_eq!(plant.held(), [None, given("member")]);
    arrive(&["leads"]);
    assert_eq!(plant.held(), [given("admin"), None]);
}

#[test]
fn a_team_that_no_group_stands_for_loses_what_groups_gave() {
    let plant = plant();
    plant.come(&["ops", "lab"]);
    let path = format!("{}/{}", super::PROVIDERS, plant.provider);
    let row = json!({"groups": [{"group": "ops", "teamId": plant.ops, "role": "member"}]});
    plant.app.patch(&path, &row).expect(200);
    assert_eq!(plant.held(), [given("member"), None]);
    // Groups that are not asked for give nothing.
    plant
        .app
        .patch(&path, &json!({"groupsClaim": null, "groups": []}))
        .expect(200);
    assert_eq!(plant.held(), [None, None]);
}

#[test]
fn memberships_of_groups_end_with_the_identity_and_with_the_provider() {
    let plant = plant();
    plant.come(&["ops"]);
    plant.by_hand(&plant.lab, "member");
    let identities = format!("/v1/identity/users/{}/identities", plant.ann);
    let listed = plant.app.get(&identities).expect(200);
    let id = made::id(&listed["data"][0]);
    plant.app.delete(&format!("{identities}/{id}")).expect(204);
    assert_eq!(plant.held(), [None, hand("member")]);
    plant.come(&["ops"]);
    assert_eq!(plant.held(), [given("member"), hand("member")]);
    let path = format!("{}/{}", super::PROVIDERS, plant.provider);
    plant.app.delete(&path).expect(204);
    assert_eq!(plant.held(), [None, hand("member")]);
}

#[test]
fn a_team_that_is_deleted_leaves_the_provider() {
    let plant = plant();
    plant.come(&["ops", "lab"]);
    plant
        .app
        .delete(&format!("/v1/teams/{}", plant.lab))
        .expect(204);
    let path = format!("{}/{}", super::PROVIDERS, plant.provider);
    let shown = plant.app.get(&path).expect(200);
    assert_eq!(shown["groups"].as_array().unwrap().len(), 2);
    assert_eq!(plant.come(&["ops", "lab"]), 0);
    assert_eq!(plant.held(), [given("member"), None]);
}

#[test]
fn people_who_arrive_while_a_team_and_its_provider_change_wait_for_nobody_in_a_circle() {
    const PEOPLE: usize = 4;
    let plant = plant();
    let app = &plant.app;
    for number in 0..PEOPLE {
        made::person(app, &format!("p{number}@plant.example"), "member");
    }
    let path = format!("{}/{}", super::PROVIDERS, plant.provider);
    std::thread::scope(|scope| {
        for number in 0..PEOPLE {
            let plant = &plant;
            scope.spawn(move || {
                let email = format!("p{number}@plant.example");
                for round in 0..15 {
                    let groups: &[&str] = match (round + number) % 3 {
                        0 => &["ops", "lab"],
                        1 => &["lab"],
                        _ => &["leads"],
                    };
                    let claims = with_groups(&format!("s-{number}"), &email, groups);
                    come(&plant.app, plant.provider, &claims).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for round in 0..10 {
                let body = match round % 2 {
                    0 => {
                        json!({"groups": [{"group": "ops", "teamId": plant.ops, "role": "member"}]})
                    }
                    _ => json!({"groups": rows(&plant.ops, &plant.lab)["groups"]}),
                };
                app.patch(&path, &body).expect(200);
            }
        });
        scope.spawn(|| {
            for _ in 0..10 {
                plant.by_hand(&plant.lab, "member");
                let path = format!("/v1/teams/{}/memberships/{}", plant.lab, plant.ann);
                app.delete(&path).expect(204);
            }
        });
    });
}
