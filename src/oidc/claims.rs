//! What a provider says of a person: read from an ID token that was verified, and from userinfo where that lacks something.
//!
//! Guarantees: a claim of the wrong type is a fault, never a claim that is absent. An email is vouched for by the place that
//! it stands in, or not at all.
//!
//! Not here: who the person is, and which teams their groups mean.

use super::fault::{Code, Fault};
use crate::config::identity_providers::GROUP_NAME_MOST;
use serde_json::{Map, Value};

/// Names of groups that are read. One of more characters than can be registered fits none.
const GROUPS_MOST: usize = 500;

/// Bytes of an email (RFC 5321) with room to spare, and of a subject (OpenID Connect Core, section 2).
const EMAIL_BYTES: usize = 320;
const SUBJECT_BYTES: usize = 255;
const NAME_BYTES: usize = 200;

/// What a provider says of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who it is at the provider, for good.
    pub subject: String,
    /// The email, if it says one.
    pub email: Option<String>,
    /// The provider says that the email is the person's: `email_verified` is true, or `xms_edov`.
    pub email_vouched: bool,
    /// What to call the person.
    pub name: Option<String>,
    /// The person's groups. None: they were not asked for, are absent, or were left out: nothing is to change.
    pub groups: Option<Vec<String>>,
    /// The provider says that it left groups out, or names more than are read.
    pub groups_left_out: bool,
}

type Found = Map<String, Value>;

fn wrong(name: &str, is: &str) -> Fault {
    Fault::new(Code::ClaimWrong, format!("The claim {name} {is}."))
}

/// A text, if the claim is there.
pub(super) fn text<'f>(found: &'f Found, name: &str) -> Result<Option<&'f str>, Fault> {
    match found.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(wrong(name, "is not a text")),
    }
}

/// A text that has to be there.
pub(super) fn needed<'f>(found: &'f Found, name: &str) -> Result<&'f str, Fault> {
    let text = text(found, name)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| wrong(name, "is missing"))
}

/// A time in seconds since 1970 (RFC 7519, NumericDate), if the claim is there.
pub(super) fn seconds(found: &Found, name: &str) -> Result<Option<i64>, Fault> {
    // No time of ours is further away; a number beyond is none.
    const MOST: f64 = 1e12;
    match found.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let whole = number
                .as_i64()
                .filter(|at| at.unsigned_abs() < 1_000_000_000_000);
            let parted = || number.as_f64().filter(|at| at.abs() < MOST);
            #[expect(clippy::cast_possible_truncation, reason = "it is below the bound")]
            let at = whole.or_else(|| parted().map(|at| at.floor() as i64));
            at.map(Some).ok_or_else(|| wrong(name, "is not a time"))
        }
        Some(_) => Err(wrong(name, "is not a number")),
    }
}

/// Who it is.
pub(super) fn subject(found: &Found) -> Result<&str, Fault> {
    let subject = needed(found, "sub")?;
    match subject.len() <= SUBJECT_BYTES {
        true => Ok(subject),
        false => Err(wrong("sub", "is longer than 255 bytes")),
    }
}

/// True, as JSON or as a text: some providers send the text.
fn is_true(found: &Found, name: &str) -> bool {
    match found.get(name) {
        Some(Value::Bool(is)) => *is,
        Some(Value::String(text)) => text == "true",
        _ => false,
    }
}

/// The email and whether it is vouched for, both from one place.
fn email(found: &Found) -> Result<Option<(String, bool)>, Fault> {
    let Some(email) = text(found, "email")?.filter(|email| !email.is_empty()) else {
        return Ok(None);
    };
    if email.len() > EMAIL_BYTES {
        return Err(wrong("email", "is longer than 320 bytes"));
    }
    let is_vouched = is_true(found, "email_verified") || is_true(found, "xms_edov");
    Ok(Some((email.to_owned(), is_vouched)))
}

/// Whether groups were left out because there are too many: `_claim_names` says where else they are, `hasgroups` that there
/// are some.
fn are_left_out(found: &Found, claim: &str) -> bool {
    let elsewhere = found.get("_claim_names").and_then(Value::as_object);
    elsewhere.is_some_and(|names| names.contains_key(claim)) || is_true(found, "hasgroups")
}

/// The groups, if the claim is there: a list of texts, or one text.
fn groups(found: &Found, claim: &str) -> Result<Option<Vec<String>>, Fault> {
    let names = match found.get(claim) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => {
            let texts = names.iter().map(Value::as_str);
            let texts: Option<Vec<&str>> = texts.collect();
            texts.ok_or_else(|| wrong(claim, "is not a list of texts"))?
        }
        Some(_) => return Err(wrong(claim, "is not a list of texts")),
    };
    Ok(Some(names.into_iter().map(str::to_owned).collect()))
}

/// What was read so far, and from where more may come.
pub(super) struct Reading<'c> {
    groups_claim: Option<&'c str>,
    claims: Claims,
}

impl<'c> Reading<'c> {
    /// Of an ID token that was verified.
    pub(super) fn of_token(found: &Found, groups_claim: Option<&'c str>) -> Result<Self, Fault> {
        let mut reading = Self {
            groups_claim,
            claims: Claims {
                subject: subject(found)?.to_owned(),
                email: None,
                email_vouched: false,
                name: None,
                groups: None,
                groups_left_out: false,
            },
        };
        check_session(found)?;
        reading.add(found)?;
        Ok(reading)
    }

    /// Whether userinfo may have what the ID token lacks.
    pub(super) fn lacks(&self) -> bool {
        let claims = &self.claims;
        let lacks_groups =
            self.groups_claim.is_some() && claims.groups.is_none() && !claims.groups_left_out;
        claims.email.is_none() || lacks_groups
    }

    /// Adds what userinfo has and the ID token lacks. It has to be of the same person.
    pub(super) fn add_userinfo(&mut self, found: &Found) -> Result<(), Fault> {
        if subject(found)? != self.claims.subject {
            return Err(Fault::new(
                Code::ClaimWrong,
                "The claim sub of userinfo is another than that of the ID token.",
            ));
        }
        self.add(found)
    }

    fn add(&mut self, found: &Found) -> Result<(), Fault> {
        let claims = &mut self.claims;
        if claims.email.is_none()
            && let Some((email, is_vouched)) = email(found)?
        {
            (claims.email, claims.email_vouched) = (Some(email), is_vouched);
        }
        if claims.name.is_none() {
            // It is for people to read: of another type, or empty, it is none.
            let names = ["name", "preferred_username"].into_iter();
            let mut names = names.filter_map(|name| found.get(name)?.as_str());
            let name = names.find(|name| !name.trim().is_empty());
            claims.name = name.map(|name| crate::text::beginning(name, NAME_BYTES).to_owned());
        }
        if let Some(claim) = self.groups_claim {
            claims.groups_left_out |= are_left_out(found, claim);
            if claims.groups.is_none() {
                claims.groups = groups(found, claim)?;
            }
        }
        Ok(())
    }

    /// All that was read.
    pub(super) fn claims(self) -> Claims {
        let mut claims = self.claims;
        let count = claims.groups.as_ref().map_or(0, Vec::len);
        claims.groups_left_out |= count > GROUPS_MOST;
        if claims.groups_left_out {
            claims.groups = None;
        }
        if let Some(groups) = &mut claims.groups {
            groups.retain(|name| name.chars().count() <= GROUP_NAME_MOST);
        }
        claims
    }
}

/// The session at the provider is of no use here; one that is none is refused, as every claim of a wrong type is.
fn check_session(found: &Found) -> Result<(), Fault> {
    match text(found, "sid")? {
        Some(session) if session.len() > SUBJECT_BYTES => {
            Err(wrong("sid", "is longer than 255 bytes"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Found {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    fn read(token: Value, userinfo: Option<Value>) -> Result<Claims, Fault> {
        let mut token = map(token);
        token.insert("sub".to_owned(), json!("s-1"));
        let mut reading = Reading::of_token(&token, Some("groups"))?;
        if let Some(userinfo) = userinfo {
            assert!(reading.lacks());
            reading.add_userinfo(&map(userinfo))?;
        }
        Ok(reading.claims())
    }

    #[test]
    fn an_email_is_vouched_for_by_true_alone() {
        for (verified, is_vouched) in [
            (json!({"email_verified": true}), true),
            (json!({"email_verified": "true"}), true),
            (json!({"xms_edov": true}), true),
            (json!({}), false),
            (json!({"email_verified": false}), false),
            (json!({"email_verified": 1}), false),
            (json!({"email_verified": "1"}), false),
            (json!({"email_verified": "True"}), false),
            (json!({"email_verified": ["true"]}), false),
            (json!({"email_verified": null, "xms_edov": false}), false),
        ] {
            let mut token = verified.clone();
            token["email"] = json!("ada@plant.example");
            let claims = read(token, None).unwrap();
            assert_eq!(claims.email_vouched, is_vouched, "{verified}");
            assert_eq!(claims.email.as_deref(), Some("ada@plant.example"));
        }
    }

    #[test]
    fn no_place_vouches_for_the_email_of_another() {
        // The ID token's email stays, and what userinfo says of its own does not count for it.
        let claims = read(
            json!({"email": "ada@plant.example"}),
            Some(json!({"sub": "s-1", "email": "root@plant.example", "email_verified": true, "groups": ["a"]})),
        )
        .unwrap();
        assert_eq!(claims.email.as_deref(), Some("ada@plant.example"));
        assert!(!claims.email_vouched);
        assert_eq!(claims.groups, Some(vec!["a".to_owned()]));
        // An ID token that vouches for no email vouches for none of userinfo's.
        let claims = read(
            json!({"email_verified": true}),
            Some(json!({"sub": "s-1", "email": "ada@plant.example"})),
        );
        assert!(!claims.unwrap().email_vouched);
    }

    #[test]
    fn userinfo_of_somebody_else_is_refused() {
        for sub in [json!("s-2"), json!(null), json!(1), json!("")] {
            let refused = read(json!({}), Some(json!({"sub": sub, "email": "a@b"})));
            assert_eq!(refused.unwrap_err().code(), Code::ClaimWrong, "{sub}");
        }
    }

    #[test]
    fn a_claim_of_the_wrong_type_is_not_absent() {
        for token in [
            json!({"email": ["ada@plant.example"]}),
            json!({"email": {"a": 1}}),
            json!({"email": "a".repeat(321)}),
            json!({"groups": {"a": true}}),
            json!({"groups": ["a", 1]}),
            json!({"groups": 7}),
            json!({"sid": 7}),
        ] {
            let refused = read(token.clone(), None);
            assert_eq!(refused.unwrap_err().code(), Code::ClaimWrong, "{token}");
        }
    }

    #[test]
    fn groups_that_were_left_out_change_nothing() {
        let many: Vec<String> = (0..=GROUPS_MOST).map(|n| format!("g{n}")).collect();
        for token in [
            json!({"_claim_names": {"groups": "src1"}}),
            json!({"_claim_names": {"groups": "src1"}, "groups": ["a"]}),
            json!({"hasgroups": true}),
            json!({"groups": many}),
        ] {
            let claims = read(token.clone(), None).unwrap();
            assert!(claims.groups_left_out, "{token}");
            assert_eq!(claims.groups, None);
        }
        let absent = read(json!({}), None).unwrap();
        assert!(!absent.groups_left_out && absent.groups.is_none());
        let none = read(json!({"groups": []}), None).unwrap();
        assert_eq!(none.groups, Some(Vec::new()));
        let long = json!({"groups": ["a", "é".repeat(256), "é".repeat(257)]});
        assert_eq!(read(long, None).unwrap().groups.unwrap().len(), 2);
        let one = read(json!({"groups": "a"}), None).unwrap();
        assert_eq!(one.groups, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn a_time_is_a_number() {
        let read = |value: Value| seconds(&map(json!({"exp": value})), "exp");
        assert_eq!(read(json!(1_700_000_000)).unwrap(), Some(1_700_000_000));
        assert_eq!(read(json!(1_700_000_000.9)).unwrap(), Some(1_700_000_000));
        assert_eq!(read(json!(-1.5)).unwrap(), Some(-2));
        assert_eq!(read(Value::Null).unwrap(), None);
        for value in [
            json!("9999999999"),
            json!(true),
            json!([1]),
            json!(1e300),
            json!(u64::MAX),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }
}
