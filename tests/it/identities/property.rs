//! Whatever happens in whatever order, no subject gets a person for whose email its provider does not speak.

use super::{claims, come, provider};
use crate::harness::{App, made};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::collections::HashMap;
use uuid::Uuid;

/// People and subjects of a case.
const PEOPLE: usize = 4;
const SUBJECTS: usize = 3;

/// A provider by its place among those of a case, and a subject there.
#[derive(Debug, Clone)]
enum Step {
    Add {
        person: usize,
        email: usize,
    },
    Come {
        provider: usize,
        subject: usize,
        email: usize,
        spelling: usize,
        is_vouched: bool,
    },
    ChangeEmail {
        person: usize,
        email: usize,
    },
    Unlink {
        person: usize,
    },
    Deactivate {
        person: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let person = 0..PEOPLE;
    let email = 0..6_usize;
    let step = prop_oneof![
        3 => (person.clone(), email.clone()).prop_map(|(person, email)| Step::Add { person, email }),
        8 => (0..3_usize, 0..SUBJECTS, email.clone(), 0..5_usize, prop::bool::weighted(0.8)).prop_map(
            |(provider, subject, email, spelling, is_vouched)| Step::Come {
                provider, subject, email, spelling, is_vouched
            }
        ),
        2 => (person.clone(), email).prop_map(|(person, email)| Step::ChangeEmail { person, email }),
        1 => person.clone().prop_map(|person| Step::Unlink { person }),
        1 => person.prop_map(|person| Step::Deactivate { person }),
    ];
    prop::collection::vec(step, 1..24)
}

/// Emails of three domains, two of which a provider speaks for.
fn email(case: u32, number: usize) -> String {
    let domain = ["a", "b", "c"][number % 3];
    format!("kim{}@{domain}{case}.example", number / 3)
}

/// The email as somebody hostile may spell it.
fn spelt(email: &str, spelling: usize) -> String {
    match spelling {
        1 => email.to_uppercase(),
        2 => email.replacen('k', "\u{212a}", 1),
        3 => format!("{email}."),
        4 => email.replacen('i', "İ", 1),
        _ => email.to_owned(),
    }
}

struct Case<'a> {
    app: &'a App,
    number: u32,
    /// Each with the domain that it speaks for; the third speaks for none, though it is trusted and adds people.
    providers: [(Uuid, &'static str); 3],
    people: HashMap<usize, Uuid>,
    /// Whose each subject is, as this test has seen it.
    bound: HashMap<(usize, usize), Uuid>,
}

impl Case<'_> {
    fn email_of(&self, user_id: Uuid) -> Option<String> {
        let select = "select email from users where user_id = $1";
        let row = self.app.database.client().query_one(select, &[&user_id]);
        row.unwrap().get(0)
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Add { person, email } => self.add(person, email),
            Step::ChangeEmail { person, email } => self.change_email(person, email),
            Step::Deactivate { person } => {
                if let Some(user_id) = self.people.get(&person) {
                    self.app.deactivate(*user_id);
                }
            }
            Step::Unlink { person } => self.unlink(person),
            Step::Come {
                provider,
                subject,
                email: number,
                spelling,
                is_vouched,
            } => {
                let email = spelt(&email(self.number, number), spelling);
                self.come(provider, subject, &email, is_vouched);
            }
        }
    }

    fn add(&mut self, person: usize, number: usize) {
        let body = json!({"email": email(self.number, number), "displayName": "Kim", "tenantRole": "member"});
        let added = self.app.post("/v1/identity/users", &body);
        if added.status == 201 {
            let added = added.expect(201);
            self.people
                .insert(person, made::id(&added).parse().unwrap());
        }
    }

    fn change_email(&self, person: usize, number: usize) {
        let Some(user_id) = self.people.get(&person) else {
            return;
        };
        let email = email(self.number, number);
        let update = "update users set email = $2, email_key = $2 where user_id = $1
            and not exists (select from users o where o.email_key = $2 and o.user_id <> $1)";
        let changed = self
            .app
            .database
            .client()
            .execute(update, &[user_id, &email]);
        changed.unwrap();
    }

    fn unlink(&mut self, person: usize) {
        let Some(user_id) = self.people.get(&person).copied() else {
            return;
        };
        let path = format!("/v1/identity/users/{user_id}/identities");
        let listed = self.app.get(&path).expect(200);
        for identity in listed["data"].as_array().unwrap() {
            let one = format!("{path}/{}", made::id(identity));
            self.app.delete(&one).expect(204);
        }
        self.bound.retain(|_, bound| *bound != user_id);
    }

    fn come(&mut self, at: usize, subject: usize, email: &str, is_vouched: bool) {
        let (provider, domain) = self.providers[at];
        let mut said = claims(&format!("s-{subject}"), email);
        said.email_vouched = is_vouched;
        let before = self.bound.get(&(at, subject)).copied();
        let Ok(arrived) = come(self.app, provider, &said) else {
            return;
        };
        match (before, &arrived.binding) {
            (Some(before), binding) => {
                assert_eq!(arrived.user_id, before, "a bound subject is its person");
                assert_eq!(*binding, None);
            }
            (None, binding) => {
                let binding = binding
                    .as_ref()
                    .expect("a subject is bound before it is known");
                let own = format!("@{domain}{}.example", self.number);
                assert!(!domain.is_empty(), "this provider speaks for nobody");
                assert!(is_vouched, "nobody vouched for {email}");
                assert!(
                    email.to_ascii_lowercase().ends_with(&own),
                    "{email} is not of {own}"
                );
                let held = self.email_of(arrived.user_id).unwrap();
                assert!(held.eq_ignore_ascii_case(email), "{email} is not {held}");
                assert_eq!(binding.email, email);
                let others = self.bound.iter().filter(|((of, _), _)| *of == at);
                let is_others = others
                    .into_iter()
                    .any(|(_, bound)| *bound == arrived.user_id);
                assert!(!is_others, "the person had another subject there");
                self.bound.insert((at, subject), arrived.user_id);
            }
        }
    }
}

#[test]
fn no_subject_gets_a_person_for_whose_email_its_provider_does_not_speak() {
    let app = App::start();
    let cases = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    });
    let outcome = runner.run(&steps(), |steps| {
        app.sql("delete from identities; delete from identity_providers");
        cases.set(cases.get() + 1);
        let case_number = cases.get();
        let of = |name: &str, domain: &str, beside| {
            let domain = format!("{domain}{case_number}.example");
            let domains = [domain.as_str()];
            let domains: &[&str] = if name == "None" { &[] } else { &domains };
            provider(&app, name, domains, &beside)
        };
        let mut case = Case {
            app: &app,
            number: case_number,
            providers: [
                (of("One", "a", json!({"createsPeople": true})), "a"),
                (of("Two", "b", json!({})), "b"),
                (
                    of(
                        "None",
                        "",
                        json!({"createsPeople": true, "emailTrust": "provider"}),
                    ),
                    "",
                ),
            ],
            people: HashMap::new(),
            bound: HashMap::new(),
        };
        for step in &steps {
            case.step(step);
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
