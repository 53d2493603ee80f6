//! The sweep by browsers: a session meets on every route what the token meets that it came from. One that ended meets what
//! nobody meets, one of somebody deactivated what their token meets, and a cookie beside a header is not looked at. From
//! another site's page nothing is answered, nothing done and nothing recorded.

use super::table::{Cell, Line, Table};
use super::world::SIGNED_IN;
use super::{Asked, Sweep, requests, sweep, verdict};
use crate::harness::Client;
use agent_runtime::http::access::Rule;
use agent_runtime::http::route::Route;

#[test]
fn a_session_meets_every_route_as_its_token_does() {
    sweep(true, |sweep, table, line, route| {
        for caller in SIGNED_IN {
            let cell = table.cell(line, caller).clone();
            let expected = match route.rule {
                // Signing out takes one.
                Rule::Session => Cell::unrecorded(200),
                _ => cell,
            };
            let (session, id) = sweep.world.session(caller);
            let asked = Asked {
                caller,
                client: sweep.world.app.browser(&session),
                key: Some(id),
            };
            sweep.ask(line, route, &asked, &expected);
        }
    });
}

#[test]
fn a_session_that_ended_meets_what_nobody_meets_and_beside_a_header_none_is_looked_at() {
    sweep(true, |sweep, table, line, route| {
        let nobody = Asked {
            caller: "none",
            client: sweep.world.app.browser(sweep.world.ended_session()),
            key: None,
        };
        sweep.ask(line, route, &nobody, &table.cell(line, "none").clone());
        // Its row is open: that its person was deactivated is enough.
        let (session, id) = sweep.world.session("gone");
        let gone = Asked {
            caller: "gone",
            client: sweep.world.app.browser(&session),
            key: Some(id),
        };
        sweep.ask(line, route, &gone, &table.cell(line, "gone").clone());
        let viewer = Asked {
            caller: "viewer",
            client: beside(
                &sweep.world.session("admin").0,
                sweep.world.client("viewer"),
            ),
            key: sweep.world.key("viewer"),
        };
        sweep.ask(line, route, &viewer, &table.cell(line, "viewer").clone());
        if route.rule.reads_credential() {
            from_another_site(sweep, line, route);
        }
    });
}

/// A client with a header, whose browser sends a cookie from another site's page.
fn beside(session: &str, client: &Client) -> Client {
    let mut both = client.browser(session);
    both.set_token(client.token());
    both.standing_is("sec-fetch-site", "cross-site");
    both
}

/// No page of another site, of another origin of this site, or of another port makes a browser do anything here.
fn from_another_site(sweep: &mut Sweep, line: &Line, route: &Route) {
    let before = sweep.rows.clone();
    let records = verdict::count(&mut sweep.world.database());
    for site in ["cross-site", "same-site"] {
        let mut browser = sweep.world.app.browser(&sweep.world.session("admin").0);
        browser.standing_is("sec-fetch-site", site);
        let answer = requests::send(&sweep.world, line, route, &browser);
        let code = answer.json()["error"]["code"].clone();
        if (answer.status, code.as_str()) != (403, Some("csrf-origin-mismatch")) {
            let fault = format!("from {site}: {} {:.200}", answer.status, answer.text);
            sweep.faults.push(format!("{}: {fault}", line.route()));
        }
    }
    let after = super::Rows::read(&mut sweep.world.database());
    if !before.difference(&after).is_empty() {
        sweep.faults.push(format!(
            "{}: it changed something from another site",
            line.route()
        ));
    }
    // It is decided by nobody's rights, so nothing is recorded.
    if verdict::count(&mut sweep.world.database()) != records {
        let fault = "what another site asked for was recorded";
        sweep.faults.push(format!("{}: {fault}", line.route()));
    }
}

/// What the others here stand on.
#[test]
fn the_table_names_those_who_sign_in() {
    let table = Table::read();
    assert!(
        SIGNED_IN
            .iter()
            .all(|caller| table.callers.contains(caller))
    );
}
