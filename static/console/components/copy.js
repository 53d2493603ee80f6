/** Copies a text. On pages without TLS the clipboard is not there, and a browser may refuse it: a selected field takes its place. */

import { h, tags, useState } from "../ui.js";
import { Icon } from "./icon.js";
import { announce } from "./status.js";

const { button } = tags;

/** Whether it was copied. @param {string} text */
async function copy(text) {
  const isCopied = await navigator.clipboard?.writeText(text).then(() => true, () => false) || copyByField(text);
  announce(isCopied ? "Copied" : "The browser does not let it be copied");
  return isCopied;
}

/** @param {string} text */
function copyByField(text) {
  const field = document.createElement("textarea");
  const before = document.activeElement;
  field.value = text;
  field.className = "hidden";
  // Within a dialog, what is outside takes no focus.
  (before?.closest("dialog") ?? document.body).append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}

/** @param {{ text: string, label: string, words?: boolean }} props `label` says what: "Copy the run's id" */
export function Copy({ text, label, words = false }) {
  const [isDone, setDone] = useState(false);
  const onClick = async () => {
    if (!(await copy(text))) return;
    setDone(true);
    setTimeout(setDone, 1500, false);
  };
  return button({ type: "button", class: words ? "" : "copy", title: label, "aria-label": words ? undefined : label, onClick }, h(Icon, { name: isDone ? "check" : "copy" }), words ? label : null);
}
