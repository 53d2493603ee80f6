//! Permissions and their changes while servers are killed and OpenFGA is killed, stopped and slow:
//! they end as Postgres has it, and nobody is answered from before an acknowledged change.

use crate::access::{
    Person, authorized, check_agrees, is_undecided, project, team, verify_permissions, wanted,
};
use crate::openfga::{OpenFga, Relay};
use crate::random::Random;
use crate::server::{Answer, Client, Server, ServerConfig};
use crate::trap::{Half, Trap};
use crate::wait::moment;
use crate::world::shared_database;
use crate::{eventually, report, setting};
use postgres::NoTls;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

fn sql(config: &ServerConfig) -> postgres::Client {
    postgres::Client::connect(&config.database_url, NoTls).unwrap()
}

/// One change of somebody's role in a project or a team.
struct Change {
    method: &'static str,
    path: String,
    body: Option<Value>,
}

impl Change {
    fn add(of: &str, user_id: Uuid, role: &str) -> Self {
        Self {
            method: "POST",
            path: format!("{of}/memberships"),
            body: Some(json!({"userId": user_id, "role": role})),
        }
    }

    fn role(of: &str, user_id: Uuid, role: &str) -> Self {
        Self {
            method: "PATCH",
            path: format!("{of}/memberships/{user_id}"),
            body: Some(json!({"role": role})),
        }
    }

    fn remove(of: &str, user_id: Uuid) -> Self {
        Self {
            method: "DELETE",
            path: format!("{of}/memberships/{user_id}"),
            body: None,
        }
    }

    fn send(&self, client: &Client) -> Result<Answer, String> {
        client.send(self.method, &self.path, self.body.as_ref(), &[])
    }
}

/// Where a change is when its server is killed.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// In a call of OpenFGA.
    Calling(&'static str, Half),
    /// The decision is on its way to the disk, and the change waits for it.
    Recording,
    /// In the change's transaction, where it marks the project.
    Marking,
}

/// With whether the change stands by then.
const STEPS: [(Step, bool); 8] = [
    (Step::Calling("/check", Half::Question), false),
    (Step::Calling("/check", Half::Answer), false),
    (Step::Marking, false),
    (Step::Recording, false),
    (Step::Calling("/read", Half::Question), true),
    (Step::Calling("/read", Half::Answer), true),
    (Step::Calling("/write", Half::Question), true),
    (Step::Calling("/write", Half::Answer), true),
];

const NOTHING: [bool; 2] = [false, false];
const READ: [bool; 2] = [true, false];
const WRITE: [bool; 2] = [true, true];

/// A server whose calls of OpenFGA go through a trap.
struct Trapped {
    config: ServerConfig,
    trap: Trap,
    project_id: Uuid,
    person: Person,
    looking: postgres::Client,
}

impl Trapped {
    /// Sends the change and kills the server when it has come to the step.
    fn cut(&mut self, server: Server, step: Step, change: &Change) {
        let mut holding = sql(&self.config);
        let holder: i32 = holding
            .query_one("select pg_backend_pid()", &[])
            .unwrap()
            .get(0);
        let mut held = holding.transaction().unwrap();
        match step {
            Step::Calling(path, half) => self.trap.set(path, half),
            Step::Recording => {
                let rows = "select from audit_writers for update";
                held.execute(rows, &[]).unwrap();
            }
            Step::Marking => {
                let object = format!("project:{}", self.project_id);
                let row = "select from authz_objects where object = $1 for update";
                held.execute(row, &[&object]).unwrap();
            }
        }
        let client = self.config.client();
        let answer = std::thread::scope(|scope| {
            let asking = scope.spawn(|| change.send(&client));
            match step {
                Step::Calling(..) => self.trap.wait(),
                Step::Recording => {
                    self.wait_for("query like '%audit_%' and wait_event_type = 'Lock'", holder);
                    self.wait_for("state = 'idle in transaction'", holder);
                }
                Step::Marking => self.wait_for(
                    "query like '%authz_objects%' and wait_event_type = 'Lock'",
                    holder,
                ),
            }
            server.kill();
            asking.join().unwrap()
        });
        assert!(answer.is_err(), "{step:?}: {answer:?}");
        self.trap.let_go();
        held.rollback().unwrap();
        drop(holding);
        // What the killed server had begun has ended one way or the other.
        eventually("the end of its sessions", || {
            (self.sessions("true", holder) == 0).then_some(())
        });
    }

    /// Waits for a session in this state, but the test's own.
    fn wait_for(&mut self, state: &str, holder: i32) {
        eventually(state, || (self.sessions(state, holder) > 0).then_some(()));
    }

    fn sessions(&mut self, state: &str, holder: i32) -> i64 {
        let count = format!(
            "select count(*) from pg_stat_activity where datname = current_database()
             and pid <> pg_backend_pid() and pid <> $1 and ({state})"
        );
        self.looking.query_one(&count, &[&holder]).unwrap().get(0)
    }

    fn wanted(&mut self) -> [bool; 2] {
        wanted(&mut self.looking, self.project_id, self.person.id)
    }
}

#[test]
fn a_change_cut_by_a_kill_at_any_step_ends_as_postgres_has_it() {
    let fga = OpenFga::own_in_memory();
    let trap = Trap::before(fga.address());
    let config = authorized(shared_database(), &trap.url());
    let mut server = config.start();
    let client = config.client();
    let project_id = project(&client);
    let person = Person::add(&client);
    let of = format!("/v1/projects/{project_id}");
    let changes = [
        (Change::add(&of, person.id, "viewer"), NOTHING, READ),
        (Change::role(&of, person.id, "editor"), READ, WRITE),
        (Change::remove(&of, person.id), WRITE, NOTHING),
    ];
    let mut world = Trapped {
        looking: sql(&config),
        config,
        trap,
        project_id,
        person,
    };
    let (mut kills, mut stood) = (0, 0);
    for (step, stands) in STEPS {
        for (change, before, after) in &changes {
            assert_eq!(world.wanted(), *before);
            world.cut(server, step, change);
            kills += 1;
            let is_now = if stands { after } else { before };
            assert_eq!(world.wanted(), *is_now, "{step:?} {}", change.method);
            server = world.config.start();
            verify_permissions(&world.config);
            check_agrees(
                &mut world.looking,
                &world.config,
                world.project_id,
                &world.person,
            );
            if stands {
                stood += 1;
            } else {
                let answer = change.send(&client).unwrap();
                assert!([200, 201, 204].contains(&answer.status), "{answer:?}");
            }
        }
    }
    server.kill();
    report(
        "permission steps",
        &format!("steps={} kills={kills} stood={stood}", STEPS.len()),
    );
}

/// Changes somebody's roles at random until told to stop. Gives how many were acknowledged.
fn change_at_random(
    client: &Client,
    ways: &[String; 2],
    user_id: Uuid,
    mut random: Random,
    stop: &AtomicBool,
) -> usize {
    let [project, team] = ways;
    let mut acknowledged = 0;
    while !stop.load(Ordering::Relaxed) {
        let change = match random.below(6) {
            0 => Change::add(project, user_id, "viewer"),
            1 => Change::role(project, user_id, "editor"),
            2 => Change::role(project, user_id, "viewer"),
            3 => Change::remove(project, user_id),
            4 => Change::add(team, user_id, "member"),
            _ => Change::remove(team, user_id),
        };
        match change.send(client) {
            Ok(answer) if [200, 201, 204].contains(&answer.status) => acknowledged += 1,
            // It was so already, or the server is about to be killed.
            Ok(answer) => assert!([404, 409, 500, 503].contains(&answer.status), "{answer:?}"),
            Err(_) => moment(),
        }
    }
    acknowledged
}

#[test]
fn permissions_agree_after_kills_at_random_moments() {
    let kills = setting("CRASH_KILLS", 6);
    let until = Instant::now() + Duration::from_secs(setting("CRASH_SECONDS", 3600));
    let mut random = Random::seeded("permission kills");
    let fga = OpenFga::own_in_memory();
    let config = authorized(shared_database(), &fga.url());
    let mut dying = config.start();
    let survivor = config.replica();
    let _survivor = survivor.start();
    let client = config.client();
    let project_id = project(&client);
    let team_id = team(&client, project_id);
    let ways = [
        format!("/v1/projects/{project_id}"),
        format!("/v1/teams/{team_id}"),
    ];
    let people: Vec<Person> = (0..3).map(|_| Person::add(&client)).collect();
    let mut looking = sql(&config);
    let (mut killed, mut acknowledged) = (0, 0);
    while killed < kills && Instant::now() < until {
        let stop = AtomicBool::new(false);
        acknowledged += std::thread::scope(|scope| {
            let changing: Vec<_> = people
                .iter()
                .map(|person| {
                    let own = random.fork();
                    let (client, ways, stop) = (&client, &ways, &stop);
                    scope.spawn(move || change_at_random(client, ways, person.id, own, stop))
                })
                .collect();
            random.let_pass(200, 1700);
            dying.kill();
            stop.store(true, Ordering::Relaxed);
            let each = changing.into_iter().map(|thread| thread.join().unwrap());
            each.sum::<usize>()
        });
        killed += 1;
        for person in &people {
            check_agrees(&mut looking, &survivor, project_id, person);
        }
        dying = config.start();
        verify_permissions(&config);
        for person in &people {
            check_agrees(&mut looking, &config, project_id, person);
        }
    }
    dying.kill();
    assert!(acknowledged > 0);
    report(
        "permission kills",
        &format!("kills={killed} acknowledged={acknowledged}"),
    );
}

/// What one who changes and checks has seen.
#[derive(Default)]
struct Seen {
    /// Changes that were acknowledged.
    acknowledged: usize,
    /// Changes that were not.
    refused: usize,
    /// Of those, the ones that stand.
    refused_but_stand: usize,
    checks: usize,
    /// Checks that could not be made.
    undecided: usize,
    /// The longest time without an answer.
    longest_wait: Duration,
}

/// Gives and takes a role on one replica and checks it on the other, until then.
fn give_and_take(
    [here, there]: [&ServerConfig; 2],
    of: &str,
    role: &str,
    (person, project_id): (&Person, Uuid),
    until: Instant,
) -> Seen {
    let (mut sql, client) = (sql(here), here.client());
    let mut seen = Seen::default();
    while Instant::now() < until {
        let had = wanted(&mut sql, project_id, person.id);
        let change = match had {
            NOTHING => Change::add(of, person.id, role),
            _ => Change::remove(of, person.id),
        };
        let answer = change.send(&client).unwrap();
        let has = wanted(&mut sql, project_id, person.id);
        if [201, 204].contains(&answer.status) {
            seen.acknowledged += 1;
            assert_ne!(has, had, "{answer:?}");
        } else {
            assert!(is_undecided(&answer), "{answer:?}");
            seen.refused += 1;
            seen.refused_but_stand += usize::from(has != had);
        }
        // Whatever the answer was: what Postgres has by now is what everybody answers from.
        for config in [there, here] {
            let began = Instant::now();
            let said = eventually("an answer", || {
                seen.checks += 1;
                let said = person.may(config, project_id);
                seen.undecided += usize::from(said.is_none());
                said
            });
            seen.longest_wait = seen.longest_wait.max(began.elapsed());
            let change = (change.method, answer.status);
            assert_eq!(said, has, "{change:?} see {}", config.log.display());
        }
    }
    seen
}

/// Hurts OpenFGA in every way in turn, until then. Gives how often.
fn hurt(fga: &OpenFga, relay: &Relay, random: &mut Random, until: Instant) -> [usize; 3] {
    let mut hurts = [0; 3];
    for way in (0..3).cycle() {
        random.let_pass(700, 1500);
        if Instant::now() >= until {
            break;
        }
        match way {
            0 => fga.kill(),
            1 => fga.pause(),
            _ => relay.slow(Duration::from_millis(100) + random.within(2500)),
        }
        random.let_pass(100, 1600);
        match way {
            0 => fga.start(),
            1 => fga.go_on(),
            _ => relay.heal(),
        }
        hurts[way] += 1;
    }
    hurts
}

#[test]
fn no_replica_answers_from_before_an_acknowledged_change() {
    let mut random = Random::seeded("stale answers");
    let fga = OpenFga::own();
    let relay = Relay::before(fga.address());
    // Shorter than what is done to OpenFGA.
    let config = authorized(shared_database(), &relay.url()).with("SVC_AUTHZ_TIMEOUT_MS", 1500);
    let other = config.replica();
    let _servers = [config.start(), other.start()];
    let client = config.client();
    let project_id = project(&client);
    let team_id = team(&client, project_id);
    let people: Vec<Person> = (0..4).map(|_| Person::add(&client)).collect();
    let until = Instant::now() + Duration::from_secs(setting("CRASH_HURT_SECONDS", 20));
    let (hurts, seen) = std::thread::scope(|scope| {
        let changing: Vec<_> = people
            .iter()
            .enumerate()
            .map(|(number, person)| {
                let who = (person, project_id);
                let (config, other) = (&config, &other);
                scope.spawn(move || match number % 2 {
                    0 => {
                        let of = format!("/v1/projects/{project_id}");
                        give_and_take([config, other], &of, "viewer", who, until)
                    }
                    _ => {
                        let of = format!("/v1/teams/{team_id}");
                        give_and_take([other, config], &of, "member", who, until)
                    }
                })
            })
            .collect();
        let hurts = hurt(&fga, &relay, &mut random, until);
        let each = changing.into_iter().map(|thread| thread.join().unwrap());
        (hurts, each.collect::<Vec<_>>())
    });
    let sum = |of: fn(&Seen) -> usize| seen.iter().map(of).sum::<usize>();
    let acknowledged = sum(|seen| seen.acknowledged);
    assert!(acknowledged > 0);
    let mut looking = sql(&config);
    for config in [&config, &other] {
        for person in &people {
            check_agrees(&mut looking, config, project_id, person);
        }
    }
    verify_permissions(&config);
    report(
        "stale answers",
        &format!(
            "killed={} stopped={} slowed={} acknowledged={acknowledged} refused={} refusedButStand={} checks={} undecided={} longestWaitMs={} stale=0",
            hurts[0],
            hurts[1],
            hurts[2],
            sum(|seen| seen.refused),
            sum(|seen| seen.refused_but_stand),
            sum(|seen| seen.checks),
            sum(|seen| seen.undecided),
            seen.iter()
                .map(|seen| seen.longest_wait.as_millis())
                .max()
                .unwrap_or_default(),
        ),
    );
}
