//! `webhooks`: lists the webhook endpoints of a running server and their deliveries, shows one delivery with its attempts, and
//! sends deliveries again.

use super::client::{Client, Which};
use super::display::shortened;
use super::table::{self, Since};
use super::terminal::{Style, printable, say, say_json, say_line};
use super::{Failure, Outcome, World, names, terminal};
use crate::ids::rfc3339;
use crate::outbound::Method;
use crate::store::webhook_deliveries::State;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

const EXAMPLES: &str = "\
Examples:
  agent-runtime webhooks
  agent-runtime webhooks deliveries https://hooks.example.com/agents --state failed
  agent-runtime webhooks show https://hooks.example.com/agents 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime webhooks resend https://hooks.example.com/agents 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime webhooks resend https://hooks.example.com/agents --failed-since 12h

Takes a tenant admin's token. The lists have the newest first. Times are in UTC.";

const DELIVERIES_EXAMPLES: &str = "\
Examples:
  agent-runtime webhooks deliveries https://hooks.example.com/agents
  agent-runtime webhooks deliveries https://hooks.example.com/agents --state failed --limit 200
  agent-runtime webhooks deliveries 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq -r .lastError";

const SHOW_EXAMPLES: &str = "\
Examples:
  agent-runtime webhooks show https://hooks.example.com/agents 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime webhooks show https://hooks.example.com/agents 01993c5e-7c1f-7d2a-9c55-0242ac120002 --json | jq .event

Shows a delivery with its attempts: when, to which address, and what the receiver answered.";

const RESEND_EXAMPLES: &str = "\
Examples:
  agent-runtime webhooks resend https://hooks.example.com/agents 01993c5e-7c1f-7d2a-9c55-0242ac120002
  agent-runtime webhooks resend https://hooks.example.com/agents --failed-since 2026-01-31T08:00:00Z

The receiver gets the same event with the same `webhook-id`, in a new delivery. With --failed-since: \
every delivery that failed for good since then and was not sent again yet, at most 1000.";

/// Arguments of `webhooks`.
#[derive(Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// The commands on one endpoint.
#[derive(Subcommand)]
enum Command {
    /// List the deliveries to an endpoint
    Deliveries(Deliveries),
    /// Show a delivery, its attempts and its event
    Show(Show),
    /// Send a delivery again, or all that failed since a time
    Resend(Resend),
}

/// How endpoints are listed.
#[derive(Args)]
struct List {
    /// How many at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each endpoint as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `webhooks deliveries`.
#[derive(Args)]
#[command(after_help = DELIVERIES_EXAMPLES)]
struct Deliveries {
    /// The endpoint's URL, or its id
    endpoint: String,
    /// Only deliveries in this state
    #[arg(long, value_parser = PossibleValuesParser::new(State::ALL.map(State::text)))]
    state: Option<String>,
    /// How many at most
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Print each delivery as JSON, one a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `webhooks show`.
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct Show {
    /// The endpoint's URL, or its id
    endpoint: String,
    /// The delivery's id
    #[arg(value_parser = names::id)]
    delivery: Uuid,
    /// Print the delivery as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Arguments of `webhooks resend`.
#[derive(Args)]
#[command(after_help = RESEND_EXAMPLES)]
struct Resend {
    /// The endpoint's URL, or its id
    endpoint: String,
    /// The delivery's id
    #[arg(value_parser = names::id, required_unless_present = "failed_since", conflicts_with = "failed_since")]
    delivery: Option<Uuid>,
    /// Every delivery that failed since: 30m, 12h or 7d ago, or a time such as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    failed_since: Option<Since>,
    /// Print the new delivery, or how many are sent again, as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Lists endpoints or deliveries, shows a delivery, or sends deliveries again.
///
/// # Errors
/// The server cannot be asked, there is no such endpoint or delivery, or the event is not kept any more.
pub fn run(world: &World, arguments: &Arguments) -> Outcome {
    match &arguments.command {
        None => list(world, &arguments.list),
        Some(Command::Deliveries(deliveries)) => self::deliveries(world, deliveries),
        Some(Command::Show(show)) => self::show(world, show),
        Some(Command::Resend(resend)) => self::resend(world, resend),
    }
}

fn text(value: &Value) -> String {
    shortened(value.as_str().unwrap_or("-"))
}

fn list(world: &World, arguments: &List) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let found = client.first("/v1/webhook-endpoints?order=desc", arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let rows: Vec<[String; 8]> = found
        .rows
        .iter()
        .map(|endpoint| {
            let counts = &endpoint["deliveries"];
            [
                text(&endpoint["state"]),
                counts["delivered"].to_string(),
                counts["failed"].to_string(),
                counts["beingSent"].to_string(),
                table::time(&endpoint["lastDeliveredAt"]),
                newest_failure(endpoint),
                text(&endpoint["endpointId"]),
                text(&endpoint["url"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = [
        "STATE",
        "DELIVERED",
        "FAILED",
        "BEING SENT",
        "LAST DELIVERED",
        "LAST FAILURE",
        "ID",
        "URL",
    ];
    table::print(style, head, &rows, |state, cell| {
        painted(style, state, cell)
    })?;
    found.say_what_is_left("webhook endpoints", "--json with --limit 1000");
    Ok(())
}

/// When an attempt last failed, and why.
fn newest_failure(endpoint: &Value) -> String {
    match endpoint["lastFailedAt"].as_str() {
        Some(_) => format!(
            "{} {}",
            table::time(&endpoint["lastFailedAt"]),
            why(endpoint)
        ),
        None => "-".to_owned(),
    }
}

/// The reason of the newest failure, with the HTTP status where there was one.
fn why(of: &Value) -> String {
    match of["lastStatus"].as_i64() {
        Some(status) => format!("HTTP {status}"),
        None => text(&of["lastError"]),
    }
}

fn painted(style: Style, state: &str, cell: &str) -> String {
    match state {
        "healthy" | "delivered" => style.green(cell),
        "failing" | "failed" => style.red(cell),
        _ => style.yellow(cell),
    }
}

fn deliveries(world: &World, arguments: &Deliveries) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let endpoint = endpoint(&mut client, &arguments.endpoint)?;
    let mut path = format!("/v1/webhook-endpoints/{endpoint}/deliveries?order=desc");
    if let Some(state) = &arguments.state {
        path += &format!("&state={state}");
    }
    let found = client.first(&path, arguments.limit.into())?;
    if arguments.json {
        return found.rows.iter().try_for_each(say_json);
    }
    let rows: Vec<[String; 5]> = found
        .rows
        .iter()
        .map(|delivery| {
            [
                text(&delivery["state"]),
                table::time(&delivery["createdAt"]),
                text(&delivery["type"]),
                text(&delivery["id"]),
                text(&delivery["summary"]),
            ]
        })
        .collect();
    let style = Style::of_stdout(&world.vars);
    let head = ["STATE", "CREATED", "TYPE", "ID", "SUMMARY"];
    table::print(style, head, &rows, |state, cell| {
        painted(style, state, cell)
    })?;
    found.say_what_is_left("deliveries", "--state");
    Ok(())
}

fn show(world: &World, arguments: &Show) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let endpoint = endpoint(&mut client, &arguments.endpoint)?;
    let path = format!(
        "/v1/webhook-endpoints/{endpoint}/deliveries/{}",
        arguments.delivery
    );
    let delivery = client.get(&path)?;
    if arguments.json {
        return say_json(&delivery);
    }
    let style = Style::of_stdout(&world.vars);
    let state = text(&delivery["state"]);
    say(painted(style, &state, &text(&delivery["summary"])))?;
    let line = |name: &str, value: &str| say_line(style, name, value);
    line("id", &text(&delivery["id"]))?;
    line("event", &text(&delivery["eventId"]))?;
    line("type", &text(&delivery["type"]))?;
    line("created", &table::time(&delivery["createdAt"]))?;
    for (name, field) in [
        ("run", "runId"),
        ("run status", "runStatus"),
        ("sends again", "resends"),
        ("sent again as", "resentAs"),
    ] {
        if delivery[field].is_string() {
            line(name, &text(&delivery[field]))?;
        }
    }
    for (name, field) in [("next attempt", "nextAttemptAt"), ("ended", "endedAt")] {
        if delivery[field].is_string() {
            line(name, &table::time(&delivery[field]))?;
        }
    }
    attempts(style, &delivery["attempts"])?;
    if delivery["event"].is_null() {
        terminal::note("The body of the event is not kept any more.");
    }
    Ok(())
}

/// A row for each attempt that has ended, and below them the newest answer of the receiver.
fn attempts(style: Style, attempts: &Value) -> Outcome {
    let all = attempts.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return Ok(());
    }
    let rows: Vec<[String; 6]> = all
        .iter()
        .map(|attempt| {
            let number = |field: &str, unit: &str| match attempt[field].as_i64() {
                Some(number) => format!("{number}{unit}"),
                None => "-".to_owned(),
            };
            let outcome = match attempt["reason"].as_str() {
                Some(reason) => attempt["message"].as_str().unwrap_or(reason),
                None => "delivered",
            };
            [
                number("attempt", ""),
                table::time(&attempt["begunAt"]),
                number("durationMs", " ms"),
                number("status", ""),
                text(&attempt["address"]),
                outcome.to_owned(),
            ]
        })
        .collect();
    say("")?;
    let head = ["ATTEMPT", "BEGAN", "TOOK", "HTTP", "ADDRESS", "OUTCOME"];
    table::print(style, head, &rows, |_, cell| cell.to_owned())?;
    let answer = all.last().and_then(|newest| newest["answer"].as_str());
    if let Some(answer) = answer.filter(|answer| !answer.is_empty()) {
        say("")?;
        say(style.dim("the newest answer of the receiver"))?;
        say(printable(answer))?;
    }
    Ok(())
}

fn resend(world: &World, arguments: &Resend) -> Outcome {
    let mut client = arguments.which.server(world)?.client();
    let endpoint = endpoint(&mut client, &arguments.endpoint)?;
    let path = format!("/v1/webhook-endpoints/{endpoint}");
    if let Some(delivery) = arguments.delivery {
        let path = format!("{path}/deliveries/{delivery}/resend");
        let queued = client.send(Method::POST, &path, None, &[])?;
        if arguments.json {
            return say_json(&queued);
        }
        terminal::note(format_args!(
            "It is sent again, as delivery {}.",
            text(&queued["id"])
        ));
        return Ok(());
    }
    let Some(since) = arguments.failed_since else {
        return Err(Failure::usage("Name a delivery, or use --failed-since."));
    };
    let since = rfc3339::text(since.time(world.clock.now())?);
    let body = json!({"failedSince": since});
    let sent = client.post(&format!("{path}/resend"), &body)?;
    if arguments.json {
        return say_json(&sent);
    }
    let count = sent["count"].as_u64().unwrap_or_default();
    terminal::note(match count {
        1 => "1 delivery is sent again.".to_owned(),
        _ => format!("{count} deliveries are sent again."),
    });
    if sent["hasMore"] == true {
        terminal::note("More failed since then: repeat the command.");
    }
    Ok(())
}

/// The id of the endpoint with this id or URL.
fn endpoint(client: &mut Client, named: &str) -> Outcome<String> {
    if names::is_id(named) {
        return Ok(named.to_owned());
    }
    // The server stores the URL of a host alone with a final slash.
    let same = |url: &str| url.trim_end_matches('/') == named.trim_end_matches('/');
    let found = client.all("/v1/webhook-endpoints", |endpoint| {
        endpoint["url"].as_str().is_some_and(same)
    })?;
    let ids: Vec<String> = found.iter().map(|one| text(&one["endpointId"])).collect();
    match ids.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::new(format!(
            "There is no webhook endpoint with the URL {} here. `agent-runtime webhooks` lists them.",
            printable(named)
        ))),
        several => Err(Failure::usage(format!(
            "There are {} webhook endpoints with this URL:\n  {}\nName one by its id.",
            several.len(),
            several.join("\n  ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_failure_of_an_endpoint_has_its_time_and_its_reason() {
        let mut endpoint = json!({"lastFailedAt": null, "lastError": null, "lastStatus": null});
        assert_eq!(newest_failure(&endpoint), "-");
        endpoint["lastFailedAt"] = json!("2026-01-31T08:05:12.345Z");
        endpoint["lastError"] = json!("nothing-listening");
        assert_eq!(
            newest_failure(&endpoint),
            "2026-01-31 08:05:12 nothing-listening"
        );
        endpoint["lastError"] = json!("http-status");
        endpoint["lastStatus"] = json!(503);
        assert_eq!(newest_failure(&endpoint), "2026-01-31 08:05:12 HTTP 503");
    }
}
