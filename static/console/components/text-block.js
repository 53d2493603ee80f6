/** Text as it is: cut where it is long, wrapped or not, copied whole. */

import { bytes, count } from "../number.js";
import { h, tags, useState } from "../ui.js";
import { Copy } from "./copy.js";
import { Icon } from "./icon.js";

const { button, code, div, pre, span } = tags;

const MOST_CHARACTERS = 20_000;

/** @param {{ text: string, label: string, isWrapped?: boolean }} props `label` says what it is */
export function TextBlock({ text, label, isWrapped = true }) {
  const [wraps, setWraps] = useState(isWrapped);
  const [isWhole, setWhole] = useState(false);
  const isCut = text.length > MOST_CHARACTERS && !isWhole;
  return div(
    { class: "text-block", "data-wrap": wraps },
    pre({ tabIndex: 0, role: "group", "aria-label": label }, code(null, isCut ? text.slice(0, MOST_CHARACTERS) : text)),
    div({ class: "tools" }, button({ type: "button", class: "copy", "aria-pressed": wraps ? "true" : "false", "aria-label": "Wrap lines", title: "Wrap lines", onClick: () => setWraps(!wraps) }, h(Icon, { name: "wrap" })), h(Copy, { text, label: `Copy ${label.toLowerCase()}` })),
    isCut ? div({ class: "more" }, span(null, `${count(MOST_CHARACTERS)} of ${count(text.length)} characters (${bytes(new Blob([text]).size)}).`), button({ type: "button", class: "link", onClick: () => setWhole(true) }, "Show all")) : null,
  );
}

/** What a text says as JSON; one that is none is what it is. @param {string} text */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A value as a text to read: objects and lists on several lines, also those that come as a text. @param {unknown} value */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2) ?? "";
  const said = parsed(value);
  return said !== null && typeof said === "object" ? JSON.stringify(said, null, 2) : value;
}
