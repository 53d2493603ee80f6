import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]
USES = HERE / "uses.py"


class Types(unittest.TestCase):
    def test_both_checkers_take_the_right_uses_and_refuse_the_wrong_ones(self) -> None:
        lines = USES.read_text(encoding="utf-8").splitlines()
        expected = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
        self.assertGreaterEqual(len(expected), 30)
        mypy = [sys.executable, "-m", "mypy", "--cache-dir=/dev/null", str(USES)]
        # Beside the environment that this runs in: `tests/setup/python-client` puts it there.
        pyright = [
            str(pathlib.Path(sys.prefix).parent / "pyright/node_modules/.bin/pyright"),
            "--pythonpath",
            sys.executable,
            str(USES),
        ]
        for command in (mypy, pyright):
            done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=False)
            found = {int(line) for line in re.findall(r"uses\.py:(\d+):(?:\d+ -)? error", done.stdout)}
            self.assertEqual(
                found ^ expected,
                set(),
                f"lines on which {command[0]} and this file differ:\n{done.stdout}{done.stderr}",
            )
