"""Two stories. A newcomer has an empty directory and the pages, and pastes what they say. An operator has a server,
Prometheus with the alert rules of the packages, and a night in which three things fail."""

import http.server
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import threading

from bad_night import bad_night
from parts import PATIENCE_S, ROOT, Failed, check, end, eventually, free_port, run, say, set_up

# `make run` may have something to build. The rest takes about a minute.
MOST_S = 1500
# A busy machine builds the program in many minutes.
BUILD_S = 1200
DONE = "--- that was it:"
READY = "Ctrl-C stops everything."


def blocks(page, language, heading=None):
    """The blocks of code of a page in this language, in order; of one part of the page if its heading is given."""
    text = (ROOT / page).read_text()
    if heading:
        text = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


class Terminal:
    """A shell that is given one block after the other, as a person pastes them; or one command, which goes on until
    Ctrl-C. Its input is a terminal then, since a demonstration without one ends by itself."""

    def __init__(self, directory, environment, command=None):
        keyboard = None
        if command:
            self.keyboard, keyboard = pty.openpty()
        self.process = subprocess.Popen(
            ["bash", "-c", command] if command else ["bash", "--norc", "-o", "pipefail"],
            cwd=directory, env=environment, stdin=keyboard or subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        if keyboard:
            os.close(keyboard)
        self.said = []
        self.lines = threading.Condition()
        threading.Thread(target=self.read, name="terminal", daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.lines:
                self.said.append(line)
                self.lines.notify_all()
        with self.lines:
            self.said.append(None)
            self.lines.notify_all()

    def take(self, until, patience_s=PATIENCE_S):
        """What is said up to a line that has this in it."""
        taken = []

        def found():
            while self.said:
                line = self.said.pop(0)
                if line is None:
                    raise Failed(f"the terminal ended:\n{''.join(taken)}")
                taken.append(line)
                if until in line:
                    return True
            return False

        with self.lines:
            if not self.lines.wait_for(found, timeout=patience_s):
                raise Failed(f"not within {patience_s} s: {until}\n{''.join(taken)}")
        return "".join(taken)

    def paste(self, text):
        self.process.stdin.write(text if text.endswith("\n") else text + "\n")
        self.process.stdin.flush()

    def does(self, block, patience_s=PATIENCE_S):
        """Pastes a block, and gives what it says. Every command of it must succeed: a shell counts those that fail."""
        self.paste("__failed=0; trap '__failed=$((__failed + 1))' ERR")
        self.paste(block)
        self.paste(f"trap - ERR; echo; echo '{DONE}' $__failed")
        said = self.take(DONE, patience_s)
        check(said.rstrip().endswith(f"{DONE} 0"), f"a command failed:\n{block}\n{said}")
        return said

    def interrupt(self):
        """Ctrl-C: the signal goes to all that the terminal runs, which then ends."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(PATIENCE_S)

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        end(self.process)


class Newcomer:
    """An empty directory, the program on the path, and a count of what was pasted."""

    def __init__(self, directory, opened):
        self.home = directory.path / "newcomer"
        self.home.mkdir()
        self.opened = opened
        self.pasted = 0
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.program = pathlib.Path(
            os.environ.get("AGENT_RUNTIME_BIN", target / "debug" / "agent-runtime")
        )
        if not self.program.exists():
            raise Failed(f"{self.program} is missing: run cargo build")
        path = directory.path / "bin"
        path.mkdir()
        (path / "agent-runtime").symlink_to(self.program)
        self.environment = {
            **{name: os.environ[name] for name in ("HOME", "CARGO_HOME", "RUSTUP_HOME", "CARGO_TARGET_DIR", "LANG")
               if name in os.environ},
            "PATH": f"{path}:{os.environ['PATH']}",
            "XDG_DATA_HOME": str(self.home / "data"),
        }

    def terminal(self, where=None, command=None, **more):
        opened = Terminal(where or self.home, {**self.environment, **more}, command)
        self.opened.callback(opened.close)
        return opened

    def paste(self, terminal, block, patience_s=PATIENCE_S):
        self.pasted += len(re.findall(r"^(?![ #}')]|$)", block, re.MULTILINE))
        return terminal.does(block, patience_s)


class Served:
    """One file on loopback, for a browser."""

    def __init__(self, html):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(html.encode())))
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, name="page", daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def make_run(newcomer):
    """README's first command, in a checkout. The second one, `make test`, is what runs this show."""
    first, second = blocks("README.md", "sh")[0].splitlines()
    check(first.startswith("make run ") and second.startswith("make test "), "README begins otherwise")
    terminal = newcomer.terminal(ROOT, first, XDG_DATA_HOME=str(newcomer.home / "of-make"))
    said = terminal.take(READY, BUILD_S)
    check("completed" in said, f"the example did not end well:\n{said}")
    newcomer.pasted += 1
    terminal.interrupt()
    say("make run: the example agent's answer streamed; Ctrl-C ended it")


def quickstart(newcomer, page):
    """docs/quickstart.md: the server in one terminal, everything else in a second."""
    start, *rest = blocks("docs/quickstart.md", "sh")
    served = newcomer.terminal(command=start, SVC_ALLOWED_ORIGINS=page.origin)
    newcomer.pasted += 1
    said = served.take(READY)
    export = next(line for line in said.splitlines() if "export AGENT_RUNTIME_URL=" in line)
    say(f"agent-runtime dev, in an empty directory: {re.search(r'http://[^ ]+', export).group()}")
    (newcomer.home / "order_status.py").write_text(blocks("docs/quickstart.md", "python")[0])
    terminal = newcomer.terminal(PORT=str(free_port()))
    terminal.does(export)
    ends = rest.pop()
    said = "".join(newcomer.paste(terminal, block) for block in rest)
    check("completed · 3 steps · 2 model calls" in said, f"the quickstart ended otherwise:\n{said}")
    for line in said.splitlines():
        if line.startswith(("→", "←", "completed")):
            say(f"  {line}")
    return served, terminal, ends


def browser(newcomer, terminal, page):
    """The page of docs/streaming.md follows the run of the quickstart's agent."""
    program = set_up() / "chromium/browser"
    if not program.exists():
        raise Failed(f"{program} is missing: run make setup")
    said = terminal.does(
        """started=$(call "$AGENT_RUNTIME_URL/v1/runs" -d '{"agentId": "'"$AGENT"'", "message": "Say hello."}')
echo; jq -r '"follow: \\(.run.id) \\(.publicToken.token)"' <<<"$started"; echo "url: $AGENT_RUNTIME_URL" """
    )
    run_id, token = re.search(r"^follow: (\S+) (\S+)$", said, re.MULTILINE).groups()
    url = re.search(r"^url: (\S+)", said, re.MULTILINE).group(1)
    address = f"{page.origin}/follow.html#{url}/v1/runs/{run_id}/progress/stream,{token}"
    command = [program, "--headless", "--disable-gpu", "--dump-dom", "--virtual-time-budget=1000000000"]
    command += [f"--user-data-dir={newcomer.home / 'browser'}"]
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    shown = subprocess.run(
        [*command, address], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    ).stdout
    answer = re.search(r'<pre id="answer">(.+?)</pre>', shown, re.DOTALL)
    check(answer, f"the browser shows:\n{shown}")
    newcomer.pasted += 1
    say(f"in Chromium: {answer.group(1)[:70]}")


def webhook(newcomer, terminal):
    """README: the token in a file, a run over the API, a receiver, and the webhook that arrives there."""
    heading = "Get a webhook when a run ends"
    terminal.does(f"PORT={free_port()}")
    model = blocks("README.md", "sh", "Use a real model")
    newcomer.paste(terminal, next(block for block in model if "> authorization" in block))
    for block in blocks("README.md", "sh", "Start a run and watch it"):
        said = newcomer.paste(terminal, block)
        check("completed" in said, f"the run did not end well:\n{said}")
    (newcomer.home / "receiver.py").write_text(blocks("README.md", "python", heading)[0])
    said = "".join(newcomer.paste(terminal, block) for block in blocks("README.md", "sh", heading))
    if "genuine: " not in said:
        said = terminal.take("genuine: ")
    arrived = re.search(r"^genuine: (.*)$", said, re.MULTILINE).group(1)
    check('"run.finished"' in arrived, f"what arrived is {arrived}")
    say(f"the webhook, verified: {arrived[:100]}…")
    terminal.does("kill %2")


def first_hour(directory, opened):
    newcomer = Newcomer(directory, opened)
    html = blocks("docs/streaming.md", "html")[0]
    page = Served(html)
    opened.callback(page.close)
    make_run(newcomer)
    served, terminal, ends = quickstart(newcomer, page)
    browser(newcomer, terminal, page)
    webhook(newcomer, terminal)
    newcomer.paste(terminal, ends)
    served.interrupt()
    return newcomer.pasted


def tell(directory, opened):
    print("the first hour:", flush=True)
    pasted = first_hour(directory, opened)
    print("the first bad night:", flush=True)
    seen, made = bad_night(directory, opened)
    return f"commands run as written: {pasted}, faults seen in logs, metrics and alerts: {seen}/{made}"


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
