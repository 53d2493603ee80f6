//! `tenant create`: creates a further tenant, its first user and a token, directly in the database.

use super::{Failure, Outcome, World, database, dev, terminal};
use crate::authn::bearer;
use crate::authz::desired_tuples::{self, Object};
use crate::store::tokens::Ended;
use crate::store::{tenants, tokens, users};
use crate::text::is_email;
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime tenant create --name \"Example Ltd\"
  agent-runtime tenant create --name \"Example Ltd\" --email ada@example.com
  agent-runtime tenant create --name \"Example Ltd\" --json > tenant.json

The database is that of SVC_DATABASE_URL, else the private one of a running `dev`. The token is \
shown once; only its digest is stored. Running servers know the tenant immediately.";

/// The commands on tenants.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Command {
    /// Create a tenant, its first user and a token
    Create(Create),
}

/// Arguments of `tenant create`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Create {
    /// The tenant's name, 1 to 200 characters
    #[arg(long, value_parser = name)]
    name: String,
    /// The tenant's id; a new one if left out
    #[arg(long)]
    id: Option<Uuid>,
    /// The first user's id; a new one if left out
    #[arg(long)]
    user_id: Option<Uuid>,
    /// The first user's email, by which an identity provider signs them in
    #[arg(long, value_parser = email)]
    email: Option<String>,
    /// Print what was created as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: dev::Found,
}

fn name(text: &str) -> Result<String, String> {
    if (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control) {
        Ok(text.to_owned())
    } else {
        Err("1 to 200 characters without control characters are needed".to_owned())
    }
}

fn email(text: &str) -> Result<String, String> {
    match is_email(text) {
        true => Ok(text.to_owned()),
        false => Err("an email such as ada@example.com is needed".to_owned()),
    }
}

/// Runs one of the commands.
///
/// # Errors
/// The database cannot be reached, its schema has another version, or the tenant exists.
pub fn run(world: &World, command: &Command) -> Outcome {
    let Command::Create(arguments) = command;
    let world = &arguments.dev.world(world)?;
    let settings = world.settings()?;
    let log = super::serve::open_log(&world.vars, &settings, &world.clock)?;
    let now = world.clock.now();
    let tenant_id = arguments.id.unwrap_or_else(|| world.clock.new_id());
    let user_id = arguments.user_id.unwrap_or_else(|| world.clock.new_id());
    let token = bearer::mint()?;
    let new = tokens::New {
        token_id: world.clock.new_id(),
        name: "first token",
        digest: bearer::digest(token.expose()),
        last_four: &bearer::last_four(&token),
        expires_at: None,
    };
    let made = database::open(&settings, log)?.transact(|tx| {
        if !tenants::ensure(tx, tenant_id, &arguments.name, now)? {
            return Ok(false);
        }
        tenants::ensure_user(tx, tenant_id, user_id, "first user", now)?;
        if let Some(email) = &arguments.email {
            users::give_email(tx, tenant_id, user_id, email)?;
        }
        desired_tuples::mark(tx, tenant_id, &[Object::Tenant(tenant_id)])?;
        tokens::replace_seed(tx, tenant_id, user_id, &new, Ended::All, now)?;
        Ok(true)
    })?;
    if !made {
        return Err(Failure::new(format!(
            "There is a tenant {tenant_id} already."
        )));
    }
    if arguments.json {
        return terminal::say_json(&json!({
            "tenantId": tenant_id, "userId": user_id, "token": token.expose(),
        }));
    }
    terminal::say(format_args!(
        "tenant: {tenant_id}\nuser:   {user_id}\ntoken:  {}\nKeep the token now: it is not shown again.",
        token.expose()
    ))
}
