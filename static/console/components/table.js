/**
 * A table of rows. The first column has the row's link; a click anywhere in a row, and Enter on the link, open it.
 *
 * Guarantees: up to 200 rows stand in the document; of more only those in sight do, at any number. While rows are read the
 * old ones stay, dimmed. New rows that the page read by itself push none away from under the pointer: they are counted above,
 * and shown when it asks or leaves. `j` and `k` (of the shell) move between the rows' links.
 */

import { counted } from "../number.js";
import { go } from "../route.js";
import { fragment, h, tags, useAfter, useEffect, useRef, useState } from "../ui.js";
import { Empty, Failure } from "./states.js";

/** @import { Child } from "../ui.js" */

const { a, button, caption, div, input, span, table, tbody, td, th, thead, tr } = tags;

const MOST_PLAIN = 200;
const OVERSCAN = 12;
const BONES = 6;

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => Child} show
 * @property {boolean} [isNumber] to the right
 * @property {"widest" | "wide" | "middle"} [from] shown from this width on: `widest` 1360 px, `wide` 900 px, `middle` 520 px; else always
 * @property {boolean} [isSecond] in a fainter colour
 * @property {boolean} [wraps] long text, on several lines
 * @property {string} [sort] its name in `sortBy`
 * @property {boolean} [isRest] it takes the width that the others leave, and is cut there
 * @property {boolean} [isActs] what can be done to the row: its title is for readers of the screen alone
 */

/**
 * @param {object} props
 * @param {string} props.label what the rows are
 * @param {Column[]} props.columns
 * @param {Pick<import("./pager.js").List<any>, "rows" | "error" | "isLoading" | "isByItself" | "reload">} [props.list] of `useList`: it says `rows`, `isBusy`, `error` and `retry`
 * @param {any[]} [props.rows] undefined while the first answer is not there
 * @param {(row: any) => string} [props.rowKey] the row's `id`, if it is not named
 * @param {(row: any) => string | undefined} [props.rowHref] the page of the row
 * @param {boolean} [props.isBusy]
 * @param {import("agent-runtime").AgentRuntimeError} [props.error]
 * @param {() => void} [props.retry]
 * @param {boolean} [props.isPlain] nothing in it takes the focus, so that its box does: keys scroll it where it is wider than its place
 * @param {Child} [props.empty] what stands there without rows: `h(Empty, …)`
 * @param {Set<string>} [props.selected] the keys of the rows that are chosen
 * @param {(keys: Set<string>) => void} [props.onSelect]
 * @param {{ name: string, isDescending: boolean }} [props.sortedBy]
 * @param {(name: string) => void} [props.onSort]
 */
export function Table({ label, columns, list, rows: all = list?.rows, rowKey = (row) => row.id, rowHref, isBusy = Boolean(list?.isLoading && !list.rows), error = list?.error, retry = list?.reload, isPlain = false, empty, selected, onSelect, sortedBy, onSort }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const { rows, held, show } = useHeld(box, all, rowKey, Boolean(list?.isByItself));
  const isWindowed = (rows?.length ?? 0) > MOST_PLAIN;
  const window_ = useWindow(box, rows?.length ?? 0, isWindowed);
  if (error && !rows) return h(Failure, { error, retry });
  if (rows && rows.length === 0 && !isBusy) return div({ class: "table-box" }, empty ?? h(Empty, { title: "There is nothing here yet." }));
  const shown = isWindowed ? rows?.slice(window_.from, window_.to) : rows;
  const span_ = columns.length + (selected ? 1 : 0);
  /** @param {any} row @param {number} index */
  const drawn = (row, index) => {
    const key = rowKey(row);
    const to = rowHref?.(row);
    const isChosen = selected?.has(key);
    return tr(
      {
        key,
        "aria-rowindex": isWindowed ? window_.from + index + 2 : undefined,
        "aria-selected": selected ? (isChosen ? "true" : "false") : undefined,
        onClick: to ? (event) => opens(event) && go(to) : undefined,
        "data-row": to ? true : undefined,
      },
      selected ? td({ class: "choose" }, input({ type: "checkbox", checked: isChosen, "aria-label": "Choose this row", onChange: () => onSelect?.(toggled(selected, key)) })) : null,
      columns.map((column, at) => td({ key: column.title, class: classOf(column) }, at === 0 && to ? a({ href: to, "data-row-link": true }, column.show(row)) : column.show(row))),
    );
  };
  return div(
    { class: "stack" },
    error ? h(Failure, { error, retry }) : null,
    div(
      { class: isWindowed ? "table-box windowed" : "table-box", ref: box, tabIndex: isWindowed || isPlain ? 0 : undefined, role: isWindowed || isPlain ? "region" : undefined, "aria-label": isWindowed || isPlain ? label : undefined, onMouseLeave: held ? show : undefined },
      held ? button({ type: "button", class: "held", onClick: show }, `${counted(held, "new row")}: show`) : null,
      table(
        { "aria-busy": isBusy ? "true" : undefined, "aria-rowcount": isWindowed ? (rows?.length ?? 0) + 1 : undefined },
        caption({ class: "hidden" }, label),
        thead(
          null,
          tr(
            null,
            selected ? th({ scope: "col", class: "choose" }, span({ class: "hidden" }, "Chosen")) : null,
            columns.map((column) =>
              th({ key: column.title, scope: "col", class: classOf({ ...column, isSecond: false }), "aria-sort": column.sort && sortedBy?.name === column.sort ? (sortedBy.isDescending ? "descending" : "ascending") : undefined }, column.sort && onSort ? button({ type: "button", onClick: () => onSort(/** @type {string} */ (column.sort)) }, column.title, sortedBy?.name === column.sort ? (sortedBy.isDescending ? " ↓" : " ↑") : null) : column.isActs ? span({ class: "hidden" }, column.title) : column.title),
            ),
          ),
        ),
        tbody(
          null,
          isWindowed ? tr({ class: "gap", "aria-hidden": "true" }, td({ colSpan: span_, style: { height: `${window_.before}px` } })) : null,
          shown ? shown.map(drawn) : h(Bones, { columns }),
          isWindowed ? tr({ class: "gap", "aria-hidden": "true" }, td({ colSpan: span_, style: { height: `${window_.after}px` } })) : null,
        ),
      ),
    ),
  );
}

/**
 * The rows that stay in sight while the pointer is over them, and how many new ones wait.
 * @param {{ current: HTMLDivElement | null }} box
 * @param {any[] | undefined} rows
 * @param {(row: any) => string} rowKey
 * @param {boolean} isByItself nobody asked for these rows
 */
function useHeld(box, rows, rowKey, isByItself) {
  const [, draw] = useState(0);
  const ref = useRef(/** @type {Set<string> | undefined} */ (undefined));
  const known = ref.current;
  const isUnder = isByItself && rows && known && box.current?.matches(":hover") && matchMedia("(hover: hover)").matches;
  const old = isUnder ? rows.filter((row) => known.has(rowKey(row))) : [];
  // Of another list none is known.
  const shown = old.length ? old : rows;
  useEffect(() => {
    ref.current = shown && new Set(shown.map(rowKey));
  });
  return {
    rows: shown,
    held: (rows?.length ?? 0) - (shown?.length ?? 0),
    show() {
      ref.current = undefined;
      draw((count) => count + 1);
    },
  };
}

/** @param {Column} column */
function classOf(column) {
  return [column.isNumber && "number", column.from, column.isSecond && "second", column.wraps && "wrap", column.isRest && "rest", column.isActs && "acts"].filter(Boolean).join(" ") || undefined;
}

/** A click on something of its own, and the end of marking text, open nothing. @param {MouseEvent} event */
function opens(event) {
  const on = /** @type {Element} */ (event.target);
  return !event.defaultPrevented && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !on.closest("a, button, input, label") && !String(getSelection());
}

/** @param {Set<string>} keys @param {string} key */
function toggled(keys, key) {
  const next = new Set(keys);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** @param {{ columns: Column[] }} props */
function Bones({ columns }) {
  const isLate = useAfter(200);
  return fragment(Array.from({ length: BONES }, (_, key) => tr({ key }, columns.map((column) => td({ key: column.title, class: classOf(column) }, isLate ? span({ class: "bone" }) : null)))));
}

/**
 * Which rows of a scrolling box stand in the document.
 * @param {{ current: HTMLDivElement | null }} box
 * @param {number} count
 * @param {boolean} isOn
 */
function useWindow(box, count, isOn) {
  const [view, setView] = useState({ top: 0, height: 800, row: 34 });
  useEffect(() => {
    const on = box.current;
    if (!isOn || !on) return undefined;
    const look = () => {
      const row = parseFloat(getComputedStyle(on).getPropertyValue("--row")) || 34;
      const top = Math.floor(on.scrollTop / row) * row;
      setView((old) => (old.top === top && old.height === on.clientHeight && old.row === row ? old : { top, height: on.clientHeight, row }));
    };
    look();
    on.addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      on.removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [isOn]);
  const from = Math.max(0, Math.floor(view.top / view.row) - OVERSCAN);
  const to = Math.min(count, Math.ceil((view.top + view.height) / view.row) + OVERSCAN);
  return { from, to, before: from * view.row, after: (count - to) * view.row };
}
