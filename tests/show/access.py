"""Callers of the API whose every request says beforehand what is to be decided, and by which check.
The book of these is the show's own count: it is not told of the audit."""

import collections
import json
import re
import uuid

from parts import check, say

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
FOR = re.compile(r", for [a-z-]+:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Decision = collections.namedtuple("Decision", "request_id actor action resource outcome stage")


class Book:
    """The decisions that the requests so far took, what is recorded of each refusal, and names for the
    ids that they are about."""

    def __init__(self):
        self.made = []
        self.reasons = {}
        self.names = {}

    def name(self, made, name):
        """Names what was made."""
        self.names[made["id"]] = name
        return made["id"]

    def readable(self, text, form="<{}>"):
        """With names in the place of ids."""
        for known, name in self.names.items():
            text = text.replace(known, form.format(name))
        return text


class Caller:
    """Somebody with a key. Each request names what it asks for, as (action, resource): all of it is
    allowed but the last, where the request is to be refused."""

    def __init__(self, book, replicas, name, user_id, token):
        self.book, self.replicas = book, replicas
        self.name, self.user_id, self.token = name, user_id, token
        book.names.setdefault(user_id, name)

    @property
    def subject(self):
        return f"user:{self.user_id}"

    def with_key(self, name, token):
        """The same one, with another key."""
        return Caller(self.book, self.replicas, name, self.user_id, token)

    def send(self, method, path, body=None, on=0):
        """The plain answer of one replica."""
        headers = {"authorization": f"Bearer {self.token}"} if self.token else {}
        return self.replicas[on].request(method, path, json=body, headers=headers)

    def does(self, method, path, body=None, asks=(), on=0, status=None, stage="model"):
        """A request that is allowed; its JSON. `status` is another than success."""
        response = self.send(method, path, body, on)
        answered = self.book.readable(f"{method} {path} by {self.name}: {response.status_code}")
        right = response.is_success if status is None else response.status_code == status
        check(right, f"{answered} {response.text}")
        for asked in asks:
            self.enter(response, asked, "allowed", stage)
        return response.json() if response.content else None

    def may(self, method, path, body=None, asks=(), on=0):
        """As `does`, and told."""
        answer = self.does(method, path, body, asks, on)
        say(f"may      {method:<6} {self.book.readable(path)}")
        return answer

    def may_not(self, method, path, body=None, asks=(), on=0, stage="model", why=None, quiet=False):
        """A request that is refused with exactly the body of section 7, or by a key of another project.
        `why` is what the record says beside it of a key's refusal, or the other code's sentence."""
        *allowed, (action, resource) = asks
        code = "permission-denied"
        sentence = f"permission denied, actor {self.subject} lacks can_{action} on {resource}"
        if stage == "key-project-mismatch":
            code, sentence, reason = stage, why, f"{stage}: {why}"
        else:
            reason = sentence if stage == "model" else f"{stage}: {sentence}; {why}"
        response = self.send(method, path, body, on)
        for asked in allowed:
            self.enter(response, asked, "allowed", "model")
        self.enter(response, (action, resource), "denied", stage)
        details = {"action": action, "resource": resource, "reason": sentence}
        check_body(response, 403, code, sentence, details)
        self.book.reasons[response.headers["x-request-id"]] = reason
        if not quiet:
            say(f"may not  {method:<6} {self.book.readable(path)}")
            say(f"         403 {response.text}")

    def enter(self, response, asked, outcome, stage):
        action, resource = asked
        request_id = response.headers["x-request-id"]
        check(REQUEST_ID.fullmatch(request_id), f"a request id reads {request_id}")
        self.book.made.append(
            Decision(request_id, self.subject, action, resource, outcome, stage)
        )


def check_body(response, status, code, message, details):
    """The answer is this error, with nothing missing and nothing beside it."""
    request_id = response.headers["x-request-id"]
    check(REQUEST_ID.fullmatch(request_id), f"a request id reads {request_id}")
    uuid.UUID(request_id.removeprefix("req-"))
    wanted = {
        "code": code, "message": message, "details": details, "requestId": request_id,
    }
    check(
        response.status_code == status and response.json() == {"error": wanted},
        f"answered {response.status_code} {response.text}\nwanted   {status} "
        f"{json.dumps({'error': wanted})}",
    )


def recorded(row):
    """A row of the audit as a decision of the book."""
    return Decision(
        row["requestId"], row["actorSubject"], row["action"], row["resource"], row["outcome"],
        row["stage"],
    )


def check_equal(book, made, rows, where):
    """Every decision made is recorded once, and nothing else is. What was asked of the model is what
    the record says, and why it refused is what the caller was told. Why a key did is in the record."""
    for row in rows:
        asked = row["check"]
        if row["stage"] == "model":
            wanted = (row["actorSubject"], f"can_{row['action']}", row["resource"])
            check((asked["user"], asked["relation"], asked["object"]) == wanted, f"{where}: {row}")
        else:
            check(asked is None, f"{where}: the model was not asked, and yet: {row}")
        if row["outcome"] == "denied":
            # A record says beside that for which of the tenant's own objects it was.
            reason = FOR.sub("", row["reason"])
            check(reason == book.reasons[row["requestId"]], f"{where}: {row}")
        else:
            check(row["reason"], f"{where}: no reason: {row}")
    made, found = collections.Counter(made), collections.Counter(map(recorded, rows))
    missing, beyond = made - found, found - made
    check(
        not missing and not beyond,
        f"{where}: decisions made that are not recorded: {[*missing.elements()]}; "
        f"recorded that were not made: {[*beyond.elements()]}",
    )
