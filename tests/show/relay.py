"""A relay between the server and its PostgreSQL that sees each statement, and can hold one: before the database has it,
or after the database has done it and before the server is told. It knows of the protocol only what it needs for that:
how messages begin, what a statement's text is, and where a statement's answer ends.

It leaves out encryption, and whoever asks several questions before the first answer."""

import pathlib
import select
import socket
import struct
import threading

# Codes of messages before a session.
CANCEL = 80877102
ENCRYPT = (80877103, 80877104)
# How a statement is held.
BEFORE, AFTER = "before", "after"
COMMIT = "commit"


class Ended(Exception):
    """One side has closed the connection."""


class Side:
    """One end of a connection, from which whole messages are taken."""

    def __init__(self, connection):
        self.connection, self.buffer = connection, bytearray()

    def exactly(self, count):
        while len(self.buffer) < count:
            data = self.connection.recv(65536)
            if not data:
                raise Ended
            self.buffer += data
        taken = bytes(self.buffer[:count])
        del self.buffer[:count]
        return taken

    def message(self):
        """A message with a kind: its kind, and all of it."""
        head = self.exactly(5)
        return head[:1], head + self.exactly(struct.unpack("!I", head[1:])[0] - 4)

    def opening(self):
        """A message of before the session: its code, and all of it."""
        head = self.exactly(8)
        length, code = struct.unpack("!II", head)
        return code, head + self.exactly(length - 8)


def socket_of(postgres):
    return str(pathlib.Path(postgres.home) / ".s.PGSQL.5432")


def text(data):
    """The text that begins here, and what is behind it."""
    value, _, rest = data.partition(b"\0")
    return value.decode(), rest


class Relay:
    """Listens on loopback. While it is armed, `meets` is asked about each statement before it is executed, and told whether a
    commit will follow: None lets it pass, `BEFORE` and `AFTER` hold it. Once one is held, every other one is, too: the server
    that asks is to be killed there."""

    def __init__(self, postgres):
        self.target = socket_of(postgres)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgres://show@127.0.0.1:{self.listener.getsockname()[1]}/postgres?sslmode=disable"
        self.lock = threading.Lock()
        self.meets, self.held = None, None
        self.open = set()
        threading.Thread(target=self.accept, name="relay", daemon=True).start()

    def arm(self, meets):
        """Holds the first statement that it meets; the event that says so."""
        with self.lock:
            self.meets, self.held = meets, threading.Event()
            return self.held

    def disarm(self):
        """Lets every other statement pass. The event of the statement that is held, if one is."""
        with self.lock:
            held = None if self.meets else self.held
            self.meets, self.held = None, None
            return held

    def met(self, statement, is_uncommitted):
        """How this statement is held, if it is, and the event that says so."""
        with self.lock:
            if self.held and self.held.is_set():
                return BEFORE, self.held
            how = self.meets and self.meets(statement, is_uncommitted)
            if how:
                self.meets = None
            return how, self.held

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            # Each message is sent alone; the kernel would wait for the acknowledgement of the one before.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.carry, args=(client,), name="relayed", daemon=True).start()

    def carry(self, client):
        server = socket.socket(socket.AF_UNIX)
        with client, server:
            try:
                server.connect(self.target)
                with self.lock:
                    self.open |= {client, server}
                Session(self, client, server).run()
            except (Ended, OSError):
                pass
            finally:
                with self.lock:
                    self.open -= {client, server}

    def close(self):
        self.listener.close()
        with self.lock:
            for connection in self.open:
                connection.close()


class Session:
    """One connection. Both directions are carried by one thread, so that a statement and its answer are in order."""

    def __init__(self, relay, client, server):
        self.relay, self.client, self.server = relay, Side(client), Side(server)
        self.statements, self.portals = {}, {}
        # What the open transaction has executed; none is open.
        self.transaction, self.is_open = [], False
        # Set once the answer that is not to be told has come.
        self.withheld = None

    def run(self):
        try:
            if self.open():
                while True:
                    self.pump()
        finally:
            # Of a client that was killed while its answer came: whoever waits for that waits no longer.
            if self.withheld is not None:
                self.withheld.set()

    def open(self):
        """The messages before the session; false if it was no session."""
        while True:
            code, message = self.client.opening()
            self.server.connection.sendall(message)
            if code == CANCEL:
                return False
            if code not in ENCRYPT:
                return True
            self.client.connection.sendall(self.server.exactly(1))

    def pump(self):
        sides = [side for side in (self.client, self.server) if side.buffer]
        if not sides:
            ready, _, _ = select.select([self.client.connection, self.server.connection], [], [])
            sides = [side for side in (self.client, self.server) if side.connection in ready]
        for side in sides:
            kind, message = side.message()
            if side is self.client:
                self.ask(kind, message)
            else:
                self.answer(kind, message)

    def ask(self, kind, message):
        statement = self.of_transaction(self.executed(kind, message[5:]))
        how, held = self.relay.met(statement, self.is_open) if statement else (None, None)
        if how == BEFORE:
            self.hold(held)
        if how == AFTER:
            self.withheld = held
        self.server.connection.sendall(message)

    def answer(self, kind, message):
        if self.withheld is None:
            self.client.connection.sendall(message)
        elif kind == b"Z":
            # The database has done it.
            self.hold(self.withheld)

    def hold(self, held):
        """Nothing more passes here: the server is killed now."""
        held.set()
        while self.client.connection.recv(65536):
            pass
        raise Ended

    def of_transaction(self, statement):
        """The statement; behind a commit, what it commits."""
        word = (statement or "").strip().rstrip(";").lower()
        if word == COMMIT:
            statement = "\n".join([COMMIT, *self.transaction])
        if word == COMMIT or word.startswith(("begin", "start transaction", "rollback")):
            self.transaction, self.is_open = [], word.startswith(("begin", "start transaction"))
        elif word:
            self.transaction.append(statement)
        return statement

    def executed(self, kind, body):
        """The text of the statement that this message executes."""
        if kind == b"P":
            name, rest = text(body)
            self.statements[name] = text(rest)[0]
        elif kind == b"B":
            portal, rest = text(body)
            self.portals[portal] = self.statements.get(text(rest)[0], "")
        elif kind == b"E":
            return self.portals.get(text(body)[0], "")
        elif kind == b"Q":
            return text(body)[0]
        return None


class Database:
    """A connection of the show's own, for questions whose answer is one text."""

    def __init__(self, postgres):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(socket_of(postgres))
        self.side, self.lock = Side(connection), threading.Lock()
        body = b"user\0show\0database\0postgres\0\0"
        connection.sendall(struct.pack("!II", len(body) + 8, 196608) + body)
        self.answer()

    def ask(self, query):
        with self.lock:
            body = query.encode() + b"\0"
            self.side.connection.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)
            return self.answer()

    def answer(self):
        said = None
        while True:
            kind, message = self.side.message()
            if kind == b"D":
                # A row of one field: two bytes of count, four of length.
                said = message[11:].decode()
            elif kind == b"E":
                raise RuntimeError(message[5:].replace(b"\0", b" ").decode())
            elif kind == b"Z":
                return said

    def close(self):
        self.side.connection.close()
