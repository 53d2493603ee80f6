"""Two identity providers that are not ours, a browser that signs in at them, and the scenes of `sign_in.py` about both: whom a
provider signs in, whom not, and the operator's lock."""

import html
import json
import re
import subprocess
import urllib.parse

import httpx

from browsers import ENDED, OWN_PAGE, Answer, refusal, send
from parts import HERE, PATIENCE_S, check, end, eventually, free_port, say, set_up

PROVIDERS, ME = "/v1/identity-providers", "/v1/identity/me"
# With what a form and a header encode.
SECRET = "p%sw&rd+ x"
# Redirects that a browser follows.
REDIRECTS = 20
CLEARED = "Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Lax"
OPERATORS = "The operator keeps the identity providers and how people sign in. Ask the operator for the change."


class OidcProvider:
    """oidc-provider, the one of npm. Anybody signs in with any password: the login is the subject, LOGIN@plant.example the
    email. It serves once it knows its client's callback address."""

    client = {"clientId": "agent-runtime", "secret": SECRET}

    def __init__(self):
        part = set_up() / "oidc-provider"
        own = [part / f"node_modules/node-linux-{kind}/bin/node" for kind in ("x64", "arm64")]
        node = next((path for path in own if path.exists()), "node")
        script = HERE.parent / "identity-provider" / "serve.mjs"
        check(part.exists(), f"{part} is missing: run make setup")
        self.process = subprocess.Popen(
            [node, script, part, SECRET], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )
        self.issuer = self.process.stdout.readline().strip()
        check(self.issuer.startswith("http://"), "oidc-provider did not start")

    def serve(self, callback):
        self.process.stdin.write(f"{callback}\n")
        self.process.stdin.flush()
        check(self.process.stdout.readline().strip() == "ready", "oidc-provider does not serve")

    def close(self):
        end(self.process)


class Zitadel:
    """The example server of zitadel/oidc, a Go program. The slash at the issuer's end is the issuer's."""

    client = {"clientId": "web", "secret": "secret"}

    def __init__(self, directory, users):
        self.program = set_up() / "zitadel-oidc" / "server"
        check(self.program.exists(), f"{self.program} is missing: run make setup")
        self.port, self.process = free_port(), None
        self.issuer = f"http://localhost:{self.port}/"
        self.users = directory.path / "zitadel-users.json"
        known = {
            f"id-{name}": {
                "ID": f"id-{name}", "Username": name, "Password": "secret", "FirstName": name, "LastName": "L",
                "Email": email, "EmailVerified": verified, "PreferredLanguage": "en",
            }
            for name, email, verified in users
        }
        self.users.write_text(json.dumps(known))

    def serve(self, callback):
        environment = {"PORT": str(self.port), "REDIRECT_URI": callback, "USERS_FILE": str(self.users)}
        self.process = subprocess.Popen(
            [self.program], env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )

        def answers():
            try:
                return httpx.get(f"{self.issuer}.well-known/openid-configuration", timeout=2).status_code == 200
            except httpx.TransportError:
                return False

        eventually("the provider", answers, self.process)

    def close(self):
        if self.process is not None:
            end(self.process)


class Web:
    """A browser: it keeps the cookies of each host, follows redirects, and fills a page's first form in. A strict cookie does
    not go with what another host began."""

    def __init__(self):
        self.kept = {}

    def send(self, method, url, site, form=None, body=None):
        own = self.kept.get(urllib.parse.urlsplit(url).netloc, {})
        sent = [f"{name}={value}" for name, (value, strict) in own.items() if not (strict and site == "cross-site")]
        headers = {"sec-fetch-site": site, **({"cookie": "; ".join(sent)} if sent else {})}
        response = httpx.request(method, url, data=form, json=body, headers=headers, timeout=PATIENCE_S)
        for cookie in response.headers.get_list("set-cookie"):
            self.keep(urllib.parse.urlsplit(url).netloc, cookie)
        return response

    def keep(self, host, text):
        pair, *attributes = [part.strip() for part in text.split(";")]
        name, value = pair.split("=", 1)
        said = {attribute.lower() for attribute in attributes}
        is_over = "max-age=0" in said or any("expires=thu, 01 jan 1970" in one for one in said)
        cookies = self.kept.setdefault(host, {})
        cookies.pop(name, None)
        if not is_over:
            cookies[name] = (value, "samesite=strict" in said)

    def begin(self, server, provider_id, return_to="/console/runs?mine=1"):
        """A page of the server begins: where the browser is to go."""
        path = f"{server.url}/v1/sign-in/providers/{provider_id}/start"
        answer = self.send("POST", path, "same-origin", body={"returnTo": return_to})
        check(answer.status_code == 200, f"{answer.status_code} {answer.text}")
        return answer.json()["url"]

    def follow(self, method, url, form=None):
        """The page at which the redirects end, or the callback's address, which is not opened."""
        for _ in range(REDIRECTS):
            if "/sign-in/callback/" in url:
                return url, None
            response = self.send(method, url, "cross-site", form=form)
            if not 300 <= response.status_code < 400:
                return url, response.text
            url, method, form = urllib.parse.urljoin(url, response.headers["location"]), "GET", None
        check(False, f"more than {REDIRECTS} redirects, the last to {url}")

    def submit(self, url, page, fields):
        found = re.search(r"<form([^>]*)>(.*?)</form>", page, re.DOTALL)
        check(found, f"{url} shows no form")

        def attribute(tag, name):
            value = re.search(rf'\s{name}="([^"]*)"', tag)
            return html.unescape(value.group(1)) if value else None

        inputs = [tag for tag in re.findall(r"<input[^>]*>", found.group(2)) if attribute(tag, "type") == "hidden"]
        filled = {attribute(tag, "name"): attribute(tag, "value") for tag in inputs}
        return self.follow("POST", urllib.parse.urljoin(url, attribute(found.group(1), "action")), {**filled, **fields})

    def come_back(self, server, provider_id, fields):
        """Signs in at the provider: the address of the callback to which that sends the browser."""
        url, page = self.follow("GET", self.begin(server, provider_id))
        if page is not None:
            url, page = self.submit(url, page, fields)
        check(page is None, f"the provider sends nobody back from {url}: {(page or '')[:200]}")
        return url


def register(world, name, provider, domain):
    """A provider of the tenant's, that speaks for this domain."""
    world.does("PUT", f"/v1/secrets/live/{name}", {"value": provider.client["secret"]})
    body = {
        "name": name, "issuer": provider.issuer, "clientId": provider.client["clientId"],
        "clientSecretRef": {"envName": "live", "name": name}, "emailDomains": [domain],
    }
    made = world.does("POST", PROVIDERS, body)
    world.book.name(made["id"], name)
    provider.serve(f"{world.one.url}/sign-in/callback/{made['id']}")
    return made["id"]


def flow_cookie(server, url):
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["state"][0]
    return f"{server.cookie}-flow-{state[:6]}"


def signs_in(world, told, server, web, url, person, provider, bound_by=None):
    """A browser comes back, and gets a session: both cookies byte for byte, and what is recorded."""
    response = web.send("GET", url, "cross-site")
    answer, book, (provider_id, name) = Answer(response), world.book, provider
    cookies = response.headers.get_list("set-cookie")
    session = cookies[0].split(";")[0].split("=", 1)[1] if len(cookies) == 2 else ""
    me = send(server, "GET", ME, headers=OWN_PAGE, session=session)
    found = me.body["credential"]["id"] if me.status == 200 else "-" * 36
    book.name(found, "session")
    listed = send(server, "GET", f"{ME}/sessions", headers=OWN_PAGE, session=session)
    own = [one["method"] for one in listed.body.get("data", []) if one["current"]]
    credential = {"kind": "session", "id": found}
    by = f"identity-provider:{provider_id} ({name})"
    records = [
        world.record(person["id"], f"user:{person['id']} signed in with {by}", credential=credential)
    ]
    if bound_by:
        why = f"a subject of {by} was bound to user:{person['id']}, by the email {bound_by}"
        bound = world.record(person["id"], why, stage="identity-bound", credential=credential)
        records.append({**bound, "resource": f"user:{person['id']}"})
    wanted = [
        f"{server.cookie}={session}; Path=/; Secure; HttpOnly; SameSite=Strict",
        f"{flow_cookie(server, url)}=; {CLEARED}",
    ]
    holds = [
        ("it goes on where it began", response.headers["location"] == "/console/runs?mine=1"),
        ("both cookies, byte for byte", cookies == wanted),
        ("the session is the person's", me.status == 200 and me.body["id"] == person["id"]),
        ("its way is provider", own == ["provider"]),
    ]
    book.case(told, answer, 303, record=records, holds=holds)
    return session


def comes_to_nothing(world, told, server, web, url, problem, clears=True):
    """A browser comes back, and is sent to the sign-in page with a problem: no session, and nothing recorded."""
    response = web.send("GET", url, "cross-site")
    answer = Answer(response)
    to = f"/console/sign-in?problem={problem}&request={answer.request_id}"
    wanted = [f"{flow_cookie(server, url)}=; {CLEARED}"] if clears else []
    holds = [
        (f"it says {problem} and the request", response.headers.get("location") == to),
        ("no session", response.headers.get_list("set-cookie") == wanted),
    ]
    world.book.case(told, answer, 303, holds=holds, refuses=True)


def providers(world):
    print("Through an identity provider:", flush=True)
    book, one = world.book, world.one
    npm = OidcProvider()
    world.opened.callback(npm.close)
    users = [
        ("lea", "lea@lab.example", True), ("eve", "ada@plant.example", True), ("mo", "mo@lab.example", False),
    ]
    go = Zitadel(world.directory, users)
    world.opened.callback(go.close)
    npm_id, go_id = register(world, "plant", npm, "plant.example"), register(world, "lab", go, "lab.example")
    plant, lab = (npm_id, "plant"), (go_id, "lab")
    for name, provider_id in (("oidc-provider", npm_id), ("zitadel/oidc", go_id)):
        found = world.does("POST", f"{PROVIDERS}/{provider_id}/check")
        check(found["ok"], f"the check of {name}: {json.dumps(found)}")
        say(f"the check of {name}: {', '.join(step['step'] for step in found['steps'])}: well")
    ada = world.invite("Ada", email="ada@plant.example")
    lea = world.invite("Lea", email="lea@lab.example")
    world.invite("Mo", email="mo@lab.example")
    at_npm = {"login": "ada", "password": "any"}
    at_go = {"username": "lea", "password": "secret"}
    web = Web()
    url = web.come_back(one, npm_id, at_npm)
    first = signs_in(world, "oidc-provider, for the first time", one, web, url, ada, plant, "ada@plant.example")
    comes_to_nothing(world, "the same way back again", one, web, url, "flow-expired", clears=False)
    web = Web()
    url = web.come_back(one, npm_id, at_npm)
    session = signs_in(world, "another browser, bound already", one, web, url, ada, plant)
    web = Web()
    url = web.come_back(one, npm_id, at_npm)
    third = signs_in(world, "a third one", one, web, url, ada, plant)
    out = send(one, "POST", "/v1/sign-out", headers=OWN_PAGE, session=third)
    there = f"{npm.issuer}/session/end?client_id=agent-runtime&logout_hint=ada%40plant.example"
    book.case("it signs out, and is told where to sign out there, too", out, 200, {"providerSignOutUrl": there})
    web = Web()
    url = web.come_back(one, go_id, at_go)
    of_lab = signs_in(world, "the example server of zitadel/oidc", one, web, url, lea, lab, "lea@lab.example")
    print("Whom a provider does not sign in:", flush=True)
    web = Web()
    url = web.come_back(one, npm_id, {"login": "nobody", "password": "any"})
    comes_to_nothing(world, "somebody whom nobody added", one, web, url, "not-a-person")
    web = Web()
    url = web.come_back(one, go_id, {"username": "eve", "password": "secret"})
    comes_to_nothing(world, "an email of another provider's domain", one, web, url, "email-not-covered")
    web = Web()
    url = web.come_back(one, go_id, {"username": "mo", "password": "secret"})
    comes_to_nothing(world, "an email that was not verified", one, web, url, "email-not-vouched")
    url = Web().come_back(one, npm_id, at_npm)
    comes_to_nothing(world, "the way back of another browser", one, Web(), url, "flow-expired", clears=False)
    start = f"/v1/sign-in/providers/{npm_id}/start"
    headers = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}
    foreign = refusal(
        "csrf-origin-mismatch",
        "The request did not come from a page of this server. Use the pages of this server; "
        "a program sends Authorization: Bearer <token>.",
    )
    book.case("another site's page begins", send(one, "POST", start, {}, headers), 403, foreign)
    unknown = "00000000-0000-7000-8000-000000000000"
    missing = refusal("not-found", f"There is no identity-provider {unknown} here.")
    begun = send(one, "POST", f"/v1/sign-in/providers/{unknown}/start", {}, OWN_PAGE)
    book.case("one that is not there", begun, 404, missing)
    print("A provider that is away, a person who is deactivated, a provider that is deleted:", flush=True)
    go.close()
    away = refusal(
        "provider-unavailable",
        "lab cannot be used to sign in at the moment. Try again, or sign in another way; the log says why.",
    )
    begun = send(world.other, "POST", f"/v1/sign-in/providers/{go_id}/start", {}, OWN_PAGE)
    book.case("signing in by one that is away", begun, 503, away)
    got = send(one, "GET", ME, headers=OWN_PAGE, session=of_lab)
    book.case("a session that it opened goes on", got, 200)
    world.does("DELETE", f"{PROVIDERS}/{go_id}")
    got = send(one, "GET", ME, headers=OWN_PAGE, session=of_lab)
    book.case("its provider was deleted, here", got, 401, ENDED)
    book.ends_elsewhere("its provider was deleted, there", world.other, of_lab)
    web = Web()
    url = web.come_back(one, npm_id, at_npm)
    world.does("POST", f"/v1/identity/users/{ada['id']}/deactivate")
    comes_to_nothing(world, "a person who was deactivated", one, web, url, "person-deactivated")
    for told, kept in (("her first session", first), ("her other one", session)):
        got = send(one, "GET", ME, headers=OWN_PAGE, session=kept)
        book.case(told, got, 401, ENDED)


def lock(world):
    print("The operator keeps the providers in a file:", flush=True)
    book = world.book
    npm = OidcProvider()
    world.opened.callback(npm.close)
    own = [one for one in world.does("GET", PROVIDERS)["data"] if one["name"] == "plant"]
    secret, file = world.directory.path / "oidc-house", world.directory.path / "providers.json"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    provider = {
        "tenantId": world.tenant_id, "name": "house", "issuer": npm.issuer, "clientId": "agent-runtime",
        "clientSecretFile": str(secret), "emailDomains": ["plant.example"], "createsPeople": True,
    }
    file.write_text(json.dumps({"version": 1, "providers": [provider]}))
    file.chmod(0o640)
    locked = world.server("locked", SVC_IDENTITY_PROVIDERS_PATH=str(file))
    ways = send(locked, "GET", "/v1/sign-in").body["providers"]
    check([one["name"] for one in ways] == ["house"], f"the ways in: {json.dumps(ways)}")
    house = ways[0]["id"]
    book.name(house, "house")
    npm.serve(f"{locked.url}/sign-in/callback/{house}")
    key = world.does("GET", ME)["credential"]["id"]
    details = {"action": "admin", "resource": world.tenant, "reason": OPERATORS}
    code = "identity-providers-operator-managed"
    body = refusal(code, OPERATORS, **details)
    record = {
        **world.record(
            world.admin_id, f"{code}: {OPERATORS}", stage=code, outcome="denied",
            credential={"kind": "token", "id": key},
        ),
        "action": "admin",
    }
    settings = {"tokenSignIn": "on", "sessionIdleMinutes": 30, "sessionHours": None}
    new = {"name": "new", "issuer": "http://127.0.0.1:9", "clientId": "a"}
    for told, method, path, sent in [
        ("registering one", "POST", PROVIDERS, new),
        ("changing one", "PATCH", f"{PROVIDERS}/{house}", {"name": "other"}),
        ("deleting one", "DELETE", f"{PROVIDERS}/{house}", None),
        ("sign-in settings", "PUT", "/v1/sign-in-settings", settings),
    ]:
        answer = send(locked, method, path, sent, token=world.token)
        # That an admin may do it is on record, too; here it is about the refusal.
        book.case(told, answer, 403, body, record, only="denied")
    begun = send(locked, "POST", f"/v1/sign-in/providers/{own[0]['id']}/start", {}, OWN_PAGE)
    missing = refusal("not-found", f"There is no identity-provider {own[0]['id']} here.")
    book.case("one that the tenant registered does not serve", begun, 404, missing)
    pia = world.invite("Pia", email="pia@plant.example")
    web = Web()
    url = web.come_back(locked, house, {"login": "pia", "password": "any"})
    signs_in(world, "the one of the file does", locked, web, url, pia, (house, "house"), "pia@plant.example")
    end(locked.process)
