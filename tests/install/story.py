"""The life of an installation, from the archive to the purge, on a host that has no network. Each step is
what an operator does, checked from outside; after each, nothing may have tried to leave the host. The last
line: steps done of steps tried."""

import argparse
import contextlib
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent / "show"))

import after
import first
import foreign
import keep
from host import UNITS, Host
from lab import Failed, Lab
from parts import Directory, Provider

ANSWER = (
    "Every step of this answer is kept before the next one begins, so that a server that is killed in "
    "the middle of it goes on where it stood, and whoever watches sees nothing twice."
)
# About two seconds, so that there is time to kill.
FIXTURES = [
    {"match": {}, "response": {"content": ANSWER}, "latency": 60, "chunkSize": 6},
]
# With packages and an earlier program built, this takes about three minutes on a quiet machine.
MOST_S = 900
STEPS = first.STEPS + keep.STEPS + after.STEPS + foreign.STEPS


class World:
    """What the steps share."""

    def __init__(self, arguments, lab, host, provider):
        self.lab, self.host, self.provider = lab, host, provider
        self.packages = arguments.packages
        self.earlier, self.issuer = arguments.earlier, arguments.issuer
        self.program = arguments.program
        self.answer = ANSWER
        self.tenant = self.backup = None
        self.figures = []

    def package(self, pattern):
        """The one file of the packages that a pattern names."""
        found = sorted(self.packages.glob(pattern))
        if len(found) != 1:
            raise Failed(f"{self.packages} has {len(found)} files {pattern}: run make packages")
        return found[0]


def told_to_end(number, _):
    late = f"not done within {MOST_S} s"
    raise Failed(late if number == signal.SIGALRM else f"ended by signal {number}")


def attempt(world, title, step):
    """Does one step; whether it held. Whatever tried to leave the host fails it."""
    began = time.monotonic()
    try:
        told = step(world)
        left = world.lab.trap.take()
        if left:
            raise Failed("tried to leave the host: " + "; ".join(sorted(set(left))))
    except Exception as fault:
        print(f"failed  {title} ({time.monotonic() - began:.1f} s)", flush=True)
        kind = "" if isinstance(fault, Failed) else f"{type(fault).__name__}: "
        print(f"{kind}{fault}", file=sys.stderr, flush=True)
        return False
    print(f"done    {title} ({time.monotonic() - began:.1f} s)", flush=True)
    for line in told or ():
        print(f"        {line}", flush=True)
    return True


def say_why(host):
    """What the machine itself says, after a step that failed."""
    print(f"--- the end of the console\n{host.tail()}", file=sys.stderr)
    for unit in UNITS:
        with contextlib.suppress(Exception):
            print(f"--- the end of the journal of {unit}\n{host.journal(unit)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=pathlib.Path, required=True, help="what make packages made")
    parser.add_argument("--program", type=pathlib.Path, required=True, help="the program in them")
    parser.add_argument("--earlier", type=pathlib.Path, required=True, help="an earlier program")
    parser.add_argument("--issuer", type=pathlib.Path, required=True, help="who signs licenses, as a key")
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, told_to_end)
    signal.alarm(MOST_S)
    lab = Lab()
    directory = Directory()
    provider, host = Provider(directory, FIXTURES), Host(lab, "host")
    world = World(arguments, lab, host, provider)
    done = 0
    try:
        for title, step in STEPS:
            if not attempt(world, title, step):
                say_why(host)
                break
            done += 1
    finally:
        host.close()
        provider.close()
        directory.close()
    for figure in world.figures:
        print(figure)
    print(f"steps done {done} of {len(STEPS)}")
    return 0 if done == len(STEPS) else 1


if __name__ == "__main__":
    sys.exit(main())
