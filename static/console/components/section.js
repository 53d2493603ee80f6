/** A part of a page with a heading of its own, acts beside it, and facts as name and value. */

import { h, tags, useId } from "../ui.js";

/** @import { Child } from "../ui.js" */

const { dd, div, dl, dt, h2, header, section } = tags;

/** @param {{ title: string, actions?: Child, isFlush?: boolean, children?: Child }} props `isFlush`: a list goes from edge to edge, and what is beside it has the class `pad` */
export function Section({ title, actions, isFlush = false, children }) {
  const id = useId();
  return section(
    { class: "card", "aria-labelledby": id },
    header(null, h2({ id }, title), actions ? div({ class: "actions" }, actions) : null),
    div({ class: isFlush ? "body flush" : "body" }, children),
  );
}

/**
 * Names and values. What is undefined is left out; null is shown as a dash.
 * @param {{ facts: [string, Child][], rows?: boolean }} props `rows`: one below the other, for long values
 */
export function Facts({ facts, rows = false }) {
  const shown = facts.filter(([, value]) => value !== undefined);
  return dl({ class: rows ? "facts rows" : "facts" }, shown.map(([name, value]) => div({ key: name }, dt(null, name), dd(null, value ?? "–"))));
}

/** What an object is, in one line above it; long values take several. @param {{ facts: [string, Child][] }} props */
export function FactsLine({ facts }) {
  return dl({ class: "facts-line" }, facts.filter(([, value]) => value !== undefined).map(([name, value]) => div({ key: name }, dt(null, name), dd(null, value ?? "–"))));
}

/** Facts in a section. @param {{ title: string, facts: [string, Child][], actions?: Child }} props */
export function FactsSection({ title, facts, actions }) {
  return h(Section, { title, actions }, h(Facts, { facts, rows: true }));
}
