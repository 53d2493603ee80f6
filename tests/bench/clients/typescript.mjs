/**
 * The TypeScript client, one request after the other. Prints a figure a second.
 *
 *   node typescript.mjs reads client|fetch RUN     requests: AGENT_RUNTIME_URL, AGENT_RUNTIME_TOKEN
 *   node typescript.mjs events                     events of a stream, read from memory
 */

import { AgentRuntime } from "../../../clients/typescript/src/index.js";

const [what, how, run] = process.argv.slice(2);
const READS = 1_000;
const EVENTS = 200_000;

/** The reads go one after the other over the connection that the platform keeps. */
async function reads() {
  const { AGENT_RUNTIME_URL: url, AGENT_RUNTIME_TOKEN: token } = process.env;
  const runtime = new AgentRuntime();
  const bare = async () => {
    const answer = await fetch(`${url}/v1/runs/${run}`, { headers: { authorization: `Bearer ${token}` } });
    if (!answer.ok) throw new Error(`HTTP ${answer.status}`);
    return answer.json();
  };
  const read = how === "client" ? () => runtime.runs.get(run) : bare;
  const some = async (count) => {
    for (let number = 0; number < count; number++) if ((await read()).id !== run) throw new Error("another run");
  };
  // The first ones compile.
  await some(READS / 2);
  const began = performance.now();
  await some(READS);
  return (READS / (performance.now() - began)) * 1_000;
}

/** What a network gives at once, as often as it takes. */
async function events() {
  const data = JSON.stringify({ step: 3, attempt: 1, type: "tool", name: "order_status", callId: "call_2", isError: false, output: "shipped, Grüße" });
  const at = '"createdAt":"2026-11-25T09:30:12.043Z"';
  const piece = (first, count) => Array.from({ length: count }, (_, number) => {
    const seq = first + number;
    return `id: ${seq}\nevent: step.completed\ndata: {"seq":${seq},"kind":"step.completed",${at},"data":${data}}\n\n`;
  }).join("");
  const pieces = Array.from({ length: EVENTS / 100 }, (_, number) => new TextEncoder().encode(piece(number * 100 + 1, 100)));
  pieces.push(new TextEncoder().encode('event: stream.end\ndata: {"reason":"run-finished"}\n\n'));
  const body = ReadableStream.from(pieces);
  const fetch = async () => new Response(body, { headers: { "content-type": "text/event-stream" } });
  const runtime = new AgentRuntime({ baseUrl: "http://memory.invalid", token: "t", fetch });
  let count = 0;
  const began = performance.now();
  for await (const _ of runtime.runs.follow("run-1")) count++;
  if (count !== EVENTS) throw new Error(`${count} events`);
  return (count / (performance.now() - began)) * 1_000;
}

console.log(Math.round(await { reads, events }[what]()));
