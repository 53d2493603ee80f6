"""What has to hold of the tree as it stands, each point with its figures. Points are independent: each one is looked at,
whatever became of those before it."""

import collections
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
DEFINITION = re.compile(
    r"^\s*create\s+(?:or\s+replace\s+)?function\s+(?:\w+\.)?(\w+)", re.IGNORECASE | re.MULTILINE
)
# What came after the house stood. Each may add a few minutes to `make test`.
SINCE = ("clients", "console", "contract", "first-hour", "flows", "sign-in")
SINCE_S = len(SINCE) * 4 * 60
# Of `make test` on two cores, with the parts installed and with none of them.
MOST_S, MOST_WITH_PARTS_S = 25 * 60 + SINCE_S, 40 * 60 + SINCE_S
# What took less was a look whether the parts are there.
INSTALLED_S = 60
# Lines of Rust in `src`, without comments and tests.
CODE_MOST = 80_000
# Rows of the benchmarks, with what each has to be: at least or at most so much.
FLOORS = {
    "jobs": (">=", 3.0, "jobs/s beside the better of two other queues"),
    "jobs-start-p50": ("<", 1.0, "enqueue to start, p50, beside the better of two other queues"),
    "turns": (">=", 5.0, "turns/s beside the DBOS library"),
    "first-text": ("<=", 10.0, "created to first text, in commits"),
    "webhook-deliveries": (">=", 0.3, "deliveries/s beside the same POSTs with no queue"),
    "webhook-events": (">=", 0.1, "events/s beside one-row commits"),
    "webhook-receipt": ("<=", 1.3, "event to receipt, p50, beside six commits"),
    "webhooks-one-silent": ("<=", 1.2, "healthy endpoints beside a dead one"),
    "replicas-turns": (">=", 0.8, "turns/s of two and three replicas beside one"),
    "replicas-deliveries": (">=", 0.8, "deliveries/s of two and three replicas beside one"),
}
BENCHES = ("jobs", "turns", "first-text", "webhooks", "webhooks-isolation", "replicas")
HOLDS = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b}

held, points = 0, 0


def point(name, holds, figures):
    global held, points
    points += 1
    held += bool(holds)
    print(f"{'holds' if holds else 'FAILS'}  {name}: {figures}", flush=True)


def output(*command):
    """What a command prints, and whether it went well; its diagnostics go to the terminal."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    return done.stdout, done.returncode == 0


def tests(*filters):
    command = ("cargo", "test", "--quiet", "--locked", "--workspace", "--test", "it")
    said, passed = output(*command, "--", *filters)
    run = sum(int(count) for count in re.findall(r"(\d+) passed", said))
    if not passed:
        print(said, file=sys.stderr)
    return run, passed and run > 0


def sql_functions():
    names = collections.Counter()
    for folder in ("sql", "jobs/sql"):
        for file in sorted((ROOT / folder).rglob("*.sql")):
            if file.name != "dump.sql":
                names.update(name.lower() for name in DEFINITION.findall(file.read_text()))
    more = [name for name, count in names.items() if count > 1]
    figures = f"{names.total()} definitions of {len(names)} names {' '.join(more)}"
    point("SQL functions are defined once", names and not more, figures.strip())


def circles():
    command = ("cargo", "test", "--quiet", "--locked", "--workspace", "--test", "rules")
    said, _ = output(*command, "--", "--nocapture", "circles_of_files")
    rooms = re.findall(r"^circles (\S+) (\d+)$", said, re.MULTILINE)
    for room, count in rooms:
        point("no circle of files", count == "0", f"{count} in {room}")
    if not rooms:
        point("no circle of files", False, "tests/rules did not say")


def schema():
    run, passed = tests("the_dump_in_the_tree_is_the_schema")
    point("the dump of the schema equals the schema", passed, f"{run} tests passed")


def waits():
    run, passed = tests("parking::", "waiting::")
    say = f"0 found by {run} tests, each of which asks for such runs" if passed else "tests failed"
    point("no run waits with nothing to wake it", passed, say)


def code_lines(path):
    """Lines of Rust without comments, blank lines and the unit tests at the end."""
    text = path.read_text().split("#[cfg(test)]\nmod tests {")[0]
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("//") for line in lines)


def sizes():
    commit = (ROOT / "sql/functions/run_commit.sql").read_text()
    head = re.search(r"create function run_commit\((.*?)\n\)", commit, re.DOTALL).group(1)
    arguments = [one for one in head.split(",") if not one.strip().startswith("out ")]
    point("arguments of a run's commit", len(arguments) <= 16, f"{len(arguments)} of at most 16")
    handed = sum(
        len((ROOT / path).read_text().splitlines()) for path in ("src/config/assemble.rs", "src/server/options.rs")
    )
    point("lines that hand settings on", handed <= 300, f"{handed} of at most 300 in assemble.rs and server/options.rs")
    claim = (ROOT / "src/runtime/driver/claim.rs").read_text()
    point("the claim imports nothing of the commit", "super::commit" not in claim, "src/runtime/driver/claim.rs")
    files = [file for file in (ROOT / "src").rglob("*.rs") if file.stem != "tests" and "tests" not in file.parts]
    lines = sum(code_lines(file) for file in files)
    point("lines of code of src", lines <= CODE_MOST, f"{lines} of at most {CODE_MOST}, without comments and tests")


def seconds():
    try:
        rows = [row.split("\t") for row in (TARGET / "parts.tsv").read_text().splitlines()]
    except FileNotFoundError:
        return point("seconds of make test", False, "it has not run here")
    parts = sorted(((int(took), name) for took, name, _ in rows), reverse=True)
    for took, name in parts:
        print(f"       {took:6} s  {name}")
    total = sum(took for took, name in parts if " > " not in name)
    installed = sum(took for took, name in parts if name == "install parts") > INSTALLED_S
    most = MOST_WITH_PARTS_S if installed else MOST_S
    whole = all(how == "ok" for _, _, how in rows) and any("show" in name for _, name in parts)
    figures = f"{total} s of at most {most}" + ("" if whole else "; it did not come to its end")
    point("seconds of make test", whole and total <= most, figures)


def floors():
    output("tests/setup/bench")
    command = ("cargo", "bench", "--quiet", "--locked", "--features", "bench", "--bench", "bench")
    said, _ = output(*command, "--", "--short", *BENCHES)
    figures = dict(re.findall(r"^([a-z0-9-]+): ([0-9][0-9.]*)", said.replace(",", ""), re.MULTILINE))
    for row, (sign, bound, what) in FLOORS.items():
        figure = figures.get(row)
        holds = figure is not None and HOLDS[sign](float(figure), bound)
        point(f"floor of {row}", holds, f"{figure} {sign} {bound} ({what})")


for look in (sql_functions, sizes, circles, schema, waits, seconds, floors):
    look()
print(f"{held} of {points} points held")
sys.exit(held < points)
