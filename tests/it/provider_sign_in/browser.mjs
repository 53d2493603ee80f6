// Chromium, driven by its own protocol: signs a person in through an identity provider, then lets a page of another site try
// what it can. Prints what it saw as JSON.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

const { browser, profile, isRoot, origin, provider, token, cookie } = JSON.parse(process.argv[2]);

const options = ["--headless", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${profile}`];
const process_ = spawn(browser, [...options, ...(isRoot ? ["--no-sandbox"] : []), "about:blank"], { stdio: "ignore" });

/** What `look` gives, once it gives something. */
async function eventually(what, look) {
  for (let round = 0; round < 600; round++) {
    const found = await look();
    if (found) return found;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`waited in vain for ${what}`);
}

/** A page of the browser. */
class Page {
  static async open() {
    const told = await eventually("the browser", () => readFile(join(profile, "DevToolsActivePort"), "utf8").catch(() => null));
    const port = told.split("\n")[0];
    const pages = await eventually("a page", async () => {
      const all = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
      return all.find((page) => page.type === "page");
    });
    const page = new Page();
    page.socket = new WebSocket(pages.webSocketDebuggerUrl);
    page.waiting = new Map();
    page.socket.onmessage = ({ data }) => {
      const answer = JSON.parse(data);
      page.waiting.get(answer.id)?.(answer);
    };
    await new Promise((done) => (page.socket.onopen = done));
    return page;
  }

  async call(method, params = {}) {
    this.count = (this.count ?? 0) + 1;
    const id = this.count;
    this.socket.send(JSON.stringify({ id, method, params }));
    const answer = await new Promise((done) => this.waiting.set(id, done));
    this.waiting.delete(id);
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  }

  /** What an expression is in the page; null while it is being replaced. */
  async value(expression) {
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true }).catch(() => ({ result: {} }));
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value ?? null;
  }

  async go(url) {
    await this.call("Page.navigate", { url });
    await this.at(url);
  }

  /** Waits until the page is at an address that begins so, and whole. */
  at(begin) {
    return eventually(begin, async () => {
      const [url, state] = (await this.value("[location.href, document.readyState]")) ?? [];
      return url?.startsWith(begin) && state === "complete" && url;
    });
  }
}

const me = `fetch("/v1/identity/me").then((answer) => answer.json()).then((me) => me.email)`;

/** Begins at a page of the server, as its sign-in page does. */
async function begin(page) {
  await page.go(`${origin}/docs`);
  const url = await page.value(`fetch("/v1/sign-in/providers/${provider}/start", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ returnTo: "/console/runs" }),
  }).then((answer) => answer.json()).then(({ url }) => url)`);
  await page.value(`location.assign(${JSON.stringify(url)})`);
}

/** A page of another site, which says what came of each thing that it tried. */
async function attack(page) {
  const html = `<!doctype html><meta charset="utf-8"><iframe name="hidden"></iframe>
    <form method="post" enctype="text/plain" target="_top" action="${origin}/v1/sign-in/token">
    <input name='{"token":"${token}","a":"' value='"}'></form>`;
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end(html));
  // Another name of the same host is another site.
  server.listen(0, "localhost");
  await once(server, "listening");
  const elsewhere = `http://localhost:${server.address().port}/`;
  await page.go(elsewhere);
  const tried = (path, init) => `fetch("${origin}${path}", ${init}).then((answer) => "answered " + answer.status, () => "refused")`;
  const body = `{ method: "POST", credentials: "include", headers: { "content-type": "application/json" }, body: "{}" }`;
  const seen = {
    start: await page.value(tried(`/v1/sign-in/providers/${provider}/start`, body)),
    me: await page.value(tried("/v1/identity/me", `{ credentials: "include" }`)),
  };
  seen.image = await page.value(`new Promise((done) => {
    const image = new Image();
    image.onload = () => done("loaded");
    image.onerror = () => done("refused");
    image.src = "${origin}/sign-in/callback/${provider}?code=a&state=b";
  })`);
  await page.value(`document.forms[0].submit()`);
  await page.at(`${origin}/v1/sign-in/token`);
  seen.form = await page.value(`performance.getEntriesByType("navigation")[0].responseStatus`);
  server.close();
  server.closeAllConnections();
  return seen;
}

try {
  const page = await Page.open();
  await page.call("Page.enable");
  await begin(page);
  await eventually("the provider's page", () => page.value(`document.forms[0]?.elements.login && "there"`));
  await page.value(`(() => {
    const form = document.forms[0];
    form.elements.login.value = "ada";
    form.elements.password.value = "any";
    form.submit();
  })()`);
  await page.at(`${origin}/console/runs`);
  const seen = {};
  seen.email = await page.value(me);
  seen.readable = await page.value("document.cookie");
  const { cookies } = await page.call("Network.getCookies", { urls: [`${origin}/`] });
  seen.cookies = cookies.map(({ name }) => name).filter((name) => name.startsWith("__Host-"));
  seen.session = cookies.find(({ name }) => name === cookie);
  seen.attack = await attack(page);
  await page.go(`${origin}/docs`);
  seen.after = await page.value(me);
  // An address that was visited has a code that was used, and its cookie is gone.
  await page.call("Page.navigate", { url: `${origin}/sign-in/callback/${provider}?code=a&state=b` });
  const url = await page.at(`${origin}/console/sign-in?problem=`);
  seen.back = new URL(url).searchParams.get("problem");
  console.log(JSON.stringify(seen));
} finally {
  process_.kill("SIGKILL");
}
process.exit(0);
