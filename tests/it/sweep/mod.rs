//! The sweep: every mounted route as every kind of caller, with authorization on and off, against
//! `sweep/table.txt`, which a person can read. Status, body, record and effect are all checked.

mod examples;
pub(crate) mod requests;
pub(crate) mod rows;
mod sessions;
mod table;
mod verdict;
pub(crate) mod world;

use crate::harness::{Answer, Client};
use agent_runtime::http::access::Rule;
use agent_runtime::http::route::Route;
use agent_runtime::server;
use rows::Rows;
use table::{Cell, Line, Table};
use uuid::Uuid;
use verdict::Verdict;
use world::World;

#[test]
fn the_table_has_every_mounted_route_and_no_other() {
    let table = Table::read();
    let mut mounted: Vec<String> = server::table(true, true)
        .routes()
        .iter()
        .map(|route| format!("{} {}", route.method.text(), route.path))
        .collect();
    let mut told: Vec<String> = table.lines.iter().map(Line::route).collect();
    mounted.sort();
    told.sort();
    // A route whose body has two forms has a line for each.
    told.dedup();
    assert_eq!(
        told, mounted,
        "left: sweep/table.txt; right: what is mounted"
    );
}

#[test]
fn every_caller_meets_every_route_with_authorization_on() {
    sweep(true, Sweep::line);
}

#[test]
fn every_caller_meets_every_route_with_authorization_off() {
    sweep(false, Sweep::line);
}

/// Two worlds share the routes, so that a machine with few cores is busy and no more.
fn sweep(enforced: bool, each: fn(&mut Sweep, &Table, &Line, &Route)) {
    let table = Table::read();
    let mounted = server::table(true, true);
    let (table, routes) = (&table, mounted.routes());
    let faults: Vec<String> = std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2)
            .map(|half| {
                scope.spawn(move || {
                    let mut sweep = Sweep::start(enforced);
                    for line in table.lines.iter().skip(half).step_by(2) {
                        // A line of no route is the first test's.
                        if let Some(route) = routes.iter().find(|route| line.is_of(route)) {
                            each(&mut sweep, table, line, route);
                        }
                    }
                    sweep.end()
                })
            })
            .collect();
        halves
            .into_iter()
            .flat_map(|half| half.join().unwrap())
            .collect()
    });
    assert!(
        faults.is_empty(),
        "{} cells are not as sweep/table.txt says:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// Who asks, and by which credential.
struct Asked<'a> {
    caller: &'a str,
    client: Client,
    key: Option<Uuid>,
}

struct Sweep {
    world: World,
    enforced: bool,
    /// What the database holds between two cells.
    rows: Rows,
    records: i64,
    faults: Vec<String>,
}

impl Sweep {
    fn start(enforced: bool) -> Self {
        let world = World::start(enforced);
        let rows = Rows::read(&mut world.database());
        let records = verdict::count(&mut world.database());
        Self {
            world,
            enforced,
            rows,
            records,
            faults: Vec::new(),
        }
    }

    fn line(&mut self, table: &Table, line: &Line, route: &Route) {
        for (caller, cell) in table.callers.iter().zip(&line.cells) {
            let expected = self.expected(table, line, caller, cell);
            let asked = Asked {
                caller,
                client: self.world.client(caller).clone(),
                key: self.world.key(caller),
            };
            self.ask(line, route, &asked, &expected);
        }
    }

    fn ask(&mut self, line: &Line, route: &Route, asked: &Asked<'_>, expected: &Cell) {
        if let Err(fault) = self.cell(line, route, asked, expected) {
            let caller = asked.caller;
            self.faults
                .push(format!("{:7} {}: {fault}", caller, line.route()));
        }
    }

    /// What a cell says, with authorization on or off.
    fn expected(&self, table: &Table, line: &Line, caller: &str, cell: &Cell) -> Cell {
        if self.enforced {
            return cell.clone();
        }
        let as_written = ["none", "other", "public", "gone"].contains(&caller);
        let status = match line.off {
            Some(off) if !as_written => off,
            // Without rules for keys, a key of the admin's does what the admin's does.
            None if matches!(cell, Cell::Key(_)) => table.cell(line, "admin").status(),
            _ => cell.status(),
        };
        Cell::unrecorded(status)
    }

    fn cell(
        &mut self,
        line: &Line,
        route: &Route,
        asked: &Asked<'_>,
        expected: &Cell,
    ) -> Result<(), String> {
        if !route.path.ends_with("/unarchive") {
            return self.sent(line, route, asked, expected);
        }
        // What is brought back has to be archived.
        self.archive(route, "now()");
        let outcome = self.sent(line, route, asked, expected);
        self.archive(route, "null");
        outcome
    }

    fn archive(&mut self, route: &Route, since: &str) {
        let (table, id, parameter) = match route.path.split('/').nth(2) {
            Some("agents") => ("agents", "agent_id", "agentId"),
            Some("flows") => ("flows", "id", "flowId"),
            _ => ("projects", "project_id", "projectId"),
        };
        let object = self.world.id(parameter);
        let mut database = self.world.database();
        let update = format!("update {table} set archived_at = {since} where {id} = '{object}'");
        database.batch_execute(&update).unwrap();
        self.rows = Rows::read(&mut database);
    }

    fn sent(
        &mut self,
        line: &Line,
        route: &Route,
        asked: &Asked<'_>,
        expected: &Cell,
    ) -> Result<(), String> {
        let (world, caller) = (&self.world, asked.caller);
        let answer = requests::send(world, line, route, &asked.client);
        let request_id = answer.header("x-request-id").unwrap_or_default().to_owned();
        let verdict = Verdict {
            world,
            line,
            caller,
            key: asked.key,
            expected,
        };
        let said = verdict.answer(&answer);
        let recorded = verdict.records(&request_id);
        self.records += i64::try_from(expected.records(line.checks.len())).unwrap();
        let effect = self.effect(route, caller, expected, &answer);
        said.and(recorded).and(effect)
    }

    /// Nothing changed, or what changed is put back.
    fn effect(
        &mut self,
        route: &Route,
        caller: &str,
        expected: &Cell,
        answer: &Answer,
    ) -> Result<(), String> {
        let world = &self.world;
        requests::await_end(world, route, answer);
        let mut database = world.database();
        let after = Rows::read(&mut database);
        let difference = self.rows.difference(&after);
        if difference.is_empty() {
            let does = expected.is_allowed() && requests::changes_something(route);
            return match does && answer.status < 300 {
                true => Err("it was allowed and changed nothing".to_owned()),
                false => Ok(()),
            };
        }
        self.rows.restore(&mut database, &after);
        let ours = difference.of_tenant(world.tenant_id);
        // Whoever brings a code or a token in the body is the person it was made for.
        let is_by_body = matches!(route.rule, Rule::Enrolling | Rule::SigningIn);
        let is_own = caller != "other" || is_by_body;
        if !expected.is_allowed() || route.method.text() == "GET" || (!is_own && !ours.is_empty()) {
            return Err(format!("it changed {difference:?}"));
        }
        Ok(())
    }

    fn end(mut self) -> Vec<String> {
        let recorded = verdict::count(&mut self.world.database());
        if self.faults.is_empty() && recorded != self.records {
            self.faults.push(format!(
                "{recorded} records in all, and the table asks for {}",
                self.records
            ));
        }
        self.faults
    }
}
