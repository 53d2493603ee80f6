/** An id: its last twelve characters in sight, the whole of it in the title and on the clipboard. */

import { h, tags } from "../ui.js";
import { Copy } from "./copy.js";

const { a, code, span } = tags;

/** @param {string} id */
export function shortId(id) {
  return id.length > 16 ? id.slice(-12) : id;
}

/** @param {{ id: string, href?: string, what?: string }} props `what` it is the id of: "run" */
export function Id({ id, href, what = "id" }) {
  return span({ class: "id" }, href ? a({ href, title: id }, shortId(id)) : code({ title: id }, shortId(id)), h(Copy, { text: id, label: what === "id" ? "Copy the id" : `Copy the id of the ${what}` }));
}
