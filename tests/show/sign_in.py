"""Signing in with a browser: each way in, and each refusal, as a browser and as somebody who has none meet it. Two replicas
share the sessions; an operator narrows who may sign in. Only the public API is used, and the binary's own commands."""

import json
import re
import secrets
import sys
import time
import uuid

from browsers import ENDED, OWN_PAGE, Book, refusal, send
from identity_providers import lock, providers
from parts import Failed, OpenFga, Postgres, Server, check, end, eventually, run, say

# The whole show takes about half a minute on a quiet machine.
MOST_S = 180
TOKEN, ENROLMENT = "/v1/sign-in/token", "/v1/sign-in/enrolment"
ME = "/v1/identity/me"
HOME = "https://agents.example.com"
# A credential may be denied so often in a minute.
DENIALS = 6

UNKNOWN_TOKEN = refusal(
    "unauthenticated", "The token is not known here. It may have been revoked, or have ended."
)
UNKNOWN_CODE = refusal(
    "unauthenticated", "The enrolment code does not hold. Ask a tenant admin for another one."
)
NOT_HERE = refusal(
    "unauthenticated", "A session is taken at the server's own address alone. Sign in there."
)


def foreign(address="Use the pages of this server"):
    return refusal(
        "csrf-origin-mismatch",
        f"The request did not come from a page of this server. {address}; "
        "a program sends Authorization: Bearer <token>.",
    )


def begin(title):
    print(f"{title}:", flush=True)


class World:
    """The replicas, the tenant's admin, and the book."""

    def __init__(self, directory, opened):
        self.directory, self.opened = directory, opened
        postgres = Postgres(directory, [OpenFga.DATABASE])
        opened.callback(postgres.close)
        openfga = OpenFga(directory, postgres)
        opened.callback(openfga.close)
        openfga.start()
        self.tenant_id, self.admin_id = str(uuid.uuid4()), str(uuid.uuid4())
        self.token = f"svc_bt_{secrets.token_hex(24)}"
        self.database_url = postgres.url
        self.settings = {
            "SVC_TENANT_ID": self.tenant_id,
            "SVC_SEED_USER_ID": self.admin_id,
            "SVC_SEED_TOKEN": self.token,
            "SVC_AUTHZ_API_URL": openfga.url,
            "SVC_MAX_DENIALS_PER_MINUTE": str(DENIALS),
            # For the secrets of the clients at identity providers.
            "SVC_SECRETS_BACKEND": "postgres",
            "SVC_SECRETS_BACKEND_KMS": "local",
            "SVC_SECRETS_AAD_KEY_PATH": self.key_file("aad"),
            "SVC_SECRETS_LOCAL_KEY_PATH": self.key_file("local"),
        }
        self.one, self.other = self.server("replica-1"), self.server("replica-2")
        self.book = Book((self.one, self.token))
        self.tenant = f"tenant:{self.tenant_id}"
        for text, name in [
            (self.tenant_id, "tenant"), (self.admin_id, "admin"), (self.token, "the admin's token"),
        ]:
            self.book.name(text, name)
        self.people = 0

    def key_file(self, name):
        path = self.directory.path / f"{name}.key"
        path.write_bytes(secrets.token_bytes(32))
        path.chmod(0o600)
        return str(path)

    def server(self, name, **settings):
        """Another replica, with these settings on top."""
        server = Server(self.directory, self.database_url, {**self.settings, **settings}, name)
        self.opened.callback(server.close)
        server.start()
        server.cookie = f"__Host-agent-runtime-{server.port}"
        said = "".join(f", {key}={value}" for key, value in settings.items())
        say(f"{name}: {server.url}{said}")
        return server

    def does(self, method, path, body=None, token=None, status=None, session=None):
        """What the admin, or somebody else, does over the API on the way to a case."""
        headers = OWN_PAGE if session else {}
        given = None if session else token or self.token
        answer = send(self.one, method, path, body, headers, session=session, token=given)
        good = answer.status < 300 if status is None else answer.status == status
        check(good, f"{method} {path}: {answer.status} {answer.text}")
        return answer.body

    def invite(self, name, role="member", email=None):
        """A person, with a code that nobody has taken."""
        self.people += 1
        email = email or f"person{self.people}@example.com"
        body = {"email": email, "displayName": name, "tenantRole": role}
        person = self.does("POST", "/v1/identity/users", body)
        self.book.name(person["id"], name)
        return {**person, "name": name, "email": email, "code": person["enrolment"]["code"]}

    def key(self, person):
        """A person's first key."""
        body = {"code": person["code"]}
        minted = send(self.one, "POST", "/v1/identity/enrolments", body)
        check(minted.status == 201, f"{minted.status} {minted.text}")
        self.book.name(minted.body["id"], f"{person['name']}'s first key")
        return minted.body["token"]

    def record(self, user_id, reason, stage="sign-in", outcome="allowed", credential=None):
        """What is recorded of a sign-in."""
        return {
            "actorSubject": f"user:{user_id}", "action": "sign-in", "resource": self.tenant,
            "outcome": outcome, "reason": reason, "stage": stage, "credential": credential,
        }

    def signs_in(self, told, server, path, body, user_id, by, method, headers=None):
        """A case that lets somebody in: the cookie's exact text, the record, and what the session is. The id of a code, `{}` in
        `by`, is told to nobody: the record's own is taken, where it has the form of one."""
        headers = OWN_PAGE if headers is None else headers
        answer = send(server, "POST", path, body, headers)
        cookie = server.cookie if "host" not in headers else "__Host-agent-runtime"
        session = answer.session if answer.cookie else ""
        again = {name: value for name, value in headers.items() if name != "origin"}
        again["cookie"] = f"{cookie}={session}"
        me = send(server, "GET", ME, headers=again)
        found = me.body.get("credential", {}) if me.status == 200 else {}
        self.book.name(found.get("id", "-" * 36), "session")
        listed = send(server, "GET", f"{ME}/sessions", headers=again)
        own = [one for one in listed.body.get("data", []) if one["current"]]
        for row in self.book.records(answer):
            code = re.search(r"enrolment ([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})", row["reason"])
            by = by.format(code.group(1)) if code else by
        wanted = f"{cookie}={session}; Path=/; Secure; HttpOnly; SameSite=Strict"
        record = self.record(
            user_id, f"user:{user_id} signed in with {by}",
            credential={"kind": "session", "id": found.get("id")},
        )
        holds = [
            ("no body, and nothing keeps it", not answer.text and answer.headers.get("cache-control") == "no-store"),
            ("the cookie, byte for byte", answer.cookie == wanted),
            ("the session is the person's", me.status == 200 and me.body["id"] == user_id),
            (f"its way is {method}", [one["method"] for one in own] == [method]),
        ]
        self.book.case(told, answer, 204, record=record, holds=holds)
        return session

    def token_refused(self, told, server, token, user_id, code, sentence, credential_id):
        """A refusal of token sign-in that has somebody, and so is recorded (section 5.6.3)."""
        answer = send(server, "POST", TOKEN, {"token": token}, OWN_PAGE)
        details = {"action": "sign-in", "resource": self.tenant, "reason": sentence}
        record = self.record(
            user_id, f"{code}: {sentence}", stage=code, outcome="denied",
            credential={"kind": "token", "id": credential_id},
        )
        self.book.case(told, answer, 403, refusal(code, sentence, **details), record)


def credential_of(world, token):
    return world.does("GET", ME, token=token)["credential"]["id"]


def tokens(world):
    begin("With a bearer token of one's own")
    book, own = world.book, credential_of(world, world.token)
    book.name(own, "the admin's token's id")
    world.signs_in(
        "the admin", world.one, TOKEN, {"token": world.token}, world.admin_id, f"token {own}", "token"
    )
    ann = world.invite("Ann")
    token = world.key(ann)
    token_id = credential_of(world, token)
    world.signs_in("a member", world.other, TOKEN, {"token": token}, ann["id"], f"token {token_id}", "token")
    world.signs_in(
        "an older browser, which says its origin alone", world.one, TOKEN, {"token": token}, ann["id"],
        f"token {token_id}", "token", {"origin": world.one.url},
    )
    for told, given in [
        ("a token that nobody has", "svc_bt_unknown"),
        ("a session is no token", "svc_ss_unknown"),
        ("an empty one", ""),
    ]:
        book.case(told, send(world.one, "POST", TOKEN, {"token": given}, OWN_PAGE), 401, UNKNOWN_TOKEN)
    given = {"token": "svc_pt_e30.AAAA"}
    public = refusal("unauthenticated", "A public run token signs nobody in. Use a bearer token.")
    book.case("a public run token", send(world.one, "POST", TOKEN, given, OWN_PAGE), 401, public)
    revoked = world.does("POST", "/v1/tokens", {"name": "revoked"}, token=token)
    world.does("DELETE", f"/v1/tokens/{revoked['id']}", token=token)
    given = {"token": revoked["token"]}
    book.case("one that was revoked", send(world.one, "POST", TOKEN, given, OWN_PAGE), 401, UNKNOWN_TOKEN)
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    short = world.does("POST", "/v1/tokens", {"name": "short", "expiresAt": ends}, token=token)
    given = {"token": short["token"]}
    eventually("the end of a token", lambda: send(world.one, "GET", ME, token=short["token"]).status == 401)
    book.case("one that has ended", send(world.one, "POST", TOKEN, given, OWN_PAGE), 401, UNKNOWN_TOKEN)
    account = world.does("POST", "/v1/service-accounts", {"name": "pipeline"})
    book.name(account["id"], "pipeline")
    key = world.does("POST", f"/v1/service-accounts/{account['id']}/tokens", {"name": "its key"})
    book.name(key["id"], "the pipeline's key")
    world.token_refused(
        "a service account's", world.one, key["token"], account["id"], "token-sign-in-not-allowed",
        "The token is a service account's, and only people sign in.", key["id"],
    )
    project = world.does("POST", "/v1/projects", {"name": "alpha"})
    limited = world.does("POST", "/v1/tokens", {"name": "limited", "projectId": project["id"]})
    book.name(limited["id"], "the limited key")
    world.token_refused(
        "one that is limited to a project", world.one, limited["token"], world.admin_id,
        "token-sign-in-not-allowed", "The token is limited to a project. Sign in with one that is not.",
        limited["id"],
    )


def denials(world):
    begin("A key that is denied in a loop signs in again")
    book = world.book
    weak = world.invite("Wim")
    token = world.key(weak)
    project = world.does("POST", "/v1/projects", {"name": "beta"})
    path = f"/v1/projects/{project['id']}"
    for _ in range(DENIALS):
        session = send(world.one, "POST", TOKEN, {"token": token}, OWN_PAGE).session
        denied = send(world.one, "GET", path, headers=OWN_PAGE, session=session)
        check(denied.status == 403, f"{denied.status} {denied.text}")
    say(f"{DENIALS} sessions of one key, each denied once")
    limited = refusal(
        "too-many-requests",
        "This credential was refused too often. Ask for what it may do, after a while.",
    )
    answer = send(world.one, "POST", TOKEN, {"token": token}, OWN_PAGE)
    record = {
        "actorSubject": f"user:{weak['id']}", "action": "write", "resource": world.tenant,
        "outcome": "denied", "stage": "denial-limit",
        "reason": f"denial-limit: {limited['error']['message']}",
        "credential": {"kind": "token", "id": credential_id_of(world, answer)},
    }
    book.case("the next sign-in", answer, 429, limited, record)


def credential_id_of(world, answer):
    """The credential that a request's record names, where nothing else tells it."""
    rows = world.book.records(answer)
    return rows[0]["credential"]["id"] if rows else None


def codes(world):
    begin("With an enrolment code")
    book, bob = world.book, world.invite("Bob")
    given = {"code": bob["code"]}
    world.signs_in("a member", world.one, ENROLMENT, given, bob["id"], "enrolment {}", "enrolment")
    book.case(
        "the same code again", send(world.other, "POST", ENROLMENT, given, OWN_PAGE), 401, UNKNOWN_CODE
    )
    given = {"code": "svc_en_unknown"}
    book.case("one that nobody has", send(world.one, "POST", ENROLMENT, given, OWN_PAGE), 401, UNKNOWN_CODE)
    cleo = world.invite("Cleo")
    world.does("POST", f"/v1/identity/users/{cleo['id']}/enrolments")
    given = {"code": cleo["code"]}
    book.case(
        "one that a newer one replaced", send(world.one, "POST", ENROLMENT, given, OWN_PAGE), 401, UNKNOWN_CODE
    )
    dora = world.invite("Dora")
    world.does("POST", f"/v1/identity/users/{dora['id']}/deactivate")
    given = {"code": dora["code"]}
    book.case(
        "one of a person who was deactivated", send(world.one, "POST", ENROLMENT, given, OWN_PAGE), 401, UNKNOWN_CODE
    )
    begin("With a code of the operator's, who is locked out")
    made = operator_code(world, "--user-id", world.admin_id)
    by = "enrolment {}, which the operator made on the host"
    world.signs_in(
        "the first admin, by id", world.one, ENROLMENT, {"code": made}, world.admin_id,
        by, "enrolment",
    )
    made = operator_code(world, "--email", bob["email"])
    world.signs_in(
        "a person, by email", world.other, ENROLMENT, {"code": made}, bob["id"], by, "enrolment"
    )
    unknown = world.one.command("sign-in-code", "--email", "nobody@example.com")
    check(
        unknown.returncode == 1 and "There is no such person" in unknown.stderr,
        f"sign-in-code for nobody: {unknown.returncode} {unknown.stderr}",
    )
    say(f"sign-in-code for nobody: {world.book.readable(unknown.stderr.strip())}")


def operator_code(world, *whom):
    made = world.one.command("sign-in-code", *whom, "--json")
    check(made.returncode == 0, f"sign-in-code: {made.returncode} {made.stderr}")
    return json.loads(made.stdout)["code"]


def pages(world):
    begin("From pages of others, and at other addresses")
    book, body = world.book, {"token": world.token}
    session = send(world.one, "POST", TOKEN, body, OWN_PAGE).session
    home = world.one.url
    for told, headers in [
        ("another site's page", {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}),
        ("a page of another port of this host", {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"}),
        ("an older browser, a page of elsewhere", {"origin": "https://evil.example"}),
        ("a file that was opened", {"origin": "null"}),
        ("no page at all", {}),
        ("another name for this host", {**OWN_PAGE, "host": "evil.example"}),
    ]:
        book.case(f"{told} signs in", send(world.one, "POST", TOKEN, body, headers), 403, foreign())
        sent = send(world.one, "POST", "/v1/projects", {"name": "forged"}, headers, session=session)
        # At another name no session counts, whatever the page.
        wrong = (401, NOT_HERE) if "host" in headers else (403, foreign())
        book.case(f"{told} writes with a session", sent, *wrong)
    for told, headers in [
        ("an own page reads", OWN_PAGE),
        ("a person opens the address", {"sec-fetch-site": "none"}),
        ("an older browser reads, its origin", {"origin": home}),
    ]:
        got = send(world.one, "GET", ME, headers=headers, session=session)
        book.case(told, got, 200, holds=[("the session", got.body["credential"]["kind"] == "session")])
    got = send(world.one, "GET", ME, headers=OWN_PAGE, session=session, token=world.token)
    book.case("a header beside it wins", got, 200, holds=[("the token", got.body["credential"]["kind"] == "token")])
    got = send(world.one, "GET", ME, headers=OWN_PAGE, session=session, token="svc_bt_unknown")
    book.case("also where it does not hold", got, 401, UNKNOWN_TOKEN)
    stream = f"/v1/runs/{uuid.uuid4()}/progress/stream"
    got = send(world.one, "GET", stream, session=session)
    book.case("a stream that no page asks for", got, 403, foreign())
    begin("At the address of SVC_PUBLIC_URL")
    public = world.server("public", SVC_PUBLIC_URL=HOME)
    at = {"host": "agents.example.com"}
    own = credential_of(world, world.token)
    world.signs_in(
        "the admin", public, TOKEN, body, world.admin_id, f"token {own}", "token",
        {**at, **OWN_PAGE},
    )
    told = send(public, "GET", "/v1/sign-in", headers=at)
    ways = {
        "publicUrl": HOME, "tenantId": world.tenant_id, "providers": [], "tokenSignIn": "on",
        "developmentLogin": False, "problem": None,
    }
    book.case("what one may sign in with", told, 200, ways)
    told = send(public, "GET", "/v1/sign-in", headers={"host": "evil.example"})
    book.case("at another address", told, 200, {**ways, "problem": "other-address"})
    headers = {"host": "agents.example.com", "origin": "http://agents.example.com"}
    book.case(
        "its page over plain http signs in", send(public, "POST", TOKEN, body, headers), 403,
        foreign(f"Open {HOME} and use its pages"),
    )
    end(public.process)


def console(world):
    begin("In development the console logs in by itself")
    book = world.book
    dev = world.server("console", SVC_DEV_CONSOLE_LOGIN="true")
    handed = {"token": world.token}
    mapped = {"host": "localhost:49153", "origin": "http://localhost:49153", **OWN_PAGE}
    for told, headers in [
        ("this very host", {}),
        ("its page, by a mapped port", mapped),
        ("[::1]", {"host": f"[::1]:{dev.port}"}),
    ]:
        answer = send(dev, "GET", "/__dev/bearer", headers=headers)
        holds = [
            ("nothing keeps it", answer.headers.get("cache-control") == "no-store"),
            ("no other page reads it", answer.headers.get("cross-origin-resource-policy") == "same-origin"),
            ("no CORS header", "access-control-allow-origin" not in answer.headers),
        ]
        book.case(f"{told} takes the token", answer, 200, handed, holds=holds)
    for told, headers in [
        ("a name that is pointed at this host", {"host": f"evil.example:{dev.port}"}),
        ("another address of this host", {"host": f"127.0.0.2:{dev.port}"}),
        ("a page of another port", {"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:1"}),
        ("a page of another site", {"sec-fetch-site": "cross-site"}),
        ("through a proxy that says so", {"x-forwarded-for": "192.0.2.1"}),
    ]:
        refused = send(dev, "GET", "/__dev/bearer", headers=headers)
        book.case(told, refused, 404, nothing_at(world, dev))
    refused = send(world.one, "GET", "/__dev/bearer")
    book.case("where it is not mounted", refused, 404, nothing_at(world, world.one))
    own = credential_of(world, world.token)
    world.signs_in(
        "the console signs in with it", dev, TOKEN, handed, world.admin_id, f"development token {own}",
        "development",
    )
    end(dev.process)


def nothing_at(world, server):
    """What any path that there is not is answered."""
    body = send(server, "GET", "/__dev/other").body
    del body["error"]["requestId"]
    return body


def endings(world):
    begin("A session ends on one replica, and is refused on the other")
    book = world.book
    eve = world.invite("Eve")
    token = world.key(eve)

    def signed_in(given=token):
        session = send(world.one, "POST", TOKEN, {"token": given}, OWN_PAGE).session
        for server in (world.one, world.other):
            got = send(server, "GET", ME, headers=OWN_PAGE, session=session)
            check(got.status == 200, f"{got.status} {got.text}")
        return session

    def refused_on_both(told, session, **options):
        got = send(world.one, "GET", ME, headers=OWN_PAGE, session=session)
        book.case(f"{told}, here", got, 401, ENDED, **options)
        book.ends_elsewhere(f"{told}, there", world.other, session)

    session = signed_in()
    out = send(world.one, "POST", "/v1/sign-out", headers=OWN_PAGE, session=session)
    gone = f"{world.one.cookie}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict"
    holds = [
        ("the cookie goes", out.cookie == gone),
        ("what was kept goes", out.headers.get("clear-site-data") == '"cache"'),
    ]
    book.case("signing out", out, 200, {"providerSignOutUrl": None}, holds=holds)
    refused_on_both("signed out", session)
    again = send(world.one, "POST", "/v1/sign-out", headers=OWN_PAGE, session=session)
    book.case("signing out again", again, 401, ENDED, holds=[("no cookie is touched", not again.cookie)])
    key = world.does("POST", "/v1/tokens", {"name": "laptop"}, token=token)
    session = signed_in(key["token"])
    world.does("DELETE", f"/v1/tokens/{key['id']}", token=token)
    refused_on_both("its token was revoked", session)
    first, second = signed_in(), signed_in()
    listed = send(world.one, "GET", f"{ME}/sessions", headers=OWN_PAGE, session=second).body["data"]
    other = [one for one in listed if not one["current"]][-1]
    path = f"{ME}/sessions/{other['id']}"
    ended = send(world.one, "DELETE", path, headers=OWN_PAGE, session=second)
    book.case("ending another of one's own", ended, 204)
    refused_on_both("ended by another session", first)
    session = signed_in()
    world.does("POST", f"/v1/identity/users/{eve['id']}/sign-out")
    refused_on_both("signed out by an admin", session)
    begin("A person is deactivated, with all sessions")
    sessions = [signed_in(), signed_in()]
    code = operator_code(world, "--email", eve["email"])
    sessions.append(send(world.one, "POST", ENROLMENT, {"code": code}, OWN_PAGE).session)
    world.does("POST", f"/v1/identity/users/{eve['id']}/deactivate")
    for number, session in enumerate(sessions, 1):
        refused_on_both(f"session {number} of {len(sessions)}", session)
    given = {"token": token}
    book.case("and their token", send(world.one, "POST", TOKEN, given, OWN_PAGE), 401, UNKNOWN_TOKEN)


def settings(world):
    begin("The operator narrows who signs in with a token: open sessions end, too")
    book = world.book
    fay, gus = world.invite("Fay"), world.invite("Gus", "admin")
    keys = {person["name"]: world.key(person) for person in (fay, gus)}
    sessions = {
        name: send(world.one, "POST", TOKEN, {"token": key}, OWN_PAGE).session for name, key in keys.items()
    }
    hal = world.invite("Hal")
    by_code = send(world.one, "POST", ENROLMENT, {"code": hal["code"]}, OWN_PAGE).session
    admins = world.server("admins", SVC_TOKEN_SIGN_IN="admins")
    for name, status, body in [("Fay", 401, ENDED), ("Gus", 200, None)]:
        got = send(admins, "GET", ME, headers=OWN_PAGE, session=sessions[name])
        book.case(f"the session of {name}", got, status, body)
    world.token_refused(
        "a member's token", admins, keys["Fay"], fay["id"], "token-sign-in-not-allowed",
        "Only tenant admins sign in with a token on this server. Sign in another way.",
        credential_of(world, keys["Fay"]),
    )
    token_id = credential_of(world, keys["Gus"])
    world.signs_in(
        "an admin's token", admins, TOKEN, {"token": keys["Gus"]}, gus["id"], f"token {token_id}", "token"
    )
    end(admins.process)
    off = world.server("off", SVC_TOKEN_SIGN_IN="off")
    for told, session, status, body in [
        ("the session of Gus", sessions["Gus"], 401, ENDED),
        ("one that came from a code", by_code, 200, None),
    ]:
        got = send(off, "GET", ME, headers=OWN_PAGE, session=session)
        book.case(told, got, status, body)
    for name, person in [("Fay", fay), ("Gus", gus)]:
        world.token_refused(
            f"the token of {name}", off, keys[name], person["id"], "token-sign-in-off",
            "Nobody signs in with a token on this server. Sign in another way.",
            credential_of(world, keys[name]),
        )
    ida = world.invite("Ida")
    world.signs_in(
        "a code, whatever the setting", off, ENROLMENT, {"code": ida["code"]}, ida["id"],
        "enrolment {}", "enrolment",
    )
    end(off.process)
    got = send(world.one, "GET", ME, headers=OWN_PAGE, session=sessions["Gus"])
    book.case("what has ended stays so where tokens are taken", got, 401, ENDED)


# In this order. A further way in, or what locks one, is a scene of its own before `settings`, which ends sessions.
SCENES = [tokens, codes, pages, console, denials, providers, lock, endings, settings]


def tell(directory, opened):
    world = World(directory, opened)
    for scene in SCENES:
        scene(world)
    verified = world.one.command("audit", "verify")
    check(verified.returncode == 0, f"audit verify: {verified.stdout} {verified.stderr}")
    say("audit verify: the record is complete")
    if world.book.faults:
        raise Failed(world.book.last_line())
    return world.book.last_line()


if __name__ == "__main__":
    sys.exit(run(tell, MOST_S))
