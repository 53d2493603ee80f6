/** Copies a text. On pages without TLS the clipboard is not there: a selected field takes its place. */

import { h, tags, useState } from "../ui.js";
import { Icon } from "./icon.js";
import { announce } from "./status.js";

const { button } = tags;

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else copyByField(text);
  announce("Copied");
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
  document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
}

/** @param {{ text: string, label: string, words?: boolean }} props `label` says what: "Copy the run's id" */
export function Copy({ text, label, words = false }) {
  const [isDone, setDone] = useState(false);
  const onClick = async () => {
    await copy(text);
    setDone(true);
    setTimeout(setDone, 1500, false);
  };
  return button({ type: "button", class: words ? "" : "copy", title: label, "aria-label": words ? undefined : label, onClick }, h(Icon, { name: isDone ? "check" : "copy" }), words ? label : null);
}
