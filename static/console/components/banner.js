/** A sentence that stands above what it is about, with what to do. Errors that come while the page is open are `alert`s. */

import { h, tags } from "../ui.js";
import { Icon } from "./icon.js";

/** @import { Child } from "../ui.js" */

const { div, strong } = tags;

/**
 * @param {object} props
 * @param {"good" | "bad" | "wait" | "busy" | "idle"} [props.tone]
 * @param {string} [props.title]
 * @param {Child} [props.actions]
 * @param {boolean} [props.isAlert] read out as soon as it appears
 * @param {Child} [props.children]
 */
export function Banner({ tone = "idle", title, actions, isAlert = false, children }) {
  return div(
    { class: "banner", "data-tone": tone, role: isAlert ? "alert" : undefined },
    h(Icon, { name: tone === "bad" || tone === "wait" ? "warning" : tone === "good" ? "check" : "information" }),
    div(null, title ? strong(null, title) : null, children),
    actions ? div({ class: "row" }, actions) : null,
  );
}
