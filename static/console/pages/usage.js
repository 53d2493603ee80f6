/**
 * Usage: what model calls used and cost in a time. The sums by model, agent, project or day stand in a table, the bars of the
 * days below it; both are of what the address says. It is read when it is opened: sums are dear, and nobody watches them grow.
 */

import { api } from "../api.js";
import { Bars } from "../components/bars.js";
import { Copy } from "../components/copy.js";
import { Filters, filtered } from "../components/filters.js";
import { shortId } from "../components/id.js";
import { useNames } from "../components/names.js";
import { PageHead } from "../components/page-head.js";
import { Facts } from "../components/section.js";
import { Empty, Loaded } from "../components/states.js";
import { Table } from "../components/table.js";
import { Tabs } from "../components/tabs.js";
import { count, counted, dollars, tokens } from "../number.js";
import { useResource } from "../resource.js";
import { chosenProject, href, query } from "../route.js";
import { serverNow } from "../time.js";
import { fragment, h, tags } from "../ui.js";

/** @import { UsageSum } from "agent-runtime/types" */

const { code, div, p, span } = tags;

const DAY_MS = 86_400_000;
/** Beside the rest together: more colours are not told apart. */
const MOST_SERIES = 5;
const REST = "All others";
const BY = /** @type {const} */ (["model", "agent", "project", "day"]);
const TITLES = { model: "By model", agent: "By agent", project: "By project", day: "By day" };

/** @type {import("../components/filters.js").Filter[]} */
const FILTERS = [
  { name: "days", label: "Time", any: "30 days", options: [{ value: "7", label: "7 days" }, { value: "90", label: "90 days" }] },
  { name: "bars", label: "Bars", any: "Cost", options: [{ value: "tokens", label: "Tokens" }, { value: "calls", label: "Calls" }] },
];

/** @typedef {{ key: string, name: string, calls: number, costUsd: number, prompt: number, completion: number, without: number }} Sum */
/** @typedef {keyof typeof MEASURES} Measure */

const MEASURES = /** @satisfies {Record<string, { title: string, of: (sum: Sum) => number, format: (value: number) => string }>} */ ({
  cost: { title: "Cost by day", of: (sum) => sum.costUsd, format: dollars },
  tokens: { title: "Tokens by day", of: (sum) => sum.prompt + sum.completion, format: tokens },
  calls: { title: "Calls by day", of: (sum) => sum.calls, format: count },
});

/** @param {UsageSum} one @param {string} by */
function keyOf(one, by) {
  if (by === "all") return "";
  if (by === "model") return `${one.modelProviderId ?? ""} ${one.model ?? ""}`;
  return (by === "agent" ? one.agentId : by === "project" ? one.projectId : one.day) ?? "";
}

/** Adds up what has the same key, the greatest first. @param {UsageSum[]} rows @param {string} by @param {(one: UsageSum) => string} nameOf */
function added(rows, by, nameOf) {
  /** @type {Map<string, Sum>} */
  const sums = new Map();
  for (const one of rows) {
    const key = keyOf(one, by);
    const sum = sums.get(key) ?? { key, name: nameOf(one), calls: 0, costUsd: 0, prompt: 0, completion: 0, without: 0 };
    sums.set(key, { ...sum, calls: sum.calls + one.calls, costUsd: sum.costUsd + one.costUsd, prompt: sum.prompt + one.tokens.prompt, completion: sum.completion + one.tokens.completion, without: sum.without + one.callsWithoutCost });
  }
  const all = [...sums.values()];
  return by === "day" ? all.sort((one, other) => other.key.localeCompare(one.key)) : all.sort((one, other) => other.costUsd - one.costUsd || other.calls - one.calls);
}

/** The kinds of the objects whose names the sums have. */
const NAMED = /** @type {const} */ ({ model: ["model-provider"], agent: ["agent"], project: ["project"], day: [] });

/** What a sum is of, in words. @param {UsageSum} one @param {string} by @param {Map<string, import("../components/names.js").Named>} names */
function nameOf(one, by, names) {
  const name = (/** @type {string} */ id) => names.get(id)?.name ?? shortId(id);
  if (by === "model") return one.model ? `${one.model}${one.modelProviderId ? `, ${name(one.modelProviderId)}` : ""}` : "No model";
  if (by === "agent") return one.agentId ? name(one.agentId) : "Without an agent";
  return by === "project" ? (one.projectId ? name(one.projectId) : "No project") : (one.day ?? "");
}

export default function Usage() {
  const by = BY.find((one) => one === query.value.by) ?? "model";
  return h(Report, { by, key: by });
}

/** @param {{ by: (typeof BY)[number] }} props */
function Report({ by }) {
  const given = filtered(FILTERS);
  const days = given.days === "7" ? 7 : given.days === "90" ? 90 : 30;
  const measure = given.bars === "tokens" || given.bars === "calls" ? given.bars : "cost";
  const projectId = chosenProject.value;
  // Whole days, so that the first bar is not half of one.
  const from = new Date(Math.floor(serverNow() / DAY_MS) * DAY_MS - (days - 1) * DAY_MS).toISOString();
  const report = useResource(`usage ${by} ${from} ${projectId ?? ""}`, (options) => api.usage.sum({ by: by === "day" ? ["day"] : ["day", by], from, projectId: projectId || undefined }, options));
  const names = useNames([...NAMED[by]]);
  const tabs = BY.map((one) => ({ title: TITLES[one], href: href("usage", { ...query.value, by: one === "model" ? "" : one }), isCurrent: one === by }));
  const named = (/** @type {UsageSum} */ one) => nameOf(one, by, names);
  return div(
    null,
    h(PageHead, { title: "Usage", lead: "What model calls used and cost. A run counts on the day on which it was created, in UTC." }),
    h(Filters, { filters: FILTERS }),
    h(Tabs, { label: "What the sums are of", tabs }),
    h(Loaded, {
      of: report,
      show: (/** @type {{ data: UsageSum[] }} */ said) =>
        said.data.length
          ? div({ class: "stack" }, h(Total, { rows: said.data }), h(Sums, { sums: added(said.data, by, named), by }), div({ class: "card pad" }, h(Days, { rows: said.data, by, nameOf: named, from, days, measure })))
          : h(Empty, { title: `No model was called in the last ${days} days.` }, "Sums appear here with the first run that asks a model."),
    }),
  );
}

/** @param {{ rows: UsageSum[] }} props */
function Total({ rows }) {
  const [all] = added(rows, "all", () => "");
  if (!all) return null;
  return fragment(
    div({ class: "card pad" }, h(Facts, { facts: [["Cost", dollars(all.costUsd)], ["Calls", count(all.calls)], ["Tokens read", tokens(all.prompt)], ["Tokens written", tokens(all.completion)]] })),
    all.without ? p({ class: "faint" }, `The cost of ${counted(all.without, "call")} is not known: their models have no price, or the provider did not say what they used. They count as nothing.`) : null,
  );
}

/** @param {{ rows: UsageSum[], by: string, nameOf: (one: UsageSum) => string, from: string, days: number, measure: Measure }} props */
function Days({ rows, by, nameOf, from, days, measure }) {
  const { title, of, format } = MEASURES[measure];
  const sums = by === "day" ? [] : added(rows, by, nameOf).sort((one, other) => of(other) - of(one));
  const named = sums.slice(0, MOST_SERIES);
  const rest = sums.length > named.length;
  const bars = Array.from({ length: days }, (_, index) => {
    const label = new Date(Date.parse(from) + index * DAY_MS).toISOString().slice(0, 10);
    const all = rows.filter((one) => one.day === label);
    const total = added(all, "all", () => "").reduce((sum, one) => sum + of(one), 0);
    if (by === "day") return { label, values: [total] };
    const parts = added(all, by, nameOf);
    const values = named.map((one) => {
      const part = parts.find((other) => other.key === one.key);
      return part ? of(part) : 0;
    });
    return { label, values: rest ? [...values, Math.max(0, total - values.reduce((sum, one) => sum + one, 0))] : values };
  });
  return h(Bars, { title, series: by === "day" ? [title] : [...named.map((one) => one.name), ...(rest ? [REST] : [])], bars, format });
}

/** @param {{ sums: Sum[], by: string }} props */
function Sums({ sums, by }) {
  return div(
    { class: "stack tight" },
    h(Table, {
      label: TITLES[/** @type {keyof typeof TITLES} */ (by)],
      rows: sums,
      rowKey: (/** @type {Sum} */ one) => one.key,
      columns: [
        { title: { model: "Model", agent: "Agent", project: "Project", day: "Day (UTC)" }[by] ?? by, show: (/** @type {Sum} */ one) => (by === "model" || by === "day" ? code(null, one.name) : one.name) },
        { title: "Cost", show: (/** @type {Sum} */ one) => span({ title: one.without ? `${counted(one.without, "call")} of unknown cost` : undefined }, dollars(one.costUsd), one.without ? " +" : null), isNumber: true },
        { title: "Calls", show: (/** @type {Sum} */ one) => count(one.calls), isNumber: true },
        { title: "Tokens read", show: (/** @type {Sum} */ one) => count(one.prompt), isNumber: true, from: "middle" },
        { title: "Tokens written", show: (/** @type {Sum} */ one) => count(one.completion), isNumber: true, from: "middle" },
        { title: "Cost of a call", show: (/** @type {Sum} */ one) => dollars(one.calls ? one.costUsd / one.calls : 0), isNumber: true, from: "wide" },
      ],
    }),
    div({ class: "row end" }, h(Copy, { label: "Copy as CSV", words: true, text: csv(sums, by) })),
  );
}

/** RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe. @param {Sum[]} sums @param {string} by */
export function csv(sums, by) {
  const cell = (/** @type {string | number} */ value) => (typeof value === "number" ? String(value) : `"${value.replace(/^(?=[=+\-@\t\r])/, "'").replaceAll('"', '""')}"`);
  const rows = sums.map((one) => [one.name, one.costUsd, one.calls, one.prompt, one.completion, one.without].map(cell).join(","));
  return [[by, "costUsd", "calls", "promptTokens", "completionTokens", "callsWithoutCost"].join(","), ...rows].join("\r\n");
}
