import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

PACKAGE = pathlib.Path(__file__).resolve().parents[2]


class Wheel(unittest.TestCase):
    def test_the_same_files_make_the_same_wheel_and_it_works_where_it_is_installed(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            wheels = []
            for name in ("a", "b"):
                out = pathlib.Path(directory, name)
                out.mkdir()
                made = subprocess.run([PACKAGE / "pack", out], capture_output=True, text=True, check=True)
                wheels.append(pathlib.Path(made.stdout.strip()))
            self.assertEqual(wheels[0].read_bytes(), wheels[1].read_bytes())
            version = re.search(r'^version = "(.*)"', (PACKAGE.parents[1] / "Cargo.toml").read_text(), re.MULTILINE)
            assert version is not None
            self.assertEqual(wheels[0].name, f"agent_runtime-{version[1]}-py3-none-any.whl")
            names = set(zipfile.ZipFile(wheels[0]).namelist())
            sources = {
                str(path.relative_to(PACKAGE)) for path in (PACKAGE / "agent_runtime").rglob("*") if path.is_file()
            }
            self.assertEqual(
                {name for name in names if not name.startswith("agent_runtime-")},
                {name for name in sources if "__pycache__" not in name},
            )
            # From the wheel itself, without this directory.
            program = "import agent_runtime, sys; print(agent_runtime.__file__, agent_runtime.__version__)"
            environment = {**os.environ, "PYTHONPATH": str(wheels[0])}
            said = subprocess.run(
                [sys.executable, "-c", program],
                cwd=directory,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            self.assertIn(wheels[0].name, said.stdout)
