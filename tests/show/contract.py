"""The contract: every statement of the specification with the tests that prove it, and the tools that read the API's
description. Statements are independent: each one is looked at, whatever became of those before it."""

import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TABLE = ROOT / "tests/it/specification/statements.txt"
HEAD = re.compile(r"\[([\d.]+) \| \d+\] (.+)")
# As the test runner prints it.
ENDED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED)", re.MULTILINE)
# The same of node's.
ENDED_IN_BROWSER = re.compile(r"^\s*(ok|not ok) \d+ - (.+?): ", re.MULTILINE)
TOOL = re.compile(r"^(generator|linter) (\S+) (.+)$", re.MULTILINE)

Statement = collections.namedtuple("Statement", "id text tests to_come")


def sections():
    """The table: heads, each with its statements. `mod.rs` beside it checks its form."""
    found = []
    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if head := HEAD.fullmatch(line):
            found.append((f"{head[1]} {head[2]}", []))
            continue
        id, text, proofs = line.split(" | ")
        proofs = proofs.split("; ")
        to_come = [proof.removeprefix("to come: ") for proof in proofs if proof.startswith("to come: ")]
        tests = [proof for proof in proofs if not proof.startswith("to come: ") and proof != "unproved"]
        found[-1][1].append(Statement(id, text, tests, to_come))
    return found


def run(tests):
    """Which of the tests passed. One that did not run is not among them."""
    by_target = collections.defaultdict(set)
    for test in tests:
        target, path = test.split(" ", 1)
        by_target[target].add(path)
    passed = run_in_browsers(by_target.pop("console", set()))
    for target, paths in sorted(by_target.items()):
        print(f"runs {len(paths)} tests of {target}", flush=True)
        chosen = ["--lib"] if target == "lib" else ["--test", target]
        command = ["cargo", "test", "--locked", *chosen, "--no-fail-fast", "--", "--exact", *sorted(paths)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        ended = dict(ENDED.findall(done.stdout))
        if done.returncode != 0:
            print(done.stdout, file=sys.stderr)
        passed |= {f"{target} {path}" for path in paths if ended.get(path) == "ok"}
    return passed


def run_in_browsers(paths):
    """The same of the console's tests, which are named by file and by what stands before the colon of their names."""
    by_file = collections.defaultdict(set)
    for path in paths:
        file, about = path.split("::")
        by_file[file].add(about)
    passed = set()
    for file, abouts in sorted(by_file.items()):
        print(f"runs {len(abouts)} tests of tests/console/{file}.test.mjs", flush=True)
        pattern = f"^({'|'.join(about.replace('.', '[.]') for about in sorted(abouts))}): "
        command = ["node", "--test", "--test-reporter=tap", f"--test-name-pattern={pattern}", f"tests/console/{file}.test.mjs"]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        ended = ENDED_IN_BROWSER.findall(done.stdout)
        if done.returncode != 0:
            print(done.stdout, file=sys.stderr)
        failed = {about for how, about in ended if how != "ok"}
        passed |= {f"console {file}::{about}" for about in {about for _, about in ended} & abouts - failed}
    return passed


def show(statement, passed):
    """Prints a statement, and says whether it is proved; None where it waits for its feature alone."""
    label = f"{statement.id}: {statement.text}"
    if statement.to_come and not statement.tests:
        print(f"  to come  {label} ({', '.join(statement.to_come)})")
        return None
    failed = [test for test in statement.tests if test not in passed]
    holds = bool(statement.tests) and not failed
    why = "" if holds else f" ({', '.join(failed) or 'no test proves it'})"
    print(f"  {'held   ' if holds else 'FAILED '}  {label}{why}")
    return holds


def tools():
    """What the generators and linters say of the description: clean and all, of each kind."""
    check = ROOT / "tests/description/check"
    counts = {"generator": [0, 0], "linter": [0, 0]}
    print("The description of the API")
    if not check.exists():
        print("  FAILED   tests/description/check is missing")
        return counts, False
    done = subprocess.run([check], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    for kind, name, said in TOOL.findall(done.stdout):
        counts[kind][0] += said == "clean"
        counts[kind][1] += 1
        print(f"  {'held   ' if said == 'clean' else 'FAILED '}  {kind} {name}: {said}")
    return counts, done.returncode == 0


def main():
    table = sections()
    passed = run({test for _, statements in table for one in statements for test in one.tests})
    proved, concerned = 0, 0
    for head, statements in table:
        print(head)
        for statement in statements:
            holds = show(statement, passed)
            concerned += holds is not None
            proved += bool(holds)
    counts, clean = tools()
    (generators, all_generators), (linters, all_linters) = counts["generator"], counts["linter"]
    print(
        f"contract: {proved} of {concerned} statements proved, {generators} of {all_generators} generators clean, "
        f"{linters} of {all_linters} linters clean"
    )
    return 0 if clean and proved == concerned else 1


sys.exit(main())
