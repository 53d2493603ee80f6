"""The parts of a show: a private PostgreSQL, OpenFGA, a model provider that is not ours, an HTTP tool,
and the server's real binary. Each listens on loopback or a unix socket alone, and each is ended by
its own process id, however the show ends."""

import contextlib
import glob
import http.server
import json
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import httpx

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PATIENCE_S = 20


class Failed(Exception):
    """What did not hold, in a sentence."""


def say(text):
    print(f"  {text}", flush=True)


def check(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def run(tell, most_s):
    """Runs a show: `tell` is given a directory and what is to be closed at its end, and returns the
    last line. The exit code says whether everything held."""

    def told_to_end(number, _):
        late = f"not done within {most_s} s"
        raise Failed(late if number == signal.SIGALRM else f"ended by signal {number}")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, told_to_end)
    signal.alarm(most_s)
    directory = Directory()
    try:
        with contextlib.ExitStack() as opened:
            figure = tell(directory, opened)
    except Exception as fault:
        for name in directory.logs():
            print(f"--- the end of {name}'s log\n{directory.tail(name)}", file=sys.stderr)
        print(f"show: {type(fault).__name__}: {fault}", file=sys.stderr)
        return 1
    finally:
        directory.close()
    print(figure)
    return 0


def set_up():
    """Where `make setup` puts what the shows need."""
    where = subprocess.run(
        [HERE.parent / "setup" / "where"], capture_output=True, text=True, check=True
    )
    return pathlib.Path(where.stdout.strip())


def free_port():
    """A free port below those that the kernel gives to connections, so that it is still free when
    what listened there was ended and starts again."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


def eventually(what, look, process=None, patience_s=PATIENCE_S, every_s=0.02):
    """Waits until `look` gives something."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        if process is not None and process.poll() is not None:
            raise Failed(f"{what}: its process ended with {process.returncode}")
        time.sleep(every_s)
    raise Failed(f"{what}: not within {patience_s} s")


def end(process, how=signal.SIGTERM):
    """Ends one process of ours, at last with force."""
    if process.poll() is not None:
        return
    process.send_signal(how)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Directory:
    """A directory of the show's own, which PostgreSQL's user may pass through."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="agent-runtime-show-", dir="/tmp"))
        self.path.chmod(0o711)

    def log(self, name):
        return open(self.path / f"{name}.log", "ab")

    def logs(self):
        return sorted(path.stem for path in self.path.glob("*.log"))

    def text(self, name):
        try:
            return (self.path / f"{name}.log").read_text(errors="replace")
        except OSError:
            return ""

    def tail(self, name, lines=15):
        return "\n".join(self.text(name).splitlines()[-lines:])

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Postgres:
    """A private PostgreSQL from the host's own binaries, on a unix socket. It refuses to run as root,
    so root hands it to a system user. `databases` are there beside its first one."""

    def __init__(self, directory, databases=()):
        home = directory.path / "postgres"
        home.mkdir(mode=0o700)
        account = {}
        if os.geteuid() == 0:
            user = self.system_user()
            os.chown(home, user.pw_uid, user.pw_gid)
            account = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        bin_dir = self.binaries()
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}
        options = {"cwd": "/", "env": environment, **account}
        self.home = home
        with directory.log("initdb") as log:
            made = subprocess.run(
                [bin_dir / "initdb", "-D", home / "data", "-U", "show", "-A", "trust", "-E", "UTF8"]
                + ["--no-sync"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options,
            )
        if made.returncode != 0:
            raise Failed(f"initdb failed:\n{directory.tail('initdb')}")
        for name in databases:
            # Not every installation has its clients beside it.
            with directory.log("initdb") as log:
                subprocess.run(
                    [bin_dir / "postgres", "--single", "-D", home / "data", "postgres"],
                    input=f"create database {name};\n".encode(), stdout=log, stderr=log,
                    check=True, **options,
                )
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(home),
            "unix_socket_permissions": "0700",
            # The machine is not killed in this show, only the server.
            "fsync": "off",
        }
        arguments = [f"-c{name}={value}" for name, value in settings.items()]
        self.command = [bin_dir / "postgres", "-D", home / "data", *arguments]
        self.directory, self.options, self.starts = directory, options, 0
        self.url = f"postgres://show@{str(home).replace('/', '%2F')}/postgres"
        self.start()

    def start(self):
        self.starts += 1
        with self.directory.log("postgres") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                **self.options,
            )

        def is_ready():
            ready = "database system is ready to accept connections"
            return self.directory.text("postgres").count(ready) >= self.starts

        try:
            eventually("PostgreSQL", is_ready, self.process)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        end(self.process, signal.SIGINT)  # Its fast shutdown.

    @staticmethod
    def system_user():
        for name in ("postgres", "nobody"):
            try:
                return pwd.getpwnam(name)
            except KeyError:
                continue
        raise Failed("root cannot run PostgreSQL, and there is no user postgres to run it")

    @staticmethod
    def binaries():
        places = os.environ.get("PATH", "").split(":")
        for pattern in ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"):
            places += sorted(glob.glob(pattern), reverse=True)
        for place in map(pathlib.Path, filter(None, places)):
            if os.access(place / "initdb", os.X_OK) and os.access(place / "postgres", os.X_OK):
                return place
        raise Failed("PostgreSQL's initdb and postgres are not here: run make setup")

    close = stop


class OpenFga:
    """The authorization server, on a PostgreSQL that has its database."""

    DATABASE = "openfga"
    VERSION = "1.22.1"

    def __init__(self, directory, postgres):
        self.program = set_up() / f"openfga-{self.VERSION}" / "openfga"
        if not self.program.exists():
            raise Failed(f"{self.program} is missing: run make setup")
        self.directory = directory
        self.datastore = ["--datastore-engine=postgres", f"--datastore-uri={self.datastore_uri(postgres)}"]
        http, grpc = free_port(), free_port()
        self.url = f"http://127.0.0.1:{http}"
        self.listen = [f"--http-addr=127.0.0.1:{http}", f"--grpc-addr=127.0.0.1:{grpc}"]
        self.options = {
            "cwd": "/", "stdin": subprocess.DEVNULL, "start_new_session": True,
            # Nothing of OPENFGA_* or OTEL_* comes in.
            "env": {"HOME": str(directory.path), "PATH": os.environ.get("PATH", "")},
        }
        with directory.log("openfga") as log:
            command = [self.program, "migrate", *self.datastore]
            migrated = subprocess.run(command, stdout=log, stderr=log, **self.options)
        if migrated.returncode != 0:
            raise Failed(f"OpenFGA's migration failed:\n{directory.tail('openfga')}")
        self.process = None

    @classmethod
    def datastore_uri(cls, postgres):
        return f"postgres://show@/{cls.DATABASE}?host={postgres.home}&sslmode=disable"

    def start(self):
        with self.directory.log("openfga") as log:
            self.process = subprocess.Popen(
                [self.program, "run", *self.listen, *self.datastore, "--playground-enabled=false"]
                + ["--metrics-enabled=false", "--log-level=error"],
                stdout=log, stderr=log, **self.options,
            )
        eventually("OpenFGA", self.is_serving, self.process)

    def is_serving(self):
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2).json() == {"status": "SERVING"}
        except httpx.TransportError:
            return False

    def close(self):
        if self.process is not None:
            end(self.process)


class Provider:
    """An OpenAI-compatible provider that is not ours, with scripted answers."""

    def __init__(self, directory, fixtures):
        program = set_up() / "node/node_modules/@copilotkit/aimock/dist/cli.js"
        if not program.exists():
            raise Failed(f"{program} is missing: run make setup")
        script = directory.path / "fixtures.json"
        script.write_text(json.dumps({"fixtures": fixtures}))
        with directory.log("provider") as log:
            self.process = subprocess.Popen(
                ["node", program, "--port", "0", "--fixtures", script, "--strict"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )

        def listening():
            return re.search(r"listening on (http://\S+)", directory.tail("provider"))

        try:
            self.url = eventually("the model provider", listening, self.process).group(1)
        except BaseException:
            self.close()
            raise

    def calls(self):
        """The chat completions that it was asked for, oldest first."""
        journal = httpx.get(f"{self.url}/__aimock/journal", timeout=PATIENCE_S).json()
        return [entry for entry in journal if entry["path"] == "/v1/chat/completions"]

    def close(self):
        end(self.process)


class Tool:
    """An HTTP tool of this process, which counts its calls."""

    def __init__(self, answer):
        calls = self.calls = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                calls.append(json.loads(body))
                self.send_response(200)
                self.send_header("content-type", "text/plain; charset=utf-8")
                self.send_header("content-length", str(len(answer.encode())))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/weather"
        self.thread = threading.Thread(target=self.server.serve_forever, name="tool", daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Server:
    """The service's own binary, in development mode. A replica has a name of its own."""

    def __init__(self, directory, database_url, settings, name="server"):
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
        self.binary = pathlib.Path(
            os.environ.get("AGENT_RUNTIME_BIN", target / "debug" / "agent-runtime")
        )
        if not self.binary.exists():
            raise Failed(f"{self.binary} is missing: run cargo build")
        self.port, self.name = free_port(), name
        self.url = f"http://127.0.0.1:{self.port}"
        self.directory = directory
        self.environment = {
            "PATH": os.environ.get("PATH", ""),
            "SVC_DEV": "true",
            "SVC_BIND_ADDRESS": "127.0.0.1",
            "SVC_HTTP_PORT": str(self.port),
            "SVC_DATABASE_URL": database_url,
            "SVC_STATE_DIR": str(directory.path / f"{name}-state"),
            **settings,
        }
        self.process = None

    def start(self):
        self.launch()
        self.wait()

    def launch(self):
        """Starts it, without waiting."""
        with self.directory.log(self.name) as log:
            self.process = subprocess.Popen(
                [self.binary, "serve"],
                cwd="/", env=self.environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )

    def wait(self):
        eventually(f"the {self.name}", self.is_ready, self.process)

    def command(self, *arguments, token=None):
        """What one of the binary's other commands says: its exit code, and both outputs. With a token, it asks this server."""
        asks = {"AGENT_RUNTIME_URL": self.url, "AGENT_RUNTIME_TOKEN": token} if token else {}
        return subprocess.run(
            ["agent-runtime", *arguments], executable=self.binary,
            cwd="/", env={**self.environment, **asks}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_S,
        )

    def is_ready(self):
        try:
            return httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self):
        """What a power cut does: no handler of the process runs."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self):
        if self.process is not None:
            end(self.process)
