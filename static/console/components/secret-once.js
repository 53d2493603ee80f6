/** What is shown once and never again: a key, a code, a signing secret. It says so, and leaves with a word, not by chance. */

import { h, tags, useState } from "../ui.js";
import { Copy } from "./copy.js";
import { Dialog } from "./dialog.js";
import { Check } from "./field.js";

/** @import { Child } from "../ui.js" */

const { button, code, div, footer, p } = tags;

/** @param {{ title: string, secret: string, says: Child, onClose: () => void }} props */
export function SecretOnce({ title, secret, says, onClose }) {
  const [isKept, setKept] = useState(false);
  return h(
    Dialog,
    { title, onClose: () => isKept && onClose(), isLocked: !isKept },
    p(null, says),
    div({ class: "secret" }, code(null, secret), h(Copy, { text: secret, label: "Copy", words: true })),
    h(Check, { label: "I have kept it. It is not shown again.", value: isKept, onInput: setKept }),
    footer(null, button({ type: "button", class: "primary", "aria-disabled": isKept ? undefined : "true", onClick: () => isKept && onClose() }, "Close")),
  );
}
