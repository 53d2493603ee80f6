/** Where somebody is signed in: the browser, the address, since when. Each can be ended, as far as the reader may. */

import { h, tags } from "../ui.js";
import { Table } from "./table.js";
import { Time } from "./time.js";

/** @import { Session } from "agent-runtime/types" */
/** @import { Child } from "../ui.js" */

const { button, span } = tags;

const METHODS = /** @type {Record<string, string>} */ ({ token: "An API key", enrolment: "An enrolment code", development: "Development", provider: "An identity provider" });
const BROWSERS = /** @type {[RegExp, string][]} */ ([[/\bEdg\//, "Edge"], [/\bFirefox\//, "Firefox"], [/\bOPR\//, "Opera"], [/\bHeadlessChrome\//, "Chrome without a window"], [/\b(Chrome|CriOS)\//, "Chrome"], [/\bSafari\//, "Safari"]]);
const SYSTEMS = /** @type {[RegExp, string][]} */ ([[/Windows/, "Windows"], [/iPhone|iPad/, "iOS"], [/Mac OS X/, "macOS"], [/Android/, "Android"], [/CrOS/, "ChromeOS"], [/Linux/, "Linux"]]);

/** `Firefox on Windows`, by what the browser calls itself. @param {string | null | undefined} agent */
export function device(agent) {
  if (!agent) return "An unknown browser";
  const of = (/** @type {[RegExp, string][]} */ table) => table.find(([pattern]) => pattern.test(agent))?.[1];
  const [browser, system] = [of(BROWSERS), of(SYSTEMS)];
  return browser ? (system ? `${browser} on ${system}` : browser) : agent.slice(0, 60);
}

/**
 * @param {object} props
 * @param {string} props.label
 * @param {import("./pager.js").List<Session>} props.list
 * @param {(session: Session) => void} [props.onEnd] without it they are read alone
 * @param {Child} props.empty
 */
export function Sessions({ label, list, onEnd, empty }) {
  /** @type {import("./table.js").Column[]} */
  const columns = [
    { title: "Browser", show: (/** @type {Session} */ one) => span({ title: one.userAgent ?? undefined }, device(one.userAgent), one.current ? span({ class: "tag beside" }, "this one") : null) },
    { title: "Last used (UTC)", show: (/** @type {Session} */ one) => h(Time, { at: one.activeAt, short: true }) },
    { title: "From", show: (/** @type {Session} */ one) => span({ class: "mono" }, one.clientAddress), from: "middle" },
    { title: "Signed in (UTC)", show: (/** @type {Session} */ one) => h(Time, { at: one.createdAt, short: true, ago: false }), from: "wide" },
    { title: "By", show: (/** @type {Session} */ one) => METHODS[String(one.method)] ?? String(one.method), from: "wide", isSecond: true },
    { title: "Ends (UTC)", show: (/** @type {Session} */ one) => h(Time, { at: one.expiresAt, short: true, ago: false }), from: "wide", isSecond: true },
  ];
  if (onEnd) columns.push({ title: "What to do", isActs: true, show: (/** @type {Session} */ one) => button({ type: "button", onClick: () => onEnd(one), "aria-label": `${one.current ? "Sign out here" : "End"}: ${device(one.userAgent)}, ${one.clientAddress}` }, one.current ? "Sign out" : "End") });
  return h(Table, { label, columns, list, empty });
}
