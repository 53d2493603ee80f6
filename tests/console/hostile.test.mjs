/**
 * Hostile text in every free-text field of every noun, and in what models and tools answer: no dialog opens, no script runs,
 * nothing is asked elsewhere, nothing is wider than a phone, and the page still does what it is told.
 *
 * Every page of `routes.js` is opened: what a new page's address names has to be said in `names`.
 */

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import { test } from "node:test";
import { newSigningSecret } from "../../static/console/signing-secret.js";
import { open, overflow, settled } from "./browser.mjs";
import { eventually, example } from "./look-up.mjs";
import { browser, ends, names, place, stage } from "./stage.mjs";

const MARKUP = `<img src=x onerror=alert(1)><script>alert(2)</script><svg/onload=alert(3)>"'&quot;\${alert(4)}{{alert(5)}}`;
const LINKS = "[here](javascript:alert(6)) <a href='javascript:alert(7)'>x</a> ![p](https://elsewhere.example/a.png) [b](data:text/html,<script>alert(8)</script>)";
/** Turned around, without width, piled up; and what looks like NUL. */
const TURNED = "\u202Egnp.exe\u2066 \u200F\u200B\uFEFFZ\u0351\u0343\u034A\u0353a\u0321lgo \u2400 \\u0000 \\0 %00 &#0;";
const WIDE = "W".repeat(4000);
/** A line as long as a message may be, nearly. */
const LINE = "W".repeat(1_000_000);
/** As a text, since writing it from objects takes a stack. */
const DEEP = `${'{"a":['.repeat(5000)}1${"]}".repeat(5000)}`;

/** A text of the corpus for a field of this length. @param {number} most */
const text = (most, of = `${MARKUP} ${LINKS} ${TURNED}`) => [...of].slice(0, most).join("");
/** Flows take `${` as the beginning of an expression. */
const PLAIN = MARKUP.replaceAll("${", "$(");

/** A name that is nowhere broken. */
const wide = (most = 100) => WIDE.slice(0, most);

/** Objects in objects. @param {number} levels */
function deep(levels) {
  let value = /** @type {any} */ (MARKUP);
  for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { [`<b>${level}</b>`]: value };
  return value;
}
const OBJECT = JSON.parse(`{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": {"polluted": "yes"}}, "toString": 1, "<img src=x onerror=alert(1)>": ${JSON.stringify(MARKUP)}, "hasOwnProperty": "no"}`);

const ANSWER = `# ${MARKUP}\n\n${LINKS}\n\n${TURNED}\n\n\`\`\`html\n${MARKUP}\n\`\`\`\n\n| ${MARKUP.replaceAll("|", "")} | ${wide(300)} |\n|---|---|\n| a | b |\n\n${WIDE}\n\n<https://elsewhere.example/${wide(80)}>`;

/** A provider whose models say what they should not, and call the first tool when they are asked to. */
function provider() {
  return http.createServer(async (request, answer) => {
    const asked = JSON.parse((await request.toArray()).join("") || "{}");
    const last = asked.messages?.at(-1);
    const wants = last?.role === "user" && String(last.content).startsWith("call") && asked.tools?.length;
    const delta = wants ? { tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: asked.tools[0].function.name, arguments: last.content.startsWith("call deep") ? DEEP : JSON.stringify({ order: text(2000), more: OBJECT }) } }] } : { content: last?.role === "user" && String(last.content).startsWith("line") ? LINE : ANSWER };
    answer.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (part) => answer.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 1, model: asked.model, ...part })}\n\n`);
    chunk({ choices: [{ index: 0, delta: { role: "assistant", ...delta } }] });
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: wants ? "tool_calls" : "stop" }] });
    chunk({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } });
    answer.end("data: [DONE]\n\n");
  });
}

async function listening(one) {
  one.listen(0, "127.0.0.1");
  await once(one, "listening");
  ends.push(() => (one.close(), one.closeAllConnections()));
  return one.address().port;
}

let answers;

stage((api) => hostile(api, answers), async () => {
  const models = await listening(provider());
  answers = await listening(http.createServer((request, answer) => request.resume().on("end", () => answer.writeHead(request.url?.startsWith("/hook") ? 500 : 200, { "content-type": request.url === "/deep" ? "application/json" : "text/html" }).end(request.url === "/deep" ? DEEP : `${MARKUP} ${LINKS} ${TURNED} ${WIDE}`))));
  return { args: ["--provider-url", `http://127.0.0.1:${models}/v1`, "--model", "hostile"] };
});

/**
 * The corpus in every field. A field that takes less says so by a 400, and gets what it takes.
 * @param {import("../../clients/typescript/src/index.js").AgentRuntime} api
 * @param {number} port of the tools and receivers
 */
async function hostile(api, port) {
  /** Tries texts until the server takes one. @template T @param {(said: string) => Promise<T>} make @param {number} most @returns {Promise<T>} */
  const takes = async (make, most) => {
    for (const said of [text(most), text(most, `${MARKUP} ${LINKS}`.replace(/[\u0000-\u001f]/g, "")), wide(most)])
      try {
        return await make(said);
      } catch (error) {
        if (error.status !== 400 && error.status !== 409 && error.status !== 422) throw error;
      }
    throw new Error("the server took none of the corpus");
  };
  const { id, latestVersion } = await example(api);
  const given = await api.agents.versions.get(id, latestVersion);
  const me = await api.me.get();
  await api.reviewers.register({ userId: me.id, role: "standard" });
  const org = await takes((name) => api.orgs.create({ name }), 100);
  const project = await takes((name) => api.orgs.projects.create(org.id, { name }), 100);
  const user = await takes((displayName) => api.users.add({ email: "o'hostile+<b>@example.com".replace(/[<>]/g, ""), displayName, tenantRole: "member" }), 100);
  await api.projects.memberships.add(project.id, { userId: user.id, role: "editor" });
  const team = await takes((name) => api.teams.create({ name, slug: "hostile", description: text(500) }), 100);
  await api.teams.memberships.add(team.id, { userId: user.id, role: "member" });
  await api.projects.teamGrants.add(project.id, { teamId: team.id, role: "viewer" });
  const account = await takes((name) => api.serviceAccounts.create({ name }), 100);
  await takes((name) => api.tokens.create({ name }), 100);
  const tool = await api.tools.register({ projectId: project.id, name: "t".repeat(64), description: text(4000), argumentsSchema: { type: "object", properties: { order: { type: "string", description: text(1000) }, [MARKUP]: { type: "string", title: MARKUP }, [wide(300)]: { enum: [MARKUP, wide(300)] } } }, url: `http://127.0.0.1:${port}/${wide(200)}` });
  const asking = await takes((title) => api.tools.register({ projectId: project.id, name: "asking", description: "", argumentsSchema: { type: "object" }, url: `http://127.0.0.1:${port}/`, approval: { title, requiredRole: "standard", expiresAfter: "P1D", onReject: "tell" } }), 150);
  const registered = await takes((name) => api.modelProviders.create({ name, baseUrl: `https://models.example/${wide(300)}`, models: [{ name: text(100, MARKUP), prices: {} }, { name: wide(200), prices: { prompt: 1 } }] }), 100);
  const identity = await takes((name) => api.identityProviders.create({ name, issuer: `https://id.example/${wide(60)}`, clientId: "hostile" }), 100);
  const agent = await takes((name) => api.agents.create({ projectId: project.id, name, description: text(500) }), 100);
  const version = { model: given.model, modelProviderId: given.modelProviderId, limits: given.limits };
  await api.agents.versions.create(agent.id, { ...version, version: "1.0.0", instructions: text(4000, `${MARKUP}\n${LINKS}\n${TURNED}\n${WIDE}`), toolIds: [tool.id] });
  await api.agents.versions.create(agent.id, { ...version, version: "1.1.0", instructions: text(4000, `${LINKS}\n${MARKUP}\n${WIDE}x`), toolIds: [asking.id] });
  const deepens = await api.tools.register({ projectId: project.id, name: "deepens", description: "", argumentsSchema: { type: "object" }, url: `http://127.0.0.1:${port}/deep` });
  await api.agents.versions.create(agent.id, { ...version, version: "1.2.0", instructions: "Answer.", toolIds: [deepens.id] });
  await api.agents.promote(agent.id, { version: "1.0.0" });
  const flow = await api.flows.create({
    projectId: project.id,
    definition: {
      document: { dsl: "1.0.3", namespace: "hostile", name: "flow", version: "1.0.0", title: text(120, `${PLAIN} ${TURNED}`), summary: text(400, `${PLAIN} ${LINKS}`) },
      input: { schema: { format: "json", document: { type: "object", properties: { note: { type: "string", title: text(80, PLAIN), description: text(300, `${PLAIN} ${LINKS}`), maxLength: 100000 } } } } },
      do: [{ first: { set: { note: "${ .note }", said: PLAIN } } }, { stop: { raise: { error: { type: "https://example.com/errors/hostile", status: 500, title: text(300, `${PLAIN} ${TURNED}`), detail: text(2000, `${PLAIN} ${WIDE}`) } } } }],
    },
  });
  const labels = { "<b>k</b>": "<img src=x onerror=alert(1)>" };
  const plain = { note: "<b>x</b>" };
  const start = (body) => api.runs.create({ ...body, labels }).catch((error) => (error.status === 400 ? api.runs.create({ ...body, labels: plain }) : Promise.reject(error)));
  const turn = await start({ agentId: agent.id, message: `call ${text(3000)} ${WIDE}` });
  const input = { note: text(2000), more: OBJECT, deep: deep(60) };
  const startFlow = (input) => start({ flowId: "hostile.flow", projectId: project.id, input });
  const failed = await startFlow({ ...input, nul: "a\u0000b" }).catch((error) => (error.status === 400 ? startFlow(input) : Promise.reject(error)));
  // The model's arguments are nested deeper than any parser of ours goes, and so is what the tool answers.
  const called = await start({ agentId: agent.id, message: "call deep" });
  const answered = await start({ agentId: agent.id, version: "1.2.0", message: "call it" });
  for (const one of [turn, failed, called, answered]) await api.runs.wait(one.run.id);
  const asks = await start({ agentId: agent.id, version: "1.1.0", message: "call it" });
  const approval = await eventually(async () => (await api.approvals.list({ runId: asks.run.id })).data[0]);
  const conversation = await takes((title) => api.conversations.create({ agentId: agent.id, title }), 150);
  const said = await api.runs.create({ agentId: agent.id, conversationId: conversation.id, message: text(3000) });
  await api.runs.wait(said.run.id);
  const endless = await api.conversations.create({ agentId: agent.id, title: "A line" });
  const line = await api.runs.create({ agentId: agent.id, conversationId: endless.id, message: `line ${LINE}` });
  await api.runs.wait(line.run.id);
  await api.secrets.put("hostile", "WEBHOOK_SECRET", { value: newSigningSecret() });
  await takes((value) => api.environments.variables.put("hostile", "VARIABLE", { value }), 8000);
  const endpoint = await api.webhookEndpoints.create({ url: `http://127.0.0.1:${port}/hook/<img%20src=x%20onerror=alert(1)>/${wide(900)}?"'${"%E2%80%AE"}`, events: ["run.finished"], secretRef: { envName: "hostile", name: "WEBHOOK_SECRET" } });
  const delivery = await api.webhookEndpoints.sendTest(endpoint.endpointId);
  await eventually(async () => (await api.webhookEndpoints.deliveries.get(endpoint.endpointId, delivery.id)).attemptCount);
  // Only now: what it judges is to be hostile before.
  await api.projects.policies.put(project.id, { guardrails: [{ builtin: "pattern", name: "p".repeat(64), at: ["input", "output"], action: "block", onBlock: "answer", answer: text(4000), config: { patterns: ["<img[^>]*>"] } }, { builtin: "links", at: ["tool.result"], action: "redact", config: { hosts: Array.from({ length: 5 }, (_, at) => `${"h".repeat(60)}${at}.example`) } }] });
  return { runId: [turn, failed, asks, called, answered, line].map((one) => one.run.id), conversationId: [conversation.id, endless.id], agentId: agent.id, version: "1.0.0", flowId: flow.id, id: flow.id, toolId: tool.id, modelProviderId: registered.id, endpointId: endpoint.endpointId, deliveryId: delivery.id, approvalId: approval.id, projectId: project.id, orgId: org.id, teamId: team.id, userId: user.id, serviceAccountId: account.id, identityProviderId: identity.id, environment: "hostile" };
}

/** What a part of an address may be beside an id. @type {Record<string, string[]>} */
const TABS = { runs: ["output", "input", "checks", "events"], projects: ["access", "policy"], flows: ["versions", "runs"], agents: ["runs", "settings"], people: ["access"] };

const routes = [...readFileSync(new URL("../../static/console/routes.js", import.meta.url), "utf8").matchAll(/pattern: "([^"]+)"/g)].map(([, pattern]) => pattern);

/** @param {string} pattern @returns {string[]} the addresses of a page */
function addresses(pattern) {
  let found = [""];
  for (const part of pattern.split("/")) {
    const name = part.slice(1);
    const values = !part.startsWith(":") ? [part] : name === "tab" ? (TABS[pattern.split("/")[0]] ?? []) : [names[name] ?? []].flat();
    found = found.flatMap((before) => values.map((value) => (before ? `${before}/${value}` : value)));
  }
  return found;
}

for (const pattern of routes)
  test(`${pattern} with hostile text`, async (t) => {
    const all = addresses(pattern);
    if (!all.length && pattern.includes(":decisionId")) return t.diagnostic("its records have no text of people's");
    assert.ok(all.length, `what ${pattern} names is not among the names of this test`);
    const tab = await open(browser, place.url, { token: place.token, width: 360, height: 740 });
    const faults = [];
    tab.page.on("dialog", (dialog) => (faults.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
    try {
      for (const path of all) {
        await tab.page.goto(`${place.url}/console/${path}`);
        await settled(tab.page);
        for (const closed of await tab.page.locator("main details:not([open]) > summary").all()) if (await closed.isVisible()) await closed.click();
        const found = await tab.page.evaluate(() => ({
          made: [...document.querySelectorAll("main img, main script, main iframe, main object, main style, main link")].map((one) => one.outerHTML.slice(0, 80)),
          links: [...document.querySelectorAll("main a[href]")].map((one) => /** @type {HTMLAnchorElement} */ (one).href).filter((href) => !/^(https?|mailto):/.test(href)),
          handlers: [...document.querySelectorAll("main *")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).length,
          polluted: /** @type {any} */ ({}).polluted,
        }));
        if (found.made.length) faults.push(`${path}: ${found.made.join(", ")}`);
        if (found.links.length) faults.push(`${path}: links to ${found.links.join(", ")}`);
        if (found.handlers) faults.push(`${path}: ${found.handlers} handlers as attributes`);
        if (found.polluted) faults.push(`${path}: a prototype was changed`);
        faults.push(...(await overflow(tab.page)).map((one) => `${path}: ${one}`));
        await tab.page.keyboard.press("Control+k");
        await tab.page.waitForSelector("dialog.palette[open]", { timeout: 10_000 }).catch(() => faults.push(`${path}: the page does not answer`));
        await tab.page.keyboard.press("Escape");
      }
      faults.push(...tab.faults());
    } finally {
      await tab.context.close();
    }
    assert.deepEqual(faults, [], `${pattern}:\n  ${faults.join("\n  ")}`);
  });
