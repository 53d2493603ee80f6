"""Browsers as the server meets them, and the book of what they tried: each case says beforehand what is answered and what is
recorded of it. Statuses, bodies and records are held against the words of this side, not against the server's sources."""

import json
import re
import time

import httpx

from parts import PATIENCE_S, check, say

REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SESSION = re.compile(r"svc_ss_[0-9A-Za-z]{49}")
# What a browser says of a request from a page of the server itself.
OWN_PAGE = {"sec-fetch-site": "same-origin"}
# An ended session is refused by another replica after this time, at the latest.
ELSEWHERE_S = 1.0
# How long the look at the other replica goes on before it is a fault.
GIVEN_UP_S = 5.0


class Answer:
    """What came back."""

    def __init__(self, response):
        self.status, self.headers, self.text = response.status_code, response.headers, response.text
        self.request_id = response.headers.get("x-request-id")

    @property
    def body(self):
        return json.loads(self.text) if self.text else None

    @property
    def cookie(self):
        return self.headers.get("set-cookie")

    @property
    def session(self):
        """The value that a browser keeps of it."""
        check(self.cookie, f"no cookie: {self.status} {self.text}")
        return self.cookie.split(";")[0].split("=", 1)[1]


def send(server, method, path, body=None, headers=(), session=None, token=None):
    """One request, on a connection of its own."""
    sent = dict(headers)
    if session is not None:
        sent["cookie"] = f"{server.cookie}={session}"
    if token is not None:
        sent["authorization"] = f"Bearer {token}"
    url = f"{server.url}{path}"
    return Answer(httpx.request(method, url, json=body, headers=sent, timeout=PATIENCE_S))


def refusal(code, message, **details):
    """The body of a refusal, but for the request's id."""
    return {"error": {"code": code, "message": message, "details": details}}


def in_order(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


class Book:
    """The cases, and names for the ids and secrets in what they print."""

    def __init__(self, admin):
        # Reads the record: a server and a token.
        self.admin = admin
        self.names = {}
        self.tried, self.let_in, self.refused, self.faults = 0, 0, 0, []

    def name(self, text, name):
        self.names[text] = f"<{name}>"
        return text

    def readable(self, value):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for known in sorted(self.names, key=len, reverse=True):
            text = text.replace(known, self.names[known])
        return SESSION.sub("<session>", REQUEST_ID.sub("<request>", text))

    def records(self, answer):
        """What is recorded of a request."""
        server, token = self.admin
        page = send(server, "GET", "/v1/audit/authz?order=desc&limit=50", token=token)
        check(page.status == 200, f"the record cannot be read: {page.status} {page.text}")
        rows = [row for row in page.body["data"] if row["requestId"] == answer.request_id]
        kept = ("actorSubject", "action", "resource", "outcome", "reason", "stage", "credential")
        return [{name: row[name] for name in kept} for row in rows]

    def case(self, told, answer, status, body=None, record=None, holds=(), refuses=None, only=None):
        """A case: its answer has this status and this body, and this is recorded of it: nothing, one record, or several in any
        order; with `only`, of what is recorded with this outcome. `holds` are further sentences, each with whether it is so.
        `refuses` says whether it lets nobody in, where its status does not tell."""
        self.tried += 1
        wanted = [] if record is None else record if isinstance(record, list) else [record]
        faults = []
        got = answer.body
        if isinstance(got, dict) and isinstance(got.get("error"), dict):
            request_id = got["error"].pop("requestId", None)
            if request_id != answer.request_id or not REQUEST_ID.fullmatch(request_id or ""):
                faults.append(f"the body names the request {request_id}")
        if answer.status != status:
            faults.append(f"answered {answer.status}, not {status}: {answer.text}")
        elif body is not None and got != body:
            faults.append(f"the body is {json.dumps(got)}, not {json.dumps(body)}")
        rows = [row for row in self.records(answer) if only in (None, row["outcome"])]
        if in_order(rows) != in_order(wanted):
            faults.append(f"recorded is {json.dumps(rows)}, not {json.dumps(wanted)}")
        faults += [f"it is not so: {sentence}" for sentence, is_so in holds if not is_so]
        good = status < 400 if refuses is None else not refuses
        self.let_in += int(good and not faults)
        self.refused += int(not good and not faults)
        say(f"{told}: {answer.status}")
        if got is not None and not good:
            say(f"    {self.readable(got)}")
        if "location" in answer.headers:
            say(f"    goes on to {self.readable(answer.headers['location'])}")
        if answer.cookie:
            say(f"    cookie {self.readable(answer.cookie)}")
        for row in rows or ["nothing"]:
            say(f"    recorded: {self.readable(row)}")
        for fault in faults:
            say(f"    WRONG: {self.readable(fault)}")
            self.faults.append(f"{told}: {fault}")
        return answer

    def ends_elsewhere(self, told, server, session):
        """Looks until another replica refuses a session that ended just now: each answer until then is 200, and none is to a
        request that was sent too late. How long an answer takes does not matter."""
        began, let_in_s = time.monotonic(), 0.0
        while True:
            sent_s = time.monotonic() - began
            answer = send(server, "GET", "/v1/identity/me", headers=OWN_PAGE, session=session)
            if answer.status != 200 or sent_s > GIVEN_UP_S:
                break
            let_in_s = sent_s
            time.sleep(0.01)
        told = f"{told}, {sent_s * 1000:.0f} ms later"
        in_time = f"refused within {ELSEWHERE_S:.0f} s", let_in_s <= ELSEWHERE_S
        self.case(told, answer, 401, ENDED, holds=[in_time])

    def last_line(self):
        return (
            f"cases tried: {self.tried}, let in as they should: {self.let_in}, "
            f"refused as they should: {self.refused}, wrong: {len(self.faults)}"
        )


ENDED = refusal("unauthenticated", "The session has ended. Sign in again.")
