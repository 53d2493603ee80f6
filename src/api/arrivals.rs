//! Maps a subject of an identity provider to a person. No other code does this.
//!
//! A bound subject is its person. A new subject is bound once, by its email, if the provider verified the email and speaks
//! for its domain in this tenant, and if the person has no other subject there. After that the email does not matter. If
//! nobody has the email, a provider with `createsPeople` adds a member.
//!
//! The groups in the claims add and remove the team memberships that came from this provider, and no others.
//!
//! Guarantees: all of this happens in the transaction that opens the session. A subject is never bound to a person whose
//! email domain its provider does not speak for. Two sign-ins of one new subject at the same time bind it once.
//!
//! Not here: verifying the claims (`oidc`), and the session (`sign_in`).

use crate::authz::desired_tuples::{Object, mark};
use crate::authz::{Checker, Stage};
use crate::error::{Error, Result};
use crate::oidc::Claims;
use crate::proof::Kind;
use crate::store::Tx;
use crate::store::identities::{self, Bound, GroupsFault, Subject};
use crate::store::identity_providers::{self, EmailTrust, IdentityProvider};
use crate::store::principals::is_same_email;
use crate::store::team_memberships::{ByGroups, Role};
use crate::store::users::{self, NewPerson, Person, TenantRole, User};
use crate::text::{self, is_email};
use std::collections::{BTreeMap, HashSet};
use time::OffsetDateTime;
use uuid::Uuid;

/// What binding is called in decisions.
const ACTION: &str = "sign-in";

/// Bytes of a new person's name that are kept.
const NAME_BYTES: usize = 200;

/// Why somebody is nobody here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The provider named no email, or none that is one.
    NoEmail,
    /// The provider does not say that it verified the email.
    EmailNotVouched,
    /// The provider does not speak for the email's domain here.
    EmailNotCovered,
    /// The person has another subject at this provider.
    AlreadyBound,
    /// Nobody added a person with this email.
    NotAPerson,
    /// The person was deactivated.
    PersonDeactivated,
}

impl Problem {
    /// Every problem.
    pub const ALL: [Self; 6] = [
        Self::NoEmail,
        Self::EmailNotVouched,
        Self::EmailNotCovered,
        Self::AlreadyBound,
        Self::NotAPerson,
        Self::PersonDeactivated,
    ];

    /// As the page gets it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoEmail => "no-email",
            Self::EmailNotVouched => "email-not-vouched",
            Self::EmailNotCovered => "email-not-covered",
            Self::AlreadyBound => "already-bound",
            Self::NotAPerson => "not-a-person",
            Self::PersonDeactivated => "person-deactivated",
        }
    }
}

/// By which provider somebody arrives, and what is new if they do for the first time.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The provider's tenant.
    pub tenant_id: Uuid,
    /// The provider.
    pub identity_provider_id: Uuid,
    /// The id of a person to be added.
    pub new_user_id: Uuid,
    /// The id of an identity to be bound.
    pub new_identity_id: Uuid,
    /// Now.
    pub now: OffsetDateTime,
}

/// How an identity came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The email that bound it.
    pub email: String,
    /// The provider added the person.
    pub was_added: bool,
}

/// Who arrived.
#[derive(Debug)]
pub struct Arrived {
    /// The person.
    pub user_id: Uuid,
    /// They arrive for the first time.
    pub binding: Option<Binding>,
    /// What the authorization server is to be told of, once this is committed.
    pub objects: Vec<Object>,
}

impl Arrived {
    /// Records that a subject was bound.
    ///
    /// # Errors
    /// `audit-unavailable`.
    pub(super) fn record(&self, checker: &Checker<'_>, provider: &IdentityProvider) -> Result<()> {
        let Some(binding) = &self.binding else {
            return Ok(());
        };
        let (user_id, email) = (self.user_id, &binding.email);
        let (provider_id, name) = (provider.identity_provider_id, &provider.name);
        let added = match binding.was_added {
            true => ", who was added",
            false => "",
        };
        let reason = format!(
            "a subject of identity-provider:{provider_id} ({name}) was bound to user:{user_id}{added}, by the email {email}"
        );
        let resource = format!("user:{user_id}");
        checker.allow(Stage::IdentityBound, ACTION, &resource, reason)
    }
}

/// Decides who it is, binds a subject that arrives for the first time, and follows its groups.
///
/// # Errors
/// `not-found`: the provider was deleted. `database-unavailable`.
pub fn arrive(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    claims: &Claims,
) -> Result<Result<Arrived, Problem>> {
    let Arrival { tenant_id, now, .. } = *arrival;
    let provider = identity_providers::keep(tx, tenant_id, arrival.identity_provider_id)?;
    let wanted = wanted(&provider, claims);
    let groups = wanted.as_ref().map(|wanted| ByGroups {
        tenant_id,
        identity_provider_id: provider.identity_provider_id,
        wanted,
    });
    // Teams come before users in the order of locks, so whoever it seems to be is looked up before.
    let locked = match &groups {
        Some(groups) => {
            let expected = expected(tx, arrival, &provider, claims)?;
            groups.lock(tx, expected)?
        }
        None => Vec::new(),
    };
    let (person, binding) = match who_is(tx, arrival, &provider, claims)? {
        Ok(who) => who,
        Err(problem) => return Ok(Err(problem)),
    };
    let changed = match &groups {
        Some(groups) => groups.follow(tx, person.user_id, &locked, now)?,
        None => Vec::new(),
    };
    let mut objects: Vec<Object> = changed.into_iter().map(Object::Team).collect();
    if binding.as_ref().is_some_and(|binding| binding.was_added) {
        objects.push(Object::Tenant(tenant_id));
    }
    mark(tx, tenant_id, &objects)?;
    Ok(Ok(Arrived {
        user_id: person.user_id,
        binding,
        objects,
    }))
}

impl Arrival {
    fn subject<'a>(&self, claims: &'a Claims) -> Subject<'a> {
        Subject {
            tenant_id: self.tenant_id,
            identity_provider_id: self.identity_provider_id,
            subject: &claims.subject,
        }
    }
}

/// Whom it will be, as far as one sees without locking anybody.
fn expected(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    provider: &IdentityProvider,
    claims: &Claims,
) -> Result<Option<Uuid>> {
    if let Some(bound) = identities::of_subject(tx, arrival.subject(claims))? {
        return Ok(Some(bound.user_id));
    }
    let Ok(email) = spoken_for(provider, claims) else {
        return Ok(None);
    };
    let person = users::find_by_email(tx, arrival.tenant_id, email)?;
    Ok(person.map(|person| person.id()))
}

type Who = (User, Option<Binding>);

/// Who it is. The person's row is locked.
fn who_is(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    provider: &IdentityProvider,
    claims: &Claims,
) -> Result<Result<Who, Problem>> {
    let (subject, fault) = (arrival.subject(claims), groups_fault(provider, claims));
    if let Some(bound) = identities::of_subject(tx, subject)? {
        let person = locked(tx, arrival.tenant_id, bound.user_id)?;
        // It may have been unlinked while this waited for the row.
        if identities::of_subject(tx, subject)? == Some(bound) {
            return come_again(tx, arrival, bound, person, fault);
        }
    }
    let email = match spoken_for(provider, claims) {
        Ok(email) => email,
        Err(problem) => return Ok(Err(problem)),
    };
    let mut was_added = false;
    let found = match users::find_by_email(tx, arrival.tenant_id, email)? {
        Some(found) => Some(found),
        None if provider.creates_people => {
            let added = add(tx, arrival, email, claims)?;
            was_added = added.is_some();
            match added {
                Some(added) => Some(added),
                // Somebody added them at this very moment.
                None => users::find_by_email(tx, arrival.tenant_id, email)?,
            }
        }
        None => None,
    };
    let Some(found) = found else {
        return Ok(Err(Problem::NotAPerson));
    };
    let person = locked(tx, arrival.tenant_id, found.id())?;
    let held = person.email.as_deref();
    if !held.is_some_and(|held| is_same_email(held, email)) {
        return Ok(Err(Problem::NotAPerson));
    }
    if let Some(bound) = identities::of_subject(tx, subject)? {
        // Another browser of this subject was first.
        return match bound.user_id == person.user_id {
            true => come_again(tx, arrival, bound, person, fault),
            false => Ok(Err(Problem::AlreadyBound)),
        };
    }
    if person.deactivated_at.is_some() {
        return Ok(Err(Problem::PersonDeactivated));
    }
    let provider_id = arrival.identity_provider_id;
    if identities::has_one(tx, arrival.tenant_id, provider_id, person.user_id)? {
        return Ok(Err(Problem::AlreadyBound));
    }
    let bound = Bound {
        identity_id: arrival.new_identity_id,
        user_id: person.user_id,
    };
    identities::bind(tx, subject, bound, email, fault, arrival.now)?;
    let email = email.to_owned();
    Ok(Ok((person, Some(Binding { email, was_added }))))
}

fn come_again(
    tx: &mut Tx<'_>,
    arrival: &Arrival,
    bound: Bound,
    person: User,
    fault: Option<GroupsFault>,
) -> Result<Result<Who, Problem>> {
    if person.deactivated_at.is_some() {
        return Ok(Err(Problem::PersonDeactivated));
    }
    let identity_id = bound.identity_id;
    identities::used(tx, arrival.tenant_id, identity_id, fault, arrival.now)?;
    Ok(Ok((person, None)))
}

fn locked(tx: &mut Tx<'_>, tenant_id: Uuid, user_id: Uuid) -> Result<User> {
    users::lock(tx, tenant_id, user_id)?
        .ok_or_else(|| Error::internal("a person is gone, and none ever goes"))
}

/// The email by which a subject may be bound: one that the provider vouches for, of a domain that it speaks for.
fn spoken_for<'a>(provider: &IdentityProvider, claims: &'a Claims) -> Result<&'a str, Problem> {
    let email = claims.email.as_deref().filter(|email| is_email(email));
    let email = email.ok_or(Problem::NoEmail)?;
    if !claims.email_vouched && provider.email_trust != EmailTrust::Provider {
        return Err(Problem::EmailNotVouched);
    }
    // Compared byte for byte but for the case of ASCII letters: an international domain is registered in its ASCII form.
    let (_, domain) = email.rsplit_once('@').ok_or(Problem::NoEmail)?;
    let is_covered = |covered: &String| covered.eq_ignore_ascii_case(domain);
    match provider.domains.iter().any(is_covered) {
        true => Ok(email),
        false => Err(Problem::EmailNotCovered),
    }
}

/// Adds a member. None: somebody has the email already.
fn add(tx: &mut Tx<'_>, arrival: &Arrival, email: &str, claims: &Claims) -> Result<Option<Person>> {
    let name = claims.name.as_deref().unwrap_or_default();
    let name = name.replace(char::is_control, " ");
    let name = match name.trim() {
        "" => email,
        name => name,
    };
    let new = NewPerson {
        user_id: arrival.new_user_id,
        email,
        display_name: text::beginning(name, NAME_BYTES),
        tenant_role: TenantRole::Member,
    };
    users::insert_vouched(tx, arrival.tenant_id, &new, arrival.now)
}

/// Why the subject's groups are not known, where the provider is asked for them.
pub(super) fn groups_fault(provider: &IdentityProvider, claims: &Claims) -> Option<GroupsFault> {
    provider.groups_claim.as_ref()?;
    match (claims.groups_left_out, &claims.groups) {
        (true, _) => Some(GroupsFault::LeftOut),
        (false, None) => Some(GroupsFault::Absent),
        (false, Some(_)) => None,
    }
}

/// The roles in teams that the subject's groups stand for. None: the provider's groups are not asked for, or it did not say
/// them, so nothing changes.
fn wanted(provider: &IdentityProvider, claims: &Claims) -> Option<BTreeMap<Uuid, Role>> {
    provider.groups_claim.as_ref()?;
    let held: HashSet<&str> = claims.groups.as_ref()?.iter().map(String::as_str).collect();
    let mut wanted = BTreeMap::new();
    for row in provider
        .groups
        .iter()
        .filter(|row| held.contains(row.group.as_str()))
    {
        let role = wanted.entry(row.team_id.0).or_insert(row.role);
        if row.role == Role::Admin {
            *role = Role::Admin;
        }
    }
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Id;
    use crate::store::identity_providers::{Group, ManagedBy};

    fn provider(domains: &[&str], email_trust: EmailTrust) -> IdentityProvider {
        IdentityProvider {
            identity_provider_id: Uuid::nil(),
            managed_by: ManagedBy::Tenant,
            name: "Plant".to_owned(),
            issuer: "https://id.plant.example".to_owned(),
            client_id: "agent-runtime".to_owned(),
            client_secret: None,
            scopes: Vec::new(),
            email_trust,
            creates_people: false,
            groups_claim: Some("groups".to_owned()),
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            groups: Vec::new(),
            created_by: None,
            created_at: OffsetDateTime::UNIX_EPOCH,
            updated_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    fn claims(email: Option<&str>, email_vouched: bool) -> Claims {
        Claims {
            subject: "s".to_owned(),
            email: email.map(str::to_owned),
            email_vouched,
            name: None,
            groups: None,
            groups_left_out: false,
        }
    }

    #[test]
    fn a_provider_speaks_for_vouched_emails_of_its_domains_alone() {
        let plant = provider(&["plant.example"], EmailTrust::Claim);
        let judged = |email: &str, vouched| {
            spoken_for(&plant, &claims(Some(email), vouched)).map(str::to_owned)
        };
        assert_eq!(
            judged("Kim@PLANT.example", true).unwrap(),
            "Kim@PLANT.example"
        );
        for (email, problem) in [
            ("kim@other.example", Problem::EmailNotCovered),
            ("kim@a.plant.example", Problem::EmailNotCovered),
            ("kim@plant.example.", Problem::EmailNotCovered),
            ("kim@plant.example\u{307}", Problem::EmailNotCovered),
            ("kim@p\u{212a}lant.example", Problem::EmailNotCovered),
            ("kim@evil.example@plant.example", Problem::NoEmail),
            ("kim plant.example", Problem::NoEmail),
            ("@plant.example", Problem::NoEmail),
            ("kim\0@plant.example", Problem::NoEmail),
            ("kim\u{200b} @plant.example", Problem::NoEmail),
            ("", Problem::NoEmail),
        ] {
            assert_eq!(judged(email, true), Err(problem), "{email}");
        }
        assert_eq!(
            judged("kim@plant.example", false),
            Err(Problem::EmailNotVouched)
        );
        assert_eq!(
            spoken_for(&plant, &claims(None, true)),
            Err(Problem::NoEmail)
        );
        let trusted = provider(&["plant.example"], EmailTrust::Provider);
        let unvouched = claims(Some("kim@plant.example"), false);
        assert_eq!(spoken_for(&trusted, &unvouched), Ok("kim@plant.example"));
        let nothing = provider(&[], EmailTrust::Provider);
        assert_eq!(
            spoken_for(&nothing, &unvouched),
            Err(Problem::EmailNotCovered)
        );
    }

    #[test]
    fn the_highest_role_of_a_team_counts_and_groups_left_unsaid_change_nothing() {
        let mut plant = provider(&[], EmailTrust::Claim);
        let (ops, lab) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let row = |group: &str, team_id, role| Group {
            group: group.to_owned(),
            team_id: Id(team_id),
            role,
        };
        plant.groups = vec![
            row("leads", ops, Role::Admin),
            row("ops", ops, Role::Member),
            row("lab", lab, Role::Member),
        ];
        let mut said = claims(None, false);
        assert_eq!(wanted(&plant, &said), None);
        said.groups = Some(Vec::new());
        assert_eq!(wanted(&plant, &said), Some(BTreeMap::new()));
        said.groups = Some(["ops", "leads", "other"].map(str::to_owned).to_vec());
        assert_eq!(
            wanted(&plant, &said),
            Some(BTreeMap::from([(ops, Role::Admin)]))
        );
        plant.groups_claim = None;
        assert_eq!(wanted(&plant, &said), None);
    }

    #[test]
    fn groups_lack_only_where_they_are_asked_for() {
        let mut plant = provider(&[], EmailTrust::Claim);
        let mut said = claims(None, false);
        assert_eq!(groups_fault(&plant, &said), Some(GroupsFault::Absent));
        said.groups = Some(Vec::new());
        assert_eq!(groups_fault(&plant, &said), None);
        (said.groups, said.groups_left_out) = (None, true);
        assert_eq!(groups_fault(&plant, &said), Some(GroupsFault::LeftOut));
        plant.groups_claim = None;
        assert_eq!(groups_fault(&plant, &said), None);
    }

    #[test]
    fn every_problem_has_its_own_code() {
        let codes: HashSet<_> = Problem::ALL.iter().map(|problem| problem.code()).collect();
        assert_eq!(codes.len(), Problem::ALL.len());
    }
}
