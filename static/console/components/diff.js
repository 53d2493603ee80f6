/** What changed between two texts: lines, and words within lines. Texts that differ too much are shown beside each other. */

import { h, tags, useEffect, useState } from "../ui.js";
import { TextBlock } from "./text-block.js";

/** @import { Child } from "../ui.js" */

const { del, div, ins, p, span } = tags;

const AROUND = 3;
const BOUNDS = { maxEditLength: 2000, timeout: 300 };

/** @typedef {{ value: string, added?: boolean, removed?: boolean, count?: number }} Change */
/** @type {{ diffLines: (a: string, b: string, options: object) => Change[] | undefined, diffWordsWithSpace: (a: string, b: string, options: object) => Change[] | undefined } | undefined} */
let library;

/** @param {{ before: string, after: string, label: string, names?: [string, string] }} props */
export function Diff({ before, after, label, names = ["Before", "After"] }) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (library) return;
    Promise.all([import("diff/lib/diff/line.js"), import("diff/lib/diff/word.js")]).then(([lines, words]) => {
      library = /** @type {any} */ ({ diffLines: lines.diffLines, diffWordsWithSpace: words.diffWordsWithSpace });
      draw(1);
    }, () => {});
  }, []);
  if (before === after) return p({ class: "faint" }, "No difference.");
  const changes = library?.diffLines(ended(before), ended(after), BOUNDS);
  if (!changes) return div({ class: "columns" }, div(null, p({ class: "faint" }, names[0]), h(TextBlock, { text: before, label: `${label}, ${names[0]}` })), div(null, p({ class: "faint" }, names[1]), h(TextBlock, { text: after, label: `${label}, ${names[1]}` })));
  return div({ class: "diff", role: "group", "aria-label": label, tabIndex: 0 }, rows(changes));
}

/** @param {string} text */
const ended = (text) => (text.endsWith("\n") ? text : `${text}\n`);
/** @param {string} text */
const linesOf = (text) => text.replace(/\n$/, "").split("\n");

/** @param {Change[]} changes @returns {Child} */
function rows(changes) {
  /** @type {Child[]} */
  const drawn = [];
  for (let at = 0; at < changes.length; at++) {
    const change = /** @type {Change} */ (changes[at]);
    const next = changes[at + 1];
    if (change.removed && next?.added) {
      const words = library?.diffWordsWithSpace(change.value, next.value, BOUNDS);
      drawn.push(line("removed", "−", words ? words.filter((word) => !word.added).map((word) => (word.removed ? del(null, word.value) : word.value)) : change.value));
      drawn.push(line("added", "+", words ? words.filter((word) => !word.removed).map((word) => (word.added ? ins(null, word.value) : word.value)) : next.value));
      at++;
    } else if (change.added) drawn.push(line("added", "+", change.value.replace(/\n$/, "")));
    else if (change.removed) drawn.push(line("removed", "−", change.value.replace(/\n$/, "")));
    else {
      const lines = linesOf(change.value);
      const [isFirst, isLast] = [at === 0, at === changes.length - 1];
      const head = isFirst ? 0 : AROUND;
      const tail = isLast ? 0 : AROUND;
      if (lines.length <= head + tail + 1) drawn.push(line("", " ", lines.join("\n")));
      else {
        if (head) drawn.push(line("", " ", lines.slice(0, head).join("\n")));
        drawn.push(line("skipped", "⋯", `${lines.length - head - tail} lines without a change`));
        if (tail) drawn.push(line("", " ", lines.slice(-tail).join("\n")));
      }
    }
  }
  return drawn;
}

const WORDS = /** @type {Record<string, string>} */ ({ added: "Added: ", removed: "Removed: " });

/** @param {string} kind @param {string} sign @param {Child} text */
function line(kind, sign, text) {
  return div({ class: kind || undefined }, span({ "aria-hidden": "true" }, sign), span(null, WORDS[kind] ? span({ class: "hidden" }, WORDS[kind]) : null, text));
}
