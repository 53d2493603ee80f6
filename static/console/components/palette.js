/**
 * The palette (`Ctrl K`): pages, acts, an id that is pasted. A combobox with a list box (ARIA practices): focus stays in the
 * field, the arrow keys choose, Enter goes.
 */

import { acts, isPaletteOpen } from "../overlay-state.js";
import { go, href } from "../route.js";
import { h, tags, useEffect, useId, useRef, useState } from "../ui.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icon.js";

const { div, input, small, span } = tags;

/**
 * @typedef {object} Entry
 * @property {string} title
 * @property {string} about what it is: "Page", "Act"
 * @property {string} [icon]
 * @property {string} [keys] the keys that do the same
 * @property {string} [href]
 * @property {() => void} [run]
 */

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** What may have an id and a page of its own. */
const KINDS = [["run", "runs"], ["approval", "approvals"], ["agent", "agents"], ["flow", "flows"], ["conversation", "conversations"], ["project", "projects"], ["tool", "tools"], ["webhook endpoint", "webhooks"], ["person", "people"], ["team", "teams"], ["service account", "service-accounts"], ["org", "orgs"], ["model provider", "model-providers"], ["identity provider", "identity-providers"], ["decision", "audit"]];

/** @param {{ entries: Entry[] }} props */
export function Palette({ entries }) {
  return isPaletteOpen.value ? h(Open, { entries: [...acts.value, ...entries] }) : null;
}

/** @param {{ entries: Entry[] }} props */
function Open({ entries }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const list = useRef(/** @type {HTMLDivElement | null} */ (null));
  const close = () => {
    isPaletteOpen.value = false;
  };
  const found = find(entries, typed);
  const chosen = found[Math.min(at, found.length - 1)];
  const take = (/** @type {Entry | undefined} */ entry) => {
    if (!entry) return;
    close();
    if (entry.href) go(entry.href);
    else entry.run?.();
  };
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const moves = /** @type {Record<string, number>} */ ({ ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 });
    if (event.key === "Enter") take(chosen);
    else if (event.key in moves) setAt(Math.max(0, Math.min(found.length - 1, /** @type {number} */ (moves[event.key]))));
    else return;
    event.preventDefault();
  };
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [at]);
  return h(
    Dialog,
    { title: "Go to", onClose: close, class: "palette", hideTitle: true },
    input({ type: "text", role: "combobox", "aria-label": "Page, act or id", "aria-expanded": "true", "aria-controls": id, "aria-activedescendant": chosen ? `${id}-${found.indexOf(chosen)}` : undefined, "aria-autocomplete": "list", autofocus: true, autoComplete: "off", spellcheck: false, placeholder: "Page, act or id", value: typed, onInput: (event) => (setTyped(event.currentTarget.value), setAt(0)), onKeyDown }),
    div(
      { role: "listbox", id, ref: list, "aria-label": "Found" },
      found.length
        ? found.map((entry, index) => div({ key: `${entry.about} ${entry.title}`, id: `${id}-${index}`, role: "option", "aria-selected": entry === chosen ? "true" : "false", onMouseDown: (event) => event.preventDefault(), onClick: () => take(entry), onMouseMove: () => setAt(index) }, h(Icon, { name: entry.icon ?? "right" }), span(null, entry.title), small(null, entry.keys ?? entry.about)))
        : div({ role: "option", "aria-selected": "false", "aria-disabled": "true" }, span({ class: "faint" }, "Nothing has this name.")),
    ),
  );
}

/** @param {Entry[]} entries @param {string} typed @returns {Entry[]} */
function find(entries, typed) {
  const wanted = typed.trim().toLowerCase();
  if (ID.test(wanted)) return KINDS.map(([what, page]) => ({ title: `The ${what} ${wanted.slice(-12)}`, about: "Id", href: href(`${page}/${wanted}`) }));
  if (!wanted) return entries;
  const rank = (/** @type {Entry} */ entry) => {
    const title = entry.title.toLowerCase();
    return title.startsWith(wanted) ? 0 : title.includes(` ${wanted}`) ? 1 : title.includes(wanted) ? 2 : 3;
  };
  return entries.filter((entry) => rank(entry) < 3).sort((one, other) => rank(one) - rank(other));
}
