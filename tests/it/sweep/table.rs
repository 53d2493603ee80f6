//! `table.txt`, read.

use super::world::World;
use agent_runtime::http::route::Route;
use serde_json::Value;

const TEXT: &str = include_str!("table.txt");

/// The whole table.
pub(super) struct Table {
    pub(super) callers: Vec<&'static str>,
    pub(super) lines: Vec<Line>,
}

/// A route, and what each caller meets.
pub(super) struct Line {
    method: &'static str,
    path: &'static str,
    /// The status with authorization off; none: as with it on.
    pub(super) off: Option<u16>,
    /// What the model is asked: action and kind.
    pub(super) checks: Vec<(&'static str, &'static str)>,
    /// What a refusal of the key names.
    pub(super) named: Option<(&'static str, &'static str)>,
    pub(super) cells: Vec<Cell>,
    /// A body that the route takes; `"$name"` in it stands for an id of the world.
    body: Option<&'static str>,
    /// The ids that stand for parameters of the path, where it is not those of their own names.
    ids: Vec<(&'static str, &'static str)>,
}

/// What one caller meets on one route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell {
    /// Every check is allowed and recorded, whatever then comes.
    Allowed(u16),
    /// This status, and no record: allowed, or not known, or not found.
    Unrecorded(u16),
    /// The model refuses this check, counted from 0, and allowed those before it.
    Denied(usize),
    /// A rule of the key refuses, at this stage.
    Key(&'static str),
    /// A reviewer role allows it, which is recorded.
    Reviewer(u16),
    /// Allowed by what the body has, whoever brings it: the status, and the stage that is recorded.
    ByBody(u16, &'static str),
}

impl Cell {
    fn read(text: &'static str) -> Self {
        match text {
            "role" => Self::Key("key-role"),
            "proj" => Self::Key("key-project"),
            "cap" => Self::Key("key-capability"),
            "rev" => Self::Key("not-reviewer"),
            "mism" => Self::Key("key-project-mismatch"),
            "code" => Self::ByBody(201, "enrolment"),
            "sign" => Self::ByBody(204, "sign-in"),
            "403" => Self::Denied(0),
            "403/2" => Self::Denied(1),
            "401" => Self::Unrecorded(401),
            "404" => Self::Unrecorded(404),
            _ if text.ends_with(":rev") => {
                Self::Reviewer(text.trim_end_matches(":rev").parse().expect(text))
            }
            _ => match (text.strip_suffix('-'), text.strip_suffix('+')) {
                (Some(status), _) => Self::Unrecorded(status.parse().expect(text)),
                (None, status) => Self::Allowed(status.unwrap_or(text).parse().expect(text)),
            },
        }
    }

    pub(super) fn unrecorded(status: u16) -> Self {
        Self::Unrecorded(status)
    }

    pub(super) fn status(&self) -> u16 {
        match self {
            Self::Allowed(status)
            | Self::Unrecorded(status)
            | Self::Reviewer(status)
            | Self::ByBody(status, _) => *status,
            Self::Denied(_) | Self::Key(_) => 403,
        }
    }

    pub(super) fn is_allowed(&self) -> bool {
        self.status() < 300
    }

    /// How many decisions are recorded on a route with so many checks.
    pub(super) fn records(&self, checks: usize) -> usize {
        match self {
            Self::Allowed(_) => checks,
            Self::Unrecorded(_) => 0,
            Self::Denied(check) => check + 1,
            Self::Key(_) | Self::Reviewer(_) | Self::ByBody(..) => 1,
        }
    }
}

impl Line {
    fn read(text: &'static str, callers: usize) -> Self {
        let mut parts = text.split(" | ");
        let mut words = parts.next().expect(text).split_whitespace();
        let mut word = || words.next().expect(text);
        let (method, path, off, checks) = (word(), word(), word(), word());
        let cells: Vec<Cell> = words.map(Cell::read).collect();
        assert_eq!(cells.len(), callers, "{text}");
        let check = |text: &'static str| text.split_once(':').expect(text);
        let named = checks
            .strip_prefix('(')
            .map(|rest| check(rest.trim_end_matches(')')));
        let asked = if named.is_some() || checks == "-" {
            Vec::new()
        } else {
            checks.split('+').map(check).collect()
        };
        let (bodies, ids): (Vec<_>, Vec<_>) = parts.partition(|part| part.starts_with('{'));
        Self {
            body: bodies.first().copied(),
            ids: ids
                .iter()
                .flat_map(|ids| ids.split_whitespace())
                .map(|id| id.split_once('=').expect(text))
                .collect(),
            method,
            path,
            off: (off != "=").then(|| off.parse().expect(text)),
            named: named.or_else(|| asked.first().copied()),
            checks: asked,
            cells,
        }
    }

    pub(super) fn route(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn is_of(&self, route: &Route) -> bool {
        (route.method.text(), route.path) == (self.method, self.path)
    }
}

impl Line {
    /// The body as it is sent to this world.
    pub(super) fn body(&self, world: &World) -> Option<Value> {
        let mut body = serde_json::from_str(self.body?).expect("a body is JSON");
        fill(&mut body, world);
        Some(body)
    }

    /// The name of the world's id that stands for a parameter of the path.
    pub(super) fn id(&self, parameter: &str) -> Option<&'static str> {
        let named = self.ids.iter().find(|(name, _)| *name == parameter);
        named.map(|(_, id)| *id)
    }
}

/// Puts the world's ids in the place of their names.
fn fill(value: &mut Value, world: &World) {
    match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some("code") => world.code().clone_into(text),
            Some("token") => world.client("admin").token().clone_into(text),
            Some(name) => *text = world.id(name).to_string(),
            None => {}
        },
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, world)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, world)),
        _ => {}
    }
}

impl Table {
    /// The first line of a route.
    pub(super) fn line(&self, route: &Route) -> &Line {
        let line = self.lines.iter().find(|line| line.is_of(route));
        line.expect("every route has its line")
    }

    pub(super) fn read() -> Self {
        let mut lines = TEXT
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let head = lines.next().expect("a head");
        let callers: Vec<_> = head.split_whitespace().skip(4).collect();
        let lines = lines.map(|line| Line::read(line, callers.len())).collect();
        Self { callers, lines }
    }

    /// What this caller meets.
    pub(super) fn cell<'a>(&self, line: &'a Line, caller: &str) -> &'a Cell {
        let at = self.callers.iter().position(|known| *known == caller);
        &line.cells[at.expect("a caller of the table")]
    }
}
