//! From a run's creation to the first text of its model at the SSE client, beside LangGraph's development server and
//! the same scripted provider.
//!
//! Both sides create a run by one request and follow it by another. Between two runs is a pause that differs from run
//! to run: the other side looks for new runs every half second, and must not be asked at the same point of that each
//! time.

use super::client::agent;
use super::first_text::{first_byte, first_text};
use super::langgraph::{LangGraph, Way};
use super::load::Load;
use super::plan::Plan;
use super::rounds::{CLIENTS, Figure, compare, grow, median};
use super::row::{About, Target};
use super::world::{SAYS, World};
use super::{Done, Outcome};
use std::time::Duration;

/// Pauses between two runs spread evenly over this: how often the other side looks for runs.
const PAUSES: Duration = Duration::from_millis(500);
/// The fraction of the golden ratio: its multiples, their whole part apart, lie evenly however many there are.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Runs of each client where what grows is clients.
const GROWTH_RUNS: usize = 3;

/// Runs one after another with pauses between; the time that half of them stay below, once the provider was asked
/// exactly as often.
fn runs(world: &World, count: usize, first: &dyn Fn() -> Outcome<f64>) -> Outcome<f64> {
    let before = world.provider.count();
    let mut figures = Vec::with_capacity(count);
    for number in 1..=count {
        std::thread::sleep(PAUSES.mul_f64((number as f64 * GOLDEN).fract()));
        figures.push(first()?);
    }
    let asked = world.provider.count() - before;
    if asked != count as u64 {
        return Err(format!("{count} runs asked the provider {asked} times").into());
    }
    Ok(median(figures))
}

/// The same of many clients at once, without pauses.
fn at_once(clients: usize, first: &(dyn Fn() -> Outcome<f64> + Sync)) -> Outcome<f64> {
    let figures = std::sync::Mutex::new(Vec::new());
    Load::of(clients, GROWTH_RUNS, &|_| {
        Ok(Box::new(|| {
            let figure = first()?;
            let mut figures = figures.lock().map_err(|_| "a client panicked")?;
            figures.push(figure);
            Ok(())
        }))
    })?;
    Ok(median(figures.into_inner()?))
}

/// The least that either side can take.
fn floor(world: &World) -> Outcome<String> {
    let (direct, url) = (
        agent(),
        format!("{}/chat/completions", world.provider.base_url()),
    );
    let bytes = (0..20).map(|_| first_byte(&direct, &url));
    let byte = median(bytes.collect::<Outcome<_>>()?);
    Ok(format!("The provider's own first byte: {byte:.2} ms."))
}

const ABOUT: About = About {
    name: "first-text-langgraph",
    work: "a created run's first text at its reader, idle server, p50",
    beside: "LangGraph's development server with the same provider, a run created and then joined",
    unit: "ms",
    target: Target::AtMost(0.02),
    says_not: "The development server looks for new runs every half second and keeps them in memory: that wait is most \
        of its time, and says nothing of its licensed server. Creating and streaming in one request waits as long: \
        its line is among those that grow with clients.",
};

pub(crate) fn run(plan: Plan, done: Done<'_>) -> Outcome {
    let world = World::start()?;
    let agent_id = world.agent()?;
    let langgraph = LangGraph::start(&world.provider.base_url())?;
    let client = langgraph.client();
    let service = || first_text(&world, &agent_id);
    let peer = |way| client.first_text(way, SAYS);
    let mut row = compare(
        plan,
        &ABOUT,
        || Figure::of(|| runs(&world, plan.pick(4, 12), &service)),
        || Figure::of(|| runs(&world, plan.pick(4, 12), &|| peer(Way::Joined))),
    )?;
    row.versions.clone_from(&langgraph.versions);
    row.limit = Some(floor(&world)?);
    if !plan.short {
        row.growth.push(grow(
            "clients",
            "ms",
            &CLIENTS,
            &[
                ("agent-runtime", &|clients| at_once(clients, &service)),
                ("LangGraph", &|clients| {
                    at_once(clients, &|| peer(Way::Joined))
                }),
                ("LangGraph, one request", &|clients| {
                    at_once(clients, &|| peer(Way::OneCall))
                }),
            ],
        )?);
    }
    done(row)
}
