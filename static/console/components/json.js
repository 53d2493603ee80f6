/** A JSON value as a tree. Two levels are open; what is deeper, and what is long, opens when asked for: nothing is drawn before. */

import { h, tags, useState } from "../ui.js";
import { count } from "../number.js";

const { button, details, div, li, span, summary, ul } = tags;

const MOST_ITEMS = 100;
const MOST_CHARACTERS = 400;

/** @param {{ value: unknown, label?: string, openLevels?: number }} props */
export function Json({ value, label, openLevels = 2 }) {
  return div({ class: "json", role: "group", "aria-label": label, tabIndex: 0 }, h(Value, { value, levels: openLevels }));
}

/** @param {{ value: unknown, levels: number, name?: string }} props */
function Value({ value, levels, name }) {
  const key = name === undefined ? null : span({ class: "key" }, `${name}: `);
  if (typeof value === "string") return span(null, key, h(Text, { text: value }));
  if (value === null || typeof value !== "object") return span(null, key, span({ class: "plain" }, String(value)));
  return h(Branch, { value: /** @type {object} */ (value), levels, name });
}

/** @param {{ text: string }} props */
function Text({ text }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > MOST_CHARACTERS;
  return span(
    { class: "text" },
    JSON.stringify(isLong && !isWhole ? text.slice(0, MOST_CHARACTERS) : text),
    isLong && !isWhole ? button({ type: "button", class: "link", onClick: () => setWhole(true) }, ` … all ${count(text.length)} characters`) : null,
  );
}

/** @param {{ value: object, levels: number, name?: string }} props */
function Branch({ value, levels, name }) {
  const [isOpen, setOpen] = useState(levels > 0);
  const [most, setMost] = useState(MOST_ITEMS);
  const isList = Array.isArray(value);
  const entries = isOpen ? Object.entries(value).slice(0, most) : [];
  const size = isList ? value.length : Object.keys(value).length;
  const about = isList ? `[${size}]` : `{${size}}`;
  if (size === 0) return span(null, name === undefined ? null : span({ class: "key" }, `${name}: `), isList ? "[]" : "{}");
  return details(
    { open: isOpen, onToggle: (event) => setOpen(event.currentTarget.open) },
    summary(null, name === undefined ? null : span({ class: "key" }, `${name} `), span({ class: "faint" }, about)),
    isOpen
      ? ul(
          null,
          entries.map(([key, item]) => li({ key }, h(Value, { value: item, levels: levels - 1, name: key }))),
          size > most ? li(null, button({ type: "button", class: "link", onClick: () => setMost(most * 10) }, `${count(size - most)} more`)) : null,
        )
      : null,
  );
}
