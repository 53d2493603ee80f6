//! `sign-in-code`: lets a person in from the host, where nobody else can: the operator who is locked out, or a first admin
//! without a key.
//!
//! Guarantees: the code is an enrolment code with no limits of its own, which is taken once, within ten minutes; the person's
//! open code ends. Its digest alone is stored. Who takes it is recorded, with the operator as its maker.

use super::{Failure, Outcome, World, database, dev, terminal};
use crate::authn::bearer;
use crate::config::Settings;
use crate::ids::rfc3339;
use crate::store::users::{self, Person, User};
use crate::store::{Sql, authz, enrolments};
use clap::{ArgGroup, Args};
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime sign-in-code --email ada@example.com
  agent-runtime sign-in-code --user-id 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json
  agent-runtime sign-in-code --email ada@example.com | agent-runtime login --enrol --url https://agents.example.com

The database is that of SVC_DATABASE_URL, else the private one of a running `dev`. The code is shown once and taken once, \
within ten minutes: by the sign-in page, or by agent-runtime login --enrol. Where SVC_PUBLIC_URL is set and the console is \
on, a link that opens the sign-in page with the code is shown beside it, on standard error; with --json it is the field link. \
Whoever takes the code acts as this person. The audit says that the operator made it.";

/// How long the code may be taken.
const LIFE: Duration = Duration::from_secs(10 * 60);

/// Arguments of `sign-in-code`.
#[derive(Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("whom").required(true))]
pub struct Arguments {
    /// The person's email
    #[arg(long, group = "whom")]
    email: Option<String>,
    /// The person's id, as for the first admin, who has no email
    #[arg(long, group = "whom")]
    user_id: Option<Uuid>,
    /// The person's tenant [default: SVC_TENANT_ID, else the only one]
    #[arg(long, value_name = "ID")]
    tenant: Option<Uuid>,
    /// Print the code as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: dev::Found,
}

/// Makes a code and prints it.
///
/// # Errors
/// The database cannot be reached, its schema has another version, or there is no such person.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    let world = &arguments.dev.world(world)?;
    let settings = world.settings()?;
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    let store = database::open(&settings, log)?;
    let (tenant_id, user) = {
        let mut session = store.session()?;
        let tenant_id = tenant(&mut session, arguments.tenant.or(settings.tenant.id))?;
        (tenant_id, person(&mut session, tenant_id, arguments)?)
    };
    let (code, now) = (bearer::mint_enrolment()?, world.clock.now());
    let row = enrolments::New {
        enrolment_id: world.clock.new_id(),
        digest: bearer::digest(code.expose()),
        expires_at: now + LIFE,
        key_expires_at: None,
    };
    store.transact(|tx| enrolments::insert_by_operator(tx, tenant_id, &user, &row, now))?;
    let link = link(&settings, code.expose());
    if arguments.json {
        return terminal::say_json(&json!({
            "tenantId": tenant_id, "userId": user.0.user_id, "code": code.expose(), "link": link,
            "expiresAt": rfc3339::text(row.expires_at),
        }));
    }
    let name = terminal::printable(&user.0.display_name);
    // The code is all of standard output: it is what `login --enrol` reads.
    match link {
        Some(link) => terminal::note(format_args!(
            "{name} signs in by this link, or with the code below it, once, within ten minutes:\n{link}"
        )),
        None => terminal::note(format_args!(
            "{name} signs in with this code, once, within ten minutes:"
        )),
    }
    terminal::say(code.expose())
}

/// The sign-in page with the code, where there is one at an address that is known. A browser sends no server the part
/// behind `#`.
fn link(settings: &Settings, code: &str) -> Option<String> {
    let public_url = settings.sign_in.public_url.as_ref();
    let public_url = public_url.filter(|_| settings.http.console)?;
    Some(format!("{}/console/sign-in#code={code}", public_url.text()))
}

fn tenant(sql: &mut impl Sql, named: Option<Uuid>) -> Outcome<Uuid> {
    if let Some(tenant_id) = named {
        return Ok(tenant_id);
    }
    match authz::tenants(sql, Uuid::nil(), 2)?[..] {
        [only] => Ok(only),
        [] => Err(Failure::new(
            "The database has no tenant yet. Start the server once, or run agent-runtime tenant create.",
        )),
        _ => Err(Failure::usage(
            "The database has several tenants. Name the person's with --tenant.",
        )),
    }
}

fn person(sql: &mut impl Sql, tenant_id: Uuid, arguments: &Arguments) -> Outcome<Person> {
    let found: Option<User> = match (&arguments.email, arguments.user_id) {
        (Some(email), _) => users::find_by_email(sql, tenant_id, email)?.map(|person| person.0),
        (None, Some(user_id)) => users::find(sql, tenant_id, user_id)?,
        (None, None) => None,
    };
    let found = found.filter(|user| user.kind == crate::store::principals::PrincipalKind::User);
    match found {
        Some(user) if user.deactivated_at.is_some() => Err(Failure::new(
            "This person was deactivated, and nobody signs in as them.",
        )),
        Some(user) => Ok(Person(user)),
        None => Err(Failure::new(format!(
            "There is no such person in the tenant {tenant_id}."
        ))),
    }
}
